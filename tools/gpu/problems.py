"""Random attention problems, and their MLIR text.

A problem is made from one number (its seed) alone, so any failure can be made
again: `problems.py SEED` prints the text and the attn-run options.
"""

import math
import random
import sys
from dataclasses import dataclass, field

COMMON_DIMS = (16, 32, 40, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256)
# Tile sizes around which rows are tried: one less, equal, one more.
BORDERS = (16, 32, 64, 128, 256)
MAX_ROWS = 5000


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

    @property
    def work(self):
        """Multiply-adds of the reference, which knows no masks."""
        pairs = self.batch * self.heads * self.queries * self.keys
        return pairs * (self.head_dim + self.head_dim_v)

    def describe(self):
        layout = "tensor" if self.on_tensors else "/".join(
            self.layouts[name] for name in "qkvo")
        return (f"{self.dtype} b{self.batch} h{self.heads}/{self.kv_heads} "
                f"n{self.queries}x{self.keys} d{self.head_dim}/"
                f"{self.head_dim_v} {self.mask}"
                f"{' lse' if self.with_lse else ''}"
                f"{' dynamic' if self.dynamic else ''} {layout} {self.inputs}")

    def arguments(self):
        """What attn-run must be told beside the file."""
        result = ["--seed", str(self.seed), "--inputs", self.inputs]
        if self.dynamic:
            result += ["--batch", str(self.batch), "--queries",
                       str(self.queries), "--keys", str(self.keys)]
        return result

    def _type(self, name):
        heads, rows, dim = {
            "q": (self.heads, self.queries, self.head_dim),
            "k": (self.kv_heads, self.keys, self.head_dim),
            "v": (self.kv_heads, self.keys, self.head_dim_v),
            "o": (self.heads, self.queries, self.head_dim_v),
        }[name]
        batch, shown_rows = self.batch, rows
        if self.dynamic:
            batch = shown_rows = "?"
        shape = f"{batch}x{heads}x{shown_rows}x{dim}x{self.dtype}"
        if self.on_tensors:
            return f"tensor<{shape}>"
        layout = self.layouts[name]
        if layout == "bhnd":
            return f"memref<{shape}>"
        # Rows may be padded, so that strides are more than products of sizes.
        padded = dim + (8 if layout.endswith("+") else 0)
        if layout.startswith("bnhd"):
            strides = [rows * heads * padded, padded, heads * padded, 1]
        else:
            strides = [heads * rows * padded, rows * padded, padded, 1]
        if self.dynamic:
            strides[0] = "?"
            if not layout.startswith("bnhd"):
                strides[1] = "?"
        shown = ", ".join(str(stride) for stride in strides)
        return f"memref<{shape}, strided<[{shown}]>>"

    def text(self):
        q, k, v, o = (self._type(name) for name in "qkvo")
        batch, rows = ("?", "?") if self.dynamic else (self.batch, self.queries)
        lse_shape = f"{batch}x{self.heads}x{rows}xf32"
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
        outs, types = "%o", o
        parameters = f"%q: {q}, %k: {k}, %v: {v}, %o: {o}"
        if self.with_lse:
            outs += ", %lse"
            types += f", memref<{lse_shape}>"
            parameters += f", %lse: memref<{lse_shape}>"
        return (f"func.func @attention({parameters}) {{\n"
                f"  attn.forward %q, %k, %v{options} outs({outs} : {types}) : "
                f"{q}, {k}, {v}\n  return\n}}\n")


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
                       "window"))
    if kind != "window":
        return kind
    # Small, large, and sides that reach nothing at all.
    reach = max(queries, keys)
    left, right = (rng.choice((0, 1, rng.randint(0, 64),
                               rng.randint(0, reach))) for _ in range(2))
    return f"window<{left}, {right}>"


def random_problem(seed, max_rows=MAX_ROWS, max_work=4e9):
    """The problem of a seed; at most `max_work` multiply-adds of reference."""
    rng = random.Random(seed)
    queries = _rows(rng, max_rows)
    keys = queries if rng.random() < 0.35 else _rows(rng, max_rows)
    head_dim = _dim(rng)
    head_dim_v = head_dim if rng.random() < 0.5 else _dim(rng)
    kv_heads = rng.choice((1, 1, 2, 3, 4))
    group = rng.choice((1, 1, 2, 3, 4, 8))
    batch = rng.choice((1, 1, 2, 3))
    dynamic = rng.random() < 0.4
    layouts = {name: rng.choice(("bhnd", "bnhd", "bhnd+", "bnhd+"))
               for name in "qkvo"}
    problem = Problem(
        seed=seed, dtype=rng.choice(("bf16", "f16")), batch=batch,
        heads=kv_heads * group, kv_heads=kv_heads, queries=queries, keys=keys,
        head_dim=head_dim, head_dim_v=head_dim_v,
        mask=_mask(rng, queries, keys), with_lse=rng.random() < 0.6,
        scale=rng.choice((None, None, 0.125, 0.3, -0.05)),
        on_tensors=rng.random() < 0.3, dynamic=dynamic, layouts=layouts,
        inputs=rng.choice(("normal",) * 7 + ("nan-key", "inf", "large")))
    # Too much for the reference: fewer heads, then fewer rows.
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


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: problems.py SEED")
    shown = random_problem(int(sys.argv[1]))
    print("//", shown.describe())
    print("// attn-run FILE", *shown.arguments())
    print(shown.text(), end="")
