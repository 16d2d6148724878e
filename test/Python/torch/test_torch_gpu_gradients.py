"""Gradients on a GPU against fp64, on all ways: FlashAttention's kernel, our
own and the composition."""

import math

import pytest
import reference
import torch
from torch_problems import gradients, make

import attn
from attn import _forward, _launch, _torch_backward
from attn.torch import attention

pytestmark = pytest.mark.gpu

BF16, F16 = torch.bfloat16, torch.float16


def check(q, k, v, mask="none", scale=None, with_lse=False, keep=False):
    """Compares dq, dk and dv, and their strides."""
    tensors = [t.detach().requires_grad_() for t in (q, k, v)]
    weights = [torch.randn(*q.shape[:3], v.shape[3], device="cuda")]
    seen = reference.visible(mask, q.shape[2], k.shape[2], "cuda").any(-1)
    if with_lse:
        # -inf times nothing is not nothing.
        weights.append(torch.randn(q.shape[:3], device="cuda"))

    def select(o, lse):
        return (o, lse.masked_fill(~seen, 0)) if with_lse else o

    def ours(q, k, v):
        o, lse = attention(q, k, v, mask=mask, scale=scale, enable_gqa=True,
                           return_lse=True, keep_weights=keep)
        return select(o, lse)

    # The long way, then the short one, which finds what the long one bound.
    turns = [gradients(ours, tensors, weights) for _ in range(2)]
    # The reference gets the rounded gradient of o, as the kernel does.
    weights[0] = weights[0].to(q.dtype)
    expected = gradients(
        lambda *t: select(*reference.attention(*t, mask, scale)),
        [t.detach().double().requires_grad_() for t in tensors], weights)
    sizes = reference.gradient_sizes(q, k, v, weights[0], mask, scale,
                                     weights[1] if with_lse else None)
    for got in turns:
        for g, e, tensor, size in zip(got, expected, tensors, sizes):
            assert g.dtype == tensor.dtype and g.shape == tensor.shape
            assert g.isfinite().all()
            assert reference.relative_error(g, e, size) <= (
                reference.GRADIENT_TOLERANCE[q.dtype])
    for first, second in zip(*turns):
        assert first.stride() == second.stride()
    return turns[1]


def cuda(*sizes, dtype=BF16, **options):
    return make(*sizes, device="cuda", dtype=dtype, **options)


@pytest.fixture(params=("flash", "kernel", "composition"))
def way(request, monkeypatch):
    """Goes one of the ways, or fails."""
    monkeypatch.setattr(_torch_backward, "ways",
                        lambda deterministic, fast: (request.param,))
    _forward.paths.clear()  # which way such calls went before
    if request.param != "composition":
        def refused(*arguments):
            pytest.fail(f"expects {request.param} to take this")

        monkeypatch.setattr(_torch_backward, "composed", refused)
    yield request.param
    _forward.paths.clear()


@pytest.mark.parametrize("mask, queries, keys", (
    ("none", 130, 70), ("causal", 150, 150),
    ("causal_bottom_right", 70, 150), ("causal_bottom_right", 150, 70),
    ("window<40, 0>", 150, 150), ("window<5, 9>", 70, 150),
    ("window<30, 5>", 150, 70), ("none", 1, 150), ("window<40, 0>", 1, 150),
    ("causal_bottom_right", 1, 150), ("prefix<50>", 150, 150),
    ("prefix<90>", 70, 150), ("prefix<20>", 150, 70)))
@pytest.mark.parametrize("dtype", (BF16, F16))
def test_masks(way, mask, queries, keys, dtype):
    check(*cuda(queries, keys, kv_heads=2, d=64, dtype=dtype), mask)


@pytest.mark.parametrize("mask, queries, keys", (
    ("causal", 70, 150), ("causal", 150, 70), ("window<200, 90>", 150, 70)))
def test_masks_that_flash_attention_has_not(mask, queries, keys):
    q, k, v = cuda(queries, keys, kv_heads=2, d=64)
    assert not _torch_backward.flash_takes(q, k, v, mask, 0.125)
    check(q, k, v, mask)


@pytest.mark.parametrize("d, e", ((8, 8), (33, 33), (80, 80), (128, 128),
                                  (192, 128), (64, 100), (256, 256),
                                  (320, 264), (512, 512)))
