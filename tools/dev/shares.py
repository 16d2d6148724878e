"""Which part of the long tests runs: ATTN_SHARE=K/N is the K-th of N parts.

tools/dev/test names another part every day, and none with --all: then, as
without it, all of them run.
"""

import os
import re
import sys
import zlib


def asked():
    """K and N of ATTN_SHARE."""
    text = os.environ.get("ATTN_SHARE") or "1/1"
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        sys.exit("ATTN_SHARE expects K/N with K from 1 to N, but got " + text)
    return int(match[1]), int(match[2])


def of(cases):
    """Every N-th of a list, from the K-th on."""
    part, parts = asked()
    return cases[part - 1::parts]


def has(name):
    """Whether the part has the case of a name."""
    part, parts = asked()
    return zlib.crc32(name.encode()) % parts == part - 1


def draws_of(count):
    """How many of so many random cases run: of a part a quarter, since every
    run draws others."""
    return count if asked()[1] == 1 else -(-count // 4)


def others(folder):
    """The tests of a folder of long tests that are another part's."""
    tests = sorted(name for name in os.listdir(folder)
                   if name.endswith((".test", ".mlir")))
    return set(tests) - set(of(tests))
