"""Attention backward against its peers, bf16, BSHD storage: the whole call, statistics and conversions included.

    paper   the grid of the FlashAttention-3 paper: d = 64 and 128
    dims    the same for d = 96
    gqa     d = 128 with eight query heads for each head of K and V
    wide    d = 256
    narrow  d = 192 with values of 128
    long    one sequence of 32k, d = 128

All have 16k tokens unless --tokens says otherwise (batch = tokens / seqlen) and hidden size 2048 (heads = 2048 / d). FLOPs
are 2.5 times those of the forward pass, 2 q s (d + dv) h b, half of that with a causal mask. Peers: PyTorch's cuDNN and
flash backends, and FlashAttention-3 when --fa3 names a directory with fa3_bwd_d<D>_c<0|1>_fp80.so, which takes as many key
heads as query heads; fa3_det is its deterministic mode, of ..._fp80_det.so. Ours are attention_bwd and, with the same
results in each run, variant "fixed", its sums in a fixed order where Q and V have one width, and "deterministic",
attention_bwd_deterministic. Schedules other than the default are those of attention_bwd, as
"attention_bwd_gradients:cluster=2". --ablation measures the variants of attention_bwd of bench/ablation_backward.json in
place of all ours: where dots run, what products begin at, how sums leave, clusters, and orders of sums. --kernels also
times each kernel of attention_bwd alone. Bundles: test/gpu/build_bundles.py --groups= --extra with what --list writes.
"""

import ctypes
import dataclasses
import itertools
import json
import os

import common
import peers
from common import cases
from tessera._attention import _gradient_kernels  # which common puts on the path

TOKENS, HIDDEN = 16384, 2048
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
PEERS = ("fa3", "fa3_det", "cudnn", "fa2")


@dataclasses.dataclass(frozen=True)
class Group:
    """Problems with these head dimensions of Q and K, and as many query heads for each head of K and V."""

    dims: tuple
    sharing: int = 1
    dv: int | None = None  # that of V, where it is another one
    seqlens: tuple = SEQLENS


GROUPS = {
    "paper": Group((64, 128)),
    "dims": Group((96, 192)),
    "gqa": Group((128,), sharing=8),
    "wide": Group((256,)),
    "narrow": Group((192,), dv=128),
    "long": Group((128,), seqlens=(32768,)),
}


@dataclasses.dataclass(frozen=True)
class Point:
    """A problem to measure. The order of the fields is that of the columns of the table."""

    group: str
    d: int
    mask: str
    seqlen: int
    batch: int
    heads: int
    kv_heads: int

    @property
    def dv(self):
        return GROUPS[self.group].dv or self.d

    @property
    def flops(self):
        full = 5 * self.batch * self.heads * self.seqlen**2 * (self.d + self.dv)
        return full / 2 if self.mask == "causal" else full

    @property
    def shape(self):
        return {"B": self.batch, "H": self.heads, "HK": self.kv_heads, "SQ": self.seqlen, "SK": self.seqlen}


