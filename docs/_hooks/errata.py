"""The paper's misprints, each with a check that computes the difference.

A check prints what it finds and asserts it: a build of the site runs all of them, and shows their source and
output; one that no longer shows its erratum stops the build.
"""

from __future__ import annotations

import inspect
import io
import math
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass

import numpy as np
from mkdocs.exceptions import PluginError

import generic_adam as ga
from generic_adam.reference import generic_adam
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import ratio
from generic_adam.theorems.zou2019 import bound, examine_method


@dataclass(frozen=True)
class Erratum:
    """The text that the paper prints, the right one, and a function that shows it."""

    where: str
    printed: str
    right: str
    check: Callable[[], None]


def counterexample_sign() -> None:
    draws = np.random.default_rng(0).random(1000)
    for slope in (+10, -10):
        g = np.where(draws < 0.01, 1010, slope)
        for r in (0, 0.25, 0.5, 0.75, 1):
            method = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta=f"1 - {0.01 + 0.99 * r:.6g}/t^{r}")
            x = _run(method, g)
            reached = int(np.argmax(x <= -1)) if x.min() <= -1 else None
            told = f"x = -1 after {reached} steps" if reached else f"x never below {x.min():.3f}"
            print(f"1,000 steps of {slope:+}x, r = {r}: {told}")
            assert (reached is not None) == (slope > 0)


def _run(method: ga.Method, gradients: np.ndarray) -> np.ndarray:
    """x_1, x_2, ... of Algorithm 1 on [-1, 1] from x_1 = 1."""
    trajectory = generic_adam(
        method,
        lambda _, t: [gradients[t - 1]],
        [1.0],
        len(gradients),
        projection=lambda x: x.clip(-1, 1),
    )
    return trajectory.points[:, 0]


def second_moment_bound() -> None:
    g = 0.5  # a gradient that is 1/2 always
    sigma = math.sqrt(g**2)  # the proofs use sigma <= G
    as_printed, corrected = g**2, math.sqrt(g**2)
    print(f"E g^2 = {g**2}: printed, G = {as_printed} would do, yet sigma = {sigma} is above it")
    print(f"with E g^2 <= G^2, G = {corrected} and sigma <= G")
    assert sigma > as_printed
    assert sigma <= corrected
    G, given_the_past = 1.0, (2.0, 0.0)  # E_t g^2 in one half of the pasts and in the other
    mean, largest = sum(given_the_past) / 2, math.sqrt(max(given_the_past))
    print(f"E_t g^2 = 2 or 0, by the past: E g^2 = {mean} <= G^2 = {G**2}, yet sigma_t = {largest:.4f} > G")
    assert mean <= G**2 < largest**2


def exponents_of_the_expectation() -> None:
    p = 0.01  # a gradient of norm 1 with probability p, else 0
    bounded, remark = p ** (3 / 2), p ** (4 / 3)  # (E n^(4/3))^(3/2) and (E n^(3/2))^(4/3)
    print(f"in Theorem 1:  (E n^(4/3))^(3/2) = {bounded:.6f}")
    print(f"in the remark: (E n^(3/2))^(4/3) = {remark:.6f}")
    assert remark > bounded  # so a bound on the first says nothing of the second


def sign_in_the_last_display() -> None:
    t = np.arange(1, 1001)
    theta, alpha, epsilon, G = 1 - 1 / (t + 1), 1 / np.sqrt(t + 1), 1.0, 1.0
    v = (epsilon + np.cumsum(np.ones(1000))) / (t + 1)  # g_t = 1: W_t = t + 1, V_t = epsilon + t
    chi = alpha / np.sqrt(1 - theta)
    left = np.sum(chi * (1 - theta) / v)
    first, second = chi[0] * math.log1p(G**2 / epsilon), np.sum(alpha * np.sqrt(1 - theta)) / theta[0]
    print(f"left side {left:.4f}; with the printed minus {first - second:.4f}; with plus {first + second:.4f}")
    assert first - second < left <= first + second


def direction_of_chi() -> None:
    for alpha, theta in (("1", "1 - 1/(t+1)"), ("1/t", "1 - 1/(t+1)")):
        certificate = examine_method(ga.Method(alpha=alpha, beta=0.9, theta=theta))
        third = certificate.conditions[2]
        growth = (ga.parse(alpha) / (1 - ga.parse(theta)) ** 0.5).growth
        print(f"alpha_t = {alpha}, theta_t = {theta}: chi_t of order {growth}, (R3) {third.status}")
        assert (third.status == "holds") == (alpha == "1/t")


