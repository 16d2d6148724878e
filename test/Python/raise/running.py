"""Raises a text, runs it on the interpreter on given arrays, gives results."""

import os
import re
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
TYPES = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16}


def command(name, *arguments, text=None):
    """A command of libattn; its output and what it said."""
    done = subprocess.run([sys.executable, "-m", "attn", name, *arguments],
                          input=text, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def raised_by_stock_tool(text):
    """What the stock mlir-opt with the plugin makes of a text, and what it
    said; None where no such tool is on PATH, or there is no plugin."""
    tool = shutil.which("mlir-opt")
    plugin = os.path.join(os.path.dirname(os.environ.get("ATTN_LIBRARY", "")),
                          "attn-plugin.so")
    if not tool or not os.path.isfile(plugin):
        return None
    done = subprocess.run(
        [tool, f"--load-dialect-plugin={plugin}",
         f"--load-pass-plugin={plugin}", "--allow-unregistered-dialect",
         "--pass-pipeline=builtin.module(attn-raise{linalg=1},canonicalize)"],
        input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def case(file, function):
    """The text around a function of a test of the raising pass, whose cases
    are apart."""
    path = os.path.join(ROOT, "test", "Conversion", "Raise", file)
    with open(path, encoding="utf-8") as opened:
        [found] = [part for part in opened.read().split("// -----")
                   if f"@{function}(" in part]
    return found


def run(text, function, arrays, folder):
    """The results of a function that is raised already, as float64."""
    module = folder / "module.mlir"
    module.write_text(text)
    for number, array in enumerate(arrays):
        np.save(folder / f"argument{number}.npy", array)
    command("attn-run", str(module), "--on", "interpreter", "--function",
            function, "--arrays", str(folder))
    types = re.search(rf'@"?{re.escape(function)}"?\([^{{]*\) -> ([^{{]*)\{{',
                      text).group(1)
    elements = re.findall(r"tensor<(?:[\d?]+x)*(\w+)>", types)
    results = []
    for number, element in enumerate(elements):
        array = np.load(folder / f"result{number}.npy")
        if array.dtype.kind == "V":  # NumPy does not know bf16
            array = array.view(TYPES[element])
        assert array.dtype == TYPES[element]
        results.append(array.astype(np.float64))
    return results


def attention(q, k, v, sees=None, scale=None):
    """O and LSE in fp64, of [batch, heads, rows, d]; `sees` is a matrix."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("bhid,bhjd->bhij", q, k)
    scores *= q.shape[-1] ** -0.5 if scale is None else scale
    if sees is not None:
        scores = np.where(sees, scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = weights.sum(-1, keepdims=True)
    output = np.einsum("bhij,bhje->bhie", weights, v) / np.where(total, total,
                                                                 1)
    with np.errstate(divide="ignore"):
        return output, (np.log(total) + most)[..., 0]


def band(queries, keys, first=-np.inf, last=np.inf):
    """Query i sees the keys from i + first to i + last."""
    distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
    return (distance >= first) & (distance <= last)
