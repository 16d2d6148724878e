"""Is the PTX of the golden problems what it was?

    golden.py            compares, and ends with status 1 if one differs
    golden.py --write    takes what is compiled now, and prints what changed

With ATTN_SHARE=K/N it compares the K-th of N parts of the problems.

A step that changes the structure of the compiler must not change its code.  So
test/Golden/problems.jsonl has problems of every kernel, type, mask and
direction, each with its machine and its schedule, in which the cost model has
no say.  test/Golden/ptx.json has a hash of each one's PTX, in which names and
labels are numbered in order of appearance, and comments and versions are left
out, and its counts of instructions: with them a changed hash can be argued.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

import machine_probe
import shares

ROOT = machine_probe.ROOT
FOLDER = os.path.join(ROOT, "test", "Golden")
PROBLEMS = os.path.join(FOLDER, "problems.jsonl")
PTX = os.path.join(FOLDER, "ptx.json")


def read_problems():
    """One per line: machine, direction, dtype, schedule, mask, and `sizes`,
    which are batch, heads, kv_heads, queries, keys, d and e.  `blocks` is the
    queries and keys of those that are listed for each head.  `ragged` is the
    type of offsets of sequences, as many as `batch`; with `used`, the type of
    numbers of used keys, only queries have some, and each of the `batch` has
    `keys`, in pages of `page` if it says so.  `kv_dtype` is the type of k and v
    where it is another.  `clauses` is the
    text of others, that read %x0, %x1, .. of the types in `captures`; with
    `values(keys, first E)` there is no v."""
    with open(PROBLEMS, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def short_of(problem):
    """The keywords of its further clauses."""
    return re.findall(r"(\w+) ?\(", problem.get("clauses", ""))


def name_of(problem):
    """What tells a problem from the others."""
    sizes = "x".join(map(str, problem["sizes"]))
    clauses = [key for key in ("alignment", "deterministic", "dlse", "kept",
                               "lse", "low", "precision") if problem.get(key)]
    if problem.get("ragged"):
        clauses.append(f"ragged {problem['ragged']}")
    if problem.get("kv_dtype"):
        clauses.append(f"keys {problem['kv_dtype']}")
    if problem.get("used"):
        clauses.append(f"used {problem['used']}")
    if problem.get("page"):
        clauses.append(f"page {problem['page']}")
    if problem.get("blocks"):
        clauses.append("blocks " + "x".join(map(str, problem["blocks"])))
    return " ".join([problem["machine"].replace(", ", ","),
                     problem["direction"], problem["dtype"], sizes,
                     problem["mask"], *clauses, *short_of(problem),
                     f"<{problem['schedule']}>"])


def queries_of(problem):
    return problem["sizes"][3]


def keys_of(problem):
    return problem["sizes"][4]


def captures_of(problem):
    return problem.get("captures", [])


def types_of(problem):
    """The types of all arrays by their roles."""
    batch, heads, kv_heads, queries, keys, d, e = problem["sizes"]
    element = {"f8e4m3": "f8E4M3FN"}.get(problem["dtype"], problem["dtype"])
    result = "bf16" if element == "f8E4M3FN" else element
    of_keys = {"f8e4m3": "f8E4M3FN"}.get(problem.get("kv_dtype"), element)

    def array(*sizes, of=element):
        return f"tensor<{'x'.join(map(str, sizes))}x{of}>"

    if problem.get("ragged"):
        row = array(heads, queries, of="f32")

        def rows_of_keys(columns):
            if not problem.get("used"):
                return array(keys, kv_heads, columns, of=of_keys)
            if page := problem.get("page"):
                return array(batch * keys // page, kv_heads, page, columns,
                             of=of_keys)
            return array(batch, kv_heads, keys, columns, of=of_keys)

        return {
            "q": array(queries, heads, d), "k": rows_of_keys(d),
            "v": rows_of_keys(e),
            "o": array(queries, heads, e, of=result),
            "do": array(queries, heads, e, of=result),
            "lse": row, "low": row, "dlse": row,
            "cu_q": array(batch + 1, of=problem["ragged"]),
            "cu_k": array(batch + 1, of=problem["ragged"]),
            "used": array(batch, of=problem.get("used", "i32")),
            "table": array(batch, keys // problem.get("page", 1), of="i32"),
            **{f"x{i}": kind for i, kind in enumerate(captures_of(problem))},
        }
    row = array(batch, heads, queries, of="f32")
    blocks = 2 * -(-keys // 256)
    return {
        "q": array(batch, heads, queries, d),
        "k": array(batch, kv_heads, keys, d, of=of_keys),
        "v": array(batch, kv_heads, keys, e, of=of_keys),
        "o": array(batch, heads, queries, e, of=result),
        "do": array(batch, heads, queries, e, of=result),
        "lse": row, "low": row, "dlse": row,
        "weights": array(batch, heads, queries, keys),
        "block_rows": array(batch, heads, blocks, queries, of="f32"),
        **{f"x{i}": kind for i, kind in enumerate(captures_of(problem))},
    }


def lists_of(problem, types, transposed=False):
    """The text of listed blocks, partial and full, and its operands, whose
    types are added."""
    _, heads, _, queries, keys, _, _ = problem["sizes"]
    rows, columns = (-(-size // block) for size, block in
                     zip((queries, keys), problem["blocks"]))
    if transposed:
        rows, columns = columns, rows
    before = "t" if transposed else ""
    counts, numbers = (f"tensor<1x{heads}x{rows}{more}xi32>"
                       for more in ("", f"x{columns}"))
    roles = [before + kind + array for kind in ("partial", "full")
             for array in ("_counts", "_blocks")]
    types.update(zip(roles, (counts, numbers) * 2))
    lists = "partial %{}, %{}, full %{}, %{}".format(*roles)
    if not transposed:
        lists += ", size {} x {}".format(*problem["blocks"])
    kinds = ", ".join(types[role] for role in roles)
    keyword = "transposed" if transposed else "blocks"
    return f"{keyword}({lists} : {kinds})", roles


def clauses_of(problem, types):
    """The text behind the operands of the op, and further operands in it."""
    text, operands = [], []
    if problem["direction"] == "backward":
        for clause, roles in (("dlse", ["dlse"]), ("low", ["low"]),
                              ("kept", ["weights", "block_rows"])):
            if problem.get(clause):
                keyword = {"low": "lse_low", "kept": "weights"}.get(clause,
                                                                    clause)
                names = ", ".join(f"%{role}" for role in roles)
                kinds = ", ".join(types[role] for role in roles)
                text.append(f"{keyword}({names} : {kinds})")
                operands += roles
    if problem["mask"] != "none":
        text.append(f"mask({problem['mask']})")
    if problem.get("blocks"):
        for transposed in (False, True)[:1 + (problem["direction"]
                                              == "backward")]:
            listed, roles = lists_of(problem, types, transposed)
            text.append(listed)
            operands += roles
    if problem.get("precision"):
        text.append(f"precision({problem['precision']})")
    if problem.get("clauses"):
        text.append(problem["clauses"])
        operands += [f"x{i}" for i in range(len(captures_of(problem)))]
    if problem.get("used"):
        text.append(f"ragged(%cu_q, longest {queries_of(problem)} : "
                    f"{types['cu_q']}) lengths(k %used : {types['used']})")
        operands += ["cu_q", "used"]
        if problem.get("page"):
            text.append(f"pages(%table : {types['table']})")
            operands.append("table")
    elif problem.get("ragged"):
        kinds = f"{types['cu_q']}, {types['cu_k']}"
        text.append(f"ragged(%cu_q, %cu_k, longest {queries_of(problem)}, "
                    f"{keys_of(problem)} : {kinds})")
        operands += ["cu_q", "cu_k"]
    attributes = [f"schedule = #attn.schedule<{problem['schedule']}>"]
    if problem.get("alignment"):
        attributes.append(f"alignment = {problem['alignment']}")
    if problem.get("deterministic"):
        attributes.append("deterministic")
    return f"{' '.join(text)} {{{', '.join(attributes)}}}", operands


def roles_of(problem):
    """Operands and results."""
    if problem["direction"] == "backward":
        return ["do", "q", "k", "v", "o", "lse"], ["q", "k", "v"]
    results = ["o"] + [role for role in ("lse", "low") if problem.get(role)]
    if problem.get("kept"):
        results += ["weights", "block_rows"]
    of_keys = "values" in short_of(problem)
    return ["q", "k"] + ["v"] * (not of_keys), results


def module_of(problem):
    types = types_of(problem)
    inputs, results = roles_of(problem)
    clauses, more = clauses_of(problem, types)
    arguments = ", ".join(f"%{role}: {types[role]}" for role in inputs + more)
    kinds = ", ".join(types[role] for role in results)
    values = ", ".join(f"%0#{i}" for i in range(len(results)))
    return (f"module attributes {{attn.machine = #attn.machine<"
            f"{problem['machine']}>}} {{\n"
            f"  func.func @f({arguments}) -> ({kinds}) {{\n"
            f"    %0:{len(results)} = attn.{problem['direction']} "
            + ", ".join(f"%{role}" for role in inputs) + f" {clauses} : "
            + ", ".join(types[role] for role in inputs) + f" -> {kinds}\n"
            f"    return {values} : {kinds}\n  }}\n}}\n")


def normal_lines(ptx):
    """PTX without what says nothing of its code."""
    numbers = {}

    def number(match):
        return "@" + str(numbers.setdefault(match[0], len(numbers)))

    for line in ptx.splitlines():
        line = line.split("//")[0].strip()
        if not line or line.startswith(".version"):
            continue
        # Names of entries, parameters and arrays, and labels.
        yield re.sub(r"\$L\w+|\b[A-Za-z_]\w*_(?:wgmma|mma_sync)\w*", number,
                     line)


def opcode_of(line):
    """`add.f32` of an instruction; None for a label or a directive."""
    match = re.match(r"(?:@!?%\w+\s+)?([a-z]\w*(?:[.:]+\w+)*)\b", line)
    return match[1] if match else None


def compiled(build, problem):
    """(hash, counts of instructions), or what attn-opt said instead."""
    done = subprocess.run(
        [os.path.join(build, "bin", "attn-opt"), "-",
         "-attn-to-binary=format=isa"],
        input=module_of(problem), capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    texts = re.findall(r'(?:assembly|bin) = "((?:[^"\\]|\\.)*)"', done.stdout)
    ptx = "\n".join(texts).replace("\\0A", "\n").replace("\\09", "\t")
    ptx = ptx.replace('\\22', '"')
    lines = list(normal_lines(ptx))
    opcodes = collections.Counter(filter(None, map(opcode_of, lines)))
    if not opcodes:
        return f"expects PTX, but got {done.stdout[:400]!r}"
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    return [digest, dict(sorted(opcodes.items()))]


def difference(old, new):
    """How counts of instructions changed: `+2 add.f32, -1 bar.sync`."""
    changes = [(new.get(op, 0) - old.get(op, 0), op)
               for op in sorted(set(old) | set(new))]
    return ", ".join(f"{by:+d} {op}" for by, op in changes if by) or (
        "the same instructions in another order or of other registers")


def compare(before, now):
    """Lines that say what differs."""
    for name, result in now.items():
        if isinstance(result, str):
            yield f"{name}: expects PTX, but got\n{result}"
        elif name not in before:
            yield f"{name}: is new"
        elif before[name][0] != result[0]:
            yield f"{name}: {difference(before[name][1], result[1])}"
    for name in before:
        if name not in now:
            yield f"{name}: is gone"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    everything = read_problems()
    problems = everything if arguments.write else shares.of(everything)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda p: compiled(arguments.build, p), problems)
        now = dict(zip(map(name_of, problems), results))
    before = {}
    if os.path.exists(PTX):
        with open(PTX, encoding="utf-8") as f:
            before = json.load(f)
    unseen = {name_of(problem) for problem in everything} - set(now)
    before = {name: one for name, one in before.items() if name not in unseen}
    changed = list(compare(before, now))
    for line in changed:
        print(line)
    failed = any(isinstance(result, str) for result in now.values())
    if arguments.write and not failed:
        lines = [f"{json.dumps(name)}: {json.dumps(result)}"
                 for name, result in now.items()]
        with open(PTX, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(lines) + "\n}\n")
    elif changed:
        print("after a change that is meant to change code: golden.py --write")
    print(f"{len(now)} problems, {len(changed)} differ")
    return int(failed or (bool(changed) and not arguments.write))


if __name__ == "__main__":
    sys.exit(main())
