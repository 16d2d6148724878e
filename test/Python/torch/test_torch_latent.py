"""Attention on a cache of latent vectors, whose first columns are values."""

import pytest
import reference
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import attn
from attn import _launch


def test_shapes_without_memory():
    with FakeTensorMode():
        q, cache = torch.empty(3, 2, 8, 80), torch.empty(3, 64, 1, 80)
        o, lse = attn.attention_with_kvcache(
            q, cache, None, v_head_dim=48, cache_seqlens=7,
            return_softmax_lse=True)
    assert o.shape == (3, 2, 8, 48) and lse.shape == (3, 8, 2)


def test_what_is_launched(monkeypatch):
    """One array, and how many of its columns are values."""
    calls = []

    def launch(q, k, v, **options):
        calls.append((k, v, options))
        return (torch.empty(*q.shape[:3], options["v_head_dim"]),), None

    monkeypatch.setattr(_launch, "launch", launch)
    q, cache = torch.empty(3, 2, 8, 80), torch.empty(3, 64, 1, 80)
    o = attn.attention_with_kvcache(q, cache, None, v_head_dim=48,
                                    cache_seqlens=7)
    k, v, options = calls[0]
    assert k.data_ptr() == cache.data_ptr() and v is None
    assert options["v_head_dim"] == 48 and o.shape == (3, 2, 8, 48)


@pytest.mark.parametrize("options, message", [
    (dict(v_cache=None), "but got neither"),
    (dict(v_head_dim=48), "but got both"),
    (dict(v_cache=None, v_head_dim=81), "columns of k, 1 to 80, but got 81"),
])
def test_wrong_calls(options, message):
    cache = torch.empty(3, 64, 1, 80)
    with pytest.raises(ValueError, match=message):
        attn.attention_with_kvcache(
            torch.empty(3, 2, 8, 80), cache,
            **{"v_cache": cache, "cache_seqlens": 7, **options})


# -- On a GPU ------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("heads, dim, dim_v", ((128, 576, 512), (16, 80, 48)))
@pytest.mark.parametrize("page", (0, 16, 64))
def test_results(heads, dim, dim_v, page):
    q = torch.randn(4, 1, heads, dim, device="cuda", dtype=torch.bfloat16)
    cache = torch.randn(4, 512, 1, dim, device="cuda", dtype=torch.bfloat16)
    used = [512, 0, 1, 300]
    truth = []
    for number, length in enumerate(used):
        keys = cache[number:number + 1, :length].double().transpose(1, 2)
        one = q[number:number + 1].double().transpose(1, 2)
        truth.append(reference.attention(one, keys, keys[..., :dim_v])[0]
                     if length else torch.zeros_like(one[..., :dim_v]))
        cache[number, length:] = torch.nan
    table = None
    if page:
        order = torch.randperm(4 * 512 // page, device="cuda")
        pool = torch.empty_like(cache).view(-1, page, 1, dim)
        pool[order] = cache.reshape(pool.shape)
        cache, table = pool, order.view(4, -1).int()
    o = attn.attention_with_kvcache(
        q, cache, None, v_head_dim=dim_v, page_table=table, check=True,
        cache_seqlens=torch.tensor(used, dtype=torch.int32, device="cuda"))
    truth = torch.cat(truth).transpose(1, 2)
    assert reference.relative_error(o, truth) < reference.TOLERANCE[q.dtype]
    assert not o[1].any()


@pytest.mark.gpu
def test_forward():
    q = torch.randn(2, 8, 5, 80, device="cuda", dtype=torch.bfloat16)
    k = torch.randn(2, 1, 300, 80, device="cuda", dtype=torch.bfloat16)
    o, lse = attn.forward(q, k, None, v_head_dim=48, return_lse=True)
    apart, other = attn.forward(q, k, k[..., :48], return_lse=True)
    torch.testing.assert_close(o, apart, atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(lse, other)
