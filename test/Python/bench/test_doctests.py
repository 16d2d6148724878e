"""Examples in docstrings."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["grid", "report", "rounds", "search",
                                    "plot", "settings", "results",
                                    "sustained", "least_bytes", "exponents",
                                    "theory_page", "theory_plot", "ncu",
                                    "launches", "choice_page", "chart",
                                    "compact", "environment", "kept",
                                    "replays", "searches", "fits",
                                    "speed_page"])
def test_examples(module):
    if module in ("rounds", "sustained"):
        pytest.importorskip("torch")
    found = doctest.testmod(importlib.import_module(f"attn_bench.{module}"))
    assert found.failed == 0


@pytest.mark.parametrize("command", ["choice", "theory"])
def test_examples_of_commands(command):
    pytest.importorskip("torch")
    found = doctest.testmod(importlib.import_module(command))
    assert found.attempted and found.failed == 0
