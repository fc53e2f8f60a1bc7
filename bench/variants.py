"""Attention with windows, soft caps and ALiBi beside the plain kernel, and FlexAttention where it compiles.

Batch and heads as in attention.py (16k tokens, hidden size 2048), bf16, BSHD storage. FLOPs are counted on the pairs of
a query and a key that the mask leaves, 4 d each, so that TFLOP/s of a window can be compared with those of the plain
kernel without a mask. None of these speculates but the rows that say so. Columns:

    to plain        the rate over that of attention_fwd.tile with the same mask or, for a window, none, on as many keys as
                    a tile with that window visits (`plain, N keys`), because the beginning and the end of a tile take as
                    long as those of a long one: with the online softmax and tiles of the same size, or as it is by
                    default where the variant speculates
    to speculating  the same over attention_fwd.tile as it is by default
    added           instructions for each score element that the plain kernel does not have, and in parentheses the
                    special functions among them
    explained       "to plain" as the added instructions, the elements of blocks that a mask cuts and products before
                    the loop explain it, see explain.py; empty without counts of instructions, or without pynvml for
                    the clock
    to explained    the rate over that

Bundles, with the counts: --list FILE with the options of the run, then test/gpu/build_bundles.py --groups= --extra FILE
--inspect. Results are written after each point; FlexAttention takes seconds to compile for each variant and point, in
all --compile-seconds at most.
"""

import itertools
import json
import math
import os
import time

import attention
import common
import explain
import peers
from common import cases

CAP = 30.0
# Ends the names of the variants that speculate.
SPECULATING = ", speculating"


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--seqlens", type=common.numbers, default=(2048, 8192, 16384))
    parser.add_argument("--d", type=common.numbers, default=(64, 128), help="head dimensions, of those in variants.json")
    parser.add_argument("--compile-seconds", type=float, default=90, help="for FlexAttention in all")
    common.add_list_option(parser)
    return parser.parse_args()


def points(options):
    """(d, seqlen) of all points."""
    return itertools.product(options.d, options.seqlens)


