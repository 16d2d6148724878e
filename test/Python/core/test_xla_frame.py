"""XLA's handlers with clauses and lists, on the driver that runs nothing.

The call frame is built here as XLA builds it, so neither JAX nor a GPU is
needed; test_jax_abi.py has what a real XLA hands over.
"""

import contextlib
import ctypes
import itertools
import os

import pytest
from conftest import FAKE

from attn import _backward, _bindings, _native
from attn._arrays import Array
from attn._dlpack import row_major

SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p
TYPES = {"i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "u8": 6, "f16": 10,
         "f32": 11, "bf16": 16}
_fresh = itertools.count(0x7F00_0000_0000, 1 << 32)


def structure(*fields):
    return type("Structure", (ctypes.Structure,), {"_fields_": [
        ("size", SIZE), ("extensions", POINTER), *fields]})


Buffer = structure(("type", ctypes.c_int32), ("data", POINTER),
                   ("rank", ctypes.c_int64), ("dims", POINTER))
Values = structure(("count", ctypes.c_int64), ("types", POINTER),
                   ("values", POINTER))
Attributes = structure(("count", ctypes.c_int64), ("types", POINTER),
                       ("names", POINTER), ("values", POINTER))
ErrorCreate = structure(("message", ctypes.c_char_p), ("code", ctypes.c_int32))
StreamGet = structure(("context", POINTER), ("stream", POINTER))
CREATE = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(ErrorCreate))
STREAM = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(StreamGet))
NOTHING = ctypes.CFUNCTYPE(None, POINTER)
Api = structure(("version", ctypes.c_byte * 24), ("internal", POINTER),
                ("create", CREATE), ("message", NOTHING),
                ("destroy", NOTHING), ("register", POINTER),
                ("stream", STREAM))
Frame = structure(("api", POINTER), ("context", POINTER),
                  ("stage", ctypes.c_int32), ("arguments", Values),
                  ("results", Values), ("attributes", Attributes))


