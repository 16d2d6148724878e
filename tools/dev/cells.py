"""The cross table: what attention computes with what else, cell by cell.

A cell is a value on each of six axes: what is visible, what becomes of a score,
where rows lie, whether a tile has rows of several heads, whether keys are dealt
out to parts, and the direction.  Each is an op with a schedule, and attn-opt
says of it whether there is a kernel, or why not: nothing else knows.

`cells.py [--build FOLDER] [--run interpreter|gpu] [--share K/N] [--only WORDS]`
prints what is said of each cell; with --run those that are right are run by
attn-run and compared with fp64, and the exit status is 1 if one is not.
`page` is docs/cells.md.
"""

import argparse
import bisect
import itertools
import os
import re
import subprocess
import sys
import tempfile

import machine_probe

ROOT = machine_probe.ROOT

VISITS = ("band", "window", "prefix", "sees", "lists")
MAPS = ("scale", "softcap", "bias", "alibi", "sinks", "score")
PLACES = ("dense", "ragged", "lengths", "paged", "ragged on lengths",
          "ragged on pages")
ROWS = ("own", "packed")
PARTS = ("one part", "parts")
DIRECTIONS = ("forward", "backward")
AXES = (DIRECTIONS, PLACES, VISITS, MAPS, ROWS, PARTS)
RIGHT = "right"

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, DIM, PAGE = 2, 8, 2, 5, 96, 64, 16
BLOCK = 64
#: All tiles, so that nothing is searched.
TILES = {
    ("own", "one part"): "query = 64, key = 64, stages = 2, query_stages = 1, "
    "staging = 64, ping_pong = 0, overlap = 1, persistent = 1",
    ("own", "parts"): "query = 64, key = 64, stages = 2, parts = 2, "
    "overlap = 1, persistent = 1",
    ("packed", "one part"): "query = 64, key = 64, stages = 2, packed = 4, "
    "overlap = 1, persistent = 1",
    ("packed", "parts"): "query = 64, key = 64, stages = 2, packed = 4, "
    "parts = 2, overlap = 1, persistent = 1",
}


GRADIENTS = ("flash_backward, key = 64, query_block = 64, beside = 0, "
             "overlap = 1, stages = 3, ordered = 0, short_first = 0, "
             "first_stores = 0, persistent = 1")


def cells():
    return list(itertools.product(*AXES))


def schedule_of(cell):
    direction, *_, rows, parts = cell
    if direction == "forward":
        return "flash, " + TILES[rows, parts]
    asked = [f"{name} = 2" for name, value in (("packed", rows),
                                               ("parts", parts))
             if value == name]
    return ", ".join(["flash_backward", *asked] if asked else [GRADIENTS])


def tensor(*sizes, of="bf16"):
    return f"tensor<{'x'.join(map(str, sizes))}x{of}>"