def points(options):
    for name in options.groups.split(","):
        group = GROUPS[name]
        seqlens = options.seqlens or group.seqlens
        for d, mask, seqlen in itertools.product(group.dims, ("full", "causal"), seqlens):
            heads, batch = HIDDEN // d, max(1, options.tokens // seqlen)
            yield Point(name, d, mask, seqlen, batch, heads, heads // group.sharing)


def parse_arguments():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--groups", default=",".join(GROUPS), help="of points (default: all)")
    parser.add_argument("--seqlens", type=common.numbers, help="these sequence lengths in place of the groups' own")
    parser.add_argument("--fa3", metavar="DIR", help="directory of FlashAttention-3 as shared objects")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of a batch (default: %(default)s)")
    common.add_list_option(parser)
    parser.add_argument("--templates", action="store_true", help="measure the kernels with functions of scores too")
    parser.add_argument("--kernels", action="store_true", help="time each kernel of ours alone")
    parser.add_argument("--ablation", action="store_true", help="measure the variants of bench/ablation_backward.json")
    return parser.parse_args()


def forward_configuration(point):
    return cases.attention("bf16", point.d, point.dv, point.mask == "causal", shape=point.shape)


class Problem:
    """Tensors of a point, [B, S, H, D], and the gradients that PyTorch gives."""

    def __init__(self, point):
        import torch

        self.point, self.scale, self.causal = point, point.d**-0.5, point.mask == "causal"
        torch.manual_seed(0)

        def draw(heads, d):
            shape = (point.batch, point.seqlen, heads, d)
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

        self.q, self.k = draw(point.heads, point.d), draw(point.kv_heads, point.d)
        self.v, self.do = draw(point.kv_heads, point.dv), draw(point.heads, point.dv)
        self.leaves = [x.transpose(1, 2).requires_grad_() for x in (self.q, self.k, self.v)]
        self.o = self.lse = None

    def forward(self, source):
        """Makes O and LSE with the kernel of the forward pass."""
        import torch

        point = self.point
        kernel = source.load(forward_configuration(point))
        self.o = torch.empty_like(self.do)
        self.lse = torch.empty((point.batch, point.heads, point.seqlen), device="cuda", dtype=torch.float32)
        views = [x.detach().transpose(1, 2) for x in (self.q, self.k, self.v, self.o)]
        kernel(*views, self.lse, self.scale)

    def gradients(self, backend):
        """A function that runs the backward pass of PyTorch with a backend and returns dQ, dK and dV."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        grouped = {"enable_gqa": True} if self.point.kv_heads != self.point.heads else {}
        with sdpa_kernel(getattr(SDPBackend, backend)):
            out = torch.nn.functional.scaled_dot_product_attention(
                *self.leaves, is_causal=self.causal, scale=self.scale, **grouped
            )
        do = self.do.transpose(1, 2)
        return lambda: torch.autograd.grad(out, self.leaves, do, retain_graph=True)


def fa3(problem, directory, deterministic=False):
    """FlashAttention-3 as shared objects: `fa3_bwd(q, k, v, o, lse, do, dq, dk, dv, f32 sums of dQ, two f32 rows of
    statistics, semaphore of dQ, b, sq, sk, h, hk, scale, multiprocessors, semaphore, stream)`."""
    import torch

    point = problem.point
    suffix = "_det" if deterministic else ""
    path = os.path.join(directory or "", f"fa3_bwd_d{point.d}_c{int(problem.causal)}_fp80{suffix}.so")
    if not directory or point.kv_heads != point.heads or point.dv != point.d or not os.path.exists(path):
        raise peers.Unavailable(f"no {path} for this point")
    function = ctypes.CDLL(os.path.abspath(path)).fa3_bwd
    rounded = (point.seqlen + 639) // 640 * 640
    rows = point.batch * point.heads * rounded
    gradients = [torch.empty_like(x) for x in (problem.q, problem.k, problem.v)]
    scratch = [torch.zeros(n, device="cuda", dtype=torch.float32) for n in (rows * point.d, rows, rows)]
    semaphores = [torch.zeros(n, device="cuda", dtype=torch.int32) for n in (rows, 1024)]
    tensors = [problem.q, problem.k, problem.v, problem.o, problem.lse, problem.do, *gradients, *scratch, semaphores[0]]
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def run():
        if deterministic:
            semaphores[0].zero_()
        if problem.causal:
            semaphores[1].zero_()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        function(*pointers, point.batch, point.seqlen, point.seqlen, point.heads, point.kv_heads,
                 ctypes.c_float(problem.scale), multiprocessors, ctypes.c_void_p(semaphores[1].data_ptr()), stream)  # fmt: skip
        return [x.transpose(1, 2) for x in gradients]

    return run


def worst_error(gradients, expected):
    return max(peers.relative_error(got, want) for got, want in zip(gradients, expected))


def find_peers(problem, options, expected):
    makers = {
        "fa3": lambda _: fa3(problem, options.fa3),
        "fa3_det": lambda _: fa3(problem, options.fa3, deterministic=True),
        "cudnn": lambda _: problem.gradients("CUDNN_ATTENTION"),
        "fa2": lambda _: problem.gradients("FLASH_ATTENTION"),
    }
    wanted = {} if options.no_peers else makers
    found = {
        name: peers.attempt(name, problem.point, make, lambda got: worst_error(got, expected))
        for name, make in wanted.items()
    }
    return {name: run for name, run in found.items() if run}


def template_configurations(point):
    forms = {"template": "attention_variants_bwd", "template-fixed": "attention_variants_bwd_fixed"}
    parameters = {"T": "bf16", "D": point.d, "DV": point.dv, "MASK": "causal" if point.mask == "causal" else "none"}
    return [
        {**cases.configuration(source, parameters, shape=point.shape), "variant": name} for name, source in forms.items()
    ]


def configurations(point, options):
    if options.ablation:
        return ablation_configurations(point)
    found = own_configurations(point, common.wanted_schedules(options))
    return found + template_configurations(point) if options.templates else found


def parameters_of(point):
    parameters = {"T": "bf16", "D": point.d, "CAUSAL": str(point.mask == "causal").lower()}
    return {**parameters, "DV": point.dv} if point.dv != point.d else parameters


def ablation_configurations(point):
    with open(os.path.join(common.ROOT, "bench", "ablation_backward.json")) as file:
        variants = json.load(file)
    return [
        {
            **cases.configuration("attention_bwd", {**parameters_of(point), **v["parameters"]}, v["schedule"], point.shape),
            "variant": v["variant"],
        }
        for v in variants
    ]


def own_configurations(point, schedules):
    parameters = parameters_of(point)
    # As PyTorch and JAX call it.
    group = _gradient_kernels.find_group(point.heads, point.kv_heads)
    groups = {"GROUP": group} if group > 1 and point.mask == "causal" else {}
    found = [cases.configuration("attention_bwd", {**parameters, **groups}, schedule, point.shape) for schedule in schedules]
    form = "attention_bwd_deterministic"
    found.append({**cases.configuration(form, parameters, shape=point.shape), "variant": "deterministic"})
    fixed = cases.configuration("attention_bwd", {**parameters, **groups, "FIXED": "true"}, shape=point.shape)
    found.append({**fixed, "variant": "fixed"})
    return found


def time_kernels(kernel, problem, tensors, stopwatch):
    """Prints the time of each kernel of a sequence alone, on the statistics that one call leaves."""
    import torch

    q, k, v, o, do, lse, dq, dk, dv = tensors
    shift, delta = torch.empty_like(lse), torch.empty_like(lse)
    sums = torch.empty((*lse.shape, problem.point.d), device="cuda")
    loaded, scale = kernel.bundle.kernels, problem.scale
    calls = {
        "statistics": lambda: loaded["attention_bwd_statistics"](o, do, lse, sums, shift, delta, scale),
        "gradients": lambda: loaded["attention_bwd_gradients"](q, k, v, do, shift, delta, dk, dv, scale, sums),
        "convert": lambda: loaded["attention_bwd_convert"](sums, dq, scale),
    }
    for name, timing in stopwatch.compare(calls).items():
        print(f"  {name}: {timing['ms']:.4f} ms", flush=True)


def measure(point, source, options, stopwatch):
    """The records of one point."""
    import torch

    kernels = common.load_kernels(source, configurations(point, options))
    if not kernels:
        return []
    problem = Problem(point)
    problem.forward(source)
    # PyTorch's flash backend has one head dimension.
    reference = "FLASH_ATTENTION" if point.dv == point.d else "EFFICIENT_ATTENTION"
    expected = [x.float() for x in problem.gradients(reference)()]
    views = [x.detach().transpose(1, 2) for x in (problem.q, problem.k, problem.v, problem.o, problem.do)]

    def make_tensors():
        gradients = [torch.full_like(x, float("nan")).transpose(1, 2) for x in (problem.q, problem.k, problem.v)]
        return [*views, problem.lse, *gradients]

    def prepare(kernel):
        tensors = make_tensors()
        return lambda: kernel(*tensors, problem.scale), lambda: worst_error(tensors[6:], expected)

    if options.kernels:
        time_kernels(kernels["default"], problem, make_tensors(), stopwatch)
    rivals = lambda: find_peers(problem, options, expected)  # noqa: E731
    return common.measure_kernels(dataclasses.asdict(point), point.flops, kernels, prepare, rivals, stopwatch)


def to_row(record):
    columns = [field.name for field in dataclasses.fields(Point)]
    return common.to_row(record, columns, PEERS)


def main():
    options = parse_arguments()
    if options.list:
        wanted = [c for p in points(options) for c in (forward_configuration(p), *configurations(p, options))]
        return common.write_list(options, wanted)
    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = (
        "Gradients of attention, bf16, TFLOP/s of 2.5 times the forward's FLOPs (medians of CUDA-event times of the whole "
        "call, L2 flushed, contestants in turns)."
    )
    name = "ablation-backward" if options.ablation else "backward"
    results = common.Results(options, name, common.describe_gpu(), method)
    for point in points(options):
        results.add(measure(point, source, options, stopwatch), to_row)
    results.finish()


if __name__ == "__main__":
    main()
