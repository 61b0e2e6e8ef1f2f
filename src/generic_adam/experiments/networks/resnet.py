"""ResNet-18 of He, Zhang, Ren and Sun (2016) for 32 x 32 images."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the name everyone knows

USUAL_BLOCKS = (2, 2, 2, 2)
"""The usual ResNet-18: 17 convolutions of 3 x 3, three projections, one dense layer."""

PAPER_BLOCKS = (1, 2, 2, 2)
"""The paper's description taken literally: 3, 5, 5, 5 convolutions, projections counted, 18 in all."""


class ResNet18(nn.Module):
    """Four groups of residual blocks at full, half, quarter and eighth resolution.

    Args:
        channels: channels of the image.
        classes: number of outputs.
        width: channels of the first group, doubled with each further one; 64 is the paper's.
        blocks: residual blocks in each group, `USUAL_BLOCKS` or `PAPER_BLOCKS`.
    """

    def __init__(
        self,
        channels: int = 3,
        classes: int = 100,
        width: int = 64,
        blocks: tuple[int, int, int, int] = USUAL_BLOCKS,
    ) -> None:
        super().__init__()
        self.stem = _convolution(channels, width, 3, stride=1)
        self.stem_norm = nn.BatchNorm2d(width)
        groups: list[nn.Module] = []
        inputs = width
        for group, count in enumerate(blocks):
            outputs = width * 2**group
            for block in range(count):
                groups.append(_Residual(inputs, outputs, stride=2 if group > 0 and block == 0 else 1))
                inputs = outputs
        self.groups = nn.Sequential(*groups)
        self.dense = nn.Linear(inputs, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of images (count, channels, height, width)."""
        hidden = F.relu(self.stem_norm(self.stem(images)), inplace=True)
        return self.dense(self.groups(hidden).mean(dim=(2, 3)))


class _Residual(nn.Module):
    """relu(shortcut(x) + norm(conv(relu(norm(conv(x)))))); the shortcut projects where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, outputs, 3, stride)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = _convolution(outputs, outputs, 3, stride=1)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.stride = stride
        self.shortcut = (
            nn.Sequential(_convolution(inputs, outputs, 1, stride=1), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else nn.Identity()
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.norm1(self.conv1(images)), inplace=True)
        # A strided 1 x 1 convolution reads every other pixel. Taking those first is the same, and keeps clear
        # of a memory error in oneDNN's weight gradient with few channels (uxlfoundation/oneDNN, issue 6035).
        kept = images[:, :, :: self.stride, :: self.stride]
        return F.relu(self.norm2(self.conv2(hidden)) + self.shortcut(kept), inplace=True)


def _convolution(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    """A convolution that keeps the size (divided by the stride); the norm after it makes a bias pointless."""
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
