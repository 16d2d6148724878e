"""Which blocks of keys each block of queries sees, as lists on the GPU.

The form is FlexAttention's and FlashAttention-4's, whose tensors are read
without a copy.  Example: 512 queries and 512 keys in blocks of 128, where each
query sees the keys up to itself:

    kv_num_blocks       [1, 1, 4]     1 1 1 1
    kv_indices          [1, 1, 4, 4]  0... 1... 2... 3...   cut by the mask
    full_kv_num_blocks  [1, 1, 4]     0 1 2 3
    full_kv_indices     [1, 1, 4, 4]  .... 0... 01.. 012.   seen whole
"""

from __future__ import annotations

import importlib
import operator
import sys
from typing import Any, Callable, Optional, Sequence, Union

from . import _block_lists as _lists
from . import _documents
from ._arrays import Array, type_name
from ._bindings import LISTS, TRANSPOSED
from ._trace import is_compiling

#: What block sizes are multiples of.
STEP = 64

#: Cells of a mask that are looked at together.
_MOST_CELLS = 1 << 24

_NAMES = (("kv_num_blocks", "kv_indices"),
          ("full_kv_num_blocks", "full_kv_indices"))

_Size = Union[int, Sequence[int]]


def _sizes_of_block(block_size: Any) -> tuple[int, int]:
    """(queries, keys) of a block; TypeError, ValueError."""
    pair = block_size
    if not isinstance(pair, (tuple, list)):
        pair = (pair, pair)
    try:
        queries, keys = map(operator.index, pair)
    except (TypeError, ValueError):
        raise TypeError(
            f"block_size: expects a number or (queries, keys), but got "
            f"{block_size!r}") from None
    if min(queries, keys) < STEP or queries % STEP or keys % STEP:
        raise ValueError(
            f"block_size: expects multiples of {STEP} queries and keys, but "
            f"got {queries} x {keys}")
    return queries, keys


def _count(value: Any, name: str, least: int = 0) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expects an integer, but got "
                        f"{type_name(value)}") from None
    if number < least:
        raise ValueError(f"{name}: expects {least} or more, but got {number}")
    return number


