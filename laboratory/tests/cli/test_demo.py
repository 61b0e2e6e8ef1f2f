"""``generic-adam demo``."""

import re

from generic_adam.cli import main
from generic_adam.cli.app import build_app


def test_adam_fails_the_certified_method_arrives_and_the_figure_is_there(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    output = capsys.readouterr().out
    lines = output.splitlines()
    rows = {line.split("  ")[0].strip(): line for line in lines if re.search(r"[+-]\d\.\d{3}\s*$", line)}
    assert list(rows) == ["Adam", "AMSGrad", "certified Adam"]
    ends = {label: float(line.split()[-1]) for label, line in rows.items()}
    assert " not certified " in rows["Adam"]
    assert ends["Adam"] > 0.9
    for label in ("AMSGrad", "certified Adam"):  # the verdicts agree with where they end
        assert " not " not in rows[label]
        assert "T^(-1/2) log T" in rows[label]
        assert ends[label] < -0.3
    for suffix in ("svg", "png"):
        figure = tmp_path / "demo" / f"counterexample.{suffix}"
        assert f"wrote {figure}" in lines
        assert figure.stat().st_size > 10_000
    assert "for 600,000 steps" in output
    known = {one.name for one in (*build_app().registered_commands, *build_app().registered_groups)}
    asked = re.findall(
        r"^  (?:generic-adam|python -m generic_adam.cli) (\w+)", output.partition("Next:")[2], re.MULTILINE
    )
    assert len(asked) == 3
    assert set(asked) <= known
