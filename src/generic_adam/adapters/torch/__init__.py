"""A method from a live torch optimizer and its scheduler."""

from generic_adam.extras import from_extra

with from_extra("torch"):
    from generic_adam.adapters.torch.live import read

__all__ = ["read"]
