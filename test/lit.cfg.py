# How the text tests run: tools, features, and the round-trip switch.
import os
import sys

import lit.formats
from lit.llvm import llvm_config  # noqa: F401  (absent lit.llvm fails early)

sys.path.insert(0, os.path.join(config.attn_source, "tools", "dev"))
import machine_probe

config.name = "attn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.attn_source, "test")
config.test_exec_root = os.path.join(config.attn_build, "test")

tools = os.path.join(config.attn_build, "bin")
ptxas = machine_probe.ptxas_folder()
path = [tools, config.llvm_tools] + ([ptxas] if ptxas else [])
config.environment["PATH"] = os.pathsep.join(path + [os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = (
    "-enable-var-scope --allow-unused-prefixes=false"
    " --dump-input-filter=error")
# The compiler finds ptxas on PATH, so a toolkit elsewhere must not interfere.
for variable in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"):
    config.environment.pop(variable, None)

if ptxas:
    config.available_features.add("ptxas")
for feature in machine_probe.gpu_features():
    config.available_features.add(feature)
if config.sanitized:
    config.available_features.add("asan")
    config.environment["ASAN_OPTIONS"] = machine_probe.ASAN_OPTIONS
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"

if "ATTN_SHARE" in os.environ:
    config.environment["ATTN_SHARE"] = os.environ["ATTN_SHARE"]

python = sys.executable
# Tests of the Python package need packages that this Python may not have.
for feature in machine_probe.python_features():
    config.available_features.add("python-" + feature)
config.substitutions.append((
    "%pytest", f"{machine_probe.test_python()} -m pytest -q -p no:cacheprovider"))
config.substitutions.append(("%testpython", machine_probe.test_python()))
config.environment["PYTHONPATH"] = os.path.join(config.attn_source, "python")
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["ATTN_LIBRARY"] = os.path.join(
    config.attn_build, "lib", "libattn.so")
config.environment["ATTN_FAKE_CUDA"] = os.path.join(
    config.attn_build, "test", "fake-cuda")
config.substitutions.append(("%python", python))
config.substitutions.append(("%root", config.attn_source))
config.substitutions.append(("%build", config.attn_build))
config.substitutions.append(("%cxx", os.path.join(config.llvm_tools, "clang++")))
config.substitutions.append(("%cc", os.path.join(config.llvm_tools, "clang")))
config.substitutions.append((
    "%plugin", os.path.join(config.attn_build, "lib", "attn-plugin.so")))
# Host code runs on the fake driver and tells its calls (Unit/HostCode/Mgpu.c).
config.substitutions.append(("%mlir_lib", os.path.join(
    os.path.dirname(config.llvm_tools), "lib")))
config.substitutions.append(("%mgpu", ",".join(
    os.path.join(config.attn_build, library)
    for library in ("test/mgpu/mgpu.so", "lib/libattn_runtime.so"))))

# With ATTN_ROUNDTRIP=1 what every attn-opt reads and prints is parsed again.
switch = lit_config.params.get("roundtrip", os.environ.get("ATTN_ROUNDTRIP"))
opt = os.path.join(tools, "attn-opt")
if switch not in (None, "", "0"):
    wrapper = os.path.join(config.attn_source, "tools", "dev", "roundtrip.py")
    opt = f"{python} {wrapper} {opt}"
config.substitutions.append((r"(?<![-/\w])attn-opt(?![-\w])", opt))