def configurations(d, seqlen):
    """The kernels to time at a point, with what was measured for its shape."""
    heads = attention.HIDDEN // d
    shape = {"B": max(1, attention.TOKENS // seqlen), "H": heads, "HK": heads, "SQ": seqlen, "SK": seqlen}
    for variant in read_variants(d):
        configuration = cases.configuration(variant["kernel"], variant["parameters"], variant["schedule"], shape)
        yield dict(configuration, variant=variant["variant"])


def read_variants(d):
    with open(os.path.join(common.ROOT, "bench", "variants.json")) as file:
        return [variant for variant in json.load(file) if variant["parameters"]["D"] == d]


def window_of(seqlen, variant):
    """(left, right) of what a row sees: row r the columns from r - left to r + right, of the keys that there are."""
    parameters = variant["parameters"]
    mask = parameters.get("MASK") or ("causal" if parameters.get("CAUSAL") == "true" else "none")
    return {"none": (seqlen, seqlen), "causal": (seqlen, 0)}.get(mask) or (variant["left"], variant["right"])


def visible_pairs(seqlen, variant):
    """Pairs of a query and a key that the mask leaves, of one head."""
    if "keys" in variant:
        return seqlen * variant["keys"]
    left, right = window_of(seqlen, variant)
    return sum(min(seqlen, row + right + 1) - max(0, row - left) for row in range(seqlen))


def scores_of(seqlen, variant):
    """What tells the scores of variants apart: (left, right, keys, has a soft cap, has ALiBi)."""
    parameters = variant["parameters"]
    capped, biased = parameters.get("SOFTCAP", "none") != "none", parameters.get("ALIBI") == "true"
    return *window_of(seqlen, variant), variant.get("keys", seqlen), capped, biased


def with_short_bases(variants, kernels, seqlen):
    """The variants, those with a window with the plain kernel on as many keys as base, and these kernels beside them."""
    named, listed, short = {variant["variant"]: variant for variant in variants}, [], {}
    for variant in variants:
        base, kernel = variant.get("base"), kernels.get(variant["variant"])
        if variant["parameters"].get("MASK") != "window" or kernel is None or base not in kernels:
            listed.append(variant)
            continue
        visited = sum(explain.elements(seqlen, window_of(seqlen, variant), kernel.parameters)) / seqlen
        block = kernels[base].parameters["BN"]
        keys = min(seqlen, math.ceil(visited / block) * block)
        name = f"{base}, {keys} keys"
        short[name] = {**named[base], "variant": name, "keys": keys, "of": base}
        listed.append({**variant, "base": name, "family": base})
    return listed + list(short.values())


def launcher(kernel, problem, variant):
    """A function that launches the kernel, and its output [B, H, S, D]."""
    import torch

    _, _, keys, cap, alibi = scores_of(problem.seqlen, variant)
    extra = {name: variant[name] for name in ("left", "right") if name in variant}
    if cap:
        extra["cap"] = CAP
    if alibi:
        extra["slopes"] = slopes(problem.heads)
    q, k, v = problem.transposed()
    k, v = k[:, :, :keys], v[:, :, :keys]
    o = torch.full_like(problem.q, float("nan")).transpose(1, 2)
    return lambda: kernel(q=q, k=k, v=v, o=o, lse=problem.lse, scale=problem.scale, **extra), o


def slopes(heads):
    import torch

    return torch.exp2(-8 * torch.arange(1, heads + 1, device="cuda") / heads)


def expected(problem, scores):
    """{(batch, head): O [S, D] in f32} of the first head of the batch and the last."""
    import torch

    left, right, keys, cap, alibi = scores
    found, positions = {}, torch.arange(problem.seqlen, device="cuda")
    distance = positions[None, :] - positions[:, None]  # Negative before the row's own column.
    hidden = (distance < -left) | (distance > right) | (positions[None, :] >= keys)
    for batch, head in ((0, 0), (problem.batch - 1, problem.heads - 1)):
        q, k, v = (tensor[batch, :, head].float() for tensor in (problem.q, problem.k, problem.v))
        s = (q @ k.t()) * problem.scale
        s = CAP * torch.tanh(s / CAP) if cap else s
        s = s - slopes(problem.heads)[head] * distance.abs() if alibi else s
        found[batch, head] = torch.softmax(s.masked_fill_(hidden, float("-inf")), 1) @ v
    return found


def error_of(out, references):
    """The largest error of the heads that `references` has."""
    return max(peers.relative_error(out[at], reference) for at, reference in references.items())


def flex_contestant(problem, scores):
    """FlexAttention of the same scores."""
    import torch

    left, right, _, cap, alibi = scores
    head_slopes = slopes(problem.heads)

    def score(s, b, h, r, c):
        s = CAP * torch.tanh(s / CAP) if cap else s
        return s - head_slopes[h] * (r - c).abs() if alibi else s

    def sees(b, h, r, c):
        return (c - r >= -left) & (c - r <= right)

    free = min(left, right) >= problem.seqlen
    return peers.flex(problem, score if cap or alibi else None, None if free else sees)


class Flex:
    """FlexAttention of the scores that were asked for, as long as there is time to compile it."""

    def __init__(self, options):
        self.left = 0.0 if options.no_peers else options.compile_seconds

    def contestant(self, problem, scores, references):
        """A function that runs it, or None after a line that says why not."""
        if self.left <= 0 or scores[2] < problem.seqlen:
            return None
        start = time.monotonic()
        run = peers.attempt(
            "flex", problem, lambda problem: flex_contestant(problem, scores), lambda out: error_of(out, references)
        )
        self.left -= time.monotonic() - start
        if self.left <= 0:
            print("flex: --compile-seconds are spent; further variants are timed without it", flush=True)
        return run


def measure(kernels, problem, variants, flex, stopwatch):
    """The records of one point: all variants and their peers, timed in turns."""
    peers.forget_compiled()
    contestants, records, references, compiled = {}, [], {}, {}
    for variant in variants:
        kernel, name, scores = kernels.get(variant["variant"]), variant["variant"], scores_of(problem.seqlen, variant)
        if kernel is None:
            continue
        if scores not in references:
            references[scores] = expected(problem, scores)
            run = flex.contestant(problem, scores, references[scores])
            if run:
                contestants["flex", scores] = run
        run, out = launcher(kernel, problem, variant)
        run()
        record = {"d": problem.d, "seqlen": problem.seqlen, "batch": problem.batch, "heads": problem.heads,
                  "variant": name, "schedule": kernel.schedule, "base": variant.get("base"),
                  "family": variant.get("family") or variant.get("base"), "error": error_of(out, references[scores])}  # fmt: skip
        record["flops"] = 4 * problem.d * problem.heads * problem.batch * visible_pairs(problem.seqlen, variant)
        records.append(record)
        compiled[name] = scores
        if record["error"] < common.MAX_ERROR:
            contestants["tessera", name] = run
        else:
            record["wrong"] = True
    timings = stopwatch.compare(contestants) if contestants else {}
    for record in records:
        for who, key in (("tessera", record["variant"]), ("flex", compiled[record["variant"]])):
            if (who, key) in timings:
                timing = timings[who, key]
                record[who] = {**timing, "tflops": record["flops"] / timing["ms"] / 1e9}
    return records


def add_explanations(records, variants, kernels, loops, multiprocessors):
    """Adds "added" and "explained" to the records of a point that have a base, where instructions were counted and the
    clock is known."""
    named, variants = {r["variant"]: r for r in records}, {v["variant"]: v for v in variants}

    def work_of(record):
        name = record["variant"]
        parameters = kernels[name].parameters
        counted = explain.costs(loops[name], parameters)
        if "keys" in variants[name]:
            rows = math.ceil(record["seqlen"] / parameters["BM"]) * parameters["BM"]
            return counted, (rows * variants[name]["keys"], 0)
        unmasked, masked = explain.elements(record["seqlen"], window_of(record["seqlen"], variants[name]), parameters)
        if name.endswith(SPECULATING):
            unmasked += explain.reference_elements(record["seqlen"], parameters)
        return counted, (unmasked, masked)

    for record in records:
        base = named.get(record["base"])
        timing = base.get("tessera") if base else None
        if not timing or not timing["mhz"] or not loops.get(record["variant"]) or not loops.get(record["base"]):
            continue
        mine, theirs = work_of(record), work_of(base)
        record["added"] = [mine[0]["unmasked"][n] - theirs[0]["unmasked"][n] for n in (0, 1)]
        heads = record["batch"] * record["heads"]
        cycles = timing["ms"] * timing["mhz"] * 1e3 * multiprocessors / heads
        slower = explain.explained_cycles(mine, theirs, cycles) / cycles
        record["explained"] = record["flops"] / base["flops"] / slower


def ratio(rate, other):
    return rate / other if rate and other else None


def two_digits(number):
    return None if number is None else f"{number:.2f}"


def speculating_base(record):
    """The name of the plain kernel with the record's mask as it is by default."""
    return record["family"] and f"{record['family'].removesuffix(SPECULATING)}{SPECULATING}"


def to_row(record, records):
    def rate_of(name):
        return next((r.get("tessera", {}).get("tflops") for r in records if r["variant"] == name), None)

    ours = record.get("tessera", {})
    to_plain = ratio(ours.get("tflops"), rate_of(record["base"]))
    added = record.get("added")
    return {
        "d": record["d"],
        "seqlen": record["seqlen"],
        "variant": record["variant"],
        "ms": ours.get("ms"),
        "tessera": f"wrong ({record['error']:.2g})" if record.get("wrong") else ours.get("tflops"),
        "to plain": two_digits(to_plain),
        "to speculating": two_digits(ratio(ours.get("tflops"), rate_of(speculating_base(record)))),
        "added": "{:.1f} ({:.1f})".format(*(round(count, 1) + 0.0 for count in added)) if added else None,
        "explained": two_digits(record.get("explained")),
        "to explained": two_digits(ratio(to_plain, record.get("explained"))),
        "flex": record.get("flex", {}).get("tflops"),
        "MHz": ours.get("mhz"),
        "W": ours.get("watts"),
    }


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, (c for point in points(options) for c in configurations(*point)))
    import torch

    source = common.kernels.open_source(options.bundles)
    stopwatch, flex = common.Stopwatch(options.milliseconds, options.rounds), Flex(options)
    machine = common.describe_gpu()
    method = (
        "Attention forward, bf16, TFLOP/s on what the mask leaves (medians of CUDA-event times, L2 flushed, "
        "contestants in turns). flex: FlexAttention of PyTorch, compiled. The columns are explained in bench/variants.py."
    )
    results, records, rows = common.Results(options, "variants", machine, method), [], []
    for d, seqlen in points(options):
        wanted = {configuration["variant"]: configuration for configuration in configurations(d, seqlen)}
        kernels = common.load_kernels(source, wanted.values())
        loops = {name: source.loops(wanted[name]) for name in kernels}
        torch.manual_seed(0)
        problem = attention.Problem(d, seqlen, False, "bf16")
        listed = with_short_bases(read_variants(d), kernels, seqlen)
        short = {variant["variant"]: variant["of"] for variant in listed if "of" in variant}
        kernels |= {name: kernels[of] for name, of in short.items()}
        loops |= {name: loops[of] for name, of in short.items()}
        measured = measure(kernels, problem, listed, flex, stopwatch)
        add_explanations(measured, listed, kernels, loops, machine["multiprocessors"])
        for row in (to_row(record, measured) for record in measured):
            common.print_row(row)
            rows.append(row)
        records += measured
        results.write(rows, records)
    results.finish()


if __name__ == "__main__":
    main()
