"""Every schedule as text, with problems that it takes on an H100.

What a text leaves out the compiler derives; `score_spill` and the schedules of
gradients for small caches are seldom the derived choice, so their tiles are
given.  test_torch_tools.py asks the planner for each line.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

F16, BF16, F32 = "f16", "bf16", "f32"
SPILL = ("score_spill, query = 128, key_block = 256, column = 64, "
         "strip = 1024, heads = 1")


class Line(NamedTuple):
    """A schedule, or "" for what the compiler derives."""

    text: str
    dtypes: tuple[str, ...]
    head_dim: int
    head_dim_v: int

    @property
    def name(self) -> str:
        return self.text.partition(",")[0] or "derived"


FORWARD = (
    Line("", (BF16, F16, F32), 64, 64),
    Line("", (BF16, F16, F32), 128, 128),
    Line("", (BF16, F16, F32), 256, 256),
    Line("flash", (BF16, F16, F32), 128, 128),
    Line("flash, query = 64, key = 64, overlap = 0", (BF16, F16), 64, 64),
    Line("streamed_query", (BF16, F16), 320, 320),
    Line("column_split, query = 128, key = 128, group = 2, cluster = 1",
         (BF16, F16), 512, 512),
    Line("output_spill, query = 128, key = 512, column = 128, part = 256, "
         "slots = 12", (BF16, F16), 512, 512),
    Line("output_spill, query = 128, key = 512, column = 128, part = 128, "
         "slots = 4", (BF16, F16), 320, 320),
    Line(SPILL + ", merged = 0", (BF16, F16), 512, 512),
    Line(SPILL + ", merged = 1", (BF16, F16), 512, 512),
    Line("score_spill", (F32,), 512, 512),
)

BACKWARD = (
    Line("", (BF16, F16), 128, 128),
    Line("flash_backward", (BF16, F16), 128, 128),
    Line("flash_backward, overlap = 2", (BF16, F16), 64, 64),
    Line("split_backward", (BF16, F16), 128, 128),
    Line("spill_backward", (BF16, F16), 512, 512),
)


def problems(queries: int, keys: int, heads: int = 2
             ) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The problems of all lines, as attn.Problem takes them."""
    for direction, lines in (("forward", FORWARD), ("backward", BACKWARD)):
        for line in lines:
            for dtype in line.dtypes:
                yield line, dict(
                    batch=1, heads=heads, queries=queries, keys=keys,
                    head_dim=line.head_dim, head_dim_v=line.head_dim_v,
                    dtype=dtype, lse=direction == "forward",
                    direction=direction)
