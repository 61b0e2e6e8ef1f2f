"""Trainer's arguments against the real transformers, and a real Trainer that trains with GenericAdam."""

import inspect
import json
import os
import types
from fractions import Fraction

import numpy as np
import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")

from generic_adam import Setting, bound, certify  # noqa: E402
from generic_adam.adapters.plain import read_trainer  # noqa: E402
from generic_adam.adapters.schedulers import TRANSFORMERS  # noqa: E402
from generic_adam.adapters.torch import read  # noqa: E402
from generic_adam.answers.json import summary  # noqa: E402
from generic_adam.cli import main  # noqa: E402
from generic_adam.errors import OptimizerError  # noqa: E402
from generic_adam.methods import Clipping, HeavyBall, Method, adam  # noqa: E402
from generic_adam.schedules import Opaque  # noqa: E402
from generic_adam.torch import GenericAdam, ScheduleLR, Watch  # noqa: E402

TOTAL, WARM_UP, BASE = 700, 90, 3e-4

SHAPES = {
    "constant": {},
    "constant_with_warmup": {},
    "linear": {},
    "cosine": {},
    "cosine_with_restarts": {"num_cycles": 3},
    "polynomial": {"power": 2.0, "lr_end": 1e-6},
    "inverse_sqrt": {},
    "cosine_with_min_lr": {"min_lr": 3e-5},
    "cosine_warmup_with_min_lr": {"min_lr_rate": 0.1, "warmup_lr_rate": 0.01},
    "warmup_stable_decay": {"num_decay_steps": 200, "decay_type": "1-sqrt", "min_lr_ratio": 0.05},
}


def arguments(tmp_path, **changes):
    settings = {
        "output_dir": str(tmp_path),
        "max_steps": TOTAL,
        "warmup_steps": WARM_UP,
        "learning_rate": BASE,
        "report_to": [],
        "use_cpu": True,
    }
    return transformers.TrainingArguments(**settings | changes)


def real_rates(kind, settings, steps, warm_up=WARM_UP):
    """What transformers' own scheduler makes of it, over more steps than the run has."""
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=BASE)
    scheduler = transformers.get_scheduler(
        kind,
        optimizer,
        num_warmup_steps=warm_up,
        num_training_steps=TOTAL,
        scheduler_specific_kwargs=dict(settings),
    )
    reading = read(optimizer, scheduler)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(rates), reading.method.alpha.values(1, steps + 1)


def corrected(rates, beta=0.9, theta=0.999):
    t = np.arange(1, len(rates) + 1)
    return rates * np.sqrt(1 - theta**t) / (1 - beta**t)


@pytest.mark.parametrize("kind", SHAPES)
def test_every_shape_is_what_transformers_does(kind, tmp_path):
    settings = SHAPES[kind]
    rates, live = real_rates(kind, settings, 2 * TOTAL)
    reading = read_trainer(arguments(tmp_path, lr_scheduler_type=kind, lr_scheduler_kwargs=settings))
    assert reading.horizon == TOTAL
    expected = corrected(rates)
    alpha = reading.method.alpha
    assert not isinstance(alpha, Opaque)
    assert alpha.order is not None or kind == "cosine"  # touches 0 again and again
    np.testing.assert_allclose(alpha.values(1, 2 * TOTAL + 1), expected, rtol=1e-9, atol=1e-14 * BASE)
    # the same scheduler, read live: transformers' LambdaLR is known by its function
    np.testing.assert_allclose(live, expected, rtol=1e-9, atol=1e-14 * BASE)


@pytest.mark.parametrize("warm_up", [0, 1, 0.1, 0.33])
def test_warm_up_is_counted_as_trainer_counts(warm_up, tmp_path):
    given = arguments(tmp_path, warmup_steps=warm_up, lr_scheduler_type="linear")
    steps = given.get_warmup_steps(TOTAL)
    rates, _ = real_rates("linear", {}, TOTAL, steps)
    alpha = read_trainer(given).method.alpha
    np.testing.assert_allclose(alpha.values(1, TOTAL + 1), corrected(rates), rtol=1e-9)


def test_restarts_begin_where_rounding_puts_them(tmp_path):
    for cycles in (1, 3, 7, 49):
        settings = {"num_cycles": cycles}
        rates, _ = real_rates("cosine_with_restarts", settings, TOTAL)
        given = arguments(tmp_path, lr_scheduler_type="cosine_with_restarts", lr_scheduler_kwargs=settings)
        alpha = read_trainer(given).method.alpha
        np.testing.assert_allclose(alpha.values(1, TOTAL + 1), corrected(rates), rtol=1e-8, atol=1e-12 * BASE)


