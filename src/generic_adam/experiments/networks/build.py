"""A network by its name, with the weights that its seed gives."""

from __future__ import annotations

import threading

import torch
from torch import nn

from generic_adam.experiments.networks.lenet import LeNet
from generic_adam.experiments.networks.resnet import PAPER_BLOCKS, USUAL_BLOCKS, ResNet18

NETWORKS = ("lenet", "resnet18", "resnet18-paper")
"""LeNet, ResNet-18 with the usual blocks (2, 2, 2, 2), and with the paper's literal (1, 2, 2, 2)."""


_GENERATOR = threading.Lock()
"""Held while torch's one generator is borrowed: tasks of a Dask worker may share a process."""


class NetworkError(ValueError):
    """A network that cannot be built as asked; the message is one line."""


def build(name: str, *, channels: int, classes: int, width: int, seed: int) -> nn.Module:
    """Build a network whose initial weights depend on the seed alone.

    Args:
        name: one of `NETWORKS`.
        channels: channels of the images.
        classes: number of classes.
        width: channels of ResNet-18's first group (LeNet has one width and ignores it).
        seed: of the initial weights; the state of torch's own generator is left as it was.

    Returns:
        The network on the CPU, in training mode.
    """
    if name not in NETWORKS:
        raise NetworkError(f"no network {name!r}: expected one of {', '.join(NETWORKS)}")
    if width < 1:
        raise NetworkError(f"width {width}: expected a positive whole number")
    with _GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "lenet":
            return LeNet(channels, classes)
        blocks = PAPER_BLOCKS if name == "resnet18-paper" else USUAL_BLOCKS
        return ResNet18(channels, classes, width, blocks)
