"""Runs wrong kernels, made on purpose, on the interpreter: is each found out?

`mutants.py [--build FOLDER] [--variant NAME]... [--write] [--processes P]
[--verbose]`

All mutants of the variants of test/Mutants/variants.py whose names contain a
NAME, or of all variants; of ATTN_SHARE=K/N a part.  A mutant that nothing is
said against must be explained in test/Mutants/survivors.txt, and an explained
one must not be killed.  How many were killed must be what
test/Mutants/counts.json says, which has each variant by sevenths.  So a part is
a seventh of every (N / 7)-th variant, and counts are checked too; where N is
no multiple of seven it is the K-th of N parts of each, and they are not.
--write writes the counts of whole variants anew.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib

import machine_probe
import shares

ROOT = machine_probe.ROOT
FOLDER = os.path.join(ROOT, "test", "Mutants")
COUNTS = os.path.join(FOLDER, "counts.json")
sys.path.insert(0, FOLDER)
sys.dont_write_bytecode = True
from variants import VARIANTS  # noqa: E402  (lies beside what it is for)

# What becomes of a mutant, in the order of counts.json; an op that never runs
# is idle, and so are its mutants.
KILLED, SAME, MORE, MISSED, NEVER = COUNTED = (
    "killed", "same", "more", "missed", "never")
IDLE = "idle"
# Counts are kept by so many parts.
PARTS = 7
LEAST = 0.95


class Explanations:
    """survivors.txt: sentences, and the mutants or idle ops that they are of."""

    def __init__(self, path):
        self.path = path
        # By name: the kernels that it is explained of, as patterns, and why.
        self.of = collections.defaultdict(dict)
        self.used = set()
        kind = None
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                line = line.rstrip("\n")
                if not line or line.startswith("#"):
                    continue
                if line.startswith(" "):
                    self._add(number, kind, line.strip())
                    continue
                kind, _, sentence = line.partition(": ")
                if kind not in (SAME, MISSED, IDLE) or not sentence:
                    self._fail(number, "`same: `, `missed: ` or `idle: ` and "
                               "a sentence", line)

    def _fail(self, number, expected, got):
        sys.exit(f"{self.path}:{number}: expects {expected}, but got {got!r}")

    def _add(self, number, kind, line):
        """`flash_wgmma *: consumer fence_async 1 dropped, moved up; ...`: ops
        with what is done to each; of an idle one its name alone."""
        where, _, ops = line.partition(": ")
        for op in ops.split("; "):
            match = re.fullmatch(r"(.+ \d+)(?: (\D+))?", op)
            if not match or bool(match[2]) == (kind == IDLE):
                self._fail(number, "ops with their numbers and, unless idle, "
                           "what is done to them", op)
            for change in (match[2] or "").split(", "):
                name = f"{match[1]} {change}".strip()
                if where in self.of[name]:
                    self._fail(number, f"{where}: {name} once", line)
                self.of[name][where] = kind

    def find(self, kernel, name):
        """What is said of a kernel's mutant or op: `same`, ..., or nothing."""
        found = [where for where in self.of.get(name, ())
                 if fnmatch.fnmatchcase(kernel, where)]
        if len(found) > 1:
            sys.exit(f"{self.path}: expects {kernel}: {name} once, but got it "
                     f"in {' and '.join(found)}")
        if not found:
            return None
        self.used.add((found[0], name))
        return self.of[name][found[0]]

    def unused(self):
        return sorted((where, name) for name, kinds in self.of.items()
                      for where in kinds if (where, name) not in self.used)


def label(variant, kernel):
    """`flash_wgmma bf16`, with the launch of a kernel that is one of several:
    `score_spill_wgmma apart, outputs`."""
    builder = variant.name.split()[0]
    found = re.search(r"_(scores|outputs|attend|prepare|split_\w+?|finish|dq|"
                      r"dk_dv|dk|dv)(_deterministic|_dlse|_kept|_lse)*$",
                      kernel.removeprefix(builder))
    return variant.name + (f", {found[1]}" if found else "")


class Outcome:
    """What became of the mutants of a variant, or of a share of them."""

    def __init__(self, variant):
        self.variant = variant
        self.counts = [collections.Counter() for _ in range(PARTS)]
        self.lines, self.wrong, self.seconds = [], [], 0.0

    def total(self):
        return sum(self.counts, collections.Counter())

    def numbers(self):
        """Of each part, how many mutants became what."""
        return [[counts[kind] for kind in COUNTED] for counts in self.counts]


def part_of(name):
    """The part of a mutant, which it has by its name alone."""
    return zlib.crc32(name.encode()) % PARTS


