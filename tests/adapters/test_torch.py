"""What is read off torch's optimizers is what they do: the same steps as Algorithm 1 with that method."""

import functools
import subprocess
import sys
import types
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as torch_lr

from generic_adam import advise, certify
from generic_adam.adapters import updates
from generic_adam.adapters.torch import read
from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm, HeavyBall, Method
from generic_adam.reference import generic_adam
from generic_adam.schedules import has_callable, parse
from generic_adam.torch import GenericAdam
from generic_adam.torch.contrib import AdaUSM, Padam
from generic_adam.torch.schedule_lr import ScheduleLR
from tests import steps
from tests.steps import START, gradient

STEPS = 120
AS_THE_PAPER = {"initial_v": 1e-8, "eps": 0.0, "bias_correction": False}


def torch_path(build, schedule=None):
    x = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = build([x])
    scheduler = schedule(optimizer) if schedule is not None else None
    return read(optimizer, scheduler), steps.torch_path(x, optimizer, scheduler, STEPS)


OPTIMIZERS = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.95)),
    "Adam, L2": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.1, eps=1e-3),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.05, eps=1e-2, weight_decay=0.3),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.6), amsgrad=True),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.05, weight_decay=0.1),
    "NAdam, decoupled": lambda p: torch.optim.NAdam(p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, weight_decay=0.2),
    "RMSprop, momentum": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.7),
    "RMSprop, centred": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, centered=True, eps=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.3, lr_decay=0.01, initial_accumulator_value=0.2, eps=0),
    "Adagrad from 0": lambda p: torch.optim.Adagrad(p, lr=0.3, eps=1e-2, weight_decay=0.1),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "GenericAdam": lambda p: GenericAdam(p, lr=0.1, beta=0.8, theta="1 - 0.9/t", weight_decay=0.1),
    "GenericAdam, eps": lambda p: GenericAdam(p, lr=0.1, theta=0.9, **AS_THE_PAPER | {"eps": 1e-3}),
    "GenericAdam, corrected": lambda p: GenericAdam(p, lr=0.05, eps=1e-3, initial_v=0, bias_correction=True),
    "GenericAdam, maximum": lambda p: GenericAdam(p, lr=0.05, theta=0.5, amsgrad=True, eps=0),
    "Padam": lambda p: Padam(p, lr=0.05, theta=0.9, partial=0.25, eps=1e-3),
}
SCHEDULERS = {
    "none": None,
    "cosine": lambda o: torch_lr.CosineAnnealingLR(o, 40, 1e-3),
    "schedule": lambda o: ScheduleLR(o, "0.2 / sqrt(t)"),
    "one cycle": lambda o: torch_lr.OneCycleLR(o, 0.2, 150),
}
# OneCycleLR cycles a momentum that some do not have, and that others have where no field can say it moves.
PAIRS = [
    (name, scheduler)
    for name in OPTIMIZERS
    for scheduler in SCHEDULERS
    if scheduler != "one cycle" or name.startswith(("Adam", "AMSGrad", "GenericAdam"))
]


@pytest.mark.parametrize(("name", "scheduler"), PAIRS)
def test_the_algorithm_read_takes_the_same_steps(name, scheduler):
    algorithm, points = torch_path(OPTIMIZERS[name], SCHEDULERS[scheduler])
    assert algorithm.outside == ()
    ours = steps.path(algorithm, gradient, START, STEPS)
    # torch keeps NAdam's product of momenta in float32.
    np.testing.assert_allclose(points, ours, rtol=1e-5 if "NAdam" in name else 1e-9, atol=1e-11)


def test_every_class_of_torch_that_is_read_takes_its_steps_in_these_tests():
    here = {updates.name_of(type(build([torch.zeros(2, requires_grad=True)]))) for build in OPTIMIZERS.values()}
    below = {"torch.Adafactor"}
    assert {name for name in updates.UPDATES if name.startswith("torch.")} <= here | below
    assert not {updates._bare(name) for name in updates.UPDATES} & updates.NOT_READ.keys()


