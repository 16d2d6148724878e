"""What hardware counters read, by Nsight Compute (`ncu`), which needs the right
to read them.  Clocks are left alone."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from typing import Mapping, Sequence

#: Bytes of device memory; and those that go from L2 to the multiprocessors and
#: back.
HBM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
L2 = ("l1tex__m_xbar2l1tex_read_bytes.sum",
      "l1tex__m_l1tex2xbar_write_bytes.sum")
#: A kernel of PyTorch's, `torch.cuda._sleep`, that stands before the launches
#: of one thing of several.
MARK = "spin_kernel"

Metrics = dict[str, float]


def run(command: Sequence[str], metrics: Sequence[str], *options: str,
        environment: Mapping[str, str] | None = None,
        ) -> subprocess.CompletedProcess[str]:
    """A command below ncu, which looks at launches between the start and the
    stop of the profiler only."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise OSError("expects Nsight Compute's ncu on the PATH")
    return subprocess.run(
        [ncu, "--clock-control", "none", "--profile-from-start", "off",
         *options, "--csv", "--print-units", "base", "--metrics",
         ",".join(metrics), *command],
        capture_output=True, text=True, check=False, env=environment)


def read(text: str) -> list[tuple[str, Metrics]]:
    r"""Kernel and metrics of every launch, in order, from ncu's CSV.

    >>> read('==PROF== x\n'
    ...     '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    ...     '"0","f","a.sum","byte","1,024"\n"1","g","a.sum","byte","2"\n')
    [('f', {'a.sum': 1024.0}), ('g', {'a.sum': 2.0})]
    """
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found: dict[int, tuple[str, Metrics]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        _, metrics = found.setdefault(int(row["ID"]), (row["Kernel Name"], {}))
        try:
            metrics[row["Metric Name"]] = float(
                row["Metric Value"].replace(",", ""))
        except ValueError:
            pass  # "n/a": this GPU has no such counter.
    return [found[number] for number in sorted(found)]


def by_mark(launches: Sequence[tuple[str, Metrics]]) -> list[Metrics]:
    """Metrics of all launches behind a mark: sums of what is counted, and what
    the greediest launch takes.

    >>> by_mark([("spin_kernel", {}), ("a", {"b.sum": 1, "launch__c": 2}),
    ...          ("a", {"b.sum": 2, "launch__c": 1}), ("spin_kernel", {}),
    ...          ("a", {"b.sum": 5})])
    [{'b.sum': 3, 'launch__c': 2}, {'b.sum': 5}]
    """
    found: list[Metrics] = []
    for name, metrics in launches:
        if MARK in name:
            found.append({})
            continue
        if not found:
            raise OSError(f"expects a mark before launches, but got {name}")
        total = found[-1]
        for key, value in metrics.items():
            other = total.get(key, 0)
            total[key] = (max(other, value) if key.startswith("launch__")
                          else other + value)
    return found


def total(metrics: Mapping[str, float],
          names: Sequence[str]) -> float | None:
    """Of several metrics; None if this GPU lacks one.

    >>> total({"a": 1.0, "b": 2.0}, ("a", "b")), total({"a": 1.0}, ("b",))
    (3.0, None)
    """
    if any(name not in metrics for name in names):
        return None
    return sum(metrics[name] for name in names)
