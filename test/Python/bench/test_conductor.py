"""Waves, restarts and the budget, with workers that only pretend."""

import time

import pytest
from attn_bench import conductor as module
from attn_bench import grid
from attn_bench.settings import Settings

CELLS = grid.cells([64, 128], [512, 1024], ["none"], ["forward"], [])


class Script:
    """What workers do: words by (peer, rows) that end the process."""

    def __init__(self):
        self.deaths, self.started, self.timed = {}, [], []
        self.seconds = 0.0


class Fake:
    """A handle whose worker answers at once."""

    def __init__(self, script, settings, cells, excluded):
        self.script, self.cells, self.excluded = script, cells, excluded
        self.peers, self.connection = settings.peers, self
        self.doing, self.ready, self.facts = ("", ""), False, {}
        self.answers, self.silent_seconds, self.restarts = [], 0.0, 0
        script.started.append(([c.rows for c in cells], dict(excluded)))

    def poll(self, seconds):
        return bool(self.answers)

    def receive(self):
        return self.answers.pop(0) if self.answers else None

    def _dies(self, stage, cell):
        for peer in self.peers:
            if (peer, cell.key) in self.excluded or (
                    peer, cell.direction) in self.excluded:
                continue
            words = self.script.deaths.get((stage, peer, cell.rows))
            if words == "hangs":
                self.doing, self.silent_seconds = (peer, cell.key), 1e6
                return True
            if words:
                self.doing = (peer, cell.key)
                self.answers.append(("ended", words))
                return True
        return False

    def send(self, word, key=None):
        if word == "prepare":
            if not any(self._dies("prepare", c) for c in self.cells):
                self.answers.append(("ready", {"device": "fake"}))
            return
        if word == "time":
            cell = next(c for c in self.cells if c.key == key)
            time.sleep(self.script.seconds)
            if not self._dies("time", cell):
                self.script.timed.append(cell.key)
                refused = {peer: {"refused": words} for (peer, where), words
                           in self.excluded.items()
                           if where in (key, cell.direction)}
                self.answers.append(("result", {"results": refused}))

    def stop(self):
        pass

    def kill(self):
        pass


@pytest.fixture
def play(monkeypatch):
    """Runs the cells by a script; gives the results and what was said."""

    def play(script, workers=2, deadline=None, cells=CELLS):
        monkeypatch.setattr(
            module, "Handle", lambda kind, settings, log, cells, excluded:
            Fake(script, settings, cells, excluded))
        monkeypatch.setattr(module.multiprocessing.connection, "wait",
                            lambda connections, timeout: None)
        found, said = {}, []
        module.Conductor(
            Settings(device="cpu", peers=("attn", "flex")), workers, deadline,
            lambda cell, result, facts: found.update({cell.key: result}),
            lambda ceilings, facts: None, said.append).run(list(cells), False)
        return found, said

    return play


def test_all_cells_are_timed_one_after_the_other(play):
    script = Script()
    found, _ = play(script)
    assert script.timed == [c.key for c in CELLS] == list(found)
    assert len(script.started) == 2  # a process for each head dimension


def test_a_wave_has_as_many_groups_as_workers(play):
    _, said = play(Script(), workers=1)
    assert sum("preparing 1 groups" in line for line in said) == 2


@pytest.mark.parametrize("stage", ["prepare", "time"])
def test_a_peer_that_kills_the_process_has_refused(play, stage):
    script = Script()
    script.deaths[stage, "flex", 1024] = "ended with signal 11"
    found, _ = play(script)
    assert set(found) == {c.key for c in CELLS}
    for cell in CELLS:
        refused = found[cell.key]["results"].get("flex")
        assert refused == ({"refused": "ended with signal 11"}
                           if cell.rows == 1024 else None)
    assert len(script.started) == 4  # each group was started once more


def test_a_compiler_that_hangs_is_not_tried_for_other_lengths(play):
    script = Script()
    script.deaths["prepare", "flex", 512] = "hangs"
    found, _ = play(script)
    assert all("not prepared within" in found[c.key]["results"]["flex"][
        "refused"] for c in CELLS)


def test_what_keeps_failing_is_given_up(play, monkeypatch):
    def always(self, stage, cell):
        self.answers.append(("ended", "no GPU"))  # with nobody to blame
        return True

    monkeypatch.setattr(Fake, "_dies", always)
    script = Script()
    found, _ = play(script)
    assert all(found[c.key]["failed"] == "no GPU" for c in CELLS)
    assert len(script.started) == 2


def test_peers_that_die_one_after_the_other_are_given_up(play, monkeypatch):
    def always(self, stage, cell):
        self.doing = "attn", cell.key
        self.answers.append(("ended", "no GPU"))
        return True

    monkeypatch.setattr(Fake, "_dies", always)
    script = Script()
    found, _ = play(script)
    assert all(found[c.key]["failed"] == "no GPU" for c in CELLS)
    assert len(script.started) == 2 * (1 + module.MOST_RESTARTS)


def test_when_the_time_is_up_no_cell_is_started(play):
    script = Script()
    script.seconds = 0.2
    found, said = play(script, workers=1, deadline=time.monotonic() + 10.3)
    assert found, said
    assert len(found) < len(CELLS)
    assert any("no time to prepare" in line for line in said)
