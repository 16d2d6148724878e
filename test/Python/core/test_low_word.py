"""lse in two words: forward gives both, backward takes them."""

import sys

import attn
import pytest
import stub_torch
from fake_arrays import Dlpack
from stub_torch import Tensor


@pytest.fixture
def torch(gpu, monkeypatch):
    module = stub_torch.Torch()
    module.grad = False
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def inputs(queries=100, keys=301):
    return (Tensor(2, 8, queries, 64), Tensor(2, 2, keys, 64),
            Tensor(2, 2, keys, 48))


def test_forward_and_backward(torch, gpu, calls):
    for _ in range(3):
        q, k, v = inputs()
        o, lse, low = attn.forward(q, k, v, causal=True, return_lse_low=True)
        assert lse.shape == low.shape == (2, 8, 100)
        assert lse.stride() == low.stride() == (800, 100, 1)
        assert (o.dtype, low.dtype) == (torch.bfloat16, torch.float32)
        dq, dk, dv = attn.backward(o, q, k, v, o, lse, lse_low=low,
                                   causal=True)
        assert [t.shape for t in (dq, dk, dv)] == [t.shape for t in (q, k, v)]
    assert calls["attn_forward_bind"] == calls["attn_backward_bind"] == 1
    launched = gpu.launches()
    assert launched and all("_lse_low" in each["kernel"] for each in launched)
    # Both words, or one, are kinds of their own.
    attn.forward(q, k, v, causal=True, return_lse=True)
    attn.backward(o, q, k, v, o, lse, causal=True)
    later = gpu.launches()[len(launched):]
    assert later and not any("_low" in each["kernel"] for each in later)
    assert calls["attn_forward_bind"] == calls["attn_backward_bind"] == 2


def test_places_of_the_callers(gpu):
    q, k, v = (Dlpack(2, 8, 100, 64) for _ in range(3))
    o = Dlpack(2, 8, 100, 64)
    lse, low = (Dlpack(2, 8, 100, dtype="f32") for _ in range(2))
    for arguments in ({"return_lse_low": True}, {}):
        assert attn.forward(q, k, v, out=o, lse=lse, lse_low=low,
                            **arguments) == (o, lse, low)
    assert all("_lse_low" in each["kernel"] for each in gpu.launches())
    with pytest.raises(ValueError, match="lse_low in memory of its own"):
        attn.forward(q, k, v, out=o, lse=lse, lse_low=lse)


@pytest.mark.long
def test_kept_weights(torch, gpu):
    q, k, v = inputs()
    o, lse, low, weights, rows = attn.forward(
        q, k, v, keep_weights=True, return_lse_low=True)
    assert low.shape == lse.shape and weights.shape == (2, 8, 100, 301)
    attn.backward(o, q, k, v, o, lse, lse_low=low, weights=weights,
                  block_rows=rows)
    launched = gpu.launches()
    assert any("spill_backward" in each["kernel"] for each in launched)
    assert all("_lse_low" in each["kernel"] and "_kept" in each["kernel"]
               for each in launched)


ROWS = (2, 8, 100)
SHAPE = r"expects lse_low of shape \[batch, heads, queries\], but got "
WRONG = [
    (Dlpack(2, 8, 99, dtype="f32"), ValueError,
     SHAPE + r".*q \[2, 8, 100, 64\].*lse \[2, 8, 100\], "
     r"lse_low \[2, 8, 99\]"),
    (Dlpack(2, 4, 100, dtype="f32"), ValueError, SHAPE),
    (Dlpack(*ROWS, 1, dtype="f32"), ValueError,
     r"lse_low of rank 3, but got .*lse_low \[2, 8, 100, 1\].*; shapes are"),
    (Dlpack(*ROWS), TypeError, "expects lse_low of f32, but got bf16"),
    (Dlpack(*ROWS, dtype="f64"), TypeError,
     "lse_low: expects elements of .*, but got float64"),
    (Dlpack(*ROWS, dtype="f32", device=1), ValueError,
     "all arrays on one GPU, but got .*lse on GPU 0, lse_low on GPU 1"),
    (Dlpack(*ROWS, dtype="f32", device_type=1), ValueError,
     "lse_low: expects an array in the memory of a CUDA GPU, but got a "
     "fake_arrays.Dlpack on the CPU"),
    (Dlpack(*ROWS, dtype="f32", strides=(1600, 200, 2)), ValueError,
     "lse_low: expects an innermost stride of 1"),
    (True, TypeError, "lse_low: expects an array on a GPU .*, but got bool")]


