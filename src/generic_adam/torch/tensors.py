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
from operator import is_
from typing import Any

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch.coefficients import UnsupportedError
from generic_adam.torch.kernels import Kernel, Lists, Step, as_lists, flat, foreach

_ORDINARY = {torch.Tensor, torch.nn.Parameter}
_FULL_PRECISION = (torch.float32, torch.float64)
_HALF_PRECISION = {torch.float16, torch.bfloat16}
# Half-precision tensors are widened this many elements at a time: half a megabyte, which stays in the cache.
_WIDENED_AT_ONCE = 2**17

_stride = torch.Tensor.stride
_numel = torch.Tensor.numel
_is_contiguous = torch.Tensor.is_contiguous


class Bucket:
    """Tensors of one dtype and device, for one step; of a group that stays as it is, filled anew for the next.

    Between steps a bucket holds no tensor of the state, so that one who drops or moves the state frees its
    memory.

    Attributes:
        lists: the tensors.
        aligned: whether the tensors of each parameter lie in memory in the same order, without gaps.
        device_type: "cpu", "cuda", ...
        dtype: of the parameters.
        in_float32: whether that is what their state is kept in.
        states: the state of each parameter.
        count: how many steps each of these parameters has had before this one.
        kernel: what updates them.
    """

    __slots__ = (
        "_has_maxima",
        "_ids_of_state",
        "_missed",
        "_sizes",
        "_strides",
        "aligned",
        "count",
        "device_type",
        "dtype",
        "in_float32",
        "kernel",
        "lists",
        "states",
    )

    def __init__(self, first: Tensor, aligned: bool, count: int) -> None:
        self.lists = Lists([], [], [], [], [])
        self.states: list[dict[str, Any]] = []
        self.kernel: Kernel = foreach
        self.aligned, self.count = aligned, count
        self.device_type, self.dtype = first.device.type, first.dtype
        self.in_float32 = state_dtype(first) is torch.float32

    def release(self) -> None:
        """Let go of the tensors."""
        self.lists, self.states = _NOTHING, []

    def remember(self, t: int) -> None:
        """Keep what is needed to find out, at later steps, that nothing has changed in kind since step t."""
        state = [*self.lists.momenta, *self.lists.second_moments, *self.lists.maxima]
        everything_contiguous = all(map(_is_contiguous, state))
        self._strides = None if everything_contiguous else list(map(_stride, self.lists.second_moments))
        self._sizes = list(map(_numel, self.lists.params))
        self._ids_of_state = list(map(id, state))
        self._missed, self._has_maxima = t - 1 - self.count, bool(self.lists.maxima)

    def gather_again(self, params: list[Tensor], state: Mapping[Tensor, dict[str, Any]], t: int) -> bool:
        """Take the tensors of step t of a group that has not changed in kind; False if it has.

        This runs at every step of most networks, so it asks only what it must: whether the state's tensors
        are the same objects (a state may have been moved or replaced), and whether parameters and gradients
        have its size and lie in memory as it does. That a gradient has the shape of its parameter is torch's
        own rule.
        """
        grads: list[Any] = [parameter.grad for parameter in params]
        strides = self._strides
        try:
            if list(map(_numel, params)) != self._sizes:
                return False
            if strides is None:
                if not (all(map(_is_contiguous, params)) and all(map(_is_contiguous, grads))):
                    return False
            elif not list(map(_stride, grads)) == strides == list(map(_stride, params)):
                return False
            # With one group, the states are in the order of the parameters.
            alone = len(state) == len(params) and all(map(is_, state, params))
            states = list(state.values()) if alone else [state[parameter] for parameter in params]
            momenta = [moments["exp_avg"] for moments in states]
            second_moments = [moments["exp_avg_sq"] for moments in states]
            maxima = [moments["max_exp_avg_sq"] for moments in states] if self._has_maxima else []
        except (TypeError, KeyError, RuntimeError):
            # No gradient, no state any more, or a sparse gradient, which has no strides.
            return False
        if list(map(id, [*momenta, *second_moments, *maxima])) != self._ids_of_state:
            return False
        self.lists = as_lists((params, grads, momenta, second_moments, maxima))
        self.states, self.count = states, t - 1 - self._missed
        return True


_NOTHING = Lists([], [], [], [], [])


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
        bucket = buckets.get(key) or buckets.setdefault(key, Bucket(first, aligned, count))
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


def is_simple(params: Sequence[Tensor], buckets: list[Bucket]) -> bool:
    """Whether a group is one bucket of ordinary full-precision tensors, all with a gradient and in step."""
    return (
        len(buckets) == 1
        and buckets[0].aligned
        and len(buckets[0].states) == len(params)
        and set(map(type, params)) <= _ORDINARY
        and buckets[0].dtype in _FULL_PRECISION
        and "theta_correction" not in buckets[0].states[0]
    )


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


def update_bucket(bucket: Bucket, step: Step) -> None:
    """Run a bucket's kernel, in float32 where parameters are of half precision, and count the step."""
    if bucket.device_type == "cuda":
        _refuse_capture()
    kernel = bucket.kernel
    if bucket.dtype not in _HALF_PRECISION:
        kernel(bucket.lists, step)
    else:
        for chunk in _chunks(bucket.lists) if bucket.aligned else [bucket.lists]:
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


def _refuse_capture() -> None:
    if torch.cuda.is_current_stream_capturing():
        raise UnsupportedError(
            "a CUDA graph would repeat the numbers of this one step: capturing is not supported, step outside"
        )
