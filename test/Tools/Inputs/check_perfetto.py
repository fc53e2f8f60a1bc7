"""Prints what a trace of events holds: check_perfetto.py FILE"""

import collections
import json
import sys

with open(sys.argv[1]) as file:
    events = json.load(file)["traceEvents"]
names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
slices = [e for e in events if e["ph"] == "X"]
for pid in sorted({e["pid"] for e in slices}):
    threads = sorted(names["thread_name", pid, tid] for tid in {e["tid"] for e in slices if e["pid"] == pid})
    print(f"{names['process_name', pid, 0]}: {', '.join(threads)}")

# Stages of a thread follow each other without gaps.
last = {}
for e in slices:
    if e["cat"] == "stage":
        thread = e["pid"], e["tid"]
        assert abs(last.get(thread, e["ts"]) - e["ts"]) < 1e-6, e
        last[thread] = e["ts"] + e["dur"]
products = collections.Counter(e["name"] for e in slices if e["cat"] == "product")
for name, count in sorted(products.items()):
    print(count, "products", name)
