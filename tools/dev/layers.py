"""Checks that includes follow the layers: an arrow never points back.

The table is the one of the design: a layer may include itself, the layers
named here (and those they may include), and the outside libraries named.
`layers.py [ROOT]`; the exit status is 1 when something points back.
"""

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
    "Kernels": ({"Tile", "Schedule"}, MLIR),
    "Interpreter": ({"Tile"}, MLIR),
    "Conversion": ({"IR", "Tile", "Kernels", "Interpreter"}, MLIR),
    "Transforms": ({"IR", "Tile", "Kernels", "Interpreter", "Conversion"},
                   MLIR),
    "TransformOps": ({"Transforms"}, MLIR),
    "Pipelines": ({"Conversion", "Transforms", "TransformOps", "Interpreter"},
                  MLIR),
    "Runtime": ({"Machine"}, set()),
    "attn-c": (set(), set()),
    "CAPI": ({"Pipelines", "Report", "Runtime", "attn-c"}, MLIR),
}
# The oracle must not be able to share a mistake with what it judges.
ALONE = re.compile(r"(^|/)Oracle\w*\.(h|cpp)$")
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
    for line in wrong:
        print(line)
    print(f"layers: {files} files, {len(wrong)} wrong")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    usage.show(__doc__)
    sys.exit(main())
