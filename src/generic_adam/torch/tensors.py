# pyright: reportPrivateImportUsage=false
"""Brings parameters, gradients and state into lists of plain tensors that a kernel can run over.

A list of ordinary contiguous float32 or float64 tensors, which is what most networks are, is taken as it is.
The rest is brought into that form: complex numbers are pairs of real ones, a DTensor is its local shard (the
update is coordinate-wise, so shards need not talk), half-precision parameters are updated in float32.

torch's fused kernel walks raw memory and looks at no shape and no stride. So every tensor is compared with
what its parameter asks for before a kernel sees it, and tensors that are laid out differently from each other
go to a kernel that does look.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch import compat, rules
from generic_adam.torch.kernels import Kernel, Lists, Numbers, flat, fused
from generic_adam.torch.rules import Rule, UnsupportedError

# Half-precision tensors are widened this many elements at a time: half a megabyte, which stays in the cache.
_WIDENED_AT_ONCE = 2**17
_NOTHING: Lists = ([], [], [], [], [])


class Moment(NamedTuple):
    """A tensor of a parameter's state.

    Attributes:
        shape: its shape.
        dtype: its dtype.
        start: what its elements are before the first step.
        late: whether a saved state may lack it: amsgrad can be switched on at any time.
    """

    shape: torch.Size
    dtype: torch.dtype
    start: float = 0.0
    late: bool = False

    def make(self, parameter: Tensor) -> Tensor:
        """Make a new moment for a parameter: on its device, sharded and laid out as the parameter is."""
        if self.shape != parameter.shape:
            return parameter.new_full(self.shape, self.start, dtype=self.dtype)
        made = torch.full_like(parameter, self.start, dtype=self.dtype, memory_format=torch.preserve_format)
        if made.is_complex():
            # Real and imaginary part are two coordinates, each with its own number.
            torch.view_as_real(made).fill_(self.start)
        return made

    def fitted(self, name: str, found: Any, parameter: Tensor) -> Tensor:
        """Return the tensor in this dtype, on the parameter's device; raise where a step could not use it."""
        if not isinstance(found, Tensor):
            raise OptimizerError(f"{name} is {rules.shown(found)}; expected a tensor")
        plain = found.layout is torch.strided and not (found.is_quantized or found.is_nested)
        if plain and found.shape != self.shape:
            raise OptimizerError(
                f"{name} has the shape {tuple(found.shape)}; expected {tuple(self.shape)}, as its parameter"
            )
        wrong = found.is_complex() != self.dtype.is_complex or found.dtype is torch.bool
        apart = found.is_meta != parameter.is_meta or is_distributed(found) != is_distributed(parameter)
        if (
            not plain
            or wrong
            or apart
            or getattr(found, "device_mesh", None) != getattr(parameter, "device_mesh", None)
        ):
            raise OptimizerError(
                f"{name} is {found.dtype}, {found.layout}, on {found.device}; expected a dense tensor of {self.dtype}, "
                "where and as its parameter is"
            )
        fitted = found.resolve_conj().resolve_neg()
        if not (is_distributed(found) or found.is_meta):
            reach, shares = _reach(found)
            if (reach + 1) * found.itemsize > found.untyped_storage().nbytes() and found.numel():
                raise OptimizerError(f"{name} has less memory than its shape {tuple(found.shape)} asks for")
            if shares:  # which cannot be updated one by one
                fitted = fitted.clone(memory_format=torch.contiguous_format)
        return fitted.to(dtype=self.dtype, device=parameter.device)


def _reach(tensor: Tensor) -> tuple[int, bool]:
    """Return the place in storage of a tensor's last element, and whether some elements may share memory."""
    reach, shares = 0, False
    for stride, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length > 1:
            shares = shares or stride <= reach
            reach += (length - 1) * stride
    return int(tensor.storage_offset()) + reach, shares


State = Mapping[str, Moment | Rule]
"""The parts of one parameter's state: tensors, in the order of `Lists`, and numbers."""


