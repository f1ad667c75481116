"""The block on a device other than the CPU: "simt", whose tensors the library's CUDA kernels
compute in the simulator of their threads, in a random order for each launch. The same code runs on
CUDA. (See also test_devices_places.py and test_devices_layers.py.)"""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import optimizer

import repops
import repops.torch
from repops.torch import LeftoverError, Trace, _devices, _editions, diff, reproducible
from repops.torch._call import ONE, Leftover, run

HERE = Path(__file__).parent
LIST = HERE / "device_operators.txt"
# Views, and operators that allocate or resize memory.
PLAIN = set("empty empty_strided arange resize_ set_".split())


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    size = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 60, "n_positions": 16}
    own, ids = GPT2LMHeadModel(GPT2Config(**size)), torch.arange(16).reshape(2, 8)
    return own, [ids], lambda ids: own(ids, labels=ids).loss


SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "vocab_size": 60}


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    own, ids = LlamaForCausalLM(LlamaConfig(**SMALL, **heads)), torch.arange(16).reshape(2, 8)
    return own, [ids], lambda ids: own(ids, labels=ids).loss


def bert():
    from transformers import BertConfig, BertForMaskedLM

    own, ids = BertForMaskedLM(BertConfig(**SMALL, num_attention_heads=4)), torch.arange(16)
    return own, [ids.reshape(2, 8)], lambda ids: own(ids, labels=ids).loss


def resnet():
    from torchvision.models.resnet import Bottleneck, ResNet

    own = ResNet(Bottleneck, [1, 1, 1, 1], num_classes=5, width_per_group=4)
    given = [torch.randn(2, 3, 32, 32), torch.tensor([1, 3])]
    return own, given, lambda x, y: F.cross_entropy(own(x), y)


MODELS = {f.__name__: f for f in (gpt2, llama, bert, resnet)}


def trained(make, place, between=lambda: None, steps=2):
    """Losses and the model's hash; `between` is called before each step."""
    with reproducible():
        torch.manual_seed(1)
        own, given, loss_of = make()
        own.to(place).train()
        getattr(own, "tie_weights", int)()  # moving to a private device replaces parameters
        given, losses = [t.to(place) for t in given], []
        optimizer = torch.optim.AdamW(own.parameters(), 1e-2)
        for _ in range(steps):
            between()
            loss = loss_of(*given)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        between()
        return [v.item() for v in losses], repops.torch.hash(own)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_bits_of_the_cpu(device, name):
    assert trained(MODELS[name], device) == trained(MODELS[name], "cpu")


def test_a_step_of_gpt2_waits_for_nothing_and_torch_computes_nothing(device, simulated):
    seen = []

    def between():
        seen.append((dict(simulated.waits), set(simulated.theirs)))
        simulated.waits.clear()
        simulated.theirs.clear()

    trained(gpt2, device, between)
    for waits, theirs in seen[1:]:
        assert not waits
        floats = {n.removesuffix("_") for n in theirs} - _editions.MOVED - PLAIN - {"copy"}
        assert floats <= {"add", "clamp", "bitwise_or"}  # on integers: positions and ids


def _own_adamw(params):
    return repops.torch.optim.AdamW(params, 1e-2, max_norm=0.5, decay_exempt="vectors")


OPTIMIZERS = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, 1e-2, fused=True),
    "fused Adam": lambda p: torch.optim.Adam(p, 1e-2, fused=True, weight_decay=0.1),
    "fused AdamW of the largest": lambda p: torch.optim.AdamW(p, fused=True, amsgrad=True),
    "fused SGD": lambda p: torch.optim.SGD(p, 1e-2, fused=True, momentum=0.9),
    "AdamW of lists": lambda p: torch.optim.AdamW(p, 1e-2, foreach=True),
    "SGD": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True, weight_decay=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-2),
    "NAdam": lambda p: torch.optim.NAdam(p, 1e-2),
    "RAdam": lambda p: torch.optim.RAdam(p, 1e-2),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
    "ASGD": lambda p: torch.optim.ASGD(p, 1e-2),
    "a rate on the device": lambda p: torch.optim.AdamW(
        p := list(p), torch.tensor(1e-2, device=p[0].device), fused=True
    ),
    "the library's AdamW": _own_adamw,
    "the library's SGD": lambda p: repops.torch.optim.SGD(p, 1e-2, momentum=0.9),
}


