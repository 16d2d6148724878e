"""The operator without a GPU: the reference stands in for the launch."""

import importlib
import sys

import pytest
import reference
import torch
from torch_problems import gradients, make
from torch._subclasses.fake_tensor import FakeTensorMode

import attn
from attn import _torch_ops
from attn.torch import attention

LAYOUTS = {
    "bhnd": lambda b, h, n, d: torch.randn(b, h, n, d),
    "bnhd": lambda b, h, n, d: torch.randn(b, n, h, d).transpose(1, 2),
    "nbhd": lambda b, h, n, d: torch.randn(n, b, h, d).permute(1, 2, 0, 3),
    "packed": lambda b, h, n, d:
        torch.randn(b, n, 3, h, d)[:, :, 1].transpose(1, 2),
    "padded": lambda b, h, n, d: torch.randn(b, h, n, d + 5)[..., :d],
    "repeated": lambda b, h, n, d:
        torch.randn(b, 1, n, d).expand(b, h, n, d),
}


def test_attention_computes_the_reference(stand_in):
    q, k, v = make(20, 30, kv_heads=2, e=6)
    o, lse = attention(q, k, v, causal=True, scale=0.3, enable_gqa=True,
                       return_lse=True, schedule="flash, query = 64")
    expected, expected_lse = reference.attention(q, k, v, "causal", 0.3)
    assert torch.allclose(o.double(), expected, atol=1e-6)
    assert torch.allclose(lse.double(), expected_lse, atol=1e-6)
    assert stand_in == [("causal", 0.3, True, "flash, query = 64")]
    attention(q, k, v, window=(3, None), enable_gqa=True)
    attention(q, k, v, mask="causal_bottom_right", enable_gqa=True)
    assert [call[0] for call in stand_in[1:]] == [
        "window<3, 1073741824>", "causal_bottom_right"]
    assert not any(call[2] for call in stand_in[1:])


@pytest.mark.long
@pytest.mark.parametrize("grad", (False, True))
def test_opcheck_forward(stand_in, grad):
    for layout in LAYOUTS.values():
        q, k, v = (layout(2, 4, n, 8).requires_grad_(grad)
                   for n in (5, 7, 7))
        torch.library.opcheck(torch.ops.attn.forward.default,
                              (q, k, v, "causal", None, grad, None))


def test_8_bits_give_bfloat16(stand_in):
    q, k, v = make(8, 9, kv_heads=2, dtype=torch.float8_e4m3fn)
    for with_lse in (False, True):
        torch.library.opcheck(
            torch.ops.attn.forward.default,
            (q, k, v, "causal", None, with_lse, None),
            # The others compute with the inputs, which PyTorch cannot.
            test_utils="test_faketensor")
    o = attention(q, k, v, causal=True, enable_gqa=True)
    assert o.dtype == torch.bfloat16
    expected, _ = reference.attention(q, k, v, "causal")
    assert torch.equal(o, expected.bfloat16())


def test_8_bits_have_no_gradients(stand_in):
    q, k, v = make(8, dtype=torch.float8_e4m3fn)
    q.requires_grad_()
    with pytest.raises(attn.UnsupportedError,
                       match="no gradients for torch.float8_e4m3fn; tensors "
                             "cast to bfloat16"):
        attention(q, k, v)
    with torch.no_grad():
        assert attention(q, k, v).dtype == torch.bfloat16
    plain = _torch_ops.Attention
    with pytest.raises(attn.UnsupportedError, match="no gradients"):
        plain.apply(q, k, v, "none", None, None)
    with pytest.raises(attn.UnsupportedError, match="no gradients"):
        torch.func.vjp(lambda q: attention(q, k, v), q.detach())


def test_a_lazily_negated_view(stand_in):
    q, k, v = make(8)
    negated = torch._neg_view(q)
    assert negated.is_neg()
    assert torch.equal(attention(negated, k, v), attention(-q, k, v))