def test_the_paper_s_algorithm_is_the_reference():
    build = lambda p: GenericAdam(p, lr="0.1/sqrt(t)", beta=0.8, theta="1 - 0.9/t", **AS_THE_PAPER)  # noqa: E731
    algorithm, points = torch_path(build)
    assert algorithm.departures == ()
    expected = generic_adam(algorithm.method, gradient, START, STEPS).points[1:]
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_maximize_is_about_the_negative_objective(momentum):
    def build(p, sign):
        return torch.optim.SGD(p, lr=0.1, momentum=momentum, maximize=sign < 0)

    algorithm, points = torch_path(lambda p: build(p, -1))
    assert "negative" in algorithm.notes[0]
    np.testing.assert_allclose(points, steps.path(algorithm, gradient, START, STEPS), rtol=1e-9)


def test_what_is_read_of_a_climber_climbs_or_is_refused():
    climber = torch.optim.AdamW(weights(), lr=0.01, weight_decay=0.0, maximize=True)
    x = torch.zeros(2, requires_grad=True)
    again = GenericAdam.from_method([x], advise(climber)[0].algorithm)
    x.grad = torch.ones(2)
    again.step()
    assert (x > 0).all()
    (x,) = weights()
    ours = GenericAdam([x], lr="0.01/sqrt(t)", maximize=True)
    once_more = GenericAdam.from_method(weights(), read(ours))
    assert once_more.param_groups[0]["maximize"]
    assert not GenericAdam.from_method(weights(), read(ours), maximize=False).param_groups[0]["maximize"]
    transformation = pytest.importorskip("generic_adam.optax")
    with pytest.raises(OptimizerError, match="climbs"):
        transformation.generic_adam(read(ours))


def test_what_no_field_can_say_is_outside():
    optimizer = torch.optim.Adam(weights())
    optimizer.register_step_post_hook(lambda *_: None)
    assert read(optimizer).outside == ("hooks run at every step",)
    optimizer = torch.optim.Adam(weights())
    optimizer.step = functools.partial(optimizer.step)
    assert read(optimizer).outside == ("the optimizer's step has been replaced by another function",)
    optimizer = torch.optim.Adam(weights())
    scheduler = torch_lr.ConstantLR(optimizer)  # which wraps the step to count
    assert read(optimizer, scheduler).outside == ()
    assert "Nesterov" in read(torch.optim.SGD(weights(), lr=0.1, momentum=0.9, nesterov=True)).outside[0]
    optimizer = torch.optim.NAdam(weights())
    assert "beta_1" in read(optimizer, torch_lr.OneCycleLR(optimizer, 0.1, 50)).outside[0]


def test_adafactor_on_vectors_is_the_method_times_the_parameter_scale():
    x = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adafactor([x], lr=0.05, d=1e9)  # never clips
    reading = read(optimizer)
    v = np.zeros(3)
    for t in range(1, 400):
        before, g = x.detach().numpy().copy(), gradient(x.detach().numpy(), t)
        x.grad = torch.from_numpy(g)
        optimizer.step()
        alpha, beta, theta = reading.method.at(t)
        v = theta * v + (1 - theta) * g**2
        step = max(1e-3, np.sqrt(np.mean(before**2))) * alpha * g / np.sqrt(v)
        np.testing.assert_allclose(x.detach().numpy(), before - step, rtol=1e-12)
        assert beta == 0
    assert not reading.factored
    assert reading.scaled
    matrix = read(torch.optim.Adafactor([torch.zeros(2, 2, requires_grad=True)]))
    assert matrix.factored
    assert matrix.method.theta == parse("1 - t^-0.8")


def weights(*shape):
    return [torch.zeros(*shape or (2,), requires_grad=True)]


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: torch.optim.Adamax(weights()), "maximum"),
        (lambda: torch.optim.RAdam(weights()), "first steps"),
        (lambda: torch.optim.LBFGS(weights()), "quasi-Newton"),
        (lambda: AdaUSM(weights()), "AdaUSM"),
    ],
)
def test_other_algorithms_are_refused_with_the_reason(build, reason):
    with pytest.raises(OptimizerError, match=reason) as caught:
        read(build())
    assert "\n" not in str(caught.value)