def first_theta_is_zero() -> None:
    for theta in ("1 - 1/t", "1 - 1/max(t, 2)", "1 - 1/(t+1)"):
        method = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta=theta)
        second = examine_method(method).conditions[1]
        print(f"theta_t = {theta}: theta_1 = {method.theta(1)}, condition 2 {second.status}")
        assert (second.status == "fails") == (method.theta(1) == 0)


def polynomial_weights() -> None:
    for r in (0.5, 1, 1.5, 2):
        method = ga.Method.from_weights(alpha="1/sqrt(t)", beta=0.9, weights=f"t^{r}")
        first, second = method.theta(1), method.theta(2)
        print(f"w_t = t^{r}: theta_1 = {first:.4f}, theta_2 = {second:.4f}")
        assert (second < first) == (r > 1)  # (R2) asks for theta_t that do not fall
        found = ga.certify(method, theorem="W")
        print(f"  by W-infinity: {found.verdict}, rate {found.rate}")
        assert str(found.rate) == "T^(-1/2) log T"


def bounded_is_not_almost_monotone() -> None:
    t = np.arange(1, 10_001)
    chi = np.where(t % 2 == 0, 1.0, 1 / t)  # bounded by 1
    c0 = chi / np.minimum.accumulate(chi)  # the least C0 of (R3) up to t
    for T in (100, 1000, 10_000):
        print(f"chi_t = 1 for even t, 1/t for odd t: C0 up to T = {T:,} is {c0[:T].max():,.0f}")
    assert c0.max() == 9999
    beta, theta = 0.9, 0.85
    print(f"beta = {beta}, theta = {theta}: above beta^2 = {beta**2:.2f} as (R2) asks, not above beta")
    assert beta**2 < theta < beta


def constants_when_the_first_theta_is_fixed() -> None:
    problem = Constants.of(ga.Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1))
    floors = []
    for theta in ("0.99", "0.999", "0.9999", "0.99999", "0.999999"):
        method = ga.Method(alpha=1e-3, beta=0.9, theta=f"0.9 if t < 2 else {theta}")  # theta_1 = 0.9 < theta
        known = bound(method, problem, 1000).constants  # with the best theta'
        assert known is not None
        floors.append(known.C_prime * math.sqrt(1 - float(theta)))
        print(f"theta = {theta}: C0 = {known.C0:.1f}, C' sqrt(1 - theta) = {floors[-1]:.1e}")
    assert floors == sorted(floors)  # the bound rises as theta tends to 1


def nosadam_first_weight() -> None:
    b = np.ones(5)
    for first, told in ((0.0, "B_t = b_1 + ... + b_t"), (1.0, "B_t = b_0 + ... + b_t")):
        B = first + np.concatenate([[0.0], np.cumsum(b)])  # B_0, B_1, ...
        theta = B[:-1] / B[1:]
        print(f"{told}: B_0 = {B[0]:g}, theta_1 = {theta[0]:g}")
        assert (theta[0] > 0) == (first > 0)


def rate_of_mukkamala_and_hein() -> None:
    eta, D, G, scaled = 1.0, 1.0, 1.0, []
    for T in (10**2, 10**4, 10**6):
        t = np.arange(1.0, T + 1)
        # g_t = G: v_t = G^2, alpha_t = eta/sqrt t, theta_t = 1 - 1/t. The two parts of such a regret bound:
        distance = D**2 * math.sqrt(T) * G / (2 * eta)  # D^2 sqrt(v_T)/(2 alpha_T)
        steps = np.sum(eta / np.sqrt(t) * G)  # sum of alpha_t g_t^2/sqrt(v_t)
        scaled.append((distance + steps) / math.sqrt(T))
        logarithm = scaled[-1] / math.log(T)
        print(f"T = {T:,}: regret bound / sqrt T = {scaled[-1]:.4f}, / (sqrt T log T) = {logarithm:.4f}")
    assert max(scaled) < 1.1 * min(scaled)  # no logarithm


