"""Watch records what happened, as a computation apart has it, and leaves no trace."""

import copy
import csv
import math
from functools import partial

import numpy as np
import pytest
import torch

try:
    import resource
except ImportError:  # not on Windows
    resource = None

from generic_adam.methods import Method
from generic_adam.torch import AdaShift, GenericAdam, OptimizerError, Padam, Watch
from generic_adam.watch.records import COLUMNS

OPTIMIZERS = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.03, betas=(0.8, 0.97)),
    "AdamW, amsgrad": lambda p: torch.optim.AdamW(p, lr=0.03, betas=(0.8, 0.97), amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9),
    "RMSprop, centered": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.02),
    "GenericAdam": lambda p: GenericAdam.from_method(p, Method(alpha="0.1/sqrt(t)", beta=0.8, theta="1 - 0.9/t^0.7")),
    "GenericAdam, corrected": lambda p: GenericAdam(p, lr=0.05, theta="1 - 0.9/(t + 1)"),
    "GenericAdam, amsgrad": lambda p: GenericAdam(p, lr=0.05, amsgrad=True, bias_correction=False),
    "Padam, amsgrad": lambda p: Padam(p, lr=0.05),
}


def reference_coefficients(name, steps):
    """alpha_t, theta_t of the optimizers above, from their formulas."""
    t = np.arange(1.0, steps + 1)
    if name.startswith("Adam"):
        return 0.03 * np.sqrt(1 - 0.97**t) / (1 - 0.8**t), np.full(steps, 0.97)
    if name.startswith("RMSprop"):
        return np.full(steps, 0.01), np.full(steps, 0.9)
    if name == "Adagrad":
        return 0.1 / (1 + (t - 1) * 0.02) / np.sqrt(t + 1), 1 - 1 / (t + 1)
    if name == "GenericAdam":
        return 0.1 / np.sqrt(t), 1 - 0.9 / t**0.7
    if name == "GenericAdam, corrected":
        theta = 1 - 0.9 / (t + 1)
        return 0.05 * np.sqrt(1 - np.cumprod(theta)) / (1 - 0.9**t), theta
    return np.full(steps, 0.05), np.full(steps, 0.999)


def moment(name, optimizer, parameter, t):
    state = optimizer.state[parameter]
    if name == "Adagrad":
        return state["sum"].double().numpy() / (t + 1)
    if name == "RMSprop, centered":
        return (state["square_avg"] - state["grad_avg"] ** 2).double().numpy()
    key = "square_avg" if name == "RMSprop" else "max_exp_avg_sq" if "amsgrad" in name else "exp_avg_sq"
    return state[key].double().numpy() ** (0.25 if name.startswith("Padam") else 1.0)


def train(name, steps, every, **options):
    """Run with a Watch, and keep by hand what it should see."""
    generator = torch.Generator().manual_seed(0)
    parameters = [
        torch.nn.Parameter(torch.randn(40, 7, generator=generator)),
        torch.nn.Parameter(torch.randn(11, generator=generator)),
    ]
    optimizer = OPTIMIZERS[name](parameters)
    watch = Watch(optimizer, every=every, **options)
    history = []
    for t in range(1, steps + 1):
        for p in parameters:
            p.grad = 0.2 * p.detach() + torch.randn(p.shape, generator=generator)
        gradient = np.concatenate([p.grad.double().numpy().ravel() for p in parameters])
        optimizer.step()
        v = np.concatenate([moment(name, optimizer, p, t).ravel() for p in parameters])
        history.append((v, gradient))
    return watch, history


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_recorded_is_what_happened(name):
    steps, every = 60, 4
    watch, history = train(name, steps, every)
    alpha, theta = reference_coefficients(name, steps)
    assert [record.step for record in watch.records] == list(range(every, steps + 1, every))
    for record in watch.records:
        t = record.step
        assert record.alpha == pytest.approx(alpha[t - 1], rel=1e-12)
        assert record.theta == pytest.approx(theta[t - 1], rel=1e-12)
        window = history[t - every : t]
        gradient = math.sqrt(np.mean([np.sum(g**2) for _, g in window]))
        assert record.gradient == pytest.approx(gradient, rel=1e-5)
        assert record.falling == pytest.approx(np.mean([g**2 < 0.1 * v for v, g in window]), abs=2e-3)


