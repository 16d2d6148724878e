"""The generated tables of the documentation, as Markdown text.

`works`     what compiles to a kernel: asked of attn-plan, for every machine
`machines`  the GPUs, as attn-plan lists them
`times`     the constants of time, of Times.def
`fit`       how well they choose, as tools/bench/fit.py wrote it
`mutants`   of every kernel, how many of its mutants are found
`blocks`    time on lists of blocks beside FlashAttention-4 and all pairs
`turns`     speed beside cuDNN and FlashAttention-4, from the newest run
`decode`    what the model says of decoding on caches beside what was measured
"""

import json
import math
import os
import re
import statistics

import doc_figures
import doc_sparse
import machine_probe

# Types that each direction takes.
DTYPES = {"forward": ["bf16", "f16", "f32", "f8e4m3"],
          "backward": ["bf16", "f16", "f32"]}
FAMILIES = ["wgmma", "mma_sync"]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(names):
    return ", ".join(f"`{name}`" for name in names)


def machine_rows(run):
    """The lines of the table of machines, as cells."""
    head, *lines = run("attn-plan --machines").split("\n")
    starts = [i for i, letter in enumerate(head)
              if letter != " " and (i == 0 or head[i - 2:i] == "  ")]
    ends = [*starts[1:], None]
    return [[line[start:end].strip() for start, end in zip(starts, ends)]
            for line in [head, *lines] if line.strip()]


def machines(run):
    head, *rows = machine_rows(run)
    kept = [i for i, name in enumerate(head) if name != "source"]
    return table([head[i] for i in kept],
                 [[f"`{row[0]}`", *(row[i] for i in kept[1:])]
                  for row in rows])


def plans(run, machine, dtype, direction):
    # Where nothing fits the status is 1 as well, but JSON says why.
    report = json.loads(run(
        f"attn-plan --machine {machine} --dtype {dtype} --direction {direction}"
        " --batch 1 --heads 16 --kv-heads 16 --queries 4096 --keys 4096"
        " --head-dim 128 --json || true"))
    return report["plans"]


def typed(by_type, everywhere):
    """Types of a kernel; a type that not every machine has says where."""
    words = []
    for dtype in DTYPES["forward"]:
        names = by_type.get(dtype, [])
        if names == everywhere:
            words.append(dtype)
        elif names:
            words.append(f"{dtype} ({code(names)})")
    return " ".join(words) or "-"


def works(run):
    """What compiles to a kernel: a row for each schedule."""
    names = [row[0] for row in machine_rows(run)[1:]]
    found, having = {}, {family: [] for family in FAMILIES}
    for machine in names:
        for direction, dtypes in DTYPES.items():
            for dtype in dtypes:
                for plan in plans(run, machine, dtype, direction):
                    schedule = plan["schedule"]
                    kernel = plan.get("kernel")
                    if not kernel:
                        continue
                    family = kernel[len(schedule) + 1:]
                    cell = found.setdefault((direction, schedule), {})
                    on = cell.setdefault(family, {}).setdefault(dtype, [])
                    for known in (on, having[family]):
                        if machine not in known:
                            known.append(machine)
    rows = [[f"`{schedule}`", direction,
             *(typed(found[direction, schedule].get(family, {}),
                     having[family]) for family in FAMILIES)]
            for direction, schedule in sorted(
                found, key=lambda key: (key[0] == "backward", key[1]))]
    planned = [name for name in names
               if not any(name in having[family] for family in FAMILIES)]
    return table(["schedule", "direction", "Hopper (wgmma)",
                  "Ampere and newer (mma.sync)"], rows) + (
        f"\nwgmma: {code(having['wgmma'])}. mma.sync: "
        f"{code(having['mma_sync'])}. Planned and priced, without a kernel: "
        f"{code(planned)}.\n")


def mutants(_):
    """A row for each kernel, of all its forms together, and their sum."""
    name = os.path.join(machine_probe.ROOT, "test", "Mutants", "counts.json")
    with open(name, encoding="utf-8") as f:
        counts = json.load(f)
    kernels = {}
    for variant, parts in counts.items():
        kernels.setdefault(variant.split()[0], []).append(
            [sum(column) for column in zip(*parts)])
    kernels = {f"`{kernel}`": forms for kernel, forms in kernels.items()}
    kernels["all"] = sum(kernels.values(), [])
    rows = []
    for kernel, forms in kernels.items():
        killed, same, more, missed, _ = (sum(column) for column in zip(*forms))
        rows.append([kernel, *map(str, (
            len(forms), killed + same + more + missed, more, same, missed,
            killed)), f"{100 * killed / (killed + missed):.1f} %"])
    return table(["kernel", "forms", "mutants that run", "more order",
                  "the same", "missed", "killed",
                  "killed of those that differ"], rows)


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


PEERS = [name for name in doc_figures.NAMES if name != "attn"]


def problems_of(run):
    """The figures of a run, for each direction and head dimension."""
    groups = {}
    for cell in run["cells"]:
        groups.setdefault((cell["direction"], cell["head_dim"]),
                          []).append(cell["tflops"])
    return groups


