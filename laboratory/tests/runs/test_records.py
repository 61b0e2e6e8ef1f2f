"""Records are written whole or not at all, and read back as they were."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from generic_adam.files import OutputError
from generic_adam_laboratory.runs import records
from generic_adam_laboratory.runs.records import Claim

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = Claim("larger r\nis | faster", "Figure 1(a)", "supported", "98 of 100 seeds")


def test_manifest_names_what_a_repetition_needs(tmp_path: Path) -> None:
    path = records.write_manifest(
        tmp_path / "manifest.json", command="generic-adam reproduce x", settings={"seeds": 3}, seconds=1.23456
    )
    read = json.loads(path.read_text())
    assert read["command"] == "generic-adam reproduce x"
    assert read["settings"] == {"seeds": 3}
    assert read["seconds"] == 1.235
    assert {"python", "numpy"} <= set(read["versions"])
    assert read["machine"]["cores"] == os.cpu_count()
    assert read["load_average"] is None or len(read["load_average"]) == 3


def test_claims_are_read_back_as_written(tmp_path: Path) -> None:
    as_json, as_table = records.write_claims(tmp_path, [CLAIM])
    assert records.read_claims(tmp_path) == [CLAIM]
    assert json.loads(as_json.read_text())[0]["verdict"] == "supported"
    rows = as_table.read_text().splitlines()
    assert len(rows) == 3
    assert rows[2] == r"| larger r is \| faster | Figure 1(a) | supported | 98 of 100 seeds |"


def test_a_claim_needs_one_of_three_verdicts() -> None:
    with pytest.raises(ValueError, match="proved"):
        Claim("s", "here", "proved", "e")


@pytest.mark.parametrize("text", ["{", "[1]", '[{"sentence": "s"}]'])
def test_a_broken_claims_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(OutputError, match="not a list of claims") as caught:
        records.read_claims(tmp_path)
    assert "\n" not in str(caught.value)
