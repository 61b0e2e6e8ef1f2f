"""How often `verify` is right: wrong and right set-ups it was made with, others it was not, and random right ones.

Four parts: the zoo; a held-out zoo, which was written from reports afterwards without a look at the code; one that was
written against `verify`; and random right configurations of torch's optimizers, driven alone, with a claim or in a
loop, none of which may be called different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from generic_adam_laboratory.runs.records import Claim, Occasion, write_results
from generic_adam_laboratory.zoo import verify_libraries
from generic_adam_laboratory.zoo.verify_cases import Case, Made, loop, weights

ZOO, HELD_OUT, ADVERSARY, RANDOM = "zoo", "held out", "adversary", "random"


@dataclass(frozen=True)
class Outcome:
    """A case, which part it is of, and what `verify` said of it.

    Attributes:
        part: zoo, held out, adversary or random.
        case: the set-up.
        agrees: the answer; None where it cannot be told.
        categories: of the differences that were told.
        seconds: of the processor.
    """

    part: str
    case: Case
    agrees: bool | None
    categories: tuple[str, ...]
    seconds: float

    @property
    def found(self) -> bool:
        """A wrong one that is called different."""
        return bool(self.case.category) and self.agrees is False

    @property
    def named(self) -> bool:
        """A wrong one whose right category is among those told."""
        return self.found and self.case.category in self.categories

    @property
    def alarm(self) -> bool:
        """A right one that is called different."""
        return not self.case.category and self.agrees is False


def tried(part: str, case: Case) -> Outcome:
    """Verify one set-up."""
    from generic_adam.verify import verify

    begun = process_time()
    found = verify(case.make, claim=case.claim)
    categories = tuple(dict.fromkeys(one.category for one in found.differences))
    return Outcome(part, case, found.agrees, categories, process_time() - begun)


def run_verify(fuzz: int, seed: int, progress: Callable[[int, int], None]) -> list[Outcome]:
    """Try every set-up of both zoos, and `fuzz` random right ones."""
    import torch

    from generic_adam_laboratory.zoo import verify as zoo
    from generic_adam_laboratory.zoo import verify_adversary as adversary
    from generic_adam_laboratory.zoo import verify_held_out as held_out

    torch.set_num_threads(1)
    parts = {ZOO: zoo, HELD_OUT: held_out, ADVERSARY: adversary}
    cases = [(part, one) for part, its in parts.items() for one in its.WRONG + its.RIGHT]
    outcomes = []
    for part, case in [*cases, *((RANDOM, random_right(seed, number)) for number in range(fuzz))]:
        outcomes.append(tried(part, case))
        progress(len(outcomes), len(cases) + fuzz)
    return outcomes


# Random right set-ups.


def random_right(seed: int, number: int) -> Case:
    """Return a right set-up drawn at random: one of torch's optimizers, alone, claimed, scheduled or in a loop."""
    draw = np.random.default_rng([seed, number])
    kind = str(
        draw.choice(["Adam", "AdamW", "NAdam", "RMSprop", "Adagrad", "SGD"], p=[0.25, 0.35, 0.1, 0.1, 0.05, 0.15])
    )
    options = dict(_options(draw, kind))
    forms = ["foreach", "for loop"] + ["fused"] * (kind in {"Adam", "AdamW"})  # fused SGD wants all gradients at once
    form = str(draw.choice(forms))
    how = str(draw.choice(["alone", "claimed", "scheduled", "loop"]))
    dtype = str(draw.choice(["float32", "float64", "bfloat16"], p=[0.75, 0.15, 0.1]))
    split, ratio = bool(draw.random() < 0.5), float(10 ** draw.uniform(-1, 1))
    clip, warm = float(10 ** draw.uniform(-1, 1)), int(draw.integers(1, 60))
    micro = int(draw.choice([1, 2, 4]))

    def make() -> Made:
        import torch

        named = weights(getattr(torch, dtype))
        parameters = [p for _, p in named]
        groups = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": options["lr"] * ratio}]
        flags = {"fused": True} if form == "fused" else {"foreach": form == "foreach"}
        optimizer = getattr(torch.optim, kind)(groups if split else parameters, **options, **flags)
        paced = torch.optim.lr_scheduler.LambdaLR if how in {"scheduled", "loop"} else None
        scheduler = paced(optimizer, lambda k: min(1.0, (k + 1) / warm)) if paced else None
        step = loop(optimizer, named, scheduler=scheduler, clip=clip) if how == "loop" else None
        return Made(named, optimizer, scheduler, step=step)

    claim: dict[str, Any] | None = None
    if how != "alone":
        claim = {"algorithm": kind, "decoupled": options.pop("decoupled_weight_decay", None), **options}
        options = {**options, **({"decoupled_weight_decay": True} if claim["decoupled"] else {})}
        base, paced = options["lr"], how != "claimed"

        def rate(factor: float) -> Callable[[int], float]:
            return lambda t: base * factor * (min(1.0, t / warm) if paced else 1.0)

        names = [name for name, _ in weights()]
        claim |= {"lr": rate(1.0), "state_dtype": "bfloat16" if dtype == "bfloat16" else None}
        claim |= {"per": {name: {"lr": rate(ratio)} for name in names[2:]}} if split else {}
        claim |= {"clip_norm": clip, "accumulate": micro} if how == "loop" else {}
        claim = {"eps": {"Adagrad": 1e-10}.get(kind, 1e-8), "weight_decay": 0.01 if kind == "AdamW" else 0.0} | claim
    return Case(f"{number}: {kind}, {form}, {how}, {dtype}", make, claim)


