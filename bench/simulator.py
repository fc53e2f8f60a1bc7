"""How fast the simulator is: warp instructions a second, and the time of one thread block of attention forward with
BM = BN = 128 and 8 blocks of keys, on one core. Needs no GPU."""

import os
import re
import statistics
import subprocess
import sys

import common
from common import cases

# A line of `tessera run --device sim`.
RUN_LINE = re.compile(r"^event seed \d+: (\d+) blocks, (\d+) warp instructions in ([\d.]+) s$", re.MULTILINE)
BN, BLOCKS = 128, 8


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--tessera", default=os.path.join(common.ROOT, "build", "bin", "tessera"), help="the compiler")
    parser.add_argument("--seeds", type=int, default=6, help="of events, for each configuration; medians count")
    return parser.parse_args()


def simulate(options, configuration):
    """[{"instructions", "seconds"}] of one thread block, for each seed."""
    command = [options.tessera, "run", os.path.join(common.ROOT, "kernels", configuration["kernel"] + ".tile")]
    for name, value in {**configuration["parameters"], "BM": 128, "BN": BN}.items():
        command += ["-D", f"{name}={value}"]
    command += ["--set", "scale=0.125", "--shape", f"B=1,H=1,HK=1,SQ=128,SK={BN * BLOCKS}"]
    command += ["--device", "sim", "--threads", "1", "--seeds", str(options.seeds)]
    process = subprocess.run(command, capture_output=True, text=True)
    runs = RUN_LINE.findall(process.stdout)
    if process.returncode or len(runs) != options.seeds or any(run[0] != "1" for run in runs):
        raise SystemExit(f"{' '.join(command)}\nexits with {process.returncode}:\n{process.stdout}{process.stderr}")
    return [{"instructions": int(instructions), "seconds": float(seconds)} for _, instructions, seconds in runs]


def main():
    options = parse_arguments()
    if not os.access(options.tessera, os.X_OK):
        sys.exit(f"{options.tessera} is no program; build it (./dev build) or use --tessera")
    records = []
    for d in (64, 128):
        for causal in (False, True):
            configuration = cases.attention("bf16", d, d, causal)
            runs = simulate(options, configuration)
            record = {
                "d": d,
                "mask": "causal" if causal else "full",
                "warp instructions": round(statistics.median(run["instructions"] for run in runs)),
                "time (s)": round(statistics.median(run["seconds"] for run in runs), 3),
                "M warp instructions/s": round(
                    statistics.median(run["instructions"] / run["seconds"] for run in runs) / 1e6, 2
                ),
            }
            records.append(dict(record, runs=runs))
            print(record, flush=True)
    rows = [{key: value for key, value in record.items() if key != "runs"} for record in records]
    method = (
        f"One thread block of attention_fwd.tile, bf16, BM = BN = 128, {BLOCKS} blocks of keys, on one core with every"
        f" check on; medians of {options.seeds} seeds."
    )
    results = common.Results(options, "simulator", common.describe_cpu(), method)
    results.write(rows, records)
    results.finish()


if __name__ == "__main__":
    main()
