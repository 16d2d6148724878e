"""Attention nodes of an ONNX model, as modules of the attn dialect.

    import attn.onnx

    for node in attn.onnx.load("model.onnx"):     # opset 23 to 25
        print(node.name, node.raised())           # MLIR text: attn.forward
        program = attn.compile(node.raised(), machine="h100_sxm")

Each node `Attention` of the main graph becomes a module with one function, of
the node's inputs that are not constants, in order; its results are the node's
outputs.  What attn.forward cannot express is an UnsupportedError with the
reason.  Needs the package `onnx`: `pip install attn[onnx]`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Iterator, Optional, Sequence, Union

from . import mlir
from ._errors import Error, UnsupportedError

try:
    import onnx as _onnx
    from onnx import numpy_helper as _arrays
except ImportError as error:
    raise ImportError("attn.onnx needs the package onnx: pip install "
                      "attn[onnx]") from error

__all__ = ["Node", "load"]

#: Versions of the operator set that have Attention as it is read here.
OPSETS = range(23, 26)
_ELEMENTS = {"FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16",
             "DOUBLE": "f64", "BOOL": "i1", "INT32": "i32", "INT64": "i64"}
_INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value",
           "nonpad_kv_seqlen")
_OUTPUTS = 4
_REFUSED = "'onnx.Attention' is not raised: "


@dataclass(frozen=True)
class Value:
    """An input or output: its MLIR type, and its text if it is constant."""

    name: str
    type: str
    constant: Optional[str] = None


@dataclass(frozen=True)
class Node:
    """A node Attention.  `inputs` are the arguments of the function, by name,
    and `outputs` its results."""

    name: str
    values: tuple[Optional[Value], ...]
    results: tuple[Optional[Value], ...]
    attributes: tuple[tuple[str, str], ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(value.name for value in self._arguments)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.results if value)

    @property
    def _arguments(self) -> list[Value]:
        found: dict[str, Value] = {}  # an array may be K and V
        for value in self.values:
            if value and value.constant is None:
                found.setdefault(value.name, value)
        return list(found.values())

    @cached_property
    def text(self) -> str:
        """The module with the node as onnx-mlir writes it."""
        number = {value.name: f"%arg{i}"
                  for i, value in enumerate(self._arguments)}
        lines, operands = [], []
        for i, value in enumerate(self.values):
            if value is None:
                lines.append(f'    %none{i} = "onnx.NoValue"() : () -> none')
                operands.append(f"%none{i}")
            elif value.constant is not None:
                lines.append(f"    %c{i} = arith.constant {value.constant} : "
                             f"{value.type}")
                operands.append(f"%c{i}")
            else:
                operands.append(number[value.name])
        results = ", ".join(value.type if value else "none"
                            for value in self.results)
        given = [(f"%y#{i}", value.type)
                 for i, value in enumerate(self.results) if value]
        types = ", ".join(value.type if value else "none"
                          for value in self.values)
        attributes = ", ".join(f"{name} = {value}"
                               for name, value in self.attributes)
        arguments = ", ".join(f"%arg{i}: {value.type}"
                              for i, value in enumerate(self._arguments))
        returned = ", ".join(type for _, type in given)
        return "\n".join([
            f'func.func @"{self.name}"({arguments}) -> ({returned}) {{',
            *lines,
            f'    %y:{len(self.results)} = "onnx.Attention"('
            f'{", ".join(operands)}) {{{attributes}}}',
            f"        : ({types}) -> ({results})",
            f"    return {', '.join(name for name, _ in given)} : {returned}",
            "}", ""])

    def raised(self) -> str:
        """The module with attn.forward.  UnsupportedError, with the reason, if
        attn.forward cannot express the node."""
        done = mlir.run(self.text, "attn-raise, canonicalize",
                        allow_unregistered=True)
        for said in done.diagnostics:
            if said.severity == "remark" and said.message.startswith(_REFUSED):
                raise UnsupportedError(
                    f"{self.name}: {said.message[len(_REFUSED):]}")
        return done.text


def _type(name: str, tensor: Any) -> str:
    """tensor<2x?x8xf32>; a size that has a name is open."""
    kind = _onnx.TensorProto.DataType.Name(tensor.elem_type)
    if kind not in _ELEMENTS:
        raise UnsupportedError(f"{name}: attn has no elements of {kind}")
    if not tensor.HasField("shape"):
        raise UnsupportedError(f"{name}: its rank is not known")
    sizes = [str(dim.dim_value) if dim.HasField("dim_value") else "?"
             for dim in tensor.shape.dim]
    return f"tensor<{'x'.join([*sizes, _ELEMENTS[kind]])}>"


def _dense(array: Any) -> str:
    """The elements of a constant, as the bytes of MLIR's dense<"0x...">."""
    data = array.tobytes()
    if array.dtype == bool:
        if array.size == 0 or array.all() or not array.any():
            return f"dense<{str(bool(array.all())).lower()}>"
        # MLIR packs booleans: the first is the lowest bit.
        bits = [bool(x) for x in array.reshape(-1)]
        data = bytes(sum(bit << i for i, bit in enumerate(bits[at:at + 8]))
                     for at in range(0, len(bits), 8))
    return f'dense<"0x{data.hex().upper()}">'


