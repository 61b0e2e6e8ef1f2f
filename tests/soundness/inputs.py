"""Bad and strange inputs, generated: texts that are nearly schedules, command lines that are nearly right."""

from __future__ import annotations

import random

from tests.soundness import generator

_NUMBERS = (
    "0",
    "1",
    "-1",
    "0.5",
    "1e308",
    "1e-308",
    "5e-324",
    "1e309",
    "1e-400",
    "0e9999999",
    "1e999999999",
    "-0.0",
    "00",
    "1_0",
    "0x10",
    "1j",
    "1e",
    ".5",
    "5.",
    "4e-11",
    "6e-8",
    "1/3",
    "9007199254740993",
    "nan",
    "inf",
    "True",
    "9" * 400,
    "0." + "0" * 400 + "1",
)
_ATOMS = (
    "t",
    "pi",
    "e",
    "x",
    "T",
    "τ",
    "sqrt",
    "'t'",
    "t.real",
    "t[0]",
    "None",
    "()",
    "#",
    "\\",
    "~t",
    "lambda: t",
    "",
    "\n",
)
_FUNCTIONS = (
    "sqrt",
    "log",
    "exp",
    "abs",
    "sin",
    "cos",
    "expm1",
    "log1p",
    "min",
    "max",
    "clip",
    "theta_from_weights",
    "bias_correction",
    "periodic",
    "bounded",
    "tan",
    "eval",
    "__import__",
)
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "^",
    "**",
    "//",
    "%",
    "@",
    " if t < ",
    " else ",
    "<",
    ",",
    " ",
    "^-",
    "--",
    ")(",
    "=",
)


def text(source: random.Random, depth: int = 3) -> str:
    """A text that may or may not be a schedule."""
    kind = source.random()
    if kind < 0.25:
        return generator.theta(source)
    if kind < 0.45:
        return _mutated(source, generator.alpha(source))
    return _grown(source, depth)


def _grown(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice(_NUMBERS if source.random() < 0.5 else ("t", "t", "t", source.choice(_ATOMS)))
    parts = [_grown(source, depth - 1) for _ in range(source.choice((1, 2, 2, 2, 3)))]
    kind = source.random()
    if kind < 0.35:
        return f"{source.choice(_FUNCTIONS)}({', '.join(parts)})"
    if kind < 0.45:
        condition = f"t {source.choice(('<', '<=', '>', '>=', '=='))} {source.choice(_NUMBERS)}"
        return f"({parts[0]} if {condition} else {parts[-1]})"
    if kind < 0.55:
        return f"({parts[0]})"
    return source.choice(_OPERATORS[:6] if source.random() < 0.8 else _OPERATORS).join(parts)


def _mutated(source: random.Random, original: str) -> str:
    characters = list(original)
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(characters) + 1)
        if source.random() < 0.5 and place < len(characters):
            del characters[place]
        else:
            characters.insert(place, source.choice("0123456789.e+-*/^()t ,#_<>=\x00é\t"))
    return "".join(characters)


def arguments(source: random.Random) -> list[str]:
    """A command line for the subcommands that neither train nor write."""
    command = source.choice(("check", "bound", "advise", "methods", "recipes", "check", "check"))
    words = [command]
    if source.random() < 0.3:
        words.append(
            source.choice(("adam", "adaema", "certified_adam", "adagrad", "nosuch", "", "--help", "-h", "t5"))
        )
    options = (
        "--alpha",
        "--beta",
        "--theta",
        "--horizon",
        "--initial",
        "--weights",
        "--steps",
        "--lr",
        "--recipe",
        "--delta",
        "--json",
        "--smoothness",
        "--nosuch",
        "--config",
        "--from",
    )
    for _ in range(source.randint(0, 4)):
        option = source.choice(options)
        words.append(option)
        if option != "--json" and source.random() < 0.95:
            words.append(_argument(source, option))
    return words


def _argument(source: random.Random, option: str) -> str:
    if source.random() < 0.5 and option in {"--alpha", "--beta", "--theta", "--weights"}:
        return generator.alpha(source) if option == "--alpha" else text(source, 2)
    return source.choice(
        (
            "0.9",
            "1",
            "-1",
            "x",
            "1e400",
            "nan",
            "99999999999999999999",
            "1/sqrt(t)",
            "1-1/(t+1)",
            "",
            "0",
            "1e6",
            "1000",
            "t^0.5",
            "no_such:thing",
            "/nonexistent",
            "../../etc",
            "0e9999999",
            "(",
            "[bold]",
            "--",
            "a\x00b",
            "τ",
        )
    )
