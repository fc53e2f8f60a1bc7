"""Gradients of attention with windows, beside what the blocks that they visit explain, bf16.

Batch and heads as in attention.py (16k tokens, hidden size 2048). A query sees itself and --left keys before it. A tile of
keys visits the blocks of queries that see one of its keys. "blocks" is their number in the mean over the tiles.
What they explain is the time of the kernel without a mask over as many blocks of queries, with as many tiles of keys: it
has the ends of tiles and what a tile loads and stores, and no masks. For a mean between two numbers of blocks it lies
between their times. "to explained" is that time over the window's, of the main kernel alone, and of the whole call with
the statistics and the conversion, which are timed by themselves ("others" is their part of the call). All of a point are
timed in turns. Bundles: --list FILE with the options of the run, then test/gpu/build_bundles.py --groups= --extra FILE.
"""

import itertools
import math

import attention
import common
import peers
from common import cases

#: Keys of all sequences that tiles without a mask have.
PLAIN_KEYS = 2048
MAIN, STATISTICS, CONVERT = "attention_bwd_gradients", "attention_bwd_statistics", "attention_bwd_convert"


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--d", type=common.numbers, default=(64, 96, 128, 192, 256), help="head dimensions")
    parser.add_argument("--seqlens", type=common.numbers, default=(2048, 8192, 16384))
    parser.add_argument("--left", type=common.numbers, default=(1023,), help="keys before its own that a query sees")
    common.add_list_option(parser)
    return parser.parse_args()


def configurations(d):
    """The gradients with a window and without a mask, and attention with a window."""
    mask = {"T": "bf16", "D": d, "MASK": "window"}
    return (
        cases.configuration("attention_variants_bwd", mask),
        cases.configuration("attention_variants_bwd", {**mask, "MASK": "none"}),
        cases.configuration("variants/window", {"T": "bf16", "D": d}),
    )


def visited_blocks(seqlen, left, keys, queries):
    """The blocks of `queries` that see one of a tile's `keys`, in the mean over the tiles of a sequence."""
    counts = [
        (min(seqlen, first + keys + left) - 1) // queries - first // queries + 1 for first in range(0, seqlen, keys)
    ]
    return sum(counts) / len(counts)


def compare(blocks, times):
    """What so many blocks of a tile explain of the times of a point, and the part of the call that they do not concern."""
    least, most = (times[f"{count} blocks"] for count in (math.floor(blocks), math.ceil(blocks)))
    explained = least + (most - least) * (blocks - math.floor(blocks))
    others = times[STATISTICS] + times[CONVERT]
    return {
        "main": explained / times[MAIN],
        "whole": (explained + others) / times["whole"],
        "others": others / times["whole"],
    }


