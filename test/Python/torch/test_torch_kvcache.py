"""Attention on a cache: what is said of wrong calls, what shapes there are,
and, on a GPU, results against fp64."""

import re

import pytest
import reference
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import attn
from attn import _kvcache, _launch, _torch_varlen_cache


def cache(batch=3, keys=64, queries=1, heads=4, kv_heads=2, dim=16, page=0,
          device="cpu", dtype=torch.bfloat16):
    q = torch.randn(batch, queries, heads, dim, device=device, dtype=dtype)
    k, v = (torch.randn(batch, keys, kv_heads, dim, device=device, dtype=dtype)
            for _ in "kv")
    if not page:
        return q, k, v, None
    order = torch.randperm(batch * keys // page, device=device)
    pools = [torch.empty(len(order), page, kv_heads, dim, device=device,
                         dtype=dtype) for _ in "kv"]
    for pool, rows in zip(pools, (k, v)):
        pool[order] = rows.view(pool.shape)
    return q, *pools, order.view(batch, -1).int()


def lengths(*values, dtype=torch.int32, device="cpu"):
    return torch.tensor(values, dtype=dtype, device=device)


@pytest.mark.parametrize("page", (0, 16))
def test_shapes_without_memory(page):
    """The operator of tensors without memory gives what the launch gives."""
    with FakeTensorMode():
        q, k, v, _ = cache(queries=5)
        table = None
        if page:
            k, v = (t.view(-1, page, 2, 16) for t in (k, v))
            table = torch.empty(3, 4, dtype=torch.int32)
        o, lse = attn.attention_with_kvcache(
            q, k, v, cache_seqlens=torch.empty(3, dtype=torch.int64),
            page_table=table, return_softmax_lse=True)
        alone = attn.attention_with_kvcache(q, k, v, cache_seqlens=7,
                                            block_table=table)
    assert o.shape == alone.shape == q.shape and o.stride() == q.stride()
    assert lse.shape == (3, 4, 5) and lse.dtype == torch.float32


def test_what_is_launched(monkeypatch):
    """Heads come first, as attn has them, and nothing is copied."""
    calls = []

    def launch(q, k, v, **options):
        placed = options.pop("place_of_rows")
        calls.append((q, k, v, options, placed))
        return (torch.empty_like(q), torch.empty(q.shape[:3])), None

    monkeypatch.setattr(_launch, "launch", launch)
    monkeypatch.setattr(_torch_varlen_cache.Kind, "remember", lambda *_: None)
    q, k, v, table = cache(page=16, queries=2)
    used = lengths(64, 3, 0, dtype=torch.int64)
    o, lse = attn.attention_with_kvcache(
        q, k, v, cache_seqlens=used, page_table=table, softmax_scale=0.5,
        window_size=(7, -1), num_splits=3, return_softmax_lse=True)
    attn.attention_with_kvcache(q, k, v, cache_seqlens=used, causal=False,
                                block_table=table, window_size=(7, 2))
    attn.attention_with_kvcache(q, k, v, cache_seqlens=used, causal=False,
                                block_table=table)
    attn.attention_with_kvcache(q, k, v, cache_seqlens=used, page_table=table)
    first = calls[0]
    assert [t.data_ptr() for t in first[:3]] == [q.data_ptr(), k.data_ptr(),
                                                 v.data_ptr()]
    assert first[0].shape == (3, 4, 2, 16) and first[1].shape == (12, 2, 16, 16)
    assert first[3] == {"mask": "window<7, 0>", "scale": 0.5, "lse_words": 1,
                        "schedule": "flash, parts = 3", "clauses": None,
                        "v_head_dim": None}
    assert [call[3]["mask"] for call in calls[1:]] == [
        "window<7, 2>", "none", "causal_bottom_right"]
    assert o.shape == q.shape and lse.shape == (3, 4, 2)


WRONG = [
    (dict(cache_seqlens=lengths(1, 2)), ValueError,
     "a number for each of 3 sequences, but got shape [2]"),
    (dict(cache_seqlens=lengths(1, 2, 3).float()), TypeError,
     "expects int32 or int64, but got torch.float32"),
    (dict(cache_seqlens="5"), TypeError, "an integer or a torch.Tensor"),
    (dict(page_table=torch.zeros(3, 4)), TypeError, "page_table: expects int32"),
    (dict(page_table=torch.zeros(2, 4, dtype=torch.int32)), ValueError,
     "for 3 sequences, but got shape [2, 4]"),
    (dict(page_table=torch.zeros(3, 4, dtype=torch.int32),
          block_table=torch.zeros(3, 4, dtype=torch.int32)), ValueError,
     "page_table or block_table"),
    (dict(k_descale=torch.ones(2, 2)), ValueError,
     "k_scale: expects a number or shape [batch, kv_heads], either of which "
     "may be 1, here batch 3, but got [2, 2]"),
    (dict(v_descale=torch.ones(3, 2, dtype=torch.bfloat16)), TypeError,
     "v_scale: expects float32, but got bfloat16"),
    (dict(q_descale="1"), TypeError,
     "q_descale: expects a number or an array of float32, but got str"),
    (dict(num_splits=-1), ValueError, "num_splits: expects 0"),
    (dict(num_splits=2, schedule="flash"), ValueError,
     "num_splits or a schedule"),
]


@pytest.mark.parametrize("options, kind, message", WRONG)
def test_wrong_calls(options, kind, message):
    q, k, v, _ = cache()
    with pytest.raises(kind, match=re.escape(message)):
        attn.attention_with_kvcache(
            q, k, v, **{"cache_seqlens": lengths(1, 2, 3), **options})


def test_wrong_pages():
    q, k, v, table = cache(page=16)
    with pytest.raises(ValueError, match="multiple of 8 tokens, but got 12"):
        attn.attention_with_kvcache(q, k[:, :12], v[:, :12], cache_seqlens=1,
                                    page_table=table)
    with pytest.raises(ValueError, match="expects q .batch, queries"):
        attn.attention_with_kvcache(q[0], k, v, cache_seqlens=1)


def test_types_of_caches():
    q, k, v, _ = cache()
    few = torch.float8_e4m3fn
    for wrong in ((q, k.to(few), v), (q, k, v.to(few)),
                  (q.float(), k.to(few), v.to(few)), (q.to(few), k, v)):
        with pytest.raises(TypeError, match="of one type, or both caches of "
                           "float8_e4m3fn under queries of bfloat16 or"):
            attn.attention_with_kvcache(*wrong, cache_seqlens=1)
    with FakeTensorMode():
        for dtype in (few, torch.bfloat16, torch.float16):
            q = torch.empty(3, 1, 2, 16, dtype=dtype)
            k, v = (torch.empty(3, 8, 2, 16, dtype=few) for _ in "kv")
            o = attn.attention_with_kvcache(q, k, v, cache_seqlens=1,
                                            k_descale=2.0)
            assert o.shape == q.shape
            assert o.dtype == (torch.bfloat16 if dtype == few else dtype)


def test_scales(monkeypatch):
    """Of any form, as clauses; the tensors themselves, which a graph reads."""
    calls = []

    def launch(q, k, v, **options):
        calls.append(options["clauses"])
        return (torch.empty_like(q),), None

    monkeypatch.setattr(_launch, "launch", launch)
    q, k, v, _ = cache()
    each, one = torch.rand(3, 2), torch.tensor(0.5)
    of_head = torch.rand(2)
    attn.attention_with_kvcache(q, k, v, cache_seqlens=3, q_descale=one,
                                k_descale=each, v_descale=2.0, softcap=30.0)
    attn.attention_with_kvcache(q, k, v, cache_seqlens=3, v_descale=each)
    attn.attention_with_kvcache(q, k, v, cache_seqlens=3, v_descale=of_head)
    assert calls[2].captures[0].array.tolist() == [of_head.tolist()]
    assert calls[0].text == ("softcap(3.000000000e+01)\n"
                             "scales(q %c0, k %c1, v %c2 : !c0, !c1, !c2)")
    arrays = [capture.array for capture in calls[0].captures]
    assert arrays[1] is each
    assert arrays[0].tolist() == [[0.5]] and arrays[2].tolist() == [[2.0]]
    assert calls[1].text == "scales(v %c0 : !c0)"


def test_contents_are_checked():
    """Of entries behind the tokens that a sequence has nobody asks."""
    _, k, _, table = cache(page=16)
    table[1, 1:] = -1
    _kvcache.check_contents(k, lengths(64, 16, 0), table)
    with pytest.raises(ValueError, match=re.escape(
            "page_table[1, 1]: expects a page, 0 to 11, but got -1")):
        _kvcache.check_contents(k, lengths(64, 17, 0), table)
    with pytest.raises(ValueError, match=re.escape(
            "cache_seqlens[2]: expects 0 to 64")):
        _kvcache.check_contents(k, lengths(64, 16, 65), table)


# -- On a GPU ------------------------------------------------------------------


def exact(q, k, v, used, mask):
    """Of every sequence by itself, in fp64."""
    outputs = []
    for number, length in enumerate(used):
        rows = [t[number:number + 1].double().transpose(1, 2)
                for t in (q, k[:, :length], v[:, :length])]
        outputs.append(reference.attention(*rows, mask=mask)[0] if length
                       else torch.zeros_like(rows[0]))
    return torch.cat(outputs).transpose(1, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("page", (0, 8, 16, 128))
@pytest.mark.parametrize("queries", (1, 3))
def test_results(page, queries):
    q, k, v, _ = cache(4, 512, queries, 8, 2, 64, device="cuda")
    used = [512, 0, 1, 300]
    truth = exact(q, k, v, used, "causal_bottom_right")
    for number, length in enumerate(used):
        k[number, length:] = v[number, length:] = torch.nan
    table = None
    if page:
        order = torch.randperm(4 * 512 // page, device="cuda")
        pools = [torch.empty_like(t).view(-1, page, 2, 64) for t in (k, v)]
        for pool, rows in zip(pools, (k, v)):
            pool[order] = rows.reshape(pool.shape)
        k, v = pools
        table = order.view(4, -1).int()
        for number, length in enumerate(used):
            table[number, -(-length // page):] = 2 ** 31 - 1
    o = attn.attention_with_kvcache(
        q, k, v, cache_seqlens=lengths(*used, device="cuda"), page_table=table,
        check=True)
    assert reference.relative_error(o, truth) < reference.TOLERANCE[q.dtype]
    assert not o[1].any()


@pytest.mark.gpu
def test_graph_with_other_lengths():
    q, k, v, table = cache(4, 512, 1, 8, 2, 64, page=16, device="cuda")
    used = lengths(512, 0, 1, 300, device="cuda")

    def call():
        return attn.attention_with_kvcache(q, k, v, cache_seqlens=used,
                                           page_table=table)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            o = call()
    for number in range(5):
        used.copy_(torch.randint(0, 513, (4,)))
        table.copy_(torch.randperm(128).view(4, -1))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(o, call())
