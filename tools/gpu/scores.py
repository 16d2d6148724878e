#!/usr/bin/env python3
"""Attention on a GPU with scores of any size: right, and how fast?

    scores.py [--seeds N] [--time] [--sums]

Queries and keys are whole numbers, so that f32 holds their scores exactly, and
scales go up to 1e38 of either sign; of gradients, whose weights come from lse,
only up to 1.  Prints one line per kernel and type (schedules.py) and ends with
the number of wrong results, 0 being right.

    --time   only microseconds of ordinary problems, to compare builds: run it
             with each, on one machine
    --sums   only the error of long sums of one sign, o over keys and dv over queries,
             beside what docs/using.md states
"""
import argparse
import math
import random
import statistics
import sys

PARSER = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
PARSER.add_argument("--seeds", type=int, default=12)
PARSER.add_argument("--time", action="store_true")
PARSER.add_argument("--sums", action="store_true")
if __name__ == "__main__":
    OPTIONS = PARSER.parse_args()  # help needs no GPU

import reference  # noqa: E402
import schedules  # noqa: E402
import torch  # noqa: E402

import attn  # noqa: E402

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
DTYPES = {schedules.F16: F16, schedules.BF16: BF16, schedules.F32: F32}
LIMITS = {BF16: 6e-3, F16: 1e-3, F32: 1e-5}
LARGEST = torch.finfo(F32).max


def truth(q, k, v, scale, mask):
    """(o, lse) in f64.  A mask leaves no row without keys."""
    s = q.double() @ k.double().transpose(-1, -2) * scale
    if mask == "causal":
        rows, keys = s.shape[-2:]
        seen = torch.ones(rows, keys, dtype=torch.bool, device=s.device).tril()
        s = s.masked_fill(~seen, -math.inf)
    # Not exp(s - lse): beside a large maximum lse has no room for log(sum).
    return torch.softmax(s, -1) @ v.double(), torch.logsumexp(s, -1)


def error(o, want):
    return ((o.double() - want).norm() / want.norm()).item()


def lse_error(lse, want):
    """Relative beyond 1; scores that overflow f32 are infinite."""
    over = want.abs() > LARGEST * (1 - 2**-20)
    off = (lse.double() - want).abs() / want.abs().clamp(min=1)
    off = torch.where(over, torch.where(lse.abs() > LARGEST * .99, 0., 1.), off)
    return off.max().item()


def whole(most, *shape):
    return torch.randint(-most, most + 1, shape, device="cuda").float()


def draw(d, e, dtype, far):
    """Whole scores: far apart, or near each other and far from 0."""
    n, m = random.choice((1, 33, 200, 700)), random.choice((1, 130, 700, 1500))
    heads = random.choice((1, 3))
    q, k = whole(1 if far else 2, 1, heads, n, d), \
        whole(1 if far else 2, 1, heads, m, d)
    if far:
        q[..., 0] = 2. ** random.randint(5, 8)
        k[..., 0] = random.choice((1, -1)) * 2. ** random.randint(5, 8)
        scale = random.choice((1, 1, -1)) * 2. ** random.randint(-4, 1)
    else:
        scale = random.choice((1, 1, -1)) * 10 ** random.uniform(3, 38)
    v = torch.randn(1, heads, m, e, device="cuda")
    return *(t.to(dtype) for t in (q, k, v)), scale


def forward(q, k, v, **options):
    o, lse = attn.forward(q, k, v, return_lse=True, **options)
    torch.cuda.synchronize()
    return o, lse


def lines(table):
    """(line, type, its title) of all lines."""
    for line in table:
        for name in line.dtypes:
            yield line, DTYPES[name], (f"{line.name:>14} d {line.head_dim:4} "
                                       f"{name:>4} ")


def drawn(line, dtype, seed, far):
    random.seed(seed)
    torch.manual_seed(seed)
    return *draw(line.head_dim, line.head_dim_v, dtype, far), random.choice(
        ("none", "causal"))


def report(title, worst, limits):
    """Whether it is wrong; NaN is."""
    bad = not all(found < limits[name] for name, found in worst.items())
    print(title + " ".join(f"{name} {found:.1e}"
                           for name, found in worst.items())
          + " WRONG" * bad, flush=True)
    return bad


def larger(worst, found):
    return {name: max(worst.get(name, 0.), x if x == x else math.inf)
            for name, x in found.items()}


def kernels(seeds):
    wrong = 0
    for line, dtype, title in lines(schedules.FORWARD):
        worst = {}
        for seed in range(seeds):
            q, k, v, scale, mask = drawn(line, dtype, seed, far=seed % 2 == 1)
            o, lse = forward(q, k, v, scale=scale, mask=mask,
                             schedule=line.text or None)
            want, want_lse = truth(q, k, v, scale, mask)
            worst = larger(worst, {"o": error(o, want),
                                   "lse": lse_error(lse, want_lse)})
        wrong += report(title, worst, {"o": LIMITS[dtype], "lse": 1e-5})
    return wrong


