"""IR from Python: builders, the passes, and what goes wrong."""

import random

import pytest

import attn
from attn import mlir


def arguments(dtype="bf16", kind=mlir.tensor, batch=1, heads=8, kv_heads=2,
              queries=256, keys=320, d=64, e=64):
    return {"q": kind(batch, heads, queries, d, dtype=dtype),
            "k": kind(batch, kv_heads, keys, d, dtype=dtype),
            "v": kind(batch, kv_heads, keys, e, dtype=dtype)}


def layer(**clauses):
    f = mlir.Function("layer", **arguments())
    f.returns(mlir.forward(f.q, f.k, f.v, **clauses))
    return f


def test_a_forward_function_compiles():
    f = mlir.Function("layer", **arguments())
    o, lse = mlir.forward(f.q, f.k, f.v, mask="causal", scale=0.25, lse=True,
                          schedule="flash, query = 128")
    f.returns(o, lse)
    text = f.module(machine="h100_sxm")
    assert "attn.forward %arg0, %arg1, %arg2 mask(causal)" in text
    assert "scale(2.500000e-01)" in text and "query = 128" in text
    assert o.type == mlir.tensor(1, 8, 256, 64)
    assert lse.type == mlir.tensor(1, 8, 256, dtype="f32")
    assert attn.compile(text).kernels[0].schedule.startswith(
        "flash, query = 128")
    assert "tile.kernel" in mlir.run(text, "attn-to-tile").text


@pytest.mark.parametrize("scale", [1e-30, -3, 0, 2**-100, 1e30, 12345678])
def test_scales_go_through(scale):
    assert "scale(" in layer(scale=scale).module()


def test_clauses_go_through():
    f = mlir.Function("layer", **arguments(),
                      ids=mlir.tensor(None, dtype="i32"),
                      slopes=mlir.tensor(8, dtype="f32"),
                      counts=mlir.tensor(1, 8, 2, dtype="int32"),
                      indices=mlir.tensor(1, 8, 2, 3, dtype="i32"))
    o = mlir.forward(f.q, f.k, f.v, mask="causal", clauses=mlir.Clauses(
        document=f.ids, softcap=30, alibi=f.slopes, sinks=f.slopes,
        partial=(f.counts, f.indices), block_size=(128, 128)))
    lse = mlir.forward(f.q, f.k, f.v, lse=True, clauses=mlir.Clauses(
        captures=[f.ids], sees="""(%b, %h, %i, %j, %nq, %nk, %ids) {
          %x = attn.read %ids[%i] : tensor<?xi32>
          %y = attn.read %ids[%j] : tensor<?xi32>
          %r = arith.cmpi ule, %x, %y : i32
          attn.yield %r : i1
        }"""))[1]
    f.returns(o, lse)
    text = f.module()
    assert "mask(causal) document(%arg3 : tensor<?xi32>) softcap(3.0" in text
    assert "alibi(%arg4 : tensor<8xf32>) blocks(partial %arg5, %arg6, " in text
    assert "size 128 x 128" in text and "sinks(%arg4 : " in text
    assert "arith.cmpi ule" in text
    assert "tile.read" in mlir.run(text, "attn-to-tile{machine=h100_sxm}").text


def test_clauses_on_memrefs():
    f = mlir.Function("g", **arguments(kind=mlir.memref),
                      o=mlir.memref(1, 8, 256, 64))
    mlir.forward(f.q, f.k, f.v, outs=f.o, scale=0.5,
                 clauses=mlir.Clauses(softcap=2.5))
    f.returns()
    assert "softcap(2.500000e+00) outs(%arg3" in f.module()


def test_gradients_and_merges():
    f = mlir.Function("layer", **arguments(queries=None, keys=None))
    o, lse, low = mlir.forward(f.q, f.k, f.v, lse=True, lse_low=True,
                               mask="window<16, 0>")
    dq, dk, dv = mlir.backward(o, f.q, f.k, f.v, o, lse, lse_low=low, dlse=lse,
                               mask="window<16, 0>", deterministic=True)
    whole, all_lse = mlir.merge((o, lse), (dq, lse), dtype="f32", lse=True)
    do, dlse = mlir.merge_backward(whole, whole, all_lse, (o, lse), dlse=lse)
    f.returns(dk, dv, do, dlse)
    text = f.module()
    for op in ("forward", "backward", "merge", "merge_backward"):
        assert text.count(f"attn.{op} ") == 1
    assert "deterministic" in text
    assert whole.type.dtype == "f32" and do.type == o.type


def test_memrefs_take_outs():
    f = mlir.Function("layer", **arguments(kind=mlir.memref),
                      o=mlir.memref(1, 8, 256, 64))
    assert mlir.forward(f.q, f.k, f.v, outs=f.o) is None
    f.returns()
    assert "outs(%arg3 : memref<1x8x256x64xbf16>)" in f.module()
    with pytest.raises(ValueError, match="expects outs, the memrefs for o"):
        g = mlir.Function("g", **arguments(kind=mlir.memref))
        mlir.forward(g.q, g.k, g.v)


