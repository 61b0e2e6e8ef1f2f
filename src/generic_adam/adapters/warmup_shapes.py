"""The warm-up-and-decay shapes of Hugging Face's Trainer, as schedules: one small function each.

Every function takes a `Clock` and the shape's settings under the names that transformers uses, and returns
the factor on the base learning rate, or None where a setting has no closed form. All warm-ups but one start
at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from generic_adam.adapters.clock import Clock, between
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Schedule, as_schedule, maximum, sqrt

Settings = Mapping[str, Any]
Shape = Callable[[Clock, Settings], Schedule]


def _warm_up(clock: Clock, settings: Settings, then: Schedule) -> Schedule:
    """K / num_warmup_steps up to its end, and what follows."""
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
    "_get_constant_schedule_with_warmup_lr_lambda": constant,
    "_get_linear_schedule_with_warmup_lr_lambda": linear,
    "_get_cosine_schedule_with_warmup_lr_lambda": cosine,
    "_get_cosine_with_hard_restarts_schedule_with_warmup_lr_lambda": cosine_with_restarts,
    "_get_polynomial_decay_schedule_with_warmup_lr_lambda": polynomial,
    "_get_inverse_sqrt_schedule_lr_lambda": inverse_sqrt,
    "_get_cosine_with_min_lr_schedule_with_warmup_lr_rate_lambda": cosine_from_first_step,
    "_get_wsd_scheduler_lambda": warmup_stable_decay,
}
