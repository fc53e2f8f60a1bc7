"""Attention forward with head dimensions between the widths of tiles, beside those widths, bf16, BSHD storage.

Batch and heads as in attention.py for the width W (16k tokens, hidden size 2048). A head dimension D below it has the
kernel of W whose tensors have D columns: the copy engine fills the others with zeros, and drops them from the output. Both
do the products of W columns, so "to width" is the time with W columns over that with D, of the same batch and heads, in
turns, each with the alternative that a launch takes. The padded kernel loads and stores less, and its rows may begin and
end amid sectors of memory, which takes longer. Bundles: --list FILE with the options of the run, then
test/gpu/build_bundles.py --groups= --extra FILE.
"""

import itertools
import statistics

import attention
import common
import peers
from common import cases

from tessera._attention import _variants  # which common puts on the path


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--d", type=common.numbers, default=(40, 72, 80, 120, 144, 200), help="head dimensions")
    parser.add_argument("--seqlens", type=common.numbers, default=(512, 2048, 8192, 16384))
    parser.add_argument("--masks", default=attention.MASKS, type=attention.names_of(attention.MASKS))
    common.add_list_option(parser)
    return parser.parse_args()


def find_width(d):
    return next(width for width in _variants.FORWARD_WIDTHS if d <= width)


def configurations(d, seqlen, mask):
    """The kernel of the width, and the one of tensors with `d` columns."""
    width = find_width(d)
    heads = attention.HIDDEN // width
    shape = {"B": max(1, attention.TOKENS // seqlen), "H": heads, "HK": heads, "SQ": seqlen, "SK": seqlen}
    parameters = {"T": "bf16", "D": width, "CAUSAL": mask == "causal"}
    padded = {**parameters, "PADDED": True}
    return (
        cases.configuration(cases.ATTENTION, parameters, shape=shape, alternatives=True),
        cases.configuration(cases.ATTENTION, padded, shape={**shape, "DQ": d, "DO": d}, alternatives=True),
    )


def measure(d, seqlen, mask, loaded, stopwatch):
    """The record of a point."""
    width = find_width(d)
    record, contestants = {"d": d, "width": width, "mask": mask, "seqlen": seqlen}, {}
    names, shapes = ("width", "padded"), (entry["shape"] for entry in configurations(d, seqlen, mask))
    for name, columns, kernel, shape in zip(names, (width, d), loaded, shapes):
        problem = attention.Problem(columns, seqlen, mask == "causal", "bf16", heads=attention.HIDDEN // width)
        run, out = attention.tessera_contestant(kernel, problem)
        run()
        record[f"{name}_error"] = peers.relative_error(out, problem.expected())
        contestants[name] = run
        record[f"{name}_choice"] = kernel.choice(**shape).name if kernel.alternatives else ""
    if max(record["width_error"], record["padded_error"]) >= common.MAX_ERROR:
        return {**record, "wrong": True}
    timings = stopwatch.compare(contestants)
    return {**record, "timings": timings, "to_width": timings["width"]["ms"] / timings["padded"]["ms"]}


def to_row(record):
    row = {name: record[name] for name in ("d", "width", "mask", "seqlen")}
    if record.get("wrong"):
        return {**row, "padded, ms": f"wrong ({record['padded_error']:.2g})"}
    timings = record["timings"]
    row |= {f"{name}, ms": timings[name]["ms"] for name in ("width", "padded")} | {"to width": f"{record['to_width']:.2f}"}
    return {**row, "spread": f"{timings['padded']['spread']:.1%}", "MHz": timings["padded"]["mhz"], "W": timings["padded"]["watts"]}


def summarize(records):
    """A line for each head dimension: the mean and the least of its points."""
    for d in dict.fromkeys(record["d"] for record in records):
        ratios = [record["to_width"] for record in records if record["d"] == d and "to_width" in record]
        if ratios:
            yield f"d = {d} to width {find_width(d)}: {statistics.geometric_mean(ratios):.3f} in the mean, {min(ratios):.3f} at least"


def main():
    options = parse_arguments()
    points = list(itertools.product(options.d, options.seqlens, options.masks))
    if options.list:
        return common.write_list(options, [entry for point in points for entry in configurations(*point)])
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Forward with head dimensions between widths of tiles, bf16 (medians of CUDA-event times, L2 flushed, in turns)."
    results, records = common.Results(options, "padded", common.describe_gpu(), method), []
    for point in points:
        loaded = [common.load_kernel(source, entry) for entry in configurations(*point)]
        if all(loaded):
            records.append(measure(*point, loaded, stopwatch))
            results.add(records[-1:], to_row)
    results.finish()
    print(*summarize(records), sep="\n")


if __name__ == "__main__":
    main()
