"""The algorithm of a live torch optimizer and its scheduler."""

from generic_adam.extras import from_extra

with from_extra("torch"):
    from generic_adam.adapters.torch.optimizers import read

__all__ = ["read"]
