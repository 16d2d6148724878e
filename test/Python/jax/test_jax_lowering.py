"""Programs lowered for a GPU: what is handed to XLA, under each transform."""

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import attn
from attn.jax import GRADIENT_TARGET, TARGET, attention

Q, K, V = (jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in (
    (2, 6, 50, 24), (2, 2, 70, 24), (2, 2, 70, 40)))


def lowered(function, *arguments, target=TARGET):
    """The calls of attn in a program, as text, and the program's results."""
    exported = export.export(
        jax.jit(function), platforms=["cuda"],
        disabled_checks=[export.DisabledSafetyCheck.custom_call(name)
                         for name in (TARGET, GRADIENT_TARGET)])(*arguments)
    lines = exported.mlir_module().splitlines()
    return ([line for line in lines if f"custom_call @{target}" in line],
            exported.out_avals)


def attributes(line):
    return dict(re.findall(r'(mask|machine|schedule|scale|lse_low) = "(.*?)"', line))


def types(line):
    """The types of operands and results: ("3x4xf32", ...)."""
    operands, results = line[line.rindex(" : (") + 4:].split(" -> ")
    found = re.compile(r"tensor<([^>]*)>").findall
    return found(operands), found(results)


def workspace_of(line):
    """Its bytes, or 0."""
    found = re.fullmatch(r"(\d+)xui8", types(line)[1][-1])
    return int(found.group(1)) if found else 0


def test_a_call():
    calls, results = lowered(
        lambda q, k, v: attention(q, k, v, causal=True, scale=0.25,
                                  machine="h200",
                                  schedule="flash, query = 64"), Q, K, V)
    assert len(calls) == 1
    assert attributes(calls[0]) == {
        "mask": "causal", "machine": "h200", "schedule": "flash, query = 64",
        "lse_low": "", "scale": "0.25"}
    assert types(calls[0]) == (
        ["2x6x50x24xbf16", "2x2x70x24xbf16", "2x2x70x40xbf16"],
        ["2x6x50x40xbf16"])
    # Row-major, whatever XLA would like.
    assert calls[0].count("dense<[3, 2, 1, 0]>") == 4
    assert [r.shape for r in results] == [(2, 6, 50, 40)]


def test_8_bits_give_bfloat16():
    q, k, v = (jax.ShapeDtypeStruct(t.shape[:3] + (d,), jnp.float8_e4m3fn)
               for t, d in zip((Q, K, V), (32, 32, 48)))
    calls, results = lowered(
        lambda q, k, v: attention(q, k, v, return_lse=True), q, k, v)
    assert types(calls[0]) == (
        ["2x6x50x32xf8E4M3FN", "2x2x70x32xf8E4M3FN", "2x2x70x48xf8E4M3FN"],
        ["2x6x50x48xbf16", "2x6x50xf32"])
    assert results[0].dtype == jnp.bfloat16
    with pytest.raises(attn.UnsupportedError,
                       match="no gradients for float8_e4m3fn"):
        jax.eval_shape(jax.grad(loss), q, k, v)


def test_what_is_left_out_is_an_empty_string():
    calls, results = lowered(
        lambda q, k, v: attention(q, k, v, window=(3, None),
                                  return_lse=True), Q, K, V)
    assert attributes(calls[0]) == {
        "mask": "window<3, 1073741824>", "machine": "", "schedule": "",
        "lse_low": "", "scale": ""}
    assert types(calls[0])[1] == ["2x6x50x40xbf16", "2x6x50xf32"]
    assert results[1].dtype == jnp.float32


def test_a_scale_keeps_its_bits():
    calls, _ = lowered(lambda q, k, v: attention(
        q, k, v, scale=np.float32(0.1)), Q, K, V)
    assert float(attributes(calls[0])["scale"]) == float(np.float32(0.1))


