"""Latent attention over a cache, as it is called, beside FlashMLA (package `sgl-flash-mla`) where it can be imported: microseconds,
GB/s of the cache and TFLOP/s. bf16.

    pages   decoding over pages of 64 rows and of fewer, in random order: by equal shares, which are made before, as for all layers of
            a step ("shares"), by shares that each call makes ("own shares"), and by parts of 2048 keys, whatever the batch ("parts")
    lists   rows that lists name in any order: of 576 numbers, of 512 numbers that are key and value, and of 656 bytes

    ./dev bench latent [--only lists] [--pages 64,16]

A graph has several launches over different rows of 1.2 GB, so that the L2 cache has none of them. A product of Q and the cache
counts 2 x 576 operations for each head, key and query, and one of P 2 x 512. What fails is a line, and results are written after each.
"""

import contextlib
import random

with contextlib.suppress(ImportError):
    import tessera  # noqa: F401  That of the installed package, where there is one, and not of this checkout.

import common

POINTS = (
    (128, 4096, 128, 1), (64, 8192, 64, 1), (64, 8192, 16, 4), (1, 65536, 128, 1), (128, 8192, 128, 2), (16, 16384, 128, 1),
    (64, (64, 8192), 128, 1), (32, 4096, 128, 1), (8, 4096, 128, 1), (1, 8192, 128, 1), (64, 8192, 32, 1), (128, 4096, 16, 1),
    (4, 8192, 16, 1), (1, 131072, 16, 1), (4, 8192, 8, 1),
)  # fmt: skip
# (tokens, rows of a list, heads)
LISTS = ((128, 2048, 128), (16, 2048, 128), (1024, 2048, 128), (4096, 2048, 128), (16, 2048, 16))
ROWS, PART, SCALE = 1 << 20, 2048, 576**-0.5
PEER = "FlashMLA"


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--only", choices=("pages", "lists"), help="one of both")
    parser.add_argument("--pages", type=common.numbers, default=(64, 32, 16), help="rows of a page")
    parser.add_argument("--points", type=int, default=len(POINTS), help="how many, of each kind")
    return parser.parse_args()


def count_calls(megabytes):
    return max(2, min(16, int(600 / megabytes) + 1))