class Call:
    """A problem, and the sequence of gradients on it: as a whole, and each of its kernels alone."""

    def __init__(self, sequence, d, seqlen, queries, left=None):
        import torch

        torch.manual_seed(0)
        self.sequence, self.kernels, heads = sequence, sequence.bundle.kernels, attention.HIDDEN // d
        batch = max(1, attention.TOKENS // seqlen)

        def draw(length):
            return torch.randn((batch, length, heads, d), device="cuda", dtype=torch.bfloat16).transpose(1, 2)

        rows = {"device": "cuda", "dtype": torch.float32}
        lse = torch.full((batch, heads, queries), math.log(seqlen) + 0.5, **rows)
        statistics = [torch.empty_like(lse) for _ in range(2)]
        q, k, v, o, do = (draw(length) for length in (queries, seqlen, seqlen, queries, queries))
        gradients = {"d" + name: torch.full_like(x, float("nan")) for name, x in (("q", q), ("k", k), ("v", v))}
        self.values = {"q": q, "k": k, "v": v, "o": o, "do": do, "lse": lse, "scale": d**-0.5, "shift": statistics[0],
                       "lse2": statistics[0], "ndelta": statistics[1], "left": left, "right": 0, **gradients,
                       "dq_sum": torch.zeros((batch, heads, queries, d), **rows)}  # fmt: skip

    def run(self, name=None):
        """What launches the sequence, or one kernel of it."""
        kernel = self.kernels[name] if name else self.sequence
        arguments = [self.values[argument] for argument in kernel.names]
        return lambda: kernel(*arguments)

    def find_error(self):
        """The largest error of the gradients of the first head and the last, after the call."""
        import torch

        values = self.values
        worst, (batch, heads, length, _) = 0.0, values["q"].shape
        places = torch.arange(length, device="cuda")
        away = places[:, None] - places
        for b, h in ((0, 0), (batch - 1, heads - 1)):
            leaves = [values[name][b, h].float().requires_grad_() for name in "qkv"]
            s = leaves[0] @ leaves[1].t() * values["scale"]
            s = s.masked_fill((away < 0) | (away > values["left"]), float("-inf"))
            expected = torch.autograd.grad(torch.softmax(s, 1) @ leaves[2], leaves, values["do"][b, h].float())
            got = [values["d" + name][b, h] for name in "qkv"]
            worst = max(worst, *(peers.relative_error(x, want) for x, want in zip(got, expected)))
        return worst


def measure(d, seqlen, left, kernels, stopwatch):
    """The record of a point."""
    window, plain, forward = kernels
    parameters = window.bundle.parameters
    together = int(parameters["TOGETHER"])
    keys, queries = together * int(parameters["GN"]), int(parameters["GM"])
    call = Call(window, d, seqlen, seqlen, left)
    forward(**{name: call.values[name] for name in forward.names})
    call.run()()
    blocks, error = visited_blocks(seqlen, left, keys, queries), call.find_error()
    record = {"d": d, "seqlen": seqlen, "left": left, "blocks": blocks, "error": error}
    if error >= common.MAX_ERROR:
        return {**record, "wrong": True}
    counts = sorted({math.floor(blocks), math.ceil(blocks)})
    others = [Call(plain, d, PLAIN_KEYS, queries * count) for count in counts]
    for other in others:
        other.run()()
    contestants = {"whole": call.run(), **{name: call.run(name) for name in (MAIN, STATISTICS, CONVERT)}}
    contestants |= {f"{count} blocks": other.run(MAIN) for count, other in zip(counts, others)}
    timings = stopwatch.compare(contestants)
    ratios = compare(blocks, {name: timing["ms"] for name, timing in timings.items()})
    return {**record, "timings": timings, "to_explained": ratios}


def to_row(record):
    row = {name: record[name] for name in ("d", "seqlen", "left")} | {"blocks": f"{record['blocks']:.1f}"}
    if record.get("wrong"):
        return {**row, "whole, ms": f"wrong ({record['error']:.2g})"}
    timings, ratios = record["timings"], record["to_explained"]
    row |= {"whole, ms": timings["whole"]["ms"], "main, ms": timings[MAIN]["ms"], "others": f"{ratios['others']:.2f}"}
    row |= {f"{name} to explained": f"{ratios[name]:.2f}" for name in ("main", "whole")}
    return {**row, "spread": f"{timings[MAIN]['spread']:.1%}", "MHz": timings[MAIN]["mhz"], "W": timings[MAIN]["watts"]}


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, [entry for d in options.d for entry in configurations(d)])
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Gradients with windows, bf16 (medians of CUDA-event times, L2 flushed, in turns), beside what visited blocks explain."
    results = common.Results(options, "window-gradients", common.describe_gpu(), method)
    for d in options.d:
        kernels = [common.load_kernel(source, entry) for entry in configurations(d)]
        if all(kernels):
            for seqlen, left in itertools.product(options.seqlens, options.left):
                results.add([measure(d, seqlen, left, kernels, stopwatch)], to_row)
    results.finish()


if __name__ == "__main__":
    main()
