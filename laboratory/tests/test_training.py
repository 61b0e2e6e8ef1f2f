"""The training loop: against a loop written out here, and against itself when interrupted."""

import math
import resource
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from generic_adam.errors import RunError
from generic_adam_laboratory import networks, training
from generic_adam_laboratory.data.datasets import Dataset, Text, load
from generic_adam_laboratory.runs import checkpoint
from generic_adam_laboratory.runs.checkpoint import CheckpointError
from generic_adam_laboratory.studies.paper_studies import paper_lines
from generic_adam_laboratory.training import (
    EpochRecord,
    OptimizerSettings,
    RunSettings,
    read_records,
    read_state,
    train,
    write_records,
)

ADAM = OptimizerSettings("torch-adam", "0.001", "0.9", "0.999")
COSINE = replace(ADAM, alpha="0.001 * (1 + cos(3.141592653589793 * (t - 1) / 8)) / 2")
R_HALF = paper_lines("0.01/sqrt(t)", 1e-8)[2].optimizer


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def few() -> Dataset:
    """A few of the digits, so that an epoch takes a fraction of a second."""
    digits = load("digits")
    return Dataset(
        "digits",
        digits.train_images[:200],
        digits.train_labels[:200],
        digits.test_images[:60],
        digits.test_labels[:60],
        classes=10,
    )


def run(optimizer=R_HALF, **changes) -> RunSettings:
    return replace(RunSettings("lenet", 1, "digits", optimizer, seed=5, epochs=4), **changes)


def test_with_replacement_an_epoch_leaves_samples_out_and_repeats_others(few):
    train_set, _ = training.samples(few, 64, "cpu")
    drawn = train_set.order(torch.Generator().manual_seed(0), replacement=True)
    assert len(drawn) == 200
    # A sample is left out with probability (1 - 1/n)^n, about 1/e.
    assert 100 < len(drawn.unique()) < 160
    assert (train_set.order(torch.Generator().manual_seed(0)).sort().values == torch.arange(200)).all()


def test_sampling_is_a_part_of_what_a_run_is():
    assert run(replacement=True).fingerprint() != run().fingerprint()


def weights(directory) -> dict:
    return checkpoint.load_latest(directory, read_state)[0]["network"]


