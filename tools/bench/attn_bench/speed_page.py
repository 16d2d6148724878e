"""The sections of docs/performance.md about speed, from the kept results."""

from __future__ import annotations

import statistics
from typing import Any, Callable, Iterable, Sequence

from . import chart
from .grid import from_json
from .report import (best_peer, geometric_mean, ratio, table, timed)
from .settings import OURS, OURS_KEPT, label

Document = dict[str, Any]
Entry = dict[str, Any]
MASKS = (("none", "full"), ("causal", "causal"))
LABELS = {"fa4": "FlashAttention-4", "flash": "FlashAttention-2",
          "fa2": "FlashAttention-2", "torch": "PyTorch"}
NO_VALUE = "-"


def name_of(candidate: str) -> str:
    return LABELS.get(candidate, label(candidate))


def rows_text(rows: int) -> str:
    return f"{rows // 1024}k" if rows % 1024 == 0 else str(rows)


def joined(values: Iterable[float | None], form: str = ".0f") -> str:
    """
    >>> joined([1.0, None, 3.0]), joined([None, None])
    ('1 / - / 3', '-')
    """
    texts = [NO_VALUE if value is None else format(value, form)
             for value in values]
    return " / ".join(texts) if set(texts) != {NO_VALUE} else NO_VALUE


def source(document: Document, what: str = "") -> list[str]:
    """Who measured, when and how: a line for each run."""
    lines = []
    for run in document.get("runs", [document]):
        device = run["device"]
        if isinstance(device, dict):
            device = device["device"]
        words = f"Measured on {device}, {run['date'][:10]}"
        if run.get("commit"):
            words += f", commit {run['commit'][:12]}"
        if run.get("command"):
            words += f": `{run['command']}`"
        lines.append(f"{words}.  ")
    return [*lines, *([what] if what else []), ""]


def compared(ratios: Sequence[float], to: str) -> str:
    """
    >>> compared([0.5, 2.0], "cuDNN")
    'The ratio to cuDNN has a geometric mean of 1.00 over 2 problems. Its least value is 0.50; 1 is below 1.'
    """
    behind = sum(value < 1 for value in ratios)
    return (f"The ratio to {to} has a geometric mean of "
            f"{geometric_mean(ratios):.2f} over {len(ratios)} problems. Its "
            f"least value is {min(ratios):.2f}; "
            f"{behind or 'none'} {'are' if behind > 1 else 'is'} below 1.")


# Rates of several in turns ----------------------------------------------------

def rate_table(cells: Sequence[Entry], names: Sequence[str]) -> str:
    """A row for a head dimension and a mask, one value for each length."""
    lengths = sorted({cell["rows"] for cell in cells})
    found = {(cell["head_dim"], cell["mask"], cell["rows"]): cell["tflops"]
             for cell in cells}
    rows = []
    for head_dim in sorted({cell["head_dim"] for cell in cells}):
        for mask, words in MASKS:
            rates = [found.get((head_dim, mask, n), {}) for n in lengths]
            if not any(rates):
                continue
            rows.append([str(head_dim), words] + [
                joined(rate.get(name) for rate in rates) for name in names]
                + [joined((rate[OURS] / rate[name] if name in rate else None
                           for rate in rates), ".2f") for name in names[1:]])
    return table(rows, ["d", "mask", *map(name_of, names), *(
        f"attn / {name_of(name)}" for name in names[1:])])


def lengths_of(cells: Sequence[Entry]) -> str:
    lengths = sorted({cell["rows"] for cell in cells})
    if len(lengths) == 1:
        return f"Values are TFLOP/s at {rows_text(lengths[0])} rows."
    return ("Values are TFLOP/s at " + ", ".join(map(rows_text, lengths[:-1]))
            + f" and {rows_text(lengths[-1])} rows.")


def rates_beside(document: Document, direction: str) -> list[str]:
    cells = [cell for cell in document["cells"]
             if cell["direction"] == direction]
    names = list(dict.fromkeys(
        name for cell in cells for name in cell["tflops"]))
    lines = [lengths_of(cells), *(compared(
        [cell["tflops"][OURS] / cell["tflops"][name] for cell in cells
         if name in cell["tflops"]], name_of(name)) for name in names[1:])]
    return [" ".join(lines), "", rate_table(cells, names), ""]


def turns(document: Document, direction: str) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in
                         document.get("versions", {}).items())
    return ["attn, cuDNN and FlashAttention-4 take turns in one process, one "
            "call at a time, so host time counts.", "",
            *source(document, f"Versions: {versions}." if versions else ""),
            *rates_beside(document, direction)]


# Block lists ------------------------------------------------------------------

