#!/usr/bin/env python3
"""Score functions and sinks on a GPU: against fp64, and beside plain causal.

    clauses.py [--only check|time] [--backward | --captures] [--rows 8192]

Softcap, ALiBi, a table of relative biases, a bias, sinks, and first keys with
a window, causal, forward on the kernel of the plan and on mma.sync, or
backward.  Times are those of 16 heads of 128 and one batch entry, each beside
plain causal in the same run, the least of several turns.  With --captures they
are gradients of what these read, beside FlexAttention's where it has them.
Needs the package and PyTorch.
The exit status is 1 when something was wrong.
"""

import argparse
import math

TABLE = """captures(%x0 : {0}) score(%z : f32, %b, %h, %i, %j, %nq, %nk, %t) {{
  %d = arith.subi %i, %j : index
  %last = arith.constant 4095 : index
  %e = arith.minsi %d, %last : index
  %v = attn.read %t[%e] : {0}
  %r = arith.addf %z, %v : f32
  attn.yield %r : f32
}}"""
#: First keys and a window, whose runs kernels walk.
RUNS = """sees (%b, %h, %i, %j, %nq, %nk) {{
  %few = arith.constant 64 : index
  %wide = arith.constant 128 : index
  %d = arith.subi %i, %j : index
  %x = arith.cmpi slt, %j, %few : index
  %y = arith.cmpi slt, %d, %wide : index
  %r = arith.ori %x, %y : i1
  attn.yield %r : i1
}}"""
#: Schedules to check beside that of the plan.
OTHERS = {
    False: ["flash, query = 64, key = 64, stages = 2, warps = 4"],
    True: ["split_backward, query = 64, key_block = 32, query_warps = 4, "
           "key = 64, query_block = 32, key_warps = 4, stages = 2, "
           "separate = 0",
           "split_backward, query = 128, key_block = 64, key = 128, "
           "query_block = 64, separate = 1, stages = 2, value_stages = 1, "
           "persistent = 1"]}


def type_of(array):
    name = {"bfloat16": "bf16", "float32": "f32"}[str(array.dtype)[6:]]
    return f"tensor<{'x'.join(map(str, array.shape))}x{name}>"


def cases(torch, heads, queries, keys):
    """(name, text, captures, function of scores and positions, sinks)."""
    gpu = {"device": "cuda"}
    i = torch.arange(queries, **gpu)[:, None]
    j = torch.arange(keys, **gpu)[None]
    slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, **gpu) / heads)
    table, sinks = torch.randn(4096, **gpu), torch.randn(heads, **gpu)
    yield "plain", "", [], lambda z: z, None
    for cap in (50.0, 2.0):
        yield (f"softcap {cap:.0f}", f"softcap({cap})", [],
               lambda z, cap=cap: cap * torch.tanh(z / cap), None)
    yield ("alibi", "alibi(%x0 : {0})", [slopes],
           lambda z: z + slopes.double()[:, None, None] * (j - i), None)
    yield ("table", TABLE, [table],
           lambda z: z + table.double()[(i - j).clamp(0, 4095)], None)
    yield "sinks", "sinks(%x0 : {0})", [sinks], lambda z: z, sinks
    yield ("runs", RUNS, [],
           lambda z: z.masked_fill((j >= 64) & (i - j >= 128), -math.inf), None)
    if queries * keys < 1 << 24:
        bias = torch.randn(heads, queries, keys, dtype=torch.bfloat16, **gpu)
        yield ("bias", "bias(%x0 : {0})", [bias],
               lambda z: z + bias.double(), None)


def compiled(attn, q, k, text, captures, backward, schedule=None):
    """The function of an op with a clause."""
    rows = f"tensor<{'x'.join(map(str, q.shape[:3]))}xf32>"
    query, key = type_of(q), type_of(k)
    kinds = [type_of(array) for array in captures]
    inputs = ([query, query, key, key, query, rows] if backward else
              [query, key, key])
    results = [query, key, key] if backward else [query, rows]
    names = [f"%a{n}" for n in range(len(inputs))]
    arguments = ", ".join(
        [f"{name}: {kind}" for name, kind in zip(names, inputs)]
        + [f"%x{n}: {kind}" for n, kind in enumerate(kinds)])
    outputs = ", ".join(f"%0#{n}" for n in range(len(results)))
    text = text.format(*kinds)
    return attn.compile(
        f"func.func @f({arguments}) -> ({', '.join(results)}) {{\n"
        f"  %0:{len(results)} = attn.{'backward' if backward else 'forward'} "
        f"{', '.join(names)} mask(causal) {text} : {', '.join(inputs)} -> "
        f"{', '.join(results)}\n  return {outputs} : {', '.join(results)}\n}}",
        machine="h100_sxm", schedule=schedule)


