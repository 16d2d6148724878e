#!/usr/bin/env python3
"""Adds results to those that the repository keeps, in tools/bench/results.

    keep.py KIND FILE.json... [--machine h100]
    keep.py --list                     the kinds, and what writes them

KIND-MACHINE.json holds the newest result of a kind, in a compact form.  Cells
of bench.py take the places of older ones, a check adds a line, other results
replace the old one.  Searches of choice.py are for searches.py.  Behind it,
`performance.py` writes docs/performance.md again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attn_bench import kept


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=kept.KINDS)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.json")
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for kind in kept.KINDS.values():
            print(f"{kind.name:14} {kind.maker}")
        return 0
    if not options.files:
        parser.error("expects a kind and at least one file")
    try:
        for path in options.files:
            target = kept.keep(options.kind, options.machine, path)
            print(f"{target.name}: {target.stat().st_size} bytes")
        return 0
    except (ValueError, KeyError, OSError) as error:
        print(f"keep.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