def test_radam_divides_from_the_sixth_step_on():
    # What the refusal says of RAdam: its first five steps at theta = 0.999 are not scaled by sqrt(v_t).
    for scale in (1.0, 100.0):
        x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.RAdam([x], lr=1.0)
        moves = []
        for _ in range(7):
            before = x.item()
            x.grad = torch.full((1,), scale, dtype=torch.float64)
            optimizer.step()
            moves.append(before - x.item())
        np.testing.assert_allclose(moves[:5], scale)
        assert max(moves[5:]) < 1


def test_settings_are_fields():
    plain = read(torch.optim.Adam(weights(), weight_decay=0.1, amsgrad=True))
    assert (plain.l2, plain.running_maximum, plain.initial_v) == (Fraction(1, 10), True, 0)
    assert str(plain.eps) == "1e-08 * sqrt(bias_correction(0.999))"
    decoupled = read(torch.optim.AdamW(weights(), lr=0.5))
    assert decoupled.decay(1) == pytest.approx(0.5 * 0.01)
    assert read(torch.optim.RMSprop(weights(), momentum=0.9)).heavy_ball == HeavyBall(Fraction(9, 10))
    # an eps that rounding swallows is a remark; one that it does not is a field
    ours = read(GenericAdam(weights(), **AS_THE_PAPER | {"eps": 1e-16}))
    assert ours.departures == ()
    assert "rounding" in ours.notes[0]
    assert read(GenericAdam(weights(), **AS_THE_PAPER)).notes == ()
    assert read(GenericAdam(weights(), eps=1e-6, initial_v=1e-8, bias_correction=False)).eps(7) == 1e-6
    assert read(GenericAdam(weights(), initial_v=0)).initial_v == 0


def test_groups_that_agree_are_one_part():
    parameters = [weights()[0] for _ in range(4)]
    optimizer = torch.optim.AdamW(
        [
            {"params": parameters[:1]},
            {"params": parameters[1:2], "lr": 0.1},
            {"params": parameters[2:3]},
            {"params": parameters[3:], "weight_decay": 0.0},
        ],
        lr=0.01,
    )
    algorithm = read(optimizer, torch_lr.CosineAnnealingLR(optimizer, 10, 1e-3))
    assert [part.groups for part in algorithm.parts] == [(0, 2, 3), (1,)]
    assert "no decay" in algorithm.notes[-1]
    first, second = algorithm.parts
    assert first.method != second.method


def test_a_closure_for_groups_with_and_without_decay_is_one_part():
    decayed, plain = weights()[0], weights()[0]
    groups = [{"params": [decayed], "weight_decay": 0.1}, {"params": [plain], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95))  # as nanoGPT has them
    algorithm = read(optimizer, torch_lr.LambdaLR(optimizer, lambda k: min((k + 1) / 100, 1)))
    assert [part.groups for part in algorithm.parts] == [(0, 1)]


