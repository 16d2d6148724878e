#!/usr/bin/env python3
"""Measures what a call costs the host, in microseconds, in both directions.

    overhead.py [--out FILE.json] [--limit 10] [--limit-backward 30]
                [--limit-autograd 100]

The floor is cuLaunchKernel itself, on the kernel of the same attention with
its arguments packed beforehand.  Above it stand attn's launch in C, and
attn.forward, attn.torch.attention, attn.jax.attention and PyTorch's own
attention from Python, whose time includes the allocation of the output.

Backward alone is timed as attn's launch in C (of all its kernels), as
attn.backward, and as torch.autograd.grad of a forward call whose graph is
kept: of attn.torch.attention, of PyTorch's attention, and of an
autograd.Function that saves as many tensors and computes nothing, which is the
floor of every such Function.  Below stand replays of CUDA graphs that hold one
of these calls.

A call is timed in bursts that the launch queue holds, so that the GPU is not
waited for; shown are medians over the bursts.  The exit status is 1 where
attn.forward takes more than --limit microseconds over the floor, attn.backward
more than --limit-backward, or autograd's backward through attn.torch.attention
more than --limit-autograd.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn
import attn.torch
from attn import _native

# The queue of launches holds 1024; gradients are up to three.
BURST, BURSTS, WARM_UP = 100, 60, 20
SHAPE = 1, 8, 128, 64

# A kernel whose arguments are pointers and numbers.
PLAIN = "flash, query = 64, key = 64, stages = 2, warps = 4"

_MAX_DYNAMIC_SMEM = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_ARGUMENT = {"i64": ctypes.c_int64, "i32": ctypes.c_int32,
             "f32": ctypes.c_float, "f64": ctypes.c_double}

Call = Callable[[], Any]


def check(code: int, name: str) -> None:
    if code:
        sys.exit(f"overhead.py: {name} gives error {code}")


def bare_launch(tensors: list[torch.Tensor]) -> tuple[Call, Call]:
    """cuLaunchKernel, and attn_launch of the same, with ctypes alone."""
    executable = attn.compile(
        attn.Problem(heads=SHAPE[1], head_dim=SHAPE[3], mask="causal"),
        schedule=PLAIN,
        machine=attn.device(0).machine)
    binding = executable.load(0).bind(*tensors)
    step, = binding.info["steps"]
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    image = executable.cubin or executable.ptx.encode() + b"\0"
    check(driver.cuModuleLoadData(ctypes.byref(module), image),
          "cuModuleLoadData")
    symbol = step["kernel"].split("::")[-1].encode()
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, symbol),
          "cuModuleGetFunction")
    check(driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SMEM,
                                    step["smem_bytes"]), "cuFuncSetAttribute")
    values: list[Any] = []
    for argument in step["arguments"]:
        if "buffer" in argument:
            values.append(ctypes.c_uint64(
                tensors[argument["buffer"]].data_ptr() +
                argument["offset_bytes"]))
        else:
            values.append(_ARGUMENT[argument["type"]](argument["value"]))
    pointers = (ctypes.c_void_p * len(values))(
        *(ctypes.addressof(value) for value in values))
    launch = driver.cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7,
                       ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    stream = torch.cuda.current_stream().cuda_stream
    grid, threads, smem = step["grid"], step["threads"], step["smem_bytes"]

    def bare(_keep: Any = values) -> None:
        check(launch(function, *grid, threads, 1, 1, smem, stream, pointers,
                     None), "cuLaunchKernel")

    attn_launch = _native.function("attn_launch")
    addresses = binding.pack(*(t.data_ptr() for t in tensors))
    status = ctypes.byref(_native.Status())

    def ours() -> None:
        check(attn_launch(binding.handle, addresses, binding.count, stream,
                          status), "attn_launch")

    return bare, ours


def jax_call() -> Call | None:
    try:
        import jax
        import jax.numpy as jnp
        from attn.jax import attention
        device = jax.devices("cuda")[0]
    except (ImportError, RuntimeError):
        return None
    q = jax.device_put(jnp.ones(SHAPE, jnp.bfloat16),
                       device)
    function = jax.jit(lambda q, k, v: attention(q, k, v, causal=True))
    return lambda: function(q, q, q)


def launch_of_gradients(inputs: list[torch.Tensor]) -> Call:
    """attn_launch of all kernels of attn.backward, with ctypes alone."""
    executable = attn.compile(
        attn.Problem(heads=SHAPE[1], head_dim=SHAPE[3], mask="causal",
                     direction="backward"), machine=attn.device(0).machine)
    results = [torch.empty_like(t) for t in inputs[1:4]]
    binding = executable.load(0).bind(*inputs, *results)
    scratch = torch.empty(max(binding.scratch_bytes, 4) // 4, device="cuda")
    launch = _native.function("attn_launch_in_scratch")
    addresses = binding.pack(*(t.data_ptr() for t in (*inputs, *results)))
    status = ctypes.byref(_native.Status())
    stream = torch.cuda.current_stream().cuda_stream

    def ours(_keep: Any = (inputs, results, scratch)) -> None:
        check(launch(binding.handle, addresses, binding.count,
                     scratch.data_ptr(), binding.scratch_bytes, stream,
                     status), "attn_launch_in_scratch")

    return ours


class Nothing(torch.autograd.Function):
    """As many inputs, saved tensors and gradients as attention has."""

    gradients: list[torch.Tensor] = []

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor,
                v: torch.Tensor) -> Any:
        o, lse = torch.empty_like(q), q.new_empty(q.shape[:3])
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        ctx.saved_tensors
        return tuple(Nothing.gradients)


def gradient_of(o: torch.Tensor, leaves: list[torch.Tensor],
                do: torch.Tensor) -> Call:
    return lambda: torch.autograd.grad(o, leaves, do, retain_graph=True)


def captured(call: Call) -> Call:
    """The replay of a CUDA graph that holds one call."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        call()
    return graph.replay


