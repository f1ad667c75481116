"""Fourier transforms and complex numbers in the block, against PyTorch in complex128."""

import math
import sys

import numpy as np
import pytest
import torch
from compare import same_in_settings

import repops.torch
from repops.torch import LeftoverError, reproducible
from repops.torch._turns import turns

LENGTHS = [*range(1, 65), 67, 97, 101, 128, 210, 256, 331, 662, 1000, 1024, 2039, 4096]
# The allowed error: norm of the difference from float64, relative to the norm of the transform.
NEAR = 2.0**-20


def drawn(*shape, dtype=torch.float32):
    """Random numbers that are the same in the block and outside."""
    x = np.random.default_rng(5).standard_normal((*shape, 2), "f4")
    x = torch.from_numpy(x)
    return torch.view_as_complex(x) if dtype.is_complex else x[..., 0].contiguous()


def wide(t):
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def near(ours, exact, most=NEAR):
    assert ours.shape == exact.shape and ours.dtype in (torch.float32, torch.complex64)
    assert wide(ours).dtype is exact.dtype
    assert (wide(ours) - exact).norm() <= most * exact.norm()


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_constants_are_correctly_rounded():
    for n in (1, 2, 3, 7, 8, 12, 97, 1000, 4096, 4078):
        angle = 2 * np.longdouble(math.pi) * np.arange(n) / n
        angle += 2 * np.longdouble(1.2246467991473532e-16) * np.arange(n) / n  # the rest of pi
        exact = np.stack([np.cos(angle), np.sin(angle)], 1)
        own = turns(n)
        apart = np.abs(own.astype("g") - exact)
        assert own.dtype == np.float32 and (apart <= np.spacing(np.abs(own)) / 2 + 2.0**-60).all()
    assert (turns(8)[3] == np.float32([-math.sqrt(0.5), math.sqrt(0.5)])).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_of_every_length(n):
    x, z = drawn(2, n), drawn(2, n, dtype=torch.complex64)
    half = z[:, : n // 2 + 1]
    calls = [
        lambda v: torch.fft.fft(v(z)),
        lambda v: torch.fft.ifft(v(z), norm="forward"),
        lambda v: torch.fft.fft(v(x), norm="ortho"),
        lambda v: torch.fft.rfft(v(x)),
        lambda v: torch.fft.irfft(v(half), n),
        lambda v: torch.fft.hfft(v(half), n, norm="ortho"),
        lambda v: torch.fft.ihfft(v(x)),
    ]
    for call in calls:
        with reproducible():
            y = call(lambda t: t)
        near(y, call(wide))


SHAPES = {
    "padded": lambda x, z: torch.fft.fft(x, 9, 1),
    "cut": lambda x, z: torch.fft.rfft(x, 4, 1, norm="ortho"),
    "a dimension": lambda x, z: torch.fft.ifft(z, dim=0),
    "two": lambda x, z: torch.fft.fft2(z),
    "two of real ones": lambda x, z: torch.fft.rfft2(x, dim=(1, 0)),
    "two, back": lambda x, z: torch.fft.irfft2(z, s=(6, 70)),
    "all": lambda x, z: torch.fft.fftn(x),
    "all, back": lambda x, z: torch.fft.irfftn(z, norm="forward"),
    "some": lambda x, z: torch.fft.rfftn(x, (5, 6), (2, 0)),
    "hfft2": lambda x, z: torch.fft.hfft2(z),
    "ihfft2": lambda x, z: torch.fft.ihfft2(x),
    "turned": lambda x, z: torch.fft.fft(z.transpose(0, 2).conj()[1:], dim=1),
    "imaginary": lambda x, z: torch.fft.rfft(z.conj().imag * 2),
    "shifted": lambda x, z: torch.fft.fftshift(torch.fft.fft(z)),
    "windows": lambda x, z: torch.stft(
        x[0], 4, 2, window=torch.ones(4, dtype=x.dtype), return_complex=True
    ),
    "back from windows": lambda x, z: torch.istft(
        torch.stft(x[0], 4, 2, window=torch.ones(4, dtype=x.dtype), return_complex=True) * (1 + 2j),
        4,
        2,
        window=torch.ones(4, dtype=x.dtype),
    ),
    "windows that overlap": lambda x, z: x.unfold(2, 5, 3) * x[:, :, :4, None],
    "products": lambda x, z: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x).conj(), 7),
    "filters": lambda x, z: torch.fft.fft(x) * torch.view_as_complex(x.reshape(-1, 7, 2)[:1, :1]),
    "size": lambda x, z: torch.fft.fft(z).abs(),
    "angle": lambda x, z: z.angle() + (z.real + x).angle(),
    "direction": lambda x, z: z.sgn() / (x.abs() + 1),
    "sums": lambda x, z: (z - 2j * x).sum((0, -1)) * 0.3 + 1j - z.sum(),
    "numbers": lambda x, z: 1 - (2j - z) * (1 + 3j),
    "in place": lambda x, z: (z * 1).mul_(z).add_(x, alpha=2).sub_(1j),
    "lists": lambda x, z: torch.stack(torch._foreach_mul([z, z], [z, z])),
    "quotients": lambda x, z: (z + 1) / (z - 7j) + (2 - 1j) / (z + 8).conj() + (x + 7) / (z + 9j),
    "reciprocals": lambda x, z: (z + 8).reciprocal() + 1 / (z - 8j),
    "exponentials": lambda x, z: (z * 0.5).exp() * torch.exp(1j * x) + torch.exp(-z.conj()),
    "means": lambda x, z: z.mean((0, 2), keepdim=True) + (1j * x).mean() + z.mean(1, True),
    "batches of products": lambda x, z: z @ z.mT.conj() + torch.einsum("bij,bkj->bik", z, z),
    "matrices": lambda x, z: (
        z[0] @ z[1].mT.conj() + (z[:, 0] @ z[0, 0])[:5] + z[0, 0].vdot(z[1, 1])
    ),
    "parts": lambda x, z: torch.complex(z.imag, x) + torch.where(x > 0, z, 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients_of_dimensions_and_of_complex_numbers(name):
    def computed(kind):
        given = [kind(t).requires_grad_() for t in (x, z)]
        y = SHAPES[name](*given)
        parts = torch.view_as_real(y) if y.is_complex() else y
        loss = (parts * kind(drawn(*parts.shape))).sum()
        grads = torch.autograd.grad(loss, given, allow_unused=True)
        return [y.detach(), *[g for g in grads if g is not None]]

    x, z = drawn(6, 5, 14), drawn(6, 5, 14, dtype=torch.complex64)
    exact = computed(wide)
    with reproducible():
        ours = computed(torch.clone)
    assert len(ours) == len(exact)
    for a, b in zip(ours, exact):
        near(a, b)


def test_each_operation_is_the_formula_that_is_stated():
    y, z = (drawn(3, n, dtype=torch.complex64)[:, :1000] for n in (1000, 1001))
    (a, b), (c, d) = (torch.view_as_real(t).numpy().transpose(2, 0, 1) for t in (y, z))
    with reproducible():
        found = torch.view_as_real(y * z).numpy()
        assert (found == np.stack([a * c - b * d, a * d + b * c], -1)).all()
        most, least = np.maximum(abs(a), abs(b)), np.minimum(abs(a), abs(b))
        q = least / most
        assert (y.abs().numpy() == most * np.sqrt(np.float32(1) + q * q)).all()
        assert torch.equal(torch.view_as_real(y * 0.1), torch.view_as_real(y) * 0.1)
        for one, two in ((y, z), (y, 1e30j * z), (1e-30 * y, 1e37 * z)):
            (a, b), (c, d) = (torch.view_as_real(t).numpy().transpose(2, 0, 1) for t in (one, two))
            less = abs(c) < abs(d)
            most, least = np.where(less, d, c), np.where(less, c, d)
            q = least / most
            real, imag = np.where(less, (a * q + b, b * q - a), (a + b * q, b - a * q))
            s = most + least * q
            assert (
                torch.view_as_real(one / two).numpy() == np.stack([real / s, imag / s], -1)
            ).all()
        e, b = y.real.exp(), y.imag
        assert torch.equal(y.exp(), torch.complex(e * b.cos(), e * b.sin()))
        x, c, d = torch.view_as_real(y).reshape(3, -1), z.real.mT, z.imag.mT
        real, imag = (x @ torch.stack(w, 1).reshape(-1, 3) for w in ([c, -d], [d, c]))
        assert torch.equal(y @ z.mT, torch.complex(real, imag))
        large = torch.tensor([3e38 + 1e38j, 1e-45 + 0j, 0, complex(math.inf, 1)]).to(y.dtype)
        assert torch.equal(large[2:3].sgn(), large[2:3])
        sizes = large.abs()
    exact = torch.tensor([10.0**38.5, 2.0**-149, 0, math.inf])
    assert torch.allclose(sizes, exact, rtol=3e-7, atol=0)


def test_draws_have_half_of_the_variance_in_each_part():
    def drawn(call):
        torch.manual_seed(3)
        return call()

    kind, like = torch.complex64, torch.ones(3, dtype=torch.complex64)
    half = 1 / math.sqrt(2)
    calls = [
        (lambda: torch.randn(5, 2, dtype=kind), lambda: torch.empty(5, 2, 2).normal_(0, half)),
        (lambda: torch.randn_like(like), lambda: torch.empty(3, 2).normal_(0, half)),
        (lambda: (like * 0).normal_(1, 3), lambda: torch.empty(3, 2).normal_(1, 3 * half)),
        (lambda: torch.rand(5, 3, dtype=kind), lambda: torch.rand(5, 3, 2)),
    ]
    with reproducible():
        for call, parts in calls:
            assert torch.equal(torch.view_as_real(drawn(call)), drawn(parts))
        assert 0.95 < torch.randn(4000, dtype=kind).abs().square().mean() < 1.05


def test_neighbours_of_numbers_are_exact():
    x = np.array([0.0, -0.0, 1.0, 2.0**-149, -(2.0**-126), np.inf, 3e38, np.nan] * 3, "f4")
    y = np.repeat(np.array([-np.inf, 0.0, np.inf], "f4"), 8)
    with reproducible():
        for kind in ("f4", "f8"):
            a, b = x.astype(kind), y.astype(kind)
            own = torch.nextafter(torch.from_numpy(a), torch.from_numpy(b)).numpy()
            assert own.tobytes() == np.nextafter(a, b).tobytes()


def test_frequencies_are_those_of_pytorch():
    for n, d in ((1, 1.0), (8, 0.1), (9, 3.0), (1000, 1 / 3)):
        for call in (torch.fft.fftfreq, torch.fft.rfftfreq):
            exact = call(n, d)
            with reproducible():
                assert torch.equal(call(n, d), exact)


@pytest.mark.parametrize("name", ["hann_window", "hamming_window", "blackman_window"])
def test_windows_are_rounded_once(name):
    for n, periodic in ((0, True), (1, False), (2, False), (400, True), (401, False)):
        exact = getattr(torch, name)(n, periodic, dtype=torch.float64)
        with reproducible():
            own = getattr(torch, name)(n, periodic)
        assert own.dtype is torch.float32 and own.shape == exact.shape
        assert ((own.double() - exact).abs() <= 2.0**-24 * exact + 1e-15).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda z: torch.fft.fft(z.to(torch.complex128)),
        lambda z: torch.fft.fft(z.real.double()),
        lambda z: z.log(),
        lambda z: z.sqrt(),
        lambda z: z.sin(),
        lambda z: z.pow(2),
        lambda z: z.cumsum(0),
        lambda z: torch.addmm(z, z[None], z[:, None].expand(4, 4)),
        lambda z: torch.randn(3, dtype=torch.complex128),
        lambda z: z * z.to(torch.complex128),
        lambda z: z.real * torch.tensor([1j], dtype=torch.complex128),
    ],
)
def test_other_functions_of_complex_numbers_are_refused(call):
    with reproducible(), pytest.raises(LeftoverError, match="complex|float64"):
        call(drawn(4, dtype=torch.complex64))


