"""`certify` for a method, a live optimizer with its scheduler, and what else a training script has."""

import json
import math

import pytest
import torch
from torch.optim import lr_scheduler as torch_lr

import generic_adam as ga
from generic_adam.errors import OptimizerError
from generic_adam.theorems.certificate import Certificate
from generic_adam.torch import GenericAdam, ScheduleLR

# Algorithm 1 of the paper, where GenericAdam by itself starts as torch's Adam.
AS_THE_PAPER = {"initial_v": 1e-8, "eps": 1e-16, "bias_correction": False}


def weights():
    return [torch.zeros(2, requires_grad=True)]


def adam(**options):
    return torch.optim.Adam(weights(), **options)


def adagrad():
    return torch.optim.Adagrad(weights(), initial_accumulator_value=0.1)


def statuses(certificate):
    return [str(condition.status) for condition in certificate.conditions]


def test_a_method_gets_a_plain_certificate():
    method = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
    for certificate in (
        ga.certify(method),
        ga.certify(method, 100),
        ga.certify(method, horizon=100, problem=None),
    ):
        assert isinstance(certificate, Certificate)
        assert certificate.verdict == "certified"
    assert ga.certify(method, 100).horizon.steps == 100


def test_plain_adam_is_read_as_the_catalogue_has_it():
    certificate = ga.certify(adam(lr=0.01))
    assert certificate[0].reading.method == ga.methods.adam(lr=0.01)
    assert certificate.verdict == "not certified"
    assert statuses(certificate[0].certificate) == ["holds", "holds", "holds", "fails"]
    assert certificate[0].certificate.conditions[3].witness == "ratio -> 0.03162"


# scheduler -> conditions that fail with constant theta, and with Adagrad (theta_t = 1 - 1/(t+1), alpha_t =
# lr_t/sqrt(t+1)). Worked out by hand: a rate that stays between two positive constants keeps Adagrad
# certified and leaves Adam's ratio above a floor; a geometric one makes T alpha_T vanish; a rate of 0
# violates chi_t > 0.
DECIDED = {
    "ConstantLR": (torch_lr.ConstantLR, {4}, set()),
    "LinearLR": (torch_lr.LinearLR, {4}, set()),
    "MultiStepLR": (lambda o: torch_lr.MultiStepLR(o, [10, 20]), {4}, set()),
    "CosineAnnealingLR": (lambda o: torch_lr.CosineAnnealingLR(o, 50, 1e-5), {4}, set()),
    "CosineAnnealingWarmRestarts": (lambda o: torch_lr.CosineAnnealingWarmRestarts(o, 50), {4}, set()),
    "growing restarts": (lambda o: torch_lr.CosineAnnealingWarmRestarts(o, 50, 2, 1e-5), {4}, set()),
    "CyclicLR": (lambda o: torch_lr.CyclicLR(o, 1e-3, 1e-2, 50, cycle_momentum=False), {4}, set()),
    "ReduceLROnPlateau": (torch_lr.ReduceLROnPlateau, {4}, set()),
    "ExponentialLR": (lambda o: torch_lr.ExponentialLR(o, 0.99), {4}, {4}),
    "StepLR": (lambda o: torch_lr.StepLR(o, 30), {4}, {4}),
    "cosine to 0": (lambda o: torch_lr.CosineAnnealingLR(o, 50), {3}, {3}),
    "PolynomialLR": (lambda o: torch_lr.PolynomialLR(o, 50), {3, 4}, {3, 4}),
}


@pytest.mark.parametrize("name", DECIDED)
def test_every_scheduler_is_decided_for_ever(name):
    build, with_adam, with_adagrad = DECIDED[name]
    for optimizer, expected in ((adam(), with_adam), (adagrad(), with_adagrad)):
        (part,) = ga.certify(optimizer, build(optimizer))
        failing = {c.number for c in part.certificate.conditions if c.status == "fails"}
        assert failing == expected
        assert part.verdict == ("not certified" if expected else "certified")


def test_the_repair_by_a_schedule_is_certified():
    optimizer = GenericAdam(weights(), lr=1.0, theta="max(0.999, 1 - 1/t)", **AS_THE_PAPER)
    certificate = ga.certify(optimizer, ScheduleLR(optimizer, "0.001 * min(1, sqrt(1000/t))"))
    assert certificate.verdict == "certified"
    assert str(certificate[0].certificate.rate) == "T^(-1/2) log T"
    assert pytest.approx(1) == certificate[0].certificate.C0


def test_one_cycle_brings_its_own_horizon():
    optimizer = adam()
    scheduler = torch_lr.OneCycleLR(optimizer, 0.1, 500)
    (part,) = ga.certify(optimizer, scheduler)
    assert part.certificate.horizon.steps == 500
    assert part.certificate.horizon.bound_applies
    assert ga.certify(optimizer, scheduler, 200)[0].certificate.horizon.steps == 200


