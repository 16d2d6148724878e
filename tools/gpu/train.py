#!/usr/bin/env python3
"""Trains a small GPT with attn and with PyTorch's attention, from equal seeds.

    train.py [--out FILE.json] [--plot FILE.png] [--steps 200] [--compile]
             [--size small|large]

Runs differ in nothing but the attention:

    attn    attn.torch.attention in bf16
    flash   PyTorch's FlashAttention in bf16, the reference
    cudnn   cuDNN's attention in bf16, another one; with --size large
    math    PyTorch's attention in fp32, the yardstick: how far bf16 alone
            moves a loss

The loss of `attn` must stay as close to `math` as twice the distance of the
reference that is farther from it, in the mean over the steps and at its
largest, and a bit; and it must fall.  The exit status says whether it does.
A step's time is all of it: the text, the model, the optimizer.

small has 13 million parameters and 8192 characters a step, large 100 million
and 16384; `SIZES` says the rest.  The language is made here: sentences, sums
and brackets.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn
import attn.torch



@dataclasses.dataclass(frozen=True)
class Size:
    """Of the model, of a step, and of the text in characters."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    batch: int
    rows: int
    characters: int
    peak_rate: float
    ways: tuple[str, ...]

    @property
    def head_dim(self) -> int:
        return self.width // self.heads


SIZES = {
    "small": Size(8, 384, 6, 2, 32, 256, 1_000_000, 1e-3,
                  ("attn", "flash", "math")),
    "large": Size(16, 768, 6, 2, 16, 1024, 3_000_000, 6e-4,
                  ("attn", "cudnn", "flash", "math")),
}
WARM_UP = 20
#: Steps at the beginning whose time does not count: kernels are compiled.
UNTIMED = 10
#: On top of twice the yardstick, which may be zero: nats.
MEAN_ALLOWANCE, MAX_ALLOWANCE = 5e-4, 5e-3
#: How much of the first loss may be left in the end.
MUST_FALL_TO = 0.6

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


# -- The text ---------------------------------------------------------------

NOUNS = "river stone bird garden letter engine winter teacher mountain bell"
VERBS = "sees follows builds forgets carries paints answers remembers"
ADJECTIVES = "old quiet green heavy strange little golden broken"


def _phrase(rng: random.Random, depth: int = 0) -> str:
    words = ["the"]
    while rng.random() < 0.3:
        words.append(rng.choice(ADJECTIVES.split()))
    words.append(rng.choice(NOUNS.split()))
    if depth < 2 and rng.random() < 0.25:
        words += ["that", rng.choice(VERBS.split()), _phrase(rng, depth + 1)]
    return " ".join(words)


def _brackets(rng: random.Random, depth: int = 0) -> str:
    if depth == 4 or rng.random() < 0.3:
        return rng.choice("abcdef")
    left, right = rng.choice(("()", "[]", "{}"))
    return left + "".join(_brackets(rng, depth + 1) for _ in
                          range(rng.randint(1, 3))) + right


def make_text(characters: int, seed: int = 0) -> str:
    """Sentences, sums that are right, and brackets that close."""
    rng = random.Random(seed)
    lines, length = [], 0
    while length < characters:
        kind = rng.random()
        if kind < 0.6:
            line = (f"{_phrase(rng)} {rng.choice(VERBS.split())} "
                    f"{_phrase(rng)}.")
        elif kind < 0.8:
            a, b = rng.randint(0, 99), rng.randint(0, 99)
            line = f"{a}+{b}={a + b};"
        else:
            line = _brackets(rng)
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:characters]


# -- The model --------------------------------------------------------------


def with_attn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attn.torch.attention(q, k, v, causal=True, enable_gqa=True)


def with_flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True)


def with_cudnn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True)


def with_math(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.autocast(q.device.type, enabled=False), \
            sdpa_kernel(SDPBackend.MATH):
        o = functional.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), is_causal=True, enable_gqa=True)
    return o.to(q.dtype)


