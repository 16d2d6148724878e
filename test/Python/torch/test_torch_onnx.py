"""ONNX's own cases of Attention through attn.torch.onnx_attention, whose kernel
is stood in for by PyTorch's operators in f64: what is checked is which
attention is asked for, and the scores beside it."""

import collections
import math
import os
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2")
pytest.importorskip("onnx")

GPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..",
                   "tools", "gpu")
sys.path.insert(0, GPU)
import onnx_cases  # noqa: E402
import reference  # noqa: E402

sys.path.remove(GPU)

import attn  # noqa: E402
from attn import _clauses, _forward, _problem  # noqa: E402
from attn.torch import attention, onnx_attention  # noqa: E402


def forward(q, k, v, *, scale=None, window=None, mask=None, causal=False,
            softcap=None, attn_mask=None, mask_mod=None, **others):
    """What the arguments say, in fp64; functions have to be traced as well."""
    del others
    asked = {"softcap": softcap, "attn_mask": attn_mask, "mask_mod": mask_mod}
    asked = {name: value for name, value in asked.items() if value is not None}
    if asked:
        text = _clauses.of_call(q, k, None, asked).text
        assert text
        # A softcap is of the scores alone, whatever is added behind it.
        assert "softcap" not in text or "bias" not in text.split("softcap")[0]
    name = _problem.mask_name(causal, window, mask)
    queries, keys = q.shape[2], k.shape[2]
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    b = torch.arange(q.shape[0])[:, None, None, None]
    h = torch.arange(q.shape[1])[:, None, None]
    k, v = (t.double().repeat_interleave(q.shape[1] // t.shape[1], 1)
            for t in (k, v))
    s = q.double() @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        s = softcap * torch.tanh(s / softcap)
    seen = reference.visible(name, queries, keys)
    if mask_mod is not None:
        seen = seen & mask_mod(b, h, i, j)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = seen & attn_mask
    elif attn_mask is not None:
        s = s + attn_mask.double()
    s = s.masked_fill(~seen, -math.inf)
    return s.softmax(-1).nan_to_num(0).matmul(v).to(q.dtype)


CASES = onnx_cases.cases()
REFUSED = {"test_attention_local_window_gqa_rank4_mask":
           "refused: softmax_precision: attn has f32, not f64"}
outcomes = {}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case, monkeypatch):
    monkeypatch.setattr(_forward, "forward", forward)
    outcomes[case.name] = onnx_cases.outcome(case, "cpu")
    assert outcomes[case.name] == REFUSED.get(case.name, "passes")


def test_counts(capsys):
    """Runs behind the cases, and prints how many had which outcome."""
    if len(outcomes) != len(CASES):
        pytest.skip("counts are of all cases")
    with capsys.disabled():
        print()
        for outcome, count in collections.Counter(
                outcomes.values()).most_common():
            print(f"{count:4} {outcome}")
    assert len(CASES) >= 93


@pytest.mark.parametrize("options, message", [
    (dict(softmax_precision=11), "softmax_precision: attn has f32, not f64"),
    (dict(softcap=-1.0), "softcap: expects 0 or more, but got -1"),
    (dict(past_key=torch.zeros(1, 2, 3, 8)), "past_key and past_value"),
    (dict(qk_matmul_output_mode=4), "qk_matmul_output_mode from 0 to 3"),
])
def test_refused(options, message):
    q = torch.zeros(1, 2, 4, 8)
    with pytest.raises((ValueError, attn.UnsupportedError), match=message):
        onnx_attention(q, q, q, **options)


#===-- return_scores -----------------------------------------------------===#


def stages(q, k, **options):
    """All four of `attention`, whose kernel is not run."""
    from attn import _torch_scores
    plain = {name: options.pop(name) for name in ("scale", "mask", "window")
             if name in options}
    return [_torch_scores.scores(q, k, stage, plain, options).double()
            for stage in _torch_scores.STAGES]


