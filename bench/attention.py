"""Attention forward against its peers, on the grid of the FlashAttention-3 paper.

16k tokens in all (batch = 16384 / seqlen), hidden size 2048 (heads = 2048 / d), bf16, BSHD storage. FLOPs are
4 s^2 d h b, half of that with a causal mask. Peers: PyTorch's cuDNN and flash backends, and FlashAttention-3
when flash_attn_interface can be imported or --fa3 names a directory with fa3_fwd_d<D>_c<0|1>_fp80.so.
"""

import ctypes
import glob
import math
import os


import common
from common import cases

TOKENS, HIDDEN = 16384, 2048
PEERS = ("fa3", "cudnn", "fa2")


def parse_arguments():
    parser = add_peer_options(common.argument_parser(__doc__))
    parser.add_argument("--d", default="64,128,256", help="head dimensions")
    parser.add_argument("--seqlens", default="512,1024,2048,4096,8192,16384")
    parser.add_argument("--masks", default="full,causal")
    parser.add_argument("--dtype", default="bf16", choices=cases.DTYPES)
    return parser.parse_args()


def add_peer_options(parser):
    parser.add_argument("--fa3", metavar="DIR", help="directory of FlashAttention-3 as shared objects")
    return parser


class Problem:
    """Tensors of one point of the grid, or of another batch and number of heads."""

    def __init__(self, d, seqlen, causal, dtype, batch=None, heads=None):
        import torch

        self.d, self.seqlen, self.causal = d, seqlen, causal
        self.batch, self.heads = batch or max(1, TOKENS // seqlen), heads or HIDDEN // d
        self.scale = 1 / math.sqrt(d)
        self.dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
        shape = (self.batch, seqlen, self.heads, d)
        self.q, self.k, self.v = (torch.randn(shape, device="cuda", dtype=self.dtype) for _ in range(3))
        self.lse = torch.empty((self.batch, self.heads, seqlen), device="cuda")
        self.flops = 4 * seqlen**2 * d * self.heads * self.batch / (2 if causal else 1)

    def transposed(self):
        return (tensor.transpose(1, 2) for tensor in (self.q, self.k, self.v))


def tessera_contestant(kernel, problem):
    import torch

    out = torch.full_like(problem.q, float("nan"))
    q, k, v = problem.transposed()
    o = out.transpose(1, 2)
    return lambda: kernel(q, k, v, o, problem.lse, problem.scale), out


def sdpa_contestant(problem, backend):
    """PyTorch's scaled_dot_product_attention with one backend, None when that does not run here."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = problem.transposed()
    backend = getattr(SDPBackend, backend)

    def run():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=problem.causal, scale=problem.scale
            )

    try:
        run()
    except RuntimeError as error:
        print(f"{backend.name}: {str(error).splitlines()[0]}", flush=True)
        return None
    return run


def fa3_module_contestant(problem):
    try:
        from flash_attn_interface import flash_attn_func
    except ImportError:
        return None
    return lambda: flash_attn_func(problem.q, problem.k, problem.v, softmax_scale=problem.scale, causal=problem.causal)


def fa3_library_contestant(problem, directory):
    """FlashAttention-3 as `fa3_fwd(q, k, v, o, lse, batch, seqlen_q, seqlen_k, heads, kv_heads, scale (float),
    multiprocessors, semaphore, null, null, null, stream)` over BSHD tensors."""
    import torch

    path = os.path.join(directory, f"fa3_fwd_d{problem.d}_c{int(problem.causal)}_fp80.so")
    if not os.path.exists(path):
        print(
            f"FlashAttention-3: no {path}; there are {sorted(glob.glob(os.path.join(directory, '*.so')))}", flush=True
        )
        return None
    function = ctypes.CDLL(os.path.abspath(path)).fa3_fwd
    out, lse = torch.empty_like(problem.q), torch.empty_like(problem.lse)
    semaphore = torch.zeros(1024, dtype=torch.int32, device="cuda")
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    b, s, h, _ = problem.q.shape
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (problem.q, problem.k, problem.v, out, lse)]
    null = ctypes.c_void_p(0)

    def run():
        if problem.causal:
            semaphore.zero_()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        function(*pointers, b, s, s, h, h, ctypes.c_float(problem.scale), multiprocessors,
                 ctypes.c_void_p(semaphore.data_ptr()), null, null, null, stream)  # fmt: skip

    return run


def peers(problem, options):
    found = {"cudnn": sdpa_contestant(problem, "CUDNN_ATTENTION"), "fa2": sdpa_contestant(problem, "FLASH_ATTENTION")}
    found["fa3"] = fa3_library_contestant(problem, options.fa3) if options.fa3 else fa3_module_contestant(problem)
    return {name: function for name, function in found.items() if function}


def prepare(problem):
    """What `common.measure_kernels` wants, with errors against PyTorch's flash backend."""
    import torch

    q, k, v = problem.transposed()
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=problem.causal, scale=problem.scale)
    expected = expected.transpose(1, 2).float()

    def prepare_kernel(kernel):
        run, out = tessera_contestant(kernel, problem)
        return run, lambda: ((out.float() - expected).norm() / expected.norm()).item()

    return prepare_kernel


def measure(kernels, problem, options, stopwatch):
    """The records of one point of the grid."""
    point = {"d": problem.d, "mask": "causal" if problem.causal else "full", "seqlen": problem.seqlen,
             "batch": problem.batch, "heads": problem.heads}  # fmt: skip
    return common.measure_kernels(
        point,
        problem.flops,
        kernels,
        prepare(problem),
        lambda: {} if options.no_peers else peers(problem, options),
        stopwatch,
    )


def to_row(record):
    return common.to_row(record, ("d", "mask", "seqlen"), PEERS)


def main():
    options = parse_arguments()
    import torch

    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    schedules = common.wanted_schedules(options)
    hidden = ("schedule",) if len(schedules) == 1 else ()
    records, host = [], None
    for d in map(int, options.d.split(",")):
        for mask in options.masks.split(","):
            kernels = common.load_kernels(
                source, [cases.attention(options.dtype, d, d, mask == "causal", schedule) for schedule in schedules]
            )
            for seqlen in map(int, options.seqlens.split(",")) if kernels else ():
                torch.manual_seed(0)
                problem = Problem(d, seqlen, mask == "causal", options.dtype)
                measured = measure(kernels, problem, options, stopwatch)
                for record in measured:
                    common.print_row(to_row(record), *hidden)
                records += measured
                right = [record["variant"] for record in measured if not record.get("wrong")]
                if host is None and right:
                    host = host_microseconds(kernels[right[0]])
    machine = dict(common.describe_gpu(), host_us_per_call=host)
    method = (
        f"Attention forward, {options.dtype}, TFLOP/s (medians of CUDA-event times, L2 flushed, contestants in turns)."
    )
    common.write_results(options, "attention", machine, method, [to_row(record) for record in records], records)


def host_microseconds(kernel):
    """Of a call on a tensor so small that the host is what takes time."""
    import torch

    d = int(kernel.parameters["D"])
    q, k, v, o = (torch.zeros((1, 1, 1, d), device="cuda", dtype=torch.bfloat16) for _ in range(4))
    if kernel.description["arguments"][0]["element"] == "f16":
        q, k, v, o = (tensor.half() for tensor in (q, k, v, o))
    lse = torch.empty((1, 1, 1), device="cuda")
    return round(common.host_microseconds(lambda: kernel(q, k, v, o, lse, 1.0)), 2)


if __name__ == "__main__":
    main()
