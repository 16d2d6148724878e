"""Mask and score functions on PyTorch tensors, against PyTorch's own."""

import functools
import os
import re
import sys
import types

import numpy as np
import pytest
import torch
from torch.nn.attention import flex_attention as flex

import attn
import attn.torch
from attn import _backward, _clauses, _forward, _torch_clause_ops

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "core"))
from region_text import evaluate  # noqa: E402

F = torch.nn.functional


def _region(text, keyword):
    found = re.search(rf"^{keyword} \(.*?^}}", text, re.DOTALL | re.MULTILINE)
    return found and found.group(0)


def _named(clauses, keyword):
    found = re.search(rf"^{keyword}\(%(\w+) :", clauses.text, re.MULTILINE)
    return found and next(c.array for c in clauses.captures
                          if c.name == found.group(1))


def _scores(scores, clauses, positions):
    arrays = {c.name: c.array.detach().to(
        torch.float32 if c.array.dtype == torch.bfloat16 else c.array.dtype
    ).numpy() for c in clauses.captures}
    text = _region(clauses.text, "score")
    if text:
        scores = torch.tensor(np.broadcast_to(evaluate(
            text, arrays, z=scores.numpy(), **positions), scores.shape).copy())
    cap = re.search(r"^softcap\((\S+)\)", clauses.text, re.MULTILINE)
    if cap:
        scores = float(cap[1]) * torch.tanh(scores / float(cap[1]))
    slopes, bias = _named(clauses, "alibi"), _named(clauses, "bias")
    if slopes is not None:
        far = torch.tensor(positions["j"] - positions["i"])
        scores = scores + slopes.detach().float()[..., :, None, None] * far
    if bias is not None:
        scores = scores + bias.detach().float()
    text = _region(clauses.text, "sees")
    if text:
        seen = torch.tensor(np.broadcast_to(evaluate(
            text, arrays, **positions), scores.shape).copy())
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores


def _listed(block_mask, shape):
    """Cells of blocks that are looked at, and those of full ones."""
    size = block_mask.block_size
    states = torch.as_tensor(block_mask.to_dense())
    cells = states.repeat_interleave(size[0], -2).repeat_interleave(size[1], -1)
    return cells[..., :shape[-2], :shape[-1]].expand(shape)


@pytest.fixture
def calls(monkeypatch):
    """attn.forward up to the launch, which is computed from the clauses."""
    seen = []

    def launch(q, k, v, *, mask, scale, lse_words, block_mask, clauses,
               **_):
        seen.append(clauses)
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1)
                for t in (k, v))
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        plain = (q @ k.mT).float() * scale
        b, h, i, j = np.meshgrid(*map(np.arange, plain.shape), indexing="ij")
        scores = plain if clauses is None else _scores(
            plain, clauses, dict(b=b, h=h, i=i, j=j, nq=0, nk=0))
        if block_mask is not None:
            states = _listed(block_mask, plain.shape)
            scores = torch.where(states == 2, plain, scores).masked_fill(
                states == 0, -torch.inf)
        if mask == "causal":
            scores = scores.masked_fill(torch.tensor(j > i), -torch.inf)
        sinks = clauses and _named(clauses, "sinks")
        wide = scores if sinks is None else torch.cat(
            [scores, sinks[:, None, None].expand(*scores.shape[:3], 1)], -1)
        lse = wide.logsumexp(-1)
        weights = torch.exp(scores - lse[..., None]).nan_to_num(0)
        return (weights.to(v.dtype) @ v, lse)[:1 + lse_words], None

    monkeypatch.setattr(_forward, "launch", launch)
    monkeypatch.setattr(_forward, "open_paths", lambda *_: None)
    monkeypatch.setattr(_forward, "paths", {})
    monkeypatch.setattr(_clauses, "_warned", True)
    return seen


def make(queries=128, keys=192, heads=4, kv_heads=4):
    return (torch.randn(2, heads, queries, 16),
            torch.randn(2, kv_heads, keys, 16),
            torch.randn(2, kv_heads, keys, 16))


