"""The Python on the pages for users runs as it stands there.

A block is preceded by `<!-- runs with: nothing -->`, or by what it needs:
`gpu`, `hopper` (a GPU of that architecture), `torch`, `jax`.
"""

import importlib.util
import pathlib
import re

import pytest

import attn
from attn._band import band

ROOT = pathlib.Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "docs" / "using.md"]
BLOCK = re.compile(r"(?:<!-- runs with: (?P<needs>[\w ]+) -->\n)?"
                   r"```python\n(?P<code>.*?)```", re.DOTALL)


def blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start("code")) + 1
            yield pytest.param(page, line, found["needs"], found["code"],
                               id=f"{page.name}:{line}")


def has_gpu(capability=None):
    try:
        return any(capability in (None, device.compute_capability)
                   for device in attn.devices())
    except attn.DeviceError:
        return False


@pytest.mark.parametrize("page, line, needs, code", list(blocks()))
def test_block_runs(page, line, needs, code, capsys):
    assert needs, f"{page.name}:{line} does not say what it runs with"
    for need in set(needs.split()) - {"nothing"}:
        if need == "gpu":
            if not has_gpu():
                pytest.skip("needs a GPU")
        elif need == "hopper":
            if not has_gpu(90):
                pytest.skip("needs a Hopper GPU")
        elif importlib.util.find_spec(need) is None:
            pytest.skip(f"needs {need}")
    # The line numbers of a traceback are those of the page.
    exec(compile("\n" * (line - 1) + code, str(page), "exec"), {})


def test_the_picture_of_masks():
    text = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    head, *rows = re.search(r"<!-- masks -->\n```text\n(.*?)\n```", text,
                            re.DOTALL)[1].split("\n")
    assert len(rows) == 4
    for start in (found.start() for found in re.finditer(r"\S.*?(?=  |$)",
                                                         head)):
        title = re.match(r".*?(?=  |$)", head[start:])[0]
        mask = title.replace("window=(1, 0)", "window<1, 0>")
        first, last = band(mask, 4, 6)
        assert [row[start:start + 11] for row in rows] == [
            " ".join("x" if i + first <= j <= i + last else "."
                     for j in range(6)) for i in range(4)], title


def test_there_are_blocks():
    assert len(list(blocks())) >= 4
