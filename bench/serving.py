"""Serving calls beside what bounds them, and beside cuDNN and FlashAttention-3.

    decoding  the last queries of sequences over contiguous caches of 16 bits, of all groups of heads
    bytes     the same over caches of e4m3
    lengths   lengths drawn from 1 to the room of a cache, beside equal ones of the same sum; and short ones, beside a cache of their size
    append    new keys and values into a cache, rotated, one token a sequence
    prompts   packed prompts beside `attention` of as many equal ones, and beside FlashAttention-3's packed function

    ./dev bench serving [--only decoding,prompts]

bf16. Decoding and `append` are microseconds of a call in a CUDA graph, decoding over caches that the L2 has not. The floor is a
kernel that only reads the same bytes, of `append` new keys and values (probes/flat_reads.cu, where nvcc is found). Prompts are
TFLOP/s, timed in turns. A ratio is a peer's time by ours, or that of the floor. What fails is a line, and results are written
after each.
"""

import contextlib
import ctypes
import functools
import os
import shutil
import statistics
import subprocess
import tempfile

with contextlib.suppress(ImportError):
    import tessera  # noqa: F401  That of the installed package, where there is one, and not of this checkout.

import common
from decoding import attend_by_cudnn

KINDS = ("decoding", "bytes", "lengths", "append", "prompts")
# Sequences, keys, heads of keys, query heads of each, head dimension, queries.
DECODING = (
    (64, 4096, 8, 4, 128, 1), (128, 2048, 8, 4, 128, 1), (32, 8192, 8, 4, 128, 1), (16, 16384, 8, 4, 128, 1), (256, 1024, 8, 4, 128, 1),
    (64, 8192, 8, 8, 128, 1), (16, 8192, 8, 8, 128, 1), (1, 131072, 8, 4, 128, 1), (4, 32768, 8, 4, 128, 1),
    (1, 8192, 8, 4, 128, 1), (1, 32768, 8, 4, 128, 1), (4, 4096, 8, 4, 128, 1), (8, 4096, 8, 4, 128, 1), (16, 2048, 8, 4, 128, 1),
    (32, 1024, 8, 4, 128, 1), (16, 8192, 1, 8, 128, 1),
    (64, 4096, 32, 1, 128, 1), (64, 4096, 8, 3, 128, 1), (64, 4096, 8, 5, 128, 1), (64, 4096, 8, 6, 128, 1), (64, 4096, 4, 7, 128, 1),
    (64, 4096, 8, 4, 128, 4), (64, 4096, 8, 4, 128, 16), (16, 8192, 8, 8, 128, 2),
    (64, 4096, 4, 7, 128, 4), (64, 4096, 8, 5, 128, 4), (64, 4096, 8, 3, 128, 16), (64, 4096, 8, 6, 128, 2), (1, 8192, 4, 7, 128, 4),
    (64, 4096, 8, 4, 64, 1), (64, 8192, 8, 8, 64, 1), (16, 8192, 8, 8, 64, 1), (1, 131072, 8, 4, 64, 1), (64, 4096, 8, 4, 64, 4),
    (64, 4096, 8, 2, 256, 1), (16, 8192, 8, 2, 256, 1), (1, 32768, 4, 2, 256, 1), (64, 4096, 8, 2, 256, 4),
)  # fmt: skip
BYTES = (
    (64, 4096, 8, 4, 128, 1), (128, 2048, 8, 4, 128, 1), (16, 8192, 8, 4, 128, 1), (64, 8192, 8, 4, 128, 1), (1, 131072, 8, 4, 128, 1),
    (64, 4096, 8, 4, 64, 1), (128, 2048, 8, 4, 64, 1), (16, 8192, 8, 4, 64, 1), (64, 4096, 8, 4, 192, 1), (64, 4096, 8, 2, 256, 1),
    (64, 4096, 8, 4, 128, 4), (64, 4096, 8, 8, 128, 4), (64, 4096, 4, 7, 128, 4), (64, 4096, 8, 4, 64, 4), (64, 4096, 8, 2, 256, 4),
)  # fmt: skip
# Sequences, room, heads of keys, query heads of each, head dimension; and the part of the room that short ones have.
LENGTHS = (
    (64, 8192, 8, 4, 128), (32, 8192, 8, 4, 128), (16, 16384, 8, 4, 128), (8, 32768, 8, 4, 128), (4, 32768, 8, 4, 128),
    (16, 8192, 1, 8, 128), (8, 32768, 8, 4, 64), (128, 4096, 8, 4, 64), (4, 32768, 8, 2, 256),
)  # fmt: skip
SHORT = ((1, 131072, 8, 4, 128), (8, 32768, 8, 4, 128), (4, 4096, 8, 4, 128), (1, 131072, 8, 4, 64), (1, 131072, 4, 2, 256))
PARTS_OF_ROOM = (2, 8, 32)
APPEND = (1, 16, 64, 256)
# Name, and lengths; or how many, from and to where they are drawn.
PROMPTS = (
    ("32 x 512", (512,) * 32), ("16 x 768", (768,) * 16), ("8 x 1024", (1024,) * 8), ("16 x 1024", (1024,) * 16),
    ("4 x 4096", (4096,) * 4), ("2 x 8192", (8192,) * 2),
    ("8192 and 64 x 256", (8192, *(256,) * 64)), ("16384 and 127 x 1", (16384, *(1,) * 127)),
    ("64 x U(16, 512)", (64, 16, 512)), ("32 x U(400, 512)", (32, 400, 512)), ("16 x U(64, 4096)", (16, 64, 4096)),
)  # fmt: skip
HEADS = ((32, 8, 128), (16, 16, 128), (32, 8, 64))


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--only", default=",".join(KINDS), help="of these, separated by commas (default: %(default)s)")
    options = parser.parse_args()
    options.only = [kind.strip() for kind in options.only.split(",")]
    if unknown := [kind for kind in options.only if kind not in KINDS]:
        parser.error(f"--only: {', '.join(unknown)} is none of {', '.join(KINDS)}")
    return options


