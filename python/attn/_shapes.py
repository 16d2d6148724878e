"""The shapes of one attention, where only they are known: while tracing.

A launch is checked by the library.  A program that is only traced, or compiled
for later, is told of a wrong shape here, at the line that wrote it.
"""

from __future__ import annotations

from typing import Any, Sequence

FORM = ("q [batch, heads, queries, head_dim], k [batch, kv_heads, keys, "
        "head_dim], v [batch, kv_heads, keys, head_dim_v]")


def shown(shapes: Sequence[Sequence[Any]]) -> str:
    """For messages: "q [1, 8, 100, 64], k [...], v [...]"."""
    return ", ".join(f"{name} {list(shape)}"
                     for name, shape in zip("qkv", shapes))


def check_shapes(q: Sequence[Any], k: Sequence[Any],
                 v: Sequence[Any]) -> None:
    """ValueError unless these are the shapes of one attention."""
    shapes = (q, k, v)
    if any(len(shape) != 4 for shape in shapes):
        raise ValueError(f"expects rank 4, {FORM}, but got {shown(shapes)}")
    rules = (
        (q[0] == k[0] and k[0] == v[0], "one batch"),
        (k[1] == v[1], "k and v of as many heads"),
        (q[1] % k[1] == 0 if k[1] > 0 else False,
         "heads of q to be a multiple of those of k"),
        (k[2] == v[2], "k and v of as many keys"),
        (q[3] == k[3], "q and k of one head dimension"))
    for holds, rule in rules:
        if not holds:
            raise ValueError(
                f"expects {rule}, but got {shown(shapes)}; shapes are {FORM}")