def test_a_subclass_counts_only_with_its_parents_step():
    class Renamed(torch.optim.AdamW):
        pass

    class Clipped(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    assert read(Renamed(weights())).outside == ()
    assert "Clipped takes its own steps" in read(Clipped(weights())).outside[0]


def test_a_subclass_is_read_also_where_torch_met_it_before_its_parent():
    # torch wraps the step of each class at its first instance; a new process has seen no Adam.
    code = (
        "import torch\n"
        "from generic_adam.adapters.torch import read\n"
        "class Renamed(torch.optim.Adam): pass\n"
        "print(read(Renamed([torch.zeros(1, requires_grad=True)])).method.beta(1))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "0.9"


def test_a_wrapper_around_the_parents_step_is_not_the_parents_step():
    class Halved(torch.optim.Adam):
        @functools.wraps(torch.optim.Adam.step)
        def step(self, closure=None):
            return super().step(closure)

    assert "Halved takes its own steps" in read(Halved(weights())).outside[0]


def test_an_unknown_class_is_refused_in_one_line():
    class Mine(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

    with pytest.raises(OptimizerError, match="Mine cannot be read: its step is not known here; expected") as caught:
        read(Mine(weights()))
    assert "\n" not in str(caught.value)


def of_package(module, name, defaults, **attributes):
    """An optimizer of another package, with its groups and attributes as its releases have them."""

    body = {"step": lambda self, closure=None: None, "__module__": module}
    made = type(name, (torch.optim.Optimizer,), body)(weights(), defaults)
    vars(made).update(attributes)
    return made


ADAMS = {"betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.5}
TORCHAO = ADAMS | {"lr": torch.tensor(0.25), "amsgrad": False}
BITSANDBYTES = ADAMS | {"lr": 0.25, "alpha": 0.0, "t_alpha": None, "t_beta3": None}
ARGUMENTS = {"percentile_clipping": 100, "max_unorm": 0.0, "skip_zeros": False}


@pytest.mark.parametrize(
    ("module", "name", "bits"),
    [
        ("torchao.optim.adam", "Adam8bit", 8),
        ("torchao.optim.adam", "AdamW8bit", 8),
        ("torchao.optim.adam", "AdamW4bit", 4),
        ("torchao.optim.adam", "AdamWFp8", 8),
        ("torchao.optim.adam", "_AdamW", 32),
        ("bitsandbytes.optim.adam", "Adam8bit", 8),
        ("bitsandbytes.optim.adamw", "PagedAdamW8bit", 8),
        ("bitsandbytes.optim.adamw", "AdamW32bit", 32),
    ],
)
def test_the_adams_of_few_bits_are_read_as_a_file_that_names_them(module, name, bits):
    of_torchao = module.startswith("torchao")
    settings = TORCHAO if of_torchao else BITSANDBYTES
    arguments = {} if of_torchao else {"args": types.SimpleNamespace(**ARGUMENTS, optim_bits=bits)}
    found = read(of_package(module, name, settings, **arguments))
    update = updates.by_name(name, module.partition(".")[0])
    assert found == replace(update(settings, parse("0.25")), source=name)
    assert found.outside == ((f"the moments are kept in {bits} bits",) if bits < 32 else ())
    coupled = of_torchao and "W" not in name  # bitsandbytes' Adam runs the kernel of its AdamW
    assert (found.l2 == 0.5, found.decay(1)) == (coupled, 0 if coupled else 0.125)


def test_arguments_of_bitsandbytes_are_of_the_optimizer_and_not_of_its_groups():
    said = {"optim_bits": 8, "percentile_clipping": 5, "max_unorm": 1.0}
    beside = {"args": types.SimpleNamespace(**ARGUMENTS | said), "mng": types.SimpleNamespace(pid2config={1: {}})}
    found = read(of_package("bitsandbytes.optim.adamw", "AdamW", BITSANDBYTES, **beside))
    for phrase, word in zip(found.outside, ("8 bits", "percentile", "norm", "GlobalOptimManager"), strict=True):
        assert word in phrase


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("other.optim", "AdamW", ("other.optim.AdamW", "not torch.optim.AdamW")),
        ("other.optim", "FusedLion", ("other.optim.FusedLion", "by its name", "sign")),
        ("bitsandbytes.optim.lion", "PagedLion8bit", ("sign",)),
        ("bitsandbytes.optim.adagrad", "Adagrad", ("bitsandbytes.optim.adagrad.Adagrad", "not torch.optim.Adagrad")),
        ("torch.optim", "SparseAdam", ("its own t",)),
    ],
)
def test_what_is_refused_has_its_module_and_its_reason(module, name, words):
    with pytest.raises(OptimizerError) as caught:
        read(of_package(module, name, ADAMS | {"lr": 0.1}))
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


def test_a_name_that_is_refused_has_its_reason():
    with pytest.raises(OptimizerError, match="sign of an average"):
        updates.by_name("lion_32bit")


def test_a_schedule_of_its_own_and_a_scheduler_contradict_each_other():
    optimizer = GenericAdam(weights(), lr="0.1/sqrt(t)")
    with pytest.raises(OptimizerError, match="lr follows the optimizer's own schedule"):
        read(optimizer, torch_lr.ExponentialLR(optimizer, 0.9))
    optimizer = GenericAdam(weights(), beta="0.9 * 0.99^t")
    with pytest.raises(OptimizerError, match="beta follows the optimizer's own schedule"):
        read(optimizer, torch_lr.OneCycleLR(optimizer, 0.1, 100))
    assert read(optimizer, torch_lr.ExponentialLR(optimizer, 0.9)).method.beta == parse("0.9 * 0.99^t")


def test_wrong_objects_are_one_line():
    optimizer, other = torch.optim.Adam(weights()), torch.optim.SGD(weights(), lr=0.1)
    cases = [
        ((3,), "expected a torch optimizer, got int"),
        ((optimizer, 3), "expected a torch learning-rate scheduler, got int"),
        ((optimizer, torch_lr.ExponentialLR(other, 0.9)), "ExponentialLR belongs to another optimizer"),
    ]
    for arguments, message in cases:
        with pytest.raises(OptimizerError, match=message) as caught:
            read(*arguments)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_a_pace_that_is_none_is_refused_without_a_scheduler_too(bad):
    optimizer = torch.optim.Adam(weights())
    for subject in (optimizer, [optimizer], Method(0.1, 0.9, 0.999), "nanogpt"):
        with pytest.raises(OptimizerError, match="expected a whole number from 1 on") as caught:
            certify(subject, steps_per_scheduler_step=bad)
        assert "\n" not in str(caught.value)


def test_tensor_rates_and_forgotten_schedulers():
    optimizer = torch.optim.Adam(weights(), lr=torch.tensor(0.5))
    assert read(optimizer).method.alpha(10**6) == pytest.approx(0.5)
    assert not read(optimizer).notes
    torch_lr.StepLR(optimizer, 10)
    assert "read as constant; where a scheduler or a loop moves it" in read(optimizer).notes[-1]


def test_a_loop_that_writes_the_rate_is_a_remark_and_its_function_has_a_way():
    x = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.AdamW([x], lr=6e-4)
    x.grad = torch.ones(1)
    optimizer.step()
    assert not read(optimizer).notes
    optimizer.param_groups[0]["lr"] = 3e-7  # nanoGPT's loop
    optimizer.step()
    assert "read as constant" in read(optimizer).notes[-1]
    with pytest.raises(OptimizerError, match=r"got function; .* LambdaLR\(optimizer, lambda k: rate\(k\) / lr\)"):
        read(optimizer, lambda k: 6e-4 / (k + 1))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.RMSprop])
