#!/usr/bin/env python3
"""The table of all searches, tools/bench/results/searches.tsv.

    searches.py add FILE.json... [--name NAME]   what choice.py wrote
    searches.py list                             what there is, and what it says
    searches.py replay [--build FOLDER]          what the model chooses today
    searches.py score [--build FOLDER]           how good that is

`add` appends a search and refuses one that is there already.  `list` prints
of every search how many problems and candidates it has, and what the schedule
that was derived then loses.  `replay` runs the tests BorderTest and ChoiceTest
of a build over the whole table and writes what they count to replays.tsv,
beside it; BorderTest then lets one less be good, and one more bad, of every search.
`score` runs them too, writes nothing, and prints mean loss, the shares that lose
at most 3, 5 and 10 %, and how often the schedule is that of the fastest: of all
problems, of those that a fit sees, and of the other half.
attn_bench/searches.py has the format.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from attn_bench import replays, searches
from attn_bench.choice_page import judge

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tools" / "bench" / "results"


def add(options: argparse.Namespace) -> None:
    if options.name and len(options.files) > 1:
        raise ValueError("--name expects one file, but got "
                         f"{len(options.files)}")
    table = (searches.load(options.table) if options.table.exists()
             else searches.Table())
    lines = []
    for path in options.files:
        search = searches.search_of(json.loads(path.read_text("utf-8")))
        search.name = options.name or search.name
        lines.append(table.add(search))
        print(f"{search.name}: {len(search.entries)} problems")
    with options.table.open("a", encoding="utf-8") as table_file:
        table_file.writelines(lines)


def show(options: argparse.Namespace) -> None:
    for search in searches.load(options.table).searches.values():
        judged = [judge(entry.result)["loss"] for entry in search.entries
                  if entry.derived is not None]
        timed = sum(len(entry.candidates) for entry in search.entries)
        line = (f"{search.name:22} {len(search.entries):3} problems, "
                f"{timed:5} candidates")
        if judged:
            line += (f", loss {sum(judged) / len(judged):.2%} in the mean, "
                     f"{max(judged):.1%} at most")
        print(line)


def chosen_today(build: Path) -> Any:
    """GoogleTest's report of BorderTest and ChoiceTest over all searches."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        subprocess.run(
            [build / "test" / "Unit" / "AttnScheduleTests",
             "--gtest_filter=*Border.*:*Choice.*",
             f"--gtest_output=json:{report}"], check=False,
            stdout=subprocess.DEVNULL, env={
                name: value for name, value in os.environ.items()
                if name != "ATTN_SHARE"})
        return json.loads(report.read_text("utf-8"))


def score(options: argparse.Namespace) -> None:
    print(replays.score_table(replays.scores(chosen_today(options.build))))


def replay(options: argparse.Namespace) -> None:
    found = replays.counted(chosen_today(options.build))
    path = options.table.with_name("replays.tsv")
    old = replays.load(path)
    if {one.search for one in found} != {one.search for one in old}:
        raise ValueError(f"expects counts of the {len(old)} searches of "
                         f"{path.name}, but got {len(found)}")
    path.write_text(replays.text(replays.updated(old, found)), "utf-8")
    print(replays.words(found))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", type=Path, default=RESULTS / "searches.tsv")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("add")
    one.add_argument("files", type=Path, nargs="+", metavar="FILE.json")
    one.add_argument("--name")
    one.set_defaults(run=add)
    commands.add_parser("list").set_defaults(run=show)
    one = commands.add_parser("replay")
    one.add_argument("--build", type=Path, default=ROOT / "build")
    one.set_defaults(run=replay)
    one = commands.add_parser("score")
    one.add_argument("--build", type=Path, default=ROOT / "build")
    one.set_defaults(run=score)
    options = parser.parse_args()
    try:
        options.run(options)
        return 0
    except (ValueError, OSError) as error:
        print(f"searches.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
