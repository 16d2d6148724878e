"""Mask and score functions, lists and sinks: what XLA is handed, and which
gradient goes where."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import attn
from attn import jax as attn_jax
from attn.jax import GRADIENT_TARGET, TARGET, attention
from jax_problems import make

MACHINE = "h100_sxm"
Q, K, V = (jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in (
    (2, 6, 50, 64), (2, 2, 70, 64), (2, 2, 70, 64)))


def lowered(function, *arguments):
    """The calls of attn in a program, as text, and the program's results."""
    exported = export.export(
        jax.jit(function), platforms=["cuda"],
        disabled_checks=[export.DisabledSafetyCheck.custom_call(name)
                         for name in (TARGET, GRADIENT_TARGET)])(*arguments)
    text = exported.mlir_module()
    return ([line for line in text.splitlines() if "custom_call @attn" in line],
            exported.out_avals, text)


def attribute(line, name):
    return re.search(rf'[ {{]{name} = "(.*?)"', line).group(1)


def types(line):
    operands, results = line[line.rindex(" : (") + 4:].split(" -> ")
    operands, results = (re.findall(r"tensor<([^>]*)>", each)
                         for each in (operands, results))
    # What is behind the results is scratch, where there is some.
    has_scratch = attribute(line, "workspace") == "true"
    assert has_scratch == results[-1].endswith("ui8")
    return operands, results[:-1] if has_scratch else results


def banded(block_size=64):
    return attn.BlockMask.from_mask(lambda b, h, i, j: j <= i + 20,
                                    queries=50, keys=70,
                                    block_size=block_size)


def test_a_function_of_arrays_of_a_program():
    ids = jax.ShapeDtypeStruct((70,), jnp.int32)
    (call,), (o,), _ = lowered(lambda q, k, v, ids: attention(
        q, k, v, mask_mod=lambda b, h, i, j: ids[i] == ids[j], softcap=30.0,
        machine=MACHINE), Q, K, V, ids)
    assert attribute(call, "captures") == "c0 i32"
    text = attribute(call, "clauses")
    assert "attn.read %c0[%i]" in text and "softcap(3.0" in text
    assert attribute(call, "lists") == attribute(call, "block_size") == ""
    assert types(call)[0][3:] == ["70xi32"] and o.shape == Q.shape


def loss(q, k, v, table, lists=None):
    o, lse = attention(
        q, k, v, block_mask=lists, return_lse=True, machine=MACHINE,
        score_mod=lambda s, b, h, i, j: s + table[h, i - j + 70],
        sinks=table[:, 0])
    return o.astype(jnp.float32).sum() + lse.sum()


@pytest.mark.parametrize("with_lists", (False, True))
def test_gradients_of_captures(with_lists):
    table = jax.ShapeDtypeStruct((6, 128), jnp.bfloat16)
    lists = banded() if with_lists else None
    (forward, backward), results, _ = lowered(
        jax.grad(lambda *x: loss(*x, lists), (0, 1, 2, 3)), Q, K, V, table)
    assert attribute(forward, "gradients") == ""
    assert attribute(backward, "captures") == "c0 bf16, c1 f32"
    assert attribute(backward, "gradients") == "c0, c1"
    operands, gradients = types(backward)
    assert gradients[3:] == ["6x128xf32", "6xf32"]
    assert [r.shape for r in results] == [
        t.shape for t in (Q, K, V, table)]
    assert results[3].dtype == jnp.bfloat16
    behind = ["1x1x1xi32", "1x1x1x2xi32"] * 2 + ["1x1x2xi32",
                                                 "1x1x2x1xi32"] * 2
    # do, q, k, v, o, and both words of lse and its gradient are in front.
    assert operands[8:] == [*(behind if with_lists else []), "6x128xbf16",
                            "6xf32"]
    if with_lists:
        assert attribute(backward, "lists") == "partial, full"
        assert attribute(backward, "block_size") == "64 x 64"


def test_only_gradients_that_are_asked_for():
    table = jax.ShapeDtypeStruct((6, 128), jnp.float32)
    (_, backward), results, _ = lowered(jax.grad(loss), Q, K, V, table)
    assert attribute(backward, "gradients") == ""
    assert len(types(backward)[1]) == 3 and len(results) == 1


def test_vmap_is_a_loop():
    table = jax.ShapeDtypeStruct((3, 6, 128), jnp.float32)
    many = jax.ShapeDtypeStruct((3, *Q.shape), Q.dtype)
    calls, results, text = lowered(jax.vmap(
        jax.grad(loss, (0, 3)), (0, None, None, 0)), many, K, V, table)
    assert len(calls) == 2 and "stablehlo.while" in text
    assert types(calls[0])[0][0] == "2x6x50x64xbf16"
    assert [r.shape for r in results] == [many.shape, table.shape]