def test_head_dimensions(way, d, e):
    if way == "flash" and max(d, e) > 256:
        pytest.skip("FlashAttention takes head dimensions up to 256")
    if way == "kernel" and not attn.plan(
            machine=attn.device(torch.cuda.current_device()).machine, batch=2,
            heads=4, queries=100, head_dim=d, head_dim_v=e,
            direction="backward").built:
        pytest.skip("expects a kernel for head dimensions that wide")
    check(*cuda(100, 100, d=d, e=e), "causal")


@pytest.mark.parametrize("heads, kv_heads", ((4, 4), (8, 1), (6, 2)))
def test_heads_that_share_add_up(way, heads, kv_heads):
    check(*cuda(100, 80, heads=heads, kv_heads=kv_heads, d=32))


def test_memory_orders(way):
    def of(*shape):
        return torch.randn(shape, device="cuda").to(BF16)

    shifted = of(2 * 4 * 70 * 64 + 1)[1:].view(2, 4, 70, 64)
    packed = of(2, 70, 3, 4, 64)
    for q, k, v in (
            [of(2, 70, 4, 64).transpose(1, 2) for _ in range(3)],
            [packed[:, :, i].transpose(1, 2) for i in range(3)],
            [of(2, 4, 70, 64), of(2, 1, 70, 64).expand(2, 4, 70, 64),
             of(4, 70, 64).expand(2, 4, 70, 64)],
            [shifted, of(2, 4, 70, 67)[..., :64], of(70, 2, 4, 64)
             .permute(1, 2, 0, 3)],
            [of(1, 4, 1, 64), of(1, 4, 9, 64), of(1, 4, 9, 64)]):
        got = check(q, k, v)
        for g, tensor in zip(got, (q, k, v)):
            assert g.stride() == _launch.result_strides(tensor.shape,
                                                        tensor.stride())


def test_our_kernels_for_hopper_go_first(monkeypatch):
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("expects a GPU of compute capability 9.0")
    monkeypatch.setattr(_torch_backward, "_flash", lambda *_: pytest.fail(
        "expects attn to take this"))
    _forward.paths.clear()
    for d in (64, 128):
        check(*cuda(1000, 1000, kv_heads=2, d=d), "causal")


def test_scales(way):
    check(*cuda(70, 70, d=64), "causal", 0.3)


@pytest.mark.parametrize("scale", (0.0, -0.3))
def test_scales_that_flash_attention_has_not(scale):
    check(*cuda(70, 70, d=64), "causal", scale)


@pytest.mark.parametrize("way", ("kernel", "composition"), indirect=True)
def test_gradient_of_the_lse(way):
    check(*cuda(100, 60, kv_heads=2, d=64), "none", with_lse=True)
    check(*cuda(100, 60, kv_heads=2, d=64), "causal_bottom_right",
          with_lse=True)


def test_rows_that_see_no_key(way):
    dq, _, _ = check(*cuda(100, 30, d=64), "causal_bottom_right")
    assert not dq[:, :, :70].any()


def test_empty_tensors():
    for queries, keys in ((0, 5), (5, 0)):
        tensors = cuda(queries, keys, d=32, grad=True)
        attention(*tensors).sum().backward()
        assert not any(t.grad.any() for t in tensors)


@pytest.mark.parametrize("way", ("composition",), indirect=True)
def test_tiles_of_the_composition(way, monkeypatch):
    monkeypatch.setattr(_torch_backward, "TILE_BYTES", 1 << 18)
    check(*cuda(500, 300, kv_heads=2, d=64), "causal")


@pytest.mark.parametrize("way", ("kernel", "composition"), indirect=True)
def test_memory_of_long_rows_is_bounded(way):
    """8 heads of 16384 x 16384 scores would take 8 GiB."""
    q, k, v = cuda(16384, batch=1, heads=8, d=64, grad=True)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    o, lse = attention(q, k, v, causal=True, return_lse=True)
    (o.float().mean() + lse.mean()).backward()
    peak = torch.cuda.max_memory_allocated() - before
    assert peak < 8 * _torch_backward.TILE_BYTES
    assert all(t.grad.isfinite().all() for t in (q, k, v))