@pytest.mark.parametrize("decay", [TOTAL - WARM_UP, 650, 900])
@pytest.mark.parametrize("kind", ["linear", "cosine", "1-sqrt"])
def test_a_decay_that_is_longer_than_what_the_warm_up_leaves_begins_in_its_middle(kind, decay, tmp_path):
    settings = {"num_decay_steps": decay, "decay_type": kind, "min_lr_ratio": 0.05}
    rates, _ = real_rates("warmup_stable_decay", settings, TOTAL)
    given = arguments(tmp_path, lr_scheduler_type="warmup_stable_decay", lr_scheduler_kwargs=settings)
    alpha = read_trainer(given).method.alpha
    np.testing.assert_allclose(alpha.values(1, TOTAL + 1), corrected(rates), rtol=1e-9)


def test_optimizers_by_name(tmp_path):
    adamw = read_trainer(
        arguments(tmp_path, lr_scheduler_type="constant", adam_beta1=0.8, adam_beta2=0.95, weight_decay=0.1)
    )
    assert adamw.method == adam(lr=BASE, beta=0.8, theta=0.95)
    assert adamw.decay(5) == pytest.approx(BASE * 0.1)
    assert adamw.clipping == Clipping(1.0, "norm")
    adafactor = read_trainer(arguments(tmp_path, optim="adafactor", lr_scheduler_type="constant"))
    assert adafactor.method == Method(BASE, 0, "1 - t^-0.8")
    rmsprop = read_trainer(arguments(tmp_path, optim="rmsprop", optim_args="alpha=0.95", lr_scheduler_type="constant"))
    assert rmsprop.method == Method(BASE, 0, 0.95)
    settings = "momentum=0.5, centered=True"
    heavy = read_trainer(arguments(tmp_path, optim="rmsprop", optim_args=settings, lr_scheduler_type="constant"))
    assert (heavy.heavy_ball, heavy.centered) == (HeavyBall(Fraction(1, 2)), True)
    descent = read_trainer(arguments(tmp_path, optim="sgd", lr_scheduler_type="constant"))
    assert not descent.preconditioned
    adagrad = read_trainer(arguments(tmp_path, optim="adagrad", lr_scheduler_type="constant"))
    assert adagrad.method.alpha(8) == pytest.approx(BASE / 3)


@pytest.mark.parametrize("optimizer", ["adagrad", "rmsprop"])
def test_weight_decay_is_said_of_optimizers_that_add_it_to_the_gradient(optimizer, tmp_path):
    given = {"optim": optimizer, "lr_scheduler_type": "constant"}
    decayed = read_trainer(arguments(tmp_path, weight_decay=0.1, **given))
    assert decayed.l2 == Fraction(1, 10)
    assert read_trainer(arguments(tmp_path, **given)).l2 == 0


def test_trainers_own_adafactor_decays_as_read():
    x = torch.nn.Parameter(torch.ones(3))
    optimizer = transformers.Adafactor([x], lr=0.01, scale_parameter=False, relative_step=False, clip_threshold=1e9)
    v = np.zeros(3)
    for t in range(1, 30):
        g = np.sin(np.arange(1.0, 4.0) * t)
        x.grad = torch.tensor(g, dtype=torch.float32)
        before = x.detach().double().numpy().copy()
        optimizer.step()
        v = (1 - t**-0.8) * v + t**-0.8 * g**2
        np.testing.assert_allclose(x.detach().numpy(), before - 0.01 * g / np.sqrt(v), rtol=1e-4, atol=1e-6)