def find_floor(torch):
    """A function that only reads k and v, or None."""
    compiler = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(compiler):
        return None
    source = os.path.join(common.ROOT, "bench", "probes", "flat_reads.cu")
    built = os.path.join(tempfile.mkdtemp(), "flat_reads.so")
    flags = "-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-shared", "-Xcompiler", "-fPIC"
    subprocess.run([compiler, *flags, "-o", built, source], check=True)
    library = ctypes.CDLL(built)
    blocks = 2 * torch.cuda.get_device_properties(0).multi_processor_count

    def read(k, v):
        pointers = (ctypes.c_void_p(x.data_ptr()) for x in (k, v))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if library.flatRead(*pointers, ctypes.c_longlong(k.numel() * k.element_size()), blocks, stream):
            raise RuntimeError("reading failed")
        return k

    return read


def attend_by_fa3(q, k, v, lengths):
    import flash_attn_interface

    return flash_attn_interface.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, causal=True)


def draw(torch, *shape, dtype=None):
    x = torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    return x if dtype is None else x.to(dtype)


def time_ways(ways, count, options):
    """{name: microseconds} of functions of the number of a cache, in turns. What fails is a line."""
    graphs, times = {}, {}
    for name, way in ways.items():
        try:
            calls = [functools.partial(way, number) for number in range(count)]
            common.settle(calls[0])
            graphs[name] = common.capture(calls)
        except Exception as error:  # Peers fail in ways of their own; each is optional.
            print(f"{name}: left out: {type(error).__name__}: {str(error)[:160]}", flush=True)
    # Memory that was just allocated is slower at first.
    for turn in range(2 + options.rounds):
        for name, graph in graphs.items():
            times.setdefault(name, []).append(common.time_replay(graph) / count)
    return {name: statistics.median(own[2:]) for name, own in times.items()}


