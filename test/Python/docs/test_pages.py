"""The code on the pages runs as it stands there.

A block of Python or of a shell is preceded by `<!-- runs with: nothing -->`, or
by what it needs: `gpu`, `hopper` (a GPU of that architecture), `torch`, `jax`,
or `setup`.  The last changes the machine, as .ci/run and tools/dev/wheel do, so
here only the programs must be there.  MLIR is parsed.  What a command prints is
generated, and compared by tools/dev/doc.py.
"""

import importlib.util
import os
import re
import shutil
import subprocess

import pages
import pytest

import attn
from attn._band import band

ROOT = pages.ROOT
BLOCKS = [block for page in pages.PAGES for block in pages.blocks(page)]
BUILD = os.path.dirname(os.path.dirname(os.environ.get("ATTN_LIBRARY", "")))
# What stands in a block of no language is a formula or a picture.
LANGUAGES = {"python", "sh", "mlir", "console", "text", "c", "cmake"}


def of(language):
    return [pytest.param(block, id=str(block)) for block in BLOCKS
            if block.language == language]


def has_gpu(capability=None):
    try:
        return any(capability in (None, device.compute_capability)
                   for device in attn.devices())
    except attn.DeviceError:
        return False


def skip_without(needs):
    for need in needs - {"nothing", "setup"}:
        if need == "gpu":
            if not has_gpu():
                pytest.skip("needs a GPU")
        elif need == "hopper":
            if not has_gpu(90):
                pytest.skip("needs a Hopper GPU")
        elif importlib.util.find_spec(need) is None:
            pytest.skip(f"needs {need}")


def environment():
    return dict(os.environ, PATH=os.pathsep.join(
        [os.path.join(BUILD, "bin"), os.environ["PATH"]]))


def test_every_block_says_what_it_is():
    assert len(BLOCKS) >= 20
    for block in BLOCKS:
        assert block.language in LANGUAGES, block
        if block.language in ("console", "c"):
            assert block.marker.startswith("generated: "), block
        if block.language in ("python", "sh"):
            assert block.needs, f"{block} does not say what it runs with"


@pytest.mark.parametrize("block", of("cmake"))
def test_project_is_built(block):
    """Its lines are those of a project that test/Package builds."""
    project = ROOT / "test" / "Package" / "Inputs" / "external"
    lines = (project / "CMakeLists.txt").read_text("utf-8").splitlines()
    for line in block.code.splitlines():
        assert line in lines, line


@pytest.mark.parametrize("block", of("python"))
def test_python_runs(block):
    skip_without(block.needs)
    # The line numbers of a traceback are those of the page.
    exec(compile("\n" * (block.line - 1) + block.code, str(block.page),
                 "exec"), {})


@pytest.mark.parametrize("block", of("sh"))
def test_commands_run(block):
    skip_without(block.needs)
    if "setup" not in block.needs:
        subprocess.run(["bash", "-euo", "pipefail", "-c", block.code],
                       cwd=ROOT, env=environment(), check=True)
        return
    for line in block.code.splitlines():
        program = line.split("#")[0].split()
        path = f"{ROOT}:{ROOT}/.venv/bin:{environment()['PATH']}"
        assert not program or shutil.which(program[0], path=path) or (
                ROOT / program[0]).is_file(), line


OP = re.compile(r"(?P<results>%[^=\n]*) = attn\.\w+ (?P<operands>[^:]*) : "
                r"(?P<types>.*?)\s*-> (?P<result_types>.*)", re.DOTALL)
TYPE = re.compile(r"(?:tensor|memref)<[^>]*>")


def whole(code):
    """An op that stands alone, in a function with its operands."""
    if "func.func" in code:
        return code
    found = OP.search(code)
    assert found, f"expects an op or a function, but got:\n{code}"
    operands = re.findall(r"%\w+", found["operands"])
    arguments = ", ".join(map(": ".join, zip(
        operands, TYPE.findall(found["types"]), strict=True)))
    types = ", ".join(TYPE.findall(found["result_types"]))
    return (f"func.func @f({arguments}) -> ({types}) {{\n{code}"
            f"return {found['results']} : {types}\n}}\n")


@pytest.mark.parametrize("block", of("mlir"))
def test_mlir_compiles(block):
    done = subprocess.run(["attn-opt", "-attn-to-tile"],
                          input=whole(block.code), env=environment(),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tile.kernel" in done.stdout


def test_the_picture_of_masks():
    block, = [block for block in BLOCKS if block.marker == "masks"]
    head, *rows = block.code.rstrip("\n").split("\n")
    assert len(rows) == 4
    for start in (found.start() for found in re.finditer(r"\S.*?(?=  |$)",
                                                         head)):
        title = re.match(r".*?(?=  |$)", head[start:])[0]
        mask = title.replace("window=(1, 0)", "window<1, 0>")
        seen = band(mask, 4, 6)
        assert [row[start:start + 11] for row in rows] == [
            " ".join("x" if seen.sees(i, j) else "."
                     for j in range(6)) for i in range(4)], title


def test_a_command_that_is_not_there_is_found():
    block = pages.Block(ROOT / "README.md", 1, "runs with: setup", "sh",
                        "tools/dev/start\ntools/dev/finish # no such\n")
    with pytest.raises(AssertionError, match="finish"):
        test_commands_run(block)

