"""The stand-in for torch.nn.functional.scaled_dot_product_attention."""

import pytest
import torch
from torch_problems import make

import attn
from attn.torch import scaled_dot_product_attention as ours

theirs = torch.nn.functional.scaled_dot_product_attention

SHAPES = {
    "rank 4": ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)),
    "rank 3": ((4, 5, 8), (4, 7, 8), (4, 7, 8)),
    "rank 2": ((5, 8), (7, 8), (7, 8)),
    "rank 6": ((2, 1, 3, 4, 5, 8), (2, 1, 3, 4, 7, 8), (2, 1, 3, 4, 7, 8)),
    "one head of keys": ((2, 4, 5, 8), (2, 1, 7, 8), (2, 1, 7, 8)),
    "one batch of keys": ((2, 4, 5, 8), (1, 4, 7, 8), (1, 4, 7, 8)),
    "one query head": ((2, 1, 5, 8), (2, 4, 7, 8), (2, 4, 7, 8)),
    "ranks 4 and 3": ((2, 4, 5, 8), (4, 7, 8), (4, 7, 8)),
    "ranks 3 and 2": ((4, 5, 8), (7, 8), (7, 8)),
    "no batch": ((0, 4, 5, 8), (0, 4, 7, 8), (0, 4, 7, 8)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("options", ({}, {"is_causal": True},
                                     {"scale": 0.3, "is_causal": True}))
def test_agrees_with_pytorch(stand_in, shapes, options):
    tensors = [torch.randn(shape) for shape in shapes]
    got, expected = ours(*tensors, **options), theirs(*tensors, **options)
    assert got.shape == expected.shape
    assert torch.allclose(got, expected, atol=1e-5)
    assert len(stand_in) == 1


@pytest.mark.parametrize("rank", (3, 4, 5))
def test_grouped_heads(stand_in, rank):
    q, k, v = (t.reshape(*[1] * (rank - 3), *t.shape[1:]) for t in make(
        5, 7, batch=1, heads=6, kv_heads=2))
    got = ours(q, k, v, enable_gqa=True)
    assert torch.allclose(got, theirs(q, k, v, enable_gqa=True), atol=1e-5)
    for function, kind in ((ours, ValueError), (theirs, RuntimeError)):
        with pytest.raises(kind):
            function(q, k, v)


def test_gradients_reach_the_broadcast_tensors(stand_in):
    results = []
    for function in (ours, theirs):
        torch.manual_seed(1)
        q = torch.randn(2, 4, 5, 8, requires_grad=True)
        k = torch.randn(1, 1, 7, 8, requires_grad=True)
        (function(q, k, k) ** 2).sum().backward()
        results.append((q.grad, k.grad))
    for got, expected in zip(*results):
        assert torch.allclose(got, expected, atol=1e-4)


def test_takes_arguments_by_position(stand_in):
    q, k, v = make(5, 7)
    assert torch.allclose(ours(q, k, v, None, 0.0, True),
                          theirs(q, k, v, None, 0.0, True), atol=1e-5)


def test_compiles(stand_in):
    tensors = [torch.randn(shape) for shape in SHAPES["ranks 4 and 3"]]
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*tensors), ours(*tensors))


Q = torch.zeros(1, 2, 8, 16)


@pytest.mark.parametrize("options, text", (
    ({"dropout_p": 0.1}, "dropout_p=0.0, but got 0.1"),))
def test_says_which_argument_is_not_supported(options, text):
    with pytest.raises(NotImplementedError, match=text) as caught:
        ours(Q, Q, Q, **options)
    assert caught.type is attn.UnsupportedError


@pytest.mark.parametrize("tensors, kind, text", (
    ((Q[0, 0, 0], Q, Q), ValueError, r"rank 2 or more.* \[16\]"),
    ((Q, [1], Q), TypeError, "key: expects a torch.Tensor, but got list"),
    ((Q.expand(3, 2, 8, 16), Q.expand(2, 2, 8, 16), Q), ValueError,
     r"leading dimensions that broadcast.*query \[3, 2, 8, 16\]"),
    ((Q, Q, Q), ValueError, "on the CPU")))
def test_wrong_calls(tensors, kind, text):
    with pytest.raises(kind, match=text):
        ours(*tensors)
