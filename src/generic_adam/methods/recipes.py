"""Published training recipes with their exact values: what was run, where it is written, for how many steps.

A recipe's learning rate is written as its source has it. Where the source counts steps from 0, so does the
formula (t - 1); where it only says "warm-up over N steps", the rate is t/N of the peak. Sources that count
tokens or samples are turned into steps at the full batch size.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction

from generic_adam.errors import MethodError
from generic_adam.methods.catalogue import adam, palm, t5
from generic_adam.methods.method import Method
from generic_adam.methods.shapes import cosine_fall, linear_fall, warm_up
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
        title: what people call it.
        method: its alpha_t, beta_t and theta_t; bias correction is part of alpha_t.
        horizon: the steps of the published run.
        evidence: "read" in the source named, or "known": widely reported, with the original text not at hand.
        source: where the values are from.
        outside: what the recipe has that the theorem does not cover.
    """

    name: str
    title: str
    method: Method
    horizon: int
    evidence: Evidence
    source: str
    outside: tuple[str, ...]


def _epsilon(value: str) -> str:
    return f"epsilon {value} is added to sqrt(v_t); the theorem has it in v_0 instead"


def _weight_decay(value: str) -> str:
    return f"decoupled weight decay of {value}"


_CLIP = "gradients are clipped to norm 1, which makes them biased"
_FACTORED = "second moments of matrices are factored into rows and columns"
_PARAMETER_SCALE = "the step is multiplied by the root mean square of the parameters"
_UPDATE_CLIP = "updates are clipped to a root mean square of 1"
_BATCH_GROWS = "the batch grows at the beginning; steps are counted at its full size"


def _noam(width: int, warm_up_steps: int) -> Schedule:
    """width^-0.5 min(t^-0.5, t warm_up_steps^-1.5)."""
    return minimum(1 / sqrt(t), t * as_schedule(warm_up_steps) ** Fraction(-3, 2)) / sqrt(width)


def _gpt3() -> Method:
    tokens = 3_200_000
    start, end = Fraction(375_000_000, tokens), Fraction(260_000_000_000, tokens)
    return adam(lr=warm_up(6e-5, start, cosine_fall(6e-5, 6e-6, start, end)), beta=0.9, theta=0.95)


def _bloom() -> Method:
    samples = 2048
    start, end = Fraction(183_105, samples), Fraction(200_000_000, samples)
    return adam(lr=warm_up(6e-5, start, cosine_fall(6e-5, 6e-6, start, end)), beta=0.9, theta=0.95)


def _deepseek_v3() -> Method:
    tokens = 15_360 * 4_096
    flat, fallen = Fraction(10 * 10**12, tokens), Fraction(14_300 * 10**9, tokens)
    last = Fraction(14_633 * 10**9, tokens)
    fall = cosine_fall(2.2e-4, 2.2e-5, flat, fallen)
    rate = warm_up(2.2e-4, Fraction(2_000), join(2.2e-4, int(flat) + 1, join(fall, int(last) + 1, 7.3e-6)))
    return adam(lr=rate, beta=0.9, theta=0.95)


def _nanogpt() -> Method:
    # it = t - 1: (it + 1)/2001 of the peak for it < 2,000, then a cosine from it = 2,000 to it = 600,000
    fall = cosine_fall(6e-4, 6e-5, Fraction(2_001), Fraction(600_001))
    return adam(lr=join(as_schedule(6e-4) * t / 2_001, 2_001, fall), beta=0.9, theta=0.95)


def _stable_diffusion() -> Method:
    # n = t - 1: from 1e-6 of the peak in equal steps
    start = Fraction(1, 10**6)
    rise = as_schedule(1e-4) * (start + (1 - start) * (t - 1) / 10_000)
    return adam(lr=join(rise, 10_001, 1e-4), beta=0.9, theta=0.999)


