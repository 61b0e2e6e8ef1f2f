"""``generic-adam methods``."""

import json

from generic_adam.cli import main
from generic_adam.methods import Method, as_algorithm, build, entries


def test_the_table_has_a_row_for_each_method(capsys):
    assert main(["methods"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    rows = [line.split() for line in captured.out.splitlines() if line.strip()]
    assert [row[0] for row in rows[2:]] == [entry.name for entry in entries()]
    assert rows[0][0] == "method"


def test_columns_align(capsys):
    main(["methods"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    column = lines[0].index("what it is")
    for line, entry in zip(lines[2:], entries(), strict=True):
        assert line[column:].startswith(entry.summary)


def test_json_holds_the_catalogue_and_parses_back(capsys):
    assert main(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in listed] == [entry.name for entry in entries()]
    for item, entry in zip(listed, entries(), strict=True):
        assert item["citation"] == entry.citation
        again = Method(alpha=item["alpha"], beta=item["beta"], theta=item["theta"])
        assert again == as_algorithm(entry.build()).method
        assert entry.build() == build(item["name"], **item["parameters"])
