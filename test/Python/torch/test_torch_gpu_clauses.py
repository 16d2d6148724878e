"""Mask and score functions on a GPU, against dense attention in f32."""

import math

import pytest
import torch
from torch.nn.attention import flex_attention as flex

import attn.torch

pytestmark = [pytest.mark.gpu,
              pytest.mark.filterwarnings("ignore:a mask_mod without")]

BATCH, HEADS, KV_HEADS, QUERIES, KEYS = 2, 4, 2, 400, 520
#: Of the largest element: 16-bit inputs, weights and results.
LIMIT = 0.02


def make():
    return [torch.randn(BATCH, heads, rows, 64, device="cuda",
                        dtype=torch.bfloat16)
            for heads, rows in ((HEADS, QUERIES), (KV_HEADS, KEYS),
                                (KV_HEADS, KEYS))]


def dense(q, k, v, *, score_mod=None, mask_mod=None, softcap=None,
          alibi_slopes=None, bias=None, attn_mask=None, sinks=None):
    q, k, v = (t.float() for t in (q, k, v))
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    b, h, i, j = (torch.arange(n, device="cuda") for n in scores.shape)
    at = b[:, None, None, None], h[:, None, None], i[:, None], j
    if score_mod is not None:
        scores = score_mod(scores, *at)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi_slopes is not None:
        scores = scores + alibi_slopes[..., None, None] * (j - i[:, None])
    if bias is not None:
        scores = scores + bias.float()
    for seen in (attn_mask, mask_mod and mask_mod(*at)):
        if seen is not None:
            scores = scores.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        wide = sinks[:, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, wide], -1)
    weights = scores.softmax(-1).nan_to_num(0)
    return weights[..., :k.shape[2]] @ v


def cases():
    on = dict(device="cuda")
    ids = torch.randint(0, 3, (KEYS,), **on, dtype=torch.int32)
    longs = torch.randint(0, 9, (QUERIES,), **on)
    small = torch.randint(0, 255, (KEYS,), **on, dtype=torch.uint8)
    table = torch.randn(BATCH, HEADS, QUERIES, **on, dtype=torch.bfloat16)
    bias = torch.randn(HEADS, QUERIES, KEYS, **on)
    sinks, slopes = torch.randn(HEADS, **on), torch.rand(HEADS, **on) / 9
    seen = torch.rand(BATCH, 1, QUERIES, KEYS, **on) < 0.5

    def document(b, h, q, k):
        return ids[q] == ids[k]

    return {
        "softcap": dict(softcap=5.0), "alibi": dict(alibi_slopes=slopes),
        "bias": dict(bias=bias), "bias for all": dict(bias=bias[:, :1]),
        "attn_mask": dict(attn_mask=seen), "sinks": dict(sinks=sinks),
        "document": dict(mask_mod=document),
        "window": dict(mask_mod=lambda b, h, q, k:
                       (q - k < 50) & (k - q < 7) | (k % 97 == 3)),
        "rows that see nothing": dict(mask_mod=lambda b, h, q, k:
                                      (k < 9) & (q > 100)),
        "table": dict(score_mod=lambda s, b, h, q, k:
                      s + table[b, h, q] * (k % 3)),
        "where": dict(score_mod=lambda s, b, h, q, k: torch.where(
            longs[q] > 4, s * 0.5, s - (small[k] > 99) * 2.0)),
        "functions": dict(score_mod=lambda s, b, h, q, k:
                          torch.sigmoid(s) * s + torch.exp(-torch.abs(s))),
        "several": dict(softcap=5.0, sinks=sinks, bias=bias,
                        mask_mod=document)}


NAMES = ("softcap", "alibi", "bias", "bias for all", "attn_mask", "sinks",
         "document", "window", "rows that see nothing", "table", "where",
         "functions", "several")


def assert_near(got, expected):
    most = expected.abs().max().clamp(min=1e-3)
    assert float((got.float() - expected).abs().max() / most) < LIMIT


@pytest.mark.parametrize("name", NAMES)
def test_forward_and_gradients(name):
    options = cases()[name]
    tensors = [t.requires_grad_() for t in make()]
    wide = [t.detach().float().requires_grad_() for t in tensors]
    o = attn.torch.attention(*tensors, enable_gqa=True, **options)
    expected = dense(*wide, **options)
    assert_near(o, expected)
    do = torch.randn_like(o)
    o.backward(do)
    expected.backward(do.float())
    for one, other in zip(tensors, wide):
        assert_near(one.grad, other.grad)


@pytest.mark.parametrize("name", ("document", "window"))
def test_flex(name):
    options = cases()[name]
    q, k, v = make()
    mask = flex.create_block_mask(options["mask_mod"], None, None, QUERIES,
                                  KEYS, device="cuda")
    o = attn.torch.flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
    assert_near(o, dense(q, k, v, **options))
