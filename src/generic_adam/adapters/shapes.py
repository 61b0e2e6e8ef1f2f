"""The warm-up-and-decay shapes of transformers, DeepSpeed and timm, as schedules: one small function each.

Transformers' take a `Clock` and the shape's settings under its names, and return the factor on the base
learning rate. DeepSpeed's and timm's take the scheduler (or anything with its attributes), the index of a
parameter group and a `Clock`, and return the rate itself. None says that a setting has no closed form. Neither
package is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from generic_adam.adapters.clock import Clock, between
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Schedule, ScheduleError, as_schedule, exp, log, maximum, sqrt

_CYCLES = 64  # a sum of more cases than this is no form to look at

Settings = Mapping[str, Any]
Shape = Callable[[Clock, Settings], Schedule]


def _warm_up(clock: Clock, settings: Settings, then: Schedule) -> Schedule:
    """From 0 in a line, k / num_warmup_steps, up to its end; then what follows."""
    steps = settings["num_warmup_steps"]
    return clock.switch(clock.count / max(1, steps), steps, then)


def _decay_length(settings: Settings) -> int:
    return max(1, settings["num_training_steps"] - settings["num_warmup_steps"])


def constant(clock: Clock, settings: Settings) -> Schedule:
    """constant_with_warmup."""
    return _warm_up(clock, settings, as_schedule(1))


def linear(clock: Clock, settings: Settings) -> Schedule:
    """linear: down to 0 at num_training_steps, where it stays."""
    total = settings["num_training_steps"]
    decay = clock.switch((total - clock.count) / _decay_length(settings), total, 0)
    return _warm_up(clock, settings, decay)


def cosine(clock: Clock, settings: Settings) -> Schedule:
    """Cosine and cosine_with_min_lr: num_cycles waves down to the least rate, going on beyond the end."""
    return _warm_up(clock, settings, _wave(clock, settings, _decay_length(settings), 0))


def cosine_from_first_step(clock: Clock, settings: Settings) -> Schedule:
    """cosine_warmup_with_min_lr: as cosine, but the warm-up starts above 0 and all is one step earlier."""
    steps, start = settings["num_warmup_steps"], settings.get("warmup_lr_rate")
    if start is None:
        rise = (clock.count + 1) / max(1, steps)
    else:
        rise = between(float(start), 1.0, clock.count / max(1, steps - 1))
    return clock.switch(rise, steps, _wave(clock, settings, _decay_length(settings), 1))


def _wave(clock: Clock, settings: Settings, length: int, ahead: int) -> Schedule:
    """The cosine after the warm-up, `ahead` steps on."""
    lowest, cycles = float(settings.get("min_lr_rate") or 0.0), float(settings["num_cycles"])
    after = clock.later(settings["num_warmup_steps"])

    def shape(k: Schedule) -> Schedule:
        return between(lowest, 1.0, half_cosine(k + ahead, length / (2 * cycles)))

    period = length / cycles
    return after.repeating(round(period), shape) if period == round(period) else shape(after.count)


def cosine_with_restarts(clock: Clock, settings: Settings) -> Schedule:
    """cosine_with_restarts: num_cycles half waves, then 0."""
    length, cycles = _decay_length(settings), int(settings["num_cycles"])
    if cycles > _CYCLES:
        raise ScheduleError(
            f"num_cycles = {cycles} restarts have no closed form here; at most {_CYCLES} have"
        )
    after = clock.later(settings["num_warmup_steps"])
    result = as_schedule(0)
    end = length
    for cycle in range(cycles - 1, -1, -1):
        wave = half_cosine(after.count - as_schedule(length) * cycle / cycles, length / cycles)
        result = after.switch(wave, end, result)
        end = _first_of_cycle(cycle, cycles, length)
    return _warm_up(clock, settings, result)


def _first_of_cycle(cycle: int, cycles: int, length: int) -> int:
    """The first k where cycles * (k / length), rounded as the framework rounds it, reaches the cycle."""
    k = max(0, cycle * length // cycles - 1)
    while float(cycles) * (k / length) < cycle:
        k += 1
    return k


def polynomial(clock: Clock, settings: Settings) -> Schedule:
    """polynomial: from lr_init to lr_end by a power, then lr_end."""
    start, end, total = float(settings["lr_init"]), float(settings["lr_end"]), settings["num_training_steps"]
    length = total - settings["num_warmup_steps"]
    if length < 1:
        return _warm_up(clock, settings, as_schedule(end) / start)
    # Held from the last step on, where the power is 0: the next step has the same value by another rule.
    remaining = 1 - (clock.count - settings["num_warmup_steps"]) / length
    decay = between(end, start, remaining ** as_schedule(float(settings["power"])))
    return _warm_up(clock, settings, clock.switch(decay, total, end) / start)


def inverse_sqrt(clock: Clock, settings: Settings) -> Schedule:
    """inverse_sqrt: 1 / sqrt((k + timescale - warm-up) / timescale)."""
    warm_up = settings["num_warmup_steps"]
    timescale = settings.get("timescale") or warm_up or 10_000
    return _warm_up(clock, settings, 1 / sqrt((clock.count + (timescale - warm_up)) / timescale))


_WSD_FALL: dict[str, Callable[[Schedule, int, float], Schedule]] = {
    "linear": lambda k, length, _: 1 - k / length,
    "cosine": lambda k, length, cycles: half_cosine(k, length / (2 * cycles)),
    "1-sqrt": lambda k, length, _: 1 - sqrt(k / length),
}
_WSD_RISE: dict[str, Callable[[Schedule, int], Schedule]] = {
    "linear": lambda k, length: k / length,
    "cosine": lambda k, length: 1 - half_cosine(k, length),
    "1-sqrt": lambda k, length: 1 - sqrt(1 - k / length),
}


def warmup_stable_decay(clock: Clock, settings: Settings) -> Schedule:
    """warmup_stable_decay: up, flat, down to min_lr_ratio, where it stays."""
    warm_up, decay = settings["num_warmup_steps"], settings["num_decay_steps"]
    stable = settings.get("num_stable_steps")
    if stable is None:
        stable = settings["num_training_steps"] - warm_up - decay
    lowest, falling = float(settings["min_lr_ratio"]), clock.later(warm_up + stable)
    fall = _WSD_FALL[settings["decay_type"]](falling.count, max(1, decay), float(settings["num_cycles"]))
    tail = falling.switch(maximum(0, between(lowest, 1.0, fall)), decay, lowest)
    rise = maximum(0, between(lowest, 1.0, _WSD_RISE[settings["warmup_type"]](clock.count, max(1, warm_up))))
    return clock.switch(rise, warm_up, clock.switch(1, warm_up + stable, tail))


# Trainer's names, with the settings that transformers fills in where none are given.
SHAPES: dict[str, tuple[Shape, Settings]] = {
    "constant_with_warmup": (constant, {}),
    "linear": (linear, {}),
    "cosine": (cosine, {"num_cycles": 0.5}),
    "cosine_with_restarts": (cosine_with_restarts, {"num_cycles": 1}),
    "cosine_with_min_lr": (cosine, {"num_cycles": 0.5}),
    "cosine_warmup_with_min_lr": (cosine_from_first_step, {"num_cycles": 0.5}),
    "polynomial": (polynomial, {"lr_end": 1e-7, "power": 1.0}),
    "inverse_sqrt": (inverse_sqrt, {}),
    "warmup_stable_decay": (
        warmup_stable_decay,
        {"warmup_type": "linear", "decay_type": "cosine", "min_lr_ratio": 0.0, "num_cycles": 0.5},
    ),
}

# The functions inside the LambdaLR that transformers builds.
SHAPES_BY_FUNCTION: dict[str, Shape] = {
    "_get_constant_lambda": lambda _clock, _settings: as_schedule(1),
    "_get_constant_schedule_with_warmup_lr_lambda": constant,
    "_get_linear_schedule_with_warmup_lr_lambda": linear,
    "_get_cosine_schedule_with_warmup_lr_lambda": cosine,
    "_get_cosine_with_hard_restarts_schedule_with_warmup_lr_lambda": cosine_with_restarts,
    "_get_polynomial_decay_schedule_with_warmup_lr_lambda": polynomial,
    "_get_inverse_sqrt_schedule_lr_lambda": inverse_sqrt,
    "_get_cosine_with_min_lr_schedule_with_warmup_lr_rate_lambda": cosine_from_first_step,
    "_get_wsd_scheduler_lambda": warmup_stable_decay,
}


# DeepSpeed. Its count is -1 before the first step of the scheduler: k - 1.


def _deepspeed(
    scheduler: Any, clock: Clock, low: float, high: float, first: float, then: Schedule
) -> Schedule:
    """`first` at k = 0, then from low to high in a logarithm or a line, then what follows."""
    steps, k = scheduler.warmup_num_steps, clock.count
    share = log(k) / log(as_schedule(steps)) if scheduler.warmup_type == "log" else (k - 1) / steps
    return clock.switch(clock.switch(first, 1, between(low, high, share)), steps + 1, then)


def deepspeed_warmup(scheduler: Any, group: int, clock: Clock) -> Schedule:
    """WarmupLR: the largest rate is held."""
    low, high = float(scheduler.min_lrs[group]), float(scheduler.max_lrs[group])
    return _deepspeed(scheduler, clock, low, high, low, as_schedule(high))


def deepspeed_warmup_decay(scheduler: Any, group: int, clock: Clock) -> Schedule:
    """WarmupDecayLR: a line down to the least rate at total_num_steps, which is held."""
    low, high, total = (
        float(scheduler.min_lrs[group]),
        float(scheduler.max_lrs[group]),
        scheduler.total_num_steps,
    )
    left = (total + 1 - clock.count) / max(1, total - scheduler.warmup_num_steps)
    fall = clock.switch(between(low, high, left), total + 1, low)
    return _deepspeed(scheduler, clock, low, high, low, fall)


def deepspeed_warmup_cosine(scheduler: Any, group: int, clock: Clock) -> Schedule:
    """WarmupCosineLR: half a cosine down to cos_min_ratio at total_num_steps, which is held; it starts at 0."""
    base, low = (
        float(scheduler.org_lrs[group]),
        float(scheduler.warmup_min_ratio) * float(scheduler.org_lrs[group]),
    )
    steps, total = scheduler.warmup_num_steps, scheduler.total_num_steps
    last = float(scheduler.cos_min_ratio) * base
    fall = between(last, base, half_cosine(clock.count - steps, max(1, total - steps)))
    return _deepspeed(scheduler, clock, low, base, 0.0, clock.switch(fall, max(total, steps + 1), last))


# timm. A cycle's shape falls from 1 to 0 as its position goes from 0 to its length.


def _timm(
    scheduler: Any, group: int, clock: Clock, body: Callable[[float, Clock], Schedule]
) -> Schedule | None:
    """A line from warmup_lr_init over warmup_t steps, then the body: over the clock, or counting from there."""
    if scheduler.noise_range_t is not None:
        return None
    steps, base = scheduler.warmup_t, float(scheduler.base_values[group])
    rise = as_schedule(float(scheduler.warmup_lr_init)) + float(scheduler.warmup_steps[group]) * clock.count
    then = body(base, clock.later(steps) if scheduler.warmup_prefix else clock)
    # The first rate is the constructor's, whatever the shape says of k = 0.
    rate = clock.switch(rise, steps, then) if steps else clock.switch(base, 1, then)
    return rate * float(scheduler.optimizer.param_groups[group].get("lr_scale", 1.0))


def _timm_cycles(
    scheduler: Any, group: int, clock: Clock, shape: Callable[[Schedule, int], Schedule]
) -> Schedule | None:
    """cycle_limit cycles of t_initial steps, each lower by cycle_decay, then lr_min."""
    length, cycles, low = scheduler.t_initial, scheduler.cycle_limit, float(scheduler.lr_min)
    if scheduler.cycle_mul != 1 or getattr(scheduler, "k_decay", 1) != 1 or cycles > _CYCLES:
        return None

    def body(base: float, clock: Clock) -> Schedule:
        result = as_schedule(low)
        for cycle in reversed(range(cycles)):
            top = base * float(scheduler.cycle_decay) ** cycle
            fall = between(low, top, shape(clock.later(cycle * length).count, length))
            result = clock.switch(fall, (cycle + 1) * length, result)
        return result

    return _timm(scheduler, group, clock, body)


def timm_cosine(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """CosineLRScheduler."""
    return _timm_cycles(scheduler, group, clock, half_cosine)


def timm_tanh(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """TanhLRScheduler: (1 - tanh y) / 2 = 1 / (1 + e^(2y)), with y from lb to ub in a line."""
    low, high = float(scheduler.lb), float(scheduler.ub)
    return _timm_cycles(
        scheduler, group, clock, lambda k, length: 1 / (1 + exp(2 * between(low, high, k / length)))
    )


def timm_polynomial(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """PolyLRScheduler."""
    power = as_schedule(float(scheduler.power))
    return _timm_cycles(scheduler, group, clock, lambda k, length: (1 - k / length) ** power)


def timm_step(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """StepLRScheduler: decay_rate^floor(k / decay_t)."""
    size, factor = scheduler.decay_t, float(scheduler.decay_rate)
    if size != int(size) or size < 1 or factor <= 0:
        return None
    return _timm(scheduler, group, clock, lambda base, clock: base * clock.staircase(factor, int(size)))


def timm_multi_step(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """MultiStepLRScheduler: a factor decay_rate one step before each of decay_t."""
    factor = as_schedule(float(scheduler.decay_rate))

    def body(base: float, clock: Clock) -> Schedule:
        result = base * factor ** len(scheduler.decay_t)
        for passed, milestone in reversed(list(enumerate(sorted(scheduler.decay_t)))):
            result = clock.switch(base * factor**passed, max(0, milestone - 1), result)
        return result

    return _timm(scheduler, group, clock, body)