def line_of(cells: Sequence[Entry]) -> tuple[float, float, float]:
    """Time by the share s of visible blocks is a + b s by least squares: a and
    b over the time of all pairs, and the largest residual over its time.
    """
    shares = [cell["density"] for cell in cells]
    # Of all pairs at the rate without lists: 1.
    times = [cell["density"] * cell["tflops"]["dense"] / cell["tflops"][OURS]
             for cell in cells]
    b, a = statistics.linear_regression(shares, times)
    return a, b, max(abs((a + b * s) / t - 1) for s, t in zip(shares, times))


def blocks(document: Document, direction: str) -> list[str]:
    cells = [cell for cell in document["cells"]
             if cell["direction"] == direction]
    if not cells:  # was not measured
        return []
    rows, ratios = [], []
    for head_dim, length in sorted({(c["head_dim"], c["rows"])
                                    for c in cells}):
        some = [c for c in cells
                if (c["head_dim"], c["rows"]) == (head_dim, length)]
        beside = [c["tflops"][OURS] / c["tflops"]["fa4"] for c in some
                  if "fa4" in c["tflops"]]
        ratios += beside
        a, b, residual = line_of(some)
        rows.append([
            str(head_dim), rows_text(length),
            joined(c["tflops"][OURS] for c in some),
            joined(c["tflops"].get("fa4") for c in some),
            joined(beside, ".2f") if beside else "-",
            f"{statistics.mean(c['tflops']['dense'] for c in some):.0f}",
            f"{a:.3f} + {b:.2f} s", f"{residual:.1%}"])
    shares = ", ".join(f"{share:.4g}" for share in dict.fromkeys(
        100 * cell["density"] for cell in cells))
    return ["### Block lists", "",
            f"Blocks of {document['block']} queries see drawn blocks of as "
            f"many keys: {shares} % of them. A rate counts visible pairs. "
            "Time is that share's, over the time of all pairs without lists; "
            "a line through it says what a list costs by itself, and what a "
            "visible block costs. " + compared(ratios, "FlashAttention-4"), "",
            *source(document), table(rows, [
                "d", "rows", "attn", "FlashAttention-4", "ratio",
                "attn, all pairs", "time", "residual"]), ""]


# Masks and score functions ----------------------------------------------------

CASES = {
    "softcap": "softcap 50, causal", "alibi": "ALiBi, causal",
    "table": "table of relative biases, causal", "sinks": "sinks, causal",
    "window": "window of 512 and 128 global", "documents": "documents, causal",
    "documents-32k": "documents, causal"}


def functions(document: Document, direction: str) -> list[str]:
    cells = [cell for cell in document["cells"]
             if cell["direction"] == direction]
    peers = [name for name in ("fa4", "flex")
             if any(name in cell["tflops"] for cell in cells)]
    rows = [[CASES[cell["case"]], rows_text(cell["rows"]), *(
        joined([cell["tflops"].get(name)]) for name in (
            OURS, "dense", *peers)), *(
        joined([cell["tflops"][OURS] / cell["tflops"][name]
                if name in cell["tflops"] else None], ".2f")
        for name in peers)] for cell in cells]
    return ["A rate counts visible pairs, TFLOP/s. Documents have a mean of "
            "1024 rows. Beside each case stands attn without a function, "
            "causal where the case is.", "",
            *source(document), table(rows, [
                "case", "rows", "attn", "attn, plain",
                *map(name_of, peers), *(f"attn / {name_of(name)}"
                                        for name in peers)]), ""]


# Results of bench.py ----------------------------------------------------------

def is_grouped(entry: Entry) -> bool:
    return bool(entry["heads"] != entry["kv_heads"])


def best_rate(entry: Entry) -> float | None:
    found = best_peer(entry)
    return entry["flops"] / found[1] * 1e-12 if found else None


def bench_table(entries: Sequence[Entry], names: Sequence[str],
                ours: str = OURS) -> str:
    """As rate_table, with the best peer of every problem behind."""
    lengths = sorted({entry["rows"] for entry in entries})
    found = {(e["head_dim"], e["mask"], e["rows"]): e for e in entries}
    rows = []
    for head_dim in sorted({entry["head_dim"] for entry in entries}):
        for mask, words in MASKS:
            line = [found.get((head_dim, mask, n)) for n in lengths]
            if not any(line):
                continue

            def values(of: Callable[[Entry], float | None], form: str = ".0f",
                       line: Sequence[Entry | None] = line) -> str:
                return joined((entry and of(entry) for entry in line), form)

            cells = [values(lambda e, n=name: timed(e).get(n, {}).get(
                "tflops")) for name in names]
            rows.append([str(head_dim), words, *cells, values(best_rate),
                         values(lambda e: ours_over(e, ours), ".2f")])
    return table(rows, ["d", "mask", *map(name_of, names), "best peer",
                        f"{name_of(ours)} / best"])


