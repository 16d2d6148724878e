"""Compiles attention for a machine and asks ptxas what the kernels need.

`registers.py ATTN_OPT PTXAS MACHINE [TYPE] [SCHEDULE] [head dims...]`: for each
head dimension and mask, in bf16 or another type, the tiles are those of the
schedule, "flash, query = 64", or the ones that the compiler derives.  A kernel may not spill, nor use a stack frame, nor need more
registers than the launch has; but see STACK.
Prints one line per kernel; the exit status is 1 when one is not clean.
"""

import os
import re
import subprocess
import sys
import tempfile

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
ESCAPE = re.compile(r"\\([0-9A-F]{2})")


def operation(dim, mask, element, schedule):
    told = f"{{schedule = #attn.schedule<{schedule}>}}" if schedule else ""
    shape = f"tensor<2x16x4096x{dim}x{element}>"
    return f"""
func.func @attention(%q: {shape}, %k: {shape}, %v: {shape}) -> {shape} {{
  %o = attn.forward %q, %k, %v mask({mask}) {told} : {shape}, {shape}, {shape} -> {shape}
  return %o : {shape}
}}
"""


def compile_to_ptx(opt, machine, dim, mask, element, schedule):
    """(the schedule, the PTX) of one op."""
    text = operation(dim, mask, element, schedule)
    run = subprocess.run(
        [opt, "-", f"-attn-to-tile=machine={machine}"],
        input=text, capture_output=True, text=True, check=True)
    schedule = re.search(r"#attn\.schedule<([^>]*)>", run.stdout).group(1)
    run = subprocess.run(
        [opt, "-", f"-attn-to-binary=machine={machine} format=isa"],
        input=text, capture_output=True, text=True, check=True)
    text = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', run.stdout).group(1)
    return schedule, ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), text)


def assemble(ptxas, ptx):
    """What `ptxas -v` says of a kernel: registers, stack and spill bytes."""
    chip = re.search(r"\.target (\w+)", ptx).group(1)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "kernel.ptx")
        with open(source, "w", encoding="utf-8") as f:
            f.write(ptx)
        said = subprocess.run(
            [ptxas, "-v", "-arch", chip, "-O3", source, "-o",
             os.path.join(folder, "kernel.cubin")],
            capture_output=True, text=True, check=True).stderr
    numbers = [re.search(pattern, said) for pattern in (
        r"Used (\d+) registers", r"(\d+) bytes stack frame",
        r"(\d+) bytes spill stores", r"(\d+) bytes spill loads")]
    if not all(numbers):
        sys.exit(f"expects what -v says of a kernel, but got: {said}")
    return [int(n.group(1)) for n in numbers]


def main():
    if len(sys.argv) < 4:
        sys.exit("expects ATTN_OPT PTXAS MACHINE, but got less")
    opt, ptxas, machine = sys.argv[1:4]
    rest = sys.argv[4:]
    element = rest.pop(0) if rest and rest[0].isalnum() and not rest[
        0].isdigit() else "bf16"
    told = rest.pop(0) if rest and "," in rest[0] else None
    dims = [int(d) for d in rest] or DIMS
    dirty = 0
    for dim in dims:
        for mask in MASKS:
            schedule, ptx = compile_to_ptx(opt, machine, dim, mask, element,
                                           told)
            registers, stack, stores, loads = assemble(ptxas, ptx)
            most = STACK.get(element, 0)
            if element == "f32" and dim >= WIDE and "persistent" in schedule:
                most = WIDE_STACK
            if schedule.startswith("column_split"):
                most = GROUP_STACK
            clean = stack <= most and (most or stores == loads == 0)
            dirty += not clean
            print(f"{machine} d {dim} mask {mask}: {schedule}: "
                  f"{registers} registers, {stack} stack, {stores} spill "
                  f"stores, {loads} spill loads" + ("" if clean else " DIRTY"),
                  flush=True)
    print(f"{len(dims) * len(MASKS)} kernels, {dirty} dirty")
    return 1 if dirty else 0


if __name__ == "__main__":
    sys.exit(main())
