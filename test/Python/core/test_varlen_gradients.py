"""Gradients of sequences of any length, on tensors of a stand-in for PyTorch."""

import pytest
from attn import _ragged_backward
from attn._ragged import Options
from fake_arrays import Interface

D = 64


def offsets(sequences=3, kind="<i4"):
    return Interface(sequences + 1, typestr=kind)


def arrays(torch, heads=8, kv_heads=2, tokens=300, keys=700, lse=None):
    """do, q, k, v, o and lse."""
    return (*(torch.Tensor(n, h, D) for n, h in (
        (tokens, heads), (tokens, heads), (keys, kv_heads), (keys, kv_heads),
        (tokens, heads))),
        torch.Tensor(*(lse or (heads, tokens)), dtype=torch.float32))


def run(named, *, mask="causal_bottom_right", kind="<i4", longest=(200, 400),
        **more):
    options = Options(mask, None, None, None, None, longest)
    return _ragged_backward.launch(*named, offsets(kind=kind),
                                   offsets(kind=kind), options, **more)


def test_runs(torch, gpu, calls):
    for _ in range(2):
        named = arrays(torch)
        gradients = run(named)
        assert [g.shape for g in gradients] == [t.shape for t in named[1:4]]
        assert [g.stride() for g in gradients] == [
            t.stride() for t in named[1:4]]
    assert calls["attn_backward_bind"] == 1
    kernels = [each["kernel"] for each in gpu.launches()]
    assert all("causal_bottom_right_ragged" in kernel for kernel in kernels)
    assert len(set(kernels)) == len(kernels) // 2


def test_lengths_are_nothing_of_a_kernel(torch, gpu):
    run(arrays(torch), longest=(200, 400))
    few = {each["kernel"] for each in gpu.launches()}
    run(arrays(torch), longest=(250, 600))
    assert {each["kernel"] for each in gpu.launches()} == few


def test_both_words_and_a_gradient_of_lse(torch, gpu):
    more = {name: torch.Tensor(8, 300, dtype=torch.float32)
            for name in ("lse_low", "dlse")}
    run(arrays(torch), **more)
    kernels = [each["kernel"] for each in gpu.launches()]
    assert any("_dlse" in kernel for kernel in kernels)
    assert any(kernel.endswith("_low") for kernel in kernels)


def test_offsets_of_64_bits(torch, gpu):
    run(arrays(torch), kind="<i8")
    assert all("ragged64" in each["kernel"] for each in gpu.launches())


def test_wrong_calls(torch, gpu):
    with pytest.raises(ValueError, match="expects lse of shape .8, 300."):
        run(arrays(torch, lse=(300, 8)))
    do, *others = arrays(torch)
    with pytest.raises(ValueError, match="expects do of shape"):
        run((torch.Tensor(299, 8, D), *others))
    with pytest.raises(TypeError, match="expects dlse of f32"):
        run((do, *others), dlse=torch.Tensor(8, 300))
    with pytest.raises(ValueError, match="as many heads"):
        run(arrays(torch, heads=7))
    assert not gpu.launches()

