"""Shows what each pass changed: `ir.py FILE.mlir [attn-opt arguments...]`.

Prints a unified diff between the IR before and after every pass that changed
something; without arguments, of -attn-to-nvvm.  `--build FOLDER` names the
build.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys

import machine_probe

BANNER = re.compile(r"^// -----// IR Dump (Before|After) (\S+).*//----- //$",
                    re.MULTILINE)


def dumps(text):
    """(pass, IR) for every banner of MLIR's printer."""
    parts = BANNER.split(text)
    for _, name, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        yield name, body.strip("\n").split("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build",
                        default=os.path.join(machine_probe.ROOT, "build"))
    parser.add_argument("file")
    arguments, options = parser.parse_known_args()
    done = subprocess.run(
        [os.path.join(arguments.build, "bin", "attn-opt"), arguments.file,
         *(options or ["-attn-to-nvvm"]), "--mlir-disable-threading",
         "--mlir-print-ir-after-all", "--mlir-print-ir-after-change",
         "--mlir-print-ir-module-scope"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        check=False)
    with open(arguments.file, encoding="utf-8") as f:
        before = f.read().strip("\n").split("\n")
    steps = 0
    for name, after in dumps(done.stderr):
        print("\n".join(difflib.unified_diff(before, after, "before", name,
                                             n=1, lineterm="")))
        before, steps = after, steps + 1
    if done.returncode:
        print(BANNER.split(done.stderr)[0], file=sys.stderr)
    print(f"{steps} passes changed something")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
