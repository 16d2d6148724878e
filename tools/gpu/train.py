#!/usr/bin/env python3
"""Trains a small GPT with attn and with PyTorch's attention, from equal seeds.

    train.py [--out FILE.json] [--plot FILE.png] [--steps 200] [--compile]

Three runs differ in nothing but the attention:

    attn    attn.torch.attention in bf16
    flash   PyTorch's FlashAttention in bf16, the reference
    math    PyTorch's attention in fp32, the yardstick: how far bf16 alone
            moves a loss

The loss of `attn` must stay as close to `math` as twice the distance of
`flash`, in the mean over the steps and at its largest, and a bit; and it must
fall.  The exit status says whether it does.

13 million parameters, 8 layers, 6 heads over 2 of keys and values, 8192
characters a step of a language made here: sentences, sums and brackets.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any, Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn
import attn.torch

LAYERS, WIDTH, HEADS, KV_HEADS = 8, 384, 6, 2
BATCH, ROWS = 32, 256
CHARACTERS = 1_000_000
PEAK_RATE, WARM_UP = 1e-3, 20
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


def with_math(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.autocast(q.device.type, enabled=False), \
            sdpa_kernel(SDPBackend.MATH):
        o = functional.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), is_causal=True, enable_gqa=True)
    return o.to(q.dtype)


WAYS: dict[str, Attention] = {"attn": with_attn, "flash": with_flash,
                              "math": with_math}


class Block(nn.Module):
    """Attention, then two layers of neurons, each beside a straight line."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        dim = WIDTH // HEADS
        self.sizes = [HEADS * dim, KV_HEADS * dim, KV_HEADS * dim]
        self.before = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, sum(self.sizes), bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.neurons = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        # Slices of one array, [batch, rows, heads, dim] in memory.
        q, k, v = (t.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
                   for t in self.qkv(self.before(x)).split(self.sizes, -1))
        o = self.attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(o)
        return x + self.neurons(x)


class Gpt(nn.Module):
    """Predicts the next character."""

    def __init__(self, vocabulary: int, attention: Attention) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(ROWS, WIDTH)
        self.blocks = nn.Sequential(*(Block(attention)
                                      for _ in range(LAYERS)))
        self.last = nn.LayerNorm(WIDTH)
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


def train(attention: Attention, tokens: Tensor, vocabulary: int, steps: int,
          compiled: bool) -> tuple[list[float], int, float]:
    """(loss of every step, parameters, seconds)."""
    torch.manual_seed(0)
    model: Any = Gpt(vocabulary, attention).to(tokens.device)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE,
                                  betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP,
                                    1 - 0.9 * step / steps))
    if compiled:
        model = torch.compile(model, fullgraph=True)
    chosen = torch.Generator().manual_seed(1)
    window = torch.arange(ROWS + 1)
    losses = []
    started = time.monotonic()
    for _ in range(steps):
        starts = torch.randint(len(tokens) - ROWS - 1, (BATCH, 1),
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
    result = torch.stack(losses).tolist()
    return result, parameters, time.monotonic() - started


def differences(one: list[float], other: list[float]) -> dict[str, float]:
    apart = [abs(a - b) for a, b in zip(one, other)]
    return {"mean": sum(apart) / len(apart), "max": max(apart)}


def judge(losses: dict[str, list[float]]) -> dict[str, Any]:
    """The distances of the curves, the limits, and the verdict."""
    yardstick = differences(losses["flash"], losses["math"])
    found = differences(losses["attn"], losses["math"])
    limits = {"mean": 2 * yardstick["mean"] + MEAN_ALLOWANCE,
              "max": 2 * yardstick["max"] + MAX_ALLOWANCE}
    left = losses["attn"][-1] / losses["attn"][0]
    # A NaN is not below any limit.
    follows = all(found[name] <= limits[name] for name in limits)
    return {"attn_from_flash": differences(losses["attn"], losses["flash"]),
            "attn_from_math": found, "flash_from_math": yardstick,
            "limits": limits, "left_of_first_loss": left,
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
              "attn": ("#d55e00", "--", 1.5)}
    names = {"math": "PyTorch, fp32", "flash": "PyTorch, FlashAttention",
             "attn": "attn"}
    for name, (color, line, width) in styles.items():
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
    parser.add_argument("--compile", action="store_true",
                        help="with torch.compile(fullgraph=True)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("train.py: expects a CUDA GPU, but torch sees none")
    text = make_text(CHARACTERS)
    alphabet = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([alphabet[c] for c in text], device="cuda")
    losses: dict[str, list[float]] = {}
    seconds = {}
    parameters = 0
    for name, attention in WAYS.items():
        losses[name], parameters, seconds[name] = train(
            attention, tokens, len(alphabet), options.steps, options.compile)
    print(f"{'step':>5} " + " ".join(f"{name:>9}" for name in losses))
    shown = {*range(0, options.steps, 20), options.steps - 1}
    for step in sorted(shown):
        print(f"{step:5} " + " ".join(f"{curve[step]:9.4f}"
                                      for curve in losses.values()))
    verdict = judge(losses)
    for name in ("attn_from_math", "flash_from_math", "attn_from_flash",
                 "limits"):
        print(f"{name.replace('_', ' '):16} mean {verdict[name]['mean']:.5f}, "
              f"max {verdict[name]['max']:.5f}")
    device = torch.cuda.get_device_name()
    print(f"{parameters / 1e6:.1f} million parameters, " +
          ", ".join(f"{name} {s:.1f} s" for name, s in seconds.items()) +
          f", on {device}: attn "
          f"{'follows' if verdict['ok'] else 'DOES NOT FOLLOW'}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({
            "device": device, "torch": torch.__version__,
            "attn": attn.__version__, "date": time.strftime("%Y-%m-%d"),
            "parameters": parameters, "steps": options.steps,
            "compiled": options.compile, "seconds": seconds, **verdict,
            "losses": losses}, indent=1))
    if options.plot:
        plot(losses, options.plot)
    sys.exit(0 if verdict["ok"] else 1)


if __name__ == "__main__":
    main()
