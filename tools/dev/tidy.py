"""clang-tidy over the sources that changed, or all: `tidy.py [--all]`.

Needs a build of the dev preset (compile_commands.json).  Changed means since
the commit of --since, else against the upstream branch, or HEAD~ where there is
none; a changed header counts for the sources that name it.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import compile_commands
import machine_probe

ROOT = machine_probe.ROOT


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], text=True,
                          capture_output=True, check=False).stdout.split()


def changed(sources, since):
    if since and not git("rev-parse", "--verify", since + "^{commit}"):
        sys.exit(f"expects a commit after --since, but got {since}")
    base = ([since] if since else git("merge-base", "HEAD", "@{upstream}") or
            git("rev-parse", "HEAD~"))
    names = set(git("diff", "--name-only", *(base or ["HEAD"])))
    names |= set(git("ls-files", "-o", "--exclude-standard"))
    headers = [n for n in names if n.endswith((".h", ".def"))]
    picked = []
    for source in sources:
        name = os.path.relpath(source, ROOT)
        with open(source, encoding="utf-8") as f:
            text = f.read()
        short = [h[len("include/"):] if h.startswith("include/")
                 else os.path.basename(h) for h in headers]
        if name in names or any(f'"{h}"' in text for h in short):
            picked.append(source)
    return picked


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    arguments = parser.parse_args()
    sources = sorted({entry["file"]
                      for entry in compile_commands.complete(arguments.build)
                      if entry["file"].startswith(ROOT + os.sep)})
    picked = (sources if arguments.all
              else changed(sources, arguments.since))
    tidy = "clang-tidy-" + machine_probe.versions()["LLVM_MAJOR"]

    def check(source):
        done = subprocess.run([tidy, "-quiet", "-p", arguments.build, source],
                              capture_output=True, text=True, check=False)
        print(("ok   " if done.returncode == 0 else "FAIL ") +
              os.path.relpath(source, ROOT), flush=True)
        if done.returncode:
            print(done.stdout, flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = list(pool.map(check, picked))
    print(f"tidy: {len(picked)} of {len(sources)} sources, "
          f"{passed.count(False)} wrong")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
