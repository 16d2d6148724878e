"""Mask and score functions as regions: what the text of a region computes is
what the function computes on arrays of NumPy."""

import math
import random
import re

import fake_arrays
import pytest

import attn
from attn import _clauses
from attn import functions as fn
from attn._trace import Captures, trace

np = pytest.importorskip("numpy")
from region_text import SIGNS, evaluate  # noqa: E402

def grid():
    b, h, q, k = np.meshgrid(*(np.arange(n) for n in (2, 3, 13, 17)),
                             indexing="ij")
    return dict(b=b, h=h, i=q, j=k, nq=13, nk=17)


def compare(function, keyword):
    captures = Captures()
    region = trace(function, keyword, captures)
    text = region.text(captures.all)
    positions = grid()
    arguments = [positions[name] for name in "bhij"]
    extra = {}
    if keyword == "score":
        score = np.random.default_rng(0).standard_normal(
            positions["i"].shape).astype(np.float32) * 4
        extra["z"] = score
        arguments.insert(0, score)
    with np.errstate(all="ignore"):
        found = evaluate(text, {c.name: c.array for c in captures.all},
                         **positions, **extra)
        wanted = function(*arguments)
    np.testing.assert_allclose(
        np.broadcast_to(found, positions["i"].shape).astype(np.float64),
        np.broadcast_to(wanted, positions["i"].shape).astype(np.float64),
        rtol=1e-3, atol=1e-3)
    return text


IDS = np.random.default_rng(1).integers(0, 4, (17,), dtype=np.int32)
TABLE = np.random.default_rng(2).integers(-5, 9, (2, 3, 17), dtype=np.int64)
SLOPES = np.random.default_rng(3).standard_normal(3).astype(np.float32)
HALF = np.random.default_rng(4).standard_normal((13, 17)).astype(np.float16)
ALLOWED = np.random.default_rng(5).random((2, 17)) < 0.5
BYTES = np.random.default_rng(6).integers(0, 256, (17,), dtype=np.uint8)


