"""Pictures of attn-plan: their words are apart, and all that is priced is in
them."""

import json
import subprocess
import sys

import pytest
from svg_page import Page


def plan(*options):
    done = subprocess.run([sys.executable, "-m", "attn", "attn-plan",
                           *options], capture_output=True, text=True,
                          check=True)
    return done.stdout


SWEEPS = [
    ["--queries", "4096", "--heads", "16", "--sweep", "head-dim=64..2048"],
    ["--head-dim", "64", "--direction", "backward", "--sweep",
     "queries=1..100000"],
    ["--queries", "7", "--head-dim", "128", "--machine", "l4,t4,h100_sxm",
     "--dtype", "bf16,f8e4m3", "--sweep", "keys=1000,100000"],
    ["--queries", "4096", "--heads", "3", "--sweep", "head-dim=64"],
    ["--queries", "1000", "--heads", "32", "--kv-heads", "4", "--batch", "32",
     "--head-dim", "600", "--head-dim-v", "500", "--mask", "window<100, 100>",
     "--lse", "--sweep", "smem_bytes_per_block=10000..232448"],
    ["--queries", "64", "--sweep", "head-dim=512,60000", "--dtype", "f32",
     "--direction", "backward", "--machine", "t4,h100_sxm"],
]


@pytest.mark.long
@pytest.mark.parametrize("options", SWEEPS, ids=" ".join)
def test_words_are_apart_and_every_schedule_is_drawn(options):
    page = Page(plan(*options, "--format", "svg"))
    assert page.faults() == []
    sweeps = json.loads(plan(*options, "--format", "json"))["sweeps"]
    drawn = [sweep for sweep in sweeps
             if any("plans" in point for point in sweep["points"])]
    assert drawn
    # Two plots each; one has the bound.
    priced = sum(2 * len({one["schedule"] for point in sweep["points"]
                          for one in point.get("plans", ())})
                 for sweep in drawn)
    assert len(page.groups("curve")) == priced
    assert len(page.groups("bound")) == len(drawn)


SURVEYS = [
    ["--queries", "1024", "--heads", "16", "--head-dim", "512", "--machine",
     "all", "--dtype", "all"],
    ["--queries", "4", "--head-dim", "512", "--machine", "l4,gtx_1060",
     "--dtype", "f32", "--direction", "backward"],
    ["--queries", "1", "--keys", "100000", "--head-dim", "64", "--dtype",
     "bf16,f16"],
]


@pytest.mark.long
@pytest.mark.parametrize("options", SURVEYS, ids=" ".join)
def test_every_machine_and_type_has_a_line(options):
    page = Page(plan(*options, "--format", "svg"))
    assert page.faults() == []
    cells = json.loads(plan(*options, "--format", "json"))["cells"]
    assert len(page.groups("cell")) == sum("plan" in one for one in cells)
    assert page.groups("none") == [one["reason"] for one in cells
                                   if "reason" in one]


def test_words_over_words_are_seen():
    text = plan(*SWEEPS[0], "--format", "svg")
    first = text.index("<text ")
    end = text.index("</text>", first) + len("</text>")
    assert Page(text[:end] + text[first:end] + text[end:]).faults()
