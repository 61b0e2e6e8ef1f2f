"""The words of advice: the change, its gain, its cost, whether it is worth it, and the lines to paste for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pprint import pformat
from textwrap import indent
from typing import Literal

import numpy as np

from generic_adam.answers.certificates import cause, doubted, only_if
from generic_adam.answers.settings import plain_rate
from generic_adam.answers.suspicion import Suspicion
from generic_adam.answers.words import Line, words_of
from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.methods.catalogue import adam, corrected_eps
from generic_adam.schedules import Schedule, as_schedule, bias_correction, substitute
from generic_adam.schedules.balls import rounded_up
from generic_adam.schedules.enclosure import collected
from generic_adam.setting import Setting
from generic_adam.theorems.advice import Advice, Advices, Cost, Purpose
from generic_adam.theorems.horizon import HorizonAnswer
from generic_adam.theorems.repairs import Change
from generic_adam.theorems.theorem import NOTHING, Answer
from generic_adam.theorems.worth import Measured, Worth

Framework = Literal["torch", "trainer", "optax"]
_WIDTH = 100


@words_of.register
def _(part: Change) -> str:
    return f"{part.name} {part.how}" if "->" in part.how else f"{part.name}: {part.how}"


@words_of.register
def _(part: Measured) -> str:
    ends = f"{part.effect:+.2g} % ({part.low:+.2g} to {part.high:+.2g} %)"
    return f"{part.network} ({part.steps:,} steps, {part.seeds} seeds): {ends}"


@words_of.register
def _(part: Worth) -> str:
    """Return all that was measured, the median of each network: a claim is no larger than its study."""
    told = "; ".join(f"{one.network.removeprefix('a ')} {one.effect:+.2g} %" for one in part.measured)
    said = f"validation loss: {told}" if told else "not known, it was not measured here"
    return f"{said}; a warning is reported too, see advise" if part.reported else said


@words_of.register
def _(part: Cost) -> str:
    _, old, new = part.rates[-1]
    total = "total lr not known" if math.isnan(part.kept) else f"total lr over the run {100 * part.kept:.3g} % of yours"
    return f"{total}; last-step lr {old:.2g} (yours) -> {new:.2g}"


def _advice(part: Advice) -> Iterator[Line]:
    first, *others = part.changes
    yield Line(str(first))
    yield from (Line(str(one), "and") for one in others)
    if part.purpose is Purpose.LONG_RUN:
        rate = f"error about {part.rate}" if part.rate is not None else "no rate is known"
        yield Line(f"guaranteed ({rate}); {_where(part)}", "Long run")
    if part.before is not None and part.after is not None and part.after.relative is not None:
        yield Line(f"guarantee {share(part.before)} -> {share(part.after)}; lower is better", "Your run")
    if part.cost is not None:
        old, new = part.cost.memory
        slower = f"lr unchanged; adapts to larger gradients in {new:,.0f} steps, not {old:,.0f}"
        yield Line(str(part.cost) if part.purpose is Purpose.LONG_RUN else slower, "Cost")
    if part.worth.known:
        yield Line("validation loss, median and range over the seeds, lower is better:", "Worth it?")
        yield from (Line(str(one), " ") for one in part.worth.measured)
        yield from (Line(f"but {one}", " ") for one in part.worth.reported)
    else:
        yield Line(str(part.worth), "Worth it?")
    if part.purpose is Purpose.LONG_RUN and part.needs:
        yield Line(_assumed(part.needs), "Assumed")


words_of.register(_advice)


def advice_lines(part: Advices, *, setting: Setting | None = None, seen: Suspicion | None = None) -> Iterator[Line]:
    """Yield all advice line by line.

    Args:
        part: the advice.
        setting: what the user said of the problem and the run.
        seen: the kind of training that the source looks like.
    """
    yield from doubted(_head(part, setting or Setting()), seen)
    for number, one in enumerate(part.advice, 1):
        first, *rest = _advice(one)
        optional = {Purpose.BETTER: "Optional: ", Purpose.LONG_RUN: "For the long run: "}.get(one.purpose, "")
        yield Line(f"{number}. {optional}{first.text}")
        yield from rest


words_of.register(advice_lines)


def _head(part: Advices, setting: Setting) -> Iterator[Line]:
    before, assumes = part.before, bool(part.assumed)
    if part.long_run is Answer.NOT_APPLICABLE:
        yield Line("DOES NOT APPLY: all theorems assume one fixed loss.", verdict="DOES NOT APPLY")
        yield Line("`Watch(optimizer)` in the script, then `generic-adam diagnose DIR`", "Your run")
        return
    if before is None:
        certified = part.long_run is Answer.GUARANTEED
        told = "NOTHING TO CHANGE in the long run." if certified else "FOR THE LONG RUN ONLY: no --steps is known."
        yield Line(told)
        if not (certified or part):
            yield Line("no change near yours is guaranteed", "Long run")
        yield Line("add --steps T (horizon=T in Python) for advice about your run", "Your run")
    elif before.useful:
        yield Line(f"NOTHING HAS TO CHANGE for {before.steps:,} steps{only_if(setting, assumes=assumes)}.")
    elif before.relative is None and not before.outside:
        yield Line(f"UNKNOWN for {before.steps:,} steps: {before.unknown}.")
    elif any(one.purpose is Purpose.USEFUL for one in part):
        yield Line(f"ONE CHANGE gives your {before.steps:,} steps a useful guarantee.")
    elif part:
        yield Line(f"NO GUARANTEE for {before.steps:,} steps as it is.")
    else:
        yield Line(f"NOTHING TO CHANGE for {before.steps:,} steps: nothing near it has a useful guarantee.")
        yield Line("predicts neither failure nor success; choose lr and steps by validation loss", "Meaning")
    if before is not None and before.useful:
        yield Line(f"gradients average below {share(before)} of the size they have anyway", "As it is")
    elif before is not None and (before.relative is not None or before.outside):
        outside = f"outside the theory: {'; '.join(map(str, before.outside))}"
        yield Line(outside if before.outside else cause(before), "Cause")
    if part.assumed and before is not None:
        yield Line(_assumed(part.assumed), "Assumed")
    if not part.complete:
        yield Line(f"search stopped early: {part.spent[0]}; rerun with --budget 20", "Incomplete")


def _assumed(facts: Iterable[str]) -> str:
    return "; ".join(one.removesuffix(" (assumed)") for one in facts)


def share(answer: HorizonAnswer) -> str:
    """Return the share of their size that gradients average below, rounded up."""
    size = answer.size
    return "no bound" if size is None or not math.isfinite(size) else f"{rounded_up(100 * size, 3)} %"


def _where(part: Advice) -> str:
    if part.first_step == 1:
        end = "" if part.last_step is None else f", identical to yours after step {part.last_step:,}"
        return f"differs from the first step{end}"
    return f"identical to yours until step {part.first_step - 1:,}"


def patch(advice: Advice, framework: Framework = "torch", *, is_part: bool = False) -> str:
    """Return Python that makes a change.

    Args:
        advice: the change.
        framework: the one whose optimizer was read; "trainer" is transformers'.
        is_part: the change is of some parameter groups alone.

    Raises:
        TheoremError: the change is of the whole schedule, and the framework cannot run that as it is.
    """
    groups = list(advice.algorithm.groups) if is_part else None
    write = _whole if advice.purpose is Purpose.LONG_RUN else _one_number
    return "\n".join(write(advice.algorithm, framework, groups))


def _one_number(x: Algorithm, framework: Framework, groups: list[int] | None) -> Iterator[str]:
    beta2, is_rmsprop = f"{x.method.theta(1):g}", x.method.beta == NOTHING
    if framework == "torch":
        yield "# before the first step"
        yield f"for group in {'optimizer.param_groups' if groups is None else _chosen(groups)}:"
        yield f'    group["alpha"] = {beta2}' if is_rmsprop else f'    group["betas"] = (group["betas"][0], {beta2})'
    elif framework == "trainer":
        yield f"adam_beta2={beta2},  # among the arguments of TrainingArguments"
    else:
        yield f"{'decay' if is_rmsprop else 'b2'}={beta2},  # among the arguments of the optimizer"


def _whole(x: Algorithm, framework: Framework, groups: list[int] | None) -> Iterator[str]:
    if framework == "trainer":
        told = "this change is of the whole schedule, and Trainer drives the lr itself; expected a loop of your own"
        raise TheoremError(f"--patch: {told}")
    if framework == "optax" and x.decay != NOTHING:
        told = "Optax has no transformation for a decay with a schedule of its own; expected a change without one"
        raise TheoremError(f"--patch: {told}")
    yield f"from generic_adam.{framework} import {'GenericAdam' if framework == 'torch' else 'generic_adam'}"
    arguments = _arguments(x) if framework == "torch" else None
    parameters = f"[p for group in {_chosen(groups)} for p in group['params']]" if groups else "model.parameters()"
    if arguments is not None:
        yield "\noptimizer = GenericAdam("
        yield f"    {parameters},"
        yield from (f"    {name}={value!r}," for name, value in arguments.items())
        yield ")"
    else:
        alone = replace(x, clipping=None, source="", horizon=None, notes=(), groups=())
        written = pformat(alone.to_dict(), width=_WIDTH, sort_dicts=False)
        yield f"import generic_adam as ga\n\nalgorithm = ga.Algorithm.from_dict(\n{indent(written, '    ')}\n)"
        if framework == "torch":
            yield f"optimizer = GenericAdam.from_method({parameters}, algorithm)"
        elif x.clipping is not None and x.clipping.kind == "norm":
            clip = f"optax.clip_by_global_norm({x.clipping.threshold:g})"
            yield f"import optax\noptimizer = optax.chain({clip}, generic_adam(algorithm))"
        else:
            yield "optimizer = generic_adam(algorithm)"
    yield "# The schedule is a part of it: take the scheduler away, and clip gradients as before."
    if framework == "torch":
        yield "# Groups stay as they are: hand them over in place of model.parameters(), each with its weight decay."


def _arguments(x: Algorithm) -> dict[str, str | float] | None:
    """Return the arguments of GenericAdam that make an algorithm; None where it is no Adam with a bias correction."""
    lr, theta = plain_rate(x), x.method.theta
    eps = substitute(x.eps, {bias_correction(theta): as_schedule(1)})
    try:
        decay = NOTHING if x.decay == NOTHING else collected(x.decay / lr)
        made = Algorithm(adam(lr=lr, beta=x.method.beta, theta=theta), initial_v=0, eps=corrected_eps(eps(1), theta))
        made = replace(made, decay=lr * decay)
        at = np.unique(np.geomspace(1, x.horizon or 10**6, 50).round())[:-1]  # a rate may end at 0
        pairs = zip(_sequences(made), _sequences(x), strict=True)
        same = all(np.allclose(one.at(at), other.at(at), rtol=1e-9, atol=0) for one, other in pairs)
    except GenericAdamError:
        return None
    plain = {"method": Method(1, 0, 0.5), "eps": NOTHING, "decay": NOTHING}
    about = {"clipping": None, "source": "", "horizon": None, "notes": (), "groups": (), "label": ""}
    if not same or replace(x, **plain, **about) != replace(made, **plain, **about):
        return None
    named = {"lr": lr, "beta": x.method.beta, "theta": theta, "eps": eps, "weight_decay": decay}
    return {name: float(u(1)) if u.is_constant else str(u) for name, u in named.items()}


def _sequences(x: Algorithm) -> tuple[Schedule, ...]:
    return x.method.alpha, x.eps, x.decay


def _chosen(groups: list[int]) -> str:
    return f"(optimizer.param_groups[k] for k in {groups})"
