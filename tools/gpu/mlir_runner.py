#!/usr/bin/env python3
"""Host code of -attn-to-binary, through upstream's tools, on a GPU: is it right?

    mlir_runner.py [--steps compile,run,bundle] [--out FOLDER] [--machine h100_sxm]
                   [--only REGEX] [--tools FOLDER] [--libraries FOLDER[:FOLDER...]] [--attn FOLDER]

`compile` writes modules and inputs to --out: attn-opt lowers attention, upstream's
mlir-opt the rest.  `run` starts mlir-runner on each module and compares what it
writes with fp64.  They are the steps unless said, and may be run on different
machines.  `bundle` is for one without MLIR: it writes OUT/mlir.tar.xz, which
unpacked is both --tools and --libraries of `run`.

    --tools      has mlir-opt and mlir-runner; /usr/lib/llvm-22/bin unless said
    --libraries  has their shared libraries, where the loader does not find them
    --attn       a build folder: bin/attn-opt, lib/libattn_runtime.so, test/mgpu

One line per case: the largest error over what is allowed, or why there is none.
The exit status is 1 unless all are right.  It needs nothing but Python.
"""

import argparse
import array
import dataclasses
import json
import math
import operator
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

#: What rounding may cost, as a part of the sum of |p v|: that of P and of O.
ALLOWED = {"bf16": 2**-7, "f16": 2**-10, "f32": 2**-17}
LSE_ALLOWED = 1e-4
CODES = {"bf16": "H", "f16": "H", "f32": "f"}
#: What upstream's documentation tells to run on host code, but for the user's
#: own kernels.
HOST = ("func.func(gpu-async-region),expand-strided-metadata,convert-scf-to-cf,"
        "lower-affine,convert-arith-to-llvm,gpu-to-llvm,"
        "reconcile-unrealized-casts")
THEIRS = ("gpu.module(convert-gpu-to-nvvm,reconcile-unrealized-casts),"
          "nvvm-attach-target{chip=sm_90},gpu-module-to-binary{format=isa},")
