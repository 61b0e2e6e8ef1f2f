"""One optimizer step in PyTorch, against torch.optim.Adam in its three forms and the memory's bandwidth.

All candidates step the same float32 parameters with the same gradients, and are timed in turn; the ratio of
the best times, against torch's fused Adam, is what counts. A step reads parameter, gradient, m and v and
writes parameter, m and v: seven streams. The last row is the time that seven streams take at the speed of a
multiplication in place, which has two, measured in the same run.

    python benchmarks/step.py

On one thread the times are the processor's, so that other work on the machine enters less.

Targets, against torch's fused Adam: at most 0.40 on LeNet, 0.97 on ResNet-18 and 1.0 on one large tensor. "the
kernel alone" is one call of torch's fused kernel on lists that are there; what a scheduled step takes beyond it,
which is Python, is the row below it. "its state seen" is an optimizer whose state somebody has asked for, by a
checkpoint for one: from then on each step looks after the state too.
"""

import argparse
import time
from collections.abc import Callable

import torch
from machine import best_seconds, publish

from generic_adam.torch import GenericAdam
from generic_adam_laboratory.networks import LeNet, ResNet18

PEER = "torch Adam, fused"
SEEN = "GenericAdam, scheduled, its state seen"
SCHEDULES = {"lr": "1e-9/sqrt(t)", "theta": "1 - 1/max(t, 2)"}
CANDIDATES: dict[str, Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]] = {
    "torch Adam": lambda params: torch.optim.Adam(params, lr=1e-9),
    "torch Adam, foreach": lambda params: torch.optim.Adam(params, lr=1e-9, foreach=True),
    PEER: lambda params: torch.optim.Adam(params, lr=1e-9, fused=True),
    "GenericAdam, constants": lambda params: GenericAdam(params, lr=1e-9),
    "GenericAdam, scheduled": lambda params: GenericAdam(params, **SCHEDULES),
    "GenericAdam, scheduled, not corrected": lambda params: GenericAdam(
        params, **SCHEDULES, initial_v=1e-8, bias_correction=False
    ),
    SEEN: lambda params: GenericAdam(params, **SCHEDULES),
    "GenericAdam, scheduled, foreach": lambda params: GenericAdam(params, **SCHEDULES, foreach=True),
}
KERNEL = "the kernel alone"
BEYOND = "GenericAdam, scheduled, beyond the kernel"
LIMIT = "seven streams at the speed of two"
STREAMS, STREAMS_OF_A_MULTIPLICATION = 7, 2


def problems() -> dict[str, tuple[list[torch.Size], int, int]]:
    """The shapes of the parameters, how many steps make one timing, and how many timings are made."""
    lenet = [parameter.shape for parameter in LeNet().parameters()]
    resnet = [parameter.shape for parameter in ResNet18().parameters()]
    return {
        f"LeNet, {len(lenet)} tensors": (lenet, 10, 2000),
        f"ResNet-18, {len(resnet)} tensors": (resnet, 1, 120),
        "one of 25 million": ([torch.Size([25_000_000])], 1, 30),
    }


def kernel_alone(params: list[torch.nn.Parameter]) -> Callable[[], None]:
    """One call of torch's fused Adam, with nothing around it."""
    lists = (
        [parameter.detach() for parameter in params],
        [parameter.grad for parameter in params],
        [torch.zeros_like(parameter) for parameter in params],
        [torch.zeros_like(parameter) for parameter in params],
        [],
        [torch.tensor(1e30)] * len(params),
    )
    numbers = {"lr": 1e-9, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8}
    return lambda: torch._fused_adam_(*lists, **numbers, amsgrad=False, maximize=False)


def measure(shapes: list[torch.Size], calls: int, rounds: int) -> dict[str, float]:
    """Seconds of one step by candidate, and of the seven streams."""
    generator = torch.Generator().manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    for parameter in params:
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizers = {name: make(params) for name, make in CANDIDATES.items()}
    optimizers[SEEN].state_dict()
    steps: dict[str, Callable[[], object]] = {name: one.step for name, one in optimizers.items()}
    steps[KERNEL] = kernel_alone(params)
    stream = torch.randn(sum(parameter.numel() for parameter in params), generator=generator)
    steps[LIMIT] = lambda: stream.mul_(-1.0)
    # On one thread the processor's time is what a step takes on an idle machine; threads wait for each other.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    best = best_seconds(steps, rounds=rounds, calls=calls, clock=clock)
    best[BEYOND] = best["GenericAdam, scheduled"] - best[KERNEL]
    best[LIMIT] *= STREAMS / STREAMS_OF_A_MULTIPLICATION
    return best


def cell(seconds: float, peer: float) -> str:
    """A time with its ratio."""
    shown = f"{seconds * 1e6:.0f} us" if abs(seconds) < 1e-3 else f"{seconds * 1e3:.1f} ms"
    return f"{shown} ({seconds / peer:.2f})"


def main() -> None:
    """Measure, print and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads that torch uses")
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    chosen = problems()
    times = {problem: measure(*sizes) for problem, sizes in chosen.items()}
    rows = [
        (name, *(cell(times[problem][name], times[problem][PEER]) for problem in times))
        for name in (*CANDIDATES, KERNEL, BEYOND, LIMIT)
    ]
    publish(
        "step",
        ("one step", *times),
        rows,
        command=f"python benchmarks/step.py --threads {threads}",
        seconds=time.perf_counter() - begin,
        settings={
            "threads": threads,
            "parameters": {problem: sum(map(torch.Size.numel, sizes[0])) for problem, sizes in chosen.items()},
            "timings": {problem: sizes[2] for problem, sizes in chosen.items()},
            "in brackets": f"against {PEER}",
            "clock": "processor" if threads == 1 else "wall",
        },
    )


if __name__ == "__main__":
    main()
