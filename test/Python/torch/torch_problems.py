"""Problems for the tests of attn.torch."""

import torch


def make(queries=20, keys=None, *, batch=2, heads=4, kv_heads=None, d=16,
         e=None, dtype=torch.float32, device="cpu", grad=False):
    """Random normal q, k, v."""
    kv_heads, keys = kv_heads or heads, queries if keys is None else keys
    shapes = ((batch, heads, queries, d), (batch, kv_heads, keys, d),
              (batch, kv_heads, keys, e or d))
    return [torch.randn(shape, dtype=torch.float32, device=device).to(dtype)
            .requires_grad_(grad) for shape in shapes]


def gradients(function, tensors, weights):
    """Those of sum(outputs * weights)."""
    outputs = function(*tensors)
    if isinstance(outputs, torch.Tensor):
        outputs = (outputs,)
    loss = sum((o * w.to(o.dtype)).sum() for o, w in zip(outputs, weights))
    return torch.autograd.grad(loss, tensors, materialize_grads=True)
