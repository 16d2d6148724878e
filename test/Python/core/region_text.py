"""What the text of a region computes, on arrays of NumPy."""

import operator
import re

import numpy as np

_WORDS = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32,
          "i64": np.int64, "index": np.int64, "f32": np.float32}


def _quotient(a, b):
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b))


SIGNS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
          "le": operator.le, "gt": operator.gt, "ge": operator.ge}
_OPS = {
    "arith.addi": operator.add, "arith.subi": operator.sub,
    "arith.muli": operator.mul, "arith.divui": _quotient,
    "arith.floordivsi": _quotient,
    "arith.remui": lambda a, b: a - _quotient(a, b) * b,
    "arith.andi": operator.and_, "arith.ori": operator.or_,
    "arith.xori": operator.xor, "arith.shli": operator.lshift,
    "arith.shrsi": operator.rshift, "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum, "math.absi": np.abs,
    "arith.addf": operator.add, "arith.subf": operator.sub,
    "arith.mulf": operator.mul, "arith.divf": operator.truediv,
    "arith.negf": operator.neg, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "math.powf": np.power,
    "arith.select": np.where, "math.absf": np.abs,
    **{f"math.{name}": getattr(np, name) for name in
       ("tanh", "exp", "log", "sqrt", "floor", "ceil", "sin", "cos", "exp2")},
}


def _constant(word, kind):
    if word in ("true", "false"):
        return np.bool_(word == "true")
    if word.startswith("0x"):
        return np.uint32(int(word, 16)).view(np.float32)
    return _WORDS[kind](float(word) if kind == "f32" else int(word))


def evaluate(text, captures, **values):
    """What a region gives, by its text alone."""
    named = {f"%{name}": value for name, value in values.items()}
    named.update((f"%{name}", array) for name, array in captures.items())
    for line in text.splitlines()[1:-1]:
        name, _, rest = line.strip().rpartition(" = ")
        op, *_ = rest.split()
        body, _, kind = rest[len(op):].rpartition(" : ")
        operands = [named[word] for word in re.findall(r"%\w+", body)]
        target = kind.split()[-1]
        if op == "attn.yield":
            return operands[0]
        if op == "arith.constant":
            word, _, kind = rest[len(op) + 1:].partition(" : ")
            named[name] = _constant(word, kind)
        elif op == "attn.read":
            array, *places = operands
            named[name] = array[tuple(places)] if places else array
        elif op in ("arith.cmpi", "arith.cmpf"):
            sign = SIGNS[body.split(",")[0].strip().lstrip("suo")
                          if op == "arith.cmpi" else
                          body.split(",")[0].strip()[1:]]
            named[name] = sign(*operands)
        elif " to " in kind:
            named[name] = np.asarray(operands[0]).astype(_WORDS[target])
        else:
            named[name] = np.asarray(_OPS[op](*operands)).astype(
                _WORDS[target])
    raise AssertionError("no attn.yield")
