"""attn.jax.attention_varlen: what is handed to XLA, and gradients.

Without a GPU a reference stands in for XLA's call: attention of all tokens in
fp64 with a mask of sequences, whose rows behind the last sequence are NaN, as
memory that no kernel writes may be.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import attn
from attn import _jax_calls
from attn.jax import GRADIENT_TARGET, TARGET, attention_varlen

H100 = {"machine": "h100_sxm"}
Q, K, V, CU = (jax.ShapeDtypeStruct(shape, kind) for shape, kind in (
    ((300, 6, 64), jnp.bfloat16), ((500, 2, 64), jnp.bfloat16),
    ((500, 2, 128), jnp.bfloat16), ((4,), jnp.int32)))
ARRAYS = (Q, K, V, CU, CU)


def lowered(function, *arguments, target=TARGET):
    """The calls of attn in a program for a GPU: their attributes, and the types
    of operands and results; then the program's results."""
    exported = export.export(
        jax.jit(function), platforms=["cuda"],
        disabled_checks=[export.DisabledSafetyCheck.custom_call(name)
                         for name in (TARGET, GRADIENT_TARGET)])(*arguments)
    found = []
    for line in exported.mlir_module().splitlines():
        if f"custom_call @{target}" not in line:
            continue
        types = [re.findall(r"tensor<([^>]*)>", part) for part in
                 line[line.rindex(" : (") + 4:].split(" -> ")]
        found.append((dict(re.findall(r'(\w+) = "(.*?)"', line)), *types))
    return found, exported.out_avals


def call_of(*arrays, **options):
    return attention_varlen(*arrays, 200, 400, **{**H100, **options})


def loss(*arrays, **options):
    return sum(each.astype(jnp.float32).sum() for each in jax.tree.leaves(
        call_of(*arrays, **options)))


def test_a_call():
    ((said, operands, results),), shapes = lowered(
        lambda *t: call_of(*t, causal=True, softmax_scale=0.25,
                           return_softmax_lse=True), *ARRAYS)
    assert said == {**said, "mask": "causal_bottom_right", "scale": "0.25",
                    "longest": "200, 400", "lse_low": "",
                    "machine": "h100_sxm"}
    assert operands == ["300x6x64xbf16", "500x2x64xbf16", "500x2x128xbf16",
                        "4xi32", "4xi32"]
    assert results == ["300x6x128xbf16", "6x300xf32"]
    assert [(r.shape, r.dtype) for r in shapes] == [
        ((300, 6, 128), jnp.bfloat16), ((6, 300), jnp.float32)]
    o = jax.eval_shape(lambda *t: call_of(*t, window_size=(30, 2)), *ARRAYS)
    assert (o.shape, o.dtype) == ((300, 6, 128), jnp.bfloat16)


def test_a_call_of_the_package_is_the_same():
    found = [lowered(lambda *t: function(*t, 200, 400, causal=True, **H100),
                     *ARRAYS)[0]
             for function in (attn.attention_varlen, attention_varlen)]
    assert found[0] == found[1] and found[0]


def test_8_bits_give_bfloat16():
    q, k, v = (jax.ShapeDtypeStruct(t.shape, jnp.float8_e4m3fn)
               for t in (Q, K, K))
    o = jax.eval_shape(call_of, q, k, v, CU, CU)
    assert (o.shape, o.dtype) == (Q.shape, jnp.bfloat16)
    with pytest.raises(attn.UnsupportedError, match="no gradients for float8"):
        jax.eval_shape(jax.grad(loss), q, k, v, CU, CU)


@pytest.mark.long
@pytest.mark.parametrize("flags, deterministic", (
    ("", ""), ("--xla_gpu_deterministic_ops=true", "true")))
