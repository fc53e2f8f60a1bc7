"""Rows that a producer's threads gather, against the same work on rows that lie beside each other.

    gemm    C[i] = A[LIST[i]] B, with each row of A once and in any order, against the kernel without a list (`plain`), and
            torch's index_select and matmul (`torch`); B is [N, K]
    paged   attention over keys in pages of a cache [pages, PAGE, heads, D], in random order, against attention_fwd.tile on
            keys beside each other (`plain`): as it is by default, which speculates, and with the online softmax (`exact`)

bf16, causal. Attention counts as in attention.py. Bundles: --list FILE with the options of the run, then
test/gpu/build_bundles.py --groups= --extra FILE.
"""

import itertools

import attention
import common
import peers
from common import cases

SIZES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 2048, 8192))
SEQLENS = (2048, 8192)
PAGES = (16, 128)
D, SHARING = 128, 4


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--sizes", type=common.sizes, default=SIZES, help="MxNxK,...")
    parser.add_argument("--seqlens", type=common.numbers, default=SEQLENS, help="of attention, multiples of 128")
    common.add_list_option(parser)
    return parser.parse_args()


def product_kernels():
    """The product with a list, and the one without."""
    parameters = {"T": "bf16", "B_TRANSPOSED": "true"}
    plain = {**parameters, "BIAS": "false", "ACTIVATION": "none"}
    return cases.configuration("gemm_gather", {**parameters, "I": "i32"}), cases.configuration(cases.GEMM, plain)


def attention_kernels(seqlen):
    """{name: configuration} of attention over pages of each size, and of `plain` and `exact`."""
    heads, batch = attention.HIDDEN // D, max(1, attention.TOKENS // seqlen)
    shape = {"B": batch, "H": heads, "HK": heads // SHARING, "SQ": seqlen, "SK": seqlen}
    paged = {"T": "bf16", "D": D, "DV": D, "CAUSAL": "true"}
    found = {page: cases.configuration("attention_paged", {**paged, "PAGE": page}) for page in PAGES}
    found["plain"] = cases.attention("bf16", D, D, True, shape=shape)
    return {**found, "exact": cases.attention("bf16", D, D, True, "speculate=false", shape)}


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


def make_pages(problem, page):
    """K and V of `problem` as caches [HK, ROWS, D] whose pages lie in random order, and the table of pages."""
    import torch

    count = problem.batch * problem.seqlen // page
    order = torch.randperm(count, device="cuda")

    def cache(keys):
        pages = torch.empty_like(keys).view(count, page, problem.kv_heads, D)
        pages[order] = keys.reshape(pages.shape)
        return pages.flatten(0, 1).transpose(0, 1)

    return cache(problem.k), cache(problem.v), order.to(torch.int32).view(problem.batch, -1)


def measure_attention(loaded, page, seqlen, stopwatch):
    """The records of attention over pages."""
    import torch

    torch.manual_seed(0)
    heads = attention.HIDDEN // D
    problem = attention.Problem(D, seqlen, True, "bf16", kv_heads=heads // SHARING)
    expected = problem.expected()
    k, v, table = make_pages(problem, page)
    lengths = torch.full((problem.batch,), seqlen, device="cuda", dtype=torch.int32)
    q = problem.q.transpose(1, 2)

    def prepare(kernel):
        o = torch.full_like(problem.q, float("nan")).transpose(1, 2)
        run = lambda: kernel(q, k, v, table, lengths, o, problem.lse, problem.scale)  # noqa: E731
        return run, lambda: peers.relative_error(o, expected)

    others = {name: attention.tessera_contestant(loaded[name], problem)[0] for name in ("plain", "exact") if loaded[name]}
    point = {"case": f"paged {problem.batch} x {seqlen}, {heads}:{problem.kv_heads} heads, pages of {page}"}
    return common.measure_kernels(point, problem.flops, {"default": loaded[page]}, prepare, lambda: others, stopwatch)


def to_row(record):
    row = common.to_row(record, ("case",), ("plain", "exact", "torch"))
    del row["schedule"], row["to best"]
    plain = row["plain"] if "timings" in record else None
    row["to plain"] = f"{row['tessera'] / plain:.2f}" if plain else None
    return row


def main():
    options = parse_arguments()
    if options.list:
        wanted = [*product_kernels(), *(c for n in options.seqlens for c in attention_kernels(n).values())]
        listed = {configuration["name"]: configuration for configuration in wanted}
        return common.write_list(options, listed.values())
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Gathered rows, bf16, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    results = common.Results(options, "gathers", common.describe_gpu(), method)
    kernel, plain = (common.load_kernel(source, configuration) for configuration in product_kernels())
    for size in options.sizes if kernel else ():
        results.add(measure_product(kernel, plain, size, options, stopwatch), to_row)
    for seqlen, page in itertools.product(options.seqlens, PAGES):
        loaded = {name: common.load_kernel(source, c) for name, c in attention_kernels(seqlen).items()}
        if loaded[page]:
            results.add(measure_attention(loaded, page, seqlen, stopwatch), to_row)
    results.finish()


if __name__ == "__main__":
    main()
