"""The markdown page, from a document alone."""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, Sequence

from .grid import Cell, from_json
from .results import Document
from .search import ranking
from .settings import OURS, OURS_IN_16_BITS, PEERS, is_ours, label

Entry = dict[str, Any]
#: Words of a refusal in the page; the document has all of them.
WORDS = 160


def timed(entry: Entry) -> dict[str, Entry]:
    """Results that have a time and agree with fp64."""
    return {name: result for name, result in entry["results"].items()
            if "seconds" in result and result["agrees"]}


def best_peer(entry: Entry) -> tuple[str, float] | None:
    """The fastest that is not ours, and its seconds."""
    times = {name: result["seconds"] for name, result in timed(entry).items()
             if not is_ours(name)}
    if not times:
        return None
    name = min(times, key=lambda each: times[each])
    return name, times[name]


def ratio(entry: Entry) -> float | None:
    """How many times as fast as the best peer ours is."""
    ours, best = timed(entry).get(OURS), best_peer(entry)
    if ours is None or best is None:
        return None
    return best[1] / ours["seconds"]


def geometric_mean(values: Sequence[float]) -> float:
    """
    >>> round(geometric_mean([0.5, 2.0, 8.0]), 9)
    2.0
    """
    if not values:
        raise ValueError("expects at least one value, but got none")
    return math.exp(sum(map(math.log, values)) / len(values))


def shape(cell: Cell) -> str:
    return f"{cell.head_dim}, {cell.rows}, {cell.mask}"