@pytest.mark.parametrize("with_lse", (False, True))
def test_gradients_are_one_call(with_lse, flags, deterministic, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", flags)
    wide = jax.ShapeDtypeStruct(CU.shape, jnp.int64)
    arrays = (Q, K, K, wide, wide)
    ((said, operands, results),), shapes = lowered(jax.grad(
        lambda *t: loss(*t, return_softmax_lse=with_lse,
                        schedule="flash, query = 64"), (0, 1, 2)),
        *arrays, target=GRADIENT_TARGET)
    assert said == {**said, "longest": "200, 400", "lse_low": "true",
                    "deterministic": deterministic, "schedule": ""}
    assert operands == [
        "300x6x64xbf16", "300x6x64xbf16", "500x2x64xbf16", "500x2x64xbf16",
        "300x6x64xbf16", *["6x300xf32"] * (2 + with_lse), "4xi64", "4xi64"]
    *results, workspace = results
    assert results == ["300x6x64xbf16", "500x2x64xbf16", "500x2x64xbf16"]
    assert re.fullmatch(r"\d+xui8", workspace) and said["workspace"] == "true"
    assert [r.shape for r in shapes] == [t.shape for t in arrays[:3]]


def test_vmap_is_a_loop():
    """The call is in it once, with arrays of one entry."""
    many = [jax.ShapeDtypeStruct((3, *t.shape), t.dtype) for t in (Q, CU)]
    arrays = (many[0], K, K, many[1], CU)
    axes = (0, None, None, 0, None)
    for function, target in ((call_of, TARGET),
                             (jax.grad(loss), GRADIENT_TARGET)):
        ((_, operands, _),), (result,) = lowered(
            jax.vmap(function, axes), *arrays, target=target)
        assert operands[-2:] == ["4xi32", "4xi32"]
        assert operands[1] in ("500x2x64xbf16", "300x6x64xbf16")
        assert result.shape == (3, 300, 6, 64)


@pytest.mark.long
def test_shard_map_over_heads():
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    P = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:2]), ("x",))
    options = {} if hasattr(jax, "typeof") else {"check_rep": False}
    heads = P(None, "x")
    function = shard_map(
        jax.grad(lambda *t: loss(*t, return_softmax_lse=True), (0, 1, 2)),
        mesh=mesh, in_specs=(heads,) * 3 + (P(), P()), out_specs=(heads,) * 3,
        **options)
    ((_, operands, _),), shapes = lowered(function, Q, K, K, CU, CU,
                                          target=GRADIENT_TARGET)
    assert operands[1:3] == ["300x3x64xbf16", "500x1x64xbf16"]
    assert [r.shape for r in shapes] == [t.shape for t in (Q, K, K)]


# -- Wrong calls ----------------------------------------------------------------


def of(shape, kind):
    return jax.ShapeDtypeStruct(shape, kind)


@pytest.mark.long
@pytest.mark.parametrize("change, kind, text", (
    ({0: of((1, 300, 6, 64), jnp.bfloat16)}, ValueError, "of rank 3"),
    ({1: of((500, 4, 64), jnp.bfloat16), 2: of((500, 4, 64), jnp.bfloat16)},
     ValueError, "several times as many of q"),
    ({2: of((499, 2, 64), jnp.bfloat16)}, ValueError, "as many tokens"),
    ({1: of((500, 2, 64), jnp.float16)}, TypeError, "one element type"),
    ({3: of((4,), jnp.float32)}, TypeError,
     "cu_seqlens_q: expects int32 or int64, but got float32"),
    ({4: of((4, 1), jnp.int32)}, ValueError,
     r"cu_seqlens_k: expects \[sequences \+ 1\] offsets"),
    ({4: of((0,), jnp.int32)}, ValueError, "cu_seqlens_k: expects"),
    ({4: of((5,), jnp.int32)}, ValueError, "of one shape and type"),
    ({4: of((4,), jnp.int64)}, ValueError, "of one shape and type")))
def test_shapes_and_types(change, kind, text):
    arrays = [change.get(place, array) for place, array in enumerate(ARRAYS)]
    with pytest.raises(kind, match=text):
        jax.eval_shape(call_of, *arrays)


