"""The words of advice: what to change, what that gives, what it costs, and whether it is worth it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from generic_adam.answers.layout import ALWAYS, Line
from generic_adam.answers.words import words_of
from generic_adam.schedules.balls import rounded_up
from generic_adam.theorems.advice import Advice, Advices, Cost, Purpose
from generic_adam.theorems.horizon import HorizonAnswer
from generic_adam.theorems.repairs import Change
from generic_adam.theorems.theorem import Answer
from generic_adam.theorems.worth import Measured, Worth

_ASK = "Pass the number of steps of your run (--steps T, horizon=T) for advice about that run."


@words_of.register
def _(part: Change) -> str:
    return f"{part.name} {part.how}" if "->" in part.how else f"{part.name}: {part.how}"


@words_of.register
def _(part: Measured) -> str:
    ends = f"{part.effect:+.2g} % ({part.low:+.2g} to {part.high:+.2g} %)"
    return f"{part.network} ({part.steps:,} steps, {part.seeds} seeds): validation loss {ends}"


@words_of.register
def _(part: Worth) -> str:
    if not part.known:
        return "; ".join(["Not known: nobody has measured it here", *part.reported]) + "."
    seen = "; ".join(map(str, part.measured[:2]))
    return ". ".join([f"Measured, not proved, on {seen}", *(f"But {one}" for one in part.reported)]) + "."


@words_of.register
def _(part: Cost) -> str:
    _, old, new = part.rates[-1]
    total = "total lr not known" if math.isnan(part.kept) else f"total lr over the run {100 * part.kept:.3g} % of yours"
    return f"{total}; last-step lr {old:.2g} (yours) -> {new:.2g}"


def _advice(part: Advice) -> Iterator[Line]:
    yield Line("; ".join(map(str, part.changes)), weight=ALWAYS)
    if part.purpose is Purpose.LONG_RUN:
        after = f"error about {part.rate}" if part.rate is not None else "no rate is known"
        yield Line(f"{_where(part)} Guaranteed as steps go to infinity ({after}).", "Long run")
    if part.before is not None and part.after is not None and part.after.relative is not None:
        noise = f"noise part {_noise(part.before)} -> {_noise(part.after)}"
        yield Line(f"gradients average below {share(part.before)} -> {share(part.after)}; {noise}", "Your run")
    if part.cost is not None:
        old, new = part.cost.memory
        slower = f"lr unchanged; beta2 averages about {new:,.0f} gradients, not {old:,.0f}: slower after they jump"
        yield Line(str(part.cost) if part.purpose is Purpose.LONG_RUN else slower, "Cost")
    yield Line(str(part.worth), "Worth it?")
    if part.purpose is Purpose.LONG_RUN and part.needs:
        yield Line("; ".join(part.needs), "Provided")


words_of.register(_advice)


@words_of.register
def _(part: Advices) -> Iterator[Line]:
    yield from _head(part)
    for number, one in enumerate(part.advice, 1):
        first, *rest = _advice(one)
        optional = {Purpose.BETTER: "Optional: ", Purpose.LONG_RUN: "For the long run: "}.get(one.purpose, "")
        yield Line(f"{number}. {optional}{first.text}", weight=ALWAYS)
        yield from rest


def _head(part: Advices) -> Iterator[Line]:
    before = part.before
    if part.long_run is Answer.NOT_APPLICABLE:
        told = "the theory assumes one fixed loss, and this loss changes during the run"
        yield Line(f"DOES NOT APPLY: {told}.", weight=ALWAYS)
        yield Line("`Watch(optimizer)` in the script, then `generic-adam diagnose DIR`.", "Your run", ALWAYS)
        return
    if before is None:
        certified = part.long_run is Answer.GUARANTEED
        told = "NOTHING TO CHANGE in the long run" if certified else "FOR THE LONG RUN ONLY"
        other = "no number of steps is known" if part else "no change near yours is guaranteed"
        found = "it is guaranteed as it is" if certified else other
        yield Line(f"{told}: {found}. {_ASK}", weight=ALWAYS)
    elif before.useful:
        size = f"gradients average below {share(before)} of the size they have anyway"
        yield Line(f"NOTHING HAS TO CHANGE for your {before.steps:,} steps: {size}.", weight=ALWAYS)
    elif before.relative is None and not before.outside:
        yield Line(f"UNKNOWN for your {before.steps:,} steps: {before.unknown}.", weight=ALWAYS)
    elif any(one.purpose is Purpose.USEFUL for one in part):
        yield Line(f"ONE CHANGE gives your {before.steps:,} steps a useful guarantee.", weight=ALWAYS)
    elif part:
        yield Line(f"NO GUARANTEE for your {before.steps:,} steps as it is.", weight=ALWAYS)
    else:
        told = "no change near yours gives a useful guarantee. It does not predict failure"
        yield Line(f"NOTHING TO CHANGE for your {before.steps:,} steps: {told}.", weight=ALWAYS)
    if before is not None and not before.useful and (before.relative is not None or before.outside):
        yield Line(_cause(before), "Cause")
        if not part:
            yield Line("No. Choose lr and steps by validation loss.", "Worth it?")
    if part.assumed and before is not None:
        yield Line("; ".join(part.assumed), "Provided")
    if not part.complete:
        yield Line(f"Search stopped early: {part.spent[0]}; rerun with --budget 20.", "Incomplete", weight=ALWAYS)


def share(answer: HorizonAnswer) -> str:
    """Return the share of their size that gradients average below, rounded up."""
    size = answer.size
    return "no bound" if size is None or not math.isfinite(size) else f"{rounded_up(100 * size, 3)} %"


def _noise(answer: HorizonAnswer) -> str:
    noise = answer.parts["noise"] * (1 + answer.rounding)
    return rounded_up(noise, 2) if math.isfinite(noise) else "infinite"


def _cause(answer: HorizonAnswer) -> str:
    if answer.outside or answer.relative is None:
        return f"outside of the theory: {'; '.join(map(str, answer.outside))}"
    needed = answer.steps_needed
    enough = f"; about {needed:,} such steps would do" if needed else ""
    told = {
        "start": f"starting-point part: few, small steps{enough}",
        "curvature": f"curvature part: lr is too large for this guarantee (best at {answer.best_rate or 0:.2g} x lr)",
        "decay": "weight decay is too strong for weights of that size",
        "noise": "noise part: beta2 averages too few gradients, or too many for so few steps",
    }
    times = math.sqrt(answer.relative)
    size = f"{rounded_up(times, 2)}x the trivial one" if math.isfinite(times) else "infinite"
    return f"{told[answer.dominant or 'noise']} (bound is {size})"


def _where(part: Advice) -> str:
    if part.first_step == 1:
        end = "" if part.last_step is None else f", identical to yours after step {part.last_step:,}"
        return f"Differs from the first step{end}."
    return f"Identical to yours until step {part.first_step - 1:,}."
