"""The callbacks for Trainer and Lightning, in real runs of both and on what cannot be read or watched."""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generic_adam.torch import GenericAdam, Watch
from generic_adam.watch.callbacks import lightning_callback, trainer_callback

STEPS = 60


class Network(torch.nn.Module):
    """A regression whose output has its loss, as transformers' models have."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.linear(inputs).squeeze(-1) - labels).square().mean()}


class Rows(torch.utils.data.Dataset):  # pyright: ignore[reportMissingTypeArgument]
    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        inputs = torch.randn(4, generator=generator)
        return {"inputs": inputs, "labels": inputs.sum()}


def train(callback: Any, folder: Path, *, accumulated: int = 1, **changes: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    given = {"learning_rate": 1e-2, "max_steps": STEPS, "max_grad_norm": 0.5, "lr_scheduler_type": "cosine", **changes}
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=accumulated,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_steps=5,
        save_strategy="no",
        **given,
    )
    trainer = transformers.Trainer(model=Network(), args=arguments, train_dataset=Rows(), callbacks=[callback])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train()
    return trainer


@pytest.mark.parametrize("accumulated", [1, 2])
def test_a_trainer_is_checked_and_watched(tmp_path: Path, accumulated: int) -> None:
    said: list[str] = []
    callback = trainer_callback(tmp_path / "run", say=said.append, every=10)
    trainer = train(callback, tmp_path, accumulated=accumulated)
    check, diagnosis = said
    assert f"{STEPS} steps" in check
    assert "clip" in check
    (watch,) = callback.watches
    assert diagnosis == str(watch.diagnose())
    assert [record.step for record in watch.records] == list(range(10, STEPS + 1, 10))
    assert all(record.loss > 0 and record.norm > 0 for record in watch.records)
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert watch.records[0].loss == pytest.approx(sum(logged[:2]) / 2, rel=0.01)  # of five steps each
    assert (tmp_path / "run" / "watch.csv").read_text().count("\n") == 1 + STEPS // 10
    optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    assert not optimizer._optimizer_step_post_hooks
    assert not trainer.model._forward_hooks


def test_what_cannot_be_read_or_watched_is_a_line_and_training_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    trainer = train(trainer_callback(say=said.append), tmp_path, optim="sgd", lr_scheduler_type="constant")
    assert trainer.state.global_step == STEPS
    assert any("not watched" in line for line in said)
    said.clear()
    callback = trainer_callback(say=said.append)
    state, args = SimpleNamespace(is_world_process_zero=True, max_steps=10), SimpleNamespace(max_grad_norm=None)
    optimizer = torch.optim.Adamax([torch.nn.Parameter(torch.ones(2))])
    callback.on_train_begin(args, state, None, optimizer=optimizer, lr_scheduler=None, model=None)
    assert ["says nothing" in line for line in said] == [True]
    assert len(callback.watches) == 1
    callback.on_train_end(args, state, None)


def test_other_processes_say_nothing() -> None:
    said: list[str] = []
    callback = trainer_callback(say=said.append)
    callback.on_train_begin(SimpleNamespace(), SimpleNamespace(is_world_process_zero=False), None)
    callback.on_train_end(SimpleNamespace(), SimpleNamespace(), None)
    assert said == callback.watches == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulated", [1, 2])
def test_lightning_is_checked_and_watched(tmp_path: Path, accumulated: int) -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    losses: list[float] = []

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = Network()

        def training_step(self, rows: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            loss = self.network(**rows)["loss"]
            losses.append(float(loss))
            return loss

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]

    said: list[str] = []
    callback = lightning_callback(tmp_path / "run", say=said.append, every=10)
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        callbacks=[callback],
        gradient_clip_val=0.5,
        accumulate_grad_batches=accumulated,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Module()
    trainer.fit(module, torch.utils.data.DataLoader(Rows(), batch_size=4))
    steps = 2 * STEPS // accumulated
    check, diagnosis = said
    assert f"{steps} steps" in check
    (watch,) = callback.watches
    assert diagnosis == str(watch.diagnose())
    assert [record.step for record in watch.records] == list(range(10, steps + 1, 10))
    of_first = losses[: 10 * accumulated]
    assert watch.records[0].loss == pytest.approx(sum(of_first) / len(of_first), rel=1e-5)
    assert all(record.norm > 0 for record in watch.records)
    assert not trainer.optimizers[0]._optimizer_step_post_hooks


def test_of_several_optimizers_each_has_a_directory(tmp_path: Path) -> None:
    callback = lightning_callback(tmp_path / "run", say=lambda _: None)
    x, y = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    trainer = SimpleNamespace(
        is_global_zero=True,
        lr_scheduler_configs=[],
        num_training_batches=float("inf"),
        accumulate_grad_batches=1,
        estimated_stepping_batches=float("inf"),
        gradient_clip_val=None,
        gradient_clip_algorithm=None,
        global_step=0,
        optimizers=[GenericAdam([x], lr=0.1), torch.optim.Adam([y])],
    )
    callback.on_train_start(trainer, None)
    assert [type(watch) for watch in callback.watches] == [Watch, Watch]
    for optimizer, p in zip(trainer.optimizers, (x, y), strict=True):
        p.grad = torch.ones(3)
        callback.on_before_optimizer_step(trainer, None, optimizer)
        optimizer.step()
    trainer.global_step = 2
    callback.on_train_batch_end(trainer, None, {"loss": 1.0})
    callback.on_exception(trainer, None, KeyboardInterrupt())
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["0", "1"]
    assert [watch.records[0].loss for watch in callback.watches] == [1.0, 1.0]
