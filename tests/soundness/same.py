"""The answers about every method, recipe and scheduler as text, to be compared: alone, under load, warm, in any order.

    python -m tests.soundness.same FILE [--backwards] [--warm] [--only NAME ...]

writes one line a question; two files are the same byte for byte, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.optim import lr_scheduler

import generic_adam as ga
from generic_adam.certification import read
from generic_adam.methods import names
from generic_adam.methods.recipes import recipe_names

SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.3, 7),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, 500),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9999),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3000, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [5000, 15_000], 0.1),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 20_000, 2.0),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 20_000),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 5_000),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 1e-3, 20_000),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 1e-4, 1e-3, 2000),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step) ** 0.5),
}
STEPS = 20_000


def _scheduled(name: str) -> tuple[Any, Any]:
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=1e-3)
    return optimizer, SCHEDULERS[name](optimizer)


SUBJECTS: dict[str, Callable[[], Any]] = {
    **{f"method {name}": (lambda name=name: ga.methods.build(name)) for name in names()},
    **{f"recipe {name}": (lambda name=name: name) for name in recipe_names()},
    **{f"scheduler {name}": (lambda name=name: _scheduled(name)) for name in SCHEDULERS},
}


def answers(chosen: list[str], *, warm: bool = False) -> Iterator[tuple[str, str, float]]:
    """Yield (question, answer as JSON, seconds of the processor); warm asks one object again, after other questions."""
    for name in chosen:
        subject = read(SUBJECTS[name]())
        horizon = subject.horizon or STEPS
        if warm:
            ga.advise(subject)
            ga.certify(subject, horizon=10 * STEPS, budget=2)
        questions: dict[str, Callable[[Any], Any]] = {
            "certify": lambda x, steps=horizon: ga.certify(x, horizon=steps),
            "for ever": ga.certify,
            "advise": lambda x, steps=horizon: ga.advise(x, horizon=steps),
        }
        for said, ask in questions.items():
            begun = time.thread_time()
            found = json.dumps(ask(subject if warm else read(SUBJECTS[name]())).to_dict(), sort_keys=True)
            yield f"{name}: {said}", found, time.thread_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--backwards", action="store_true")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(SUBJECTS))
    options = parser.parse_args()
    chosen = options.only[::-1] if options.backwards else options.only
    found = {}
    for question, told, seconds in answers(chosen, warm=options.warm):
        found[question] = told
        print(f"{seconds:8.3f} s  {question}", flush=True)
    options.file.write_text("".join(f"{question}\t{found[question]}\n" for question in sorted(found)))


if __name__ == "__main__":
    main()
