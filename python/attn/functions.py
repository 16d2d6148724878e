"""Functions for mask_mod and score_mod, of whatever library the arrays are.

    from attn.functions import tanh, where

    def score_mod(score, b, h, q, k):
        return where(q - k < 512, 30 * tanh(score / 30), score - 1)

On the symbols of a traced function they become ops of the kernel; on arrays of
PyTorch and NumPy they are the functions of that name, so that a mod can be
called on arrays to see what it says.  Functions of torch, numpy and jax.numpy
work on symbols likewise.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._block_lists import is_torch
from ._symbol_functions import call_named, names
from ._symbols import graph_of

__all__ = names()

_OF_TORCH = {"absolute": "abs", "left_shift": "bitwise_left_shift",
             "right_shift": "bitwise_right_shift", "power": "pow",
             "equal": "eq"}
_OF_NUMPY = {"clamp": "clip", "greater": "greater"}


def _make(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        graph = graph_of([*args, *kwargs.values()])
        if graph is not None:
            return call_named(graph, "attn.functions", name, args, kwargs)
        if any(map(is_torch, args)):
            library, others = importlib.import_module("torch"), _OF_TORCH
        else:
            library, others = importlib.import_module("numpy"), _OF_NUMPY
        return getattr(library, others.get(name, name))(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, of numbers, arrays or symbols."
    return function


for _name in __all__:
    globals()[_name] = _make(_name)
