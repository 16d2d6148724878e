"""Tensors of PyTorch through attn.forward, on a stand-in for PyTorch."""

import attn
import pytest
import stub_torch
from attn import _launch
from fake_arrays import Dlpack
from stub_torch import Tensor

Q, K = (2, 8, 100, 64), (2, 2, 300, 64)


def tensors(**more):
    return [Tensor(*sizes, **more) for sizes in (Q, K, K)]


def test_result_is_a_tensor(torch, gpu):
    q, k, v = tensors()
    o = attn.forward(q, k, v, causal=True)
    assert (o.shape, o.dtype, o.device) == (Q, q.dtype, q.device)
    o, lse = attn.forward(q, k, v, return_lse=True)
    assert lse.shape == Q[:3] and lse.dtype is torch.float32
    assert lse.stride() == (800, 100, 1)
    first, second = gpu.launches()
    assert "causal" in first["kernel"] and "lse" in second["kernel"]


def test_8_bits_give_bfloat16(torch, gpu):
    q, k, v = tensors(dtype=stub_torch.float8_e4m3fn)
    for _ in range(2):  # the long way, then the short one
        o = attn.forward(q, k, v)
        assert (o.shape, o.dtype) == (Q, torch.bfloat16)
    o, lse = attn.forward(q, k, v, return_lse=True)
    assert o.dtype is torch.bfloat16 and lse.dtype is torch.float32
    assert all("f8e4m3" in e["kernel"] for e in gpu.launches())


def test_result_lies_as_q_does(torch):
    _, k, v = tensors()
    packed = Tensor(*Q, strides=(153600, 64, 1536, 1))
    for _ in range(2):  # the long way, then the short one
        assert attn.forward(packed, k, v).stride() == (51200, 64, 512, 1)
    assert attn.forward(*tensors()).stride() == tensors()[0].stride()


def test_later_calls_bind_nothing(torch, gpu, calls):
    results = [attn.forward(*tensors(), window=(7, 0)) for _ in range(10)]
    assert calls["attn_forward_bind"] == 1 and calls["attn_launch"] == 10
    assert len({o.data_ptr() for o in results}) == 10
    assert len({launch["first"] for launch in gpu.launches()}) == 10
    # The list is no key, but names the same.
    attn.forward(*tensors(), window=[7, 0])
    assert calls["attn_forward_bind"] == 1


@pytest.mark.parametrize("change", [
    {"causal": True}, {"scale": 0.5}, {"return_lse": True},
    {"window": (3, 3)}, {"machine": "h200"}, {"schedule": "flash"}])
def test_options_are_told_apart(torch, calls, change):
    attn.forward(*tensors())
    attn.forward(*tensors(), **change)
    attn.forward(*tensors())
    attn.forward(*tensors(), **change)
    assert calls["attn_forward_bind"] == 2 and calls["attn_launch"] == 4


def test_shapes_and_places_are_told_apart(torch, gpu, calls, monkeypatch):
    monkeypatch.setenv("ATTN_FAKE_CUDA_COUNT", "2")
    _, k, v = tensors()
    for _ in range(2):
        attn.forward(*tensors())
        attn.forward(*tensors(dtype=stub_torch.float16))
        attn.forward(*tensors(index=1))
        attn.forward(Tensor(2, 8, 101, 64), k, v)
        attn.forward(Tensor(*Q, strides=(51200, 64, 512, 1)), k, v)
        attn.forward(Tensor(*Q, offset=4), k, v)  # 8 bytes off
    assert calls["attn_forward_bind"] == 6
    assert [launch["device"] for launch in gpu.launches()] == [
        "0", "0", "1", "0", "0", "0"] * 2


def test_alignment_may_change_from_call_to_call(torch, gpu, calls):
    """That of the worst counts, whichever tensor it is."""
    aligned, odd = Tensor(*K), Tensor(*K, offset=4)  # 8 bytes off
    q = Tensor(*Q)
    for _ in range(2):
        attn.forward(q, aligned, odd)
        attn.forward(q, odd, aligned)
        attn.forward(q, odd, odd)
        attn.forward(q, aligned, aligned)
    kernels = [launch["kernel"] for launch in gpu.launches()]
    assert kernels == [*[kernels[0]] * 3, kernels[3]] * 2
    assert kernels[0] != kernels[3]


def test_the_current_stream_of_the_gpu_is_used(torch, gpu, monkeypatch):
    monkeypatch.setenv("ATTN_FAKE_CUDA_COUNT", "2")
    torch.current = {0: 11, 1: 22}
    for _ in range(2):
        attn.forward(*tensors())
        attn.forward(*tensors(index=1))
    assert [launch["stream"] for launch in gpu.launches()] == [
        "11", "22"] * 2


def test_another_stream(torch, gpu):
    q, k, v = tensors()
    o = attn.forward(q, k, v, stream=stub_torch.Stream(33, 0))
    assert gpu.launches()[0]["stream"] == "33"
    # Memory came from that stream's pool, and waits for it to be used again.
    assert torch.made == [(o, 33)]
    assert [t.recorded for t in (q, k, v, o)] == [[33]] * 4
    mine = Tensor(*Q)
    attn.forward(q, k, v, out=mine, stream=0)
    assert mine.recorded == [] and q.recorded == [33]


def test_streams_of_every_kind(torch, gpu):
    class Cupy:
        ptr, device_id = 44, 0

    class Protocol:
        def __cuda_stream__(self):
            return 0, 55

    for stream in (33, Cupy(), Protocol()):
        attn.forward(*tensors(), stream=stream)
    assert [e["stream"] for e in gpu.launches()] == ["33", "44", "55"]
    with pytest.raises(ValueError, match="stream expects one of GPU 0, where "
                       "the arrays are, but got one of GPU 1"):
        attn.forward(*tensors(), stream=stub_torch.Stream(3, 1))


