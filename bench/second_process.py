"""How long a process needs from functions of scores and masks to a kernel that another process compiled before: opening the
library that launches, tracing, and reading the bundle from the cache. And how long the first one needs, which compiles the
kernel, and the gradients. Needs no GPU."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import common

# Each process prints {part: milliseconds}. None of those behind the first opens the compiler, with LLVM.
PROGRAM = """
import json, resource, sys, time
import tessera
from tessera import masks
from tessera._attention import _gradient_kernels, _variants
from tessera._compiler import _compile
from tessera._core import _library
from tessera._functions import _captured

class Numbers:  # a tensor [B, S], as functions capture it
    dtype, ndim = "int64", 2

class Found(_captured.Found):
    tensors, elements = (Numbers,), _captured.ELEMENTS

def write(score=None, mask=None, **arguments):
    if arguments or mask in (None, masks.causal):
        return tessera.Variant(score=score, mask=mask, **arguments).source
    return _captured.find(Found(), _captured.write, score, (), mask, ()).source

of = starts = Numbers()
marks = [time.perf_counter()]
_library.runtime()
marks.append(time.perf_counter())
source = write(**eval(sys.argv[1]))
marks.append(time.perf_counter())
if sys.argv[2] == "gradients":
    _gradient_kernels.find_gradients(_compile.compile, source, False, "bf16", (128, 128, 1, None), False)
else:
    _variants.find_kernel(source, "bf16", (1, 16, 4096, 128, 16, 4096, 128))
marks.append(time.perf_counter())
if not _compile.may_compile() and _compile._compiler.cache_info().currsize:
    sys.exit("the compiler was opened")
parts = ("open (ms)", "trace (ms)", "find (ms)")
times = {part: 1000 * (end - begin) for part, begin, end in zip(parts, marks, marks[1:])}
# With the assembler's.
usage = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([times, 1000 * sum(used.ru_utime + used.ru_stime for used in usage)]))
"""
# The arguments of tessera.Variant, or functions that capture tensors.
VARIANTS = {
    "causal": "dict(mask=masks.causal)",
    "soft cap": "dict(score=lambda s, b, h, q, k, cap: cap * tessera.tanh(s / cap), mask=masks.causal, cap=float)",
    "window": "dict(mask=masks.causal & masks.window(1024))",
    "score": "dict(score=lambda s, b, h, q, k, rate: s * tessera.exp2(-rate * abs(q - k)), rate=float)",
    "bias": "dict(score=lambda s, b, h, q, k, bias: s + bias[h, q, k], bias=('H', 'SQ', 'SK'))",
    "packed": "dict(mask=lambda b, h, q, k: (k >= starts[b, q]) & (k <= q))",
    "documents": "dict(mask=lambda b, h, q, k, of: (of[b, q] == of[b, k]) & (q >= k), of=('B', 'SK'))",
    "documents by int64": "dict(mask=lambda b, h, q, k: (of[b, q] == of[b, k]) & (q >= k))",
}
METHOD = (
    "From functions of Python to a kernel of bf16, d = 128, that is kept on disk; medians of {} processes. One before them "
    "compiled it, another one the gradients; CPU is what these took of all cores, with their start and the assembler."
)


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--library", default=os.path.join(common.ROOT, "build", "lib"), help="where the libraries are")
    parser.add_argument("--runs", type=int, default=9, help="processes of each variant; medians count")
    return parser.parse_args()


def run_process(options, arguments, cache, compiles, what="kernel"):
    environment = {
        **os.environ, "TESSERA_CACHE_DIR": cache, "TESSERA_LIBRARY": options.library,
        "PYTHONPATH": os.path.join(common.ROOT, "python"),
        # Those behind the first fail rather than compile.
        "TESSERA_JIT": "1" if compiles else "0",
    }  # fmt: skip
    process = subprocess.run([sys.executable, "-c", PROGRAM, arguments, what], capture_output=True, text=True, env=environment)
    if process.returncode:
        raise SystemExit(f"{arguments}:\n{process.stderr}")
    return json.loads(process.stdout)


def main():
    options = parse_arguments()
    records = []
    for name, arguments in VARIANTS.items():
        with tempfile.TemporaryDirectory() as cache:
            gradients, gradients_cpu = run_process(options, arguments, cache, compiles=True, what="gradients")
        with tempfile.TemporaryDirectory() as cache:
            first, first_cpu = run_process(options, arguments, cache, compiles=True)
            kept = sum(entry.stat().st_size for entry in os.scandir(cache))
            runs = [run_process(options, arguments, cache, compiles=False)[0] for _ in range(options.runs)]
            record = {"variant": name, "kept (KB)": round(kept / 1000)}
        for part in first:
            record[part] = round(statistics.median(run[part] for run in runs), 1)
        record["all (ms)"] = round(statistics.median(sum(run.values()) for run in runs), 1)
        record["compiled (ms)"] = round(sum(first.values()))
        record["CPU (ms)"] = round(first_cpu)
        record["gradients (ms)"] = round(sum(gradients.values()))
        record["their CPU (ms)"] = round(gradients_cpu)
        records.append(dict(record, runs=runs))
        print(record, flush=True)
    rows = [{key: value for key, value in record.items() if key != "runs"} for record in records]
    results = common.Results(options, "second-process", common.describe_cpu(), METHOD.format(options.runs))
    results.write(rows, records)
    results.finish()


if __name__ == "__main__":
    main()
