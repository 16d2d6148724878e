#!/usr/bin/env python3
"""attn.jax with clauses, lists and ragged batches on a GPU, against fp64.

    jax_clauses.py [--rows 333] [--dtype bfloat16] [--varlen] [--graphs]

Softcap, ALiBi, a bias, a table, sinks, documents, lists and a mix of them, under
jit: O, LSE and the gradients of q, k, v and of what clauses read.  The truth is
JAX's on the CPU in fp64, and an error is relative to the larger of the result
and of the terms that were summed up.  Another vmap over the mixed case runs as
a loop.  Then attention_varlen, with offsets that are values of one program
(`--varlen`: that alone): random lengths, some of them 0, and NaN behind the last
sequence.

With `--graphs` XLA puts all that it can into command buffers, and every program
runs several times, with other data: so calls are captured and replayed.  That
they are is shown by one with too little scratch, which must be refused.  The
exit status is 1 when something was wrong.
"""

import argparse
import os
import sys

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither JAX nor attn
    sys.exit(0)

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
if "--graphs" in sys.argv[1:]:  # XLA reads its flags when JAX is loaded
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + " --xla_gpu_graph_min_graph_size=1"
        " --xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUSTOM_CALL")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import attn  # noqa: E402
from attn import _jax_calls  # noqa: E402
from attn.jax import attention, attention_varlen  # noqa: E402

HEADS, KV_HEADS = 4, 2
#: By the type of q: of results, and of gradients.
TOLERANCE = {"bfloat16": (1e-2, 2e-2), "float16": (2e-3, 4e-3),
             "float32": (1e-4, 2e-4)}


class Case:
    """Arguments of a call that read `arrays`, and what they mean.  `floats`
    are the names of arrays that get gradients."""

    def __init__(self, name, arrays, options, score=None, sees=None,
                 sinks=None, mask="none"):
        self.name, self.arrays, self.options = name, arrays, options
        self.score = score or (lambda s, a, b, h, i, j: s)
        self.sees = sees or (lambda a, b, h, i, j: True)
        self.sinks, self.mask = sinks, mask
        self.floats = [name for name, array in arrays.items()
                       if jnp.issubdtype(array.dtype, jnp.floating)]


