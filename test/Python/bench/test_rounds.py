"""Medians, quartiles and whose turn it is."""

import pytest
from attn_bench import rounds


class Timer:
    """Gives these times; says in `log` when."""

    def __init__(self, name, log, times):
        self.name, self.log, self.times = name, log, iter(times)

    def seconds(self):
        self.log.append(self.name)
        time = next(self.times)
        if isinstance(time, Exception):
            raise time
        return time


def test_summary_is_robust_against_one_slow_round():
    timing = rounds.summary([1.0] * 10 + [100.0])
    assert timing.seconds == 1.0 and timing.quartiles == (1.0, 1.0)
    assert timing.spread == 0 and timing.rounds == 11


def test_one_reading_has_no_spread():
    assert rounds.summary([2.0]) == rounds.Timing(2.0, (2.0, 2.0), 1)


def test_quartiles_enclose_the_median():
    timing = rounds.summary([4.0, 1.0, 3.0, 2.0])
    assert timing.quartiles == (1.75, 3.25) and timing.seconds == 2.5
    assert timing.spread == pytest.approx(0.6)


def test_no_reading_is_an_error():
    with pytest.raises(ValueError, match="at least one time"):
        rounds.summary([])


def test_everybody_goes_first_equally_often():
    log = []
    timers = {name: Timer(name, log, range(1, 7)) for name in "abc"}
    times, failed = rounds.alternate(timers, dict.fromkeys("abc", 0.01), 6)
    assert not failed and {t.rounds for t in times.values()} == {6}
    first = [log[i] for i in range(0, len(log), 3)]
    assert sorted(first) == ["a", "a", "b", "b", "c", "c"]


def test_the_hopeless_are_timed_once():
    log = []
    timers = {"slow": Timer("slow", log, [0.5] * 9),
              "fast": Timer("fast", log, [0.1] * 9)}
    times, _ = rounds.alternate(timers, {"slow": 0.5, "fast": 0.1}, 5)
    assert times["slow"].rounds == 1 and times["fast"].rounds == 5


def test_who_fails_stops_and_the_others_go_on():
    log = []
    error = RuntimeError("out of memory")
    timers = {"a": Timer("a", log, [1.0, error, 1.0]),
              "b": Timer("b", log, [2.0] * 4)}
    times, failed = rounds.alternate(timers, {"a": 0, "b": 0}, 4)
    assert failed == {"a": error} and set(times) == {"b"}
    assert log.count("a") == 2 and times["b"].rounds == 4
