"""Gradients of attention with soft caps and ALiBi, beside what their arithmetic explains, bf16, without a mask.

Batch and heads as in attention.py (16k tokens, hidden size 2048). The main kernel is timed in turns with the one of plain
scores. What its loops have more of takes time of its own: "added" is that in cycles of a pass, over all
roles. A multiprocessor issues an instruction of 128 threads a cycle and computes 16 special functions, so that a warpgroup
takes a cycle for each instruction or 8 for each special function, whichever is more; and a kernel is never faster than
its special functions. Instructions are counted where both kernels have one form (DIVIDED=false), also if another is timed.
"to explained" is the rate over the one that this gives, of the main kernel. Bundles: --list FILE with the options of the run, then
test/gpu/build_bundles.py --groups= --inspect --extra FILE.
"""

import math

import attention
import common
import explain
import peers
import variants
import window_gradients
from common import cases

MAIN = window_gradients.MAIN
PLAIN = "plain"
SCORES = {
    PLAIN: {},
    "soft cap": {"SOFTCAP": "exact"},
    "ALiBi": {"ALIBI": True},
    "soft cap, ALiBi": {"SOFTCAP": "exact", "ALIBI": True},
}


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--d", type=common.numbers, default=(64, 96, 128, 192, 256), help="head dimensions")
    parser.add_argument("--seqlens", type=common.numbers, default=(2048, 8192, 16384))
    common.add_list_option(parser)
    return parser.parse_args()


def configurations(d, scores):
    """The gradients, their main kernel alone in the form of plain scores, whose instructions are counted, and attention."""
    parameters = {"T": "bf16", "D": d, "MASK": "none", **SCORES[scores]}
    return (
        cases.configuration("attention_variants_bwd", parameters),
        cases.configuration("attention_variants_bwd", {**parameters, "DIVIDED": False}, entry=MAIN),
        cases.configuration("attention_variants", parameters),
    )


def count_warpgroups(loops, schedule):
    """How many warpgroups run each loop: all consumers the first two, or where dots are divided among them one each."""
    consumers = 1 if "placement = divided" in schedule else int(schedule.partition("consumers = ")[2].partition(",")[0])
    return [consumers if index < 2 else 1 for index in range(len(loops))]


