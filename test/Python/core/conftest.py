"""What the tests of the Python package share.

They need $ATTN_LIBRARY (or a wheel) and, for everything that launches, the
driver that runs nothing: $ATTN_FAKE_CUDA is the folder of its libcuda.so.1.
"""

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
import textwrap

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
FAKE = os.environ.get("ATTN_FAKE_CUDA")
if importlib.util.find_spec("attn") is None:  # not installed: the checkout's
    sys.path.insert(0, os.path.join(ROOT, "python"))
_LAUNCH = re.compile(
    r"launch (?P<kernel>\S+) grid (?P<grid>\d+ \d+ \d+) threads "
    r"(?P<threads>\d+) smem (?P<smem>\d+) stream (?P<stream>\d+) device "
    r"(?P<device>\d+) first (?P<first>0x[0-9a-f]+)(?: (?P<mode>\w+))?")


@pytest.fixture(autouse=True)
def opens_cache_again(monkeypatch):
    """Whatever a test before has configured, the cache is that of the session
    (`session_cache`): what one test has compiled, others find."""
    from attn import _cache
    monkeypatch.setattr(_cache, "_ready", False)


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    """A test that is about compiling, or about the cache, has its own, empty,
    where the default one is."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    for name in ("ATTN_CACHE_DIR", "ATTN_CACHE_BYTES"):
        monkeypatch.delenv(name, raising=False)
    return folder / "attn"


class Gpu:
    """The driver without a GPU, and what it was asked to do."""

    def __init__(self, log):
        self.log = log

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def launches(self):
        """The launches so far, as dictionaries of strings."""
        found = [_LAUNCH.fullmatch(line) for line in self.lines()
                 if line.startswith("launch")]
        assert all(found)
        return [match.groupdict() for match in found]


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    if FAKE is None:
        pytest.skip("expects $ATTN_FAKE_CUDA, the folder of the driver that "
                    "runs nothing")
    # Whoever opens libcuda.so.1 from now on gets this one, by its soname.
    ctypes.CDLL(os.path.join(FAKE, "libcuda.so.1"))
    log = tmp_path / "cuda.log"
    monkeypatch.setenv("ATTN_FAKE_CUDA_LOG", str(log))
    from attn import _forward, _launch, _libraries
    for table in (_launch.launches, _forward.paths, _libraries._libraries):
        table.clear()
    yield Gpu(log)
    for table in (_launch.launches, _forward.paths, _libraries._libraries):
        table.clear()


@pytest.fixture
def calls(monkeypatch):
    """How often functions of the library were called, by name."""
    from attn import _native
    counts = {}
    for name in _native.SIGNATURES:
        actual = _native.function(name)

        def counted(*arguments, name=name, actual=actual):
            counts[name] = counts.get(name, 0) + 1
            return actual(*arguments)

        monkeypatch.setitem(_native._functions, name, counted)
    return counts


class Outcome(str):
    """What a process printed; `errors` is what it complained of."""

    errors = ""


@pytest.fixture
def python(tmp_path):
    """Runs a program in a Python of its own: python(text, VARIABLE=value);
    None takes a variable away.  Without a GPU, unless it is said how many."""

    def run(program, *, gpus=0, **environment):
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(
            [HERE, *[p for p in sys.path if p]])}
        if gpus and FAKE is None:
            pytest.skip("expects $ATTN_FAKE_CUDA")
        if FAKE is not None:
            variables["LD_LIBRARY_PATH"] = FAKE
        variables["ATTN_FAKE_CUDA_COUNT"] = str(gpus)
        for name, value in environment.items():
            variables.pop(name, None)
            if value is not None:
                variables[name] = str(value)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], env=variables,
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
            check=False)
        assert done.returncode == 0, done.stderr
        outcome = Outcome(done.stdout)
        outcome.errors = done.stderr
        return outcome

    return run


@pytest.fixture
def torch(gpu, monkeypatch):
    """A stand-in for PyTorch, with tensors on the GPU that is not there."""
    import stub_torch
    module = stub_torch.Torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module