def measure_decoding(torch, options, floor, shapes, dtype=None):
    from tessera.torch import flash_attn_with_kvcache

    def prepare(batch, keys, heads, group, d, queries, count):
        q = draw(torch, batch, queries, heads * group, d)
        lengths = torch.full((batch,), keys, dtype=torch.int32, device="cuda")
        caches = [[draw(torch, batch, keys, heads, d, dtype=dtype) for _ in "kv"] for _ in range(count)]
        ways = {"us": lambda i: flash_attn_with_kvcache(q, *caches[i], cache_seqlens=lengths, causal=True)}
        if floor is not None:
            ways["floor"] = lambda i: floor(*caches[i])
        if dtype is None and not options.no_peers:
            if queries == 1:
                turned = q.transpose(1, 2)
                ways["cuDNN"] = lambda i: attend_by_cudnn(turned, *(x.transpose(1, 2) for x in caches[i]), enable_gqa=group > 1)
            ways["fa3"] = lambda i: attend_by_fa3(q, *caches[i], lengths)
        return ways

    common.call_ahead([lambda shape=shape: prepare(*shape, 1)["us"](0) for shape in shapes])
    torch.cuda.empty_cache()
    for batch, keys, heads, group, d, queries in shapes:
        size = 4 * batch * keys * heads * d / (1 if dtype is None else 2) / 1e6
        count = max(2, min(20, int(600 / size) + 1))
        ways = prepare(batch, keys, heads, group, d, queries, count)
        times = time_ways(ways, count, options)
        point = {"sequences": batch, "keys": keys, "heads": f"{heads * group}:{heads}", "d": d, "queries": queries, "MB": size}
        yield {**point, **times}
        del ways
        torch.cuda.empty_cache()


def make_decoding(torch, point, room, lengths, count):
    """A function of the number of a cache, in which sequences have `room`."""
    from tessera.torch import flash_attn_with_kvcache

    batch, heads, group, d = point
    q = draw(torch, batch, 1, heads * group, d)
    caches = [[draw(torch, batch, room, heads, d) for _ in "kv"] for _ in range(count)]
    return lambda number: flash_attn_with_kvcache(q, *caches[number], cache_seqlens=lengths, causal=True)


