"""Where the benchmark is, and results as a worker gives them."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.abspath(os.path.join(HERE, "..", "..", "..", "tools", "bench"))


def timed(cell, tflops, **more):
    """A result as a worker gives it."""
    seconds = cell.flops / tflops * 1e-12
    return {"seconds": seconds, "quartiles": [seconds * 0.99, seconds * 1.02],
            "rounds": 11, "launches": 20, "timer": "graph", "tflops": tflops,
            "error": {"o": 2e-3}, "tolerance": 4e-3, "agrees": True, **more}
