"""Outputs on a GPU against fp64: shapes, memory orders, masks, types, and
numbers that are not finite."""

import math

import pytest
import reference
import torch
from torch_problems import make

import attn
from attn.torch import attention

pytestmark = pytest.mark.gpu

BF16, F16, F8 = torch.bfloat16, torch.float16, torch.float8_e4m3fn
MASKS = ("none", "causal", "causal_bottom_right", "window<40, 0>",
         "window<5, 9>", "window<0, 1073741824>", "prefix<50>")


def check(q, k, v, mask="none", scale=None):
    """Compares o and lse, and o computed alone; gives o."""
    o, lse = attention(q, k, v, mask=mask, scale=scale, enable_gqa=True,
                       return_lse=True)
    expected, expected_lse = reference.attention(q, k, v, mask, scale)
    assert o.shape == expected.shape
    assert o.dtype == (BF16 if q.dtype == F8 else q.dtype)
    assert lse.shape == expected_lse.shape and lse.dtype == torch.float32
    assert o.isfinite().all()
    size = reference.output_size(q, k, v, mask, scale)
    limit = reference.tolerance(q.dtype, k.shape[2])
    assert reference.relative_error(o, expected, size) <= limit
    sizes = reference.score_sizes(q, k, scale)
    assert (reference.lse_error(lse, expected_lse, sizes)
            <= reference.lse_tolerance(q.dtype, q.shape[-1]))
    assert not o[expected_lse == -math.inf].any()
    alone = attention(q, k, v, mask=mask, scale=scale, enable_gqa=True)
    assert alone.stride() == o.stride()
    assert reference.relative_error(alone, expected, size) <= limit
    return o


def cuda(*sizes, dtype=BF16, **options):
    return make(*sizes, device="cuda", dtype=dtype, **options)


@pytest.mark.parametrize("dtype", (BF16, F16))
@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask, dtype):
    for queries, keys in ((130, 130), (70, 200), (200, 70), (1, 77)):
        check(*cuda(queries, keys, kv_heads=2, d=64, dtype=dtype), mask)


def _is_hopper():
    return (torch.cuda.is_available()
            and torch.cuda.get_device_capability() == (9, 0))


@pytest.mark.skipif(not _is_hopper(), reason="8 bits need Hopper")
class Test8Bits:
    @pytest.mark.parametrize("mask", MASKS)
    def test_masks(self, mask):
        for queries, keys in ((130, 130), (70, 200), (200, 70), (1, 77)):
            check(*cuda(queries, keys, kv_heads=2, d=64, dtype=F8), mask)

    @pytest.mark.parametrize("d, e", (
        (16, 16), (48, 48), (64, 64), (80, 80), (96, 96), (128, 128),
        (192, 192), (256, 256), (192, 128), (64, 128), (16, 256)))
    def test_head_dimensions(self, d, e):
        check(*cuda(150, 140, d=d, e=e, dtype=F8), "causal")

    def test_layouts(self):
        for queries in (100, 129):
            q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2)
                       for t in cuda(queries, 300, d=64, dtype=F8))
            o = check(q, k, v, "causal_bottom_right")
            assert o.stride()[1:] == (64, 4 * 64, 1)

    def test_scales_of_tensors(self):
        real = [torch.randn(2, 4, 300, 128, device="cuda") * size
                for size in (3, 0.01, 700)]
        scales = [(t.abs().max() / 448).item() for t in real]
        q, k, v = ((t / s).to(F8) for t, s in zip(real, scales))
        scale = scales[0] * scales[1] * 128**-0.5
        o = attention(q, k, v, scale=scale) * scales[2]
        expected, _ = reference.attention(*real)
        # The inputs are rounded to three bits, too.
        assert reference.relative_error(o, expected) < 0.1

    def test_rows_that_are_not_aligned_are_refused(self):
        q, k, v = cuda(100, 100, d=64, dtype=F8)
        odd = torch.empty(q.numel() + 8, device="cuda", dtype=torch.uint8)
        odd = odd[8:].view(F8).view(q.shape)
        with pytest.raises(attn.UnsupportedError, match="16 bytes, but got 8"):
            attention(odd, k, v)


@pytest.mark.parametrize("d, e", (
    (8, 8), (16, 16), (17, 17), (40, 40), (64, 64), (80, 80), (96, 96),
    (128, 128), (129, 129), (192, 192), (256, 256), (192, 128), (64, 128),
    (33, 40), (255, 1), (1, 256)))
def test_head_dimensions(d, e):
    check(*cuda(150, 140, d=d, e=e), "causal")


def test_any_number_of_rows():
    """With few kernels: one for each schedule that they ask for."""
    compiled = attn.cache_info()["compiled"]
    for rows in (1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 257, 1000):
        check(*cuda(rows, rows, d=64))
        check(*cuda(rows, 100, d=64, batch=1))
        check(*cuda(100, rows, d=64, batch=3))
    assert attn.cache_info()["compiled"] <= compiled + 6


@pytest.mark.parametrize("heads, kv_heads", ((1, 1), (8, 8), (8, 1), (12, 4),
                                             (6, 3)))
def test_heads(heads, kv_heads):
    check(*cuda(70, 90, heads=heads, kv_heads=kv_heads, d=32), "causal")


