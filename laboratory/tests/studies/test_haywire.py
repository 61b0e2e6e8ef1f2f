"""Adam leaves a minimum it had reached: what is trained is Adam, and the countdown foretells the step."""

import numpy as np
import pytest

from generic_adam.errors import RunError
from generic_adam.schedules import parse
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam_laboratory.runs.records import Occasion, read_claims
from generic_adam_laboratory.runs.run import carry_out
from generic_adam_laboratory.studies import haywire
from generic_adam_laboratory.studies.haywire import ADAM, ARRIVED, CHANGES, EDGE, EVERY, REPAIRED, SETTLED, Training


@pytest.fixture(scope="module")
def adam():
    training = Training(ADAM, seed=0, steps=3000)
    carry_out(training)
    return training


@pytest.mark.parametrize("change", [ADAM, REPAIRED, CHANGES[1], CHANGES[4]], ids=lambda one: one.label)
def test_it_is_torchs_adam_with_these_sequences(change):
    torch = pytest.importorskip("torch")
    steps = 120
    ours = Training(change, seed=3, steps=steps)
    carry_out(ours)
    draw = np.random.default_rng(3)
    x = torch.tensor(draw.standard_normal((64, 1000)), dtype=torch.float64)
    y = torch.tensor(draw.standard_normal(64), dtype=torch.float64)
    w = torch.zeros(1000, dtype=torch.float64, requires_grad=True)
    lr = parse(change.alpha.replace("STEPS", str(steps))).values(1, steps + 1)
    optimizer = torch.optim.Adam([w], lr=1e-3, betas=(0.9, 0.999), eps=change.eps)
    losses = []
    for t in range(steps):
        optimizer.param_groups[0]["lr"] = lr[t]
        loss = (x @ w - y).square().sum()
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    # Float32 against float64: alike for as long as the loss is far above float32's rounding.
    np.testing.assert_allclose(ours.state["loss"], losses, rtol=2e-3)


def test_adam_arrives_and_leaves_when_the_product_passes_the_edge(adam):
    loss, product = adam.state["loss"], adam.state["product"]
    left = haywire.left_at(loss)
    assert loss[400:1000].max() < ARRIVED
    assert 2000 < left < 3000
    first_over = adam.marks[np.flatnonzero(product > EDGE)[0]]
    assert abs(left - first_over) < 60
    when = haywire.countdown(float(product[SETTLED // EVERY - 1]), 3000)
    assert abs(when - left) / left < 0.02


def test_the_curvature_is_that_of_the_scaled_loss():
    training = Training(ADAM, seed=1, steps=EVERY)
    draw = np.random.default_rng(1)
    x = draw.standard_normal((64, 1000)).astype(np.float32)
    carry_out(training)
    scale = np.sqrt(training.state["v"]) + training.change.algorithm(EVERY).eps(EVERY)
    half = (x / np.sqrt(scale)).astype(np.float64)
    wanted = 2 * np.linalg.svd(half, compute_uv=False)[0] ** 2
    alpha = training.change.algorithm(EVERY).method.alpha(EVERY)
    assert training.state["product"][0] == pytest.approx(alpha * wanted, rel=1e-4)


def test_a_loss_that_never_arrived_does_not_leave():
    assert haywire.left_at(np.full(2000, 1.0)) is None
    assert haywire.left_at(np.full(2000, 1e-12)) is None
    loss = np.full(2000, 1e-12)
    loss[:100], loss[140], loss[1500] = 1.0, 1.0, 1e-7
    assert haywire.left_at(loss) == 1501  # what happened before the loss had settled is a transient


def test_only_both_parts_of_the_condition_are_guaranteed():
    verdicts = {change.label: certify_algorithm(change.algorithm(40_000)).verdict for change in CHANGES}
    assert [label for label, verdict in verdicts.items() if verdict == "certified"] == [REPAIRED.label]


def test_results_are_whole_and_their_claims_follow_from_the_runs(tmp_path):
    pytest.importorskip("torch")
    found = haywire.run_haywire(3000, 1, 1000)
    haywire.write_haywire(tmp_path, found, Occasion("a test", {}, 1.0))
    verdicts = {claim.sentence.split(",")[0]: str(claim.verdict) for claim in read_claims(tmp_path)}
    assert verdicts["Adam converges"] == "supported"
    assert verdicts["With both parts of the condition it does not happen."] == "supported"
    # In 3,000 steps a falling rate alone has not failed yet: that sentence is not supported by so short a run.
    assert verdicts["A falling lr alone"] == "contradicted"
    assert (tmp_path / "countdown.md").read_text(encoding="utf-8").count("\n") == 3


def test_too_few_steps_are_refused():
    with pytest.raises(RunError, match="expected at least"):
        haywire.run_haywire(999, 1, 1000)
    with pytest.raises(RunError, match="seeds"):
        haywire.run_haywire(5000, 0, 1000)
