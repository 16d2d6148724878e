"""The cross table of docs/cells.md: no cell is missing, none is refused without
words, and those that are right are, on the interpreter."""

import itertools
import os
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools", "dev"))
import cells  # noqa: E402

BUILD = os.path.dirname(os.path.dirname(os.environ["ATTN_LIBRARY"]))


@pytest.fixture(scope="module")
def verdicts():
    return cells.ask(BUILD)


@pytest.mark.long
def test_every_cell_has_a_verdict(verdicts):
    assert set(verdicts) == set(itertools.product(*cells.AXES))
    for cell, verdict in verdicts.items():
        assert verdict == cells.RIGHT or len(verdict.split()) > 3, cell


@pytest.mark.long
def test_what_is_plain_is_right(verdicts):
    for cell in (("forward", "dense", "band", "scale"),
                 ("forward", "paged", "window", "scale"),
                 ("forward", "ragged", "band", "scale"),
                 ("forward", "ragged on lengths", "prefix", "scale"),
                 ("forward", "ragged on pages", "window", "scale"),
                 ("forward", "lengths", "prefix", "scale")):
        for rest in itertools.product(cells.ROWS, cells.PARTS):
            assert verdicts[(*cell, *rest)] == cells.RIGHT
    assert verdicts["backward", "dense", "band", "scale", "own",
                    "one part"] == cells.RIGHT


def test_words_are_found():
    said = """\
<stdin>:3:1: error: 'attn.forward' op expects a schedule that fits l4, but \
got flash, key = 3: expects more
<stdin>:8:1: error: 'attn.backward' op expects a schedule that has a kernel, \
but got flash
<stdin>:8:1: note: see current operation: x
<stdin>:8:1: note: flash does not take this yet
<stdin>:12:1: error: 'attn.forward' op expects no such thing
"""
    assert cells.read(said, [1, 6, 11]) == {
        0: "expects more", 1: "flash does not take this yet",
        2: "expects no such thing"}


def right_ones(verdicts):
    return [cell for cell, verdict in verdicts.items()
            if verdict == cells.RIGHT]


@pytest.mark.long
def test_some_are_run(verdicts):
    """One of each direction and place that is right; cells.py runs all."""
    seen = set()
    for cell in right_ones(verdicts):
        if cell[:2] in seen:
            continue
        seen.add(cell[:2])
        assert cells.run(BUILD, cell, "interpreter") is None, cell
    assert len(seen) >= 3


@pytest.mark.long
@pytest.mark.parametrize("share", range(14))
def test_all_are_run(verdicts, share):
    for cell in right_ones(verdicts)[share::14]:
        assert cells.run(BUILD, cell, "interpreter") is None, cell