def test_csv_is_written_at_once_and_never_overwrites(tmp_path):
    path = tmp_path / "run" / "watch.csv"
    watch, _ = train("Adam", 30, 10, out=tmp_path / "run")
    assert len(watch.records) == 3
    with path.open(newline="") as file:  # before it is closed
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [float(row["gradient"]) for row in rows] == [record.gradient for record in watch.records]
    watch.detach()
    with pytest.raises(OptimizerError, match="exists already"):
        train("Adam", 1, 1, out=tmp_path / "run")
    with pytest.raises(OptimizerError, match="cannot be made"):
        train("Adam", 1, 1, out=path / "run")
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.skipif(resource is None, reason="there are no limits to set here")
def test_a_full_disk_ends_the_file_and_not_the_training(tmp_path):
    path = tmp_path / "watch.csv"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.warns(RuntimeWarning, match=r"csv cannot be written any more") as caught:
            watch, _ = train("Adam", 30, 1, out=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(caught) == 1
    assert len(watch.records) == 30
    watch.detach()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert 0 < len(rows) < 30
    # What is there is whole.
    assert [float(row["gradient"]) for row in rows] == [r.gradient for r in watch.records[: len(rows)]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_back_what_was_seen(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path)
    watch, _ = train("Adam", 30, 10, log=writer)
    watch.detach()
    writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    sizes = events.Scalars("watch/gradient")
    assert [event.step for event in sizes] == [10, 20, 30]
    assert [event.value for event in sizes] == pytest.approx([r.gradient for r in watch.records], rel=1e-6)


def test_nothing_is_left_after_detaching():
    parameter = torch.nn.Parameter(torch.ones(3))
    for optimizer in (torch.optim.Adam([parameter]), GenericAdam([parameter])):
        before = dict(optimizer.__dict__)
        watch = Watch(optimizer, every=1)
        assert optimizer._optimizer_step_pre_hooks
        watch.detach()
        watch.detach()
        assert not optimizer._optimizer_step_pre_hooks
        assert not optimizer._optimizer_step_post_hooks
        assert optimizer.__dict__ == before
        parameter.grad = torch.ones(3)
        optimizer.step()
        assert watch.records == []


def test_watching_changes_no_step():
    def run(watched):
        parameter = torch.nn.Parameter(torch.arange(1.0, 6.0))
        optimizer = GenericAdam([parameter], lr="0.1/sqrt(t)", theta="1 - 1/max(t, 2)")
        watch = Watch(optimizer, every=3) if watched else None
        for t in range(50):
            parameter.grad = torch.sin(parameter.detach() * t)
            optimizer.step()
        return parameter.detach(), watch

    watched, watch = run(True)
    assert torch.equal(watched, run(False)[0])
    assert len(watch.records) == 16


@pytest.mark.parametrize("make", [GenericAdam, partial(torch.optim.Adam, fused=True)])
def test_skipped_steps_are_not_counted(make):
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = make([parameter], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    scaler.scale(torch.ones(()))  # makes its state
    with Watch(optimizer, every=2) as watch:
        for gradient in (1.0, math.inf, 1.0, 1.0, math.inf, 1.0):
            parameter.grad = torch.full((2,), gradient)
            scaler.step(optimizer)
            scaler.update()
    assert [record.step for record in watch.records] == [2, 4]
    assert watch.records[-1].alpha == pytest.approx(0.1 * math.sqrt(1 - 0.999**4) / (1 - 0.9**4), rel=1e-12)


def test_a_run_resumed_is_watched_from_there():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([parameter])
    for _ in range(7):
        parameter.grad = torch.ones(2)
        optimizer.step()
    with Watch(optimizer, every=4) as watch:
        for _ in range(5):
            parameter.grad = torch.ones(2)
            optimizer.step()
    assert [record.step for record in watch.records] == [8, 12]


@pytest.mark.parametrize("make", [GenericAdam, torch.optim.Adam])
def test_a_state_that_is_loaded_is_watched_from_its_own_step(make):
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = make([parameter], lr=0.1)
    with Watch(optimizer, every=2) as watch:
        for t in range(1, 16):
            parameter.grad = torch.ones(2)
            optimizer.step()
            if t == 5:
                saved = copy.deepcopy(optimizer.state_dict())
            if t == 10:
                optimizer.load_state_dict(saved)
    assert [record.step for record in watch.records] == [2, 4, 6, 8, 10, 6, 8, 10]
    for record in watch.records:
        assert record.alpha == pytest.approx(0.1 * math.sqrt(1 - 0.999**record.step) / (1 - 0.9**record.step))


@pytest.mark.parametrize("make", [GenericAdam, torch.optim.Adam])
def test_a_group_that_comes_later_is_corrected_from_its_own_first_step(make):
    first, second = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = make([first], lr=0.1)
    with Watch(optimizer, every=3) as watch:
        for t in range(1, 10):
            if t == 5:
                optimizer.add_param_group({"params": [second]})
            for parameter in (first, second):
                parameter.grad = torch.ones(2)
            optimizer.step()
    alphas = [0.1 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) for t in (3, 2, 5)]  # the largest of a group
    assert [record.step for record in watch.records] == [3, 4, 6, 9]
    assert [record.alpha for record in watch.records if record.step != 4] == pytest.approx(alphas)


@pytest.mark.parametrize("every", [0, -5, 2.5, True, "10"])
def test_every_must_be_a_positive_whole_number(every):
    with pytest.raises(OptimizerError, match="every is"):
        Watch(torch.optim.Adam([torch.nn.Parameter(torch.ones(1))]), every=every)


def test_what_cannot_be_watched_is_refused():
    with pytest.raises(OptimizerError, match="SGD cannot be watched; expected one of GenericAdam, AdaShift, Adam"):
        Watch(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))


@pytest.mark.parametrize("reduction", ["none", "max"])
def test_adashift_is_watched(reduction):
    torch.manual_seed(3)
    x = torch.nn.Parameter(torch.zeros(300, dtype=torch.float64))
    optimizer = AdaShift([x], 1e-3, 0.9, 0.9, keep=3, reduction=reduction)
    with Watch(optimizer, every=1) as watch:
        for _ in range(40):
            x.grad = torch.randn_like(x)
            optimizer.step()
    assert watch.records[-1].theta == 0.9
    assert 0 < watch.records[-1].falling < 1


def test_a_group_that_is_taken_away_is_watched_no_more():
    points = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = torch.optim.Adam([{"params": [point], "lr": 0.1 * n} for n, point in enumerate(points[:2], 1)])
    with Watch(optimizer, every=1) as watch:
        for count in range(6):
            if count == 2:  # another in its place
                del optimizer.param_groups[0]
                optimizer.add_param_group({"params": [points[2]], "lr": 0.3})
            if count == 4:
                optimizer.param_groups.clear()
            for point in points:
                point.grad = torch.ones(2)
            optimizer.step()
    first, second = (math.sqrt(1 - 0.999**t) / (1 - 0.9**t) for t in (1, 2))
    alphas = [0.2 * first, 0.2 * second, 0.3 * first, 0.3 * second]  # the largest of a group
    assert [record.alpha for record in watch.records[:4]] == pytest.approx(alphas)
    assert all(math.isnan(record.alpha) for record in watch.records[4:])


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_sparse_gradients_are_measured():
    table = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = torch.optim.Adagrad(table.parameters(), lr=0.1)
    with Watch(optimizer, every=1) as watch:
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 1, 3])).sum().backward()
            optimizer.step()
    assert [record.gradient for record in watch.records] == [pytest.approx(10**0.5)] * 3
