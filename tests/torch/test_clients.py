"""Programs that save and load optimizers, with every optimizer: each run goes on without a changed bit."""

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from generic_adam.torch import GenericAdam
from generic_adam.torch.scheduled import ScheduledOptimizer
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo

accelerate = pytest.importorskip("accelerate")
transformers = pytest.importorskip("transformers")

EVERY = [pytest.param(info, id=info.name) for info in OPTIMIZERS]
STEPS = 8


class Regression(torch.nn.Module):
    """A small network with the loss that Trainer asks for."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))

    def forward(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.layers(inputs).square().mean()}


def batch(t: int) -> torch.Tensor:
    return torch.randn(4, 5, generator=torch.Generator().manual_seed(t))


def train(model: torch.nn.Module, optimizer: Any, first: int, count: int) -> None:
    for t in range(first, first + count):
        optimizer.zero_grad()
        model(batch(t))["loss"].backward()
        optimizer.step()


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([x.detach().ravel() for x in model.parameters()])


def make(info: OptimizerInfo, model: torch.nn.Module) -> ScheduledOptimizer:
    return info.constructor(model.parameters(), lr="0.02/sqrt(t)")


def straight(info: OptimizerInfo, steps: int = STEPS) -> torch.Tensor:
    model = Regression()
    train(model, make(info, model), 1, steps)
    return weights(model)


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"inputs": batch(1 + index // 4)[index % 4]}


class InOrder(transformers.Trainer):
    """Batches as `train` has them."""

    def _get_train_sampler(self, *_: Any) -> torch.utils.data.Sampler:
        return torch.utils.data.SequentialSampler(Data())


def trainer(info: OptimizerInfo, directory: Path, steps: int) -> transformers.Trainer:
    model = Regression()
    optimizer = make(info, model)
    arguments = transformers.TrainingArguments(
        output_dir=str(directory),
        per_device_train_batch_size=4,
        max_steps=steps,
        save_steps=3,
        lr_scheduler_type="constant",
        max_grad_norm=0,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    constant = torch.optim.lr_scheduler.LambdaLR(torch.optim.SGD(model.parameters(), lr=0.0), lambda _: 1.0)
    return InOrder(model=model, args=arguments, train_dataset=Data(), optimizers=(optimizer, constant))


@pytest.mark.parametrize("info", EVERY)
def test_trainer_resumes(info: OptimizerInfo, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer(info, tmp_path, 3).train()
        resumed = trainer(info, tmp_path, STEPS)
        resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert torch.equal(weights(resumed.model), straight(info))


@pytest.mark.parametrize("info", EVERY)
def test_accelerate_loads_what_it_saved(info: OptimizerInfo, tmp_path: Path) -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    model = Regression()
    model, optimizer = accelerator.prepare(model, make(info, model))
    train(model, optimizer, 1, 3)
    accelerator.save_state(tmp_path, safe_serialization=False)
    for _ in range(2):
        train(model, optimizer, 4, 2)  # a wrong turn
        accelerator.load_state(tmp_path)
    train(model, optimizer, 4, STEPS - 3)
    assert torch.equal(weights(model), straight(info))


@pytest.mark.parametrize("info", EVERY)
def test_distributed_checkpoints_load_twice(info: OptimizerInfo, tmp_path: Path) -> None:
    model = Regression()
    optimizer = make(info, model)
    train(model, optimizer, 1, 3)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=tmp_path / "three")
        model = Regression()
        optimizer = make(info, model)
        for _ in range(2):
            train(model, optimizer, 1, 5)
            model_state, optimizer_state = get_state_dict(model, optimizer)
            state = {"model": model_state, "optimizer": optimizer_state}
            dcp.load(state, checkpoint_id=tmp_path / "three")
            set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    train(model, optimizer, 4, STEPS - 3)
    assert torch.equal(weights(model), straight(info))


@pytest.mark.parametrize("info", EVERY)
def test_going_back_to_the_best(info: OptimizerInfo) -> None:
    model = Regression()
    optimizer = make(info, model)
    train(model, optimizer, 1, 3)
    best = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    for _ in range(3):
        train(model, optimizer, 4, 4)
        model.load_state_dict(best[0])
        optimizer.load_state_dict(copy.deepcopy(best[1]))
    train(model, optimizer, 4, STEPS - 3)
    assert torch.equal(weights(model), straight(info))


@pytest.mark.parametrize("info", EVERY)
def test_a_wrapper_may_count_and_add_up_in_the_group(info: OptimizerInfo) -> None:
    # As pytorch_optimizer's ScheduleFreeWrapper does, and for its sums the schedulefree package.
    def count(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            group["step"] += 1
            group["weight_sum"] = group.get("weight_sum", 0.0) + 0.5

    def wrapped() -> tuple[torch.nn.Module, ScheduledOptimizer]:
        model = Regression()
        optimizer = make(info, model)
        optimizer.register_step_pre_hook(count)
        return model, optimizer

    model, optimizer = wrapped()
    train(model, optimizer, 1, 3)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    model, optimizer = wrapped()
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    train(model, optimizer, 4, STEPS - 3)
    assert torch.equal(weights(model), straight(info))
    assert (optimizer.param_groups[0]["step"], optimizer.param_groups[0]["weight_sum"]) == (STEPS, STEPS / 2)


def test_trainer_builds_it_by_name_and_its_scheduler_drives_the_rate(tmp_path: Path) -> None:
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=4,
        max_steps=STEPS,
        lr_scheduler_type="linear",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
    )
    by_name = (GenericAdam, {"lr": 1e-2, "theta": "1 - 1/max(t, 1000)"})
    runner = InOrder(model=Regression(), args=arguments, train_dataset=Data(), optimizer_cls_and_kwargs=by_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner.train()
    optimizer = getattr(runner.optimizer, "optimizer", runner.optimizer)
    assert isinstance(optimizer, GenericAdam)
    assert optimizer.param_groups[0]["step"] == STEPS
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)  # where the linear decay ends
    assert optimizer.used(optimizer.param_groups[0])[2] == 0.999


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", EVERY)
def test_lightning_logs_the_rate_of_the_step_and_resumes(info: OptimizerInfo, tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    logged: list[float] = []

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = Regression()

        def training_step(self, rows: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            return self.network(rows["inputs"])["loss"]

        def configure_optimizers(self) -> ScheduledOptimizer:
            return make(info, self.network)

    class Logger(lightning.loggers.CSVLogger):
        def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
            logged.extend(value for key, value in metrics.items() if key.startswith("lr-"))

    def fit(epochs: int, checkpoint: Path | None = None) -> tuple[Any, torch.Tensor]:
        module = Module()
        trainer = lightning.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=Logger(tmp_path),
            callbacks=[lightning.callbacks.LearningRateMonitor("step")],
            log_every_n_steps=1,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, torch.utils.data.DataLoader(Data(), batch_size=4), ckpt_path=checkpoint)
        return trainer, weights(module.network)

    _, whole = fit(2)
    assert logged == pytest.approx([0.02 / t**0.5 for t in range(1, 2 * STEPS + 1)])
    first, half = fit(1)
    assert torch.equal(half, straight(info))
    first.save_checkpoint(tmp_path / "half.ckpt")
    assert torch.equal(fit(2, tmp_path / "half.ckpt")[1], whole)