def test_lists_are_a_pytree():
    lists = jax.tree.map(jnp.asarray, banded())
    assert lists.mask_mod is not None and lists.block_size == (64, 64)
    (call,), _, _ = lowered(lambda q, k, v, lists: attention(
        q, k, v, block_mask=lists, machine=MACHINE), Q, K, V, lists)
    assert types(call)[0][3:] == ["1x1x1xi32", "1x1x1x2xi32"] * 2
    lists.transpose()
    kept = jax.tree.map(jnp.asarray, lists)
    assert kept.kept_transposed().shape == (1, 1, 2, 1)
    assert len(jax.tree.leaves(kept)) == 8
    made = jax.jit(lambda lists: attn.BlockMask(
        lists.kv_num_blocks, lists.kv_indices, block_size=64))(lists)
    assert made.full_kv_indices is None


def test_lists_of_a_program_are_turned_around():
    rng = np.random.default_rng(7)
    for shape in ((2, 3, 4, 5), (1, 1, 1, 1), (1, 2, 7, 3), (1, 1, 0, 2)):
        mask = attn.BlockMask.from_mask(rng.integers(0, 3, shape))
        made = jax.jit(attn_jax._jax_clauses.transposed)(tuple(mask.arrays()))
        assert np.array_equal(attn.BlockMask(*made).to_dense(),
                              mask.transpose().to_dense())


# -- Which gradient goes where -----------------------------------------------


