"""Nothing hangs: texts are read in bounded time, and threads never wait for each other.

pytest tests/soundness/test_bounded.py -m exhaustive          (FUZZ_METHODS=50000, FUZZ_START=0)
"""

import functools
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import generic_adam as ga
from generic_adam.errors import GenericAdamError
from generic_adam.schedules import ScheduleError, parse
from tests.soundness import generator


def _balanced(leaves: int, leaf: str, operation: str) -> str:
    if leaves == 1:
        return leaf
    half = leaves // 2
    return f"({_balanced(half, leaf, operation)}{operation}{_balanced(leaves - half, leaf, operation)})"


# Each took from 2 seconds to a minute, or more memory than there is. How soon it is read now: benchmarks/soon.py.
LONG_TEXTS = {
    "a zero with an exponent": "0e9999999",
    "a zero with a negative exponent": "0.0e-9999999",
    "many numbers": _balanced(2400, "1", "+"),
    "many multiples": _balanced(1100, "1.5*t", "+"),
    "an error after many numbers": _balanced(2300, "1", "+")[:-1] + "+q)",
    "a number of many digits": "0." + "1" * 9000,
    "a whole number of many digits": "0x" + "f" * 9000,
    "a tower": "^".join(["9"] * 40),
    "a far join": "1 if t < 1e308 else t",
}


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_a_long_text_is_read_or_refused(text):
    message = ""
    try:
        parse(text)
    except ScheduleError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400


def test_the_exponent_of_a_zero_says_nothing():
    assert parse("0e9999999 + t") == parse("t")


def test_nothing_of_a_text_is_ignored():
    with pytest.raises(ScheduleError, match="column 5"):
        parse("t + # 1")


def test_two_threads_that_ask_for_growth_and_order_do_not_wait_for_each_other():
    """`growth` asks for `order`, and the order of theta from weights for the growth of the weights."""
    rounds = 400
    interval = sys.getswitchinterval()
    together = threading.Barrier(2)

    def growths():
        for _ in range(rounds):
            schedule = parse("1 - 1/(t+2)")
            together.wait()
            assert schedule.growth is not None

    def orders():
        for _ in range(rounds):
            schedule = parse("theta_from_weights(t)")
            together.wait()
            assert schedule.order is not None

    threads = [threading.Thread(target=work, daemon=True) for work in (growths, orders)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads), "the threads wait for each other"


def test_threads_that_share_a_running_sum_see_the_same_values():
    """The state of each block is kept by all threads at once; a state kept twice would shift the rest."""
    expected = parse("theta_from_weights(t)").values(1, 40_001)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            shared = parse("theta_from_weights(t)")
            start = threading.Barrier(4)
            wrong: list[int] = []

            def read(shared=shared, start=start, wrong=wrong):
                start.wait()
                if not (shared.values(1, 40_001) == expected).all():
                    wrong.append(1)

            threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=60)
            assert not any(thread.is_alive() for thread in threads)
            assert not wrong
    finally:
        sys.setswitchinterval(interval)


def _answer(seed: int, read=parse) -> object:
    """Which hypotheses of which theorem a method fulfils; of one in 64 the advice, too."""
    case = generator.case(seed)
    try:
        method = ga.Method(read(case.alpha), read(case.beta), read(case.theta))
        advice = ga.advise(method) if seed % 64 == 9 else ()
        found = ga.certify(method).findings
        statuses = [(one.theorem, str(one.rate), *(str(each.status) for each in one.conditions)) for one in found]
        return statuses, [str(piece.method) for piece in advice]
    except GenericAdamError as error:
        return str(error)


def _in_threads(seeds: range, threads: int = 16) -> None:
    """All answers at once against some of them one after the other.

    Sixty-four methods in a row have their sequences from one small pool (`generator.case`): the threads ask about the
    same nodes at the same time, and what one has found out the others read.
    """
    read = functools.lru_cache(maxsize=256)(parse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(threads) as pool:
            together = list(pool.map(lambda seed: _answer(seed, read), seeds))
        checked = seeds[:: max(1, len(seeds) // 12)]
        assert [together[seed - seeds.start] for seed in checked] == [_answer(seed) for seed in checked]


@pytest.mark.slow
def test_sixteen_threads_answer_600_methods_as_one_thread_does():
    _in_threads(range(600))


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
def test_sixteen_threads_answer_50_000_methods():
    start, count = int(os.environ.get("FUZZ_START", "0")), int(os.environ.get("FUZZ_METHODS", "50000"))
    _in_threads(range(start, start + count))


def test_advice_that_finds_nothing_gives_up():
    # Forty candidates, each hard to decide.
    theta = "1/(1 + abs(exp(1/t) - (1.5 + sin(t)*cos(t))))"
    method = ga.Method("log(1e300*t + 1)/t^1.2", "abs(sin(t))*0.9", theta)
    found = ga.advise(method, budget=0.03)
    assert not found
    assert not found.complete
    assert found.best is None
