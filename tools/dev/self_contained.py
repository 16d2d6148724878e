"""Checks that linked files run on any x86-64 Linux with glibc 2.36 or newer.

`self_contained.py [--include FOLDER] FILE...`: nothing is needed but libc, libm
and the loader, none newer than that, nothing of the C++ library is left to find
at run time, and a shared library shows the C interface and nothing else.  Of
FOLDER every header in attn-c compiles alone, as C and as C++, and Attn.h
declares all that a shared library shows.  The exit status is 1 when something
is wrong.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

import machine_probe

NEWEST_GLIBC = (2, 36)
NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
# The functions of include/attn-c, and the version of their symbols.
EXPORTS = re.compile(r"attn_\w+")
LANGUAGES = {"C": ("-xc", "-std=c11"), "C++": ("-xc++", "-std=c++17")}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def shown_by(path):
    """The names that a shared library shows."""
    return [line.split()[-1].split("@")[0] for line in
            output("nm", "-D", "--defined-only", path).splitlines()]


def said_of(source, include, *language):
    """What the compiler says of a text, or nothing."""
    return subprocess.run(
        ["clang-" + machine_probe.versions()["LLVM_MAJOR"], *language, "-Wall",
         "-pedantic", "-Werror", "-fsyntax-only", "-ferror-limit=0", "-I",
         include, "-"],
        input=source, capture_output=True, text=True, check=False).stderr


def check_headers(include):
    """What is wrong with headers, each by itself."""
    headers = sorted(glob.glob(os.path.join(include, "attn-c", "*.h")))
    names = [os.path.relpath(header, include) for header in headers]
    if "attn-c/Attn.h" not in names:
        return [f"expects attn-c/Attn.h among headers, but has {names}"]
    return [f"{name} does not compile alone as {language}: {said}"
            for name in names
            for language, options in LANGUAGES.items()
            if (said := said_of(f'#include "{name}"\n', include, *options))]


def check_declarations(path, include):
    """What the headers do not declare of what a library shows."""
    names = [name for name in shown_by(path) if EXPORTS.fullmatch(name)]
    said = said_of("""#include "attn-c/Attn.h"
typedef void (*function)(void);
const function shown[] = {%s};
""" % ", ".join("(function)" + name for name in names), include,
                   *LANGUAGES["C"])
    missing = re.findall(r"undeclared identifier '(\w+)'", said)
    if missing:
        return [f"expects attn-c/Attn.h to declare all that it shows, but "
                f"not {', '.join(missing)}"]
    return [f"and attn-c/Attn.h do not agree: {said}"] if said else []


def check(path, include):
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
        shown = shown_by(path)
        foreign = [name for name in shown if not EXPORTS.fullmatch(name)]
        if not shown or foreign:
            wrong.append(f"expects to show the C interface alone, but shows "
                         f"{', '.join(foreign[:5]) or 'nothing'}")
        if include:
            wrong += check_declarations(path, include)
    return wrong, ".".join(map(str, newest))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--include", metavar="FOLDER")
    parser.add_argument("files", metavar="FILE", nargs="+")
    options = parser.parse_args()
    wrong = []
    if options.include:
        wrong += [f"{options.include}: {sentence}"
                  for sentence in check_headers(options.include)]
    for path in options.files:
        found, newest = check(path, options.include)
        print(f"{path}: {os.path.getsize(path)} bytes, glibc {newest}")
        wrong += [f"{path} {sentence}" for sentence in found]
    for sentence in wrong:
        print(f"error: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