def truth(torch, q, k, v, score, sinks):
    """O and LSE in fp64."""
    z = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    seen = torch.ones(z.shape[-2:], dtype=torch.bool, device="cuda").tril()
    s = score(z).masked_fill(~seen, -math.inf)
    if sinks is not None:
        column = sinks.double()[None, :, None, None]
        s = torch.cat([s, column.expand(*s.shape[:3], 1)], -1)
    weights = torch.softmax(s, -1)[..., :k.shape[2]]
    return weights @ v, torch.logsumexp(s, -1)


def check(attn, torch, backward):
    """Whether all are right; prints errors."""
    torch.manual_seed(1)
    good = True
    like = {"device": "cuda", "dtype": torch.bfloat16}
    q, k, v = (torch.randn(2, 4, n, 128, **like) for n in (333, 517, 517))
    gradient = torch.randn_like(q)
    for name, text, captures, score, sinks in cases(torch, 4, 333, 517):
        exact = [t.double().requires_grad_() for t in (q, k, v)]
        o, lse = truth(torch, *exact, score, sinks)
        wanted = [o.detach(), lse.detach()]
        inputs = [q, k, v]
        results = [torch.full_like(q, math.nan),
                   torch.full(lse.shape, math.nan, device="cuda")]
        if backward:
            wanted = torch.autograd.grad(o, exact, gradient.double())
            inputs = [gradient, q, k, v, o.detach().to(q.dtype),
                      lse.detach().float()]
            results = [torch.full_like(t, math.nan) for t in (q, k, v)]
        for schedule in [None, *OTHERS[backward]]:
            program = compiled(attn, q, k, text, captures, backward, schedule)
            program(*inputs, *captures, *results)
            errors = [((got.double() - want).norm() / want.norm()).item()
                      for got, want in zip(results, wanted)]
            right = all(error < 8e-3 for error in errors)
            good &= right
            print(f"{name:12}{program.kernels[-1].name[14:58]:46}",
                  *(f"{error:.1e}" for error in errors),
                  "" if right else "WRONG", flush=True)
    return good


def time(attn, torch, backward, rows):
    like = {"device": "cuda", "dtype": torch.bfloat16}
    q, k, v, o, gradient = (torch.randn(1, 16, rows, 128, **like)
                            for _ in range(5))
    lse = torch.full((1, 16, rows), 10.0, device="cuda")
    results = [torch.empty_like(t) for t in (q, k, v)]
    arrays = ([gradient, q, k, v, o, lse], results) if backward else (
        [q, k, v], [o, lse])
    calls = {}
    for name, text, captures, _, _ in cases(torch, 16, rows, rows):
        if name in ("softcap 2", "bias"):
            continue
        program = compiled(attn, q, k, text, captures, backward)
        calls[name] = (program, [*arrays[0], *captures, *arrays[1]])
        print(f"{name:12}{program.kernels[0].schedule}",
              *(f"{kernel.registers} registers, {kernel.stack_bytes} of stack"
                for kernel in program.kernels), sep="; ", flush=True)
    least = dict.fromkeys(calls, math.inf)
    for _ in range(6):
        for name, (program, values) in calls.items():
            begin, end = (torch.cuda.Event(enable_timing=True)
                          for _ in range(2))
            program(*values)
            begin.record()
            for _ in range(10):
                program(*values)
            end.record()
            torch.cuda.synchronize()
            least[name] = min(least[name], begin.elapsed_time(end) / 10)
    for name, best in least.items():
        print(f"{name:12}{best * 1e3:9.1f} us  x{best / least['plain']:.3f}")


def captured_cases(torch, batch, heads, queries, keys):
    """(name, options of attn, arrays that get gradients, score in fp64)."""
    gpu = {"device": "cuda"}
    i = torch.arange(queries, **gpu)[:, None]
    j = torch.arange(keys, **gpu)[None]
    slopes, sinks = (torch.randn(heads, **gpu) / 8 for _ in range(2))
    table = torch.randn(heads, queries + keys, **gpu)
    factors = torch.randn(heads, **gpu)
    if queries * keys <= 1 << 24:
        for shape in ((batch, heads), (heads,), (1, 1)):
            bias = torch.randn(*shape, queries, keys, **gpu).bfloat16()
            yield (f"bias {len(shape)} {shape[0]}", {"bias": bias}, [bias],
                   lambda z, x: z + x)
    yield ("alibi", {"alibi_slopes": slopes}, [slopes],
           lambda z, x: z + x[:, None, None] * (j - i))
    yield ("table", {"score_mod": lambda s, b, h, q, k:
                     s + table[h, q - k + keys]}, [table],
           lambda z, x: z + x[:, i - j + keys])
    yield ("factors", {"score_mod": lambda s, b, h, q, k:
                       (s * factors[h]).tanh()}, [factors],
           lambda z, x: torch.tanh(z * x[:, None, None]))
    yield "sinks", {"sinks": sinks}, [sinks], None


