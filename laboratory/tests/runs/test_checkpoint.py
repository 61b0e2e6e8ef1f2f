"""Checkpoints: whole or passed over, never half-read."""

import contextlib
import pickle
import resource

import pytest
import torch

from generic_adam.files import OutputError
from generic_adam_laboratory.runs import checkpoint
from generic_adam_laboratory.runs.checkpoint import CheckpointError
from generic_adam_laboratory.training import read_state, state_bytes


def state(epoch: int) -> bytes:
    return state_bytes({"epoch": epoch, "weights": torch.arange(1000.0) + epoch, "records": [(epoch, 0.5)]})


def test_the_newest_state_comes_back(tmp_path):
    for epoch in (1, 2, 3):
        checkpoint.save(tmp_path, epoch, state(epoch))
    restored, complaints = checkpoint.load_latest(tmp_path, read_state)
    assert complaints == ()
    assert restored["epoch"] == 3
    assert torch.equal(restored["weights"], torch.arange(1000.0) + 3)


def test_the_newest_two_are_kept_and_nothing_else(tmp_path):
    for epoch in range(1, 6):
        checkpoint.save(tmp_path, epoch, state(epoch))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000004.pt",
        "checkpoint-000005.pt",
    ]


def test_an_empty_directory_has_no_state(tmp_path):
    assert checkpoint.load_latest(tmp_path, read_state) == (None, ())


def flip_a_bit(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda raw: raw[:-1], "truncated"),
        (lambda raw: raw[: len(raw) // 2], "truncated"),
        (lambda raw: raw[:10], "bad first line"),
        (lambda raw: b"", "bad first line"),
        (lambda raw: raw + b"x", "truncated or grown"),
        (flip_a_bit, "SHA-256 does not match"),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, damage, complaint):
    checkpoint.save(tmp_path, 1, state(1))
    newest = checkpoint.save(tmp_path, 2, state(2))
    newest.write_bytes(damage(newest.read_bytes()))
    restored, complaints = checkpoint.load_latest(tmp_path, read_state)
    assert restored["epoch"] == 1
    (line,) = complaints
    assert str(newest) in line
    assert complaint in line


def test_two_damaged_checkpoints_are_two_complaints(tmp_path):
    for epoch in (1, 2):
        path = checkpoint.save(tmp_path, epoch, state(epoch))
        path.write_bytes(flip_a_bit(path.read_bytes()))
    restored, complaints = checkpoint.load_latest(tmp_path, read_state)
    assert restored is None
    assert len(complaints) == 2


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("code from a checkpoint was run",))


def test_a_checkpoint_cannot_run_code(tmp_path):
    path = tmp_path / "checkpoint-000001.pt"
    checkpoint.save(tmp_path, 1, state_bytes({"x": Evil()}))
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(path, read_state)
    payload = pickle.dumps(Evil())
    header = path.read_bytes().split(b"\n")[0]
    path.write_bytes(header + b"\n" + payload)
    with pytest.raises(CheckpointError, match="truncated or grown"):
        checkpoint.load(path, read_state)


@contextlib.contextmanager
def files_no_larger_than(size: int):
    """The system refuses to let a file grow beyond this, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_checkpoint_that_does_not_fit_leaves_the_ones_before_it(tmp_path):
    checkpoint.save(tmp_path, 1, state(1))
    with (
        files_no_larger_than(1024),
        pytest.raises(OutputError, match="cannot write"),
    ):
        checkpoint.save(tmp_path, 2, state(2))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000001.pt"]
    assert checkpoint.load_latest(tmp_path, read_state)[0]["epoch"] == 1


def test_damaged_newer_checkpoints_do_not_push_out_the_new_one(tmp_path):
    for epoch in (8, 9):
        path = checkpoint.save(tmp_path, epoch, state(epoch))
        path.write_bytes(flip_a_bit(path.read_bytes()))
    checkpoint.save(tmp_path, 1, state(1))
    restored, complaints = checkpoint.load_latest(tmp_path, read_state)
    assert restored["epoch"] == 1
    assert complaints == ()


def test_a_state_that_is_no_table_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="holds no table"):
        checkpoint.load(checkpoint.save(tmp_path, 1, state_bytes([1, 2])), read_state)


def test_the_checkpoints_of_other_programs_stay(tmp_path):
    """A user may choose a directory that holds something."""
    theirs = {"checkpoint-000001.pt": b"PK\x03\x04", "checkpoint-900000.npz": b"", ".checkpoint-mine": b"x"}
    for name, content in theirs.items():
        (tmp_path / name).write_bytes(content)
    for epoch in (2, 3, 4):
        checkpoint.save(tmp_path, epoch, state(epoch))
    checkpoint.remove_all(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == theirs
