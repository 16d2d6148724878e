"""Every form that is raised computes what it says, compared with fp64.

The texts are those of the lit tests of the pass; here they run.  The stock
mlir-opt with the plugin raises them to the same module.
"""

import numpy as np
import pytest

from running import (TYPES, attention, band, case, command,
                     raised_by_stock_tool, run)

#: Error that may be left, of numbers of about 1.
LIMITS = {"f16": 2e-3, "bf16": 2e-2, "f32": 2e-5}


def heads_last(x):
    """[batch, rows, heads, d] as [batch, heads, rows, d], and back."""
    return np.swapaxes(x, 1, 2)


def tm_tensor(q, k, v):
    one = [x[:, None] for x in (q, k, v)]
    return [attention(*one)[0][:, 0]]


def tm_tensor_heads(q, k, v):
    return [attention(*map(heads_last, (q, k, v)), band(100, 100, last=0))[0]]


def composite(q, k, v):
    return attention(q, k, v, band(30, 41, last=11), scale=0.25)


def tenstorrent(q):
    one = q[:, None]
    return [attention(one, one, one, band(50, 50, last=0), scale=1)[0][:, 0]]


def custom_call(q):
    return [attention(q, q, q, band(50, 50, -16, 0))[0],
            attention(q, q, q, band(50, 50, -1, 0))[0]]


def iree(q, k, v):
    # A loop of batch entries, one of groups.
    return [attention(q, k.transpose(1, 0, 2)[:, None],
                      v[:, None], scale=0.5)[0]]


def iree_old(q):
    return [attention(q, q, q, scale=0.125)[0]]


def onnx(q, k, v):
    def split(x, heads):
        return heads_last(x.reshape(*x.shape[:2], heads, -1))
    o = attention(split(q, 9), split(k, 3), split(v, 3), band(4, 6, -2, 0))[0]
    return [heads_last(o).reshape(2, 4, -1)]


def onnx_past(q, k, v, past_k, past_v):
    k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    return [attention(q, k, v, band(4, 7, last=3))[0], k, v]


def torch(q, k, v):
    return [attention(q, k, v)[0]]


def plain(q, k, v):
    one = [x[None, None] for x in (q, k, v)]
    return [attention(*one, band(100, 100, last=0))[0][0, 0]]


def stablehlo(q, k, v):
    # [batch, rows, heads, group, d]
    o = attention(heads_last(q.reshape(2, 50, 8, 64)), heads_last(k),
                  heads_last(v), band(50, 50, last=0), scale=0.25)[0]
    return [heads_last(o).reshape(q.shape)]


def finite(q, k, v):
    one = [x[:, None] for x in (q, k, v)]
    return [attention(*one, band(2, 3, last=1), scale=1)[0][:, 0]]


def cut(q, k):
    one = [x[:, None] for x in (q, k, k)]
    return [attention(*one, band(4, 6, last=1))[0][:, 0]]


CASES = [
    (tm_tensor, "named", "f16", (8, 100, 64), (8, 90, 64), (8, 90, 32)),
    (tm_tensor_heads, "named", "f16", (2, 100, 8, 64), (2, 100, 2, 64),
     (2, 100, 2, 64)),
    (composite, "named", "f16", (1, 8, 30, 64), (1, 2, 41, 64),
     (1, 2, 41, 64)),
    (tenstorrent, "named", "bf16", (2, 50, 64)),
    (custom_call, "named", "bf16", (1, 4, 50, 64)),
    (iree, "named", "f32", (8, 4, 1, 128), (37, 8, 128), (8, 37, 64)),
    (iree_old, "named", "f16", (2, 10, 64, 64)),
    (onnx, "named", "f32", (2, 4, 72), (2, 6, 24), (2, 6, 30)),
    (onnx_past, "named", "f32", *3 * [(2, 3, 4, 8)], *2 * [(2, 3, 3, 8)]),
    (torch, "softmax", "f32", (2, 8, 100, 64), *2 * [(2, 8, 120, 64)]),
    (plain, "softmax", "f16", *3 * [(100, 64)]),
    (stablehlo, "softmax", "f32", (2, 50, 2, 4, 64), *2 * [(2, 50, 2, 64)]),
    (finite, "softmax", "f16", (5, 2, 16), *2 * [(5, 3, 16)]),
    (cut, "masks", "f16", (1, 4, 8), (1, 6, 8)),
]


@pytest.mark.parametrize("oracle, file, element, shapes",
                         [(c[0], c[1], c[2], c[3:]) for c in CASES],
                         ids=[c[0].__name__ for c in CASES])
def test_form(oracle, file, element, shapes, tmp_path):
    raised, said = command(
        "attn-opt", "-", "--allow-unregistered-dialect",
        "-attn-raise=linalg=1", "-canonicalize",
        text=case(f"{file}.mlir", oracle.__name__))
    assert "becomes an attn.forward" in said
    stock = raised_by_stock_tool(case(f"{file}.mlir", oracle.__name__))
    if stock is not None:
        assert stock == (raised, said)
    generator = np.random.default_rng(7)
    arrays = [generator.standard_normal(shape).astype(TYPES[element])
              for shape in shapes]
    results = run(raised, oracle.__name__, arrays, tmp_path)
    expected = oracle(*arrays)
    assert len(results) == len(expected)
    for result, reference in zip(results, expected):
        reference = np.asarray(reference, np.float64)
        assert result.shape == reference.shape
        # Of rows that see few keys, numbers are as large as those of V.
        error = np.abs(result - reference) / np.maximum(np.abs(reference), 1)
        assert error.max() <= LIMITS[element]
