"""The Python of the practitioner's pages runs as printed, and prints what the comments say."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PRINTED = re.compile(r"^print\(.*\)\s+# (.+)$", re.MULTILINE)


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["check.md", "inputs.md", "train.md", "watch.md"])
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in blocks(page):
        exec(compile(block, page, "exec"), scope)
        shown = capsys.readouterr().out
        for promised in PRINTED.findall(block):
            if not promised.startswith("every condition"):
                assert promised in shown
    assert blocks(page)


def test_the_files_are_valid_yaml_and_the_workflow_checks():
    import yaml

    text = (DOCS / "ci.md").read_text(encoding="utf-8")
    files = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (workflow,) = (one for one in map(yaml.safe_load, files) if "jobs" in one)
    steps = workflow["jobs"]["check"]["steps"]
    assert any("generic-adam check --from train:configure" in step.get("run", "") for step in steps)
