"""Attention with functions of scores and masks, variants of attention.tile, beside FlexAttention with the same functions.

bf16, BSHD storage, batch and heads as in attention.py (16k tokens, hidden size 2048). Documents have 1024 tokens, windows
1024 keys; "packed" ones are given by where each begins, and not by number. FLOPs are counted on the pairs of a query and a
key that the mask leaves, 4 d each. "to causal" is the rate of documents over that of the causal kernel on as many sequences of
1024 tokens. Variants whose blocks are a list are timed with the kernels that write the list, and again ("kept") without: with
a list that was made before, as FlexAttention's is. "flex, listing" is FlexAttention that makes its list in each call too, and "to
listing" our rate over that where we do. Bundles: --list FILE with the options of the run, then
test/gpu/build_bundles.py --groups= --extra FILE. FlexAttention takes seconds to compile for each function and point.
"""

import dataclasses
import itertools

import attention
import common
import peers
from common import cases

WINDOW, DOCUMENT, CAP = 1024, 1024, 50.0
# FlexAttention with the list of blocks made in each call.
LISTING = "flex, listing"


@dataclasses.dataclass(frozen=True)
class Case:
    """A variant, and the same for FlexAttention."""

    name: str
    kernel: str
    #: Of a problem: arguments of the kernel by name, beside those of attention.
    arguments: callable = lambda problem: {}
    #: Of a problem and these arguments: a function of scores, or None, and a mask, or None, as FlexAttention takes them.
    functions: callable = lambda problem, given: (None, None)
    #: How many keys a query sees, by the length of the sequence; the sum over queries.
    pairs: callable = lambda n: n * n
    parameters: dict = dataclasses.field(default_factory=dict)
    #: Extents of dimensions that only the arguments have, by the length of the sequence.
    extents: callable = lambda n: {}
    #: Blocks are a list, which may outlive a call.
    has_list: bool = False


def is_causal(b, h, q, k):
    return q >= k


def count_causal(n):
    return n * (n + 1) // 2


def make_slopes(problem):
    import torch

    return {"slopes": torch.exp2(-8 * torch.arange(1, problem.heads + 1, device="cuda") / problem.heads)}


def make_documents(problem):
    import torch

    numbers = torch.arange(problem.seqlen, device="cuda", dtype=torch.int32) // DOCUMENT
    return {"documents": numbers.expand(problem.batch, -1).contiguous()}


def make_starts(problem):
    import torch

    starts = torch.arange(problem.seqlen, device="cuda", dtype=torch.int32) // DOCUMENT * DOCUMENT
    return {"starts": starts.expand(problem.batch, -1).contiguous()}


def make_bias(problem):
    import torch

    return {"bias": torch.randn((problem.seqlen, problem.seqlen), device="cuda", dtype=torch.bfloat16)}


def make_table(problem):
    import torch

    return {"table": torch.randn((problem.heads, 2 * problem.seqlen - 1), device="cuda")}


def alibi(problem, given):
    slopes = given["slopes"]
    return (lambda s, b, h, q, k: s - slopes[h] * (q - k).abs()), None


def soft_cap(problem, given):
    import torch

    return (lambda s, b, h, q, k: CAP * torch.tanh(s / CAP)), None


def documents(problem, given):
    numbers = given["documents"]
    return None, lambda b, h, q, k: (numbers[b, q] == numbers[b, k]) & (q >= k)


def packed(problem, given):
    starts = given["starts"]
    return None, lambda b, h, q, k: (k >= starts[b, q]) & (q >= k)


def bias(problem, given):
    values = given["bias"]
    return (lambda s, b, h, q, k: s + values[q, k]), None


def relative(problem, given):
    table, last = given["table"], problem.seqlen - 1
    return (lambda s, b, h, q, k: s + table[h, q - k + last]), None


