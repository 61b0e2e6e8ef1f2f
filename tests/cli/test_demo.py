"""``generic-adam demo``."""

from generic_adam.cli import main


def test_certificates_then_a_figure_that_is_where_it_says(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    lines = capsys.readouterr().out.splitlines()
    verdicts = {line.split("  ")[0].strip(): line for line in lines if "certified" in line}
    assert " not certified " in verdicts["Adam"]
    assert " not " not in verdicts["certified Adam"]
    assert "T^(-1/2) log T" in verdicts["certified Adam"]
    assert " not certified " in verdicts["AMSGrad"]
    for suffix in ("svg", "png"):
        figure = tmp_path / "demo" / f"counterexample.{suffix}"
        assert f"wrote {figure}" in lines
        assert figure.stat().st_size > 10_000
