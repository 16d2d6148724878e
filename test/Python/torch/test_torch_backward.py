"""The gradients composed of GEMMs, and which ones go to FlashAttention."""

import itertools
import math

import pytest
import reference
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from attn import _torch_backward
from attn._band import band
from attn._errors import UnsupportedError

MASKS = ("none", "causal", "causal_bottom_right", "window<5, 3>",
         "window<0, 0>", "window<1073741824, 2>", "prefix<6>", "prefix<40>")
SIZES = ((37, 37), (20, 50), (50, 20), (1, 9), (9, 1))


def problem(queries, keys, mask, dtype=torch.float64, scale=0.3):
    """Inputs with grouped heads and rows of k before its heads in memory,
    outputs of the reference, and random gradients of those."""
    q = torch.randn(2, 6, queries, 9, dtype=torch.float64)
    k = torch.randn(2, keys, 2, 9, dtype=torch.float64).transpose(1, 2)
    v = torch.randn(2, 2, keys, 5, dtype=torch.float64)
    inputs = [t.to(dtype).double().requires_grad_() for t in (q, k, v)]
    o, lse = reference.attention(*inputs, mask, scale)
    return inputs, o, lse, torch.randn_like(o), torch.randn_like(lse)


def expected_gradients(inputs, o, lse, do, dlse):
    # A row that sees no key has no gradient, whatever dlse is.
    seen = lse.detach() != -math.inf
    loss = (o * do).sum()
    if dlse is not None:
        loss = loss + (lse[seen] * dlse[seen]).sum()
    return torch.autograd.grad(loss, inputs, retain_graph=True)


def composed(inputs, o, lse, do, dlse, mask, dtype, scale=0.3):
    q, k, v = (t.detach().to(dtype) for t in inputs)
    lse = lse.detach()
    return _torch_backward.backward(
        do.to(dtype), q, k, v, o.detach().to(dtype),
        lse if dtype == torch.float64 else lse.float(), dlse, mask, scale)