def table(rows: Iterable[Sequence[str]], header: Sequence[str]) -> str:
    lines = ["| " + " | ".join(header) + " |",
             "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value: Any, form: str = ".1f") -> str:
    return "" if value is None else format(value, form)


def peers_in(entries: Iterable[Entry]) -> list[str]:
    """Names in the results, ours first, then in the order of PEERS; other
    schedules of ours are in a table of their own."""
    found = {name for entry in entries for name in entry["results"]
             if not name.startswith(OURS + ":")}
    order = list(PEERS)
    return sorted(found, key=lambda name: order.index(name)
                  if name in order else len(order))


def peer_table(entries: list[Entry]) -> str:
    """One row a cell: TFLOP/s of each, the best peer, and ours over it."""
    names = peers_in(entries)
    rows = []
    for entry in entries:
        cell, best, over = from_json(entry), best_peer(entry), ratio(entry)
        row = [str(cell.head_dim), str(cell.rows), cell.mask]
        for name in names:
            result = entry["results"].get(name, {})
            text = number(result.get("tflops"))
            if "refused" in result:
                text = "-"
            elif text and not result["agrees"]:
                text += " WRONG"
            row.append(text)
        row.append(label(best[0]) if best else "")
        row.append(number(over, ".2f"))
        rows.append(row)
    return table(rows, ["d", "N", "mask", *map(label, names), "best peer",
                        "attn / best"])


def detail_table(entries: list[Entry]) -> str:
    """Ours: time with its spread, the prediction, the error."""
    rows = []
    for entry in entries:
        result = entry["results"].get(OURS, {})
        if "seconds" not in result:
            continue
        cell, kernel = from_json(entry), result.get("kernel", {})
        predicted = kernel.get("predicted", {})
        low, high = result["quartiles"]
        seconds = predicted.get("seconds")
        worst = [e for e in result["error"].values() if e is not None]
        rows.append([
            str(cell.head_dim), str(cell.rows), cell.mask,
            number(result["seconds"] * 1e3, ".4f"),
            f"{(high - low) / result['seconds']:.1%}",
            number(seconds and seconds * 1e3, ".4f"),
            number(seconds and seconds / result["seconds"], ".2f"),
            predicted.get("bound_by", ""),
            number(max(worst, default=None), ".1e"),
            str(kernel.get("schedule", "")),
            number(kernel.get("registers"), "d")])
    if not rows:
        return ""
    return table(rows, ["d", "N", "mask", "ms", "quartiles", "predicted ms",
                        "predicted / time", "bound by", "error", "schedule",
                        "registers"])


def summary_lines(entries: list[Entry]) -> list[str]:
    """Mean, least, and where ours is behind."""
    ratios = {from_json(entry): over for entry in entries
              if (over := ratio(entry)) is not None}
    if not ratios:
        return [f"attn was not timed beside a peer in any of {len(entries)} "
                f"cells."]
    least = min(ratios, key=lambda cell: ratios[cell])
    behind = [f"{shape(cell)} ({over:.2f})"
              for cell, over in ratios.items() if over < 1]
    lines = [f"attn against the best peer in {len(ratios)} of {len(entries)} "
             f"cells: geometric mean {geometric_mean([*ratios.values()]):.3f},"
             f" least {ratios[least]:.3f} at d, N, mask = {shape(least)}."]
    if behind:
        lines.append(f"Behind in {len(behind)}: {'; '.join(behind)}.")
    else:
        lines.append("Behind in none.")
    return lines


def refusal_lines(entries: list[Entry]) -> list[str]:
    """Each peer's words once, with the cells they were said in."""
    said: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        for name, result in entry["results"].items():
            if "refused" in result:
                said.setdefault((name, result["refused"]), []).append(
                    shape(from_json(entry)))
    lines = []
    for (name, text), where in said.items():
        text = " ".join(text.split()).replace("|", "\\|")
        if len(text) > WORDS:
            text = text[:WORDS - 4] + " ..."
        places = "; ".join(where[:4]) + (
            f"; and {len(where) - 4} more" if len(where) > 4 else "")
        lines.append(f"- {label(name)} at {places}: {text}")
    return lines


def disagreements(entries: Iterable[Entry]) -> list[str]:
    lines = []
    for entry in entries:
        for name, result in entry["results"].items():
            if "seconds" in result and not result["agrees"]:
                lines.append(f"- {label(name)} at {shape(from_json(entry))} "
                             f"{entry['direction']}: error {result['error']},"
                             f" expects at most {result['tolerance']:.1e}")
    return lines


def eager_seconds(result: Entry, field: str) -> float | None:
    """Of a call without a graph: through autograd, where that is apart, since
    peers' gradients are."""
    through = result.get("autograd", {})
    return through.get(field, result.get("eager", {}).get(field))


def eager_ratio(entry: Entry) -> float | None:
    """How many times as fast as the best peer ours is, without graphs."""
    times = {name: seconds for name, result in timed(entry).items()
             if (seconds := eager_seconds(result, "seconds")) is not None}
    ours = times.get(OURS)
    peers = [times[name] for name in times if not is_ours(name)]
    return min(peers) / ours if ours and peers else None


def eager_section(entries: list[Entry]) -> str:
    """What a call costs the host, in both directions."""
    entries = [entry for entry in entries
               if any("eager" in r for r in entry["results"].values())]
    if not entries:
        return ""
    names = [name for name in peers_in(entries)
             if any("eager" in e["results"].get(name, {}) for e in entries)]
    rows = []
    for entry in entries:
        row = [entry["direction"], *shape(from_json(entry)).split(", ")]
        for name in names:
            result = entry["results"].get(name, {})
            host = result.get("eager", {}).get("host_seconds")
            through = result.get("autograd", {}).get("host_seconds")
            row.append(number(host and host * 1e6) + (
                f" ({through * 1e6:.1f})" if through else ""))
        row += [number(ratio(entry), ".2f"), number(eager_ratio(entry), ".2f")]
        rows.append(row)
    return "\n".join([
        "## What the host pays", "",
        "Microseconds of the host for a call that is queued by itself; in "
        "brackets ours through autograd, as gradients of peers are. Ratios "
        "are of times until calls are done, captured in graphs and queued by "
        "themselves.", "",
        table(rows, ["direction", "d", "N", "mask", *map(label, names),
                     "attn / best, graph", "attn / best, eager"]), ""])


def eight_bits_section(entries: list[Entry]) -> str:
    """How far from fp64 8 bits are, beside bf16 on the same numbers."""
    rows = []
    for entry in entries:
        ours = entry["results"].get(OURS, {})
        if "exact_error" not in ours:
            continue
        bf16 = entry["results"].get(OURS_IN_16_BITS, {})
        times = [each.get("seconds") for each in (bf16, ours)]
        rows.append([
            *shape(from_json(entry)).split(", "),
            number(ours["error"]["o"], ".1e"),
            number(ours["exact_error"]["o"], ".1e"),
            number(bf16.get("exact_error", {}).get("o"), ".1e"),
            number(times[0] / times[1], ".2f") if all(times) else ""])
    if not rows:
        return ""
    return "\n".join([
        "## 8 bits beside bf16", "",
        "Errors against fp64 on the rounded inputs, and on those that were "
        "rounded, which bf16 takes as they are.", "",
        table(rows, ["d", "N", "mask", "error", "with that of the inputs",
                     "in bf16", "times as fast as bf16"]), ""])


def search_section(entries: list[Entry]) -> str:
    """What the derived schedule loses to the best one that was timed."""
    rows, losses = [], []
    for entry in entries:
        found = ranking(entry["results"])
        if not found:
            continue
        losses.append(found["loss"])
        rows.append([*shape(from_json(entry)).split(", "),
                     f"{found['rank']} of {found['of']}",
                     f"{found['loss']:.1%}",
                     "" if found["rank"] == 1 else str(found["best"])])
    if not rows:
        return ""
    within = sum(loss <= 0.03 for loss in losses)
    return "\n".join([
        "## The derived schedule among others", "",
        f"In {len(losses)} cells: the derived one is the fastest in "
        f"{sum(loss == 0 for loss in losses)}, within 3 % in {within}; mean "
        f"loss {sum(losses) / len(losses):.2%}, largest {max(losses):.1%}.",
        "", table(rows, ["d", "N", "mask", "rank", "loss", "fastest"]), ""])


def ceilings_section(ceilings: list[Entry]) -> str:
    if not ceilings:
        return ""
    rows = []
    for one in ceilings:
        value, beside = one["value"], one.get("machine_value")
        scale, unit = (1e-12, "T" + one["unit"])
        rows.append([
            one["name"], f"{value * scale:.2f} {unit}" if value
            else one.get("note", ""),
            f"{beside * scale:.2f}" if beside else "",
            f"{value / beside:.2f}" if value and beside else "",
            one["field"] if beside else ""])
    return "\n".join(["## Ceilings", "", table(
        rows, ["what", "measured", "table", "measured / table",
               "entry of the table"]), ""])


def head(document: Document) -> list[str]:
    lines = []
    for run in document["runs"]:
        versions = ", ".join(
            f"{name} {run[name]}" for name in (
                "driver", "torch", "cuda", "cudnn", "triton", "jax", "attn")
            if run.get(name))
        lines += [f"Run {run['id']}: {run.get('device')}, {versions}; "
                  f"{run.get('date')}, commit {run.get('commit')}; "
                  f"`{run.get('command')}`", ""]
    return lines


def page(document: Document, figures: Mapping[str, str] | None = None) -> str:
    """The whole page; `figures` are titles by file name."""
    parts = ["# Benchmark", "", *head(document),
             "TFLOP/s, medians; causal cells count visible pairs only, "
             "backward 2.5 times forward. All candidates of a cell take "
             "turns in one process. A dash is a refusal, below in the peer's "
             "own words.", ""]
    for file, title in (figures or {}).items():
        parts += [f"![{title}]({file})", ""]
    failed = [e for e in document["cells"] if "failed" in e]
    for title, ratio_above, direction in (
            ("Forward", False, "forward"), ("Backward", False, "backward"),
            ("Forward, grouped queries", True, "forward"),
            ("Backward, grouped queries", True, "backward")):
        entries = [e for e in document["cells"]
                   if e["direction"] == direction and "failed" not in e
                   and (e["heads"] != e["kv_heads"]) == ratio_above]
        if not entries:
            continue
        parts += [f"## {title}", "", *summary_lines(entries), "",
                  peer_table(entries), ""]
        if refused := refusal_lines(entries):
            parts += ["Refused:", "", *refused, ""]
    timed_cells = [e for e in document["cells"] if "failed" not in e]
    if wrong := disagreements(timed_cells):
        parts += ["## Disagrees with fp64", "", *wrong, ""]
    if failed:
        parts += ["## Not measured", "", *(
            f"- {shape(from_json(e))} {e['direction']}: {e['failed']}"
            for e in failed), ""]
    if details := detail_table(timed_cells):
        parts += ["## Our kernels", "", details, ""]
    parts += [eager_section(timed_cells), eight_bits_section(timed_cells),
              search_section(timed_cells), ceilings_section(document["ceilings"])]
    return "\n".join(parts).rstrip() + "\n"
