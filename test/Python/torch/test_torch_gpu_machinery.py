"""What surrounds a call on a GPU: streams, threads, graphs, compilers, modes,
and calls that are wrong."""

import threading

import pytest
import reference
import torch
from torch_problems import gradients, make

import attn
from attn.torch import attention, scaled_dot_product_attention

pytestmark = pytest.mark.gpu

BF16, F16 = torch.bfloat16, torch.float16


def cuda(*sizes, dtype=BF16, **options):
    return make(*sizes, device="cuda", dtype=dtype, **options)


def agrees(o, q, k, v, mask="none"):
    expected, _ = reference.attention(q, k, v, mask)
    size = reference.output_size(q, k, v, mask)
    return reference.relative_error(o, expected, size) <= (
        reference.TOLERANCE[q.dtype])


# -- Streams and threads ----------------------------------------------------


def test_current_streams():
    """Inputs are made, used and freed on streams of their own, busily."""
    streams = [torch.cuda.Stream() for _ in range(4)]
    busy = torch.randn(2048, 2048, device="cuda")
    results = []
    for turn in range(24):
        with torch.cuda.stream(streams[turn % 4]):
            for _ in range(3):
                busy @ busy  # what comes next must wait for it
            q = torch.full((1, 4, 256, 64), float(turn), device="cuda",
                           dtype=BF16)
            results.append((turn, attention(q * 0, q, q)))
    torch.cuda.synchronize()
    for turn, o in results:
        assert bool((o == turn).all())


def test_gradients_on_streams():
    """Later calls find their launch in a table, and take memory and stream of
    where they are."""
    streams = [torch.cuda.Stream() for _ in range(3)]
    busy = torch.randn(2048, 2048, device="cuda")
    q, k, v = cuda(256, d=64)
    o, lse = attn.forward(q, k, v, causal=True, return_lse=True)
    do = torch.randn_like(o)
    expected = attn.backward(do, q, k, v, o, lse, causal=True)
    results = []
    torch.cuda.synchronize()
    for turn in range(24):
        with torch.cuda.stream(streams[turn % 3]):
            for _ in range(3):
                busy @ busy  # what comes next must wait for it
            mine = do * (turn + 1)
            results.append((turn, attn.backward(mine, q, k, v, o, lse,
                                                causal=True)))
            del mine
    torch.cuda.synchronize()
    for turn, gradients_of_turn in results:
        # A factor that is no power of 2 is rounded in do.
        for got, e in zip(gradients_of_turn, expected):
            assert reference.relative_error(
                got, e.double() * (turn + 1)) < 2e-2