def layouts():
    def shifted(b, h, n, d):
        return torch.randn(b * h * n * d + 1, device="cuda").to(BF16)[1:] \
            .view(b, h, n, d)

    def of(shape):
        return torch.randn(shape, device="cuda").to(BF16)

    return {
        "bhnd": lambda b, h, n, d: of((b, h, n, d)),
        "bnhd": lambda b, h, n, d: of((b, n, h, d)).transpose(1, 2),
        "nbhd": lambda b, h, n, d: of((n, b, h, d)).permute(1, 2, 0, 3),
        "packed": lambda b, h, n, d:
            of((b, n, 3, h, d))[:, :, 1].transpose(1, 2),
        "packed in a row": lambda b, h, n, d:
            of((b, n, 3 * h * d))[..., h * d:2 * h * d].unflatten(-1, (h, d))
            .transpose(1, 2),
        "padded": lambda b, h, n, d: of((b, h, n, d + 3))[..., :d],
        "every other row": lambda b, h, n, d: of((b, h, 2 * n, d))[:, :, ::2],
        "repeated heads": lambda b, h, n, d:
            of((b, 1, n, d)).expand(b, h, n, d),
        "repeated batch": lambda b, h, n, d:
            of((h, n, d)).expand(b, h, n, d),
        "repeated rows": lambda b, h, n, d:
            of((b, h, 1, d)).expand(b, h, n, d),
        "shifted by 2 bytes": shifted,
    }


@pytest.mark.parametrize("layout", layouts())
def test_memory_orders(layout):
    make_one = layouts()[layout]
    q, k, v = (make_one(2, 4, n, 48) for n in (70, 90, 90))
    o = check(q, k, v, "causal_bottom_right")
    copies = [t.contiguous().clone() for t in (q, k, v)]
    dense = attention(*copies, mask="causal_bottom_right")
    if "shifted" not in layout and "padded" not in layout:
        # The same kernel reads the same numbers.
        assert torch.equal(o, dense)
    if layout in ("bnhd", "packed", "packed in a row"):
        assert o.transpose(1, 2).is_contiguous()


def test_orders_may_differ():
    orders = layouts()
    check(orders["bnhd"](2, 4, 70, 48), orders["repeated heads"](2, 4, 90, 48),
          orders["padded"](2, 4, 90, 48))


@pytest.mark.parametrize("scale", (0.0, 0.02, 1.5, -0.3))
def test_scales(scale):
    check(*cuda(70, 70, d=64, kv_heads=2), "causal", scale)


@pytest.mark.parametrize("sizes", (
    dict(batch=0), dict(queries=0, keys=9), dict(queries=9, keys=0)))
def test_empty_tensors(sizes):
    queries, keys = sizes.pop("queries", 5), sizes.pop("keys", 5)
    q, k, v = cuda(queries, keys, d=32, e=16, **sizes)
    o, lse = attention(q, k, v, return_lse=True)
    assert o.shape == (*q.shape[:3], 16) and lse.shape == q.shape[:3]
    assert not o.any() and bool((lse == -math.inf).all())


def test_rows_that_see_no_key():
    q, k, v = cuda(100, 30, d=64)
    for mask in ("causal_bottom_right", "window<3, 3>"):
        o, lse = attention(q, k, v, mask=mask, return_lse=True)
        blind = ~reference.visible(mask, 100, 30, "cuda").any(-1)
        assert blind.any()
        assert not o[:, :, blind].any()
        assert bool((lse[:, :, blind] == -math.inf).all())
        assert lse[:, :, ~blind].isfinite().all()


@pytest.mark.parametrize("value", (math.nan, math.inf, -math.inf))
def test_what_is_not_finite_in_a_key_reaches_the_rows_that_see_it(value):
    q, k, v = cuda(150, 150, d=64)
    k[1, 2, 99, 5] = value
    o = attention(q, k, v, causal=True)
    expected, _ = reference.attention(q, k, v, "causal")
    # Rows before it, and all of the other heads.
    assert o[1, 2, :99].isfinite().all()
    others = torch.ones(2, 4, dtype=torch.bool)
    others[1, 2] = False
    assert o[others].isfinite().all()
    assert reference.relative_error(o[1, 2, :99], expected[1, 2, :99]) <= (
        reference.TOLERANCE[BF16])
    if math.isnan(value):
        assert o[1, 2, 99:].isnan().all()


def test_what_is_not_finite_in_a_query_stays_in_its_row():
    q, k, v = cuda(150, 150, d=64)
    q[0, 1, 17, 3] = math.nan
    o, lse = attention(q, k, v, return_lse=True)
    assert o[0, 1, 17].isnan().all() and lse[0, 1, 17].isnan()
    o[0, 1, 17], lse[0, 1, 17] = 0, 0
    assert o.isfinite().all() and lse.isfinite().all()


def test_large_scores_do_not_overflow():
    q, k, v = cuda(100, 100, d=64)
    check(q * 30, k * 30, v)


def test_equal_calls_give_equal_bits():
    q, k, v = cuda(300, 300, d=128, kv_heads=2)
    first = attention(q, k, v, causal=True, enable_gqa=True)
    for _ in range(3):
        assert torch.equal(first, attention(q, k, v, causal=True,
                                            enable_gqa=True))
    assert torch.equal(first, attn.forward(q, k, v, causal=True))


def test_a_schedule_by_hand():
    q, k, v = cuda(200, 200, d=64)
    o = attention(q, k, v, schedule="flash, query = 64, key = 32")
    expected, _ = reference.attention(q, k, v)
    assert reference.relative_error(o, expected) <= reference.TOLERANCE[BF16]


def test_long_rows():
    q, k, v = cuda(16384, 16384, batch=1, heads=2, kv_heads=1, d=64)
    o = attention(q, k, v, causal=True, enable_gqa=True)
    for first in (0, 8000, 16384 - 64):
        rows = slice(first, first + 64)
        expected, _ = reference.attention(
            q[:, :, rows], k[:, :, :rows.stop], v[:, :, :rows.stop],
            "causal_bottom_right")
        assert reference.relative_error(o[:, :, rows], expected) <= (
            reference.TOLERANCE[BF16])
