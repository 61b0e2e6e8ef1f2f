"""Layouts, replaced tensors and moved state: what lies in memory never changes what is computed."""

import copy
import weakref
from collections import defaultdict
from collections.abc import Callable

import pytest
import torch
from torch._subclasses import FakeTensorMode

from generic_adam.torch import GenericAdam, OptimizerError, tensors

PATHS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}
OPTIONS = {"lr": "0.1/sqrt(t)", "theta": "1 - 1/(t+1)"}


def tensor(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def gradient(x: torch.Tensor, t: int) -> torch.Tensor:
    return torch.cos(x.detach() * t).contiguous()


def steps(optimizer: GenericAdam, x: torch.nn.Parameter, first: int, count: int) -> None:
    for t in range(first, first + count):
        x.grad = gradient(x, t)
        optimizer.step()


@pytest.fixture
def straight() -> torch.Tensor:
    """A 2x3x4x5 parameter after 20 plain steps."""
    x = torch.nn.Parameter(tensor(2, 3, 4, 5))
    steps(GenericAdam([x], **OPTIONS), x, 1, 20)
    return x.detach()


@pytest.mark.parametrize("path", PATHS)
def test_a_gradient_laid_out_differently(path: str, straight: torch.Tensor) -> None:
    # torch's own fused kernel takes such a gradient in the wrong order, without a word.
    x = torch.nn.Parameter(tensor(2, 3, 4, 5))
    optimizer = GenericAdam([x], **OPTIONS, **PATHS[path])
    for t in range(1, 21):
        g = gradient(x, t)
        x.grad = g.to(memory_format=torch.channels_last) if t % 2 else g.transpose(0, 3).contiguous().transpose(0, 3)
        optimizer.step()
    torch.testing.assert_close(x.detach(), straight, rtol=1e-12, atol=0)


@pytest.mark.parametrize("path", PATHS)
def test_a_parameter_in_channels_last(path: str, straight: torch.Tensor) -> None:
    x = torch.nn.Parameter(tensor(2, 3, 4, 5).to(memory_format=torch.channels_last))
    optimizer = GenericAdam([x], **OPTIONS, **PATHS[path])
    for t in range(1, 21):
        x.grad = gradient(x, t).to(memory_format=torch.channels_last if t % 3 else torch.contiguous_format)
        optimizer.step()
    torch.testing.assert_close(x.detach().contiguous(), straight, rtol=1e-12, atol=0)


@pytest.mark.parametrize("path", PATHS)
def test_a_parameter_converted_on_the_way(path: str, straight: torch.Tensor) -> None:
    x = torch.nn.Parameter(tensor(2, 3, 4, 5))
    optimizer = GenericAdam([x], **OPTIONS, **PATHS[path])
    steps(optimizer, x, 1, 7)
    x.data = x.data.to(memory_format=torch.channels_last)
    steps(optimizer, x, 8, 7)
    x.data = x.data.contiguous()
    steps(optimizer, x, 15, 6)
    torch.testing.assert_close(x.detach(), straight, rtol=1e-12, atol=0)


@pytest.mark.parametrize("path", PATHS)
def test_a_parameter_that_is_a_part_of_a_larger_tensor(path: str, straight: torch.Tensor) -> None:
    whole = torch.zeros(2, 3, 4, 10, dtype=torch.float64)
    x = torch.nn.Parameter(whole[..., ::2])
    x.data.copy_(tensor(2, 3, 4, 5))
    assert not x.is_contiguous()
    optimizer = GenericAdam([x], **OPTIONS, **PATHS[path])
    steps(optimizer, x, 1, 20)
    torch.testing.assert_close(x.detach(), straight, rtol=1e-12, atol=0)
    assert not whole[..., 1::2].any()


@pytest.mark.parametrize("path", PATHS)
def test_all_tensors_of_a_parameter_are_parts_of_larger_ones(path: str, straight: torch.Tensor) -> None:
    # The same strides everywhere, and gaps that a kernel which walks raw memory does not know of.
    def part(values: torch.Tensor) -> torch.Tensor:
        return torch.zeros(2, 3, 4, 10, dtype=torch.float64)[..., ::2].copy_(values)

    x = torch.nn.Parameter(part(tensor(2, 3, 4, 5)))
    optimizer = GenericAdam([x], **OPTIONS, **PATHS[path])
    for t in range(1, 21):
        x.grad = part(gradient(x, t))
        optimizer.step()
        for key in ("exp_avg", "exp_avg_sq"):
            optimizer.state[x][key] = part(optimizer.state[x][key])
    torch.testing.assert_close(x.detach().contiguous(), straight, rtol=1e-12, atol=0)


@pytest.mark.parametrize("path", PATHS)
def test_elements_that_share_their_memory(path: str) -> None:
    x, y = (torch.nn.Parameter(tensor(6)) for _ in range(2))
    for one, g in ((x, torch.ones(1, dtype=torch.float64).expand(6)), (y, torch.ones(6, dtype=torch.float64))):
        optimizer = GenericAdam([one], **OPTIONS, **PATHS[path])
        one.grad = g
        optimizer.step()
        optimizer.step()
    assert x.equal(y)
    optimizer.state[y]["exp_avg"] = torch.ones(1, dtype=torch.float64).expand(6)
    with pytest.raises(OptimizerError, match="each element with memory of its own"):
        optimizer.step()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("view", [lambda: tensor(1).expand(6), lambda: torch._neg_view(tensor(6))])
def test_a_parameter_that_cannot_be_updated_in_place_changes_nothing(path: str, view: Callable[[], torch.Tensor]):
    first, x = torch.nn.Parameter(tensor(6)), torch.nn.Parameter(view())
    optimizer = GenericAdam([first, x], **OPTIONS, **PATHS[path])
    first.grad, x.grad = tensor(6), tensor(6)
    with pytest.raises(OptimizerError, match=r"the value of parameter 1 of its group .* memory of its own"):
        optimizer.step()
    assert first.equal(tensor(6))
    assert optimizer.param_groups[0]["step"] == 0


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_numbers_of_half_precision_have_a_wider_state() -> None:
    pair = tensor(4, 2).half()
    x, y = torch.nn.Parameter(torch.view_as_complex(pair.clone())), torch.nn.Parameter(pair.clone())
    x.grad, y.grad = torch.view_as_complex(pair.clone()), pair.clone()
    for one in (x, y):
        optimizer = GenericAdam([one], lr=0.1)
        optimizer.step()
        optimizer.step()
    assert torch.view_as_real(x.detach()).equal(y.detach())


def test_a_step_on_fake_tensors_makes_fake_ones() -> None:
    # As programs that estimate the memory of a training do.
    with FakeTensorMode():
        x = torch.nn.Parameter(torch.zeros(4))
        x.grad = torch.ones(4)
        optimizer = GenericAdam([x], lr=0.1)
        optimizer.step()
        optimizer.step()
        assert optimizer.state[x]["exp_avg"].shape == (4,)


@pytest.mark.parametrize("path", PATHS)
def test_state_that_was_moved_away_and_back(path: str, straight: torch.Tensor) -> None:
    x = torch.nn.Parameter(tensor(2, 3, 4, 5))
    optimizer = GenericAdam([x], **OPTIONS, **PATHS[path])
    steps(optimizer, x, 1, 10)
    # As programs do that keep the state elsewhere between steps.
    for key in ("exp_avg", "exp_avg_sq"):
        optimizer.state[x][key] = optimizer.state[x][key].clone()
    steps(optimizer, x, 11, 5)
    optimizer.state[x] = copy.deepcopy(optimizer.state[x])
    steps(optimizer, x, 16, 5)
    torch.testing.assert_close(x.detach(), straight, rtol=1e-12, atol=0)


@pytest.mark.parametrize("clear", [lambda o, x: o.state.clear(), lambda o, x: o.state.pop(x)])
def test_state_that_was_cleared_starts_again(clear: object) -> None:
    x, y = torch.nn.Parameter(tensor(4)), torch.nn.Parameter(tensor(4))
    optimizer, fresh = GenericAdam([x], lr=0.1), GenericAdam([y], lr=0.1)
    steps(optimizer, x, 1, 5)
    clear(optimizer, x)
    with torch.no_grad():
        x.copy_(y)
    steps(optimizer, x, 1, 5)
    steps(fresh, y, 1, 5)
    assert torch.equal(x, y)


def test_state_that_is_dropped_frees_its_memory() -> None:
    x = torch.nn.Parameter(tensor(4))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 3)
    moments = [weakref.ref(optimizer.state[x][key]) for key in ("exp_avg", "exp_avg_sq")]
    optimizer.state.clear()
    assert [moment() for moment in moments] == [None, None]


