"""Checks that includes and imports never point back.

The table is the one of the design: a layer may include itself, the layers
named here (and those they may include), and the outside libraries named.
Within a layer the headers of its folders make no circle, and neither do the
modules of the Python package, also where a function imports.
`layers.py [ROOT]`; the exit status is 1 when something points back.
"""

import ast
import os
import re
import sys

import usage

MLIR = {"mlir", "llvm"}
# layer: (layers it may include, outside libraries it may include)
LAYERS = {
    "Machine": (set(), set()),
    "Schedule": ({"Machine"}, set()),
    "Report": ({"Schedule"}, {"llvm"}),
    "IR": ({"Schedule"}, MLIR),
    "Tile": ({"Machine"}, MLIR),
    "Kernels": ({"Tile", "Schedule", "IR"}, MLIR),
    "Host": ({"Tile"}, MLIR),
    "Interpreter": ({"Host", "IR"}, MLIR),
    "Conversion": ({"IR", "Tile", "Kernels", "Interpreter"}, MLIR),
    "Transforms": ({"IR", "Tile", "Kernels", "Interpreter", "Conversion"},
                   MLIR),
    "TransformOps": ({"Transforms"}, MLIR),
    "Pipelines": ({"Conversion", "Transforms", "TransformOps", "Interpreter"},
                  MLIR),
    "Runtime": ({"Machine"}, set()),
    "DialectC": ({"Pipelines", "attn-c"}, MLIR),
    "attn-c": (set(), {"mlir"}),
    "CAPI": ({"Pipelines", "Report", "Runtime", "attn-c"}, MLIR),
}
# The oracle must not be able to share a mistake with what it judges.
ALONE = re.compile(r"(^|/)Oracle\w*\.(h|cpp)$")
FOLDER = re.compile(r'^#include "(\w+)/\w+\.h"', re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def allowed(layer):
    """All layers that `layer` may include, itself too."""
    seen, todo = {layer}, [layer]
    while todo:
        for below in LAYERS[todo.pop()][0]:
            if below not in seen:
                seen.add(below)
                todo.append(below)
    return seen


def layer_of(path):
    """The layer of a file, or None for a file outside the table."""
    parts = path.split("/")
    if parts[:2] == ["include", "attn-c"]:
        return "attn-c"
    if parts[:2] == ["include", "attn"]:
        return parts[2] if len(parts) > 3 else None
    if parts[0] == "lib":
        return parts[1] if len(parts) > 2 else None
    return None


def target_of(include):
    """(layer, library) that an include line names."""
    parts = include.split("/")
    if parts[0] == "attn-c":
        return "attn-c", None
    if parts[0] == "attn":
        return (parts[1] if len(parts) > 2 else None), None
    if parts[0] in ("mlir", "mlir-c"):
        return None, "mlir"
    if parts[0] in ("llvm", "llvm-c"):
        return None, "llvm"
    return None, None


def check_file(root, path):
    layer = layer_of(path)
    if layer is None:
        return []
    if layer not in LAYERS:
        return [f"{path}:1: expects one of the layers {', '.join(LAYERS)}, "
                f"but got {layer}"]
    wrong = []
    with open(os.path.join(root, path), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            below, library = target_of(found.group(2))
            where = f"{path}:{number}: "
            if below is not None and below not in allowed(layer):
                wrong.append(where + f"{layer} may not include {below}")
            if library is not None and library not in LAYERS[layer][1]:
                wrong.append(where + f"{layer} may not include {library}")
            if ALONE.search(path) and (found.group(1) == '"' and not
                                       ALONE.search(found.group(2))):
                wrong.append(where + "the oracle includes nothing of ours")
    return wrong


def circles(arrows):
    """The groups of names that reach each other, each sorted."""
    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for name in arrows.get(todo.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
        return seen

    behind = {name: reached(name) for name in arrows}
    return sorted({tuple(sorted(b for b in arrows
                                if b in behind[a] and a in behind[b]))
                   for a in arrows if a in behind[a]})


def folder_arrows(root, layer):
    """folder: folders of the same layer that its headers include."""
    arrows = {}
    top = os.path.join(root, "lib", layer)
    for place, _, names in os.walk(top):
        folder = os.path.relpath(place, top).split(os.sep)[0]
        for name in names:
            if not name.endswith(".h") or folder == ".":
                continue
            with open(os.path.join(place, name), encoding="utf-8") as f:
                below = {m.group(1) for m in FOLDER.finditer(f.read())}
            arrows.setdefault(folder, set()).update(below - {folder, "attn"})
    return arrows


def import_arrows(root):
    """module: modules of the package that it imports, anywhere in it."""
    package = os.path.join(root, "python", "attn")
    modules = {}
    for place, _, names in os.walk(package):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(place, name)
                parts = os.path.relpath(path, package)[:-3].split(os.sep)
                modules[".".join(["attn"] + parts)
                        .removesuffix(".__init__")] = path
    return {module: imports_of(module, path, modules) - {module}
            for module, path in modules.items()}


def imports_of(module, path, modules):
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read(), path)
    base = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = base.split(".")[:len(base.split(".")) - node.level + 1]
            source = ".".join((start if node.level else []) +
                              ([node.module] if node.module else []))
            inside = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name for name in inside if name in modules} or {source}
    return found & set(modules)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../..")
    wrong, files = [], 0
    for top in ("include", "lib"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".h", ".cpp", ".c", ".def")):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    wrong += check_file(root, path)
                    files += 1
    for layer in LAYERS:
        wrong += [f"lib/{layer}: headers of the folders {', '.join(circle)} "
                  "include each other"
                  for circle in circles(folder_arrows(root, layer))]
    wrong += [f"python/attn: the modules {', '.join(circle)} import each other"
              for circle in circles(import_arrows(root))]
    for line in wrong:
        print(line)
    print(f"layers: {files} files, {len(wrong)} wrong")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
