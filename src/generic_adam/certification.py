"""The front door: certify, bound and advise for whatever a training script has at hand."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

from generic_adam.adapters import read as read_optimizer
from generic_adam.errors import TheoremError, shown
from generic_adam.guard import guard
from generic_adam.methods import Algorithm
from generic_adam.methods.recipes import is_recipe, named
from generic_adam.schedules.work import Budget
from generic_adam.setting import Setting
from generic_adam.theorems.advice import Advices, BestRate, advise_algorithm
from generic_adam.theorems.advice import best_rate as _best_rate
from generic_adam.theorems.advice import steps_needed as _steps_needed
from generic_adam.theorems.bounds import Bound, bound_algorithm
from generic_adam.theorems.certificate import Certificate, certify_algorithm, of_origin, usual
from generic_adam.theorems.constants import ALWAYS


def read(subject: Any, scheduler: Any = None, **options: Any) -> Algorithm:
    """Return the Algorithm that is meant.

    Args:
        subject: a Method, an Algorithm, the name of a method or a recipe, a torch optimizer (with its scheduler
            next), a pair of both, transformers' TrainingArguments or a Lightning configuration.
        scheduler: the learning-rate scheduler of a torch optimizer.
        **options: what the adapters take: steps_per_scheduler_step, steps.

    Raises:
        GenericAdamError: it cannot be read.
    """
    subject = named(subject) if isinstance(subject, str) else subject
    return read_optimizer(subject, scheduler, **options)


def _origin(subject: Any) -> Literal["recipe", "trainer"] | None:
    """Return what a subject is from that tells the kind of training; None where nothing does."""
    if isinstance(subject, str):
        return "recipe" if is_recipe(subject) else None
    return "trainer" if hasattr(subject, "lr_scheduler_type") else None


def _check(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TheoremError(f"{name} is {shown(value)}; expected {kind.__name__}")


def _with_earlier(setting: Setting | None, **earlier: Setting | None) -> Setting:
    """Return the setting with what was passed under earlier names of the argument, which warn."""
    given = {name: value for name, value in earlier.items() if value is not None}
    for name in given:
        warnings.warn(f"certify: `{name}` is now `setting`", DeprecationWarning, stacklevel=3)
    for name, value in {"setting": Setting() if setting is None else setting, **given}.items():
        _check(name, value, Setting)
    facts = [dict(one.facts) for one in (*given.values(), setting or Setting())]
    merged: dict[str, Any] = {name: fact for one in facts for name, fact in one.items()}
    return Setting(**merged)


def certify(
    subject: Any,
    scheduler: Any = None,
    horizon: int | None = None,
    setting: Setting | None = None,
    theorem: str | None = None,
    *,
    steps_per_scheduler_step: int | None = None,
    budget: float = 1.0,
    problem: Setting | None = None,
    assume: Setting | None = None,
) -> Certificate:
    """Return the theorem that covers it, and the guarantee as steps go to infinity and for a number of steps.

    Args:
        subject: a Method or an Algorithm, its name, an optimizer or what makes one: what `read` takes.
        scheduler: the learning-rate scheduler of a torch optimizer.
        horizon: a number of steps; None takes the one that the source names, where it does.
        setting: what is known of the problem and the run. Beyond it, as by `generic-adam check`, a supervised loss of a
            recipe by name, clipping that never acts and weights that stay within 1 are assumed where they matter; the
            answer names them, and its ``setting.facts`` say "assumed". With a horizon, the smoothness, a bound on the
            gradient, the dimension and the gap add the smallest bound.
        theorem: the name of one theorem to ask alone.
        steps_per_scheduler_step: the optimizer steps for each step of the scheduler; None means 1.
        budget: a factor on the work that each question may take; what is left then is undecided, and says so.
        problem: an earlier name of `setting`, with a warning.
        assume: likewise.

    Examples:
        >>> import generic_adam as ga
        >>> print(ga.certify(ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")).long_run)
        guaranteed
    """
    setting = _with_earlier(setting, problem=problem, assume=assume)
    _check("theorem", "" if theorem is None else theorem, str)
    if isinstance(scheduler, int) and horizon is None:  # certify(method, 1000)
        scheduler, horizon = None, scheduler
    x = read(subject, scheduler, steps_per_scheduler_step=steps_per_scheduler_step, steps=horizon)
    with Budget(budget) as work, guard(work.factor):
        known = usual(x, of_origin(x, setting, _origin(subject)))
        found = certify_algorithm(x, horizon, theorem, known)
        if found.horizon is None or not all(map(setting.completed().knows, ALWAYS)):
            return found
        guaranteed = bound_algorithm(x, setting, found.horizon.steps)
    return replace(found, horizon=replace(found.horizon, bound=guaranteed))


def bound(
    subject: Any,
    setting: Setting,
    steps: int,
    delta: float = 0.1,
    theorem: str | None = None,
    *,
    budget: float = 1.0,
) -> Bound:
    """Return the smallest bound after a number of steps, with its theorem and the trivial bound beside it.

    Args:
        subject: what `read` takes; a Method alone means the paper's algorithm, with v_0 = 1e-8.
        setting: what is known of the problem: smoothness, a bound on the gradient, dimension and gap at least.
        steps: T.
        delta: the squared norm is below `value` with probability 1 - delta^(2/3).
        theorem: the name of one theorem; None takes the smallest bound.
        budget: a factor on the work that each question may take, which `missing` tells where it was too little.

    Examples:
        >>> import generic_adam as ga
        >>> m = ga.Method(alpha="1e-3/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
        >>> known = ga.Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
        >>> b = bound(m, known, steps=1000)
        >>> print(b.theorem, f"{b.constants['X_w']:.4f}", b.informative)
        W 22.4778 False
    """
    _check("setting", setting, Setting)
    _check("theorem", "" if theorem is None else theorem, str)
    with Budget(budget) as work, guard(work.factor):
        return bound_algorithm(read(subject, steps=steps), setting, steps, delta, theorem)


def advise(
    subject: Any,
    scheduler: Any = None,
    horizon: int | None = None,
    keep: int | None = None,
    *,
    setting: Setting | None = None,
    budget: float = 1.0,
) -> Advices:
    """Find small changes that give a better guarantee, each with its cost.

    Args:
        subject: a Method or an Algorithm, its name, an optimizer or what makes one: what `read` takes.
        scheduler: the learning-rate scheduler of a torch optimizer.
        horizon: a number of steps T; None takes the one that the source names.
        keep: K, for how many steps it stays your method; None keeps most of the run.
        setting: what is known of the problem and the run; beyond it weights that stay within 1, and clipping that
            never acts, are assumed, which the answers name.
        budget: a factor on the changes that are tried, and on the work that each question may take.
    """
    _check("setting", setting or Setting(), Setting)
    with Budget(budget) as work, guard(work.factor):
        x = read(subject, scheduler, steps=horizon)
        return advise_algorithm(x, horizon, keep, setting=of_origin(x, setting or Setting(), _origin(subject)))


def best_rate(subject: Any, steps: int, setting: Setting | None = None, scheduler: Any = None) -> BestRate | None:
    """Return the learning rate with the least bound after a number of steps; for the loss it is chosen by validation.

    Args:
        subject: what `read` takes.
        steps: T.
        setting: what is known of the problem and the run: the gap and the smoothness, else 1 in units of the gradients.
        scheduler: the learning-rate scheduler of a torch optimizer.
    """
    return _best_rate(read(subject, scheduler, steps=steps), steps, setting)


def steps_needed(subject: Any, setting: Setting | None = None, scheduler: Any = None) -> int | None:
    """Return the number of steps from which on the guarantee is useful; None where no number of them is enough.

    Args:
        subject: what `read` takes.
        setting: what is known of the problem and the run: the gap and the smoothness, else 1 in units of the gradients.
        scheduler: the learning-rate scheduler of a torch optimizer.
    """
    return _steps_needed(read(subject, scheduler), setting)


__all__ = ["Setting", "advise", "best_rate", "bound", "certify", "read", "steps_needed"]
