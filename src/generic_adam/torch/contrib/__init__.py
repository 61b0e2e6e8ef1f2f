"""Peers that Generic Adam is compared with: one file each, all tested by tests/conformance."""

from generic_adam.torch.contrib.adashift import AdaShift
from generic_adam.torch.contrib.adausm import AdaUSM
from generic_adam.torch.contrib.padam import Padam

__all__ = ["AdaShift", "AdaUSM", "Padam"]
