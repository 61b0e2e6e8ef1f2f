"""A run: one directory, one process, signals that pause it, results that appear together.

The same command starts a run, takes a paused one up again, and tells that a finished one is finished. What a
run has computed is never given up for what it is about to write: checkpoints go when the results, written
aside and renamed, are all in place.
"""

from __future__ import annotations

import abc
import io
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from generic_adam.errors import RunError
from generic_adam.files import ASIDE, OutputError, ensure_output_directory, writing
from generic_adam_laboratory.backends import Paused, handled
from generic_adam_laboratory.runs import checkpoint
from generic_adam_laboratory.runs.records import damaged_files, read_manifest

CHECKPOINT_SECONDS = 10.0
"""How much work a killed process may lose."""


class Work(abc.ABC):
    """A computation in blocks of steps, whose state is a table of arrays that change in place.

    Attributes:
      steps: how many steps there are in all.
      next_t: the step that comes next.
      state: all that the next blocks depend on but `next_t`, and what has been recorded.
    """

    steps: int
    next_t: int = 1
    state: Mapping[str, np.ndarray]

    @property
    def is_finished(self) -> bool:
        """True where nothing is left to do."""
        return self.next_t > self.steps

    @abc.abstractmethod
    def advance(self) -> None:
        """Do the next block."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint holds."""
        return {"next_t": np.array(self.next_t), **self.state}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Bring a fresh work to where `arrays` was called."""
        for name, own in self.state.items():
            own[:] = arrays[name]
        self.next_t = int(arrays["next_t"])


class Stages(Work):
    """Several works, one after the other, as one; in a checkpoint the place of each stands before its names.

    What depends on those before it is given as its number of steps and a function, which makes it in its turn.
    """

    def __init__(self, *works: Work | tuple[int, Callable[[], Work]]) -> None:
        self.works = list(works)

    @property
    def steps(self) -> int:
        """The steps of all."""
        return sum(work.steps if isinstance(work, Work) else work[0] for work in self.works)

    @property
    def next_t(self) -> int:
        """One more than the steps made, of all together."""
        return 1 + sum(work.next_t - 1 for work in self.works if isinstance(work, Work))

    def _begun(self, place: int) -> Work:
        if not isinstance(work := self.works[place], Work):
            self.works[place] = work = work[1]()
        return work

    def advance(self) -> None:
        """Do the next block of the first that is not finished."""
        next(work for work in map(self._begun, range(len(self.works))) if not work.is_finished).advance()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return those of each that has begun."""
        begun = [(place, work) for place, work in enumerate(self.works) if isinstance(work, Work)]
        return {f"{place}.{name}": array for place, work in begun for name, array in work.arrays().items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Give each its own back."""
        for place, work in enumerate(self.works):
            start = f"{place}."
            own = {name.removeprefix(start): one for name, one in arrays.items() if name.startswith(start)}
            if own or isinstance(work, Work):
                self._begun(place).restore(own)


Progress = Callable[[int, int], None]
"""Told after each block how many steps have been made, and how many there are."""


def carry_out(work: Work, run: Run | None = None, progress: Progress | None = None) -> None:
    """Do all of a fresh work, or what a run's directory has not of it yet, with a checkpoint every ten seconds.

    A signal that comes in a run raises `Paused` between two blocks, when the state has been saved.
    """
    if run is not None:
        run.take_up(work)
    while not work.is_finished:
        if run is not None and run.signals.number is not None:
            run.save(work)
            raise Paused(run.signals.number, f"paused before t = {work.next_t:,}")
        work.advance()
        if progress is not None:
            progress(work.next_t - 1, work.steps)
        if run is not None and time.monotonic() - run.saved >= CHECKPOINT_SECONDS and not work.is_finished:
            run.save(work)
    if run is not None:
        with suppress(OutputError):  # for want of room: then the results may fit, and if not, they tell
            run.save(work)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold a directory for this process alone; the system lets go of it however the process ends.

    What a process killed while it wrote left behind is cleared away.
    """
    try:
        lock = FileLock(directory / ".lock").acquire(timeout=0)
    except Timeout as error:
        raise OutputError(f"{directory} is in use by another process; wait for it or choose another --out") from error
    except OSError as error:
        raise OutputError(f"cannot lock {directory}: {error.strerror or error}") from error
    with lock:
        for left in directory.glob(f"{ASIDE}*"):
            with suppress(OSError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield


@dataclass
class Signals:
    """The number of the signal that came, or None."""

    number: int | None = None

    def note(self, number: int, _frame: FrameType | None = None) -> None:
        """Take a signal: the first pauses, a second one ends the process."""
        if self.number is not None:
            _say("stopped at once\x1b[?25h" if sys.stderr.isatty() else "stopped at once")
            os._exit(128 + number)
        self.number = number
        _say("pausing as soon as this part is done; a second signal stops at once")


def _say(text: str) -> None:
    with suppress(OSError):  # the terminal may be what went away
        os.write(2, f"\n{text}\n".encode())


@dataclass
class Run:
    """A directory that this process holds, for runs of one identity only: the settings as plain types.

    Attributes:
      is_finished: the directory holds this run's results, whole.
      resumed_from: the step from which it went on, or None.
      seconds: how long it had computed when it was last saved, earlier parts included; `earlier_seconds` are theirs.
      complaints: a line for each damaged checkpoint that was passed over.
      saved: when its last checkpoint was written.
    """

    directory: Path
    identity: Mapping[str, Any]
    signals: Signals
    is_finished: bool = False
    resumed_from: int | None = None
    seconds: float = 0.0
    earlier_seconds: float = field(default=0.0, init=False)
    complaints: tuple[str, ...] = field(default=(), init=False)
    saved: float = field(default=0.0, init=False)

    def take_up(self, work: Work) -> None:
        """Bring a fresh work to the newest checkpoint."""
        state, self.complaints = checkpoint.load_latest(self.directory, _decode)
        if state is not None:
            try:
                self.seconds = self.earlier_seconds = float(state["seconds"])
                work.restore(state)
            except (KeyError, ValueError, TypeError) as error:
                raise RunError(f"the checkpoint belongs to another run ({error})") from error
            self.resumed_from = work.next_t
        self.saved = time.monotonic()

    def save(self, work: Work) -> None:
        """Leave a checkpoint of the work."""
        now = time.monotonic()
        self.seconds += now - self.saved
        self.saved = now
        arrays = work.arrays() | {"identity": np.array(json.dumps(self.identity)), "seconds": np.array(self.seconds)}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        checkpoint.save(self.directory, work.next_t, buffer.getvalue(), "npz")

    @contextmanager
    def publish(self) -> Iterator[Path]:
        """Yield a folder for the results; they appear together, and then the checkpoints go."""
        with published(self.directory) as folder:
            yield folder
        checkpoint.remove_all(self.directory)


def _decode(payload: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


@contextmanager
def open_run(out: str | os.PathLike[str], identity: Mapping[str, Any], *, restart: bool = False) -> Iterator[Run]:
    """Take a directory for a run, or make it; `restart` forgets what it holds. Signals pause the run.

    Raises:
      OutputError: it cannot be written, another process holds it, or it holds another run.
    """
    directory, signals = ensure_output_directory(out), Signals()
    plain = json.loads(json.dumps(identity))
    is_held = threading.current_thread() is threading.main_thread()  # signals reach no other
    with exclusive(directory):
        if restart:
            checkpoint.remove_all(directory)
        finished = not restart and _is_here(directory, plain)
        with handled(signals.note) if is_held else nullcontext():
            yield Run(directory, plain, signals, finished)


def _is_here(directory: Path, identity: Mapping[str, Any]) -> bool:
    """Return whether the directory holds this run's results, whole; refuse another run."""
    paused, _ = checkpoint.load_latest(directory, _decode)
    manifest = read_manifest(directory) or {}
    if paused is not None:
        kind, old = "paused", json.loads(str(paused.get("identity", "{}")))
    elif manifest:
        kind, old = "finished", manifest.get("settings")
    else:
        return False
    refuse_another(directory, kind, old, identity)
    return paused is None and "files" in manifest and not damaged_files(directory, manifest)


def refuse_another(directory: Path, kind: str, settings: Any, identity: Mapping[str, Any]) -> None:
    """Raise `OutputError` where the settings of the `kind` run that a directory holds are not those of this run."""
    for key, value in identity.items():
        found = settings.get(key) if isinstance(settings, dict) else None
        if found != value:
            texts = (json.dumps(one, ensure_ascii=False) for one in (found, value))
            shown, wanted = (text if len(text) <= 60 else f"{text:.57}..." for text in texts)
            raise OutputError(
                f"{directory} holds a {kind} run whose {key} is {shown}, this one's is {wanted}; "
                "--restart replaces it, --out chooses another directory"
            )


@contextmanager
def published(directory: Path) -> Iterator[Path]:
    """Yield a folder; when the block ends without an error its files appear in `directory`, manifest last.

    What is as the manifest before it said goes. A process killed on the way leaves the old files or a set without
    manifest, never a manifest beside files that are not its own.
    """
    with writing(f"to {directory}"):
        folder = Path(tempfile.mkdtemp(prefix=ASIDE, dir=directory))
        try:
            yield folder
            last = "manifest.json"
            names = sorted((path.name for path in folder.iterdir()), key=lambda name: (name == last, name))
            if last in names:
                before = read_manifest(directory) or {}
                old = set(before["files"]) if isinstance(before.get("files"), dict) else set()
                old -= {*damaged_files(directory, before), *names}
                for name in (last, *old):
                    (directory / name).unlink(missing_ok=True)
            for name in names:
                (folder / name).replace(directory / name)
            with suppress(PermissionError):  # Windows opens no directories
                descriptor = os.open(directory, os.O_RDONLY)
                try:
                    os.fsync(descriptor)  # brings the renamings to the disk
                finally:
                    os.close(descriptor)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