def measure_lengths(torch, options):
    for batch, room, heads, group, d in LENGTHS:
        lengths = torch.randint(1, room + 1, (batch,), generator=torch.Generator().manual_seed(1))
        given = {"us": lengths, "equal": torch.full((batch,), int(lengths.sum()) // batch)}
        size, point = 4 * int(lengths.sum()) * heads * d / 1e6, (batch, heads, group, d)
        count = max(2, min(20, int(600 / size) + 1))
        ways = {name: make_decoding(torch, point, room, own.int().cuda(), count) for name, own in given.items()}
        shape = {"sequences": batch, "keys": f"U(1, {room})", "heads": f"{heads * group}:{heads}", "d": d, "MB": size}
        yield {**shape, **time_ways(ways, count, options)}
        del ways
        torch.cuda.empty_cache()
    for (batch, room, heads, group, d), part in ((x, y) for x in SHORT for y in PARTS_OF_ROOM):
        keys = room // part
        lengths, size = torch.full((batch,), keys, device="cuda").int(), 4 * batch * keys * heads * d / 1e6
        count = max(2, min(20, int(200 / size) + 1))
        rooms = {"us": room, "equal": keys}
        ways = {name: make_decoding(torch, (batch, heads, group, d), own, lengths, count) for name, own in rooms.items()}
        shape = {"sequences": batch, "keys": f"{keys} of {room}", "heads": f"{heads * group}:{heads}", "d": d, "MB": size}
        yield {**shape, **time_ways(ways, count, options)}
        del ways
        torch.cuda.empty_cache()


def measure_append(torch, options, floor):
    from tessera.torch import kv_append

    heads, group, d, rows = 8, 4, 128, 16
    table = [draw(torch, 8192, d // 2) for _ in "cs"]
    for batch in APPEND:
        caches = [draw(torch, 4096, rows, heads, d) for _ in "kv"]
        new, q = [draw(torch, batch, heads, d) for _ in "kv"], draw(torch, batch, heads * group, d)
        slots = torch.randperm(4096 * rows, device="cuda")[:batch].int()
        places = torch.randint(0, 8192, (batch,), device="cuda").int()
        ways = {"us": lambda i: kv_append(*new, *caches, slots, q=q, cos=table[0], sin=table[1], positions=places)}  # noqa: B023
        if floor is not None:
            ways["floor"] = lambda i: floor(*new)  # noqa: B023
        yield {"sequences": batch, "heads": f"{heads * group}:{heads}", "d": d, **time_ways(ways, 20, options)}


def measure_prompts(torch, options, stopwatch):
    from tessera.torch import attention, flash_attn_varlen_func

    for (heads, of_keys, d), (name, lengths) in ((x, y) for x in HEADS for y in PROMPTS):
        if "U(" in name:
            count, least, most = lengths
            lengths = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(1)).tolist()
        starts = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
        total, most = sum(lengths), max(lengths)
        q, k, v = (draw(torch, total, n, d) for n in (heads, of_keys, of_keys))
        ways = {"tessera": lambda: flash_attn_varlen_func(q, k, v, starts, starts, most, most, causal=True)}  # noqa: B023
        if len(set(lengths)) == 1:
            dense = [x.view(len(lengths), most, -1, d) for x in (q, k, v)]
            ways["dense"] = lambda: attention(*dense, causal=True, layout="BSHD").flatten(0, 1)  # noqa: B023
        if not options.no_peers:
            ways["fa3"] = lambda: attend_packed_by_fa3(q, k, v, starts, most)  # noqa: B023
        ready, expected = {}, None
        for way, call in ways.items():
            try:
                out = common.settle(call)
                expected = out if expected is None else expected
                if common.find_error(out, expected) < common.MAX_ERROR:
                    ready[way] = call
            except Exception as error:  # As above.
                print(f"{way}: left out at {name}: {type(error).__name__}: {str(error)[:160]}", flush=True)
        timings = stopwatch.compare(ready)
        flops = 2 * heads * d * sum(n * n for n in lengths)
        yield {
            "prompts": name, "heads": f"{heads}:{of_keys}", "d": d,
            **{way: flops / timing["ms"] / 1e9 for way, timing in timings.items()},
            "MHz": timings["tessera"]["mhz"],
        }  # fmt: skip


def attend_packed_by_fa3(q, k, v, starts, most):
    import flash_attn_interface

    results = flash_attn_interface.flash_attn_varlen_func(q, k, v, starts, starts, most, most, causal=True)
    return results[0] if isinstance(results, tuple) else results


def to_row(record):
    columns = (
        "kind", "prompts", "sequences", "keys", "heads", "d", "queries", "MB", "us", "equal", "floor", "cuDNN", "fa3", "tessera", "dense",
    )  # fmt: skip
    row = {column: record.get(column) for column in columns}
    for name in ("floor", "cuDNN", "fa3", "equal", "dense"):
        pair = (record.get(name), record.get("us")) if "us" in record else (record.get("tessera"), record.get(name))
        row[f"to {name}"] = f"{pair[0] / pair[1]:.3f}" if all(pair) else None
    return row


def main():
    options = parse_arguments()
    import torch

    torch.manual_seed(0)
    method = "Serving calls, bf16: microseconds in a CUDA graph, or TFLOP/s of prompts, and peers' times by ours."
    results = common.Results(options, "serving", common.describe_gpu(), method)
    floor = find_floor(torch)
    measured = {
        "decoding": lambda: measure_decoding(torch, options, floor, DECODING),
        "bytes": lambda: measure_decoding(torch, options, floor, BYTES, torch.float8_e4m3fn),
        "lengths": lambda: measure_lengths(torch, options),
        "append": lambda: measure_append(torch, options, floor),
        "prompts": lambda: measure_prompts(torch, options, common.Stopwatch(options.milliseconds, options.rounds)),
    }
    for kind in options.only:
        for record in measured[kind]():
            results.add([{"kind": kind, **record}], to_row)
    results.finish()


if __name__ == "__main__":
    main()
