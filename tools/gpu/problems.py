"""Random attention problems, and their MLIR text.

A problem is made from one number (its seed) alone, so any failure can be made
again: `problems.py SEED` prints the text and the attn-run options.

Problems at the borders of tiles also depend on the tiles, which the caller
looks up: `problems.py SEED QUERY KEY` prints the one for tiles of that size.
"""

from __future__ import annotations

import math
import random
import sys
from dataclasses import dataclass, field, replace
from typing import Callable

COMMON_DIMS = (16, 32, 40, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256)
# Tile sizes around which rows are tried: one less, equal, one more.
BORDERS = (16, 32, 64, 128, 256)
MAX_ROWS = 5000
LAYOUTS = ("bhnd", "bnhd", "bhnd+", "bnhd+")
# As MLIR spells them, where that differs from what the tools do.
MLIR_TYPES = {"f8e4m3": "f8E4M3FN"}

# For problems at borders: one pair of head dimensions of each class, ...
DIM_CLASSES = ((64, 64), (72, 72), (80, 80), (96, 96), (128, 128), (160, 160),
               (192, 192), (256, 256), (192, 128), (8, 8), (40, 40), (128, 64),
               (104, 200))
PRIMES = (2, 3, 7, 13, 31, 61, 67, 127, 131, 191, 193, 257, 509, 1021)
# ... how many tiles, and inputs; attn-run makes only the first four of them.
TILES = (1, 1, 2, 3, 5, 8)
BORDER_INPUTS = ("normal", "nan-key", "inf", "large", "normal", "special",
                 "rising", "low", "jumps", "huge")
UNBOUNDED = 1 << 30

# For problems of small caches: shared memory of a block in KiB, from far less
# than any GPU has to an H100's; the widest heads; and schedules, None for the
# derived one.
SHARED_MEMORY = (16, 32, 48, 64, 99, 163, 227)
MAX_WIDE = 4096
SMALL_CACHE_SCHEDULES = (None, None, None, "streamed_query", "column_split",
                         "score_spill", "output_spill")


@dataclass
class Place:
    """Where a problem runs: a machine as `--machine` takes it, None for the
    tool's own choice, and a schedule, None for the derived one."""

    machine: str | None
    schedule: str | None