@pytest.mark.parametrize("tile_bytes", (1 << 28, 20000, 1))
@pytest.mark.parametrize("mask", MASKS)
def test_composition_agrees_with_autograd_in_fp64(mask, tile_bytes,
                                                  monkeypatch):
    monkeypatch.setattr(_torch_backward, "TILE_BYTES", tile_bytes)
    for (queries, keys), with_dlse in itertools.product(SIZES, (True, False)):
        inputs, o, lse, do, dlse = problem(queries, keys, mask)
        dlse = dlse if with_dlse else None
        got = composed(inputs, o, lse, do, dlse, mask, torch.float64)
        for g, e in zip(got, expected_gradients(inputs, o, lse, do, dlse)):
            assert torch.allclose(g, e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_composition_in_16_bits(dtype):
    inputs, o, lse, do, dlse = problem(50, 40, "window<30, 4>", dtype)
    got = composed(inputs, o, lse, do, dlse, "window<30, 4>", dtype)
    sizes = reference.gradient_sizes(
        *(t.detach() for t in inputs), do, "window<30, 4>", 0.3, dlse)
    for g, e, size in zip(got, expected_gradients(inputs, o, lse, do, dlse),
                          sizes):
        assert g.dtype == dtype
        assert reference.relative_error(g, e, size) < (
            reference.GRADIENT_TOLERANCE[dtype])


@pytest.mark.parametrize("scale", (1.0, 1e4, -1e5, 1e6, 0.0))
def test_composition_at_large_scores(scale):
    """Of whole numbers, whose scores fp32 holds."""
    torch.manual_seed(1)
    q, k = (torch.randint(-2, 3, (1, 2, n, 16)).double() for n in (40, 30))
    v, do = torch.randn(1, 2, 30, 8).double(), torch.randn(1, 2, 40, 8).double()
    inputs = [t.requires_grad_() for t in (q, k, v)]
    o, exact = reference.attention(*inputs, "causal_bottom_right", scale)
    expected = torch.autograd.grad(o, inputs, do)
    lse = exact.detach().float()
    low = torch.where(lse.isfinite(), exact.detach() - lse, 0).float()
    visible = _torch_backward.band("causal_bottom_right", 40, 30)
    sizes = reference.gradient_sizes(
        *(t.detach() for t in inputs), do, "causal_bottom_right", scale)
    plain = [t.detach().float() for t in (do, *inputs, o)]
    got = _torch_backward.composed(*plain, lse, None, visible, scale, low)
    for g, e, size in zip(got, expected, sizes):
        assert reference.relative_error(g, e, size) < 1e-5
    if scale == 1e6:
        _, _, dv = _torch_backward.composed(*plain, lse, None, visible, scale)
        assert reference.relative_error(dv, expected[2], sizes[2]) > 0.02


def test_gradients_have_the_order_of_their_tensors():
    inputs, o, lse, do, dlse = problem(8, 12, "none")
    dq, dk, dv = composed(inputs, o, lse, do, dlse, "none", torch.float64)
    assert dq.stride() == inputs[0].stride()
    assert dk.stride() == inputs[1].stride() == (12 * 2 * 9, 9, 2 * 9, 1)
    assert dv.stride() == inputs[2].stride()


def test_scale_negative_zero_and_default():
    for scale in (-0.7, 0.0, None):
        inputs, o, lse, do, _ = problem(
            10, 10, "causal", scale=1 / 3 if scale is None else scale)
        got = composed(inputs, o, lse, do, None, "causal", torch.float64,
                       scale)
        for g, e in zip(got, expected_gradients(inputs, o, lse, do, None)):
            assert torch.allclose(g, e, rtol=1e-10, atol=1e-12)


def test_rows_that_see_no_key_give_and_get_nothing():
    inputs, o, lse, do, dlse = problem(20, 8, "causal_bottom_right")
    do[:, :, :12] = 1e30  # must not reach dk or dv
    dlse[:, :, :12] = 1e30
    dq, dk, dv = composed(inputs, o, lse, do, dlse, "causal_bottom_right",
                          torch.float64)
    assert not dq[:, :, :12].any()
    assert dk.abs().max() < 1e3 and dv.abs().max() < 1e3


def test_a_nan_in_a_hidden_value_does_not_spread_through_p():
    inputs, o, lse, do, _ = problem(16, 16, "causal")
    inputs[2].data[:, :, 15] = math.nan  # seen by the last query alone
    dq, _, _ = composed(inputs, o, lse, do, None, "causal", torch.float64)
    assert dq[:, :, :15].isfinite().all() and dq[:, :, 15].isnan().all()


@pytest.mark.parametrize("empty", ("batch", "queries", "keys"))
def test_empty_tensors_have_zero_gradients(empty):
    sizes = dict(batch=2, queries=3, keys=4)
    sizes[empty] = 0
    b, n, m = sizes.values()
    q, k = torch.randn(b, 2, n, 8), torch.randn(b, 2, m, 8)
    got = _torch_backward.backward(q, q, k, k, q, q[..., 0], None, "none",
                                   None)
    assert [g.shape for g in got] == [q.shape, k.shape, k.shape]
    assert not any(g.any() for g in got)


def test_memory_of_a_step_is_bounded(monkeypatch):
    """No tensor of queries x keys, with 1 MiB for a tile."""
    monkeypatch.setattr(_torch_backward, "TILE_BYTES", 1 << 20)
    largest = 0
    product = _torch_backward._product

    def watched(a, b, wide):
        nonlocal largest
        result = product(a, b, wide)
        largest = max(largest, result.numel() * result.element_size())
        return result

    monkeypatch.setattr(_torch_backward, "_product", watched)
    q = torch.randn(1, 4, 2048, 8)
    _torch_backward.backward(q, q, q, q, q, q[..., 0], None, "none", None)
    assert largest <= 1 << 20 < 4 * 2048 * 2048


@pytest.mark.parametrize("mask", MASKS)
def test_bands_are_those_of_the_reference(mask):
    for queries, keys in SIZES:
        visible = band(mask, queries, keys)
        seen = reference.visible(mask, queries, keys)
        for i in range(queries):
            low, high = visible.keys(i, i + 1, keys)
            row = [low <= j < high for j in range(keys)]
            assert row == seen[i].tolist()
        assert visible.is_open(queries, keys) == bool(seen.all())
        assert visible.has_blind_rows(queries, keys) == bool(
            (~seen).all(-1).any())


@pytest.fixture
def on_gpu(monkeypatch):
    """Tensors that say they are on an A100."""
    monkeypatch.setattr(torch.cuda, "get_device_capability",
                        lambda device=None: (8, 0))

    def make(queries, keys, d=64, e=64, dtype=torch.bfloat16):
        with FakeTensorMode():
            return [torch.empty(1, 2, rows, width, dtype=dtype, device="cuda")
                    for rows, width in ((queries, d), (keys, d), (keys, e))]

    return make


@pytest.mark.parametrize("mask, queries, keys, taken", (
    ("none", 10, 20, True), ("causal", 10, 10, True),
    # Its causal mask is aligned to the bottom right.
    ("causal", 10, 20, False), ("causal", 20, 10, False),
    ("causal_bottom_right", 10, 20, True),
    ("causal_bottom_right", 20, 10, True), ("prefix<3>", 20, 20, False),
    ("window<4, 0>", 10, 20, True), ("window<4, 9>", 20, 10, True),
    # It takes a right side of `keys` or more for none at all.
    ("window<4, 10>", 20, 10, False), ("window<4, 30>", 10, 20, True),
    ("prefix<0>", 12, 20, False), ("prefix<3>", 20, 20, False)))
def test_flash_takes_masks(on_gpu, mask, queries, keys, taken):
    assert _torch_backward.flash_takes(*on_gpu(queries, keys), mask,
                                       0.1) == taken


@pytest.mark.parametrize("change, taken", (
    ({}, True), ({"d": 80, "e": 33}, True), ({"d": 256, "e": 256}, True),
    ({"d": 257}, False), ({"e": 300}, False),
    ({"dtype": torch.float16}, True), ({"dtype": torch.float32}, False)))
def test_flash_takes_types_and_head_dimensions(on_gpu, change, taken):
    assert _torch_backward.flash_takes(*on_gpu(8, 8, **change), "none",
                                       0.1) == taken


@pytest.mark.parametrize("scale", (0.0, -1.0, math.nan))
def test_flash_takes_no_scale_that_turns_masks_over(on_gpu, scale):
    assert not _torch_backward.flash_takes(*on_gpu(8, 8), "none", scale)


def test_flash_does_not_take_cpu_tensors_or_old_gpus(on_gpu, monkeypatch):
    q = torch.empty(1, 1, 8, 64, dtype=torch.bfloat16)
    assert not _torch_backward.flash_takes(q, q, q, "none", 0.1)
    monkeypatch.setattr(torch.cuda, "get_device_capability",
                        lambda device=None: (7, 5))
    assert not _torch_backward.flash_takes(*on_gpu(8, 8), "none", 0.1)


@pytest.fixture
def asked(monkeypatch):
    """Who was asked for gradients; attn has a kernel if `kernel` is true, and
    a fast one if `fast` is."""
    class Asked(list):
        kernel = True
        fast = False

        def remember(self, *_):
            """Fake tensors have no short way."""

    names = Asked()

    def kernel(*arguments):
        names.append(("kernel", arguments[-1]))
        return ("dq", "dk", "dv") if names.kernel else None

    monkeypatch.setattr(_torch_backward, "_kernel", kernel)
    monkeypatch.setattr(_torch_backward, "_is_fast", lambda *_: names.fast)
    monkeypatch.setattr(_torch_backward, "_short_way", lambda q: names)
    for name in ("_flash", "composed"):
        monkeypatch.setattr(_torch_backward, name, lambda *_, name=name:
                            names.append(name))
    return names


def gradients(q, k, v, with_dlse=False, mask="none"):
    # Nobody looks at the shapes of the others.
    return _torch_backward.backward(q, q, k, v, q, q, q if with_dlse else None,
                                    mask, None)


def test_flash_is_asked_first_and_then_our_kernel(on_gpu, asked):
    q, k, v = on_gpu(10, 20)
    gradients(q, k, v)
    assert asked == ["_flash"]
    asked.clear()
    for change in ({"with_dlse": True}, {"mask": "causal"}):
        assert gradients(q, k, v, **change) == ("dq", "dk", "dv")
        assert asked.pop() == ("kernel", False) and not asked
    asked.kernel = False
    gradients(q, k, v, with_dlse=True)
    assert asked == [("kernel", False), "composed"]


def test_our_kernel_is_asked_first_for_the_same_bits(on_gpu, asked,
                                                     monkeypatch):
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled",
                        lambda: True)
    arrays = on_gpu(10, 20)
    gradients(*arrays)
    assert asked == [("kernel", True)]
    asked.clear()
    asked.kernel = False
    gradients(*arrays)
    assert asked == [("kernel", True), "_flash"]