def test_a_group_that_is_taken_out_frees_its_memory() -> None:
    params = [torch.nn.Parameter(tensor(4)) for _ in range(2)]
    optimizer = GenericAdam([{"params": [x]} for x in params], lr=0.1)
    for _ in range(3):
        for x in params:
            x.grad = torch.ones_like(x)
        optimizer.step()
    gone = weakref.ref(params[1])
    del optimizer.param_groups[1], optimizer.state[params.pop()], x
    assert gone() is None
    optimizer.step()


@pytest.mark.parametrize("change", [{"amsgrad": True}, {"foreach": True}, {"lr_schedule": "0.2/t"}])
def test_options_that_change_between_steps_count(change: dict[str, object]) -> None:
    # The tensors and the kernel of the last step are kept for the next; what a group says counts more.
    x, y = torch.nn.Parameter(tensor(4)), torch.nn.Parameter(tensor(4))
    changed, saved = GenericAdam([x], **OPTIONS), GenericAdam([y], **OPTIONS)
    for optimizer, parameter in ((changed, x), (saved, y)):
        steps(optimizer, parameter, 1, 3)
    changed.param_groups[0].update(change)
    state = saved.state_dict()
    state["param_groups"][0].update(change)
    fresh = GenericAdam([y], **OPTIONS)
    fresh.load_state_dict(state)
    steps(changed, x, 4, 3)
    steps(fresh, y, 4, 3)
    assert torch.equal(x, y)
    unchanged = torch.nn.Parameter(tensor(4))
    steps(GenericAdam([unchanged], **OPTIONS), unchanged, 1, 6)
    assert torch.equal(x, unchanged) == ("foreach" in change and torch.equal(y, unchanged))