@dataclass
class Problem:
    seed: int
    dtype: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    head_dim_v: int
    mask: str
    with_lse: bool
    scale: float | None
    on_tensors: bool
    dynamic: bool
    layouts: dict = field(default_factory=dict)
    inputs: str = "normal"
    shared_heads: bool = False  # K and V are one head, with a stride of 0
    blocks: bool = False  # lists of blocks say what is visible (patterns.py)

    @property
    def work(self):
        """Multiply-adds of the reference, which knows no masks."""
        pairs = self.batch * self.heads * self.queries * self.keys
        return pairs * (self.head_dim + self.head_dim_v)

    @property
    def alignment(self):
        """Bytes that divide the address of every row, at most 16, where
        strides are known."""
        size = {"f8e4m3": 1, "f32": 4}.get(self.dtype, 2)
        return math.gcd(16, size * self.head_dim, size * self.head_dim_v)

    @property
    def is_8_bits(self):
        return self.dtype == "f8e4m3"

    def strides(self, name, heads, rows, dim):
        """Of one of q, k, v, o, as its layout has it.  Inputs of 8 bits have
        rows at multiples of 16 bytes, which their kernels ask for."""
        padding = 16 if self.is_8_bits and name != "o" else 8
        return strides_of(self.layouts[name], heads, rows, dim, padding)

    def describe(self):
        layout = "tensor" if self.on_tensors else "/".join(
            self.layouts[name] for name in "qkvo")
        return (f"{self.dtype} b{self.batch} h{self.heads}/{self.kv_heads} "
                f"n{self.queries}x{self.keys} d{self.head_dim}/"
                f"{self.head_dim_v} {self.mask}"
                f"{' lse' if self.with_lse else ''}"
                f"{' dynamic' if self.dynamic else ''} {layout}"
                f"{' shared' if self.shared_heads else ''}"
                f"{' blocks' if self.blocks else ''} {self.inputs}")

    def arguments(self):
        """What attn-run must be told beside the file."""
        result = ["--seed", str(self.seed), "--inputs", self.inputs]
        if self.dynamic:
            result += ["--batch", str(self.batch), "--keys", str(self.keys)]
        if self._rows == "?":
            result += ["--queries", str(self.queries)]
        return result

    @property
    def _rows(self):
        """Queries in types: that there is only one is never left open."""
        return "?" if self.dynamic and self.queries != 1 else self.queries

    def _type(self, name):
        heads, rows, dim = {
            "q": (self.heads, self.queries, self.head_dim),
            "k": (self.kv_heads, self.keys, self.head_dim),
            "v": (self.kv_heads, self.keys, self.head_dim_v),
            "o": (self.heads, self.queries, self.head_dim_v),
        }[name]
        batch, shown_rows = self.batch, rows
        if self.dynamic:
            batch = "?"
            shown_rows = self._rows if name in "qo" else "?"
        dtype = "bf16" if self.is_8_bits and name == "o" else self.dtype
        shape = (f"{batch}x{heads}x{shown_rows}x{dim}x"
                 f"{MLIR_TYPES.get(dtype, dtype)}")
        if self.on_tensors:
            return f"tensor<{shape}>"
        layout = self.layouts[name]
        if layout == "bhnd":
            return f"memref<{shape}>"
        strides = self.strides(name, heads, rows, dim)
        if self.dynamic:
            strides[0] = "?"
            if not layout.startswith("bnhd"):
                strides[1] = "?"
        shown = ", ".join(str(stride) for stride in strides)
        return f"memref<{shape}, strided<[{shown}]>>"

    def gradients_text(self):
        """Of attn.backward on memrefs without gaps, of these sizes."""
        q, k, v, o = (
            f"memref<{self.batch}x{heads}x{rows}x{dim}x{self.dtype}>"
            for heads, rows, dim in (
                (self.heads, self.queries, self.head_dim),
                (self.kv_heads, self.keys, self.head_dim),
                (self.kv_heads, self.keys, self.head_dim_v),
                (self.heads, self.queries, self.head_dim_v)))
        lse = f"memref<{self.batch}x{self.heads}x{self.queries}xf32>"
        options = "" if self.mask == "none" else f" mask({self.mask})"
        if self.scale is not None:
            options += f" scale({self.scale!r})"
        dlse = f" dlse(%dlse : {lse})" if self.with_lse else ""
        parameters = f"%dlse: {lse}, " if self.with_lse else ""
        return (f"func.func @gradients(%do: {o}, %q: {q}, %k: {k}, %v: {v}, "
                f"%o: {o}, %lse: {lse}, {parameters}%dq: {q}, %dk: {k}, "
                f"%dv: {v}) {{\n"
                f"  attn.backward %do, %q, %k, %v, %o, %lse{dlse}{options} "
                f"outs(%dq, %dk, %dv : {q}, {k}, {v}) : {o}, {q}, {k}, {v}, "
                f"{o}, {lse}\n  return\n}}\n")

    def text(self):
        q, k, v, o = (self._type(name) for name in "qkvo")
        batch = "?" if self.dynamic else self.batch
        lse_shape = f"{batch}x{self.heads}x{self._rows}xf32"
        options = "" if self.mask == "none" else f" mask({self.mask})"
        if self.scale is not None:
            options += f" scale({self.scale!r})"
        if self.on_tensors:
            outputs = [o] + [f"tensor<{lse_shape}>"] * self.with_lse
            names = "%o, %lse" if self.with_lse else "%o"
            return (f"func.func @attention(%q: {q}, %k: {k}, %v: {v}) -> "
                    f"({', '.join(outputs)}) {{\n"
                    f"  {names} = attn.forward %q, %k, %v{options} : "
                    f"{q}, {k}, {v} -> {', '.join(outputs)}\n"
                    f"  return {names} : {', '.join(outputs)}\n}}\n")
        # What dynamic strides leave open.
        promise = " {alignment = 16 : i64}" if self.is_8_bits else ""
        outs, types = "%o", o
        parameters = f"%q: {q}, %k: {k}, %v: {v}, %o: {o}"
        if self.with_lse:
            outs += ", %lse"
            types += f", memref<{lse_shape}>"
            parameters += f", %lse: memref<{lse_shape}>"
        return (f"func.func @attention({parameters}) {{\n"
                f"  attn.forward %q, %k, %v{options} outs({outs} : {types})"
                f"{promise} : {q}, {k}, {v}\n  return\n}}\n")


def strides_of(layout, heads, rows, dim, padding=8):
    """Of [batch, heads, rows, dim] in one of the LAYOUTS, or behind "/2".

    Strides are more than products of sizes where rows are padded ("+"), and
    where an array is every second entry of a larger batch ("/2").
    """
    padded = dim + (padding if "+" in layout else 0)
    batch = heads * rows * padded * (2 if layout.endswith("/2") else 1)
    if layout.startswith("bnhd"):
        return [batch, padded, heads * padded, 1]
    return [batch, rows * padded, padded, 1]