def optimized(make, place):
    with reproducible():
        torch.manual_seed(2)
        own, x = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)), torch.randn(4, 6)
        own.scale = nn.Parameter(torch.tensor(1.5))
        own, x = own.to(place), x.to(place)
        optimizer = make(own.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            (own(x) * own.scale).square().mean().backward()
            repops.torch.optim.clip_grad_norm_(own.parameters(), 0.7)
            optimizer.step()
        return repops.torch.hash(own)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_has_the_bits_of_the_cpu(device, name):
    assert optimized(OPTIMIZERS[name], device) == optimized(OPTIMIZERS[name], "cpu")


CAPTURABLE = "AdamW Adam NAdam RAdam Adamax ASGD RMSprop Adadelta Rprop".split()


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("kind", CAPTURABLE)
def test_a_capturable_optimizer_has_the_bits_of_the_cpu(device, kind, lists, monkeypatch):
    """PyTorch lets none work on the CPU, where its operators are compared here."""
    name = "_get_capturable_supported_devices"
    for module in [m for key, m in sys.modules.items() if key.startswith("torch.optim.")]:
        if hasattr(module, name):
            monkeypatch.setattr(module, name, lambda **_: [device.type, "cpu"])
    make = lambda p: getattr(torch.optim, kind)(p, 1e-2, capturable=True, foreach=lists)  # noqa: E731
    assert optimized(make, device) == optimized(make, "cpu")


def test_an_optimizer_of_the_library_needs_a_block_on_a_device(device):
    p = nn.Parameter(torch.ones(3).to(device))
    p.grad = torch.ones_like(p)
    with pytest.raises(repops.Error, match="or a block"):
        repops.torch.optim.SGD([p], 0.1).step()


MADE = {
    "rand": lambda y: torch.rand(5, out=y),
    "randperm": lambda y: torch.randperm(9, out=y),
    "randint": lambda y: torch.randint(7, (5,), out=y),
    "normal": lambda y: torch.normal(1.0, 2.0, (3,), out=y),
    "arange": lambda y: torch.arange(0.5, 9, 0.3, out=y),
    "linspace": lambda y: torch.linspace(0, 1, 7, out=y),
    "logspace": lambda y: torch.logspace(0, 1, 7, out=y),
}


@pytest.mark.parametrize("name", MADE)
def test_numbers_are_made_in_tensors_of_a_device(device, name):
    found = []
    for place in (device, "cpu"):
        with reproducible():
            torch.manual_seed(3)
            out = torch.empty(0, device=place)
            assert MADE[name](out) is out and out.device.type == torch.device(place).type
            found.append(out.tolist())
    assert found[0] == found[1]


def test_parameters_in_two_memories_are_refused_by_their_number(device):
    params = [nn.Parameter(torch.ones(2).to(p)) for p in ("cpu", "cpu", device)]
    for p in params[1:]:
        p.grad = torch.ones_like(p)
    for step in (
        lambda: repops.torch.optim.AdamW(params, max_norm=1.0).step(),
        lambda: repops.torch.optim.SGD([{"params": [p]} for p in params]).step(),
        lambda: repops.torch.optim.clip_grad_norm_(params, 0.5),
    ):
        with reproducible(), pytest.raises(repops.Error, match="parameter 1 .* is on .*:0, and"):
            step()
    assert all(p.tolist() == [1, 1] for p in params)
    assert all(p.grad.tolist() == [1, 1] for p in params[1:])


def test_traces_of_a_device_and_the_cpu_are_compared(device):
    def traced(place):
        with reproducible():
            torch.manual_seed(1)
            own, (ids,), loss_of = llama()
            own.to(place)
            own.tie_weights()
            ids = ids.to(place)
            with Trace(own) as found:
                loss_of(ids).backward()
        return found

    assert diff(traced(device), traced("cpu")) is None


def test_random_numbers_are_those_of_the_cpu(device):
    def drawn(place):
        torch.manual_seed(3)
        x = torch.randn(5, 7, device=place)
        return [
            x,
            torch.rand(9, device=place),
            torch.empty(4, 4, device=place).uniform_(-1, 1),
            F.dropout(x, 0.3),
            torch.randint(0, 99, (8,), device=place),
            torch.randperm(10, device=place),
            torch.bernoulli(torch.full((6,), 0.5, device=place)),
        ]

    with reproducible():
        pairs = zip(drawn(device), drawn("cpu"))
        assert all(torch.equal(a.cpu(), b) for a, b in pairs)


def test_draws_in_a_fork_come_again(device):
    with reproducible():
        with torch.random.fork_rng():
            a = torch.rand(9, device=device)
        b, c = torch.rand(9, device=device), torch.rand(9, device=device)
        assert torch.equal(a, b) and not torch.equal(b, c)


NUMBERS = [0.0, -0.0, 1.5, -3.0, 7e-41, 3e38, float("inf"), -float("inf"), float("nan")]


def _functions_of_float64(x):
    functions = "asin acosh atan asinh atanh exp exp2 expm1 log log1p log2 sigmoid sinh tanh"
    return torch.cat([x**0.3, *[getattr(torch, name)(x) for name in functions.split()]])


ELEMENTS = {
    "a number's quotient": lambda x: x / 3,
    "sums": lambda x: x + 0.1 - x * 3.3e38 + 2 * x.reciprocal(),
    "powers": lambda x: x**2 + x**3 + x.abs().sqrt() + x.rsqrt(),
    "what is left of a number": lambda x: 1 - x + (x - 1) * torch.rsub(x, 2.5, alpha=0.3),
    "what bytes leave of numbers": lambda x: torch.cat(
        [1.5 - x.clamp(0, 9).to(torch.uint8), torch.rsub(x.clamp(0, 9).to(torch.uint8), 2.5)]
    ),
    "what an integer leaves of a number": lambda x: 1.5 - torch.tensor([-(2**63)]).to(x.device),
    "float64": lambda x: (x.double() / 3 + 0.1) * (1 / x.double()) - x.double().sqrt() + x,
    "whole quotients": lambda x: x // 0.3 + x.div(0.7, rounding_mode="trunc"),
    "remainders": lambda x: x.clamp(-9, 9) % 0.3 + x.clamp(-9, 9).fmod(0.7),
    "functions of float64": lambda x: x.acos() + x.asinh() + torch.lgamma(x) + x.erfinv(),
    "more of float64": lambda x: _functions_of_float64(x.double().nan_to_num(0.3).clamp(-9, 9)),
    "powers of powers": lambda x: x.clamp(0, 9) ** 0.3 + 1.7 ** x.clamp(-9, 9) + x.atan2(x - 1),
    "bounds": lambda x: x.clamp(-1, 2) + x.clamp_min(0.5) + torch.maximum(x, -x),
    "choices": lambda x: torch.where(x > 0, x, -x) + x.sign() + x.relu() + x.floor(),
    "integers": lambda x: x.to(torch.int32) + x.to(torch.int64) // 3 + x.bool(),
    "integers' quotient": lambda x: x.to(torch.int32) / 7,
    "in place": lambda x: x.clone().mul_(3).add_(x, alpha=0.5).div_(7).sub_(1),
    "rows": lambda x: x.expand(5, -1).softmax(-1) + x.log_softmax(0) + x.cumsum(0)[:1] * 0,
    "sums of rows": lambda x: x.expand(5, -1).mean(0) + x.sum() + x.expand(3, -1).amax(0),
    "broadcast": lambda x: x[:, None] * x[None] - x[None],
    "a number in the CPU's memory": lambda x: x * torch.tensor(1.1, dtype=torch.float64),
    "angles beside a number": lambda x: (
        x.atan2(torch.tensor(1.5, dtype=torch.float64)) + torch.atan2(torch.tensor(2), x)
    ),
    "powers beside a number": lambda x: (
        x.clamp(0, 9) ** torch.tensor(0.3, dtype=torch.float64)
        + torch.tensor(1.7) ** x.clamp(-9, 9)
        + torch.float_power(x.clamp(0, 9), torch.tensor(3)).float()
    ),
    "rests beside a number": lambda x: (
        x.clamp(-9, 9) % torch.tensor(0.3)
        + x.clamp(-9, 9).fmod(torch.tensor(2))
        + x // torch.tensor(0.7)
        + torch.div(torch.tensor(9.5), x, rounding_mode="trunc")
    ),
    "logarithms beside a number": lambda x: (
        torch.xlogy(x, torch.tensor(1.5))
        + torch.special.xlog1py(x, torch.tensor(2))
        + torch.ldexp(x, torch.tensor(3))
    ),
    "rounding": lambda x: x.round() + torch.round(x * 0.5),
    "a part": lambda x: x[::2] * x[::2],
    "a large integer": lambda x: x * (2**60 + 2**36 + 1),
    "a large integer of the CPU": lambda x: x * torch.tensor(2**60 + 2**36 + 1),
    "columns": lambda x: F.fold(x.reshape(1, 4, 5), (2, 6), 2),
    "padded columns": lambda x: F.fold(x.reshape(1, 4, 5), (4, 1), (2, 1), 1, (1, 0)),
    "equal": lambda x: torch.tensor(torch.allclose(x.nan_to_num(), x.nan_to_num())).float(),
    "pinned": lambda x: x + float(x.is_pinned()),
}


@pytest.mark.parametrize("what", ELEMENTS)
def test_elements_have_the_bits_of_the_cpu(device, what):
    x = torch.tensor(NUMBERS + [0.1 * i for i in range(11)])
    if what == "rows":
        x = x[9:]
    with reproducible():
        a, b = ELEMENTS[what](x.to(device)).cpu(), ELEMENTS[what](x)
    assert a.dtype is b.dtype and a.shape == b.shape
    assert a.numpy().tobytes() == b.numpy().tobytes()


def _way(q, allowed, **how):
    with torch.nn.attention.sdpa_kernel(allowed):
        return F.scaled_dot_product_attention(q, q, q, **how)


def _bias(q):
    return (q @ q.transpose(-1, -2)) * 0.5


def _ctc(x):
    x, lengths = x.reshape(6, 2, 12).log_softmax(-1), torch.tensor([3, 2])
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]]).to(x.device)
    return F.ctc_loss(x, targets, torch.tensor([6, 5]), lengths)


