"""Reads a method off what people have: a torch optimizer and scheduler, a Trainer's arguments, a recipe.

Nothing here is imported by `import generic_adam`, and no framework is imported before it is asked for.
"""

from generic_adam.adapters.reading import AdapterError, Reading

__all__ = ["AdapterError", "Reading"]
