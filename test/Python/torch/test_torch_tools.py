"""What the tools in tools/gpu judge with."""

import itertools
import math
import random
import re

import calls
import gradient_calls
import patterns
import problems
import pytest
import reference
import repeat
import schedules
import torch
import train

import attn
from attn import _torch_backward

theirs = torch.nn.functional.scaled_dot_product_attention


def test_the_reference_is_pytorchs_in_fp64():
    q, k, v = (torch.randn(2, heads, rows, 8, dtype=torch.float64)
               for heads, rows in ((4, 9), (2, 12), (2, 12)))
    for mask in ("none", "causal", "causal_bottom_right", "window<3, 2>", "prefix<3>"):
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
    assert reference.relative_error(one * 1.5, one, 10) == 0.25


def test_sizes_are_norms_of_terms():
    q, k, v, do = (torch.randn(2, heads, rows, columns)
                   for heads, rows, columns in
                   ((4, 9, 3), (2, 12, 3), (2, 12, 5), (4, 9, 5)))
    mask, scale, dlse = "window<5, 3>", -0.4, torch.randn(2, 4, 9)
    o, lse = reference.attention(q, k, v, mask, scale)
    squares = dict.fromkeys(("o", "dq", "dk", "dv"), 0.0)
    for b, h, i, j in itertools.product(*map(range, (2, 4, 9, 12))):
        if not i + 3 - 5 <= j <= i + 3 + 3:
            continue
        row, key, value = (t.double() for t in (
            q[b, h, i], k[b, h // 2, j], v[b, h // 2, j]))
        p = math.exp(scale * (row @ key) - lse[b, h, i])
        gradient = do[b, h, i].double()
        ds = (p * scale)**2 * ((gradient @ value)**2 + dlse[b, h, i]**2 + (
            gradient * o[b, h, i]).square().sum())
        squares["o"] += p**2 * (value @ value)
        squares["dq"] += ds * (key @ key)
        squares["dk"] += ds * (row @ row)
        squares["dv"] += p**2 * (gradient @ gradient)
    got = (reference.output_size(q, k, v, mask, scale),
           *reference.gradient_sizes(q, k, v, do, mask, scale, dlse))
    for size, square in zip(got, squares.values()):
        assert size == pytest.approx(math.sqrt(square), rel=1e-5)


def test_sizes_do_not_cancel():
    """Of one key all of dP goes away, and what rounds it does not."""
    q, k, v, do = (torch.tensor(row)[None, None, None] for row in (
        [3.0, 4.0], [6.0, 8.0], [1.0, -2.0, 1.0], [2.0, 2.0, 2.0]))
    dq, dk, dv = reference.gradient_sizes(q, k, v, do, scale=0.5)
    assert dq == pytest.approx(0.5 * 10 * math.sqrt(24))
    assert dk == pytest.approx(0.5 * 5 * math.sqrt(24))
    assert dv == pytest.approx(math.sqrt(12))


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


def test_the_reference_that_is_farther_counts():
    losses = curves(attn=0.05)
    assert not train.judge(losses)["ok"]
    losses["cudnn"] = curves(flash=0.03)["flash"]
    verdict = train.judge(losses)
    assert verdict["ok"] and "attn_from_cudnn" in verdict


def test_a_training_runs():
    """Of a size for a CPU, by PyTorch's attention."""
    size = train.Size(1, 32, 2, 1, 2, 16, 1000, 1e-3, ("math",))
    text = train.make_text(size.characters)
    tokens = torch.tensor([ord(c) for c in text])
    losses, times, parameters = train.train(size, train.with_math, tokens, 128,
                                            4, False)
    assert len(losses) == len(times) == 4 and min(times) > 0
    assert losses[-1] < losses[0] and parameters > 128 * 32


def test_the_large_size_is_of_100_million_parameters():
    size = train.SIZES["large"]
    with torch.device("meta"):
        model = train.Gpt(size, 70, train.with_math)
    assert 95e6 < sum(p.numel() for p in model.parameters()) < 105e6
    assert size.batch * size.rows == 16384 and size.head_dim == 128


def test_one_loss_far_off_or_not_a_number_fails():
    for value in (1.5, math.nan):
        losses = curves(attn=0.01)
        losses["attn"][50] = value
        assert not train.judge(losses)["ok"]


def test_problems_lie_at_the_borders_of_tiles():
    asked = []

    def tiles(problem):
        asked.append(problem)
        return 192, 112

    made = [problems.border_problem(seed, tiles) for seed in range(400)]
    assert len(asked) == 400
    assert {(p.head_dim, p.head_dim_v) for p in made} == set(
        problems.DIM_CLASSES)
    assert {p.inputs for p in made} == set(problems.BORDER_INPUTS)
    for tile, rows in ((192, {p.queries for p in made}),
                       (112, {p.keys for p in made})):
        assert {1, 2, tile - 1, tile, tile + 1, 63, 65, 17} <= rows
    assert any(p.keys < p.queries for p in made)
    assert any(p.heads == 16 * p.kv_heads for p in made)
    assert any(p.shared_heads for p in made)
    assert all(p.work <= 1e9 for p in made)
    again = problems.border_problem(7, tiles)
    assert again == made[7] != made[8]


def test_problems_of_8_bits_are_what_a_kernel_takes():
    made = [problems.random_problem(seed, 300, 1e7, "f8e4m3")
            for seed in range(40)]
    made += [problems.border_problem(seed, lambda _: (64, 64), max_work=1e7,
                                     dtype="f8e4m3") for seed in range(40)]
    for p in made:
        assert p.head_dim % 16 == p.head_dim_v % 16 == 0
        assert max(p.head_dim, p.head_dim_v) <= 256
        text = p.text()
        assert "f8E4M3FN" in text and "f8e4m3" not in text
        assert ("alignment = 16" in text) != p.on_tensors
        call = calls.Call(p, "forward", "cpu")
        for tensor in (call.q, call.k, call.v):
            assert tensor.dtype == torch.float8_e4m3fn
            assert tensor.storage_offset() % 16 == 0
            assert all(step % 16 == 0 for step in tensor.stride()[:3])
        o, lse = reference.attention(call.q, call.k, call.v, p.mask, p.scale)
        outcome = calls.Outcome(o.bfloat16(), lse.float())
        assert not calls.compare(call, outcome)["wrong"]


@pytest.mark.parametrize("dtype", ("bf16", "f16", "f32"))
def test_gradients_are_judged(dtype):
    """The composition in that type passes for a kernel, until it is wrong."""
    for seed in range(30):
        p = problems.random_problem(seed, 200, 1e7, dtype)
        p.inputs = "normal"
        call = gradient_calls.BackwardCall(p, "cpu")
        assert call.do.dtype == call.o.dtype == call.q.dtype
        gradients = _torch_backward.backward(
            call.do, call.q, call.k, call.v, call.o, call.lse, call.dlse,
            p.mask, p.scale)
        outcome = gradient_calls.Gradients(gradients)
        assert not call.compare(outcome)["wrong"], p.describe()
        outcome.changed = ["dk"]
        gradients[2].mul_(1.1)
        assert [text.split(":")[0] for text in
                call.compare(outcome)["wrong"]] == ["dk", "dv"]


def test_the_limit_of_8_bits():
    """Weights that are rounded to e4m3, as a kernel does, lie below it."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, rows, 64).to(torch.float8_e4m3fn)
               for rows in (128, 512, 512))
    expected, lse = reference.attention(q, k, v)
    scores = q.double() @ k.double().mT / 8
    # Relative to the maximum, times 2^4.
    weights = (scores - scores.amax(-1, keepdim=True)).exp() * 16
    rounded = weights.float().to(torch.float8_e4m3fn).double()
    o = rounded @ v.double() / weights.sum(-1, keepdim=True)
    error = reference.relative_error(o.bfloat16(), expected)
    assert 0.02 < error < 0.035
    assert error < reference.tolerance(q.dtype, 512)
    assert reference.tolerance(torch.bfloat16, 512) == 4e-3


@pytest.mark.parametrize("inputs", ("low", "rising", "jumps"))
@pytest.mark.parametrize("scale", (None, -0.05))
def test_steered_scores_are_where_they_should_be(inputs, scale):
    problem = problems.Problem(
        3, "f16", 2, 2, 1, 10, 300, 64, 64, "none", True, scale, False, False,
        dict.fromkeys("qkvo", "bnhd+/2"), inputs, True)
    call = calls.Call(problem, "forward", "cpu")
    assert call.k.stride(1) == 0
    scores = (call.q.double() @ call.k.double().mT) * (scale or 1 / 8)
    powers = scores * math.log2(math.e)
    wanted = calls.steered(inputs, 300, random.Random(0))
    assert wanted.shape == (300,)
    if inputs == "low":
        assert (powers[:, :, :4] + 200).abs().max() < 20
        assert (powers[:, :, 4::5] - 200).abs().max() < 20
    elif inputs == "rising":
        assert (powers[:, :, :4, 250:].mean(-1)
                > powers[:, :, :4, :50].mean(-1) + 15).all()
    else:
        assert powers.max() - powers.min() > 100
    # The reference in 16 bits passes for a kernel.
    o, lse = reference.attention(call.q, call.k, call.v, "none", scale)
    outcome = calls.Outcome(o.half(), lse.float())
    assert not calls.compare(call, outcome)["wrong"]


@pytest.mark.parametrize("dtype", calls.HUGE)
def test_huge_scores_are_exact_or_overflow_with_one_sign(dtype):
    overflow = 0
    for seed in range(40):
        problem = problems.Problem(
            seed, dtype, 1, 2, 2, 9, 40, 64, 64, "none", True, 0.5, False,
            False, dict.fromkeys("qkvo", "bhnd"), "huge")
        call = calls.Call(problem, "forward", "cpu")
        terms = (call.q.double()[..., None, :] * call.k.double()[:, :, None])
        exact = terms.sum(-1)
        overflows = exact.abs() > calls.LARGEST_OF_32_BITS
        overflow += bool(overflows.any())
        assert torch.equal(exact.float().double()[~overflows],
                           exact[~overflows])
        assert not (terms[overflows] < 0).any()
        sizes = terms.abs().sum(-1)
        assert (sizes[~overflows] <= calls.LARGEST_OF_32_BITS).all()
        o, lse = reference.attention(call.q, call.k, call.v, "none", 0.5)
        outcome = calls.Outcome(o.half() if dtype == "f16" else o.bfloat16(),
                                lse.float())
        assert not calls.compare(call, outcome)["wrong"]
    assert (overflow > 0) == (dtype == "bf16")


def test_calls_of_a_schedule_are_aligned():
    for seed in range(30):
        p = problems.narrowed(problems.random_problem(seed, 200, 1e6))
        assert p.head_dim % 8 == p.head_dim_v % 8 == 0
        assert 8 <= min(p.head_dim, p.head_dim_v)
        assert max(p.head_dim, p.head_dim_v) <= 128
        call = gradient_calls.BackwardCall(p, "cpu", "flash_backward")
        assert not call.deterministic
        for tensor in (call.q, call.k, call.v, call.o, call.do):
            assert tensor.storage_offset() % 8 == 0
            assert all(step % 8 == 0 for step in tensor.stride()[:-1])
        assert all(shift % 8 == 0 for _, shift in call.places or ())


def test_one_changed_bit_is_found(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", torch.inference_mode)

    class Inputs:
        outputs, loose = [torch.ones(4, 3), torch.ones(4)], ()
        launches, value = 0, 1.0000001

        def launch(self, outputs, stream):
            self.launches += 1
            for output, first in zip(outputs, self.outputs):
                output.copy_(first)
            if self.launches == 105:
                outputs[1][2] = self.value

    rings = [repeat.Ring(Inputs(), True) for _ in range(2)]
    assert repeat.run(rings, 104, 60) == 0
    assert repeat.run(rings, 100, 60) == 2
    assert rings[0].inputs.launches == 204

    class Loose(Inputs):
        loose = (1,)

    ring = repeat.Ring(Loose(), True)
    assert repeat.run([ring], 200, 60) == 0
    for Loose.value in (1.1, math.nan):
        ring = repeat.Ring(Loose(), True)
        assert repeat.run([ring], 200, 60) == 1


def test_gradients_are_repeated_and_compared_with_fp64(monkeypatch):
    import attn

    def forward(q, k, v, *, mask, out, lse, schedule, stream):
        for result, found in zip((out, lse),
                                 reference.attention(q, k, v, mask)):
            result.copy_(found)

    def backward(do, q, k, v, o, lse, *, mask, deterministic, schedule, dq, dk,
                 dv, stream):
        assert not deterministic and schedule == "flash_backward"
        found = _torch_backward.backward(do, q, k, v, o, lse, None, mask, None)
        for result, gradient in zip((dq, dk, dv), found):
            result.copy_(gradient)

    monkeypatch.setattr(attn, "forward", forward)
    monkeypatch.setattr(attn, "backward", backward)
    monkeypatch.setitem(repeat.PROBLEMS, "small", (
        "bf16", 1, 4, 2, 20, 30, 16, 16, "causal"))
    inputs = repeat.GradientInputs("small", "flash_backward", "cpu", True)
    assert inputs.loose == (0,) and inputs.error() < 1
    inputs.outputs[1].mul_(1.1)
    assert inputs.error() > 1


@pytest.mark.parametrize("queries, keys", [(1, 1), (33, 130), (700, 1500)])
def test_every_schedule_of_the_table_takes_its_problems(queries, keys):
    for line, problem in schedules.problems(queries, keys):
        bound = attn.bound_schedule(attn.Problem(**problem),
                                    machine="h100_sxm",
                                    schedule=line.text or None)
        for part in filter(None, line.text.split(", ")):
            assert part in bound.split(", ")


def test_the_table_has_every_schedule():
    named = {line.name for line in (*schedules.FORWARD, *schedules.BACKWARD)}
    for direction in ("forward", "backward"):
        report = attn.plan(batch=1, heads=2, queries=1000, head_dim=128,
                           direction=direction)
        assert {p.schedule for p in (*report.plans, *report.refused)} <= named


def listed(pattern, p):
    """What the lists of a pattern and the mask let see, block by block."""
    mask, (queries, keys) = pattern.block_mask, pattern.block_mask.block_size
    band = reference.visible(p.mask, p.queries, p.keys)
    seen = torch.zeros(p.batch, p.heads, p.queries, p.keys, dtype=torch.bool)
    for counts, numbers, is_full in (
            (mask.kv_num_blocks, mask.kv_indices, False),
            (mask.full_kv_num_blocks, mask.full_kv_indices, True)):
        if counts is None:
            continue
        counts = counts.expand(p.batch, p.heads, -1)
        numbers = numbers.expand(*counts.shape, -1)
        for b, h, i in itertools.product(*map(range, counts.shape)):
            for j in numbers[b, h, i, :counts[b, h, i]].tolist():
                rows = slice(i * queries, (i + 1) * queries)
                columns = slice(j * keys, (j + 1) * keys)
                seen[b, h, rows, columns] |= band[rows, columns] | is_full
    return seen


def test_lists_of_blocks_say_what_is_visible():
    first = random.randrange(1 << 30)
    for seed in range(first, first + 20):
        p = problems.random_problem(seed, 700, 1e8)
        pattern = patterns.Pattern(p, "cpu")
        seen = pattern.visible.expand(p.batch, p.heads, -1, -1)
        assert torch.equal(seen, listed(pattern, p)), (seed, p.describe())
