"""What the tests of the benchmark share."""

import sys

import pytest
from documents import BENCH

sys.path.insert(0, BENCH)


@pytest.fixture
def make_document():
    """A document from [(cell, results by candidate)]."""
    from attn_bench import results

    def make(cells):
        document = results.new()
        run = results.add_run(document, {
            "date": "2026-11-21T05:22:02+00:00", "command": "bench.py",
            "commit": "0" * 40, "device": "GPU of a test", "driver": "580"})
        for cell, found in cells:
            results.add_cell(document, run, cell, {"results": found})
        return document

    return make
