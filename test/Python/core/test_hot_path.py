"""What a call after the first costs the host, with PyTorch's own tensors.

They lie on the CPU, which nobody reads, so allocation is the CPU's; the driver
is the one that runs nothing.
"""

import timeit

import attn
import pytest
from attn import _arrays, _libraries

MOST_SECONDS = 10e-6
MOST_OF_BACKWARD = 20e-6
MOST_OF_CACHE = 15e-6
#: 8 to 14 us by itself; tests run two at a time.
MOST_OF_RAGGED = 20e-6
#: Over those of an autograd.Function that computes nothing.
MOST_OF_AUTOGRAD = 30e-6
#: A yardstick for machines whose clock comes and goes, and its seconds on the one
#: for which that limit was set.
YARD, YARD_SECONDS = "sum(i * i for i in range(200))", 7.4e-6


def aligned(memory):
    """What of this f32 array begins at a multiple of 256 bytes."""
    return memory[-memory.data_ptr() % 256 // 4:]


@pytest.fixture
def tensors(gpu, monkeypatch):
    # By version: the folder of its tests, beside this one, has the same name.
    torch = pytest.importorskip("torch", minversion="2")
    from attn._torch_arrays import TorchLibrary

    class OnTheCpu(TorchLibrary):
        def __init__(self):
            super().__init__(torch)
            self.current_stream = abs  # of the ordinal; as quick as any
            self.empty_here = self._empty_here
            self.current_device = lambda: -1  # what CPU tensors say
            self._scratch = aligned(torch.zeros(1 << 20))

        def _empty_here(self, sizes, strides, dtype):
            # Memory of the CPU is not aligned as scratch has to be.
            if len(sizes) == 1:
                return self._scratch
            return torch._C._dynamo.guards._empty_strided_cpu(sizes, strides,
                                                              dtype)

        def describe(self, array, name, stream, *, written=False):
            return _arrays.Array(
                array.data_ptr(), self.dtypes[array.dtype],
                tuple(array.shape), array.stride(), 0, array)

        def describe_memory(self, array, name, dtype):
            return _arrays.Array(array.data_ptr(), dtype, tuple(array.shape),
                                 array.stride(), 0, array)

        def stream_of(self, array):
            return 0

    _libraries._libraries[torch.Tensor] = OnTheCpu()
    # Writing the log would be most of the time.
    monkeypatch.delenv("ATTN_FAKE_CUDA_LOG")
    return [torch.zeros(2, heads, 64, 128, dtype=torch.bfloat16)
            for heads in (8, 2, 2)]


def seconds_of(function, number=1000):
    """The least of many readings, on the yardstick's machine."""
    def seconds_now():
        call = timeit.timeit(function, number=number) / number
        yard = timeit.timeit(YARD, number=number) / number
        return call / max(1, yard / YARD_SECONDS)

    return min(seconds_now() for _ in range(20))


#: Over those of the same call without them, for each of the arrays.
MOST_OF_CLAUSES = 18e-6


def claused(torch):
    """Calls that ask for something, by its name."""
    ids = torch.zeros(64, dtype=torch.int32)
    slopes = torch.zeros(8)
    blocks = torch.zeros(1, 1, 1, 1, dtype=torch.int32)
    lists = attn.BlockMask(blocks[..., 0], blocks)

    def document(b, h, q, k):
        return (ids[q] == ids[k]) & (q >= k)

    return {
        "softcap": dict(softcap=30.0), "alibi": dict(alibi_slopes=slopes),
        "mask_mod": dict(mask_mod=document),
        "score_mod": dict(score_mod=lambda s, b, h, q, k:
                          s + slopes[h] * (k - q)),
        "block_mask": dict(block_mask=lists),
        "both": dict(block_mask=lists, mask_mod=document, softcap=30.0)}


@pytest.mark.long
@pytest.mark.parametrize("name", ("softcap", "alibi", "mask_mod", "score_mod",
                                  "block_mask", "both"))
@pytest.mark.filterwarnings("ignore:a mask_mod without")
def test_microseconds_of_a_call_with_clauses(tensors, name, record_property):
    """A function is walked over, not traced, and the launch is known."""
    torch = pytest.importorskip("torch", minversion="2")
    q, k, v = tensors
    options = claused(torch)[name]

    def call():
        return attn.forward(q, k, v, **options)

    plain = seconds_of(lambda: attn.forward(q, k, v))
    call()
    seconds = seconds_of(call, 200)
    record_property("microseconds", f"{seconds * 1e6:.2f}")
    print(f"{name}: {seconds * 1e6:.1f} us, plain {plain * 1e6:.1f}")
    assert seconds - plain < MOST_OF_CLAUSES


@pytest.mark.parametrize("options", [
    {}, {"window": (64, 0), "scale": 0.1}, {"return_lse": True}])
def test_microseconds_of_a_call(tensors, options, record_property):
    q, k, v = tensors
    attn.forward(q, k, v, **options)
    seconds = seconds_of(lambda: attn.forward(q, k, v, **options))
    record_property("microseconds", f"{seconds * 1e6:.2f}")
    assert seconds < MOST_SECONDS


def cached(torch, page=0, **options):
    """A call of attention on a cache, by what is asked."""
    if "k_descale" in options:
        one = torch.ones(4, 2)  # may be that of several
        options.update(dict.fromkeys(
            [name for name in options if name.endswith("descale")], one))
        dtype = torch.float8_e4m3fn
    else:
        dtype = torch.bfloat16
    q = torch.zeros(4, 1, 8, 128, dtype=torch.float32).to(dtype)
    k, v = (torch.zeros(4, 64, 2, 128).to(dtype) for _ in "kv")
    lengths = torch.full((4,), 64, dtype=torch.int32)
    if page:
        k, v = (t.view(-1, page, 2, 128) for t in (k, v))
        options["page_table"] = torch.arange(256 // page,
                                             dtype=torch.int32).view(4, -1)
    return lambda: attn.attention_with_kvcache(
        q, k, v, cache_seqlens=lengths, **options)


CACHES = [{}, {"page": 16}, {"return_softmax_lse": True, "softcap": 9.0},
          {"k_descale": 1}, {"k_descale": 1, "q_descale": 1, "v_descale": 1},
          {"k_descale": 1, "page": 16}]


@pytest.mark.long
@pytest.mark.parametrize("options", CACHES)
def test_microseconds_of_a_cache(tensors, options, record_property):
    call = cached(pytest.importorskip("torch", minversion="2"), **options)
    call()
    seconds = seconds_of(call)
    record_property("microseconds", f"{seconds * 1e6:.2f}")
    print(f"{options}: {seconds * 1e6:.1f} us")
    assert seconds < MOST_OF_CACHE


def ragged(torch, name, page=0, out=False, **options):
    """A call of ragged queries on a cache, by either name."""
    q = torch.zeros(7, 8, 128, dtype=torch.bfloat16)
    k, v = (torch.zeros(4, 64, 2, 128, dtype=torch.bfloat16) for _ in "kv")
    cu = torch.tensor([0, 4, 5, 6, 7], dtype=torch.int32)
    lengths = torch.full((4,), 64, dtype=torch.int32)
    if "k_descale" in options:
        options["k_descale"] = torch.ones(4, 2)
        k, v = (t.to(torch.float8_e4m3fn) for t in (k, v))
    if page:
        k, v = (t.view(-1, page, 2, 128) for t in (k, v))
        options["page_table"] = torch.arange(256 // page,
                                             dtype=torch.int32).view(4, -1)
    if out:
        memory = torch.zeros(7 * 8 * 128 // 2 + 64)
        options["out"] = aligned(memory)[:7 * 8 * 128 // 2].view(
            torch.bfloat16).view(q.shape)
    if name == "kvcache":
        return lambda: attn.attention_with_kvcache(
            q, k, v, cache_seqlens=lengths, cu_seqlens_q=cu, max_seqlen_q=4,
            **options)
    return lambda: attn.attention_varlen(
        q, k, v, cu, None, 4, 64, causal=True, seqused_k=lengths, **options)


RAGGED = [("kvcache", {}), ("varlen", {}), ("kvcache", {"page": 16}),
          ("varlen", {"page": 16}), ("varlen", {"page": 16, "out": True}),
          ("varlen", {"return_softmax_lse": True, "softcap": 9.0}),
          ("kvcache", {"return_softmax_lse": True}),
          ("kvcache", {"k_descale": 1, "page": 16})]


@pytest.mark.long
@pytest.mark.parametrize("name, options", RAGGED)
def test_microseconds_of_ragged_queries(tensors, name, options,
                                        record_property):
    call = ragged(pytest.importorskip("torch", minversion="2"), name, **options)
    call()
    seconds = seconds_of(call)
    record_property("microseconds", f"{seconds * 1e6:.2f}")
    print(f"{name} {options}: {seconds * 1e6:.1f} us")
    assert seconds < MOST_OF_RAGGED


@pytest.mark.long
def test_ragged_queries_are_bound_once_for_each_kind(calls, tensors):
    torch = pytest.importorskip("torch", minversion="2")
    kinds = [ragged(torch, name, **options) for name, options in RAGGED]
    for turn in range(3):
        for call, (_, options) in zip(kinds, RAGGED):
            result = call()
            o = result[0] if "return_softmax_lse" in options else result
            assert o.shape == (7, 8, 128) and o.dtype == torch.bfloat16
            if "return_softmax_lse" in options:
                assert result[1].shape == (8, 7)
        # Ways of ragged queries by both names are found in one table before
        # they are bound, unless they promise other lengths.
        assert calls["attn_forward_bind"] == len(kinds)
        assert launches_of(calls) == len(kinds) * (turn + 1)


def test_a_tensor_that_changes_in_place_is_of_another_kind(calls, tensors):
    """Also behind many calls of one kind, which are told by less."""
    torch = pytest.importorskip("torch", minversion="2")
    q = torch.zeros(4, 1, 8, 128, dtype=torch.bfloat16)
    k, v = (torch.zeros(4, 64, 2, 128, dtype=torch.bfloat16) for _ in "kv")
    lengths = torch.full((4,), 64, dtype=torch.int32)

    def bound():
        for _ in range(4):
            attn.attention_with_kvcache(q, k, v, cache_seqlens=lengths)
        return calls["attn_forward_bind"]

    assert bound() == 1
    k.resize_(4, 32, 2, 128)
    v.resize_(4, 32, 2, 128)
    assert bound() == 2
    q.transpose_(0, 1)
    assert q.shape == (1, 4, 8, 128)
    with pytest.raises(ValueError):
        bound()
    assert calls["attn_forward_bind"] == 2
    q.transpose_(0, 1)
    q.requires_grad_()
    o = attn.attention_with_kvcache(q, k, v, cache_seqlens=lengths)
    assert o.requires_grad
    q.requires_grad_(False)
    assert bound() == 2


def test_o_is_where_it_was_asked_for(tensors):
    torch = pytest.importorskip("torch", minversion="2")
    call = ragged(torch, "varlen", page=16, out=True)
    first, second = call(), call()
    assert first.data_ptr() == second.data_ptr()


@pytest.mark.parametrize("name", ("kvcache", "varlen"))
def test_wrong_calls_are_no_kinds(calls, tensors, name):
    """What was refused once is refused again, beside calls that are right."""
    torch = pytest.importorskip("torch", minversion="2")
    right = ragged(torch, name, page=16)
    wrong = ragged(torch, name, page=16, window_size=(1, 2, 3))
    for _ in range(2):
        right()
        with pytest.raises(ValueError, match="window_size"):
            wrong()


def test_a_cache_is_bound_once_for_each_kind(calls, tensors):
    torch = pytest.importorskip("torch", minversion="2")
    kinds = [cached(torch, **options) for options in CACHES]
    for turn in range(3):
        for call, options in zip(kinds, CACHES):
            result = call()
            o = result[0] if "return_softmax_lse" in options else result
            assert o.shape == (4, 1, 8, 128) and o.dtype == torch.bfloat16
        assert calls["attn_forward_bind"] == len(kinds)
        assert launches_of(calls) == len(kinds) * (turn + 1)


@pytest.fixture
def gradients(tensors):
    """do, q, k, v, o and lse."""
    o, lse = attn.forward(*tensors, return_lse=True)
    return [o.clone(), *tensors, o, lse]


@pytest.mark.long
@pytest.mark.parametrize("options", [
    {}, {"causal": True, "scale": 0.1}, {"deterministic": True}])
def test_microseconds_of_gradients(gradients, options, record_property):
    attn.backward(*gradients, **options)
    seconds = seconds_of(lambda: attn.backward(*gradients, **options))
    record_property("microseconds", f"{seconds * 1e6:.2f}")
    assert seconds < MOST_OF_BACKWARD


@pytest.fixture
def through_autograd(gradients, monkeypatch):
    """Leaves, and what attn.torch.attention gives for them, as on a GPU."""
    import torch
    from attn import _torch_backward
    from attn.torch import attention
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    monkeypatch.setattr(_torch_backward, "_is_fast", lambda *_: True)
    leaves = [t.clone().requires_grad_() for t in gradients[1:4]]

    def call(**options):
        return attention(*leaves, enable_gqa=True, **options)

    return leaves, call


@pytest.mark.long
def test_microseconds_of_autograd(through_autograd, gradients,
                                  record_property):
    import torch
    leaves, call = through_autograd
    do, given = gradients[0], [t.clone() for t in gradients[1:4]]

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            o, lse = torch.empty_like(q), q.new_empty(q.shape[:3])
            ctx.save_for_backward(q, k, v, o, lse)
            ctx.set_materialize_grads(False)
            return o, lse

        @staticmethod
        def backward(ctx, *_):
            assert len(ctx.saved_tensors) == 5
            return tuple(given)

    def backward_of(o):
        return seconds_of(lambda: torch.autograd.grad(o, leaves, do,
                                                      retain_graph=True))

    nothing = backward_of(Nothing.apply(*leaves)[0])
    seconds = backward_of(call())
    record_property("microseconds", f"{seconds * 1e6:.2f}")
    record_property("microseconds of nothing", f"{nothing * 1e6:.2f}")
    assert seconds < nothing + MOST_OF_AUTOGRAD


def launches_of(calls):
    return sum(calls.get(name, 0) for name in (
        "attn_launch", "attn_launch_in_scratch"))


@pytest.mark.long
def test_gradients_of_every_kind_go_to_their_launch(calls, gradients):
    """Shapes, strides and options change between calls and come back."""
    import torch
    do, q, k, v, o, lse = gradients
    packed = torch.zeros(2, 64, 8, 128, dtype=q.dtype).transpose(1, 2)
    shifted = torch.zeros(q.numel() + 4, dtype=q.dtype)[4:].view(q.shape)
    kinds = [
        dict(q=q), dict(q=packed), dict(q=shifted), dict(q=q, causal=True),
        dict(q=q, dlse=torch.zeros_like(lse)), dict(q=q, scale=0.3)]
    before = launches_of(calls)
    for _ in range(3):
        for kind in kinds:
            dq, dk, dv = attn.backward(do=do, k=k, v=v, o=o, lse=lse, **kind)
            assert dq.shape == q.shape and dk.shape == k.shape
            assert dq.is_contiguous() == kind["q"].is_contiguous()
            assert dv.dtype == v.dtype
    assert calls["attn_backward_bind"] == len(kinds)
    assert launches_of(calls) == before + 3 * len(kinds)


@pytest.mark.parametrize("least", [0, 1 << 63])
def test_autograd_launches_once_a_call(calls, through_autograd, gradients,
                                       monkeypatch, least):
    """Also where memory lies low, as beside another library's pool."""
    import torch
    from attn import _torch_path
    monkeypatch.setattr(_torch_path, "LEAST_ADDRESS", least)
    leaves, call = through_autograd
    do = gradients[0]
    dispatched, actual = [], torch.ops.attn.backward

    def operator(*arguments):
        dispatched.append(1)
        return actual(*arguments)

    monkeypatch.setattr(torch.ops.attn, "backward", operator)
    outputs = call(), call(causal=True)
    torch.autograd.grad(outputs[0], leaves, do, retain_graph=True)
    before = launches_of(calls)
    expanded = torch.ones((), dtype=do.dtype).expand(do.shape)
    for i, given in enumerate((do, expanded, do.mT.contiguous().mT) * 2, 1):
        got = torch.autograd.grad(outputs[0], leaves, given,
                                  retain_graph=True)
        assert [g.shape for g in got] == [t.shape for t in leaves]
        assert launches_of(calls) == before + i
    assert calls["attn_backward_bind"] == len(dispatched) == 1
    # Some of the inputs want no gradient.
    for leaf in leaves:
        got, = torch.autograd.grad(outputs[1], leaf, do, retain_graph=True)
        assert got.shape == leaf.shape
    assert calls["attn_backward_bind"] == 2
    torch.use_deterministic_algorithms(True)
    try:
        torch.autograd.grad(outputs[1], leaves, do, retain_graph=True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert calls["attn_backward_bind"] == len(dispatched) == 3


def test_only_the_dispatcher_sees_through_a_tensor(calls, through_autograd,
                                                   gradients):
    """Others than plain memory go there, also where the launch is known."""
    import torch
    leaves, call = through_autograd
    do, o = gradients[0], call()
    first = torch.autograd.grad(o, leaves, do, retain_graph=True)
    before = launches_of(calls)
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs)

    torch.autograd.grad(o, leaves, do.as_subclass(Watched), retain_graph=True)
    assert torch.ops.attn.backward in seen
    torch.autograd.grad(o, leaves, torch._neg_view(do), retain_graph=True)
    many = torch.autograd.grad(o, leaves, torch.stack([do, do, do]),
                               is_grads_batched=True, retain_graph=True)
    assert [g.shape for g in many] == [(3, *g.shape) for g in first]
    assert launches_of(calls) == before + 5


def test_gradients_from_kept_weights(calls, through_autograd, gradients):
    import torch
    leaves, call = through_autograd
    o = call(keep_weights=True)
    for turn in range(1, 4):
        before = launches_of(calls)
        got = torch.autograd.grad(o, leaves, gradients[0], retain_graph=True)
        assert [g.stride() for g in got] == [t.stride() for t in leaves]
        assert calls["attn_backward_kept_bind"] == 1
        assert launches_of(calls) == before + 1


def test_gradients_in_threads(through_autograd, gradients):
    import threading

    import torch
    leaves, call = through_autograd
    do = gradients[0]
    failures = []

    def work():
        try:
            for turn in range(50):
                o = call(causal=bool(turn % 2))
                got = torch.autograd.grad(o, leaves, do)
                assert len({t.data_ptr() for t in got}) == 3
        except BaseException as error:  # a thread must not lose it
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_results_are_tensors_of_their_own(tensors):
    q, k, v = tensors
    results = [attn.forward(q, k, v) for _ in range(3)]
    assert len({o.data_ptr() for o in results}) == 3
    assert all(o.shape == q.shape and o.dtype == q.dtype for o in results)


def test_tensors_like_others_are_told(tensors):
    torch = pytest.importorskip("torch", minversion="2")
    library = _libraries.library_of(tensors[0])
    made = [torch.zeros(3, 4, 8, dtype=torch.bfloat16), torch.zeros(5)]
    check = library.check_of(made)
    if check is None:  # a PyTorch without such a thing
        return
    assert check(torch.ones(3, 4, 8, dtype=torch.bfloat16), torch.ones(5))
    for other in (torch.zeros(3, 4, 9, dtype=torch.bfloat16),
                  torch.zeros(3, 4, 8),
                  torch.zeros(3, 8, 4, dtype=torch.bfloat16).transpose(1, 2),
                  torch.zeros(12, 8, dtype=torch.bfloat16)):
        assert not check(other, made[1])
