"""Compiles gradients for a machine and compares what ptxas made of each kernel
with what was written: see tools/dev/sass.py.

`hygiene_backward.py ATTN_OPT PTXAS MACHINE
                     [deterministic | like_warps | apart | merged | kept | halves]
                     [low]`

Kernels must be as sass.py wants them, but for the main ones of flash_backward
and, on Hopper, of split_backward and spill_backward:

- ptxas lays its blocks out in another order, so that fences and waits come in
  a rotation of the order in the text.
- The roles that share the first warpgroup, one that loads and one that adds dQ
  to memory, have 24 registers each, and keep a few addresses and counts in
  local memory.  Each is one thread that waits for memory anyway.  So do, with
  `beside`, two warps that round sums, 16 rows of 32 columns at a time, and
  with `beside = 2` make statistics.
- Those that multiply have 240 registers, all taken: what they need once a tile
  may wait in local memory, but nothing from the first product of a block to
  the last, except in the problems of SHORT.

- Before the first product of a tile of spill_backward's scores, which
  warpgroups end in turns, ptxas may add an arrive (C7519): zeros of the sum
  come behind the one that is written.  No other kernel may have one.  Where
  that is merged with sums, either may come first.

With `beside`, and merged, blocks tell each other of sums: each such fence is
one for the whole GPU, and in the main kernel also one for the block.

With `apart` and `merged` they are those of spill_backward on wgmma, with a
launch for each kind of product and with one for all; with `kept` both, from
weights that were kept.

With `like_warps` they are those of spill_backward on mma.sync; where scores are
f32, P and dP are half of all registers, and SINGLE allows for a few others.
PREPARE allows the launch that makes statistics, whose rows on their way take all
registers, to keep the two numbers of its block.

With `halves` they are those of flash_backward that weigh blocks in halves, where
nothing at all is in local memory between products.

With `low` LSE comes in two words.

Prints one line per kernel; the exit status is 1 when one is not as written.
"""

import concurrent.futures
import os
import re
import sys

from isa import to_ptx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/dev"))
import sass  # noqa: E402

# d, d_v, dtype, mask; and a schedule where it is not to be chosen.
HOPPER = [(64, 64, "bf16", "none"), (64, 64, "f16", "causal"),
          (32, 32, "bf16", "causal"), (128, 64, "bf16", "none"),
          (64, 128, "bf16", "causal"), (72, 72, "bf16", "causal"),
          (96, 96, "f16", "causal_bottom_right"), (128, 128, "bf16", "none"),
          (128, 128, "bf16", "causal"), (128, 128, "f16", "window<256, 0>"),
          (64, 64, "bf16", "prefix<500>"), (128, 128, "bf16", "prefix<500>")]
SPLIT = [(64, 64, "bf16", "causal"), (128, 128, "bf16", "none"),
         (128, 128, "f16", "window<256, 0>")]
# Wider ones, on Hopper only.
WIDE = [(192, 192, "bf16", "causal", "split_backward"), (256, 256, "bf16", "none"),
        (512, 512, "bf16", "none"), (1024, 320, "f16", "causal")]
# Of flash_backward in halves, whole heads and narrower ones.
HALVES = [(64, 64, "bf16", "none"), (64, 64, "f16", "causal"),
          (32, 64, "bf16", "causal"), (64, 64, "bf16", "window<256, 0>")]
# Of spill_backward on wgmma.
PRODUCTS = WIDE[1:] + [(136, 1000, "bf16", "causal_bottom_right"),
                       (512, 512, "bf16", "causal"),
                       (320, 2048, "f16", "window<256, 20>")]
# Of spill_backward on mma.sync, asked for by WARPS, those that its sums have.
LIKE_WARPS = [(512, 512, "bf16", "none"), (320, 1024, "f16", "causal"),
              (264, 64, "bf16", "window<256, 0>"), (512, 512, "f32", "none"),
              (256, 320, "f32", "causal"),
              (512, 512, "f32", "window<256, 0>")]
