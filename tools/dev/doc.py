"""Keeps pasted output and generated tables of Markdown files true.

A block between `<!-- generated: WHAT -->` and `<!-- end -->` is replaced.
WHAT is `$ command line` (its output is pasted, run in the repository root with
the build's tools on PATH), `file PATH` (its text is), or the name of a table
below.

In a block of Python that runs with nothing (`<!-- runs with: nothing -->`), a
comment `# -> TEXT` behind a call of print is what it prints: the block is run,
and the comment replaced.  `...` in it stands for anything, and what is written
ends after as many words.

`doc.py [--check] [--build FOLDER] [--file F]`; with --check nothing is written and the
exit status is 1 when a block differs.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys

import machine_probe

ROOT = machine_probe.ROOT
FILES = ["README.md", os.path.join("docs", "using.md")]
BLOCK = re.compile(
    r"(<!-- generated: (?P<what>.+?) -->\n)(?P<body>.*?)(<!-- end -->)",
    re.DOTALL)
DTYPES = ["bf16", "f16", "f32", "f8e4m3"]


def run(build, command):
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join(
        [os.path.join(build, "bin"), environment["PATH"]])
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + command],
                          cwd=ROOT, env=environment, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"$ {command}\n{done.stderr}exit status {done.returncode}")
    return done.stdout.rstrip("\n")


def paste(build, command):
    return f"```console\n$ {command}\n{run(build, command)}\n```\n"


def machines(build):
    """Names of the machines, in the order of their table."""
    lines = run(build, "attn-plan --machines").split("\n")
    return [line.split()[0] for line in lines[1:] if line.strip()]


def works(build):
    """What compiles to a kernel: schedule, instructions, types, machines."""
    cells, asked = {}, set()
    for machine in machines(build):
        for dtype in DTYPES:
            report = json.loads(run(
                build, f"attn-plan --machine {machine} --dtype {dtype}"
                " --batch 1 --heads 16 --kv-heads 16 --queries 4096"
                " --keys 4096 --head-dim 128 --json"))
            for plan in report["plans"]:
                kernel = plan.get("kernel") or plan.get("on_request") or ""
                schedule = plan["schedule"]
                if "on_request" in plan:
                    asked.add(schedule)
                family = kernel[len(schedule) + 1:] if kernel else ""
                cell = cells.setdefault((schedule, family), {})
                cell.setdefault(machine, [])
                if dtype not in cell[machine]:
                    cell[machine].append(dtype)
    rows = ["| schedule | kernel | types | machines |", "|---|---|---|---|"]
    for (schedule, family), by_machine in sorted(
            cells.items(), key=lambda item: (item[0][1] == "", item[0])):
        groups = {}
        for machine, dtypes in by_machine.items():
            groups.setdefault(" ".join(dtypes), []).append(machine)
        for dtypes, names in groups.items():
            kernel = f"`{family}`" if family else "planned and priced only"
            if family and schedule in asked:
                kernel += ", if asked for"
            rows.append(f"| `{schedule}` | {kernel} | {dtypes} | "
                        f"{', '.join(f'`{n}`' for n in names)} |")
    return "\n".join(rows) + "\n"


TABLES = {"works": works}

EXAMPLE = re.compile(
    r"(?P<head><!-- runs with: (?P<needs>[\w ]+) -->\n```python\n)"
    r"(?P<code>.*?)(?=```)", re.DOTALL)
ANSWER = re.compile(r"^(?P<code>.*?# -> )(?P<text>.*)$")
# Runs a program and says what each line has printed.
RECORDER = """
import builtins, io, json, sys
lines, actual = {}, print
def recorded(*values, **named):
    text = io.StringIO()
    actual(*values, **{**named, "file": text})
    number = sys._getframe(1).f_lineno
    lines[number] = lines.get(number, "") + text.getvalue()
builtins.print = recorded
exec(compile(sys.stdin.read(), "the example", "exec"), {})
actual(json.dumps(lines))
"""


def printed(build, code):
    """What the lines of a program print, by their numbers."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    environment.setdefault("ATTN_LIBRARY",
                           os.path.join(build, "lib", "libattn.so"))
    done = subprocess.run([machine_probe.test_python(), "-c", RECORDER],
                          input=code, env=environment, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{code}\n{done.stderr}exit status {done.returncode}")
    return {int(number): text for number, text in
            json.loads(done.stdout.splitlines()[-1]).items()}


def answered(old, new):
    """The text of a comment when that is printed."""
    new = " ".join(new.split())
    pattern = ".*".join(re.escape(part) for part in old.split("..."))
    if re.fullmatch(pattern, new):
        return old
    if "..." not in old:
        return new
    words = new.split()[:max(1, len(old.split("...")[0].split()))]
    return " ".join(words) + " ..."


def with_answers(build, found):
    """An example with the comments that are true."""
    lines = found["code"].split("\n")
    if not any(ANSWER.match(line) for line in lines):
        return found[0]
    if found["needs"] != "nothing":
        sys.exit(f"expects '# ->' only where a block runs with nothing, but "
                 f"got it in one that needs {found['needs']}")
    told = printed(build, found["code"])
    for number, line in enumerate(lines, 1):
        answer = ANSWER.match(line)
        if answer and number not in told:
            sys.exit(f"expects a line that prints, but got: {line}")
        if answer:
            lines[number - 1] = answer["code"] + answered(answer["text"],
                                                          told[number])
    return found["head"] + "\n".join(lines)


def quote(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f"```{name.rsplit('.', 1)[-1]}\n{f.read()}```\n"


def generate(build, what):
    if what.startswith("$ "):
        return paste(build, what[2:])
    if what.startswith("file "):
        return quote(what[5:])
    if what not in TABLES:
        sys.exit(f"expects one of the tables {', '.join(TABLES)} or a command, "
                 f"but got {what}")
    return TABLES[what](build)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--file", action="append",
                        help="instead of the files that are kept")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    drifted = blocks = 0
    for name in arguments.file or FILES:
        path = os.path.join(ROOT, name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = BLOCK.sub(lambda found: found.group(1) + generate(
            build, found.group("what")) + found.group(4), old)
        new = EXAMPLE.sub(lambda found: with_answers(build, found), new)
        blocks += len(BLOCK.findall(old))
        if new == old:
            continue
        drifted += 1
        if arguments.check:
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), name,
                name + " (generated)"))
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
    print(f"doc: {blocks} blocks, {drifted} files differ")
    return 1 if not blocks or (arguments.check and drifted) else 0


if __name__ == "__main__":
    sys.exit(main())
