"""What Watch records is what happened: every column against a computation apart, and no trace afterwards."""

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
from generic_adam.theorems.decide import ratio
from generic_adam.torch import AdaShift, GenericAdam, OptimizerError, Padam, Watch
from generic_adam.watch.records import GROUP_COLUMNS

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
        before = [p.detach().double().numpy().copy() for p in parameters]
        for p in parameters:
            p.grad = 0.2 * p.detach() + torch.randn(p.shape, generator=generator)
        gradient = np.concatenate([p.grad.double().numpy().ravel() for p in parameters])
        optimizer.step()
        moved = [p.detach().double().numpy() - old for p, old in zip(parameters, before, strict=True)]
        v = np.concatenate([moment(name, optimizer, p, t).ravel() for p in parameters])
        history.append((v, gradient, np.concatenate([m.ravel() for m in moved])))
    return watch, history


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_column_is_what_it_says(name):
    steps, every = 60, 4
    watch, history = train(name, steps, every)
    alpha, theta = reference_coefficients(name, steps)
    assert [record.step for record in watch.groups] == list(range(every, steps + 1, every))
    sums = np.cumsum(alpha * np.sqrt(1 - theta))
    for record in watch.groups:
        t = record.step
        v, gradient, moved = history[t - 1]
        earlier = history[t - 2][0]
        assert record.alpha == pytest.approx(alpha[t - 1], rel=1e-12)
        assert record.theta == pytest.approx(theta[t - 1], rel=1e-12)
        assert record.chi == pytest.approx(alpha[t - 1] / math.sqrt(1 - theta[t - 1]), rel=1e-9)
        assert record.ratio == pytest.approx(sums[t - 1] / (t * alpha[t - 1]), rel=1e-9)
        gamma = np.sqrt(v) / alpha[t - 1] - np.sqrt(earlier) / alpha[t - 2]
        clearly = np.abs(gamma) > 1e-5 * np.sqrt(v) / alpha[t - 1]  # v is float32
        slack = (~clearly).mean()
        assert abs(record.negative_gamma - (gamma < 0).mean()) <= slack
        sizes = np.quantile(alpha[t - 1] / np.sqrt(v), [0.05, 0.5, 0.95])
        seen = (record.step_size_low, record.step_size_median, record.step_size_high)
        np.testing.assert_allclose(seen, sizes, rtol=0.02)
        assert record.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
        assert record.update_norm == pytest.approx(np.linalg.norm(moved), rel=1e-5)
    seen = [history[record.step - 1] for record in watch.groups]
    pairs = zip(np.array([v for v, _, _ in seen]).T, np.array([g**2 for _, g, _ in seen]).T, strict=True)
    assert watch.groups[-1].correlation == pytest.approx(
        np.median([np.corrcoef(*pair)[0, 1] for pair in pairs]), abs=0.01
    )


def test_gamma_is_never_negative_under_amsgrad_and_is_under_adam():
    held, _ = train("GenericAdam, amsgrad", 60, 1)
    assert all(record.negative_gamma == 0 for record in held.groups[1:])
    free, _ = train("Adam", 60, 1)
    assert math.isnan(free.groups[0].negative_gamma)  # there is no Gamma_1
    assert all(0 < record.negative_gamma < 1 for record in free.groups[20:])


def test_running_ratio_is_the_one_of_the_theory():
    watch, _ = train("GenericAdam", 200, 50)
    method = Method(alpha="0.1/sqrt(t)", beta=0.8, theta="1 - 0.9/t^0.7")
    for record in watch.groups:
        assert record.ratio == pytest.approx(ratio(method, record.step), rel=1e-9)


