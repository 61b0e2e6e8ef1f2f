"""The networks of the experiments: the paper's two, and a small GPT, because that is what people train."""

from __future__ import annotations

import threading
from typing import Final

from generic_adam.errors import RunError
from generic_adam_laboratory.extras import for_training

with for_training():
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812 - the name everyone knows

NETWORKS: Final = ("lenet", "resnet18", "resnet18-paper", "gpt")
"""ResNet-18 with the usual blocks (2, 2, 2, 2), and with the paper's literal (1, 2, 2, 2)."""

USUAL_BLOCKS: Final = (2, 2, 2, 2)
"""The usual ResNet-18: 17 convolutions of 3 x 3, three projections, one dense layer."""

PAPER_BLOCKS: Final = (1, 2, 2, 2)
"""The paper's description taken literally: 3, 5, 5, 5 convolutions, projections counted, 18 in all."""

GPT_BLOCKS, GPT_HEADS, GPT_CONTEXT = 4, 4, 64
"""With a width of 128 these are 0.8 million parameters, most of them in the four blocks."""

_GENERATOR = threading.Lock()
"""Held while torch's one generator is borrowed: tasks of a Dask worker may share a process."""


def build(name: str, *, channels: int, classes: int, width: int, seed: int) -> nn.Module:
    """Build one of `NETWORKS` on the CPU, in training mode, whose initial weights depend on the seed alone.

    The width is that of ResNet-18's first group or of GPT's residual stream (there is one LeNet); `classes` may be
    characters. The state of torch's own generator is left as it was. RunError if there is no such network.
    """
    if name not in NETWORKS:
        raise RunError(f"no network {name!r}: expected one of {', '.join(NETWORKS)}")
    least = GPT_HEADS if name == "gpt" else 1
    if width < 1 or width % least:
        raise RunError(f"width {width}: expected a positive multiple of {least}")
    with _GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "lenet":
            return LeNet(channels, classes)
        if name == "gpt":
            return GPT(classes, width)
        return ResNet18(channels, classes, width, PAPER_BLOCKS if name == "resnet18-paper" else USUAL_BLOCKS)


class LeNet(nn.Module):
    """LeNet of LeCun, Bottou, Bengio and Haffner (1998), for 28 x 28 images: 61,706 parameters for ten classes.

    The original's layer sizes; ReLU instead of its scaled tanh (the paper says ReLU), maximum pooling instead
    of its trainable average, and a plain linear output.
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


class ResNet18(nn.Module):
    """ResNet-18 of He, Zhang, Ren and Sun (2016) for small images.

    Four groups of residual blocks at full, half, quarter and eighth resolution, each twice as wide as the one before;
    the first has 64 channels in the paper.
    """

    def __init__(
        self, channels: int = 3, classes: int = 100, width: int = 64, blocks: tuple[int, int, int, int] = USUAL_BLOCKS
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
    """Make a convolution that keeps the size (divided by the stride); the norm after it makes a bias pointless."""
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


class GPT(nn.Module):
    """A decoder in the manner of GPT-2, with its initial weights: causal attention, no dropout, no biases."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(classes, width)
        self.positions = nn.Embedding(GPT_CONTEXT, width)
        self.blocks = nn.Sequential(*(_Transformer(width) for _ in range(GPT_BLOCKS)))
        self.norm = nn.LayerNorm(width, bias=False)
        for name, weights in self.named_parameters():
            if weights.ndim == 2:
                # The sum over the blocks keeps its size if what each adds is smaller the more there are.
                share = (2 * GPT_BLOCKS) ** -0.5 if name.endswith(("join.weight", "down.weight")) else 1.0
                nn.init.normal_(weights, std=0.02 * share)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Logits (count, classes, length) of the next character, of characters (count, length)."""
        places = torch.arange(characters.shape[1], device=characters.device)
        hidden = self.norm(self.blocks(self.characters(characters) + self.positions(places)))
        return F.linear(hidden, self.characters.weight).transpose(1, 2)


class _Transformer(nn.Module):
    """x + attention(norm(x)), then the same with two dense layers in place of attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, bias=False)
        self.split = nn.Linear(width, 3 * width, bias=False)
        self.join = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        count, length, width = hidden.shape
        heads = self.split(self.norm1(hidden)).view(count, length, 3, GPT_HEADS, width // GPT_HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.join(mixed.transpose(1, 2).reshape(count, length, width))
        return hidden + self.down(F.gelu(self.up(self.norm2(hidden)), approximate="tanh"))