def test_relative_steps_decay_at_their_own_rate():
    x = torch.nn.Parameter(torch.ones(3))
    optimizer = transformers.Adafactor([x], scale_parameter=False, relative_step=True, weight_decay=0.1)
    algorithm = read(optimizer)
    for t in range(1, 5):
        before = x.detach().clone()
        x.grad = torch.zeros(3)  # nothing but the decay moves it
        optimizer.step()
        assert algorithm.decay(t) == pytest.approx(1 - (x / before)[0].item(), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optim": "lion_32bit"}, "the optimizer 'lion_32bit' is none that can be read"),
        ({"optim": "rmsprop", "optim_args": "momentum"}, "optim_args is 'momentum'; expected name=value"),
        ({"optim": "rmsprop", "optim_args": "momentum=fast"}, "momentum is 'fast'; expected a number"),
        ({"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "steps"}, "depends on the data"),
        ({"max_steps": -1}, "the number of steps is not known"),
        ({"lr_scheduler_type": "warmup_stable_decay"}, "'warmup_stable_decay': num_decay_steps is missing"),
        ({"lr_scheduler_type": "cosine_with_min_lr"}, "expected min_lr or min_lr_rate"),
        ({"lr_scheduler_type": "cosine", "lr_scheduler_kwargs": {"min_lr": 1e-6}}, "'cosine': it takes no min_lr"),
        (
            {
                "lr_scheduler_type": "cosine_warmup_with_min_lr",
                "lr_scheduler_kwargs": {"min_lr": 1e-5, "min_lr_rate": 0.1},
            },
            "expected min_lr or min_lr_rate",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(changes, message, tmp_path):
    with pytest.raises(OptimizerError, match=message) as caught:
        read_trainer(arguments(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_attributes_are_enough_and_missing_ones_are_named():
    plain = types.SimpleNamespace(optim="adamw_torch", lr_scheduler_type="linear", max_steps=100)
    with pytest.raises(OptimizerError, match="has no attribute 'learning_rate'"):
        read_trainer(plain)
    plain = types.SimpleNamespace(
        optim="adamw_torch", lr_scheduler_type="linear", max_steps=100, learning_rate=1e-3, warmup_steps=0,
        warmup_ratio=0.1, adam_beta1=0.9, adam_beta2=0.999, adam_epsilon=1e-8, weight_decay=0.0,
    )  # fmt: skip
    assert certify(plain).verdict == "not certified"
    assert read_trainer(plain).method.alpha(1) == 0
    assert read_trainer(plain).method.alpha(11) > 0


def test_a_part_of_the_run_has_the_schedule_of_the_run(tmp_path):
    given = arguments(tmp_path, lr_scheduler_type="cosine")
    half = certify(given, horizon=TOTAL // 2)
    assert half.horizon.steps == TOTAL // 2
    assert half.method == certify(given).method
    assert certify(given, horizon=2 * TOTAL).method == certify(given).method
    # Where they do not say how long they run, the number of steps does.
    open_end = types.SimpleNamespace(**{**vars(given), "max_steps": -1})
    assert certify(open_end, horizon=TOTAL).method == certify(given).method
    problem = Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
    unclipped = types.SimpleNamespace(**{**vars(open_end), "max_grad_norm": 0.0})
    assert bound(unclipped, problem, steps=TOTAL) == bound(certify(unclipped, horizon=TOTAL).algorithm, problem, TOTAL)


def test_certify_takes_the_arguments_and_their_horizon(tmp_path):
    certificate = certify(arguments(tmp_path, lr_scheduler_type="inverse_sqrt"))
    assert certificate.horizon.steps == TOTAL
    longer = certify(arguments(tmp_path, max_steps=-1, num_train_epochs=3), horizon=5_000)
    assert longer.horizon.steps == 5_000


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        tokens = torch.arange(8) * (index + 1) % 16
        return {"input_ids": tokens, "labels": tokens}


def small_model():
    config = transformers.GPT2Config(
        vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


@pytest.mark.parametrize(
    "changes",
    [
        {"optim": "adamw_torch", "weight_decay": 0.1, "adam_beta2": 0.95, "adam_epsilon": 1e-6},
        {"optim": "adafactor"},
        {"optim": "adafactor", "optim_args": "scale_parameter=True, relative_step=True, warmup_init=True"},
        {"optim": "sgd", "weight_decay": 0.1},
        {"optim": "sgd", "weight_decay": 0.1, "optim_args": "momentum=0.5, nesterov=1, weight_decay=0.7"},
        {"optim": "adagrad", "weight_decay": 0.1},
        {"optim": "adagrad", "optim_args": "lr_decay=0.1, initial_accumulator_value=3"},
        {"optim": "rmsprop", "optim_args": "alpha=0.9, momentum=0.5, centered=True"},
    ],
    ids=lambda changes: f"{changes['optim']} {changes.get('optim_args', '')}",
)
@pytest.mark.parametrize("kind", ["linear", "cosine", "inverse_sqrt"])
def test_arguments_are_read_as_what_trainer_makes_of_them(changes, kind, tmp_path):
    given = arguments(tmp_path, lr_scheduler_type=kind, **changes)
    trainer = transformers.Trainer(model=small_model(), args=given, train_dataset=Rows())
    trainer.create_optimizer_and_scheduler(TOTAL)
    said, live = read_trainer(given), read(trainer.optimizer, trainer.lr_scheduler)
    for name in ("alpha", "beta", "theta"):
        ours, real = (getattr(one.method, name).values(1, 2 * TOTAL) for one in (said, live))
        np.testing.assert_allclose(ours, real, rtol=1e-12)
    same = (
        "initial_v",
        "eps",
        "l2",
        "decay",
        "preconditioned",
        "heavy_ball",
        "centered",
        "factored",
        "outside",
    )
    clipped = ("gradients are clipped to norm 1 before updates are",) if live.clipping else ()
    for name in same:
        expected = getattr(live, name)
        assert getattr(said, name) == ((*expected, *clipped) if name == "outside" else expected), name


def test_a_trainer_is_read_before_and_after_it_has_made_its_optimizer(tmp_path):
    given = arguments(tmp_path, lr_scheduler_type="cosine", weight_decay=0.1, max_grad_norm=0.5)
    trainer = transformers.Trainer(model=small_model(), args=given, train_dataset=Rows())
    before = certify(trainer)
    trainer.create_optimizer_and_scheduler(TOTAL)
    after = certify(trainer)
    assert before.algorithm.method == after.algorithm.method
    for answer in (before, after):
        assert (answer.algorithm.clipping, answer.horizon.steps) == (Clipping(0.5), TOTAL)
    optimizer = torch.optim.AdamW(trainer.model.parameters())
    kinds = {"optimizers": (optimizer, None)}, {"optimizer_cls_and_kwargs": (torch.optim.Adam, {})}
    for own in kinds:
        trainer = transformers.Trainer(model=small_model(), args=given, train_dataset=Rows(), **own)
        with pytest.raises(OptimizerError, match="Trainer has an optimizer of its own; expected both made"):
            certify(trainer)

    class Mine(transformers.Trainer):
        def create_scheduler(self, num_training_steps, optimizer=None):
            raise NotImplementedError

    with pytest.raises(OptimizerError, match="Mine has an optimizer of its own"):
        certify(Mine(model=small_model(), args=given, train_dataset=Rows()))


def test_arguments_that_trainer_does_not_pass_on_are_named(tmp_path):
    said = "relative_step=True, scale_parameter=True, clip_threshold=2"
    note = "optim_args that Trainer does not pass on to adafactor: relative_step, scale_parameter, clip_threshold"
    given = arguments(tmp_path, optim="adafactor", optim_args=said, lr_scheduler_type="constant")
    assert note in read_trainer(given).notes
    given = arguments(tmp_path, optim="rmsprop", optim_args="alpha=0.9", lr_scheduler_type="constant")
    assert not read_trainer(given).notes


def test_trainer_trains_with_generic_adam(tmp_path):
    torch.manual_seed(0)
    model = small_model()
    method = Method(alpha="0.01 * min(1, sqrt(8/t))", beta=0.9, theta="max(0.99, 1 - 1/t)")
    # Trainer always steps a scheduler, so the learning rate comes from one; theta_t is the optimizer's own.
    optimizer = GenericAdam(
        model.parameters(),
        beta=method.beta,
        theta=method.theta,
        initial_v=1e-8,
        eps=0.0,
        bias_correction=False,
    )
    scheduler = ScheduleLR(optimizer, method.alpha)
    given = arguments(tmp_path, max_steps=12, warmup_steps=0, per_device_train_batch_size=8, disable_tqdm=True)
    trainer = transformers.Trainer(model=model, args=given, train_dataset=Rows(), optimizers=(optimizer, scheduler))
    before = [p.detach().clone() for p in model.parameters()]
    with Watch(optimizer, every=4) as watch:
        result = trainer.train()
    assert result.global_step == 12
    assert optimizer.param_groups[0]["step"] == 12
    assert optimizer.param_groups[0]["lr"] == method.alpha(13)  # set for the next step
    assert [(record.step, record.alpha) for record in watch.records] == [(t, method.alpha(t)) for t in (4, 8, 12)]
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    certificate = certify(optimizer, scheduler)
    assert certificate.verdict == "certified"
    assert certificate.method == method


@pytest.mark.parametrize("steps", [TOTAL, 30_000])
def test_certify_has_the_answer_of_the_command(tmp_path, capsys, steps):
    given = arguments(tmp_path, max_steps=steps, weight_decay=0.1)
    (tmp_path / "run.json").write_text(given.to_json_string(), encoding="utf-8")
    main(["check", "--config", str(tmp_path / "run.json"), "--json"])
    told, certificate = json.loads(capsys.readouterr().out), certify(given)
    assert summary(certificate) == told
    assert {"gradient_norm": 1.0, "weights_bound": 1.0}.items() <= told["assumed"].items()
    assert certificate.setting.facts["gradient_norm"].source == "assumed"
    assert "Assumed" in certificate.text
    # Facts that are given are not assumed.
    known = certify(given, setting=Setting(gradient_norm=0.5, weights_bound=2.0)).setting.facts
    assert {known[one].source for one in ("gradient_norm", "weights_bound")} == {"given"}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_defaults(name):
    getter, defaults = TRANSFORMERS[name]
    arguments_of = inspect.signature(getattr(transformers.optimization, f"get_{getter}")).parameters
    told = {one: arguments_of[one].default for one in defaults}
    assert told == {one: inspect.Parameter.empty if default is int else default for one, default in defaults.items()}
    assert set(arguments_of) - {"optimizer", "num_warmup_steps", "num_training_steps", "last_epoch"} == set(defaults)