def test_quantiles_of_many_coordinates_are_sampled_evenly():
    big = torch.nn.Parameter(torch.zeros(300_000))
    optimizer = GenericAdam([big], lr=0.1, theta=0.5, bias_correction=False)
    with Watch(optimizer, every=1) as watch:
        big.grad = torch.linspace(1.0, 2.0, 300_000)
        optimizer.step()
    expected = np.quantile(0.1 / np.sqrt(0.5 * np.linspace(1, 2, 300_000) ** 2), [0.05, 0.5, 0.95])
    record = watch.groups[0]
    np.testing.assert_allclose(
        (record.step_size_low, record.step_size_median, record.step_size_high), expected, rtol=1e-2
    )


def test_csv_is_written_at_once_and_never_overwrites(tmp_path):
    path = tmp_path / "run" / "groups.csv"
    watch, _ = train("Adam", 30, 10, out=tmp_path / "run")
    assert len(watch.groups) == 3
    with path.open(newline="") as file:  # before it is closed
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == GROUP_COLUMNS
    assert [float(row["chi"]) for row in rows] == [record.chi for record in watch.groups]
    watch.detach()
    with pytest.raises(OptimizerError, match="exists already"):
        train("Adam", 1, 1, out=tmp_path / "run")
    with pytest.raises(OptimizerError, match="cannot be made"):
        train("Adam", 1, 1, out=path / "run")
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.skipif(resource is None, reason="there are no limits to set here")
def test_a_full_disk_ends_the_file_and_not_the_training(tmp_path):
    path = tmp_path / "groups.csv"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.warns(RuntimeWarning, match=r"csv cannot be written any more") as caught:
            watch, _ = train("Adam", 30, 1, out=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(caught) == 2  # one for each file
    assert len(watch.groups) == 30
    watch.detach()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert 0 < len(rows) < 30
    # What is there is whole.
    assert [float(row["update_norm"]) for row in rows] == [r.update_norm for r in watch.groups[: len(rows)]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_back_what_was_seen(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path)
    watch, _ = train("Adam", 30, 10, log=writer)
    watch.detach()
    writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    ratios = events.Scalars("watch/group 0/ratio")
    assert [event.step for event in ratios] == [10, 20, 30]
    assert [event.value for event in ratios] == pytest.approx([r.ratio for r in watch.groups], rel=1e-6)


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
        assert watch.groups == []


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
    assert len(watch.groups) == 16


def test_groups_are_watched_one_by_one_and_may_come_later():
    first, second = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = torch.optim.Adam([{"params": [first], "lr": 0.1}])
    with Watch(optimizer, every=2) as watch:
        for t in range(1, 7):
            if t == 4:
                optimizer.add_param_group({"params": [second], "lr": 0.2})
            for parameter in (first, second):
                parameter.grad = torch.ones(2)
            optimizer.step()
    assert [(record.step, record.group) for record in watch.groups] == [
        (2, 0),
        (4, 0),
        (4, 1),
        (6, 0),
        (6, 1),
    ]


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
    assert [record.step for record in watch.groups] == [2, 4]
    alphas = [0.1 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) for t in range(1, 5)]
    assert watch.groups[-1].ratio == pytest.approx(sum(alphas) * math.sqrt(0.001) / (4 * alphas[-1]), rel=1e-12)


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
    assert [record.step for record in watch.groups] == [8, 12]


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
    assert [record.step for record in watch.groups] == [2, 4, 6, 8, 10, 6, 8, 10]
    for record in watch.groups:
        assert record.alpha == pytest.approx(0.1 * math.sqrt(1 - 0.999**record.step) / (1 - 0.9**record.step))
    # alpha_5 was not of this run: there is no Gamma_6 in it.
    assert [math.isnan(record.negative_gamma) for record in watch.groups] == [False] * 5 + [True, False, False]


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
    late = [record for record in watch.groups if record.group == 1]
    alphas = [0.1 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) for t in range(1, 6)]
    assert [record.step for record in late] == [6, 9]
    assert [record.alpha for record in late] == pytest.approx([alphas[1], alphas[4]])
    assert late[1].ratio == pytest.approx(sum(alphas) * math.sqrt(0.001) / (5 * alphas[4]))