CASES = (
    Case("none", "attention"),
    Case("causal", "variants/causal", functions=lambda p, given: (None, is_causal), pairs=count_causal),
    Case("window", "variants/window", lambda p: {"left": WINDOW - 1, "right": 0},
         lambda p, given: (None, lambda b, h, q, k: (q >= k) & (q - k < WINDOW)),
         lambda n: sum(min(row + 1, WINDOW) for row in range(n))),
    Case("ALiBi", "variants/alibi", make_slopes, alibi),
    Case("soft cap", "variants/softcap", lambda p: {"cap": CAP}, soft_cap),
    Case("documents", "variants/documents", make_documents, documents, lambda n: n // DOCUMENT * count_causal(DOCUMENT),
         has_list=True),
    Case("packed", "variants/packed", make_starts, packed, lambda n: n // DOCUMENT * count_causal(DOCUMENT)),
    Case("bias", "variants/bias", make_bias, bias, parameters={"BIAS": "bf16", "OF_HEAD": "false"}),
    Case("relative", "variants/relative", make_table, relative, extents=lambda n: {"DISTANCES": 2 * n - 1}),
)  # fmt: skip

# Those held against the causal kernel on sequences as long as a document.
OF_DOCUMENTS = ("documents", "packed")


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--seqlens", type=common.numbers, default=(2048, 8192, 16384), help="multiples of 1024")
    parser.add_argument("--d", type=common.numbers, default=(64, 128), help="head dimensions")
    parser.add_argument("--cases", help="names of cases, separated by commas; all of them when not given")
    common.add_list_option(parser)
    return parser.parse_args()


def points(options):
    """(d, seqlen) of all points."""
    return itertools.product(options.d, options.seqlens)


def is_wanted(name, options):
    return options.cases is None or name in options.cases.split(",")


def configurations(d, seqlen):
    """The kernels of a point by the name of their case; "documents, short" is the one that documents are held
    against. Of cases with a list also what takes it ("documents, kept") and what makes it ("documents, lists")."""
    heads = attention.HIDDEN // d
    sizes = {"H": heads, "HK": heads}
    shape = {"B": max(1, attention.TOKENS // seqlen), **sizes, "SQ": seqlen, "SK": seqlen}
    short = {"B": attention.TOKENS // DOCUMENT, **sizes, "SQ": DOCUMENT, "SK": DOCUMENT}
    found = {}
    for case in CASES:
        parameters, extents = {"T": "bf16", "D": d, **case.parameters}, {**shape, **case.extents(seqlen)}
        found[case.name] = cases.configuration(case.kernel, parameters, shape=extents)
        if case.has_list:
            for name, entry in (("kept", "attention"), ("lists", "attention_block_lists")):
                found[f"{case.name}, {name}"] = cases.configuration(case.kernel, {**parameters, "KEPT": True}, entry=entry)
    for name in OF_DOCUMENTS:
        found[f"{name}, short"] = cases.attention("bf16", d, d, True, shape=short)
    return found


def find_expected(problem, given, functions):
    """{(batch, head): O [S, D] in f32} of the first head of the batch and the last."""
    import torch

    score, mask = functions
    found, q_at = {}, torch.arange(problem.seqlen, device="cuda")[:, None]
    k_at = q_at.t()
    for b, h in ((0, 0), (problem.batch - 1, problem.heads - 1)):
        q, k, v = (tensor[b, :, h].float() for tensor in (problem.q, problem.k, problem.v))
        s = (q @ k.t()) * problem.scale
        if score is not None:
            s = score(s, b, h, q_at, k_at)
        if mask is not None:
            s = s.masked_fill_(~mask(b, h, q_at, k_at), float("-inf"))
        found[b, h] = torch.softmax(s, 1) @ v
    return found


def find_error(out, expected):
    return max(peers.relative_error(out[at], values) for at, values in expected.items())


def make_lists(problem, kernel, lister, given):
    """The lists of blocks that a kernel takes, by name."""
    import torch

    rows, columns = (int(kernel.bundle.parameters[name]) for name in ("BM", "BN"))
    tiles, length = -(-problem.seqlen // rows), -(-problem.seqlen // columns)
    lists, counts = (
        torch.zeros((problem.batch, 1, tiles, size), device="cuda", dtype=torch.int32) for size in (length, 3)
    )
    q, k, _ = problem.transposed()
    lister(q=q, k=k, visit_lists=lists, visit_counts=counts, **given)
    return {"visit_lists": lists, "visit_counts": counts}


def measure(case, problem, loaded, stopwatch, options):
    """The records of a case."""
    import torch

    given = case.arguments(problem)
    functions = case.functions(problem, given)
    expected = find_expected(problem, given, functions)
    q, k, v = problem.transposed()
    o = torch.full_like(problem.q, float("nan")).transpose(1, 2)
    point = {"d": problem.d, "seqlen": problem.seqlen, "batch": problem.batch, "heads": problem.heads, "case": case.name}

    kernels = {"default": loaded[case.name], "kept": loaded.get(f"{case.name}, kept")}
    lister = loaded.get(f"{case.name}, lists")
    kernels = {name: kernel for name, kernel in kernels.items() if kernel and (lister or name != "kept")}

    def prepare(kernel):
        lists = make_lists(problem, kernel, lister, given) if kernel is kernels.get("kept") else {}
        o.fill_(float("nan"))
        run = lambda: kernel(q=q, k=k, v=v, o=o, lse=problem.lse, scale=problem.scale, **given, **lists)  # noqa: E731
        return run, lambda: find_error(o, expected)

    def find_peers():
        if options.no_peers:
            return {}
        peers.forget_compiled()
        found = {}
        for name, makes_list in (("flex", False), (LISTING, True)):
            if makes_list and not case.has_list:
                continue
            make = lambda _, makes_list=makes_list: peers.flex(problem, *functions, makes_list=makes_list)  # noqa: E731
            run = peers.attempt(name, problem, make, lambda out: find_error(out, expected))
            if run:
                found[name] = run
        return found

    flops = 4 * problem.d * problem.heads * problem.batch * case.pairs(problem.seqlen)
    return common.measure_kernels(point, flops, kernels, prepare, find_peers, stopwatch)


def time_short(problem, kernel, stopwatch):
    """TFLOP/s of the causal kernel on sequences as long as a document."""
    short = attention.Problem(problem.d, DOCUMENT, True, "bf16")
    run, _ = attention.tessera_contestant(kernel, short)
    ms = stopwatch.compare({"short": run})["short"]["ms"]
    return 4 * short.d * short.heads * short.batch * count_causal(DOCUMENT) / ms / 1e9


def to_row(record):
    row = common.to_row(record, ("d", "seqlen", "batch", "heads", "case"), ("flex",))
    causal, listing = record.get("short_tflops"), record.get("timings", {}).get(LISTING)
    row[LISTING] = listing and listing["tflops"]
    row["to listing"] = f"{row['tessera'] / row[LISTING]:.2f}" if listing and record["variant"] == "default" else None
    row["to causal"] = f"{row['tessera'] / causal:.2f}" if causal and "timings" in record else None
    return row


def main():
    options = parse_arguments()
    if options.list:
        found = [item for point in points(options) for item in configurations(*point).items()]
        wanted = {c["name"]: c for name, c in found if is_wanted(name.partition(",")[0], options)}
        return common.write_list(options, wanted.values())
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = (
        "Attention with functions of scores and masks, bf16, TFLOP/s of the pairs that the mask leaves (medians of "
        "CUDA-event times, L2 flushed, contestants in turns)."
    )
    results = common.Results(options, "functions", common.describe_gpu(), method)
    for d, seqlen in points(options):
        wanted = {name: c for name, c in configurations(d, seqlen).items() if is_wanted(name.partition(",")[0], options)}
        loaded = {name: common.load_kernel(source, c) for name, c in wanted.items()}
        problem = attention.Problem(d, seqlen, False, "bf16")
        for case in CASES:
            if loaded.get(case.name) is None:
                continue
            measured = measure(case, problem, loaded, stopwatch, options)
            if loaded.get(f"{case.name}, short") is not None:
                short = time_short(problem, loaded[f"{case.name}, short"], stopwatch)
                measured = [{**record, "short_tflops": short} for record in measured]
            results.add(measured, to_row)
    results.finish()


if __name__ == "__main__":
    main()