def test_opcheck_backward(stand_in):
    q, k, v = make(5, 7, kv_heads=2, e=6)
    o, lse = torch.ops.attn.forward(q, k, v, "causal", None, True, None)
    do, dlse = torch.randn_like(o), torch.randn_like(lse)
    for last in (dlse, None):
        torch.library.opcheck(
            torch.ops.attn.backward.default,
            (do, q, k, v, o, lse, last, "causal", 0.5))


@pytest.mark.long
@pytest.mark.parametrize("grad", (False, True))
def test_opcheck_two_words(stand_in, grad):
    for layout in LAYOUTS.values():
        q, k, v = (layout(2, 4, n, 8).requires_grad_(grad)
                   for n in (5, 7, 7))
        torch.library.opcheck(torch.ops.attn.forward_two_words.default,
                              (q, k, v, "causal", None, None))
    o, lse, low = (t.detach() for t in torch.ops.attn.forward_two_words(
        q, k, v, "causal", None, None))
    torch.library.opcheck(torch.ops.attn.backward.default,
                          (o, q.detach(), k.detach(), v.detach(), o, lse,
                           None, "causal", 0.5, low))


def test_gradients_get_the_low_word(stand_in, monkeypatch):
    """By every way to them."""
    seen, actual = [], _torch_ops._torch_backward.composed

    def composed(*arguments):
        seen.append(arguments[-1])
        return actual(*arguments)

    monkeypatch.setattr(_torch_ops._torch_backward, "composed", composed)

    def loss(q, k, v):
        return attention(q, k, v, causal=True, scale=3e5).sum()

    q, k, v = make(9, 12)
    tensors = [t.float().requires_grad_() for t in (q, k, v)]
    eager = torch.autograd.grad(loss(*tensors), tensors)
    operator = torch.autograd.grad(torch.ops.attn.forward_two_words(
        *tensors, "causal", 3e5, None)[0].sum(), tensors)
    functional = torch.func.grad(loss, (0, 1, 2))(
        *(t.detach() for t in tensors))
    assert len(seen) == 3 and all(low is not None for low in seen)
    _, exact = reference.attention(*(t.detach() for t in tensors), "causal",
                                   3e5)
    for low in seen:
        assert torch.equal(low, (exact - exact.float()).float())
    for other in (operator, functional):
        for a, b in zip(eager, other):
            assert torch.equal(a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fake_kernels_agree_with_the_real_ones(stand_in, layout):
    """Also where a dimension has one element, whose stride means nothing."""
    for sizes in ((2, 4, 5, 8), (1, 4, 5, 8), (2, 1, 5, 8), (2, 4, 1, 8),
                  (1, 1, 1, 8), (2, 4, 0, 8), (0, 4, 5, 8)):
        q, k, v = (LAYOUTS[layout](*sizes).bfloat16() for _ in range(3))
        real = torch.ops.attn.forward(q, k, v, "none", None, True, None)
        real += torch.ops.attn.backward(*[real[0], q, k, v, *real], None,
                                        "none", None)
        with FakeTensorMode() as mode:
            q, k, v = (mode.from_tensor(t) for t in (q, k, v))
            fake = torch.ops.attn.forward(q, k, v, "none", None, True, None)
            fake += torch.ops.attn.backward(*[fake[0], q, k, v, *fake], None,
                                            "none", None)
        for r, f in zip(real, fake):
            assert (r.shape, r.stride(), r.dtype, r.device) == (
                f.shape, f.stride(), f.dtype, f.device)


def test_output_follows_the_order_of_q(stand_in):
    q = torch.randn(2, 5, 4, 8).transpose(1, 2)
    k = torch.randn(2, 4, 7, 8)
    o = attention(q, k, torch.randn(2, 4, 7, 6))
    assert o.transpose(1, 2).is_contiguous()


def test_gradients_are_those_of_the_reference(stand_in):
    tensors = make(20, 30, kv_heads=2, e=6, dtype=torch.float64, grad=True)
    weights = torch.randn(2, 4, 20, 6), torch.randn(2, 4, 20)

    def ours(q, k, v):
        return attention(q, k, v, causal=True, enable_gqa=True,
                         return_lse=True)

    got = gradients(ours, tensors, weights)
    expected = gradients(
        lambda q, k, v: reference.attention(q, k, v, "causal"), tensors,
        weights)
    for g, e in zip(got, expected):
        assert torch.allclose(g, e, atol=1e-5)  # the LSE is fp32


def test_one_of_both_outputs_is_enough(stand_in):
    tensors = make(8, dtype=torch.float64, grad=True)

    def both(*tensors):
        return attention(*tensors, return_lse=True)

    weight_o, weight_lse = torch.randn(2, 4, 8, 16), torch.randn(2, 4, 8)
    for index, weight in enumerate((weight_o, weight_lse)):
        got = gradients(lambda *t: both(*t)[index], tensors, [weight])
        expected = gradients(lambda *t: reference.attention(*t)[index],
                             tensors, [weight])
        for g, e in zip(got, expected):
            assert torch.allclose(g, e, atol=1e-5)


def test_only_what_needs_a_gradient_gets_one(stand_in):
    q, k, v = make(8)
    k.requires_grad_()
    attention(q, k, v).sum().backward()
    assert k.grad is not None and q.grad is None and v.grad is None
    with torch.no_grad():
        assert not attention(q, k, v).requires_grad
    with torch.inference_mode():
        assert attention(q, k, v).is_inference()


def test_autograd_function_is_as_good_as_the_operator(stand_in):
    """The way of plain calls, which a CPU tensor does not go by itself."""
    tensors = make(9, 12, kv_heads=2, dtype=torch.float64, grad=True)
    weights = torch.randn(2, 4, 9, 16), torch.randn(2, 4, 9)
    direct = gradients(
        lambda *t: _torch_ops.Attention.apply(*t, "causal", 0.2, None),
        tensors, weights)
    through = gradients(
        lambda *t: torch.ops.attn.forward_two_words(*t, "causal", 0.2,
                                                    None)[:2],
        tensors, weights)
    assert all(torch.equal(d, t) for d, t in zip(direct, through))
    # Without the low word they are those of an lse in fp32.
    through = gradients(
        lambda *t: torch.ops.attn.forward(*t, "causal", 0.2, True, None),
        tensors, weights)
    assert all(torch.allclose(d, t, rtol=1e-5, atol=1e-6)
               for d, t in zip(direct, through))


@pytest.fixture
def ops_seen(stand_in):
    """The operators that a dispatcher mode sees of what runs below it."""
    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.append(function)
            return function(*args, **(kwargs or {}))

    return Mode()


def plain(*tensors):
    """The way of plain calls, which a CPU tensor does not go by itself."""
    return _torch_ops.Attention.apply(*tensors, "causal", None, None)


def test_modes_see_the_operator_of_gradients(ops_seen):
    tensors = make(8, grad=True)
    o, _ = plain(*tensors)
    with ops_seen:
        o.sum().backward()
    assert torch.ops.attn.backward.default in ops_seen.seen


@pytest.mark.parametrize("change", (
    lambda do: torch._neg_view(do), lambda do: do[:1, :1, :1, :1].expand(
        do.shape), lambda do: do.mT.contiguous().mT,
    lambda do: do.transpose(1, 2).contiguous().transpose(1, 2),
    lambda do: do.new_zeros(do.numel() + 1)[1:].view(do.shape).copy_(do)))
def test_gradients_of_o_come_as_others_make_them(stand_in, change):
    tensors = make(8, 11, kv_heads=2, dtype=torch.float64, grad=True)
    do = torch.randn(2, 4, 8, 16, dtype=torch.float64)
    given = change(do)
    got = torch.autograd.grad(plain(*tensors)[0], tensors, given)
    expected = torch.autograd.grad(
        reference.attention(*tensors, "causal")[0], tensors, given)
    for g, e in zip(got, expected):
        assert torch.allclose(g, e, atol=1e-5)


def test_many_gradients_at_once(stand_in):
    """is_grads_batched maps the backward pass."""
    tensors = make(8, dtype=torch.float64, grad=True)
    do = torch.randn(3, 2, 4, 8, 16, dtype=torch.float64)
    o, _ = plain(*tensors)
    got = torch.autograd.grad(o, tensors, do, is_grads_batched=True,
                              retain_graph=True)
    for i, one in enumerate(do):
        for g, e in zip(got, torch.autograd.grad(o, tensors, one,
                                                 retain_graph=True)):
            assert torch.allclose(g[i], e)


def test_saved_tensors_may_come_back_as_others(stand_in):
    """Hooks pack them: other addresses, strides, and types of tensors."""
    class Watched(torch.Tensor):
        pass

    tensors = make(8, 11, dtype=torch.float64, grad=True)
    do = torch.randn(2, 4, 8, 16, dtype=torch.float64)
    expected = torch.autograd.grad(plain(*tensors)[0], tensors, do)
    for unpack in (
            lambda t: t.clone(),
            lambda t: torch.stack([t, t], -2).select(-2, 0),
            lambda t: t.as_subclass(Watched)):
        with torch.autograd.graph.saved_tensors_hooks(
                lambda t: t.detach(), unpack):
            o, _ = plain(*tensors)
        for g, e in zip(torch.autograd.grad(o, tensors, do), expected):
            assert torch.allclose(g, e)


def test_compiled_autograd_traces_the_operator(stand_in):
    compiled_autograd = pytest.importorskip("torch._dynamo.compiled_autograd")
    torch._dynamo.reset()
    graphs = []

    def compiler(graph):
        def inner(graph, _):
            graphs.append(graph)
            return graph
        return torch.compile(graph, backend=inner, fullgraph=True,
                             dynamic=True)

    tensors = make(8, grad=True)
    plain(*tensors)[0].sum().backward()
    expected = [t.grad.clone() for t in tensors]
    for tensor in tensors:
        tensor.grad = None
    enable = getattr(compiled_autograd, "_enable", None) or (
        compiled_autograd.enable)
    with enable(compiler):
        plain(*tensors)[0].sum().backward()
    targets = [str(node.target) for graph in graphs
               for node in graph.graph.nodes]
    assert any("attn.backward" in target for target in targets), targets
    for tensor, gradient in zip(tensors, expected):
        assert torch.allclose(tensor.grad, gradient)


def test_kept_weights_have_no_second_derivative_either(stand_in, monkeypatch):
    q, k, v = make(8, grad=True)
    monkeypatch.setattr(_torch_ops._kept, "launch", lambda q, k, v, **_: (
        *torch.ops.attn.forward(q, k, v, "none", None, True, None),
        torch.zeros(1), torch.zeros(1)))
    monkeypatch.setattr(
        _torch_ops._torch_backward, "from_kept",
        lambda do, q, k, v, o, lse, dlse, *_: (q + 0, k + 0, v + 0))
    o, _ = _torch_ops.KeptAttention.apply(q, k, v, "none", None, None)
    plain_first, = torch.autograd.grad(o.sum(), q, retain_graph=True)
    assert torch.equal(plain_first, q.detach())
    first, = torch.autograd.grad(o.sum(), q, create_graph=True)
    with pytest.raises(attn.UnsupportedError, match="second derivatives"):
        first.sum().backward()


def test_there_is_no_second_derivative(stand_in):
    q, k, v = make(8, grad=True)
    for output in (attention(q, k, v), _torch_ops.Attention.apply(
            q, k, v, "none", None, None)[0]):
        first, = torch.autograd.grad(output.sum(), q, create_graph=True)
        with pytest.raises(attn.UnsupportedError, match="second derivatives"):
            first.sum().backward()


def test_tangents_are_refused_not_dropped(stand_in):
    q, k, v = make(8)
    with pytest.raises(attn.UnsupportedError, match="forward-mode"):
        torch.func.jvp(lambda q: attention(q, k, v), (q,), (q,))
    with torch.autograd.forward_ad.dual_level():
        attention(q, k, v)  # nobody has a tangent
        dual = torch.autograd.forward_ad.make_dual(v, v)
        with pytest.raises(attn.UnsupportedError, match="forward-mode"):
            attention(q, k, dual)


# -- Tracing ----------------------------------------------------------------


@pytest.mark.parametrize("options", (
    {}, {"causal": True}, {"window": (3, None), "scale": 0.3},
    {"mask": "causal_bottom_right", "return_lse": True,
     "schedule": "flash, query = 64"}))
def test_compile_full_graph(stand_in, options):
    def function(q, k, v):
        return attention(q * 2, k, v, enable_gqa=True, **options)

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    q, k, v = make(20, 30, kv_heads=2)
    got, expected = compiled(q, k, v), function(q, k, v)
    if "return_lse" not in options:
        got, expected = (got,), (expected,)
    for g, e in zip(got, expected):
        assert torch.equal(g, e) and g.stride() == e.stride()


def test_compile_with_dynamic_shapes_and_gradients(stand_in):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()

    def function(q, k, v):
        return attention(q * 2, k, v, causal=True, enable_gqa=True) * 2

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager",
                             dynamic=True)
    for batch, queries in ((3, 20), (6, 33), (5, 41)):
        tensors = make(queries, queries + 3, batch=batch, kv_heads=2,
                       grad=True)
        weights = [torch.randn(batch, 4, queries, 16)]
        got = gradients(compiled, tensors, weights)
        expected = gradients(function, tensors, weights)
        for g, e in zip(got, expected):
            assert torch.allclose(g, e, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("strict", (True, False))
def test_export(stand_in, strict):
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return attention(q, k, v, causal=True)

    rows = torch.export.Dim("rows", min=2, max=1000)
    q, k, v = make(20)
    program = torch.export.export(
        Model(), (q, k, v), strict=strict,
        dynamic_shapes=({2: rows}, {2: rows}, {2: rows}))
    targets = [node.target for node in program.graph.nodes]
    assert torch.ops.attn.forward.default in targets
    q, k, v = make(33)
    assert torch.equal(program.module()(q, k, v), Model()(q, k, v))


def test_wrong_shapes_are_told_while_tracing():
    q, k, v = make(8, 12)
    with FakeTensorMode() as mode, pytest.raises(
            ValueError, match=r"as many keys, but got q \[2, 4, 8, 16\]"):
        q, k, v = (mode.from_tensor(t) for t in (q, k, v))
        attention(q, k, v[:, :, 1:])


# -- Transforms -------------------------------------------------------------


@pytest.mark.parametrize("dims", ((0, None, None), (0, 0, 0), (1, 0, None),
                                  (None, 3, 2)))
def test_vmap(stand_in, dims):
    tensors = [t if dim is None else torch.stack(
        [t, t + 1, t * 2], dim) for t, dim in zip(
            make(5, 7, kv_heads=2, e=6), dims)]

    def function(q, k, v):
        return attention(q, k, v, enable_gqa=True, return_lse=True)

    got = torch.vmap(function, dims)(*tensors)
    for i in range(3):
        expected = function(*(t if dim is None else t.select(dim, i)
                              for t, dim in zip(tensors, dims)))
        for g, e in zip(got, expected):
            assert torch.allclose(g[i], e, atol=1e-6)
    one = torch.vmap(lambda *t: function(*t)[0], dims)(*tensors)
    assert torch.allclose(one, got[0])


def test_vmap_in_vmap_is_one_launch(stand_in):
    q = torch.randn(3, 2, 2, 4, 5, 8)
    got = torch.vmap(torch.vmap(lambda q: attention(q, q, q)))(q)
    assert len(stand_in) == 1
    assert torch.allclose(got[2, 1], attention(*[q[2, 1]] * 3))


def test_functional_gradients(stand_in):
    tensors = make(5, 7, kv_heads=2, e=6)
    many = [torch.stack([t, t + 1]) for t in tensors]
    per_sample = (0, None, None)

    def loss(function):
        return lambda q, k, v: function(q, k, v).sin().sum()

    def ours(q, k, v):
        return attention(q, k, v, enable_gqa=True)

    def expected(q, k, v):
        return reference.attention(q, k, v)[0].float()

    every = (0, 1, 2)
    for transform in (
            lambda f: torch.func.grad(loss(f), every)(*tensors),
            lambda f: torch.vmap(torch.func.grad(loss(f), every),
                                 per_sample)(many[0], *tensors[1:]),
            lambda f: torch.func.grad(loss(torch.vmap(f)), every)(*many),
            lambda f: torch.func.vjp(f, *tensors)[1](
                torch.ones(2, 4, 5, 6))):
        for g, e in zip(transform(ours), transform(expected)):
            assert torch.allclose(g, e, atol=1e-5)


def test_modes_and_subclasses_see_the_operator(stand_in):
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    q, k, v = make(8)
    with Mode():
        attention(q, k, v)
    assert torch.ops.attn.forward.default in seen

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs)

    seen.clear()
    assert isinstance(attention(q.as_subclass(Watched), k, v), Watched)
    assert torch.ops.attn.forward in seen


