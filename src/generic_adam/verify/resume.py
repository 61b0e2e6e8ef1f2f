# pyright: reportPrivateImportUsage=false
"""Save, load and go on, against going on without: weights, optimizer and scheduler, in each format that is installed.

An author's own `resume` is driven as it is; this is for an optimizer alone, whose state goes through a file into a
fresh one.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra
from generic_adam.verify.drive import Subject

with from_extra("torch"):
    import torch

Carry = Callable[[dict[str, Any]], dict[str, Any]]


def formats() -> Iterator[tuple[str, Carry]]:
    """Yield the formats that are installed, each as a function that writes a state dict and reads it back."""
    yield "torch.save", _through_torch
    yield "torch.save twice", lambda state: _through_torch(_through_torch(state))
    if find_spec("safetensors"):
        yield "safetensors", _through_safetensors
    if torch.distributed.is_available():
        yield "DCP", _through_dcp


def resumed(subject: Subject, again: Callable[[], Subject], carry: Carry) -> Subject:
    """Return a fresh subject with the weights and the loaded state of another."""
    state = {"optimizer": subject.optimizer.state_dict()}
    if subject.scheduler is not None:
        state["scheduler"] = {name: value for name, value in subject.scheduler.state_dict().items() if _is_plain(value)}
    read, fresh = carry(state), again()
    with torch.no_grad():
        for (_, new), (_, old) in zip(fresh.named, subject.named, strict=True):
            new.copy_(old)
    fresh.optimizer.load_state_dict(read["optimizer"])
    if fresh.scheduler is not None:
        fresh.scheduler.load_state_dict(read["scheduler"])
    return fresh


def _through_torch(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def _through_safetensors(state: dict[str, Any]) -> dict[str, Any]:
    """Tensors in the file, all else as text beside them."""
    safetensors = import_module("safetensors.torch")
    tensors: dict[str, Any] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            name = f"tensor {len(tensors)}"
            tensors[name] = value.detach().clone().contiguous()
            return {"tensor": name}
        if isinstance(value, Mapping):
            return {"items": [[key, plain(one)] for key, one in value.items()]}
        return [plain(one) for one in value] if isinstance(value, list | tuple) else value

    def back(value: Any) -> Any:
        if isinstance(value, dict):
            return read[value["tensor"]] if "tensor" in value else {key: back(one) for key, one in value["items"]}
        return [back(one) for one in value] if isinstance(value, list) else value

    text = json.dumps(plain(state))
    read = safetensors.load(safetensors.save(tensors)) if tensors else {}
    return back(json.loads(text))


def _through_dcp(state: dict[str, Any]) -> dict[str, Any]:
    """Distributed checkpoint of one process, loaded in place as it does: into zeros of the same shapes."""
    from torch.distributed import checkpoint

    def blank(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value)
        if isinstance(value, Mapping):
            return {key: blank(one) for key, one in value.items()}
        return [blank(one) for one in value] if isinstance(value, list) else value

    with tempfile.TemporaryDirectory() as directory:
        checkpoint.save(state, checkpoint_id=directory, no_dist=True)
        read = blank(state)
        checkpoint.load(read, checkpoint_id=directory, no_dist=True)
    return read


def _is_plain(value: Any) -> bool:
    """Return whether it is data: a function that a scheduler keeps is no part of a checkpoint."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | torch.Tensor)


# A checkpoint on disk.


def of_checkpoint(subject: Subject, path: Path) -> Iterator[tuple[str, str]]:
    """Yield what loading a checkpoint does to an optimizer, as a category and words; it changes the subject.

    Args:
        subject: a fresh optimizer, which the state is loaded into.
        path: a file of `torch.save`: an optimizer's state dict, or a mapping that holds one.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise OptimizerError(f"{path}: no such file") from error
    except Exception as error:  # truncated files raise whatever the reader of that part raises
        raise OptimizerError(f"{path}: expected a checkpoint of torch.save; the file is cut off or another") from error
    state = _inside(found, "param_groups", "state")
    if state is None:
        raise OptimizerError(f"{path} holds no optimizer's state; expected a mapping with param_groups and state")
    before = [dict(group) for group in subject.optimizer.param_groups]
    groups = state["param_groups"]
    counts, own = ([len(group["params"]) for group in some] for some in (groups, before))
    if counts != own:
        yield "resume", f"the checkpoint has groups of {counts} parameters, the optimizer of {own}"
        return
    for number, (mine, theirs) in enumerate(zip(before, groups, strict=True)):
        for name in sorted((set(mine) & set(theirs)) - {"params"}):
            old, new = _number(mine[name]), _number(theirs[name])
            if _is_plain(mine[name]) and repr(old) != repr(new):
                yield "resume", f"loading sets {name} of group {number} to {new}, where your code has {old}"
    yield from _of_steps(state, _inside(found, "last_epoch", "base_lrs"))


def _of_steps(state: Mapping[str, Any], clock: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    taken = {int(own["step"]) for own in state["state"].values() if "step" in own}
    if clock is not None and taken and not 0 < clock["last_epoch"] <= max(taken) + 1:
        yield "schedule", f"the scheduler has counted {clock['last_epoch']} steps, the optimizer {max(taken)}"
    if len(taken) > 1:
        yield "step counter", f"parameters have taken between {min(taken)} and {max(taken)} steps"
    total, kept = sum(len(group["params"]) for group in state["param_groups"]), len(state["state"])
    if kept < total:
        yield "resume", f"{total - kept} of {total} parameters have no state: they begin anew"
    for number, own in state["state"].items():
        bad = [name for name, value in own.items() if isinstance(value, torch.Tensor) and not value.isfinite().all()]
        if bad:
            yield "resume", f"{bad[0]} of parameter {number} is not finite"


def _inside(found: Any, *keys: str) -> Mapping[str, Any] | None:
    """Find the first mapping with these keys, at any depth."""
    if not isinstance(found, Mapping):
        return None
    if all(key in found for key in keys):
        return found
    inside = (_inside(value[0] if isinstance(value, list) and value else value, *keys) for value in found.values())
    return next((one for one in inside if one is not None), None)


def _number(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    return tuple(value) if isinstance(value, list) else value