class Bucket:
    """Tensors of one dtype and device, for one step; of a group that stays as it is, taken again at the next.

    As long as nobody has asked for the optimizer's state, nobody can have changed it: its tensors are held from step to
    step, and its numbers are kept here. Who asks finds it up to date; from then on each step brings it up to date, and
    looks before whether it is still what is held.

    Attributes:
        lists: the tensors.
        numbers: of the state of each parameter, which agree; a step counts them on.
        aligned: whether the tensors of each parameter lie in memory in the same order, without gaps.
        dtype: of the parameters.
        device_type: "cpu", "cuda", ...
        in_float32: whether that is what their state is kept in.
        states: the state of each parameter.
        places: where in its group each parameter is.
        moments: the names of the state's tensors.
        kernel: what updates them.
        is_fused: whether that is torch's fused kernel.
    """

    def __init__(self, first: Tensor, aligned: bool, numbers: dict[str, Any], moments: Sequence[str]) -> None:
        self.lists: Lists = ([], [], [], [], [])
        self.states: list[dict[str, Any]] = []
        self.places: list[int] = []
        self.aligned, self.numbers, self.moments = aligned, numbers, moments
        self.device_type, self.dtype = first.device.type, first.dtype
        self.in_float32 = state_dtype(first) is torch.float32
        self._columns: Sequence[_Column] = ()
        self._is_held = self._is_behind = False

    def hold(self, params: Sequence[Tensor]) -> bool:
        """Hold the tensors for later steps; False where they are not its group's parameters and state as they are."""
        x, g, *state = self.lists
        if not self.aligned or not all(params[place] is own for place, own in zip(self.places, x, strict=True)):
            return False
        self._is_held, self._count, self._held = True, len(params), (x, *state)
        self._moments = [tensor for part in state for tensor in part]
        # Lists of tensors are equal where these are the same objects; others of one element are equal by value.
        self._are_large = all(tensor.numel() != 1 for tensor in x)
        self._same_params, self._same_moments = compat.same_kind_as(x + g), compat.same_kind_as(self._moments)
        return True

    def take(self, params: list[Tensor], state: Mapping[Tensor, dict[str, Any]] | None) -> bool:
        """Take the tensors of the next step of a group that has not changed in kind; False if it has.

        It asks only what it must: whether the parameters are the same objects, whether they and their gradients have
        their type and size and lie in memory as they did, and the same of a state that others may have changed.
        """
        if len(params) != self._count:
            return False
        x, m, v, maxima = self._held
        if len(x) != len(params):
            params = [params[place] for place in self.places]
        grads: list[Any] = [parameter.grad for parameter in params]
        try:
            if not self._same_params(*params, *grads):
                return False
            if not (params == x if self._are_large else all(map(is_, params, x))):
                return False
            if state is not None and not self._is_unchanged(params, state):
                return False
        except (TypeError, KeyError, RuntimeError):  # other parameters, or no gradient or state any more
            return False
        self.lists = (x, grads, m, v, maxima)
        return True

    def _is_unchanged(self, params: list[Tensor], state: Mapping[Tensor, dict[str, Any]]) -> bool:
        """Return whether the state has the very tensors that are held, and nobody has written to its numbers."""
        # With one group, the states are in the order of the parameters.
        alone = len(state) == len(params) and all(map(is_, state, params))
        states = list(state.values()) if alone else [state[parameter] for parameter in params]
        found = [moments[name] for name in self.moments for moments in states]
        return (
            all(map(is_, states, self.states))
            and all(map(is_, found, self._moments))
            and all(column.is_unchanged(states) for column in self._columns)
            and self._same_moments(*found)
        )

    def run_with(self, kernel: Kernel) -> None:
        """Take a kernel, which is run in float32 where the parameters are of half precision."""
        self.kernel, self.is_fused = kernel, kernel is fused
        if self.in_float32 and self.dtype is not torch.float32:
            self.kernel = _widened(kernel, in_pieces=self.aligned)
        if self.device_type == "cuda":
            self.kernel = _outside_graphs(self.kernel)

    def finish(self, is_seen: bool) -> None:
        """End a step: gradients are let go of, and a state that others may look at has its numbers."""
        self.lists, self._is_behind = _NOTHING, True
        if is_seen or not self._is_held:
            self.write()

    def write(self) -> None:
        """Bring the numbers of the states up to date: where the bucket is kept, all of one name at once."""
        if not self._is_behind:
            return
        self._is_behind = False
        if not self._is_held:
            for key, number in self.numbers.items():
                for moments in self.states:
                    _put(moments, key, number)
            return
        self._columns = self._columns or [_Column(key, self.states) for key in self.numbers]
        for column in self._columns:
            column.fill(self.numbers[column.key])


