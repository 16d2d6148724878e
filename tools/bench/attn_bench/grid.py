"""Cells: what is measured.

A cell is one attention in one direction.  In the standard grid the tokens of
a batch and the width of all heads together stay the same, so that every cell
of one sequence length is the same amount of work, whatever the head dimension:
16384 tokens, hidden 2048, d = 128, N = 4096 are 4 batches of 16 heads, and
4 * 4 * 16 * 4096^2 * 128 = 550 GFLOP.  Causal cells are credited with the
pairs that are visible, N (N + 1) / 2; backward with 2.5 times forward (five
products instead of two), whether or not a kernel recomputes the scores.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

HEAD_DIMS = (64, 96, 128, 192, 256, 320, 512, 576, 1024, 2048)
ROWS = (512, 1024, 4096, 16384)
MASKS = ("none", "causal")
DIRECTIONS = ("forward", "backward")
GQA_HEAD_DIMS = (64, 128, 256)
GQA_RATIO = 4
TOKENS = 16384
HIDDEN = 2048
ELEMENT_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f8e4m3": 1}
BACKWARD_FLOPS = 2.5


@dataclass(frozen=True)
class Cell:
    """q [batch, heads, rows, head_dim]; k and v [batch, kv_heads, rows,
    head_dim]; `mask` "none" or "causal"."""

    direction: str
    mask: str
    batch: int
    heads: int
    kv_heads: int
    rows: int
    head_dim: int
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "kv_heads", "rows", "head_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} expects at least 1, but got "
                                 f"{getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads expects a multiple of kv_heads, but got "
                             f"{self.heads} and {self.kv_heads}")
        for name, choices in (("direction", DIRECTIONS), ("mask", MASKS),
                              ("dtype", tuple(ELEMENT_BYTES))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} expects one of {choices}, but got "
                                 f"{getattr(self, name)!r}")
        if self.is_8_bits and self.direction != "forward":
            raise ValueError(f"direction expects forward for {self.dtype}, "
                             f"but got {self.direction!r}")

    @property
    def is_8_bits(self) -> bool:
        return ELEMENT_BYTES[self.dtype] == 1

    @property
    def key(self) -> str:
        """Names the cell in results; the same cell has the same key."""
        return (f"{self.direction} {self.dtype} {self.batch}x{self.heads}"
                f"({self.kv_heads})x{self.rows}x{self.head_dim} {self.mask}")

    @property
    def group(self) -> tuple[str, int, int, str]:
        """Cells that share what has to be compiled."""
        return self.dtype, self.head_dim, self.ratio, self.mask

    @property
    def ratio(self) -> int:
        """Query heads per head of keys and values."""
        return self.heads // self.kv_heads

    @property
    def causal(self) -> bool:
        return self.mask == "causal"

    @property
    def pairs(self) -> int:
        """Visible (query, key) pairs of one head."""
        if self.causal:
            return self.rows * (self.rows + 1) // 2
        return self.rows * self.rows

    @property
    def flops(self) -> float:
        forward = 4 * self.batch * self.heads * self.pairs * self.head_dim
        return forward * (BACKWARD_FLOPS if self.direction == "backward"
                          else 1)

    @property
    def input_bytes(self) -> int:
        """Of q, k, v and, backward, the gradient of the output."""
        heads = self.heads * (2 if self.direction == "backward" else 1)
        return ((heads + 2 * self.kv_heads) * self.batch * self.rows
                * self.head_dim * ELEMENT_BYTES[self.dtype])

    def other(self, direction: str) -> Cell:
        return dataclasses.replace(self, direction=direction)

    def json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def from_json(values: Mapping[str, Any]) -> Cell:
    """A cell from its JSON object; other entries are left alone."""
    names = [field.name for field in dataclasses.fields(Cell)]
    return Cell(**{name: values[name] for name in names if name in values})


def cells(head_dims: Iterable[int] = HEAD_DIMS, rows: Iterable[int] = ROWS,
          masks: Iterable[str] = MASKS,
          directions: Iterable[str] = DIRECTIONS,
          gqa_head_dims: Iterable[int] = GQA_HEAD_DIMS,
          dtype: str = "bf16", tokens: int = TOKENS, hidden: int = HIDDEN,
          ) -> list[Cell]:
    """The cells of a grid; one group's are next to each other.  Grouped heads
    come last, for those of `gqa_head_dims` that leave a multiple of 4."""
    shapes = []
    for head_dim in head_dims:
        heads = max(1, hidden // head_dim)
        shapes.append((head_dim, heads, heads))
    for head_dim in gqa_head_dims:
        heads = max(1, hidden // head_dim)
        if heads % GQA_RATIO == 0:
            shapes.append((head_dim, heads, heads // GQA_RATIO))
    rows, masks, directions = list(rows), list(masks), list(directions)
    return [Cell(direction, mask, max(1, tokens // length), heads, kv_heads,
                 length, head_dim, dtype)
            for head_dim, heads, kv_heads in shapes for mask in masks
            for length in rows for direction in directions]


def groups(chosen: Iterable[Cell]) -> list[list[Cell]]:
    """Cells by group, in the order in which groups first appear."""
    found: dict[Any, list[Cell]] = {}
    for cell in chosen:
        found.setdefault(cell.group, []).append(cell)
    return list(found.values())
