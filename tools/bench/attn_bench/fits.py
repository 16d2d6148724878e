"""How well the time model chooses among timed kernels, and constants that
choose better.

Kernels are those of searches.tsv that replays.tsv counts, as BorderTest and
ChoiceTest count them, and of gradients.tsv:

    SOURCE  DTYPE  BATCH  HEADS  KV_HEADS  ROWS  HEAD_DIM  HEAD_DIM_V  MASK
            MICROSECONDS  SCHEDULE

A fit sees the problems of even number of each search, and is judged on the
others (`replays.scores`).  Of gradients there are few, and it sees all.

A choice is what is predicted to be fastest, so its loss jumps; descent goes
along a smooth one: each kernel of a problem is chosen with a probability that
falls by e with every `TEMPERATURE` of predicted time.  Added are a share of how
far times within a problem are apart from what they should be, and of how far
all of them are.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import replays, searches

TEMPERATURE = 0.007
ERROR_SHARE, MEAN_SHARE = 0.15, 0.1
# A fit looks at kernels that take at most so many times as long as the best.
NEAR = {"border": 1.4, "choice": 1.2, "gradient": 2.0}
# Constants that no committed kernel decides, or that counters measured.
GIVEN = ("operandShare", "memoryLatencySeconds", "sumTurnSeconds",
         "sumStepSeconds", "sumShare", "partSeconds", "besideBytesPerSecond",
         "besideTailSeconds")
# What shares and powers may be; other constants are positive.
LIMITS = {"unitPower": (1, 12), "ringPower": (1.5, 40), "memoryPower": (1.5, 20),
          "fillPower": (0, 3), "l2Gain": (1, 3), "exposedShare": (0, 1.5),
          "restartShare": (0, 2), "overlapShare": (0, 1),
          "togetherShare": (0, 1), "firstTileShare": (0, 1),
          "hiddenShare": (0, 1), "tailShare": (0, 1)}
SET = re.compile(r"^ATTN_SET\((\w+), (\w+), ([-+.\de]+)\)$", re.MULTILINE)
TIME = re.compile(r'^ATTN_TIME\((\w+), "(.*)"\)$', re.MULTILINE)


@dataclass
class Kernel:
    text: str
    seconds: float
    final: float | None = None

    @property
    def kind(self) -> str:
        return self.text.split(",")[0]

    @property
    def is_of_like_warps(self) -> bool:
        return "warps = " in self.text


@dataclass
class Timed:
    """A problem and its kernels."""

    asked: str
    search: str
    line: str
    kernels: list[Kernel]


def staggers(entry: searches.Entry) -> bool:
    """As `staggersRows` in lib/Schedule."""
    return entry.dtype in ("bf16", "f16") and all(
        2 * columns % 32 == 16 for columns in (entry.head_dim,
                                               entry.head_dim_v))


def kernels_of(replay: replays.Replay, entry: searches.Entry) -> list[Kernel]:
    """Those whose times still stand for the kernels of today."""
    found = []
    if (replay.asked == "border" and replay.kernels == "first"
            and entry.mask != "none"):
        return found
    for one in entry.candidates:
        kernel = Kernel(one["schedule"], one["seconds"], one.get("final"))
        if replay.asked == "choice":
            if not kernel.is_of_like_warps and (
                    replay.kernels == "groups"
                    or kernel.kind != "column_split"):
                found.append(kernel)
        elif not (kernel.is_of_like_warps and staggers(entry)
                  and replay.kernels != "staggered"):
            kernel.seconds = one.get("final", kernel.seconds)
            found.append(kernel)
    return found


def problem_line(direction: str, columns: Sequence[Any]) -> str:
    return "\t".join(("problem", direction, *map(str, columns)))


def timed_searches(results: Path) -> Iterator[Timed]:
    table = searches.load(results / "searches.tsv")
    for replay in replays.load(results / "replays.tsv"):
        for entry in table.searches[replay.search].entries:
            yield Timed(replay.asked, replay.search,
                        problem_line("forward", entry.problem),
                        kernels_of(replay, entry))


def timed_gradients(results: Path, machine: str) -> Iterator[Timed]:
    found: dict[tuple[str, str], Timed] = {}
    lines = (results / "gradients.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            source, *problem, micros, schedule = line.split("\t")
            if len(problem) != 8:
                raise ValueError(f"{len(problem) + 3}")
            kernel = Kernel(schedule, float(micros) * 1e-6)
        except ValueError as error:
            raise ValueError(f"gradients.tsv:{number}: expects eleven columns, "
                             f"but got {error}") from None
        text = problem_line("backward", (*problem, machine))
        found.setdefault((source, text), Timed("gradient", source, text, [])
                         ).kernels.append(kernel)
    yield from found.values()


class Prices:
    """What the model says of all kernels, by `attn-price`."""

    def __init__(self, program: Path, problems: Sequence[Timed]) -> None:
        self.problems = [one for one in problems if one.kernels]
        self.kernels = [k for one in self.problems for k in one.kernels]
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        text = "".join(one.line + "\n" + "".join(
            f"kernel\t{k.text}\n" for k in one.kernels)
            for one in self.problems) + "go\n"
        feeder = threading.Thread(target=self._send, args=(text,))
        feeder.start()
        self.count = int(self._line())
        numbers = [self._line().split() for _ in self.kernels]
        feeder.join()
        self.own = np.array([-1 if words == ["-"] else int(words[0])
                             for words in numbers])
        width = max(map(len, numbers))
        self.rivals = np.array([
            [0] * width if words == ["-"] else
            [int(word) for word in words + words[:1] * (width - len(words))]
            for words in numbers])

    def _send(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def _line(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline().decode()
        if not line:
            raise ValueError("attn-price ended")
        return line

    def seconds(self, constants: dict[str, float]) -> tuple[Any, Any]:
        """Of each kernel, or infinity if it is no plan; and of the fastest
        that differs from it in the room it takes."""
        self._send(" ".join(f"{name} {value!r}"
                            for name, value in constants.items()) + "\n")
        assert self.process.stdout
        raw = self.process.stdout.read(8 * self.count)
        if len(raw) != 8 * self.count:
            raise ValueError("attn-price ended")
        all_seconds = np.frombuffer(raw)
        own = np.where(self.own >= 0, all_seconds[self.own], np.inf)
        return own, all_seconds[self.rivals].min(axis=1)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def seen_by_fit(prices: Prices) -> list[Timed]:
    """The problems of even number of each search, of those that are judged, and
    of gradients all, without kernels that are far from the best."""
    counts: dict[str, int] = {}
    seen, start = [], 0
    for one in prices.problems:
        own = prices.own[start:start + len(one.kernels)]
        start += len(one.kernels)
        number = counts.get(one.search, 0)
        counts[one.search] = number + int((own >= 0).any())
        if number % 2 == 0 or one.asked == "gradient":
            seen.append(one)
    return near(seen)


def near(problems: Sequence[Timed]) -> list[Timed]:
    kept = []
    for one in problems:
        if one.kernels:
            most = NEAR[one.asked] * min(k.seconds for k in one.kernels)
            kept.append(Timed(one.asked, one.search, one.line, [
                k for k in one.kernels if k.seconds <= most]))
    return kept


@dataclass
class Outcome:
    asked: str
    is_seen: bool
    loss: float
    agrees: bool


def outcomes(prices: Prices, constants: dict[str, float]) -> list[Outcome]:
    """As BorderTest and ChoiceTest judge, problem by problem."""
    own, best = prices.seconds(constants)
    found: list[Outcome] = []
    counts: dict[str, int] = {}
    start = 0
    for one in prices.problems:
        numbers = range(start, start + len(one.kernels))
        start += len(one.kernels)
        plans = [i for i in numbers if np.isfinite(own[i]) and (
            one.asked == "gradient" or own[i] <= best[i] * (1 + 1e-12))]
        if not plans or (one.asked == "gradient" and len(plans) < 2):
            continue
        chosen = min(plans, key=lambda i: own[i])
        kernel = prices.kernels[chosen]
        pool = plans if one.asked != "choice" else list(numbers)
        took = (lambda i: prices.kernels[i].seconds)
        if one.asked == "choice" and kernel.final is not None:
            pool = [i for i in pool if prices.kernels[i].final is not None]
            took = (lambda i: prices.kernels[i].final)
        fastest = min(pool, key=took)
        number = counts.get(one.search, 0)
        counts[one.search] = number + 1
        found.append(Outcome(
            one.asked, number % 2 == 0, took(chosen) / took(fastest) - 1,
            kernel.kind == prices.kernels[fastest].kind))
    return found


def scores(found: Sequence[Outcome]) -> list[tuple[str, str, replays.Score]]:
    rows = []
    for asked in ("border", "choice", "gradient"):
        for which, seen in (("all", (True, False)), ("seen", (True,)),
                            ("unseen", (False,))):
            some = [(one.loss, one.agrees) for one in found
                    if one.asked == asked and one.is_seen in seen]
            if some:
                rows.append((asked, which, replays.score(some)))
    return rows


class Objective:
    """What descent makes small, in per cent."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        index, losses, sizes, asked = [], [], [], []
        start = 0
        for one in prices.problems:
            numbers = range(start, start + len(one.kernels))
            start += len(one.kernels)
            plans = [i for i in numbers if prices.own[i] >= 0]
            if not plans:
                continue
            best = min(prices.kernels[i].seconds for i in plans)
            index += plans
            losses += [prices.kernels[i].seconds / best - 1 for i in plans]
            sizes.append(len(plans))
            asked.append(one.asked)
        self.index, self.losses = np.array(index), np.array(losses)
        self.starts = np.cumsum([0, *sizes])[:-1]
        self.group = np.repeat(np.arange(len(sizes)), sizes)
        self.weights = np.array([1 / asked.count(one) for one in asked])
        self.log_times = np.log([prices.kernels[i].seconds for i in index])

    def __call__(self, constants: dict[str, float]) -> float:
        own, best = self.prices.seconds(constants)
        own, best = own[self.index], best[self.index]
        logs = np.log(own)
        least = np.minimum.reduceat(logs, self.starts)
        chance = np.exp(-(logs - least[self.group]) / TEMPERATURE)
        # What a rival stands for is a choice no more.
        chance *= np.where(own > best * (1 + 1e-12), 0.3, 1)
        loss = (self._sum(chance * np.minimum(self.losses, 1))
                / self._sum(chance))
        errors = logs - self.log_times
        counts = self._sum(np.ones_like(errors))
        means = self._sum(errors) / counts
        spread = self._sum((errors - means[self.group]) ** 2) / counts
        total = self.weights.sum()
        rms = np.sqrt((spread * self.weights).sum() / total)
        mean = np.sqrt((means ** 2 * self.weights).sum() / total)
        return float(100 * ((loss * self.weights).sum() + ERROR_SHARE * rms
                            + MEAN_SHARE * mean))

    def _sum(self, values: Any) -> Any:
        return np.add.reduceat(values, self.starts)