def check_captures(attn, torch):
    """Whether gradients of captures are right; prints errors."""
    torch.manual_seed(2)
    good = True
    like = {"device": "cuda", "dtype": torch.bfloat16}
    q, k, v = (torch.randn(2, 4, n, 128, **like) for n in (333, 517, 517))
    do = torch.randn_like(q)
    for name, options, arrays, score in captured_cases(torch, 2, 4, 333, 517):
        exact = [t.double().requires_grad_() for t in (q, k, v, *arrays)]
        o, lse = truth(torch, *exact[:3],
                       lambda z: score(z, *exact[3:]) if score else z,
                       None if score else exact[3])
        wanted = torch.autograd.grad(o, exact, do.double())
        for schedule in [None, *OTHERS[True]]:
            given = dict(options, causal=True)
            result = attn.forward(q, k, v, return_lse_low=True, **given)
            calls = [attn.backward(
                do, q, k, v, *result[:2], lse_low=result[2], gradients=arrays,
                schedule=schedule, **given) for _ in range(2)]
            errors = [((got.double() - want).norm() / want.norm()).item()
                      for got, want in zip(calls[0], wanted)]
            same = all(torch.equal(a, b) for a, b in zip(*calls))
            right = all(error < 1e-2 for error in errors)
            good &= right
            print(f"{name:12}{(schedule or 'planned')[:40]:42}",
                  *(f"{error:.1e}" for error in errors),
                  "same bits" if same else "", "" if right else "WRONG",
                  flush=True)
    return good


def time_captures(attn, torch, rows):
    """The whole gradient with that of what is read, beside that without, and
    FlexAttention's."""
    from torch.nn.attention import flex_attention as flex
    like = {"device": "cuda", "dtype": torch.bfloat16}
    q, k, v, do = (torch.randn(1, 16, rows, 128, **like) for _ in range(4))
    blocks = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None,
                                    rows, rows, device="cuda")
    compiled_flex = torch.compile(flex.flex_attention, dynamic=False)

    def median(call):
        call()
        times = []
        for _ in range(5):
            begin, end = (torch.cuda.Event(enable_timing=True)
                          for _ in range(2))
            begin.record()
            for _ in range(3):
                call()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 3)
        return sorted(times)[2]

    for name, options, arrays, _ in captured_cases(torch, 1, 16, rows, rows):
        given = dict(options, causal=True)
        o, lse, low = attn.forward(q, k, v, return_lse_low=True, **given)

        def call(arrays=arrays, given=given, o=o, lse=lse, low=low):
            return attn.backward(do, q, k, v, o, lse, lse_low=low,
                                 gradients=arrays, **given)

        line = (f"{name:12}{median(lambda: call(arrays=())):9.3f} ms, with "
                f"gradients of captures {median(call):9.3f} ms")
        mod = options.get("score_mod")
        x = arrays[0]
        if "bias" in options:
            mod = {4: lambda s, b, h, i, j: s + x[b, h, i, j],
                   3: lambda s, b, h, i, j: s + x[h, i, j]}[x.dim()]
            if x.shape[0] == x.shape[1] == 1:
                mod = lambda s, b, h, i, j: s + x[0, 0, i, j]
        if "alibi_slopes" in options:
            mod = lambda s, b, h, i, j: s + x[h] * (j - i)
        if mod is not None:
            try:
                x.requires_grad_()
                inputs = [t.detach().requires_grad_() for t in (q, k, v)]
                out = compiled_flex(*inputs, score_mod=mod, block_mask=blocks)
                theirs = median(lambda: torch.autograd.grad(
                    out, [*inputs, x], do, retain_graph=True))
                line += f", flex {theirs:9.3f} ms"
            except Exception as error:  # it refuses some of them
                line += f", flex {type(error).__name__}"
            finally:
                x.requires_grad_(False)
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["check", "time"])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--backward", action="store_true")
    which.add_argument("--captures", action="store_true")
    parser.add_argument("--rows", type=int, default=8192)
    options = parser.parse_args()
    import torch
    import attn
    if options.captures:
        right = options.only == "time" or check_captures(attn, torch)
        if options.only != "check":
            time_captures(attn, torch, options.rows)
        raise SystemExit(not right)
    if options.only != "check":
        time(attn, torch, options.backward, options.rows)
    if options.only != "time":
        raise SystemExit(not check(attn, torch, options.backward))


if __name__ == "__main__":
    main()
