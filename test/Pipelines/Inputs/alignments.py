"""Draws the alignment of every array of random problems, each by itself, and
compiles them all; some are also interpreted.

    alignments.py ATTN_OPT ATTN_RUN COUNT INTERPRETED [SEED]

Rows of an array are aligned to what divides their stride and their first
element's offset.  Every combination is legal: what compiles for one compiles
for all.  A schedule that was asked for may be refused by its plan, at the op of
the problem; the one that is derived never.  Prints the seed, which the clock
gives.  Of a share (ATTN_SHARE) a quarter is drawn.
"""
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(
    os.path.dirname(__file__), *[".."] * 3, "tools", "dev"))
import shares  # noqa: E402  (found by the line above)

MACHINES = ("h100_sxm", "a100_80g", "l4", "rtx_4090")
SCHEDULES = {
    "forward": ("", "flash", "streamed_query", "output_spill", "score_spill"),
    "backward": ("", "split_backward", "spill_backward", "flash_backward"),
}
MASKS = ("", "mask(causal)", "mask(causal_bottom_right)", "mask(window<9, 3>)")


def array(draw, sizes, element):
    """A type whose rows begin where chance puts them."""
    batch, heads, rows, columns = sizes
    row = columns + draw.choice((0, 0, 1, 2, 3, 4, 8))
    offset = draw.choice((0, 0, 0, 1, 2, 4, 8))
    if draw.random() < 0.3:  # [batch, rows, heads, columns] in memory
        head, row = row, row * heads
        strides = (head * heads * rows, head, row, 1)
    else:
        strides = (row * rows * heads, row * rows, row, 1)
    layout = ", ".join(map(str, strides))
    place = f", offset: {offset}" if offset else ""
    shape = "x".join(map(str, sizes))
    return f"memref<{shape}x{element}, strided<[{layout}]{place}>>"


def problem(draw, small):
    """A direction and the text of a module with one op."""
    direction = draw.choice(("forward", "backward", "backward"))
    element = draw.choice(("bf16", "f16", "f32"))
    kv_heads = draw.randint(1, 2)
    heads = kv_heads * draw.randint(1, 2)
    batch, queries, keys = (draw.randint(1, most) for most in (2, 60, 70))
    d, e = (draw.choice((8, 16, 24, 33, 40, 64, 65, 72, draw.randint(1, 80)))
            for _ in range(2))
    if not small and draw.random() < 0.3:
        d = e = draw.choice((128, 256, 264, 320, 512))
    if draw.random() < 0.5:
        e = d
    shapes = {"q": (batch, heads, queries, d), "k": (batch, kv_heads, keys, d),
              "v": (batch, kv_heads, keys, e), "o": (batch, heads, queries, e)}
    rows = f"memref<{batch}x{heads}x{queries}xf32>"
    inputs = ("q", "k", "v") if direction == "forward" else (
        "do", "q", "k", "v", "o", "lse")
    outputs = ("o", "lse") if direction == "forward" else ("dq", "dk", "dv")
    types = {role: rows if role == "lse" else array(
        draw, shapes[role[-1]], element) for role in inputs + outputs}
    options = draw.choice(("", "{deterministic}")) \
        if direction == "backward" else ""
    mask = draw.choice(MASKS)
    names = ", ".join(f"%{role}: {types[role]}" for role in inputs + outputs)
    outs = ", ".join(f"%{role}" for role in outputs)
    return direction, f"""func.func @f({names}) {{
  attn.{direction} {", ".join("%" + role for role in inputs)} {mask}
      outs({outs} : {", ".join(types[role] for role in outputs)}) {options}
      : {", ".join(types[role] for role in inputs)}
  return
}}
"""


def compile_one(attn_opt, text, machine, schedule):
    """Why it does not compile, if that is no refusal of a plan."""
    options = f"machine={machine}" + (f" schedule={schedule}" if schedule
                                      else "")
    done = subprocess.run([attn_opt, "-", f"-attn-to-nvvm={options}"],
                          input=text, capture_output=True, text=True)
    if done.returncode == 0:
        return None, True
    first = done.stderr.splitlines()[0]
    is_plan = re.search(r"error: 'attn\.\w+' op expects a schedule that ", first)
    return (None if schedule and is_plan else first), False


def main(attn_opt, attn_run, count, interpreted, seed=None):
    seed = int(seed) if seed else int(time.time())
    print(f"seed {seed}", flush=True)
    draw = random.Random(f"{seed} compiled")
    wrong = compiled = right = 0
    for number in range(shares.draws_of(int(count))):
        direction, text = problem(draw, small=False)
        machine = draw.choice(MACHINES)
        schedule = draw.choice(SCHEDULES[direction])
        fault, done = compile_one(attn_opt, text, machine, schedule)
        compiled += done
        if fault:
            wrong += 1
            print(f"WRONG {number}, {machine}, {schedule or 'derived'}: "
                  f"{fault}\n{text}", flush=True)
    draw = random.Random(f"{seed} interpreted")
    for number in range(shares.draws_of(int(interpreted))):
        direction, text = problem(draw, small=True)
        machine = draw.choice(MACHINES)
        done = subprocess.run(
            [attn_run, "-", "--on", "interpreter", "--guard", "--machine",
             machine], input=text, capture_output=True, text=True)
        right += done.returncode == 0
        if done.returncode:
            wrong += 1
            print(f"WRONG run {number}, {machine}:\n{done.stdout}{done.stderr}"
                  f"\n{text}", flush=True)
    print(f"{compiled} compiled, {right} right, {wrong} wrong")


main(*sys.argv[1:])
