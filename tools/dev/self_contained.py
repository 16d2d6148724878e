"""Checks that linked files run on any x86-64 Linux with glibc 2.36 or newer.

`self_contained.py FILE...`: nothing is needed but libc, libm and the loader,
none newer than that, nothing of the C++ library is left to find at run time,
and a shared library shows the C interface and nothing else.  The exit status
is 1 when something is wrong.
"""

import os
import re
import subprocess
import sys

import usage

NEWEST_GLIBC = (2, 36)
NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
# The functions of include/attn-c, and the version of their symbols.
EXPORTS = re.compile(r"attn_\w+")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def check(path):
    """(what is wrong, the newest version of glibc that is asked for)."""
    wrong = []
    needed = set(re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", path)))
    if needed - NEEDED:
        wrong.append(f"expects only libc and libm, but needs "
                     f"{', '.join(sorted(needed - NEEDED))}")
    symbols = output("objdump", "-T", path)
    versions = {tuple(map(int, text.split("."))) for text in re.findall(
        r"GLIBC_(\d+(?:\.\d+)+)", symbols)}
    newest = max(versions, default=(0,))
    if newest > NEWEST_GLIBC:
        wrong.append(f"expects glibc {'.'.join(map(str, NEWEST_GLIBC))} or "
                     f"older, but needs {'.'.join(map(str, newest))}")
    if "GLIBCXX_" in symbols:
        wrong.append("needs the shared C++ library")
    if ".so" in os.path.basename(path):
        shown = [line.split()[-1].split("@")[0] for line in
                 output("nm", "-D", "--defined-only", path).splitlines()]
        foreign = [name for name in shown if not EXPORTS.fullmatch(name)]
        if not shown or foreign:
            wrong.append(f"expects to show the C interface alone, but shows "
                         f"{', '.join(foreign[:5]) or 'nothing'}")
    return wrong, ".".join(map(str, newest))


def main():
    if len(sys.argv) < 2:
        sys.exit("expects linked files, but got nothing")
    failed = False
    for path in sys.argv[1:]:
        wrong, newest = check(path)
        print(f"{path}: {os.path.getsize(path)} bytes, glibc {newest}")
        for sentence in wrong:
            print(f"error: {path} {sentence}", file=sys.stderr)
        failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