def measure(call: Call) -> dict[str, float]:
    """Microseconds of the host for a call."""
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(BURSTS):
        started = time.perf_counter_ns()
        for _ in range(BURST):
            call()
        times.append((time.perf_counter_ns() - started) / BURST / 1e3)
        torch.cuda.synchronize()
    times.sort()
    return {"median_us": statistics.median(times), "least_us": times[0],
            "p90_us": times[int(0.9 * len(times))]}


def forward_calls(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                  leaves: list[torch.Tensor]) -> dict[str, Call]:
    """Calls of ours by name, from the floor up."""
    o = torch.empty_like(q)
    bare, ours = bare_launch([q, k, v, o])
    bare()
    torch.cuda.synchronize()
    if not torch.equal(o, attn.forward(q, k, v, causal=True, schedule=PLAIN)):
        sys.exit("overhead.py: expects the bare launch to give attn.forward's "
                 "numbers, but they differ")
    attention, operator = attn.torch.attention, torch.ops.attn.forward
    jitted = jax_call()
    return {
        "cuLaunchKernel": bare,
        "attn_launch": ours,
        "attn.forward": lambda: attn.forward(q, k, v, causal=True),
        "attn.forward, out": lambda: attn.forward(q, k, v, causal=True,
                                                  out=o),
        "attn.forward, lse": lambda: attn.forward(q, k, v, causal=True,
                                                  return_lse=True),
        "attn.torch.attention": lambda: attention(q, k, v, causal=True),
        "torch.ops.attn.forward": lambda: operator(q, k, v, "causal", None,
                                                   False, None),
        "attn.torch.attention, grad": lambda: attention(*leaves, causal=True),
        "empty Function": lambda: Nothing.apply(*leaves),
        **({"attn.jax.attention, jit": jitted} if jitted else {}),
        "torch.empty_like": lambda: torch.empty_like(q)}


