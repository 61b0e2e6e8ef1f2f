"""Save and load: what an optimizer alone loses on the way, and what a checkpoint would change."""

import pytest

import generic_adam as ga

torch = pytest.importorskip("torch")


def parameters():
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(0.1 * torch.randn(shape, generator=generator)) for shape in ((8, 16), (16,), (5, 3))]


@pytest.mark.parametrize("kind", ["AdamW", "NAdam", "RMSprop", "Adagrad", "SGD"])
def test_torch_comes_back_from_every_format(kind):
    v = ga.verify(getattr(torch.optim, kind)(parameters()))
    assert v.agrees, str(v)
    assert any(one.startswith("saving and loading by torch.save") for one in v.looked_at)


class Forgets(torch.optim.Adam):
    """Keeps its state, but not all of it goes into a checkpoint."""

    lost = "exp_avg_sq"

    def state_dict(self):
        state = super().state_dict()
        for own in state["state"].values():
            own[self.lost] = torch.zeros_like(own[self.lost])
        return state


@pytest.mark.parametrize(
    ("lost", "said"), [("exp_avg", "first moment"), ("exp_avg_sq", "second moment"), ("step", "step count")]
)
def test_what_a_load_loses_is_named(lost, said):
    kind = type("Forgets", (Forgets,), {"lost": lost})
    v = ga.verify(kind(parameters()))
    assert [one.category for one in v.differences] == ["resume"]
    assert said in v.differences[0].text
    assert v.differences[0].since == 21


class Unloadable(torch.optim.Adam):
    def load_state_dict(self, state_dict):
        raise NotImplementedError("not here")


def test_what_cannot_be_loaded_is_said_and_no_difference():
    v = ga.verify(Unloadable(parameters()))
    assert v.agrees
    assert any("NotImplementedError" in one for one in v.not_looked_at)


def stepped():
    optimizer = torch.optim.AdamW(parameters(), lr=1e-3)
    for one in optimizer.param_groups[0]["params"]:
        one.grad = torch.ones_like(one)
    optimizer.step()
    return optimizer


def test_a_checkpoint_of_the_same_settings_changes_nothing(tmp_path):
    torch.save({"model": {}, "optimizer": stepped().state_dict()}, tmp_path / "c.pt")
    v = ga.verify(torch.optim.AdamW(parameters(), lr=1e-3), checkpoint=tmp_path / "c.pt")
    assert v.agrees, str(v)
    assert "the checkpoint c.pt" in v.looked_at


def test_what_a_checkpoint_changes_is_told(tmp_path):
    optimizer = stepped()
    optimizer.param_groups[0]["lr"] = 1e-4
    first, second, _ = optimizer.param_groups[0]["params"]
    optimizer.state[first]["step"] += 2640
    del optimizer.state[second]
    torch.save(optimizer.state_dict(), tmp_path / "c.pt")
    v = ga.verify(torch.optim.AdamW(parameters(), lr=1e-3), checkpoint=tmp_path / "c.pt")
    assert v.agrees is False
    text = str(v)
    assert "loading sets lr of group 0 to 0.0001, where your code has 0.001" in text
    assert "between 1 and 2641 steps" in text
    assert "1 of 3 parameters have no state" in text


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None])
def test_a_file_that_is_none_is_one_line(tmp_path, content):
    path = tmp_path / "c.pt"
    if content is None:
        torch.save({"weights": torch.ones(3)}, path)
    else:
        path.write_bytes(content)
    with pytest.raises(ga.GenericAdamError) as caught:
        ga.verify(torch.optim.AdamW(parameters()), checkpoint=path)
    assert "c.pt" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("counted", "said"), [(1, None), (0, "counted 0 steps"), (16, "counted 16 steps")])
def test_a_schedulers_count_in_a_checkpoint_is_compared_with_the_optimizers(tmp_path, counted, said):
    clock = {"last_epoch": counted, "base_lrs": [1e-3]}
    torch.save({"optimizer": stepped().state_dict(), "lr_scheduler": clock}, tmp_path / "c.pt")
    v = ga.verify(torch.optim.AdamW(parameters(), lr=1e-3), checkpoint=tmp_path / "c.pt")
    assert [one.category for one in v.differences] == (["schedule"] if said else [])
    assert said is None or said in str(v)


def test_parameters_that_come_in_another_order_each_time_are_told():
    calls = []

    def make():
        calls.append(1)
        weights = parameters()
        return torch.optim.AdamW(weights if len(calls) % 2 else weights[::-1], lr=1e-3)

    v = ga.verify(make)
    assert v.agrees is False
    assert "another order" in v.differences[-1].text
