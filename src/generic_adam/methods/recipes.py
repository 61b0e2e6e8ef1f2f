"""Published training recipes with their exact values: what was run, where it is written, for how many steps.

A recipe's learning rate is written as its source has it. Where the source counts steps from 0, so does the
formula (t - 1); where it only says "warm-up over N steps", the rate is t/N of the peak. Sources that count
tokens or samples are turned into steps at the full batch size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from typing import Any

from generic_adam.errors import MethodError
from generic_adam.methods.algorithm import Algorithm, Clipping
from generic_adam.methods.catalogue import adam, palm, t5
from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.methods.shapes import cosine_fall, linear_fall, warm_up
from generic_adam.methods.shipped import adamw
from generic_adam.schedules import Schedule, as_schedule, join, minimum, sqrt, t


class Evidence(StrEnum):
    """How the values of a recipe are known."""

    READ = "read"
    KNOWN = "known"


@dataclass(frozen=True)
class Recipe:
    """One published recipe.

    Attributes:
        name: what the command line knows it by.
        algorithm: what was run, with its label, its source and its number of steps.
        evidence: "read" in the source named, or "known": widely reported, with the original text not at hand.
    """

    name: str
    algorithm: Algorithm
    evidence: Evidence


_BATCH_GROWS = "the batch grows at the beginning; steps are counted at its full size"
_PARAMETER_SCALE = "the step is multiplied by the root mean square of the parameters"
_NORM_ONE = Clipping(1.0)


def _noam(width: int, warm_up_steps: int) -> Schedule:
    """width^-0.5 min(t^-0.5, t warm_up_steps^-1.5)."""
    return minimum(1 / sqrt(t), t * as_schedule(warm_up_steps) ** Fraction(-3, 2)) / sqrt(width)


def _shipped(
    label: str,
    horizon: int,
    source: str,
    lr: ScheduleLike,
    theta: float,
    *,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    clip: bool = False,
    notes: tuple[str, ...] = (),
) -> Algorithm:
    """Adam with momentum 0.9 and bias correction, as the frameworks ship it."""
    return replace(
        adamw(lr=lr, beta=0.9, theta=theta, eps=eps, weight_decay=weight_decay),
        clipping=_NORM_ONE if clip else None,
        label=label,
        horizon=horizon,
        source=source,
        notes=notes,
    )


def _counted(total: int, unit: int) -> Fraction:
    """Tokens or samples as steps at the full batch."""
    return Fraction(total, unit)


def _warm_cosine(peak: float, lowest: float, start: Fraction, end: Fraction) -> Schedule:
    return warm_up(peak, start, cosine_fall(peak, lowest, start, end))


def _deepseek_rate() -> Schedule:
    tokens = 15_360 * 4_096
    flat, fallen = _counted(10 * 10**12, tokens), _counted(14_300 * 10**9, tokens)
    last = _counted(14_633 * 10**9, tokens)
    fall = cosine_fall(2.2e-4, 2.2e-5, flat, fallen)
    return warm_up(2.2e-4, Fraction(2_000), join(2.2e-4, int(flat) + 1, join(fall, int(last) + 1, 7.3e-6)))


def _nanogpt_rate() -> Schedule:
    # it = t - 1: (it + 1)/2001 of the peak for it < 2,000, then a cosine from it = 2,000 to it = 600,000
    fall = cosine_fall(6e-4, 6e-5, Fraction(2_001), Fraction(600_001))
    return join(as_schedule(6e-4) * t / 2_001, 2_001, fall)


def _stable_diffusion_rate() -> Schedule:
    # n = t - 1: from 1e-6 of the peak in equal steps
    start = Fraction(1, 10**6)
    return join(as_schedule(1e-4) * (start + (1 - start) * (t - 1) / 10_000), 10_001, 1e-4)


def _bert() -> Algorithm:
    # global_step = t - 1: 0 at the first step, and a fall that is a line through the peak at global_step = 0
    steps = 1_000_000
    fall = join(as_schedule(1e-4) * (steps + 1 - t) / steps, steps + 1, 0)
    lr = join(as_schedule(1e-4) * (t - 1) / 10_000, 10_001, fall)
    return Algorithm(
        adam(lr=lr, beta=0.9, theta=0.999, bias_correction=False),
        initial_v=0,
        eps=1e-6,
        decay=lr * Fraction(1, 100),
        clipping=_NORM_ONE,
        label="BERT",
        horizon=steps,
        source="google-research/bert: optimization.py, run_pretraining.py",
    )


def _adafactor(
    label: str, method: Method, horizon: int, source: str, *outside: str, **settings: Any
) -> Algorithm:
    """Adafactor: eps_1 = 1e-30 is added to every squared gradient, so that e_t^2 = 1e-30 (theta_1 = 0)."""
    return Algorithm(
        method,
        initial_v=0,
        eps=1e-15,
        eps_under_root=True,
        outside=outside,
        label=label,
        horizon=horizon,
        source=source,
        **settings,
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "transformer",
        _shipped(
            "Transformer base",
            100_000,
            'Vaswani et al., "Attention Is All You Need", 2017, section 5.3; tensor2tensor transformer_base_v1',
            _noam(512, 4_000),
            0.98,
            eps=1e-9,
        ),
        Evidence.READ,
    ),
    Recipe("bert", _bert(), Evidence.READ),
    Recipe(
        "gpt3",
        _shipped(
            "GPT-3 175B",
            93_750,
            'Brown et al., "Language Models are Few-Shot Learners", 2020, appendix B',
            _warm_cosine(6e-5, 6e-6, _counted(375_000_000, 3_200_000), _counted(260_000_000_000, 3_200_000)),
            0.95,
            weight_decay=0.1,
            clip=True,
            notes=(_BATCH_GROWS,),
        ),
        Evidence.KNOWN,
    ),
    Recipe(
        "llama",
        _shipped(
            "LLaMA 7B",
            250_000,
            'Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, section 2.3',
            _warm_cosine(3e-4, 3e-5, Fraction(2_000), Fraction(250_000)),
            0.95,
            weight_decay=0.1,
            clip=True,
        ),
        Evidence.KNOWN,
    ),
    Recipe(
        "palm",
        _adafactor(
            "PaLM",
            palm(),
            255_000,
            'Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, section 5',
            _PARAMETER_SCALE,
            decay=palm().alpha * palm().alpha,
            clipping=_NORM_ONE,
            notes=("the batch is enlarged twice during the run",),
        ),
        Evidence.READ,
    ),
    Recipe(
        "t5",
        _adafactor(
            "T5",
            t5(),
            524_288,
            "mesh_tensorflow: optimize.py; T5's gin configuration",
            _PARAMETER_SCALE,
            factored=True,
            clipping=Clipping(1.0, "update"),
        ),
        Evidence.READ,
    ),
    Recipe(
        "vit",
        _shipped(
            "ViT-B/16 on JFT-300M",
            517_822,
            'Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, table 3 (7 epochs of 303M images, '
            "batch 4,096; gradients are clipped on ImageNet only); google-research/vision_transformer: utils.py",
            warm_up(8e-4, Fraction(10_000), linear_fall(8e-4, 1e-5, 10_000, 517_822)),
            0.999,
            weight_decay=0.1,
        ),
        Evidence.KNOWN,
    ),
    Recipe(
        "stable_diffusion",
        _shipped(
            "Stable Diffusion v1",
            946_000,
            "CompVis/stable-diffusion: model card (v1-2: 237k, 194k and 515k steps), lr_scheduler.py, ddpm.py",
            _stable_diffusion_rate(),
            0.999,
            weight_decay=0.01,
        ),
        Evidence.READ,
    ),
    Recipe(
        "bloom",
        _shipped(
            "BLOOM-176B",
            97_656,
            "bigscience: tr11-176B-ml.slurm",
            _warm_cosine(6e-5, 6e-6, _counted(183_105, 2048), _counted(200_000_000, 2048)),
            0.95,
            weight_decay=0.1,
            clip=True,
            notes=(_BATCH_GROWS,),
        ),
        Evidence.READ,
    ),
    Recipe(
        "deepseek_v3",
        _shipped(
            "DeepSeek-V3",
            235_239,
            'a secondary text on DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 4.2',
            _deepseek_rate(),
            0.95,
            weight_decay=0.1,
            clip=True,
            notes=(_BATCH_GROWS,),
        ),
        Evidence.READ,
    ),
    Recipe(
        "nanogpt",
        _shipped(
            "nanoGPT (GPT-2 124M)",
            600_000,
            "karpathy/nanoGPT: train.py",
            _nanogpt_rate(),
            0.95,
            weight_decay=0.1,
            clip=True,
        ),
        Evidence.READ,
    ),
)

_BY_NAME = {recipe.name: recipe for recipe in RECIPES}


def recipe_names() -> tuple[str, ...]:
    """The names of the recipes, in the order of the gallery."""
    return tuple(_BY_NAME)


def recipe(name: str) -> Recipe:
    """A recipe by its name; hyphens count as underscores, capitals as small letters.

    Raises:
        MethodError: there is none of that name; the message offers the closest.
    """
    wanted = name.strip().lower().replace("-", "_")
    if wanted in _BY_NAME:
        return _BY_NAME[wanted]
    close = get_close_matches(wanted, _BY_NAME, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(_BY_NAME)}"
    raise MethodError(f"no recipe is called {name!r}; {hint}")
