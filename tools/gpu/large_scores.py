#!/usr/bin/env python3
"""Gradients on a GPU at scores of every size: how far off, and why?

    large_scores.py [--dtype bf16|f16|f32] [--head-dim D]

Gradients compute weights from lse, so its roundings to f32 are in the exponents
of a whole row.  A line per scale: the largest |lse|, the errors of o, dq, dk and
dv beside the size of what they are summed from, and that of dv in units of
2^-24 |lse|.  docs/using.md says that it is about 1, and 3 at most; more than
that, beyond what is allowed of the type, is WRONG.
"""
from __future__ import annotations

import argparse
import math
import sys

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import reference
import torch

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
SCALES = (1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)


def errors(dtype: torch.dtype, head_dim: int, scale: float
           ) -> tuple[float, dict[str, float]]:
    """The largest |lse|, and the error of each result."""
    import attn
    generator = torch.Generator("cuda").manual_seed(1)
    q, k, v, do = (torch.randn(2, 4, 512, head_dim, device="cuda",
                               generator=generator).to(dtype)
                   for _ in range(4))
    o, lse = attn.forward(q, k, v, scale=scale, return_lse=True)
    got = attn.backward(do, q, k, v, o, lse, scale=scale)
    inputs = [t.double().requires_grad_() for t in (q, k, v)]
    exact, exact_lse = reference.attention(*inputs, "none", scale)
    gradients = torch.autograd.grad(exact, inputs, do.double())
    sizes = (reference.output_size(q, k, v, "none", scale),
             *reference.gradient_sizes(q, k, v, do, "none", scale))
    found = {name: reference.relative_error(ours, true.detach(), size)
             for name, ours, true, size in zip(
                 ("o", "dq", "dk", "dv"), (o, *got), (exact, *gradients),
                 sizes)}
    return exact_lse.detach().abs().max().item(), found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--head-dim", type=int, default=64)
    options = parser.parse_args()
    dtype, wrong = DTYPES[options.dtype], 0
    print(torch.cuda.get_device_name(), options.dtype, "head dimension",
          options.head_dim)
    for scale in SCALES:
        lse, found = errors(dtype, options.head_dim, scale)
        limit = reference.GRADIENT_TOLERANCE[dtype] + math.expm1(
            min(3 * 2**-24 * lse, 700))
        bad = [name for name in ("dq", "dk", "dv")
               if not found[name] <= limit]
        wrong += bool(bad)
        print(f"scale {scale:7.0e}  |lse| {lse:8.2e} ",
              "  ".join(f"{name} {error:.2e}"
                        for name, error in found.items()),
              f"  dv {found['dv'] / (2**-24 * lse):8.2f} x 2^-24 |lse|",
              f"  WRONG: {', '.join(bad)}" if bad else "", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
