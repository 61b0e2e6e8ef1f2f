"""What the benchmarks share: timing in turn, and tables that name the machine."""

import json

import pytest

from benchmarks import machine


def test_candidates_are_timed_in_turn_after_a_warm_up():
    order = []
    best = machine.best_seconds({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, calls=2)
    assert order == ["a", "b"] + ["a", "a", "b", "b"] * 3
    assert set(best) == {"a", "b"}
    assert all(seconds >= 0 for seconds in best.values())


def test_the_best_round_is_kept():
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 29.0])  # rounds of 5, 2 and 9 seconds
    assert machine.best_seconds({"a": lambda: None}, rounds=3, clock=lambda: next(clock)) == {"a": 2.0}


def test_the_record_holds_rows_command_and_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    machine.publish(
        "trial", ("what", "time [s]"), [("one", "0.5")], command="python x.py", seconds=1.5, settings={"n": 3}
    )
    record = json.loads((tmp_path / "trial.json").read_text(encoding="utf-8"))
    assert record["rows"] == [{"what": "one", "time [s]": "0.5"}]
    assert record["command"] == "python x.py"
    assert record["settings"] == {"n": 3}
    assert record["machine"]["cores"] >= 1
    table = (tmp_path / "trial.md").read_text(encoding="utf-8")
    assert "| one | 0.5 |" in table
    assert "`python x.py`" in table
    assert "time [s]" in capsys.readouterr().out


def test_a_row_of_the_wrong_length_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        machine.publish("trial", ("what", "time"), [("one",)], command="x", seconds=0)