def make_tables(torch, page, batch, most, count):
    """Tables of pages for calls in a row, of which no two have pages in common."""
    order = torch.randperm(ROWS // page, device="cuda").int().repeat(-(-count * batch * most * page // ROWS))
    return list(order[: count * batch * most].view(count, batch, most))


def list_ways(torch, seqlens, q, cache):
    """{what a way is called: a function of a table}"""
    from tessera.torch import get_mla_metadata, mla_with_kvcache

    named = {"softmax_scale": SCALE, "causal": True}
    shares = get_mla_metadata(seqlens, q.shape[1] * q.shape[2])
    return {
        "shares": lambda table: mla_with_kvcache(q, cache, table, seqlens, 512, *shares, **named),
        "own shares": lambda table: mla_with_kvcache(q, cache, table, seqlens, 512, **named),
        "parts": lambda table: mla_with_kvcache(q, cache, table, seqlens, 512, keys_per_part=PART, **named),
    }


def measure_pages(torch, rows, point, options, peer):
    """The record of a point by each page and way."""
    batch, keys, heads, queries = point
    lengths = [keys] * batch if isinstance(keys, int) else [random.randint(*keys) for _ in range(batch)]
    megabytes, count = sum(lengths) * 1152 / 1e6, count_calls(sum(lengths) * 1152 / 1e6)
    seqlens = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    q = torch.randn(batch, queries, heads, 576, device="cuda", dtype=torch.bfloat16)
    about = {"kind": "pages", "sequences": batch, "keys": str(keys), "heads": heads, "queries": queries, "MB": megabytes}
    operations = 2 * sum(lengths) * queries * heads * (576 + 512)
    found = []
    for page in options.pages:
        cache, tables = rows.view(-1, page, 1, 576), make_tables(torch, page, batch, -(-max(lengths) // page), count)
        ways = list_ways(torch, seqlens, q, cache)
        if peer and page == 64:
            metadata, _ = peer.get_mla_metadata()
            ways[PEER] = lambda table, cache=cache, metadata=metadata: peer.flash_mla_with_kvcache(
                q, cache, table, seqlens, 512, metadata, None, SCALE, True, use_legacy=True
            )
        found.append(({**about, "page": page}, ways, tables, operations))
    yield from time_all(found, options)


def measure_lists(torch, rows, point, options, peer):
    """The record of a point by rows of each kind, which one of 512 numbers has of its own."""
    from tessera.torch import mla_sparse

    count, topk, heads = point
    found = []
    of_512 = rows.flatten()[: ROWS * 512].view(ROWS, 1, 512)
    forms = {"576 numbers": (rows, 576, 1152), "512 numbers": (of_512, 512, 1024), "656 bytes": (make_bytes(torch, rows), 576, 656)}
    for form, (kv, width, size) in forms.items():
        q = torch.randn(count, heads, width, device="cuda", dtype=torch.bfloat16)
        megabytes = count * topk * size / 1e6
        lists = [torch.randint(ROWS, (count, 1, topk), device="cuda", dtype=torch.int32) for _ in range(count_calls(megabytes))]
        ways = {
            "lists": lambda numbers, q=q, kv=kv: mla_sparse(q, kv, numbers, SCALE),
            "parts": lambda numbers, q=q, kv=kv: mla_sparse(q, kv, numbers, SCALE, keys_per_part=1024),
        }
        if peer and hasattr(peer, "flash_mla_sparse_fwd") and form == "576 numbers":
            ways[PEER] = lambda numbers, q=q, kv=kv: peer.flash_mla_sparse_fwd(q, kv, numbers, SCALE)
        about = {"kind": "lists", "sequences": count, "keys": str(topk), "heads": heads, "queries": 1, "MB": megabytes, "page": form}
        found.append((about, ways, lists, 2 * count * topk * heads * (width + 512)))
    yield from time_all(found, options)


def make_bytes(torch, rows):
    """Rows of 656 bytes: 512 numbers of 8 bits, what each 128 of them are multiplied by, and 64 of 16 bits."""
    numbers, rotary = rows.split([512, 64], -1)
    units = torch.rand(*rows.shape[:-1], 4, device="cuda") + 0.5
    parts = numbers.to(torch.float8_e4m3fn), units, rotary.contiguous()
    return torch.cat([part.view(torch.uint8) for part in parts], -1)


def time_all(found, options):
    """The records of what `time_ways` takes, whose kernels are compiled first."""
    common.call_ahead([lambda call=call, own=own: call(own[0]) for _, ways, own, _ in found for call in ways.values()])
    for each in found:
        yield from time_ways(*each, options)


def time_ways(about, ways, arguments, operations, options):
    """A record of each way to call; what fails has its reason. Results are compared with those of the first."""
    expected = None
    for way, call in ways.items():
        record = {**about, "way": way}
        try:
            out = call(arguments[-1])[0].clone()
            expected = out if expected is None else expected
            record["error"] = common.find_error(out, expected)
            record["us"] = common.time_graph([lambda own=own: call(own) for own in arguments], options.rounds)  # noqa: B023
        except Exception as error:  # A peer or a form that is not there is no reason to measure nothing else.
            record["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
        else:
            record["GB/s"], record["TFLOP/s"] = 1000 * about["MB"] / record["us"], operations / record["us"] / 1e6
        yield record


def to_row(record):
    columns = ("kind", "sequences", "keys", "heads", "queries", "MB", "page", "way", "us", "GB/s", "TFLOP/s", "error", "failed")
    return {column: record.get(column) for column in columns}


def main():
    options = parse_arguments()
    import torch

    try:
        import flash_mla as peer
    except ImportError:
        peer = None
    random.seed(1), torch.manual_seed(0)
    rows = torch.randn(ROWS, 1, 576, device="cuda", dtype=torch.bfloat16)
    method = f"Latent attention, bf16: microseconds of a call in a graph. FlashMLA: {getattr(peer, '__version__', 'is not there')}."
    results = common.Results(options, "latent", common.describe_gpu(), method)
    for kind, points, measure in (("pages", POINTS, measure_pages), ("lists", LISTS, measure_lists)):
        for point in points[: options.points] if options.only in (None, kind) else ():
            for record in measure(torch, rows, point, options, None if options.no_peers else peer):
                results.add([record], to_row)
    results.finish()


if __name__ == "__main__":
    main()
