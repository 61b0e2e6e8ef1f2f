"""Published training recipes with their exact values: what was run, where it is written, for how many steps.

A recipe's learning rate is written as its source has it. Where the source counts steps from 0, so does the
formula (t - 1); where it only says "warm-up over N steps", the rate is t/N of the peak. Sources that count
tokens or samples are turned into steps at the full batch size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from generic_adam.methods.algorithm import Algorithm, Clipping, as_algorithm
from generic_adam.methods.catalogue import REFUSED, adafactor, adam, adamw, build, names, spelled, unknown
from generic_adam.methods.method import Method
from generic_adam.methods.shapes import fall, warm_up
from generic_adam.schedules import Schedule, as_schedule, join, maximum, minimum, sqrt, t


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
    evidence: Literal["read", "known"]


_BY_NAME: dict[str, Callable[[], Recipe]] = {}


def _recipe(
    label: str, steps: int, source: str, evidence: Literal["read", "known"] = "read", **settings: Any
) -> Callable[[Callable[[], Algorithm]], Callable[[], Recipe]]:
    """Enter a function that builds a recipe's algorithm; it is called when the recipe is first asked for."""

    def enter(build: Callable[[], Algorithm]) -> Callable[[], Recipe]:
        @functools.cache
        def made() -> Recipe:
            algorithm = replace(build(), label=label, horizon=steps, source=source, **settings)
            return Recipe(build.__name__, algorithm, evidence)

        _BY_NAME[build.__name__] = made
        return made

    return enter


def _warm_cosine(peak: float, lowest: float, start: int, end: int, unit: int = 1) -> Schedule:
    """Return a warm-up and half a cosine, counted in tokens or samples, `unit` of them a step."""
    first, last = Fraction(start, unit), Fraction(end, unit)
    return warm_up(peak, first, fall("cosine", peak, lowest, first, last))


def _scaled_adafactor(beta: float) -> Algorithm:
    """Adafactor's sequences with the step scaled by the parameters, as T5 and PaLM ran it."""
    return replace(adafactor(beta=beta), scaled=True)


_SEQUENCES_ALONE = "unscaled it is the method adafactor"
_NORM_ONE = Clipping(1.0)
_CLIPPED_IN_GROWING_BATCHES: dict[str, Any] = {
    "clipping": _NORM_ONE,
    "notes": ("the batch grows at the beginning; steps are counted at its full size",),
}


@_recipe(
    "Transformer base",
    100_000,
    'Vaswani et al., "Attention Is All You Need", 2017, section 5.3; tensor2tensor transformer_base_v1',
)
def transformer() -> Algorithm:
    """Return the Transformer's Adam, with its inverse square root and a linear warm-up."""
    lr = minimum(1 / sqrt(t), t * as_schedule(4_000) ** Fraction(-3, 2)) / sqrt(512)
    return adamw(lr=lr, theta=0.98, eps=1e-9, weight_decay=0)


@_recipe("BERT", 1_000_000, "google-research/bert: optimization.py, run_pretraining.py", clipping=_NORM_ONE)
def bert() -> Algorithm:
    """Return BERT's Adam, without bias correction; its decay is not in the gradient."""
    # global_step = t - 1: 0 at the first step, and a fall that is a line through the peak at global_step = 0
    steps = 1_000_000
    falling = join(as_schedule(1e-4) * (steps + 1 - t) / steps, steps + 1, 0)
    lr = join(as_schedule(1e-4) * (t - 1) / 10_000, 10_001, falling)
    method = adam(lr=lr, beta=0.9, theta=0.999, bias_correction=False)
    return Algorithm(method, initial_v=0, eps=1e-6, decay=lr * Fraction(1, 100))


@_recipe(
    "GPT-3 175B",
    93_750,
    'Brown et al., "Language Models are Few-Shot Learners", 2020, appendix B',
    "known",
    **_CLIPPED_IN_GROWING_BATCHES,
)
def gpt3() -> Algorithm:
    """Return GPT-3's AdamW; the cosine is counted in tokens."""
    return adamw(lr=_warm_cosine(6e-5, 6e-6, 375_000_000, 260_000_000_000, 3_200_000), theta=0.95, weight_decay=0.1)


@_recipe(
    "LLaMA 7B",
    250_000,
    'Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, section 2.3',
    "known",
    clipping=_NORM_ONE,
)
def llama() -> Algorithm:
    """Return LLaMA's AdamW."""
    return adamw(lr=_warm_cosine(3e-4, 3e-5, 2_000, 250_000), theta=0.95, weight_decay=0.1)


@_recipe(
    "PaLM",
    255_000,
    'Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, section 5',
    clipping=_NORM_ONE,
    notes=("the batch is enlarged twice during the run", f"{_SEQUENCES_ALONE}, with beta 0.9 and this decay"),
)
def palm() -> Algorithm:
    """Return PaLM's Adafactor, with momentum and without factors."""
    return replace(_scaled_adafactor(beta=0.9), decay=1 / maximum(t, 10_000))


