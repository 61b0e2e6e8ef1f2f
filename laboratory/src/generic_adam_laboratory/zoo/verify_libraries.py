# ruff: noqa: E501 - the table is read by its columns
"""Optimizers of other libraries, each with what its name or its paper promises, for `verify`.

What is not installed is left out: `generic-adam reproduce verify` writes the table of what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from generic_adam.errors import GenericAdamError
from generic_adam_laboratory.zoo.verify_cases import Case, Made, by_optax, weights

_ADAM: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-8}
_DECAYED: dict[str, Any] = {**_ADAM, "weight_decay": 0.1}
_BALL: dict[str, Any] = {"lr": 0.05, "momentum": 0.9}
_NADAM = {**_ADAM, "algorithm": "NAdam"}
_RMS = {"algorithm": "RMSprop", "lr": 1e-3, "alpha": 0.99, "eps": 1e-8}


def _as(algorithm: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"algorithm": algorithm, **options, **more}


# Library, module, name, its options, what it is claimed to be (None: nothing, it is to be identified).
_TORCH: tuple[tuple[str, str, str, dict[str, Any], dict[str, Any] | None], ...] = (
    ("torch", "torch.optim", "Adam", _ADAM, _as("Adam", _ADAM)),
    ("torch", "torch.optim", "AdamW", _DECAYED, _as("AdamW", _DECAYED)),
    ("torch", "torch.optim", "NAdam", _ADAM, _NADAM),
    ("torch", "torch.optim", "RMSprop", {"lr": 1e-3}, _RMS),
    ("torch", "torch.optim", "Adagrad", {"lr": 0.01}, {"algorithm": "Adagrad", "lr": 0.01, "eps": 1e-10}),
    ("torch", "torch.optim", "SGD", _BALL, _as("SGD", _BALL)),
    ("torch", "torch.optim", "SGD", {**_BALL, "fused": True}, _as("SGD", _BALL)),
    ("torch", "torch.optim", "RAdam", _ADAM, None),
    ("timm", "timm.optim", "AdamWLegacy", _DECAYED, _as("AdamW", _DECAYED)),
    ("timm", "timm.optim", "NAdamLegacy", _ADAM, _NADAM),
    ("timm", "timm.optim", "NAdamW", _DECAYED, _as("NAdamW", _DECAYED)),
    ("timm", "timm.optim", "RMSpropTF", {"lr": 1e-3, "momentum": 0.9}, {**_RMS, "alpha": 0.9, "momentum": 0.9, "eps": 1e-10, "eps_place": "root", "initial_v": 1.0, "rate_in_momentum": True}),
    ("timm", "timm.optim", "SGDW", {**_BALL, "weight_decay": 0.1}, _as("SGD", _BALL, weight_decay=0.1, decoupled=True)),
    ("timm", "timm.optim", "LaProp", _ADAM, None),
    ("timm", "timm.optim", "AdaBelief", _ADAM, None),
    ("pytorch_optimizer", "pytorch_optimizer", "AdamWSN", _DECAYED, _as("AdamW", _DECAYED)),
    ("pytorch_optimizer", "pytorch_optimizer", "AdamS", _ADAM, None),
    ("pytorch_optimizer", "pytorch_optimizer", "AdaGC", _ADAM, None),
    ("pytorch_optimizer", "pytorch_optimizer", "SGDW", {**_BALL, "weight_decay": 0.1}, _as("SGD", _BALL, weight_decay=0.1, decoupled=True)),
    ("pytorch_optimizer", "pytorch_optimizer", "AMSGrad", _ADAM, _as("AMSGrad", _ADAM)),
    ("pytorch_optimizer", "pytorch_optimizer", "AdaBelief", _ADAM, None),
    ("pytorch_optimizer", "pytorch_optimizer", "StableAdamW", _DECAYED, None),
    ("torch-optimi", "optimi", "Adam", _ADAM, _as("Adam", _ADAM)),
    ("torch-optimi", "optimi", "AdamW", _DECAYED, _as("AdamW", _DECAYED)),
    ("torch-optimi", "optimi", "SGD", {**_BALL, "dampening": False}, _as("SGD", _BALL)),
    ("torch-optimi", "optimi", "StableAdamW", _DECAYED, None),
    ("bitsandbytes", "bitsandbytes.optim", "Adam", _ADAM, _as("Adam", _ADAM)),
    ("bitsandbytes", "bitsandbytes.optim", "AdamW", _DECAYED, _as("AdamW", _DECAYED)),
    ("bitsandbytes", "bitsandbytes.optim", "RMSprop", {"lr": 1e-3}, _RMS),
    ("bitsandbytes", "bitsandbytes.optim", "SGD", _BALL, _as("SGD", _BALL)),
    ("bitsandbytes", "bitsandbytes.optim", "Adagrad", {"lr": 0.01}, {"algorithm": "Adagrad", "lr": 0.01, "eps": 1e-10}),
    ("bitsandbytes", "bitsandbytes.optim", "AdEMAMix32bit", {"lr": 1e-3}, None),
    ("heavyball", "heavyball", "AdamW", {**_DECAYED, "warmup_steps": 0, "compile_step": False}, _as("AdamW", _DECAYED)),
    ("heavyball", "heavyball", "NAdam", {**_ADAM, "warmup_steps": 0, "compile_step": False}, _NADAM),
    ("heavyball", "heavyball", "SGD", {"lr": 0.05, "warmup_steps": 0, "compile_step": False}, None),
    ("torchao", "torchao.optim", "_AdamW", _DECAYED, _as("AdamW", _DECAYED)),
    ("schedulefree", "schedulefree", "AdamWScheduleFree", _DECAYED, None),
    ("adabelief-pytorch", "adabelief_pytorch", "AdaBelief", {**_ADAM, "print_change_log": False}, None),
    ("prodigyopt", "prodigyopt", "Prodigy", {}, None),
)  # fmt: skip
_OPTAX: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("adam", {"learning_rate": 1e-3, "b2": 0.98}, _as("Adam", _ADAM)),
    ("adamw", {"learning_rate": 1e-3, "b2": 0.98, "weight_decay": 0.1}, _as("AdamW", _DECAYED)),
    ("amsgrad", {"learning_rate": 1e-3, "b2": 0.98}, _as("AMSGrad", _ADAM)),
    ("nadam", {"learning_rate": 1e-3, "b2": 0.98}, _NADAM),
    ("rmsprop", {"learning_rate": 1e-3, "decay": 0.99}, _RMS),
    ("adagrad", {"learning_rate": 0.01}, {"algorithm": "Adagrad", "lr": 0.01, "eps": 1e-7}),
    ("sgd", {"learning_rate": 0.05, "momentum": 0.9}, _as("SGD", _BALL)),
    ("contrib.adopt", {"learning_rate": 1e-3}, _as("Adam", _ADAM)),
    ("contrib.momo_adam", {"learning_rate": 1e-3, "b2": 0.98}, _as("Adam", _ADAM)),
)


def _torch_like(module: str, name: str, options: dict[str, Any]) -> Made:
    named = weights()
    optimizer = getattr(import_module(module), name)([p for _, p in named], **options)
    if hasattr(optimizer, "train"):  # a schedule-free one has two modes
        optimizer.train()
    return Made(named, optimizer)


def _optax(name: str, options: dict[str, Any]) -> Made:
    home, _, last = name.rpartition(".")
    optax: Any = import_module("optax")
    return by_optax(lambda: getattr(getattr(optax, home) if home else optax, last)(**options))()


def installed() -> Iterator[tuple[str, str, Case]]:
    """Yield library, version and set-up of each optimizer that is there."""
    rows: list[tuple[str, str, Callable[[], Made], dict[str, Any] | None]] = [
        (
            library,
            f"{name}(fused)" if options.get("fused") else name,
            partial(_torch_like, module, name, options),
            claim,
        )
        for library, module, name, options, claim in _TORCH
    ]
    rows += [("optax", name, partial(_optax, name, options), claim) for name, options, claim in _OPTAX]
    for library, name, make, claim in rows:
        try:
            made_by = version(library)
            make()
        except (PackageNotFoundError, ImportError, AttributeError):
            continue
        except Exception:  # noqa: BLE001, S110 - what a strange constructor raises is told by verify
            pass
        yield library, made_by, Case(name, make, claim)


def looked_at() -> Iterator[tuple[str, ...]]:
    """Yield a row of the table: library, class, what it was taken for, answer, what differs or what it is."""
    from generic_adam.verify import verify
    from generic_adam.verify.claim import read_claim

    for library, made_by, case in installed():
        taken = "(nothing claimed)" if case.claim is None else read_claim(case.claim).title
        try:
            found = verify(case.make, claim=case.claim)
        except GenericAdamError as error:
            yield f"{library} {made_by}", case.name, taken, "cannot be driven", str(error).replace("|", "/")
            continue
        answer = {True: "agrees", False: "differs", None: "cannot tell"}[found.agrees]
        told = [
            f"{one.category}: {one.said}" + ("" if one.explained else " (unexplained)") for one in found.differences
        ]
        yield f"{library} {made_by}", case.name, taken, answer, "; ".join(told or found.identified[:1]) or "–"
