"""Prints the table of turns for figures that are known: `doc_tables.py TOOLS`."""

import sys

sys.path.insert(0, sys.argv[1])
import doc_figures
import doc_tables


def cell(direction, attn, cudnn, fa4):
    return {"direction": direction, "head_dim": 64, "rows": 1024,
            "mask": "none",
            "tflops": {"attn": attn, "cudnn": cudnn, "fa4": fa4}}


run = {"cells": [
    cell("forward", 100, 100, 200), cell("forward", 400, 100, 800),
    cell("backward", 300, 100, 150)]}
doc_figures.turns = lambda: run
print(doc_tables.turns(None))
print(doc_tables.verdict(run))
run["cells"] = run["cells"][2:]
print(doc_tables.verdict(run))
