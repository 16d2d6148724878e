"""Compiles attention for a Hopper machine and compares what ptxas made of each
kernel with what was written: see tools/dev/sass.py.

`hygiene.py ATTN_OPT PTXAS [PART]`: those whose line below has PART in it.
Prints one line per kernel; the exit status is 1 when one is not as written.
Several go through one run of attn-opt and of ptxas: both start slowly.
"""

import concurrent.futures
import os
import re
import sys

from isa import ptx_of, run

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/dev"))
import sass  # noqa: E402

MACHINE = "h100_sxm"
# d, d_v, dtype, mask, batch, heads, kv_heads, queries, keys, tiles ("" for
# those that the compiler derives).
LONG = (1, 16, 16, 16384, 16384)
SHORT = (8, 16, 16, 1024, 1024)
GROUPS = (2, 16, 4, 4096, 4096)
UNEVEN = (2, 8, 1, 1000, 3001)
CAUSAL, BOTTOM, WINDOW = "causal", "causal_bottom_right", "window<256, 0>"
PREFIX = "prefix<500>"
PROBLEMS = [
    (64, 64, "bf16", "none", *LONG, ""),
    (64, 64, "f16", CAUSAL, *SHORT, ""),
    (64, 64, "bf16", WINDOW, *LONG, ""),
    (64, 64, "bf16", BOTTOM, *UNEVEN, ""),
    (72, 72, "bf16", "none", *SHORT, ""),
    (72, 72, "f16", CAUSAL, *LONG, ""),
    (80, 80, "bf16", CAUSAL, *GROUPS, ""),
    (96, 96, "bf16", CAUSAL, *SHORT, ""),
    (96, 96, "f16", BOTTOM, *UNEVEN, ""),
    (128, 128, "bf16", "none", *LONG, ""),
    (128, 128, "bf16", CAUSAL, *SHORT, ""),
    (128, 128, "bf16", WINDOW, *LONG, ""),
    (64, 64, "bf16", PREFIX, *SHORT, ""),
    (128, 128, "f16", PREFIX, *LONG, ""),
    (256, 256, "bf16", PREFIX, *UNEVEN, ""),
    (160, 160, "bf16", "none", *GROUPS, ""),
    (160, 160, "bf16", CAUSAL, *SHORT, ""),
    (192, 192, "bf16", "none", *LONG, ""),
    (192, 192, "f16", CAUSAL, *GROUPS, ""),
    (256, 256, "bf16", "none", *LONG, ""),
    (256, 256, "bf16", CAUSAL, *UNEVEN, ""),
    (256, 256, "f16", WINDOW, *LONG, ""),
    (320, 320, "bf16", "none", *LONG, ""),
    (272, 328, "f16", CAUSAL, *UNEVEN, ""),
    (320, 320, "bf16", WINDOW, *LONG, ""),
    (192, 128, "bf16", "none", *SHORT, ""),
    (192, 128, "bf16", CAUSAL, *LONG, ""),
    (64, 64, "f8E4M3FN", "none", *LONG, ""),
    (128, 128, "f8E4M3FN", "none", *LONG, ""),
    (128, 128, "f8E4M3FN", CAUSAL, *SHORT, ""),
    (256, 256, "f8E4M3FN", "none", *LONG, ""),
    (64, 64, "f32", WINDOW, *LONG, ""),
    (128, 128, "f32", CAUSAL, *SHORT, ""),
    (128, 128, "f32", "none", *LONG, "query = 128, key = 64"),
    (96, 80, "f32", BOTTOM, *UNEVEN, "query = 128, key = 64"),
    (192, 192, "f32", CAUSAL, *LONG, "query = 64, key = 48"),
    # Given: every switch, and the most that fits the registers.
    (64, 64, "bf16", CAUSAL, *LONG, "query = 64, key = 64, overlap = 0"),
    (128, 128, "bf16", CAUSAL, *LONG,
     "query = 128, key = 176, stages = 2, query_stages = 1, staging = 64, "
     "ping_pong = 1, overlap = 1, persistent = 1"),
    (128, 128, "bf16", "none", *LONG,
     "query = 128, key = 128, overlap = 1, persistent = 0"),
    (128, 128, "f16", "none", *LONG,
     "query = 192, key = 64, ping_pong = 1, overlap = 0"),
    (256, 256, "bf16", "none", *LONG,
     "query = 64, key = 80, stages = 2, query_stages = 1, overlap = 0"),
]


def function(number, problem):
    d, d_v, dtype, mask, batch, heads, kv_heads, queries, keys, tiles = problem
    q, k, v, o = (f"tensor<{batch}x{h}x{rows}x{cols}x{dtype}>"
                  for h, rows, cols in ((heads, queries, d), (kv_heads, keys, d),
                                        (kv_heads, keys, d_v),
                                        (heads, queries, d_v)))
    o = o.replace("f8E4M3FN", "bf16")
    schedule = (f" {{schedule = #attn.schedule<flash, {tiles}>}}" if tiles
                else "")
    return (f"func.func @f{number}(%q: {q}, %k: {k}, %v: {v}) -> {o} {{\n"
            f"  %o = attn.forward %q, %k, %v mask({mask}){schedule} : {q}, {k}, "
            f"{v} -> {o}\n  return %o : {o}\n}}\n")


def check(opt, ptxas, problems):
    """Lines to print of some problems, each with whether it is as written."""
    text = "".join(function(*pair) for pair in enumerate(problems))
    out = run(opt, text, f"-attn-to-binary=machine={MACHINE} format=isa")
    launched = re.findall(r"gpu\.launch_func +@\w+::@(\w+)", out)
    ptx = ptx_of(out)
    cubin, said = sass.assemble(ptx, ptxas)
    found = sass.faults(ptx, said, cubin)
    made = sass.instructions(cubin)
    for problem, kernel in zip(problems, launched):
        d, d_v, dtype, mask, *sizes, tiles = problem
        names = made[kernel]
        yield not found[kernel], (
            f"{dtype} d {d}/{d_v} mask {mask} {sizes} {tiles or 'derived'}: "
            f"{sum(n[1:5] == 'GMMA' for n in names)} GMMA, "
            f"{names.count('ARRIVE')} ARRIVE, "
            f"{sum(n[:6] == 'DEPBAR' for n in names)} DEPBAR, "
            f"{names.count('MOV')} MOV" +
            "".join("\n  not as written: " + s for s in found[kernel]))


def main():
    if len(sys.argv) < 3:
        sys.exit("expects ATTN_OPT PTXAS, but got less")
    problems = [p for p in PROBLEMS if not sys.argv[3:]
                or sys.argv[3] in repr(p)]
    parts = [problems[i:i + 5] for i in range(0, len(problems), 5)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = [row for part in pool.map(
            lambda part: list(check(*sys.argv[1:3], part)), parts)
                for row in part]
    for _, line in rows:
        print(line)
    bad = sum(not clean for clean, _ in rows)
    print(f"{len(rows)} of {len(problems)} problems, {bad} not as written")
    return 1 if bad or len(rows) < len(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