def test_empty_parameters_alone() -> None:
    x = torch.nn.Parameter(torch.zeros(0, 3))
    optimizer = GenericAdam([x], lr=0.1)
    x.grad = torch.zeros(0, 3)
    optimizer.step()
    optimizer.step()
    assert optimizer.param_groups[0]["step"] == 2


def test_data_that_was_swapped_is_what_moves() -> None:
    x, y = torch.nn.Parameter(tensor(4)), torch.nn.Parameter(tensor(4))
    one, other = GenericAdam([x], lr=0.1), GenericAdam([y], lr=0.1)
    steps(one, x, 1, 3)
    steps(other, y, 1, 3)
    kept = x.data
    x.data = x.data.clone()
    steps(one, x, 4, 3)
    steps(other, y, 4, 3)
    assert torch.equal(x, y)
    assert not torch.equal(kept, x)


def test_a_replaced_parameter_is_the_one_that_moves() -> None:
    x, y = torch.nn.Parameter(tensor(4)), torch.nn.Parameter(tensor(4))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 3)
    optimizer.param_groups[0]["params"][0] = y
    before = x.detach().clone()
    steps(optimizer, y, 4, 1)
    assert torch.equal(x, before)
    assert not torch.equal(y, tensor(4))


def test_groups_of_mixed_dtypes() -> None:
    params = [torch.nn.Parameter(tensor(4).to(dtype)) for dtype in (torch.float32, torch.float64, torch.bfloat16)]
    optimizer = GenericAdam(params, lr=0.1)
    alone = [torch.nn.Parameter(x.detach().clone()) for x in params]
    optimizers = [GenericAdam([x], lr=0.1) for x in alone]
    for t in range(1, 6):
        for x, y, one in zip(params, alone, optimizers, strict=True):
            x.grad = gradient(x, t)
            y.grad = gradient(y, t)
            one.step()
        optimizer.step()
    assert all(torch.equal(x, y) for x, y in zip(params, alone, strict=True))


def test_parameters_of_several_kinds_are_kept_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # Half-precision weights among others, and one that came late.
    kinds = (torch.float32, torch.bfloat16, torch.float32, torch.float32)
    params = [torch.nn.Parameter(tensor(4).to(dtype)) for dtype in kinds]
    optimizer = GenericAdam(params, lr=0.1)
    for t in range(1, 4):
        for x in params[: t + 1]:
            x.grad = gradient(x, t)
        optimizer.step()
    for x in params:
        x.grad = gradient(x, 4)
    optimizer.step()
    monkeypatch.setattr(tensors, "gather", None)
    before = [x.detach().clone() for x in params]
    optimizer.step()
    assert not any(torch.equal(x, y) for x, y in zip(params, before, strict=True))
    assert [optimizer.state[x]["step"] for x in params] == [5, 5, 4, 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_no_large_temporary_on_the_fused_path(dtype: torch.dtype) -> None:
    x = torch.nn.Parameter(torch.randn(2_000_000).to(dtype))
    x.grad = torch.randn(2_000_000).to(dtype)
    optimizer = GenericAdam([x], lr="0.1/sqrt(t)", theta="1 - 1/(t+1)")
    optimizer.step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        optimizer.step()
        optimizer.step()
    allocations = [event.self_cpu_memory_usage for event in profile.events() if event.name.startswith("aten::")]
    assert max(allocations) <= 2**20


def spoil(tensor: torch.Tensor, size: int) -> None:
    tensor.data = torch.zeros(size, dtype=tensor.dtype)


@pytest.mark.parametrize("seen", [False, True], ids=["private", "seen before"])
@pytest.mark.parametrize("spoilt", ["parameter", "gradient", "exp_avg", "exp_avg_sq"])
@pytest.mark.parametrize("size", [3, 10_000])
def test_data_of_another_size_is_noticed_before_the_kernel(spoilt: str, size: int, seen: bool) -> None:
    x = torch.nn.Parameter(tensor(4))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 3)
    if seen:
        assert optimizer.state[x]["step"] == 3
        steps(optimizer, x, 4, 1)
    x.grad = tensor(4)
    public = {"parameter": x, "gradient": x.grad}
    spoil(public[spoilt] if spoilt in public else optimizer.state[x][spoilt], size)
    with pytest.raises(OptimizerError, match=r"has the shape \(\d+,\); expected \(\d+,\), as its parameter"):
        optimizer.step()
    assert optimizer.param_groups[0]["step"] == (4 if seen else 3)


