"""From a subject and a claim to an answer: drive, replay, explain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from generic_adam.errors import OptimizerError, told_as
from generic_adam.methods import Algorithm
from generic_adam.verify.claim import (
    KNOWN,
    Claim,
    candidates,
    of_class,
    read_claim,
    said_by_groups,
    with_settings,
)
from generic_adam.verify.drive import Driver, Subject, copied, is_function, is_optimizer
from generic_adam.verify.explain import explain
from generic_adam.verify.front import Difference, Verification
from generic_adam.verify.replay import Rule, Trace, replay
from generic_adam.verify.resume import formats, of_checkpoint, resumed

_LOADING = "saving and loading"
_STEPS = 40


def compared(given: Any, scheduler: Any, claim: Any, checkpoint: Path | None = None) -> Verification:
    """Return the verification of a subject, with a claim or without, and what loading a checkpoint would change."""
    verified = _compared(given, scheduler, claim)
    if is_function(given) and (one := _order(_made(given, None))) != (other := _order(_made(given, None))):
        said = "called twice, the function puts the parameters in another order: loading gives them each other's state"
        moved = tuple(name for name, now in zip(one, other, strict=False) if name != now)
        place = Difference("resume", 1, tuple(name for name, *_ in moved), 0.0, True, said)
        verified = replace(verified, agrees=False, differences=(*verified.differences, place))
    if checkpoint is None:
        return verified
    subject = _made(given, scheduler)
    if subject.optimizer is None:
        raise OptimizerError("a checkpoint is looked at with an optimizer; there is none here")
    names = tuple(name for name, _ in subject.named)
    told = of_checkpoint(subject, checkpoint)
    changes = tuple(Difference(category, 1, names, 0.0, True, said) for category, said in told)
    looked = (*verified.looked_at, f"the checkpoint {checkpoint.name}")
    agrees = False if changes else verified.agrees
    return replace(verified, agrees=agrees, differences=(*verified.differences, *changes), looked_at=looked)


def _order(subject: Subject) -> list[tuple[str, tuple[int, ...], int]]:
    """Names, shapes and groups in the order in which the optimizer holds them, which a checkpoint goes by."""
    names = {id(one): name for name, one in subject.named}
    groups = getattr(subject.optimizer, "param_groups", None) or []
    return [
        (names.get(id(one), ""), tuple(one.shape), number)
        for number, group in enumerate(groups)
        for one in group["params"]
    ]


def _compared(given: Any, scheduler: Any, claim: Any) -> Verification:
    believed = None if claim is None else read_claim(claim)
    subject = _made(given, scheduler)
    name = type(subject.optimizer).__name__ if subject.optimizer is not None else "the transformation"
    read = of_class(subject.optimizer) if believed is None and subject.optimizer is not None else None
    if isinstance(read, Algorithm):
        believed, read = read_claim(read), None
    trace = _driven(subject, lambda: _made(given, scheduler), believed or Claim())
    looked, beyond = _looked(believed or Claim(), trace, subject)
    if believed is not None:
        if subject.step is None and subject.apply is None:  # the optimizer alone: clipping is the loop's
            believed = replace(believed, clip_norm=None)
        rule, title, known = believed.rule, believed.title, ()
    elif isinstance(read, str):
        rule, known = partial(with_settings, read), (read,)
        title = f"{read} with the settings of its groups ({said_by_groups(trace)})"
    else:
        same = _identified(trace)
        title = same[0] if same else "any algorithm known here, with the settings of its groups"
        exact = bool(same) and "except" not in same[0]
        return Verification(exact or None, name, title, (), looked, beyond, same)
    found = _differences(rule(trace), trace)
    if not found and subject.source is None:  # an optimizer alone, which can be made again
        found, seen, unseen = _loaded(lambda: _made(given, scheduler), rule, believed)
        looked, beyond = (*looked, *seen), (*unseen, *(one for one in beyond if one != _LOADING))
    return Verification(not found, name, title, found, looked, beyond, known)


def _identified(trace: Trace) -> tuple[str, ...]:
    """Return the known algorithms that every step agrees with; else the nearest with what it does otherwise."""
    scored = [(title, rule, int(replay(rule, trace).differs.sum())) for title, rule in candidates(trace)]
    same = tuple(title for title, _, left in scored if not left)
    if same or not scored:
        return same
    plain = [one for one in scored if one[0] in KNOWN]
    for title, rule, _ in sorted(plain, key=lambda one: one[2])[:3]:
        found = explain(rule, trace)
        if all(one.explained and one.category != "not updated" for one in found):
            return (f"{title}, except: {'; '.join(one.said for one in found)}",)
    return ()


def _loaded(
    again: Callable[[], Subject], rule: Callable[[Trace], Rule], claim: Claim | None
) -> tuple[tuple[Difference, ...], tuple[str, ...], tuple[str, ...]]:
    """Save and load an optimizer that agrees, in each format: differences, what was looked at and what was not."""
    done, failed = [], []
    for name, carry in formats():
        try:
            driver = Driver(again(), _STEPS, pauses=claim is None or claim.sequences is None)
            driver.write_start()
            trace = driver.run(_STEPS // 2, lambda subject, carry=carry: resumed(subject, again, carry))
        except OptimizerError as error:
            failed.append(f"saving and loading by {name} ({error})")
            continue
        found = _differences(rule(trace), trace)
        if found:
            return tuple(replace(one, said=f"through {name}: {one.said}") for one in found), (), tuple(failed)
        done.append(name)
    return (), (f"saving and loading by {', '.join(done)}",) if done else (), tuple(failed)


def _differences(rule: Rule, trace: Trace) -> tuple[Difference, ...]:
    """From the rule, or what else its words may mean: a claim that leaves a choice open is met by either."""
    meant = [rule]
    if rule.missing == "zero":  # torch leaves None where there was never a gradient
        meant.append(rule.but(missing="zero once begun"))
    if rule.correction == "both" and (np.ptp(rule.beta1, axis=0).any() or np.ptp(rule.beta2, axis=0).any()):
        meant.append(rule.but(correction="product"))  # torch's power of the present beta, or the exact product
    return min((explain(one, trace) for one in meant), key=len)


def _made(given: Any, scheduler: Any) -> Subject:
    """Return a copy of what was handed over, or what the function makes."""
    if not is_function(given):
        return copied(given, scheduler)
    with told_as(OptimizerError, "make() raised"):
        made = given()
    optimizer, clock = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not is_optimizer(optimizer):
        return Subject.of(made)
    try:
        return copied(optimizer, clock)  # small parameters are quicker than the author's
    except OptimizerError:
        return Subject.of(made)


def _driven(subject: Subject, again: Callable[[], Subject], claim: Claim) -> Trace:
    """Drive it; a second time from its own weights where it keeps copies of them."""
    horizon, micro = max(claim.horizon, 40), claim.accumulate if subject.step or subject.apply else 1
    at = horizon - 20 if subject.resume is not None else None
    looped = subject.step is not None
    for touched in (True, False):
        driver = Driver(
            subject,
            horizon,
            micro=micro,
            overflows=claim.scaler and looped,
            pauses=claim.sequences is None,  # whose alpha_t has the parameter's own count and the schedule's in one
        )
        if touched and subject.apply is None:
            driver.write_start()
        trace = driver.run(at, lambda one: Subject.of(one.resume()) if one.resume else one)
        if not (touched and _undone(trace, subject)):
            return trace
        subject = again()  # its weights were copied when it was made
    return trace


def _undone(trace: Trace, subject: Subject) -> bool:
    """Return whether the first step put back weights that were written before it."""
    jump = np.abs(trace.weights[1] - trace.weights[0])
    return bool(subject.apply is None and jump.size and np.median(jump) > 0.05)


def _looked(claim: Claim, trace: Trace, subject: Subject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    run = replay(claim.rule(trace), trace)
    coordinates, steps = run.bound.shape[1], trace.steps
    blind = float((~np.isfinite(run.bound)).mean()) if run.bound.size else 0.0
    many = "s" if len(trace.names) != 1 else ""
    looked = [f"{steps} steps of {coordinates} coordinates in {len(trace.names)} parameter{many}"]
    looked += ["the scheduler"] * (subject.scheduler is not None) + ["your own step"] * (subject.step is not None)
    looked += ["your own saving and loading"] * (trace.resumed is not None)
    beyond = []
    if blind > 0.01:
        beyond.append(f"{blind:.0%} of the steps, where the rounding of the state is as large as the state")
    if claim.accumulate > 1 and subject.step is None:
        beyond.append("accumulation (hand over `step`)")
    if claim.clip_norm is not None and subject.step is None:
        beyond.append("the clipping of gradients (hand over `step`)")
    if trace.resumed is None:
        beyond.append(_LOADING)
    return tuple(looked), (*beyond, "whether the gradient is right", f"anything after step {steps}")