def test_our_kernel_is_asked_first_where_it_is_fast(on_gpu, asked):
    asked.fast = True
    arrays = on_gpu(10, 20)
    gradients(*arrays)
    assert asked == [("kernel", False)]
    asked.clear()
    asked.kernel = False
    gradients(*arrays)
    assert asked == [("kernel", False), "_flash"]


class OnGpu(torch.Tensor):
    """A tensor of the CPU that says it is on a GPU."""

    is_cuda = True


def on_no_gpu(queries, keys, d=64):
    return [torch.zeros(1, 2, rows, d, dtype=torch.bfloat16).as_subclass(
        OnGpu) for rows in (queries, keys, keys)]


@pytest.fixture
def planned(monkeypatch):
    """The problems that were planned, on a GPU that is named by `machine`."""
    class Planned(list):
        machine = "h100_sxm"

    problems = Planned()
    actual = _torch_backward._plan.report

    def report(problem, machine):
        problems.append(problem)
        return actual(problem, machine)

    class Device:
        machine = property(lambda self: problems.machine)

    monkeypatch.setattr(_torch_backward._plan, "report", report)
    monkeypatch.setattr(_torch_backward._machines, "device",
                        lambda ordinal: Device())
    monkeypatch.setattr(_torch_backward, "_chosen", {})
    return problems