class Span(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", SIZE)]


class Caller:
    """Calls handlers on a stream, and says what they complained of."""

    def __init__(self):
        self.said = None
        self.stream = None

    def _buffers(self, arrays):
        made = []
        for kind, sizes in arrays:
            dims = (ctypes.c_int64 * len(sizes))(*sizes)
            made.append(Buffer(ctypes.sizeof(Buffer), None, TYPES[kind],
                               next(_fresh), len(sizes),
                               ctypes.cast(dims, POINTER)))
            self.kept.append(dims)
        types = (ctypes.c_int32 * len(made))(*[1] * len(made))
        values = (POINTER * len(made))(*map(ctypes.addressof, made))
        self.kept += [made, types, values]
        return Values(ctypes.sizeof(Values), None, len(made),
                      ctypes.cast(types, POINTER),
                      ctypes.cast(values, POINTER))

    def _attributes(self, given):
        names, values = ([Span(text.encode(), len(text.encode()))
                          for text in texts]
                         for texts in (given, given.values()))
        types = (ctypes.c_int32 * len(given))(*[4] * len(given))
        arrays = [(POINTER * len(given))(*map(ctypes.addressof, spans))
                  for spans in (names, values)]
        self.kept += [names, values, types, arrays]
        return Attributes(ctypes.sizeof(Attributes), None, len(given),
                          *(ctypes.cast(each, POINTER)
                            for each in (types, *arrays)))

    def __call__(self, name, operands, results, **attributes):
        """None, or what is wrong."""
        self.kept, self.said = [], None

        def create(arguments):
            self.said = arguments.contents.message.decode()
            return 1

        def give_stream(arguments):
            arguments.contents.stream = self.stream

        api = Api(ctypes.sizeof(Api), None, (ctypes.c_byte * 24)(), None,
                  CREATE(create), NOTHING(0), NOTHING(0), None,
                  STREAM(give_stream))
        frame = Frame(ctypes.sizeof(Frame), None, ctypes.addressof(api), None,
                      3, self._buffers(operands), self._buffers(results),
                      self._attributes(attributes))
        _native.function(name)(ctypes.addressof(frame))
        return self.said


@pytest.fixture
def call(gpu):
    return Caller()


Q, K, ROWS = (2, 4, 200, 64), (2, 2, 260, 64), (2, 4, 200)
DENSE = [("bf16", Q), ("bf16", K), ("bf16", K)]
#: Two lists, and the transposed ones.
LISTS = [("i32", (1, 4, 2)), ("i32", (1, 4, 2, 3))] * 2
TURNED = [("i32", (1, 4, 3)), ("i32", (1, 4, 3, 2))] * 2
SCORE = """captures(%c0, %c1 : !c0, !c1)
sees (%b, %h, %i, %j, %nq, %nk, %c0, %c1) {
  %0 = attn.read %c0[%j] : !c0
  %1 = arith.constant 3 : i32
  %2 = arith.cmpi sgt, %0, %1 : i32
  attn.yield %2 : i1
}
score (%z, %b, %h, %i, %j, %nq, %nk, %c0, %c1) {
  %0 = attn.read %c1[%h, %j] : !c1
  %1 = arith.addf %z, %0 : f32
  attn.yield %1 : f32
}"""
CAPTURED = [("i32", (260,)), ("f32", (4, 260))]
CLAUSES = {"clauses": SCORE, "captures": "c0 i32, c1 f32"}
BLOCKS = {"lists": "partial, full", "block_size": "128 x 128"}
BACKWARD = [("bf16", Q), *DENSE, ("bf16", Q), ("f32", ROWS), ("f32", ROWS)]
GRADIENTS = [("bf16", Q), ("bf16", K), ("bf16", K)]


@pytest.mark.parametrize("captured, lists, lse", (
    (True, "", True), (False, "full", False), (True, "partial, full", True)))
def test_forward(call, gpu, captured, lists, lse):
    kinds = [kind for kind in lists.split(", ") if kind]
    operands = [*DENSE, *LISTS[:2 * len(kinds)],
                *(CAPTURED if captured else [])]
    results = [("bf16", Q), *[("f32", ROWS)] * lse]
    attributes = {**(CLAUSES if captured else {}),
                  **({"lists": lists, "block_size": "128 x 128"}
                     if lists else {})}
    assert call("attn_xla_forward", operands, results, mask="",
                **attributes) is None
    assert len(gpu.launches()) == 1


@pytest.mark.parametrize("dlse, lists, wanted", (
    (True, False, "c1"), (False, True, "")))
def test_gradients(call, gpu, dlse, lists, wanted):
    operands = [*BACKWARD, *[("f32", ROWS)] * dlse,
                *((*LISTS, *TURNED) if lists else ()), *CAPTURED]
    results = [*GRADIENTS, *[("f32", (4, 260))] * bool(wanted)]
    assert call("attn_xla_backward", operands, results, lse_low="true",
                gradients=wanted, **CLAUSES,
                **(BLOCKS if lists else {})) is None
    assert gpu.launches()
    # Where there is a dlse, one operand less is taken for its lack.
    assert call("attn_xla_backward", operands[:-1], results, lse_low="true",
                gradients=wanted, **CLAUSES, **(BLOCKS if lists else {})
                ).startswith("expects capture c0 of i32" if dlse else
                             "expects operands do, q, k, v, o, lse, lse_low")


def refusal(call, result, given):
    """What a forward call with a result of that shape is told; it says something."""
    attributes = dict(given)
    said = call("attn_xla_forward", attributes.pop("operands"),
                [("bf16", result)], **attributes)
    assert said
    return said


@pytest.mark.parametrize("change, text", (
    (dict(captures="c0 i32"), "expects operands q, k, v, partial_counts"),
    (dict(captures="c0 i32 c1"), "expects captures as 'c0 i32, c1 f32'"),
    (dict(captures="c0 i64, c1 f32"),
     "expects capture c0 of i64, but got XLA's type 4"),
    (dict(captures="c0 i32, c2 f32"), "c1"),
    (dict(lists="half"), "lists that are partial or full, but got 'half'"),
    (dict(lists="partial"), "expects operands q, k, v, partial_counts, "
     "partial_blocks, capture c0, capture c1 and results o, lse (optional)"),
    (dict(block_size="128"), "expects a block_size as '128 x 128', but got"),
    (dict(block_size="100 x 64"), "multiples of 64 queries and keys"),
    (dict(block_size="64 x 64"), "expects partial_counts of shape"),
    (dict(gradients="c7"), "expects gradients of captures, but got 'c7'"),
    (dict(clauses="mask(causal)"), "expects a clause, but got 'mask'"),
    (dict(clauses=""), "expects that they name capture 'c0'"),
    (dict(operands=[*DENSE, ("f32", (1, 4, 2)), *LISTS[1:], *CAPTURED]),
     "expects partial_counts of i32 for q of bf16, but got XLA's type 11"),
    (dict(operands=[(kind, (3, *sizes)) for kind, sizes in DENSE]
          + LISTS + CAPTURED), "expects q of rank 4 beside clauses and lists "
     "of blocks, but got 5"),
))
def test_what_is_wrong(call, change, text):
    given = {"operands": [*DENSE, *LISTS, *CAPTURED], **CLAUSES, **BLOCKS,
             **change}
    assert text in refusal(call, Q, given)


# -- Sequences that lie one behind the other ------------------------------------

TOKENS, KEYS, OF_TOKENS = (300, 8, 64), (700, 2, 64), (8, 300)
PACKED = [("bf16", TOKENS), ("bf16", KEYS), ("bf16", KEYS)]
PACKED_BACKWARD = [("bf16", TOKENS), *PACKED, ("bf16", TOKENS),
                   ("f32", OF_TOKENS), ("f32", OF_TOKENS)]


def offsets(kind="i32"):
    return [(kind, (4,))] * 2


@pytest.mark.parametrize("kind", ("i32", "i64"))
@pytest.mark.parametrize("words", (0, 1, 2))
def test_sequences(call, gpu, kind, words):
    assert call("attn_xla_forward", [*PACKED, *offsets(kind)],
                [("bf16", TOKENS), *[("f32", OF_TOKENS)] * words],
                mask="causal_bottom_right", longest="200, 400",
                lse_low="true" if words == 2 else "") is None
    name = "ragged64" if kind == "i64" else "ragged"
    kernels = [each["kernel"] for each in gpu.launches()]
    assert kernels and all(name in kernel for kernel in kernels)
    assert kind == "i64" or not any("ragged64" in each for each in kernels)


@pytest.mark.parametrize("dlse", (False, True))
def test_gradients_of_sequences(call, gpu, dlse):
    operands = [*PACKED_BACKWARD, *[("f32", OF_TOKENS)] * dlse, *offsets()]
    assert call("attn_xla_backward", operands, PACKED, lse_low="true",
                longest="200, 400") is None
    kernels = [each["kernel"] for each in gpu.launches()]
    assert kernels and all("ragged" in kernel for kernel in kernels)
    assert any("_dlse" in kernel for kernel in kernels) == dlse


@pytest.mark.parametrize("change, text", (
    (dict(longest="200"), "expects the longest sequences as '200, 400', of "
     "queries and keys, but got '200'"),
    (dict(longest="200, many"), "but got '200, many'"),
    (dict(longest="-1, 400"), "expects the longest sequences between 0 and"),
    (dict(longest="200, 99999999999"), "but got 99999999999"),
    (dict(longest=""), "expects an array of rank 4 or more, but got 3"),
    (dict(operands=PACKED), "expects operands q, k, v, cu_q, cu_k and results "
     "o, lse (optional)"),
    (dict(operands=[*PACKED, *offsets("f32")]),
     "expects cu_q of i32 for q of bf16, but got XLA's type 11"),
    (dict(operands=[*PACKED, ("i64", (4,)), ("i32", (4,))]),
     "expects cu_k of i64 for q of bf16, but got XLA's type 4"),
    (dict(operands=[*PACKED, ("i32", (4,)), ("i32", (5,))]),
     "expects cu_k of shape"),
    (dict(operands=[*DENSE, *offsets()]), "expects q of rank 3 beside offsets "
     "of sequences, but got 4"),
    (dict(operands=[*PACKED, *offsets(), *offsets()]),
     "expects operands q, k, v, cu_q, cu_k"),
))
def test_what_is_wrong_with_sequences(call, gpu, change, text):
    given = {"operands": [*PACKED, *offsets()], "longest": "200, 400",
             **change}
    assert text in refusal(call, TOKENS, given)
    assert not gpu.launches()


# -- Scratch --------------------------------------------------------------------

def shapes(names, arrays):
    return {name: Array(0, kind, sizes, row_major(sizes), 0, None)
            for name, (kind, sizes) in zip(names, arrays)}


GRADIENT_NAMES = (*_backward.INPUTS[:5], "lse", "lse_low", *_backward.GRADIENTS)


@pytest.fixture
def needed(gpu):
    """The bytes that gradients need on the GPU."""
    return _bindings.scratch_bytes_of(
        "backward", shapes(GRADIENT_NAMES, [*BACKWARD, *GRADIENTS]),
        (*_backward.INPUTS, *_backward.GRADIENTS), "none", None, "h100_sxm",
        None, None, 0)


class Driver:
    """The driver that runs nothing: what it has, and streams that capture."""

    def __init__(self):
        self.library = ctypes.CDLL(os.path.join(FAKE, "libcuda.so.1"))

    @contextlib.contextmanager
    def capture(self, stream):
        self.library.fakeCudaCapture(POINTER(stream), 1)
        yield
        self.library.fakeCudaCapture(POINTER(stream), 0)


@pytest.fixture
def driver(gpu):
    return Driver()


def with_workspace(call, count, kind="u8", **attributes):
    return call("attn_xla_backward", BACKWARD,
                [*GRADIENTS, *([] if count is None else [(kind, (count,))])],
                lse_low="true", **attributes)


def test_scratch_is_the_workspace(call, gpu, driver, needed):
    """Then a launch asks the driver for none, also while a stream captures."""
    assert needed > 0
    call.stream = 0x5000
    for count in (needed, needed + 256):
        assert with_workspace(call, count, workspace="true") is None
        with driver.capture(call.stream):
            assert with_workspace(call, count, workspace="true") is None
    assert gpu.launches() and "allocate" not in gpu.lines()


@pytest.mark.parametrize("missing", (None, 1, 256))
def test_scratch_is_the_drivers(call, gpu, driver, needed, missing):
    """Where there is no workspace or too small a one, but not in a graph."""
    given = None if missing is None else needed - missing
    said = {} if missing is None else {"workspace": "true"}
    call.stream = 0x6000
    assert with_workspace(call, given, **said) is None
    count = len(gpu.launches())
    with driver.capture(call.stream):
        wrong = with_workspace(call, given, **said)
    assert (f"needs {needed} bytes of scratch memory, but got a workspace of "
            f"{given or 0} (") in wrong
    assert count and len(gpu.launches()) == count
    assert gpu.lines().count("allocate") == 1


def test_without_scratch_nothing_is_missing(call, gpu, driver):
    call.stream = 0x7000
    with driver.capture(call.stream):
        assert call("attn_xla_forward", DENSE, [("bf16", Q)]) is None
        assert call("attn_xla_forward", DENSE, [("bf16", Q), ("u8", (0,))],
                    workspace="true") is None


def test_what_is_wrong_with_a_workspace(call, needed):
    assert with_workspace(call, needed, "i8", workspace="true") == (
        "expects a workspace of u8, but got XLA's type 2")
    assert with_workspace(call, None, workspace="true").endswith(
        "results dq, dk, dv, workspace")
    assert with_workspace(call, needed, "u8", longest="", lists="partial",
                          block_size="128 x 128", workspace="true").startswith(
        "expects operands do, q, k, v, o, lse")