def test_it_is_the_ordinary_loop(few, tmp_path):
    """torch's Adam and a cosine over the run, in a loop as a tutorial has it, in the other memory format."""
    settings = run(COSINE, epochs=2)
    records = train(settings, few, tmp_path).records

    network = networks.build("lenet", channels=1, classes=10, width=1, seed=5)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2 * 4)
    mean, deviation = few.train_images.mean(), few.train_images.std()
    images = torch.tensor((few.train_images[..., 0] - mean) / deviation, dtype=torch.float32)[:, None]
    labels = torch.tensor(few.train_labels).long()
    test_images = torch.tensor((few.test_images[..., 0] - mean) / deviation, dtype=torch.float32)[:, None]
    test_labels = torch.tensor(few.test_labels).long()
    generator = torch.Generator().manual_seed(5)
    for record in records:
        losses = []
        for indices in torch.randperm(200, generator=generator).split(64):
            loss = F.cross_entropy(network(images[indices]), labels[indices])
            losses += [loss.item()] * len(indices)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        logits = network(test_images)
        assert record.train_loss == pytest.approx(np.mean(losses), rel=1e-4)
        assert record.test_loss == pytest.approx(F.cross_entropy(logits, test_labels).item(), rel=1e-3)
        assert record.test_accuracy == pytest.approx((logits.argmax(1) == test_labels).float().mean().item(), abs=0.02)
    for mine, theirs in zip(weights(tmp_path).values(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs.detach(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("optimizer", "network"), [(R_HALF, "resnet18"), (COSINE, "lenet")])
def test_an_interrupted_run_ends_with_the_same_bits(few, tmp_path, optimizer, network):
    few = replace(few, train_images=few.train_images[:70], train_labels=few.train_labels[:70])
    settings = run(optimizer, network=network, width=2, epochs=2, batch_size=32)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for directory in (whole, parts):
        directory.mkdir()
    train(settings, few, whole)
    for epoch in (1, 2):
        train(settings, few, parts, until=epoch)
    assert (whole / "records.csv").read_bytes() == (parts / "records.csv").read_bytes()
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(parts)[name]), name


def test_a_corrupt_checkpoint_costs_an_epoch_and_no_bits(few, tmp_path):
    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    for directory in (whole, damaged):
        directory.mkdir()
    train(run(), few, whole)
    train(run(), few, damaged, until=3)
    newest = damaged / "checkpoint-000003.pt"
    newest.write_bytes(newest.read_bytes()[:-100])
    result = train(run(), few, damaged)
    assert result.samples_per_second is not None, "it goes on from the checkpoint before"
    (complaint,) = result.complaints
    assert str(newest) in complaint
    assert (whole / "records.csv").read_bytes() == (damaged / "records.csv").read_bytes()


def test_a_finished_run_is_left_alone_and_can_be_made_longer(few, tmp_path):
    first = train(run(epochs=2), few, tmp_path).records
    again = train(run(epochs=2), few, tmp_path)
    assert again.samples_per_second is None, "nothing was trained again"
    longer = train(run(epochs=3), few, tmp_path)
    assert again.records == first
    assert longer.records[:2] == first
    assert len(longer.records) == 3


@pytest.mark.parametrize(
    "other",
    [
        run(seed=6),
        run(ADAM),
        run(replace(R_HALF, epsilon=1e-4)),
        run(COSINE),
        run(replace(R_HALF, corrected=True)),
        run(batch_size=32),
    ],
)
def test_a_directory_of_another_run_is_refused(few, tmp_path, other):
    train(run(epochs=1), few, tmp_path)
    with pytest.raises(CheckpointError, match="other settings"):
        train(other, few, tmp_path)


def test_the_checkpoints_of_0_1_go_on_and_longer_runs_too():
    lines = paper_lines("0.001/sqrt(t)", 1e-8)
    found = [RunSettings("lenet", 1, "mnist", line.optimizer, 0, 10) for line in lines[:3]]
    assert [run.fingerprint() for run in found] == [  # as 0.1 computed them
        "d3f489dfe67ebc07",
        "895707d32e86cfb0",
        "a993b4121911f83c",
    ]
    assert run().fingerprint() == replace(run(), epochs=5).fingerprint()


def test_methods_of_a_seed_share_weights_and_batches(few, tmp_path):
    """With a step of nothing all methods measure the same losses, batch for batch."""
    losses = []
    for index, method in enumerate(paper_lines("1e-30/sqrt(t)", 1e-8)):
        directory = tmp_path / str(index)
        directory.mkdir()
        losses.append(train(run(method.optimizer, epochs=2), few, directory).records)
    assert len(losses) == 7
    assert all(records == losses[0] for records in losses)


def test_a_loss_that_is_no_number_ends_the_run_with_its_record(few, tmp_path):
    result = train(run(replace(R_HALF, alpha="1e30"), epochs=4), few, tmp_path)
    assert len(result.records) == 1
    assert not math.isfinite(result.records[0].train_loss)
    (row,) = read_records(tmp_path / "records.csv")
    assert not math.isfinite(row.train_loss)


def test_bfloat16_is_close_to_float32(few, tmp_path):
    losses = {}
    for bf16 in (False, True):
        directory = tmp_path / str(bf16)
        directory.mkdir()
        losses[bf16] = train(run(bf16=bf16, epochs=1), few, directory).records[0].train_loss
    assert losses[True] == pytest.approx(losses[False], rel=0.02)
    assert losses[True] != losses[False]


def test_memory_stays_flat_over_epochs(few, tmp_path, monkeypatch):
    peaks = []

    def note(*_arguments):
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    monkeypatch.setattr(training, "write_records", note)  # after each epoch
    train(run(epochs=12), few, tmp_path)
    assert len(peaks) == 12
    assert peaks[-1] - peaks[3] < 4096, f"KiB, epoch by epoch: {peaks}"


def test_records_read_back_bit_for_bit(tmp_path):
    records = [EpochRecord(1, 0.1 + 0.2, 1 / 3, 0.5), EpochRecord(2, 1e-300, math.pi, 1.0)]
    write_records(tmp_path / "records.csv", records)
    assert read_records(tmp_path / "records.csv") == records


def test_generic_adam_gets_v0_and_theta_of_the_paper():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer, scheduler = paper_lines("0.001/sqrt(t)", 1e-4)[4].optimizer.build([parameter])
    assert scheduler is None
    for gradient in (3.0, 4.0):
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
    # r = 1: theta_1 = 0, so v_1 = g_1^2, and theta_2 = 1/2, so v_2 is the mean of the squares.
    step1, step2 = 0.001 * 0.3 / 3, 0.001 / math.sqrt(2) * (0.9 * 0.3 + 0.1 * 4) / math.sqrt(12.5)
    assert parameter.item() == pytest.approx(-step1 - step2, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: run(epochs=0), "epochs 0: expected a positive"),
        (lambda: run(width=0), "width 0: expected a positive"),
        (lambda: replace(ADAM, family="sgd"), "no optimizer family 'sgd': expected one of generic-adam"),
        (lambda: replace(ADAM, epsilon=-1.0), "epsilon -1.0"),
        (lambda: replace(ADAM, epsilon=math.nan), "epsilon nan"),
        (lambda: replace(ADAM, epsilon=math.inf), "epsilon inf"),
        (lambda: replace(ADAM, theta="1 - 1/t").build([torch.zeros(1)]), "take a number"),
    ],
)
def test_bad_settings_are_one_line(make, message):
    with pytest.raises(RunError, match=message):
        make()