def is_fast(q, k, v, mask="none", lse_low=None, dlse=None):
    return _torch_backward._is_fast(q, q, k, v, q, lse_low, dlse, mask)


def test_gradients_for_hopper_are_fast(planned):
    arrays = on_no_gpu(1000, 2000)
    assert is_fast(*arrays)
    assert is_fast(*arrays, "causal")
    rows = arrays[0][..., 0].float()
    assert is_fast(*arrays, dlse=rows)
    assert is_fast(*arrays, lse_low=rows)
    # Rows of 65 elements do not begin at multiples of 16 bytes.
    arrays = on_no_gpu(8000, 16000)
    odd = [t.new_zeros(1, 2, t.shape[2], 65)[..., :64] for t in arrays]
    assert not is_fast(*odd)
    assert [(problem.alignment, problem.lse_low, problem.dlse)
            for problem in planned] == [
        (16, False, False), (16, False, False), (16, False, True),
        (16, True, False), (2, False, False)]
    assert not is_fast(*(t.float() for t in arrays))
    assert not is_fast(*(t.double() for t in arrays))
    assert not is_fast(*(torch.zeros(t.shape) for t in arrays))
    assert len(planned) == 6


@pytest.mark.parametrize("d", (256, 320, 512, 1024))
def test_so_are_those_of_wide_heads(planned, d):
    assert is_fast(*on_no_gpu(1000, 2000, d))
    assert is_fast(*on_no_gpu(1000, 2000, d), "causal")


@pytest.mark.parametrize("machine", ("a100_80g", "b200", None))
def test_gradients_elsewhere_are_not(planned, machine):
    planned.machine = machine
    assert not is_fast(*on_no_gpu(8000, 16000))


def test_short_kernels_are_fast_on_any_gpu(planned):
    """They end before the host has launched another's."""
    planned.machine = "a100_80g"
    assert is_fast(*on_no_gpu(100, 100))


