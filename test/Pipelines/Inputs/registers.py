"""Compiles attention for a machine and asks ptxas what the kernels need.

`registers.py ATTN_OPT PTXAS MACHINE [low] [TYPE] [SCHEDULE] [head dims...]`: for each
head dimension and mask, in bf16 or another type, the tiles are those of the
schedule, "flash, query = 64", or the ones that the compiler derives.  With `low`
there is an LSE too, in two words.  A kernel
may not spill, nor use a stack frame, nor need more registers than the launch
has; but see STACK.
Prints one line per kernel; the exit status is 1 when one is not clean.
"""

import os
import re
import sys

from isa import to_ptx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/dev"))
import sass  # noqa: E402

DIMS = (8, 16, 32, 40, 64, 80, 96, 128)
MASKS = ("none", "causal", "window<256, 0>")
# Bytes of stack that a kernel may have.  Near the limit ptxas puts a few
# addresses there: of f32 kernels at most 8 loads and stores in a loop of 384 or
# more products.
STACK = {"f32": 32}
# The same of pipelines at d = 256, whose outputs fill half of the registers:
# with 32 keys 24 to 44 words, of which 48 to 117 loads are in the kernel.  With
# 16 keys there are fewer, but it took 1.18 times as long on an H100.
WIDE_STACK, WIDE = 192, 256
# Of groups of blocks, whose output fills half of the registers too.  With places
# in the ring that are constants there were 176 to 448 bytes, and it took 1.2 to
# 1.5 times as long.
GROUP_STACK = 96
# Of output_spill, whose weights fill half of the registers, with scores of 256
# keys: 3 words, under a window 8, of narrow heads 15, once for each part.
HELD_STACK = 64
COUNTS = ("Used (\\d+) registers", "(\\d+) bytes stack frame",
          "(\\d+) bytes spill stores", "(\\d+) bytes spill loads")
# Head dimensions that go through one run of attn-opt and of ptxas.
TOGETHER = 4


def function(dim, mask, element, schedule, low):
    told = f"{{schedule = #attn.schedule<{schedule}>}}" if schedule else ""
    shape = f"tensor<2x16x4096x{dim}x{element}>"
    lse = "tensor<2x16x4096xf32>"
    results = f"{shape}, {lse}, {lse}" if low else shape
    value = "%o:3" if low else "%o"
    named = "%o#0, %o#1, %o#2" if low else "%o"
    name = re.sub(r"\W+", "_", f"d{dim}_{mask}")
    return f"""
func.func @{name}(%q: {shape}, %k: {shape}, %v: {shape}) -> ({results}) {{
  {value} = attn.forward %q, %k, %v mask({mask}) {told} : {shape}, {shape}, {shape} -> {results}
  return {named} : {results}
}}
"""


def counts(said, kernel):
    """What `ptxas -v` says of a kernel: registers, stack and spill bytes."""
    part = re.search(rf"entry function '{kernel}'(.*?)(?=entry function|\Z)", said,
                     re.DOTALL)
    numbers = [re.search(pattern, part.group(1)) for pattern in COUNTS]
    if not all(numbers):
        sys.exit(f"expects what -v says of {kernel}, but got: {said}")
    return [int(n.group(1)) for n in numbers]


def allowed_stack(element, dim, schedule):
    if schedule.startswith("column_split"):
        return GROUP_STACK
    if "part = 256" in schedule:
        return HELD_STACK
    if element == "f32" and dim >= WIDE and "persistent" in schedule:
        return WIDE_STACK
    return STACK.get(element, 0)


def main():
    if len(sys.argv) < 4:
        sys.exit("expects ATTN_OPT PTXAS MACHINE, but got less")
    opt, ptxas, machine = sys.argv[1:4]
    rest = sys.argv[4:]
    low = rest[:1] == ["low"]
    rest = rest[1:] if low else rest
    element = rest.pop(0) if rest and rest[0].isalnum() and not rest[
        0].isdigit() else "bf16"
    told = rest.pop(0) if rest and "," in rest[0] else None
    dims = [int(d) for d in rest] or DIMS
    kernels, dirty = 0, 0
    for start in range(0, len(dims), TOGETHER):
        text = "".join(function(dim, mask, element, told, low)
                       for dim in dims[start:start + TOGETHER]
                       for mask in MASKS)
        ptx, schedules = to_ptx(opt, text, machine)
        _, said = sass.assemble(ptx, ptxas)
        for kernel, schedule in schedules.items():
            registers, stack, stores, loads = counts(said, kernel)
            dim = int(re.search(r"f(?:16|32)_(\d+)", kernel).group(1))
            most = allowed_stack(element, dim, schedule)
            clean = stack <= most and (most or stores == loads == 0)
            kernels, dirty = kernels + 1, dirty + (not clean)
            print(f"{machine} {kernel}: {schedule}: "
                  f"{registers} registers, {stack} stack, {stores} spill "
                  f"stores, {loads} spill loads" + ("" if clean else " DIRTY"),
                  flush=True)
    print(f"{kernels} kernels, {dirty} dirty")
    return 1 if dirty else 0


if __name__ == "__main__":
    sys.exit(main())