def test_meta_tensors_give_shapes():
    q, k, v = (t.to("meta") for t in make(8, 12, kv_heads=2, e=6))
    o, lse = attention(q, k, v, enable_gqa=True, return_lse=True)
    assert o.is_meta and o.shape == (2, 4, 8, 6) and lse.shape == (2, 4, 8)


# -- Wrong calls ------------------------------------------------------------


def cpu(*shape, dtype=torch.bfloat16):
    return torch.zeros(shape, dtype=dtype)


Q = cpu(1, 4, 8, 16)


@pytest.mark.parametrize("call, kind, text", (
    (lambda: attention(Q, Q, Q), ValueError,
     "q: expects an array in the memory of a CUDA GPU.* on the CPU"),
    (lambda: attention([1], Q, Q), TypeError,
     "q: expects a torch.Tensor, but got list"),
    (lambda: attention(Q, Q, None), TypeError, "v: .*NoneType"),
    (lambda: attention(Q[0], Q, Q), ValueError,
     r"rank 4.*got q \[4, 8, 16\], k \[1, 4, 8, 16\]"),
    (lambda: attention(Q, Q[:, :2], Q[:, :2]), ValueError,
     r"enable_gqa=True, but got q \[1, 4, 8, 16\], k \[1, 2, 8, 16\]"),
    (lambda: attention(Q, Q, Q, causal=True, window=(1, 0)), ValueError,
     "one of causal, window and mask"),
    (lambda: attention(Q, Q, Q, window=(-1, 0)), ValueError, "at least 0"),
    (lambda: attention(Q, Q, Q, scale=torch.ones(())), TypeError,
     "scale expects a number"),
    (lambda: attention(Q, Q, Q, causal=Q), TypeError, "causal expects True"),
))
def test_wrong_calls(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_a_gradient_needs_the_lse(stand_in):
    q, k, v = make(8, grad=True)
    with pytest.raises(ValueError, match="with_lse=True"):
        torch.ops.attn.forward(q, k, v, "none", None, False, None)


def test_an_old_torch_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.4.1")
    monkeypatch.delitem(sys.modules, "attn._torch_ops")
    with pytest.raises(ImportError, match="2.5 or newer, but got 2.4.1"):
        importlib.import_module("attn._torch_ops")
