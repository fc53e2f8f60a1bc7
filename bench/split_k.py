"""The matrix product with K divided among grid points, against the one without and cuBLAS (torch.matmul), bf16.

Parts are added by reducing stores, and then the time has that of clearing the sums in it, or by a second kernel of the same
call (gemm.tile with PART). --list writes the kernels for test/gpu/build_bundles.py --groups= --extra FILE.
"""

import itertools

import common
from common import cases

SIZES = ((512, 512, 32768), (1024, 512, 16384), (256, 256, 65536))
SPLITS = (4, 8, 16)
STORES = ("direct", "tma", "writer")
DEPTHS = ((128, 4096), (128, 8192), (256, 2048))  # columns of C in a tile, and of A in a part; a step has 64


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--sizes", type=common.sizes, default=SIZES, help="MxNxK,...")
    parser.add_argument("--splits", type=common.numbers, default=SPLITS, help="parts of K")
    common.add_list_option(parser)
    return parser.parse_args()


def configurations(options):
    """{variant: configuration}: without parts for tiles of two sizes, and by parts that are added in each way."""
    for bm, bn in ((128, 256), (128, 128), (64, 64)):
        parameters = {"T": "bf16", "B_TRANSPOSED": "true", "BIAS": "false", "ACTIVATION": "none", "BM": bm, "BN": bn}
        yield dict(cases.configuration(cases.GEMM, parameters), variant=f"unsplit {bm}x{bn}")
    for splits, store in itertools.product(options.splits, STORES):
        parameters = {"T": "bf16", "B_TRANSPOSED": "true", "SPLITS": str(splits)}
        yield dict(cases.configuration(cases.GEMM, parameters, f"store={store}"), variant=f"{splits} parts, {store}")
    for bn, depth in DEPTHS:
        parameters = {"T": "bf16", "B_TRANSPOSED": "true", "BM": 128, "BN": bn, "PART": depth // 64}
        yield dict(cases.configuration(cases.GEMM, parameters), variant=f"second kernel, 128x{bn}, {depth} deep")


def measure(kernels, by_parts, size, options, stopwatch):
    """The records of one size."""
    import torch

    m, n, k = size
    torch.manual_seed(0)
    a = torch.randn((m, k), device="cuda", dtype=torch.bfloat16)
    b = torch.randn((n, k), device="cuda", dtype=torch.bfloat16)
    expected = torch.matmul(a.float(), b.float().t())
    scratch = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)

    def prepare(kernel):
        adds = kernel in by_parts
        c = torch.empty((m, n), device="cuda", dtype=torch.float32 if adds else torch.bfloat16)

        def run():
            if adds:
                c.zero_()
            kernel(a, b, c)

        return run, lambda: ((c.float() - expected).norm() / expected.norm()).item()

    point = {"m": m, "n": n, "k": k}
    peers = {} if options.no_peers else {"cublas": lambda: torch.matmul(a, b.t(), out=scratch)}
    return common.measure_kernels(point, 2 * m * n * k, kernels, prepare, lambda: peers, stopwatch)


def to_row(record):
    return common.to_row(record, ("m", "n", "k"), ("cublas",))


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, configurations(options))
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Matrix product by parts of K, bf16, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    results = common.Results(options, "split-k", common.describe_gpu(), method)
    kernels = common.load_kernels(source, list(configurations(options)))
    by_parts = [kernel for name, kernel in kernels.items() if "parts" in name]
    for size in options.sizes:
        results.add(measure(kernels, by_parts, size, options, stopwatch), to_row)
    results.finish()


if __name__ == "__main__":
    main()
