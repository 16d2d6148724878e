"""Writes the boilerplate of a new thing, with names that agree.

    new.py schedule NAME            a file in lib/Schedule/Schedules
    new.py kernel SCHEDULE_FAMILY   a file in lib/Kernels
    new.py pass NameInCamelCase     a definition, a file and a test

What it cannot know is left as an error of the compiler, never as an empty body.
"""

import os
import sys

import names
from machine_probe import ROOT
import usage


def banner(file, about):
    start = f"//===- {os.path.basename(file)} - {about} "
    return start + "-" * (74 - len(start)) + "===//\n"


def write(file, text):
    path = os.path.join(ROOT, file)
    if os.path.exists(path):
        sys.exit(f"expects a new name, but {file} is there")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    print(file)


def new_schedule(name):
    file = f"lib/Schedule/Schedules/{name}.cpp"
    write(file, banner(file, "what stays, what streams") + f"""
#include "attn/Schedule/Registry.h"

namespace attn::schedules {{
ScheduleKind {name}() {{
  return say what it is; // flash.cpp shows how
}}
}} // namespace attn::schedules
""")


def new_kernel(name):
    file = f"lib/Kernels/{names.builder_folder(name)}/{name}.cpp"
    write(file, banner(file, "the builder") + f"""
#include "attn/Kernels/Kernels.h"

#include "Build/TileBuilder.h"

using namespace mlir;

namespace attn {{
tile::KernelOp {name}(OpBuilder &builder, Location loc,
                      const KernelRequest &request) {{
  return build it; // flash_mma_sync.cpp shows how
}}
}} // namespace attn
""")


def new_pass(name):
    flag = "attn-" + names.kebab(name)
    file = f"lib/Transforms/{name}.cpp"
    write(file, banner(file, "what it does") + f"""
#include "attn/Transforms/Passes.h"

namespace attn {{
#define GEN_PASS_DEF_{name.upper()}PASS
#include "attn/Transforms/Passes.h.inc"
}} // namespace attn

using namespace mlir;

namespace {{
struct {name}Pass : attn::impl::{name}PassBase<{name}Pass> {{
  using {name}PassBase::{name}PassBase;

  void runOnOperation() override {{ say what it does; }}
}};
}} // namespace
""")
    write(f"test/Transforms/{names.kebab(name)}.mlir",
          f"// RUN: attn-opt %s -{flag} | FileCheck %s\n\n"
          "// CHECK: what it does\n")
    td = "include/attn/Transforms/Passes.td"
    with open(os.path.join(ROOT, td), encoding="utf-8") as f:
        text = f.read()
    end = text.rindex("#endif")
    definition = f"""def {name}Pass : Pass<"{flag}", "mlir::ModuleOp"> {{
  let summary = "";
  let description = [{{
    Before: . After: .
  }}];
}}

"""
    with open(os.path.join(ROOT, td), "w", encoding="utf-8") as f:
        f.write(text[:end] + definition + text[end:])
    print(f"{td}\nand list {name}.cpp in lib/Transforms/CMakeLists.txt")


KINDS = {"schedule": new_schedule, "kernel": new_kernel, "pass": new_pass}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    KINDS[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    usage.show(__doc__)
    main()
