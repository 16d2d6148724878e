#!/usr/bin/env python3
"""Runs the cells of docs/cells.md on a GPU, and compares them with fp64.

    cells.py [--build FOLDER] [--share K/N]

Cells whose keys lie in order go through attn-run, as tools/dev/cells.py lists
them.  Those in pages go through attn.attention_with_kvcache as far as it can
say them: bands and windows, with a scale or a softcap.  How many were run is
printed, and which were not; the exit status is 1 when a result is wrong.  Needs
attn-opt and attn-run of a build, the package and PyTorch.
"""

from __future__ import annotations

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch

import attn

# That folder has a module of the name of this one.
sys.path.insert(0, os.path.join(ROOT, "tools", "dev"))
sys.modules.pop("cells", None)
import cells

WINDOWS = {"band": (-1, -1), "window": (40, 0)}
SOFTCAPS = {"scale": None, "softcap": 2.0}
SCALE, LIMIT = 0.2, 2.0 ** -7


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, used: int,
          left: int, softcap: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    """o of one sequence [queries, heads, d] in fp64, and the size of its sums."""
    q, k, v = (t.double().transpose(0, 1) for t in (q, k[:used], v[:used]))
    k, v = (t.repeat_interleave(q.shape[0] // k.shape[0], 0) for t in (k, v))
    scores = q @ k.transpose(1, 2) * SCALE
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    far = (torch.arange(used, device=q.device)[None]
           - torch.arange(q.shape[1], device=q.device)[:, None]
           - (used - q.shape[1]))
    hidden = (far > 0) | ((far < -left) if left >= 0 else False)
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf),
                            2).nan_to_num()
    return (weights @ v).transpose(0, 1), (weights @ v.abs()).transpose(0, 1)


def paged(cell: tuple[str, ...]) -> bool:
    """Whether a cell in pages is right."""
    _, place, visit, map_, *_ = cell
    draw = torch.Generator("cuda").manual_seed(7)

    def random(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, generator=draw, device="cuda",
                           dtype=torch.bfloat16)

    pages = cells.BATCH * cells.KEYS // cells.PAGE
    q = random(cells.BATCH, cells.QUERIES, cells.HEADS, cells.DIM)
    k, v = (random(pages, cells.PAGE, cells.KEY_HEADS, cells.DIM)
            for _ in "kv")
    table = torch.randperm(pages, generator=draw, device="cuda").int().view(
        cells.BATCH, -1)
    used = torch.tensor([cells.KEYS - 7, 33], dtype=torch.int32, device="cuda")
    given = dict(cache_seqlens=used, page_table=table, softmax_scale=SCALE,
                 window_size=WINDOWS[visit], softcap=SOFTCAPS[map_],
                 schedule=cells.schedule_of(cell))
    if place.startswith("ragged"):
        offsets = torch.arange(cells.BATCH + 1, device="cuda",
                               dtype=torch.int32) * cells.QUERIES
        o = attn.attention_with_kvcache(
            q.flatten(0, 1), k, v, cu_seqlens_q=offsets,
            max_seqlen_q=cells.QUERIES, **given).view(q.shape)
    else:
        o = attn.attention_with_kvcache(q, k, v, **given)
    for entry, count in enumerate(used.tolist()):
        rows = [pool[table[entry].long()].flatten(0, 1) for pool in (k, v)]
        expected, size = exact(q[entry], *rows, count, WINDOWS[visit][0],
                               SOFTCAPS[map_])
        error = (o[entry].double() - expected).abs()
        if not (error <= LIMIT * size.clamp(min=1e-3)).all():
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--share", default="0/1")
    options = parser.parse_args()
    number, shares = map(int, options.share.split("/"))
    right = [cell for cell, verdict in cells.ask(options.build).items()
             if verdict == cells.RIGHT][number::shares]
    wrong, left_out = [], []
    for cell in right:
        if cells.is_runnable(cell):
            said = cells.run(options.build, cell, "gpu")
            if said is not None:
                wrong.append(cell)
                print(f"{', '.join(cell)}:\n{said}")
        elif cell[2] in WINDOWS and cell[3] in SOFTCAPS:
            if not paged(cell):
                wrong.append(cell)
                print(f"{', '.join(cell)}: WRONG")
        else:
            left_out.append(cell)
    print(f"{len(right) - len(left_out)} cells run, {len(wrong)} wrong; not "
          f"run, which only IR can say: {len(left_out)}")
    for cell in left_out:
        print(f"  {', '.join(cell)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