@pytest.mark.parametrize("cycle", [True, False])
def test_one_cycle_of_the_momentum_of_sgd(kind, cycle):
    optimizer = kind(weights(), lr=0.1, momentum=0.9)
    scheduler = torch_lr.OneCycleLR(optimizer, 0.5, 700, cycle_momentum=cycle)
    found = read(optimizer, scheduler)
    assert found.horizon == 700
    assert not has_callable(found.method.alpha)
    assert ("a scheduler moves the momentum" in found.outside) is cycle
    rates = []
    for _ in range(700):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    np.testing.assert_allclose(found.method.alpha.values(1, 701), rates, rtol=1e-9)


def test_a_method_of_the_model_does_not_bring_its_weights():
    class Heavy(torch.nn.Parameter):
        def __deepcopy__(self, memo):
            raise MemoryError("a copy of the weights")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = Heavy(torch.zeros(3))

        def factor(self, k):
            return 1 / (1 + k)

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    found = read(optimizer, torch_lr.LambdaLR(optimizer, model.factor))
    assert found.method.alpha(100) == pytest.approx(1e-3 * read(optimizer).method.alpha(100) / 0.1, rel=1e-9)


# The column of the documented table: what certifies Adagrad, as torch ships it, beside a scheduler.
BESIDE_ADAGRAD = [
    (lambda o: None, "certified"),
    (torch_lr.ConstantLR, "certified"),
    (lambda o: torch_lr.MultiStepLR(o, [10]), "certified"),
    (lambda o: torch_lr.CosineAnnealingLR(o, 100), "certified"),
    (lambda o: torch_lr.CosineAnnealingWarmRestarts(o, 10), "certified"),
    (lambda o: torch_lr.ExponentialLR(o, 0.9), "not certified"),
    (lambda o: torch_lr.StepLR(o, 10), "not certified"),
    (lambda o: torch_lr.PolynomialLR(o, 100), "not certified"),
]