@pytest.fixture
def truth(monkeypatch):
    """`set(score, sees, sinks)`: attention by its definition in the place of
    XLA's calls, of what captures hold."""
    said = {}

    def reference(q, k, v, captures):
        q, k, v = (t.astype(jnp.float64) for t in (q, k, v))
        k, v = (jnp.repeat(t, q.shape[1] // k.shape[1], 1) for t in (k, v))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
        b, h, i, j = jnp.ogrid[tuple(slice(0, n) for n in scores.shape)]
        scores = said["score"](scores, captures, b, h, i, j)
        seen = jnp.broadcast_to(said["sees"](captures, b, h, i, j),
                                scores.shape)
        scores = jnp.where(seen, scores, -jnp.inf)
        if said["sinks"] is not None:
            column = captures[said["sinks"]].astype(jnp.float64)
            scores = jnp.concatenate([scores, jnp.broadcast_to(
                column[None, :, None, None], (*scores.shape[:3], 1))], -1)
        lse = jax.nn.logsumexp(scores, -1)
        weights = jnp.exp(scores - lse[..., None])[..., :k.shape[2]]
        return (jnp.einsum("bhqk,bhke->bhqe", weights, v).astype(jnp.float32),
                lse.astype(jnp.float32))

    def forward(q, k, v, behind, call, clauses):
        o, lse = reference(q, k, v, behind.captures)
        said["forward"] = clauses
        return (o, lse, jnp.zeros_like(lse))[:1 + call.lse_words]

    def backward(do, q, k, v, o, words, dlse, behind, call, clauses, wanted):
        floats = [behind.captures[n] for n in wanted]

        def of(q, k, v, *floats):
            captures = list(behind.captures)
            for number, value in zip(wanted, floats):
                captures[number] = value
            return reference(q, k, v, captures)

        said["backward"] = wanted
        dlse = jnp.zeros_like(words[0]) if dlse is None else dlse
        return tuple(g.astype(jnp.float32) if n > 2 else g for n, g in
                     enumerate(jax.vjp(of, q, k, v, *floats)[1]((do, dlse))))

    monkeypatch.setattr(attn_jax, "_launch_behind", forward)
    monkeypatch.setattr(attn_jax, "_gradients_behind", backward)
    monkeypatch.setattr(attn_jax, "_check", lambda q, k, v: None)
    jax.clear_caches()
    said["reference"] = reference
    yield said
    jax.clear_caches()


def test_gradients_are_those_of_the_definition(truth):
    q, k, v = make(12, 9, kv_heads=2)
    rng = np.random.default_rng(3)
    ids = jnp.asarray(rng.integers(0, 3, 12), jnp.int32)
    table = jnp.asarray(rng.standard_normal((4, 32)), jnp.float32)
    sinks = jnp.asarray(rng.standard_normal(4), jnp.bfloat16)
    # In the order in which functions read: ids, then the table, then sinks.
    truth.update(
        sees=lambda c, b, h, i, j: c[0][i] <= c[0][j] + 1, sinks=2,
        score=lambda s, c, b, h, i, j: jnp.tanh(s) + c[1][h, i - j + 9])

    def ours(q, k, v, table, sinks):
        o, lse = attention(
            q, k, v, return_lse=True, sinks=sinks, machine=MACHINE,
            mask_mod=lambda b, h, i, j: ids[i] <= ids[j] + 1,
            score_mod=lambda s, b, h, i, j: jnp.tanh(s) + table[h, i - j + 9])
        return (o**2).sum() + (lse * jnp.arange(12)).sum()

    def exact(q, k, v, table, sinks):
        o, lse = truth["reference"](q, k, v, (ids, table, sinks.astype(
            jnp.float32)))
        return (o**2).sum() + (lse * jnp.arange(12)).sum()

    arguments = q, k, v, table, sinks
    found, wanted = (jax.jit(jax.grad(each, tuple(range(5))))(*arguments)
                     for each in (ours, exact))
    assert truth["backward"] == (1, 2)
    for got, want, argument in zip(found, wanted, arguments):
        assert got.dtype == argument.dtype and got.shape == argument.shape
        np.testing.assert_allclose(np.asarray(got, np.float64),
                                   np.asarray(want, np.float64),
                                   rtol=2e-2 if got.dtype == jnp.bfloat16
                                   else 1e-4, atol=1e-5)
    assert [kind for _, kind in truth["forward"].captures] == [
        "i32", "f32", "f32"]
    # A loss of one result alone, and arrays that nobody differentiates.
    (only,) = jax.eval_shape(jax.grad(lambda sinks: (attention(
        q, k, v, sinks=sinks, machine=MACHINE,
        mask_mod=lambda b, h, i, j: ids[i] <= ids[j] + 1,
        score_mod=lambda s, b, h, i, j: jnp.tanh(s) + table[h, i - j + 9])
        ** 2).sum(), (0,)), sinks)
    assert truth["backward"] == (2,) and only.shape == sinks.shape


# -- What is refused while it is traced --------------------------------------


@pytest.mark.parametrize("options, kind, text", (
    (dict(bias=np.ones((3, 4), np.float32)), ValueError, "bias: expects shape"),
    (dict(sinks=np.ones(6)), TypeError, "sinks: expects float32"),
    (dict(alibi_slopes=np.ones(5, np.float32)), ValueError, "alibi_slopes"),
    (dict(softcap=-1.0), ValueError, "softcap: expects a finite number"),
    (dict(mask_mod=lambda b, h, i, j: i - j), TypeError,
     "expects a truth value"),
    (dict(score_mod=lambda s, b, h, i, j: jnp.cumsum(s)),
     attn.UnsupportedError, "got jax.numpy.cumsum"),
    (dict(score_mod=lambda s, b, h, i, j: jnp.fft.fft(s)),
     attn.UnsupportedError, "a function of jax.numpy"),
    (dict(score_mod=lambda s, b, h, i, j: s, softcap=2.0), ValueError,
     "expects one of them, but got score_mod and softcap"),
    (dict(block_mask=5), TypeError, "expects an attn.BlockMask, but got int"),
    (dict(block_mask=attn.BlockMask.from_mask(np.ones((3, 3), bool))),
     ValueError, "block_mask: expects shape"),
    (dict(softcap=2.0, schedule="streamed_query"), ValueError,
     "has a kernel, but got streamed_query: "),
    (dict(softcap=2.0, schedule="flush"), ValueError, "flush"),
))
def test_what_is_refused(options, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        jax.eval_shape(lambda q, k, v: attention(
            q, k, v, machine=MACHINE, **options), Q, K, V)


def test_gradients_without_a_kernel_are_refused():
    def loss(q, k, v):
        return attention(q, k, v, softcap=2.0,
                         machine="gtx_1060").astype(jnp.float32).sum()

    with pytest.raises(attn.UnsupportedError, match="expects a schedule that "
                       "fits gtx_1060 and has a kernel, but got none: "):
        jax.eval_shape(jax.grad(loss), Q, K, V)


def test_arrays_of_others_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="bias: expects an array of JAX or "
                       "NumPy, but got torch.Tensor"):
        jax.eval_shape(lambda q, k, v: attention(
            q, k, v, bias=torch.ones(50, 70)), Q, K, V)


def test_numbers_that_jax_narrows_are_refused():
    ids = np.arange(70)
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(TypeError, match="int64, of which it makes int32"):
            jax.eval_shape(lambda q, k, v: attention(
                q, k, v, mask_mod=lambda b, h, i, j: ids[i] == ids[j]),
                Q, K, V)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_functions_of_jax_on_symbols():
    from jax.numpy import tanh
    table = jnp.ones(6, jnp.float32)
    (call,), _, _ = lowered(lambda q, k, v: attention(
        q, k, v, machine=MACHINE, score_mod=lambda s, b, h, i, j: jnp.where(
            i - j < 5, tanh(s), table[h] * jax.lax.max(s, 0.0)
            + (i - j).astype(jnp.float32) * jnp.pi)), Q, K, V)
    text = attribute(call, "clauses")
    for op in ("math.tanh", "arith.select", "arith.maximumf", "attn.read",
               "arith.sitofp"):
        assert op in text