MASKS = {
    "two dimensions": torch.rand(128, 192) < 0.5,
    "keys": torch.rand(2, 1, 1, 192) < 0.5,
    "all": torch.rand(2, 4, 128, 192) < 0.5,
    "heads": torch.rand(4, 128, 192) < 0.5,
    "floats": torch.randn(2, 1, 128, 192),
    "floats of keys": torch.randn(1, 192),
}


@pytest.mark.parametrize("name", MASKS)
def test_attn_mask_is_that_of_pytorch(calls, name):
    q, k, v = make()
    mask = MASKS[name]
    for function in (attn.torch.scaled_dot_product_attention,
                     attn.torch.attention, attn.forward):
        got = function(q, k, v, attn_mask=mask)
        torch.testing.assert_close(
            got, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@pytest.mark.parametrize("shape", ((5, 1, 1, 1, 7), (5, 2, 3, 6, 7), (3, 6, 7),
                                   (6, 7), (7,), (2, 1, 6, 7), (2, 3, 1, 1)))
def test_attn_mask_of_other_ranks(calls, shape):
    q, k = torch.randn(5, 2, 3, 6, 8), torch.randn(5, 2, 3, 7, 8)
    mask = torch.randn(shape)
    torch.testing.assert_close(
        attn.torch.scaled_dot_product_attention(q, k, k, attn_mask=mask),
        F.scaled_dot_product_attention(q, k, k, attn_mask=mask))


SLOPES = torch.rand(4)
IDS = torch.randint(0, 3, (192,), dtype=torch.int32)
TABLE = torch.randn(2, 4, 128, dtype=torch.bfloat16)
SCORES = {
    "relative": lambda s, b, h, q, k: s + (q - k),
    "alibi": lambda s, b, h, q, k: s + SLOPES[h] * (k - q),
    "softcap": lambda s, b, h, q, k: 3 * torch.tanh(s / 3),
    "table": lambda s, b, h, q, k: s + TABLE[b, h, q],
    "where": lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf")),
    "document": lambda s, b, h, q, k: torch.where(IDS[q] == IDS[k], s,
                                                  s - 2.0),
    "scalar tensor": lambda s, b, h, q, k: s * torch.tensor(0.5),
    "sigmoid": lambda s, b, h, q, k: s * torch.sigmoid(s).clamp(max=0.7),
}


@pytest.mark.parametrize("name", SCORES)
def test_flex_score_mod(calls, name):
    q, k, v = make()
    got, lse = attn.torch.flex_attention(q, k, v, SCORES[name],
                                         return_lse=True)
    o, expected = flex.flex_attention(q, k, v, SCORES[name], return_lse=True)
    torch.testing.assert_close(got, o, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(lse, expected, rtol=1e-3, atol=1e-3)


FLEX_MASKS = {
    "causal": lambda b, h, q, k: q >= k,
    "document": lambda b, h, q, k: IDS[q] == IDS[k],
    "and": flex.and_masks(lambda b, h, q, k: q >= k,
                          lambda b, h, q, k: q - k < 50),
    "or": flex.or_masks(lambda b, h, q, k: k < 20,
                        lambda b, h, q, k: q >= k),
    "heads": lambda b, h, q, k: (h % 2 == 0) | (q >= k),
}


@pytest.mark.parametrize("name", FLEX_MASKS)
@pytest.mark.parametrize("heads", (None, 4))
def test_flex_block_mask(calls, name, heads):
    if name == "heads" and heads is None:
        heads = 4
    q, k, v = make(kv_heads=2)
    mask = flex.create_block_mask(FLEX_MASKS[name], None, heads, 128, 192,
                                  device="cpu", BLOCK_SIZE=64)
    options = dict(block_mask=mask, enable_gqa=True)
    got = attn.torch.flex_attention(q, k, v, **options,
                                    kernel_options={"num_warps": 4})
    expected = flex.flex_attention(q, k, v, **options)
    torch.testing.assert_close(got, expected)
    assert "sees" in calls[0].text


def test_flex_names_what_it_lacks(calls):
    q, k, v = make()
    for options, words in (
            (dict(kernel_options={"FAST": True}), "but got FAST=True"),
            (dict(block_mask=3), "expects a BlockMask of torch.nn"),
            (dict(score_mod=lambda s, *a: F.gelu(s)), "but got torch.gelu")):
        with pytest.raises((attn.UnsupportedError, TypeError), match=words):
            attn.torch.flex_attention(q, k, v, **options)
    with pytest.raises(ValueError, match="enable_gqa=True"):
        attn.torch.flex_attention(q, k[:, :2], v[:, :2])


def test_short_arguments(calls):
    q, k, v = make()
    bias, sinks = torch.randn(4, 1, 192), torch.randn(4)
    got = attn.torch.attention(q, k, v, softcap=2.0, alibi_slopes=SLOPES,
                               bias=bias, causal=True)
    far = torch.arange(192) - torch.arange(128)[:, None]
    scores = 2 * torch.tanh(q @ k.mT / 4 / 2) + SLOPES[:, None, None] * far
    scores = (scores + bias).masked_fill(far > 0, -torch.inf)
    torch.testing.assert_close(got, scores.softmax(-1) @ v)
    assert calls[0].text.startswith("softcap(2.000000000e+00)\nalibi(%c0")
    got = attn.torch.attention(q, k, v, sinks=sinks.bfloat16())
    scores = torch.cat([q @ k.mT / 4, sinks.bfloat16().float()[
        :, None, None].expand(2, 4, 128, 1)], -1)
    torch.testing.assert_close(got, scores.softmax(-1)[..., :-1] @ v)


def test_text_depends_on_the_function_not_on_the_arrays(calls):
    q, k, v = make()
    for cap in (3.0, 3.0, 4.0):
        table = torch.randn(4)
        attn.torch.attention(q, k, v, score_mod=lambda s, b, h, q, k:
                             cap * torch.tanh(s / cap) + table[h])
    texts = [clauses.text for clauses in calls]
    assert texts[0] == texts[1] != texts[2]
    assert calls[0].captures[0].array is not calls[1].captures[0].array


@pytest.fixture
def gradients(calls, monkeypatch):
    """What reaches launches of gradients, which give 1, 2 and 3, and of
    captures 4 and more."""
    seen = []

    def backward(do, q, k, v, o, lse, of_captures=(), **more):
        seen.append(dict(more, do=do, of_captures=of_captures))
        return (torch.ones_like(q), torch.ones_like(k) * 2, v * 0 + 3,
                *(torch.full(t.shape, 4.0 + n)
                  for n, t in enumerate(of_captures))), None

    one_word = _forward.launch

    def forward(*arrays, lse_words, **more):
        results, call = one_word(*arrays, lse_words=min(lse_words, 1), **more)
        return (*results, *(torch.zeros_like(results[-1]),) * (lse_words - 1)
                ), call

    monkeypatch.setattr(_backward, "launch", backward)
    monkeypatch.setattr(_forward, "launch", forward)
    return seen


def test_gradients_pass_through_clauses(gradients):
    """What reaches the launch of gradients is what forward said."""
    q, k, v = (t.requires_grad_() for t in make())
    o, lse = attn.torch.attention(q, k, v, causal=True, scale=0.5,
                                  softcap=2.0, return_lse=True)
    (o.sum() + 2 * lse.sum()).backward()
    [seen] = gradients
    assert (seen["do"] == 1).all() and (seen["dlse"] == 2).all()
    # o.sum() expands a number; kernels want rows.
    assert seen["do"].stride(-1) == 1
    assert seen["block_mask"] is None
    assert (seen["mask"], seen["scale"], seen["clauses"].text) == (
        "causal", 0.5, "softcap(2.000000000e+00)")
    assert [float(t.grad.mean()) for t in (q, k, v)] == [1, 2, 3]


@pytest.mark.parametrize("needs", (True, False))
def test_captures_get_gradients(gradients, needs):
    """Those that require them, of their types, with q or without."""
    q, k, v = make()
    q.requires_grad_(needs)
    table, sinks = torch.randn(4, 2), torch.randn(4, dtype=torch.bfloat16)
    far, unasked = torch.full((4,), 90.0), torch.randn(4)
    for tensor in (table, sinks, far):
        tensor.requires_grad_()
    attn.torch.attention(
        q, k, v, sinks=sinks, mask_mod=lambda b, h, q, k: k < far[h] + q,
        score_mod=lambda s, b, h, q, k: s + table[h, 0] * unasked[h]
    ).sum().backward()
    [seen] = gradients
    asked = [each.shape for each in seen["of_captures"]]
    assert asked == [far.shape, table.shape, sinks.shape]
    assert (float(far.grad.mean()), float(table.grad.mean()), sinks.grad.dtype) == (
        4, 5, torch.bfloat16)
    assert float(sinks.grad.mean()) == 6 and unasked.grad is None
    assert (q.grad is not None) == needs


def test_a_capture_may_be_made_of_another(gradients):
    q, k, v = make()
    bias = torch.randn(2, 128, 192, requires_grad=True)
    halves = bias[0] * 0.5
    attn.torch.attention(q, k, v, score_mod=lambda s, b, h, q, k:
                         s + halves[q, k]).sum().backward()
    assert bias.grad.unique().tolist() == [0, 2]


@pytest.mark.parametrize("mask_mod", (None, FLEX_MASKS["causal"]))
@pytest.mark.parametrize("options", ({}, dict(softcap=2.0)))
def test_gradients_of_lists(gradients, mask_mod, options):
    """Lists and what is beside them reach both launches."""
    q, k, v = (t.requires_grad_() for t in make())
    lists = attn.BlockMask.from_mask(torch.randint(3, (2, 3)), block_size=64)
    lists.mask_mod = mask_mod
    expected = attn.torch.attention(*(t.detach() for t in (q, k, v)),
                                    block_mask=lists, **options)
    o = attn.torch.attention(q, k, v, block_mask=lists, **options)
    torch.testing.assert_close(o, expected)
    o.sum().backward()
    [seen] = gradients
    assert seen["block_mask"] is lists
    text = seen["clauses"].text if seen["clauses"] else ""
    assert ("sees" in text, "softcap" in text) == (
        mask_mod is not None, "softcap" in options)
    assert [float(t.grad.mean()) for t in (q, k, v)] == [1, 2, 3]
    with pytest.raises(attn.UnsupportedError, match="of all blocks only"):
        attn.torch.attention(q, k, v, block_mask=lists, keep_weights=True,
                             **options)


def test_flex_gradients_take_transposed_lists(gradients):
    q, k, v = (t.requires_grad_() for t in make())
    mask = flex.create_block_mask(FLEX_MASKS["causal"], None, None, 128, 192,
                                  device="cpu", BLOCK_SIZE=64)
    attn.torch.flex_attention(q, k, v, block_mask=mask).sum().backward()
    lists = gradients[0]["block_mask"]
    assert lists.transpose().kv_indices is mask.q_indices
    assert "sees" in gradients[0]["clauses"].text


COMPILED = {
    "softcap": dict(softcap=3.0),
    "bias": dict(bias=torch.randn(4, 1, 192)),
    "slopes": dict(alibi_slopes=SLOPES),
    "sinks": dict(sinks=torch.randn(4)),
    "attn_mask": dict(attn_mask=MASKS["keys"]),
    "two masks": dict(attn_mask=MASKS["keys"],
                      mask_mod=lambda b, h, q, k: IDS[q] == IDS[k]),
    "lists": dict(block_mask=attn.BlockMask.from_mask(
        torch.randint(3, (2, 3)), block_size=64)),
    **{f"score {name}": dict(score_mod=function)
       for name, function in SCORES.items() if name != "scalar tensor"},
    **{f"mask {name}": dict(mask_mod=function)
       for name, function in FLEX_MASKS.items()},
}


@pytest.mark.parametrize("name", COMPILED)
def test_torch_compile_has_one_graph(gradients, name):
    """With fullgraph a graph that breaks is an error."""
    torch._dynamo.reset()  # there is a limit to graphs of a function
    q, k, v = make()

    def function(q, k, v):
        return attn.torch.attention(q * 2, k, v, causal=True, **COMPILED[name],
                                    return_lse=True)

    expected = function(q, k, v)
    for got, wanted in zip(torch.compile(
            function, backend="eager", fullgraph=True)(q, k, v), expected):
        torch.testing.assert_close(got, wanted)


def test_torch_compile_of_flex_attention(gradients):
    """Closures that are made in the graph, and FlexAttention's lists with
    their transposed ones; gradients too."""
    mask = flex.create_block_mask(FLEX_MASKS["document"], None, None, 128, 192,
                                  device="cpu", BLOCK_SIZE=64)

    def function(q, k, v, table):
        return attn.torch.flex_attention(
            q, k, v, score_mod=lambda s, b, h, i, j: s + table[h, j] * 2,
            block_mask=mask).sum()

    q, k, v = (t.requires_grad_() for t in make())
    table = torch.randn(4, 192)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    got = compiled(q, k, v, table)
    torch.testing.assert_close(got, function(q, k, v, table))
    got.backward()
    assert [float(t.grad.mean()) for t in (q, k, v)] == [1, 2, 3]
    seen = gradients[0]
    assert seen["block_mask"].transpose().kv_indices is not None
    torch.testing.assert_close(seen["block_mask"].transpose().kv_indices,
                               mask.q_indices)
    text = seen["clauses"].text
    assert "sees" in text and "score" in text
    assert {tuple(c.array.shape) for c in seen["clauses"].captures} == {
        (192,), (4, 192)}


def test_torch_compile_gives_captures_gradients(gradients):
    """In the graph, of those that require them, whether q does or not."""
    def function(q, k, v, table, unasked, sinks):
        return attn.torch.attention(
            q, k, v, sinks=sinks,
            score_mod=lambda s, b, h, i, j: s + table[h, j] * unasked[h]).sum()

    q, k, v = make()
    table, sinks = torch.randn(4, 192), torch.randn(4, dtype=torch.bfloat16)
    for needs in (False, True):
        for tensor in (table, sinks):
            tensor.grad = None
            tensor.requires_grad_()
        q.requires_grad_(needs)
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        compiled(q, k, v, table, torch.randn(4), sinks).backward()
        assert [each.shape for each in gradients.pop()["of_captures"]] == [
            table.shape, sinks.shape]
        assert float(table.grad.mean()) == 4 and float(sinks.grad.mean()) == 5
        assert sinks.grad.dtype == torch.bfloat16
        assert (q.grad is not None) == needs


def test_torch_compile_sees_numbers_that_change(calls):
    """A number that torch.compile takes for dynamic, it does not compare with
    objects: so `dynamic=False`, as docs/using.md says."""
    torch._dynamo.reset()
    width = 5

    def function(q, k, v):
        return attn.torch.attention(q, k, v, mask_mod=lambda b, h, i, j:
                                    abs(i - j) < width)

    q, k, v = make()
    compiled = torch.compile(function, backend="eager", fullgraph=True,
                             dynamic=False)
    for width in (5, 9, 9, 17):
        torch.testing.assert_close(compiled(q, k, v), function(q, k, v))
    with pytest.raises(Exception, match="the truth of a symbol"):
        torch.compile(lambda q, k, v: attn.torch.attention(
            q, k, v, mask_mod=lambda b, h, i, j: i if i < j else j),
            backend="eager", fullgraph=True)(q, k, v)


@pytest.mark.long
@pytest.mark.parametrize("listed, captures", ((False, True), (True, True),
                                              (False, False)))
def test_opcheck_clauses(gradients, listed, captures):
    q, k, v = make()
    lists = attn.BlockMask.from_mask(torch.randint(3, (2, 3)), block_size=64)
    arrays = [lists.kv_num_blocks, lists.kv_indices, lists.full_kv_num_blocks,
              lists.full_kv_indices] if listed else []
    text = (([torch.rand(4)], "alibi(%c0 : !c0)", "c0 f32") if captures
            else ([], "softcap(2.0)", ""))
    said = (*text, arrays, [], *((64, 64) if listed else (0, 0)))
    for grad, words in ((False, 0), (False, 1), (True, 2)):
        inputs = [t.detach().requires_grad_(grad) for t in (q, k, v)]
        torch.library.opcheck(torch.ops.attn.clauses_forward.default,
                              (*inputs, *said, "causal", 0.5, words, None))
    o, lse, low = torch.ops.attn.clauses_forward(q, k, v, *said, "none", None,
                                                 2, None)
    torch.library.opcheck(
        torch.ops.attn.clauses_backward.default,
        (o, q, k, v, o, lse, low, None, *said, "none", None))


TEXTS = {
    "a number": lambda n: lambda s, b, h, q, k: s * n,
    "a float or a whole number": lambda n: lambda s, b, h, q, k: s + n / 2,
    "a default": lambda n: lambda s, b, h, q, k, by=n: s * by,
    "a list": lambda n: (lambda numbers: lambda s, b, h, q, k:
                         s * numbers[0])([n]),
    "a helper": lambda n: (lambda helper: lambda s, b, h, q, k:
                           helper(s))(lambda s: s + n),
    "a partial": lambda n: functools.partial(
        lambda n, s, b, h, q, k: s - n, n),
    "an object": lambda n: (lambda it: lambda s, b, h, q, k: s * it.number)(
        types.SimpleNamespace(number=n)),
    "a tensor's value": lambda n: (lambda t: lambda s, b, h, q, k:
                                   s * float(t.sum()))(torch.full((3,), n)),
    "a number as a tensor": lambda n: (lambda t: lambda s, b, h, q, k:
                                       s * t)(torch.tensor(n)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_known_text_is_that_of_the_function(calls, monkeypatch, name):
    """Whatever makes another function is seen; the same function, made anew,
    is not traced again where that is certain."""
    traced = []
    actual = _clauses.trace
    monkeypatch.setattr(_clauses, "trace",
                        lambda *a: traced.append(1) or actual(*a))
    monkeypatch.setattr(_clauses, "_texts", {})
    q, k, v = make(8, 8)
    for number in (2.0, 3.0, 2.0, 3, -0.0, 0.0, 3.0):
        attn.torch.attention(q, k, v, score_mod=TEXTS[name](number))
        captures = _clauses.Captures()
        expected = actual(TEXTS[name](number), "score", captures)
        assert calls[-1].text.endswith(expected.text(captures.all)), number
    always = name in ("an object", "a tensor's value")
    assert len(traced) == (7 if always else 5), len(traced)


def test_arrays_of_a_known_text_are_those_of_the_call(calls):
    q, k, v = make()

    def call(first, second):
        attn.torch.attention(q, k, v, score_mod=lambda s, b, h, q, k:
                             s + first[h] * k + second[h])
        return calls[-1]

    one, two = torch.rand(4), torch.rand(4)
    assert [c.array is t for c, t in zip(call(one, two).captures,
                                         (one, two))] == [True, True]
    assert [c.array is t for c, t in zip(call(two, one).captures,
                                         (two, one))] == [True, True]
    assert len(call(one, one).captures) == 1
    other = call(one, two.to(torch.bfloat16))
    assert [c.type for c in other.captures] == ["f32", "bf16"]
    assert call(one, torch.rand(9)).captures[1].array.shape == (9,)


def test_autocast_casts(calls, monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: True)
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda kind: torch.half)
    q, k, v = make()
    assert attn.torch.attention(q, k, v, softcap=3.0).dtype == torch.half


def test_an_operator_says_clauses_in_one_line():
    """Inductor quotes arguments in comments of one line."""
    ids = torch.zeros(9, dtype=torch.int32)
    clauses = _clauses.clauses_of((1, 2, 9, 9), dict(
        mask_mod=lambda b, h, q, k: ids[q] == ids[k], softcap=3.0,
        sinks=torch.zeros(2)))
    said = _torch_clause_ops.spell(clauses, (), (), (0, 0))
    assert "\n" in clauses.text and "\n" not in f"{said.text}{said.names}"
    assert _torch_clause_ops._clauses_of(
        said.arrays, said.text, said.names) == tuple(
            clauses._replace(captures=tuple(
                capture._replace(source=None) for capture in clauses.captures)))