def test_elements_of_f8_give_bf16():
    f = mlir.Function("layer", **arguments("f8e4m3"))
    f.returns(mlir.forward(f.q, f.k, f.v))
    assert "-> tensor<1x8x256x64xbf16>" in f.module()


def test_weights_are_kept_and_come_in():
    f = mlir.Function("layer", **arguments(kv_heads=8, keys=300))
    o, lse, weights, rows = mlir.forward(f.q, f.k, f.v, lse=True,
                                         keeps_weights=True)
    assert weights.type == mlir.tensor(1, 8, 256, 300)
    assert rows.type == mlir.tensor(1, 8, 4, 256, dtype="f32")
    f.returns(*mlir.backward(o, f.q, f.k, f.v, o, lse, dlse=lse,
                             weights=(weights, rows)))
    assert "dlse(%0#1 : tensor<1x8x256xf32>) weights(%0#2, %0#3 :" in (
        f.module())
    g = mlir.Function("free", **arguments(keys=None))
    assert mlir.forward(g.q, g.k, g.v, lse=True, lse_low=True,
                        keeps_weights=True)[4].type.sizes == (1, 8, None, 256)


def test_types_of_frameworks_are_known():
    numpy = pytest.importorskip("numpy")
    assert mlir.tensor(1, dtype=numpy.dtype("float16")).dtype == "f16"
    assert mlir.tensor(1, dtype="bfloat16") == mlir.tensor(1)


def test_several_functions_in_a_module():
    first, second = layer(), mlir.Function("other", **arguments())
    second.returns(mlir.forward(second.q, second.k, second.v))
    text = mlir.module(first, second, machine="h100_sxm, sms = 66")
    assert text.count("func.func") == 2 and "sms = 66" in text


@pytest.mark.parametrize("clauses, said", [
    ({"mask": "diagonal"}, "expects a mask, but got"),
    ({"mask": "window<-1, 0>"}, "expects the window's left side"),
    ({"precision": "tf32"}, "precision"),
    ({"schedule": "flash, rows = 3"}, "expects the name of a tile size"),
    ({"alignment": 3}, "power of two"),
])
def test_the_compiler_says_what_is_wrong(clauses, said):
    with pytest.raises(attn.CompileError, match=said):
        layer(**clauses).module()


def test_the_compiler_checks_shapes():
    given = arguments(heads=7)
    f = mlir.Function("layer", **given)
    f.returns(mlir.forward(f.q, f.k, f.v))
    with pytest.raises(attn.CompileError, match="head count of q"):
        f.module()
    with pytest.raises(attn.CompileError, match="abacus"):
        layer().module(machine="abacus")


