"""Every form that `configure_optimizers` may return, and the pace at which Lightning steps its schedulers."""

from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, StepLR

from generic_adam.adapters import read as read_any
from generic_adam.adapters.torch import read
from generic_adam.errors import OptimizerError
from generic_adam.methods import merged


def adam(lr=0.1):
    return torch.optim.Adam([torch.zeros(2, requires_grad=True)], lr=lr)


def test_every_form_is_read():
    one, two = adam(), adam(0.2)
    slow, fast = ExponentialLR(one, 0.9), {"scheduler": ExponentialLR(two, 0.8), "interval": "step"}
    first, second = read(one, slow, steps_per_scheduler_step=7), read(two, fast["scheduler"])
    plain = read(one)
    forms = [
        (one, (plain,)),
        ([one], (plain,)),
        ({"optimizer": one}, (plain,)),
        ({"optimizer": one, "lr_scheduler": slow}, (first,)),
        ({"optimizer": two, "lr_scheduler": fast, "monitor": "loss"}, (second,)),
        (([one, two], [fast, slow]), (first, second)),
        (
            ({"optimizer": one, "lr_scheduler": slow}, {"optimizer": two, "lr_scheduler": fast}),
            (first, second),
        ),
        ([two, {"optimizer": one}], (read(two), plain)),
        (SimpleNamespace(configure_optimizers=lambda: [[one], [slow]]), (first,)),  # as a LightningModule
    ]
    for configuration, expected in forms:
        pace = 1 if configuration is one else 7  # an optimizer alone has no epochs
        assert read_any(configuration, steps_per_scheduler_step=pace) == merged(expected)


def test_an_uneven_frequency_is_refused():
    # a real run with epochs of 5 batches steps after batches 2, 4, 7, 9, ...: no even pace
    optimizer = adam()
    scheduler = {"scheduler": ExponentialLR(optimizer, 0.5), "interval": "step", "frequency": 2}
    with pytest.raises(OptimizerError, match="in each epoch, of 5 steps"):
        read_any({"optimizer": optimizer, "lr_scheduler": scheduler}, steps_per_scheduler_step=5)


def test_frequency_and_interval_set_the_pace():
    optimizer = adam()
    scheduler = StepLR(optimizer, 2, 0.5)

    def pace(**settings):
        configuration = {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, **settings}}
        reading = read_any(configuration, steps_per_scheduler_step=10)
        rates = reading.method.alpha / read(optimizer).method.alpha
        return next(t for t in range(1, 200) if rates(t) < 0.9) - 1

    assert pace(interval="step") == 2
    assert pace(interval="step", frequency=5) == 10
    assert pace() == 20
    assert pace(interval="epoch", frequency=2) == 40


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (lambda o, s: {"optimizer": o, "lr_scheduler": s}, "expected the optimizer steps of an epoch"),
        (lambda o, s: {"optimiser": o}, "has the keys lr_scheduler, monitor, optimizer; got optimiser"),
        (lambda o, s: {"optimizer": o, "lr_scheduler": {"schedule": s}}, "got schedule"),
        (lambda o, s: {"optimizer": o, "lr_scheduler": {"scheduler": s, "interval": "batch"}}, "'batch'"),
        (lambda o, s: {"optimizer": o, "lr_scheduler": {"scheduler": s, "frequency": 0}}, "and 0"),
        (
            lambda o, s: {
                "optimizer": o,
                "lr_scheduler": {"scheduler": s, "interval": "step", "frequency": 2},
            },
            "anew in each epoch: expected the optimizer steps",
        ),
        (lambda o, s: ([o], [s, ExponentialLR(o, 0.5)]), "2 schedulers drive one Adam"),
        (lambda o, s: ([adam()], [s]), "ExponentialLR drives none of the optimizers"),
        (lambda o, s: {"optimizer": "adam"}, "expected a torch optimizer, got str"),
        (lambda o, s: "adam", "cannot read a str; expected"),
    ],
)
def test_what_cannot_be_read_is_one_line(configuration, message):
    optimizer = adam()
    with pytest.raises(OptimizerError, match=message) as caught:
        read_any(configuration(optimizer, ExponentialLR(optimizer, 0.9)))
    assert "\n" not in str(caught.value)


# Lightning's own use of torch, and its remarks on small data sets
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
def test_a_real_lightning_run_has_the_rates_that_were_read(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Line(lightning.LightningModule):
        def __init__(self, interval):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)
            self.interval = interval
            self.rates = []

        def training_step(self, batch, _index):
            self.rates.append(self.optimizers().param_groups[0]["lr"])
            return self.layer(batch).square().mean()

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=0.1)
            scheduler = {
                "scheduler": ExponentialLR(optimizer, 0.5),
                "interval": self.interval,
                "frequency": 2,
            }
            return {"optimizer": optimizer, "lr_scheduler": scheduler}

    rows = torch.utils.data.DataLoader(torch.ones(24, 3), batch_size=4)
    for interval in ("step", "epoch"):
        module = Line(interval)
        trainer = lightning.Trainer(
            max_epochs=6,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(module, rows)
        reading = read_any(module.configure_optimizers(), steps_per_scheduler_step=6)
        corrected = read(torch.optim.Adam(module.parameters(), lr=1.0)).method.alpha
        ours = (reading.method.alpha / corrected).values(1, 37)
        assert ours == pytest.approx(module.rates, rel=1e-12)


@pytest.mark.parametrize("wrap", [lambda one: Accelerator(cpu=True).prepare(one), LightningOptimizer])
def test_the_optimizer_inside_a_wrapper_is_read(wrap):
    plain = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.1)
    cosine = CosineAnnealingLR(plain, 100)
    expected, wrapped = read(plain, cosine), wrap(plain)
    assert type(wrapped) is not type(plain)
    assert read(wrapped, cosine) == expected == read(wrapped, CosineAnnealingLR(wrapped, 100))
    assert read(wrapped) == read(plain)
    wrapped.step = lambda: None
    with pytest.raises(OptimizerError, match="has been replaced"):
        read(wrapped)


def test_accelerates_scheduler_is_read_where_one_process_steps_it(monkeypatch):
    plain = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.1)
    cosine = CosineAnnealingLR(plain, 100)
    optimizer, scheduler = Accelerator(cpu=True).prepare(plain, cosine)
    assert read(optimizer, scheduler) == read(plain, cosine)
    monkeypatch.setattr(optimizer, "accelerator_state", SimpleNamespace(num_processes=4))
    with pytest.raises(OptimizerError, match="steps the scheduler 4 times"):
        read(optimizer, scheduler)