def _rows(rng, limit):
    if rng.random() < 0.3:
        border = rng.choice(BORDERS) * rng.randint(1, 6)
        return min(limit, max(1, border + rng.choice((-1, 0, 1))))
    return min(limit, round(math.exp(rng.uniform(0, math.log(limit)))))


def _dim(rng):
    return rng.choice(COMMON_DIMS) if rng.random() < 0.45 \
        else rng.randint(8, 256)


def _mask(rng, queries, keys):
    kind = rng.choice(("none", "causal", "causal_bottom_right", "window",
                       "window", "prefix"))
    if kind not in ("window", "prefix"):
        return kind
    # Small, large, and sides that reach nothing at all.
    reach = max(queries, keys)
    left, right = (rng.choice((0, 1, rng.randint(0, 64),
                               rng.randint(0, reach))) for _ in range(2))
    return f"window<{left}, {right}>" if kind == "window" else f"prefix<{left}>"


def _of_type(problem, dtype):
    """In that type, if one is given; head dimensions of 8-bit types are
    multiples of 16."""
    if dtype is None:
        return problem
    problem.dtype = dtype
    if problem.is_8_bits:
        problem.head_dim, problem.head_dim_v = (
            -(-dim // 16) * 16 for dim in (problem.head_dim,
                                           problem.head_dim_v))
    return problem


#: The widest heads of gradients for Hopper.
MAX_NARROW = 128


