"""The lines that docs/train.md gives for other packages' registries, run with the package or a stand-in for it."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest
import torch
import yaml

from generic_adam.torch import GenericAdam
from tests.adapters import timm_package

PAGE = (Path(__file__).parents[2] / "docs" / "train.md").read_text(encoding="utf-8")


def run(package):
    """The block of the page that imports the package; the optimizer that it makes."""
    (block,) = [one for one in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL) if f"from {package}." in one]
    scope = {"model": torch.nn.Linear(3, 2), "GenericAdam": GenericAdam}
    exec(compile(block, package, "exec"), scope)
    return scope["optimizer"]


def stand_in(monkeypatch, **modules):
    """Modules with these attributes, for the length of a test; dots in names are written as double underscores."""
    for name, attributes in modules.items():
        module = types.ModuleType(name.replace("__", "."))
        module.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_timm_s_registry(monkeypatch):
    if importlib.util.find_spec("timm") is not None or "timm" in sys.modules:
        timm_package.part("optim")
    else:
        known = {}

        def create_optimizer_v2(model, opt, **arguments):
            module, _, name = known[opt.split("_")[-1]].rpartition(".")  # timm's prefixes end in an underscore
            return getattr(importlib.import_module(module), name)(model.parameters(), **arguments)

        registry = types.SimpleNamespace(register=lambda info: known.update({info[0]: info[1]}))
        make = {"OptimInfo": lambda *info, has_betas: info, "create_optimizer_v2": create_optimizer_v2}
        stand_in(monkeypatch, timm={}, timm__optim=make, timm__optim___optim_factory={"default_registry": registry})
    optimizer = run("timm")
    assert type(optimizer) is GenericAdam
    assert str(optimizer.param_groups[0]["theta_schedule"]) == "1 - 1 / max(t, 1000)"


def test_pytorch_optimizer_s_names(monkeypatch):
    if importlib.util.find_spec("pytorch_optimizer") is None:
        known = {}
        names = {"OPTIMIZERS": known, "load_optimizer": lambda name: known[name.lower()]}
        stand_in(monkeypatch, pytorch_optimizer={}, pytorch_optimizer__optimizer=names)
    optimizer = run("pytorch_optimizer")
    assert type(optimizer) is GenericAdam
    assert optimizer.param_groups[0]["lr"] == 1e-3


@pytest.mark.filterwarnings("ignore")
def test_lightning_s_command_line(tmp_path):
    pytest.importorskip("jsonargparse")
    lightning = pytest.importorskip("pytorch_lightning")
    from pytorch_lightning.cli import LightningCLI

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

    (block,) = [one for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "class_path" in one]
    (tmp_path / "run.yaml").write_text(block, encoding="utf-8")
    quiet = {"logger": False, "accelerator": "cpu", "enable_checkpointing": False}
    made = LightningCLI(
        Module,
        run=False,
        args=["--config", str(tmp_path / "run.yaml")],
        save_config_callback=None,
        trainer_defaults=quiet,
    )
    optimizer = made.model.configure_optimizers()
    assert type(optimizer) is GenericAdam
    assert list(optimizer.param_groups[0]["betas"]) == yaml.safe_load(block)["optimizer"]["init_args"]["betas"]
