"""Runs lit over a build and ends with `N passed, N failed`.

`lit.py BUILD_TEST_FOLDER [lit arguments...]`; a filter or -v goes through.
"""

import json
import os
import subprocess
import sys
import tempfile

import machine_probe
import usage

FAILURES = {"FAIL", "XPASS", "TIMEOUT", "UNRESOLVED"}
PASSES = {"PASS", "XFAIL", "FLAKYPASS"}


def count(results):
    """(passed, failed, not run) of lit's JSON report."""
    passed = failed = other = 0
    for test in results["tests"]:
        passed += test["code"] in PASSES
        failed += test["code"] in FAILURES
        other += test["code"] not in PASSES | FAILURES
    return passed, failed, other


def main():
    if len(sys.argv) < 2:
        sys.exit("expects the test folder of a build, but got nothing")
    folder, arguments = sys.argv[1], sys.argv[2:]
    major = machine_probe.versions()["LLVM_MAJOR"]
    lit = f"/usr/lib/llvm-{major}/bin/lit"
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        status = subprocess.run(
            [sys.executable, lit, "-sv" if sys.stdout.isatty() else "-v", "-o",
             report, folder, os.path.join(folder, "Unit"), *arguments],
            check=False).returncode
        if not os.path.exists(report):
            return status or 1
        with open(report, encoding="utf-8") as f:
            passed, failed, other = count(json.load(f))
    if other:
        print(f"{other} not run, for want of a feature of this machine")
    print(f"{passed} passed, {failed} failed")
    if passed + failed == 0:
        print("expects at least one test, but found none", file=sys.stderr)
        return 1
    return status or (1 if failed else 0)


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
