"""Examples in docstrings run, everything public is documented and typed."""

import doctest
import glob
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import typing

import attn
import pytest

FOLDER = os.path.dirname(attn.__file__)


def core():
    """The modules that need neither torch nor jax."""
    for path in sorted(glob.glob(f"{FOLDER}/_*.py")):
        with open(path, encoding="utf-8") as f:
            if not re.search(r"^(import|from) (torch|jax)", f.read(), re.M):
                yield os.path.basename(path)[:-3]


MODULES = [name for name in core() if name != "__init__"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"attn.{name}")
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    examples = [example for name in MODULES for test in finder.find(
        importlib.import_module(f"attn.{name}"))
        for example in test.examples]
    assert len(examples) >= 10


def public():
    for name in attn.__all__:
        thing = getattr(attn, name)
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (
                        inspect.isfunction(value)
                        or isinstance(value, property)):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize("name, thing", list(public()))
def test_documented(name, thing):
    assert thing.__doc__ and len(thing.__doc__) > 15, name


@pytest.mark.parametrize("name, thing", [
    (n, t) for n, t in public() if inspect.isfunction(t)])
def test_annotated(name, thing):
    hints = typing.get_type_hints(thing)
    for parameter in inspect.signature(thing).parameters:
        assert parameter == "self" or parameter in hints, (name, parameter)
    assert "return" in hints or name.endswith("__init__")


def test_marked_as_typed():
    assert os.path.exists(os.path.join(FOLDER, "py.typed"))


USER = """
import attn

report: attn.PlanReport = attn.plan(batch=1, heads=2, queries=64, head_dim=64)
seconds: float = report.best.seconds
text: str = attn.explain(batch=1, heads=2, queries=64, head_dim=64)
program: attn.Executable = attn.compile("", machine="h100_sxm")
ptx: str = program.ptx
cubin: bytes | None = program.cubin
folder: str | None = attn.cache_info()["folder"]
names: list[str] = [machine.name for machine in attn.machines()]
attn.plan(batch=1, heads="2", queries=64, head_dim=64)  # wrong
"""


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Runs mypy; what it has read of other packages it keeps."""
    pytest.importorskip("mypy")
    cache = str(tmp_path_factory.mktemp("mypy"))
    # What is not installed has no types to check against.
    missing = [] if importlib.util.find_spec("torch") else [
        "--ignore-missing-imports"]
    return lambda *arguments: subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache,
         "--python-version", "3.10", *missing, *arguments],
        env={**os.environ, "MYPYPATH": os.path.dirname(FOLDER)},
        capture_output=True, text=True, check=False)


@pytest.mark.long
def test_strictly_typed(mypy):
    files = [os.path.join(FOLDER, f"{module}.py")
             for module in (*MODULES, "__init__")]
    done = mypy(*files)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_types_of_a_user(mypy, tmp_path):
    program = tmp_path / "user.py"
    program.write_text(USER)
    done = mypy(str(program))
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'Argument "heads" to "plan" has incompatible type "str"' in (
        errors[0])