@pytest.mark.parametrize("options, kind, text", (
    ({"softcap": 5.0}, attn.UnsupportedError,
     "softcap: no kernel of ragged sequences is called from JAX with caps"),
    ({"sinks": jnp.ones(6)}, attn.UnsupportedError, "sinks: no kernel"),
    ({"mask_mod": lambda b, h, i, j: i > j}, attn.UnsupportedError,
     "mask_mod: no kernel"),
    ({"score_mod": lambda s, b, h, i, j: s}, attn.UnsupportedError,
     "score_mod: no kernel"),
    ({"alibi_slopes": jnp.ones(6)}, attn.UnsupportedError, "alibi_slopes: no"),
    ({"block_mask": 1}, attn.UnsupportedError, "block_mask: no kernel"),
    ({"seqused_k": jnp.ones(3)}, attn.UnsupportedError, "seqused_k: no kernel"),
    ({"page_table": jnp.ones(3)}, attn.UnsupportedError, "page_table: no"),
    ({"dropout_p": 0.5}, attn.UnsupportedError, "dropout_p: no kernel"),
    ({"out": jnp.ones(3)}, attn.UnsupportedError, "out: no kernel"),
    ({"softness": 1}, TypeError, "unexpected keyword argument 'softness'"),
    ({"window_size": (1, 2, 3)}, ValueError, "window_size: expects"),
    ({"machine": "t4"}, attn.UnsupportedError, "t4")))
def test_options(options, kind, text):
    with pytest.raises(kind, match=text):
        jax.eval_shape(lambda *t: call_of(*t, **options), *ARRAYS)


def test_what_says_nothing_is_taken():
    assert jax.eval_shape(lambda *t: call_of(
        *t, softcap=0.0, sinks=None, dropout_p=0.0), *ARRAYS).shape


def test_longest_and_places():
    for wrong, kind in ((-1, ValueError), (2.5, TypeError)):
        with pytest.raises(kind, match="max_seqlen_k"):
            jax.eval_shape(lambda *t: attention_varlen(*t, 20, wrong), *ARRAYS)
    with pytest.raises(TypeError, match="q: expects a JAX array"):
        call_of(np.ones(Q.shape), *ARRAYS[1:])
    here = [jnp.zeros(t.shape, t.dtype, device=jax.devices("cpu")[0])
            for t in ARRAYS]
    with pytest.raises(ValueError, match="memory of a CUDA GPU"):
        call_of(*here)


# -- Results and gradients, where a reference stands in for the call ------------


def visible(cu_q, cu_k, tokens, keys, mask):
    """[tokens, keys] of bool."""
    i, j = jnp.arange(tokens)[:, None], jnp.arange(keys)[None, :]
    of_q, of_k = (jnp.searchsorted(cu, rows, side="right") - 1
                  for cu, rows in ((cu_q, i), (cu_k, j)))
    last = len(cu_q) - 1
    seen = (of_q == of_k) & (of_q < last)
    n = jnp.minimum(of_q, last - 1)
    diagonal = i - cu_q[n + 1] + cu_k[n + 1]
    if mask == "causal_bottom_right":
        return seen & (j <= diagonal)
    if mask.startswith("window"):
        left, right = map(int, re.findall(r"\d+", mask))
        return seen & (diagonal - left <= j) & (j <= diagonal + right)
    return seen


def scores_of(q, k, v, cu_q, cu_k, mask, scale):
    """Scores in fp64, what is seen of them, and v for each head."""
    q, k, v = (t.astype(jnp.float64) for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, group, 1), jnp.repeat(v, group, 1)
    seen = visible(cu_q, cu_k, q.shape[0], k.shape[0], mask)
    # What is not seen may be NaN.
    q = jnp.where((jnp.arange(len(q)) < cu_q[-1])[:, None, None], q, 0)
    own = (jnp.arange(len(k)) < cu_k[-1])[:, None, None]
    k, v = jnp.where(own, k, 0), jnp.where(own, v, 0)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return q, k, v, jnp.einsum("qhd,khd->hqk", q, k) * scale, seen, scale


