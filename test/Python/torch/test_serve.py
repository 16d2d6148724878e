"""The server's loop of examples/serve.py: who gets which pages and tokens, and
that its tokens are those of a model that has no cache."""

import importlib.util
import os
import random
import subprocess
import sys

import pytest
import torch
from conftest import ROOT

import attn

PATH = os.path.join(ROOT, "examples", "serve.py")


@pytest.fixture(scope="module")
def serve():
    spec = importlib.util.spec_from_file_location("serve", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["serve"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["serve"]


def options_of(serve, **changes):
    options = serve.read_options(
        "--requests 9 --batch 4 --chunk 24 --page 8 --pages 40 --layers 2 "
        "--heads 4 --kv-heads 2 --head-dim 16 --prompt 1 60 --answer 1 9"
        .split())
    for name, value in changes.items():
        setattr(options, name, value)
    return options


def check_step(serve, scheduler, step):
    """A page has one owner, and no step has more than it may."""
    owned = [page for each in scheduler.running for page in each.pages]
    assert sorted(owned + scheduler.free) == list(range(len(owned)
                                                        + len(scheduler.free)))
    assert len(scheduler.running) <= scheduler.batch
    assert sum(piece.count for piece in step.chunks) <= scheduler.chunk
    assert step.decodes or step.chunks
    for piece in step.decodes:
        assert piece.count == 1 and piece.gives_token
    for piece in step.decodes + step.chunks:
        sequence = piece.sequence
        assert piece.first == sequence.cached
        assert piece.first + piece.count <= len(sequence.pages) * scheduler.page


@pytest.mark.parametrize("seed", range(20))
def test_everybody_is_served(serve, seed):
    draw = random.Random(seed)
    page = draw.choice((1, 8, 16))
    requests = serve.deque(
        serve.Request([0] * draw.randint(1, 90), draw.randint(1, 12))
        for _ in range(draw.randint(0, 30)))
    asked = list(requests)
    scheduler = serve.Scheduler(
        requests, page, list(range(-(-102 // page) + draw.randint(0, 40))),
        draw.randint(1, 9), draw.randint(1, 100))
    steps = 0
    while (step := scheduler.next_step()) is not None:
        check_step(serve, scheduler, step)
        for pieces in (step.decodes, step.chunks):
            scheduler.take(pieces, [7] * len(pieces))
        scheduler.end_step()
        steps += 1
        assert steps < 30 * 110
    assert sorted(len(each.answer) for each in scheduler.done) == sorted(
        each.wanted for each in asked)
    assert all(set(each.answer) == {7} for each in scheduler.done)


def test_what_fits_nowhere_is_refused(serve):
    long = serve.Request([0] * 100, 5)
    with pytest.raises(ValueError, match="fit 6 pages, but one needs 7"):
        serve.Scheduler(serve.deque([long]), 16, list(range(6)), 1, 8)
    with pytest.raises(ValueError, match="expects a prompt"):
        serve.Scheduler(serve.deque([serve.Request([], 5)]), 16, [0], 1, 8)


def without_cache(serve, model, prompt, wanted):
    """The same tokens, of all tokens anew each time."""
    def batch(count, table):
        return serve.Batch(torch.tensor([0, count], dtype=torch.int32),
                           torch.tensor([count], dtype=torch.int32), table,
                           [count])

    tokens = list(prompt)
    for _ in range(wanted):
        count = len(tokens)
        pages = -(-count // model.page)
        assert pages <= model.cache.shape[2]
        table = torch.arange(pages, dtype=torch.int32)[None]
        scores = model._run(
            torch.tensor(tokens, dtype=torch.int32),
            torch.arange(count, dtype=torch.int32), batch(count, table))
        tokens.append(int(scores.argmax()))
    return tokens[len(prompt):]


def test_tokens_are_those_without_a_cache(serve):
    options = options_of(serve)
    scheduler = serve.scheduler_of(options)
    model = serve.Model(options, "cpu", torch.float64, serve.by_torch)
    serve.serve(model, scheduler)
    assert len(scheduler.done) == options.requests
    alone = serve.Model(options, "cpu", torch.float64, serve.by_torch)
    for each in scheduler.done:
        assert each.answer == without_cache(serve, alone, each.request.prompt,
                                            each.request.wanted)


def test_attn_gets_the_cache(serve, monkeypatch):
    """The call of attn, with what PyTorch computes in its place."""
    calls = []

    def attention(q, k, v, cu_seqlens_q, cu_seqlens_k, longest, room, *,
                  causal, seqused_k, page_table):
        counts = cu_seqlens_q.diff().tolist()
        calls.append(counts)
        assert causal and cu_seqlens_k is None and longest == max(counts)
        assert k.dim() == 4 and k.shape[1] == 8 and room >= seqused_k.max()
        assert seqused_k.dtype == page_table.dtype == torch.int32
        return serve.by_torch(q, k, v, serve.Batch(cu_seqlens_q, seqused_k,
                                                   page_table, counts))

    monkeypatch.setattr(attn, "attention_varlen", attention)
    options = options_of(serve)
    answers = []
    for backend in (serve.by_attn, serve.by_torch):
        scheduler = serve.scheduler_of(options)
        serve.serve(serve.Model(options, "cpu", torch.float64, backend),
                    scheduler)
        answers.append(scheduler.done)
    assert serve.agreement(*answers) == 1
    assert any(1 in counts and max(counts) > 8 for counts in calls)


def test_without_a_gpu_it_says_so():
    done = subprocess.run(
        [sys.executable, PATH], capture_output=True, text=True, check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 1 and done.stderr == (
        "serve.py: error: expects a GPU of CUDA, but PyTorch sees none\n")


@pytest.mark.gpu
def test_on_a_gpu(serve):
    options = options_of(serve, head_dim=64)
    answers = []
    for backend in (serve.by_attn, serve.by_torch):
        scheduler = serve.scheduler_of(options)
        serve.serve(serve.Model(options, "cuda", torch.bfloat16, backend),
                    scheduler)
        assert len(scheduler.done) == options.requests
        answers.append(scheduler.done)
    # A token may differ where two are about as likely.
    assert serve.agreement(*answers) >= 0.5
