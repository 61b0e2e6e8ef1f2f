"""``generic-adam demo``."""

import re

from generic_adam.cli import main
from generic_adam.cli.app import build_app
from generic_adam_laboratory.cli import experiments
from generic_adam_laboratory.studies.haywire import ADAM, FALLS, REPAIRED, RISES


def test_adam_leaves_the_repaired_method_stays_and_the_figure_is_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(experiments, "STEPS", 3000)  # Adam leaves before; the halves of the condition delay that
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    output = capsys.readouterr().out
    lines = output.splitlines()
    rows = {
        change: next(line for line in lines if line.strip().startswith(f"{change.label}  "))
        for change in (ADAM, FALLS, RISES, REPAIRED)
    }
    assert re.search(r" 2,\d{3} ", rows[ADAM])
    assert all("never" in rows[change] for change in (FALLS, RISES, REPAIRED))
    for suffix in ("svg", "png"):
        figure = tmp_path / "demo" / f"haywire.{suffix}"
        assert f"wrote {figure}" in lines
        assert figure.stat().st_size > 10_000
    known = {one.name for one in (*build_app().registered_commands, *build_app().registered_groups)}
    asked = re.findall(
        r"^  (?:generic-adam|python -m generic_adam.cli) (\w+)", output.partition("Next:")[2], re.MULTILINE
    )
    assert len(asked) == 4
    assert set(asked) <= known