def test_deterministic_algorithms(way):
    q, k, v = cuda(300, 300, d=64, grad=True)
    torch.use_deterministic_algorithms(True)
    try:
        first, second = (torch.autograd.grad(
            attention(q, k, v, causal=True).sum(), (q, k, v))
            for _ in range(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(f, s) for f, s in zip(first, second))


def test_what_was_saved_must_not_change():
    q, k, v = cuda(50, d=64, grad=True)
    q = q * 1
    o = attention(q, k, v)
    q.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        o.sum().backward()


def test_checkpoint_and_hooks():
    from torch.utils.checkpoint import checkpoint
    tensors = cuda(90, d=64, grad=True)
    weights = [torch.randn(2, 4, 90, 64, device="cuda")]

    def plain(q, k, v):
        return attention(q * 1.5, k, v, causal=True)

    def recomputed(q, k, v):
        return checkpoint(plain, q, k, v, use_reentrant=False)

    def offloaded(q, k, v):
        with torch.autograd.graph.save_on_cpu():
            return plain(q, k, v)

    first = gradients(plain, tensors, weights)
    for function in (recomputed, offloaded):
        for g, e in zip(gradients(function, tensors, weights), first):
            assert reference.relative_error(g, e) < 1e-2
            assert math.isfinite(g.norm().item())


@pytest.mark.skipif(torch.cuda.is_available() and
                    torch.cuda.get_device_capability()[0] != 9,
                    reason="weights are kept on Hopper")
@pytest.mark.parametrize("mask, queries, keys", (
    ("none", 130, 300), ("causal", 400, 400), ("causal_bottom_right", 70, 333),
    ("causal_bottom_right", 300, 20), ("window<40, 9>", 700, 700)))
@pytest.mark.parametrize("dtype", (BF16, F16))
@pytest.mark.parametrize("d", (64, 512))
def test_weights_that_are_kept(mask, queries, keys, dtype, d):
    check(*cuda(queries, keys, kv_heads=2, d=d, dtype=dtype), mask,
          with_lse=True, keep=True)
    check(*cuda(queries, keys, kv_heads=2, d=d, dtype=dtype), mask,
          scale=-0.3 if d == 64 else None, keep=True)


@pytest.mark.parametrize("heads, kv_heads, d", [(4, 4, 64), (4, 2, 128)])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_gradients_of_listed_blocks(heads, kv_heads, d, mask):
    """Of random blocks, of which the mask cuts the partial ones."""
    queries, keys, block = 500, 700, 128
    q, k, v = (cuda(2, h, rows, d).detach().requires_grad_()
               for h, rows in ((heads, queries), (kv_heads, keys),
                               (kv_heads, keys)))
    states = torch.randint(3, (1, heads, 4, 6), device="cuda")
    lists = attn.BlockMask.from_mask(states, block_size=block)
    cells = states.repeat_interleave(block, 2)[..., :queries, :]
    cells = cells.repeat_interleave(block, 3)[..., :keys]
    seen = (cells == 2) | (cells == 1) & reference.visible(
        mask, queries, keys, "cuda")
    do = torch.randn_like(q)
    got = torch.autograd.grad(
        attention(q, k, v, mask=mask, enable_gqa=True, block_mask=lists),
        (q, k, v), do)
    exact = [t.detach().double().requires_grad_() for t in (q, k, v)]
    wide = [exact[0], *(t.repeat_interleave(heads // kv_heads, 1)
                        for t in exact[1:])]
    scores = (wide[0] @ wide[1].mT / math.sqrt(d)).masked_fill(
        ~seen, -torch.inf)
    rows = seen.any(-1, keepdim=True)
    weights = torch.where(rows, scores.masked_fill(~rows, 0).softmax(-1), 0)
    expected = torch.autograd.grad(weights @ wide[2], exact, do.double())
    for one, other in zip(got, expected):
        assert reference.relative_error(one, other, 0) <= (
            2 * reference.GRADIENT_TOLERANCE[q.dtype])
    assert lists.transpose() is lists.transpose()


def test_listed_blocks_under_autocast():
    q = cuda(1, 1, 128, 64)
    lists = attn.BlockMask.from_mask(torch.ones(1, 1, 1, 1, dtype=torch.bool,
                                                device="cuda"))
    with torch.autocast("cuda", torch.float16):
        assert attention(q, q, q, block_mask=lists).dtype == torch.float16
    with pytest.raises(attn.UnsupportedError, match="of all blocks only"):
        attention(q, q, q, block_mask=lists, keep_weights=True)
