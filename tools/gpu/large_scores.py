#!/usr/bin/env python3
"""Gradients on a GPU at scores of every size: how far off, and why?

    large_scores.py [--dtype bf16|f16|f32] [--head-dim D] [--rows N]

Gradients compute weights from lse, so its roundings to f32 are in the exponents
of a whole row.  Two lines per scale, without lse_low and with it: the largest
|lse|, the errors of o, dq, dk and dv beside the size of what they are summed
from, and that of dv in units of 2^-24 |lse|.  docs/using.md says that it is
about 1, and 3 at most; more than that, beyond what is allowed of the type, is
WRONG.

First of normal inputs, whose scores f32 rounds, so that o has an error as well;
then of whole numbers, whose scores it holds: there lse_low leaves no more than
what is allowed of the type, up to the |lse| at which blocks that share rows no
longer tell their maxima apart.  Where rounding alone exceeds 5 % nothing is
wrong, and where a gradient is beyond its type infinity is right.  At the end the times of forward and backward calls
without and with it, of N rows (4096), the median of 50.
"""
from __future__ import annotations

import argparse
import math
import sys
from typing import Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import reference
import torch

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
SCALES = (1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)


def inputs_of(dtype: torch.dtype, head_dim: int, rows: int, whole: bool
              ) -> list[torch.Tensor]:
    """q, k, v and do; whole numbers have products that no type rounds."""
    generator = torch.Generator("cuda").manual_seed(1)
    shape = (2, 4, rows, head_dim)

    def draw() -> torch.Tensor:
        return torch.randn(shape, device="cuda", generator=generator)

    def number() -> torch.Tensor:
        return torch.randint(-2, 3, shape, device="cuda", generator=generator)

    scores = number if whole else draw
    return [t.to(dtype) for t in (scores(), scores(), draw(), draw())]


#: 2^23 ln 2, see docs/using.md: beyond it f32 holds no part of a bit.
WHOLE_BITS = 2**23 * math.log(2)


def error_of(ours: torch.Tensor, true: torch.Tensor, size: float) -> float:
    """The relative error; infinity is right for what the type does not hold."""
    most = torch.finfo(ours.dtype).max
    beyond = (true.abs() > most) & (ours == true.sign() * math.inf)
    zero = torch.zeros((), device=true.device, dtype=true.dtype)
    return reference.relative_error(ours.double().where(~beyond, zero),
                                    true.where(~beyond, zero), size)


def errors(dtype: torch.dtype, head_dim: int, scale: float, whole: bool
           ) -> tuple[float, list[dict[str, float]]]:
    """The largest |lse|, and the error of each result without the low word and
    with it."""
    import attn
    q, k, v, do = inputs_of(dtype, head_dim, 512, whole)
    o, lse, low = attn.forward(q, k, v, scale=scale, return_lse_low=True)
    inputs = [t.double().requires_grad_() for t in (q, k, v)]
    exact, exact_lse = reference.attention(*inputs, "none", scale)
    gradients = torch.autograd.grad(exact, inputs, do.double())
    sizes = (reference.output_size(q, k, v, "none", scale),
             *reference.gradient_sizes(q, k, v, do, "none", scale))
    found = []
    for word in (None, low):
        got = attn.backward(do, q, k, v, o, lse, lse_low=word, scale=scale)
        found.append({
            name: error_of(ours, true.detach(), size)
            for name, ours, true, size in zip(
                ("o", "dq", "dk", "dv"), (o, *got), (exact, *gradients),
                sizes)})
    return exact_lse.detach().abs().max().item(), found


def compare(dtype: torch.dtype, head_dim: int, whole: bool) -> int:
    """Prints the errors at every scale; how many are wrong."""
    wrong = 0
    for scale in SCALES:
        lse, found = errors(dtype, head_dim, scale, whole)
        for has_low, each in enumerate(found):
            limit = reference.GRADIENT_TOLERANCE[dtype]
            rounding = 3 * 2**-24 * lse
            is_exact = has_low and whole and lse < WHOLE_BITS
            limit += 0 if is_exact else math.expm1(min(rounding, 1))
            bad = [name for name in ("dq", "dk", "dv")
                   if (is_exact or rounding < 0.05) and not each[name] <= limit]
            wrong += bool(bad)
            print(f"scale {scale:7.0e}  |lse| {lse:8.2e} ",
                  "two words" if has_low else "one word ",
                  "  ".join(f"{name} {error:.2e}"
                            for name, error in each.items()),
                  f"  dv {each['dv'] / (2**-24 * lse):8.2f} x 2^-24 |lse|",
                  f"  WRONG: {', '.join(bad)}" if bad else "", flush=True)
    return wrong


def milliseconds(call: Callable[[], object]) -> float:
    """The median of 50 calls."""
    times = []
    for _ in range(60):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times[10:])[25]


def compare_times(dtype: torch.dtype, head_dim: int, rows: int) -> None:
    """Prints what the low word costs."""
    import attn
    q, k, v, do = inputs_of(dtype, head_dim, rows, whole=False)
    for causal in (False, True):
        o, lse, low = attn.forward(q, k, v, causal=causal,
                                   return_lse_low=True)
        for name, one, two in (
                ("forward", lambda: attn.forward(
                    q, k, v, causal=causal, return_lse=True),
                 lambda: attn.forward(q, k, v, causal=causal,
                                      return_lse_low=True)),
                ("backward", lambda: attn.backward(
                    do, q, k, v, o, lse, causal=causal),
                 lambda: attn.backward(do, q, k, v, o, lse, lse_low=low,
                                       causal=causal))):
            # In turns, for clocks change.
            times = [(milliseconds(one), milliseconds(two)) for _ in range(3)]
            first, second = (min(each) for each in zip(*times))
            print(f"{name:8} {'causal' if causal else 'none':6} one word "
                  f"{first:.4f} ms, two {second:.4f} ms, "
                  f"{second / first:.4f} times as long", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--rows", type=int, default=4096)
    options = parser.parse_args()
    dtype = DTYPES[options.dtype]
    print(torch.cuda.get_device_name(), options.dtype, "head dimension",
          options.head_dim)
    wrong = 0
    for whole in (False, True):
        print("whole numbers" if whole else "normal numbers")
        wrong += compare(dtype, options.head_dim, whole)
    compare_times(dtype, options.head_dim, options.rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
