"""Latent attention over a cache in pages, as it is called, beside FlashMLA: microseconds, GB/s of the cache, TFLOP/s, and the ratio.

    PYTHONPATH=python python3 bench/latent.py [--out DIR]

A graph has several launches over different pages of 1.2 GB, so that the L2 cache has none of them. `tessera.torch.mla_with_kvcache` is
called as an engine does, FlashMLA (package `sgl-flash-mla`) likewise where it can be imported; what divides the keys is made before, as
for all layers of a step. bf16, pages of 64 rows. A product of Q
and the cache counts 2 x 576 operations for each head, key and query, and one of P 2 x 512.
"""

import os
import random

import common

POINTS = (
    (128, 4096, 128, 1), (128, 8192, 128, 2), (16, 16384, 128, 1), (64, (64, 8192), 128, 1), (32, 4096, 128, 1), (8, 4096, 128, 1),
    (1, 8192, 128, 1), (1, 65536, 128, 1), (64, 8192, 64, 1), (64, 8192, 32, 1), (128, 4096, 16, 1), (64, 8192, 16, 4), (4, 8192, 16, 1),
    (1, 131072, 16, 1), (4, 8192, 8, 1),
)  # fmt: skip
PAGES, PAGE = 16384, 64


def time_graph(torch, calls, rounds):
    """Microseconds of a call, of a graph of them."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        calls[0]()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(rounds + 1):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        events[1].synchronize()
        times.append(events[0].elapsed_time(events[1]))
    return 1000 * sorted(times[1:])[rounds // 2] / len(calls)


def measure(torch, cache, point, rounds, peer):
    """A line of the table."""
    from tessera.torch import get_mla_metadata, mla_with_kvcache

    batch, keys, heads, rows = point
    lengths = [keys] * batch if isinstance(keys, int) else [random.randint(*keys) for _ in range(batch)]
    most, megabytes = -(-max(lengths) // PAGE), sum(lengths) * 1152 / 1e6
    count = max(2, min(16, int(600 / megabytes) + 1))
    seqlens = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    # No two calls in a row have pages in common.
    order = torch.randperm(PAGES, device="cuda").int().repeat(-(-count * batch * most // PAGES))
    tables = list(order[: count * batch * most].view(count, batch, most))
    q = torch.randn(batch, rows, heads, 576, device="cuda", dtype=torch.bfloat16)
    scale = 576**-0.5
    shares = get_mla_metadata(seqlens, rows * heads)
    calls = [
        lambda table=table: mla_with_kvcache(q, cache, table, seqlens, 512, *shares, softmax_scale=scale, causal=True) for table in tables
    ]
    out, _ = calls[-1]()
    own = time_graph(torch, calls, rounds)
    name = str(keys) if isinstance(keys, int) else "{}-{}".format(*keys)
    tflops = 2 * sum(lengths) * rows * heads * (576 + 512) / own / 1e6
    line = f"| {batch} | {name} | {heads} | {rows} | {megabytes:.0f} | {own:.1f} | {megabytes / own * 1000:.0f} | {tflops:.0f} |"
    if peer is None:
        return f"{line} | | |"
    metadata, _ = peer.get_mla_metadata()
    others = [
        lambda table=table: peer.flash_mla_with_kvcache(q, cache, table, seqlens, 512, metadata, None, scale, True, use_legacy=True)
        for table in tables
    ]
    error = (out.float() - others[-1]()[0].float()).norm() / out.float().norm()
    theirs = time_graph(torch, others, rounds)
    return f"{line} {theirs:.1f} | {theirs / own:.2f} | {error:.1e} |"


def main():
    parser = common.argument_parser(__doc__, schedules=False)
    options = parser.parse_args()
    import torch

    try:
        import flash_mla as peer
    except ImportError:
        peer = None
    random.seed(1), torch.manual_seed(0)
    cache = torch.randn(PAGES, PAGE, 1, 576, device="cuda", dtype=torch.bfloat16)
    lines = [
        f"Latent attention, bf16, {torch.cuda.get_device_name()}; FlashMLA " + (peer.__version__ if peer else "is not there"), "",
        "| sequences | keys | heads | queries | MB | us | GB/s | TFLOP/s | FlashMLA, us | its time by ours | difference |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    print("\n".join(lines))
    for point in POINTS:
        lines.append(measure(torch, cache, point, options.rounds, peer))
        print(lines[-1], flush=True)
    machine = torch.cuda.get_device_name().lower().replace(" ", "-")
    common.replace_file(os.path.join(options.out, f"{options.date}-{machine}-{options.commit}-latent.md"), "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
