"""Whether a trace of trace.mlir is that of one block, and possible.

`check_trace.py FILE OP QUERIES`: products are of OP, "wgmma" or "mma"; a block
takes so many of 256 queries, and all of 256 keys, of 64 columns of bf16.
"""

import json
import sys
from collections import defaultdict

file, op, queries = sys.argv[1], sys.argv[2], int(sys.argv[3])
KEYS, COLUMNS, BYTES = 256, 64, 2
CLOSE = 1e-6

with open(file, encoding="utf-8") as f:
    trace = json.load(f)
assert trace["otherData"]["durations"].startswith("model: the rates of ")
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
threads = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"]
           if e["ph"] == "M" and e["name"] == "thread_name"}
assert {e["pid"] for e in events} == {0}  # there is one kernel
warps = {tid for tid, name in threads.items() if name.startswith("warp ")}
assert events and {e["tid"] for e in events} <= set(threads)

# All durations are the model's, and a warp does one thing after the other.
last = defaultdict(float)
for event in events:
    assert event["cat"] == event["args"]["duration"] == "model"
    assert event["ts"] >= 0 and event["dur"] >= 0
    if threads[event["tid"]] != "copy engine":
        assert event["ts"] >= last[event["tid"]] - CLOSE, event
        last[event["tid"]] = event["ts"] + event["dur"]

# Products are those of one tile of queries, once.
flops = sum(e["args"]["flops"] for e in events
            if e["name"] == op and e["args"]["event"] == "product"
            and e["tid"] in warps)
assert flops == 2 * 2 * queries * KEYS * COLUMNS, flops

# A wait ends when all has come that came to its phase before.
there = defaultdict(float)
for event in events:
    arguments = event["args"]
    end = event["ts"] + event["dur"]
    if "barrier" not in arguments:
        continue
    place = arguments["barrier"], arguments["phase"]
    if arguments["event"] == "wait":
        assert event["tid"] in warps
        assert end >= there[place] - CLOSE, event
    there[place] = max(there[place], end)
assert any(e["dur"] > 0 for e in events if e["args"]["event"].endswith("wait"))

copies = [e for e in events if threads[e["tid"]] == "copy engine"
          and e["name"].startswith("copy ")]
moved = sum(e["args"].get("bytes", 0) for e in events
            if threads[e["tid"]] == "copy engine")
# Q and O of a tile, and all of K and V.
assert moved == 2 * (queries + KEYS) * COLUMNS * BYTES, moved
if op == "mma":  # who multiplies first waits for a copy
    first = min(e["ts"] for e in events if e["args"]["event"] == "product")
    assert first >= min(e["ts"] + e["dur"] for e in events
                        if threads[e["tid"]] == "copy engine") - CLOSE
if op == "wgmma":
    roles = {name.split(" (")[1][:-1] for name in threads.values()
             if name.startswith("warp ") and "(" in name}
    assert {"producer", "consumer"} <= roles, roles
    # Q of a tile, and all of K and V.
    assert sum(e["args"]["bytes"] for e in copies) == \
        (queries + 2 * KEYS) * COLUMNS * BYTES
    # Who multiplies waits for the first copies, which take a latency.
    first = min(e["ts"] for e in events if e["name"] == "wgmma")
    assert first >= min(e["ts"] + e["dur"] for e in copies) - CLOSE
    # A copy that comes to a slot again does so behind an arrival at the other
    # barrier of the slot.
    waited = [e for e in events if e["args"]["event"] == "wait"
              and "producer" in threads[e["tid"]] and e["dur"] > 0]
    assert waited
