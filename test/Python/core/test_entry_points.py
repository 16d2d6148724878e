"""Wrong values in every argument of every entry point.

Each ends in a result or in an exception of a documented type, and never ends
the process.  What a function says about the commonest mistakes is in the tests
of that function.
"""

import ctypes
import dataclasses
import inspect

import attn
import pytest
from attn import _native
from fake_arrays import Dlpack, Interface

DOCUMENTED = (ValueError, TypeError, attn.Error)


class Text(str):
    """A string with another idea of its bytes."""

    def encode(self, *_):
        return 7


class Number:
    """Says that it is an integer, and is none."""

    def __index__(self):
        raise ValueError("no number")


class Odd:
    """An array that breaks the protocol it speaks."""

    def __init__(self, **more):
        self.__dict__.update(more)


def interface(**change):
    entries = {"shape": (2, 8, 100, 64), "typestr": "<f2", "strides": None,
               "data": (1 << 40, False), "version": 3, **change}
    return Odd(__cuda_array_interface__={
        key: value for key, value in entries.items() if value is not KeyError})


BROKEN = [
    *(interface(**{key: value}) for key in ("shape", "typestr", "data")
      for value in (KeyError, None, 7, -1, "<f2", (), ("a", "b"), (1.5,),
                    (-1, False), (1 << 70, False), (2, 8, 100, -64),
                    (1 << 62, 1 << 62, 1 << 62, 64))),
    *(interface(strides=value) for value in (
        7, "abcd", (1, 2), (1, 2, 3, 4.5), (1 << 70, 1, 1, 2))),
    *(interface(stream=value) for value in ("main", -1, 1 << 70, True, 1.5)),
    Odd(__cuda_array_interface__=7), Odd(__cuda_array_interface__=[]),
    *(Odd(__dlpack__=lambda **_: 7, __dlpack_device__=lambda value=value: value)
      for value in ((2, 0), (2,), 7, None, ("cuda", 0), (2, 0, 0))),
    Dlpack(2, 8, 100, 64, address=(1 << 64) - 2, offset=0),
    Dlpack(*[1] * 70), Dlpack(2, 8, 100, 64, lanes=4),
    Dlpack(2, 8, 100, 64, device_type=99), Dlpack(1 << 62, 8, 100, 64),
    Dlpack(2, -8, 100, 64), Dlpack(2, 8, 100, 64, strides=(1 << 62,) * 4)]

VALUES = [
    None, True, 7, -1, 0, 10**400, -(10**400), 1.5, float("nan"), "",
    "nonsense", "a\0b", "\ud800", Text("h100_sxm"), "h100_sxm, sms = 0",
    "h" * 5000, b"bytes", [], {}, (), (1,), object(), Number(), lambda: 1,
    Interface(1, 2, 3, 4), Dlpack(1, 2, 3, 4)]

D = 64
Q, K, LSE = (2, 8, 100, D), (2, 2, 300, D), (2, 8, 100)
FLAGS = ("lse", "dlse", "return_lse", "return_lse_low", "lse_low",
         "deterministic", "keep_weights", "return_softmax_lse")
ARRAYS = ("q", "k", "v", "o", "do", "lse", "lse_low", "dlse", "out", "dq", "dk",
          "dv", "weights", "block_rows", "scratch", "cu_seqlens_q",
          "cu_seqlens_k")


def forward_arrays():
    return dict(q=Dlpack(*Q), k=Dlpack(*K), v=Dlpack(*K))


def backward_arrays():
    return dict(do=Dlpack(*Q), **forward_arrays(), o=Dlpack(*Q),
                lse=Dlpack(*LSE, dtype="f32"))


def ragged_arrays():
    """Two sequences of queries and keys."""
    tokens, heads, dim = Q[0] * Q[2], Q[1], Q[3]
    keys = K[0] * K[2], K[1], dim
    return dict(q=Dlpack(tokens, heads, dim), k=Dlpack(*keys),
                v=Dlpack(*keys), cu_seqlens_q=Interface(3, typestr="<i4"),
                cu_seqlens_k=Interface(3, typestr="<i4"), max_seqlen_q=Q[2],
                max_seqlen_k=K[2], out=Dlpack(tokens, heads, dim))


def results():
    return dict(dq=Dlpack(*Q), dk=Dlpack(*K), dv=Dlpack(*K))


SHAPE = dict(batch=1, heads=2, queries=64, head_dim=64)
SIZED = dict(batch=1, heads=2, queries=64, keys=64, head_dim=64)