def turns(_):
    """One line for each direction and head dimension, over all lengths and
    masks: geometric means, and the least ratio."""
    rows = []
    for (direction, size), cells in problems_of(doc_figures.turns()).items():
        row = [direction, str(size)]
        row += [f"{mean([cell[name] for cell in cells]):.0f}"
                for name in doc_figures.NAMES]
        for peer in PEERS:
            ratios = [cell["attn"] / cell[peer] for cell in cells]
            row.append(f"{mean(ratios):.2f} ({min(ratios):.2f})")
        rows.append(row)
    return table(["direction", "d", *doc_figures.NAMES.values(),
                  *(f"attn / {doc_figures.NAMES[peer]}" for peer in PEERS)],
                 rows)


def fit(_):
    path = os.path.join(machine_probe.ROOT, "tools", "bench", "results",
                        "fit.md")
    with open(path, encoding="utf-8") as lines:
        return lines.read()


def times(_):
    """A row for each constant, a column for each machine."""
    path = os.path.join(machine_probe.ROOT, "include", "attn", "Schedule",
                        "Times.def")
    with open(path, encoding="utf-8") as lines:
        text = lines.read()
    values = re.findall(r"^ATTN_SET\((\w+), (\w+), ([-+.\de]+)\)$", text,
                        re.MULTILINE)
    machines_of = list(dict.fromkeys(machine for machine, _, _ in values))
    found = {(name, machine): value for machine, name, value in values}
    rows = [[f"`{name}`", words.replace("|", "\\|"),
             *(f"{float(found[name, one]):.3g}" for one in machines_of)]
            for name, words in re.findall(r'^ATTN_TIME\((\w+), "(.*)"\)$',
                                          text, re.MULTILINE)]
    return table(["constant", "is", *(f"`{one}`" for one in machines_of)],
                 rows)


def verdict(run):
    """Which peer is ahead on average, and where."""
    ahead = {}
    for (direction, size), cells in problems_of(run).items():
        for peer in PEERS:
            if mean([cell["attn"] / cell[peer] for cell in cells]) < 1:
                ahead.setdefault(peer, []).append(f"{direction} d = {size}")
    if not ahead:
        return "On average attn is ahead of both in every line."
    return "On average " + " and ".join(
        f"{doc_figures.NAMES[peer]} is ahead in {' and '.join(where)}"
        for peer, where in ahead.items()) + "; attn is ahead in all others."


def turns_setting(_):
    """What the figures of `turns` say, and what they were measured with."""
    run = doc_figures.turns()
    versions = ", ".join(f"{name} {version}"
                         for name, version in run["versions"].items())
    return (f"{verdict(run)} Measured on one {run['device']}, driver "
            f"{run['driver']}, {run['date']}, with {versions}.\n")


#: Of caches, what attn-plan is told of the place of keys and of their type.
PLACES = {"in order": "", "lengths": "--lengths",
          **{f"pages of {page}": f"--lengths --page {page}"
             for page in (16, 64, 128)},
          "eight bits": "--lengths --dtype f8e4m3",
          "eight bits of keys": "--lengths --kv-dtype f8e4m3",
          "eight bits of keys in pages of 64":
              "--lengths --page 64 --kv-dtype f8e4m3"}


def decode(run):
    """Predicted and measured microseconds of decoding steps, cell by cell."""
    path = os.path.join(machine_probe.ROOT, "tools", "bench", "results",
                        "serving-h200.json")
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    heads, kv_heads = found["heads"].split("/")
    kinds = {"": (found["caches"], f"--heads {heads} --kv-heads {kv_heads} "
                                   f"--head-dim {found['head_dim']}"),
             "latent, ": (found["latent"], "--heads 128 --kv-heads 1 --head-dim "
                                           "576 --head-dim-v 512 "
                                           "--values-of-keys")}
    rows, ratios = [], []
    for kind, (cells, form) in kinds.items():
        for cell in cells:
            row = [f"{kind}{cell['batch']} x {cell['keys']}"]
            for place, told in PLACES.items():
                measured = cell["us"].get(place)
                if measured is None:
                    row.append("-")
                    continue
                report = json.loads(run(
                    f"attn-plan --machine h200 --queries 1 {form} --batch "
                    f"{cell['batch']} --keys {cell['keys']} {told} --json"))
                predicted = 1e6 * report["plans"][0]["seconds"]
                ratios.append(predicted / measured)
                row.append(f"{predicted:.0f} / {measured:.0f}")
            rows.append(row)
    apart = statistics.median(abs(ratio - 1) for ratio in ratios)
    return table(["batch x keys", *PLACES], rows) + (
        f"\nIn the median of {len(ratios)} cells the two are {apart:.1%} "
        f"apart; predicted over measured is {min(ratios):.2f} to "
        f"{max(ratios):.2f}.\n")


TABLES = {"works": works, "machines": machines, "mutants": mutants,
          "times": times, "fit": fit, "turns": turns,
          "turns setting": turns_setting, "decode": decode, "blocks": doc_sparse.speed_table}
