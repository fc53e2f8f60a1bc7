"""What each part of the schedule is worth: attention forward with parts switched off, one at a time.

The setting of Table 2 of the FlashAttention-3 paper (arXiv:2407.08608): batch 4, 8448 tokens, 16 heads, d = 128, no
mask; here in bf16, there in f16 on an H100 SXM5, whose TFLOP/s are in the column "paper". The variants are those of
bench/ablation.json. Bundles of them: test/gpu/build_bundles.py --extra bench/ablation.json. A variant that this
compiler has no schedule for is left out, and a line says why.
"""

import json
import os

import attention
import common
import peers
from common import cases

BATCH, SEQLEN, HEADS = 4, 8448, 16


def parse_arguments():
    return peers.add_options(common.argument_parser(__doc__, schedules=False)).parse_args()


def read_variants():
    with open(os.path.join(common.ROOT, "bench", "ablation.json")) as file:
        return json.load(file)


def to_row(record, default, papers):
    timing = record.get("timings", {}).get("tessera", {})
    tflops = f"wrong ({record['error']:.2g})" if record.get("wrong") else timing["tflops"]
    return {
        "variant": record["variant"],
        "ms": timing.get("ms"),
        "TFLOP/s": tflops,
        "to default": f"{default / timing['ms']:.2f}" if default and timing else None,
        "paper": papers.get(record["variant"]),
        "MHz": timing.get("mhz"),
        "W": timing.get("watts"),
    }


def peer_rows(records):
    """Rows of the peers, which every record that was timed has."""
    timed = next((record["timings"] for record in records if "timings" in record), {})
    for name, timing in timed.items():
        if name != "tessera":
            yield {"variant": name, "ms": timing["ms"], "TFLOP/s": timing["tflops"], "MHz": timing["mhz"],
                   "W": timing["watts"]}  # fmt: skip


def main():
    options = parse_arguments()
    import torch

    variants = read_variants()
    configurations = [
        dict(cases.configuration(v["kernel"], v["parameters"], v["schedule"]), variant=v["variant"]) for v in variants
    ]
    kernels = common.load_kernels(common.kernels.open_source(options.bundles), configurations)
    torch.manual_seed(0)
    problem = attention.Problem(128, SEQLEN, False, "bf16", BATCH, HEADS)
    point = {"d": 128, "mask": "full", "seqlen": SEQLEN, "batch": BATCH, "heads": HEADS}
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    records = attention.measure(kernels, problem, point, options, stopwatch)
    papers = {v["variant"]: v.get("paper") for v in variants}
    timed = {record["variant"]: record["timings"]["tessera"] for record in records if "timings" in record}
    default = timed["default"]["ms"] if "default" in timed else None
    rows = [to_row(record, default, papers) for record in records]
    rows += peer_rows(records)
    for row in rows:
        common.print_row(row)
    method = (
        f"Attention forward, bf16, batch {BATCH}, {SEQLEN} tokens, {HEADS} heads, d = 128, no mask (medians of "
        "CUDA-event times, L2 flushed, contestants in turns). Paper: Table 2 of FlashAttention-3, f16 on an H100 SXM5."
    )
    results = common.Results(options, "ablation", common.describe_gpu(), method)
    results.write(rows, records)
    results.finish()


if __name__ == "__main__":
    main()
