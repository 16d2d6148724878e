"""Lists of blocks that kernels make on the GPU.

`attn.block_lists` classifies the blocks of a mask function without ever
holding queries x keys, and `attn.transpose_blocks` turns lists around.  Both
are MLIR text here, compiled as any other (`_compile`), for any sizes: how many
queries and keys there are is the shape of an array that nobody reads.  C
programs compile the same text with attn_compile.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence

from . import _machines
from ._arrays import Array
from ._block_lists import describe_elements
from ._compile import Executable, compile
from ._dlpack import row_major
from ._errors import UnsupportedError
from ._libraries import library_of
from ._trace import Capture, Captures, shape_of, trace

_OPEN_COUNTS, _OPEN_INDICES = "tensor<?x?x?xi32>", "tensor<?x?x?x?xi32>"

#: Counts, indices, and both of full blocks.
Lists = tuple[Any, Any, Any, Any]


def _listed(counts: str, indices: str) -> str:
    return ", ".join((counts, indices) * 2)


def _function(arguments: str, body: str, results: str) -> str:
    return (f"func.func @lists({arguments}) -> ({results}) {{\n{body}"
            f"  return %a#0, %a#1, %a#2, %a#3 : {results}\n}}\n")


def text_of_lists(sees: str, captures: Sequence[Capture], batch: int,
                  heads: int, block: tuple[int, int]) -> str:
    """The module that makes lists of a region `sees`; its arguments are an
    array of queries x keys, which is not read, and what the region captures."""
    sized = "tensor<?x?xi8>"
    types = [f"tensor<{'?x' * len(shape_of(capture.array))}{capture.type}>"
             for capture in captures]
    for capture, kind in zip(captures, types):
        sees = sees.replace(f": !{capture.name}\n", f": {kind}\n")
    captured = (f"      captures({', '.join('%' + c.name for c in captures)} : "
                f"{', '.join(types)})\n" if captures else "")
    counts = f"tensor<{batch}x{heads}x?xi32>"
    results = _listed(counts, f"tensor<{batch}x{heads}x?x?xi32>")
    body = (
        "  %zero = arith.constant 0 : index\n"
        "  %one = arith.constant 1 : index\n"
        f"  %nq = tensor.dim %sizes, %zero : {sized}\n"
        f"  %nk = tensor.dim %sizes, %one : {sized}\n"
        f"  %a:4 = attn.block_lists queries(%nq) keys(%nk) batch({batch}) "
        f"heads({heads})\n      size {block[0]} x {block[1]}\n{captured}"
        f"      {sees} : {results}\n")
    arguments = ", ".join([f"%sizes: {sized}", *(
        f"%{capture.name}: {kind}" for capture, kind in zip(captures, types))])
    return _function(arguments, body, results)


def text_of_transposed() -> str:
    types = _listed(_OPEN_COUNTS, _OPEN_INDICES)
    names = "%pc, %pi, %fc, %fi"
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(
        names.split(", "), types.split(", ")))
    return _function(arguments, f"  %a:4 = attn.transpose_blocks {names} : "
                                f"{types} -> {types}\n", types)


@functools.lru_cache(maxsize=256)
def _compiled(text: str, machine: Optional[str]) -> Executable:
    return compile(text, machine=machine)


def _launch(text: str, sizes: Optional[Sequence[int]], arrays: Sequence[Any],
            results: Lists) -> None:
    stream = library_of(results[0]).stream_of(results[0])
    described = [describe_elements(array, "a list or what a mask_mod reads",
                                   stream) for array in (*arrays, *results)]
    device = described[-1].device
    for array in described:
        if array.device != device:
            raise ValueError(
                f"expects all arrays on one GPU, but got what mask_mod reads "
                f"on GPU {array.device} and lists on GPU {device}")
    if sizes is not None:
        described.insert(0, Array(described[-1].address, "", tuple(sizes),
                                  row_major(tuple(sizes)), device, None))
    program = _compiled(text, _machines.device(device).machine)
    program.launch_described(described, stream)


def of_mask(mask: Callable[..., Any], sizes: tuple[int, int, int, int],
            block: tuple[int, int], device: Any) -> Optional[Lists]:
    """Lists of a function on a GPU, as tensors; `sizes` are batch, heads,
    queries and keys.  None for a function that cannot be traced."""
    captures = Captures()
    try:
        region = trace(mask, "sees", captures)
    except (UnsupportedError, TypeError):
        return None
    batch, heads, queries, keys = sizes
    blocks = -(-queries // block[0]), -(-keys // block[1])
    results = _empty(batch, heads, *blocks, device)
    if 0 not in blocks:
        _launch(text_of_lists(region.text(captures.all), captures.all, batch,
                              heads, block), (queries, keys),
                [capture.array for capture in captures.all], results)
    return results


def transposed(lists: Sequence[Any]) -> Lists:
    """Lists on a GPU, two or four, by blocks of keys."""
    import torch
    counts, indices = lists[:2]
    full = lists[2:] or (torch.zeros_like(counts), indices)
    batch, heads, rows, columns = indices.shape
    results = _empty(batch, heads, columns, rows, indices.device)
    if 0 not in (batch, heads, rows, columns):
        _launch(text_of_transposed(), None, [counts, indices, *full], results)
    return results


def _empty(batch: int, heads: int, rows: int, columns: int, device: Any
           ) -> Lists:
    """Lists of nothing: who writes none, for there are no blocks, is right."""
    import torch
    made = [torch.zeros(*sizes, dtype=torch.int32, device=device)
            for sizes in ((batch, heads, rows),
                          (batch, heads, rows, columns)) * 2]
    return made[0], made[1], made[2], made[3]