def _bert() -> Method:
    # global_step = t - 1: 0 at the first step, and a fall that is a line through the peak at global_step = 0
    steps = 1_000_000
    fall = join(as_schedule(1e-4) * (steps + 1 - t) / steps, steps + 1, 0)
    return adam(
        lr=join(as_schedule(1e-4) * (t - 1) / 10_000, 10_001, fall),
        beta=0.9,
        theta=0.999,
        bias_correction=False,
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "transformer",
        "Transformer base",
        adam(lr=_noam(512, 4_000), beta=0.9, theta=0.98),
        100_000,
        Evidence.READ,
        'Vaswani et al., "Attention Is All You Need", 2017, section 5.3; tensor2tensor transformer_base_v1',
        (_epsilon("1e-9"),),
    ),
    Recipe(
        "bert",
        "BERT",
        _bert(),
        1_000_000,
        Evidence.READ,
        "google-research/bert: optimization.py, run_pretraining.py",
        (_epsilon("1e-6"), _weight_decay("0.01"), _CLIP),
    ),
    Recipe(
        "gpt3",
        "GPT-3 175B",
        _gpt3(),
        93_750,
        Evidence.KNOWN,
        'Brown et al., "Language Models are Few-Shot Learners", 2020, appendix B',
        (_epsilon("1e-8"), _weight_decay("0.1"), _CLIP, _BATCH_GROWS),
    ),
    Recipe(
        "llama",
        "LLaMA 7B",
        adam(
            lr=warm_up(3e-4, Fraction(2_000), cosine_fall(3e-4, 3e-5, Fraction(2_000), Fraction(250_000))),
            beta=0.9,
            theta=0.95,
        ),
        250_000,
        Evidence.KNOWN,
        'Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, section 2.3',
        (_weight_decay("0.1"), _CLIP),
    ),
    Recipe(
        "palm",
        "PaLM",
        palm(),
        255_000,
        Evidence.READ,
        'Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, section 5',
        (_PARAMETER_SCALE, "weight decay of lr^2", _CLIP, "the batch is enlarged twice during the run"),
    ),
    Recipe(
        "t5",
        "T5",
        t5(),
        524_288,
        Evidence.READ,
        "mesh_tensorflow: optimize.py; T5's gin configuration",
        (_FACTORED, _PARAMETER_SCALE, _UPDATE_CLIP),
    ),
    Recipe(
        "vit",
        "ViT-B/16 on JFT-300M",
        adam(
            lr=warm_up(8e-4, Fraction(10_000), linear_fall(8e-4, 1e-5, 10_000, 517_822)),
            beta=0.9,
            theta=0.999,
        ),
        517_822,
        Evidence.KNOWN,
        'Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, table 3 (7 epochs of 303M images, '
        "batch 4,096; gradients are clipped on ImageNet only); google-research/vision_transformer: utils.py",
        (_weight_decay("0.1"),),
    ),
    Recipe(
        "stable_diffusion",
        "Stable Diffusion v1",
        _stable_diffusion(),
        946_000,
        Evidence.READ,
        "CompVis/stable-diffusion: model card (v1-2: 237k, 194k and 515k steps), lr_scheduler.py, ddpm.py",
        (_epsilon("1e-8"), _weight_decay("0.01")),
    ),
    Recipe(
        "bloom",
        "BLOOM-176B",
        _bloom(),
        97_656,
        Evidence.READ,
        "bigscience: tr11-176B-ml.slurm",
        (_epsilon("1e-8"), _weight_decay("0.1"), _CLIP, _BATCH_GROWS),
    ),
    Recipe(
        "deepseek_v3",
        "DeepSeek-V3",
        _deepseek_v3(),
        235_239,
        Evidence.READ,
        'a secondary text on DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 4.2',
        (_weight_decay("0.1"), _CLIP, _BATCH_GROWS),
    ),
    Recipe(
        "nanogpt",
        "nanoGPT (GPT-2 124M)",
        _nanogpt(),
        600_000,
        Evidence.READ,
        "karpathy/nanoGPT: train.py",
        (_epsilon("1e-8"), _weight_decay("0.1"), _CLIP),
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
