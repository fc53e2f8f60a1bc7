"""Softmax, LayerNorm, RMSNorm and lookup of rows against a copy of the same bytes and torch's own, in GB/s.

A kernel that reads a tensor and writes one of its size is as fast as memory when it takes as long as a copy. The copy is
torch's `y.copy_(x)`. Vectors, scalars and lists of numbers beside the two tensors do not count.
"""


import common
from common import cases

WIDTHS = (1024, 2048, 4096, 5120, 8192, 12288, 16384)
ELEMENTS = 1 << 27
KERNELS = {
    "softmax": ("softmax", {}),
    "layer_norm": ("layer_norm", {"RMS": "false"}),
    "rms_norm": ("layer_norm", {"RMS": "true"}),
    "embedding": ("embedding", {}),
}
EPS = 1e-5


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--dtypes", default="bf16,f32", help="of bf16, f16 and f32")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="of " + ", ".join(KERNELS))
    parser.add_argument("--widths", type=common.numbers, default=WIDTHS, help="elements of a row")
    parser.add_argument("--elements", type=int, default=ELEMENTS, help="of a tensor, about")
    common.add_list_option(parser)
    return parser.parse_args()


def points(options):
    for name in options.kernels.split(","):
        for dtype in options.dtypes.split(","):
            for width in options.widths:
                yield name, dtype, width


def configurations(name, dtype, width, schedules):
    kernel, parameters = KERNELS[name]
    parameters = {**parameters, "T": dtype, "D": width}
    return [cases.configuration(kernel, parameters, schedule) for schedule in schedules]


def references(name, x, weight, bias, numbers):
    """torch's function, and the same of f32."""
    import torch.nn.functional as F

    width = x.shape[1:]
    functions = {
        "softmax": lambda x, w, b: F.softmax(x, -1),
        "layer_norm": lambda x, w, b: F.layer_norm(x, width, w, b, EPS),
        "rms_norm": lambda x, w, b: F.rms_norm(x, width, w, EPS),
        "embedding": lambda x, w, b: F.embedding(numbers, x),
    }
    function = functions[name]
    return lambda: function(x, weight, bias), function(x.float(), weight.float(), bias.float())


def measure(kernels, name, dtype, width, options, stopwatch):
    """The records of one point."""
    import torch

    rows = options.elements // width
    kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
    torch.manual_seed(0)
    x = torch.randn((rows, width), device="cuda", dtype=kind)
    weight, bias = (torch.randn(width, device="cuda", dtype=kind) for _ in range(2))
    # Each row once, in any order: as many bytes as a copy has.
    numbers = torch.randperm(rows, device="cuda").to(torch.int32)
    own, expected = references(name, x, weight, bias, numbers)
    target = torch.empty_like(x)

    def prepare(kernel):
        y = torch.full_like(x, float("nan"))
        arguments = {
            "softmax": (x, y),
            "layer_norm": (x, weight, bias, EPS, y),
            "rms_norm": (x, weight, EPS, y),
            "embedding": (x, numbers, y),
        }[name]
        return (
            lambda: kernel(*arguments),
            lambda: ((y.float() - expected).norm() / expected.norm()).item(),
        )

    point = {"kernel": name, "type": dtype, "rows": rows, "width": width}
    peers = {"copy": lambda: target.copy_(x)}
    if not options.no_peers:
        peers["torch"] = own
    # Thousands of bytes take the place of floating-point operations, so that a rate is in GB/s.
    work = 1000 * 2 * x.numel() * x.element_size()
    return common.measure_kernels(point, work, kernels, prepare, lambda: peers, stopwatch)


def to_row(record):
    row = common.to_row(record, ("kernel", "type", "rows", "width"), ("copy", "torch"))
    del row["to best"]
    timings = record.get("timings")
    row["of copy"] = f"{row['tessera'] / row['copy']:.3f}" if timings else None
    return row


def main():
    options = parse_arguments()
    schedules = common.wanted_schedules(options)
    if options.list:
        return common.write_list(
            options, (entry for point in points(options) for entry in configurations(*point, schedules))
        )
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    hidden = ("schedule",) if len(schedules) == 1 else ()
    method = "Rows, GB/s (medians of CUDA-event times, L2 flushed, contestants in turns); copy is torch's copy_."
    results = common.Results(options, "rows", common.describe_gpu(), method)
    for name, dtype, width in points(options):
        kernels = common.load_kernels(source, configurations(name, dtype, width, schedules))
        measured = measure(kernels, name, dtype, width, options, stopwatch) if kernels else ()
        results.add(measured, to_row, *hidden)
    results.finish()


if __name__ == "__main__":
    main()