def test_gradients_in_a_graph_and_beside_it():
    """A graph holds its own results and scratch: eager calls of the same kind
    between replays leave it alone."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        q, k, v = cuda(200, d=64)
        o, lse = attn.forward(q, k, v, return_lse=True)
        do = torch.randn_like(o)
        expected = attn.backward(do, q, k, v, o, lse)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            held = attn.backward(do, q, k, v, o, lse)
        for _ in range(3):
            for tensor in held:
                tensor.fill_(7)
            graph.replay()
            eager = attn.backward(do, q, k, v, o, lse)
            for got, also, e in zip(held, eager, expected):
                assert reference.relative_error(got, e.double()) < 1e-2
                assert reference.relative_error(also, e.double()) < 1e-2
    torch.cuda.synchronize()


def test_two_threads():
    failures = []

    def work(seed):
        try:
            generator = torch.Generator("cuda").manual_seed(seed)
            with torch.cuda.stream(torch.cuda.Stream()):
                for turn in range(25):
                    rows = 64 + 16 * (turn % 5)
                    q, k, v = (torch.randn(
                        1, 4, rows, 64, device="cuda",
                        generator=generator).to(BF16).requires_grad_()
                        for _ in range(3))
                    o = attention(q, k, v, causal=True)
                    o.sum().backward()
                    assert agrees(o.detach(), *[t.detach()
                                                for t in (q, k, v)], "causal")
                    assert q.grad.isfinite().all()
        except BaseException as error:  # a thread must not lose it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,))
               for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -- CUDA graphs ------------------------------------------------------------


def test_cuda_graph():
    q, k, v = cuda(200, 150, d=64)
    attention(q, k, v, causal=True, return_lse=True)  # compiles and loads
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, lse = attention(q, k, v, causal=True, return_lse=True)
    for _ in range(3):
        for tensor in (q, k, v):
            tensor.normal_()
        o.fill_(7)
        graph.replay()
        assert agrees(o, q, k, v, "causal")
        expected = attention(q, k, v, causal=True, return_lse=True)
        assert torch.equal(o, expected[0]) and torch.equal(lse, expected[1])


def test_cuda_graph_of_forward_and_backward():
    class Layer(torch.nn.Module):
        def forward(self, x):
            q, k, v = x.unflatten(-1, (3, 4, 64)).unbind(-3)
            return attention(q.transpose(1, 2), k.transpose(1, 2),
                             v.transpose(1, 2), causal=True)

    x = torch.randn(2, 100, 3 * 4 * 64, device="cuda", dtype=BF16,
                    requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(Layer(), (x,))
    x = torch.randn_like(x).requires_grad_()
    do = torch.randn(2, 4, 100, 64, device="cuda", dtype=BF16)
    got = graphed(x)
    got.backward(do)
    got_gradient, x.grad = x.grad.clone(), None
    expected = Layer()(x)
    expected.backward(do)
    assert torch.equal(got, expected)
    assert reference.relative_error(got_gradient, x.grad) < 1e-2


# -- Compilers and modes ----------------------------------------------------


def test_compile_with_inductor():
    """Dynamic shapes, gradients, and no break."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()

    def function(q, k, v):
        o, lse = attention(q * 1.5, k + 1, v, causal=True, enable_gqa=True,
                           return_lse=True)
        return o.sin(), lse

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for batch, queries in ((3, 100), (5, 230), (7, 61)):
        tensors = cuda(queries, queries + 30, batch=batch, kv_heads=2, d=64,
                       grad=True)
        weights = [torch.randn(batch, 4, queries, 64, device="cuda")]
        for got, expected in zip(compiled(*tensors), function(*tensors)):
            assert got.stride() == expected.stride()
            assert reference.relative_error(got, expected) < 5e-3
        got, expected = (gradients(lambda *t: f(*t)[0], tensors, weights)
                         for f in (compiled, function))
        for g, e in zip(got, expected):
            assert reference.relative_error(g, e) < 2e-2
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_compile_with_graphs():
    q, k, v = cuda(128, d=64)
    compiled = torch.compile(
        lambda q, k, v: attention(q, k, v, causal=True) * 2, fullgraph=True,
        mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(4):
            q.normal_()
            torch.compiler.cudagraph_mark_step_begin()
            assert agrees(compiled(q, k, v) / 2, q, k, v, "causal")


def test_opcheck():
    for order in ((0, 1, 2, 3), (0, 2, 1, 3)):
        q, k, v = (t.permute(order).contiguous().permute(order)
                   .requires_grad_() for t in cuda(40, 50, kv_heads=2, d=32))
        torch.library.opcheck(torch.ops.attn.forward.default,
                              (q, k, v, "causal", 0.3, True, None))
        o, lse = (t.detach() for t in torch.ops.attn.forward(
            q, k, v, "causal", 0.3, True, None))
        torch.library.opcheck(
            torch.ops.attn.backward.default,
            (torch.randn_like(o), q.detach(), k.detach(), v.detach(), o, lse,
             None, "causal", 0.3), atol=1e-2, rtol=1e-1)


def test_plain_calls_are_the_operator():
    q, k, v = cuda(100, 90, kv_heads=2, d=64, grad=True)
    weights = [torch.randn(2, 4, 100, 64, device="cuda")]
    direct = attention(q, k, v, causal=True, enable_gqa=True)
    assert "Attention" in direct.grad_fn.name()
    through = torch.ops.attn.forward(q, k, v, "causal", None, True, None)[0]
    assert torch.equal(direct, through)
    with torch.no_grad():
        assert torch.equal(direct, attention(q, k, v, causal=True,
                                             enable_gqa=True))
    first, second = (gradients(f, (q, k, v), weights) for f in (
        lambda *t: attention(*t, causal=True, enable_gqa=True),
        lambda *t: torch.ops.attn.forward(*t, "causal", None, True, None)[0]))
    for f, s in zip(first, second):
        assert f.stride() == s.stride()
        assert reference.relative_error(f, s) < 1e-2


@pytest.mark.parametrize("dtype", (BF16, F16))
def test_autocast(dtype):
    q, k, v = cuda(60, d=64, dtype=torch.float32, grad=True)
    with torch.autocast("cuda", dtype=dtype):
        o = attention(q, k, v, causal=True)
        assert torch.nn.functional.scaled_dot_product_attention(
            q, k, v).dtype == o.dtype == dtype
        # Mixed types become one.
        mixed = attention(q.bfloat16(), k.half(), v, causal=True)
        assert mixed.dtype == dtype
    assert agrees(o.detach(), *(t.detach().to(dtype) for t in (q, k, v)),
                  "causal")
    o.float().sum().backward()
    assert all(t.grad.dtype == torch.float32 and t.grad.isfinite().all()
               for t in (q, k, v))
    with torch.no_grad(), torch.autocast("cuda", dtype=dtype):
        assert torch.equal(attention(q, k, v, causal=True), o)


def test_modes_parameters_and_negated_views():
    q, k, v = cuda(40, d=64)
    expected = attention(q, k, v)
    with torch.inference_mode():
        assert torch.equal(attention(q, k, v), expected)
        assert torch.equal(attention(q.clone(), k, v), expected)
    parameters = [torch.nn.Parameter(t) for t in (q, k, v)]
    o = attention(*parameters)
    o.sum().backward()
    assert torch.equal(o, expected) and parameters[2].grad is not None
    with torch.device("cuda"):  # a function mode
        assert torch.equal(attention(q, k, v), expected)
    negated = torch._neg_view(q)
    assert torch.equal(attention(negated, k, v), attention(-q, k, v))


def test_vmap():
    q, k, v = (t.unflatten(0, (3, 2)) for t in cuda(50, batch=6, d=32))
    got = torch.vmap(lambda q, k, v: attention(q, k, v, causal=True))(q, k, v)
    expected = attention(*(t.flatten(0, 1) for t in (q, k, v)), causal=True)
    assert torch.equal(got.flatten(0, 1), expected)
    per_sample = torch.vmap(torch.func.grad(
        lambda q, k, v: attention(q, k, v).float().sum()), (0, None, None))(
            q, k[0], v[0])
    assert per_sample.shape == q.shape and per_sample.isfinite().all()


def test_the_drop_in_agrees_with_pytorch():
    theirs = torch.nn.functional.scaled_dot_product_attention
    q, k, v = cuda(90, 120, kv_heads=2, d=64)
    for options in ({}, {"is_causal": True}, {"scale": 0.3}):
        got = scaled_dot_product_attention(q, k, v, enable_gqa=True,
                                           **options)
        expected = theirs(q, k, v, enable_gqa=True, **options)
        assert reference.relative_error(got, expected) < 8e-3
    one = scaled_dot_product_attention(q[0, :2], k[0], v[0])
    assert reference.relative_error(one, theirs(q[0, :2], k[0], v[0])) < 8e-3


# -- Wrong calls ------------------------------------------------------------


def _freed():
    k = torch.randn(1, 4, 64, 64, device="cuda").to(BF16)
    k.untyped_storage().resize_(0)
    return k


def _q(*shape, dtype=BF16):
    return torch.zeros(shape or (1, 4, 64, 64), dtype=dtype, device="cuda")


@pytest.mark.parametrize("call, kind, text", (
    (lambda: attention(_q(), _q().cpu(), _q()), ValueError,
     "k: expects an array in the memory of a CUDA GPU.*the CPU"),
    (lambda: attention(_q(dtype=torch.int32), _q(), _q()), TypeError,
     "q: expects elements of bf16.*int32"),
    (lambda: attention(_q(), _q(dtype=F16), _q()), TypeError,
     "one element type, but got q bf16, k f16, v bf16"),
    (lambda: attention(*[_q(4, 64, 64)] * 3), ValueError,
     r"rank 4.*\[4, 64, 64\]"),
    (lambda: attention(_q(1, 3, 64, 64), *[_q(1, 2, 64, 64)] * 2,
                       enable_gqa=True), ValueError,
     r"multiple.*q \[1, 3, 64, 64\], k \[1, 2, 64, 64\]"),
    (lambda: attention(_q(), _q(1, 2, 64, 64), _q(1, 2, 64, 64)), ValueError,
     "enable_gqa=True"),
    (lambda: attention(_q(), _q(1, 4, 64, 32), _q()), ValueError,
     "head dimension"),
    (lambda: attention(_q(), _q(1, 4, 64, 128)[..., ::2], _q()), ValueError,
     r"k: expects an innermost stride of 1, but got strides \[.*, 2\]"),
    (lambda: attention(_q(), _freed(), _q()), ValueError,
     "k: expects a tensor with memory.*freed"),
    (lambda: attention(*[_q(1, 4, 64, 4096)] * 3), attn.UnsupportedError,
     ""),
    (lambda: attention(_q(), _q(), _q(), mask="diagonal"), ValueError,
     "diagonal"),
    (lambda: attention(_q(), _q(), _q(), schedule="flash, query = 7"),
     ValueError, "query"),
    (lambda: attn.forward(_q().requires_grad_(), _q(), _q()), ValueError,
     "attn.torch.attention is differentiable"),
    (lambda: attention(_q().to_sparse(), _q(), _q()), TypeError,
     "dense tensor"),
))
@pytest.mark.parametrize("warm", (False, True))
def test_wrong_calls(call, kind, text, warm):
    if warm:  # what is remembered must not be taken for what is asked
        attention(_q(), _q(), _q())
    with pytest.raises(kind, match=text):
        call()
    o = attention(_q() + 1, _q() + 1, _q() + 1)  # the next call is fine
    assert bool((o == 1).all())


def test_wrong_calls_under_compile():
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="as many keys"):
        compiled(_q(), _q(), _q(1, 4, 32, 64))
