"""Many threads, and processes that fork."""

import os
import threading

import attn
import pytest
from attn import _launch
from fake_arrays import Dlpack

THREADS, CALLS = 8, 200


def at_once(work):
    """Runs work(number) in threads that start together; raises what fails."""
    barrier, failures = threading.Barrier(THREADS), []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # shown by the test that waits
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,))
               for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_first_calls_at_once_compile_once(gpu):
    attn.configure_cache(None)
    before = attn.cache_info()["compiled"]

    def work(number):
        q, o = Dlpack(1, 4, 2010 + number, 56), Dlpack(1, 4, 2010 + number, 56)
        attn.forward(q, q, q, out=o, scale=0.7)

    at_once(work)
    assert attn.cache_info()["compiled"] == before + 1
    assert len(gpu.launches()) == THREADS


def test_tensors_of_many_threads(torch, gpu, calls):
    from stub_torch import Tensor

    def work(number):
        for call in range(CALLS):
            q = Tensor(1, 4, 1 + (number + call) % 10, 64)
            o = attn.forward(q, q, q)
            assert o.shape == q.shape and o is not q

    at_once(work)
    launches = gpu.launches()
    assert len(launches) == THREADS * CALLS
    assert len({launch["first"] for launch in launches}) == THREADS * CALLS
    # Two threads may bind the same, but not for every call.
    assert calls["attn_forward_bind"] <= 10 * THREADS


def test_a_small_table_under_many_threads(gpu, monkeypatch):
    monkeypatch.setattr(_launch, "MOST_LAUNCHES", 2)

    def work(number):
        for call in range(30):
            q = Dlpack(1, 4, 1 + (number + call) % 6, 64)
            o = Dlpack(1, 4, 1 + (number + call) % 6, 64)
            attn.forward(q, q, q, out=o)

    at_once(work)
    assert len(gpu.launches()) == THREADS * 30
    assert len(_launch.launches) <= 2


def test_one_executable_in_many_threads(gpu):
    program = attn.compile(attn.Problem(heads=4, head_dim=64))

    def work(number):
        for call in range(50):
            q = Dlpack(1, 4, 1 + (number + call) % 5, 64)
            o = Dlpack(1, 4, 1 + (number + call) % 5, 64)
            program(q, q, q, o)

    at_once(work)
    assert len(gpu.launches()) == THREADS * 50


def test_the_library_is_opened_once(python):
    assert python("""
        import threading, attn
        barrier, names = threading.Barrier(8), []
        def run():
            barrier.wait()
            names.append(len(attn.machines()))
        threads = [threading.Thread(target=run) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(len(names), len(set(names)))
        """) == "8 1\n"


def test_a_child_goes_on_without_the_gpu(python):
    said = python("""
        import os, threading, attn
        from attn import _cache, _launch, _native
        from fake_arrays import Dlpack
        q, o = Dlpack(1, 4, 10, 64), Dlpack(1, 4, 10, 64)
        attn.forward(q, q, q, out=o)
        assert _launch.launches
        # Other threads hold every lock at the fork.
        held, done = threading.Barrier(2), threading.Event()
        def hold():
            with _native._lock, _cache._lock, _launch._lock:
                held.wait()
                done.wait()
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            assert not _launch.launches  # and nothing was destroyed
            attn.configure_cache(None)
            assert attn.plan(batch=1, heads=2, queries=64,
                             head_dim=64).best
            print("child", len(attn.machines()) > 5, flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        done.set()
        thread.join()
        attn.forward(q, q, q, out=o)
        print("parent")
        """, gpus=1)
    assert said == "child True\nparent\n"


def test_bindings_are_not_destroyed_by_a_child(gpu, calls, monkeypatch):
    q, o = Dlpack(1, 4, 10, 64), Dlpack(1, 4, 10, 64)
    attn.forward(q, q, q, out=o)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as if in a child
    _launch.launches.clear()
    assert "attn_binding_destroy" not in calls


def test_the_end_of_a_process_is_quiet(python):
    said = python("""
        import attn
        from fake_arrays import Dlpack
        q, o = Dlpack(1, 4, 10, 64), Dlpack(1, 4, 10, 64)
        attn.forward(q, q, q, out=o)
        program = attn.compile(attn.Problem(heads=4, head_dim=64))
        program(q, q, q, o)
        binding = program.bind(q, q, q, o)
        """, gpus=1)
    assert (said, said.errors) == ("", "")


FORKS = """
    import os, signal, threading, time, attn
    started, said = threading.Event(), []
    def work():
        started.set()
        try:
            attn.compile(attn.Problem(heads=4, head_dim=72),
                         machine="a100_80g")
            said.append("compiled")
        except attn.CompileError as error:
            said.append(str(error))
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    {wait}
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is ended, and seen
        {child}
        assert attn.plan(batch=1, heads=2, queries=64, head_dim=64).best
        program = attn.compile(attn.Problem(heads=2, head_dim=64))
        assert program.ptx
        os._exit(0)
    waited = time.monotonic() - begun
    status = os.waitpid(child, 0)[1]
    {check}
    thread.join()
    print(status, said[0])
    """


@pytest.mark.long
@pytest.mark.parametrize("delay", [0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3])
def test_a_fork_while_a_thread_compiles_for_the_first_time(python, delay,
                                                           tmp_path):
    program = FORKS.format(wait=f"time.sleep({delay})", child="pass",
                           check="pass")
    assert python(program, ATTN_CACHE_DIR=tmp_path / "kernels") == (
        "0 compiled\n")


@pytest.mark.long
def test_a_fork_does_not_wait_for_ptxas(python, tmp_path):
    hung = tmp_path / "ptxas"
    hung.write_text("#!/bin/sh\n"
                    "[ $1 = --version ] && exec echo release 13.9, V13.9.1\n"
                    f"touch {tmp_path}/asked\n"
                    "sleep 1000\n")
    hung.chmod(0o755)
    asked = str(tmp_path / "asked")
    program = FORKS.format(
        wait=f"while not os.path.exists({asked!r}): time.sleep(0.01)",
        child="os.environ['ATTN_PTXAS'] = ''",
        check="assert waited < 5, waited")
    said = python(program, ATTN_PTXAS=hung, ATTN_PTXAS_SECONDS=8,
                  ATTN_CACHE_DIR=tmp_path / "kernels")
    status, words = said.split(maxsplit=1)
    assert status == "0"
    assert f"'{hung} -arch=sm_80 -O3 " in words
    assert "did not end within 8 s ($ATTN_PTXAS_SECONDS) and was killed" in (
        words)
