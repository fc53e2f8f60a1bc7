"""Attention over caches, as engines and programs call it: decoding and prefill over pages of several sizes beside a cache that is
contiguous, parts that do not depend on the batch, caches of 8 bits, and PyTorch's own function by cuDNN.

    graphs  calls over different caches in a CUDA graph: microseconds, and GB/s of the caches
    steps   an eager program whose keys grow by one each step, with the host in it: microseconds of a step

    ./dev bench decoding [--only steps] [--pages 128,16]

bf16. "to contiguous" is the time of the contiguous cache by this one. What fails is a line, and results are written after each.
"""

import functools
import statistics
import time

import common

# (kind, sequences, keys, heads of keys, queries of each)
SHAPES = (
    ("decoding", 64, 4096, 8, 4), ("prefill", 4, 4096, 8, 4), ("decoding", 16, 8192, 1, 8), ("decoding", 1, 32768, 8, 4),
    ("decoding", 128, 2000, 8, 4), ("prefill", 2, 8192, 8, 2),
)  # fmt: skip
STEPS = ((1, 1000, 8, 4), (8, 1000, 8, 4), (1, 8000, 8, 4))
PART, CUDNN = 2048, "cuDNN"


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--only", choices=("graphs", "steps"), help="one of both")
    parser.add_argument("--pages", type=common.numbers, default=(128, 64, 32, 16, 8), help="rows of a page")
    parser.add_argument("--d", type=common.numbers, default=(128, 64), help="head dimensions")
    parser.add_argument("--points", type=int, default=len(SHAPES), help="how many, of each kind")
    return parser.parse_args()


