# pyright: reportPrivateImportUsage=false
"""Brings parameters, gradients and state into lists of plain tensors that a kernel can run over.

A list of ordinary contiguous float32 or float64 tensors, which is what most networks are, is taken as it is.
The rest is brought into that form: complex numbers are pairs of real ones, a DTensor is its local shard (the
update is coordinate-wise, so shards need not talk), half-precision parameters are updated in float32. torch's
fused kernel walks memory without looking at strides, so tensors that are laid out differently go to a kernel
that does look.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from operator import is_, itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch.coefficients import UnsupportedError
from generic_adam.torch.kernels import Kernel, Lists, Step, flat

_ORDINARY = {torch.Tensor, torch.nn.Parameter}
_FULL_PRECISION = (torch.float32, torch.float64)
_HALF_PRECISION = {torch.float16, torch.bfloat16}
# Half-precision tensors are widened this many elements at a time: half a megabyte, which stays in the cache.
_WIDENED_AT_ONCE = 2**17

_stride = torch.Tensor.stride
_numel = torch.Tensor.numel
_is_contiguous = torch.Tensor.is_contiguous
_momentum_of = itemgetter("exp_avg")
_second_moment_of = itemgetter("exp_avg_sq")
_maximum_in = itemgetter("max_exp_avg_sq")


class Bucket(NamedTuple):
    """Tensors of one dtype and device.

    Attributes:
        lists: the tensors.
        aligned: whether the tensors of each parameter lie in memory in the same order, without gaps.
        device_type: "cpu", "cuda", ...
        dtype: of the parameters.
        states: the state of each parameter.
        count: how many steps each of these parameters has had before this one.
    """

    lists: Lists
    aligned: bool
    device_type: str
    dtype: torch.dtype
    states: list[dict[str, Any]]
    count: int


def state_dtype(parameter: Tensor) -> torch.dtype:
    """The dtype of a parameter's state: its own, but float32 for half precision.

    In bfloat16, 0.999 v rounds to v, and v would never forget; in float16, v_0 = 1e-8 is 0.
    """
    return (
        torch.float32 if parameter.is_floating_point() and parameter.element_size() < 4 else parameter.dtype
    )


def new_state(parameter: Tensor, initial_v: float, *, amsgrad: bool) -> dict[str, Tensor]:
    """m_0 = 0, v_0 = initial_v and, for AMSGrad, a running maximum that starts at 0."""
    dtype = state_dtype(parameter)
    second_moment = torch.full_like(parameter, initial_v, dtype=dtype, memory_format=torch.preserve_format)
    if parameter.is_complex():
        # Real and imaginary part are two coordinates, each with its own v.
        torch.view_as_real(second_moment).fill_(initial_v)
    state = {
        "exp_avg": torch.zeros_like(parameter, dtype=dtype, memory_format=torch.preserve_format),
        "exp_avg_sq": second_moment,
    }
    if amsgrad:
        state["max_exp_avg_sq"] = torch.zeros_like(
            parameter, dtype=dtype, memory_format=torch.preserve_format
        )
    return state


def gather(
    params: Sequence[Tensor], state: Mapping[Tensor, dict[str, Any]], initial_v: float, *, amsgrad: bool
) -> list[Bucket]:
    """The tensors of one step, in buckets; makes the state of parameters that have none.

    Raises:
        UnsupportedError: a gradient is sparse.
        OptimizerError: a gradient or a tensor of the state has another shape than its parameter.
    """
    buckets: dict[tuple[torch.device, torch.dtype, bool, int, float | None], Bucket] = {}
    for index, parameter in enumerate(params):
        gradient = parameter.grad
        if gradient is None:
            continue
        refuse_sparse(parameter, index)
        moments = state[parameter]
        if "exp_avg" not in moments:
            moments.update(new_state(parameter, initial_v, amsgrad=amsgrad))
        row = [parameter, gradient, moments["exp_avg"], moments["exp_avg_sq"]]
        if amsgrad:
            row.append(_maximum_of(moments))
        row = local_and_real(row)
        first = row[0]
        if any(tensor.shape != first.shape for tensor in row):
            raise OptimizerError(
                f"the gradient or the state of parameter {index} of its group has not the shape "
                f"{tuple(first.shape)} of its parameter"
            )
        aligned, count = _are_aligned(row), moments.setdefault("step", 0)
        key = (first.device, first.dtype, aligned, count, moments.get("theta_correction"))
        if key not in buckets:
            lists = Lists([], [], [], [], [])
            buckets[key] = Bucket(lists, aligned, first.device.type, first.dtype, [], count)
        bucket = buckets[key]
        bucket.states.append(moments)
        # The running maxima are the last list, and its row is one shorter without AMSGrad.
        for tensors, tensor in zip(bucket.lists, row, strict=False):
            tensors.append(tensor)
    return list(buckets.values())


def refuse_sparse(parameter: Tensor, index: int) -> None:
    """Raise an UnsupportedError that says which parameter of its group has a sparse gradient."""
    gradient = parameter.grad
    if gradient is not None and gradient.layout is not torch.strided:
        raise UnsupportedError(
            f"the gradient of parameter {index} of its group, of shape {tuple(parameter.shape)}, is "
            f"sparse ({gradient.layout}): not supported; use dense ones (sparse=False)"
        )


class Snapshot(NamedTuple):
    """What was found about a group that needs nothing done; what may have changed since is asked again.

    It holds no tensor of the state, so that one who drops or moves the state frees its memory.

    Attributes:
        device_type: of all tensors.
        dtype: likewise.
        missed: how many steps of the optimizer the parameters have not been part of, all of them the same.
        ids_of_state: of the tensors of the state.
        sizes: of the parameters.
        strides: of the state, where not everything is contiguous.
    """

    device_type: str
    dtype: torch.dtype
    missed: int
    ids_of_state: list[int]
    sizes: list[int]
    strides: list[tuple[int, ...]] | None


def take_snapshot(params: Sequence[Tensor], buckets: list[Bucket], t: int) -> Snapshot | None:
    """A snapshot of a group that was gathered into one bucket of ordinary full-precision tensors, or None."""
    if len(buckets) != 1 or not buckets[0].aligned or len(buckets[0].lists.params) != len(params):
        return None
    if not set(map(type, params)) <= _ORDINARY or params[0].dtype not in _FULL_PRECISION:
        return None
    bucket = buckets[0]
    if "theta_correction" in bucket.states[0]:
        return None
    _, _, momenta, second_moments, maxima = bucket.lists
    state = [*momenta, *second_moments, *maxima]
    strides = None if all(map(_is_contiguous, state)) else list(map(_stride, second_moments))
    sizes = list(map(_numel, second_moments))
    missed = t - 1 - bucket.count
    return Snapshot(bucket.device_type, bucket.dtype, missed, list(map(id, state)), sizes, strides)


def gather_again(
    params: Sequence[Tensor],
    state: Mapping[Tensor, dict[str, Any]],
    snapshot: Snapshot,
    t: int,
    *,
    amsgrad: bool,
) -> list[Bucket] | None:
    """The tensors of step t of a group that has not changed in kind since the snapshot; None if it has.

    This runs at every step of most networks, so it asks only what it must: whether the state's tensors are
    the same objects (a state may have been moved or replaced), and whether parameters and gradients have its
    size and lie in memory as it does. That a gradient has the shape of its parameter is torch's own rule.
    """
    grads: list[Any] = [parameter.grad for parameter in params]
    try:
        if list(map(_numel, params)) != snapshot.sizes:
            return None
        if snapshot.strides is None:
            if not (all(map(_is_contiguous, params)) and all(map(_is_contiguous, grads))):
                return None
        elif not list(map(_stride, grads)) == snapshot.strides == list(map(_stride, params)):
            return None
        # With one group, the states are in the order of the parameters.
        alone = len(state) == len(params) and all(map(is_, state, params))
        states = list(state.values()) if alone else [state[parameter] for parameter in params]
        momenta = list(map(_momentum_of, states))
        second_moments = list(map(_second_moment_of, states))
        maxima = list(map(_maximum_in, states)) if amsgrad else []
    except (TypeError, KeyError, RuntimeError):
        # No gradient, no state any more, or a sparse gradient, which has no strides.
        return None
    if list(map(id, [*momenta, *second_moments, *maxima])) != snapshot.ids_of_state:
        return None
    lists = Lists(list(params), grads, momenta, second_moments, maxima)
    count = t - 1 - snapshot.missed
    return [Bucket(lists, True, snapshot.device_type, snapshot.dtype, states, count)]


def _maximum_of(moments: dict[str, Any]) -> Tensor:
    maximum = moments.get("max_exp_avg_sq")
    if maximum is None:
        # amsgrad was switched on after the state was made.
        maximum = moments["max_exp_avg_sq"] = torch.zeros_like(moments["exp_avg_sq"])
    return maximum


def local_and_real(row: list[Tensor]) -> list[Tensor]:
    """The tensors of one parameter: of a DTensor the local shards, of complex ones their real views."""
    if is_distributed(row[0]):
        row = [_local(tensor, like=row[0]) for tensor in row]
    if row[0].is_complex():
        row = [torch.view_as_real(tensor) for tensor in row]
    return row


def is_distributed(tensor: Tensor) -> bool:
    """Whether a tensor is a DTensor."""
    # Importing DTensor takes a second, and where there is one, something has imported it.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def _local(tensor: Any, like: Any) -> Tensor:
    if not is_distributed(tensor):
        raise OptimizerError(
            f"a parameter of shape {tuple(like.shape)} is a DTensor and its gradient or state is not: "
            f"expected the placements {like.placements}"
        )
    if tensor.placements != like.placements:
        tensor = tensor.redistribute(placements=like.placements)
    return tensor.to_local()


def _are_aligned(row: list[Tensor]) -> bool:
    if all(tensor.is_contiguous() for tensor in row):
        return True
    strides = row[0].stride()
    # The state was made dense; a parameter with the same strides is dense too.
    return all(tensor.stride() == strides for tensor in row)


def update_bucket(bucket: Bucket, step: Step, kernel: Kernel) -> None:
    """Run a kernel over a bucket, in float32 where parameters are of half precision, and count the step."""
    lists = bucket.lists
    if bucket.dtype not in _HALF_PRECISION:
        kernel(lists, step)
    else:
        for chunk in _chunks(lists) if bucket.aligned else [lists]:
            wide = [parameter.float() for parameter in chunk.params]
            kernel(chunk._replace(params=wide, grads=[gradient.float() for gradient in chunk.grads]), step)
            torch._foreach_copy_(chunk.params, wide)
    count = bucket.count + 1
    for moments in bucket.states:
        moments["step"] = count


def _chunks(lists: Lists) -> Iterator[Lists]:
    """Cut lists of aligned tensors into flat pieces, a bounded number of elements at a time."""
    chunk = Lists([], [], [], [], [])
    room = _WIDENED_AT_ONCE
    for index, parameter in enumerate(lists.params):
        row = [flat(tensors[index]) for tensors in lists if tensors]
        start, size = 0, parameter.numel()
        while start < size:
            stop = min(size, start + room)
            for tensors, tensor in zip(chunk, row, strict=False):
                tensors.append(tensor[start:stop])
            room -= stop - start
            start = stop
            if room == 0:
                yield chunk
                chunk, room = Lists([], [], [], [], []), _WIDENED_AT_ONCE
    if chunk.params:
        yield chunk
