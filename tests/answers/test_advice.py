"""The lines of a patch run, and the optimizer is then the algorithm that was advised."""

from __future__ import annotations

import pytest

import generic_adam as ga
from generic_adam.answers.advice import patch
from generic_adam.cli import main
from generic_adam.errors import TheoremError

torch = pytest.importorskip("torch")
OPTIMIZERS = {
    "Adam": lambda p: torch.optim.Adam(p, betas=(0.9, 0.95)),
    "AdamW": lambda p: torch.optim.AdamW(p, betas=(0.9, 0.95)),
    "NAdam": lambda p: torch.optim.NAdam(p, betas=(0.9, 0.95)),
    "RMSprop": lambda p: torch.optim.RMSprop(p, alpha=0.9),
}
STEPS = 100_000


def executed(text, **scope):
    exec(compile(text, "patch", "exec"), scope)
    return scope


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_patch_for_torch_makes_the_advised_algorithm(name):
    model = torch.nn.Linear(2, 1)
    kinds = set()
    for number in range(len(ga.advise(OPTIMIZERS[name](model.parameters()), horizon=STEPS))):
        optimizer = OPTIMIZERS[name](model.parameters())
        one = ga.advise(optimizer, horizon=STEPS)[number]
        found = ga.certification.read(executed(patch(one), optimizer=optimizer, model=model)["optimizer"])
        for sequence in ("alpha", "beta", "theta"):
            got, wanted = (getattr(x.method, sequence).values(1, 3000) for x in (found, one.algorithm))
            assert got == pytest.approx(wanted, rel=1e-9)
        kinds.add(one.purpose)
    assert len(kinds) == 2


def test_groups_are_changed_alone():
    first, second = torch.nn.Linear(2, 1), torch.nn.Linear(1, 1)
    groups = [
        {"params": first.parameters(), "betas": (0.9, 0.95)},
        {"params": second.parameters(), "betas": (0.8, 0.999)},
    ]
    optimizer = torch.optim.Adam(groups)
    part = ga.adapters.read(optimizer).parts[0]
    executed(patch(ga.advise(part, horizon=STEPS).best, is_part=True), optimizer=optimizer)
    assert [group["betas"] for group in optimizer.param_groups] == [(0.9, 0.999), (0.8, 0.999)]


def test_optax_and_trainer_have_their_own_lines():
    optax = pytest.importorskip("optax")
    better, later = ga.advise("nanogpt")
    assert patch(better, "trainer").startswith("adam_beta2=0.999,")
    assert patch(better, "optax").startswith("b2=0.999,")
    for framework in ("trainer", "optax"):  # Trainer drives the lr, and Optax has no such decay
        with pytest.raises(TheoremError, match="--patch"):
            patch(later, framework)
    (alone,) = ga.advise("adam", horizon=STEPS)
    assert isinstance(executed(patch(alone, "optax"))["optimizer"], optax.GradientTransformation)


def test_the_command_prints_nothing_but_the_lines(capsys):
    assert main(["advise", "nanogpt", "--patch"]) == 0
    out = capsys.readouterr().out
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], betas=(0.9, 0.95))
    executed(out, optimizer=optimizer)
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)
    assert main(["advise", "nanogpt", "--patch", "--change", "3"]) == 2
    assert main(["advise", "adamw", "--lr", "1e-6", "--steps", "100", "--patch"]) == 0
    executed(capsys.readouterr().out)