class _Graph:
    """The types and constants of a model's main graph."""

    def __init__(self, model: Any) -> None:
        graph = _onnx.shape_inference.infer_shapes(model).graph
        self.nodes = graph.node
        self._types = {
            value.name: value.type.tensor_type
            for values in (graph.input, graph.value_info, graph.output)
            for value in values if value.type.HasField("tensor_type")}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t

    def value(self, name: str) -> Optional[Value]:
        if not name:
            return None
        if name in self._constants:
            tensor = self._constants[name]
            kind = _onnx.TensorProto.DataType.Name(tensor.data_type)
            if kind not in _ELEMENTS:
                raise UnsupportedError(f"{name}: attn has no elements of "
                                       f"{kind}")
            sizes = [str(size) for size in tensor.dims]
            return Value(name,
                         f"tensor<{'x'.join([*sizes, _ELEMENTS[kind]])}>",
                         _dense(_arrays.to_array(tensor)))
        if name not in self._types:
            raise UnsupportedError(f"{name}: its type is not known")
        return Value(name, _type(name, self._types[name]))


def _attribute(attribute: Any) -> Iterator[tuple[str, str]]:
    value = _onnx.helper.get_attribute_value(attribute)
    if attribute.type == _onnx.AttributeProto.INT:
        yield attribute.name, f"{value} : si64"
    elif attribute.type == _onnx.AttributeProto.FLOAT:
        # Hexadecimal, so that no digit is lost.
        bits = int.from_bytes(_float_bytes(value), "little")
        yield attribute.name, f"0x{bits:08X} : f32"


def _float_bytes(value: float) -> bytes:
    import struct
    return struct.pack("<f", value)


def _read(graph: _Graph, node: Any, number: int) -> Node:
    if len(node.input) > len(_INPUTS) or len(node.output) > _OUTPUTS:
        raise Error(f"{node.name}: expects at most {len(_INPUTS)} inputs and "
                    f"{_OUTPUTS} outputs")
    # In an attention of self, one array may be several inputs.
    return Node(node.name or f"attention_{number}",
                tuple(graph.value(name) for name in node.input),
                tuple(graph.value(name) for name in node.output),
                tuple(pair for attribute in node.attribute
                      for pair in _attribute(attribute)))


def load(model: Union[str, "os.PathLike[str]", Any]) -> Sequence[Node]:
    """The nodes Attention of a model: a file's name, or an `onnx.ModelProto`.
    Nodes of subgraphs and of functions are not looked at."""
    if isinstance(model, (str, os.PathLike)):
        model = _onnx.load(os.fspath(model))
    version = next((opset.version for opset in model.opset_import
                    if opset.domain in ("", "ai.onnx")), 0)
    graph = _Graph(model)
    found = [node for node in graph.nodes
             if node.op_type == "Attention" and node.domain in ("", "ai.onnx")]
    if found and version not in OPSETS:
        raise UnsupportedError(
            f"expects opset {OPSETS[0]} to {OPSETS[-1]}, but got {version}")
    return [_read(graph, node, number) for number, node in enumerate(found)]