@pytest.mark.parametrize("every", [0, -5, 2.5, True, "10"])
def test_every_must_be_a_positive_whole_number(every):
    with pytest.raises(OptimizerError, match="every is"):
        Watch(torch.optim.Adam([torch.nn.Parameter(torch.ones(1))]), every=every)


def test_what_cannot_be_watched_is_refused():
    with pytest.raises(OptimizerError, match="SGD cannot be watched; expected one of GenericAdam, AdaShift, Adam"):
        Watch(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))


def independent_gradients(make, steps=800):
    """Run an optimizer on standard normal gradients, independent of everything; what Watch saw of it."""
    torch.manual_seed(3)
    x = torch.nn.Parameter(torch.zeros(300, dtype=torch.float64))
    optimizer = make([x])
    with Watch(optimizer, every=1) as watch:
        for _ in range(steps):
            x.grad = torch.randn_like(x)
            optimizer.step()
    return watch.groups


@pytest.mark.parametrize("theta", [0.5, 0.9])
def test_the_correlation_of_independent_gradients_has_a_closed_form(theta):
    """v_t = (1 - theta) sum theta^i g_(t-i)^2, hence corr(v_t, g_t^2) = sqrt(1 - theta^2)."""
    records = independent_gradients(lambda params: torch.optim.Adam(params, 1e-3, betas=(0.9, theta)))
    assert math.isnan(records[1].correlation)
    assert records[-1].correlation == pytest.approx(math.sqrt(1 - theta**2), abs=0.02)


def test_the_correlation_along_a_run_is_numpys():
    x = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = torch.optim.RMSprop([x], 0.01, alpha=0.9)
    squares, moments = [], []
    torch.manual_seed(0)
    with Watch(optimizer, every=1) as watch:
        for _ in range(40):
            x.grad = x.detach() + torch.randn_like(x)
            squares.append(x.grad.square().numpy())
            optimizer.step()
            moments.append(optimizer.state[x]["square_avg"].numpy().copy())
    expected = [np.corrcoef(np.array(moments)[:, k], np.array(squares)[:, k])[0, 1] for k in range(2)]
    assert watch.groups[-1].correlation == pytest.approx(min(expected), rel=1e-5)  # torch's lower median


@pytest.mark.parametrize("reduction", ["none", "max"])
def test_adashift_is_watched_and_has_no_correlation(reduction):
    records = independent_gradients(lambda params: AdaShift(params, 1e-3, 0.9, 0.9, keep=3, reduction=reduction))
    assert abs(records[-1].correlation) < 0.05
    assert records[-1].theta == 0.9
    assert records[-1].step_size_median > 0


def test_a_group_that_is_taken_away_is_watched_no_more():
    points = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = torch.optim.Adam([{"params": [point], "lr": 0.1 * n} for n, point in enumerate(points[:2], 1)])
    alone = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))], lr=0.2)
    with Watch(optimizer, every=1) as watch, Watch(alone, every=1) as expected:
        for count in range(6):
            if count == 2:  # another in its place
                del optimizer.param_groups[0]
                optimizer.add_param_group({"params": [points[2]], "lr": 0.3})
            if count == 4:
                optimizer.param_groups.clear()
            for point in (*points, *alone.param_groups[0]["params"]):
                point.grad = torch.ones(2)
            optimizer.step()
            alone.step()
    seen = [(record.step, record.group) for record in watch.groups]
    assert seen == [(step, group) for step in range(1, 5) for group in (0, 1)]
    own = [*watch.groups[1:4:2], *watch.groups[4:8:2]]
    for record, other in zip(own, expected.groups[:4], strict=True):
        assert (record.alpha, record.ratio, record.update_norm) == (other.alpha, other.ratio, other.update_norm)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_sparse_gradients_are_measured():
    table = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = torch.optim.Adagrad(table.parameters(), lr=0.1)
    with Watch(optimizer, every=1) as watch:
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 1, 3])).sum().backward()
            optimizer.step()
    assert [record.gradient_norm for record in watch.groups] == [pytest.approx(10**0.5)] * 3