class Unknown(torch_lr.LRScheduler):
    def get_lr(self):
        return [base / math.sqrt(1 + self.last_epoch) for base in self.base_lrs]


def test_an_unknown_scheduler_is_undecided_with_evidence():
    optimizer = torch.optim.Adagrad(weights())
    certificate = ga.certify(optimizer, Unknown(optimizer), horizon=1_000)
    assert certificate.verdict == "undecided"
    (part,) = certificate
    assert statuses(part.certificate) == ["holds", "holds", "undecided", "undecided"]
    assert part.certificate.horizon.steps == 1_000
    # lr_t = 0.01/sqrt(t), so the ratio at T is the one of the method written out.
    known = ga.Method("0.01 / sqrt(t) / sqrt(t + 1)", 0, "1 - 1/(t + 1)")
    evidence = part.certificate.horizon.ratios[-1]
    assert evidence[0] == 1_000
    assert evidence[1] == pytest.approx(ga.theorems.sums.ratio(known, 1_000), rel=1e-9)


def test_what_the_theorem_does_not_cover_is_at_best_undecided():
    certificate = ga.certify(torch.optim.Adagrad(weights()))  # v_0 = 0: the bound's logarithm is infinite
    assert certificate[0].certificate.verdict == "certified"
    assert certificate.verdict == "undecided"
    assert certificate.to_dict()["verdict"] == "undecided"
    assert "verdict on the optimizer: undecided" in certificate.explain()
    decayed = GenericAdam(
        weights(), lr="0.1/sqrt(t)", theta="1 - 1/max(t, 2)", weight_decay=0.1, **AS_THE_PAPER
    )
    assert ga.certify(decayed).verdict == "undecided"
    assert ga.certify(adam()).verdict == "not certified"


def test_the_worst_group_decides():
    optimizer = GenericAdam(
        [
            {"params": weights(), "lr": "0.1/sqrt(t)", "theta": "1 - 1/max(t, 2)"},
            {"params": weights(), "lr": lambda t: 0.1 / t**0.5, "theta": "1 - 1/max(t, 2)"},
            {"params": weights(), "lr": "0.1/sqrt(t)", "theta": "1 - 1/max(t, 2)"},
        ],
        **AS_THE_PAPER,
    )
    certificate = ga.certify(optimizer)
    assert [(part.reading.groups, str(part.verdict)) for part in certificate] == [
        ((0, 2), "certified"),
        ((1,), "undecided"),
    ]
    assert certificate.verdict == "undecided"
    optimizer.add_param_group({"params": weights(), "lr": 0.1, "theta": 0.9})
    assert ga.certify(optimizer).verdict == "not certified"
    assert ga.certify(optimizer).worst.reading.groups == (3,)


def test_words_and_plain_types():
    optimizer = torch.optim.AdamW([{"params": weights()}, {"params": weights(), "lr": 0.1}], amsgrad=True)
    certificate = ga.certify(optimizer, horizon=100)
    text = certificate.explain()
    assert "AdamW, parameter group 0" in text
    assert "not covered: v_t is replaced by its running maximum" in text
    entry = certificate.to_dict()
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry
    assert {"verdict", "rate", "rate_exponents", "C0", "conditions", "method", "parts"} <= set(entry)
    assert len(entry["parts"]) == len(certificate) == 2
    assert entry["parts"][1]["groups"] == [1]


def test_pairs_configurations_and_wrong_things():
    optimizer = adam()
    scheduler = torch_lr.ExponentialLR(optimizer, 0.99)
    direct = ga.certify(optimizer, scheduler, steps_per_scheduler_step=5)
    assert ga.certify((optimizer, scheduler), steps_per_scheduler_step=5) == direct
    assert ga.certify((optimizer, None)) == ga.certify(optimizer)
    configuration = {"optimizer": optimizer, "lr_scheduler": scheduler}
    assert ga.certify(configuration, steps_per_scheduler_step=5) == direct
    with pytest.raises(OptimizerError, match="steps in an epoch"):
        ga.certify(configuration)
    for wrong in (3, "adam", None, [], {}, object()):
        with pytest.raises(OptimizerError, match="cannot read a") as caught:
            ga.certify(wrong)
        assert "\n" not in str(caught.value)
    with pytest.raises(OptimizerError, match="a scheduler goes with a torch optimizer"):
        ga.certify(configuration, scheduler)
    with pytest.raises(TypeError, match="unexpected keyword argument 'horizn'"):
        ga.certify(optimizer, horizn=3)