BOTH = [torch.nn.attention.SDPBackend.MATH, torch.nn.attention.SDPBackend.FLASH_ATTENTION]
# Functions of [2, 3, 4, 6]. The CPU comes second, so that it meets caches filled for the device.
GRADIENTS = {
    "RMS norm": lambda x: F.rms_norm(x, (6,), x[0, 0, 0] + 1, 1e-5),
    "a layer of RMS norm": lambda x: nn.RMSNorm(6).to(x.device)(x),
    "adaptive means": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "means": lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True),
    "bilinear": lambda x: F.interpolate(x, (7, 5), mode="bilinear"),
    "reflection": lambda x: F.pad(x, (1, 2, 3, 1), mode="reflect"),
    "replication": lambda x: F.pad(x, (1, 2, 3, 1), mode="replicate"),
    "replication, cut": lambda x: F.pad(x, (-1, 2, 3, -1), mode="replicate"),
    "labels": _ctc,
    "a spectrum": lambda x: torch.view_as_real(torch.fft.rfft(x.reshape(8, 18))),
    "a spectrum of 263": lambda x: torch.view_as_real(
        torch.fft.rfft(torch.cat([x.reshape(-1), x.reshape(-1)[:119]]))
    ),
    "attention": lambda x: _way(x, BOTH),
    "attention by operators": lambda x: _way(x, BOTH[:1]),
    "attention in one operator": lambda x: _way(x, BOTH[1:]),
    "attention of three dimensions": lambda x: _way(x[0], BOTH, is_causal=True),
    "a mask that learns": lambda x: _way(x, BOTH, attn_mask=_bias(x)),
    "a mask of queries": lambda x: _way(x, BOTH, attn_mask=_bias(x.detach())),
}