def count_cycles(loop):
    """What a warpgroup takes for a pass by its instructions or its special functions."""
    return max(loop["instructions"], loop.get("MUFU", 0) * explain.ISSUED // explain.SPECIAL)


def count_added(loops, plain_loops, schedule):
    """(cycles, special functions of 128 threads), of which those are added to the plain ones and these are all, for a
    pass without masks. Each role has a loop without, and then one with them. None where the loops are not alike."""
    if not loops or not plain_loops or len(loops) != len(plain_loops):
        return None
    counts = list(zip(loops, plain_loops, count_warpgroups(loops, schedule)))[::2]
    added = sum((count_cycles(mine) - count_cycles(theirs)) * groups for mine, theirs, groups in counts)
    return added, sum(mine.get("MUFU", 0) * groups for mine, _, groups in counts)


def explain_time(plain_cycles, counted):
    """Cycles of a multiprocessor for a pass, of which the plain kernel takes `plain_cycles`."""
    added, special = counted
    return max(plain_cycles + max(0, added), special * 128 / explain.SPECIAL)


class Call(window_gradients.Call):
    """A problem with scores, and the sequence of gradients on it."""

    def __init__(self, sequence, forward, d, seqlen, scores):
        super().__init__(sequence, d, seqlen, seqlen)
        self.scores, heads = SCORES[scores], self.values["q"].shape[1]
        self.values |= {"cap": variants.CAP, "slopes": variants.slopes(heads)}
        forward(**{name: self.values[name] for name in forward.names})

    def bend(self, s, head):
        import torch

        if "SOFTCAP" in self.scores:
            s = variants.CAP * torch.tanh(s / variants.CAP)
        if "ALIBI" in self.scores:
            places = torch.arange(s.shape[0], device=s.device)
            s = s - self.values["slopes"][head] * (places[:, None] - places).abs()
        return s

    def find_error(self):
        """The largest error of the gradients of the first head and the last, after the call."""
        import torch

        values, worst = self.values, 0.0
        batch, heads = values["q"].shape[:2]
        for b, h in ((0, 0), (batch - 1, heads - 1)):
            leaves = [values[name][b, h].float().requires_grad_() for name in "qkv"]
            s = self.bend(leaves[0] @ leaves[1].t() * values["scale"], h)
            expected = torch.autograd.grad(torch.softmax(s, 1) @ leaves[2], leaves, values["do"][b, h].float())
            got = [values["d" + name][b, h] for name in "qkv"]
            worst = max(worst, *(peers.relative_error(x, want) for x, want in zip(got, expected)))
        return worst


def add_explanations(records, counted, passes, multiprocessors):
    """Adds "to_plain", and where instructions were counted "explained", to the records of a point; `passes` of all blocks."""
    timings = {record["scores"]: record["timing"] for record in records if "timing" in record}
    plain = timings.get(PLAIN)
    for record in records:
        if "timing" not in record or plain is None:
            continue
        record["to_plain"] = plain["ms"] / record["timing"]["ms"]
        if counted.get(record["scores"]) and plain["mhz"]:
            cycles = plain["ms"] * plain["mhz"] * 1e3 * multiprocessors / passes
            record["added"] = counted[record["scores"]]
            record["explained"] = cycles / explain_time(cycles, record["added"])


def measure(d, seqlen, loaded, stopwatch):
    """The records of a point: all scores, timed in turns."""
    records, contestants = [], {}
    for scores, (sequence, _, forward) in loaded.items():
        call = Call(sequence, forward, d, seqlen, scores)
        call.run()()
        record = {"d": d, "seqlen": seqlen, "scores": scores, "error": call.find_error()}
        records.append(record)
        if record["error"] < common.MAX_ERROR:
            contestants[scores] = call.run(MAIN)
    for scores, timing in stopwatch.compare(contestants).items():
        next(record for record in records if record["scores"] == scores)["timing"] = timing
    return records


def to_row(record):
    row = {name: record[name] for name in ("d", "seqlen", "scores")}
    if "timing" not in record:
        return {**row, "main, ms": f"wrong ({record['error']:.2g})"}
    timing, explained, to_plain = record["timing"], record.get("explained"), record.get("to_plain")
    row |= {"main, ms": timing["ms"], "to plain": variants.two_digits(to_plain)}
    row |= {"added": record["added"][0] if "added" in record else None, "explained": variants.two_digits(explained)}
    row["to explained"] = variants.two_digits(variants.ratio(to_plain, explained))
    return {**row, "spread": f"{timing['spread']:.1%}", "MHz": timing["mhz"], "W": timing["watts"]}


def main():
    options = parse_arguments()
    if options.list:
        return common.write_list(options, [entry for d in options.d for scores in SCORES for entry in configurations(d, scores)])
    source, machine = common.kernels.open_source(options.bundles), common.describe_gpu()
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Gradients with soft caps and ALiBi, bf16 (medians of CUDA events, L2 flushed, in turns), beside what arithmetic explains."
    results = common.Results(options, "score-gradients", machine, method)
    for d in options.d:
        wanted = {scores: configurations(d, scores) for scores in SCORES}
        loaded = {scores: [common.load_kernel(source, entry) for entry in entries] for scores, entries in wanted.items()}
        loaded = {scores: kernels for scores, kernels in loaded.items() if all(kernels)}
        if PLAIN not in loaded:
            continue
        loops = {scores: source.loops(wanted[scores][1]) for scores in loaded}
        counted = {scores: count_added(loops[scores], loops[PLAIN], kernels[1].schedule) for scores, kernels in loaded.items()}
        parameters = loaded[PLAIN][0].bundle.parameters
        for seqlen in options.seqlens:
            blocks = math.ceil(seqlen / int(parameters["GN"])) * math.ceil(seqlen / int(parameters["GM"]))
            passes = blocks * max(1, attention.TOKENS // seqlen) * (attention.HIDDEN // d)
            records = measure(d, seqlen, loaded, stopwatch)
            add_explanations(records, counted, passes, machine["multiprocessors"])
            results.add(records, to_row)
    results.finish()


if __name__ == "__main__":
    main()