@pytest.mark.parametrize("low, kind, text", WRONG)
def test_wrong_arrays(gpu, low, kind, text):
    q, k, v, o, do, dq, dk, dv = (Dlpack(2, 8, 100, 64) for _ in range(8))
    lse = Dlpack(*ROWS, dtype="f32")
    with pytest.raises(kind, match=text):
        attn.forward(q, k, v, out=o, lse=lse, lse_low=low)
    with pytest.raises(kind, match=text):
        attn.backward(do, q, k, v, o, lse, lse_low=low, dq=dq, dk=dk, dv=dv)
    with pytest.raises(kind, match=text):
        attn.backward_scratch_bytes(do, q, k, v, o, lse, lse_low=low)
    assert gpu.launches() == []


def test_wrong_places(gpu):
    q, k, v, o = (Dlpack(2, 8, 100, 64) for _ in range(4))
    lse, low = (Dlpack(*ROWS, dtype="f32") for _ in range(2))

    def fails(kind, text, **options):
        with pytest.raises(kind, match=text):
            attn.forward(q, k, v, out=o, **options)

    fails(ValueError, "lse_low in memory of its own, but it overlaps lse",
          lse=lse, lse_low=lse)
    fails(ValueError, "lse_low: expects a place of its own for every element",
          lse=lse, lse_low=Dlpack(*ROWS, dtype="f32", strides=(0, 100, 1)))
    # Of a library that attn cannot allocate for both words need a place.
    missing = r" expects an array of shape \[2, 8, 100\], but got None"
    fails(TypeError, "^lse_low" + missing, lse=lse, return_lse_low=True)
    fails(TypeError, "^lse" + missing, lse_low=low)
    dk, dv = (Dlpack(2, 8, 100, 64) for _ in range(2))
    dq = Dlpack(2, 8, 100, 64, address=low.address)
    with pytest.raises(ValueError, match="dq in memory of its own, but it "
                       "overlaps lse_low"):
        attn.backward(o, q, k, v, o, lse, lse_low=low, dq=dq, dk=dk, dv=dv)
    assert gpu.launches() == []


def test_tensors_that_want_gradients(torch, gpu):
    q, k, v = inputs()
    o, lse, low = attn.forward(q, k, v, return_lse_low=True)
    torch.grad, low.requires_grad = True, True
    with pytest.raises(ValueError, match="no gradient"):
        attn.backward(o, q, k, v, o, lse, lse_low=low)
    with pytest.raises(ValueError, match="no gradient"):
        attn.forward(q, k, v, lse=lse, lse_low=low)


def test_scratch(gpu):
    q, k, v = (Dlpack(2, 8, 100, 64) for _ in range(3))
    lse = Dlpack(2, 8, 100, dtype="f32")
    assert attn.scratch_bytes(q, k, v, return_lse_low=True) >= 0
    one, two = (attn.backward_scratch_bytes(
        q, q, k, v, q, lse, lse_low=low, dq=q, dk=k, dv=v)
        for low in (None, lse))
    assert two >= one > 0


def test_plans():
    one, two = (attn.plan(batch=2, heads=8, queries=1024, head_dim=64,
                          lse=True, lse_low=low) for low in (False, True))
    assert (one.problem.lse_low, two.problem.lse_low) == (False, True)
    more = two.best.bytes["l2"] - one.best.bytes["l2"]
    assert more == 4 * 2 * 8 * 1024
    assert "in two words" in attn.explain(
        batch=2, heads=8, queries=1024, head_dim=64, direction="backward",
        lse_low=True)
    with pytest.raises(ValueError, match="the LSE beside its low word"):
        attn.plan(batch=2, heads=8, queries=1024, head_dim=64, lse_low=True)
    with pytest.raises(ValueError, match="the LSE beside its low word"):
        attn.Problem(heads=8, head_dim=64, lse_low=True).text
    text = attn.Problem(heads=8, head_dim=64, direction="backward",
                        lse_low=True).text
    assert "%lse lse_low(%lse_low : memref<?x8x?xf32" in text
