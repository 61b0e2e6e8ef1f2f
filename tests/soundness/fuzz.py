"""The decider against the oracle: what one generated method shows, and many of them from the command line.

python -m tests.soundness.fuzz --cases 100000 --start 0 --out findings.jsonl
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from mpmath import mpf

import generic_adam as ga
from generic_adam.errors import GenericAdamError
from generic_adam.methods.algorithm import HeavyBall, Nesterov
from generic_adam.theorems.theorem import Finding
from generic_adam.theorems.zou2019 import PaperFinding, hypotheses
from tests.soundness import dense, generator, remainder
from tests.soundness.enclosed import LONGEST_SUM
from tests.soundness.expansion import Key
from tests.soundness.oracle import (
    FAILS,
    HOLDS,
    UNKNOWN,
    Subject,
    Truth,
    UndefinedError,
    looked_at,
    not_negative,
    sequence,
    together,
)

Answered = TypeVar("Answered")
# Seconds of CPU time that a certificate may take.
SLOW = 1.0
SHORT = 200
# What the bars of the fuzz allow none of.
WRONG = (
    "wrong holds",
    "wrong fails",
    "wrong witness",
    "C0 too low",
    "wrong rate",
    "raw exception",
    "refused",
    "wrong growth",
    "wrong remainder",
)


@dataclass(frozen=True)
class Answer:
    """The answers of generic_adam on the paper's four conditions, in a form that does not change with its API.

    Attributes:
        statuses: "holds", "fails" or "undecided" for each condition.
        witnesses: the step that refutes it, where a step does.
        constant: C0, or None.
        rate: the exponents (T, log T, log log T) of condition 4's ratio, or None.
    """

    statuses: tuple[str, ...]
    witnesses: tuple[int | None, ...]
    constant: float | None
    rate: tuple[Fraction, Fraction, Fraction] | None


def paper_conditions(method: ga.Method) -> Answer:
    """Ask for the paper's four conditions."""
    found = ga.certify(method, theorem="zou2019")["zou2019"]
    assert isinstance(found, PaperFinding)
    order = found.ratio_order
    return Answer(
        tuple(str(condition.status) for condition in found.conditions),
        tuple(map(_step, found.conditions)),
        found.C0,
        None if order is None else (order.power, order.log, order.loglog),
    )


def conditions_up_to(method: ga.Method, steps: int) -> Answer:
    """Ask for the paper's first three conditions on 1..T; the rate is not asked for."""
    found = hypotheses(method, steps)
    return Answer(tuple(str(one.status) for one in found), tuple(map(_step, found)), found[2].constant, None)


def growth_exponents(text: str) -> tuple[int, Fraction, Fraction, Fraction, int] | None:
    """(sign of log rho, p, q, w, sign) of a sequence's growth, or None where it is not known."""
    growth = ga.parse(text).growth
    if growth is None:
        return None
    return growth.rho.sign_of_log, growth.power, growth.log, growth.loglog, growth.sign


def _step(condition: object) -> int | None:
    witness = getattr(condition, "witness", None)
    step = getattr(witness, "t", witness)
    return step if isinstance(step, int) else None


@dataclass
class Outcome:
    """The findings about one method."""

    case: generator.Case
    findings: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    easy: int = 0
    undecided: list[int] = field(default_factory=list)

    def add(self, kind: str, detail: str) -> None:
        """Keep a finding."""
        self.findings.append((kind, detail))


def _asked(outcome: Outcome, question: Callable[[ga.Method], Answered]) -> Answered | GenericAdamError | None:
    """Return the answer about the case's method; a refusal, or None after any other exception, which is a finding."""
    case, began = outcome.case, time.process_time()
    try:
        return question(ga.Method(case.alpha, case.beta, case.theta))
    except GenericAdamError as error:
        return error
    except Exception as error:  # noqa: BLE001  (any other exception is what is looked for)
        outcome.add("raw exception", f"{type(error).__name__}: {error}")
        return None
    finally:
        outcome.seconds = time.process_time() - began


