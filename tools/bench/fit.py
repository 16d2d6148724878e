#!/usr/bin/env python3
"""Fits the constants of time of a machine to kernels that somebody timed.

    fit.py [--minutes M]          fits, and writes constants and scores
    fit.py --judge                scores of the constants that there are

Reads tools/bench/results, and the constants to begin with from
include/attn/Schedule/Times.def.  There it writes those of the fit; scores go
to results/fit.md, which docs/time-model.md shows once tools/dev/doc.py has
run.  A fit sees half of the problems, and is judged on the other half.
attn_bench/fits.py says what a fit makes small.  Needs `attn-price` of a build;
a build with the new constants comes after.
"""

from __future__ import annotations

import argparse
import sys

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs no NumPy
    sys.exit(0)

from pathlib import Path

from attn_bench import fits, replays

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tools" / "bench" / "results"
TIMES = ROOT / "include" / "attn" / "Schedule" / "Times.def"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--machine", default="h100_sxm")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--times", type=Path, default=TIMES)
    return parser.parse_args()


def fit(asked: argparse.Namespace) -> None:
    program = asked.build / "test" / "Unit" / "attn-price"
    text = asked.times.read_text("utf-8")
    constants = fits.constants_of(text, asked.machine)
    if not constants:
        raise ValueError(f"{asked.times.name}: expects ATTN_SET lines of "
                         f"{asked.machine}, but has none")
    problems = [*fits.timed_searches(asked.results),
                *fits.timed_gradients(asked.results, asked.machine)]
    prices = fits.Prices(program, problems)
    if not asked.judge:
        seen = fits.seen_by_fit(prices)
        prices.close()
        prices = fits.Prices(program, seen)
        constants = fits.descend(fits.Objective(prices), constants,
                                 60 * asked.minutes, lambda words: print(
                                     words, flush=True))
        prices.close()
        asked.times.write_text(
            fits.with_constants(text, asked.machine, constants), "utf-8")
        constants = fits.constants_of(asked.times.read_text("utf-8"),
                                      asked.machine)
        prices = fits.Prices(program, problems)
    rows = fits.scores(fits.outcomes(prices, constants))
    prices.close()
    (asked.results / "fit.md").write_text(fits.page(rows), "utf-8")
    print(replays.score_table(rows))


def main() -> int:
    try:
        fit(options())
        return 0
    except (ValueError, OSError) as error:
        print(f"fit.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
