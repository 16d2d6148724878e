#!/usr/bin/env python3
"""Serves random requests: continuous batching over a cache in pages.

    serve.py [--requests 96] [--batch 64] [--chunk 512] [--page 16]
             [--pages 8192] [--layers 4] [--heads 32] [--kv-heads 8]
             [--head-dim 128] [--prompt 64 4000] [--answer 16 256] [--seed 0]
             [--only attn|torch]

A server's loop in small.  Requests come with a prompt and ask for so many
tokens.  In every step each sequence whose prompt is cached gets one token, and
beside them some prompts are cached, in chunks of at most `--chunk` tokens
together.  Who is done leaves, its pages go back, and the next request begins.

The model has random weights and nothing but attention between the tokens.
Attention is attn.attention_varlen, one launch for all tokens of a step and a
layer, or PyTorch's own on pages that are gathered first; both run the same loop,
and their tokens are compared.  Printed are tokens a second of each.  Needs a
GPU, PyTorch and the package.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch
from torch import Tensor
from torch.nn import functional

VOCABULARY = 1024


# -- Which sequences, which tokens, which pages -------------------------------


@dataclass
class Request:
    """A prompt, and how many tokens are asked for behind it."""

    prompt: list[int]
    wanted: int


@dataclass
class Sequence:
    """A request that has pages."""

    request: Request
    pages: list[int]
    tokens: list[int]   #: of the prompt, and those that came
    cached: int = 0     #: tokens whose keys and values are in the cache

    @property
    def answer(self) -> list[int]:
        return self.tokens[len(self.request.prompt):]

    @property
    def is_done(self) -> bool:
        return len(self.answer) == self.request.wanted


@dataclass
class Piece:
    """Tokens of a sequence that are worked off at once, from `first` on."""

    sequence: Sequence
    first: int
    count: int

    @property
    def gives_token(self) -> bool:
        """Whether the last of them is the last that there is."""
        return self.first + self.count == len(self.sequence.tokens)


@dataclass
class Step:
    """What is done at once: one token of each of these, and chunks of those."""

    decodes: list[Piece]
    chunks: list[Piece]


@dataclass
class Scheduler:
    """Deals out pages and tokens; of tensors it knows nothing.

    A request gets all pages that it may need when it begins, so it is never
    stopped on its way.  Requests begin in the order in which they came.
    """

    requests: deque[Request]
    page: int           #: tokens of a page
    free: list[int]     #: pages
    batch: int          #: sequences at once
    chunk: int          #: tokens of prompts in a step
    running: list[Sequence] = field(default_factory=list)
    done: list[Sequence] = field(default_factory=list)

    def __post_init__(self) -> None:
        for request in self.requests:
            if not request.prompt or request.wanted < 1:
                raise ValueError(
                    f"expects a prompt and tokens that are asked for, but got "
                    f"{len(request.prompt)} and {request.wanted}")
            if self._pages_of(request) > len(self.free):
                raise ValueError(
                    f"expects requests that fit {len(self.free)} pages, but "
                    f"one needs {self._pages_of(request)}")

    def _pages_of(self, request: Request) -> int:
        # Nobody reads the keys of the last token.
        return -(-(len(request.prompt) + request.wanted - 1) // self.page)

    def _admit(self) -> None:
        while self.requests and len(self.running) < self.batch:
            needed = self._pages_of(self.requests[0])
            if needed > len(self.free):
                return
            request = self.requests.popleft()
            pages = [self.free.pop() for _ in range(needed)]
            self.running.append(Sequence(request, pages, list(request.prompt)))

    def next_step(self) -> Optional[Step]:
        """What is to be done next; nothing when all requests are done."""
        self._admit()
        if not self.running:
            return None
        step = Step([], [])
        left = self.chunk
        for sequence in self.running:
            count = len(sequence.tokens) - sequence.cached
            if sequence.answer:
                step.decodes.append(Piece(sequence, sequence.cached, count))
            elif left > 0:
                count = min(count, left)
                left -= count
                step.chunks.append(Piece(sequence, sequence.cached, count))
        return step

    def take(self, pieces: list[Piece], tokens: list[int]) -> None:
        """The tokens that came behind these pieces."""
        for piece, token in zip(pieces, tokens):
            gives_token = piece.gives_token
            piece.sequence.cached += piece.count
            if gives_token:
                piece.sequence.tokens.append(token)

    def end_step(self) -> None:
        for sequence in [each for each in self.running if each.is_done]:
            self.running.remove(sequence)
            self.done.append(sequence)
            self.free += sequence.pages


# -- Attention on the cache ---------------------------------------------------

@dataclass
class Batch:
    """Where the tokens of a step lie: sequence n has the rows from offsets[n] to
    offsets[n + 1], the first `lengths[n]` tokens of its pages are there, its own
    among them, and the host knows how many rows each has."""

    offsets: Tensor     #: [sequences + 1], like all of int32
    lengths: Tensor     #: [sequences]
    table: Tensor       #: [sequences, pages]
    counts: list[int]


#: q [tokens, heads, d], pools [pages, page, kv_heads, d] and where they lie -> o
#: like q.  Row i of n sees the keys up to length - n + i.
Attention = Callable[[Tensor, Tensor, Tensor, Batch], Tensor]


def by_attn(q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
    """Prefills and decodes in one launch."""
    import attn
    return attn.attention_varlen(
        q, k, v, batch.offsets, None, max(batch.counts),
        batch.table.shape[1] * k.shape[1], causal=True,
        seqused_k=batch.lengths, page_table=batch.table)


def by_torch(q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
    """Decodes, which stand first, as one batch, and prefills one by one."""
    decodes = 0
    while decodes < len(batch.counts) and batch.counts[decodes] == 1:
        decodes += 1
    o, first = torch.empty_like(q), 0
    for some in [range(decodes), *(range(n, n + 1) for n in
                                   range(decodes, len(batch.counts)))]:
        if not some:
            continue
        queries = batch.counts[some[0]]
        rows = slice(first, first + len(some) * queries)
        first = rows.stop
        own = slice(some[0], some[-1] + 1)
        o[rows] = of_one_length(q[rows].unflatten(0, (len(some), queries)), k,
                                v, batch.lengths[own],
                                batch.table[own]).flatten(0, 1)
    return o


def of_one_length(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor,
                  table: Tensor) -> Tensor:
    """PyTorch's attention on rows that are gathered from the pages; q is
    [sequences, queries, heads, d]."""
    batch, queries = q.shape[:2]
    k, v = (pool[table.long()].flatten(1, 2).transpose(1, 2)
            for pool in (k, v))
    last = lengths[:, None] - queries + torch.arange(queries, device=q.device)
    keys = torch.arange(k.shape[2], device=q.device)
    sees = (keys <= last[:, :, None]).view(batch, 1, queries, -1)
    o = functional.scaled_dot_product_attention(
        q.transpose(1, 2), k, v, attn_mask=sees, enable_gqa=True)
    return o.transpose(1, 2)


# -- The model ----------------------------------------------------------------


class Model:
    """Attention, layer after layer, with random weights, and its cache."""

    def __init__(self, options: argparse.Namespace, device: str,
                 dtype: torch.dtype, attention: Attention) -> None:
        self.page, self.attention, self.device = (options.page, attention,
                                                  device)
        heads, kv_heads, dim = options.heads, options.kv_heads, options.head_dim
        width = heads * dim
        draw = torch.Generator(device).manual_seed(options.seed)

        def weights(rows: int, columns: int) -> Tensor:
            return (torch.randn(rows, columns, generator=draw, device=device)
                    / rows ** 0.5).to(dtype)

        self.heads, self.kv_heads, self.dim = heads, kv_heads, dim
        self.embedding = (weights(VOCABULARY, width) * VOCABULARY ** 0.5)
        self.layers = [(weights(width, width + 2 * kv_heads * dim),
                        weights(width, width)) for _ in range(options.layers)]
        shape = (options.layers, 2, options.pages, options.page, kv_heads, dim)
        self.cache = torch.zeros(shape, dtype=dtype, device=device)

    def _numbers(self, values: Iterable[Any]) -> Tensor:
        return torch.tensor(list(values), dtype=torch.int32).to(self.device)

    def tokens_behind(self, pieces: list[Piece]) -> list[int]:
        """The most likely token behind each piece, all of them at once."""
        ids, slots = [], []
        for piece in pieces:
            end = piece.first + piece.count
            ids += piece.sequence.tokens[piece.first:end]
            slots += [piece.sequence.pages[at // self.page] * self.page
                      + at % self.page for at in range(piece.first, end)]
        pages = max(len(piece.sequence.pages) for piece in pieces)
        counts = [piece.count for piece in pieces]
        batch = Batch(
            self._numbers([0, *itertools.accumulate(counts)]),
            self._numbers(piece.first + piece.count for piece in pieces),
            self._numbers(
                piece.sequence.pages + [0] * (pages - len(piece.sequence.pages))
                for piece in pieces), counts)
        found: list[int] = self._run(self._numbers(ids), self._numbers(slots),
                                     batch).argmax(1).tolist()
        return found

    def _run(self, ids: Tensor, slots: Tensor, batch: Batch) -> Tensor:
        """Scores of all tokens behind the last row of each sequence."""
        x, rows = self.embedding[ids], slots.long()
        for (inward, outward), pools in zip(self.layers, self.cache):
            normal = functional.rms_norm(x, x.shape[-1:])
            q, k, v = (normal @ inward).split(
                [self.heads * self.dim] + 2 * [self.kv_heads * self.dim], -1)
            for pool, new in zip(pools, (k, v)):
                pool.view(-1, self.kv_heads, self.dim)[rows] = new.unflatten(
                    -1, (self.kv_heads, self.dim))
            o = self.attention(q.unflatten(-1, (self.heads, self.dim)),
                               pools[0], pools[1], batch)
            x = x + o.flatten(1).to(x.dtype) @ outward
        last = batch.offsets[1:].long() - 1
        return functional.rms_norm(x[last], x.shape[-1:]) @ self.embedding.T


def serve(model: Model, scheduler: Scheduler) -> None:
    """Works off all requests."""
    with torch.no_grad():
        while (step := scheduler.next_step()) is not None:
            pieces = step.decodes + step.chunks
            scheduler.take(pieces, model.tokens_behind(pieces))
            scheduler.end_step()


# -- The command --------------------------------------------------------------


def random_requests(options: argparse.Namespace) -> deque[Request]:
    draw = torch.Generator().manual_seed(options.seed)

    def number(least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=draw))

    return deque(
        Request(torch.randint(VOCABULARY, (number(*options.prompt),),
                              generator=draw).tolist(), number(*options.answer))
        for _ in range(options.requests))


def scheduler_of(options: argparse.Namespace) -> Scheduler:
    return Scheduler(random_requests(options), options.page,
                     list(range(options.pages)), options.batch, options.chunk)


def read_options(arguments: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False)
    for name, value in (("requests", 96), ("batch", 64), ("chunk", 512),
                        ("page", 16), ("pages", 8192), ("layers", 4),
                        ("heads", 32), ("kv-heads", 8), ("head-dim", 128),
                        ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--prompt", type=int, nargs=2, default=[64, 4000])
    parser.add_argument("--answer", type=int, nargs=2, default=[16, 256])
    parser.add_argument("--only", choices=("attn", "torch"))
    return parser.parse_args(arguments)


def timed(options: argparse.Namespace, attention: Attention) -> list[Sequence]:
    """Serves twice, the first time to compile; prints the rate."""
    for _ in range(2):
        scheduler = scheduler_of(options)
        model = Model(options, "cuda", torch.bfloat16, attention)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        serve(model, scheduler)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    answered = sum(len(each.answer) for each in scheduler.done)
    read = sum(len(each.request.prompt) for each in scheduler.done)
    name = attention.__name__.removeprefix("by_")
    print(f"{name:6} {answered} tokens behind {read} of prompts in "
          f"{seconds:.2f} s: {answered / seconds:.0f} tokens/s")
    return scheduler.done


def agreement(some: list[Sequence], others: list[Sequence]) -> float:
    """The share of answers that are the same; sums differ in their last bits,
    and behind a token that differs all do."""
    def answers(sequences: list[Sequence]) -> list[list[int]]:
        return [each.answer for each in sorted(
            sequences, key=lambda each: each.request.prompt)]

    pairs = list(zip(answers(some), answers(others)))
    return sum(a == b for a, b in pairs) / max(1, len(pairs))


def main() -> int:
    options = read_options()
    if not torch.cuda.is_available():
        print("serve.py: error: expects a GPU of CUDA, but PyTorch sees none",
              file=sys.stderr)
        return 1
    done = [timed(options, attention) for attention in (by_attn, by_torch)
            if options.only in (None, attention.__name__[3:])]
    if len(done) == 2:
        print(f"{100 * agreement(*done):.0f} % of the answers are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