def entry_points():
    """Functions, and arguments with which they work."""
    yield attn.plan, lambda: dict(SHAPE)
    yield attn.explain, lambda: dict(SHAPE)
    yield attn.diagram, lambda: dict(SHAPE)
    yield attn.bound_schedule, lambda: dict(problem=attn.Problem(**SIZED))
    yield attn.compile, lambda: dict(text=attn.Problem(heads=2, head_dim=64))
    yield attn.forward, lambda: dict(forward_arrays(), out=Dlpack(*Q))
    yield attn.attention_varlen, ragged_arrays
    yield attn.scratch_bytes, forward_arrays
    yield attn.backward, lambda: dict(backward_arrays(), **results())
    yield attn.backward_scratch_bytes, backward_arrays
    yield attn.device, lambda: {}
    yield attn.configure_cache, lambda: dict(folder=None)


TAKEN = {function: make for function, make in entry_points()}
WITHOUT_ARGUMENTS = {attn.cache_info, attn.devices, attn.get_include,
                     attn.get_library, attn.machines}


def test_no_function_is_left_out():
    functions = {getattr(attn, name) for name in attn.__all__
                 if inspect.isfunction(getattr(attn, name))}
    assert functions == set(TAKEN) | WITHOUT_ARGUMENTS
    for function in WITHOUT_ARGUMENTS:
        assert not inspect.signature(function).parameters


def test_explain_takes_what_plan_takes():
    assert (inspect.signature(attn.explain).parameters ==
            inspect.signature(attn.plan).parameters)
    assert attempt(attn.explain, **SHAPE, machine="nonsense")


def attempt(function, /, *arguments, **named):
    """Calls it; an exception of another type goes on."""
    try:
        function(*arguments, **named)
    except DOCUMENTED as error:
        assert str(error) or isinstance(error, UnicodeError), error
        return error
    return None


def cases():
    for function in TAKEN:
        if function is attn.explain:  # reads what plan reads
            continue
        for name in inspect.signature(function).parameters:
            yield pytest.param(function, name,
                               id=f"{function.__name__}-{name}")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function, name", list(cases()))
def test_wrong_arguments(gpu, tmp_path, monkeypatch, function, name):
    monkeypatch.chdir(tmp_path)  # some are names of folders
    values = VALUES + (BROKEN if name in ARRAYS else [])
    if name in FLAGS:  # most are taken, and cost a plan
        values = VALUES[::4]
    errors = [attempt(function, **{**TAKEN[function](), name: value})
              for value in values]
    # Whether something is wanted any value can say.
    assert any(errors) or name in FLAGS
    # And what was tried has broken nothing.
    attn.configure_cache()
    function(**TAKEN[function]())


@pytest.mark.parametrize("function", list(TAKEN))
def test_arguments_that_are_missing(gpu, function):
    for name in TAKEN[function]():
        rest = {key: value for key, value in TAKEN[function]().items()
                if key != name}
        attempt(function, **rest)


@pytest.mark.long
@pytest.mark.parametrize("field", [
    field.name for field in dataclasses.fields(attn.Problem)])
def test_wrong_problems(field):
    for value in VALUES:
        problem = attn.Problem(**{**SIZED, field: value})
        for use in (lambda: problem.text, lambda: attn.compile(problem),
                    lambda: attn.bound_schedule(problem)):
            attempt(use)


def test_wrong_calls_of_what_is_compiled(gpu):
    program = attn.compile(attn.Problem(heads=8, kv_heads=2, head_dim=D))
    arrays = [Dlpack(*Q), Dlpack(*K), Dlpack(*K), Dlpack(*Q)]
    for value in VALUES + BROKEN:
        attempt(program.load, value)
        attempt(program, *arrays, stream=value)
        for position in range(4):
            wrong = [*arrays[:position], value, *arrays[position + 1:]]
            attempt(program, *wrong)
            attempt(program.bind, *wrong)
    # Open sizes must be those of one attention.
    for q, k, v, o in (((3, *Q[1:]), K, K, Q), (Q, (3, *K[1:]), K, Q),
                       (Q, K, (2, 2, 301, D), Q), (Q, K, K, (2, 8, 99, D)),
                       (Q, K, K, (1, *Q[1:]))):
        assert "in dimension" in str(attempt(program, *(
            Dlpack(*sizes) for sizes in (q, k, v, o))))
    binding = program.bind(*arrays)
    for value in VALUES:
        attempt(binding.launch, value)
        attempt(binding.launch, [value] * 4)
        attempt(binding.launch, [1 << 40] * 4, scratch=value)
        attempt(binding.launch, [1 << 40] * 4, scratch=(value, value))
        if not isinstance(value, int):
            attempt(binding.launch, [1 << 40] * 4, stream=value)
    program(*arrays)


