"""Attention forward against its peers, bf16, BSHD storage, in groups of points.

    paper   the grid of the FlashAttention-3 paper: d = 64, 128, 256
    dims    the same for d = 96, 160, 192, and d = 192 with values of 128
    gqa     d = 128 with eight query heads for each head of K and V
    long    a single sequence of 32k tokens, d = 128
    decode  one query against the keys of 128k tokens, d = 128, 32 query heads on 4; also with the eight query heads of
            a key head in the rows of a tile (variant "packed")

The first three have 16k tokens (batch = 16384 / seqlen), and all but the last hidden size 2048 (heads = 2048 / d).
FLOPs are 2 q s (d + dv) h b for q queries and s keys, half of that with a causal mask. Peers: PyTorch's cuDNN and flash
backends; FlashAttention-3 when flash_attn_interface can be imported or --fa3 names a directory with
fa3_fwd_d<D>_c<0|1>_fp80.so; and when --peers names them, FlexAttention and a kernel in Triton, which take seconds to
compile for each point. A peer that does not run a point is left out there, and a line says why.

Each point has the kernel that is compiled for its shape. --exact also times attention_variants.tile without a change of
the scores: the online softmax, without speculation. Bundles: --list FILE with the options of the run, then
test/gpu/build_bundles.py --groups= --extra FILE. Results are written after each point.
"""

import argparse
import dataclasses
import itertools
import math
import statistics

import common
import peers
from common import cases

TOKENS, HIDDEN = 16384, 2048
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
MASKS = ("full", "causal")
# What a kernel here is judged against, of the peers.
JUDGES = ("fa3", "cudnn")


@dataclasses.dataclass(frozen=True)
class Group:
    """The points of all pairs (D, DV), sequence lengths and masks; `sharing` query heads have one head of K and V. A
    sequence has as many queries as keys (queries = None) or so many."""

    dims: tuple
    seqlens: tuple = SEQLENS
    sharing: int = 1
    hidden: int = HIDDEN
    tokens: int = TOKENS
    queries: int | None = None
    masks: tuple = MASKS


GROUPS = {
    "paper": Group(((64, 64), (128, 128), (256, 256))),
    "dims": Group(((96, 96), (160, 160), (192, 192), (192, 128))),
    "gqa": Group(((128, 128),), sharing=8),
    "long": Group(((128, 128),), seqlens=(32768,)),
    "decode": Group(((128, 128),), (2048, 8192, 32768), 8, hidden=4096, tokens=131072, queries=1, masks=("full",)),
}


@dataclasses.dataclass(frozen=True)
class Point:
    """A problem to measure. The order of the fields is that of the columns of the table."""

    group: str
    d: int
    dv: int
    mask: str
    seqlen: int
    queries: int
    batch: int
    heads: int
    kv_heads: int


