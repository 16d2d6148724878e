"""tools/gpu/random_clauses.py without a GPU: what it draws, that its truth is
that of the arguments, and that the library has kernels for them."""

import math
import os
import sys

import pytest

torch = pytest.importorskip("torch", minversion="2")
GPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..",
                   "tools", "gpu")
sys.path.insert(0, GPU)
import random_clauses  # noqa: E402

sys.path.remove(GPU)

from attn import (_backward, _bindings, _clauses, _errors, _launch,  # noqa: E402
                  _problem)
from attn._arrays import Array  # noqa: E402
from attn._block_mask import LISTS, TRANSPOSED  # noqa: E402

SEEDS = range(1, 25)


def test_every_kind_is_drawn():
    drawn = [random_clauses.draw(seed).features for seed in range(1, 501)]
    wanted = {*filter(None, random_clauses.SCORES), "plain scores", "sinks",
              "lists", "lists with a function", "gradients of captures",
              *(f"seen: {each or 'all'}" for each in random_clauses.SEEN),
              *(mask.split("<")[0] for mask in random_clauses.MASKS)}
    for kind in wanted:
        assert sum(kind in features for features in drawn) >= 25, kind


def attention(q, k, v, *, mask, scale, enable_gqa, return_lse,
              block_mask=None, mask_mod=None, score_mod=None, softcap=None,
              alibi_slopes=None, bias=None, attn_mask=None, sinks=None):
    """What the arguments say, in fp64: functions are called on arrays."""
    import reference
    i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None, :]
    b = torch.arange(q.shape[0])[:, None, None, None]
    h = torch.arange(q.shape[1])[:, None, None]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (t.double().repeat_interleave(q.shape[1] // t.shape[1], 1)
            for t in (k, v))
    s = q.double() @ k.mT * scale
    if score_mod is not None:
        s = score_mod(s, b, h, i, j)
    if softcap is not None:
        s = softcap * torch.tanh(s / softcap)
    if alibi_slopes is not None:
        s = s + alibi_slopes[..., None, None] * (j - i)
    s = s + (0 if bias is None else bias.double())
    seen = reference.visible(mask, q.shape[2], k.shape[2], "cpu")
    if block_mask is not None:
        mask_mod = block_mask.mask_mod
    if mask_mod is not None:
        seen = seen & mask_mod(b, h, i, j)
    if attn_mask is not None:
        seen = seen & attn_mask
    if block_mask is not None:
        rows, columns = block_mask.block_size
        tiles = block_mask.to_dense().repeat_interleave(rows, -2)
        tiles = tiles.repeat_interleave(columns, -1)[
            ..., :q.shape[2], :k.shape[2]]
        # Of a full block all is seen, whatever the mask says.
        seen = (tiles == 2) | (tiles == 1) & seen
    s = s.masked_fill(~seen.expand_as(s), -math.inf)
    if sinks is not None:
        s = torch.cat([s, sinks.double()[None, :, None, None].expand(
            *s.shape[:3], 1)], -1)
    top = s.detach().amax(-1, keepdim=True).clamp_min(-1e300)
    total = torch.exp(s - top).sum(-1, keepdim=True)
    weights = torch.exp(s - top) / total.masked_fill(total == 0, 1)
    lse = torch.where(total == 0, total, total.masked_fill(
        total == 0, 1).log() + top)[..., 0]
    lse = torch.where(total[..., 0] == 0, -math.inf, lse)
    return (weights[..., :k.shape[2]] @ v).to(q.dtype), lse.float()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_truth_is_that_of_the_arguments(seed, monkeypatch):
    monkeypatch.syspath_prepend(GPU)
    case = random_clauses.Case(random_clauses.draw(seed), "cpu")
    assert case.errors(attention) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_result_is_seen(seed, monkeypatch):
    monkeypatch.syspath_prepend(GPU)
    case = random_clauses.Case(random_clauses.draw(seed), "cpu")

    def wrong(q, k, v, **options):
        o, lse = attention(q, k, v, **options)
        return o, lse + 0.05 * (1 + lse.abs().nan_to_num(posinf=0))

    sees_nothing = not case.drawn.sinks and not case.visible.any()
    assert sees_nothing or case.errors(wrong)


def described(tensor, dtype=""):
    return Array(0, dtype, tuple(tensor.shape), tensor.stride(), 0, None)


@pytest.mark.parametrize("seed", SEEDS)
def test_there_are_kernels(seed, monkeypatch):
    """Both directions are planned for an H100, or refused by name."""
    monkeypatch.syspath_prepend(GPU)
    case = random_clauses.Case(random_clauses.draw(seed), "cpu")
    p, options = case.drawn.problem, case.options
    lists = options.get("block_mask")
    asked = {name: options[name] for name in _clauses.NAMES if name in options}
    clauses = _clauses.of_call(case.q, case.k, lists, asked)
    captured = {} if clauses is None else dict(
        clauses=clauses, described=[
            (capture, described(capture.array))
            for capture in clauses.captures])
    q, k, v = (described(t, p.dtype) for t in (case.q, case.k, case.v))
    o = torch.empty(*case.q.shape[:3], p.head_dim_v)
    rows = described(torch.empty(case.q.shape[:3]), "f32")
    o = described(o, p.dtype)
    size = (0, 0) if lists is None else lists.block_size
    pairs = [] if lists is None else list(zip(LISTS, lists.arrays()))
    both = pairs if lists is None else [
        *pairs, *zip(TRANSPOSED, lists.transpose().arrays()[:len(pairs)])]
    common = (_problem.mask_name(mask=p.mask), p.scale, "h100_sxm", None, None)
    assert _bindings.schedule_of(
        "forward", dict(q=q, k=k, v=v, o=o, lse=rows, **{
            name: described(each) for name, each in pairs}),
        _launch.NAMES, *common, block_size=size, **captured)
    wanted = [] if clauses is None else [
        described(capture.array) if capture.array.is_floating_point() else None
        for capture in clauses.captures]
    try:
        found = _bindings.schedule_of(
            "backward", dict(do=o, q=q, k=k, v=v, o=o, lse=rows, lse_low=rows,
                             dlse=rows, dq=q, dk=k, dv=v, **{
                                 name: described(each)
                                 for name, each in both}),
            (*_backward.INPUTS, *_backward.GRADIENTS), *common, False,
            block_size=size, gradients=wanted, **captured)
    except _errors.UnsupportedError as error:
        pytest.fail(f"seed {seed}: {case.drawn}: {error}")
    assert "backward" in found
