"""Bad and strange inputs, generated: texts that are nearly schedules, command lines and files that are nearly right."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.soundness import generator


def _words(text: str) -> list[str]:
    return text.split()


_NUMBERS = (
    *_words("0 1 -1 0.5 1e308 1e-308 5e-324 1e309 1e-400 0e9999999 1e999999999 -0.0 00 1_0 0x10 1j 1e .5 5."),
    *_words("4e-11 6e-8 1/3 9007199254740993 nan inf True"),
    *("9" * 400, "0." + "0" * 400 + "1"),
)
_GOOD_NUMBERS = (
    *_words("0 1 2 3 0.5 0.25 0.9 1e-3 1e-8 1e308 1e-308 5e-324 4e-11 6e-8 1/3 9007199254740993 0e9999999"),
    *_words("1e17 pi -1 -0.5"),
)
_ATOMS = ("lambda: t", "", "\n", *_words("t pi e x T τ sqrt 't' t.real t[0] None () # \\ ~t"))
# With how many arguments each is right.
_FUNCTIONS = {
    **dict.fromkeys(("sqrt", "log", "exp", "abs", "sin", "cos", "expm1", "log1p"), (1,)),
    **dict.fromkeys(("min", "max"), (2, 3)),
    **dict.fromkeys(("clip", "bounded"), (3,)),
    **dict.fromkeys(("theta_from_weights", "bias_correction"), (1,)),
    "periodic": (2,),
    **dict.fromkeys(("tan", "eval", "__import__"), (1, 2)),
}
_OPERATORS = (*_words("+ - * / ^ ** // % @ < , ^- -- )( ="), " if t < ", " else ", " ")


def text(source: random.Random, depth: int = 3) -> str:
    """A text that may or may not be a schedule: about every other one is."""
    kind = source.random()
    if kind < 0.25:
        return source.choice((generator.alpha, generator.beta, generator.theta))(source)
    if kind < 0.4:
        return _mutated(source, generator.alpha(source))
    # How many of its pieces are such that none can be read with them.
    return _grown(source, depth, source.choice((0.0, 0.0, 0.02, 0.3)))


def _grown(source: random.Random, depth: int, wrong: float) -> str:
    if source.random() < wrong:
        return source.choice((*_ATOMS, *_NUMBERS))
    if depth == 0:
        return source.choice(_GOOD_NUMBERS) if source.random() < 0.5 else "t"

    def part() -> str:
        return _grown(source, depth - 1, wrong)

    kind = source.random()
    if kind < 0.35:
        return _called(source, part, wrong)
    if kind < 0.45:
        comparison = source.choice(("<", "<=", ">", ">=") if source.random() > wrong else ("==", "!=", "in"))
        step = source.choice(("2", "10", "1000", "1e6", "7e8", "1e15", *_NUMBERS[:6]))
        return f"({part()} if t {comparison} {step} else {part()})"
    if kind < 0.55:
        return f"({part()})"
    operator = source.choice(_OPERATORS[:6] if source.random() > wrong else _OPERATORS)
    return operator.join(part() for _ in range(source.choice((1, 2, 2, 2, 3))))


def _called(source: random.Random, part: Callable[[], str], wrong: float) -> str:
    name = source.choice(list(_FUNCTIONS))
    if name in {"tan", "eval", "__import__"} and source.random() > wrong:
        name = "sqrt"
    count = source.choice(_FUNCTIONS[name]) if source.random() >= wrong else source.randint(0, 4)
    parts = [part() for _ in range(count)]
    if name in {"periodic", "bounded"}:  # what follows the first has to be a number
        parts[1:] = [source.choice(_GOOD_NUMBERS) for _ in parts[1:]]
    return f"{name}({', '.join(parts)})"


def _mutated(source: random.Random, original: str) -> str:
    characters = list(original)
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(characters) + 1)
        if source.random() < 0.5 and place < len(characters):
            del characters[place]
        else:
            characters.insert(place, source.choice("0123456789.e+-*/^()t ,#_<>=\x00é\t"))
    return "".join(characters)


_NAMES = (*_words("adam adaema certified_adam adagrad nosuch --help -h t5 nanogpt padam"), "")
_TEXTS = ("--alpha", "--beta", "--theta", "--weights", "--lr")
_FLAGS = _words("--json --explain --factored --full-batch --convex --no-bias-correction")
_OPTIONS = (
    *(*_TEXTS, *_FLAGS),
    *_words("--horizon --initial --steps --recipe --delta --smoothness --nosuch --config --from --betas --eps"),
    *_words("--weight-decay --clip --warmup --decay --min-lr --r --s --c --K --momentum --theorem --keep"),
    *_words("--dimension --weights-bound --gradient-norm --gap"),
)
_VALUES = (
    *_words("0.9 1 -1 x 1e400 nan 99999999999999999999 1/sqrt(t) 1-1/(t+1) 0 1e6 1000 t^0.5 no_such:thing"),
    *_words("/nonexistent ../../etc 0e9999999 ( [bold] -- a\x00b τ 0.9,0.999 0.9,x cosine linear"),
    *_words("inverse-sqrt W zou2019 nanogpt llama 1e-8"),
    "",
)


# Command lines that have an answer; what comes of them when something is changed is asked.
_COMPLETE = (
    "adam --lr 1e-3",
    "certified_adam --steps 1e5",
    "nanogpt",
    "--recipe t5",
    "--lr 3e-4 --betas 0.9,0.95 --warmup 100 --decay cosine --steps 1000 --min-lr 3e-5",
    "--lr 1e-3 --betas 0.9,0.999 --eps 1e-8 --weight-decay 0.1 --clip 1 --steps 1000",
    "adaema --lr 1e-2 --beta 0.5 --r 1/2 --s 0.5",
    "adamnc --steps 100 --json",
    "padam --steps 1000 --explain",
)


def arguments(source: random.Random) -> list[str]:
    """A command line for the subcommands that neither train nor write: right but for a few words, or of any words."""
    if source.random() < 0.1:
        return [source.choice(("methods", "recipes", "theorems")), source.choice((*_NAMES, "W", "--json"))]
    words = [source.choice(("check", "check", "bound", "advise"))]
    kind = source.random()
    if kind < 0.4:
        words += source.choice(_COMPLETE).split()
    elif kind < 0.7:
        made = {"--alpha": generator.alpha, "--beta": generator.beta, "--theta": generator.theta}
        words += [word for option, one in made.items() for word in (option, one(source))]
    if words[0] == "bound" and source.random() < 0.8:
        words += ["--steps", "1000", "--dimension", "10"]
    for _ in range(source.choice((0, 0, 1, 1, 2, 4))):
        if kind < 0.7 and source.random() < 0.3:
            words[source.randrange(1, len(words))] = source.choice(_VALUES)
            continue
        option = source.choice(_OPTIONS)
        words += [option] if option in _FLAGS or source.random() < 0.05 else [option, _argument(source, option)]
    return words


def _argument(source: random.Random, option: str) -> str:
    if source.random() < 0.5 and option in _TEXTS:
        return generator.alpha(source) if option in {"--alpha", "--lr"} else text(source, 2)
    return source.choice(_VALUES)


CONFIGURATIONS = (
    {
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 3e-4, "total_num_steps": 1000}},
        "gradient_clipping": 1.0,
    },
    {
        "learning_rate": 2e-4,
        "lr_scheduler_type": "cosine",
        "optim": "adamw_torch",
        "max_steps": 1000,
        "warmup_steps": 10,
    },
)
"""DeepSpeed's and Trainer's, as they are read."""
_STRANGE = (
    *(None, True, -1, 0, 10**400, 2**63, -1e-9, float("nan"), float("inf"), 0.5),
    *("x", "0.1/t", "0e9999999", "\x00", "t+" * 2000, "auto", "[bold]"),
    *([], {}, [1, 2], [0.9], [0.9, 0.99], ["a", None], {"lr": {"lr": {}}}, [[[[]]]]),
)


def configuration(source: random.Random) -> str:
    """A training configuration with something wrong in it, as JSON, which is YAML too."""
    settings = json.loads(json.dumps(source.choice(CONFIGURATIONS)))
    for _ in range(source.randint(1, 3)):
        place = settings
        while source.random() < 0.6 and (inner := [one for one in place.values() if isinstance(one, dict) and one]):
            place = source.choice(inner)
        key = source.choice([*place, "lr", "unknown"])
        if source.random() < 0.2:
            place.pop(key, None)
        else:
            place[key] = source.choice(_STRANGE)
    written = json.dumps(settings)
    return _mutated(source, written) if source.random() < 0.2 else written
