"""Scratch that is told without a GPU is what a binding needs."""

import random

import pytest

from attn import _backward, _bindings, _launch
from attn._arrays import Array
from attn._dlpack import row_major
from attn._errors import UnsupportedError
from attn._ragged import Options

#: With what the driver says of a GPU that runs their kernels.
MACHINES = {"h100_sxm": "NVIDIA H100 80GB HBM3,90,132,80",
            "a100_80g": "NVIDIA A100-SXM4-80GB,80,108,80"}


def described(sizes, dtype):
    return Array(1 << 40, dtype, sizes, row_major(sizes), 0, None)


def shapes(rng, rows_first):
    """Sizes of q, k, v, o and lse; tokens first, or batch and heads."""
    kv_heads, group = rng.choice((1, 2)), rng.choice((1, 4, 8))
    d = rng.choice((64, 128))
    queries, keys = (int(2 ** rng.uniform(0, 13)) for _ in range(2))
    if rows_first:
        q, k = (queries, kv_heads * group, d), (keys, kv_heads, d)
        return q, k, k, q, q[1::-1]
    batch = rng.choice((1, 3, 8))
    if rng.random() < .4:  # a decode, whose keys are dealt out
        batch, queries, keys = 1, 1, rng.randint(4096, 9999)
        kv_heads, group = 8, 1
    q = (batch, kv_heads * group, queries, d)
    k = (batch, kv_heads, keys, d)
    return q, k, k, q, q[:3]


def problem(rng, direction, ragged):
    """Arrays by their names."""
    dtype = rng.choice(("bf16", "f16"))
    q, k, v, o, lse = shapes(rng, ragged)
    named = {name: described(sizes, dtype) for name, sizes in (
        ("q", q), ("k", k), ("v", v), ("o", o))}
    rows = described(lse, "f32")
    if direction == "forward":
        words = rng.choice((0, 1, 2))
        return {**named, **dict.fromkeys(("lse", "lse_low")[:words], rows)}
    return {"do": named["o"], **named, "lse": rows, "lse_low": rows,
            **({"dlse": rows} if rng.random() < .5 else {}),
            "dq": named["q"], "dk": named["k"], "dv": named["v"]}


def compare(told, bind, seen):
    """Where there is a kernel both are the same."""
    try:
        count = told()
    except UnsupportedError:
        return
    assert count == bind().scratch_bytes
    seen.append(count)


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("direction", ("forward", "backward"))
def test_dense_and_listed(gpu, direction, machine, monkeypatch):
    monkeypatch.setenv("ATTN_FAKE_CUDA_GPU", MACHINES[machine])
    seen = []
    for seed in range(14):
        rng = random.Random(seed)
        named = problem(rng, direction, ragged=False)
        options = {}
        if machine == "h100_sxm" and rng.random() < .3:
            options["block_size"] = (128, 128)
            counts = [-(-named[name].sizes[2] // 128) for name in "qk"]
            for name, (rows, columns) in (("partial", counts),
                                          ("transposed_partial",
                                           counts[::-1])):
                if direction == "backward" or name == "partial":
                    named[f"{name}_counts"] = described((1, 1, rows), "i32")
                    named[f"{name}_blocks"] = described(
                        (1, 1, rows, columns), "i32")
        places = (_launch.NAMES if direction == "forward" else
                  (*_backward.INPUTS, *_backward.GRADIENTS))
        mask = rng.choice(("none", "causal_bottom_right", "window<100, 0>"))
        about = (direction, named, places, mask, None, machine, None,
                 None, *([rng.choice((0, 1))] * (direction != "forward")))
        compare(lambda: _bindings.scratch_bytes_of(*about, **options),
                lambda: _bindings.bind_attention(*about, **options), seen)
    assert len(seen) > 7 and any(seen)
    assert direction == "backward" or not all(seen)


@pytest.mark.long
@pytest.mark.parametrize("direction", ("forward", "backward"))
def test_ragged(gpu, direction):
    seen = []
    for seed in range(8):
        rng = random.Random(100 + seed)
        named = problem(rng, direction, ragged=True)
        offsets = [(name, described((rng.choice((2, 5)),), "i32"))
                   for name in ("cu_q", "cu_k")]
        offsets[1] = ("cu_k", offsets[0][1])
        options = Options(rng.choice(("none", "causal_bottom_right")), None,
                          "h100_sxm", None, None, (
                              named["q"].sizes[0], named["k"].sizes[0]))
        about = (direction, named, offsets, options, (None, ()),
                 *([0] * (direction != "forward")))
        compare(lambda: _bindings.scratch_bytes_of_ragged(*about),
                lambda: _bindings.bind_ragged(*about), seen)
    assert len(seen) > 4 and any(seen)
    assert direction == "backward" or not all(seen)