def descend(objective: Callable[[dict[str, float]], float],
            constants: dict[str, float], seconds: float,
            say: Callable[[str], None], step: float = 0.25,
            least_step: float = 0.02) -> dict[str, float]:
    """One constant after the other, by a factor that grows where it helps."""
    began = time.monotonic()
    constants = dict(constants)
    best = objective(constants)
    steps = {name: step for name in constants if name not in GIVEN}
    say(f"{best:.4f} at first")
    while max(steps.values(), default=0) > least_step:
        for name in sorted(steps, key=lambda one: -steps[one]):
            if time.monotonic() - began > seconds:
                return constants
            if steps[name] < least_step:
                continue
            for factor in (1 + steps[name], 1 / (1 + steps[name])):
                low, high = LIMITS.get(name, (0.0, float("inf")))
                value = min(max(constants[name] * factor, low), high)
                found = objective({**constants, name: value})
                if found < best - 1e-5:
                    best, constants[name] = found, value
                    steps[name] *= 1.4
                    break
            else:
                steps[name] /= 2
        say(f"{best:.4f} after {time.monotonic() - began:.0f} s")
    return constants


def constants_of(text: str, machine: str) -> dict[str, float]:
    """Of Times.def.

    >>> constants_of("ATTN_SET(h200, turnClocks, 7.5e1)\\n", "h200")
    {'turnClocks': 75.0}
    """
    return {name: float(value) for row, name, value in SET.findall(text)
            if row == machine}