@_recipe(
    "T5",
    524_288,
    "mesh_tensorflow: optimize.py; T5's gin configuration",
    factored=True,
    clipping=Clipping(1.0, "update"),
    notes=(_SEQUENCES_ALONE,),
)
def t5() -> Algorithm:
    """Return T5's Adafactor."""
    return _scaled_adafactor(beta=0)


@_recipe(
    "ViT-B/16 on JFT-300M",
    517_822,
    'Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, table 3 (7 epochs of 303M images, '
    "batch 4,096; gradients are clipped on ImageNet only); google-research/vision_transformer: utils.py",
    "known",
)
def vit() -> Algorithm:
    """Return the vision transformer's AdamW, with a linear fall."""
    falling = fall("linear", 8e-4, 1e-5, 10_000, 517_822)
    return adamw(lr=warm_up(8e-4, Fraction(10_000), falling), weight_decay=0.1)


@_recipe(
    "Stable Diffusion v1",
    946_000,
    "CompVis/stable-diffusion: model card (v1-2: 237k, 194k and 515k steps), lr_scheduler.py, ddpm.py",
)
def stable_diffusion() -> Algorithm:
    """Return Stable Diffusion's AdamW, constant after its warm-up."""
    # n = t - 1: from 1e-6 of the peak in equal steps
    start = Fraction(1, 10**6)
    lr = join(as_schedule(1e-4) * (start + (1 - start) * (t - 1) / 10_000), 10_001, 1e-4)
    return adamw(lr=lr, weight_decay=0.01)


@_recipe("BLOOM-176B", 97_656, "bigscience: tr11-176B-ml.slurm", **_CLIPPED_IN_GROWING_BATCHES)
def bloom() -> Algorithm:
    """Return BLOOM's AdamW; the cosine is counted in samples."""
    return adamw(lr=_warm_cosine(6e-5, 6e-6, 183_105, 200_000_000, 2048), theta=0.95, weight_decay=0.1)


@_recipe(
    "DeepSeek-V3",
    235_239,
    'a secondary text on DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 4.2',
    **_CLIPPED_IN_GROWING_BATCHES,
)
def deepseek_v3() -> Algorithm:
    """Return DeepSeek-V3's AdamW."""
    flat, fallen, last = (Fraction(billion * 10**9, 15_360 * 4_096) for billion in (10_000, 14_300, 14_633))
    falling = fall("cosine", 2.2e-4, 2.2e-5, flat, fallen)
    lr = warm_up(2.2e-4, Fraction(2_000), join(2.2e-4, int(flat) + 1, join(falling, int(last) + 1, 7.3e-6)))
    return adamw(lr=lr, theta=0.95, weight_decay=0.1)


@_recipe("nanoGPT (GPT-2 124M)", 600_000, "karpathy/nanoGPT: train.py", clipping=_NORM_ONE)
def nanogpt() -> Algorithm:
    """Return nanoGPT's AdamW."""
    # it = t - 1: (it + 1)/2001 of the peak for it < 2,000, then a cosine from it = 2,000 to it = 600,000
    falling = fall("cosine", 6e-4, 6e-5, Fraction(2_001), Fraction(600_001))
    return adamw(lr=join(as_schedule(6e-4) * t / 2_001, 2_001, falling), theta=0.95, weight_decay=0.1)


def recipes() -> tuple[Recipe, ...]:
    """Return every recipe, in the order of the gallery."""
    return tuple(made() for made in _BY_NAME.values())


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes, in the order of the gallery."""
    return tuple(_BY_NAME)


def is_recipe(name: str) -> bool:
    """Return whether a recipe is called so, however it is spelled."""
    return spelled(name) in _BY_NAME


def recipe(name: str) -> Recipe:
    """Return a recipe by its name, however it is spelled; MethodError offers the closest where there is none."""
    if spelled(name) not in _BY_NAME:
        raise unknown("no recipe is called", name, _BY_NAME)
    return _BY_NAME[spelled(name)]()


def named(name: str) -> Algorithm:
    """Return the subject that a name means everywhere: a method with its defaults, or a recipe; none is both.

    Raises:
        MethodError: nothing is called so; the message offers the closest name.
    """
    if is_recipe(name):
        return recipe(name).algorithm
    if spelled(name) not in (*names(), *REFUSED):
        raise unknown("no method or recipe is called", name, (*names(), *_BY_NAME))
    # Adam is torch's, with eps and v_0 = 0; the paper's is generic_adam.
    built = build("adamw", weight_decay=0) if spelled(name) == "adam" else build(name)
    return replace(as_algorithm(built), label=spelled(name)) if isinstance(built, Method) else built
