"""What a process waits for in its first call of attention from PyTorch, after CUDA is up: with the package as `pip install`
leaves it, whose bundles compile nothing.

Each process imports PyTorch, makes tensors on the GPU, multiplies two of them and asks for gradients, so that neither the
context nor PyTorch's own libraries are waited for later: its first backward pass alone may import for two seconds. Then it
imports tessera.torch, calls attention and waits for the result, calls it again with other lengths, and at last once more as
before. Nothing may be compiled: TESSERA_JIT is 0.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys

import attention
import common

PROGRAM = """
import json, sys, time
import torch

arguments, gradients, d = json.loads(sys.argv[1])
def make(length):
    shape = 2, 16, length, d
    return [torch.randn(shape, device="cuda", dtype=torch.bfloat16).requires_grad_(gradients) for _ in range(3)]
tensors = make(2000), make(1000)
matrix = torch.randn(64, 64, device="cuda").requires_grad_()
(matrix @ matrix).backward(matrix.detach())

def timed(function):
    begin = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin)

def import_package():
    global attention
    from tessera.torch import attention

def call(q, k, v):
    out = attention(q, k, v, **arguments)
    if gradients:
        out.backward(v)

times = {"import (ms)": timed(import_package), "first call (ms)": timed(lambda: call(*tensors[0]))}
times["other lengths (ms)"] = timed(lambda: call(*tensors[1]))
print(json.dumps({**times, "later call (ms)": timed(lambda: call(*tensors[0]))}))
"""
# The arguments of attention, and whether its backward pass follows.
CALLS = {
    "full": ({}, False),
    "causal": ({"causal": True}, False),
    "window": ({"window": [1024, 0]}, False),
    "causal-gradients": ({"causal": True}, True),
}
METHOD = (
    "Milliseconds until the result of a first call of attention is there, bf16, 2 sequences of 16 heads, 2000 tokens, then 1000: "
    "medians of {} processes in which CUDA is up, with the bundles of the wheel and TESSERA_JIT=0."
)


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--package", metavar="DIR", help="where `pip install --target` put the wheel (default: what Python imports)")
    parser.add_argument("--d", type=common.numbers, default=(64, 80, 128, 256), help="head dimensions")
    parser.add_argument("--calls", default=[*CALLS], type=attention.names_of(CALLS), help=", ".join(CALLS))
    parser.add_argument("--runs", type=int, default=7, help="processes of each call; medians count")
    return parser.parse_args()


def run_process(options, call):
    """What a process took for each part; the reason as text where it fails."""
    environment = {**os.environ, "TESSERA_JIT": "0"}
    if options.package:
        environment["PYTHONPATH"] = options.package
        environment.pop("TESSERA_LIBRARY", None)
    process = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(call)], capture_output=True, text=True, env=environment)
    return json.loads(process.stdout) if process.returncode == 0 else process.stderr.strip().splitlines()[-1]


def main():
    options = parse_arguments()
    results = common.Results(options, "first-call", {**common.describe_gpu(), **common.describe_cpu()}, METHOD.format(options.runs))
    for name, d in itertools.product(options.calls, options.d):
        arguments, gradients = CALLS[name]
        runs = [run_process(options, (arguments, gradients, d)) for _ in range(options.runs)]
        failed = next((run for run in runs if isinstance(run, str)), None)
        if failed:
            raise SystemExit(f"{name}, d = {d}: {failed}")
        medians = {part: round(statistics.median(run[part] for run in runs), 1) for part in runs[0]}
        slowest = round(max(run["first call (ms)"] for run in runs), 1)
        record = {"call": name, "d": d, **medians, "slowest first (ms)": slowest, "runs": runs}
        results.add([record], lambda record: {key: value for key, value in record.items() if key != "runs"})
    results.finish()


if __name__ == "__main__":
    main()
