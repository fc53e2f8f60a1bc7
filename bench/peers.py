"""What attention is measured against: each peer as a function that runs it on an `attention.Problem`.

A function returns O as a tensor [B, H, S, DV]. A peer that cannot be imported, does not take a shape, does not compile
or computes something else is left out, and a line says why.
"""

import argparse
import ctypes
import functools
import itertools
import os
import sys
import types

import common

# Those of DEFAULT need no compilation; FlexAttention and Triton take seconds for each shape.
NAMES = ("fa3", "cudnn", "fa2", "flex", "triton")
DEFAULT = ("fa3", "cudnn", "fa2")

_numbers = itertools.count()


class Unavailable(Exception):
    """Why a peer does not run a problem."""


def add_options(parser):
    parser.add_argument("--fa3", metavar="DIR", help="directory of FlashAttention-3 as shared objects")
    parser.add_argument(
        "--peers",
        default=",".join(DEFAULT),
        type=parse_names,
        metavar="NAME,...",
        help=f"of {', '.join(NAMES)}; the last two are slow to compile and off unless named (default: %(default)s)",
    )
    return parser


def parse_names(text):
    """The names of a list, in the order of NAMES. Raises ArgumentTypeError."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no peer is called {', '.join(unknown)}")
    return tuple(name for name in NAMES if name in wanted)


def wanted(options):
    return () if options.no_peers else options.peers


def find(problem, options, expected):
    """{name: function} of the wanted peers that run `problem` with the result `expected`, [B, H, S, DV] in float."""
    forget_compiled()
    makers = {
        "fa3": functools.partial(fa3_library, directory=options.fa3) if options.fa3 else fa3_module,
        "cudnn": functools.partial(sdpa, backend="CUDNN_ATTENTION"),
        "fa2": functools.partial(sdpa, backend="FLASH_ATTENTION"),
        "flex": flex_plain,
        "triton": triton,
    }
    found = {
        name: attempt(name, problem, makers[name], lambda out: relative_error(out, expected))
        for name in wanted(options)
    }
    return {name: run for name, run in found.items() if run}


def attempt(name, problem, make, error_of):
    """The function that `make` returns for `problem`, or None after a line that says why it does not serve: for
    instance that the error of its output, which `error_of` tells, is too large."""
    try:
        run = make(problem)
        error = error_of(run())
        if not error < common.MAX_ERROR:
            raise Unavailable(f"computes something else (error {error:.2g})")
        return run
    except Exception as error:  # Peers fail in ways of their own; each is optional.
        reason = next(iter(str(error).strip().splitlines()), "")[:160]
        print(f"{name}: left out at {problem}: {type(error).__name__}: {reason}", flush=True)
        return None


def relative_error(out, expected):
    return ((out.float() - expected).norm() / expected.norm()).item()


def sdpa(problem, backend):
    """PyTorch's scaled_dot_product_attention with one backend."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = problem.transposed()
    backend = getattr(SDPBackend, backend)
    grouped = {"enable_gqa": True} if problem.kv_heads != problem.heads else {}

    def run():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=problem.causal, scale=problem.scale, **grouped
            )

    return run


def fa3_module(problem):
    """FlashAttention-3 as its Python package."""
    from flash_attn_interface import flash_attn_func

    def run():
        result = flash_attn_func(problem.q, problem.k, problem.v, softmax_scale=problem.scale, causal=problem.causal)
        out = result[0] if isinstance(result, tuple) else result  # Some releases return the logsumexp, too.
        return out.transpose(1, 2)

    return run


def fa3_library(problem, directory):
    """FlashAttention-3 as `fa3_fwd(q, k, v, o, lse, batch, seqlen_q, seqlen_k, heads, kv_heads, scale (float),
    multiprocessors, semaphore, null, null, null, stream)` over BSHD tensors in bf16, DV = D, in a shared object for
    each D and mask."""
    import torch

    path = os.path.join(directory, f"fa3_fwd_d{problem.d}_c{int(problem.causal)}_fp80.so")
    if problem.dv != problem.d or problem.dtype != torch.bfloat16:
        raise Unavailable("the shared objects take bf16 and DV = D")
    if not os.path.exists(path):
        raise Unavailable(f"no {path}")
    function = ctypes.CDLL(os.path.abspath(path)).fa3_fwd
    out, lse = torch.empty_like(problem.q), torch.empty_like(problem.lse)
    semaphore = torch.zeros(1024, dtype=torch.int32, device="cuda")
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    b, sq, sk, h, hk = problem.batch, problem.queries, problem.seqlen, problem.heads, problem.kv_heads
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (problem.q, problem.k, problem.v, out, lse)]
    null = ctypes.c_void_p(0)

    def run():
        if problem.causal:
            semaphore.zero_()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        function(*pointers, b, sq, sk, h, hk, ctypes.c_float(problem.scale), multiprocessors,
                 ctypes.c_void_p(semaphore.data_ptr()), null, null, null, stream)  # fmt: skip
        return out.transpose(1, 2)

    return run


def flex_plain(problem):
    return flex(problem, sees=(lambda b, h, r, c: c <= r) if problem.causal else None)


def flex(problem, score=None, sees=None, makes_list=False):
    """FlexAttention, compiled: `score(s, b, h, r, c)` is of a score, `sees(b, h, r, c)` masks; both optional. With
    `makes_list` each call makes the list of blocks, by a function that is compiled too; without it is made before."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    scale, grouped = problem.scale, problem.kv_heads != problem.heads

    def attend(q, k, v, blocks):
        return flex_attention(q, k, v, score_mod=score, block_mask=blocks, scale=scale, enable_gqa=grouped)

    # PyTorch keeps what it compiled by the code object and gives up after eight for one: this one is not shared. With
    # fullgraph it raises instead of running uncompiled.
    code = attend.__code__.replace(co_name=f"attend_{next(_numbers)}")
    function = torch.compile(
        types.FunctionType(code, globals(), code.co_name, None, attend.__closure__), dynamic=False, fullgraph=True
    )
    make_list = torch.compile(create_block_mask) if makes_list else create_block_mask
    q, k, v = problem.transposed()

    def find_blocks():
        return None if sees is None else make_list(sees, None, None, problem.queries, problem.seqlen)

    kept = None if makes_list else find_blocks()

    def run():
        return function(q, k, v, find_blocks() if makes_list else kept)

    run()
    refuse_unfused(run, problem)
    return run


def refuse_unfused(run, problem):
    """Raises Unavailable when a call takes the memory of the whole matrix of scores: nobody means that by a fused
    attention, and its time says nothing."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    taken = torch.cuda.max_memory_allocated() - before
    # In f32, and its exponentials in f32 or the type of the inputs.
    if taken >= 6 * problem.batch * problem.heads * problem.queries * problem.seqlen:
        raise Unavailable(f"is not fused: a call takes {taken >> 20} MiB")


def forget_compiled():
    """Drops what PyTorch compiled for FlexAttention so far: shapes never come back, and it would fill the memory."""
    if "torch._dynamo" in sys.modules:  # Loaded by the first torch.compile.
        sys.modules["torch._dynamo"].reset()


def triton(problem):
    """Our own kernel in Triton, see triton_attention.py."""
    import triton_attention

    sizes = (problem.d, problem.dv)
    if problem.queries != problem.seqlen or problem.seqlen % 128 or any(size & (size - 1) for size in sizes):
        raise Unavailable("takes as many queries as keys, a multiple of 128, and head dimensions that are powers of two")
    return triton_attention.contestant(problem.q, problem.k, problem.v, problem.causal, problem.scale)