def test_data_of_a_state_that_was_swapped_is_what_moves() -> None:
    x, y = torch.nn.Parameter(tensor(4)), torch.nn.Parameter(tensor(4))
    one, other = GenericAdam([x], lr=0.1), GenericAdam([y], lr=0.1)
    steps(one, x, 1, 3)
    steps(other, y, 1, 3)
    for moment in ("exp_avg", "exp_avg_sq"):
        one.state[x][moment].data = one.state[x][moment].data.clone()
    steps(one, x, 4, 3)
    steps(other, y, 4, 3)
    assert torch.equal(x, y)
    assert one.state[x]["step"] == other.state[y]["step"] == 6


def test_who_keeps_the_state_sees_every_step() -> None:
    x = torch.nn.Parameter(tensor(4))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 2)
    kept = optimizer.state[x]
    for t in range(3, 6):
        steps(optimizer, x, t, 1)
        assert kept["step"] == t
    kept["exp_avg"] = kept["exp_avg"].clone()
    before = kept["exp_avg"].clone()
    steps(optimizer, x, 6, 1)
    assert not torch.equal(kept["exp_avg"], before)


def test_a_state_that_was_handed_over_belongs_to_who_did_it() -> None:
    x = torch.nn.Parameter(tensor(4))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 2)
    mine: defaultdict[torch.Tensor, dict[str, object]] = defaultdict(dict)
    optimizer.state = mine
    steps(optimizer, x, 3, 2)
    assert mine[x]["step"] == 2
    mine.clear()
    steps(optimizer, x, 5, 1)
    assert mine[x]["step"] == 1


def test_a_callable_may_look_at_the_state() -> None:
    x, y = torch.nn.Parameter(tensor(4)), torch.nn.Parameter(tensor(4))

    def rate(t: float) -> float:
        return 0.1 / (1 + len(optimizer.state)) if t > 1 else 0.1

    optimizer = GenericAdam([{"params": [x]}, {"params": [y], "lr": 0.1}], lr=0.1)
    optimizer.add_param_group({"params": [torch.nn.Parameter(tensor(2))], "lr": rate})
    for t in range(1, 6):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = gradient(parameter, t)
        optimizer.param_groups[2]["note"] = t
        optimizer.step()
    assert torch.equal(x, y)
    assert {moments["step"].item() for moments in optimizer.state.values()} == {5}


def test_parameters_of_one_element_are_told_apart() -> None:
    # Equal numbers make equal tensors, which are not the same parameter.
    x, y = torch.nn.Parameter(tensor(1)), torch.nn.Parameter(tensor(1))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 3)
    with torch.no_grad():
        y.copy_(x)
    optimizer.param_groups[0]["params"][0] = y
    y.grad = torch.ones_like(y)
    optimizer.step()
    assert optimizer.state[y]["step"] == 1
    assert optimizer.state[x]["step"] == 3


class Wrapper:
    """As Fabric and Lightning wrap an optimizer: it poses as the class, and asks the optimizer for the rest."""

    def __init__(self, optimizer: GenericAdam) -> None:
        self._optimizer = optimizer
        self.__class__ = type("Wrapped", (Wrapper, type(optimizer)), {})

    def __getattr__(self, name: str) -> object:
        return getattr(self._optimizer, name)


def test_a_wrapper_reaches_the_state() -> None:
    x = torch.nn.Parameter(tensor(4))
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, x, 1, 3)
    wrapper = Wrapper(optimizer)
    assert isinstance(wrapper, GenericAdam)
    assert wrapper.state[x]["step"] == 3
    steps(optimizer, x, 4, 1)
    assert wrapper.state[x]["step"] == 4
