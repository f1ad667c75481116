"""Traces: their content, and the operator that a difference is attributed to."""

import inspect

import pytest
import torch

import repops
from repops.torch import Trace, _mode, _registry, _routes, diff, optim, reproducible


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(6, 10), torch.nn.Linear(10, 6)

    def forward(self, x):
        y = self.up(x)
        y = torch.nn.functional.gelu(y)
        return x + self.down(y)


LINES, FIRST = inspect.getsourcelines(Block.forward)


def line_of(text):
    return f"{__file__}:{FIRST + next(i for i, line in enumerate(LINES) if text in line)}"


def trace(flip=None, steps=1, name=True, model=None):
    with reproducible():
        torch.manual_seed(1)
        model = model or torch.nn.Sequential(Block(), Block())
        if flip is not None:
            dict(model.named_parameters())[flip].data.view(torch.int32).view(-1)[0] ^= 1
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        with Trace(model if name else None) as found:
            for _ in range(steps):
                model(torch.randn(4, 6)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
    return found


@pytest.fixture
def changed(monkeypatch):
    """Changes one bit of an operator's result, from its n-th call on."""

    def change(name, call):
        inner, count = _registry.HANDLERS[name], iter(range(1000))

        def wrong(*args, **kwargs):
            y = inner(*args, **kwargs)
            if next(count) >= call:
                y.view(torch.int32).view(-1)[3] ^= 1
            return y

        monkeypatch.setitem(_registry.HANDLERS, name, wrong)
        found = {}  # forget cached routes
        for module in (_mode, _routes):
            monkeypatch.setattr(module, "routes", found)

    return change


def test_equal_steps_have_equal_traces():
    a = trace(steps=2)
    names = [o.name for o in a]
    assert diff(a, trace(steps=2)) is None
    assert names.count("repops.linear_rows.default") == 8 and names.count("aten.gelu.default") == 4
    assert "aten.empty.memory_format" not in names and "aten.t.default" not in names


def test_an_operation_says_where_it_is():
    a = trace()
    gelus = [o for o in a if o.name == "aten.gelu.default"]
    assert [o.module for o in gelus] == ["0", "1"]
    assert {o.place for o in gelus} == {line_of("gelu(y)")} and not any(o.backward for o in gelus)
    ups = [o for o in a if o.name == "repops.linear_rows.default"]
    assert [o.module for o in ups] == ["0.up", "0.down", "1.up", "1.down"]
    assert [o.place for o in ups] == [line_of("self.up(x)"), line_of("self.down(y)")] * 2
    back = [o for o in a if o.name == "aten.gelu_backward.default"]
    assert [(o.module, o.place, o.backward) for o in back] == [
        ("1", line_of("gelu(y)"), True),
        ("0", line_of("gelu(y)"), True),
    ]
    gradients = [o for o in a if o.name == "repops.linear_grads.default"]
    assert (
        gradients[0].backward
        and gradients[0].module == "1.down"
        and gradients[0].place == line_of("self.down(y)")
    )
    assert {o.module for o in trace(name=False)} == {""}


def test_a_wrong_operator_is_found(changed):
    right = trace()
    changed("gelu", 1)
    found = diff(right, trace())
    assert (found.what, found.a.name, found.a.module) == ("results", "aten.gelu.default", "1")
    assert str(found) == (
        f"operator {found.number}: aten.gelu.default, at {line_of('gelu(y)')} in 1: "
        "output 0 differs, float32 [4, 10], of equal inputs"
    )


def test_a_wrong_operator_of_the_backward_pass_is_found(changed):
    right = trace()
    changed("gelu_backward", 1)
    found = diff(right, trace())
    assert found.what == "results"
    assert f"aten.gelu_backward.default, backward of {line_of('gelu(y)')} in 0" in str(found)


def test_a_wrong_weight_is_no_operators_fault():
    found = diff(trace(), trace("1.up.bias"))
    assert (found.what, found.a.module) == ("inputs", "1.up")
    assert "input 2 differs, float32 [10]; no operator before gave it" in str(found)


def test_other_programs_differ():
    one, two = trace(), trace(steps=2)
    assert str(diff(one, two)).startswith(f"operator {len(one)}: the first trace ends before aten.")
    assert diff(two, one).what == "operators" and len(two) > len(one)
    # Initialising a second model draws numbers, so the first batch differs.
    other = diff(one, trace(model=torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU())))
    assert (other.number, other.a.name) == (0, "aten.randn.default")
    assert "of no inputs: another seed" in str(other)


def test_traces_are_kept_in_files(tmp_path):
    a, b = trace(), trace("0.down.weight")
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    assert list(Trace.load(tmp_path / "a")) == list(a)
    assert diff(tmp_path / "a", a) is None
    assert str(diff(tmp_path / "a", tmp_path / "b")) == str(diff(a, b))
    whole = (tmp_path / "a").read_text()
    for wrong, why in [
        ("", "is no trace"),
        ("[1]", "is no trace: its first line has no version"),
        ("text", "is no trace"),
        ('{"trace": 1}\n{"name": 1}\n', "is no trace"),
        ('{"trace": 1}\n[]\n', "a line is no object"),
        ('{"trace": true}\n', "its first line has no version"),
        ('{"trace": 1.0}\n', "its first line has no version"),
        ('{"trace": 9}\n?', "wrong: version 9 of a trace; this repops reads version 1"),
        ('{"trace": 1, "more": 2}\n', "unknown member `more`"),
        (whole.replace('{"name"', '{"more": 1, "name"', 1), "unknown member `more`"),
        (whole + "x", "is no trace"),
    ]:
        (tmp_path / "wrong").write_text(wrong)
        with pytest.raises(repops.Error, match=why):
            Trace.load(tmp_path / "wrong")


def test_recomputed_operators_name_their_own_line():
    def step():
        with reproducible():
            torch.manual_seed(1)
            model = Block()
            x = torch.randn(4, 6, requires_grad=True)
            with Trace(model) as found:
                y = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
                y.sum().backward()
        return found

    gelus = [o for o in step() if o.name == "aten.gelu.default"]
    assert len(gelus) == 2 and {o.place for o in gelus} == {line_of("gelu(y)")}
    assert diff(step(), step()) is None


def test_plain_torch_has_a_trace_too():
    def step(x):
        with Trace() as found:
            torch.nn.functional.silu(x * 2)
        return found

    x = torch.ones(3)
    assert [o.name for o in step(x)] == ["aten.mul.Tensor", "aten.silu.default"]
    assert diff(step(x), step(x)) is None and diff(step(x), step(x + 1)).what == "inputs"
