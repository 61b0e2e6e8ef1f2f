"""`generic-adam verify`: exit codes, and nothing that is typed is run."""

import json

import pytest

from generic_adam.cli import main

torch = pytest.importorskip("torch")

TRAIN = """
import torch

def configure():
    return torch.optim.AdamW([torch.nn.Parameter(torch.zeros(6, 4)), torch.nn.Parameter(torch.zeros(4))], lr=3e-4)

def strange():
    return torch.optim.Rprop([torch.nn.Parameter(torch.zeros(6))])
"""


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("", 0, "AGREES: the steps of AdamW are those of AdamW"),
        ("--as adamw --lr 3e-4 --weight-decay 0.01", 0, "AdamW(lr=0.0003, weight_decay=0.01)"),
        ("--as adamw --lr 1e-3 --weight-decay 0.01", 1, "learning rate: the groups say lr = 0.0003"),
        ("--as adam --lr 3e-4 --betas 0.9,0.95", 1, "betas: the groups say beta2 = 0.999"),
    ],
)
def test_the_answer_is_the_exit_code(words, code, said, capsys):
    assert main(["verify", "--from", "train.py:configure", *words.split()]) == code
    assert said in capsys.readouterr().out


def test_what_is_no_known_algorithm_cannot_be_told(capsys):
    assert main(["verify", "--from", "train.py:strange"]) == 3
    assert "CANNOT TELL" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "train.py:nothing"], "no 'nothing'"),
        (["--from", "train.py:configure", "--lr", "3e-4"], "a claim begins with its algorithm"),
        (["--from", "train.py:configure", "--as", "adam", "--lr", "__import__('os').abort()"], "claim: lr: column 1"),
        (["--from", "train.py:configure", "--as", "adamax"], "did you mean 'Adam'"),
        (["--from", "train.py:configure", "--as", "adam", "--betas", "0.9"], "expected two numbers"),
        (["--from", "train.py:configure", "--resume", "none.pt"], "none.pt"),
    ],
)
def test_bad_input_is_one_line(words, said, capsys):
    assert main(["verify", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_json_has_the_parts(capsys):
    assert main(["verify", "--from", "train.py:configure", "--as", "adam", "--lr", "3e-4", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] is False
    assert found["differences"][0]["category"] == "weight decay"