class _Column:
    """A number of several states: one tensor, of which each state has an element as a tensor of its own.

    Attributes:
        key: its name.
    """

    __slots__ = ("_all", "_cells", "_version", "key")

    def __init__(self, key: str, states: Sequence[dict[str, Any]]) -> None:
        self.key, self._all = key, torch.zeros(len(states), dtype=rules.cell_dtype(key), device="cpu")
        self._cells = [self._all[place] for place in range(len(states))]
        self._version = self._all._version
        for moments, cell in zip(states, self._cells, strict=True):
            moments[key] = cell

    def fill(self, number: float) -> None:
        """Give the number to every state."""
        self._all.fill_(number)
        self._version = self._all._version  # which counts whoever writes to it, or to an element

    def is_unchanged(self, states: Sequence[dict[str, Any]]) -> bool:
        """Return whether the states have it as the last step left it."""
        key = self.key
        return self._version == self._all._version and all(map(is_, [moments[key] for moments in states], self._cells))


def _put(moments: dict[str, Any], key: str, number: float) -> None:
    """Set a number of a state, in place where it has been there."""
    there = moments.get(key)
    if isinstance(there, Tensor) and there.dtype is rules.cell_dtype(key):
        there.fill_(number)
    else:
        moments[key] = rules.cell(key, number)


def state_dtype(parameter: Tensor) -> torch.dtype:
    """Return the dtype of a parameter's state: its own, but float32 for half precision.

    In bfloat16, 0.999 v rounds to v, and v would never forget; in float16, v_0 = 1e-8 is 0.
    """
    if parameter.is_complex():
        return torch.promote_types(parameter.dtype, torch.complex64)
    return torch.float32 if parameter.is_floating_point() and parameter.element_size() < 4 else parameter.dtype


