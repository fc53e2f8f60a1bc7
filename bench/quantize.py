"""Rounding of bf16 to e4m3 with scales against a copy of as many bytes, in GB/s: quantize.tile with a scale for each row or
each block of rows, of tensors as they are and times a rotation.

--list writes the kernels for test/gpu/build_bundles.py --groups= --extra FILE.
"""

import itertools

import common
from common import cases

DIMS = (64, 128, 256)
ELEMENTS = 1 << 28
LARGEST = 448.0
# One rounding of e4m3, and that of the bf16 product before it.
MAX_ERROR = 0.04


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--dims", type=common.numbers, default=DIMS, help="elements of a row")
    parser.add_argument("--elements", type=int, default=ELEMENTS, help="of a tensor")
    common.add_list_option(parser)
    return parser.parse_args()


def points(options):
    for d in options.dims:
        for blocks, rotate in itertools.product((False, True), repeat=2):
            yield {"d": d, "scales": "blocks" if blocks else "rows", "rotated": rotate}


def configurations(point, options):
    parameters = {"T": "bf16", "D": point["d"], "BLOCKS": point["scales"] == "blocks", "ROTATE": point["rotated"]}
    if point["rotated"] and point["d"] > 128:
        parameters["HALVES"] = True
    return [cases.configuration("quantize", parameters, schedule) for schedule in common.wanted_schedules(options)]


def measure(kernels, point, options, stopwatch):
    import torch

    d, rows = point["d"], options.elements // point["d"]
    torch.manual_seed(0)
    x = torch.randn((1, 1, rows, d), device="cuda", dtype=torch.bfloat16)
    rotation = common.make_rotation(d).to(torch.bfloat16)
    numbers = torch.empty(x.shape, device="cuda", dtype=torch.float8_e4m3fn)
    scales = torch.empty((1, 1, rows), device="cuda")
    # What is checked is a part of the rows.
    some = slice(0, 1 << 16)
    expected = x[:, :, some].float()
    if point["rotated"]:
        expected = expected @ rotation.float()

    def find_error():
        got = numbers[:, :, some].float() * scales[:, :, some, None]
        error = ((got - expected).norm() / expected.norm()).item()
        # measure_kernels takes what is below its own bound.
        return error * common.MAX_ERROR / MAX_ERROR

    def prepare(kernel):
        scales.fill_(float("nan"))
        arguments = (x, rotation, numbers, scales) if point["rotated"] else (x, numbers, scales)
        return lambda: kernel(*arguments), find_error

    # 3 bytes an element and 4 a row, half of which a copy reads and half of which it writes.
    moved = x.numel() * 3 + rows * 4
    source = torch.empty(moved // 2, device="cuda", dtype=torch.int8)
    target = torch.empty_like(source)
    peers = {"copy": lambda: target.copy_(source)}
    return common.measure_kernels(point, 1000 * moved, kernels, prepare, lambda: peers, stopwatch)


def to_row(record):
    row = common.to_row(record, ("d", "scales", "rotated"), ("copy",))
    row["of copy"] = row.pop("to best")
    return row


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, (entry for point in points(options) for entry in configurations(point, options)))
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Quantization, GB/s (medians of CUDA-event times, L2 flushed, contestants in turns); copy is torch's copy_."
    results = common.Results(options, "quantize", common.describe_gpu(), method)
    for point in points(options):
        kernels = common.load_kernels(source, configurations(point, options))
        results.add(measure(kernels, point, options, stopwatch) if kernels else (), to_row)
    results.finish()


if __name__ == "__main__":
    main()
