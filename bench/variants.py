"""Attention with windows, soft caps and ALiBi beside the plain kernel, and FlexAttention where it compiles.

Batch and heads as in attention.py (16k tokens, hidden size 2048), bf16, BSHD storage. FLOPs are counted on the pairs of
a query and a key that the mask leaves, 4 d each, so that TFLOP/s of a window can be compared with those of the plain
kernel without a mask; "to plain" is that ratio, against the plain kernel with the same mask or, for a window, without.
Bundles: test/gpu/build_bundles.py --extra bench/variants.json.
"""

import json
import os

import attention
import common
from common import cases

CAP = 30.0


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--seqlens", default="2048,8192,16384")
    parser.add_argument("--d", default="64,128", help="head dimensions, of those in variants.json")
    return parser.parse_args()


def read_variants(d):
    with open(os.path.join(common.ROOT, "bench", "variants.json")) as file:
        return [variant for variant in json.load(file) if variant["parameters"]["D"] == d]


def visible_pairs(seqlen, variant):
    """Pairs of a query and a key that the mask leaves, of one head."""
    parameters = variant["parameters"]
    mask = parameters.get("MASK") or ("causal" if parameters.get("CAUSAL") == "true" else "none")
    if mask == "none":
        return seqlen * seqlen
    left, right = (seqlen, 0) if mask == "causal" else (variant["left"], variant["right"])
    return sum(min(seqlen, row + right + 1) - max(0, row - left) for row in range(seqlen))


def launcher(kernel, problem, variant):
    """A function that launches the kernel, and its output."""
    import torch

    parameters = variant["parameters"]
    extra = {name: variant[name] for name in ("left", "right") if name in variant}
    if parameters.get("SOFTCAP", "none") != "none":
        extra["cap"] = CAP
    if parameters.get("ALIBI") == "true":
        extra["slopes"] = slopes(problem.heads)
    q, k, v = problem.transposed()
    out = torch.full_like(problem.q, float("nan"))
    o = out.transpose(1, 2)
    return lambda: kernel(q=q, k=k, v=v, o=o, lse=problem.lse, scale=problem.scale, **extra), out


def slopes(heads):
    import torch

    return torch.exp2(-8 * torch.arange(1, heads + 1, device="cuda") / heads)


def flex_contestant(problem, variant):
    """FlexAttention of the same scores, with its output; None when it does not compile here."""
    parameters = variant["parameters"]
    try:
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        head_slopes, seqlen = slopes(problem.heads), problem.seqlen
        cap, alibi = parameters.get("SOFTCAP", "none") != "none", parameters.get("ALIBI") == "true"
        mask = parameters.get("MASK") or ("causal" if parameters.get("CAUSAL") == "true" else "none")
        left, right = variant.get("left", seqlen), variant.get("right", 0)

        def score(s, b, h, r, c):
            s = CAP * torch.tanh(s / CAP) if cap else s
            return s - head_slopes[h] * (r - c).abs() if alibi else s

        def sees(b, h, r, c):
            return (c - r >= -left) & (c - r <= right)

        blocks = None if mask == "none" else create_block_mask(sees, None, None, seqlen, seqlen)
        function = torch.compile(flex_attention, dynamic=False)
        q, k, v = problem.transposed()

        def run():
            return function(
                q, k, v, score_mod=score if cap or alibi else None, block_mask=blocks, scale=problem.scale
            )

        return run, run().transpose(1, 2)
    except Exception as error:  # The compiler of PyTorch fails in many ways; a peer is optional.
        print(f"FlexAttention, {variant['variant']}: {type(error).__name__} {str(error)[:120]}", flush=True)
        return None


def measure(kernels, problem, variants, options, stopwatch):
    """The records of one point: all variants and their peers, timed in turns."""
    contestants, records = {}, []
    for variant in variants:
        kernel = kernels.get(variant["variant"])
        if kernel is None:
            continue
        run, out = launcher(kernel, problem, variant)
        run()
        name = variant["variant"]
        record = {"d": problem.d, "seqlen": problem.seqlen, "variant": name, "schedule": kernel.schedule,
                  "base": variant.get("base"), "error": None}  # fmt: skip
        record["flops"] = 4 * problem.d * problem.heads * problem.batch * visible_pairs(problem.seqlen, variant)
        peer = None if options.no_peers else flex_contestant(problem, variant)
        if peer:
            expected = peer[1].float()
            record["error"] = ((out.float() - expected).norm() / expected.norm()).item()
            contestants["flex", name] = peer[0]
        records.append(record)
        if (record["error"] or 0) < common.MAX_ERROR and not out.isnan().any():
            contestants["tessera", name] = run
        else:
            record["wrong"] = True
    timings = stopwatch.compare(contestants)
    for record in records:
        for who in ("tessera", "flex"):
            timing = timings.get((who, record["variant"]))
            if timing:
                record[who] = {**timing, "tflops": record["flops"] / timing["ms"] / 1e9}
    return records


def to_row(record, records):
    ours, flex = record.get("tessera", {}), record.get("flex", {})
    base = next((r.get("tessera", {}) for r in records if r["variant"] == record["base"]), {})
    ratio = ours["tflops"] / base["tflops"] if ours and base else None
    return {
        "d": record["d"],
        "seqlen": record["seqlen"],
        "variant": record["variant"],
        "ms": ours.get("ms"),
        "tessera": f"wrong ({record['error']})" if record.get("wrong") else ours.get("tflops"),
        "to plain": f"{ratio:.2f}" if ratio else None,
        "flex": flex.get("tflops"),
        "MHz": ours.get("mhz"),
        "W": ours.get("watts"),
    }


def main():
    options = parse_arguments()
    import torch

    source = common.kernels.open_source(options.bundles)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    records, rows = [], []
    for d in map(int, options.d.split(",")):
        variants = read_variants(d)
        configurations = [
            dict(cases.configuration(v["kernel"], v["parameters"], v["schedule"]), variant=v["variant"])
            for v in variants
        ]
        kernels = common.load_kernels(source, configurations)
        for seqlen in map(int, options.seqlens.split(",")):
            torch.manual_seed(0)
            problem = attention.Problem(d, seqlen, False, "bf16")
            measured = measure(kernels, problem, variants, options, stopwatch)
            rows += [to_row(record, measured) for record in measured]
            for row in rows[-len(measured) :] if measured else ():
                common.print_row(row)
            records += measured
    method = (
        "Attention forward, bf16, TFLOP/s on what the mask leaves (medians of CUDA-event times, L2 flushed, contestants "
        "in turns). flex: FlexAttention of PyTorch, compiled."
    )
    common.write_results(options, "variants", common.describe_gpu(), method, rows, records)


if __name__ == "__main__":
    main()
