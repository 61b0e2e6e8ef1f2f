"""The table of a study reads back as it was, and the claims are judged as the sentences say."""

import pytest

from generic_adam.experiments.records import OutputError
from generic_adam.experiments.study_records import (
    Curve,
    at_epoch,
    common_epochs,
    epsilons,
    methods,
    read_study,
    write_study,
)
from generic_adam.experiments.training import EpochRecord
from generic_adam.experiments.training_claims import rank_correlation, study_claims

WRONG_EPSILON = "epsilon,method,seed,epoch,train_loss,test_loss,test_accuracy\nsmall,r,0,1,1,1,1\n"
PATH = ("r = 0", "r = 0.25", "r = 0.5", "r = 0.75", "r = 1")


def curve(method, losses, *, epsilon=1e-8, seed=0, accuracy=lambda loss: 1 - loss):
    records = tuple(EpochRecord(e, loss, 2 * loss, accuracy(loss)) for e, loss in enumerate(losses, 1))
    return Curve(method, epsilon, seed, records)


def study(losses: dict[str, float], **options) -> list[Curve]:
    return [curve(method, [0.9, loss], **options) for method, loss in losses.items()]


def verdicts(curves) -> list[str]:
    return [str(claim.verdict) for claim in study_claims(curves, "Figure 2")]


AS_CLAIMED = dict(zip(PATH, (0.8, 0.4, 0.3, 0.2, 0.1), strict=True)) | {"RMSProp": 0.15, "AMSGrad": 0.81}
REVERSED = dict(zip(PATH, (0.1, 0.2, 0.3, 0.4, 0.5), strict=True)) | {"RMSProp": 0.45, "AMSGrad": 0.11}


def test_a_table_reads_back_bit_for_bit(tmp_path):
    curves = [
        curve("r = 0", [1 / 3, 0.1 + 0.2]),
        curve("r = 0", [0.5, 0.25], seed=1),
        curve("r = 1, a comma", [1e-300, 0.25], epsilon=None),
    ]
    write_study(tmp_path / "records.csv", curves)
    assert read_study(tmp_path / "records.csv") == curves


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "epsilon,method,seed,epoch\n1,r,0,x\n", WRONG_EPSILON])
def test_another_table_is_refused(tmp_path, text):
    path = tmp_path / "records.csv"
    path.write_text(text)
    if text:
        with pytest.raises(OutputError, match="not a table of a study"):
            read_study(path)
    else:
        assert read_study(path) == []


def test_methods_that_forget_epsilon_count_for_each():
    curves = [curve("a", [1.0]), curve("a", [2.0], epsilon=1e-4), curve("b", [3.0], epsilon=None)]
    assert epsilons(curves) == [1e-8, 1e-4]
    assert methods(curves, 1e-4) == {"a": [curves[1]], "b": [curves[2]]}
    assert methods([curves[0], curves[2]], None) == {"a": [curves[0]], "b": [curves[2]]}


def test_means_are_over_seeds_and_a_short_run_keeps_its_last_value():
    curves = [curve("a", [1.0, 3.0]), curve("a", [5.0], seed=1)]
    assert common_epochs(curves) == 2
    assert at_epoch(curves, "train_loss", 2) == 4.0


def test_the_papers_picture_supports_every_claim():
    assert verdicts(study(AS_CLAIMED)) == ["supported"] * 6


def test_the_reverse_picture_contradicts_the_order():
    slowest, worst, larger, larger_positive, sensitive, smaller = verdicts(study(REVERSED))
    assert {slowest, worst, larger, larger_positive} == {"contradicted"}
    assert sensitive == "supported"
    assert smaller == "supported"


def test_half_a_picture_is_unclear():
    mixed = AS_CLAIMED | {"AMSGrad": 0.05, "r = 0.5": 0.45}
    slowest, _, larger, larger_positive, *_ = verdicts(study(mixed))
    assert {slowest, larger, larger_positive} == {"unclear"}


def test_a_method_beside_the_papers_seven_changes_no_verdict():
    assert verdicts(study(AS_CLAIMED | {"Adam, corrected": 0.85})) == ["supported"] * 6


@pytest.mark.parametrize(
    ("largest", "verdict"), [(0.24, "supported"), (0.16, "unclear"), (0.12, "contradicted")]
)
def test_sensitivity_is_a_matter_of_the_spread(largest, verdict):
    path = dict(zip(PATH, (largest, 0.11, 0.109, 0.105, 0.1), strict=True))
    assert verdicts(study(path | {"RMSProp": 0.1, "AMSGrad": 0.2}))[4] == verdict


def test_accuracy_against_the_loss_contradicts():
    against = study(AS_CLAIMED, accuracy=lambda loss: loss)
    assert verdicts(against)[-1] == "contradicted"


def test_each_epsilon_is_judged_by_itself():
    both = study(AS_CLAIMED, epsilon=1e-4) + study(REVERSED, epsilon=1e-8)
    found = study_claims(both, "Figure 2")
    assert [str(c.verdict) for c in found if "v_0 = 0.0001" in c.sentence][:3] == ["supported"] * 3
    assert [str(c.verdict) for c in found if "v_0 = 1e-08" in c.sentence][:3] == ["contradicted"] * 3
    assert all("epoch 2" in claim.sentence for claim in found)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3], [1, 1, 1], 0.0),
        ([1, 2, 3, 4, 5], [5, 6, 7, 8, 7], 0.8207826816681233),  # scipy.stats.spearmanr
    ],
)
def test_rank_correlation_is_spearmans(first, second, expected):
    assert rank_correlation(first, second) == pytest.approx(expected, abs=1e-12)


def test_a_loss_that_is_no_number_counts_as_the_worst():
    lost = study(AS_CLAIMED | {"r = 0": float("nan")})
    assert verdicts(lost)[:5] == ["supported"] * 5


def test_a_loss_of_zero_divides_nothing():
    assert verdicts(study(AS_CLAIMED | {"r = 1": 0.0}))[4] == "supported"
