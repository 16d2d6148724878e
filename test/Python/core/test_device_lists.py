"""Lists of blocks that kernels make: what they compute, and their launch."""

import subprocess
import sys

import attn
import fake_arrays
import pytest
from attn import _device_lists
from attn._trace import Captures, trace

np = pytest.importorskip("numpy")

IDS = np.random.default_rng(0).integers(0, 3, (700,)).astype(np.int32)
ALLOWED = np.random.default_rng(1).random((3, 700)) < 0.1
ON_DEVICE = {
    "causal": lambda b, h, i, j: i >= j,
    "documents": lambda b, h, i, j: (IDS[i] == IDS[j]) & (i >= j),
    "heads": lambda b, h, i, j: (j - i) * h > 100 + b,
    "truths": lambda b, h, i, j: ALLOWED[h, j] & (j < 300),
    "nothing": lambda b, h, i, j: i < 0,
}


def interpreted(text, arrays, folder):
    """The lists that the kernels of a text make, on the interpreter."""
    folder.mkdir()
    (folder / "lists.mlir").write_text(text)
    for number, array in enumerate(arrays):
        np.save(folder / f"argument{number}.npy", array)
    subprocess.run(
        [sys.executable, "-m", "attn", "attn-run",
         str(folder / "lists.mlir"), "--on", "interpreter", "--arrays",
         str(folder)], check=True, capture_output=True)
    return [np.load(folder / f"result{number}.npy") for number in range(4)]


@pytest.mark.parametrize("name", ON_DEVICE)
def test_kernels_make_the_lists_of_a_function(name, tmp_path):
    """The text that from_mask compiles on a GPU, and transpose's on what it
    made, against the host's."""
    captures = Captures()
    sees = trace(ON_DEVICE[name], "sees", captures).text(captures.all)
    block = (128, 64)
    text = _device_lists.text_of_lists(sees, captures.all, 2, 3, block)
    made = interpreted(text, [np.zeros((300, 700), np.int8), *(
        capture.array for capture in captures.all)], tmp_path / "lists")
    host = attn.BlockMask.from_mask(
        ON_DEVICE[name], queries=300, keys=700, batch=2, heads=3,
        block_size=block)
    lists = attn.BlockMask(*made, block_size=block)
    assert (lists.to_dense() == host.to_dense()).all()
    turned = interpreted(_device_lists.text_of_transposed(), made,
                         tmp_path / "transposed")
    assert (attn.BlockMask(*turned, block_size=block[::-1]).to_dense() ==
            host.transpose().to_dense()).all()


def test_lists_on_a_gpu_are_launched(gpu, monkeypatch):
    """With memory that only says that it is of a GPU."""
    lists = [fake_arrays.Interface(*sizes, typestr="<i4")
             for sizes in ((2, 3, 3), (2, 3, 3, 11)) * 2]
    seen = fake_arrays.Interface(700, typestr="<i4")
    captures = Captures()
    sees = trace(lambda b, h, i, j: seen[i] == seen[j], "sees",
                 captures).text(captures.all)
    text = _device_lists.text_of_lists(sees, captures.all, 2, 3, (128, 64))
    monkeypatch.setattr(_device_lists, "library_of", lambda array: Streams())
    for _ in range(2):
        _device_lists._launch(text, (300, 700), [seen], lists)
    kernels = [launch["kernel"] for launch in gpu.launches()]
    assert len(kernels) == 4 and kernels[:2] == kernels[2:]
    assert "block_classes" in kernels[0] and "listed_blocks" in kernels[1]


class Streams:
    def stream_of(self, array):
        return 0