class Maker:
    """A random function, as a closure over its parts."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def whole(self, depth):
        pick = self.random.choice
        if depth == 0:
            n = self.random.randint(-9, 9)
            return pick([
                lambda s, b, h, q, k: q, lambda s, b, h, q, k: k,
                lambda s, b, h, q, k: h, lambda s, b, h, q, k: q - k,
                lambda s, b, h, q, k: n, lambda s, b, h, q, k: IDS[q],
                lambda s, b, h, q, k: TABLE[b, h, k],
                lambda s, b, h, q, k: TABLE[1, h, q]])
        x, y = self.whole(depth - 1), self.whole(depth - 1)
        n = self.random.randint(1, 9)
        c = self.truth(depth - 1)
        return pick([
            lambda *a: x(*a) + y(*a), lambda *a: x(*a) - y(*a),
            lambda *a: x(*a) * n, lambda *a: x(*a) // n,
            lambda *a: x(*a) % n, lambda *a: -x(*a), lambda *a: abs(x(*a)),
            lambda *a: fn.maximum(x(*a), y(*a)),
            lambda *a: np.minimum(x(*a), y(*a)),
            lambda *a: fn.where(c(*a), x(*a), y(*a)),
            lambda *a: (x(*a) & n) ^ 1, lambda *a: x(*a) << 1,
            lambda *a: x(*a) >> 2, lambda *a: fn.clamp(x(*a), -3, 5)])

    def truth(self, depth):
        pick = self.random.choice
        x, y = self.whole(max(depth - 1, 0)), self.whole(max(depth - 1, 0))
        sign = pick(list(SIGNS.values()))
        if depth <= 1:
            return pick([lambda *a: sign(x(*a), y(*a)),
                         lambda s, b, h, q, k: ALLOWED[b, k]])
        c, d = self.truth(depth - 1), self.truth(depth - 1)
        return pick([lambda *a: c(*a) & d(*a), lambda *a: c(*a) | d(*a),
                     lambda *a: fn.logical_not(c(*a)),
                     lambda *a: fn.logical_xor(c(*a), d(*a)),
                     lambda *a: sign(x(*a), y(*a))])

    def real(self, depth):
        pick = self.random.choice
        if depth == 0:
            n = self.random.uniform(-2, 2)
            return pick([
                lambda s, *a: s, lambda *a: n,
                lambda s, b, h, q, k: SLOPES[h],
                lambda s, b, h, q, k: HALF[q, k]])
        x, y = self.real(depth - 1), self.real(depth - 1)
        w, c = self.whole(depth - 1), self.truth(depth - 1)
        n = self.random.uniform(1, 9)
        return pick([
            lambda *a: x(*a) + y(*a), lambda *a: x(*a) - y(*a) / n,
            lambda *a: x(*a) * np.float32(0.25) + w(*a) / n,
            lambda *a: fn.tanh(x(*a) / n) * n, lambda *a: np.tanh(y(*a)),
            lambda *a: fn.where(c(*a), x(*a), y(*a)),
            lambda *a: fn.minimum(x(*a), y(*a)),
            lambda *a: fn.sqrt(abs(x(*a)) + 1), lambda *a: -x(*a),
            lambda *a: fn.exp(-abs(x(*a))), lambda *a: fn.log(abs(y(*a)) + 2),
            lambda *a: fn.square(fn.tanh(x(*a)))])


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed):
    maker = Maker(seed)
    truth, real = maker.truth(3), maker.real(3)
    compare(lambda b, h, q, k: truth(None, b, h, q, k) == True, "sees")  # noqa: E712
    compare(lambda s, b, h, q, k: real(s, b, h, q, k) + 0 * s, "score")


MASKS = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q - k < 5) & (k - q <= 2),
    "document": lambda b, h, q, k: IDS[q] == IDS[k],
    "prefix": lambda b, h, q, k: (k < 3) | (q >= k),
    "dilated": lambda b, h, q, k: (q - k) % 3 == 0,
    "blocks": lambda b, h, q, k: q // 4 == k // 4,
    "all": lambda b, h, q, k: True,
    "bytes": lambda b, h, q, k: BYTES[k] > 128,
    "heads": lambda b, h, q, k: ALLOWED[b, k] & ~(h == 1),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    compare(MASKS[name], "sees")


SCORES = {
    "same": lambda s, b, h, q, k: s,
    "softcap": lambda s, b, h, q, k: 5 * fn.tanh(s / 5),
    "alibi": lambda s, b, h, q, k: s + SLOPES[h] * (k - q),
    "bias": lambda s, b, h, q, k: s + HALF[q, k],
    "hidden": lambda s, b, h, q, k: np.where(q >= k, s, -np.inf),
    "square of positions": lambda s, b, h, q, k: s + (q - k) ** 2 * 1e-3,
    "sigmoid": lambda s, b, h, q, k: s * (1 / (1 + np.exp(-s))),
    "last": lambda s, b, h, q, k: s + HALF[-1, k] + HALF[q, -2],
    "constant": lambda s, b, h, q, k: 0.5,
}


@pytest.mark.parametrize("name", SCORES)
def test_scores(name):
    compare(SCORES[name], "score")


def test_text_is_the_same_and_has_every_value_once():
    def score_mod(score, b, h, q, k):
        far = (q - k) * 2 + (q - k)
        return score + SLOPES[h] * far - SLOPES[h]

    texts = {compare(score_mod, "score") for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    assert text.count("arith.subi") == 1 and text.count("attn.read") == 1


def test_indices_one_after_the_other():
    texts = []
    for function in (lambda b, h, q, k: TABLE[b, h, k] > 0,
                     lambda b, h, q, k: TABLE[b][h][k] > 0):
        captures = Captures()
        texts.append(trace(function, "sees", captures).text(captures.all))
    assert texts[0] == texts[1]


def test_positions_of_one_kind_are_computed_in_32_bits():
    text = compare(lambda s, b, h, q, k: s + (q - k), "score")
    assert "index_cast %0 : index to i32" in text
    text = compare(lambda s, b, h, q, k: s + q * k, "score")
    assert "index to i64" in text  # up to 2^60


HELD = {"ids": IDS}


def test_arrays_in_helpers_partials_and_defaults():
    import functools

    def helper(q, table):
        return table[q] + IDS[q]

    def mask_mod(b, h, q, k, ids=IDS):
        return functools.partial(helper, table=TABLE[0, 0])(q) == ids[k]

    def bound(b, h, q, k):
        return helper(q, ids) == IDS[k]

    ids = IDS.copy()
    assert compare(bound, "sees").count("attn.read") == 3
    with pytest.raises(attn.UnsupportedError, match="outside of the function"):
        trace(lambda b, h, q, k: np.ones(9)[q] > 0, "sees", Captures())
    compare(lambda b, h, q, k, ids=ids: ids[q] == ids[k], "sees")
    assert mask_mod is not None


def test_arrays_in_containers():
    held: dict = {"ids": IDS.copy(), "more": [TABLE, ("name", 3)]}
    held["itself"] = held

    def bound(b, h, q, k):
        return held["ids"][q] + held["more"][0][b, h, k] > held["more"][1][1]

    assert compare(bound, "sees").count("attn.read") == 2
    assert compare(lambda b, h, q, k: HELD["ids"][q] == HELD["ids"][k],
                   "sees").count("attn.read") == 2


def test_functions_capture_what_they_read():
    """An array that has a clause of its own is no capture beside that, where
    nobody would ask it for its gradient."""
    sinks, ids = np.zeros(2, np.float32), np.zeros(9, np.int32)
    bias = np.zeros((9, 9), np.float32)
    clauses = _clauses.clauses_of((1, 2, 9, 9), dict(
        mask_mod=lambda b, h, q, k: ids[q] == ids[k], bias=bias, sinks=sinks))
    names = {id(each.array): each.name for each in clauses.captures}
    ids, bias, sinks = (names[id(each)] for each in (ids, bias, sinks))
    assert clauses.text.startswith(f"captures(%{ids} : !{ids})\nsees (%b, ")
    assert clauses.text.endswith(
        f"bias(%{bias} : !{bias})\nsinks(%{sinks} : !{sinks})")
    assert clauses.text.count(f"%{bias}") == clauses.text.count(f"%{sinks}") == 1


WRONG = {
    "if": (lambda b, h, q, k: q if q > k else k, "the truth of a symbol"),
    "and": (lambda b, h, q, k: q > k and k > 1, "use &, |, ~ and where"),
    "chain": (lambda b, h, q, k: 1 < q < k, "a chain of comparisons"),
    "unknown": (lambda b, h, q, k: np.sinc(q) > 0, "but got numpy.sinc"),
    "method": (lambda b, h, q, k: q.frobnicate() > 0,
               "the method.frobnicate"),
    "near": (lambda b, h, q, k: q.tanhh() > 0, "there is tanh"),
    "float": (lambda b, h, q, k: math.sqrt(q) > 1, "Python wants a number"),
    "range": (lambda b, h, q, k: sum(range(q)) > 1, "Python wants a number"),
    "rank": (lambda b, h, q, k: TABLE[b, h] > 1, "rank 3 with 2 indices"),
    "more": (lambda b, h, q, k: IDS[q, k] > 1,
             "2 indices of an array of rank 1"),
    "slice": (lambda b, h, q, k: TABLE[b, h, :] > 1, "the index slice"),
    "real index": (lambda b, h, q, k: IDS[q / 2] > 1, "no integer"),
    "bits of floats": (lambda b, h, q, k: (q / 2) & 1, "bits of a float"),
    "sum of truths": (lambda b, h, q, k: ((q > k) + (q > 1)) > 1,
                      "two truth values"),
    "reduction": (lambda b, h, q, k: np.add.reduce(q) > 1,
                  "numpy.add.reduce"),
    "other": (lambda b, h, q, k: q > object(), "builtins.object"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_traced_is_refused_by_name(name):
    function, words = WRONG[name]
    with pytest.raises(attn.UnsupportedError, match=re.escape(words)):
        trace(function, "sees", Captures())


def test_a_mask_is_a_truth_value():
    with pytest.raises(TypeError, match="expects a truth value, but got a num"):
        trace(lambda b, h, q, k: q - k, "sees", Captures())
    with pytest.raises(TypeError, match="mask_mod: expects a function"):
        trace(3, "sees", Captures())
    ids = IDS.astype(np.float64)
    with pytest.raises(TypeError, match="captured arrays of bool, .* float64"):
        trace(lambda b, h, q, k: ids[q] > 0, "sees", Captures())


def arrays():
    q = fake_arrays.Interface(2, 4, 256, 64)
    return q, q, q, fake_arrays.Interface(2, 4, 256, 64)


def call(**options):
    q, k, v, o = arrays()
    return attn.forward(q, k, v, out=o, **options)


SLOPES_4 = fake_arrays.Interface(4, typestr="<f4")
IDS_256 = fake_arrays.Interface(256, typestr="<i4")
ASKED = {
    "softcap": dict(softcap=30.0),
    "alibi": dict(alibi_slopes=SLOPES_4),
    "bias": dict(bias=fake_arrays.Interface(4, 1, 256, typestr="<f4")),
    "mask of floats": dict(attn_mask=fake_arrays.Interface(256, 256)),
    "mask of truths": dict(attn_mask=fake_arrays.Interface(
        4, 1, 256, typestr="|b1")),
    "sinks": dict(sinks=SLOPES_4),
    "mask_mod": dict(mask_mod=lambda b, h, q, k: IDS_256[q] == IDS_256[k]),
    "score_mod": dict(score_mod=lambda s, b, h, q, k: s + SLOPES_4[h]),
    "several": dict(softcap=30.0, sinks=SLOPES_4, causal=True,
                    mask_mod=lambda b, h, q, k: IDS_256[q] == IDS_256[k]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.filterwarnings("ignore:a mask_mod without")
def test_the_library_takes_the_text(name, gpu):
    """It compiles, or no kernel takes it: either way the text is in order."""
    try:
        call(**ASKED[name])
    except attn.UnsupportedError as error:
        assert "clauses" in str(error) or "expects a schedule" in str(error)


WRONG_CALLS = {
    "sinks": (dict(sinks=IDS_256), "sinks: expects shape [heads], here [4]"),
    "slopes": (dict(alibi_slopes=IDS_256),
               "alibi_slopes: expects shape [heads] or [batch, heads], here "
               "[2, 4], but got [256]"),
    "bias": (dict(bias=fake_arrays.Interface(256, 255)), "bias: expects shape"),
    "two": (dict(softcap=1.0, score_mod=lambda s, *a: s),
            "expects one of them, but got score_mod and softcap"),
    "cap": (dict(softcap=0.0), "softcap: expects a finite number above 0"),
    "host": (dict(mask_mod=lambda b, h, q, k: IDS[q] > 0),
             "capture c0: expects an array in the memory of a CUDA GPU"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
@pytest.mark.filterwarnings("ignore:a mask_mod without")
def test_wrong_arguments(name):
    options, words = WRONG_CALLS[name]
    with pytest.raises(ValueError, match=re.escape(words)):
        call(**options)


def test_who_passes_a_function_only_is_told_once(monkeypatch):
    monkeypatch.setattr(_clauses, "_warned", False)
    options = dict(mask_mod=lambda b, h, q, k: q >= k)
    with pytest.warns(UserWarning, match="BlockMask.from_mask") as caught:
        for _ in range(2):
            try:
                call(**options)
            except attn.UnsupportedError:
                pass
    assert len(caught) == 1 and caught[0].filename == __file__
