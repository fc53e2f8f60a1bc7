"""How long `tessera compile` takes for attention forward, and which parts: LLVM and ptxas. Needs no GPU."""

import os
import re
import statistics
import subprocess
import sys
import time


import common
from common import cases

# A line of the report of `tessera compile --timing`: seconds of wall time (after those of user time, when there
# are threads), their share, the name.
TIMING_LINE = re.compile(r"^\s*(?:[\d.]+ \(\s*[\d.]+%\)\s+)?([\d.]+) \(\s*[\d.]+%\)( +)(.+?)\s*$", re.MULTILINE)
LLVM_PARTS = ("Translation to LLVM IR", "LLVM optimization", "LLVM code generation")


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--tessera", default=os.path.join(common.ROOT, "build", "bin", "tessera"), help="the compiler")
    parser.add_argument("--runs", type=int, default=5, help="of each configuration; medians count")
    return parser.parse_args()


def parse_timing(text):
    """{name: seconds} of the report, names that occur several times added up."""
    seconds = {}
    for value, _, name in TIMING_LINE.findall(text):
        seconds[name] = seconds.get(name, 0.0) + float(value)
    return seconds


def compile_once(options, configuration):
    """Seconds of one compilation: {"total", "llvm", "ptxas"}."""
    command = [options.tessera, "compile", os.path.join(common.ROOT, "kernels", configuration["kernel"] + ".tile")]
    for name, value in configuration["parameters"].items():
        command += ["-D", f"{name}={value}"]
    command += ["--emit", "cubin", "-o", os.devnull, "--timing"]
    start = time.monotonic()
    process = subprocess.run(command, capture_output=True, text=True)
    total = time.monotonic() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}\nexits with {process.returncode}:\n{process.stderr}")
    parts = parse_timing(process.stderr)
    missing = [name for name in (*LLVM_PARTS, "ptxas") if name not in parts]
    if missing:
        raise SystemExit(f"the timing report has no {', '.join(missing)}:\n{process.stderr}")
    return {"total": total, "llvm": sum(parts[name] for name in LLVM_PARTS), "ptxas": parts["ptxas"]}


def main():
    options = parse_arguments()
    if not os.access(options.tessera, os.X_OK):
        sys.exit(f"{options.tessera} is no program; build it (./dev build) or use --tessera")
    records = []
    for d in (64, 128, 256):
        for causal in (False, True):
            configuration = cases.attention("bf16", d, d, causal)
            runs = [compile_once(options, configuration) for _ in range(options.runs)]
            record = {"d": d, "mask": "causal" if causal else "full"}
            for part in ("total", "llvm", "ptxas"):
                record[part + " (s)"] = round(statistics.median(run[part] for run in runs), 3)
            records.append(dict(record, runs=runs))
            print(record, flush=True)
    rows = [{key: value for key, value in record.items() if key != "runs"} for record in records]
    method = f"attention_fwd.tile to cubin, bf16, medians of {options.runs} runs of the command line, seconds."
    results = common.Results(options, "compile-time", common.describe_cpu(), method)
    results.write(rows, records)
    results.finish()


if __name__ == "__main__":
    main()