def reference(q, k, v, cu_q, cu_k, mask, scale=None):
    """(o, lse) in fp64, differentiable; a row that sees no key has 0, -inf."""
    _, _, v, s, seen, _ = scores_of(q, k, v, cu_q, cu_k, mask, scale)
    s = jnp.where(seen, s, -1e300)
    top = jax.lax.stop_gradient(s.max(-1, keepdims=True, initial=-1e300))
    weights = jnp.where(seen, jnp.exp(s - top), 0)
    total = weights.sum(-1, keepdims=True)
    blind = total == 0
    safe = jnp.where(blind, 1, total)
    lse = jnp.where(blind, -jnp.inf, jnp.log(safe) + top)[..., 0]
    return jnp.einsum("hqk,khe->qhe", weights / safe, v), lse


def gradients(do, q, k, v, o, lse, low, dlse, cu_q, cu_k, mask, scale):
    """From what a call has: the softmax is made of both words of lse."""
    q, k, v, s, seen, scale = scores_of(q, k, v, cu_q, cu_k, mask, scale)
    rows = (jnp.arange(len(q)) < cu_q[-1])[:, None, None]
    do, o = (jnp.where(rows, t, 0).astype(jnp.float64) for t in (do, o))
    whole = lse.astype(jnp.float64) + low
    p = jnp.where(seen, jnp.exp(s - whole[..., None]), 0)
    delta = jnp.einsum("qhe,qhe->hq", do, o) - (0 if dlse is None else dlse)
    dp = jnp.einsum("qhe,khe->hqk", do, v)
    ds = jnp.where(seen, p * (dp - delta[..., None]) * scale, 0)
    return (jnp.einsum("hqk,khd->qhd", ds, k), jnp.einsum("hqk,qhd->khd", ds, q),
            jnp.einsum("hqk,qhe->khe", p, do))


@pytest.fixture
def stand_in(monkeypatch):
    """The reference as XLA's call; gives the list of its calls."""
    calls = []

    def unwritten(array, offsets, axis):
        rows = jax.lax.broadcasted_iota(jnp.int64, array.shape, axis)
        return jnp.where(rows < offsets[-1], array, jnp.nan)

    def alone(call, results, arrays):
        target, attributes = call.target, call.attributes
        calls.append((target, attributes))
        mask = attributes["mask"]
        scale = attributes["scale"]
        scale = float(scale) if scale else None
        *arrays, cu_q, cu_k = arrays
        if target == TARGET:
            o, lse = reference(*arrays, cu_q, cu_k, mask, scale)
            high = lse.astype(jnp.float32)
            low = jnp.where(jnp.isfinite(lse), lse - high, 0)
            found = [(o, cu_q, 0), (high, cu_q, 1), (low, cu_q, 1)]
        else:
            dlse = arrays[7] if len(arrays) == 8 else None
            dq, dk, dv = gradients(*arrays[:7], dlse, cu_q, cu_k, mask, scale)
            group = dk.shape[1] // results[1].shape[1]
            dk, dv = (t.reshape(len(t), -1, group, t.shape[2]).sum(2)
                      for t in (dk, dv))
            found = [(dq, cu_q, 0), (dk, cu_k, 0), (dv, cu_k, 0)]
        made = [unwritten(*each).astype(result.dtype)
                for each, result in zip(found, results)]
        assert [t.shape for t in made] == [t.shape for t in results]
        return tuple(made)

    monkeypatch.setattr(_jax_calls.Foreign, "_alone", alone)
    monkeypatch.setattr(_jax_calls, "check_places", lambda **_: None)
    jax.clear_caches()
    yield calls
    jax.clear_caches()


