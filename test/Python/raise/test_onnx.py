"""ONNX's own cases of Attention, and what the importer does with others.

Every case passes on the interpreter, but those that are named here, each with
its reason; none is left out.
"""

import collections
import re
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import attn
import attn.onnx
from running import attention, band, run

#: The cases that attn.forward cannot express, and how the reason begins.
REFUSED = {
    # Q, K and V of f32, and a softmax in f64.
    "test_attention_local_window_gqa_rank4_mask": "softmax_precision"}
#: Error that may be left in types that ONNX rounds to in between: two units
#: in the last place.
LIMITS = {"float16": 2 * 2.0 ** -10, "bfloat16": 2 * 2.0 ** -7}


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about other ops
        found = collect_testcases("Attention")
    return [case for case in found
            if case.model.graph.node[0].op_type == "Attention"]


CASES = cases()
outcomes = {}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case, tmp_path):
    [node] = attn.onnx.load(case.model)
    if case.name in REFUSED:
        with pytest.raises(attn.UnsupportedError,
                           match=re.escape(f": {REFUSED[case.name]}")):
            node.raised()
        outcomes[case.name] = REFUSED[case.name]
        return
    text = node.raised()
    inputs, outputs = case.data_sets[0]
    names = [value.name for value in case.model.graph.input]
    arrays = [inputs[names.index(name)] for name in node.inputs]
    results = run(text, node.name, arrays, tmp_path)
    assert len(results) == len(outputs)
    for result, expected in zip(results, outputs):
        limit = LIMITS.get(str(expected.dtype))
        np.testing.assert_allclose(result, expected.astype(np.float64),
                                   rtol=limit or case.rtol,
                                   atol=limit or case.atol)
    outcomes[case.name] = "passes"


def kinds(case):
    """What a case has beside q, k, v and y."""
    node = case.model.graph.node[0]
    inputs = [*node.input, *[""] * 7]
    outputs = [*node.output, *[""] * 4]
    yield "cases"
    for kind, name in (("with a mask", inputs[3]), ("with past keys", inputs[4]),
                       ("with lengths of keys", inputs[6]),
                       ("with scores", outputs[3])):
        if name:
            yield kind


def test_counts(capsys):
    """Runs behind the cases, and prints how many had which outcome."""
    if len(outcomes) != len(CASES):
        pytest.skip("counts are of all cases")
    counts = collections.Counter(outcomes.values())
    passed = collections.Counter(
        kind for case in CASES if outcomes[case.name] == "passes"
        for kind in kinds(case))
    all_ = collections.Counter(kind for case in CASES for kind in kinds(case))
    with capsys.disabled():
        print()
        for outcome, count in counts.most_common():
            print(f"{count:4} {outcome}")
        for kind, count in all_.items():
            print(f"{passed[kind]:4} of {count} {kind}")
    assert len(CASES) >= 93
    assert counts["passes"] == len(CASES) - len(REFUSED)
    # Those of onnx 1.23; later versions may have more.
    assert all_["with lengths of keys"] >= 13 and all_["with scores"] >= 18
    assert all_["with past keys"] >= 20


#===-- Models of our own -------------------------------------------------===#


def model(inputs, initializers=(), opset=25, outputs=("y",), **attributes):
    names = [name for name, _ in inputs] + [t.name for t in initializers]
    order = sorted(names, key=["q", "k", "v", "mask"].index)
    node = helper.make_node("Attention", order, list(outputs), name="layer 0",
                            **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
         for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
         for name in outputs], list(initializers))
    return helper.make_model(graph,
                             opset_imports=[helper.make_opsetid("", opset)])


QKV = [(name, ["batch", 3, 5, 8]) for name in "qkv"]


def test_constant_mask_and_open_batch(tmp_path):
    """A mask that is in the model is read, and a named size is open."""
    sees = band(5, 5, -2, 0)
    mask = numpy_helper.from_array(sees, "mask")
    path = tmp_path / "model.onnx"
    onnx.save(model(QKV, [mask]), path)
    [node] = attn.onnx.load(path)
    assert node.inputs == ("q", "k", "v")
    text = node.raised()
    assert "mask(window<2, 0>)" in text and "tensor<?x3x5x8xf32>" in text
    arrays = [np.random.default_rng(i).standard_normal((2, 3, 5, 8), np.float32)
              for i in range(3)]
    [result] = run(text, "layer 0", arrays, tmp_path)
    np.testing.assert_allclose(result, attention(*arrays, sees)[0], rtol=1e-5,
                               atol=1e-6)


def test_added_constant_mask():
    """Numbers that are added hide by -inf."""
    mask = np.where(band(5, 5, last=0), 0, -np.inf).astype(np.float32)
    [node] = attn.onnx.load(model(QKV, [numpy_helper.from_array(mask, "mask")]))
    assert "mask(causal)" in node.raised()


def test_what_is_no_band_is_a_clause():
    mask = numpy_helper.from_array(np.ones((5, 5), np.float32), "mask")
    [node] = attn.onnx.load(model(QKV, [mask], softcap=2.0))
    assert re.search(r"softcap\(2.0+e\+00\) bias\(%\w+ : tensor<5x5xf32>\)",
                     node.raised())


def test_one_array_for_all():
    node = helper.make_node("Attention", ["q", "q", "q"], ["y"], is_causal=1)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("q", TensorProto.FLOAT, [1, 2, 4, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    [found] = attn.onnx.load(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 23)]))
    assert found.inputs == ("q",) and found.outputs == ("y",)
    assert "attn.forward %arg0, %arg0, %arg0 mask(causal)" in found.raised()


def test_it_compiles():
    shapes = [(name, [1, 3, 5, 8]) for name in "qkv"]
    [node] = attn.onnx.load(model(shapes))
    program = attn.compile(node.raised(), machine="h100_sxm")
    assert program.kernels and ".version" in program.ptx


@pytest.mark.parametrize("made, message", [
    (lambda: model(QKV, opset=22), "opset 23 to 25, but got 22"),
    (lambda: model(QKV, softcap=-2.0), "softcap: expects 0 or more"),
    (lambda: model([(name, [1, 3, 5, 8]) for name in "qk"]
                   + [("v", [1, 4, 5, 8])]),
     "k and v of one head count, but got 3 and 4"),
    (lambda: model([(name, [1, 5, 24]) for name in "qkv"]),
     "y: its rank is not known"),
])
def test_refused(made, message):
    with pytest.raises(attn.UnsupportedError, match=re.escape(message)):
        for node in attn.onnx.load(made()):
            node.raised()


def test_no_attention():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    assert not attn.onnx.load(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 9)]))