def test_wrong_calls_have_the_errors_of_pytorch():
    z = drawn(4, dtype=torch.complex64)
    for call in (
        lambda: torch.fft.fft(z, 0),
        lambda: torch.fft.rfft(z),
        lambda: torch.fft.fft(z, dim=2),
        lambda: z * z[:3],
        lambda: z / z[:3],
        lambda: z[None] @ z[None],
        lambda: z[None] @ torch.ones(4, 1),
        lambda: z.dot(z[:3]),
        lambda: torch.ones(4).mul_(z),
        lambda: torch.ops.aten._fft_c2r(z, [0], 0, 5),
    ):
        with pytest.raises(Exception) as plain:
            call()
        with reproducible(), pytest.raises(plain.type) as ours:
            call()
        assert str(ours.value) == str(plain.value)


def hashed():
    """Hashes of transforms by all methods, so large that threads are used, and of their
    gradients."""
    with reproducible():
        torch.manual_seed(0)
        x = torch.randn(6, 840, requires_grad=True)
        y = torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x.flip(1)).conj(), 840)
        z = torch.fft.fft2(x[:, :331]).abs() + torch.fft.fft(x, 331).abs()
        w = torch.fft.rfft(x[:, :64])
        w = torch.einsum(
            "hn,hnl->hl", w / (w + 9), torch.exp(0.1 * w[..., None] * torch.arange(70))
        )
        (y.square().mean() + z.sum() + w.abs().sum()).backward()
        return repops.torch.hash({"x": x.grad, "y": y.detach(), "z": z.detach()})


def test_bits_depend_on_no_instruction_set_nor_on_threads():
    same_in_settings(sys.modules[__name__])