@pytest.mark.parametrize(("scheduler", "verdict"), BESIDE_ADAGRAD)
@pytest.mark.parametrize("start", [{}, {"initial_accumulator_value": 0.1, "eps": 0}])
def test_adagrad_is_certified_as_the_table_says(scheduler, verdict, start):
    optimizer = torch.optim.Adagrad([torch.nn.Parameter(torch.ones(2))], **start)
    found = certify(optimizer, scheduler(optimizer))
    assert found.verdict == verdict
    if verdict == "certified":
        assert found.theorem == ("zou2019" if start else "E")
    decayed = torch.optim.Adagrad([torch.nn.Parameter(torch.ones(2))], lr_decay=1e-3, **start)
    assert certify(decayed).verdict == "not certified"


class Theirs(torch.optim.SGD):
    """An optimizer of another package that says itself what it runs."""

    def algorithm_of(self, group, lr=None, beta=None):
        return Algorithm(Method(lr or group["lr"], beta or 0.5, 0.75), label="Theirs")


class Silent(Theirs):
    """One that says nothing that can be used."""

    def algorithm_of(self, group, lr=None, beta=None):
        return group["lr"]


def test_any_optimizer_may_say_what_it_runs():
    optimizer = Theirs([torch.nn.Parameter(torch.ones(2))], lr=0.25)
    found = read(optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.5))
    assert (found.method.theta(1), found.label, found.outside) == (0.75, "Theirs", ())
    np.testing.assert_allclose(found.method.alpha.values(1, 12), [0.25] * 10 + [0.125])
    with pytest.raises(OptimizerError):
        read(Silent([torch.nn.Parameter(torch.ones(2))], lr=0.25))


@pytest.mark.parametrize(
    ("dtype", "options", "words"),
    [
        (torch.bfloat16, {"lr": 3e-4, "weight_decay": 0.1}, ["lr x weight decay = 3e-05 is lost in bfloat16 weights"]),
        (torch.bfloat16, {"lr": 0.05, "weight_decay": 0.1}, []),
        (torch.float16, {"lr": 0.05, "weight_decay": 0.1}, ["eps = 1e-08 is 0 in float16"]),
        (torch.float16, {"lr": 0.05, "weight_decay": 0.1, "eps": 1e-7}, []),
        (torch.float32, {"lr": 3e-4, "weight_decay": 0.1}, []),
    ],
)
def test_settings_that_the_weights_round_away_are_noted_and_are(dtype, options, words):
    weights = [torch.nn.Parameter(torch.linspace(-2, 2, 101, dtype=dtype)) for _ in range(2)]
    optimizer = torch.optim.AdamW(weights, **options)
    notes = read(optimizer).notes
    assert [any(one in note for note in notes) for one in words] == [True] * len(words)
    assert len(notes) == len(words)
    before = weights[0].detach().clone()
    for one in weights:
        one.grad = torch.zeros_like(one)
    optimizer.step()
    lost = torch.equal(weights[0], before) or bool(weights[0].isnan().all())
    assert lost is bool(words)