SINGLE = 16
PREPARE = 4
# Stores and loads of local memory in the roles that do not multiply, and outside
# of products in those that do, each run once a tile or a block of queries; with
# `beside`, by its value, once or twice 16 queries as well.  Most are in blocks of
# 128 queries, once a tile.
BEFORE, AROUND = {0: 48, 1: 64, 2: 160}, {0: 37, 1: 46, 2: 88}
# With `ordered` the writer knows of three tiles instead of one.
ORDERED = 16
# Under a causal mask, the longest first, who draws a tile looks for it in lanes of
# heads, whose numbers are more than the registers of such a role; a few of them are
# those of the whole block, and stand where others begin.
LANES, LANES_AROUND = 32, 2
# Merged, who draws a tile of scores or of D counts rows of both, which under a
# causal mask begin at the last one.
DELTAS = 12
# Weights that were kept wait beside dP, where scores would become P before: a few
# words more, between products once a tile.
KEPT_AROUND, KEPT = 12, 4
# ... and between products, by query_block and head dimension, in a round of 28 to
# 32 wgmma.  S and dP of 128 queries take 128 registers beside dK, dV and P, as dK
# and dV of d = 128 do beside the rest: a bound of a mask may not find one.
SHORT = {(128, 64): 20, (128, 32): 4, (64, 128): 1}
IN_HALVES = "overlap = 2"
# The low word of LSE is one number more to address.
LOW = {(64, 128): 1}


def function(number, problem, attributes, low):
    d, d_v, dtype, mask, *schedule = problem
    for name in schedule:
        attributes = attributes.replace(
            "}", f", schedule = #attn.schedule<{name}>}}").replace("{, ", "{")
    attributes = attributes.replace("WARPS", "8" if dtype == "f32" else "4")
    q, o = (f"tensor<2x16x4096x{cols}x{dtype}>" for cols in (d, d_v))
    lse = "tensor<2x16x4096xf32>"
    arrays, kept = "", ""
    if low:
        arrays, kept = f", %low: {lse}", f"lse_low(%low : {lse}) "
    if any("kept" in name for name in schedule):
        w, r = f"tensor<2x16x4096x4096x{dtype}>", "tensor<2x16x32x4096xf32>"
        arrays += f", %w: {w}, %r: {r}"
        kept += f"weights(%w, %r : {w}, {r}) "
    return (f"func.func @f{number}(%do: {o}, %q: {q}, %k: {q}, %v: {o}, "
            f"%o: {o}, %lse: {lse}{arrays}) -> ({q}, {q}, {o}) {{\n"
            f"  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse "
            f"{kept}mask({mask}){attributes} : {o}, {q}, {q}, {o}, {o}, {lse} -> "
            f"{q}, {q}, {o}\n  return %dq, %dk, %dv : {q}, {q}, {o}\n}}\n")


def runs(steps):
    """Runs of products up to the wait for all, in any order."""
    return sorted(re.findall("[^0]*0", steps))


def without_added(found, order, is_merged):
    """Without the arrive that is added before a run of products."""
    if not is_merged:
        return found[1:] if found.startswith("AA") else found
    starts = [0] + [i + 1 for i, step in enumerate(found) if step == "0"]
    for start in starts:
        rest = found[:start] + found[start + 1:]
        if found.startswith("AA", start) and runs(rest) == runs(order):
            return rest
    return found


def main_faults(kernel, schedule, shape, said, wanted, got, before, around):
    """Sentences about the main kernel of a pipeline."""
    wrong = [line for line in re.findall(r"\(C75\d\d\) .*", said)
             if f"'{kernel}'" in line or "function '" not in line]
    for name in sass.COUNTED:
        if name not in ("STL", "LDL") and wanted.count(name) != (
                got.count(name)):
            wrong.append(f"expects {wanted.count(name)} {name}, but got "
                         f"{got.count(name)}")
    order, found = sass.steps(wanted), sass.steps(got)
    added = [line for line in wrong if "(C7519)" in line]
    is_merged = "merged = 1" in schedule
    is_kept = "kept = 1" in schedule and not re.search("_dk_dv|_dq", kernel)
    if (kernel.startswith("spill_backward") and len(added) == 1 and
            (is_merged or "_scores" in kernel) and len(found) > len(order)):
        wrong.remove(added[0])
        found = without_added(found, order, is_merged)
    if len(order) != len(found) or (
            runs(found) != runs(order) if is_merged else
            found not in 2 * order):
        wrong.append(f"expects a rotation of {order} of arrive and waits, but "
                     f"got {found}")
    # Who multiplies comes last, and asks for registers first.
    start = len(got) - got[::-1].index("SETMAXREG")
    if "HGMMA.SS" in got[:start]:
        wrong.append("expects products behind the last SETMAXREG")
    products = [i for i, name in enumerate(got) if name[1:5] == "GMMA"]
    first, last = products[0], products[-1]
    for part, names, most in (
            ("before", got[:start], before),
            ("around products", got[start:first] + got[last:],
             around + (KEPT_AROUND if is_kept else 0)),
            ("between products", got[first:last],
             KEPT if is_kept else
             (0 if IN_HALVES in schedule else SHORT.get(shape, 0)) +
             (LOW.get(shape, 0) if "_lse_low" in kernel else 0))):
        local = names.count("STL") + names.count("LDL")
        if local > most:
            wrong.append(f"expects at most {most} STL and LDL {part}, but got "
                         f"{local}")
    return wrong


