"""The matrix product against cuBLAS: bf16 and f16 against torch.matmul, both layouts of B, and e4m3 with scales of tensors
or of rows and columns against torch._scaled_mm, which takes B as [N, K].

With --alternatives the kernel is compiled with them, all are timed, and "chosen" says which one a launch takes, "expected" the
microseconds that each is chosen by. --list writes the kernels for test/gpu/build_bundles.py --groups= --extra FILE.
"""

import math

import common
from common import cases

E4M3 = "e4m3"
# With few tiles and a long K the alternative that divides K is the faster one.
LONG = ((128, 4096, 16384), (64, 2048, 8192), (512, 512, 32768), (1024, 1024, 8192), (2048, 2048, 16384), (4096, 4096, 4096))
SIZES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 2048, 8192))


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--dtype", default="bf16", choices=(*cases.DTYPES, E4M3))
    parser.add_argument("--sizes", type=common.sizes, help="MxNxK,...")
    parser.add_argument("--alternatives", action="store_true", help="of 16 bits: time all, and say which one is chosen")
    common.add_list_option(parser)
    options = parser.parse_args()
    if options.alternatives and options.dtype == E4M3:
        parser.error("--alternatives is for 16 bits")
    return options


def list_sizes(options):
    """(M, N, K) of all points."""
    return options.sizes or (LONG if options.alternatives else SIZES)


def forms(options):
    """What makes a form of the kernel, in words, with its parameters."""
    if options.dtype == E4M3:
        for scales in ("tensor", "rows"):
            yield f"[N, K], scales of {scales}", {"T": "f8E4M3FN", "OUT": "bf16", "SCALES": scales}
        return
    for transposed in (True, False):
        parameters = {"T": options.dtype, "B_TRANSPOSED": transposed, "BIAS": False, "ACTIVATION": "none"}
        yield "[N, K]" if transposed else "[K, N]", parameters


def configurations(options, parameters):
    schedules = common.wanted_schedules(options)
    return [cases.configuration(cases.GEMM, parameters, schedule, alternatives=options.alternatives) for schedule in schedules]


def measure_alternatives(kernel, form, transposed, size, options, stopwatch):
    """The records of one size for each alternative of a kernel that takes it."""
    choice = kernel.choice(**dict(zip("MNK", size)))
    kernels = {name: kernel.alternative(name) for name, time in choice.microseconds.items() if math.isfinite(time)}
    for record in measure(kernels, form, transposed, size, options, stopwatch):
        record["chosen"] = record["variant"] == choice.name
        yield {**record, "expected": choice.microseconds[record["variant"]]}


def measure_bytes(kernels, form, scales, size, options, stopwatch):
    """The records of one size in e4m3."""
    import torch

    m, n, k = size
    torch.manual_seed(0)
    a, b = (torch.randn((rows, k), device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    sa, sb = (torch.rand(rows, device="cuda") + 0.5 for rows in (m, n))
    if scales == "tensor":
        sa, sb = sa[:1], sb[:1]
    scale = (sa[0] * sb[0]).item()
    of_rows, of_columns = (sa[:, None], sb[None, :]) if scales == "rows" else (sa[0], sb[0])
    c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)

    def multiply(fast):
        return torch._scaled_mm(a, b.t(), of_rows, of_columns, out_dtype=torch.bfloat16, use_fast_accum=fast)

    expected = multiply(fast=False).float()

    def prepare(kernel):
        c.fill_(float("nan"))
        arguments = (a, b, c, scale) if scales == "tensor" else (a, b, c, sa, sb)
        return lambda: kernel(*arguments), lambda: ((c.float() - expected).norm() / expected.norm()).item()

    point = {"m": m, "n": n, "k": k, "b": form}
    peers = {} if options.no_peers else {"cublas": lambda: multiply(fast=True)}
    return common.measure_kernels(point, 2 * m * n * k, kernels, prepare, lambda: peers, stopwatch)


def measure(kernels, form, transposed, size, options, stopwatch):
    """The records of one size in 16 bits."""
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

    point = {"m": m, "n": n, "k": k, "b": form}
    peers = {} if options.no_peers else {"cublas": lambda: torch.matmul(a, right, out=scratch)}
    return common.measure_kernels(point, 2 * m * n * k, kernels, prepare, lambda: peers, stopwatch)


def to_row(record):
    row = common.to_row(record, ("m", "n", "k", "b"), ("cublas",))
    more = {name: record[name] for name in ("chosen", "expected") if name in record}
    return {**row, **more, "us": 1000 * record["timings"]["tessera"]["ms"]} if more and "timings" in record else {**row, **more}


def main():
    options = parse_arguments()
    if options.list:
        listed = (entry for _, parameters in forms(options) for entry in configurations(options, parameters))
        return common.write_list(options, listed)
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    hidden = ("schedule",) if len(common.wanted_schedules(options)) == 1 and not options.alternatives else ()
    name = "gemm-e4m3" if options.dtype == E4M3 else "gemm-alternatives" if options.alternatives else "gemm"
    method = (
        f"Matrix product, {options.dtype}, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    )
    results = common.Results(options, name, common.describe_gpu(), method)
    for form, parameters in forms(options):
        kernels = common.load_kernels(source, configurations(options, parameters))
        for extents in list_sizes(options) if kernels else ():
            if options.dtype == E4M3:
                measured = measure_bytes(kernels, form, parameters["SCALES"], extents, options, stopwatch)
            elif options.alternatives:
                (kernel,) = kernels.values()
                measured = list(measure_alternatives(kernel, form, parameters["B_TRANSPOSED"], extents, options, stopwatch))
            else:
                measured = measure(kernels, form, parameters["B_TRANSPOSED"], extents, options, stopwatch)
            results.add(measured, to_row, *hidden)
    results.finish()


if __name__ == "__main__":
    main()
