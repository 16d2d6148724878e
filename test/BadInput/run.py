"""Feeds wrong files and wrong command lines to the tools: `run.py BIN`.

Every case must end with exit status 1 and the message it names, never with a
crash, a sanitizer report or a time-out.  A wrong file must be blamed at a
place: file, line and column.  Three sources of cases:

- Inputs/*.mlir: a first line `// TOOL ARGUMENTS` (the file is appended), a
  second `// error: MESSAGE`, and maybe a third `// note: MESSAGE`;
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
         ""),
        ("a zero byte in a name", b"func\0.func @f()", ""),
        ("a truncated bytecode file", b"ML\xefR\x06MLIR22\0" + b"\x07" * 64,
         ""),
        ("invalid UTF-8 in a string", b'module attributes {a = "\xff\xfe} {}',
         ""),
        ("an integer of 10000 digits", b"module attributes {a = " +
         b"9" * 10000 + b" : i64} {}", "integer constant out of range"),
        ("deep regions", b"module {\n" * DEEP + b"}\n" * DEEP, "nested brackets"),
        ("deep attributes", b"module attributes {a = " + b"[" * DEEP +
         b"]" * DEEP + b"} {}", "nested brackets"),
        ("deep types", b"func.func private @f(" + b"tuple<" * DEEP +
         b">" * DEEP + b")", "nested brackets"),
        ("deep locations", b"module {} loc(" + b'callsite("a" at ' * DEEP +
         b'"b"' + b")" * DEEP + b")", "nested brackets"),
        ("an endless identifier", b"%" + b"a" * 1000000,
         "expected '='"),
        ("an unclosed string", b'"' + b"a" * 1000, "expected"),
        ("half a UTF-16 file", "module {}".encode("utf-16"), ""),
    ]
    for name, content, message in cases:
        path = os.path.join(folder, name.replace(" ", "_") + ".mlir")
        with open(path, "wb") as f:
            f.write(content)
        for tool in "attn-opt", "attn-run":
            yield f"{tool} {name}", [tool, path], path, ["error: " + message]


def written():
    for path in sorted(glob.glob(os.path.join(HERE, "Inputs", "*.mlir"))):
        with open(path, encoding="utf-8") as f:
            command, *rest = [f.readline().strip() for _ in range(3)]
        messages = [line[3:] for line in rest
                    if line.startswith(("// error: ", "// note: "))]
        if not (command.startswith("// attn-") and messages):
            sys.exit(f"{path}: expects a command and a message on top")
        yield (os.path.basename(path), shlex.split(command[3:]) + [path], path,
               messages)


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
        yield command, shlex.split(command), None, [message.strip()]


def matches(line, path, message):
    """Whether a line of output is that message, at a place of the file."""
    if path is None:
        return message in line
    kind, _, sentence = message.partition(": ")
    place = re.match(re.escape(path) + rf":\d+:\d+: {kind}: ", line)
    return bool(place) and sentence in line[place.end():]


def judge(bin_folder, command, path, messages):
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
    for message in messages:
        if not any(matches(line, path, message) for line in text.split("\n")):
            return f"expects\n  {message}\nbut got\n  {text[:2000]}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit("expects one argument, the folder of the tools")
    bin_folder = os.path.abspath(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        files = [*written(), *generated(scratch)]
        lines = list(commands())
        for name, command, path, messages in files + lines:
            fault = judge(bin_folder, command, path, messages)
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