def examine(case: generator.Case) -> Outcome:
    """Certify one generated method and compare every answer with the oracle."""
    outcome = Outcome(case)
    answer = _asked(outcome, paper_conditions)
    if isinstance(answer, GenericAdamError):
        _compare_refusal(outcome, str(answer))
    if not isinstance(answer, Answer):
        return outcome
    if outcome.seconds > SLOW:
        outcome.add("slow", f"{outcome.seconds:.2f} s")
    compare(outcome, Subject(case.alpha, case.beta, case.theta), answer)
    for kind, detail in dense.wrong(
        case.alpha, case.beta, case.theta, answer.statuses, answer.witnesses, answer.constant
    ):
        outcome.add(kind, detail)
    return outcome


def _compare_refusal(outcome: Outcome, message: str) -> None:
    # A number beyond the range of a float is refused by the language, whatever the sequence does.
    if message.startswith("column") or "too large" in message or "too small" in message:
        outcome.add("not read", message)
        return
    case = outcome.case
    try:
        truth = Subject(case.alpha, case.beta, case.theta).valid()
    except ZeroDivisionError:
        truth = FAILS
    outcome.add("refused" if truth == HOLDS else "rightly refused" if truth == FAILS else "refused?", message)


def compare(outcome: Outcome, subject: Subject, answer: Answer) -> None:
    """Add what the answer has wrong."""
    truth = subject.truth()
    for number in range(4):
        status, true, witness = answer.statuses[number], truth.conditions[number], answer.witnesses[number]
        outcome.easy += true != UNKNOWN
        name = f"condition {number + 1}"
        if status == "undecided":
            if true != UNKNOWN:
                outcome.undecided.append(number + 1)
        elif status == HOLDS and true == FAILS:
            outcome.add("wrong holds", name)
        elif status == FAILS and witness is not None:
            refuted = witnessed(subject, number + 1, witness)
            if refuted is False:
                outcome.add("wrong fails" if true == HOLDS else "wrong witness", f"{name} at t = {witness}")
        elif status == FAILS and true == HOLDS:
            outcome.add("wrong fails", name)
    least = truth.constant_at_least
    if least is not None and answer.constant is not None and answer.constant < 2 * least:
        truth.constant_at_least = subject.refined_ratio()
    _compare_numbers(outcome, truth, answer)


def _compare_numbers(outcome: Outcome, truth: Truth, answer: Answer) -> None:
    least = truth.constant_at_least
    if (
        answer.statuses[2] == HOLDS
        and least is not None
        and answer.constant is not None
        and mpf(answer.constant) < least * (1 - mpf(2) ** -50)
    ):
        outcome.add("C0 too low", f"{answer.constant!r} below {float(least)!r}")
    if answer.rate is not None and truth.ratio is not None and truth.ratio[0] == 0:
        expected = truth.ratio[1:]
        if any(abs(a - b) > Fraction(1, 10**50) for a, b in zip(answer.rate, expected, strict=True)):
            outcome.add("wrong rate", f"{[str(x) for x in answer.rate]}, not {[str(x) for x in expected]}")


def weighed(case: generator.Case) -> Outcome:
    """Compare Theorem W's answer for ever, and its rate, with the oracle's."""
    outcome = Outcome(case)
    finding = _asked(outcome, lambda method: ga.certify(method, theorem="W")["W"])
    if isinstance(finding, Finding):
        _compare_finding(outcome, finding, *Subject(case.alpha, case.beta, case.theta).weighted())
    return outcome


def shipped(case: generator.Case) -> Outcome:
    """Compare the answer for ever to an optimizer that is no Method alone (eps, a maximum, decay) with the oracle's."""
    outcome = Outcome(case)
    x = SHIPPED[case.seed % len(SHIPPED)](case)
    alpha, beta, theta = case.alpha, x.beta or case.beta, x.theta or case.theta

    def asked(_: ga.Method) -> Finding:
        algorithm = ga.Algorithm(ga.Method(alpha, beta, theta), **x.settings)
        setting = ga.Setting(weights_bound=1.0, **x.facts)
        return ga.certify(algorithm, theorem=x.theorem, setting=setting)[x.theorem]

    finding = _asked(outcome, asked)
    if isinstance(finding, Finding):
        _compare_finding(outcome, finding, *x.truth(Subject(alpha, beta, theta)))
        outcome.undecided *= x.decides
    return outcome