#: Libraries that LLVM names and mlir-runner never calls, which are large: empty
#: ones do, with the data that the loader asks for.
UNUSED = {"libz3.so": "int unused;", "libicudata.so": "char icudt72_dat[64];"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One module.  `form` says where arrays lie: memref, device, host."""

    name: str
    form: str
    type: str
    rows: int = 200
    heads: int = 4
    kv_heads: int = 4
    dim: int = 64
    causal: bool = False
    lse: bool = False
    schedule: str = ""
    #: What the binary must hold.
    holds: str = ""
    dynamic: bool = False
    rounds: int = 1
    #: The module has a kernel of its own, which doubles what attention gives.
    doubles: bool = False


MMA_SYNC = "flash, query = 64, key = 64, stages = 2, warps = 4"
CASES = [
    Case("memref-wgmma", "memref", "bf16", rows=320, kv_heads=2, causal=True,
         lse=True, schedule="flash", holds="flash_wgmma"),
    Case("memref-mma-sync", "memref", "bf16", kv_heads=1, lse=True,
         schedule=MMA_SYNC, holds="flash_mma_sync"),
    Case("memref-dynamic", "memref", "f16", kv_heads=2, causal=True, lse=True,
         schedule="score_spill", holds="score_spill", dynamic=True),
    Case("memref-streamed", "memref", "bf16", rows=77,
         schedule="streamed_query", holds="streamed_query"),
    Case("memref-cluster", "memref", "bf16", rows=300, heads=2, kv_heads=1,
         dim=512, lse=True, schedule="column_split, cluster = 2",
         holds="column_split_wgmma"),
    Case("memref-wide", "memref", "bf16", rows=130, heads=2, kv_heads=2, dim=512,
         causal=True, schedule="output_spill", holds="output_spill"),
    Case("memref-beside-others", "memref", "f16", doubles=True,
         schedule=MMA_SYNC, holds="twice"),
    Case("host-f32", "host", "f32", kv_heads=2, causal=True, lse=True,
         holds="tf32x3"),
    Case("host-bf16", "host", "bf16", rows=320, kv_heads=2, causal=True,
         schedule="flash", holds="flash_wgmma"),
    Case("host-rounds", "host", "f16", rows=64, rounds=2),
    Case("device-f32", "device", "f32", kv_heads=2, lse=True, holds="tf32x3"),
    Case("device-bf16", "device", "bf16", rows=320, causal=True, lse=True,
         schedule="flash", holds="flash_wgmma"),
    Case("device-rounds", "device", "f16", rows=64, rounds=3),
]


# -- Modules ------------------------------------------------------------------

def shape(case, role):
    """What an array is, as between the brackets of a type."""
    rows = "?" if case.dynamic else str(case.rows)
    heads = case.heads if role in ("q", "o", "lse") else case.kv_heads
    if role == "lse":
        return f"1x{heads}x{rows}xf32"
    return f"1x{heads}x{rows}x{case.dim}x{case.type}"


def attention(case):
    """@attend, on memrefs or tensors."""
    kind = "memref" if case.form == "memref" else "tensor"
    q, k, lse = (f"{kind}<{shape(case, role)}>" for role in ("q", "k", "lse"))
    mask = " mask(causal)" if case.causal else ""
    types = f"{q}, {k}, {k}"
    outs = [q] + [lse] * case.lse
    if kind == "memref":
        arguments = ", ".join(f"%o{i}: {t}" for i, t in enumerate(outs))
        names = ", ".join(f"%o{i}" for i in range(len(outs)))
        return (f"func.func @attend(%q: {q}, %k: {k}, %v: {k}, {arguments}) {{\n"
                f"  attn.forward %q, %k, %v{mask} outs({names} : "
                f"{', '.join(outs)}) : {types}\n  return\n}}\n")
    results = ", ".join(outs)
    names = ", ".join(f"%o{i}" for i in range(len(outs)))
    if case.rounds == 1:
        return (f"func.func @attend(%q: {q}, %k: {k}, %v: {k}) -> ({results}) {{\n"
                f"  {names} = attn.forward %q, %k, %v{mask} : {types} -> {results}\n"
                f"  return {names} : {results}\n}}\n")
    return f"""func.func @attend(%q: {q}, %k: {k}, %v: {k}) -> ({q}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {case.rounds} : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> {q} {{
    %o = attn.forward %x, %k, %v{mask} : {types} -> {q}
    scf.yield %o : {q}
  }}
  return %last : {q}
}}
"""


class Main:
    """@main, which reads inputs, calls @attend and writes results."""

    def __init__(self, case):
        self.case, self.lines = case, []

    def add(self, line):
        self.lines.append("  " + line)

    def allocate(self, name, role, op):
        rows = "(%rows)" if self.case.dynamic else "()"
        self.add(f"%{name} = {op} {rows} : memref<{shape(self.case, role)}>")

    def move(self, verb, number, name, role):
        type_ = "f32" if role == "lse" else self.case.type
        self.add(f"%{verb}{number} = memref.cast %{name} : "
                 f"memref<{shape(self.case, role)}> to memref<*x{type_}>")
        self.add(f"call @{verb}_{type_}(%n{number}, %{verb}{number}) : "
                 f"(index, memref<*x{type_}>) -> ()")

    def copy(self, to, source, role):
        type_ = f"memref<{shape(self.case, role)}>"
        self.add(f"gpu.memcpy %{to}, %{source} : {type_}, {type_}")

    def text(self):
        case = self.case
        outputs = [("o", "o")] + [("lse", "lse")] * case.lse
        self.add(f"%rows = arith.constant {case.rows} : index")
        for number in range(3):
            self.add(f"%n{number} = arith.constant {number} : index")
        for number, (name, role) in enumerate(
                [("q", "q"), ("k", "k"), ("v", "k")]):
            self.allocate("host_" + name, role, "memref.alloc")
            self.move("read", number, "host_" + name, role)
            if case.form != "host":
                self.allocate(name, role, "gpu.alloc ")
                self.copy(name, "host_" + name, role)
        if case.form == "memref":
            self.call_on_memrefs(outputs)
        else:
            self.call_on_tensors(outputs)
        for number, (name, role) in enumerate(outputs):
            if case.form != "host":
                self.allocate("host_" + name, role, "memref.alloc")
                self.copy("host_" + name, name, role)
                self.add(f"gpu.dealloc %{name} : memref<{shape(case, role)}>")
            self.move("write", number, "host_" + name, role)
        self.add("return")
        return "func.func @main() {\n" + "\n".join(self.lines) + "\n}\n"

    def call_on_memrefs(self, outputs):
        case = self.case
        for name, role in outputs:
            self.allocate(name, role, "gpu.alloc ")
        arguments = [("q", "q"), ("k", "k"), ("v", "k")] + outputs
        names = ", ".join("%" + name for name, _ in arguments)
        types = ", ".join(f"memref<{shape(case, role)}>" for _, role in arguments)
        self.add(f"call @attend({names}) : ({types}) -> ()")
        if case.doubles:
            self.add("%c1 = arith.constant 1 : index")
            self.add(f"%heads = arith.constant {case.heads} : index")
            self.add(f"%dim = arith.constant {case.dim} : index")
            self.add("gpu.launch_func @attn_kernels::@twice blocks in (%heads, "
                     "%rows, %c1) threads in (%dim, %c1, %c1) args(%o : "
                     f"memref<{shape(case, 'o')}>)")

    def call_on_tensors(self, outputs):
        case = self.case
        prefix = "host_" if case.form == "host" else ""
        for name, role in [("q", "q"), ("k", "k"), ("v", "k")]:
            self.add(f"%{name}_t = bufferization.to_tensor %{prefix}{name} restrict "
                     f"writable : memref<{shape(case, role)}> to "
                     f"tensor<{shape(case, role)}>")
        names = ", ".join(f"%{name}_t" for name, _ in outputs)
        inputs = ", ".join(f"tensor<{shape(case, role)}>" for role in "qkk")
        results = ", ".join(f"tensor<{shape(case, role)}>" for _, role in outputs)
        self.add(f"{names} = call @attend(%q_t, %k_t, %v_t) : "
                 f"({inputs}) -> ({results})")
        for name, role in outputs:
            self.add(f"%{prefix}{name} = bufferization.to_buffer %{name}_t : "
                     f"tensor<{shape(case, role)}> to memref<{shape(case, role)}>")


def module(case):
    """The text of a case."""
    text = attention(case) + Main(case).text()
    for type_ in sorted({case.type, "f32"}):
        for verb in ("read", "write"):
            text += (f"func.func private @{verb}_{type_}(index, memref<*x{type_}>)"
                     " attributes {llvm.emit_c_interface}\n")
    if not case.doubles:
        return text
    o = f"memref<{shape(case, 'o')}>"
    return f"""module attributes {{gpu.container_module}} {{
gpu.module @attn_kernels {{
  gpu.func @twice(%o: {o}) kernel {{
    %c0 = arith.constant 0 : index
    %head = gpu.block_id x
    %row = gpu.block_id y
    %column = gpu.thread_id x
    %x = memref.load %o[%c0, %head, %row, %column] : {o}
    %y = arith.addf %x, %x : {case.type}
    memref.store %y, %o[%c0, %head, %row, %column] : {o}
    gpu.return
  }}
}}
{text}}}
"""


# -- Numbers ------------------------------------------------------------------

def pack(values, type_):
    """Bytes of numbers that the type has."""
    if type_ == "bf16":
        bits = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
        return array.array("H", [b >> 16 for b in bits]).tobytes()
    return struct.pack(f"<{len(values)}{'e' if type_ == 'f16' else 'f'}", *values)


def unpack(data, type_):
    if type_ == "bf16":
        bits = [b << 16 for b in array.array("H", data)]
        return struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits))
    size = 2 if type_ == "f16" else 4
    return struct.unpack(f"<{len(data) // size}{'e' if type_ == 'f16' else 'f'}", data)


def inputs(case):
    """q, k and v: numbers that every type has exactly, except in f32."""
    source = random.Random(case.name)
    def one(heads):
        count = heads * case.rows * case.dim
        if case.type == "f32":
            return unpack(pack([source.gauss(0, 1) for _ in range(count)], "f32"),
                          "f32")
        return [source.randint(-64, 64) / 32 for _ in range(count)]
    return one(case.heads), one(case.kv_heads), one(case.kv_heads)


def attend(case, q, k, v):
    """O, LSE and the sums of |p v|, in fp64, of [heads, rows, dim] in lists."""
    n, d = case.rows, case.dim
    o, lse, sizes = [], [], []
    for head in range(case.heads):
        at = head * case.kv_heads // case.heads * n * d
        keys = [k[at + j * d:at + (j + 1) * d] for j in range(n)]
        columns = [v[at + c:at + n * d:d] for c in range(d)]
        absolute = [[abs(x) for x in column] for column in columns]
        for i in range(n):
            row = q[(head * n + i) * d:(head * n + i + 1) * d]
            seen = keys[:i + 1] if case.causal else keys
            scores = [sum(map(operator.mul, row, key)) / math.sqrt(d) for key in seen]
            most = max(scores)
            p = [math.exp(s - most) for s in scores]
            total = sum(p)
            lse.append(most + math.log(total))
            o += [sum(map(operator.mul, p, c)) / total for c in columns]
            sizes += [sum(map(operator.mul, p, c)) / total for c in absolute]
    return o, lse, sizes


def expected(case):
    q, k, v = inputs(case)
    for _ in range(case.rounds):
        o, lse, sizes = attend(case, q, k, v)
        q = o
    if case.doubles:
        o, sizes = [2 * x for x in o], [2 * x for x in sizes]
    return o, lse, sizes


def worst(got, want, allowed):
    """The largest error as a part of what is allowed; NaN is infinite."""
    if len(got) != len(want):
        return math.inf
    ratios = [abs(g - w) / a for g, w, a in zip(got, want, allowed)]
    return max(math.inf if math.isnan(r) else r for r in ratios)


# -- Steps --------------------------------------------------------------------

def call(command, environment, **kwargs):
    done = subprocess.run(command, env=environment, capture_output=True,
                          check=False, **kwargs)
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(f"{os.path.basename(command[0])} ended with "
                           f"{done.returncode}: " + " | ".join(text[:3])[:600])
    return done.stdout


def compile_case(case, options, environment, folder):
    pipeline = f"machine={options.machine} format={options.format}"
    if case.schedule:
        pipeline += f' schedule="{case.schedule}"'
    if case.form == "host":
        pipeline += " memory=host"
    lowered = call([os.path.join(options.attn, "bin", "attn-opt"),
                    f"-attn-to-binary={pipeline}"], environment,
                   input=module(case).encode())
    if case.holds.encode() not in lowered:
        raise RuntimeError(f"expects a kernel {case.holds}")
    passes = f"builtin.module({THEIRS if case.doubles else ''}{HOST})"
    host = call([os.path.join(options.tools, "mlir-opt"),
                 f"--pass-pipeline={passes}"], environment, input=lowered)
    for number, values in enumerate(inputs(case)):
        with open(os.path.join(folder, f"{number}.in"), "wb") as f:
            f.write(pack(values, case.type))
    with open(os.path.join(folder, "module.mlir"), "wb") as f:
        f.write(host)
    return f"{len(host)} bytes"


def run_case(case, options, environment, folder):
    for name in ("0.out", "1.out"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    libraries = [os.path.join(options.attn, path) for path in (
        "test/mgpu/mgpu.so", "test/mgpu/arrays.so", "lib/libattn_runtime.so")]
    call([os.path.join(options.tools, "mlir-runner"),
          os.path.join(folder, "module.mlir"), "--entry-point-result=void",
          "--shared-libs=" + ",".join(libraries)],
         dict(environment, ATTN_ARRAYS=folder))
    o, lse, sizes = expected(case)
    allowed = [ALLOWED[case.type] * case.rounds * size + 1e-6 for size in sizes]
    with open(os.path.join(folder, "0.out"), "rb") as f:
        error = worst(unpack(f.read(), case.type), o, allowed)
    words = f"o {error:.3g} of what is allowed"
    if case.lse:
        with open(os.path.join(folder, "1.out"), "rb") as f:
            of_lse = worst(unpack(f.read(), "f32"), lse,
                           [LSE_ALLOWED * max(1, abs(x)) for x in lse])
        words += f", lse {of_lse:.3g}"
        error = max(error, of_lse)
    if not error <= 1:
        raise RuntimeError(words)
    return words


def bundle(options):
    """mlir-runner and what it loads, but for the system's C and C++."""
    runner = os.path.join(options.tools, "mlir-runner")
    folder = os.path.join(options.out, "mlir")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(runner, folder)
    for line in subprocess.check_output(["ldd", runner], text=True).splitlines():
        name, _, path = line.strip().partition(" => ")
        place = os.path.join(folder, name)
        if not path or re.match(r"(libc|libm|libstdc\+\+|libgcc_s)\.so", name):
            continue
        unused = next((text for start, text in UNUSED.items()
                       if name.startswith(start)), None)
        if unused is None:
            shutil.copy(path.split(" ")[0], place)
            continue
        subprocess.run(["cc", "-xc", "-", "-shared", f"-Wl,-soname,{name}", "-o",
                        place], input=unused, text=True, check=True)
    archive = folder + ".tar.xz"
    subprocess.run(["tar", "-C", folder, "-cJf", archive, "."], check=True,
                   env=dict(os.environ, XZ_OPT="-T0 -6"))
    print(f"bundle: {archive}, {os.path.getsize(archive)} bytes", flush=True)


