"""Keeps the documentation true: pasted output, tables, pictures, reference.

In README.md and the pages of docs a block between `<!-- generated: WHAT -->`
and `<!-- end -->` is replaced.  WHAT is `$ command line` (its output is pasted, run in
the repository root with the build's tools on PATH), `file PATH` (its text is),
or the name of a table (doc_tables.py).  Whole files are generated too: pictures
(doc_figures.py, doc_diagrams.py) and the reference of dialects and passes
(doc_reference.py).

In a block of Python that runs with nothing (`<!-- runs with: nothing -->`), a
comment `# -> TEXT` behind a call of print is what it prints: the block is run,
and the comment replaced.  `...` in it stands for anything, and what is written
ends after as many words.

`doc.py [--check] [--build FOLDER] [--file F]`; with --check nothing is written and the
exit status is 1 when a block differs; docs/cells.md is then checked by one part
of ATTN_SHARE.
"""

import argparse
import difflib
import glob
import json
import os
import re
import subprocess
import sys

import cells
import doc_diagrams
import doc_figures
import doc_reference
import doc_sparse
import doc_tables
import machine_probe
import shares

ROOT = machine_probe.ROOT
# Files that are generated whole.
MADE = {
    "docs/figures/arrow.svg": doc_figures.arrow,
    "docs/figures/speed.svg": doc_figures.speed,
    **{f"docs/reference/{name}": make
       for name, make in doc_reference.PAGES.items()},
}
BLOCK = re.compile(
    r"(<!-- generated: (?P<what>.+?) -->\n)(?P<body>.*?)(<!-- end -->)",
    re.DOTALL)


def pages():
    """The pages with blocks: README.md, CONTRIBUTING.md, docs/*.md."""
    found = [os.path.basename(path) for path in
             glob.glob(os.path.join(ROOT, "*.md"))]
    found += [f"docs/{os.path.basename(path)}" for path in
              glob.glob(os.path.join(ROOT, "docs", "*.md"))]
    return sorted(found)


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


#: What a block of a kind of file says it is in, where that is not its suffix.
LANGUAGE_OF = {"txt": "text"}


def quote(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        kind = name.rsplit(".", 1)[-1]
        return f"```{LANGUAGE_OF.get(kind, kind)}\n{f.read()}```\n"


def generate(build, what):
    if what.startswith("$ "):
        return paste(build, what[2:])
    if what.startswith("file "):
        return quote(what[5:])
    if what not in doc_tables.TABLES:
        sys.exit(f"expects one of the tables {', '.join(doc_tables.TABLES)} or "
                 f"a command, but got {what}")
    return doc_tables.TABLES[what](lambda command: run(build, command))


def made(build):
    """What makes each file that is generated whole."""
    def told(command):
        return run(build, command)

    return {**MADE, **doc_diagrams.pages(told), **doc_sparse.pages(told),
            "docs/cells.md": lambda: cells.page(build)}


def renewed(build, name, old, makers):
    """What a file should hold, and how many generated parts it has."""
    if name in makers:
        return makers[name](), 1
    new = BLOCK.sub(lambda found: found.group(1) + generate(
        build, found.group("what")) + found.group(4), old)
    new = EXAMPLE.sub(lambda found: with_answers(build, found), new)
    return new, len(BLOCK.findall(old))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--file", action="append",
                        help="instead of the files that are kept")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    drifted = blocks = 0
    makers = made(build)
    # The cross table asks as much as all other pages: it has its day.
    if (arguments.check and not arguments.file
            and not shares.has("docs/cells.md")):
        del makers["docs/cells.md"]
    for name in arguments.file or dict.fromkeys([*pages(), *makers]):
        path = os.path.join(ROOT, name)
        old = ""
        if name not in makers or os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                old = f.read()
        new, parts = renewed(build, name, old, makers)
        blocks += parts
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