@dataclass(frozen=True)
class Shipped:
    """The question about an optimizer: a theorem, the fields of the Algorithm and Setting, and what is true of it.

    Attributes:
        theta: in place of the case's, where it is not empty; beta likewise.
        decides: whether an open answer counts; it does not where the theorem refutes nothing by design.
    """

    theorem: str
    settings: dict[str, Any]
    truth: Callable[[Subject], tuple[str, Key | None]]
    theta: str = ""
    beta: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    decides: bool = True


def _with_eps(case: generator.Case, corrected: bool = False, **settings: Any) -> Shipped:
    """E, N and H: W's hypotheses; a constant e_t and the bias correction's keep step with theta_t by themselves."""
    eps = f"1e-8*sqrt(bias_correction({case.theta}))" if corrected else 1e-8
    return Shipped(
        "E",
        {"initial_v": 0, "eps": eps, **settings},
        lambda subject: subject.weighted(eps=True, heavy_ball="heavy_ball" in settings),
    )


# e_t and e_{t-1}, some of which keep step with theta_t: e_t >= sqrt(theta_t) e_{t-1}.
_MOVING_EPS = (
    ("1e-8*(2-1/t)", "1e-8*(2-1/(t-1))"),
    ("1e-8*(1+1/t)", "1e-8*(1+1/(t-1))"),
    ("1e-8/sqrt(t)", "1e-8/sqrt(t-1)"),
    ("1e-8/sqrt(t+1)", "1e-8/sqrt(t)"),
    ("1e-8/t", "1e-8/(t-1)"),
    ("1e-8*sqrt(1-0.999^t)", "1e-8*sqrt(1-0.999^(t-1))"),
)


