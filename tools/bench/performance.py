#!/usr/bin/env python3
"""Writes docs/performance.md and its figures from the kept results.

    performance.py            writes them
    performance.py --check    only compares; the exit status is 1 on a drift

Sections are functions in attn_bench/speed_page.py and model_page.py.  The
results are those of tools/bench/results (attn_bench/kept.py); nothing else is
read, so the page is the same on every machine.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Callable

from attn_bench import kept, model_page, replays, searches, speed_page

ROOT = Path(__file__).resolve().parents[2]
FORWARD = ("attn", "cudnn", "jax-cudnn")
BACKWARD = ("attn", "cudnn", "jax-cudnn", "unfused")


class Results:
    """What is kept, each document read once."""

    def __init__(self, folder: Path = kept.FOLDER) -> None:
        self.folder = folder
        self.paths: dict[str, Path] = {}
        self.documents: dict[str, kept.Document] = {}

    def __getitem__(self, kind: str) -> kept.Document:
        if kind not in self.documents:
            self.paths[kind] = kept.newest(kind, self.folder)
            self.documents[kind] = kept.load(self.paths[kind])
        return self.documents[kind]


def page(found: Results, table: searches.Table,
         replayed: list[replays.Replay]) -> str:
    all_searches = list(table.searches.values())
    sections: list[str] = [
        "<!-- Written by tools/bench/performance.py; edit that. -->", "",
        "# Performance", "",
        "Figures come from files in `tools/bench/results`, the newest run of "
        "each kind. Each section names its GPU. "
        "`tools/bench/performance.py` writes this page from them. What was "
        "tried and lost, and older runs, are in git's history.", "",
        "A rate counts the pairs of queries and keys that the mask lets see; "
        "gradients count 2.5 times as much as forward. Times are medians of "
        "candidates that take turns in one process. Unless a line says "
        "otherwise, inputs are random normal bf16, batches have 16384 tokens, "
        "and all heads together are 2048 wide. Every result was compared with "
        "fp64; one that disagrees counts as none. " + model_page.labels(), "",
        "## Forward", "",
        "### Beside cuDNN and FlashAttention-4", "",
        *speed_page.turns(found["turns"], "forward"),
        *speed_page.blocks(found["blocks"], "forward"),
        "### Masks and score functions", "",
        *speed_page.functions(found["functions"], "forward"),
        "### By head dimension", "",
        "Calls are captured in CUDA graphs, so that no peer pays for its "
        "Python.", "",
        *speed_page.bench_section(found["forward"], FORWARD),
        "![Forward by head dimension](figures/performance-forward.svg)", "",
        "### Four query heads for each key head", "",
        *speed_page.bench_section(found["forward"], FORWARD, grouped=True),
        "### Every peer", "", *speed_page.peers_section(found["peers"]),
        "## Backward", "", "### Beside cuDNN and FlashAttention-4", "",
        *speed_page.turns(found["turns"], "backward"),
        *speed_page.blocks(found["blocks"], "backward"),
        "### Masks and score functions", "",
        *speed_page.functions(found["functions"], "backward"),
        "### By head dimension", "",
        "Gradients are timed alone; everything that they launch counts. The "
        "unfused peer reads scores that its forward has left in memory.", "",
        *speed_page.bench_section(found["backward"], BACKWARD),
        "![Backward by head dimension](figures/performance-backward.svg)", "",
        "### With weights kept", "",
        "`keep_weights=True` leaves P in memory, as the unfused peer does, "
        "and gradients multiply four products instead of five.", "",
        *speed_page.kept_weights(found["kept-weights"]),
        "## Wide heads: the small-cache regime", "",
        "Beyond d = 376 the output of a tile no longer fits the registers. "
        "`column_split`, `score_spill` and `output_spill` take over.", "",
        *speed_page.bench_section(found["wide"], ("attn", "unfused")),
        "![Wide heads by head dimension](figures/performance-wide.svg)", "",
        *model_page.held(table.searches["2026-11-26-held"]),
        "## Decoding", "", *speed_page.decode(found["decode"]),
        "## Serving", "", *speed_page.serving(found["serving"]),
        "## f32 and 8 bits", "",
        *speed_page.precision(found["f32"], found["f8"]),
        "## The portable kernels", "",
        "Kernels on `mma.sync` run on every GPU from Ampere on. Here they run "
        "on an H100, whose own kernels are faster.", "",
        *speed_page.mma_sync(found["mma-sync"]),
        "## What a call costs the host", "", *speed_page.host(found["host"]),
        "## The machine's ceilings", "",
        *model_page.ceilings(found["ceilings"]),
        "## At the power limit", "", *speed_page.sustained(
            found["sustained"]),
        "## Training", "", *speed_page.training(found["train"]),
        "## Prediction and measurement", "", "### Bytes", "",
        *model_page.counters(found["counters"]), "### Bytes of block lists",
        "", *model_page.block_counters(found["block-counters"]),
        "### Exponents", "",
        *model_page.theory(found["theory"]), "### The crossover", "",
        *model_page.crossover(found["crossover"]),
        "![Time by head dimension](figures/performance-crossover.svg)", "",
        "### Times", "", *model_page.times(
            [("forward, d ≤ 256", found["forward"]),
             ("forward, wide heads", found["wide"]),
             ("gradients", found["backward"])]),
        "## How good the choice is", "",
        "A search times many kernels of a random problem beside the one that "
        "the model derives. `tools/bench/results/searches.tsv` holds "
        f"{len(all_searches)} searches, "
        f"{sum(len(s.entries) for s in all_searches)} problems and "
        f"{sum(len(e.candidates) for s in all_searches for e in s.entries)} "
        "timed kernels.", "", "### On the day of the search", "",
        "Most problems were new to the model when they were timed. At the "
        "border of the two regimes the candidates are the best plans of every "
        "schedule; elsewhere they are all kernels near the derived one. The "
        "fastest of a hundred was so by luck, too: a perfect choice would "
        "lose 1 to 2 %.", "", *model_page.then(all_searches),
        "![Losses](figures/performance-choice.svg)", "",
        "### The model of today", "",
        "Two tests ask the model of today, among the kernels that are still "
        "as they were timed. The model was fitted to most of these searches, "
        "so the table shows what it has kept.", "",
        *model_page.today(replayed),
        "## Checks on the GPU", "", *model_page.checks(found["checks"])]
    return "\n".join(sections).rstrip("\n") + "\n"


def figures(found: Results, table: searches.Table) -> dict[str, str]:
    """SVG by name."""
    all_searches = list(table.searches.values())
    return {
        "forward": speed_page.by_head_dim(
            [found["forward"]], 4096, FORWARD,
            "Forward attention, TFLOP/s by head dimension"),
        "backward": speed_page.by_head_dim(
            [found["backward"]], 4096, ("attn", "cudnn", "unfused"),
            "Gradients of attention, TFLOP/s by head dimension"),
        "wide": speed_page.by_head_dim(
            [found["wide"]], 1024, ("attn", "unfused"),
            "Forward attention of wide heads, TFLOP/s by head dimension"),
        "crossover": model_page.crossover_figure(found["crossover"]),
        "choice": model_page.losses_figure(all_searches)}


def generated(folder: Path) -> dict[str, str]:
    """Texts by path in the repository."""
    found = Results(folder)
    table = searches.load(folder / "searches.tsv")
    replayed = replays.load(folder / "replays.tsv")
    return {"docs/performance.md": page(found, table, replayed), **{
        f"docs/figures/performance-{name}.svg": svg
        for name, svg in figures(found, table).items()}}


def differences(name: str, old: str, new: str) -> list[str]:
    return list(difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), name,
        name + " (generated)"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=kept.FOLDER)
    options = parser.parse_args()
    say: Callable[[str], object] = sys.stdout.write
    drifted = 0
    try:
        texts = generated(options.results)
    except (ValueError, KeyError, OSError) as error:
        print(f"performance.py: {error}", file=sys.stderr)
        return 2
    for name, new in texts.items():
        path = ROOT / name
        old = path.read_text("utf-8") if path.exists() else ""
        if old == new:
            continue
        drifted += 1
        if options.check:
            say("".join(differences(name, old, new)[:60]))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, "utf-8")
    print(f"performance: {len(texts)} files, {drifted} differ")
    return 1 if options.check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