def _blocks(rows: int, size: int) -> int:
    return -(-rows // size)


def _is_of_gpu(device: Any) -> bool:
    """Whether that is a GPU of PyTorch's, by its name or as an object."""
    return str(getattr(device, "type", device)).partition(":")[0] == "cuda"


def _device_lists() -> Any:
    """What compiles, which most lists need not."""
    return importlib.import_module("attn._device_lists")


def _swapped(function: Optional[Callable[..., Any]]
             ) -> Optional[Callable[..., Any]]:
    """The function with queries and keys turned around."""
    if function is None:
        return None

    def transposed(b: Any, h: Any, i: Any, j: Any) -> Any:
        return function(b, h, j, i)

    return transposed


class BlockMask:
    """Lists of blocks: what a block of queries sees of the keys.

    A block is `block_size` queries by keys, both multiples of 64.  Counts are
    [batch or 1, heads or 1, query blocks] and indices [batch or 1, heads or 1,
    query blocks, key blocks], all of int32 and on one device; `heads` are those
    of the queries.  Of a row's indices the first `count` are the blocks that it
    sees, in any order, each once; what is behind them says nothing.  The first
    pair are *partial* blocks, in which `mask_mod`, or the `mask` of the call,
    says which keys a query sees; the second pair, which may be left out, are
    *full* ones, of which it sees all: a block that a mask cuts is none.

    Lists on the host are checked; of those on a GPU only types and shapes are,
    unless `check` says to read them, and wait for that.
    """

    __slots__ = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks",
                 "full_kv_indices", "block_size", "mask_mod", "_transposed")

    def __init__(self, kv_num_blocks: Any, kv_indices: Any,
                 full_kv_num_blocks: Any = None, full_kv_indices: Any = None,
                 block_size: _Size = 128, *,
                 mask_mod: Optional[Callable[..., Any]] = None,
                 check: bool = False) -> None:
        self.block_size = _sizes_of_block(block_size)
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ValueError(
                "expects full_kv_num_blocks and full_kv_indices together, or "
                "neither, but got one of them")
        if mask_mod is not None and not callable(mask_mod):
            raise TypeError(f"mask_mod: expects a function, but got "
                            f"{type_name(mask_mod)}")
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.mask_mod = mask_mod
        self._transposed: Optional[BlockMask] = None
        self._check_form()
        if check or (self._facts("kv_num_blocks").is_on_host
                     and not is_compiling()):
            self._check_contents()

    # What it is made from.

    @classmethod
    def from_torch(cls, block_mask: Any, *, check: bool = False) -> BlockMask:
        """The lists of FlexAttention's BlockMask, without a copy, and the
        function that cuts its partial blocks."""
        fields = [getattr(block_mask, name, block_mask)
                  for name in ("kv_num_blocks", "kv_indices",
                               "full_kv_num_blocks", "full_kv_indices",
                               "BLOCK_SIZE")]
        if any(field is block_mask for field in fields):
            raise TypeError(
                f"expects a BlockMask of torch.nn.attention.flex_attention, "
                f"but got {type_name(block_mask)}")
        function = getattr(block_mask, "mask_mod", None)
        flex = sys.modules.get("torch.nn.attention.flex_attention")
        if function is getattr(flex, "noop_mask", None):
            function = None
        made = cls(*fields, mask_mod=function, check=check)
        made._take_transposed(block_mask)
        return made

    @classmethod
    def from_bsr(cls, indptr: Any, indices: Any, *, key_blocks: int,
                 block_size: _Size = 128, full: bool = True) -> BlockMask:
        """The pattern of a matrix of blocks as SciPy and FlashInfer write it,
        one for all heads: row i sees indices[indptr[i] : indptr[i + 1]] of
        `key_blocks` blocks, which are full or, if not `full`, partial."""
        columns = _count(key_blocks, "key_blocks")
        for array, name in ((indptr, "indptr"), (indices, "indices")):
            facts = _lists.facts_of(array, name)
            if len(facts.sizes) != 1 or facts.dtype not in ("int32", "int64"):
                raise ValueError(
                    f"{name}: expects rank 1 of int32 or int64, but got "
                    f"{facts.dtype} of shape {list(facts.sizes)}")
        library = _lists.library_for(indices)
        begins, places = library.array(indptr), library.array(indices)
        _check_rows(library, begins, places.shape[0])
        counts = begins[1:] - begins[:-1]
        place = library.first(counts > columns)
        if place is not None:
            raise ValueError(
                f"indptr: expects at most {columns} blocks a row, as key_blocks "
                f"says, but got {int(counts[place])} in row {place[0]}")
        # Behind the last block of all any index will do.
        offsets = begins[:-1, None] + library.arange(columns)
        last = max(places.shape[0] - 1, 0)
        table = (places[offsets.clip(0, last)] if places.shape[0]
                 else offsets * 0)
        pair = (library.integers(counts)[None, None],
                library.contiguous(library.integers(table)[None, None]))
        none = (library.integers(counts * 0)[None, None],
                library.contiguous(library.integers(table * 0)[None, None]))
        first, second = (none, pair) if full else (pair, none)
        return cls(first[0], first[1], second[0], second[1], block_size,
                   check=True)

    @classmethod
    def from_mask(cls, mask: Any, *, queries: Optional[int] = None,
                  keys: Optional[int] = None, batch: int = 1, heads: int = 1,
                  block_size: _Size = 128, full: bool = True,
                  device: Any = None) -> BlockMask:
        """Lists of what a mask shows.

        `mask` is a function of (b, h, i, j), numbers of the batch entry, the
        query head, the query and the key, as FlexAttention has it.  On a
        `device` that is a GPU it is traced, as the `mask_mod` of
        `attn.forward`, and a kernel makes the lists.  Elsewhere, and where it
        cannot be traced, i and j are arrays, of PyTorch on `device` if that is
        given, else of NumPy, and it is asked for every cell of `batch` x
        `heads` x `queries` x `keys`, some rows at a time.  Blocks that it shows whole are full, and it is kept as
        `mask_mod`.  Or it is a map of blocks [query blocks, key blocks], or
        with batch and heads before: of bool, which of them are seen, full or,
        if not `full`, partial; or of integers, as `to_dense` writes them: 0
        hidden, 1 partial, 2 full.  `queries` and `keys` of a map may be left
        out; if they are given, the map has to have a block for each part.
        """
        size = _sizes_of_block(block_size)
        if callable(mask):
            for value, name in ((queries, "queries"), (keys, "keys")):
                if value is None:
                    raise TypeError(f"{name}: expects their number with a "
                                    f"function, but got None")
            sizes = (_count(batch, "batch", 1), _count(heads, "heads", 1),
                     _count(queries, "queries"), _count(keys, "keys"))
            if _is_of_gpu(device):
                made = _device_lists().of_mask(mask, sizes, size, device)
                if made is not None:
                    return cls(made[0], made[1], made[2], made[3], size,
                               mask_mod=mask)
            library = _lists.library_on(device)
            states = _states_of(library, mask, sizes, size)
            return cls._of_states(library, states, size, mask)
        library = _lists.library_for(mask)
        states = library.array(mask)
        if len(states.shape) not in (2, 4):
            raise ValueError(
                f"mask: expects a function, or a map [query blocks, key "
                f"blocks] or [batch, heads, query blocks, key blocks], but got "
                f"shape {list(states.shape)}")
        _check_map(tuple(states.shape[-2:]), queries, keys, size)
        if library.is_bool(states):
            states = library.integers(states) * (2 if full else 1)
        place = library.first((states < 0) | (states > 2))
        if place is not None:
            raise ValueError(
                f"mask{list(place)}: expects 0, 1 or 2, for a block that is "
                f"hidden, partial or full, but got {states[place]}")
        if len(states.shape) == 2:
            states = states[None, None]
        return cls._of_states(library, states, size, None)

    @classmethod
    def from_documents(cls, ids: Any, *, causal: bool = True,
                       block_size: _Size = 128) -> BlockMask:
        """Tokens that see their own document, and of it, if `causal`, what is
        not behind them.

        A document is a run of equal `ids`, [rows] or [batch, rows] of integers:
        those of offsets are `torch.searchsorted(cu[1:], torch.arange(rows),
        right=True)`.  Lists are made where the ids are, without waiting for
        them.  What a query sees is an interval, so that `mask_mod` compares a
        key with numbers of the query alone: that costs less than
        ``ids[q] == ids[k]``, which reads an id for each key.
        """
        size = _sizes_of_block(block_size)
        made = _documents.documents(ids, size, bool(causal))
        return cls._of_states(made.library, made.states, size, made.mask_mod)

    @classmethod
    def _of_states(cls, library: Any, states: Any, size: tuple[int, int],
                   mask_mod: Optional[Callable[..., Any]]) -> BlockMask:
        counts, indices = library.lists(states == 1)
        full_counts, full_indices = library.lists(states == 2)
        return cls(counts, indices, full_counts, full_indices, size,
                   mask_mod=mask_mod)

    def _take_transposed(self, block_mask: Any) -> None:
        """FlexAttention keeps transposed lists, unless it was told not to."""
        counts, indices, full, full_indices = (
            getattr(block_mask, name, None)
            for name in ("q_num_blocks", "q_indices",
                         "full_q_num_blocks", "full_q_indices"))
        is_whole = counts is not None and indices is not None and (
            full_indices is None) == (self.full_kv_indices is None)
        if is_whole:
            self._transposed = BlockMask(counts, indices, full, full_indices,
                                         self.block_size[::-1])

    # What is made from it.

    def to_dense(self) -> Any:
        """[batch, heads, query blocks, key blocks] of int8: 0 hidden, 1
        partial, 2 full.  Of PyTorch where the lists are, else of NumPy."""
        library = _lists.library_for(self.kv_indices)
        partial = self._times(library, 0)
        states = library.zeros(*partial.shape)
        states[partial > 0] = 1
        if self.full_kv_indices is not None:
            states[self._times(library, 1) > 0] = 2
        return states

    def transpose(self) -> BlockMask:
        """Which blocks of queries see each block of keys, as the gradients of
        K and V walk.  It is made once and kept: who writes other lists into the
        same arrays makes a new BlockMask for gradients."""
        if self._transposed is None:
            self._transposed = self._make_transposed()
        self._transposed.mask_mod = _swapped(self.mask_mod)
        return self._transposed

    def arrays(self) -> list[Any]:
        """Two lists or four."""
        lists = [self.kv_num_blocks, self.kv_indices]
        if self.full_kv_num_blocks is not None:
            lists += [self.full_kv_num_blocks, self.full_kv_indices]
        return lists

    def keep_transposed(self, lists: BlockMask) -> None:
        """Those that somebody has made already."""
        self._transposed = lists

    def kept_transposed(self) -> Optional[BlockMask]:
        """Those that were made, or came with FlexAttention's."""
        return self._transposed

    def _make_transposed(self) -> BlockMask:
        if _is_of_gpu(getattr(self.kv_indices, "device", None)) and (
                _lists.is_torch(self.kv_indices)):
            made = _device_lists().transposed(self.arrays())
            full = (None, None) if self.full_kv_indices is None else made[2:]
            return BlockMask(made[0], made[1], full[0], full[1],
                             self.block_size[::-1])
        library = _lists.library_for(self.kv_indices)
        states = self.to_dense().swapaxes(-1, -2)
        return self._of_states(library, states, self.block_size[::-1], None)

    # What it is of.

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch or 1, heads or 1, query blocks, key blocks)."""
        batch, heads, rows, columns = self._facts("kv_indices").sizes
        return batch, heads, rows, columns

    def density(self) -> float:
        """The part of all blocks that is seen, full or not."""
        library = _lists.library_for(self.kv_indices)
        seen = int(library.array(self.kv_num_blocks).sum())
        if self.full_kv_num_blocks is not None:
            seen += int(library.array(self.full_kv_num_blocks).sum())
        batch, heads, rows, columns = self.shape
        return seen / max(batch * heads * rows * columns, 1)

    def check_sizes(self, batch: int, heads: int, queries: int,
                    keys: int) -> None:
        """ValueError unless it is for an attention of these sizes."""
        asked = (batch, heads, _blocks(queries, self.block_size[0]),
                 _blocks(keys, self.block_size[1]))
        shape = self.shape
        fits = (shape[0] in (1, batch) and shape[1] in (1, heads) and
                shape[2:] == asked[2:])
        if not fits:
            words = ", ".join([f"{batch} or 1", f"{heads} or 1",
                               *map(str, asked[2:])])
            raise ValueError(
                f"block_mask: expects shape [{words}] in blocks of "
                f"{self.block_size[0]} x {self.block_size[1]} for batch "
                f"{batch}, {heads} heads, {queries} queries and {keys} keys, "
                f"but got {list(shape)}")

    def __repr__(self) -> str:
        queries, keys = self.block_size
        full = "" if self.full_kv_indices is None else ", full"
        return (f"BlockMask({list(self.shape)} blocks of {queries} x {keys}, "
                f"partial{full})")

    # Checks.

    def _facts(self, name: str) -> _lists.Facts:
        return _lists.facts_of(getattr(self, name), name)

    def _pairs(self) -> list[tuple[str, str]]:
        return list(_NAMES if self.full_kv_indices is not None
                    else _NAMES[:1])

    def _check_form(self) -> None:
        facts = {name: self._facts(name)
                 for pair in self._pairs() for name in pair}
        for name, each in facts.items():
            if each.dtype != "int32":
                raise TypeError(f"{name}: expects elements of int32, but got "
                                f"{each.dtype}")
        indices = facts["kv_indices"].sizes
        if len(indices) != 4:
            raise ValueError(
                f"kv_indices: expects rank 4, [batch or 1, heads or 1, query "
                f"blocks, key blocks], but got shape {list(indices)}")
        places = {str(getattr(getattr(self, name), "device", "")): name
                  for name in facts}
        for name, each in facts.items():
            wanted = indices if name.endswith("indices") else indices[:3]
            if each.sizes != wanted:
                raise ValueError(
                    f"{name}: expects shape {list(wanted)}, as kv_indices of "
                    f"shape {list(indices)} has it, but got "
                    f"{list(each.sizes)}")
        if len(places) > 1:
            words = ", ".join(f"{name} on {place}"
                              for place, name in places.items())
            raise ValueError(f"expects all lists on one device, but got "
                             f"{words}")

    def _check_contents(self) -> None:
        library = _lists.library_for(self.kv_indices)
        times = [_lists.check_contents(library, *self._arrays(library, pair),
                                       _NAMES[pair])
                 for pair in range(len(self._pairs()))]
        both = library.first(times[0] + times[-1] > 1) if len(
            times) > 1 else None
        if both is not None:
            raise ValueError(
                f"expects every block in one list, but got block {both[-1]} of "
                f"row {list(both[:-1])} in kv_indices and in full_kv_indices")

    def _arrays(self, library: Any, pair: int) -> tuple[Any, Any]:
        counts, indices = _NAMES[pair]
        return (library.array(getattr(self, counts)),
                library.array(getattr(self, indices)))

    def _times(self, library: Any, pair: int) -> Any:
        counts, indices = self._arrays(library, pair)
        is_block = _lists.listed(library, counts, indices)
        return library.times(is_block, indices)


def describe_lists(mask: BlockMask, stream: int, device: int,
                   names: Sequence[str] = LISTS) -> list[tuple[str, Array]]:
    """The lists, by their names in the library, for a launch on that GPU;
    ValueError, TypeError."""
    described = []
    for pair, places in zip(_NAMES, (names[:2], names[2:])):
        for name, place in zip(pair, places):
            if getattr(mask, name) is None:
                continue
            array = _lists.describe(getattr(mask, name), name, stream)
            if array.device != device:
                raise ValueError(
                    f"expects all arrays on one GPU, but got {name} on GPU "
                    f"{array.device} and q on GPU {device}")
            described.append((place, array))
    return described


def describe_both(mask: BlockMask, stream: int, device: int
                  ) -> list[tuple[str, Array]]:
    """The same with transposed lists behind them, as gradients take them."""
    lists = describe_lists(mask, stream, device)
    wanted = {f"transposed_{name}" for name, _ in lists}
    # What is made has both kinds.
    return [*lists, *(each for each in describe_lists(
        mask.transpose(), stream, device, TRANSPOSED) if each[0] in wanted)]


def _check_rows(library: Any, begins: Any, count: int) -> None:
    """ValueError unless these are the beginnings of rows of that many."""
    if begins.shape[0] < 1:
        raise ValueError("indptr: expects a number for every row and one "
                         "behind the last, but got none")
    if int(begins[0]) != 0 or int(begins[-1]) != count:
        raise ValueError(
            f"indptr: expects 0 first and {count} last, the number of "
            f"indices, but got {int(begins[0])} and {int(begins[-1])}")
    place = library.first(begins[1:] < begins[:-1])
    if place is not None:
        raise ValueError(
            f"indptr[{place[0] + 1}]: expects {int(begins[place[0]])} or more, "
            f"as before it, but got {int(begins[place[0] + 1])}")


def _check_map(shape: tuple[int, ...], queries: Optional[int],
               keys: Optional[int], size: tuple[int, int]) -> None:
    """ValueError unless a map has the blocks of these rows, if they are told."""
    for blocks, rows, step, name in zip(shape, (queries, keys), size,
                                        ("queries", "keys")):
        if rows is None:
            continue
        wanted = _blocks(_count(rows, name), step)
        if blocks != wanted:
            raise ValueError(
                f"mask: expects a map with {wanted} blocks of {step} for "
                f"{rows} {name}, but got {blocks}")


def _asked(mask: Callable[..., Any], b: int, h: int, i: Any, j: Any) -> Any:
    """What a function says of arrays of rows, which have no one truth."""
    try:
        return mask(b, h, i, j)
    except (RuntimeError, ValueError) as error:
        if "ambiguous" not in str(error):
            raise
        raise TypeError(
            "mask: expects a function of arrays of i and j, but got one that "
            "takes the truth of an array (`if`, `and`, `or`, `not`, or a chain "
            "of comparisons); use &, |, ~ and where(condition, a, b)"
        ) from error


def _states_of(library: Any, mask: Callable[..., Any],
               sizes: tuple[int, int, int, int],
               block: tuple[int, int]) -> Any:
    """The map of blocks that a function shows; sizes are batch, heads,
    queries and keys."""
    batch, heads, queries, keys = sizes
    rows, columns = _blocks(queries, block[0]), _blocks(keys, block[1])
    states = library.zeros(batch, heads, rows, columns)
    if not rows or not columns:
        return states
    i, j = library.arange(queries)[:, None], library.arange(keys)[None, :]
    step = max(_MOST_CELLS // max(block[0] * keys, 1), 1)
    for b in range(batch):
        for h in range(heads):
            for first in range(0, rows, step):
                some = i[first * block[0]:(first + step) * block[0]]
                cells = _cells(library, _asked(mask, b, h, some, j), some, j)
                states[b, h, first:first + step] = _states(
                    library, cells, block)
    return states


def _cells(library: Any, seen: Any, i: Any, j: Any) -> Any:
    """What a function said of these cells, one number each."""
    cells = library.array(seen)
    if not library.is_bool(cells):
        raise TypeError(f"mask: expects a function that gives bool, but got "
                        f"{cells.dtype}")
    wanted = (i.shape[0], j.shape[1])
    try:
        cells = cells | ((i < 0) & (j < 0))  # of all cells, where it broadcasts
    except (RuntimeError, ValueError):
        pass
    if tuple(cells.shape) != wanted:
        raise ValueError(
            f"mask: expects a function that gives shape {list(wanted)}, or "
            f"what broadcasts to it, but got {list(cells.shape)}")
    return cells


def _states(library: Any, cells: Any, block: tuple[int, int]) -> Any:
    """0, 1 or 2 for the blocks of some rows of cells."""
    rows, columns = (_blocks(size, step)
                     for size, step in zip(cells.shape, block))

    def tiles(fill: bool) -> Any:
        whole = library.padded(cells, rows * block[0], columns * block[1],
                               fill)
        return whole.reshape(rows, block[0], columns, block[1])

    some = tiles(False).any(1).any(-1)
    every = tiles(True).all(1).all(-1)
    return library.integers(some) + library.integers(every)
