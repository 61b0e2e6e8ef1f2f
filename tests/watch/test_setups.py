"""Watch in the set-ups that people train in: groups, accumulation, others' Adams, two processes."""

import math
import socket

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

from generic_adam.errors import OptimizerError  # noqa: E402
from generic_adam.watch import Watch  # noqa: E402

STEPS = 60


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def train(optimizer, forward, *, parts=1, log=None, steps=STEPS, rank=0):
    """Train on a fixed problem, the gradient accumulated over parts; what Watch saw."""
    draw = torch.Generator().manual_seed(rank)
    with Watch(optimizer, log=log, on_event=lambda _: None) as watch:
        for _ in range(steps):
            optimizer.zero_grad()
            for _ in range(parts):
                x = torch.randn(16, 8, generator=draw)
                loss = (forward(x) - x.sum(1, keepdim=True).sin()).square().mean() / parts
                loss.backward()
            optimizer.step()
            watch.loss(loss)
    return watch


def test_groups_and_accumulated_gradients():
    model = network()
    groups = [{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters(), "lr": 1e-2}]
    told = []
    watch = train(torch.optim.AdamW(groups), model, parts=3, log=lambda numbers, step: told.append((step, numbers)))
    assert watch.diagnose().healthy
    assert [record.step for record in watch.records] == [25, 50, 60]
    assert {step for step, _ in told} == {25, 50, 60}
    assert all(math.isfinite(value) for _, numbers in told for value in numbers.values())
    assert sum("watch/loss" in numbers for _, numbers in told) == 3


class AdamW(torch.optim.Optimizer):
    """AdamW as other packages write it, known by its state alone; `fault` makes each step so much longer."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, fault=1.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.fault = fault

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                s["step"] += 1
                s["exp_avg"].lerp_(p.grad, 1 - beta1)
                s["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                root = (s["exp_avg_sq"] / (1 - beta2 ** s["step"])).sqrt().add_(group["eps"])
                p.mul_(1 - lr * group["weight_decay"])
                p.addcdiv_(s["exp_avg"], root, value=-self.fault * lr / (1 - beta1 ** s["step"]))


def test_an_adam_of_others_is_known_by_its_state_and_its_step_is_compared():
    model = network()
    watch = train(AdamW(model.parameters()), model)
    assert watch.diagnose().healthy
    assert watch.records[0].wrong < 1e-2
    model = network()
    found = train(AdamW(model.parameters(), fault=1.5), model).diagnose()
    assert found.findings[0].cause == "wrong_optimizer"


def test_moments_in_8_bits_are_refused_in_a_line():
    p = torch.nn.Parameter(torch.ones(4))
    optimizer = AdamW([p])
    optimizer.state[p] = {"state1": torch.zeros(4, dtype=torch.uint8)}
    with pytest.raises(OptimizerError, match="8 bits"):
        Watch(optimizer)


def _process(rank, port, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch = train(optimizer, torch.nn.parallel.DistributedDataParallel(model), steps=30, rank=rank)
    first, last = watch.records[0], watch.records[-1]
    queue.put((rank, watch.diagnose().healthy, last.step, first.wrong, last.dimension, last.gradient))
    dist.barrier()
    dist.destroy_process_group()


def test_two_processes_see_the_same_gradients():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    processes = [context.Process(target=_process, args=(rank, port, queue)) for rank in range(2)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(180)
    assert [one.exitcode for one in processes] == [0, 0]
    first, second = sorted(queue.get() for _ in range(2))
    assert first[1] is second[1] is True
    assert first[2] == second[2] == 30
    assert first[3] < 1e-2
    assert first[4] == second[4] == sum(p.numel() for p in network().parameters())
    assert first[5] == pytest.approx(second[5], rel=1e-5)
