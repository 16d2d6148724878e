"""Runs every test that draws a seed with many fresh ones, at its small sizes.

    seeds.py [N]           with N seeds each, 100 unless given
    seeds.py --minutes M   for M minutes: every test gets an equal part of them,
                           so that a quick one runs with thousands of seeds

The first run is of all unit tests, and its report says which of them draw
(test/Unit/Seed.h) and how long a seed takes; those are repeated.  So is
test/Pipelines/Inputs/alignments.py.  Small sizes are those of a share, as in
tools/dev/test: a quarter of the random cases of a seed (test/Unit/Share.h);
long tests run too, each under the share that has it.  --whole draws all cases
of a seed, which takes four times as long.

--only RE takes the tests whose names match, as of AttnIRTests/Suite.Test;
--jobs J runs so many at a time, or as many as there are cores.  Each failure is
printed with what shows it again.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import machine_probe

ROOT = machine_probe.ROOT
BUILD = os.path.join(ROOT, "build")
ALIGNMENTS = os.path.join(ROOT, "test", "Pipelines", "Inputs", "alignments.py")
# gtest's seeds are from 1 to 99999.
MOST = 99999
# Parts of the long tests.
PARTS = 14
# What one process may take: rounds go over all tests, so that a run that is
# cut off has given each about as much.
CHUNK = 20


def share_of(test, whole):
    """What ATTN_SHARE must be for a test to run: isInShare of Share.h."""
    return "" if whole else f"{sum(map(ord, test)) % PARTS + 1}/{PARTS}"


def execute(command, share):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          errors="replace", cwd=BUILD,
                          env=dict(os.environ, ATTN_SHARE=share))


@dataclasses.dataclass
class Draw:
    """A test that draws, and what was spent on it."""
    program: str
    test: str
    share: str
    cost: float  # seconds for a seed
    seeds: int = 0
    spent: float = 0

    def again(self, seed):
        share = f"ATTN_SHARE={self.share} " if self.share else ""
        name = os.path.relpath(self.program, ROOT)
        return (f"{share}{name} --gtest_random_seed={seed} "
                f"--gtest_filter={self.test}")

    def run(self, seed, count):
        """What went wrong with so many seeds, one after another."""
        # gtest takes another seed for each repetition only if it shuffles.
        done = execute([self.program, f"--gtest_filter={self.test}",
                        "--gtest_shuffle", f"--gtest_random_seed={seed}",
                        f"--gtest_repeat={count}"], self.share)
        if not done.returncode:
            return []
        parts = re.split(r"^Note: Randomizing tests' orders with a seed of "
                         r"(\d+) \.$", done.stdout, flags=re.M)
        runs = list(zip(parts[1::2], parts[2::2])) or [(seed, done.stdout)]
        return [f"{self.again(seed)}\n{text}{done.stderr}"
                for seed, text in runs if "[  PASSED  ] 1 test." not in text]


class Alignments(Draw):
    """A script, whose seed is its last argument."""

    def again(self, seed):
        return f"ATTN_SHARE={self.share} {' '.join(self.command(seed))}"

    @staticmethod
    def command(seed):
        tools = [os.path.join(BUILD, "bin", tool)
                 for tool in ("attn-opt", "attn-run")]
        return [sys.executable, ALIGNMENTS, *tools, "12", "2", str(seed)]

    def run(self, seed, count):
        wrong = []
        for i in range(count):
            done = execute(self.command(following(seed, i)), self.share)
            if done.returncode:
                wrong.append(f"{self.again(following(seed, i))}\n"
                             f"{done.stdout}{done.stderr}")
        return wrong


def following(seed, count):
    """gtest's seed so many repetitions later."""
    return (seed - 1 + count) % MOST + 1


def programs():
    """The unit tests, those beside a driver of their own as well."""
    found = sorted(glob.glob(os.path.join(BUILD, "test", "Unit", "*Tests")))
    if not found:
        sys.exit(f"expects unit tests in {BUILD}, but found none; "
                 "run tools/dev/test")
    return found


def names_of(program):
    """Suite.Test, as gtest lists them."""
    suite = ""
    for line in execute([program, "--gtest_list_tests"], "").stdout.split("\n"):
        name = line.split("#")[0].rstrip()
        if name.startswith(" "):
            yield suite + name.strip()
        elif name.endswith("."):
            suite = name


