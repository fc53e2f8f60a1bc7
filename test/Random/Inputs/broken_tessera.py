#!/usr/bin/env python3
"""A compiler with known faults, for the tests of the runner and the reducer: what a source contains
decides how `check` ends."""

import json
import os
import signal
import sys
import time

if sys.argv[1] == "params":
    print(json.dumps({"consumers": ["1", "2"], "stages": ["1", "2", "3"]}))
    sys.exit(0)
path = sys.argv[2]
source = open(path).read()
fault = os.environ["FAULT"]
if os.environ["CONTAINS"] not in source:
    print("1 combinations, 0 failed")
    sys.exit(0)
if fault == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
if fault == "hang":
    time.sleep(600)
if fault == "difference":
    print("FAILED, wrong results with --sim-seed 0")
    sys.exit(1)
if fault == "deadlock":
    print(f"{path}:1:1: error: [deadlock] no warp can go on", file=sys.stderr)
    sys.exit(1)
if fault == "unlocated":
    print("error: something is wrong", file=sys.stderr)
    sys.exit(3)
if fault == "invalid":
    print(f"{path}:1:1: error: 'hop.role' op needs warp 5", file=sys.stderr)
    sys.exit(3)
if fault == "refusal" or fault == "fields" and "," in " ".join(sys.argv[3:]).partition("--schedule ")[2]:
    print(f"{path}:1:1: error: is not supported", file=sys.stderr)
    sys.exit(3)
