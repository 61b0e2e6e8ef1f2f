"""The report page: what it finds in a directory, that it is whole in one file, and that it trusts no text."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shutil
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from generic_adam.answers.figures import save_figure
from generic_adam.cli.app import run
from generic_adam.errors import DataError, GenericAdamError
from generic_adam.files import write_json
from generic_adam_laboratory.report import write_report
from generic_adam_laboratory.runs.records import Claim, write_claims, write_manifest


class Balance(HTMLParser):
    """Collects addresses and checks that every element that is opened is closed."""

    VOID = frozenset({"meta", "img", "br", "link", "input", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def curves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curves")
    figure = Figure()
    figure.subplots().plot([1, 2], [2, 1])
    save_figure(figure, folder / "curves")
    return folder


def sealed(folder: Path, command: str = "generic-adam reproduce x --seeds 3", **settings: object) -> Path:
    write_manifest(folder / "manifest.json", command, {"seeds": 3, **settings}, 12.5)
    return folder


@pytest.fixture
def experiment(tmp_path: Path, curves: Path) -> Path:
    folder = tmp_path / "my-experiment"
    folder.mkdir()
    write_claims(folder, [Claim("Larger r is faster.", "Figure 1", "supported", "5 of 5 seeds")])
    for picture in curves.iterdir():
        shutil.copy(picture, folder)
    (folder / "outcomes.md").write_text("| method | x |\n|---|---|\n| a \\| b | −0.5 |\n", encoding="utf-8")
    return sealed(folder)


def page_of(folder: Path) -> str:
    path, _changed = write_report(folder)
    return path.read_text(encoding="utf-8")


def text_of(page: str) -> str:
    return " ".join(Balance(page).text)


def test_everything_in_the_directory_is_on_the_page(experiment: Path) -> None:
    page = page_of(experiment)
    text = text_of(page)
    assert "generic-adam reproduce x --seeds 3" in text
    assert "12.5 seconds" in text
    assert "Larger r is faster." in text
    assert "5 of 5 seeds" in text
    assert "a | b" in text
    svg = (experiment / "curves.svg").read_bytes()
    assert base64.b64encode(svg).decode() in page
    assert page.count("<img ") == 1  # the PNG beside the SVG is not shown twice


def test_a_file_that_the_manifest_does_not_list_is_not_shown(experiment: Path) -> None:
    (experiment / "notes.md").write_text("| sesame |\n|---|\n| sesame |\n", encoding="utf-8")
    (experiment / "link.svg").symlink_to(experiment / "curves.svg")
    page = page_of(experiment)
    assert "sesame" not in page
    assert page.count("<img ") == 1


def test_the_page_is_self_contained(experiment: Path) -> None:
    page = page_of(experiment)
    assert all(address.startswith("data:") for address in Balance(page).addresses)
    assert "<script" not in page
    style = page.split("<style>")[1].split("</style>")[0]
    assert not re.search(r"@import|url\(", style)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">' in page


def test_text_from_files_is_never_markup(experiment: Path) -> None:
    hostile = '<script>alert("x")</script>'
    write_claims(experiment, [Claim(hostile, hostile, "unclear", hostile)])
    (experiment / "outcomes.md").write_text(f"| {hostile} |\n|---|\n| {hostile} |\n", encoding="utf-8")
    (experiment / "<b>.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    page = page_of(sealed(experiment, hostile, **{hostile: hostile}))
    assert "<script" not in page
    assert "<b>" not in page
    assert hostile in text_of(page)


def test_what_cannot_be_reported_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such directory"):
        write_report(tmp_path / "missing")
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(DataError, match="nothing to report in"):
        write_report(tmp_path)
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="nothing to report in"):
        write_report(tmp_path)
    (tmp_path / "claims.json").write_text('[{"sentence": 1}]', encoding="utf-8")
    sealed(tmp_path)
    with pytest.raises(GenericAdamError, match="claims"):
        write_report(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.json", "manifest.json", "notes.txt"]


def test_a_second_report_replaces_the_first_and_does_not_show_it(experiment: Path) -> None:
    first = page_of(experiment)
    assert page_of(experiment) == first


def test_the_command_says_where_the_page_is(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert run(["report", str(experiment), "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    assert "Larger r is faster." in out.read_text(encoding="utf-8")
    assert run(["report", str(tmp_path / "missing")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("seconds", ["soon", 10**400, None])
def test_a_manifest_of_another_shape_is_one_line(tmp_path: Path, seconds: object) -> None:
    (tmp_path / "manifest.json").write_text(
        json.dumps({"command": "x", "seconds": seconds, "settings": {"methods": ["adam"]}}), encoding="utf-8"
    )
    with pytest.raises(DataError, match="manifest"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("outcomes.md", b"\xff\xfe"),
        ("claims.json", b"[" * 100_000),
    ],
)
def test_a_foreign_file_is_at_most_one_line(experiment: Path, name: str, content: bytes) -> None:
    (experiment / name).write_bytes(content)
    with pytest.raises(GenericAdamError, match=rf"cannot (read .*{name}|report on)"):
        write_report(sealed(experiment))


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match="it is a file"):
        write_report(tmp_path / "file")


def test_columns_lie_as_the_table_says(experiment: Path) -> None:
    table = "| method | share |\n|---|---:|\n| a | 3 of 4 |\n"
    (experiment / "outcomes.md").write_text(table, encoding="utf-8")
    assert '<td class="number">3 of 4</td>' in page_of(sealed(experiment))


def test_a_file_that_is_not_the_one_the_run_wrote_is_said_on_the_page(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((experiment / "manifest.json").read_text(encoding="utf-8"))
    assert run(["report", str(experiment)]) == 0
    assert capsys.readouterr().err == ""
    with (experiment / "outcomes.md").open("a", encoding="utf-8") as stream:
        stream.write(" ")
    (experiment / "curves.png").unlink()
    manifest["files"]["../../etc/passwd"] = "0" * 64
    write_json(experiment / "manifest.json", manifest)
    assert set(write_report(experiment)[1]) == {"outcomes.md", "curves.png", "../../etc/passwd"}
    assert run(["report", str(experiment)]) == 1
    told = capsys.readouterr()
    assert told.err.count("\n") == 3
    assert "outcomes.md: missing, or its SHA-256 is not the manifest's" in told.err
    assert "outcomes.md: missing, or its SHA-256 is not the manifest's" in text_of(page_of(experiment))


def test_a_text_that_is_no_unicode_is_shown_as_far_as_it_goes(experiment: Path) -> None:
    (experiment / "claims.json").write_text(
        '[{"sentence": "lone \\ud800", "source": "", "verdict": "unclear", "evidence": ""}]', encoding="utf-8"
    )
    assert "lone ?" in text_of(page_of(sealed(experiment)))


def mutate(content: bytes, rng: random.Random) -> bytes:
    """A file as a full disk, a bad cable or a spiteful hand leaves it."""
    position, other = rng.randrange(len(content)), rng.randrange(len(content))
    match rng.randrange(6):
        case 0:
            return content[:position]
        case 1:
            return content[:position] + bytes([rng.randrange(256)]) + content[position + 1 :]
        case 2:
            return content[:position] + content[min(position, other) : max(position, other)] + content[position:]
    pieces = re.split(rb"(\"[^\"]*\"|-?\d[\d.e+-]*|[,|])", content)
    odd = (
        b"null",
        b"[]",
        b"{}",
        b'""',
        b"1e999",
        b"-1",
        b"true",
        b'"<b>"',
        b"NaN",
        b"9" * 5000,
        b'"\\ud800"',
    )
    for _ in range(rng.randint(1, 3)):
        pieces[rng.randrange(len(pieces))] = rng.choice(odd)
    return b"".join(pieces)


def outcome(folder: Path) -> str:
    try:
        Balance(page_of(folder))
    except GenericAdamError:
        return "line"
    return "page"


def outcomes_of_damage(experiment: Path, names: list[str], count: int, seed: int) -> set[str]:
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(count):
        path = experiment / rng.choice(names)
        whole = path.read_bytes()
        path.write_bytes(mutate(whole, rng))
        manifest = (experiment / "manifest.json").read_bytes()
        if path.name != "manifest.json":
            sealed(experiment)  # by whom who changed it
        outcomes.add(outcome(experiment))
        path.write_bytes(whole)
        if path.name != "manifest.json":
            (experiment / "manifest.json").write_bytes(manifest)
    return outcomes


def test_a_damaged_record_gives_a_page_or_one_line(experiment: Path) -> None:
    names = sorted(path.name for path in experiment.iterdir() if path.suffix != ".png")
    assert outcomes_of_damage(experiment, names, 60, seed=1) == {"page", "line"}


@pytest.mark.exhaustive
def test_many_damaged_records(experiment: Path) -> None:
    names = sorted(path.name for path in experiment.iterdir())
    assert outcomes_of_damage(experiment, names, 1300, seed=2) == {"page", "line"}