#: Offsets of queries and keys: sequences without either, and tokens behind.
SEQUENCES = (((0, 5, 5, 20, 23), (0, 9, 12, 12, 30)),
             ((0, 3, 10, 26, 26), (0, 3, 20, 26, 30)))


def problem(cu_q, cu_k, seed=0):
    """q, k, v and offsets; what is behind the last sequence is NaN."""
    random = np.random.default_rng(seed)
    tensors = [random.standard_normal(shape) for shape in (
        (26, 4, 16), (33, 2, 16), (33, 2, 8))]
    for tensor, end in zip(tensors, (cu_q[-1], cu_k[-1], cu_k[-1])):
        tensor[end:] = np.nan
    return (*(jnp.asarray(t, jnp.float32) for t in tensors),
            jnp.asarray(cu_q, jnp.int32), jnp.asarray(cu_k, jnp.int32))


@pytest.mark.long
@pytest.mark.parametrize("options, mask", (
    ({}, "none"), ({"causal": True, "softmax_scale": 0.2},
                   "causal_bottom_right"),
    ({"window_size": (4, 2)}, "window<4, 2>")))
def test_results_and_gradients(stand_in, options, mask):
    def total(o, lse):
        return jnp.sin(o).sum() + jnp.where(lse > -jnp.inf, lse, 0).sum()

    def ours(*arrays):
        return attention_varlen(*arrays, 16, 18, return_softmax_lse=True,
                                **H100, **options)

    @jax.jit  # one program for all lengths
    def both(*arrays):
        return ours(*arrays), jax.grad(
            lambda *t: total(*ours(*t, *arrays[3:])), (0, 1, 2))(*arrays[:3])

    for seed, offsets in enumerate(SEQUENCES):
        arrays = problem(*offsets, seed)
        (o, lse), found = both(*arrays)
        clean = [jnp.nan_to_num(t) for t in arrays[:3]]

        def theirs(*t):
            return reference(*t, *arrays[3:], mask,
                             options.get("softmax_scale"))

        wanted = theirs(*clean)
        # Rows behind the last sequence are such as see no key.
        np.testing.assert_allclose(o, wanted[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(lse, wanted[1], rtol=1e-5, atol=1e-6)
        exact = jax.grad(lambda *t: total(*theirs(*t)), (0, 1, 2))(*clean)
        for got, right in zip(found, exact):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=2e-6)
    assert {target for target, _ in stand_in} == {TARGET, GRADIENT_TARGET}
    assert both._cache_size() == 1


@pytest.mark.long
def test_gradients_through_o_alone(stand_in):
    arrays = problem(*SEQUENCES[0])
    found = jax.grad(lambda *t: attention_varlen(
        *t, *arrays[3:], 16, 18, **H100).sum(), (0, 1, 2))(*arrays[:3])
    exact = jax.grad(lambda *t: reference(*t, *arrays[3:], "none")[0].sum(),
                     (0, 1, 2))(*map(jnp.nan_to_num, arrays[:3]))
    for got, right in zip(found, exact):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=2e-6)


def test_without_a_gradient_there_is_no_lse(stand_in):
    attention_varlen(*problem(*SEQUENCES[0]), 16, 18, **H100)
    (target, said), = stand_in
    assert target == TARGET and said["lse_low"] == ""


@pytest.mark.long
@pytest.mark.parametrize("empty", (0, 1))
def test_empty_arrays_have_zero_gradients(stand_in, empty):
    q, k, v, cu_q, cu_k = problem(*SEQUENCES[0])
    cut = [q[:0], k, v] if empty == 0 else [q, k[:0], v[:0]]
    zeros = jnp.zeros_like(cu_q)
    offsets = (zeros, cu_k) if empty == 0 else (cu_q, zeros)
    found = jax.grad(lambda *t: attention_varlen(
        *t, *offsets, 16, 18, **H100).sum(), (0, 1, 2))(*cut)
    assert [t.shape for t in found] == [t.shape for t in cut]
    assert not any(t.any() for t in found)