WAYS: dict[str, Attention] = {"attn": with_attn, "flash": with_flash,
                              "cudnn": with_cudnn, "math": with_math}
#: Those that are neither ours nor the yardstick.
REFERENCES = ("flash", "cudnn")


class Block(nn.Module):
    """Attention, then two layers of neurons, each beside a straight line."""

    def __init__(self, size: Size, attention: Attention) -> None:
        super().__init__()
        self.attention, self.head_dim = attention, size.head_dim
        width = size.width
        self.sizes = [heads * size.head_dim for heads in
                      (size.heads, size.kv_heads, size.kv_heads)]
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, sum(self.sizes), bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.neurons = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
            nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        # Slices of one array, [batch, rows, heads, dim] in memory.
        q, k, v = (t.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
                   for t in self.qkv(self.before(x)).split(self.sizes, -1))
        o = self.attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(o)
        return x + self.neurons(x)


class Gpt(nn.Module):
    """Predicts the next character."""

    def __init__(self, size: Size, vocabulary: int,
                 attention: Attention) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, size.width)
        self.places = nn.Embedding(size.rows, size.width)
        self.blocks = nn.Sequential(*(Block(size, attention)
                                      for _ in range(size.layers)))
        self.last = nn.LayerNorm(size.width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.last(self.blocks(self.characters(tokens) +
                                  self.places(places)))
        logits = functional.linear(x, self.characters.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(),
                                        targets.flatten())


# -- Training ---------------------------------------------------------------


class Clock:
    """When steps were done, on the GPU; or on a CPU, which tests use."""

    def __init__(self, cuda: bool) -> None:
        self.cuda = cuda
        self.marks: list[Any] = []

    def mark(self) -> None:
        if self.cuda:
            self.marks.append(torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.monotonic())

    def milliseconds(self) -> list[float]:
        """Between marks; waits for the last."""
        if not self.cuda:
            return [1e3 * (b - a) for a, b in zip(self.marks, self.marks[1:])]
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(self.marks, self.marks[1:])]


