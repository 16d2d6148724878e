"""What the tools in tools/gpu judge with."""

import math
import re

import pytest
import reference
import torch
import train

theirs = torch.nn.functional.scaled_dot_product_attention


def test_the_reference_is_pytorchs_in_fp64():
    q, k, v = (torch.randn(2, heads, rows, 8, dtype=torch.float64)
               for heads, rows in ((4, 9), (2, 12), (2, 12)))
    for mask in ("none", "causal", "causal_bottom_right", "window<3, 2>"):
        seen = reference.visible(mask, 9, 12)
        o, lse = reference.attention(q, k, v, mask, 0.4)
        expected = theirs(q, k, v, seen, scale=0.4, enable_gqa=True)
        assert torch.allclose(o, expected)
        scores = 0.4 * q @ k.repeat_interleave(2, 1).mT
        assert torch.allclose(lse.exp(), (scores.exp() * seen).sum(-1))


def test_a_row_of_the_reference_that_sees_nothing():
    q, k = torch.randn(1, 1, 5, 8), torch.randn(1, 1, 2, 8)
    o, lse = reference.attention(q, k, k, "causal_bottom_right")
    assert not o[0, 0, :3].any() and o[0, 0, 3:].all()
    assert bool((lse[0, 0, :3] == -math.inf).all())
    assert reference.lse_error(lse, lse) == 0
    assert reference.lse_error(lse.nan_to_num(neginf=0), lse) == math.inf


def test_errors_are_relative():
    one = torch.tensor([3.0, 4.0])
    assert reference.relative_error(one * 1.5, one) == pytest.approx(0.5)
    assert reference.relative_error(one, one * 0) == pytest.approx(5)
    assert math.isnan(reference.relative_error(one * math.nan, one))


def test_the_text_is_what_it_says():
    text = train.make_text(20000)
    assert text == train.make_text(20000) != train.make_text(20000, seed=1)
    lines = text.split("\n")[:-1]
    sums = [re.fullmatch(r"(\d+)\+(\d+)=(\d+);", line) for line in lines]
    sums = [tuple(map(int, found.groups())) for found in sums if found]
    assert len(sums) > 50 and all(a + b == c for a, b, c in sums)
    for line in lines:
        if line[0] in "([{":
            while (shorter := re.sub(r"\([a-f]*\)|\[[a-f]*\]|\{[a-f]*\}", "",
                                     line)) != line:
                line = shorter
            assert not line


def curves(attn=0.0, flash=0.01, end=1.0):
    """Losses that fall to `end`, and swing about those of `math`."""
    exact = [3 + (end - 3) * i / 99 for i in range(100)]
    swing = [(-1) ** i for i in range(100)]
    return {"math": exact,
            "flash": [x + flash * s for x, s in zip(exact, swing)],
            "attn": [x + attn * s for x, s in zip(exact, swing)]}


@pytest.mark.parametrize("losses, ok", (
    (curves(attn=0.01), True), (curves(attn=0.0201), True),
    (curves(attn=0.05), False),
    # A yardstick of nothing leaves an allowance.
    (curves(attn=0.0004, flash=0), True), (curves(attn=0.01, flash=0), False),
    # All three fail to learn.
    (curves(attn=0.01, end=2.9), False)))
def test_the_verdict_on_a_training(losses, ok):
    assert train.judge(losses)["ok"] == ok


def test_one_loss_far_off_or_not_a_number_fails():
    for value in (1.5, math.nan):
        losses = curves(attn=0.01)
        losses["attn"][50] = value
        assert not train.judge(losses)["ok"]