class Op:
    """The op of a cell, as text."""

    def __init__(self, cell):
        (self.direction, self.place, self.visit, self.map, _, _) = cell
        self.arguments, self.clauses = [], []
        self.add_visit()
        self.add_map()
        self.add_place()

    def operand(self, name, kind):
        self.arguments.append((name, kind))
        return f"{name} : {kind}"

    def add_visit(self):
        masks = {"band": "causal_bottom_right", "window": "window<40, 0>",
                 "prefix": "prefix<20>"}
        if self.visit in masks:
            self.clauses.append(f"mask({masks[self.visit]})")
        elif self.visit == "sees":
            self.clauses.append(
                "sees (%b, %h, %i, %j, %nq, %nk) { %three = arith.constant 3 : "
                "index\n %rest = arith.remui %j, %three : index\n %seen = "
                "arith.cmpi ne, %rest, %i : index\n attn.yield %seen : i1 }")
        else:
            self.add_lists()

    def add_lists(self):
        rows, columns = -(-QUERIES // BLOCK), -(-KEYS // BLOCK)
        counts, blocks = (tensor(BATCH, HEADS, rows, of="i32"),
                          tensor(BATCH, HEADS, rows, columns, of="i32"))
        self.arguments += [("%pc", counts), ("%pi", blocks)]
        self.clauses.append(f"blocks(partial %pc, %pi, size {BLOCK} x {BLOCK} "
                            f": {counts}, {blocks})")
        if self.direction == "backward":
            counts, blocks = (tensor(BATCH, HEADS, columns, of="i32"),
                              tensor(BATCH, HEADS, columns, rows, of="i32"))
            self.arguments += [("%tc", counts), ("%ti", blocks)]
            self.clauses.append(f"transposed(partial %tc, %ti : {counts}, "
                                f"{blocks})")

    def add_map(self):
        heads = tensor(HEADS, of="f32")
        if self.map == "scale":
            self.clauses.append("scale(0.2)")
        elif self.map == "softcap":
            self.clauses.append("softcap(2.0)")
        elif self.map == "bias":
            what = tensor(QUERIES, KEYS, of="f32")
            self.clauses.append(f"bias({self.operand('%bias', what)})")
        elif self.map == "alibi":
            self.clauses.append(f"alibi({self.operand('%slopes', heads)})")
        elif self.map == "sinks":
            self.clauses.append(f"sinks({self.operand('%sinks', heads)})")
        else:
            self.clauses.append(
                "score (%z : f32, %b, %h, %i, %j, %nq, %nk) { %twice = "
                "arith.addf %z, %z : f32\n attn.yield %twice : f32 }")

    def add_place(self):
        kind = tensor(BATCH + 1, of="i32")
        if self.place == "ragged":
            self.arguments += [("%cq", kind), ("%ck", kind)]
            self.clauses.append(f"ragged(%cq, %ck, longest {QUERIES}, {KEYS} : "
                                f"{kind}, {kind})")
        elif self.is_ragged:
            self.arguments.append(("%cq", kind))
            self.clauses.append(f"ragged(%cq, longest {QUERIES} : {kind})")
        if self.place not in ("dense", "ragged"):
            used = self.operand("%used", tensor(BATCH, of="i32"))
            self.clauses.append(f"lengths(k {used})")
        if self.is_paged:
            table = self.operand("%table", tensor(BATCH, KEYS // PAGE,
                                                  of="i32"))
            self.clauses.append(f"pages({table})")

    @property
    def is_ragged(self):
        return self.place.startswith("ragged")

    @property
    def is_paged(self):
        return self.place.endswith(("paged", "pages"))

    def rows(self, heads, count, are_keys=False):
        """The type of an array with so many rows of each head."""
        if self.place == "ragged" or (self.is_ragged and not are_keys):
            return tensor(BATCH * count, heads, DIM)
        return tensor(BATCH, heads, count, DIM)

    def text(self):
        q = self.rows(HEADS, QUERIES)
        k = self.rows(KEY_HEADS, KEYS, are_keys=True)
        lse = (tensor(HEADS, BATCH * QUERIES, of="f32")
               if self.is_ragged
               else tensor(BATCH, HEADS, QUERIES, of="f32"))
        if self.is_paged:
            k = tensor(BATCH * KEYS // PAGE + 1, KEY_HEADS, PAGE, DIM)
        names, inputs, results = ("%q", "%k", "%v"), (q, k, k), (q, lse)
        if self.direction == "backward":
            names = ("%do", "%q", "%k", "%v", "%o", "%lse")
            inputs, results = (q, q, k, k, q, lse), (q, k, k)
        outs = [f"%out{n}" for n in range(len(results))]
        arguments = [*zip(names, inputs), *self.arguments]
        return (f"func.func @cell({', '.join(f'{n}: {t}' for n, t in arguments)}"
                f") -> ({', '.join(results)}) {{\n"
                f"{', '.join(outs)} = attn.{self.direction} "
                f"{', '.join(names)} {' '.join(self.clauses)} : "
                f"{', '.join(inputs)} -> {', '.join(results)}\n"
                f"return {', '.join(outs)} : {', '.join(results)}\n}}\n")


# -- What attn-opt says -------------------------------------------------------

SPLIT = "// -----\n"
SAID = re.compile(r"^<stdin>:(?P<line>\d+):\d+: (?P<kind>error|note): "
                  r"(?:'attn\.\w+' op )?(?P<words>.*)$", re.MULTILINE)
#: Between what was asked for and why it is not possible.
REASON = re.compile(r"expects a schedule that fits \w+, but got [^:]*: (.*)")
#: Of notes those that give no reason.
ASIDE = re.compile(r"see current|nearest|known machines|the best|there is a")


def words_of(error, notes):
    """Why there is no kernel: of several reasons the first."""
    found = REASON.fullmatch(error)
    if found:
        return found[1]
    reasons = [note.split(": ", 1)[-1] for note in notes
               if not ASIDE.match(note)]
    return reasons[0] if reasons and error.startswith(
        "expects a schedule that ") else error


def read(diagnostics, starts):
    """What was said of each chunk of text, by number."""
    said = {}
    for found in SAID.finditer(diagnostics):
        if found["words"].startswith("expects the option schedule"):
            continue
        chunk = bisect.bisect_right(starts, int(found["line"])) - 1
        errors, notes = said.setdefault(chunk, ([], []))
        (errors if found["kind"] == "error" else notes).append(found["words"])
    return {chunk: words_of(errors[0], notes)
            for chunk, (errors, notes) in said.items()}


def ask_some(build, schedule, some):
    """Of cells with one schedule: RIGHT, or why not."""
    texts, starts, line = [], [], 1
    for cell in some:
        texts.append(Op(cell).text() + SPLIT)
        starts.append(line)
        line += texts[-1].count("\n")
    option = f"=schedule={{{schedule}}}" if schedule else ""
    done = subprocess.run(
        [os.path.join(build, "bin", "attn-opt"), "-split-input-file",
         "-attn-attach-machine=machine=h100_sxm",
         f"-attn-select-schedule{option}", "-o", os.devnull],
        input="".join(texts), capture_output=True, text=True, check=False)
    said = read(done.stderr, starts)
    # A schedule that is none is one for no cell; what is said of its own text
    # has no place in a chunk.
    of_schedule = re.search(r"error: (expects the name of a tile size .*)",
                            done.stderr)
    if done.returncode not in (0, 1) or (done.returncode == 1) != bool(
            said or of_schedule):
        sys.exit(f"attn-opt, of {schedule or 'any schedule'}: status "
                 f"{done.returncode}\n{done.stderr[-2000:]}")
    otherwise = of_schedule[1] if of_schedule else RIGHT
    return [said.get(number, otherwise) for number in range(len(some))]


def ask(build):
    """By cell, of all: RIGHT, or why there is no kernel."""
    by_schedule = {}
    for cell in cells():
        by_schedule.setdefault(schedule_of(cell), []).append(cell)
    return {cell: verdict for schedule, some in by_schedule.items()
            for cell, verdict in zip(some, ask_some(build, schedule, some))}


# -- The page -----------------------------------------------------------------


def rows_of(verdicts, direction, place, letters):
    for visit, map_ in itertools.product(VISITS, MAPS):
        cells_of_row = [verdicts[direction, place, visit, map_, *rest]
                        for rest in itertools.product(ROWS, PARTS)]
        yield [visit, map_, *(
            RIGHT if each == RIGHT
            else letters.setdefault(each, f"r{len(letters) + 1}")
            for each in cells_of_row)]


def page(build):
    """docs/cells.md."""
    verdicts = ask(build)
    assert set(verdicts) == set(cells())
    letters, tables = {}, []
    for direction, place in itertools.product(DIRECTIONS, PLACES):
        head = ["visible", "score", *(", ".join(pair) for pair in
                                      itertools.product(ROWS, PARTS))]
        lines = [head, ["---"] * len(head),
                 *rows_of(verdicts, direction, place, letters)]
        tables.append(f"### {direction}, {place}\n\n" + "".join(
            f"| {' | '.join(line)} |\n" for line in lines))
    right = sum(verdict == RIGHT for verdict in verdicts.values())
    reasons = "".join(f"- **{letter}**: {words}\n"
                      for words, letter in letters.items())
    return HEAD.format(all=len(verdicts), right=right,
                       refused=len(verdicts) - right) + (
        "\n".join(tables) + "\n## Why not\n\n" + reasons)


HEAD = """# What goes with what

<!-- Made by tools/dev/cells.py; tools/dev/doc.py writes it anew. -->

A cell of these tables is one attention: what is visible, what becomes of a score, where rows lie, and how tiles are made.
Of {all} cells {right} are right, and {refused} are refused, each with the words that a caller gets, which are below the tables.

- *right*: there is a kernel for Hopper. `python3 tools/dev/cells.py --run interpreter` runs it on the interpreter, and `--run gpu` on a GPU, and compares it with fp64.
- *ragged on lengths* and *ragged on pages* are ragged queries on a cache: prefills and decoding steps in one launch.
- Tiles have rows of one head (*own*), or of four heads that share their keys (*packed*). The keys of a tile are walked by one block (*one part*), or dealt out to two (*parts*).
- Forward, all cells ask for `flash` with certain tiles, and backward for `flash_backward`.
- *sees* and *score* are functions of the user, *lists* are lists of blocks; *band* is `causal_bottom_right`.

## Cells

"""


# -- Running them -------------------------------------------------------------


def run(build, cell, where):
    """What attn-run says against a cell, or nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(Op(cell).text())
        file.flush()
        schedule = schedule_of(cell)
        done = subprocess.run(
            [os.path.join(build, "bin", "attn-run"), "--on", where,
             *(["--schedule", schedule] if schedule else []), file.name],
            capture_output=True, text=True, check=False)
    if done.returncode == 0 and "WRONG" not in done.stdout:
        return None
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--run", choices=("interpreter", "gpu"))
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wanted = set(options.only.split(",")) - {""}
    verdicts = {cell: verdict for cell, verdict in ask(options.build).items()
                if wanted <= set(cell)}
    if not options.run:
        for cell, verdict in verdicts.items():
            print(f"{', '.join(cell)}: {verdict}")
        return 0
    number, shares = map(int, options.share.split("/"))
    right = [cell for cell, verdict in verdicts.items()
             if verdict == RIGHT][number::shares]
    failed = 0
    for cell in right:
        said = run(options.build, cell, options.run)
        if said is not None:
            failed += 1
            print(f"{', '.join(cell)}:\n{said}")
    print(f"{len(right)} cells run, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