def ours_over(entry: Entry, ours: str) -> float | None:
    mine, best = timed(entry).get(ours), best_peer(entry)
    return best[1] / mine["seconds"] if mine and best else None


def bench_section(document: Document, names: Sequence[str],
                  grouped: bool = False, ours: str = OURS) -> list[str]:
    entries = [e for e in document["cells"] if is_grouped(e) == grouped]
    ratios = [over for e in entries if (over := ours_over(e, ours))]
    runs = {entry["run"] for entry in entries}
    used = {**document, "runs": [run for run in document["runs"]
                                 if run["id"] in runs]}
    return [*source(used), " ".join(
        [lengths_of(entries), compared(ratios, "the best peer")]), "",
        bench_table(entries, names, ours), ""]


def peers_section(document: Document, rows: int = 4096) -> list[str]:
    """Every peer at one length."""
    entries = [e for e in document["cells"]
               if e["rows"] == rows and not is_grouped(e)]
    names = list(dict.fromkeys(n for e in entries for n in timed(e)))
    lines = []
    for entry in entries:
        mask = dict(MASKS)[entry["mask"]]
        rates = [timed(entry).get(name, {}).get("tflops") for name in names]
        lines.append([str(entry["head_dim"]), mask, *(
            joined([rate]) for rate in rates), joined([ratio(entry)], ".2f")])
    return [*source(document),
            f"Values are TFLOP/s at {rows_text(rows)} rows. A dash is a peer "
            "that refused, failed, or was wrong.", "",
            table(lines, ["d", "mask", *map(name_of, names), "attn / best"]),
            ""]


def by_head_dim(documents: Sequence[Document], rows: int,
                names: Sequence[str], title: str) -> str:
    """A figure: TFLOP/s over the head dimension, without a mask and with."""
    entries = {from_json(e).key: e for document in documents
               for e in document["cells"]
               if e["rows"] == rows and not is_grouped(e)}.values()
    axis, place = chart.categories(
        sorted({e["head_dim"] for e in entries}), "head dimension")
    panels = []
    for mask, words in MASKS:
        lines = {name_of(name): sorted(
            (place[e["head_dim"]], timed(e)[name]["tflops"]) for e in entries
            if e["mask"] == mask and name in timed(e)) for name in names}
        panels.append(chart.Panel(f"{words}, {rows_text(rows)} rows",
                                  {n: line for n, line in lines.items()
                                   if line}))
    return chart.draw(title, panels, axis, chart.Axis(
        [(v, str(v)) for v in range(0, 1000, 200)], "TFLOP/s"))


def kept_weights(document: Document) -> list[str]:
    return bench_section(document, (OURS_KEPT, OURS, "unfused"),
                         ours=OURS_KEPT)


# Other problems ---------------------------------------------------------------

def decode(document: Document) -> list[str]:
    rows = [[one["heads"], f"`{one['mask']}`", str(one["keys"]), *(
        f"{one[name]:.0f}" for name in ("gb_per_s", "by_hand", "torch")),
        f"{one['gb_per_s'] / one['torch']:.2f}"] for one in document["decode"]]
    long = [[one["shape"], f"{one['forward']:.3f}", f"{one['backward']:.3f}"]
            for one in document["long"]]
    return [
        *source(document),
        "Values are GB/s of K and V, each byte read once. A step has "
        f"{document.get('batch', 64)} sequences, one query and head dimension "
        f"{document.get('head_dim', 128)} in bf16. \"By hand\" is the packed "
        "view that a caller makes; PyTorch is its fastest backend.", "",
        table(rows, ["heads", "mask", "keys", "attn", "by hand", "PyTorch",
                     "attn / PyTorch"]), "",
        "Packing pays for one query. With many rows it changes little; the "
        "table has the rate of packed heads over unpacked ones.", "",
        table(long, ["batch x heads x rows x d", "forward", "backward"]), ""]


