"""Ragged queries on a cache: shapes without memory, what is said of wrong calls,
and, on a GPU, results against those of each sequence by itself."""

import attn
import pytest
import torch
from attn import _kvcache  # noqa: F401: registers the operators
from torch._subclasses.fake_tensor import FakeTensorMode


def cache(page=0, sequences=3, keys=64, tokens=20, device="cuda", **more):
    more = {"dtype": torch.bfloat16, "device": device, **more}
    shape = (30, page, 2, 16) if page else (sequences, keys, 2, 16)
    whole = {"dtype": torch.int32, "device": device}
    return {"q": torch.empty(tokens, 4, 16, **more),
            "k": torch.empty(shape, **more),
            "v": torch.empty(*shape[:3], 32, **more),
            "cu": torch.empty(sequences + 1, **whole),
            "used": torch.empty(sequences, **whole),
            "table": torch.empty(sequences, 4, **whole) if page else None}


@pytest.mark.parametrize("page", (0, 16))
def test_shapes_without_memory(page):
    with FakeTensorMode():
        c = cache(page)
        o, lse = attn.attention_varlen(
            c["q"], c["k"], c["v"], c["cu"], None, 8, 64, causal=True,
            seqused_k=c["used"], block_table=c["table"],
            return_softmax_lse=True)
        same, of_rows = attn.attention_with_kvcache(
            c["q"], c["k"], c["v"], cache_seqlens=c["used"],
            page_table=c["table"], cu_seqlens_q=c["cu"], max_seqlen_q=8,
            return_softmax_lse=True)
    for each, rows in ((o, lse), (same, of_rows)):
        assert each.shape == (20, 4, 32) and each.dtype == torch.bfloat16
        assert rows.shape == (4, 20) and rows.dtype == torch.float32


def test_no_gradients():
    with FakeTensorMode():
        c = cache()
        with pytest.raises(attn.UnsupportedError, match="no gradients"):
            attn.attention_varlen(c["q"].requires_grad_(), c["k"], c["v"],
                                  c["cu"], None, 8, 64, seqused_k=c["used"])


@pytest.mark.parametrize("change, kind, message", [
    (dict(cu_seqlens_q=[0, 1]), TypeError, "cu_seqlens_q: expects a torch"),
    (dict(cu_seqlens_q=torch.zeros(2, 2, dtype=torch.int32)), ValueError,
     "cu_seqlens_q: expects .sequences"),
    (dict(cu_seqlens_q=torch.zeros(4)), TypeError, "expects int32 or int64"),
    (dict(max_seqlen_q=-1), ValueError, "max_seqlen_q: expects 0 or more"),
    (dict(cu_seqlens_q=None, max_seqlen_q=5), ValueError, "q .batch, queries"),
    (dict(cache_seqlens=torch.zeros(5, dtype=torch.int32)), ValueError,
     "a number for each of 3 sequences"),
])
def test_wrong_calls(change, kind, message):
    c = cache(device="cpu")
    given = {"cache_seqlens": c["used"], "cu_seqlens_q": c["cu"], **change}
    with pytest.raises(kind, match=message):
        attn.attention_with_kvcache(c["q"], c["k"], c["v"], **given)


def test_queries_of_a_batch_have_no_longest():
    q, k = torch.zeros(3, 1, 4, 16), torch.zeros(3, 64, 2, 16)
    with pytest.raises(ValueError, match="expects cu_seqlens_q beside"):
        attn.attention_with_kvcache(q, k, k, cache_seqlens=5, max_seqlen_q=1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("page", (0, 16))
def test_each_sequence_is_alone(page):
    torch.manual_seed(1)
    queries, used = [40, 1, 0, 1, 7], [100, 77, 30, 0, 128]
    q = torch.randn(sum(queries), 8, 64, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(5, 128, 2, 64, device="cuda", dtype=torch.bfloat16)
            for _ in "kv")
    cu = torch.tensor([0, *torch.tensor(queries).cumsum(0)],
                      dtype=torch.int32, device="cuda")
    lengths = torch.tensor(used, dtype=torch.int32, device="cuda")
    table, pools = None, (k, v)
    if page:
        order = torch.randperm(5 * 128 // page, device="cuda")
        pools = tuple(torch.empty(len(order), page, 2, 64, device="cuda",
                                  dtype=torch.bfloat16) for _ in "kv")
        for pool, rows in zip(pools, (k, v)):
            pool[order] = rows.view(pool.shape)
        table = order.view(5, -1).int()
    o = attn.attention_varlen(q, *pools, cu, None, 40, 128, causal=True,
                              seqused_k=lengths, page_table=table)
    first = 0
    for n, count in enumerate(queries):
        alone = attn.attention_with_kvcache(
            q[None, first:first + count], k[n:n + 1], v[n:n + 1],
            cache_seqlens=lengths[n:n + 1])
        torch.testing.assert_close(o[first:first + count], alone[0], atol=2e-2,
                                   rtol=2e-2)
        first += count
