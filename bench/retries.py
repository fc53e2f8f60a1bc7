"""What speculation costs when it fails: attention forward with inputs for which it holds in all tiles, fails in about
1% of them, and fails in all.

Batch and heads as in attention.py (16k tokens, hidden size 2048), bf16, no mask. Rows of Q that are a hundred times as
large give scores that spread over thousands, so that no row sum stays in range; all the rows of a tile's first 64 are
made so, in as many tiles as wanted, evenly spread. "to exact" is the rate over that of the same kernel compiled with
speculate = false, on the same inputs. Bundles: test/gpu/build_bundles.py --extra with both schedules.
"""

import attention
import common
from common import cases

SHARES = (("0%", 0.0), ("1%", 0.01), ("all", 1.0))
ROWS = 64  # At least one row of each tile, whatever its height.
LARGEST_TILE = 256


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--d", default="64,128,256", help="head dimensions")
    parser.add_argument("--seqlens", default="1024,4096,16384")
    return parser.parse_args()


def spoil(problem, share):
    """Makes the scores of `share` of the tiles' first rows spread widely."""
    batch, seqlen, heads, d = problem.q.shape
    if not share:
        return
    step = ROWS if share == 1.0 else LARGEST_TILE
    first_rows = problem.q.view(batch, seqlen // step, step, heads, d)[:, :, :ROWS].permute(0, 1, 3, 2, 4)
    flat = first_rows.reshape(-1, ROWS, d)
    flat[:: max(1, round(1 / share))] *= 100
    shape = (batch, seqlen // step, heads, ROWS, d)
    problem.q.view(batch, seqlen // step, step, heads, d)[:, :, :ROWS] = flat.view(shape).permute(0, 1, 3, 2, 4)


def main():
    options = parse_arguments()
    import torch

    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = (
        "Attention forward, bf16, no mask, TFLOP/s (medians of CUDA-event times, L2 flushed, in turns), with tiles "
        "whose speculation fails."
    )
    results = common.Results(options, "retries", common.describe_gpu(), method)
    rows, records = [], []
    for d in map(int, options.d.split(",")):
        schedules = ("", "speculate=false")
        kernels = common.load_kernels(source, [cases.attention("bf16", d, d, False, s) for s in schedules])
        for seqlen in map(int, options.seqlens.split(",")):
            for name, share in SHARES:
                torch.manual_seed(0)
                problem = attention.Problem(d, seqlen, False, "bf16")
                spoil(problem, share)
                point = {"d": d, "seqlen": seqlen, "failing": name}
                measured = common.measure_kernels(
                    point, problem.flops, kernels, attention.prepare(problem, problem.expected()), lambda: {}, stopwatch
                )
                records += measured
                rates = [r["timings"]["tessera"]["tflops"] if "timings" in r else None for r in measured]
                if len(rates) == 2 and all(rates):
                    rows.append({**point, "TFLOP/s": round(rates[0]), "exact": round(rates[1]),
                                 "to exact": f"{rates[0] / rates[1]:.2f}"})  # fmt: skip
                    common.print_row(rows[-1])
                results.write(rows, records)
    results.finish()


if __name__ == "__main__":
    main()