def make_pages(torch, tensor, page, order):
    """Rows [B, N, HK, D] in pages of a cache in the order of a table; what no sequence has is NaN."""
    batch, keys, *rest = tensor.shape
    most = -(-keys // page)
    padded = torch.full((batch, most * page, *rest), float("nan"), device=tensor.device).to(tensor.dtype)
    padded[:, :keys] = tensor
    cache = torch.empty_like(padded).view(batch * most, page, *rest)
    cache[order] = padded.view(cache.shape)
    return cache


def list_forms(torch, shape, d, options):
    """{form: a function that makes a call over a cache of that form}"""
    from tessera.torch import flash_attn_with_kvcache

    kind, batch, keys, heads, group = shape
    queries, causal = (1, False) if kind == "decoding" else (keys, True)
    q = torch.randn(batch, queries, heads * group, d, device="cuda", dtype=torch.bfloat16)
    lengths = torch.full((batch,), keys, dtype=torch.int32, device="cuda")
    named = {"cache_seqlens": lengths, "causal": causal}

    def draw(seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        return [torch.randn(batch, keys, heads, d, device="cuda", dtype=torch.bfloat16, generator=generator) for _ in "kv"]

    def contiguous(seed, **more):
        return functools.partial(flash_attn_with_kvcache, q, *draw(seed), **named, **more)

    def paged(seed, page, dtype=None, **more):
        most = -(-keys // page)
        order = torch.randperm(batch * most, device="cuda")
        caches = [make_pages(torch, x if dtype is None else x.to(dtype), page, order) for x in draw(seed)]
        return functools.partial(flash_attn_with_kvcache, q, *caches, page_table=order.view(batch, most).int(), **named, **more)

    def by_cudnn(seed):
        k, v = (x.transpose(1, 2) for x in draw(seed))
        return functools.partial(attend_by_cudnn, q.transpose(1, 2), k, v, is_causal=causal, enable_gqa=group > 1)

    forms = {"contiguous": contiguous, "contiguous, parts": functools.partial(contiguous, keys_per_part=PART)}
    forms |= {f"pages of {page}": functools.partial(paged, page=page) for page in options.pages}
    if kind == "decoding":
        forms["pages of 128, 8 bits"] = functools.partial(paged, page=128, dtype=torch.float8_e4m3fn)
    return forms if options.no_peers else {**forms, CUDNN: by_cudnn}


def attend_by_cudnn(q, k, v, **named):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **named)


def measure_graphs(torch, shape, d, options):
    """A record of each form."""
    kind, batch, keys, heads, group = shape
    megabytes, first = 4 * batch * keys * heads * d / 1e6, {}
    count = max(2, min(20, int(600 / megabytes) + 1)) if kind == "decoding" else 2
    for form, make in list_forms(torch, shape, d, options).items():
        of_bytes = megabytes / 2 if "8 bits" in form else megabytes
        record = {"kind": kind, "sequences": batch, "keys": keys, "heads": f"{heads * group}:{heads}", "d": d, "form": form, "MB": of_bytes}
        try:
            calls = [make(seed) for seed in range(count)]
            out = common.settle(calls[0])
            out = out.transpose(1, 2) if form == CUDNN else out
            first.setdefault("out", out.clone())
            record["error"] = common.find_error(out, first["out"])
            record["us"] = common.time_graph(calls, options.rounds)
        except Exception as error:  # A form that is not there is no reason to measure nothing else.
            record["failed"] = f"{type(error).__name__}: {str(error)[:160]}"
        else:
            if form == "contiguous":
                first["us"] = record["us"]
            record["GB/s"] = 1000 * of_bytes / record["us"]
            record["to contiguous"] = f"{first['us'] / record['us']:.3f}" if "us" in first else None
        yield record


def measure_steps(torch, shape, d, options):
    """Microseconds of a step whose keys are one more than before, by the host's clock, of batches of 64 steps."""
    from tessera.torch import attention, flash_attn_with_kvcache

    batch, keys, heads, group = shape
    q = torch.randn(batch, heads * group, 1, d, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, heads, keys + 64, d, device="cuda", dtype=torch.bfloat16) for _ in "kv")
    lengths = torch.empty(batch, dtype=torch.int32, device="cuda")
    cached = [x.transpose(1, 2) for x in (q, k, v)]
    ways = {
        "attention": lambda n: attention(q, k[:, :, :n], v[:, :, :n]),
        "flash_attn_with_kvcache": lambda n: flash_attn_with_kvcache(*cached, cache_seqlens=lengths.fill_(n)),
    }
    if not options.no_peers:
        ways[CUDNN] = lambda n: attend_by_cudnn(q, k[:, :, :n], v[:, :, :n], enable_gqa=group > 1)
    for way, step in ways.items():
        record = {"kind": "steps", "sequences": batch, "keys": keys, "heads": f"{heads * group}:{heads}", "d": d, "form": way}
        try:
            common.settle(lambda: step(keys))  # noqa: B023
            times = []
            for _ in range(options.rounds + 1):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for n in range(64):
                    step(keys + n)
                torch.cuda.synchronize()
                times.append(1e6 * (time.perf_counter() - start) / 64)
            record["us"] = statistics.median(times[1:])
        except Exception as error:  # As above.
            record["failed"] = f"{type(error).__name__}: {str(error)[:160]}"
        yield record


def to_row(record):
    columns = ("kind", "sequences", "keys", "heads", "d", "form", "MB", "us", "GB/s", "to contiguous", "error", "failed")
    return {column: record.get(column) for column in columns}


def main():
    options = parse_arguments()
    import torch

    torch.manual_seed(0)
    method = "Attention over caches, bf16, as called: microseconds of a call in a CUDA graph, or of an eager step with the host in it."
    results = common.Results(options, "decoding", common.describe_gpu(), method)
    for kind, shapes, measure in (("steps", STEPS, measure_steps), ("graphs", SHAPES, measure_graphs)):
        for shape in shapes[: options.points] if options.only in (None, kind) else ():
            if kind == "graphs":
                common.call_ahead(
                    [lambda make=make: make(0)() for d in options.d for make in list_forms(torch, shape, d, options).values()]
                )
            for d in options.d:
                for record in measure(torch, shape, d, options):
                    results.add([record], to_row)
                torch.cuda.empty_cache()
    results.finish()


if __name__ == "__main__":
    main()
