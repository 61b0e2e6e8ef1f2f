"""Does my Adam converge, how fast, and what is the smallest change that makes it?"""

__version__ = "0.1.0"
