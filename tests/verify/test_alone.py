"""The optimizer alone: torch's own agree in every implementation, and named changes of them are found and named."""

import math

import pytest

import generic_adam as ga

torch = pytest.importorskip("torch")


def parameters(*shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    made = [0.1 * torch.randn(shape, generator=generator) for shape in shapes or ((8, 16), (16,), (5, 3), (1,))]
    return [torch.nn.Parameter(one.to(dtype)) for one in made]


RIGHT = [
    *[
        (kind, options)
        for kind in ("Adam", "AdamW")
        for options in (
            {},
            {"foreach": True},
            {"foreach": False},
            {"fused": True},
            {"amsgrad": True},
            {"weight_decay": 0.1, "fused": True},
            {"maximize": True},
            {"betas": (0.9, 0.95), "eps": 1e-5},
            {"lr": torch.tensor(1e-3), "foreach": False},
        )
    ],
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
]


@pytest.mark.parametrize(("kind", "options"), RIGHT, ids=str)
def test_torch_does_what_its_groups_say(kind, options):
    v = ga.verify(getattr(torch.optim, kind)(parameters(), **options))
    assert v.agrees is True, str(v)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_every_format_of_weights(dtype):
    v = ga.verify(torch.optim.AdamW(parameters(dtype=dtype)))
    assert v.agrees is True, str(v)


def test_ours_does_what_it_says_and_what_is_claimed():
    from generic_adam.torch import GenericAdam

    assert ga.verify(GenericAdam(parameters(), lr=1e-3)).agrees
    assert ga.verify(GenericAdam(parameters(), lr=1e-3), claim="Adam").agrees


class Written(torch.optim.Optimizer):
    """An AdamW as people write it, with one thing changed."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1, wrong=""):
        self.wrong = wrong
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None or (self.wrong == "missing" and self.state[p]):
                    self._one(p, group)

    @torch.no_grad()
    def _one(self, p, group):
        wrong, (b1, b2), state = self.wrong, group["betas"], self.state[p]
        g = torch.zeros_like(p) if p.grad is None else p.grad
        if not state:
            state.update(step=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["step"] += 1
        lr, eps, decay = group["lr"], group["eps"], group["weight_decay"]
        if wrong == "coupled":
            g = g + decay * p
        elif wrong == "not times lr":
            p.mul_(1 - decay)
        elif wrong != "no decay":
            p.mul_(1 - lr * decay)
        if wrong == "sign":
            g = -g
        state["m"].mul_(b1).add_(g, alpha=1.0 if wrong == "sum" else 1 - b1)
        state["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
        at = {"frozen": 1, "late": state["step"] + 1}.get(wrong, state["step"])
        c1, c2 = (1.0, 1.0) if wrong == "uncorrected" else (1 - b1**at, 1 - b2**at)
        if wrong == "hat":
            p.addcdiv_(state["m"], state["v"].sqrt() + eps, value=-lr * math.sqrt(c2) / c1)
        elif wrong == "root":
            p.addcdiv_(state["m"] / c1, (state["v"] / c2 + eps).sqrt(), value=-lr)
        else:
            rate = 2 * lr if wrong == "rate" else lr
            p.addcdiv_(state["m"] / c1, (state["v"] / c2).sqrt() + eps, value=-rate)


CLAIM = {"algorithm": "AdamW", "weight_decay": 0.1}
WRONG = {
    "coupled": "weight decay",
    "not times lr": "weight decay",
    "no decay": "weight decay",
    "sign": "sign",
    "sum": "momentum",
    "frozen": "step counter",
    "late": "step counter",
    "uncorrected": "bias correction",
    "hat": "epsilon",
    "root": "epsilon",
    "rate": "learning rate",
    "missing": "missing gradients",
}


def test_what_is_written_right_agrees():
    v = ga.verify(Written(parameters()), claim=CLAIM)
    assert v.agrees is True, str(v)
    assert not v.differences
    assert "AdamW(" in v.claimed


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_changed_is_named(wrong):
    v = ga.verify(Written(parameters(), wrong=wrong), claim=CLAIM)
    assert v.agrees is False
    assert [one.category for one in v.differences] == [WRONG[wrong]], str(v)
    assert v.differences[0].explained
    assert v.differences[0].since >= 1
    assert v.differences[0].text in str(v)


@pytest.mark.parametrize(
    ("claim", "category"),
    [
        ({"lr": 3e-4}, "learning rate"),
        ({"betas": (0.9, 0.95)}, "betas"),
        ({"eps": 1e-5}, "epsilon"),
        ({"weight_decay": 0.1}, "weight decay"),
        ({"lr": "1e-3 * t"}, "schedule"),
        ({"amsgrad": True}, "second moment"),
    ],
    ids=str,
)
def test_settings_that_are_not_the_claimed_ones(claim, category):
    v = ga.verify(torch.optim.Adam(parameters()), claim=claim)
    assert [one.category for one in v.differences] == [category], str(v)


def test_an_unknown_class_is_identified_by_its_steps():
    v = ga.verify(Written(parameters()))
    assert v.agrees
    assert v.identified[0] == "AdamW"
    unknown = ga.verify(torch.optim.Rprop(parameters()))
    assert unknown.agrees is None
    assert not unknown.identified


def test_an_unknown_class_that_is_nearly_known_is_said_to_be_so():
    v = ga.verify(Written(parameters(), wrong="root"))
    assert v.agrees is None
    assert v.identified == ("AdamW, except: eps is added under the root",)


def test_nothing_that_was_handed_over_is_moved():
    weights = parameters()
    optimizer = torch.optim.AdamW(weights)
    for one in weights:
        one.grad = torch.ones_like(one)
    optimizer.step()
    before = [one.detach().clone() for one in weights]
    moments = [optimizer.state[one]["exp_avg"].clone() for one in weights]
    random = torch.get_rng_state()
    assert ga.verify(optimizer).agrees
    assert all(torch.equal(one, was) for one, was in zip(weights, before, strict=True))
    assert all(torch.equal(optimizer.state[one]["exp_avg"], was) for one, was in zip(weights, moments, strict=True))
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"learning_rate": 1e-3}, "no key"),
        ({"algorithm": "Adan"}, "did you mean 'Adam'"),
        ({"eps_place": "middle"}, "expected one of"),
        ({"horizon": 0}, "whole number"),
        (3, "expected a name"),
        ({"lr": "1e-3 * q"}, "claim: lr: column 8"),
    ],
    ids=str,
)
def test_a_claim_that_cannot_be_read_is_one_line(claim, said):
    with pytest.raises(ga.GenericAdamError, match=said) as caught:
        ga.verify(torch.optim.Adam(parameters()), claim=claim)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_driven_is_one_line():
    class Refuses(torch.optim.SGD):
        def step(self, closure=None):
            raise RuntimeError("no gradients\nare wanted")

    with pytest.raises(ga.GenericAdamError, match="step 1 raised RuntimeError: no gradients are wanted"):
        ga.verify(Refuses(parameters(), lr=0.1))


def test_a_scheduler_is_copied_with_its_optimizer_and_read_as_claimed():
    optimizer = torch.optim.AdamW(parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / 30))
    claim = {"algorithm": "AdamW", "weight_decay": 0.01, "lr": lambda t: 1e-3 * min(1.0, t / 30)}
    v = ga.verify(optimizer, scheduler, claim)
    assert v.agrees, str(v)
    assert scheduler.last_epoch == 0
    assert any("torch.save" in one for one in v.looked_at)
    late = ga.verify(optimizer, scheduler, claim | {"lr": lambda t: 1e-3 * min(1.0, t / 120)})
    assert [one.category for one in late.differences] == ["schedule"]
    assert "4 times too fast" in str(late)