def cases(rng, queries, keys):
    def normal(*shape):
        return jnp.asarray(rng.standard_normal(shape), jnp.float32)

    slopes = {"slopes": normal(HEADS)}
    table = {"table": normal(HEADS, queries + keys)}
    sinks = {"sinks": normal(HEADS)}
    bias = {"bias": normal(1, HEADS, queries, keys)}
    ids = {"ids": jnp.asarray(np.sort(rng.integers(0, 5, max(queries, keys))),
                              jnp.int32)}
    yield Case("plain, listed", {}, lambda a: dict(
        block_mask=attn.BlockMask.from_mask(
            lambda b, h, i, j: (i // 64 + j // 64) % 2 == 0, queries=queries,
            keys=keys, block_size=64)),
        sees=lambda a, b, h, i, j: (i // 64 + j // 64) % 2 == 0)
    yield Case("dense", {}, lambda a: dict(mask="causal"),
               sees=lambda a, b, h, i, j: j <= i)
    yield Case("softcap", {}, lambda a: dict(softcap=5.0, mask="causal"),
               lambda s, a, *_: 5 * jnp.tanh(s / 5),
               lambda a, b, h, i, j: j <= i)
    yield Case("alibi", slopes, lambda a: dict(alibi_slopes=a["slopes"]),
               lambda s, a, b, h, i, j: s + a["slopes"][h] * (j - i))
    yield Case("bias", bias, lambda a: dict(bias=a["bias"]),
               lambda s, a, b, h, i, j: s + a["bias"][0])
    yield Case("sinks", sinks, lambda a: dict(sinks=a["sinks"]),
               sinks="sinks")
    yield Case("table", table, lambda a: dict(
        score_mod=lambda s, b, h, i, j: s + a["table"][h, i - j + keys]),
        lambda s, a, b, h, i, j: s + a["table"][h, i - j + keys])
    yield Case("documents", ids, lambda a: dict(
        mask_mod=lambda b, h, i, j: a["ids"][i] == a["ids"][j]),
        sees=lambda a, b, h, i, j: a["ids"][i] == a["ids"][j])
    mix = {**table, **sinks, **ids}
    yield Case("mixed", mix, lambda a: dict(
        sinks=a["sinks"],
        mask_mod=lambda b, h, i, j: a["ids"][i] >= a["ids"][j],
        score_mod=lambda s, b, h, i, j: jnp.tanh(s)
        + a["table"][h, i - j + keys]),
        lambda s, a, b, h, i, j: jnp.tanh(s) + a["table"][h, i - j + keys],
        lambda a, b, h, i, j: a["ids"][i] >= a["ids"][j], "sinks")


def truth(case, q, k, v, arrays, shift):
    """O and LSE in fp64; `shift` is added to scores, for the size of sums."""
    wide = {name: a.astype(jnp.float64) if name in case.floats else a
            for name, a in arrays.items()}
    q, k, v = (t.astype(jnp.float64) for t in (q, k, v))
    k, v = (jnp.repeat(t, HEADS // KV_HEADS, 1) for t in (k, v))
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    b, h, i, j = jnp.ogrid[tuple(slice(0, n) for n in s.shape)]
    s = case.score(s, wide, b, h, i, j) + shift
    seen = jnp.broadcast_to(case.sees(wide, b, h, i, j), s.shape)
    s = jnp.where(seen, s, -jnp.inf)
    if case.sinks:
        s = jnp.concatenate([s, jnp.broadcast_to(
            wide[case.sinks][None, :, None, None], (*s.shape[:3], 1))], -1)
    top = jax.lax.stop_gradient(jnp.maximum(s.max(-1, keepdims=True), -1e300))
    weights = jnp.where(jnp.isfinite(s), jnp.exp(s - top), 0)
    total = weights.sum(-1, keepdims=True)
    weights = weights / jnp.where(total == 0, 1, total)
    lse = (jnp.log(jnp.where(total == 0, 1, total)) + top)[..., 0]
    return (jnp.einsum("bhqk,bhke->bhqe", weights[..., :k.shape[2]], v), lse)


def error(got, want, size=0.0):
    got, want = (np.asarray(t, np.float64) for t in (got, want))
    return np.linalg.norm(got - want) / max(np.linalg.norm(want), size, 1e-30)


def run(case, draws, arrays):
    """The largest errors of results and of gradients, of one program that runs
    with each of the draws, all of which are queued before one is looked at."""
    def ours(q, k, v, arrays):
        return attention(q, k, v, return_lse=True, **case.options(arrays))

    floats = {name: arrays[name] for name in case.floats}
    rest = {name: a for name, a in arrays.items() if name not in floats}

    @jax.jit
    def both(q, k, v, do, dlse, floats):
        (o, lse), pull = jax.vjp(
            lambda q, k, v, floats: ours(q, k, v, {**floats, **rest}),
            q, k, v, floats)
        return o, lse, pull((do, dlse))

    results = [both(*tensors, floats) for tensors in draws]
    errors = [compare(case, tensors, floats, rest, *each)
              for tensors, each in zip(draws, results)]
    return [max(each) for each in zip(*errors)]


def compare(case, tensors, floats, rest, o, lse, found):
    """The largest errors of results and of gradients of one run."""
    q, k, v, do, dlse = tensors
    with jax.default_device(jax.devices("cpu")[0]):
        own = jax.tree.map(lambda t: jnp.asarray(np.asarray(t.astype(
            jnp.float64))), (q, k, v, floats, do, dlse))
        still = {name: jnp.asarray(np.asarray(a)) for name, a in rest.items()}
        shift = jnp.zeros((q.shape[0], HEADS, q.shape[2], k.shape[2]))
        want, pull = jax.vjp(lambda q, k, v, f, shift: truth(
            case, q, k, v, {**f, **still}, shift), *own[:4], shift)
        *wanted, pairs = pull((own[4], own[5]))
    size = np.linalg.norm(np.asarray(pairs))
    of_results = max(error(o, want[0]), error(lse, want[1]))
    of_gradients = max(
        [error(got, exact) for got, exact in zip(found[:3], wanted)]
        + [error(found[3][name], wanted[3][name], size) for name in floats])
    return of_results, of_gradients


class Packed:
    """Random sequences one behind the other, of as many tokens each time."""

    def __init__(self, rng, rows, dtype, place):
        self.tokens, self.keys = 5 * rows, 5 * rows + 400
        lengths = rng.integers(0, rows + 1, (2, 5))
        lengths[:, rng.integers(5)] = 0
        lengths[0, rng.integers(5)] = 0
        self.ends = [np.concatenate([[0], np.cumsum(each)])
                     for each in lengths]
        of_rows, of_keys = ((n, end[-1]) for n, end in zip(
            (self.tokens, self.keys), self.ends))

        def normal(of, heads, d):
            """With NaN where no sequence is."""
            tensor = rng.standard_normal((of[0], heads, d))
            tensor[of[1]:] = np.nan
            return place(jnp.asarray(tensor, dtype))

        self.inputs = [normal(of_rows, HEADS, 128),
                       normal(of_keys, KV_HEADS, 128),
                       normal(of_keys, KV_HEADS, 128)]
        self.do = normal(of_rows, HEADS, 128)
        self.dlse = place(jnp.asarray(rng.standard_normal(
            (HEADS, self.tokens)), jnp.float32))
        self.offsets = [place(jnp.asarray(each, jnp.int32))
                        for each in self.ends]

    def truth(self, causal):
        """O, LSE and gradients in fp64, sequence by sequence; rows behind them
        are as attention_varlen has them."""
        found = [np.zeros(t.shape) for t in (self.do, *self.inputs)]
        lse = np.full((HEADS, self.tokens), -np.inf)
        case = Case("", {}, None, sees=lambda a, b, h, i, j: (
            not causal) | (j <= i + a["shift"]))
        wide = [np.asarray(t.astype(jnp.float64))
                for t in (self.do, *self.inputs)]
        dlse = np.asarray(self.dlse, np.float64)
        for q0, q1, k0, k1 in zip(self.ends[0], self.ends[0][1:],
                                  self.ends[1], self.ends[1][1:]):
            if q0 == q1 or k0 == k1:
                continue  # no query, or none that sees a key
            cuts = [slice(q0, q1)] * 2 + [slice(k0, k1)] * 2
            do, *own = (jnp.asarray(t[cut].swapaxes(0, 1)[None])
                        for t, cut in zip(wide, cuts))
            arrays = {"shift": (k1 - k0) - (q1 - q0)}
            (o, of_rows), pull = jax.vjp(
                lambda *t: truth(case, *t, arrays, 0.0), *own)
            seen = jnp.isfinite(of_rows) & (of_rows > -1e290)
            lse[:, q0:q1] = np.where(seen, of_rows, -np.inf)[0]
            parts = (o, *pull((do, jnp.where(seen, dlse[None, :, q0:q1], 0))))
            for array, part, cut in zip(found, parts, cuts):
                array[cut] = np.asarray(part[0]).swapaxes(0, 1)
        return found[0], lse, found[1:]


def run_varlen(rng, rows, dtype, gpu):
    """Whether all were right.  One program runs with any lengths."""
    good = True
    for causal in (False, True):
        @jax.jit
        def both(q, k, v, cu_q, cu_k, do, dlse):
            results, pull = jax.vjp(lambda *t: attention_varlen(
                *t, cu_q, cu_k, rows, rows, causal=causal,
                return_softmax_lse=True), q, k, v)
            return (*results, pull((do, dlse)))

        for number in range(3):
            packed = Packed(rng, rows, dtype,
                            lambda t: jax.device_put(t, gpu))
            o, lse, found = both(*packed.inputs, *packed.offsets, packed.do,
                                 packed.dlse)
            with jax.default_device(jax.devices("cpu")[0]):
                wanted = packed.truth(causal)
            seen = np.isfinite(wanted[1])
            same = bool((np.isfinite(np.asarray(lse)) == seen).all())
            of_results = max(error(o, wanted[0]), error(
                np.asarray(lse)[seen], wanted[1][seen]))
            of_gradients = max(map(error, found, wanted[2]))
            limits = TOLERANCE[dtype]
            right = (same and of_results <= limits[0]
                     and of_gradients <= limits[1])
            good &= right
            name = f"varlen{', causal' * causal} {number}"
            print(f"{name:16} results {of_results:.1e} gradients "
                  f"{of_gradients:.1e} {'' if right else 'WRONG'}",
                  flush=True)
    return good


def run_clauses(rng, queries, dtype, gpu, times):
    """Whether all were right."""
    keys = queries + 100
    limits = TOLERANCE[dtype]
    good = True

    def normal(*shape, dtype=dtype):
        return jax.device_put(jnp.asarray(rng.standard_normal(shape), dtype),
                              gpu)

    for case in cases(rng, queries, keys):
        draws = [(normal(2, HEADS, queries, 128),
                  normal(2, KV_HEADS, keys, 128),
                  normal(2, KV_HEADS, keys, 128),
                  normal(2, HEADS, queries, 128),
                  normal(2, HEADS, queries, dtype=jnp.float32))
                 for _ in range(times)]
        arrays = jax.device_put(case.arrays, gpu)
        errors = run(case, draws, arrays)
        right = all(e <= limit for e, limit in zip(errors, limits))
        good &= right
        print(f"{case.name:14} results {errors[0]:.1e} gradients "
              f"{errors[1]:.1e} {'' if right else 'WRONG'}", flush=True)
    q, k, v = (jnp.stack([t, t * 0.5]) for t in draws[0][:3])
    looped = jax.vmap(lambda q, k, v: attention(
        q, k, v, **case.options(arrays)))(q, k, v)
    alone = [attention(*each, **case.options(arrays)) for each in zip(q, k, v)]
    same = all(bool((a == b).all()) for a, b in zip(looped, alone))
    print(f"vmap           {'the same bits' if same else 'WRONG'}")
    return good and same


def run_decode(rng, dtype, gpu, times):
    """Whether one query of many keys, which are dealt out to blocks whose
    results lie in scratch, was right."""
    case = Case("decode", {}, lambda a: {})
    shapes = [(2, heads, rows, 128) for heads, rows in (
        (HEADS, 1), (KV_HEADS, 4096), (KV_HEADS, 4096), (HEADS, 1))]
    draws = [[jax.device_put(jnp.asarray(rng.standard_normal(shape), kind),
                             gpu)
              for shape, kind in (*((shape, dtype) for shape in shapes),
                                  ((2, HEADS, 1), jnp.float32))]
             for _ in range(times)]
    errors = run(case, draws, {})
    right = all(e <= limit for e, limit in zip(errors, TOLERANCE[dtype]))
    print(f"{case.name:14} results {errors[0]:.1e} gradients {errors[1]:.1e} "
          f"{'' if right else 'WRONG'}", flush=True)
    return right


def is_captured(rng, gpu):
    """Whether a call that gets no workspace is refused, as only one that is
    captured is."""
    q, k, do = (jax.device_put(jnp.asarray(rng.standard_normal(
        (2, heads, 200, 64)), jnp.bfloat16), gpu)
        for heads in (HEADS, KV_HEADS, HEADS))
    asked = _jax_calls._scratch_bytes
    _jax_calls._scratch_bytes = lambda *_: 0
    said = ""
    try:
        both = jax.jit(lambda q, k, do: jax.vjp(
            lambda q, k: 2 * attention(q + 1, k + 1, k), q, k)[1](do))
        for _ in range(4):
            jax.block_until_ready(both(q, k, do))
    except Exception as error:  # of XLA, whose types differ by version
        said = str(error)
    finally:
        _jax_calls._scratch_bytes = asked
    right = "cannot be captured in a command buffer" in said
    print(f"captured       {'yes' if right else 'NO: ' + (said or 'it ran')}",
          flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=333)
    parser.add_argument("--dtype", default="bfloat16", choices=TOLERANCE)
    parser.add_argument("--graphs", action="store_true",
                        help="in command buffers, each program several times")
    parser.add_argument("--varlen", action="store_true",
                        help="attention_varlen alone")
    arguments = parser.parse_args()
    try:
        gpu = jax.devices("cuda")[0]
    except RuntimeError as missing:
        sys.exit(f"expects a GPU that JAX sees: {missing}")
    rng = np.random.default_rng(1)
    asked = arguments.rows, arguments.dtype, gpu
    times = 4 if arguments.graphs else 1
    good = arguments.varlen or (
        run_decode(rng, arguments.dtype, gpu, times)
        and run_clauses(rng, *asked, times))
    good &= not arguments.graphs or is_captured(rng, gpu)
    return 0 if run_varlen(rng, *asked) and good else 1


if __name__ == "__main__":
    sys.exit(main())