def faults_but_few(wrong, got, most):
    """Those of a kernel that may have a little in local memory."""
    if got.count("STL") + got.count("LDL") > most:
        return wrong
    return [line for line in wrong
            if not re.search(r" bytes |expects 0 (STL|LDL),", line)]


def check(opt, ptxas, machine, attributes, low, problems):
    """Lines to print of some problems, each with whether it is as written."""
    text = "".join(function(*pair, attributes, low)
                   for pair in enumerate(problems))
    ptx, schedules = to_ptx(opt, text, machine)
    cubin, said = sass.assemble(ptx, ptxas)
    found, made = sass.faults(ptx, said, cubin), sass.instructions(cubin)
    written = sass.written(ptx)
    for kernel, wrong in found.items():
        schedule, got = schedules[kernel], made[kernel]
        fences = sass.releases(ptx, kernel)
        if fences:
            told = f"expects 0 MEMBAR.WIDE, but got {fences}"
            wrong = [sentence for sentence in wrong if sentence != told]
        if "persistent" in schedule and (
                not re.search("_prepare|_finish", kernel)):
            shape = tuple(int(re.search(pattern, text).group(1))
                          for pattern, text in (
                              (r"query_block = (\d+)", schedule),
                              (r"f16_(\d+)", kernel)))
            wants = written[kernel] + ["MEMBAR", "MEMBAR.WIDE"] * fences
            beside = re.search(r"beside = (\d)", schedule)
            beside = int(beside.group(1)) if beside else 0
            before, around = BEFORE[beside], AROUND[beside]
            if "ordered = 1" in schedule:
                before += ORDERED
                if "causal" in kernel and "short_first = 0" in schedule:
                    before, around = before + LANES, around + LANES_AROUND
            if "merged = 1" in schedule and "causal" in kernel:
                before += DELTAS
            wrong = main_faults(kernel, schedule, shape, said, wants, got,
                                before, around)
        elif "_f32_" in kernel:
            wrong = faults_but_few(wrong, got, SINGLE)
        elif "_prepare" in kernel:
            wrong = faults_but_few(wrong, got, PREPARE)
        yield not wrong, (
            f"{machine} {kernel}: {schedule}: {len(got)} instructions, "
            f"{sum(n[1:5] == 'GMMA' for n in got)} GMMA, "
            f"{got.count('STL')} STL, {got.count('LDL')} LDL" +
            "".join("\n  not as written: " + s for s in wrong))


def main():
    if len(sys.argv) < 4:
        sys.exit("expects ATTN_OPT PTXAS MACHINE, but got less")
    opt, ptxas, machine, *rest = sys.argv[1:]
    low = rest[-1:] == ["low"]
    rest = rest[:-1] if low else rest
    attributes = " {deterministic}" if rest else ""
    problems = SPLIT
    if rest in (["apart"], ["merged"]):
        problems = PRODUCTS
        attributes = (" {schedule = #attn.schedule<spill_backward, merged = "
                      f"{int(rest == ['merged'])}>}}")
    elif rest == ["kept"]:
        problems = [(*problem[:4], f"spill_backward, kept = 1, merged = {merged}")
                    for merged in (0, 1) for problem in PRODUCTS]
        attributes = " {deterministic}"
    elif rest == ["halves"]:
        problems = [(*problem, "flash_backward, overlap = 2")
                    for problem in HALVES]
        attributes = " {}"
    elif rest == ["like_warps"]:
        problems = LIKE_WARPS
        attributes = " {schedule = #attn.schedule<spill_backward, warps = WARPS>}"
    elif machine == "h100_sxm":
        problems = SPLIT + WIDE if rest else HOPPER
    parts = [problems[i:i + 5] for i in range(0, len(problems), 5)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = [row for part in pool.map(
            lambda part: list(check(opt, ptxas, machine, attributes, low, part)),
            parts) for row in part]
    for _, line in rows:
        print(line)
    bad = sum(not clean for clean, _ in rows)
    print(f"{len(problems)} problems, {len(rows)} kernels, {bad} not as "
          f"written")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