def test_a_run_that_is_no_number_stays_ended_when_taken_up_again(few, tmp_path):
    settings = run(replace(R_HALF, alpha="1e30"), epochs=4)
    first = train(settings, few, tmp_path, until=1)
    again = train(settings, few, tmp_path, until=2)
    assert again.samples_per_second is None
    assert len(first.records) == len(again.records) == 1


def test_a_table_left_behind_its_checkpoint_catches_up(few, tmp_path):
    records = train(run(epochs=2), few, tmp_path).records
    write_records(tmp_path / "records.csv", records[:1])  # killed between the two files of epoch 2
    assert train(run(epochs=2), few, tmp_path).samples_per_second is None
    assert tuple(read_records(tmp_path / "records.csv")) == records


SCHEDULED = OptimizerSettings("torch-adamw", "0.01/sqrt(t)", "0.9", "0.95", decay=0.1)


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        (SCHEDULED, torch.optim.AdamW),
        (replace(SCHEDULED, family="generic-adam", corrected=True), torch.optim.AdamW),
        (replace(SCHEDULED, family="torch-nadam"), torch.optim.NAdam),
        (replace(SCHEDULED, family="torch-sgd", theta="0"), torch.optim.SGD),
        (replace(SCHEDULED, family="torch-adagrad", beta="0", theta="0"), torch.optim.Adagrad),
    ],
    ids=lambda value: getattr(value, "family", ""),
)
def test_each_family_is_torchs_optimizer_under_its_schedule(settings, reference):
    mine, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 7)) for _ in range(2))
    optimizer, scheduler = settings.build([mine])
    if reference is torch.optim.SGD:
        expected = reference([theirs], 1.0, momentum=0.9, weight_decay=0.1)
    elif reference is torch.optim.Adagrad:
        expected = reference([theirs], 1.0, eps=1e-8, weight_decay=0.1)
    else:
        others = {"decoupled_weight_decay": True} if reference is torch.optim.NAdam else {}
        expected = reference([theirs], 1.0, betas=(0.9, 0.95), weight_decay=0.1, **others)
    for step in range(1, 6):
        expected.param_groups[0]["lr"] = 0.01 / math.sqrt(step)
        for parameter, one in ((mine, optimizer), (theirs, expected)):
            parameter.grad = torch.sin(parameter.detach() * step) + 0.1
            one.step()
        if scheduler is not None:
            scheduler.step()
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


def test_a_text_is_trained_and_resumed_to_the_same_bits(tmp_path, monkeypatch):
    """GPT learns an alphabet that repeats, and an interrupted run ends as one that was not."""
    monkeypatch.setattr("generic_adam_laboratory.data.datasets.STEPS_OF_A_TEXT", 15)
    letters = np.tile(np.arange(26, dtype=np.uint8), 40)
    text = Text("stdlib", letters, letters[:300])
    adam = OptimizerSettings("generic-adam", "0.01", "0.9", "0.99", corrected=True)
    settings = RunSettings("gpt", 16, "stdlib", adam, seed=1, epochs=2, batch_size=4)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for directory in (whole, parts):
        directory.mkdir()
    records = train(settings, text, whole).records
    for epoch in (1, 2):
        train(settings, text, parts, until=epoch)
    assert records[0].train_loss == pytest.approx(math.log(97), abs=1.5), "it starts knowing nothing"
    assert records[1].test_loss < 1.5 < records[0].train_loss
    assert records[1].test_accuracy > 0.6
    assert (whole / "records.csv").read_bytes() == (parts / "records.csv").read_bytes()


def test_a_run_does_not_go_on_with_other_data(few, tmp_path):
    train(run(), few, tmp_path, until=1)
    other = replace(few, train_labels=few.train_labels[::-1].copy())
    with pytest.raises(CheckpointError, match="other data"):
        train(run(), other, tmp_path)