TEXT = """
func.func @f(%q: memref<1x2x64x64xbf16>, %o: memref<1x2x64x64xbf16>) {
  attn.forward %q, %q, %q outs(%o : memref<1x2x64x64xbf16>)
    : memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>
  return
}
"""


@pytest.mark.parametrize("machine", [
    "nonsense", "h1000, sms = 3", "h100_sxm, nonsense = 3", "h100_sxm, sms",
    "h100_sxm, sms = 0", "h100_sxm,", ","])
def test_unknown_machines_everywhere(gpu, machine):
    asked = [
        lambda: attn.plan(**SHAPE, machine=machine),
        lambda: attn.plan(**SHAPE, direction="backward", machine=machine),
        lambda: attn.explain(**SHAPE, machine=machine),
        lambda: attn.bound_schedule(attn.Problem(**SIZED), machine=machine),
        lambda: attn.compile(TEXT, machine=machine),
        lambda: attn.compile(attn.Problem(heads=2, head_dim=64,
                                          direction="backward"),
                             machine=machine)]
    for extra in ({}, {"schedule": "split_backward"}, {"deterministic": True}):
        asked += [
            lambda extra=extra: attn.backward(
                **backward_arrays(), **results(), **extra, machine=machine),
            lambda extra=extra: attn.backward_scratch_bytes(
                **backward_arrays(), **extra, machine=machine)]
    asked += [
        lambda: attn.forward(**forward_arrays(), out=Dlpack(*Q),
                             machine=machine),
        lambda: attn.scratch_bytes(**forward_arrays(), machine=machine)]
    for ask in asked:
        error = attempt(ask)
        assert error and "expects" in str(error), error
    assert gpu.launches() == []


# -- The C interface --------------------------------------------------------

#: What NULL and 0 mean something to: no folder, no ptxas.
MAY_BE_NULL = {"attn_cache_open", "attn_assembler_set"}
#: The frame is XLA's own.
NOT_OURS = {"attn_main", "attn_xla_forward", "attn_xla_backward"}
STATUS = ctypes.POINTER(_native.Status)


@pytest.mark.parametrize("name", sorted(set(_native.SIGNATURES) - NOT_OURS))
def test_null_everywhere(gpu, name):
    result, types = _native.SIGNATURES[name]
    function = _native.function(name)
    nothing = [0 if kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t)
               else None for kind in types]
    if result is not ctypes.c_int32:
        function(*nothing)
        return
    assert types[-1] is STATUS
    status = _native.Status()
    code = function(*nothing[:-1], ctypes.byref(status))
    assert (code == 0) == (name in MAY_BE_NULL) and code == status.code
    assert code in (0, 1)
    assert bool(status.message) == bool(code)
    _native.function("attn_status_clear")(ctypes.byref(status))
    assert function(*nothing) == code  # without a status


@pytest.mark.parametrize("structure, functions", [
    (_native.Problem, ("attn_plan_json", "attn_plan_text",
                       "attn_bound_schedule", "attn_diagram_svg",
                       "attn_problem_text")),
    (_native.ForwardRequest, ("attn_forward", "attn_forward_bind",
                              "attn_forward_kept", "attn_forward_kept_bind")),
    (_native.BackwardRequest, ("attn_backward", "attn_backward_bind",
                               "attn_backward_kept",
                               "attn_backward_kept_bind"))])
def test_structures_of_zeros(gpu, structure, functions):
    """With every size, and with every pointer NULL."""
    for size in (0, 8, ctypes.sizeof(structure) - 1,
                 ctypes.sizeof(structure), 1 << 40):
        for name in functions:
            _, types = _native.SIGNATURES[name]
            given = structure(size)
            place, status = ctypes.c_void_p(), _native.Status()
            buffer = _native.Buffer()
            arguments = [ctypes.byref(given)]
            for kind in types[1:-1]:
                if kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t):
                    arguments.append(0)
                elif kind is ctypes.c_char_p:
                    arguments.append(b"h100_sxm")
                elif kind is ctypes.POINTER(_native.Buffer):
                    arguments.append(ctypes.byref(buffer))
                elif kind is ctypes.POINTER(ctypes.c_void_p):
                    arguments.append(ctypes.byref(place))
                else:
                    arguments.append(None)
            code = _native.function(name)(*arguments, ctypes.byref(status))
            assert code in (1, 2, 5) and status.message, (name, size)
            assert place.value is None
            _native.function("attn_status_clear")(ctypes.byref(status))