def negative_momentum() -> None:
    beta, m, norms = -3.0, 0.0, []  # beta_t <= beta < 1, as condition 1 is printed
    for g in np.random.default_rng(0).choice([-1.0, 1.0], 40):
        m = beta * m + (1 - beta) * g
        norms.append(abs(m))
    print(f"beta_t = {beta:g}, |g_t| = 1: |m_t| = {norms[9]:.3g} at t = 10, {norms[39]:.3g} at t = 40")
    assert norms[39] > 1e15
    try:
        ga.Method(alpha="0.5/sqrt(t)", beta=beta, theta="1 - 1/(t+1)")
    except ValueError as error:
        print(f"the library: {error}")
    else:
        raise AssertionError("a negative beta is accepted")


def learning_rate_at_the_cut() -> None:
    before, after = 0.001, 0.01 / math.sqrt(2500)
    print(f"t = 2499: {before}, t = 2500: {after:.4f}: {before / after:.0f} times smaller at once")
    print(f"0.01/sqrt(t) = {before} at t = {(0.01 / before) ** 2:.0f}")
    assert math.isclose(before / after, 5)


def bound_against_s() -> None:
    theta = 0.999
    ratios = [ratio(ga.Method(alpha=f"1/t^{s}", beta=0.9, theta=theta), 10**8) for s in (0, 0.25, 0.5, 0.75)]
    for s, measured in zip((0, 0.25, 0.5, 0.75), ratios, strict=True):
        limit = math.sqrt(1 - theta) / (1 - s)
        print(f"s = {s}: ratio at T = 10^8 {measured:.5f}, its limit sqrt(1 - theta)/(1 - s) = {limit:.5f}")
    assert ratios == sorted(ratios)


def what_is_fixed_in_the_study_of_s() -> None:
    def power(r: float, s: float) -> float:
        c = 0.01 + 0.99 * r
        rate = examine_method(ga.Method(alpha=f"0.5/t^{s}", beta=0.9, theta=f"1 - {c:.6g}/t^{r}")).rate
        print(f"r = {r}, s = {s}: {rate}")
        assert rate is not None
        return float(rate.power)

    assert power(0.8, 0.4) <= power(0.8, 0.6) < power(0.8, 0.8)  # r fixed: smaller s is better
    assert power(0.4, 0.6) > power(0.8, 0.6)  # s fixed: smaller r is worse


