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
            torch.empty(4, dtype=torch.int32, device="cuda"),
            torch.empty(4, dtype=torch.int32, device="cuda"))


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


def test_there_is_no_gradient():
    with FakeTensorMode():
        q, *others = tensors()
        o = attn.attention_varlen(q.requires_grad_(), *others, 20, 30)
        # Called as the engine calls it, which would ask for a GPU first.
        assert o.requires_grad
        with pytest.raises(attn.UnsupportedError, match="no gradients yet"):
            o.grad_fn.apply(torch.empty_like(o), None)
