"""LeNet: the five-layer convolutional network of LeCun, Bottou, Bengio and Haffner (1998), with ReLU."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the name everyone knows


class LeNet(nn.Module):
    """Two convolutions and three dense layers, for 28 x 28 images; 61,706 parameters for ten classes.

    The original's layer sizes; ReLU instead of its scaled tanh (the paper says ReLU), maximum pooling instead
    of its trainable average, and a plain linear output.

    Args:
        channels: channels of the image.
        classes: number of outputs.
    """

    def __init__(self, channels: int = 1, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5)
        self.dense1 = nn.Linear(16 * 5 * 5, 120)
        self.dense2 = nn.Linear(120, 84)
        self.dense3 = nn.Linear(84, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of images (count, channels, 28, 28)."""
        # ReLU is monotone, so it commutes with the maximum: after the pooling it touches a quarter of the
        # values.
        hidden = F.relu(F.max_pool2d(self.conv1(images), 2))
        hidden = F.relu(F.max_pool2d(self.conv2(hidden), 2))
        hidden = F.relu(self.dense1(hidden.flatten(1)))
        hidden = F.relu(self.dense2(hidden))
        return self.dense3(hidden)