def with_constants(text: str, machine: str,
                   constants: dict[str, float]) -> str:
    """
    >>> with_constants("ATTN_SET(h200, turnClocks, 75)", "h200",
    ...                {"turnClocks": 81.25})
    'ATTN_SET(h200, turnClocks, 81.25)'
    """
    def line(match: re.Match[str]) -> str:
        row, name, _ = match.groups()
        if row != machine or name not in constants:
            return match[0]
        return f"ATTN_SET({row}, {name}, {constants[name]:.4g})"

    return SET.sub(line, text)


def page(rows: Sequence[tuple[str, str, replays.Score]]) -> str:
    """A table of scores."""
    asks = {"border": "schedules and tiles at the border",
            "choice": "tiles of `flash` and `column_split`",
            "gradient": "gradients"}
    lines = ["| choice among | problems | of them | mean loss | at most 3 % | "
             "at most 5 % | at most 10 % | same schedule |",
             "|---|---|---:|---:|---:|---:|---:|---:|"]
    for asked, which, one in rows:
        within = " | ".join(f"{share:.1%}" for share in one.within)
        lines.append(f"| {asks[asked]} | {which} | {one.problems} | "
                     f"{one.mean_loss:.2%} | {within} | {one.agreement:.1%} |")
    return "\n".join(lines) + "\n"