def gather(
    params: Sequence[Tensor], state: Mapping[Tensor, dict[str, Any]], state_of: Callable[[Tensor], State]
) -> list[Bucket]:
    """Gather the tensors of one step, each as its parameter asks for, in buckets, the longest trained last.

    What a state lacks is made, and its numbers begin at 0.
    """
    buckets: dict[tuple[Any, ...], Bucket] = {}
    for index, parameter in enumerate(params):
        gradient = parameter.grad
        if gradient is None:
            continue
        if gradient.layout is not torch.strided:
            raise UnsupportedError(
                f"the gradient of parameter {index} of its group, of shape {tuple(parameter.shape)}, is "
                f"sparse ({gradient.layout}): not supported; use dense ones (sparse=False)"
            )
        moments, row, numbers = state[parameter], [], {}
        declared, given = state_of(parameter), {"value": parameter, "gradient": gradient}
        asked = dict.fromkeys(given, Moment(parameter.shape, parameter.dtype))
        for key, one in {**asked, **declared}.items():
            name = f"the {key} of parameter {index} of its group"
            if isinstance(one, Rule):
                found = one.check(name, rules.number(moments.get(key, 0)))
                numbers[key] = int(found) if one is rules.WHOLE else found
                continue
            if key not in given and key not in moments:
                moments[key] = one.make(parameter)
            tensor = given[key] if key in given else moments[key]
            fitted = one.fitted(name, tensor, parameter)
            # A gradient is read only: one whose elements share their memory is as good as a copy of it.
            if fitted is not tensor and not (key == "gradient" and tensor.dtype is one.dtype):
                raise OptimizerError(
                    f"{name} is {tensor.dtype} on {tensor.device} with the strides {tensor.stride()}; expected "
                    f"{one.dtype} on {parameter.device}, each element with memory of its own"
                )
            row.append(fitted)
        if is_distributed(parameter):
            row = [_local(tensor, like=parameter) for tensor in row]
        row = [torch.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in row]
        aligned = _are_aligned(row)
        kind = (row[0].device, row[0].dtype, aligned, *numbers.values())
        names = [key for key in declared if key not in numbers]
        bucket = buckets.get(kind) or buckets.setdefault(kind, Bucket(row[0], aligned, numbers, names))
        bucket.states.append(moments)
        bucket.places.append(index)
        # The running maxima are the last list, and its row is one shorter without AMSGrad.
        for part, tensor in zip(bucket.lists, row, strict=False):
            part.append(tensor)
    return sorted(buckets.values(), key=lambda bucket: bucket.numbers.get("step", 0))


def is_distributed(tensor: Tensor) -> bool:
    """Return whether a tensor is a DTensor."""
    # Importing DTensor takes a second, and where there is one, something has imported it.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def _local(tensor: Any, like: Any) -> Tensor:
    """Return this process's shard of a DTensor, cut as another is."""
    if tensor.placements != like.placements:
        tensor = tensor.redistribute(placements=like.placements)
    return tensor.to_local()


def _are_aligned(row: list[Tensor]) -> bool:
    # A class with a dispatch of its own, such as FakeTensor, may have no memory at all.
    plain = {getattr(kind, "__torch_dispatch__", None) for kind in (Tensor, *map(type, row))}
    if len(plain) > 1 or any(tensor.shape != row[0].shape for tensor in row):
        return False
    if all(tensor.is_contiguous() for tensor in row):
        return True
    reach, shares = _reach(row[0])
    dense = not shares and reach + 1 == row[0].storage_offset() + row[0].numel()
    return dense and all(tensor.stride() == row[0].stride() for tensor in row)


def _chunks(lists: Lists) -> Iterator[Lists]:
    """Cut lists of aligned tensors into flat pieces, a bounded number of elements at a time."""
    chunk, room = ([], [], [], [], []), _WIDENED_AT_ONCE
    for row in zip(*(part for part in lists if part), strict=True):
        start, size = 0, row[0].numel()
        while start < size:
            stop = min(size, start + room)
            for part, tensor in zip(chunk, row, strict=False):
                part.append(flat(tensor)[start:stop])
            room -= stop - start
            start = stop
            if room == 0:
                yield chunk
                chunk, room = ([], [], [], [], []), _WIDENED_AT_ONCE
    if chunk[0]:
        yield chunk


def _widened(kernel: Kernel, in_pieces: bool) -> Kernel:
    """Wrap a kernel so that it takes parameters of half precision, and rounds once."""

    def widened(lists: Lists, numbers: Numbers) -> None:
        for params, grads, m, v, maxima in _chunks(lists) if in_pieces else [lists]:
            wide = [parameter.float() for parameter in params]
            kernel((wide, [gradient.float() for gradient in grads], m, v, maxima), numbers)
            torch._foreach_copy_(params, wide)

    return widened


def _outside_graphs(kernel: Kernel) -> Kernel:
    def refusing(lists: Lists, numbers: Numbers) -> None:
        if torch.cuda.is_current_stream_capturing():
            raise UnsupportedError(
                "a CUDA graph would repeat the numbers of this one step: capturing is not supported, step outside"
            )
        kernel(lists, numbers)

    return refusing
