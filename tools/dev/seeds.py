"""Runs every test that draws a seed with many fresh ones: `seeds.py [N]`.

N is 100 unless given.  The first run is of all unit tests, and its report says
which of them draw (test/Unit/Seed.h); those are repeated.  So is
test/Pipelines/Inputs/alignments.py.  Each failure is printed with the seed that
shows it again.  100 seeds take about two hours on 2 cores.
"""

import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import machine_probe
import usage

ROOT = machine_probe.ROOT
BUILD = os.path.join(ROOT, "build")
# gtest's seeds are from 1 to 99999.
MOST = 99999


def programs():
    """The unit tests, those beside a driver of their own as well."""
    found = sorted(glob.glob(os.path.join(BUILD, "test", "Unit", "*Tests")))
    if not found:
        sys.exit(f"expects unit tests in {BUILD}, but found none; "
                 "run tools/dev/test")
    return found


def run(program, seed, tests=None):
    """(report, output) of tests of a program."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [program, f"--gtest_random_seed={seed}",
                   f"--gtest_output=json:{report.name}"]
        if tests:
            command.append("--gtest_filter=" + ":".join(tests))
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        text = report.read()
    return json.loads(text) if text else None, done.stdout + done.stderr


def tests_of(report):
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            yield f"{suite['name']}.{test['name']}", test


def failures(program, seed, report, output):
    """One line per failed test, with what shows it again, and its output."""
    name = os.path.relpath(program, ROOT)
    if report is None:
        yield f"{name} --gtest_random_seed={seed} ended early:\n{output}"
        return
    for test, result in tests_of(report):
        found = result.get("failures")
        if found:
            yield (f"{name} --gtest_random_seed={seed} "
                   f"--gtest_filter={test}\n{found[0]['failure']}")


def run_alignments(seed):
    script = os.path.join(ROOT, "test", "Pipelines", "Inputs", "alignments.py")
    tools = [os.path.join(BUILD, "bin", tool)
             for tool in ("attn-opt", "attn-run")]
    command = [sys.executable, script, *tools, "12", "2", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def jobs_of(count, start):
    """What is to be run behind the first run, and what that found wrong."""
    draws, wrong = {}, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {pool.submit(run, p, start): p for p in programs()}
        for future in concurrent.futures.as_completed(futures):
            program = futures[future]
            report, output = future.result()
            wrong += failures(program, start, report, output)
            if report:
                draws[program] = [test for test, result in tests_of(report)
                                  if "seed" in result]
    seeds = [(start + i) % MOST + 1 for i in range(count - 1)]
    jobs = [(program, seed, tests) for seed in seeds
            for program, tests in draws.items() if tests]
    return jobs, seeds, sum(map(len, draws.values())), wrong


def main():
    text = sys.argv[1] if len(sys.argv) > 1 else "100"
    if not re.fullmatch(r"[1-9]\d*", text):
        sys.exit(f"expects a number of seeds, but got {text}")
    begin = time.monotonic()
    start = int(time.time()) % MOST + 1
    jobs, seeds, tests, wrong = jobs_of(int(text), start)
    print(f"{tests} tests draw a seed; the first was {start}", flush=True)

    def one(job):
        program, seed, names = job
        return list(failures(program, seed, *run(program, seed, names)))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(one, job) for job in jobs]
        futures += [pool.submit(lambda s: list(run_alignments(s)), seed)
                    for seed in seeds]
        for done, future in enumerate(
                concurrent.futures.as_completed(futures), 1):
            for line in future.result():
                print(line, flush=True)
                wrong.append(line)
            if done % 20 == 0:
                print(f"{done} of {len(futures)} runs, "
                      f"{time.monotonic() - begin:.0f} s", flush=True)
    print(f"{tests} tests, {text} seeds from {start}: {len(wrong)} failed, "
          f"in {time.monotonic() - begin:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
