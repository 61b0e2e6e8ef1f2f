"""The records of a run: one line for each window of steps, in memory and in a file that is written at once."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import warnings
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from generic_adam.errors import DataError, OptimizerError


@dataclass(frozen=True, kw_only=True)
class Record:
    r"""The measurements of a window of steps, in the worst tensor where tensors differ; nan where there is none.

    `stale_step` and `stale_tensor` are the step and the tensor that `stale` is from; so with others.

    Attributes:
        step: the last step of the window.
        first: its first step.
        lr: the largest learning rate of a group.
        alpha: alpha_t of that group, with its bias correction.
        beta: its beta_t.
        theta: its theta_t.
        decay_rate: the largest share of a weight that one step's decay takes off.
        loss: the mean loss.
        loss_low: the smallest.
        loss_high: the largest.
        loss_error: the standard error of the mean.
        loss_bad: the number of losses that are no finite number.
        gradient: the root mean square of the gradient's norm, as it stood in `.grad`; from samples of large tensors.
        gradient_error: its standard error.
        dimension: the number of weights in this process.
        norm: the mean norm of the gradient before clipping.
        norm_high: the largest.
        mass_before: the sum of the norms before clipping.
        mass_after: their sum after clipping.
        clipped: the number of steps that were clipped.
        stale: RMS_t = sqrt(mean(g^2 / max(v_t, eps^2))) of the worst tensor, mean of eight steps.
        stale_update: the update size of that tensor in those steps.
        update: the largest root mean square of m_t / (sqrt(v_t) + eps), both corrected.
        excess: the largest update over what no gradients can exceed, with these betas.
        typical: the median update size over tensors and steps.
        falling: the share of the coordinates with a second moment that have g^2 < v/10.
        dead: the share of weights in tensors without a gradient, or whose gradient is exactly 0 throughout.
        edge: the curvature along the steps over the largest stable one, (2 + 2 beta)/((1 - beta) alpha).
        probed: the same for the largest preconditioned curvature, measured by a probe.
        agreement: the cosine of the gradient and the momentum before it.
        overshoot: the cosine of a step and the next gradient; positive beyond the minimum along the step.
        reach: the largest root mean square of a step over that of its tensor's first weights.
        eps_share: mean of eps / (sqrt(v) + eps) where there are gradients, over all coordinates.
        eps_worst: of the worst tensor.
        tiny: the share of all coordinates with v < 1e-12 of its tensor's largest and a step above a tenth of lr.
        lost: the share of weights that a non-zero update left unchanged, over all tensors.
        wrong: the step that was made against the step of the stated algorithm, relative to it: the first that
            differs; the worst tensor.
        wrong_ratio: its length along the stated step: 0.5 half of it, -1 against it.
        tampered: the second moment against the average of the one before and the new squares, relative to it.
        late: by how many steps the optimizer's own count fell behind since the record before; negative: ran ahead.
        pull: the size of a decay in the gradient over the size of the gradient without it.
        decay: the size of the decay over the size of the step: half of the weights are in tensors with less.
        path: the distance of some fifty steps over the size of the weights.
        straight: that distance over the length of the path.
        weights: the largest weight seen.
        skew: F/X, the part of the preconditioned gradient that Adam's scaling takes away.
        skew_scale: F/S, the same in units of the step.
    """

    step: int
    first: int
    lr: float = math.nan
    alpha: float = math.nan
    beta: float = math.nan
    theta: float = math.nan
    decay_rate: float = 0.0
    loss: float = math.nan
    loss_low: float = math.nan
    loss_high: float = math.nan
    loss_error: float = math.nan
    loss_bad: int = 0
    gradient: float = math.nan
    gradient_error: float = math.nan
    dimension: int = 0
    norm: float = math.nan
    norm_high: float = math.nan
    mass_before: float = math.nan
    mass_after: float = math.nan
    clipped: int = 0
    stale: float = math.nan
    stale_update: float = math.nan
    stale_step: int = 0
    stale_tensor: str = ""
    update: float = math.nan
    update_step: int = 0
    update_tensor: str = ""
    excess: float = math.nan
    excess_step: int = 0
    excess_tensor: str = ""
    typical: float = math.nan
    falling: float = math.nan
    dead: float = math.nan
    edge: float = math.nan
    probed: float = math.nan
    agreement: float = math.nan
    overshoot: float = math.nan
    reach: float = math.nan
    reach_step: int = 0
    reach_tensor: str = ""
    eps_share: float = math.nan
    eps_worst: float = math.nan
    eps_tensor: str = ""
    tiny: float = math.nan
    tiny_tensor: str = ""
    lost: float = math.nan
    lost_tensor: str = ""
    wrong: float = math.nan
    wrong_ratio: float = math.nan
    wrong_step: int = 0
    wrong_tensor: str = ""
    tampered: float = math.nan
    tampered_step: int = 0
    tampered_tensor: str = ""
    late: int = 0
    pull: float = math.nan
    decay: float = math.nan
    decay_tensor: str = ""
    path: float = math.nan
    straight: float = math.nan
    weights: float = math.nan
    skew: float = math.nan
    skew_scale: float = math.nan


COLUMNS = tuple(field.name for field in fields(Record))
_READERS: dict[str, Any] = {one.name: {"int": int, "float": float, "str": str}[str(one.type)] for one in fields(Record)}


class Lines:
    """A file that is written line by line, at once; a disk that is full ends it, never the training.

    Args:
        path: its name.
        until: for a run that is resumed, the step that it goes on from: the lines up to there are kept, whose
            file may be there then. None asks for a new file.
    """

    def __init__(self, path: str | os.PathLike[str], until: int | None = None) -> None:
        self._path, self._length = os.fspath(path), 0
        try:
            if until is not None and Path(path).exists():
                kept = _up_to(Path(path), until)
                temporary = Path(path).with_name(f".{Path(path).name}.{os.getpid()}")
                temporary.write_bytes(kept)
                temporary.replace(path)
                self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - closed by close
                self._length = len(kept)
                return
            self._file = Path(path).open("xb", buffering=0)  # noqa: SIM115 - closed by close
        except FileExistsError:
            raise OptimizerError(
                f"{self._path} exists already; expected a new name, or an optimizer whose state was loaded before"
            ) from None
        except OSError as error:
            raise OptimizerError(f"{self._path} cannot be written: {error.strerror}") from error
        self._add(",".join(COLUMNS))

    def write(self, record: Record) -> None:
        """Add a record as a line, whole or not at all; after one that could not be written, none."""
        self._add(",".join(one if isinstance(one, str) else repr(one) for one in astuple(record)))

    def _add(self, line: str) -> None:
        if self._file.closed:
            return
        data = f"{line}\n".encode()
        try:
            if self._file.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._length)
            self.close()
            warnings.warn(
                f"{self._path} cannot be written any more ({error.strerror}): it ends here, the records and "
                "the training go on",
                RuntimeWarning,
                stacklevel=2,
            )
        else:
            self._length += len(data)

    def close(self) -> None:
        """Close the file, as often as one likes."""
        with suppress(OSError):
            self._file.close()


def _up_to(path: Path, until: int) -> bytes:
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines or lines[0].decode(errors="replace").strip().split(",") != list(COLUMNS):
        raise OptimizerError(f"{path} is no record of this kind; expected a new directory")
    whole = [line for line in lines[1:] if line.endswith(b"\n") and line.partition(b",")[0].isdigit()]
    return lines[0] + b"".join(line for line in whole if int(line.partition(b",")[0]) <= until)


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a watch saved when it was detached; of a run that was killed there is nothing, which is no error.

    Raises:
        DataError: the file holds something else.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DataError(f"{os.fspath(path)} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{os.fspath(path)}: expected an object with the facts of a run")
    return found


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read the records that a watch wrote, also of a run that was killed; a last line that is cut off is left out.

    Raises:
        DataError: there are none, or a line is damaged.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no text"
        raise DataError(f"{os.fspath(path)} cannot be read: {said}") from error
    if not rows or tuple(rows[0]) != COLUMNS:
        raise DataError(f"{os.fspath(path)} is no record of a watched run; expected the columns step, first, lr, ...")
    found: list[Record] = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            if len(row) != len(COLUMNS):
                raise ValueError("it is cut off")
            found.append(Record(**{name: _READERS[name](text) for name, text in zip(COLUMNS, row, strict=True)}))
        except ValueError as error:
            if number == len(rows):
                break
            raise DataError(f"{os.fspath(path)}, line {number}: {error}") from None
    return found
