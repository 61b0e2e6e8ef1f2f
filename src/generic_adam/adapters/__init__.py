"""Reads an Algorithm off what people have: a torch optimizer and scheduler, a Trainer's arguments, a file.

Nothing here is imported by `import generic_adam`, and no framework is imported before it is asked for.
"""

from generic_adam.adapters.plain import read_config
from generic_adam.adapters.read import load, read

__all__ = ["load", "read", "read_config"]