def arguments():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", default="compile,run")
    parser.add_argument("--out", default="")
    parser.add_argument("--machine", default="h100_sxm")
    parser.add_argument("--only", default="", help="cases by name")
    parser.add_argument("--format", default="isa", choices=("isa", "bin"))
    parser.add_argument("--tools", default="/usr/lib/llvm-22/bin")
    parser.add_argument("--libraries", default="")
    parser.add_argument("--attn", default=os.path.join(root, "build"))
    parser.add_argument("--json", default="", help="a file for the counts")
    options = parser.parse_args()
    options.out = options.out or tempfile.mkdtemp(prefix="attn-mlir-runner-")
    return options


def main():
    options = arguments()
    environment = dict(os.environ)
    if options.libraries:
        environment["LD_LIBRARY_PATH"] = ":".join(
            [options.libraries] + environment.get("LD_LIBRARY_PATH", "").split(":"))
    cases = [case for case in CASES if re.search(options.only, case.name)]
    counts = {}
    for step, work in (("compile", compile_case), ("run", run_case)):
        if step not in options.steps.split(","):
            continue
        right = 0
        for case in cases:
            folder = os.path.join(options.out, case.name)
            os.makedirs(folder, exist_ok=True)
            try:
                words = work(case, options, environment, folder)
                right += 1
            except (OSError, RuntimeError) as error:
                words = f"WRONG: {error}"
            print(f"{step:8}{case.name:22}{words}", flush=True)
        counts[step] = [right, len(cases)]
        print(f"{step}: {right} of {len(cases)} right", flush=True)
    if "bundle" in options.steps.split(","):
        bundle(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(counts, f)
    return 0 if all(right == total for right, total in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
