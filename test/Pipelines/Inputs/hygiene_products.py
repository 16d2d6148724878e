"""Compiles attention of wide heads for a Hopper machine and compares what ptxas
made of the launches of score_spill with what was written: see
tools/dev/sass.py.

`hygiene_products.py ATTN_OPT PTXAS`

Prints one line per kernel; the exit status is 1 when one is not as written.
"""

import os
import re
import sys

from isa import ptx_of, run

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/dev"))
import sass  # noqa: E402

# d, d_v, dtype, mask, key_block, column, stages, merged, and whether weights
# are kept.
PROBLEMS = [(512, 512, "bf16", "none", 256, 256, 3, 0),
            (512, 512, "f16", "causal", 256, 256, 4, 0),
            (576, 320, "bf16", "causal_bottom_right", 256, 192, 3, 0),
            (1024, 1024, "bf16", "window<256, 20>", 256, 256, 3, 0),
            (1000, 72, "bf16", "window<256, 0>", 128, 128, 4, 0),
            (2048, 2048, "bf16", "none", 256, 256, 4, 0),
            (2048, 2048, "bf16", "causal", 256, 256, 3, 0),
            (64, 4096, "f16", "none", 128, 64, 5, 0),
            (512, 512, "f32", "none", 128, 128, 6, 0),
            (333, 333, "f32", "causal_bottom_right", 128, 128, 6, 0),
            (192, 192, "f32", "causal", 128, 64, 6, 0),
            (1024, 1024, "f32", "window<256, 20>", 128, 128, 6, 0),
            (768, 512, "f16", "causal", 256, 256, 4, 1),
            (1000, 136, "bf16", "window<256, 0>", 128, 128, 4, 1),
            (1024, 1024, "bf16", "none", 256, 256, 4, 1),
            (1024, 2048, "bf16", "causal", 256, 256, 4, 1),
            (256, 192, "f32", "causal", 128, 64, 6, 1),
            (320, 320, "f32", "window<256, 20>", 128, 128, 6, 1),
            (512, 512, "bf16", "none", 256, 256, 4, 1, 1),
            (1024, 1024, "bf16", "none", 256, 256, 3, 0, 1),
            (256, 320, "f16", "causal", 256, 192, 4, 1, 1),
            (512, 512, "bf16", "window<256, 20>", 256, 256, 3, 0, 1)]


def function(number, problem):
    d, d_v, dtype, mask, key_block, column, stages, merged, *kept = problem
    q, v = (f"tensor<2x4x1024x{columns}x{dtype}>" for columns in (d, d_v))
    lse = "tensor<2x4x1024xf32>"
    more = (f", tensor<2x4x1024x1024x{dtype}>, tensor<2x4x8x1024xf32>"
            if kept else "")
    return (f"func.func @f{number}(%q: {q}, %k: {q}, %v: {v}) -> ({v}, {lse}) {{\n"
            f"  %o, %l{', %w, %r' if kept else ''} = attn.forward %q, %k, %v mask({mask}) {{schedule = "
            f"#attn.schedule<score_spill, key_block = {key_block}, column = "
            f"{column}, strip = 1024, heads = 8, stages = {stages}, merged = "
            f"{merged}>}} : {q}, {q}, "
            f"{v} -> {v}, {lse}{more}\n  return %o, %l : {v}, {lse}\n}}\n")


def launches(*problem):
    dtype, merged = problem[2], problem[7]
    return (2 if dtype == "f32" else 0) + (1 if merged else 2)


def merged_faults(ptx, kernel, wrong, got):
    """What is wrong with a kernel that may be merged: each count of a flag is a
    fence for more than the block, and ptxas may put scores or outputs first."""
    counts = sass.releases(ptx, kernel)
    if not counts:
        return wrong
    wants = sass.written(ptx)[kernel] + ["MEMBAR", "MEMBAR.WIDE"] * counts
    told = {f"expects {wants.count(name) - counts} {name}, but got "
            f"{wants.count(name)}" for name in ("MEMBAR", "MEMBAR.WIDE")}
    return [sentence for sentence in wrong if sentence not in told and not (
        "of arrive and waits" in sentence and products(wants) == products(got))]


def products(names):
    """Runs of products up to the wait for all, in any order."""
    return sorted(re.findall("[^0]*0", sass.steps(names)))


def main():
    if len(sys.argv) != 3:
        sys.exit("expects ATTN_OPT PTXAS, but got something else")
    opt, ptxas = sys.argv[1:]
    text = "".join(function(*pair) for pair in enumerate(PROBLEMS))
    ptx = ptx_of(run(opt, text, "-attn-to-binary=machine=h100_sxm format=isa"))
    cubin, said = sass.assemble(ptx, ptxas)
    made = sass.instructions(cubin)
    found = {kernel: merged_faults(ptx, kernel, wrong, made[kernel])
             for kernel, wrong in sass.faults(ptx, said, cubin).items()}
    for kernel, names in sorted(made.items()):
        print(f"{kernel}: {sum(n[1:5] == 'GMMA' for n in names)} GMMA" +
              "".join("\n  not as written: " + s for s in found[kernel]))
    bad = sum(bool(found[kernel]) for kernel in made)
    expected = sum(launches(*problem) for problem in PROBLEMS)
    print(f"{len(PROBLEMS)} problems, {len(made)} kernels, {bad} not as written")
    return 1 if bad or len(made) != expected else 0


if __name__ == "__main__":
    sys.exit(main())