def find_draws(program, share, tests, start):
    """The tests that draw, and what the first run of all found wrong."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        done = execute([program, f"--gtest_random_seed={start}",
                        f"--gtest_output=json:{report.name}",
                        "--gtest_filter=" + ":".join(tests)], share)
        text = report.read()
    if not text:
        return [], [f"ATTN_SHARE={share} {program} --gtest_random_seed={start} "
                    f"ended early:\n{done.stdout}{done.stderr}"]
    draws, wrong = [], []
    for suite in json.loads(text)["testsuites"]:
        for result in suite["testsuite"]:
            draw = Draw(program, f"{suite['name']}.{result['name']}", share,
                        float(result["time"].rstrip("s")), 1)
            if "seed" in result:
                draws.append(draw)
            if result.get("failures"):
                wrong.append(f"{draw.again(start)}\n"
                             f"{result['failures'][0]['failure']}")
    return draws, wrong


def find_all(pool, options, start):
    groups = collections.defaultdict(list)
    for program in programs():
        for test in names_of(program):
            if re.search(options.only, f"{os.path.basename(program)}/{test}"):
                groups[program, share_of(test, options.whole)].append(test)
    futures = [pool.submit(find_draws, program, share, tests, start)
               for (program, share), tests in groups.items()]
    draws, wrong = [], []
    for future in concurrent.futures.as_completed(futures):
        found = future.result()
        draws += found[0]
        wrong += found[1]
    if re.search(options.only, os.path.basename(ALIGNMENTS)):
        share = share_of(ALIGNMENTS, options.whole)
        draws.append(Alignments(ALIGNMENTS, "alignments.py", share, 5))
    return draws, wrong


def round_of(draw, options, budget, start):
    """Runs a test for a while; what went wrong."""
    seconds, most = CHUNK, options.count - draw.seeds
    if budget is not None:
        seconds, most = min(CHUNK, budget - draw.spent), MOST - draw.seeds
    count = max(1, min(most, int(seconds / max(draw.cost, 1e-3))))
    begin = time.monotonic()
    wrong = draw.run(following(start, draw.seeds), count)
    took = time.monotonic() - begin
    draw.seeds += count
    draw.spent += took
    draw.cost = took / count
    return wrong


def is_open(draw, options, budget):
    if budget is None:
        return draw.seeds < options.count
    return draw.seeds < MOST and draw.spent + draw.cost / 2 < budget


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", metavar="N", nargs="?", type=int, default=100)
    parser.add_argument("--minutes", metavar="M", type=float)
    parser.add_argument("--only", metavar="RE", default="")
    parser.add_argument("--jobs", metavar="J", type=int,
                        default=os.cpu_count())
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    for name, value in (("N", options.count), ("J", options.jobs),
                        ("M", options.minutes)):
        if value is not None and value <= 0:
            parser.error(f"expects {name} above 0, but got {value:g}")
    return options


def show(draws, failed, begin):
    for draw in sorted(draws, key=lambda draw: draw.seeds):
        print(f"{draw.seeds:6} seeds of {draw.cost:8.3f} s: {draw.test}")
    print(f"{len(draws)} tests draw; {min(d.seeds for d in draws)} to "
          f"{max(d.seeds for d in draws)} seeds each, "
          f"{sum(d.seeds for d in draws)} in all: {failed} failed, "
          f"in {time.monotonic() - begin:.0f} s")


def main():
    options = parsed()
    begin = time.monotonic()
    start = int(time.time()) % MOST + 1
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        draws, wrong = find_all(pool, options, start)
        print("\n".join(wrong + [
            f"{len(draws)} tests draw a seed; the first was {start}; a seed of "
            f"all takes {sum(d.cost for d in draws):.0f} s, and finding them "
            f"took {time.monotonic() - begin:.0f} s"]), flush=True)
        if not draws:
            return 1
        budget = None if options.minutes is None else (
            options.minutes * 60 * options.jobs / len(draws))
        failed = len(wrong)
        while todo := [d for d in draws if is_open(d, options, budget)]:
            futures = [pool.submit(round_of, draw, options, budget, start)
                       for draw in todo]
            for future in concurrent.futures.as_completed(futures):
                for line in future.result():
                    print(line, flush=True)
                    failed += 1
            print(f"{sum(d.seeds for d in draws)} seeds, {len(todo)} tests in "
                  f"this round, {failed} failed, "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
    show(draws, failed, begin)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
