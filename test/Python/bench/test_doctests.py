"""Examples in docstrings."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["grid", "report", "rounds", "search",
                                    "plot", "settings", "results"])
def test_examples(module):
    if module in ("rounds",):
        pytest.importorskip("torch")
    found = doctest.testmod(importlib.import_module(f"attn_bench.{module}"))
    assert found.failed == 0
