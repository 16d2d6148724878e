"""Plans as pictures."""

import dataclasses
import pickle
import re
from xml.etree import ElementTree

import attn
import pytest

SIZES = dict(batch=1, heads=16, queries=4096, head_dim=128)
SVG = "{http://www.w3.org/2000/svg}"


def bytes_of(picture):
    """Those of all arrows."""
    root = ElementTree.fromstring(picture)
    assert root.tag == SVG + "svg"
    return sum(int(arrow.get("data-bytes")) for arrow in root.iter(SVG + "g")
               if arrow.get("class") == "arrow")


@pytest.mark.parametrize("more", [
    {}, dict(kv_heads=2, causal=True), dict(direction="backward"),
    dict(machine="l4", head_dim=1024), dict(queries=1, keys=4096)])
def test_arrows_have_the_bytes_of_the_best_plan(more):
    best = attn.plan(**{**SIZES, **more}).best
    picture = attn.diagram(**{**SIZES, **more})
    assert bytes_of(picture) == best.bytes["l2"]
    assert best.text in picture


def test_any_schedule_is_drawn():
    for plan in attn.plan(**SIZES).plans[:3]:
        assert bytes_of(attn.diagram(**SIZES, schedule=plan.text)) == \
            plan.bytes["l2"]
    picture = attn.diagram(**SIZES, schedule="streamed_query, query = 64")
    assert re.search(r"<title>streamed_query, query = 64, ", picture)


def test_notebooks_show_pictures():
    report = attn.plan(**SIZES, causal=True)
    picture = attn.diagram(**SIZES, causal=True)
    assert picture._repr_svg_() == picture
    assert report.best._repr_svg_() == picture
    copy = pickle.loads(pickle.dumps(report.best))
    assert copy == report.best and copy._repr_svg_() == picture
    # Of no report, and so of no problem: notebooks take its repr.
    assert dataclasses.replace(report.best, seconds=1.0)._repr_svg_() is None


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="expects a schedule out of"):
        attn.diagram(**SIZES, schedule="flesh")
    with pytest.raises(ValueError, match="expects query to be a multiple"):
        attn.diagram(**SIZES, schedule="flash, query = 7")
    with pytest.raises(attn.UnsupportedError, match="but got none"):
        attn.diagram(**SIZES, machine="h100_sxm, registers_per_sm = 1024")