def train(size: Size, attention: Attention, tokens: Tensor, vocabulary: int,
          steps: int, compiled: bool) -> tuple[list[float], list[float], int]:
    """(loss of every step, milliseconds of every step, parameters)."""
    torch.manual_seed(0)
    model: Any = Gpt(size, vocabulary, attention).to(tokens.device)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=size.peak_rate,
                                  betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP,
                                    1 - 0.9 * step / steps))
    if compiled:
        model = torch.compile(model, fullgraph=True)
    chosen = torch.Generator().manual_seed(1)
    window = torch.arange(size.rows + 1)
    losses = []
    clock = Clock(tokens.is_cuda)
    clock.mark()
    for _ in range(steps):
        starts = torch.randint(len(tokens) - size.rows - 1, (size.batch, 1),
                               generator=chosen)
        batch = tokens[(starts + window).to(tokens.device)]
        with torch.autocast(tokens.device.type, dtype=torch.bfloat16):
            loss = model(batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
        clock.mark()
    return torch.stack(losses).tolist(), clock.milliseconds(), parameters


def gradients_of(size: Size) -> str:
    """The schedule of attn's gradients in this model."""
    return attn.plan(batch=size.batch, heads=size.heads,
                     kv_heads=size.kv_heads, queries=size.rows,
                     head_dim=size.head_dim, causal=True,
                     direction="backward",
                     machine=attn.device().machine or "").best.text


def differences(one: list[float], other: list[float]) -> dict[str, float]:
    apart = [abs(a - b) for a, b in zip(one, other)]
    return {"mean": sum(apart) / len(apart), "max": max(apart)}


def judge(losses: dict[str, list[float]]) -> dict[str, Any]:
    """The distances of the curves, the limits, and the verdict."""
    references = {name: differences(losses[name], losses["math"])
                  for name in REFERENCES if name in losses}
    yardstick = {kind: max(each[kind] for each in references.values())
                 for kind in ("mean", "max")}
    found = differences(losses["attn"], losses["math"])
    limits = {"mean": 2 * yardstick["mean"] + MEAN_ALLOWANCE,
              "max": 2 * yardstick["max"] + MAX_ALLOWANCE}
    left = losses["attn"][-1] / losses["attn"][0]
    # A NaN is not below any limit.
    follows = all(found[name] <= limits[name] for name in limits)
    return {**{f"attn_from_{name}": differences(losses["attn"], losses[name])
               for name in references},
            **{f"{name}_from_math": each for name, each in references.items()},
            "attn_from_math": found, "limits": limits, "left_of_first_loss": left,
            "ok": follows and left <= MUST_FALL_TO}


def plot(losses: dict[str, list[float]], path: Path) -> None:
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print(f"no {path}: matplotlib is not here", file=sys.stderr)
        return
    figure, (above, below) = pyplot.subplots(
        2, 1, sharex=True, figsize=(7, 5), height_ratios=(3, 1),
        layout="constrained")
    styles = {"math": ("#999999", "-", 3.0), "flash": ("#0072b2", "-", 1.5),
              "cudnn": ("#009e73", "-", 1.5), "attn": ("#d55e00", "--", 1.5)}
    names = {"math": "PyTorch, fp32", "flash": "PyTorch, FlashAttention",
             "cudnn": "PyTorch, cuDNN", "attn": "attn"}
    for name, (color, line, width) in styles.items():
        if name not in losses:
            continue
        above.plot(losses[name], line, color=color, linewidth=width,
                   label=names[name])
        if name != "math":
            below.plot([a - b for a, b in zip(losses[name], losses["math"])],
                       line, color=color, linewidth=1)
    above.set_ylabel("loss, nats per character")
    above.legend(frameon=False)
    below.axhline(0, color="#999999", linewidth=1)
    below.set_ylabel("minus fp32")
    below.set_xlabel("step")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--plot", type=Path, help="where the picture goes")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--compile", action="store_true",
                        help="with torch.compile(fullgraph=True)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("train.py: expects a CUDA GPU, but torch sees none")
    size = SIZES[options.size]
    text = make_text(size.characters)
    alphabet = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([alphabet[c] for c in text], device="cuda")
    losses: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    parameters = 0
    for name in size.ways:
        losses[name], times[name], parameters = train(
            size, WAYS[name], tokens, len(alphabet), options.steps,
            options.compile)
        print(f"{name}: {sum(times[name]) * 1e-3:.1f} s", flush=True)
    median = {name: statistics.median(found[UNTIMED:] or found)
              for name, found in times.items()}
    gradients = gradients_of(size)
    print(f"{'step':>5} " + " ".join(f"{name:>9}" for name in losses))
    shown = {*range(0, options.steps, 20), options.steps - 1}
    for step in sorted(shown):
        print(f"{step:5} " + " ".join(f"{curve[step]:9.4f}"
                                      for curve in losses.values()))
    verdict = judge(losses)
    for name, found in verdict.items():
        if isinstance(found, dict):
            print(f"{name.replace('_', ' '):16} mean {found['mean']:.5f}, "
                  f"max {found['max']:.5f}")
    device = torch.cuda.get_device_name()
    print(f"{parameters / 1e6:.1f} million parameters, " +
          ", ".join(f"{name} {ms:.2f} ms a step"
                    for name, ms in median.items()) +
          f", on {device}, gradients by {gradients}: attn "
          f"{'follows' if verdict['ok'] else 'DOES NOT FOLLOW'}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({
            "device": device, "torch": torch.__version__,
            "attn": attn.__version__, "date": time.strftime("%Y-%m-%d"),
            "size": dataclasses.asdict(size), "parameters": parameters,
            "steps": options.steps, "compiled": options.compile,
            "gradients": gradients, "median_step_ms": median, **verdict,
            "losses": losses, "step_ms": times}, indent=1))
    if options.plot:
        plot(losses, options.plot)
    sys.exit(0 if verdict["ok"] else 1)


if __name__ == "__main__":
    main()