def _options(draw: np.random.Generator, kind: str) -> Iterator[tuple[str, Any]]:
    """Draw at random the settings that a person may give to a class."""
    yield "lr", float(10 ** draw.uniform(-5, -1))
    if draw.random() < 0.6:
        yield "weight_decay", float(10 ** draw.uniform(-5, -0.5))
    if draw.random() < 0.2 and kind != "RMSprop":
        yield "maximize", True
    if kind in {"Adam", "AdamW", "NAdam"}:
        yield "betas", (float(1 - 10 ** draw.uniform(-1.5, -0.3)), float(1 - 10 ** draw.uniform(-4, -1)))
    if kind in {"Adam", "AdamW"} and draw.random() < 0.3:
        yield "amsgrad", True
    if kind != "SGD" and draw.random() < 0.7:
        yield "eps", float(10 ** draw.uniform(-12, -2))
    if kind == "NAdam" and draw.random() < 0.5:
        yield "decoupled_weight_decay", True
    if kind == "RMSprop":
        yield "alpha", float(1 - 10 ** draw.uniform(-3, -1))
        yield "centered", bool(draw.random() < 0.5)
    if kind in {"RMSprop", "SGD"} and draw.random() < 0.7:
        yield "momentum", float(draw.uniform(0.1, 0.99))
        if kind == "SGD" and draw.random() < 0.5:
            yield "nesterov", True


# What is written.


def outcomes_table(outcomes: Sequence[Outcome]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return a row for each part: how many were found, named, called different or left open, and how long it took."""
    rows = []
    for part in (ZOO, HELD_OUT, ADVERSARY, RANDOM):
        own = [one for one in outcomes if one.part == part]
        wrong, right = [one for one in own if one.case.category], [one for one in own if not one.case.category]
        if own:
            seconds = [one.seconds for one in own]
            counted = [len(wrong), sum(one.found for one in wrong), sum(one.named for one in wrong), len(right)]
            counted += [sum(one.alarm for one in right), sum(one.agrees is None for one in own)]
            rows.append((part, *map(str, counted), f"{median(seconds):.1f}", f"{max(seconds):.1f}"))
    heads = [
        "set-ups",
        "wrong",
        "found",
        "right category",
        "right",
        "false alarms",
        "cannot tell",
        "median s",
        "most s",
    ]
    return heads, rows


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """Return the sentences that the outcomes decide."""
    judged = []
    for part in (ZOO, HELD_OUT, ADVERSARY):
        wrong = [one for one in outcomes if one.part == part and one.case.category]
        if not wrong:
            continue
        found, named = sum(one.found for one in wrong), sum(one.named for one in wrong)
        enough = found >= 0.95 * len(wrong) and named >= 0.85 * len(wrong)
        said = f"{found} of {len(wrong)} found, {named} with the right category"
        sentence = f"Of the wrong set-ups ({part}) 95 % are found, 85 % with the right category."
        judged.append(Claim(sentence, "docs/verify.md", "supported" if enough else "contradicted", said))
    right = [one for one in outcomes if not one.case.category]
    alarms = sum(one.alarm for one in right)
    sentence = "No right set-up is called different."
    said = f"{alarms} of {len(right)}: {', '.join(one.case.name for one in right if one.alarm) or 'none'}"
    return [*judged, Claim(sentence, "docs/verify.md", "contradicted" if alarms else "supported", said)]


def write_verify(folder: Path, outcomes: Sequence[Outcome], occasion: Occasion) -> None:
    """Write the table of outcomes, a row for each set-up of the zoos, the installed libraries, claims and manifest."""
    words = {True: "agrees", False: "differs", None: "cannot tell"}
    heads = ("set-ups", "name", "report", "category", "answer", "told", "seconds")
    kept = [one for one in outcomes if one.part != RANDOM or one.agrees is not True]
    rows = (
        (one.part, one.case.name, one.case.report, one.case.category, words[one.agrees], "; ".join(one.categories),
         round(one.seconds, 2))
        for one in kept
    )  # fmt: skip
    libraries = (
        ["library", "class", "taken for", "answer", "what differs, or what it is"],
        list(verify_libraries.looked_at()),
    )
    tables = {"outcomes.md": outcomes_table(outcomes), "records.csv": (heads, rows), "libraries.md": libraries}
    write_results(folder, occasion, tables, claims(outcomes))
