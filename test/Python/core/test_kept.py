"""Weights that forward keeps and backward takes, on a stand-in for PyTorch."""

import sys

import attn
import pytest
import stub_torch
from attn import _launch
from fake_arrays import Dlpack
from stub_torch import Tensor


@pytest.fixture
def torch(gpu, monkeypatch):
    module = stub_torch.Torch()
    module.grad = False
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def inputs(batch=2, heads=8, kv_heads=2, queries=100, keys=301, d=64, e=48,
           **more):
    return (Tensor(batch, heads, queries, d, **more),
            Tensor(batch, kv_heads, keys, d, **more),
            Tensor(batch, kv_heads, keys, e, **more))


def test_forward(torch, gpu):
    q, k, v = inputs()
    o, lse, weights, rows = attn.forward(q, k, v, causal=True,
                                         keep_weights=True)
    assert (o.shape, lse.shape) == ((2, 8, 100, 48), (2, 8, 100))
    assert weights.shape == (2, 8, 100, 301)
    assert weights.stride() == (8 * 100 * 304, 100 * 304, 304, 1)
    assert rows.shape == (2, 8, 4, 100)
    assert (weights.dtype, rows.dtype) == (torch.bfloat16, torch.float32)
    launched = gpu.launches()
    assert launched and all("score_spill" in each["kernel"]
                            and "_kept" in each["kernel"]
                            for each in launched)


def test_backward(torch, gpu):
    q, k, v = inputs()
    o, lse, weights, rows = attn.forward(q, k, v, keep_weights=True)
    before = len(gpu.launches())
    dq, dk, dv = attn.backward(o, q, k, v, o, lse, weights=weights,
                               block_rows=rows)
    assert [t.shape for t in (dq, dk, dv)] == [t.shape for t in (q, k, v)]
    launched = gpu.launches()[before:]
    assert launched and all("spill_backward" in each["kernel"]
                            and "_kept" in each["kernel"]
                            for each in launched)


def test_later_calls_of_a_kind_bind_nothing(torch, gpu, calls):
    for _ in range(3):
        q, k, v = inputs()
        o, lse, weights, rows = attn.forward(q, k, v, keep_weights=True)
        attn.backward(o, q, k, v, o, lse, weights=weights, block_rows=rows)
    assert calls["attn_forward_kept_bind"] == 1
    assert calls["attn_backward_kept_bind"] == 1
    assert calls["attn_launch"] + calls["attn_launch_in_scratch"] == 6
    assert len(_launch.launches) == 2


@pytest.mark.long
def test_plain_calls_keep_nothing(torch, gpu):
    q, k, v = inputs(d=512, e=512)
    o, lse = attn.forward(q, k, v, return_lse=True)
    attn.backward(o, q, k, v, o, lse)
    assert not any("_kept" in each["kernel"] for each in gpu.launches())


def test_empty(torch, gpu):
    q, k, v = inputs(queries=0)
    *_, weights, rows = attn.forward(q, k, v, keep_weights=True)
    assert weights.shape == (2, 8, 0, 301) and rows.shape == (2, 8, 4, 0)
    q, k, v = inputs(keys=0)
    *_, weights, rows = attn.forward(q, k, v, keep_weights=True)
    assert weights.shape == (2, 8, 100, 0) and rows.shape == (2, 8, 0, 100)


def test_one_of_two(torch, gpu):
    q, k, v = inputs()
    o, lse, weights, _ = attn.forward(q, k, v, keep_weights=True)
    with pytest.raises(ValueError, match="weights and block_rows together"):
        attn.backward(o, q, k, v, o, lse, weights=weights)


def test_rows_that_are_not_aligned(torch, gpu):
    q, k, v = inputs()
    o, lse, _, rows = attn.forward(q, k, v, keep_weights=True)
    dense = Tensor(2, 8, 100, 301)
    with pytest.raises(attn.UnsupportedError, match="rows aligned to 16"):
        attn.backward(o, q, k, v, o, lse, weights=dense, block_rows=rows)


@pytest.mark.parametrize("change, kind, text", [
    ({"rows": Tensor(2, 8, 2, 100, dtype=stub_torch.float32)}, ValueError,
     r"block_rows of shape \[batch, heads, 2 for every 256 keys, queries"),
    ({"rows": Tensor(2, 8, 4, 100)}, TypeError, "block_rows of f32"),
    ({"weights": Tensor(2, 8, 100, 304)}, ValueError,
     r"weights of shape \[batch, heads, queries, keys\]"),
    ({"weights": Tensor(2, 8, 100)}, ValueError, "weights of rank 4"),
    ({"weights": Tensor(2, 8, 100, 301, dtype=stub_torch.float16)},
     TypeError, "one element type")])
def test_wrong(torch, gpu, change, kind, text):
    q, k, v = inputs()
    o, lse, weights, rows = attn.forward(q, k, v, keep_weights=True)
    given = {"weights": weights, "rows": rows, **change}
    with pytest.raises(kind, match=text):
        attn.backward(o, q, k, v, o, lse, weights=given["weights"],
                      block_rows=given["rows"])


def test_who_keeps_none(torch, gpu):
    q, k, v = inputs(dtype=stub_torch.float32)
    with pytest.raises(ValueError, match="bf16 or f16 to keep weights"):
        attn.forward(q, k, v, keep_weights=True)
    q, k, v = inputs()
    with pytest.raises(attn.UnsupportedError, match="keeps no weights with "
                       "mma_sync; score_spill does forward"):
        attn.forward(q, k, v, keep_weights=True, machine="a100_80g")
    with pytest.raises(ValueError, match="flash keeps no weights"):
        attn.forward(q, k, v, keep_weights=True, schedule="flash")


def test_arrays_that_cannot_be_made(gpu):
    q = Dlpack(1, 1, 8, 64)
    with pytest.raises(TypeError, match="out expects an array"):
        attn.forward(q, q, q, keep_weights=True)


def test_plan():
    for direction, schedule in (("forward", "score_spill"),
                                ("backward", "spill_backward")):
        sizes = dict(batch=16, heads=4, queries=1024, head_dim=512,
                     direction=direction, lse=True)
        report = attn.plan(**sizes, keep_weights=True)
        assert report.problem.keeps_weights
        assert {plan.schedule for plan in report.plans} == {schedule}
        assert all(plan.tiles["kept"] == 1 for plan in report.plans)
        assert report.best.kernel == f"{schedule}_wgmma"
        assert not any("kept" in plan.tiles
                       for plan in attn.plan(**sizes).plans)
        assert "kept" in attn.explain(**sizes, keep_weights=True)


def test_problem_text():
    text = attn.Problem(heads=4, head_dim=64, lse=True,
                        keeps_weights=True).text
    assert "%weights: memref<?x4x?x?xbf16" in text
    assert "%block_rows: memref<?x4x?x?xf32" in text
    text = attn.Problem(heads=4, head_dim=64, direction="backward",
                        keeps_weights=True).text
    assert "weights(%weights, %block_rows :" in text
