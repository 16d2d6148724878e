"""attn.forward on CuPy's arrays, on a GPU."""

import os

import numpy as np
import pytest

import attn

cupy = pytest.importorskip("cupy")


def has_gpu():
    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


pytestmark = [
    pytest.mark.skipif("ATTN_FAKE_CUDA" in os.environ,
                       reason="this process has the driver that runs nothing"),
    pytest.mark.skipif(not has_gpu(), reason="needs a GPU of CUDA")]


def reference(q, k, v, causal=False):
    q, k, v = (cupy.asnumpy(x).astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        seen = np.tril(np.ones(scores.shape[-2:], bool))
        scores = np.where(seen, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(-1, keepdims=True)
    return weights @ v / total, (largest + np.log(total))[..., 0]


def arrays():
    random = np.random.default_rng()
    return [cupy.asarray(random.standard_normal(
        (2, heads, 200, 80)).astype(np.float16)) for heads in (8, 2, 2)]


def error(got, expected):
    difference = cupy.asnumpy(got).astype(np.float64) - expected
    return np.linalg.norm(difference) / np.linalg.norm(expected)


def test_results_are_arrays_of_cupy():
    q, k, v = arrays()
    o, lse = attn.forward(q, k, v, causal=True, return_lse=True)
    expected, expected_lse = reference(q, k, v, causal=True)
    assert isinstance(o, cupy.ndarray) and isinstance(lse, cupy.ndarray)
    assert error(o, expected) < 6e-4
    assert np.abs(cupy.asnumpy(lse) - expected_lse).max() < 1e-4


def test_on_the_current_stream():
    q, k, v = arrays()
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        o = attn.forward(q, k, v)
        stream.synchronize()
    assert error(o, reference(q, k, v)[0]) < 6e-4


def test_a_transposed_view_and_memory_of_the_caller():
    q, k, v = arrays()
    rows_first = cupy.ascontiguousarray(q.transpose(0, 2, 1, 3))
    view = rows_first.transpose(0, 2, 1, 3)
    out = cupy.full(q.shape, np.nan, np.float16)
    assert attn.forward(view, k, v, out=out) is out
    cupy.cuda.Device().synchronize()
    assert error(out, reference(q, k, v)[0]) < 6e-4


def test_wrong_types():
    q, k, v = arrays()
    with pytest.raises(TypeError, match="but got float64"):
        attn.forward(q.astype(np.float64), k, v)