def backward_calls(do: torch.Tensor, q: torch.Tensor, k: torch.Tensor,
                   v: torch.Tensor, leaves: list[torch.Tensor]
                   ) -> dict[str, Call]:
    o, lse = attn.forward(q, k, v, causal=True, return_lse=True)
    inputs = [do, q, k, v, o, lse]
    Nothing.gradients = [torch.empty_like(t) for t in (q, k, v)]
    return {
        "attn_launch, backward": launch_of_gradients(inputs),
        "attn.backward": lambda: attn.backward(*inputs, causal=True),
        "empty Function, backward": gradient_of(Nothing.apply(*leaves)[0],
                                                leaves, do),
        "attn.torch.attention, backward": gradient_of(
            attn.torch.attention(*leaves, causal=True), leaves, do)}


def measure_all() -> dict[str, dict[str, float]]:
    """Rows by name: ours forward, PyTorch's, backward of both, and graphs of
    whole calls."""
    q, k, v, do = (torch.randn(SHAPE, device="cuda").bfloat16()
                   for _ in range(4))
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    forward = forward_calls(q, k, v, leaves)
    backward = backward_calls(do, q, k, v, leaves)
    rows = {name: measure(call) for name, call in forward.items()}
    replays = {name: captured({**forward, **backward}[name])
               for name in ("attn.forward", "attn.backward",
                            "attn.torch.attention, backward")}
    theirs = functional.scaled_dot_product_attention
    for name, backend in (("PyTorch flash", SDPBackend.FLASH_ATTENTION),
                          ("PyTorch cuDNN", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend):  # switching costs more than a call
            for suffix, tensors in (("", [q, k, v]), (", grad", leaves)):
                rows[f"{name}{suffix}"] = measure(
                    lambda: theirs(*tensors, is_causal=True))
            replays[name] = captured(lambda: theirs(q, k, v, is_causal=True))
            o = theirs(*leaves, is_causal=True)
        call = backward[f"{name}, backward"] = gradient_of(o, leaves, do)
        replays[f"{name}, backward"] = captured(call)
    rows |= {name: measure(call) for name, call in backward.items()}
    rows |= {f"graph: {name}": measure(call)
             for name, call in replays.items()}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--limit", type=float, default=10,
                        help="microseconds of attn.forward over the floor")
    parser.add_argument("--limit-backward", type=float, default=30,
                        help="microseconds of attn.backward")
    parser.add_argument("--limit-autograd", type=float, default=100,
                        help="microseconds of torch.autograd.grad through "
                             "attn.torch.attention")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("overhead.py: expects a CUDA GPU, but torch sees none")
    # Graphs cannot be captured on the default stream, and backward runs where
    # forward ran.
    torch.cuda.set_stream(torch.cuda.Stream())
    rows = measure_all()
    floor = rows["cuLaunchKernel"]["median_us"]
    print(f"{'':37} {'median':>8} {'least':>8} {'p90':>8} {'over':>8}   us")
    for name, row in rows.items():
        row["over_floor_us"] = row["median_us"] - floor
        print(f"{name:37} " + " ".join(f"{value:8.2f}"
                                       for value in row.values()))
    limits = {"attn.forward": floor + options.limit,
              "attn.backward": options.limit_backward,
              "attn.torch.attention, backward": options.limit_autograd}
    device = torch.cuda.get_device_name()
    print(f"on {device}:")
    for name, limit in limits.items():
        print(f"{name} takes {rows[name]['median_us']:.1f} us (limit "
              f"{limit:.1f})")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({
            "device": device, "torch": torch.__version__,
            "python": sys.version.split()[0], "attn": attn.__version__,
            "date": time.strftime("%Y-%m-%d"), "shape": SHAPE,
            "limits_us": limits, "calls": rows}, indent=1))
    sys.exit(0 if all(rows[name]["median_us"] <= limit
                      for name, limit in limits.items()) else 1)


if __name__ == "__main__":
    main()
