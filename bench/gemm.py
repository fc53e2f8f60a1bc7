"""The matrix product against cuBLAS (torch.matmul), bf16 and f16, both layouts of B."""

import common
from common import cases

SIZES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 2048, 8192))


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--dtype", default="bf16", choices=cases.DTYPES)
    parser.add_argument("--sizes", default=",".join("x".join(map(str, size)) for size in SIZES), help="MxNxK,...")
    return parser.parse_args()


def measure(kernels, transposed, size, options, stopwatch):
    """The records of one size."""
    import torch

    m, n, k = size
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[options.dtype]
    torch.manual_seed(0)
    a = torch.randn((m, k), device="cuda", dtype=dtype)
    b = torch.randn((n, k) if transposed else (k, n), device="cuda", dtype=dtype)
    right = b.t() if transposed else b
    expected = torch.matmul(a, right)
    scratch = torch.empty_like(expected)

    def prepare(kernel):
        c = torch.full_like(expected, float("nan"))
        return (
            lambda: kernel(a, b, c),
            lambda: ((c.float() - expected.float()).norm() / expected.float().norm()).item(),
        )

    point = {"m": m, "n": n, "k": k, "b": "[N, K]" if transposed else "[K, N]"}
    peers = {} if options.no_peers else {"cublas": lambda: torch.matmul(a, right, out=scratch)}
    return common.measure_kernels(point, 2 * m * n * k, kernels, prepare, lambda: peers, stopwatch)


def to_row(record):
    return common.to_row(record, ("m", "n", "k", "b"), ("cublas",))


def main():
    options = parse_arguments()
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    schedules = common.wanted_schedules(options)
    hidden = ("schedule",) if len(schedules) == 1 else ()
    method = (
        f"Matrix product, {options.dtype}, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    )
    results, records = common.Results(options, "gemm", common.describe_gpu(), method), []
    for transposed in (True, False):
        parameters = {
            "T": options.dtype,
            "B_TRANSPOSED": str(transposed).lower(),
            "BIAS": "false",
            "ACTIVATION": "none",
        }
        kernels = common.load_kernels(
            source, [cases.configuration(cases.GEMM, parameters, schedule) for schedule in schedules]
        )
        for size in options.sizes.split(",") if kernels else ():
            measured = measure(kernels, transposed, tuple(map(int, size.split("x"))), options, stopwatch)
            for record in measured:
                common.print_row(to_row(record), *hidden)
            records += measured
            results.write([to_row(record) for record in records], records)
    results.finish()


if __name__ == "__main__":
    main()
