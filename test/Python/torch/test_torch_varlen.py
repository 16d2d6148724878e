"""attn.attention_varlen under PyTorch's tools, without a GPU."""

import attn
import pytest
import torch
from attn import _torch_varlen  # noqa: F401: registers the operator
from torch._subclasses.fake_tensor import FakeTensorMode


def tensors(tokens=40, keys=60, heads=4, kv_heads=2, dim=64, dim_v=32, **more):
    more = {"dtype": torch.bfloat16, "device": "cuda", **more}
    return (torch.empty(tokens, heads, dim, **more),
            torch.empty(keys, kv_heads, dim, **more),
            torch.empty(keys, kv_heads, dim_v, **more),
            *(torch.empty(4, dtype=torch.int32, device=more["device"])
              for _ in "qk"))


def test_fake_tensors():
    with FakeTensorMode():
        o, lse = attn.attention_varlen(*tensors(), 20, 30, causal=True,
                                       return_softmax_lse=True)
        assert o.shape == (40, 4, 32) and o.dtype == torch.bfloat16
        assert lse.shape == (4, 40) and lse.dtype == torch.float32
        alone = attn.attention_varlen(*tensors(), 20, 30)
        assert alone.shape == (40, 4, 32)


def test_wrong_shapes_are_told_when_traced():
    with FakeTensorMode():
        with pytest.raises(ValueError, match="of rank 3"):
            attn.attention_varlen(torch.empty(1, 4, 40, 64, device="cuda"),
                                  *tensors()[1:], 20, 30)


def test_gradients_have_the_form_of_their_tensors():
    with FakeTensorMode():
        q, k, v, *others = tensors()
        for tensor in (q, k, v):
            tensor.requires_grad_()
        o, lse = attn.attention_varlen(q, k, v, *others, 20, 30, causal=True,
                                       return_softmax_lse=True)
        # Called as the engine calls it, which would ask for a GPU first.
        assert o.requires_grad and lse.requires_grad
        for given in ((torch.empty_like(o), None, None),
                      (None, torch.empty_like(lse), None)):
            gradients = o.grad_fn.apply(*given)
            for tensor, gradient in zip((q, k, v), gradients):
                assert gradient.shape == tensor.shape
                assert gradient.stride() == tensor.stride()
                assert gradient.dtype == tensor.dtype
            assert all(gradient is None for gradient in gradients[3:])


def test_no_second_derivatives():
    with FakeTensorMode():
        q, k, v, *others = tensors()
        o = attn.attention_varlen(q.requires_grad_(), k, v, *others, 20, 30)
        dq = o.grad_fn.apply(torch.empty_like(o).requires_grad_(), None,
                             None)[0]
        with pytest.raises(attn.UnsupportedError, match="second derivatives"):
            dq.grad_fn.apply(torch.empty_like(dq), None, None)


def test_a_gradient_needs_the_lse():
    with FakeTensorMode():
        q, k, v, *others = tensors()
        with pytest.raises(ValueError, match="with_lse=True where a gradient"):
            torch.ops.attn.varlen_forward(q.requires_grad_(), k, v, *others,
                                          20, 30, "none", None, False, None)


@pytest.fixture
def launched(monkeypatch):
    """Calls of launches, which run nothing."""
    calls = []

    def forward(q, k, v, *_, words=0, asked=None):
        calls.append(("forward", words, asked))
        o = q.new_empty(*q.shape[:2], v.shape[2])
        return (o, *(q.new_empty(q.shape[1], q.shape[0], dtype=torch.float32)
                     for _ in range(words)))

    def backward(do, q, k, v, *_, asked=None, **more):
        calls.append(("backward", sorted(more), asked))
        return tuple(torch.ones_like(t) for t in (q, k, v))

    monkeypatch.setattr(_torch_varlen._ragged, "launch", forward)
    monkeypatch.setattr(_torch_varlen._ragged_backward, "launch", backward)
    return calls


def test_clauses_have_gradients_too(launched):
    q, k, v, *others = tensors(device="cpu")
    o, lse = attn.attention_varlen(q.requires_grad_(), k, v, *others, 20, 30,
                                   softcap=30.0, return_softmax_lse=True)
    (o.float().sum() + lse.sum()).backward()
    assert q.grad is not None and k.grad is None
    assert [call[0] for call in launched] == ["forward", "backward"]
    assert launched[0][1:] == (2, {"softcap": 30.0})
    assert launched[1][2] == {"softcap": 30.0}
    attn.attention_varlen(q.detach(), k, v, *others, 20, 30, softcap=30.0)
    assert launched[2][1:] == (0, {"softcap": 30.0})


def test_what_clauses_read_has_no_gradients(launched):
    q, k, v, *others = tensors(device="cpu")
    sinks = torch.zeros(4, requires_grad=True)
    with pytest.raises(attn.UnsupportedError, match="detach"):
        attn.attention_varlen(q, k, v, *others, 20, 30, sinks=sinks)
    assert not launched