@pytest.mark.parametrize("call, kind, said", [
    (lambda f: mlir.forward(f.q, f.k, 3), TypeError, "expects v to be a value"),
    (lambda f: mlir.forward(3, f.k, f.v), TypeError, "expects q to be a value"),
    (lambda f: mlir.forward(f.q, f.k, layer().q), ValueError,
     "expects v to be of function 'f'"),
    (lambda f: mlir.forward(f.q, f.k, f.x), ValueError,
     "expects v to have 4 dimensions"),
    (lambda f: mlir.forward(f.q, f.k, f.v, lse_low=True), ValueError,
     "expects lse=True"),
    (lambda f: mlir.forward(f.q, f.k, f.v, keeps_weights=True), ValueError,
     "expects lse=True where keeps_weights"),
    (lambda f: mlir.backward(f.q, f.q, f.k, f.v, f.q, f.x, weights=f.q),
     TypeError, "expects weights to be a pair"),
    (lambda f: mlir.tensor(1, dtype=3), ValueError, "expects a dtype"),
    (lambda f: mlir.forward(f.q, f.k, f.v, scale="wide"), TypeError,
     "expects scale to be a number"),
    (lambda f: mlir.forward(f.q, f.k, f.v, scale=10**400), ValueError,
     "expects scale to be finite"),
    (lambda f: mlir.forward(f.q, f.k, f.v, scale=float("nan")), ValueError,
     "expects scale to be finite"),
    (lambda f: mlir.forward(f.q, f.k, f.v, mask="causal>, x = #attn.mask<none"),
     ValueError, r"expects mask to be what stands in #attn.mask<...>"),
    (lambda f: mlir.forward(f.q, f.k, f.v, schedule="flash<"), ValueError,
     "expects schedule to be what stands in"),
    (lambda f: (f.returns(), f.module(machine="l4> x")), ValueError,
     "expects machine to be what stands in"),
    (lambda f: (f.returns(), f.module(machine=4)), TypeError,
     "expects machine to be a text"),
    (lambda f: mlir.forward(f.q, f.k, f.v, mask=7), TypeError,
     "expects mask to be a text"),
    (lambda f: mlir.forward(f.q, f.k, f.v, alignment="4"), TypeError,
     "expects alignment to be a number"),
    (lambda f: mlir.forward(f.q, f.k, f.v, outs=[f.q, f.q]), ValueError,
     "expects outs for o, but got 2"),
    (lambda f: mlir.forward(f.q, f.k, f.v, clauses="softcap(3.0)"), TypeError,
     "expects clauses to be a Clauses"),
    (lambda f: mlir.forward(f.q, f.k, f.v, clauses=mlir.Clauses(sees=3)),
     TypeError, "expects sees to be a text"),
    (lambda f: mlir.forward(f.q, f.k, f.v, clauses=mlir.Clauses(softcap="x")),
     TypeError, "expects softcap to be a number"),
    (lambda f: mlir.forward(f.q, f.k, f.v, clauses=mlir.Clauses(alibi=3)),
     TypeError, "expects alibi to be a value"),
    (lambda f: mlir.forward(f.q, f.k, f.v, clauses=mlir.Clauses(
        partial=(f.x, f.x))), ValueError, "together with block_size"),
    (lambda f: mlir.forward(f.q, f.k, f.v, clauses=mlir.Clauses(
        full=f.x, block_size=(64, 64))), TypeError, "expects full to be a pair"),
    (lambda f: mlir.merge(), ValueError, "expects a part"),
    (lambda f: mlir.merge(f.q), TypeError, "expects part 0 to be a pair"),
    (lambda f: mlir.merge_backward(f.q, f.q, f.x, f.q), TypeError,
     "expects part to be a pair"),
    (lambda f: f.y, AttributeError, "no argument 'y'; arguments: q, k, v, x"),
    (lambda f: f.module(), ValueError, "expects function 'f' to end"),
    (lambda f: (f.returns(), f.returns()), ValueError, "to return once"),
    (lambda f: (f.returns(), mlir.forward(f.q, f.k, f.v)), ValueError,
     "expects ops before the end"),
    (lambda f: mlir.Function("", q=f.q.type), ValueError, "expects the name"),
    (lambda f: mlir.Function("g", q=3), TypeError, "expects q to be a type"),
    (lambda f: mlir.tensor(1, 2.5), TypeError, "expects sizes to be numbers"),
    (lambda f: mlir.tensor(1, -2), ValueError, "at least 0"),
    (lambda f: mlir.tensor(1, dtype="f64"), ValueError, "expects a dtype"),
])
def test_builders_say_what_is_wrong(call, kind, said):
    f = mlir.Function("f", **arguments(), x=mlir.tensor(3, dtype="f32"))
    with pytest.raises(kind, match=said):
        call(f)


def test_run_gives_what_passes_say():
    text = """func.func @f(%q: tensor<1x2x8x64xbf16>) -> tensor<1x2x8x64xbf16> {
  %0 = "tm_tensor.attention"(%q) : (tensor<1x2x8x64xbf16>) -> tensor<1x2x8x64xbf16>
  return %0 : tensor<1x2x8x64xbf16>
}
"""
    with pytest.raises(attn.CompileError, match="unregistered|not registered"):
        mlir.run(text)
    done = mlir.run(text, "attn-raise", allow_unregistered=True)
    assert "tm_tensor.attention" in str(done)
    said, = [one for one in done.diagnostics if one.severity == "remark"]
    assert "is not raised" in said.message and said.line == 2


@pytest.mark.parametrize("text, passes, kind, said", [
    ("func.func @f(", "", attn.CompileError, "<input>:1:13"),
    ("[" * 5000, "", attn.CompileError, "nested"),
    ("", "attn-to-tle", ValueError, "expects passes as .*attn-to-tle"),
    ("", "attn-to-tile{", ValueError, "expects passes"),
    ("", "func.func(" * 100000, ValueError, "at most 256 nested brackets"),
    ("", "attn-to-tile{machine=abacus}", attn.CompileError, "abacus"),
    (3, "", TypeError, "expects text to be a text"),
    ("", None, TypeError, "expects passes to be a text"),
    ("", "a\0b", ValueError, "NUL"),
])
def test_run_says_what_is_wrong(text, passes, kind, said):
    with pytest.raises(kind, match=said):
        mlir.run(text, passes)


def test_any_text_is_read_or_refused():
    """Broken texts end in an error, never in a crash."""
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    whole = layer(mask="causal").module(machine="h100_sxm")
    for _ in range(200):
        at, length = draw.randrange(len(whole)), draw.randrange(1, 20)
        broken = whole[:at] + "".join(
            draw.choice(whole) for _ in range(draw.randrange(4))
        ) + whole[at + length:]
        try:
            mlir.run(broken)
        except attn.CompileError as error:
            assert "error" in str(error), (seed, broken)
