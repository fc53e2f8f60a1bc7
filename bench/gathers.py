"""Rows that a producer's threads gather, against the same work on rows that lie beside each other.

    gemm    C[i] = A[LIST[i]] B, with each row of A once and in any order, against the kernel without a list (`plain`), and
            torch's index_select and matmul (`torch`); B is [N, K]

bf16. Bundles: --list FILE with the options of the run, then test/gpu/build_bundles.py --groups= --extra FILE. Attention over pages
is in decoding.py.
"""

import common
import peers
from common import cases

SIZES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 2048, 8192))


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--sizes", type=common.sizes, default=SIZES, help="MxNxK,...")
    common.add_list_option(parser)
    return parser.parse_args()


def product_kernels():
    """The product with a list, and the one without."""
    parameters = {"T": "bf16", "B_TRANSPOSED": "true"}
    plain = {**parameters, "BIAS": "false", "ACTIVATION": "none"}
    return cases.configuration("gemm_gather", {**parameters, "I": "i32"}), cases.configuration(cases.GEMM, plain)


def measure_product(kernel, plain, size, options, stopwatch):
    """The records of a product."""
    import torch

    m, n, k = size
    torch.manual_seed(0)
    a, b = (torch.randn((rows, k), device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    numbers = torch.randperm(m, device="cuda")
    listed, gathered = numbers.to(torch.int32), a[numbers]
    expected = (gathered @ b.t()).float()
    scratch = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)

    def prepare(kernel):
        c = torch.full_like(scratch, float("nan"))
        return lambda: kernel(a, listed, b, c), lambda: peers.relative_error(c, expected)

    others = {"plain": lambda: plain(gathered, b, scratch)} if plain else {}
    if not options.no_peers:
        others["torch"] = lambda: torch.matmul(a.index_select(0, numbers), b.t(), out=scratch)
    point = {"case": f"gemm {m}x{n}x{k}"}
    return common.measure_kernels(point, 2 * m * n * k, {"default": kernel}, prepare, lambda: others, stopwatch)


def to_row(record):
    row = common.to_row(record, ("case",), ("plain", "torch"))
    del row["schedule"], row["to best"]
    plain = row["plain"] if "timings" in record else None
    row["to plain"] = f"{row['tessera'] / plain:.2f}" if plain else None
    return row


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, product_kernels())
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Gathered rows, bf16, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    results = common.Results(options, "gathers", common.describe_gpu(), method)
    kernel, plain = (common.load_kernel(source, configuration) for configuration in product_kernels())
    for size in options.sizes if kernel else ():
        results.add(measure_product(kernel, plain, size, options, stopwatch), to_row)
    results.finish()


if __name__ == "__main__":
    main()
