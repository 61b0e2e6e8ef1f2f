"""The paper's studies of networks, and the question it leaves open: what does the guarantee cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from generic_adam.experiments.settings import OptimizerSettings, RunSettings, SettingsError
from generic_adam.methods import Method

BASE_RATE: Final = "0.001/sqrt(t)"
"""alpha_t of all seven methods in the paper's Figures 2 and 3."""

LARGE_RATE: Final = "0.001 if t < 2500 else 0.01/sqrt(t)"
"""alpha_t of the paper's additional study (Figure 4)."""

PATH_FRACTIONS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""r on the path from Adam to AdaEMA."""


FORGOTTEN: Final = 0.0
"""v_0 of a method on which epsilon has no effect; one run serves every epsilon.

So it is with theta_1 = 0, where the first step wipes v_0 out, and with Kingma and Ba's Adam, where it is 0.
"""


@dataclass(frozen=True)
class Study:
    """A figure: methods compared on one network and one data set.

    Attributes:
        name: what ``reproduce`` calls it.
        title: what the figure calls it.
        network: a name of `generic_adam.experiments.networks`.
        width: ResNet-18's first width.
        dataset: "mnist" or "cifar100"; "digits" when quick.
        epochs: of the paper.
        alpha: alpha_t of its methods.
        figure: of the paper.
        epsilons: values of v_0 that are compared; the paper does not state its own.
    """

    name: str
    title: str
    network: str
    width: int
    dataset: str
    epochs: int
    alpha: str
    figure: str
    epsilons: tuple[float, ...] = (1e-8, 1e-4)


STUDIES: Final = {
    study.name: study
    for study in (
        Study("lenet", "LeNet on MNIST", "lenet", 1, "mnist", 100, BASE_RATE, "Figure 2"),
        Study("resnet18", "ResNet-18 on CIFAR-100", "resnet18", 64, "cifar100", 100, BASE_RATE, "Figure 3"),
        Study(
            "resnet18-large-lr",
            "ResNet-18 on CIFAR-100, larger learning rate",
            "resnet18",
            64,
            "cifar100",
            100,
            LARGE_RATE,
            "Figure 4",
        ),
    )
}
"""The paper's three studies of networks, by name."""


def paper_methods(alpha: str, epsilon: float) -> tuple[OptimizerSettings, ...]:
    """The seven methods of a figure.

    Generic Adam with beta = 0.9 and theta_t = 1 - (0.001 + 0.999 r)/t^r; RMSProp with beta = 0 and
    theta_t = 1 - 1/t (so v_1 = g_1^2, as for r = 1); AMSGrad with theta = 0.999.

    Args:
        alpha: the base learning rate of all of them, as text.
        epsilon: v_0.
    """
    path = tuple(
        OptimizerSettings(
            label=f"r = {fraction:g}",
            family="generic-adam",
            alpha=alpha,
            beta="0.9",
            theta=path_theta(fraction),
            epsilon=FORGOTTEN if fraction == 1 else epsilon,
        )
        for fraction in PATH_FRACTIONS
    )
    rmsprop = OptimizerSettings("RMSProp", "generic-adam", alpha, "0", "1 - 1/t", FORGOTTEN)
    amsgrad = OptimizerSettings("AMSGrad", "generic-adam", alpha, "0.9", "0.999", epsilon, amsgrad=True)
    return (*path, rmsprop, amsgrad)


def corrected_adam(alpha: str) -> OptimizerSettings:
    """Kingma and Ba's Adam at the same rate: r = 0, but v_0 = 0, and with their bias correction.

    It shows how much of a difference between r = 0 and the rest is the correction's and v_0's, not theta's.

    Args:
        alpha: the base learning rate, as text.
    """
    corrected = f"({alpha}) * sqrt(bias_correction(0.999)) / bias_correction(0.9)"
    return OptimizerSettings("Adam, corrected", "generic-adam", corrected, "0.9", "0.999", FORGOTTEN)


COMMON_RATE: Final = 0.001
"""The learning rate with which Adam is mostly used, and that of the comparison of costs."""

TORCH_EPSILON: Final = 1e-8
"""torch's default in Adam's denominator; its square is v_0 of the certified methods it is compared with."""


def cost_methods(certified: Sequence[tuple[str, Method]]) -> tuple[OptimizerSettings, ...]:
    """Adam as people use it, with a constant learning rate and with cosine decay, and its replacements.

    Args:
        certified: labels and methods to compare with it.
    """
    adam = OptimizerSettings(
        "Adam, constant rate", "torch-adam", f"{COMMON_RATE}", "0.9", "0.999", TORCH_EPSILON
    )
    replacements = tuple(
        OptimizerSettings(
            label, "generic-adam", str(method.alpha), str(method.beta), str(method.theta), TORCH_EPSILON**2
        )
        for label, method in certified
    )
    return (adam, replace(adam, label="Adam, cosine decay", cosine=True), *replacements)


def path_theta(fraction: float) -> str:
    """theta_t = 1 - (0.001 + 0.999 r)/t^r as text, for r = `fraction`."""
    if fraction == 0:
        return "0.999"
    scale = f"{0.001 + 0.999 * fraction:.6g}"
    return f"1 - {scale}/t" if fraction == 1 else f"1 - {scale}/t^{fraction:g}"


def runs_of(
    study: Study, methods: Sequence[OptimizerSettings], *, epochs: int, seeds: int, bf16: bool = False
) -> list[RunSettings]:
    """Every run of a study: all methods for each seed, seeds counted from 0."""
    if seeds < 1:
        raise SettingsError(f"seeds {seeds}: expected a positive whole number")
    return [
        RunSettings(study.network, study.width, study.dataset, method, seed, epochs, bf16=bf16)
        for seed in range(seeds)
        for method in methods
    ]


def quick(study: Study) -> Study:
    """The same study in seconds: scikit-learn's digits, three epochs, a narrow network."""
    return replace(study, dataset="digits", width=min(study.width, 4), epochs=3)


def run_folder(settings: RunSettings) -> PurePosixPath:
    """Where a run lives under the output directory: ``epsilon-1e-08/r-0.5/seed-0``."""
    label = "".join(c if c.isalnum() or c == "." else "-" for c in settings.optimizer.label.lower())
    while "--" in label:
        label = label.replace("--", "-")
    epsilon = settings.optimizer.epsilon
    group = "any-epsilon" if epsilon == FORGOTTEN else f"epsilon-{epsilon:g}"
    return PurePosixPath(group) / label.strip("-") / f"seed-{settings.seed}"