def points(groups, dims=None, seqlens=None, masks=MASKS):
    """The points of the named groups, of these head dimensions D, sequence lengths and masks only (None: of all)."""
    for name in groups:
        group = GROUPS[name]
        for d, dv in group.dims:
            heads = group.hidden // d
            for mask in masks:
                for seqlen in group.seqlens if mask in group.masks else ():
                    if (dims is None or d in dims) and (seqlens is None or seqlen in seqlens):
                        batch, queries = max(1, group.tokens // seqlen), group.queries or seqlen
                        yield Point(name, d, dv, mask, seqlen, queries, batch, heads, heads // group.sharing)


def parse_arguments(arguments=None):
    parser = peers.add_options(common.argument_parser(__doc__))
    parser.add_argument("--groups", default=tuple(GROUPS), type=names_of(GROUPS), help="of points (default: all)")
    parser.add_argument("--d", type=common.numbers, help="these head dimensions of the groups only")
    parser.add_argument("--seqlens", type=common.numbers, help="these sequence lengths of the groups only")
    parser.add_argument("--masks", default=MASKS, type=names_of(MASKS), help="these of full and causal only")
    parser.add_argument("--dtype", default="bf16", choices=cases.DTYPES)
    parser.add_argument("--exact", action="store_true", help="time the online softmax too")
    parser.add_argument("--before", metavar="DIR", help="bundles of another compiler, timed in turns as variant 'before'")
    common.add_list_option(parser)
    options = parser.parse_args(arguments)
    options.points = list(points(options.groups, options.d, options.seqlens, options.masks))
    if not options.points:
        parser.error("no group has such a point")
    return options


def configurations(point, options):
    """The kernels to time at a point."""
    causal = point.mask == "causal"
    shape = {"B": point.batch, "H": point.heads, "HK": point.kv_heads, "SQ": point.queries, "SK": point.seqlen}
    for schedule in common.wanted_schedules(options):
        yield cases.attention(options.dtype, point.d, point.dv, causal, schedule, shape)
    sharing = point.heads // point.kv_heads
    if point.queries * sharing <= 64 and sharing > 1:
        packed = {"T": options.dtype, "D": point.d, "DV": point.dv, "CAUSAL": causal, "HEADS": sharing, "BM": 64}
        yield dict(cases.configuration(cases.ATTENTION, packed, shape=shape), variant="packed")
    if options.exact:
        scores = {"DV": point.dv, "MASK": "causal" if causal else "none"}
        yield dict(cases.variant(options.dtype, point.d, scores, "speculate=false", shape), variant="exact")


def write_list(options):
    common.write_list(options, (entry for point in options.points for entry in configurations(point, options)))


def names_of(known):
    """Makes an argument a tuple of names that are known."""

    def parse(text):
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
        return names

    return parse


class Problem:
    """Tensors of a problem: Q [B, SQ, H, D], K [B, S, HK, D], V [B, S, HK, DV], LSE [B, H, SQ]. By default the batch and
    heads of the paper, DV = D, HK = H and SQ = S."""

    def __init__(self, d, seqlen, causal, dtype, batch=None, heads=None, dv=None, kv_heads=None, queries=None):
        import torch

        self.d, self.dv, self.seqlen, self.queries, self.causal = d, dv or d, seqlen, queries or seqlen, causal
        self.batch, self.heads = batch or max(1, TOKENS // seqlen), heads or HIDDEN // d
        self.kv_heads = kv_heads or self.heads
        self.scale = 1 / math.sqrt(d)
        self.dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]

        def random(*shape):
            return torch.randn((self.batch, *shape), device="cuda", dtype=self.dtype)

        self.q = random(self.queries, self.heads, d)
        self.k, self.v = random(seqlen, self.kv_heads, d), random(seqlen, self.kv_heads, self.dv)
        self.lse = torch.empty((self.batch, self.heads, self.queries), device="cuda")
        pairs = self.queries * seqlen / (2 if causal else 1)
        self.flops = 2 * pairs * (d + self.dv) * self.heads * self.batch

    def __str__(self):
        dims = f"d {self.d}" if self.d == self.dv else f"d {self.d}/{self.dv}"
        heads = f"{self.heads}" if self.heads == self.kv_heads else f"{self.heads}:{self.kv_heads}"
        queries = "" if self.queries == self.seqlen else f"{self.queries} on "
        return f"{dims}, {'causal' if self.causal else 'full'}, {self.batch} x {queries}{self.seqlen}, {heads} heads"

    def transposed(self):
        return tuple(tensor.transpose(1, 2) for tensor in (self.q, self.k, self.v))

    def expected(self):
        """O [B, H, S, DV] in f32, by PyTorch's flash backend, which wants DV = D and heads of their own."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q, k, v = self.transposed()
        sharing = self.heads // self.kv_heads
        k, v = (tensor.repeat_interleave(sharing, 1) if sharing > 1 else tensor for tensor in (k, v))
        if self.dv < self.d:
            v = torch.nn.functional.pad(v, (0, self.d - self.dv))
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=self.scale)
        return out[..., : self.dv].float()


def tessera_contestant(kernel, problem):
    """A function that launches the kernel, and its output [B, H, S, DV]."""
    q, k, v = problem.transposed()
    out = problem.q.new_full((*problem.q.shape[:3], problem.dv), float("nan")).transpose(1, 2)
    return lambda: kernel(q, k, v, out, problem.lse, problem.scale), out


def prepare(problem, expected):
    """What `common.measure_kernels` wants, with errors against `expected`, [B, H, S, DV]."""

    def prepare_kernel(kernel):
        run, out = tessera_contestant(kernel, problem)
        return run, lambda: peers.relative_error(out, expected)

    return prepare_kernel


def measure(kernels, problem, point, options, stopwatch):
    """The records of one problem; `point` is what they hold of it, a dict."""
    expected = problem.expected()
    return common.measure_kernels(
        point,
        problem.flops,
        kernels,
        prepare(problem, expected),
        lambda: peers.find(problem, options, expected),
        stopwatch,
    )


def load_before(source, point, options):
    """{"before": kernel} of the other compiler, whose default schedule is timed; empty without a source."""
    kernel = source and common.load_kernel(source, next(configurations(point, options)))
    return {"before": kernel} if kernel else {}


def to_row(record, names):
    return common.to_row(record, [field.name for field in dataclasses.fields(Point)], names)


def mean_rows(records):
    """Rows of geometric means over the sequence lengths of the rate over that of the best of JUDGES, and the worst."""
    ratios = {}
    for record in records:
        timings = record.get("timings", {})
        rivals = [timings[name]["tflops"] for name in JUDGES if name in timings]
        if rivals:
            key = tuple(record[field] for field in ("group", "d", "dv", "mask", "variant"))
            ratios.setdefault(key, []).append(timings["tessera"]["tflops"] / max(rivals))
    for (group, d, dv, mask, variant), found in ratios.items():
        yield {"group": group, "d": d, "dv": dv, "mask": mask, "schedule": variant, "points": len(found),
               "mean to fa3, cudnn": f"{statistics.geometric_mean(found):.3f}", "worst": f"{min(found):.2f}"}  # fmt: skip


def change_rows(records):
    """Rows of geometric means over the sequence lengths of the default's rate over that of `before`, and the worst."""
    rates, ratios = {}, {}
    for record in records:
        if "timings" in record:
            point = tuple(record[field.name] for field in dataclasses.fields(Point))
            rates.setdefault(point, {})[record["variant"]] = record["timings"]["tessera"]["tflops"]
    for (group, d, dv, mask, *_), found in rates.items():
        if "before" in found and "default" in found:
            ratios.setdefault((group, d, dv, mask), []).append(found["default"] / found["before"])
    for (group, d, dv, mask), found in ratios.items():
        yield {"group": group, "d": d, "dv": dv, "mask": mask, "points": len(found),
               "mean to before": f"{statistics.geometric_mean(found):.3f}", "worst": f"{min(found):.3f}"}  # fmt: skip


def tables(records):
    """The tables of means that have rows."""
    return [table for table in (list(mean_rows(records)), list(change_rows(records))) if table]


def main():
    options = parse_arguments()
    if options.list:
        return write_list(options)
    import torch

    source = common.kernels.open_source(options.bundles)
    before = common.kernels.open_source(options.before) if options.before else None
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    hidden = () if options.exact or before or len(common.wanted_schedules(options)) > 1 else ("schedule",)
    method = (
        f"Attention forward, {options.dtype}, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    )
    results, records = common.Results(options, "attention", common.describe_gpu(), method), []
    names = peers.wanted(options)
    for point in options.points:
        kernels = common.load_kernels(source, configurations(point, options))
        kernels.update(load_before(before, point, options))
        if not kernels:
            continue
        torch.manual_seed(0)
        problem = Problem(
            point.d,
            point.seqlen,
            point.mask == "causal",
            options.dtype,
            point.batch,
            point.heads,
            point.dv,
            point.kv_heads,
            point.queries,
        )
        measured = measure(kernels, problem, dataclasses.asdict(point), options, stopwatch)
        for record in measured:
            common.print_row(to_row(record, names), *hidden)
        records += measured
        results.write([to_row(record, names) for record in records], records, *tables(records))
    for row in itertools.chain(*tables(records)):
        common.print_row(row)
    results.finish()


if __name__ == "__main__":
    main()