@pytest.mark.parametrize("dims", ((0, 0, 0), (0, None, None), (2, None, 1)))
def test_vmap_is_one_call_with_a_larger_batch(dims):
    arguments = [t if dim is None else jax.ShapeDtypeStruct(
        t.shape[:dim] + (3,) + t.shape[dim:], t.dtype)
        for t, dim in zip((Q, K, V), dims)]
    calls, results = lowered(jax.vmap(
        lambda q, k, v: attention(q, k, v, return_lse=True), dims),
        *arguments)
    assert len(calls) == 1
    assert types(calls[0]) == (
        ["3x2x6x50x24xbf16", "3x2x2x70x24xbf16", "3x2x2x70x40xbf16"],
        ["3x2x6x50x40xbf16", "3x2x6x50xf32"])
    assert [r.shape for r in results] == [(3, 2, 6, 50, 40), (3, 2, 6, 50)]


def loss(q, k, v):
    return attention(q, k, v, causal=True).astype(jnp.float32).sum()


def test_gradients_ask_for_the_lse():
    calls, results = lowered(jax.grad(loss, (0, 1, 2)), Q, K, V)
    assert len(calls) == 1 and len(types(calls[0])[1]) == 3
    assert [(r.shape, r.dtype) for r in results] == [
        (t.shape, t.dtype) for t in (Q, K, V)]


@pytest.mark.parametrize("with_lse", (False, True))
def test_gradients_are_a_call_where_there_is_a_kernel(with_lse):
    def loss(q, k, v):
        results = attention(q, k, v, causal=True, scale=0.25,
                            machine="a100_80g", schedule="flash, query = 64",
                            return_lse=with_lse)
        return sum(r.astype(jnp.float32).sum()
                   for r in jax.tree.leaves(results))

    calls, results = lowered(jax.grad(loss, (0, 1, 2)), Q, K, V,
                             target=GRADIENT_TARGET)
    assert len(calls) == 1
    assert attributes(calls[0]) == {
        "mask": "causal", "machine": "a100_80g", "schedule": "",
        "lse_low": "true", "scale": "0.25"}
    inputs = ["2x6x50x40xbf16", "2x6x50x24xbf16", "2x2x70x24xbf16",
              "2x2x70x40xbf16", "2x6x50x40xbf16", "2x6x50xf32"]
    assert types(calls[0]) == (
        inputs + ["2x6x50xf32"] * (1 + with_lse),
        ["2x6x50x24xbf16", "2x2x70x24xbf16", "2x2x70x40xbf16",
         f"{workspace_of(calls[0])}xui8"])
    assert [r.shape for r in results] == [t.shape for t in (Q, K, V)]
    many = jax.ShapeDtypeStruct((3, *Q.shape), Q.dtype)
    more, _ = lowered(jax.vmap(jax.grad(loss), (0, None, None)), many, K, V,
                      target=GRADIENT_TARGET)
    assert len(more) == 1
    assert workspace_of(more[0]) > workspace_of(calls[0]) > 0


@pytest.mark.parametrize("queries, parts", ((1, True), (512, False)))
def test_scratch_is_a_result_where_there_is_some(queries, parts):
    """Of keys that are dealt out to blocks, as so many results are merged; what
    vmap makes a batch is asked about as one."""
    q, k = (jax.ShapeDtypeStruct((2, 8, rows, 64), jnp.bfloat16)
            for rows in (queries, 8192))

    def call(q, k):
        return attention(q, k, k, machine="h100_sxm")

    (one,), (o,) = lowered(call, q, k)
    assert o.shape == q.shape and bool(workspace_of(one)) == parts
    assert f'workspace = "{"true" if parts else ""}"' in one
    many = [jax.ShapeDtypeStruct((3, *t.shape), t.dtype) for t in (q, k)]
    flat = [jax.ShapeDtypeStruct((6, *t.shape[1:]), t.dtype) for t in (q, k)]
    (batched,), (o,) = lowered(jax.vmap(call), *many)
    (larger,), _ = lowered(call, *flat)
    assert o.shape == many[0].shape
    assert workspace_of(batched) == workspace_of(larger)


