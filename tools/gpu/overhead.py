#!/usr/bin/env python3
"""Measures what a call costs the host, in microseconds.

    overhead.py [--out FILE.json] [--limit 10]

The floor is cuLaunchKernel itself, on the kernel of the same attention with
its arguments packed beforehand.  Above it stand attn's launch in C, and
attn.forward, attn.torch.attention, attn.jax.attention and PyTorch's own
attention from Python, whose time includes the allocation of the output.  A
call is timed in bursts that the launch queue holds, so that the GPU is not
waited for; shown are medians over the bursts.  The exit status is 1 where
attn.forward takes more than --limit microseconds over the floor.
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

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn
import attn.torch
from attn import _native

# The queue of launches holds 1024.
BURST, BURSTS, WARM_UP = 100, 60, 20
BATCH, HEADS, ROWS, DIM = 1, 8, 128, 64

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
        attn.Problem(heads=HEADS, head_dim=DIM, mask="causal"),
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
    values = []
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
    q = jax.device_put(jnp.ones((BATCH, HEADS, ROWS, DIM), jnp.bfloat16),
                       device)
    function = jax.jit(lambda q, k, v: attention(q, k, v, causal=True))
    return lambda: function(q, q, q)


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--limit", type=float, default=10,
                        help="microseconds of attn.forward over the floor")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("overhead.py: expects a CUDA GPU, but torch sees none")
    shape = (BATCH, HEADS, ROWS, DIM)
    q, k, v = (torch.randn(shape, device="cuda").bfloat16()
               for _ in range(3))
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    o = torch.empty_like(q)
    bare, ours = bare_launch([q, k, v, o])
    bare()
    torch.cuda.synchronize()
    if not torch.equal(o, attn.forward(q, k, v, causal=True)):
        sys.exit("overhead.py: expects the bare launch to give attn.forward's "
                 "numbers, but they differ")

    attention = attn.torch.attention
    theirs = functional.scaled_dot_product_attention
    operator = torch.ops.attn.forward
    calls: dict[str, Call | None] = {
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
        "attn.jax.attention, jit": jax_call(),
        "torch.empty_like": lambda: torch.empty_like(q)}
    rows = {name: measure(call) for name, call in calls.items() if call}
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION),
                          ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        for suffix, tensors in (("", [q, k, v]), (", grad", leaves)):
            with sdpa_kernel(backend):  # switching costs more than a call
                rows[f"PyTorch {name}{suffix}"] = measure(
                    lambda: theirs(*tensors, is_causal=True))
    floor = rows["cuLaunchKernel"]["median_us"]
    print(f"{'':28} {'median':>8} {'least':>8} {'p90':>8} {'over':>8}   us")
    for name, row in rows.items():
        row["over_floor_us"] = row["median_us"] - floor
        print(f"{name:28} " + " ".join(f"{value:8.2f}"
                                       for value in row.values()))
    over = rows["attn.forward"]["over_floor_us"]
    device = torch.cuda.get_device_name()
    print(f"attn.forward is {over:.1f} us over cuLaunchKernel (limit "
          f"{options.limit:g}), on {device}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({
            "device": device, "torch": torch.__version__,
            "python": sys.version.split()[0], "attn": attn.__version__,
            "date": time.strftime("%Y-%m-%d"), "shape": shape,
            "limit_us": options.limit, "calls": rows}, indent=1))
    sys.exit(0 if over <= options.limit else 1)


if __name__ == "__main__":
    main()