def images_in_a_class() -> None:
    print(f"60,000 images in 100 classes: {60_000 // 100} a class")
    assert 100 * 600 == 60_000


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        "The counterexample (Section 5.1)",
        "$f_t(x) = 10x$ with probability 0.99",
        "$f_t(x) = -10x$. As printed both slopes point the same way, and every setting goes to $x = -1$.",
        counterexample_sign,
    ),
    Erratum(
        "Assumption (A4)",
        r"$\mathbb{E}\|g_t\|^2 \le G$",
        r"$\mathbb{E}_t\|g_t\|^2 \le G^2$, given the past: the proofs use $\sigma_t \le G$, "
        r"$G^2 + \epsilon d$.",
        second_moment_bound,
    ),
    Erratum(
        "Remark after Theorem 2",
        r"$(\mathbb{E}\|\nabla f(x_\tau)\|^{3/2})^{4/3}$",
        r"$(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}$, as in Theorem 1. The other can be larger.",
        exponents_of_the_expectation,
    ),
    Erratum(
        "Last display of the lemma before the one on τ (supplement)",
        r"$-\frac{1}{\theta_1}\sum_t \alpha_t\sqrt{1-\theta_t}$",
        r"$+\frac{1}{\theta_1}\sum_t \alpha_t\sqrt{1-\theta_t}$, as in the lemma's statement.",
        sign_in_the_last_display,
    ),
    Erratum(
        "Text after (R3)",
        r"$\chi_t$ non-decreasing",
        r"$\chi_t$ non-increasing: that is what (R3) asks for.",
        direction_of_chi,
    ),
    Erratum(
        "AdaEMA, AdamNC, and RMSProp with c = 1",
        r"$\theta_t = 1 - 1/t$",
        r"$K \ge 2$ or $t + 1$ is needed: $\theta_1 = 0$ breaks condition 2, and $\theta_1$ divides $C'$.",
        first_theta_is_zero,
    ),
    Erratum(
        "Corollary on polynomial weights",
        r"$w_t = t^r$ for any $r \ge 0$",
        r"the proof covers $r \le 1$ with $W_0 = 1$: for larger $r$, $\theta_2 < \theta_1$ and (R2) fails. "
        r"A gap of the proof, not of the rate: by W-infinity it is $O(\log T/\sqrt T)$ for every $r$.",
        polynomial_weights,
    ),
    Erratum(
        "Proof of the corollary on polynomial weights",
        r"$\chi_t$ is bounded, hence almost non-increasing; $\lim\theta_t = 1 > \beta$",
        r"$\chi_t$ has to stay away from 0 too, which it does here; (R2) asks for $\lim\theta_t > \beta^2$.",
        bounded_is_not_almost_monotone,
    ),
    Erratum(
        "Insight 2 on constant θ (Section 4)",
        "the bound decreases in $s$",
        "it increases in $s$, by the factor $1/(1-s)$; its best case $s = 0$ is as printed.",
        bound_against_s,
    ),
    Erratum(
        "Sensitivity of s (Section 5.1)",
        "$s$ is fixed and smaller $r$ is faster; figures (c) and (e)",
        "$r$ is fixed and smaller $s$ is faster; figures (c) and (f), as the caption says.",
        what_is_fixed_in_the_study_of_s,
    ),
    Erratum(
        "Insight 3 on constant θ (Section 4)",
        r"with $\theta_1 < \theta$ fixed, $C$ and $C'$ do not depend on $\theta$: the bound is linear in "
        r"$\sqrt{1-\theta}$",
        r"$C_0 = \sqrt{(1-\theta_1)/(1-\theta)}$ grows, and $C'\sqrt{1-\theta}$ with it: the bound rises as "
        r"$\theta \to 1$.",
        constants_when_the_first_theta_is_fixed,
    ),
    Erratum(
        "Remark on NosAdam (Section 3)",
        r"$B_t = \sum_{i=1}^t b_i$ and $B_0 > 0$",
        r"$B_t = \sum_{i=0}^t b_i$: the printed sum has $B_0 = 0$, so $\theta_1 = 0$. NosAdam-HH likewise.",
        nosadam_first_weight,
    ),
    Erratum(
        "Remark on RMSProp (Section 3)",
        r"Mukkamala and Hein's rate is $O(\log T/\sqrt T)$",
        r"it is $O(1/\sqrt T)$: the sum of $\alpha_t g_t^2/\sqrt{v_t}$ has no logarithm.",
        rate_of_mukkamala_and_hein,
    ),
    Erratum(
        "Condition 1 of (SC)",
        r"$\beta_t \le \beta < 1$",
        r"$0 \le \beta_t \le \beta < 1$, as (R1) says.",
        negative_momentum,
    ),
    Erratum(
        "The second study of ResNet-18 (supplement)",
        r"$\alpha_t = 0.001$ for $t < 2500$, then $0.01/\sqrt t$; the cut avoids large rates",
        r"non-increasing, but it falls fivefold at $t = 2500$; without a jump the cut is at $t = 100$.",
        learning_rate_at_the_cut,
    ),
    Erratum("CIFAR-100 (supplement)", "6,000 images a class", "600", images_in_a_class),
)


def sections() -> str:
    """Return a section an erratum: what is printed, what is right, what its check prints, and the check."""
    return "\n\n".join(_section(number, erratum) for number, erratum in enumerate(ERRATA, start=1))


def output_of(erratum: Erratum) -> str:
    """Return what the check prints."""
    output = io.StringIO()
    try:
        with redirect_stdout(output):
            erratum.check()
    except AssertionError as error:
        raise PluginError(f"the check of the erratum {erratum.where!r} fails: {output.getvalue()}") from error
    return output.getvalue().rstrip()


def _section(number: int, erratum: Erratum) -> str:
    code = ["```python", *inspect.getsource(erratum.check).rstrip().splitlines(), "```"]
    lines = (
        f"### {number}. {erratum.where}\n",
        f"| printed | right |\n|---|---|\n| {erratum.printed} | {erratum.right} |\n",
        f"The check says:\n\n```text\n{output_of(erratum)}\n```\n",
        '??? quote "How it is computed"\n',
        *(f"    {line}" for line in code),
    )
    return "\n".join(lines)
