"""The explorer's verdicts, rates and constants against the library's, over a grid, in a real browser."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

import generic_adam as ga
from generic_adam.theorems.decide import ratio
from generic_adam.theorems.zou2019 import examine_method

EXPONENTS_R = (0, 0.01, 0.25, 0.5, 0.8, 1, 1.2, 1.5, 1.9999, 2, 2.2)
EXPONENTS_S = (0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9999, 1, 1.2)
# (c, K): theta_1 = 0 and below, c = K^r with K a power of c, a late start, a tiny c.
STARTS = (
    (1, 1),
    (1, 2),
    (2, 2),
    (2, 4),
    (0.802, 1),
    (1.5, 1),
    (0.0001, 1),
    (1.9999, 32),
    (2, 32),
    (1, 10000),
)
GRID = [
    {"r": r, "s": s, "c": c, "K": K, "eta": 0.5, "beta": beta}
    for (r, s), (c, K) in product(product(EXPONENTS_R, EXPONENTS_S), STARTS)
    for beta in ((0.9,) if K != 2 else (0, 0.999))
]


@pytest.fixture(scope="module")
def explorer(site: Path, browser: Chrome) -> Chrome:
    browser.get((site / "explorer" / "index.html").as_uri())
    return browser


def method(choice: dict[str, float]) -> ga.Method:
    return ga.Method(
        alpha=f"{choice['eta']}/t^{choice['s']}",
        beta=choice["beta"],
        theta=f"1 - {choice['c']}/max(t, {choice['K']})^{choice['r']}",
    )


def test_the_grid_is_decided_as_the_library_decides_it(explorer: Chrome) -> None:
    answers = explorer.execute_script("return arguments[0].map(PowerFamily.certify)", GRID)
    seen = set()
    for choice, answer in zip(GRID, answers, strict=True):
        statuses = [(condition["number"], condition["status"]) for condition in answer["conditions"]]
        if choice["c"] > choice["K"] ** choice["r"]:  # theta_1 < 0, which the library does not even accept
            with pytest.raises(ga.MethodError, match=r"theta.* at t = 1"):
                method(choice)
            assert statuses[1] == (2, "fails"), choice
            seen.add("refused")
            continue
        certificate = examine_method(method(choice))
        assert statuses == [(c.number, str(c.status)) for c in certificate.conditions], choice
        assert answer["verdict"] == str(certificate.verdict), choice
        rate = answer["rate"] and answer["rate"]["text"]
        assert rate == (certificate.rate and str(certificate.rate)), choice
        # Infinite on the page: null in transit, None here. The library's is an upper bound, rounded upwards.
        assert answer["C0"] == (certificate.C0 and pytest.approx(certificate.C0, rel=1e-12)), choice
        seen.add(answer["verdict"])
    assert seen == {"certified", "not certified", "refused"}


def test_the_ratio_of_condition_four_is_the_librarys(explorer: Chrome) -> None:
    choices = [
        {**choice, "epsilon": 1e-8, "seed": 1, "steps": 20000, "records": 40}
        for choice in GRID
        if choice["c"] <= choice["K"] ** choice["r"]  # a negative theta_t makes v_t negative: no such run
    ][::7]
    simulate = "return arguments[0].map((choice) => Array.from(Simulation.simulate(choice).ratio))"
    runs = explorer.execute_script(simulate, choices)
    assert len(choices) > 50
    for choice, values in zip(choices, runs, strict=True):
        assert values[-1] == pytest.approx(ratio(method(choice), 20000), rel=1e-11), choice
