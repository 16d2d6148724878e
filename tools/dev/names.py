"""Checks that names agree: pass, file, flag and test; schedule, file and
function; constraint and negative test.  Also that no file is too long, that no
source holds what the house forbids, and that no two headers define a type of
one name, as a linker merges what it takes for the same functions of one type.

`names.py [ROOT]`; the exit status is 1 when something disagrees.
"""

import os
import re
import subprocess
import sys

import usage

MOST_LINES = 600
FAMILIES = ("mma_sync", "wgmma", "tcgen05", "fma")
VAGUE = re.compile(
    r"((?i:utils?|misc|common|uncategorized|helpers?))(?=[.A-Z_]|$)")
FORBIDDEN = [
    (re.compile(r"\bllvm::errs\(\)|\bstd::cerr\b"), "prints on its own"),
    (re.compile(r"(?<![\w.>:])(?:std::)?(exit|abort)\("), "ends the process"),
    (re.compile(r"\breport_fatal_error\b"), "ends the process"),
]
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
SOURCE = (".cpp", ".h", ".td", ".def", ".py", ".cmake", ".mlir", ".test")
PASS = re.compile(r'^def (\w+)Pass\s*:\s*(?:Interface)?Pass<"([^"]+)"',
                  re.MULTILINE)


#: A namespace that begins, or one that ends, or a type with a body.
SCOPE = re.compile(
    r"^(?:namespace (?P<begun>[\w:]+) \{|(?P<ended>\}) // namespace|"
    r"(?:enum class|enum|struct|class) (?P<type>\w+)[^;{(]*\{)", re.MULTILINE)


class Tree:
    """The files of a checkout that git knows or would add."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        listed = subprocess.run(
            ["git", "-C", self.root, "ls-files", "-co", "--exclude-standard"],
            capture_output=True, text=True, check=True).stdout.split("\n")
        self.files = sorted(f for f in set(listed)
                            if f and os.path.isfile(self.path(f)))
        self.wrong = []

    def path(self, name):
        return os.path.join(self.root, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def exists(self, name):
        return name in self.files

    def under(self, folder, end=""):
        return [f for f in self.files
                if f.startswith(folder) and f.endswith(end)]

    def expect(self, holds, where, sentence):
        if not holds:
            self.wrong.append(f"{where}: {sentence}")


def kebab(name):
    """SelectSchedule -> select-schedule, TileToNVVM -> tile-to-nvvm."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-",
                  name).lower()


def check_passes(tree):
    for layer in ("Transforms", "Conversion"):
        td = f"include/attn/{layer}/Passes.td"
        if not tree.exists(td):
            continue
        passes = PASS.findall(tree.text(td))
        tree.expect(passes, td, "expects pass definitions, but found none")
        files = {}
        for name, flag in passes:
            if layer == "Conversion":
                file = f"lib/Conversion/{name}/{name}.cpp"
                # A conversion goes from one dialect to another, by its name.
                expected = ("convert-" if "To" in name else "attn-") + kebab(
                    name)
                tests = tree.under(f"test/Conversion/{name}/", ".mlir")
            else:
                file = f"lib/Transforms/{name}.cpp"
                expected = "attn-" + kebab(name)
                tests = [t for t in [f"test/Transforms/{kebab(name)}.mlir"]
                         if tree.exists(t)]
            files[file] = name
            tree.expect(flag == expected, td,
                        f"{name}Pass expects flag -{expected}, but has -{flag}")
            tree.expect(tree.exists(file), td,
                        f"{name}Pass expects a file {file}")
            tree.expect(tests, td, f"{name}Pass expects a test of its name "
                        f"in test/{layer}")
            if not tree.exists(file):
                continue
            tree.expect(f"GEN_PASS_DEF_{name.upper()}PASS" in tree.text(file),
                        file, f"expects to define {name}Pass")
        for file in tree.under(f"lib/{layer}/", ".cpp"):
            if "GEN_PASS_DEF_" in tree.text(file):
                tree.expect(file in files, file,
                            f"defines a pass that {td} has under another name")


def builder_folder(kernel):
    """score_spill_wgmma -> ScoreSpill: the folder of a kernel's schedule."""
    schedule = re.sub(rf"_({'|'.join(FAMILIES)})$", "", kernel)
    return "".join(word.capitalize() for word in schedule.split("_"))


