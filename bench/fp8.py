"""Attention of 8-bit numbers (e4m3, O in bf16): its speed against FlashAttention-3's, and its error on inputs with outliers.

    speed      d = 64, 128 and 256, 16k tokens (batch = 16384 / seqlen), hidden size 2048. Of ours: V as it is stored and V
               with its keys innermost, each with one scale a tensor and with scales of blocks. The peers take V as
               stored, FlashAttention-3 with scales of heads and cuDNN with scales of tensors.
    accuracy   the root mean square error against f64 of inputs N(0, 1) + N(0, 100) Bernoulli(0.001), as in table 3 of the
               FlashAttention-3 paper, and of N(0, 1), quantized by quantize.tile. Then of 128k keys, with sums that are
               promoted to f32 every n blocks of keys and without; also against f64 of the numbers that were rounded
    promote    the speed of ours with sums that are promoted every n blocks; not among the default parts

FlashAttention-3 takes part when --fa3 names a directory with fa3_fwd_d<D>_c<0|1>_fp81.so, and cuDNN where its Python
frontend is installed (`pip install nvidia-cudnn-frontend`); it writes O in e4m3. --bundles takes what
test/gpu/build_bundles.py --groups= --extra FILE makes of the list that --list writes.
"""
import dataclasses
import itertools

import common
import fp8_peers
import peers
from common import cases

TOKENS, HIDDEN = 16384, 2048
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
VARIANTS = {
    "V as stored": {"V_TRANSPOSED": False},
    "keys innermost": {"V_TRANSPOSED": True},
    "blocks, V as stored": {"V_TRANSPOSED": False, "SCALES": "blocks"},
    "blocks, keys innermost": {"V_TRANSPOSED": True, "SCALES": "blocks"},
}
#: The same with sums in f32 after so many blocks of keys, up to so large a head dimension.
PROMOTED = {
    f"{name}, {f'every {n}' if n else 'never'}": {**VARIANTS[name], "PROMOTE": n}
    for name in ("V as stored", "keys innermost", "blocks, V as stored")
    for n in (0, 1, 4)
}
MOST_PROMOTED = 128
LARGEST = 448.0
# P has 4 significant bits, which alone cost two to three hundredths.
MAX_ERROR = 0.08
#: Table 3 of the paper: f16, and e4m3 with everything, and without one part.
OF_PAPER = {
    "standard, 16 bits": 3.2e-4,
    "16 bits": 1.9e-4,
    "scales of tensors": 2.4e-2,
    "scales of tensors, rotated": 9.3e-3,
    "blocks": 2.4e-2,
    "blocks, rotated": 9.1e-3,
}
#: [B, H, S, D] of the accuracy; rows of a block, for which rotating them leaves registers.
ACCURACY, BLOCK = (4, 8, 2048, 128), 64
#: Queries and keys of one batch and head of the accuracy with many keys, and after how many blocks sums are promoted.
LONG_QUERIES, LONG_KEYS, LONG_HEADS, PROMOTIONS = 256, 131072, 2, (0, 1, 4, 16)


@dataclasses.dataclass(frozen=True)
class Point:
    """A problem to time. The order of the fields is that of the columns of the table."""

    d: int
    mask: str
    seqlen: int
    batch: int
    heads: int

    @property
    def flops(self):
        full = 4 * self.batch * self.heads * self.seqlen**2 * self.d
        return full / 2 if self.mask == "causal" else full

    @property
    def shape(self):
        return {"B": self.batch, "H": self.heads, "HK": self.heads, "SQ": self.seqlen, "SK": self.seqlen}


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--parts", default="speed,accuracy", help="of speed, accuracy and promote")
    parser.add_argument("--dims", type=common.numbers, default=(64, 128, 256), help="head dimensions")
    parser.add_argument("--seqlens", type=common.numbers, default=SEQLENS, help="sequence lengths")
    parser.add_argument("--fa3", metavar="DIR", help="directory of FlashAttention-3 as shared objects")
    common.add_list_option(parser)
    return parser.parse_args()