def run(build, variant, share):
    """Runs the K-th of N parts of a variant's mutants."""
    outcome = Outcome(variant)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(variant.module())
        f.flush()
        done = subprocess.run(
            [os.path.join(build, "bin", "attn-mutants"), f.name, "--share",
             f"{share[0]}/{share[1]}"],
            capture_output=True, text=True, check=False)
    if done.returncode:
        outcome.wrong.append(f"{variant.name}: {done.stderr.strip()[:2000]}")
        return outcome
    for line in done.stdout.splitlines():
        what, kernel, *rest = line.split("\t")
        if what == "done":
            outcome.seconds = float(rest[0])
        else:
            outcome.lines.append((what, label(variant, kernel), *rest))
    return outcome


def judge(outcome, explanations):
    """Compares what a run says with what is explained."""
    for what, where, name, *why in outcome.lines:
        explained = explanations.find(where, name)
        kind = what
        if what == IDLE:
            if explained != IDLE:
                outcome.wrong.append(
                    f"{where}: {name} never runs; expects a size at which it "
                    "does, or the reason why there is none")
            continue
        if what == "survived":
            kind = explained or MISSED
            if not explained:
                outcome.wrong.append(f"{where}: {name} survives; expects an "
                                     "explanation")
        elif explained:
            outcome.wrong.append(f"{where}: {name} is explained, but is "
                                 f"{what}: {' '.join(why)}")
        outcome.counts[part_of(name)][kind] += 1


def read_counts():
    with open(COUNTS, encoding="utf-8") as f:
        return json.load(f)


def write_counts(counts):
    lines = [f"{json.dumps(v.name)}: {json.dumps(counts[v.name])}"
             for v in VARIANTS if v.name in counts]
    with open(COUNTS, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


def check_counts(outcomes, kept, parts):
    """What is wrong with the counts of some parts."""
    for outcome in outcomes:
        name, got = outcome.variant.name, outcome.numbers()
        want = kept.get(name, [None] * PARTS)
        for part in parts:
            if not outcome.wrong and want[part] != got[part]:
                yield (f"{name}, part {part + 1}: expects {', '.join(COUNTED)} "
                       f"to be {want[part]}, but got {got[part]}; run "
                       f"mutants.py --variant '{name}' --write")


def check_least(kept):
    """Every variant has its counts, and enough are killed."""
    for variant in VARIANTS:
        sums = [sum(column) for column in zip(*kept.get(variant.name, []))]
        killed, _, _, missed, _ = sums or [0] * len(COUNTED)
        if killed < max(1, LEAST * (killed + missed)):
            yield (f"{variant.name}: expects {LEAST:.0%} of the mutants that "
                   f"differ to be killed, but got {killed} of "
                   f"{killed + missed}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def chosen(names):
    """The variants whose names contain one of these, or all."""
    known = [v.name for v in VARIANTS]
    for name in names:
        if not any(name in other for other in known):
            sys.exit(f"expects a variant, {', '.join(known)}, but got {name}")
    return [v for v in VARIANTS
            if not names or any(name in v.name for name in names)]


def share_of(variants):
    """The part that ATTN_SHARE names: a share of each of some variants."""
    part, parts = shares.asked()
    if parts % PARTS:
        return (part, parts), variants
    every = parts // PARTS
    return ((part - 1) // every + 1, PARTS), variants[(part - 1) % every::every]


def main():
    arguments = parse_arguments()
    share, variants = share_of(chosen(arguments.variant))
    explanations = Explanations(os.path.join(FOLDER, "survivors.txt"))
    is_whole = share[1] == 1
    # A share runs beside other tests.
    processes = arguments.processes or (os.cpu_count() if is_whole else 1)
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        for outcome in pool.map(
                lambda v: run(arguments.build, v, share), variants):
            judge(outcome, explanations)
            if arguments.verbose:
                print(f"{outcome.variant.name}: {outcome.seconds} s, "
                      f"{dict(outcome.total())}", *outcome.wrong, sep="\n  ",
                      flush=True)
            outcomes.append(outcome)
    wrong = [line for outcome in outcomes for line in outcome.wrong]
    if is_whole and len(variants) == len(VARIANTS):
        wrong += [f"{where}: expects {name}, but there is none"
                  for where, name in explanations.unused()]
    kept = read_counts()
    if arguments.write and is_whole:
        kept.update((o.variant.name, o.numbers()) for o in outcomes)
        write_counts(kept)
    parts = (range(PARTS) if is_whole
             else [share[0] - 1] if share[1] == PARTS else [])
    wrong += check_counts(outcomes, kept, parts)
    wrong += check_least(kept)
    for line in wrong:
        print(line)
    total = sum((o.total() for o in outcomes), collections.Counter())
    print(f"{sum(total.values())} mutants, {total[KILLED]} killed, "
          f"{total[MISSED]} missed; {len(wrong)} wrong; "
          f"{sum(o.seconds for o in outcomes):.0f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