def gradients(seeds):
    wrong = 0
    for line, dtype, title in lines(schedules.BACKWARD):
        worst, limit = {}, 2 * LIMITS[dtype]
        for seed in range(seeds):
            q, k, v, scale, mask = drawn(line, dtype, seed, far=False)
            scale = math.copysign(random.choice((0.02, 0.125, 1)), scale)
            o, lse = forward(q, k, v, scale=scale, mask=mask)
            do = torch.randn_like(o)
            got = attn.backward(do, q, k, v, o, lse, scale=scale, mask=mask,
                                schedule=line.text or None)
            torch.cuda.synchronize()
            inputs = [t.double().requires_grad_() for t in (q, k, v)]
            exact, _ = reference.attention(*inputs, mask, scale)
            wanted = torch.autograd.grad(exact, inputs, do.double())
            sizes = reference.gradient_sizes(q, k, v, do, mask, scale)
            worst = larger(worst, {
                name: reference.relative_error(ours, true, size)
                for name, ours, true, size in zip(("dq", "dk", "dv"), got,
                                                  wanted, sizes)})
        wrong += report(title, worst, dict.fromkeys(worst, limit))
    return wrong


def expect(what, holds):
    print(f"{what}: {'right' if holds else 'WRONG'}", flush=True)
    return 0 if holds else 1


def extremes():
    wrong = 0
    for dtype in (BF16, F16, F32):
        q, k, v = (torch.randn(1, 1, 1, 64, device="cuda").to(dtype)
                   for _ in range(3))
        for scale in (1e8, 1e11, 3e38):
            o, _ = forward(q, k, v, scale=scale)
            wrong += expect(f"one key, {dtype}, scale {scale:.0e}",
                            error(o, v.double()) < 1e-6)
    for dtype in (BF16, F32):
        x = torch.full((1, 1, 1, 64), 133120., device="cuda").to(dtype)
        wrong += expect(f"133120, {dtype}",
                        error(forward(x, x, x)[0], x.double()) < 1e-6)
    for line, dtype, title in lines(schedules.FORWARD):
        if dtype != F16:
            continue
        q, k = (torch.randn(1, 2, 500, line.head_dim, device="cuda").to(F16)
                for _ in range(2))
        v = torch.full((1, 2, 500, line.head_dim_v), 65504., device="cuda")
        o, _ = forward(q, k, v.to(F16), schedule=line.text or None)
        wrong += expect(title + "65504 everywhere",
                        bool(((o.double() - 65504).abs() <= 32).all()))
    for sign, what in ((1, "up"), (-1, "down")):
        q = torch.full((1, 2, 300, 128), 1e30, device="cuda").to(BF16)
        v = torch.randn(1, 2, 300, 128, device="cuda").to(BF16)
        o, lse = forward(q, sign * q, v)
        want = v.double().mean(2, keepdim=True) * (sign > 0)
        holds = (o.double() - want).abs().max().item() < 1e-2
        holds = holds and not bool(lse.isnan().any())
        wrong += expect(f"scores that overflow {what}", holds)
    q, k, v = (torch.randn(1, 1, 300, 128, device="cuda").to(BF16)
               for _ in range(3))
    q[0, 0, 7] = math.nan
    o, lse = forward(q, k, v, scale=1e20)
    rows = o.isnan().all(-1)[0, 0]
    wrong += expect("a row that is no number",
                    bool(rows[7]) and rows.sum().item() == 1
                    and bool(lse[0, 0, 7].isnan()))
    return wrong


def times(rounds=30):
    print("microseconds, medians")
    for dtype in (BF16, F16, F32):
        for d in (64, 128, 256, 512, 1024):
            for n in (512, 4096):
                q, k, v = (torch.randn(16384 // n, max(1, 2048 // d), n, d,
                                       device="cuda").to(dtype)
                           for _ in range(3))
                text = f"{str(dtype)[6:]:>8} d {d:4} rows {n:4}"
                for causal in (False, True):
                    taken = []
                    for i in range(rounds + 3):
                        start, stop = (torch.cuda.Event(enable_timing=True)
                                       for _ in range(2))
                        start.record()
                        attn.forward(q, k, v, causal=causal)
                        stop.record()
                        stop.synchronize()
                        taken.append(start.elapsed_time(stop) * 1e3)
                    name = "causal" if causal else "full"
                    text += f"  {name} {statistics.median(taken[3:]):9.1f}"
                print(text, flush=True)


def lost(sums, values):
    """The mean part of a sum that is missing: means of many columns, so that
    roundings of results drop out."""
    return (1 - sums / values.mean(2, dtype=torch.double)).mean().item()


def sums():
    """Sums of one sign whose terms have all their bits: what is lost?"""
    for log in range(17, 25):
        rows, few = 2**log, 128
        values = (1 + torch.rand(1, 1, rows, 64, device="cuda")).to(BF16)
        zeros = torch.zeros_like(values)
        o, _ = forward(zeros[:, :, :few], zeros, values)
        of_o = lost(o.double().mean(2), values)
        keys = zeros[:, :, :few]
        o, lse = forward(zeros, keys, keys)
        _, _, dv = attn.backward(values, zeros, keys, keys, o, lse)
        torch.cuda.synchronize()
        of_dv = lost(dv.double().mean(2) * few / rows, values)
        print(f"2^{log} terms: lost of o {of_o:.2e}, of dv {of_dv:.2e}; "
              f"stated {rows * 2**-27:.2e}, at most {5 * rows * 2**-27:.2e}",
              flush=True)
        del values, zeros, o, lse, dv


def main():
    if OPTIONS.sums:
        sums()
    if OPTIONS.time:
        times()
    if OPTIONS.sums or OPTIONS.time:
        return
    wrong = (kernels(OPTIONS.seeds) + gradients(OPTIONS.seeds)
             + extremes())
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