def _with_moving_eps(case: generator.Case) -> Shipped:
    now, before = _MOVING_EPS[case.seed // len(SHIPPED) % len(_MOVING_EPS)]
    theta = ("", "1-1/(t+1)", "0.999", "1-1/t")[case.seed // 100 % 4]

    def truth(subject: Subject) -> tuple[str, Key | None]:
        status, order = subject.weighted(eps=True)
        return together(status, not_negative(f"({now})^2-({theta or case.theta})*({before})^2", 2)), order

    return Shipped("E", {"initial_v": 0, "eps": now}, truth, theta=theta, decides=False)


_MOMENTA = ("0", "0.9/t", "0.9*0.99^t", "0.5/log(t+2)", "0.9")


def _with_symmetric_noise(case: generator.Case, **settings: Any) -> Shipped:
    beta = "0" if settings else _MOMENTA[case.seed // len(SHIPPED) % len(_MOMENTA)]
    theta = ("", "0.999", "0.9 + 0.09*(1-1/t)")[case.seed // 50 % 3]
    truth = functools.partial(Subject.symmetric, heavy_ball="heavy_ball" in settings)
    fields = {"initial_v": 0, "eps": 1e-8, **settings}
    return Shipped("Y", fields, truth, theta, beta, {"noise": "symmetric"}, decides=False)


def _with_epochs(case: generator.Case) -> Shipped:
    facts = {"batches_per_epoch": 1 + case.seed % 400, "sampling": "shuffled"}
    fields = {"initial_v": 0, "eps": 1e-8}
    return Shipped("RR", fields, Subject.shuffled, beta=("0.9", "")[case.seed // 30 % 2], facts=facts, decides=False)


def _with_decay(case: generator.Case) -> Shipped:
    decay = f"0.01*({case.alpha}){('', '/log(t+9)', '/t^0.25', '*t^-0.5')[case.seed // len(SHIPPED) % 4]}"

    def truth(subject: Subject) -> tuple[str, Key | None]:
        return together(subject.weighted()[0], subject.decayed(decay)), None

    return Shipped("D", {"decay": decay}, truth)


SHIPPED: tuple[Callable[[generator.Case], Shipped], ...] = (
    _with_eps,
    lambda case: _with_eps(case, corrected=True),
    lambda case: _with_eps(case, eps_under_root=True),
    lambda case: _with_eps(case, heavy_ball=HeavyBall(0.9)),
    lambda case: _with_eps(case, nesterov=Nesterov(0.9, 0.1)),
    _with_moving_eps,
    _with_symmetric_noise,
    lambda case: _with_symmetric_noise(case, heavy_ball=HeavyBall(0.9)),
    _with_epochs,
    _with_decay,
    lambda _: Shipped("M", {"running_maximum": True, "eps": 1e-8, "initial_v": 0}, Subject.vanishing, "0.999"),
    lambda _: Shipped("O", {"delayed": True, "eps": 1e-8}, Subject.vanishing),
)


def _compare_finding(outcome: Outcome, finding: Finding, status: str, order: Key | None) -> None:
    outcome.easy += status != UNKNOWN
    name = f"Theorem {finding.theorem}"
    verdict = str(finding.verdict)
    if verdict == "undecided" and status != UNKNOWN:
        outcome.undecided.append(1)
    if (verdict, status) in {("certified", FAILS), ("not certified", HOLDS)}:
        outcome.add("wrong holds" if verdict == "certified" else "wrong fails", name)
    if verdict == "certified" and finding.rate is not None and order is not None and order[0] == 0:
        found = (finding.rate.power, finding.rate.log, finding.rate.loglog)
        if any(abs(a - b) > Fraction(1, 10**50) for a, b in zip(found, order[1:], strict=True)):
            outcome.add("wrong rate", f"{name}: {[str(x) for x in found]}, not {[str(x) for x in order[1:]]}")


def witnessed(subject: Subject, condition: int, t: int) -> bool | None:
    """Return True if the condition is violated at this step; None where the oracle cannot evaluate it."""
    alpha, beta, theta = subject.alpha, subject.beta, subject.theta
    try:
        if condition == 1:
            return _either(beta.sign(t)[0], (-1,), beta.sign(t, missing=True)[0], (0, -1))
        if condition == 3:
            return _either(alpha.sign(t)[0], (0, -1), theta.sign(t, missing=True)[0], (0, -1))
        violated = _either(theta.sign(t)[0], (0, -1), theta.sign(t, missing=True)[0], (0, -1))
    except UndefinedError:
        return True
    if condition != 2 or violated is None or violated:
        return violated
    if theta.runs and t > LONGEST_SUM:
        return None
    earlier = [s for s in (t - 1, *subject.times) if s < t]
    return theta.falls(t + 1) or any(theta.falls(t, since=s) for s in earlier)


def _either(one: int | None, violating: tuple[int, ...], other: int | None, also: tuple[int, ...]) -> bool | None:
    if one in violating or other in also:
        return True
    return None if one is None or other is None else False


def advised(case: generator.Case) -> Outcome:
    """Ask for advice on one generated method and let the oracle look at what comes."""
    outcome = Outcome(case)
    pieces = _asked(outcome, ga.advise)
    if pieces is None or isinstance(pieces, GenericAdamError):
        return outcome
    for piece in pieces:
        texts = tuple(str(getattr(piece.method, name)) for name in ("alpha", "beta", "theta"))
        try:
            truth = Subject(*texts).truth()
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError) as error:
            outcome.add("advice not read", f"{texts}: {error}")
            continue
        outcome.easy += 1
        for name, text in zip(("alpha", "beta", "theta"), texts, strict=True):
            if differs_before(getattr(case, name), text, piece.first_step):
                outcome.add("wrong advice", f"{name} = {text} differs before t = {piece.first_step}")
        for finding in piece.certificate.findings:
            if str(finding.verdict) != "certified" or finding.theorem not in {"zou2019", "W"}:
                continue
            answers = truth.conditions if finding.theorem == "zou2019" else [Subject(*texts).weighted()[0]]
            if FAILS in answers:
                outcome.add("wrong advice", f"{texts} is certified by {finding.theorem}: {answers}")
    return outcome


def differs_before(given: str, advised_text: str, first: int) -> bool:
    """Return True if two sequences differ before the step that is said to be the first."""
    one, other = sequence(given), sequence(advised_text)
    for t in looked_at(one, other):
        if t >= first:
            return False
        try:
            a, b = one.near(t, missing=True), other.near(t, missing=True)
        except UndefinedError:
            continue
        if a is not None and b is not None and abs(a[0] - b[0]) > abs(a[0]) * mpf(10) ** -9 + mpf(2) ** max(a[1], b[1]):
            return True
    return False


def read_up_to(case: generator.Case) -> Outcome:
    """Compare the reading of a short horizon with every value there is."""
    outcome = Outcome(case)
    steps = 1 + case.seed % SHORT
    answer = _asked(outcome, lambda method: conditions_up_to(method, steps))
    if not isinstance(answer, Answer):
        return outcome
    truth = Subject(case.alpha, case.beta, case.theta).truth_up_to(steps)
    for number, (status, true) in enumerate(zip(answer.statuses, truth.conditions, strict=False), start=1):
        outcome.easy += true != UNKNOWN
        if status == "undecided" and true != UNKNOWN:
            outcome.undecided.append(number)
        if (status, true) in {(HOLDS, FAILS), (FAILS, HOLDS)}:
            outcome.add(f"wrong {status}", f"condition {number} on 1..{steps}")
    _compare_numbers(outcome, truth, answer)
    return outcome


def grown(case: generator.Case) -> Outcome:
    """Compare the growth of each sequence with its expansion."""
    outcome = Outcome(case)
    for text in (case.alpha, case.beta, case.theta):
        try:
            answer = growth_exponents(text)
        except GenericAdamError:
            continue
        except Exception as error:  # noqa: BLE001
            outcome.add("raw exception", f"{text}: {type(error).__name__}: {error}")
            continue
        series = sequence(text).series
        if series is None or (not series.is_zero and series.sign() is None):
            continue
        outcome.easy += 1
        if answer is None:
            outcome.undecided.append(1)
            continue
        if series.is_zero:
            true = (0, 0, 0, 0, 0)
        else:
            rate, *exponents = series.terms[0][0]
            true = ((rate > 0) - (rate < 0), *exponents, series.sign())
        if any(abs(x - y) > Fraction(1, 10**50) for x, y in zip(answer, true, strict=True)):
            outcome.add("wrong growth", f"{text}: {tuple(map(str, answer))}, not {tuple(map(str, true))}")
    return outcome


def remainders(case: generator.Case) -> Outcome:
    """Sample the bounds on what expansions of the three sequences leave out."""
    outcome = Outcome(case)
    for text in (case.alpha, case.beta, case.theta):
        for one in remainder.sampled(text):
            outcome.easy += one.inside is not None
            if one.inside is False:
                outcome.add("wrong remainder", f"{one.node} from N = {one.start} on, at t = {one.t}")
    return outcome


QUESTIONS = {
    "remainder": remainders,
    "certify": examine,
    "advise": advised,
    "weighted": weighed,
    "shipped": shipped,
    "horizon": read_up_to,
    "growth": grown,
}


def main() -> int:
    """Run many cases and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--ask", choices=QUESTIONS, default="certify")
    parser.add_argument("--out", type=Path, help="a file for the findings, one JSON object a line")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    undecided: Counter[int] = Counter()
    easy, slowest, began = 0, (0.0, 0), time.time()
    out = options.out.open("a") if options.out else None
    ask = QUESTIONS[options.ask]
    for seed in range(options.start, options.start + options.cases):
        outcome = ask(generator.case(seed))
        counts.update({kind for kind, _ in outcome.findings})
        undecided.update(outcome.undecided)
        easy += outcome.easy
        slowest = max(slowest, (outcome.seconds, seed))
        if out is not None and (outcome.findings or outcome.undecided):
            out.write(json.dumps({"ask": options.ask, **asdict(outcome)}) + "\n")
            out.flush()
    open_share = sum(undecided.values()) / max(easy, 1)
    print(f"{options.cases} cases from {options.start} in {time.time() - began:.0f} s; slowest {slowest}")
    print(f"easy truths {easy}, undecided {dict(undecided)} = {open_share:.2%}")
    for kind, count in counts.most_common():
        print(f"  {count:6d} {kind}")
    return 1 if any(counts[kind] for kind in WRONG) else 0


if __name__ == "__main__":
    sys.exit(main())
