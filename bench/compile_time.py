"""How long `tessera compile` takes for attention forward, and which parts: LLVM and ptxas; with --gradients for the kernels of
gradients of all head dimensions, once each and then again for the slowest. Needs no GPU."""

import itertools
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
# Of the kernels of gradients, those that are compiled several times.
SLOWEST = 20
LLVM_PARTS = ("Translation to LLVM IR", "LLVM optimization", "LLVM code generation")


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--tessera", default=os.path.join(common.ROOT, "build", "bin", "tessera"), help="the compiler")
    parser.add_argument("--gradients", action="store_true", help="the kernels of gradients, which takes minutes")
    parser.add_argument("--ptxas", help="passed on to the compiler")
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
    command += ["--emit", "cubin", "-o", os.devnull, "--timing", *(["--ptxas", options.ptxas] if options.ptxas else [])]
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


def summarize(record, runs):
    """The record with the medians of its runs, printed."""
    record = dict(record)
    for part in ("total", "llvm", "ptxas"):
        record[part + " (s)"] = round(statistics.median(run[part] for run in runs), 3)
    print(record, flush=True)
    return {**record, "runs": runs}


def list_gradients():
    """(what to call it, configuration) of the kernels of gradients: named masks and scores, in any order of sums and a fixed one."""
    for d, dv in itertools.product((64, 96, 128, 192, 256), repeat=2):
        sizes = {"T": "bf16", "D": d, "DV": dv}
        for causal, fixed in itertools.product((False, True), repeat=2):
            fields = {"kernel": "attention_bwd", "d": d, "dv": dv, "mask": "causal" if causal else "full", "scores": "", "fixed": fixed}
            yield fields, cases.configuration("attention_bwd", {**sizes, "CAUSAL": causal, "FIXED": fixed})
        for kernel, cap, mask in itertools.product(
            ("attention_variants_bwd", "attention_variants_bwd_fixed"), ("none", "exact"), ("none", "window")
        ):
            fixed = kernel.endswith("fixed")
            fields = {"kernel": kernel, "d": d, "dv": dv, "mask": mask, "scores": "" if cap == "none" else "soft cap", "fixed": fixed}
            yield fields, cases.configuration(kernel, {**sizes, "SOFTCAP": cap, "MASK": mask})


def measure_gradients(options):
    """Records of all, the slowest first, which have several runs."""
    found = [(fields, configuration, [compile_once(options, configuration)]) for fields, configuration in list_gradients()]
    found.sort(key=lambda one: -one[2][0]["total"])
    for _, configuration, runs in found[:SLOWEST]:
        runs += [compile_once(options, configuration) for _ in range(options.runs - 1)]
    records = [summarize(fields, runs) for fields, _, runs in found]
    return sorted(records, key=lambda record: -record["total (s)"])


def main():
    options = parse_arguments()
    if not os.access(options.tessera, os.X_OK):
        sys.exit(f"{options.tessera} is no program; build it (./dev build) or use --tessera")
    name, records = "compile-time", []
    if options.gradients:
        name, records = "gradients-compile-time", measure_gradients(options)
        method = f"Kernels of gradients to cubin, bf16: the slowest {SLOWEST} of {len(records)}, medians of {options.runs} runs, seconds."
    else:
        for d, causal in itertools.product((64, 128, 256), (False, True)):
            configuration = cases.attention("bf16", d, d, causal)
            record = {"d": d, "mask": "causal" if causal else "full"}
            records.append(summarize(record, [compile_once(options, configuration) for _ in range(options.runs)]))
        method = f"attention_fwd.tile to cubin, bf16, medians of {options.runs} runs of the command line, seconds."
    shown = records[: SLOWEST if options.gradients else None]
    results = common.Results(options, name, common.describe_cpu(), method)
    results.write([{key: value for key, value in record.items() if key != "runs"} for record in shown], records)
    results.finish()


if __name__ == "__main__":
    main()
