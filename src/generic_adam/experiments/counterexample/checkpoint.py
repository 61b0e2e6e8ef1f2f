"""Save a simulation in mid-run and take it up again, to end in the same bits.

A checkpoint is one `.npz` file without pickled objects: the plan as JSON, the next t, the generators, every
lane's state and what has been recorded. It holds lanes by replicate, not by thread, so that a run may go on
with another number of threads.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np

from generic_adam.experiments.counterexample.problem import ExperimentError
from generic_adam.experiments.counterexample.simulation import Simulation
from generic_adam.experiments.records import atomic_write

_FORMAT = 1


def save(path: str | os.PathLike[str], simulation: Simulation) -> None:
    """Write the checkpoint, replacing the previous one whole."""
    chunks = simulation.chunks
    arrays = {
        "plan": np.array(_fingerprint(simulation)),
        "next_t": np.array(simulation.next_t),
        "words": np.concatenate([chunk.stream.words for chunk in chunks], axis=1),
        "rare_counts": np.concatenate([chunk.stream.counts for chunk in chunks]),
        "x": simulation.x,
        "loss": simulation.loss,
        "counts": simulation.counts,
    }
    for place in range(len(simulation.algorithms)):
        arrays[f"state_{place}"] = np.concatenate([chunk.states[place] for chunk in chunks], axis=1)
    with atomic_write(path, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def restore(path: str | os.PathLike[str], simulation: Simulation) -> None:
    """Bring a fresh simulation of the same plan to where the checkpoint was taken.

    A schedule given as a Python callable is compared by its name only: nothing else of it can be read.

    Raises:
      ExperimentError: no such file, a damaged one, or the checkpoint of another plan.
    """
    try:
        # np.load on a path would leave the file open when it is damaged.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        found = str(arrays["plan"])
    except FileNotFoundError:
        raise ExperimentError(f"there is no checkpoint {path} to resume from") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ExperimentError(f"cannot read the checkpoint {path}: it is damaged ({error})") from error
    if found != _fingerprint(simulation):
        difference = _first_difference(found, _fingerprint(simulation))
        raise ExperimentError(f"the checkpoint {path} belongs to another run: {difference}")
    try:
        _fill(simulation, arrays)
    except (KeyError, ValueError) as error:
        raise ExperimentError(f"cannot read the checkpoint {path}: it is damaged ({error})") from error


def _fill(simulation: Simulation, arrays: dict[str, np.ndarray]) -> None:
    simulation.next_t = int(arrays["next_t"])
    simulation.x[:], simulation.loss[:] = arrays["x"], arrays["loss"]
    simulation.counts[:] = arrays["counts"]
    first = simulation.plan.replicate_range.start
    for chunk in simulation.chunks:
        columns = slice(chunk.replicates.start - first, chunk.replicates.stop - first)
        chunk.stream.words[:] = arrays["words"][:, columns]
        chunk.stream.counts[:] = arrays["rare_counts"][columns]
        for place, state in enumerate(chunk.states):
            state[:] = arrays[f"state_{place}"][:, columns]


def remove(path: str | os.PathLike[str]) -> None:
    """Delete the checkpoint of a run that has finished."""
    Path(path).unlink(missing_ok=True)


def _fingerprint(simulation: Simulation) -> str:
    settings = simulation.plan.settings() | {"format": _FORMAT, "recorded": simulation.times.size}
    return json.dumps(settings)


def _first_difference(found: str, expected: str) -> str:
    try:
        old = json.loads(found)
    except ValueError:
        return "its plan cannot be read"
    new = json.loads(expected)
    for key, value in new.items():
        if old.get(key) != value:
            shown, wanted = json.dumps(old.get(key)), json.dumps(value)
            return f"its {key} is {_short(shown)}, this run's is {_short(wanted)}"
    return "it has settings unknown here"


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
