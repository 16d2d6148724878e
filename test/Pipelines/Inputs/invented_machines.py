"""Compiles attention for machines with less shared memory than any GPU of
their kind has, and prints a line per kernel: what its launch takes of it,
static and dynamic, and what the machine has.

    invented_machines.py ATTN_OPT MACHINE KIB,... D,...
"""
import re
import subprocess
import sys

from isa import ptx_of

SCHEDULES = ("", "flash", "streamed_query", "output_spill", "score_spill",
             "column_split")
PROGRAM = """module attributes {{attn.machine = #attn.machine<{machine}, smem_bytes_per_block = {memory}, smem_bytes_per_sm = {room}>}} {{
  func.func @f(%q: !q, %k: !q, %v: !q) -> !q {{
    %o = attn.forward %q, %k, %v : !q, !q, !q -> !q
    return %o : !q
  }}
}}
"""


def compiled(attn_opt, machine, memory, head_dim, schedule):
    """MLIR with PTX in it, or the first error."""
    text = PROGRAM.format(machine=machine, memory=memory, room=memory + 1024)
    text = text.replace("!q", f"tensor<1x2x1024x{head_dim}xbf16>")
    options = f"format=isa schedule={schedule}" if schedule else "format=isa"
    done = subprocess.run(
        [attn_opt, "-", f"-attn-to-binary={options}"], input=text,
        capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None, done.stderr


def shared_bytes(text):
    """Arrays of a size in the PTX, and the most that is asked for when a
    kernel is launched."""
    ptx = ptx_of(text)
    arrays = re.findall(r"\.shared [^;]*\[(\d*)\];", ptx)
    launches = re.findall(r"dynamic_shared_memory_size %c(\d+)_i32", text)
    assert arrays and launches, (arrays, launches)
    return sum(int(size or 0) for size in arrays), max(map(int, launches))


def refusal(errors, schedule):
    """What is said where nothing fits.  A schedule that was asked for is
    refused by itself; where the choice is free, the nearest one is named, and
    the smallest machine that would do."""
    wanted = (["expects a schedule that fits"] if schedule else
              ["nearest to fitting: ", "the smallest is "])
    silent = [text for text in wanted if text not in errors]
    return f"MUTE {errors}" if silent else "refused"


def main(attn_opt, machine, sizes, head_dims):
    kernels, beyond = 0, 0
    for size in map(int, sizes.split(",")):
        for d in map(int, head_dims.split(",")):
            for schedule in SCHEDULES:
                memory = 1024 * size
                name = f"{size} KiB, d {d}, {schedule or 'derived'}"
                text, errors = compiled(attn_opt, machine, memory, d, schedule)
                if text is None:
                    print(f"{name}: {refusal(errors, schedule)}")
                    continue
                static, dynamic = shared_bytes(text)
                fits = static + dynamic <= memory
                kernels, beyond = kernels + 1, beyond + (not fits)
                print(f"{name}: {static} + {dynamic} of {memory}"
                      f"{'' if fits else ' BEYOND'}", flush=True)
    print(f"{kernels} kernels, {beyond} beyond their machine")


main(*sys.argv[1:])