def points(options):
    for d in options.dims:
        for mask in ("full", "causal"):
            for seqlen in options.seqlens:
                yield Point(d, mask, seqlen, max(1, TOKENS // seqlen), HIDDEN // d)


def round_tensor(x):
    """(numbers, scale) of a whole tensor."""
    import torch

    scale = x.float().abs().max().item() / LARGEST
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def configurations(point, variant, schedules):
    parameters = {"D": point.d, "CAUSAL": point.mask == "causal", **variant}
    return [cases.configuration("attention_fp8", parameters, schedule, point.shape) for schedule in schedules]


def of_accuracy(what, **more):
    """The configuration of a kernel of the accuracy, with more parameters of attention."""
    b, h, s, d = ACCURACY
    shape = {"B": b, "H": h, "HK": h, "SQ": s, "SK": s}
    if what == "16 bits":
        return cases.attention("f16", d, d, False, shape=shape)
    if what in ("tensor", "blocks"):
        parameters = {"D": d, "OUT": "f16", "V_TRANSPOSED": False, "SCALES": what, **more}
        return cases.configuration("attention_fp8", {**parameters, **({"BN": BLOCK} if what == "blocks" else {})}, "", shape)
    rows = {"B": b, "H": h, "SX": s}
    return cases.configuration(
        "quantize", {"T": "f16", "D": d, "BLOCKS": True, "BM": BLOCK, "ROTATE": what == "rotate"}, "", rows
    )


class Problem:
    """Tensors of a point, [B, S, H, D], in 8 bits with one scale each."""

    def __init__(self, point):
        import torch

        self.point, self.causal = point, point.mask == "causal"
        torch.manual_seed(0)
        shape = (point.batch, point.seqlen, point.heads, point.d)
        q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        (self.q, q_scale), (self.k, k_scale), (self.v, self.v_scale) = map(round_tensor, (q, k, v))
        self.scale = point.d**-0.5 * q_scale * k_scale
        self.o = torch.empty_like(q)
        self.lse = torch.empty((point.batch, point.heads, point.seqlen), device="cuda", dtype=torch.float32)
        views = [x.transpose(1, 2) for x in (q, k, v)]
        self.expected = torch.nn.functional.scaled_dot_product_attention(*views, is_causal=self.causal).float()

    def prepare(self, kernel, parameters):
        """A function that runs a kernel of ours."""
        import torch

        q, k, v, o = (x.transpose(1, 2) for x in (self.q, self.k, self.v, self.o))
        if parameters["V_TRANSPOSED"]:
            v = v.transpose(2, 3).contiguous()
        if parameters.get("SCALES") != "blocks":
            return lambda: kernel(q, k, v, o, self.lse, self.scale, self.v_scale)
        ones = torch.ones_like(self.lse)
        of_v = torch.full_like(ones, self.v_scale)
        return lambda: kernel(q, k, v, o, self.lse, self.scale, ones, ones, of_v)

    def find_error(self):
        return peers.relative_error(self.o.transpose(1, 2), self.expected)


def is_right(name, run, problem, find_error=None):
    problem.o.fill_(float("nan"))
    run()
    error = (find_error or problem.find_error)()
    if not error < MAX_ERROR:
        print(f"{name}: left out at {problem.point}: error {error:.2g}", flush=True)
    return error < MAX_ERROR


def measure(point, source, options, stopwatch, variants):
    """The records of one point."""
    problem, contestants, records = Problem(point), {}, []
    schedules = common.wanted_schedules(options)
    for name, variant in variants.items():
        entries = configurations(point, variant, schedules)
        for schedule, kernel in common.load_kernels(source, entries).items():
            called = name if schedule == "default" else f"{name}, {schedule}"
            run = problem.prepare(kernel, variant)
            if is_right(called, run, problem):
                contestants["tessera", called] = run
                records.append({**dataclasses.asdict(point), "variant": called, "schedule": kernel.schedule})
    if not options.no_peers:
        for name, make in fp8_peers.makers(options.fa3).items():
            try:
                run, find_error = make(problem)
                if is_right(name, run, problem, find_error):
                    contestants[name] = run
            except Exception as error:  # Peers fail in ways of their own; each is optional.
                reason = next(iter(str(error).strip().splitlines()), "")[:160]
                print(f"{name}: left out at {point}: {type(error).__name__}: {reason}", flush=True)
    timings = stopwatch.compare(contestants) if records else {}
    for timing in timings.values():
        timing["tflops"] = point.flops / timing["ms"] / 1e9
    for record in records:
        record["timings"] = {"tessera": timings["tessera", record["variant"]]}
        record["timings"].update((name, timings[name]) for name in fp8_peers.NAMES if name in timings)
    return records


def to_row(record):
    columns = [field.name for field in dataclasses.fields(Point)]
    return common.to_row(record, columns, fp8_peers.NAMES)


def measure_speed(source, options, name, points, variants):
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Attention, e4m3, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    results, records = common.Results(options, name, common.describe_gpu(), method), []
    for point in points:
        for record in measure(point, source, options, stopwatch, variants):
            common.print_row(to_row(record))
            records.append(record)
        results.write([to_row(record) for record in records], records)
    results.finish()


def quantize(source, x, rotation=None):
    """(numbers, scale of each row) of [B, H, S, D], a scale for each block."""
    import torch

    kernel = source.load(of_accuracy("quantize" if rotation is None else "rotate"))
    numbers = torch.empty(x.shape, device="cuda", dtype=torch.float8_e4m3fn)
    scales = torch.empty(x.shape[:3], device="cuda")
    kernel(x, *(() if rotation is None else (rotation,)), numbers, scales)
    return numbers, scales


def attend(source, tensors, scales, rotated=False):
    """O of [B, H, S, D] tensors: in 16 bits, or through 8 with one scale a tensor or a block."""
    import torch

    q, k, v = tensors
    if scales != "16 bits":
        rotation = common.make_rotation(q.shape[3]).half() if rotated else None
        return attend_rounded(source, round_all(source, tensors, scales, rotation), scales, q.shape[3] if rotated else 1)
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda")
    source.load(of_accuracy(scales))(q, k, v, o, lse, q.shape[3] ** -0.5)
    return o


def round_all(source, tensors, scales, rotation=None):
    """(numbers, scale) of Q, K and V, where a scale is a number or one of each row."""
    rotations = (rotation, rotation, None)
    if scales == "blocks":
        return [quantize(source, x, r) for x, r in zip(tensors, rotations)]
    return [round_tensor(x if r is None else x @ r) for x, r in zip(tensors, rotations)]


def attend_rounded(source, rounded, scales, divisor=1, **more):
    """O of what `round_all` made, with more parameters of the kernel."""
    import torch

    (q, q_scale), (k, k_scale), (v, v_scale) = rounded
    o = torch.empty(q.shape, device="cuda", dtype=torch.float16)
    lse = torch.empty(q.shape[:3], device="cuda")
    scale = q.shape[3] ** -0.5 / divisor
    kernel = source.load(of_accuracy(scales, **more))
    if scales == "tensor":
        kernel(q, k, v, o, lse, scale * q_scale * k_scale, v_scale)
    else:
        kernel(q, k, v, o, lse, scale, q_scale, k_scale, v_scale)
    return o


def standard(tensors):
    """O by way of all scores, in 16 bits."""
    q, k, v = tensors
    return (q @ k.mT * q.shape[3] ** -0.5).softmax(-1) @ v


def attend_by_fa3(tensors, directory):
    """O of FlashAttention-3 in e4m3, as it takes one scale a head."""
    import torch

    b, h, s, d = ACCURACY
    problem = Problem.__new__(Problem)
    problem.point, problem.causal = Point(d, "full", s, b, h), False
    rounded = [round_tensor(x.transpose(1, 2).contiguous()) for x in tensors]
    (problem.q, q_scale), (problem.k, k_scale), (problem.v, problem.v_scale) = rounded
    problem.scale = d**-0.5 * q_scale * k_scale
    problem.o = torch.empty(problem.q.shape, device="cuda", dtype=torch.bfloat16)
    problem.lse = torch.empty((b, h, s), device="cuda")
    fp8_peers.fa3(problem, directory)[0]()
    return problem.o.transpose(1, 2)


def make_inputs(name):
    import torch

    tensors = []
    for _ in range(3):
        x = torch.randn(ACCURACY, device="cuda")
        if name == "outliers":
            x += 10 * torch.randn(ACCURACY, device="cuda") * (torch.rand(ACCURACY, device="cuda") < 0.001)
        tensors.append(x.half())
    return tensors


def measure_accuracy(source, options):
    import torch

    torch.manual_seed(0)
    method = f"Root mean square error of O against f64; {list(ACCURACY)}. The paper's numbers are of its own kernels and shape."
    results, rows = common.Results(options, "fp8-accuracy", common.describe_gpu(), method), []
    for name in ("outliers", "normal"):
        tensors = make_inputs(name)
        expected = standard([x.double() for x in tensors])
        outputs = {
            "standard, 16 bits": lambda: standard(tensors),
            "16 bits": lambda: attend(source, tensors, "16 bits"),
            "FlashAttention-3, scales of tensors": lambda: attend_by_fa3(tensors, options.fa3),
            "scales of tensors": lambda: attend(source, tensors, "tensor"),
            "scales of tensors, rotated": lambda: attend(source, tensors, "tensor", rotated=True),
            "blocks": lambda: attend(source, tensors, "blocks"),
            "blocks, rotated": lambda: attend(source, tensors, "blocks", rotated=True),
        }
        for computation, run in outputs.items():
            try:
                error = (run().double() - expected).pow(2).mean().sqrt().item()
            except peers.Unavailable as missing:
                print(f"{computation}: left out: {missing}", flush=True)
                continue
            of_paper = f"{OF_PAPER[computation]:.1e}" if name == "outliers" and computation in OF_PAPER else None
            rows.append({"inputs": name, "computation": computation, "error": f"{error:.2e}", "paper": of_paper})
            common.print_row(rows[-1])
    results.write(rows, rows)
    results.finish()


def make_long_inputs(name):
    """Q, K and V of many keys: normal, or with V above 0, whose sums grow with the keys."""
    import torch

    _, _, _, d = ACCURACY
    q, k, v = (torch.randn(1, LONG_HEADS, s, d, device="cuda") for s in (LONG_QUERIES, LONG_KEYS, LONG_KEYS))
    return [x.half() for x in (q, k, v.abs() if name == "V above 0" else v)]


def widen(rounded):
    """The numbers that were rounded, in f64."""
    return [x.double() * (scale if isinstance(scale, float) else scale[..., None].double()) for x, scale in rounded]


def standard_by_heads(tensors):
    """`standard`, with the scores of one head at a time."""
    import torch

    return torch.cat([standard([x[:, h : h + 1] for x in tensors]) for h in range(LONG_HEADS)], 1)


def measure_long(source, options):
    """The error with many keys: against f64, and against f64 of the numbers that were rounded, which is that of the kernel."""
    import torch

    torch.manual_seed(0)
    shape = [1, LONG_HEADS, LONG_QUERIES, LONG_KEYS, ACCURACY[3]]
    method = (
        f"Root mean square error of O against f64, over that of O itself; B, H, SQ, SK and D are {shape}, {BLOCK} keys in a "
        "block. Error: of the numbers before rounding. Of the kernel: of those that it gets."
    )
    results, rows = common.Results(options, "fp8-accuracy-long", common.describe_gpu(), method), []

    def find_error(o, expected):
        return f"{((o.double() - expected).norm() / expected.norm()).item():.2e}"

    for name in ("normal", "V above 0"):
        tensors = make_long_inputs(name)
        expected = standard_by_heads([x.double() for x in tensors])
        error = find_error(attend(source, tensors, "16 bits"), expected)
        rows.append({"inputs": name, "computation": "16 bits", "error": error, "of the kernel": error})
        for scales in ("tensor", "blocks"):
            rounded = round_all(source, tensors, scales)
            of_rounded = standard_by_heads(widen(rounded))
            for n in PROMOTIONS:
                o = attend_rounded(source, rounded, scales, PROMOTE=n, BN=BLOCK)
                rows.append({
                    "inputs": name, "computation": f"{scales}, {f'promoted every {n}' if n else 'never promoted'}",
                    "error": find_error(o, expected), "of the kernel": find_error(o, of_rounded),
                })  # fmt: skip
    for row in rows:
        common.print_row(row)
    results.write(rows, rows)
    results.finish()


def promoted_points(options):
    return [point for point in points(options) if point.d <= MOST_PROMOTED]


def wanted_configurations(options):
    schedules, parts, wanted = common.wanted_schedules(options), options.parts.split(","), []
    if "accuracy" in parts:
        wanted += [of_accuracy(what) for what in ("16 bits", "tensor", "blocks", "quantize", "rotate")]
        wanted += [of_accuracy(scales, PROMOTE=n, BN=BLOCK) for scales in ("tensor", "blocks") for n in PROMOTIONS]
    for part, found, variants in (("speed", points(options), VARIANTS), ("promote", promoted_points(options), PROMOTED)):
        for point, variant in itertools.product(found if part in parts else (), variants.values()):
            wanted += configurations(point, variant, schedules)
    return wanted


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, wanted_configurations(options))
    source = common.kernels.open_source(options.bundles)
    parts = options.parts.split(",")
    if "accuracy" in parts:
        measure_accuracy(source, options)
        measure_long(source, options)
    if "speed" in parts:
        measure_speed(source, options, "fp8", points(options), VARIANTS)
    if "promote" in parts:
        measure_speed(source, options, "fp8-promote", promoted_points(options), PROMOTED)


if __name__ == "__main__":
    main()
