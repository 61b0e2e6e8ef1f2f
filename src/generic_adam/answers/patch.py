"""The lines to paste for a change, in the framework that was read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pprint import pformat
from textwrap import indent
from typing import Literal

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import as_schedule
from generic_adam.theorems.advice import Advice, Purpose

Framework = Literal["torch", "trainer", "optax"]
_WIDTH = 100


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
    beta2, is_rmsprop = f"{x.method.theta(1):g}", x.method.beta == as_schedule(0)
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
    if framework == "optax" and x.decay != as_schedule(0):
        told = "Optax has no transformation for a decay with a schedule of its own; expected a change without one"
        raise TheoremError(f"--patch: {told}")
    alone = replace(x, clipping=None, source="", horizon=None, notes=(), groups=())
    written = pformat(alone.to_dict(), width=_WIDTH, sort_dicts=False)
    yield "import generic_adam as ga"
    yield f"from generic_adam.{framework} import {'GenericAdam' if framework == 'torch' else 'generic_adam'}"
    yield ""
    yield f"algorithm = ga.Algorithm.from_dict(\n{indent(written, '    ')}\n)"
    yield "# The schedule is part of the algorithm: no scheduler beside it."
    if framework == "torch":
        every = f"[p for group in {_chosen(groups)} for p in group['params']]" if groups else "model.parameters()"
        yield f"optimizer = GenericAdam.from_method({every}, algorithm)"
        if x.clipping is not None:
            yield "# Gradients are clipped in the training loop, as before."
    elif x.clipping is not None and x.clipping.kind == "norm":
        yield "import optax"
        yield f"optimizer = optax.chain(optax.clip_by_global_norm({x.clipping.threshold:g}), generic_adam(algorithm))"
    else:
        yield "optimizer = generic_adam(algorithm)"


def _chosen(groups: list[int]) -> str:
    return f"(optimizer.param_groups[k] for k in {groups})"
