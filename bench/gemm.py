"""The matrix product against cuBLAS (torch.matmul), bf16 and f16, both layouts of B."""

import common
from common import cases

SIZES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 2048, 8192))


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--dtype", default="bf16", choices=cases.DTYPES)
    parser.add_argument("--sizes", default=",".join("x".join(map(str, size)) for size in SIZES), help="MxNxK,...")
    return parser.parse_args()


def measure(kernel, transposed, size, options, stopwatch):
    import torch

    m, n, k = size
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[options.dtype]
    torch.manual_seed(0)
    a = torch.randn((m, k), device="cuda", dtype=dtype)
    b = torch.randn((n, k) if transposed else (k, n), device="cuda", dtype=dtype)
    right = b.t() if transposed else b
    c, expected = torch.full((m, n), float("nan"), device="cuda", dtype=dtype), torch.empty(
        (m, n), device="cuda", dtype=dtype
    )
    torch.matmul(a, right, out=expected)
    kernel(a, b, c)
    torch.cuda.synchronize()
    error = ((c.float() - expected.float()).norm() / expected.float().norm()).item()
    record = {
        "m": m,
        "n": n,
        "k": k,
        "b": "[N, K]" if transposed else "[K, N]",
        "schedule": kernel.schedule,
        "error": error,
    }
    if not error < 1e-2:
        record["wrong"] = True
        return record
    contestants = {"tessera": lambda: kernel(a, b, c)}
    if not options.no_peers:
        contestants["cublas"] = lambda: torch.matmul(a, right, out=expected)
    record["timings"] = stopwatch.compare(contestants)
    for timing in record["timings"].values():
        timing["tflops"] = 2 * m * n * k / timing["ms"] / 1e9
    return record


def to_row(record):
    row = {key: record[key] for key in ("m", "n", "k", "b")}
    timings = record.get("timings", {})
    for name in ("tessera", "cublas"):
        row[name] = timings.get(name, {}).get("tflops")
    if record.get("wrong"):
        row["tessera"] = f"wrong ({record['error']:.2g})"
    row["to cublas"] = f"{row['tessera'] / row['cublas']:.2f}" if row["cublas"] else None
    row["MHz"] = timings.get("tessera", {}).get("mhz")
    row["W"] = timings.get("tessera", {}).get("watts")
    row["schedule"] = record["schedule"]
    return row


def main():
    options = parse_arguments()
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    records = []
    for transposed in (True, False):
        parameters = {
            "T": options.dtype,
            "B_TRANSPOSED": str(transposed).lower(),
            "BIAS": "false",
            "ACTIVATION": "none",
        }
        kernel = common.load_kernel(source, cases.configuration(cases.GEMM, parameters, options.schedule))
        for size in options.sizes.split(",") if kernel else ():
            records.append(measure(kernel, transposed, tuple(map(int, size.split("x"))), options, stopwatch))
            shown = {key: value for key, value in to_row(records[-1]).items() if value is not None}
            print(", ".join(f"{key} {common.format_cell(value)}" for key, value in shown.items()), flush=True)
    method = (
        f"Matrix product, {options.dtype}, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    )
    common.write_results(
        options, "gemm", common.describe_gpu(), method, [to_row(record) for record in records], records
    )


if __name__ == "__main__":
    main()