def check_schedules(tree):
    schedules = [os.path.basename(f)[:-4]
                 for f in tree.under("lib/Schedule/Schedules/", ".cpp")]
    for name in schedules:
        file = f"lib/Schedule/Schedules/{name}.cpp"
        tree.expect(re.search(rf"\b{name}\(\)", tree.text(file)), file,
                    f"expects a function {name}()")
    for file in tree.under("lib/Kernels/", ".cpp"):
        name = os.path.basename(file)[:-4]
        if not name[0].islower():
            continue
        tree.expect(any(name == f"{s}_{f}" for s in schedules
                        for f in FAMILIES),
                    file, "expects the name <schedule>_<family>.cpp with a "
                    f"schedule of {', '.join(schedules)}")
        tree.expect(re.search(rf"\b{name}\(", tree.text(file)), file,
                    f"expects a function {name}")
        folder = builder_folder(name)
        tree.expect(file.split("/")[-2] == folder, file,
                    f"expects the folder {folder} of its schedule")


def check_dialect_tests(tree):
    invalid = "test/Dialect/Attn/invalid"
    tests = "".join(tree.text(f) for f in tree.under(invalid))
    for ops in ("include/attn/IR/AttnOps.td", "include/attn/IR/MergeOps.td"):
        if not tree.exists(ops):
            continue
        for part in re.split(r"^def ", tree.text(ops), flags=re.MULTILINE)[1:]:
            named = re.search(r'Op<(?:\w+, )?"(\w+)"', part)
            for number in re.findall(r"^\s*- \(C(\d+)\)", part, re.MULTILINE):
                label = f"{named.group(1)}_c{number}"
                tree.expect(re.search(rf"@{label}(?!\d)", tests), invalid,
                            f"expects a negative test @{label}")
    for tile in ("include/attn/Tile/TileOps.td",
                 "include/attn/Tile/TileRoleOps.td"):
        if not tree.exists(tile):
            continue
        shown = "".join(tree.text(f) for f in tree.under("test/Dialect/Tile/"))
        for mnemonic in re.findall(r'^def \w+\s*:\s*Tile_Op<"(\w+)"',
                                   tree.text(tile), re.MULTILINE):
            tree.expect(f"tile.{mnemonic}" in shown, "test/Dialect/Tile",
                        f"expects a test that shows tile.{mnemonic}")


def check_sources(tree):
    for file in tree.files:
        for part in file.split("/"):
            tree.expect(not VAGUE.search(part), file,
                        f"expects a name for the idea, but got {part}")
        if not file.endswith(SOURCE):
            continue
        lines = tree.text(file).split("\n")
        tree.expect(len(lines) <= MOST_LINES + 1, file,
                    f"expects at most {MOST_LINES} lines, but has {len(lines)}")
        for number, line in enumerate(lines, 1):
            where = f"{file}:{number}"
            if file != "tools/dev/names.py":
                tree.expect(not UNFINISHED.search(line), where,
                            "marks unfinished work")
            if file.startswith("lib/"):
                code = line.split("//")[0]
                for pattern, sentence in FORBIDDEN:
                    tree.expect(not pattern.search(code), where, sentence)


def types_of(text):
    """The qualified names of the types that a header defines."""
    scopes = []
    for found in SCOPE.finditer(text):
        if found["begun"]:
            scopes.append(found["begun"])
        elif found["ended"]:
            scopes[-1:] = []
        else:
            yield "::".join([*scopes, found["type"]])


def check_types(tree):
    """Tests are programs of their own, so two of them may agree."""
    homes = {}
    for file in tree.files:
        if file.endswith(".h"):
            for name in types_of(tree.text(file)):
                homes.setdefault(name, []).append(file)
    for name, files in homes.items():
        mine = [file for file in files if not file.startswith("test/")]
        tree.expect(len(files) == 1 or not mine, files[-1],
                    f"expects a name of its own for {name}, which is also in "
                    f"{files[0]}")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    tree = Tree(sys.argv[1] if len(sys.argv) > 1
                else os.path.join(here, "..", ".."))
    check_passes(tree)
    check_schedules(tree)
    check_dialect_tests(tree)
    check_sources(tree)
    check_types(tree)
    for line in tree.wrong:
        print(line)
    print(f"names: {len(tree.files)} files, {len(tree.wrong)} wrong")
    return 1 if tree.wrong or not tree.files else 0


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
