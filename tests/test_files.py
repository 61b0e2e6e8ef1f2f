"""Files appear whole or not at all."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from generic_adam.files import OutputError, atomic_write, ensure_output_directory, write_json

if TYPE_CHECKING:
    from pathlib import Path


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_atomic_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "record.csv"
    path.write_text("a longer text that was here before")
    with atomic_write(path) as file:
        file.write("t,x\n1,é\n")
        assert path.read_text() == "a longer text that was here before"
    assert path.read_bytes() == "t,x\n1,é\n".encode()
    assert names_in(tmp_path) == ["record.csv"]


def test_atomic_write_takes_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "b", "wb") as file:
        file.write(b"\x00\r\n\xff")
    assert (tmp_path / "b").read_bytes() == b"\x00\r\n\xff"


def test_atomic_write_honours_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a") as file:
            file.write("x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_an_error_in_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "record.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write("half" * (1 // file.tell()))
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["record.csv"]


def test_a_destination_below_a_device_is_one_line() -> None:
    with pytest.raises(OutputError) as caught, atomic_write("/dev/full/record.csv"):
        pass
    assert "\n" not in str(caught.value)


def test_a_failed_flush_is_one_line_and_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.csv"
    path.write_text("old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    no_space_left = pytest.raises(OutputError, match=r"record\.csv: No space left on device")
    with no_space_left as caught, atomic_write(path) as file:
        file.write("new")
    assert "\n" not in str(caught.value)
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["record.csv"]


def test_a_missing_directory_is_one_line(tmp_path: Path) -> None:
    no_such_directory = pytest.raises(OutputError, match="No such file or directory")
    with no_such_directory as caught, atomic_write(tmp_path / "missing" / "record.csv"):
        pass
    assert "\n" not in str(caught.value)


def test_ensure_output_directory_makes_parents(tmp_path: Path) -> None:
    made = ensure_output_directory(tmp_path / "a" / "b")
    assert made.is_dir()
    assert names_in(made) == []
    assert ensure_output_directory(made) == made


def test_ensure_output_directory_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="expected a directory"):
        ensure_output_directory(tmp_path / "file")
    with pytest.raises(OutputError, match="cannot write to"):
        ensure_output_directory(tmp_path / "file" / "below")


def test_ensure_output_directory_refuses_an_unwritable_one() -> None:
    with pytest.raises(OutputError, match="cannot write to"):
        ensure_output_directory("/proc/generic-adam")


def test_json_refuses_what_json_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert names_in(tmp_path) == []


def test_a_device_is_never_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="is no plain file"), atomic_write(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()
