"""What this machine has: ptxas, a GPU, Python packages.

`ptxas` prints its folder, `gpu` the features of the GPU; `packages NAME==X...`
says whether this Python has those versions.  The exit status is 1 for no.
"""

import ctypes
import glob
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

import usage

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
ROOT = os.path.abspath(ROOT)

# The shared LLVM is not instrumented, so containers and pools that cross into it
# look broken to the checker; leaks of a compiler that exits are not errors.
ASAN_OPTIONS = ("detect_container_overflow=0:allow_user_poisoning=0"
                ":detect_leaks=0")


def versions():
    """The pins of tools/versions."""
    pins = {}
    with open(os.path.join(ROOT, "tools", "versions"), encoding="utf-8") as f:
        for line in f:
            if "=" in line and not line.startswith("#"):
                key, value = line.strip().split("=", 1)
                pins[key] = value.strip('"')
    return pins


def number(version):
    return tuple(int(part) for part in version.split("."))


def ptxas_candidates():
    yield shutil.which("ptxas")
    yield "/usr/local/cuda/bin/ptxas"
    yield from glob.glob(
        os.path.join(ROOT, ".venv/lib/python3*/site-packages/nvidia/cu*/bin/ptxas"))


def ptxas_folder():
    """The folder of the first ptxas that is new enough, or None."""
    least = number(versions()["PTXAS_MIN_VERSION"])
    for path in ptxas_candidates():
        if not path or not os.access(path, os.X_OK):
            continue
        text = subprocess.run([path, "--version"], capture_output=True,
                              text=True, check=False).stdout
        found = re.search(r"release (\d+\.\d+)", text)
        if found and number(found.group(1)) >= least:
            return os.path.dirname(path)
    return None


def gpu_features():
    """`gpu` and `sm_NN`, asked of the driver; empty without one."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, device = ctypes.c_int(0), ctypes.c_int(0)
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []
    if not count.value or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return []
    digits = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
        value = ctypes.c_int(0)
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        digits.append(str(value.value))
    return ["gpu", "sm_" + "".join(digits)]


def has_packages(wanted):
    """Whether this Python has these packages, "pytest==9.2.0"."""
    for requirement in wanted:
        name, version = requirement.split("==")
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return False
        if found.split("+")[0] != version:  # torch adds "+cu130"
            return False
    return True


def test_python():
    """The Python with the packages for tests: that of .venv, or this one."""
    own = os.path.join(ROOT, ".venv", "bin", "python")
    return own if os.access(own, os.X_OK) else sys.executable


def python_features():
    """Which of the packages that tests ask for their Python can import."""
    names = ("pytest", "numpy", "matplotlib", "mypy", "onnx", "torch", "jax")
    code = ("import importlib.util as u, sys\n"
            "print(*[n for n in sys.argv[1:] if u.find_spec(n)])")
    done = subprocess.run([test_python(), "-c", code, *names],
                          capture_output=True, text=True, check=False)
    return done.stdout.split()


if __name__ == "__main__":
    usage.show(__doc__)
    if sys.argv[1:2] == ["packages"]:
        sys.exit(0 if has_packages(sys.argv[2:]) else 1)
    if sys.argv[1:] == ["ptxas"]:
        folder = ptxas_folder()
        print(folder or "")
        sys.exit(0 if folder else 1)
    if sys.argv[1:] == ["gpu"]:
        features = gpu_features()
        print(" ".join(features))
        sys.exit(0 if features else 1)
    sys.exit("expects ptxas, gpu or packages")