def test_stages():
    """Each from the one before, with everything that there is."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8)
    slopes, sinks = torch.randn(4), torch.randn(4)
    bias = torch.randn(4, 5, 7)
    limit = torch.tensor([3, 6])
    scaled, capped, masked, weights = stages(
        q, k, scale=0.3, mask="causal_bottom_right", softcap=2.0,
        alibi_slopes=slopes, bias=bias, sinks=sinks,
        mask_mod=lambda b, h, i, j: j < limit[b])
    i, j = torch.arange(5)[:, None], torch.arange(7)
    wanted = 0.3 * torch.einsum("bhid,bhjd->bhij", q.double(),
                                k.double().repeat_interleave(2, 1))
    torch.testing.assert_close(scaled, wanted, rtol=1e-5, atol=1e-6)
    wanted = 2 * torch.tanh(wanted / 2)
    torch.testing.assert_close(capped, wanted, rtol=1e-5, atol=1e-6)
    wanted = wanted + slopes[:, None, None] * (j - i) + bias
    hidden = (j > i + 2) | (j >= limit[:, None, None, None])
    wanted = wanted.masked_fill(hidden, -math.inf)
    torch.testing.assert_close(masked, wanted, rtol=1e-5, atol=1e-5)
    behind = torch.cat([wanted, sinks.double()[None, :, None, None].expand(
        2, 4, 5, 1)], -1).softmax(-1)[..., :7]
    torch.testing.assert_close(weights, behind, rtol=1e-5, atol=1e-6)


def test_rows_that_see_nothing():
    q, k = torch.randn(1, 1, 5, 8), torch.randn(1, 1, 2, 8)
    *_, masked, weights = stages(q, k, mask="causal_bottom_right")
    assert (masked[..., :3, :] == -math.inf).all()
    assert (weights[..., :3, :] == 0).all()
    assert weights[..., 3:, :].sum(-1).numpy() == pytest.approx(1)
    none = torch.randn(1, 1, 0, 8)
    assert stages(q, none)[-1].shape == (1, 1, 5, 0)


def test_functions_of_scores():
    q = torch.randn(1, 2, 4, 8)
    scaled, capped, *_ = stages(
        q, q, score_mod=lambda s, b, h, i, j: s * (h + 1) + i - j)
    i, j = torch.arange(4)[:, None], torch.arange(4)
    h = torch.arange(2)[:, None, None]
    torch.testing.assert_close(capped, scaled * (h + 1) + i - j, rtol=1e-5,
                               atol=1e-5)


@pytest.mark.parametrize("options, message", [
    (dict(return_scores="raw"), "scaled, capped, masked, weights, but got"),
    (dict(return_scores="weights", block_mask=object()), "beside a block_mask"),
    (dict(return_scores="weights", softcap=1.0, score_mod=lambda *x: x[0]),
     "but got both"),
])
def test_scores_refused(options, message):
    q = torch.zeros(1, 2, 4, 8)
    with pytest.raises((ValueError, attn.UnsupportedError), match=message):
        attention(q, q, q, **options)


def test_scores_are_behind_the_results(monkeypatch):
    import attn.torch
    q = torch.randn(1, 2, 4, 8)
    inner = attn.torch.attention
    seen = []

    def kernel(q, k, v, **options):
        if options.get("return_scores") is None:
            seen.append(options)
            return (q, q[..., 0]) if options["return_lse"] else q
        return inner(q, k, v, **options)

    monkeypatch.setattr(attn.torch, "attention", kernel)
    o, weights = inner(q, q, q, return_scores="weights")
    assert o is q and weights.shape == (1, 2, 4, 4)
    assert weights.sum(-1).numpy() == pytest.approx(1, rel=1e-5)
    results = inner(q, q, q, return_scores="scaled", return_lse=True)
    assert len(results) == 3 and results[2].dtype == torch.float32
    assert seen[0]["return_lse"] is False and seen[1]["return_lse"] is True
    np.testing.assert_allclose(results[2], (q @ q.mT) * 8 ** -0.5, rtol=1e-5,
                               atol=1e-6)
