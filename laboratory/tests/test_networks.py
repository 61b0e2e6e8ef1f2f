"""The networks have the shapes that were published."""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from generic_adam.errors import RunError
from generic_adam_laboratory import networks
from generic_adam_laboratory.networks import GPT, PAPER_BLOCKS, LeNet, ResNet18


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def convolutions(network: nn.Module) -> list[nn.Conv2d]:
    return [module for module in network.modules() if isinstance(module, nn.Conv2d)]


def test_lenet_has_its_known_number_of_parameters():
    # 6 (25 + 1) + 16 (150 + 1) + 120 (400 + 1) + 84 (120 + 1) + 10 (84 + 1)
    assert parameters(LeNet()) == 156 + 2416 + 48120 + 10164 + 850


def test_lenet_is_convolve_relu_pool_in_that_order():
    network, images = LeNet(), torch.randn(7, 1, 28, 28)
    hidden = F.max_pool2d(F.relu(network.conv1(images)), 2)
    hidden = F.max_pool2d(F.relu(network.conv2(hidden)), 2).flatten(1)
    expected = network.dense3(F.relu(network.dense2(F.relu(network.dense1(hidden)))))
    torch.testing.assert_close(network(images), expected)


def test_resnet18_has_its_known_number_of_parameters():
    assert parameters(ResNet18()) == 11_220_132  # the usual one for 32 x 32 images and 100 classes


def test_the_papers_resnet18_has_the_papers_convolutions():
    network = ResNet18(blocks=PAPER_BLOCKS)
    assert Counter(c.out_channels for c in convolutions(network)) == {64: 3, 128: 5, 256: 5, 512: 5}


@pytest.mark.parametrize("name", ["resnet18", "resnet18-paper"])
def test_resnet18_reduces_an_image_to_an_eighth(name):
    network = networks.build(name, channels=3, classes=100, width=4, seed=0)
    seen = []
    network.groups.register_forward_hook(lambda _module, _inputs, output: seen.append(output.shape))
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 100)
    assert seen == [(2, 32, 4, 4)]


def test_the_seed_alone_decides_the_weights():
    before = torch.random.get_rng_state()
    first, second, other = (networks.build("lenet", channels=1, classes=10, width=1, seed=s) for s in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b, c in zip(first.parameters(), second.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)


@pytest.mark.parametrize(
    ("name", "width", "message"),
    [
        ("vgg", 1, "no network 'vgg'"),
        ("resnet18", 0, "width 0: expected"),
        ("gpt", 6, "a positive multiple of 4"),
    ],
)
def test_what_cannot_be_built_is_said(name, width, message):
    with pytest.raises(RunError, match=message):
        networks.build(name, channels=1, classes=10, width=width, seed=0)


def test_gpt_has_the_size_it_says_and_sees_no_future():
    network = networks.build("gpt", channels=0, classes=97, width=128, seed=0).eval()
    assert isinstance(network, GPT)
    blocks = 4 * (12 * 128**2 + 2 * 128)  # attention 4 w^2, dense layers 8 w^2, two norms
    assert sum(p.numel() for p in network.parameters()) == blocks + (97 + 64 + 1) * 128 == 808_192
    characters = torch.randint(97, (2, 64), generator=torch.Generator().manual_seed(0))
    changed = characters.clone()
    changed[:, 40:] = (changed[:, 40:] + 1) % 97
    with torch.no_grad():
        before, after = network(characters), network(changed)
    assert before.shape == (2, 97, 64)
    torch.testing.assert_close(before[..., :40], after[..., :40])
    assert not torch.allclose(before[..., 40:], after[..., 40:], atol=1e-3)
