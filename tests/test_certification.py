"""`certify`, `bound` and `advise` for a method, a live optimizer with its scheduler, and what else there is."""

import json
from functools import partial

import pytest
import torch
from torch.optim import lr_scheduler as torch_lr

import generic_adam as ga
from generic_adam.answers.json import summary
from generic_adam.cli import main
from generic_adam.errors import GenericAdamError
from generic_adam.theorems.certificate import Certificate
from generic_adam.torch import GenericAdam, ScheduleLR


def weights():
    return [torch.zeros(2, requires_grad=True)]


def adam(**options):
    return torch.optim.Adam(weights(), **options)


def test_a_method_gets_a_plain_certificate():
    method = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
    for certificate in (ga.certify(method), ga.certify(method, 100), ga.certify(method, horizon=100)):
        assert isinstance(certificate, Certificate)
        assert certificate.verdict == "certified"
    assert ga.certify(method, 100).horizon.steps == 100
    assert len(ga.certify(method)["zou2019"].conditions) == 4


def test_a_problem_adds_the_smallest_bound():
    method = ga.Method(alpha="1e-3/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
    problem = ga.Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
    reading = ga.certify(method, horizon=1000, setting=problem).horizon
    assert reading.bound == ga.bound(method, problem, 1000)
    assert reading.bound.constants["X_w"] <= 63.9218639441


def test_a_recipe_is_known_by_its_name():
    certificate = ga.certify("transformer")
    assert certificate.verdict == "not certified"
    assert certificate.horizon.steps == 100_000


def test_plain_adam_is_read_as_the_catalogue_has_it():
    certificate = ga.certify(adam(lr=0.01))
    assert certificate.method == ga.methods.adam(lr=0.01)
    assert certificate.verdict == "not certified"


SCHEDULERS = {
    "ConstantLR": torch_lr.ConstantLR,
    "LinearLR": torch_lr.LinearLR,
    "MultiStepLR": lambda o: torch_lr.MultiStepLR(o, [10, 20]),
    "CosineAnnealingLR": lambda o: torch_lr.CosineAnnealingLR(o, 50, 1e-5),
    "CyclicLR": lambda o: torch_lr.CyclicLR(o, 1e-3, 1e-2, 50, cycle_momentum=False),
    "ExponentialLR": lambda o: torch_lr.ExponentialLR(o, 0.99),
    "PolynomialLR": lambda o: torch_lr.PolynomialLR(o, 50),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_constant_theta_is_not_certified_with_any_scheduler(name):
    optimizer = adam()
    assert ga.certify(optimizer, SCHEDULERS[name](optimizer)).verdict == "not certified"


def test_the_repair_by_a_schedule_is_certified():
    optimizer = GenericAdam(weights(), lr=1.0, theta="max(0.999, 1 - 1/t)")
    certificate = ga.certify(optimizer, ScheduleLR(optimizer, "0.001 * min(1, sqrt(1000/t))"))
    assert certificate.verdict == "certified"
    assert str(certificate.rate) == "T^(-1/2) log T"


def test_one_cycle_brings_its_own_horizon():
    optimizer = adam()
    scheduler = torch_lr.OneCycleLR(optimizer, 0.1, 500)
    assert ga.certify(optimizer, scheduler).horizon.steps == 500
    assert ga.certify(optimizer, scheduler, 200).horizon.steps == 200


def test_the_worst_group_decides():
    rising = {"lr": "0.1/sqrt(t)", "theta": "1 - 1/max(t, 2)"}
    optimizer = GenericAdam(
        [
            {"params": weights(), **rising},
            {"params": weights(), "lr": lambda t: 0.1 / t**0.5, "theta": "1 - 1/max(t, 2)"},
            {"params": weights(), **rising},
        ]
    )
    certificate = ga.certify(optimizer)
    assert [(part.algorithm.groups, str(part.verdict)) for part in certificate.parts] == [
        ((0, 2), "certified"),
        ((1,), "undecided"),
    ]
    assert certificate.verdict == "undecided"
    optimizer.add_param_group({"params": weights(), "lr": 0.1, "theta": 0.9})
    worst = ga.certify(optimizer)
    assert (worst.verdict, worst.algorithm.groups) == ("not certified", (3,))


def test_words_and_plain_types():
    optimizer = torch.optim.AdamW([{"params": weights()}, {"params": weights(), "lr": 0.1}], amsgrad=True)
    certificate = ga.certify(optimizer, horizon=100)
    assert "running maximum" in certificate.explain()
    entry = certificate.to_dict()
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry
    assert len(entry["parts"]) == 2


def test_advice_for_an_optimizer():
    first, *_ = ga.advise(adam(), keep=2_000)
    assert first.first_step == 2_001
    assert first.certificate.verdict == "certified"
    assert first.certificate.theorem == "E"
    decayed = [{"params": weights()}, {"params": weights(), "weight_decay": 0.0}]
    assert ga.advise(torch.optim.AdamW(decayed, weight_decay=0.1), keep=2_000)


def test_what_people_ship_is_covered():
    for build in (torch.optim.Adam, torch.optim.NAdam, torch.optim.RMSprop, torch.optim.Adagrad):
        optimizer = build(weights())
        certificate = ga.certify(optimizer, horizon=1_000)
        assert certificate["E"].covers, build
        assert certificate.horizon.noise is not None
    assert ga.certify(torch.optim.Adagrad(weights())).verdict == "certified"


def test_pairs_configurations_and_wrong_things():
    optimizer = adam()
    scheduler = torch_lr.ExponentialLR(optimizer, 0.99)
    direct = ga.certify(optimizer, scheduler, steps_per_scheduler_step=5)
    assert ga.certify((optimizer, scheduler), steps_per_scheduler_step=5) == direct
    assert ga.certify((optimizer, None)) == ga.certify(optimizer)
    configuration = {"optimizer": optimizer, "lr_scheduler": scheduler}
    assert ga.certify(configuration, steps_per_scheduler_step=5) == direct
    for wrong in (3, "adem", None, [], {}, object()):
        with pytest.raises(ValueError, match=r"cannot read a|no method or recipe is called") as caught:
            ga.certify(wrong)
        assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="unexpected keyword argument 'horizn'"):
        ga.certify(optimizer, horizn=3)


class Hostile:
    """Answers with an exception of two lines, also where it is to be quoted."""

    def __getattr__(self, name):
        raise RuntimeError(f"no\n{name}")

    def __repr__(self):
        raise RuntimeError("no text")


STRANGE = {
    "a class": int,
    "an object": object(),
    "an empty list in a list": [[]],
    "several numbers": torch.ones(2),
    "a text": "x",
    "an optimizer, whose text has lines": {"optimizer": adam()},
    "one that raises": Hostile(),
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
def test_whatever_is_handed_over_is_answered_or_refused_in_one_line(strange):
    plain = ga.methods.adam()
    questions = [partial(ga.certify, strange), partial(ga.certify, adam(), strange)]
    questions += [
        partial(ga.certify, plain, **{name: strange})
        for name in ("horizon", "setting", "theorem", "budget", "steps_per_scheduler_step")
    ]
    questions += [partial(ga.bound, plain, strange, 10), partial(ga.advise, plain, keep=strange)]
    for name in (*adam().param_groups[0], None):
        optimizer = adam()
        if name is None:
            optimizer.param_groups = strange
        elif name != "params":
            optimizer.param_groups[0][name] = strange
        questions.append(partial(ga.certify, optimizer))
    for make in (torch_lr.ReduceLROnPlateau, lambda one: torch_lr.StepLR(one, 3)):
        for name in vars(make(adam())):
            optimizer = adam()
            scheduler = make(optimizer)
            setattr(scheduler, name, strange)
            questions.append(partial(ga.certify, optimizer, scheduler))
    for ask in questions:
        try:
            ask()
        except GenericAdamError as refusal:
            assert "\n" not in str(refusal)  # noqa: PT017 - it may be answered as well


@pytest.mark.parametrize("data", [{}, {"algorithm": 3}, {"parts": [3]}, {"parts": [{}], "horizon": {}}, {"horizon": 1}])
def test_a_damaged_certificate_is_refused_in_one_line(data):
    with pytest.raises(GenericAdamError):
        Certificate.from_dict(data)


@pytest.mark.parametrize("words", [["nanogpt"], ["llama", "--steps", "20000"], ["adam", "--steps", "20000"]], ids=str)
def test_python_and_the_command_say_the_same_of_a_name(words, capsys):
    main(["check", *words, "--json"])
    told = json.loads(capsys.readouterr().out)
    horizon = int(words[-1]) if len(words) > 1 else None
    certificate = ga.certify(words[0], horizon=horizon)
    assert summary(certificate)["assumed"] == told["assumed"]
    assert told["assumed"]["loss"] == ("fixed" if words[0] == "adam" else "supervised")
    assert (summary(certificate)["answer"], summary(certificate)["run"]) == (told["answer"], told["run"])


def test_a_comparison_assumes_of_a_recipe_what_its_certificate_does():
    assert ga.compare("nanogpt", "nanogpt").after["assumed"] == summary(ga.certify("nanogpt"))["assumed"]
