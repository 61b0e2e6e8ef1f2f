"""The wording of answers: one file for each command and width, written anew by `pytest --update-answers`.

No other test pins a sentence. Whoever changes words reads the difference of these files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parent / "snapshots"
RUN = "--lr 3e-4 --betas 0.9,0.95 --eps 1e-8 --weight-decay 0.1 --warmup 200 --decay cosine --steps 3000"
COMMANDS = {
    "check-adam": "check adam --steps 1e4",
    "check-long-run": "check certified_adam",
    "check-run": f"check {RUN} --clip 1",
    "check-run-known": f"check {RUN} --clip 1 --gradient-norm 1 --weights-bound 1",
    "check-notes": "check --lr 2e-5 --betas 0.9,0.8 --weight-decay 0.01 --steps 500 --batch 32",
    "check-explain": f"check {RUN} --explain",
    "check-rl": "check adam --lr 3e-4 --eps 1e-5 --steps 1e6 --setting rl",
    "check-shuffled": "check adam --steps 1e5 --sampling shuffled --batches-per-epoch 100",
    "check-full-batch": "check rmsprop --full-batch --steps 1e4",
    "check-amsgrad": "check amsgrad --steps 1e4",
    "check-sgd": "check sgd --steps 1e4",
    "bound-adam": "bound adam --steps 1e3",
    "bound-explain": "bound adamw --weight-decay 0 --steps 1e5 --dimension 10 --explain",
    "bound-missing": "bound amsgrad --steps 1e4",
    "bound-known": f"bound {RUN} --clip 1 --gradient-norm 1 --weights-bound 1 --full-batch",
    "advise-adam": "advise adam --steps 3000",
    "advise-run": f"advise {RUN}",
    "theorems": "theorems",
    "theorem-w": "theorems W",
}
NARROW_AND_WIDE = {"check-run", "bound-adam", "advise-adam", "theorems"}
CASES = [(name, width) for name in COMMANDS for width in ((60, 80, 120) if name in NARROW_AND_WIDE else (80,))]


@pytest.mark.parametrize(("name", "width"), CASES, ids=[f"{name}-{width}" for name, width in CASES])
def test_the_wording_is_the_reviewed_one(name, width, on_a_terminal, request):
    said = "\n".join(on_a_terminal(width, *COMMANDS[name].split())).rstrip() + "\n"
    file = SNAPSHOTS / f"{name}-{width}.txt"
    if request.config.getoption("--update-answers"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(said, encoding="utf-8")
    assert said == file.read_text(encoding="utf-8")


def test_every_snapshot_is_of_a_command():
    assert {path.name for path in SNAPSHOTS.iterdir()} == {f"{name}-{width}.txt" for name, width in CASES}


LEFT_BEHIND = ("for ever", "silent", "without a theorem", "not certified", "undecided", "price", "summed", "the theory")
"""The words that the product said before; those that stand for it are in the glossary."""
ANSWERS = [path for path in sorted(SNAPSHOTS.iterdir()) if not path.stem.startswith("theorem")]


@pytest.mark.parametrize("path", [one for one in ANSWERS if "explain" not in one.stem], ids=lambda path: path.stem)
def test_answers_have_no_greek_no_earlier_words_and_a_direction(path):
    said = path.read_text(encoding="utf-8")
    assert not set("αβθνχδΓ") & set(said)
    assert not [
        word for word in LEFT_BEHIND if word in said.replace("the theory assumes", "").replace("outside the theory", "")
    ]
    numbers = said.split("\n  Parts", 1)[1:]
    assert all("lower is better" in " ".join(one.split()[:20]) for one in numbers)