@pytest.mark.parametrize("what", GRADIENTS)
def test_results_and_gradients_have_the_bits_of_the_cpu(device, what):
    torch.manual_seed(4)
    start, found = torch.randn(2, 3, 4, 6), []
    with reproducible():
        for place in (device, "cpu"):
            x = start.to(place).requires_grad_()
            y = GRADIENTS[what](x)
            (y * y).sum().backward()
            found.append([t.detach().cpu().numpy().tobytes() for t in (y, x.grad)])
    assert found[0] == found[1]


def test_scores_of_attention_are_the_librarys(device, simulated):
    x = torch.randn(2, 3, 4, 6).to(device).requires_grad_()
    bias = torch.randn(4, 4).to(device)
    with reproducible():
        y = _way(x, BOTH, attn_mask=bias)
        y.backward(torch.ones_like(y))
    assert not {"add", "mul", "sub", "div"} & set(simulated.theirs)


def test_the_cpu_is_given_nothing_that_is_on_a_device(device):
    x = torch.ones(3, 3).to(device)
    with reproducible(), pytest.raises(Leftover, match="expected the CPU"):
        run("matmul", (0, 0, ONE, 256, 0), (x, x))


REFUSED = {
    "bfloat16": (lambda x: x.bfloat16() + x.bfloat16(), "its result is torch.bfloat16"),
    "a complex sign": (lambda x: x.to(torch.complex64).sgn(), "it has no edition"),
    "a function": (lambda x: torch.special.bessel_j0(x), ""),
    "autocast": (lambda x: x.bfloat16()[None] @ x.bfloat16()[:, None], "of autocast perhaps"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_edition_is_refused_by_its_name(device, what):
    compute, text = REFUSED[what]
    x = torch.ones(2).to(device)
    with reproducible(), pytest.raises(LeftoverError, match="aten") as error:
        compute(x)
    assert text in str(error.value)


def test_a_refusal_in_a_backward_pass_is_an_exception(device):
    class Bessel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return torch.special.bessel_j0(dy)

    x = torch.ones(3).to(device).requires_grad_()
    with reproducible(), pytest.raises(LeftoverError, match="aten.special_bessel_j0"):
        Bessel.apply(x).sum().backward()


def test_a_refusal_in_a_formula_of_gradients_is_an_exception(device):
    """In a pass of its own, in one within another, and with nothing left for the next one."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return torch.autograd.grad(half.tanh().sum(), half)[0].float()

    half = torch.ones(3).to(device).bfloat16().requires_grad_()
    x = torch.ones(3).to(device).requires_grad_()
    for make in (lambda: half.tanh().sum(), lambda: Inner.apply(x).sum()):
        y = make()
        with reproducible(), pytest.raises(LeftoverError, match="aten.tanh.*bfloat16"):
            y.backward()
    with reproducible():
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_a_captured_graph_is_refused(device, simulated, monkeypatch):
    kind = _devices.KINDS["simt"]._replace(captures=lambda: True)
    monkeypatch.setitem(_devices.KINDS, "simt", kind)
    with reproducible(), pytest.raises(LeftoverError, match="a CUDA graph is captured"):
        torch.ones(2).to(device)


def test_two_devices_and_unknown_ones_are_refused():
    kinds = _devices.Devices(None)
    with pytest.raises(Exception, match="expected the CPU or CUDA"):
        kinds.context(torch.device("xpu", 0))
    kinds._device = torch.device("cuda", 0)
    with pytest.raises(Exception, match="it is on cuda:1, and the block has tensors on cuda:0"):
        kinds.context(torch.device("cuda", 1))


def test_memory_at_its_end_is_an_error(device, simulated):
    script = """
import torch, simt
from repops.torch import reproducible
place = simt.open_device()
x = torch.ones(3, 5000).to(place)
real = torch.empty
def none(*size, **how):
    if how.get("dtype") is torch.uint8:
        raise RuntimeError("out of memory")
    return real(*size, **how)
torch.empty = none
with reproducible():
    x.sum(1)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert "device_alloc has none" in done.stderr


NOT_THERE = {
    "pinned": lambda x: torch.zeros(3).pin_memory(),
    "pinned on the device": lambda x: x.pin_memory(),
    "of a stream": lambda x: x.record_stream(torch.Stream(device=x.device)),
}


@pytest.mark.parametrize("what", NOT_THERE)
def test_memory_and_streams_are_pytorchs_own_affair(device, simulated, what):
    errors = []
    for block in (contextlib.nullcontext(), reproducible()):
        with block, pytest.raises(Exception) as error:
            NOT_THERE[what](torch.zeros(3).to(device))
        errors.append((type(error.value), str(error.value).splitlines()[0]))
    assert errors[0] == errors[1]


def test_processes_exchange_tensors_of_the_cpu_alone():
    route = _editions.resolve(torch.ops.c10d.allreduce_.default)
    assert "NCCL" in _editions.reasons[route]


def test_cudnn_is_off_in_a_block_and_as_it_was_behind_it():
    before = torch.backends.cudnn.enabled
    with reproducible():
        assert not torch.backends.cudnn.enabled
    assert torch.backends.cudnn.enabled == before


def test_optimizers_take_no_lists_on_a_device_in_a_block_alone():
    supported = optimizer._get_foreach_kernels_supported_devices
    with reproducible():
        assert "cuda" not in optimizer._get_foreach_kernels_supported_devices()
    assert optimizer._get_foreach_kernels_supported_devices is supported
    assert "cuda" in supported()


def _listed():
    return [line.split(" | ") for line in LIST.read_text().splitlines() if " | " in line]


def test_each_operator_that_the_zoo_calls_on_a_device_is_computed_as_the_list_says():
    from device_operators import edition

    assert len(_listed()) > 300
    for name, _, how in _listed():
        if name.startswith(("aten.", "repops.")):
            assert edition(name) == how, name


def test_the_list_names_each_model_and_refuses_no_operator():
    import zoo

    _, _, names = LIST.read_text().partition(" models:\n")
    asked, _, failed = names.partition(" could not be asked:\n")
    named = {word for word in asked.split() if word != "#"}
    reasons = dict(line.removeprefix("# ").split(": ", 1) for line in failed.splitlines())
    assert named | set(reasons) >= set(zoo.MODELS) and len(named) > 180
    assert not [name for name, _, how in _listed() if how.startswith("refused")]