def test_lengths_of_a_class_are_planned_once(planned):
    for queries, keys in ((1024, 2048), (1000, 2000), (513, 1025)):
        assert is_fast(*on_no_gpu(queries, keys))
    assert len(planned) == 1
    assert (planned[0].queries, planned[0].keys) == (1024, 2048)
    assert is_fast(*on_no_gpu(1025, 2000)) and len(planned) == 2


@pytest.fixture
def launched(monkeypatch):
    """Arguments of attn.backward, which there is no kernel for if it says
    so."""
    class Launched(list):
        refuse = False

    seen = Launched()

    def launch(*arrays, **options):
        seen.append((arrays, options))
        if seen.refuse:
            raise UnsupportedError("no kernel")
        return options["gradients"], None

    class Remembered:
        def remember_launch(self, *arguments):
            seen.remembered.append(arguments)

    seen.remembered = []
    monkeypatch.setattr(_torch_backward, "_short_way",
                        lambda q: Remembered())
    monkeypatch.setattr(_torch_backward._backward, "launch", launch)
    monkeypatch.setattr(_torch_backward, "_without_kernel", {})
    return seen


def test_our_kernel_gets_dense_rows_and_gives_promised_strides(launched):
    q, k, v = on_no_gpu(10, 20)
    lse = q[..., 0].float()
    do = q.mT.contiguous().mT
    got = _torch_backward._kernel(do, q, k, v, q, lse, lse + 1,
                                  lse.expand(1, 2, 10), "causal", 0.1, True)
    (arrays, options), = launched
    assert all(t.stride(-1) == 1 for t in arrays)
    assert options["dlse"] is not None and options["deterministic"]
    # What was launched is remembered, not what came in.
    (tensors, kind, gradients, _), = launched.remembered
    assert tensors[0] is arrays[0] and tensors[7] is options["dlse"]
    assert tensors[6] is options["lse_low"]
    assert kind == ("causal", 0.1, True) and gradients is got
    assert [t.stride() for t in got] == [t.stride() for t in (q, k, v)]


def test_a_kernel_that_is_not_there_is_asked_for_once(launched):
    q, k, v = on_no_gpu(10, 20)
    launched.refuse = True
    lse = q[..., 0].float()
    for mask in ("none", "none", "causal"):
        assert _torch_backward._kernel(q, q, k, v, q, lse, None, None, mask,
                                       0.1, False) is None
    assert len(launched) == 2
    # What attn has no types for, or no memory, is not asked for at all.
    wide = q.double()
    cpu = torch.empty(1, 1, 8, 64)
    for tensor in (wide, cpu):
        assert _torch_backward._kernel(*[tensor] * 5, lse, None, None, "none",
                                       0.1, False) is None
    assert len(launched) == 2


def test_flash_gets_padded_and_aligned_rows():
    rows = _torch_backward._flash_rows
    q = torch.randn(2, 3, 5, 20, dtype=torch.bfloat16)
    padded = rows(q, 24)
    assert padded.shape == (2, 5, 3, 24)
    assert torch.equal(padded[..., :20], q.transpose(1, 2))
    assert not padded[..., 20:].any()
    q = torch.randn(2, 3, 5, 24, dtype=torch.bfloat16)
    assert rows(q, 24).data_ptr() == q.data_ptr()  # no copy
    shifted = torch.randn(2 * 3 * 5 * 24 + 1, dtype=torch.bfloat16)[1:]
    shifted = shifted.view(2, 3, 5, 24)
    copied = rows(shifted, 24)
    assert copied.data_ptr() % 16 == 0
    assert torch.equal(copied, shifted.transpose(1, 2))


def test_settled_gradients_share_memory_where_they_can():
    like = torch.randn(1, 3, 5, 8)
    same = torch.randn(1, 5, 3, 8).transpose(1, 2)
    assert _torch_backward._settled(same, same).data_ptr() == same.data_ptr()
    copy = _torch_backward._settled(same, like)
    assert torch.equal(copy, same) and copy.stride() == like.stride()
    # Strides of dimensions of one element mean nothing.
    odd = like.as_strided(like.shape, (7, *like.stride()[1:]))
    settled = _torch_backward._settled(odd, like)
    assert settled.data_ptr() == like.data_ptr()
    assert settled.stride() == like.stride()
