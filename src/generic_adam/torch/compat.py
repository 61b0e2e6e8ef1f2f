# pyright: reportPrivateImportUsage=false
"""Private names of torch that these optimizers use for speed, in one place; each with a way without it.

A release of torch that moves or drops one of these names costs time, and no more: `MISSING` says which it lacks.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import profiler

MISSING: set[str] = set()
"""The private names that this torch does not have."""


def _private(module: str, name: str, instead: Any) -> Any:
    """Return a private name of torch, or what does without it."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        MISSING.add(f"{module}.{name}")
        return instead


def _traits(tensor: Tensor) -> tuple[Any, ...]:
    strides = tensor.stride() if tensor.layout is torch.strided else ()
    return type(tensor), tensor.dtype, tensor.device, tensor.requires_grad, tensor.shape, strides


_Guards = _private("torch._C._dynamo.guards", "TensorGuards", None)


def same_kind_as(tensors: Sequence[Tensor]) -> Callable[..., bool]:
    """Return a test of as many tensors: each has the type, dtype, device, shape and strides of its one here.

    It is one call of what torch's compiler asks before it runs compiled code, or else as many comparisons.
    """
    if _Guards is not None:
        return _Guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    known = [_traits(tensor) for tensor in tensors]
    return lambda *found: [_traits(one) if isinstance(one, Tensor) else None for one in found] == known


fused_adam: Any = _private("torch", "_fused_adam_", None)
"""Torch's fused kernel of Adam, and of AdamW below; without both there is the multi-tensor form."""
fused_adamw: Any = _private("torch", "_fused_adamw_", None)
_devices_with_fused = _private(
    "torch.utils._foreach_utils", "_get_fused_kernels_supported_devices", lambda: ["cpu", "cuda"]
)


def has_fused(device_type: str) -> bool:
    """Return whether torch has a fused Adam for a type of device."""
    return None not in {fused_adam, fused_adamw} and device_type in _devices_with_fused()


outside_graphs: Callable[[Any], Any] = _private("torch._compile", "_disable_dynamo", torch.compiler.disable)
"""Keeps a function out of compiled graphs, as torch.compiler.disable does, which imports the compiler at once."""

set_grad_enabled: Callable[[bool], object] = _private("torch._C", "_set_grad_enabled", torch.set_grad_enabled)
"""Switches gradients on or off, as torch.no_grad does, without the object around it."""

hooks_before, hooks_after = (
    cast("Mapping[int, Any]", _private("torch.optim.optimizer", f"_global_optimizer_{when}_hooks", {}))
    for when in ("pre", "post")
)
"""The hooks that run at the steps of every optimizer."""

# Without it steps are always labelled, as if a profiler ran.
_private("torch.autograd.profiler", "_is_profiler_enabled", None)
is_profiled: Callable[[], bool] = (
    (lambda: profiler._is_profiler_enabled) if hasattr(profiler, "_is_profiler_enabled") else lambda: True
)