def test_without_a_machine_there_is_no_workspace():
    (call,), _ = lowered(jax.grad(loss), Q, K, V)
    assert workspace_of(call) == 0 and 'workspace = ""' in call


@pytest.mark.parametrize("flags, deterministic", (
    ("", ""), ("--xla_gpu_deterministic_ops=false", ""),
    ("--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true", "true"),
    ("--xla_gpu_deterministic_ops", "true"),
    ("--xla_gpu_exclude_nondeterministic_ops=true", "true")))
def test_gradients_are_deterministic_where_xla_is(monkeypatch, flags,
                                                  deterministic):
    monkeypatch.setenv("XLA_FLAGS", flags)
    (call,), _ = lowered(jax.grad(lambda q, k, v: attention(
        q, k, v, machine="h100_sxm").astype(jnp.float32).sum()), Q, K, V,
        target=GRADIENT_TARGET)
    assert f'deterministic = "{deterministic}"' in call


def test_gradients_are_composed_where_there_is_none(monkeypatch):
    from attn import jax as module
    # There are some for all that has an output, so far.
    monkeypatch.setattr(module, "_gradient_plans",
                        lambda *_: [SimpleNamespace(built=False)])

    def loss(q, k, v):
        o = attention(q, k, v, machine="h100_sxm")
        return o.astype(jnp.float32).sum()

    calls, _ = lowered(jax.grad(loss), Q, K, V, target=GRADIENT_TARGET)
    assert calls == []


def test_gradients_of_wide_heads_in_f32():
    def loss(q, k, v):
        return attention(q, k, v, machine="h100_sxm").sum()

    wide = jax.ShapeDtypeStruct((1, 2, 50, 512), jnp.float32)
    assert attn.plan(batch=1, heads=2, queries=50, head_dim=512, dtype="f32",
                     direction="backward").built
    calls, _ = lowered(jax.grad(loss), wide, wide, wide,
                       target=GRADIENT_TARGET)
    assert len(calls) == 1


def test_gradients_under_vmap():
    many = jax.ShapeDtypeStruct((3, *Q.shape), Q.dtype)
    calls, results = lowered(jax.vmap(jax.grad(loss), (0, None, None)), many,
                             K, V)
    assert len(calls) == 1 and results[0].shape == many.shape


def test_rematerialisation_calls_again():
    calls, _ = lowered(jax.value_and_grad(jax.checkpoint(loss)), Q, K, V)
    assert len(calls) == 2


def test_scan_over_layers():
    def layers(q, k, v):
        return jax.lax.scan(
            lambda x, _: (attention(x, k, v), None), q, None, length=5)[0]

    square = jax.ShapeDtypeStruct((2, 2, 70, 24), Q.dtype)
    calls, _ = lowered(layers, Q, K, square)
    assert len(calls) == 1


@pytest.mark.parametrize("shared", (False, True))
def test_shard_map(shared):
    """Each device calls for its part; gradients of what all share add up."""
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    P = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:2]), ("x",))
    spec = P() if shared else P("x")
    batch = 1 if shared else 2
    k, v = (jax.ShapeDtypeStruct((batch, *t.shape[1:]), t.dtype)
            for t in (K, V))
    options = {} if hasattr(jax, "typeof") else {"check_rep": False}
    if options and shared:
        pytest.skip("expects a JAX that knows what varies over an axis")
    function = shard_map(jax.grad(loss, (0, 1, 2)), mesh=mesh,
                         in_specs=(P("x"), spec, spec),
                         out_specs=(P("x"), spec, spec), **options)
    calls, results = lowered(function, Q, k, v)
    assert len(calls) == 1
    assert types(calls[0])[0][0] == "1x6x50x24xbf16"
    assert [r.shape for r in results] == [Q.shape, k.shape, v.shape]


def test_a_call_says_where_it_can_run():
    q = jnp.zeros((1, 2, 8, 16), jnp.bfloat16, device=jax.devices("cpu")[0])
    with pytest.raises(Exception, match=TARGET):
        jax.jit(lambda q: attention(q, q, q))(q)
