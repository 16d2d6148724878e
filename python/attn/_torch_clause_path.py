"""The second and later calls on PyTorch tensors with clauses or lists.

As in `_torch_path`: everything that a launch depends on but addresses is the
key of a table.  Here it is the text of clauses, the size of a block, and the
form of every tensor that they name; their addresses are behind those of q, k,
v and the results, in the order of `_launch.launch`.
"""

from __future__ import annotations

from typing import Any, Callable, Hashable, Optional

from . import _launch
from ._block_mask import BlockMask
from ._clauses import Clauses
from ._torch_arrays import TorchLibrary
from ._torch_path import (LEAST_ADDRESS, ROW_BITS, Bound, bound_of, make_empty,
                          make_launch, was_freed)

#: Mask, scale, words of lse, machine, schedule, precision.
Options = tuple[Any, ...]


def make_clause_path(library: TorchLibrary) -> Callable[..., Any]:
    """(results of _launch.launch) for tensors, without places for results and
    `stream`, of which nobody wants gradients."""
    table: dict[Hashable, Bound] = {}
    find = table.get
    empty, launch = make_empty(library), make_launch(library)
    float32 = library.torch.float32

    def first(q: Any, k: Any, v: Any, options: Options,
              lists: Optional[BlockMask], clauses: Optional[Clauses],
              key: Hashable) -> Any:
        mask, scale, words, machine, schedule, precision = options
        results, call = _launch.launch(
            q, k, v, mask=mask, scale=scale, lse_words=words, machine=machine,
            schedule=schedule, precision=precision, block_mask=lists,
            clauses=clauses)
        if key is not None:
            _launch.remember(table, key, bound_of(call, results[0]))
        return results

    def path(q: Any, k: Any, v: Any, options: Options,
             lists: Optional[BlockMask], clauses: Optional[Clauses]) -> Any:
        behind = [] if lists is None else lists.arrays()
        text: Optional[str] = None
        size: Optional[tuple[int, int]] = None
        try:
            if lists is not None:
                size = lists.block_size
            if clauses is not None:
                text, captures = clauses
                for capture in captures:
                    behind.append(capture[1])
            at_q, at_k, at_v = q.data_ptr(), k.data_ptr(), v.data_ptr()
            key = (options, text, size,
                   q.shape, q.stride(), q.dtype, q.get_device(),
                   k.shape, k.stride(), k.dtype, k.get_device(),
                   v.shape, v.stride(), v.dtype, v.get_device(),
                   (at_q | at_k | at_v) & ROW_BITS,
                   *[(t.shape, t.stride(), t.dtype, t.get_device())
                     for t in behind])
            bound = find(key)
            at_behind = [t.data_ptr() for t in behind]
        except (AttributeError, TypeError, RuntimeError):
            return first(q, k, v, options, lists, clauses, None)
        if bound is None or (
                (at_q < LEAST_ADDRESS or at_k < LEAST_ADDRESS
                 or at_v < LEAST_ADDRESS
                 or at_behind and min(at_behind) < LEAST_ADDRESS)
                and was_freed(q, k, v, *behind)) or (
                q.is_neg() or k.is_neg() or v.is_neg()
                or True in [t.is_neg() for t in behind]):
            return first(q, k, v, options, lists, clauses, key)
        (handle, count, pack, sizes, strides, dtype, device, ordinal,
         lse_sizes, lse_strides, words, scratch_bytes, _) = bound
        o = empty(sizes, strides, dtype, device, ordinal)
        if o.data_ptr() & ROW_BITS:  # an allocator of another taste
            return first(q, k, v, options, lists, clauses, None)
        results = [o]
        for _ in range(words):
            results.append(empty(lse_sizes, lse_strides, float32, device,
                                 ordinal))
        launch(handle, pack(at_q, at_k, at_v,
                            *[t.data_ptr() for t in results], *at_behind),
               count, scratch_bytes, device, ordinal)
        return tuple(results)

    return path