def widened(problem: Problem, max_work: float) -> Problem:
    """The same with head dimensions four times as wide, in multiples of 8."""
    return _shrunk(replace(problem, **{
        name: -(-getattr(problem, name) // 2) * 8
        for name in ("head_dim", "head_dim_v")}), max_work)


def narrowed(problem: Problem) -> Problem:
    """The same with head dimensions that gradients for Hopper take."""
    return replace(problem, **{
        name: min(MAX_NARROW, -(-getattr(problem, name) // 8) * 8)
        for name in ("head_dim", "head_dim_v")})


def random_problem(seed, max_rows=MAX_ROWS, max_work=4e9, dtype=None):
    """The problem of a seed; at most `max_work` multiply-adds of reference.
    Types are those of 16 bits, or `dtype`."""
    rng = random.Random(seed)
    queries = _rows(rng, max_rows)
    keys = queries if rng.random() < 0.35 else _rows(rng, max_rows)
    head_dim = _dim(rng)
    head_dim_v = head_dim if rng.random() < 0.5 else _dim(rng)
    kv_heads = rng.choice((1, 1, 2, 3, 4))
    group = rng.choice((1, 1, 2, 3, 4, 8))
    batch = rng.choice((1, 1, 2, 3))
    dynamic = rng.random() < 0.4
    layouts = {name: rng.choice(LAYOUTS) for name in "qkvo"}
    problem = Problem(
        seed=seed, dtype=rng.choice(("bf16", "f16")), batch=batch,
        heads=kv_heads * group, kv_heads=kv_heads, queries=queries, keys=keys,
        head_dim=head_dim, head_dim_v=head_dim_v,
        mask=_mask(rng, queries, keys), with_lse=rng.random() < 0.6,
        scale=rng.choice((None, None, 0.125, 0.3, -0.05)),
        on_tensors=rng.random() < 0.3, dynamic=dynamic, layouts=layouts,
        inputs=rng.choice(("normal",) * 7 + ("nan-key", "inf", "large")))
    return _shrunk(_of_type(problem, dtype), max_work)


def grouped_problem(seed, max_rows=MAX_ROWS, max_work=4e9, dtype=None):
    """One of query heads that share their keys and can be rows of one: with a
    single query, or without a mask."""
    problem = random_problem(seed, max_rows, max_work, dtype)
    rng = random.Random(f"grouped {seed}")
    problem.heads = problem.kv_heads * rng.choice((2, 3, 4, 8, 16))
    problem.mask = "none"
    if rng.random() < 0.6:
        problem.queries = 1
        problem.mask = _mask(rng, 1, problem.keys)
    return _shrunk(problem, max_work)


def small_cache_problem(seed, max_rows=MAX_ROWS, max_work=4e9,
                        machine="h100_sxm"):
    """Heads of 48 to 4096 columns on a machine told that it has little shared
    memory, of 16 bits or f32; and where it runs."""
    problem = random_problem(seed, max_rows, max_work)
    rng = random.Random(f"small cache {seed}")
    problem.dtype = rng.choice(("bf16", "bf16", "f16", "f32"))
    problem.dynamic = False

    def wide():
        dim = math.exp(rng.uniform(math.log(48), math.log(MAX_WIDE)))
        unit = rng.choice((1, 8, 16, 64))
        return min(MAX_WIDE, -(-round(dim) // unit) * unit)

    problem.head_dim = wide()
    problem.head_dim_v = (wide() if rng.random() < 0.3 else problem.head_dim)
    where = Place(machine_with(machine, rng.choice(SHARED_MEMORY)),
                  rng.choice(SMALL_CACHE_SCHEDULES))
    return _shrunk(problem, max_work), where


def machine_with(machine, kibibytes):
    """The machine with so much shared memory a block, and one block at once,
    beside which the system keeps 1 KiB."""
    size = kibibytes * 1024
    return (f"{machine}, smem_bytes_per_block = {size}, "
            f"smem_bytes_per_sm = {size + 1024}")


def _shrunk(problem, max_work):
    """With too much work for the reference: fewer heads, then fewer rows."""
    while problem.work > max_work:
        if problem.batch > 1:
            problem.batch -= 1
        elif problem.heads > problem.kv_heads:
            problem.heads -= problem.kv_heads
        elif problem.kv_heads > 1:
            problem.kv_heads -= 1
            problem.heads = problem.kv_heads
        else:
            problem.queries = max(1, problem.queries * 3 // 4)
            problem.keys = max(1, problem.keys * 3 // 4)
    return problem


def _near(rng, tile, count):
    """One row, a prime, or `count` tiles and one less or more; of a tile, of
    a warpgroup's 64 rows or of a warp's 16."""
    if rng.random() < 0.3:
        return rng.choice((1, 1, *PRIMES))
    size = rng.choice((tile, tile, tile, 64, 16))
    return size * count + rng.choice((-1, 0, 1))


def border_problem(seed: int, tiles: Callable[[Problem], tuple[int, int]],
                   inputs: tuple[str, ...] = BORDER_INPUTS,
                   max_work: float = 1e9,
                   dtype: str | None = None) -> Problem:
    """A problem whose sizes lie at the borders of `tiles(problem)`, the rows
    of Q and of K that the compiler puts into one tile."""
    rng = random.Random(f"border {seed}")
    head_dim, head_dim_v = DIM_CLASSES[seed % len(DIM_CLASSES)]
    kv_heads, group = rng.choice(((1, 1), (1, 2), (1, 16), (2, 1), (2, 4),
                                  (3, 8), (8, 1), (16, 1)))
    many, keys_many = rng.choice(TILES), rng.choice(TILES)
    layouts = {name: rng.choice(LAYOUTS) + rng.choice(("", "", "/2"))
               for name in "qkvo"}
    problem = Problem(
        seed=seed, dtype=rng.choice(("bf16", "f16")), batch=rng.randint(1, 3),
        heads=kv_heads * group, kv_heads=kv_heads, queries=128 * many,
        keys=128 * keys_many, head_dim=head_dim, head_dim_v=head_dim_v,
        mask=rng.choice(("none", "causal", "causal_bottom_right", "window",
                         "prefix")),
        with_lse=rng.random() < 0.7,
        scale=rng.choice((None, None, 0.125, 0.3, -0.05)), on_tensors=False,
        dynamic=rng.random() < 0.3, layouts=layouts,
        inputs=rng.choice(inputs), shared_heads=rng.random() < 0.1)
    problem = _of_type(problem, dtype)
    guess = replace(problem, mask={
        "window": "window<64, 64>", "prefix": "prefix<64>"}.get(
            problem.mask, problem.mask))
    query, key = tiles(guess)
    problem.queries = _near(rng, query, many)
    problem.keys = (problem.queries if rng.random() < 0.2
                    else _near(rng, key, keys_many))
    left, right = (rng.choice((0, 0, 1, key - 1, key, query, UNBOUNDED))
                   for _ in range(2))
    problem.mask = {
        "window": f"window<{left}, {right}>", "prefix": f"prefix<{left}>"}.get(
            problem.mask, problem.mask)
    return _shrunk(problem, max_work)


def main() -> None:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    if len(numbers) not in (1, 3) or len(numbers) < len(sys.argv) - 1:
        sys.exit("usage: problems.py SEED [QUERY KEY]")
    shown = random_problem(numbers[0]) if len(numbers) == 1 else (
        border_problem(numbers[0], lambda _: (numbers[1], numbers[2]),
                       BORDER_INPUTS[:4]))
    print("//", shown.describe())
    print("// attn-run FILE", *shown.arguments())
    print(shown.text(), end="")


if __name__ == "__main__":
    main()