def serving(document: Document) -> list[str]:
    """Decoding by where keys lie, latent vectors, and ragged batches."""
    element, (heads, kv_heads) = 2, map(int, document["heads"].split("/"))

    def rate(one: Entry, name: str) -> str:
        size = (2 * one["batch"] * one["keys"] * kv_heads
                * document["head_dim"] * element)
        narrow = 2 if name.startswith("eight bits") else 1
        return (f"{size / narrow / one['us'][name] / 1e3:.0f}"
                if name in one["us"] else "-")

    def shape(one: Entry) -> str:
        return f"{one['batch']} x {one['keys']}"

    places = list(document["caches"][0]["us"])
    peers = list(document["steps"][0]["us"])
    of_latent = list(document["latent"][0]["us"])
    ways = list(document["mixed"][0]["us"])
    return [
        *source(document),
        f"A step has one query for each sequence, {heads} heads over "
        f"{kv_heads} and head dimension {document['head_dim']} in "
        f"{document['dtype']}. Rates are GB/s of K and V, each byte read once.",
        "", table([[shape(one), *(rate(one, name) for name in peers)]
                   for one in document["steps"]],
                  ["batch x keys", *map(name_of, peers)]), "",
        "The same cache by where its keys lie. \"Eight bits\" has queries of "
        "eight bits too, \"eight bits of keys\" queries of 16.", "",
        table([[shape(one), *(rate(one, name) for name in places)]
               for one in document["caches"]], ["batch x keys", *places]), "",
        "Latent vectors: 128 query heads on one, 576 columns, of which values "
        "are the first 512. Microseconds.", "",
        table([[shape(one), *(f"{one['us'][name]:.0f}" for name in of_latent)]
               for one in document["latent"]], ["batch x keys", *of_latent]),
        "", "Ragged batches beside PyTorch's `varlen_attn`, TFLOP/s of visible "
        "pairs.", "",
        table([[one["direction"], one["case"], f"{one['tflops'][OURS]:.0f}",
                f"{one['tflops']['torch']:.0f}",
                f"{one['tflops'][OURS] / one['tflops']['torch']:.2f}"]
               for one in document["ragged"]],
              ["direction", "sequences", "attn", "PyTorch", "attn / PyTorch"]),
        "", "Prefills and decodes of one step, pages of 64 tokens, in "
        "microseconds. PyTorch's keys were gathered before.", "",
        table([[one["case"], *(f"{one['us'][name]:.0f}" for name in ways)]
               for one in document["mixed"]],
              ["step", *map(name_of, ways)]), ""]


def precision(f32: Document, f8: Document) -> list[str]:
    errors = [cell["error"] / cell["error_of_efficient"]
              for cell in f32["cells"] if cell.get("error_of_efficient")]
    lines = ["### f32", "", *source(f32), "#### Forward", "",
             *rates_beside(f32, "forward")]
    if errors:
        lines += ["The error against fp64 is at most "
                  f"{max(errors):.1f} times that of the memory-efficient "
                  "kernel.", ""]
    if any(cell["direction"] == "backward" for cell in f32["cells"]):
        lines += ["#### Gradients, on `mma.sync`", "",
                  *rates_beside(f32, "backward")]
    lines += ["### 8 bits", "", *source(f8)]
    rows = [[str(cell["head_dim"]), dict(MASKS)[cell["mask"]], *(
        joined([value], form) for value, form in (
            (cell["tflops"][OURS], ".0f"), (cell.get("alone"), ".0f"),
            (cell["tflops"]["attn-bf16"], ".0f"), (cell["error"], ".4f"),
            (cell["error_of_real_inputs"], ".4f"),
            (cell["error_in_bf16"], ".4f")))] for cell in f8["cells"]]
    return [*lines, "Inputs are f8e4m3 and the output is bf16. Errors are "
            "relative, against fp64 of the rounded inputs and of the inputs "
            "before rounding.", "", table(rows, [
                "d", "mask", "f8", "f8 alone", "bf16", "error of f8",
                "error to unrounded inputs", "error of bf16"]), ""]


def host(document: Document) -> list[str]:
    rows = [[name, f"{call['median_us']:.1f}"]
            for name, call in document["calls"].items()]
    shape = " x ".join(map(str, document["shape"]))
    return [*source(document), f"The problem is {shape} (batch, heads, rows, "
            "d), causal, bf16. A value is the median time that a call costs "
            "the host.", "", table(rows, ["call", "microseconds"]), ""]


def sustained(document: Document) -> list[str]:
    rows = [[cell, f"{over:.2f}"] for cell, over in
            document["ratios"].items()]
    return [*source(document), "Attention and a GEMM of 8192 run for some "
            "seconds each, in turns, at the power limit. The ratio is that of "
            "their rates.", "", table(rows, ["problem", "attn / GEMM"]), ""]


def training(document: Document) -> list[str]:
    steps = document["median_step_ms"]
    last = {name: losses[-1] for name, losses in document["losses"].items()}
    rows = [[name_of(name), f"{ms:.1f}", f"{last[name]:.3f}"]
            for name, ms in steps.items()]
    return [*source(document),
            f"A GPT of {document['parameters'] / 1e6:.0f} million parameters "
            f"trains for {document['steps']} steps with each attention.", "",
            table(rows, ["attention", "ms a step", "last loss"]), ""]


def mma_sync(document: Document) -> list[str]:
    return [*source(document), "#### Forward", "",
            *rates_beside(document, "forward"), "#### Gradients", "",
            *rates_beside(document, "backward")]
