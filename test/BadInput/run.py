"""Feeds wrong files and wrong command lines to the tools: `run.py BIN`.

Every case must end with exit status 1 and the message it names, never with a
crash, a sanitizer report or a time-out.  A wrong file must be blamed at a
place: file, line and column.  Three sources of cases:

- Inputs/*.mlir: a first line `// TOOL ARGUMENTS` (the file is appended) and a
  second line `// error: MESSAGE`;
- `generated`: files that are no text to keep in a repository;
- commands.txt: a command line, and below it, indented, its message.
"""

import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST_FILES, LEAST_COMMANDS = 40, 20
SECONDS = 60
CRASH = re.compile(r"Stack dump|AddressSanitizer|runtime error:|UNREACHABLE|"
                   r"Assertion .* failed|LLVM ERROR|terminate called")
DEEP = 100000


def generated(folder):
    """(name, command, file, message): made here, for nobody would read them."""
    cases = [
        ("garbage bytes", bytes(i * 167 % 251 for i in range(4096)),
         "error: "),
        ("zero bytes", b"\0" * 512, "error: "),
        ("a truncated bytecode file", b"ML\xefR\x06MLIR22\0" + b"\x07" * 64,
         "error: "),
        ("invalid UTF-8 in a string", b'module attributes {a = "\xff\xfe} {}',
         "error: "),
        ("an integer of 10000 digits", b"module attributes {a = " +
         b"9" * 10000 + b" : i64} {}", "integer constant out of range"),
        ("deep regions", b"module {\n" * DEEP + b"}\n" * DEEP, "nested"),
        ("deep attributes", b"module attributes {a = " + b"[" * DEEP +
         b"]" * DEEP + b"} {}", "nested"),
        ("deep types", b"func.func private @f(" + b"tuple<" * DEEP +
         b">" * DEEP + b")", "nested"),
        ("deep locations", b"module {} loc(" + b'callsite("a" at ' * DEEP +
         b'"b"' + b")" * DEEP + b")", "nested"),
        ("an endless identifier", b"%" + b"a" * 1000000,
         "expected operation"),
        ("an unclosed string", b'"' + b"a" * 1000, "error: "),
        ("half a UTF-16 file", "module {}".encode("utf-16"), "error: "),
    ]
    for name, content, message in cases:
        path = os.path.join(folder, name.replace(" ", "_") + ".mlir")
        with open(path, "wb") as f:
            f.write(content)
        yield name, ["attn-opt", path], path, message


def written():
    for path in sorted(glob.glob(os.path.join(HERE, "Inputs", "*.mlir"))):
        with open(path, encoding="utf-8") as f:
            command, message = f.readline(), f.readline()
        if not (command.startswith("// attn-") and
                message.startswith("// error: ")):
            sys.exit(f"{path}: expects a command and a message on top")
        yield (os.path.basename(path), shlex.split(command[3:]) + [path], path,
               message[3:].strip())


def commands():
    path = os.path.join(HERE, "commands.txt")
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip() for line in f
                 if line.strip() and not line.startswith("#")]
    if len(lines) % 2:
        sys.exit(f"{path}: expects pairs of lines, but got {len(lines)} lines")
    for command, message in zip(lines[::2], lines[1::2]):
        if not message.startswith("  "):
            sys.exit(f"{path}: expects an indented message after {command}")
        yield command, shlex.split(command), None, message.strip()


def judge(bin_folder, command, path, message):
    """Nothing if the tool did as it should; else what it did."""
    tool = os.path.join(bin_folder, command[0])
    try:
        done = subprocess.run([tool, *command[1:]], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS, cwd=HERE,
                              check=False)
    except subprocess.TimeoutExpired:
        return f"ran longer than {SECONDS} s"
    text = done.stderr.decode("utf-8", "replace")
    if CRASH.search(text) or done.returncode < 0:
        return f"crashed, status {done.returncode}:\n{text[-2000:]}"
    if done.returncode != 1:
        return f"expects exit status 1, but got {done.returncode}:\n{text}"
    if path is None:
        return None if message in text else (
            f"expects the message\n  {message}\nbut got\n  {text[:2000]}")
    place = re.compile(re.escape(path) + r":\d+:\d+: error: ")
    for line in text.split("\n"):
        if place.search(line) and message in line:
            return None
    return (f"expects, at a place of the file,\n  {message}\n"
            f"but got\n  {text[:2000]}")


def main():
    if len(sys.argv) != 2:
        sys.exit("expects one argument, the folder of the tools")
    bin_folder = sys.argv[1]
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        files = [*written(), *generated(scratch)]
        lines = list(commands())
        for name, command, path, message in files + lines:
            fault = judge(bin_folder, command, path, message)
            if fault:
                failed += 1
                print(f"{name}: {fault}")
    print(f"{len(files)} wrong files, {len(lines)} wrong command lines, "
          f"{failed} not handled")
    if len(files) < LEAST_FILES or len(lines) < LEAST_COMMANDS:
        print(f"expects at least {LEAST_FILES} files and {LEAST_COMMANDS} "
              "command lines")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