def test_given_results(torch, gpu, calls):
    for _ in range(3):
        q, k, v = tensors()
        o = Tensor(*Q)
        lse = Tensor(*Q[:3], dtype=torch.float32)
        assert attn.forward(q, k, v, out=o) is o
        assert attn.forward(q, k, v, out=o, lse=lse) == (o, lse)
    assert calls["attn_forward_bind"] == 2 and torch.made == []


def test_an_allocator_that_aligns_less(torch, gpu):
    torch.offset = 8
    for _ in range(3):
        attn.forward(*tensors())
    assert len(gpu.launches()) == 3


def test_gradients_are_somebody_elses(torch, gpu):
    q, k, v = tensors()
    attn.forward(q, k, v)
    k.requires_grad = True
    for _ in range(2):
        with pytest.raises(ValueError, match="attn.torch.attention is "
                           "differentiable, or detach"):
            attn.forward(q, k, v)
    torch.grad = False  # torch.no_grad()
    attn.forward(q, k, v)
    assert len(gpu.launches()) == 2


@pytest.mark.parametrize("offset", [0, 1 << 20])
def test_a_tensor_freed_early(torch, gpu, offset):
    q, k, v = tensors(offset=offset)
    attn.forward(q, k, v)
    v.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="v: expects a tensor with memory, "
                       "but its storage was freed early: 0 bytes are left of "
                       r"the \d+ that shape \[2, 2, 300, 64\] needs"):
        attn.forward(q, k, v)
    assert len(gpu.launches()) == 1


def test_fake_tensors_have_no_memory(torch):
    class Traced(Tensor):
        def data_ptr(self):
            raise RuntimeError("Cannot access data pointer")

    q, k, v = tensors()
    with pytest.raises(ValueError, match="q: expects a tensor with memory, "
                       "but got .*Traced: Cannot access.*attn.torch"):
        attn.forward(Traced(*Q), k, v)


@pytest.mark.parametrize("change, kind, text", [
    ({"q": Tensor(*Q, device="cpu")}, ValueError, "q: expects an array in "
     "the memory of a CUDA GPU, but got a stub_torch.Tensor on the CPU; move "
     r"it with .cuda\(\)"),
    ({"k": Tensor(*K, device="meta")}, ValueError, "k: .* on meta"),
    ({"v": Tensor(*K, dtype=stub_torch.float64)}, TypeError,
     "v: expects elements of bf16, .*but got torch.float64"),
    ({"k": Tensor(*K, index=1)}, ValueError, "q on GPU 0, k on GPU 1"),
    ({"k": Tensor(*K, strides=(38400, 19200, 1, 300))}, ValueError,
     r"k: expects an innermost stride of 1, but got strides \[38400, 19200, "
     r"1, 300\] .*\.contiguous\(\)"),
    ({"v": None}, TypeError, "v: expects an array on a GPU .*NoneType"),
    ({"q": Tensor(8, 100, 64)}, ValueError, "q of rank 4")])
def test_wrong_tensors(torch, gpu, change, kind, text):
    q, k, v = tensors()
    attn.forward(q, k, v)  # so that the short way is open
    with pytest.raises(kind, match=text):
        attn.forward(**{"q": q, "k": k, "v": v, **change})
    assert len(gpu.launches()) == 1


@pytest.mark.parametrize("which", range(3))
def test_views_that_negate_lazily(torch, gpu, which):
    given = tensors()
    attn.forward(*given)
    given[which].negated = True
    with pytest.raises(ValueError, match=f"{'qkv'[which]}: expects numbers as "
                       r"they lie in memory.*resolve_neg\(\)"):
        attn.forward(*given)
    assert len(gpu.launches()) == 1


def test_layouts_without_strides(torch):
    q, k, v = tensors()
    q.layout = stub_torch.sparse_coo
    with pytest.raises(TypeError, match="q: expects a dense tensor, but got "
                       "layout torch.sparse_coo"):
        attn.forward(q, k, v)
    k.is_nested = True
    with pytest.raises(TypeError, match="layout nested"):
        attn.forward(tensors()[0], k, v)


def test_tensors_beside_other_arrays(torch, gpu):
    q, k, v = tensors()
    mine = Dlpack(*K)
    for _ in range(2):
        o = attn.forward(q, k, mine)
        assert isinstance(o, Tensor)
    torch.current = {0: 66}
    attn.forward(q, mine, v)
    assert [e["stream"] for e in gpu.launches()] == ["0", "0", "66"]
    assert mine.asked[-1]["stream"] == 66


def test_failures_of_the_driver_are_told(torch, gpu, monkeypatch):
    attn.forward(*tensors())
    monkeypatch.setenv("ATTN_FAKE_CUDA_FAIL", "cuLaunchKernel=2")
    for options in ({}, {"return_lse": True}):
        with pytest.raises(attn.DeviceError, match="OUT_OF_MEMORY"):
            attn.forward(*tensors(), **options)


def test_the_short_way_is_bounded(torch, calls, monkeypatch):
    monkeypatch.setattr(_launch, "MOST_LAUNCHES", 4)
    for rows in (*range(1, 10), 9, 9, 1):
        attn.forward(Tensor(1, 2, rows, 64), *tensors_of_two())
    assert calls["attn_forward_bind"] == 10
    assert calls["attn_binding_destroy"] == 6


def tensors_of_two():
    return [Tensor(1, 2, 300, 64) for _ in range(2)]
