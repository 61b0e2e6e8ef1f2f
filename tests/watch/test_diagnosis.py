"""A run that fails is named by its cause, and one that does not is left in peace."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from generic_adam.cli import main  # noqa: E402
from generic_adam.setting import Setting  # noqa: E402
from generic_adam.watch import CAUSES, Watch, diagnose  # noqa: E402
from generic_adam.watch.records import Record, read_records  # noqa: E402


def run(make, steps=400, *, clip=None, dtype=torch.float32, out=None, on_event=None, scale=1.0, noise=0.5):
    """Train a small network on a fixed problem; what Watch says of it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(dtype)
    inputs = torch.randn(256, 8, dtype=dtype)
    targets = inputs.sum(1, keepdim=True).sin() + noise * torch.randn(256, 1).to(dtype)
    optimizer = make(model.parameters())
    with Watch(optimizer, out, on_event=on_event, model=model) as watch:
        for _ in range(steps):
            rows = torch.randint(256, (32,))
            optimizer.zero_grad()
            loss = scale * (model(inputs[rows]) - targets[rows]).square().mean()
            loss.backward()
            if clip is not None:
                watch.clip_grad_norm_(clip)
            optimizer.step()
            watch.loss(loss)
    return watch


def adam(lr=1e-3, **options):
    return lambda parameters: torch.optim.Adam(parameters, lr=lr, **options)


@pytest.mark.parametrize(
    "make",
    [
        adam(),
        adam(3e-3, betas=(0.9, 0.95)),
        lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.1),
        lambda p: torch.optim.RMSprop(p, lr=1e-3),
        lambda p: torch.optim.NAdam(p, lr=1e-3),
        lambda p: torch.optim.Adamax(p, lr=1e-3),
    ],
)
def test_a_healthy_run_has_no_finding(make):
    found = run(make, clip=1.0).diagnose()
    assert found.healthy, found.text
    assert found.text == "HEALTHY: nothing was found in steps 1 to 400."


@pytest.mark.parametrize(
    ("cause", "make", "options"),
    [
        ("eps_too_large", adam(eps=10.0), {}),
        ("lost_updates", adam(1e-5), {"dtype": torch.bfloat16}),
        ("clipping", adam(), {"clip": 1e-3}),
        ("beta1_beta2", adam(betas=(0.99, 0.9)), {}),
        ("weight_decay", lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=300.0), {}),
        ("lr_too_large", adam(1.0), {}),
        ("lr_too_small", adam(1e-7), {}),
    ],
)
def test_a_cause_is_named_with_its_evidence(cause, make, options):
    events = []
    watch = run(make, **options, on_event=events.append)
    found = watch.diagnose()
    assert found.findings[0].cause == cause, found.text
    assert not found.healthy
    finding = found.findings[0]
    assert 1 <= finding.since <= 400
    assert finding.evidence
    assert finding.change in str(found)
    assert cause in {event.cause for event in events}
    if finding.tensor:
        assert finding.tensor in {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_a_step_that_is_not_the_stated_one_is_noticed():
    class Doubled(torch.optim.Adam):
        pass

    def make(parameters):
        optimizer = torch.optim.Adam(parameters, lr=1e-3)
        plain = optimizer.step.__wrapped__ if hasattr(optimizer.step, "__wrapped__") else None
        assert plain is not None
        return optimizer

    torch.manual_seed(0)
    x = torch.nn.Parameter(torch.randn(50))
    optimizer = make([x])
    with Watch(optimizer) as watch:
        for _ in range(100):
            x.grad = x.detach() + torch.randn(50)
            optimizer.param_groups[0]["lr"] = 1e-3
            optimizer.step()
    assert watch.diagnose().healthy
    x = torch.nn.Parameter(torch.randn(50))
    optimizer = make([x])
    # Somebody changes the rate after the step was begun and puts it back before it is looked at.
    before = optimizer.register_step_pre_hook(lambda o, *_: o.param_groups[0].update(lr=2e-3))
    after = optimizer.register_step_post_hook(lambda o, *_: o.param_groups[0].update(lr=1e-3))
    with Watch(optimizer) as watch:
        for _ in range(100):
            x.grad = x.detach() + torch.randn(50)
            optimizer.step()
    before.remove()
    after.remove()
    finding = watch.diagnose().findings[0]
    assert finding.cause == "wrong_optimizer"
    assert finding.evidence["wrong"] == pytest.approx(1.0, rel=1e-3)


def test_the_command_says_the_same_from_the_directory(tmp_path, capsys):
    watch = run(adam(eps=10.0), out=tmp_path / "run")
    found, again = watch.diagnose(), diagnose(read_records(tmp_path / "run" / "watch.csv"))
    assert again.text == found.text
    assert again.findings[0].algorithm is None  # the options are known to the watch, and to what it saved
    assert found.findings[0].algorithm.eps(1000) < 0.01 * 10
    assert main(["diagnose", str(tmp_path / "run"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["cause"] == "eps_too_large"
    known = Setting.load(tmp_path / "run" / "watch.json")
    assert known.facts["weights_bound"].steps == (1, 400)
    run(adam(), out=tmp_path / "good")
    assert main(["diagnose", str(tmp_path / "good")]) == 0
    assert "HEALTHY" in capsys.readouterr().out
    assert main(["diagnose", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    run(adam(), steps=20, out=tmp_path / "short")
    assert main(["diagnose", str(tmp_path / "short")]) == 3


def test_what_a_run_measured_goes_into_its_certificate(tmp_path, capsys):
    watch = run(lambda p: torch.optim.AdamW(p, lr=1e-3, betas=(0.9, 0.95)), out=tmp_path / "run", clip=1.0)
    facts = watch.setting().facts
    assert watch.setting().dimension == 8 * 32 + 32 + 32 + 1
    assert facts["gap"].steps == (1, 25)
    assert 0 < facts["gap"].error < facts["gap"].value
    assert facts["gradient_bound"].error < facts["gradient_bound"].value < facts["gradient_norm"].value
    options = ["--lr", "1e-3", "--betas", "0.9,0.95", "--weight-decay", "0.01", "--steps", "1e5"]
    main(["check", *options, "--run", str(tmp_path / "run")])
    assert "the largest seen in steps 1 to 400" in capsys.readouterr().out
    main(["check", *options, "--run", str(tmp_path / "run"), "--weights-bound", "7"])
    assert "within 7" in capsys.readouterr().out
    assert main(["check", *options, "--run", str(tmp_path / "none")]) == 2


def test_a_page_shows_the_run_and_stands_alone(tmp_path, capsys):
    run(adam(eps=10.0), out=tmp_path / "run")
    page = tmp_path / "page.html"
    assert main(["diagnose", str(tmp_path / "run"), "--html", str(page)]) == 1
    capsys.readouterr()
    text = page.read_text()
    assert "eps_too_large" in text
    assert text.count("<svg") == 2  # the loss and the instruments; no budget without a probe
    assert "src=" not in text
    (tmp_path / "run" / "watch.json").write_text("[1")
    assert main(["diagnose", str(tmp_path / "run")]) == 2
    assert "watch.json" in capsys.readouterr().err


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_a_page(cause):
    text = (Path(__file__).parents[2] / "docs" / "causes" / f"{cause}.md").read_text()
    assert text.count("\n## ") == 5


def test_a_step_that_calls_its_parents_is_one_step():
    class Counted(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    watch = run(lambda p: Counted(p, lr=1e-3), steps=100)
    assert [record.step for record in watch.records] == [25, 50, 75, 100]
    assert watch.diagnose().healthy


def test_what_a_class_does_after_its_parents_step_is_a_part_of_its_step():
    class Uphill(torch.optim.Adam):
        @torch.no_grad()
        def step(self, closure=None):
            before = [p.clone() for p in self.param_groups[0]["params"]]
            super().step(closure)
            for p, was in zip(self.param_groups[0]["params"], before, strict=True):
                p.copy_(2 * was - p)

    first = run(lambda p: Uphill(p, lr=1e-3), steps=50).diagnose().findings[0]
    assert (first.cause, first.since) == ("wrong_optimizer", 1)
    assert first.evidence["wrong_ratio"] == pytest.approx(-1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (lambda state: state["exp_avg_sq"].mul_(1e6), "wrong_optimizer"),
        (lambda state: state["exp_avg_sq"].zero_(), "wrong_optimizer"),
        (lambda state: state["step"].zero_(), "wrong_optimizer"),
    ],
)
def test_a_state_that_is_tampered_with_between_two_records_is_noticed(fault, cause):
    class Faulty(torch.optim.AdamW):
        count = 0

        def step(self, closure=None):
            self.count += 1
            if self.count == 137:
                for state in self.state.values():
                    fault(state)
            return super().step(closure)

    found = run(lambda p: Faulty(p, lr=1e-3), steps=200).diagnose()
    assert found.findings[0].cause == cause
    assert 126 <= found.findings[0].since <= 151


def test_a_decay_in_the_gradient_is_weighed_too():
    assert run(adam(weight_decay=3.0)).diagnose().findings[0].cause == "weight_decay"
    assert run(adam(weight_decay=1e-3)).diagnose().healthy


def test_a_killed_run_is_readable(tmp_path):
    run(adam(), out=tmp_path / "run")
    path = tmp_path / "run" / "watch.csv"
    text = path.read_text()
    path.write_text(text[: text.rindex("\n", 0, -1) + 40])
    assert read_records(path)[-1].step == 375


def test_a_resumed_run_goes_on_in_the_same_records(tmp_path):
    x = torch.nn.Parameter(torch.randn(50))

    def train(optimizer, steps):
        with Watch(optimizer, tmp_path / "run") as watch:
            for _ in range(steps):
                x.grad = x.detach() + torch.randn(50)
                optimizer.step()
                watch.loss(1.0)

    first = torch.optim.Adam([x])
    train(first, 100)
    saved = first.state_dict()
    train(first, 60)  # goes on, and is killed; what it wrote after the checkpoint is replaced
    second = torch.optim.Adam([x])
    second.load_state_dict(saved)
    second.state[x]["step"].fill_(100)
    train(second, 75)
    steps = [record.step for record in read_records(tmp_path / "run" / "watch.csv")]
    assert steps == [25, 50, 75, 100, 125, 150, 175]


def test_a_rate_that_is_raised_at_once_comes_before_what_it_brings_about():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    inputs = torch.randn(512, 10)
    targets = 2 * inputs[:, :1] + inputs[:, 1:2] ** 2
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with Watch(optimizer, model=model) as watch:
        for step in range(600):
            if step == 300:
                optimizer.param_groups[0]["lr"] = 1.0
            rows = torch.randint(512, (64,))
            optimizer.zero_grad()
            loss = (model(inputs[rows]) - targets[rows]).square().mean()
            loss.backward()
            optimizer.step()
            watch.loss(loss)
    first = watch.diagnose().findings[0]
    assert (first.cause, first.since) == ("lr_too_large", 301)
    assert first.evidence == pytest.approx({"lr": 1.0, "lr_before": 1e-3})
    assert "raised" in first.title


def calm(count=16, **changed):
    """Return records of a run that learns nothing special; columns of the eleventh are others."""
    usual = {"lr": 1e-3, "alpha": 1e-3, "beta": 0.9, "theta": 0.999, "loss": 1.0, "loss_low": 0.9, "loss_high": 1.1}
    usual |= {"gradient": 1.0, "typical": 0.3, "stale": 1.0, "stale_update": 0.3}
    columns = [usual | (changed if k == 10 else {}) for k in range(count)]
    return [Record(step=25 * k + 25, first=25 * k + 1, **one) for k, one in enumerate(columns)]


def test_gradients_that_outgrow_the_second_moment_need_to_do_harm():
    grown = {"stale": 6.0, "stale_update": 2.0}
    assert diagnose(calm(**grown)).healthy
    (found,) = diagnose(calm(**grown, loss=1.2, loss_high=2.0)).findings
    assert found.cause == "stale_second_moment"


def test_updates_that_shrink_at_once_are_from_a_second_moment_in_other_units():
    (found,) = diagnose(calm(11, typical=1e-5)).findings
    assert (found.cause, found.since, dict(found.evidence)) == ("wrong_optimizer", 251, {"typical": 1e-5})
    assert diagnose(calm(11, typical=1e-5, gradient=1e-3)).healthy


def test_steps_grow_in_free_fall_only_while_alpha_does_not_fall():
    def falling(alpha):
        records = [replace(one, falling=1.0, edge=0.9, alpha=alpha(k + 1)) for k, one in enumerate(calm(40))]
        return [replace(one, loss=3.0, loss_high=3.3) if k > 20 else one for k, one in enumerate(records)]

    assert "free_fall" in [one.cause for one in diagnose(falling(lambda _: 1e-3)).findings]
    assert "free_fall" not in [one.cause for one in diagnose(falling(lambda k: 1e-3 / k)).findings]


def test_a_schedule_may_end_at_0_with_a_high_loss():
    def slow(last):
        return [
            replace(one, path=1e-3 if k >= 16 - last else 0.05, straight=0.9, lr=1e-6 if k >= 16 - last else 1e-3)
            for k, one in enumerate(calm())
        ]

    assert diagnose(slow(3)).healthy
    assert [one.cause for one in diagnose(slow(10)).findings] == ["lr_too_small"]


def test_what_did_not_keep_the_loss_from_falling_is_no_skewed_noise():
    skewed = [replace(one, skew=0.8, skew_scale=0.5) for one in calm(24)]
    assert [one.cause for one in diagnose(skewed).findings] == ["skewed_noise"]
    learnt = [replace(one, loss=one.loss - 0.05 * k) for k, one in enumerate(skewed)]
    assert diagnose(learnt).healthy
