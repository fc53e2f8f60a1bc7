"""What speculation costs when it fails: attention as it is called, forward, with inputs that are made to break it, beside the exact
kernel on the same inputs.

The inputs are those of retry_inputs.py, batch and heads as in attention.py (16k tokens, hidden size 2048), bf16, BSHD storage.
"to exact" is the rate of tessera.torch.attention over that of the kernel compiled with speculate = false, and "fall back" the
share of tiles that the online softmax computes, by the default kernel with FALLBACKS. Results of both are held against each
other. --quick is for 40 seconds of a GPU. Bundles: test/gpu/build_bundles.py --extra with what --list writes.
"""

import functools

import attention
import common
import retry_inputs
from common import cases

LEAST = 0.95
# Of a tile.
LEAST_ROWS = 64


def parse_arguments(arguments=None):
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--quick", action="store_true", help="one length, and little time for each point")
    parser.add_argument("--d", type=common.numbers, help="head dimensions; otherwise 64, 128 and 256, with --quick 64 and 128")
    parser.add_argument("--seqlens", type=common.numbers, help="otherwise 1024, 4096 and 16384, with --quick 4096")
    parser.add_argument("--masks", default=attention.MASKS, type=attention.names_of(attention.MASKS), help="these of full and causal only")
    names = [each.name for each in retry_inputs.INPUTS]
    parser.add_argument("--inputs", default=tuple(names), type=attention.names_of(names), help="names; otherwise all")
    common.add_list_option(parser)
    parser.set_defaults(milliseconds=None, rounds=None)
    options = parser.parse_args(arguments)
    quick = {"d": (64, 128), "seqlens": (4096,), "milliseconds": 20, "rounds": 4}
    usual = {"d": (64, 128, 256), "seqlens": (1024, 4096, 16384), "milliseconds": 100, "rounds": 4}
    for name, value in (quick if options.quick else usual).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def list_configurations(d, causal):
    """The exact kernel, and the one that counts the tiles that fall back."""
    counting = {**cases.attention("bf16", d, d, causal)["parameters"], "FALLBACKS": True}
    return cases.attention("bf16", d, d, causal, "speculate=false"), cases.configuration(cases.ATTENTION, counting, alternatives=True)


class Kernels:
    """The kernels beside the public function for a head dimension and a mask, that `load` gives of their configurations."""

    def __init__(self, load, d, causal):
        self.causal = causal
        self.exact, self.counting = map(load, list_configurations(d, causal))

    def call(self, q, k, v):
        return attend(q, k, v, self.causal)

    def prepare_exact(self, q, k, v):
        """A function that launches the exact kernel, and its output."""
        given, out = lay_out(q, k, v)
        return lambda: self.exact(*given), out

    def count(self, q, k, v):
        """The share of tiles that fall back."""
        import torch

        (batch, length, heads, _), (given, _) = q.shape, lay_out(q, k, v)
        # Which of its alternatives is launched, of how many rows a tile, is known by what it notes.
        noted = torch.full((batch, heads, -(-length // LEAST_ROWS)), -1, dtype=torch.int32, device=q.device)
        self.counting(*given, fallbacks=noted)
        return noted[noted >= 0].float().mean().item()


def attend(q, k, v, causal):
    import tessera.torch

    return tessera.torch.attention(q, k, v, causal=causal, layout="BSHD", return_lse=True)


def lay_out(q, k, v):
    """The arguments of a kernel, and its output."""
    import torch

    batch, length, heads, d = q.shape
    out, lse = torch.empty_like(q), torch.empty((batch, heads, length), device=q.device)
    return (*(x.transpose(1, 2) for x in (q, k, v, out)), lse, d**-0.5), out


def find_difference(out, expected):
    """How far two outputs are from each other, infinitely where only one is no number."""
    if not out.isnan().equal(expected.isnan()):
        return float("inf")
    return common.find_error(out.nan_to_num(0), expected.nan_to_num(0))


def measure(kernels, tensors, point, flops, stopwatch):
    """The record of an input."""
    own = lambda: kernels.call(*tensors)  # noqa: E731
    exact, expected = kernels.prepare_exact(*tensors)
    exact()
    out, _ = common.settle(own)
    error = find_difference(out, expected)
    record = {**point, "error": error, "fall back": kernels.count(*tensors)}
    if not error < common.MAX_ERROR:
        return {**record, "wrong": True}
    timings = stopwatch.compare({"tessera": own, "exact": exact})
    for timing in timings.values():
        timing["tflops"] = flops / timing["ms"] / 1e9
    return {**record, "timings": timings}


def find_ratio(record):
    """Our rate over that of the exact kernel, None where nothing was timed."""
    timings = record.get("timings")
    return timings and timings["tessera"]["tflops"] / timings["exact"]["tflops"]


def to_row(record):
    ratio, timings = find_ratio(record), record.get("timings", {})
    row = {name: record[name] for name in ("d", "mask", "seqlen", "input")}
    row["TFLOP/s"] = f"wrong ({record['error']:.2g})" if record.get("wrong") else timings["tessera"]["tflops"]
    row["exact"] = timings["exact"]["tflops"] if timings else None
    return {**row, "to exact": ratio and f"{ratio:.2f}", "fall back": f"{record['fall back']:.0%}"}


def list_worst(records):
    """Of each input where it is slowest to the exact kernel, and of all inputs how many are below the goal."""
    found = {}
    for record in records:
        found.setdefault(record["input"], []).append(record)
    for name, own in found.items():
        timed = [record for record in own if find_ratio(record)]
        worst = min(timed, key=find_ratio, default=None)
        below = sum(find_ratio(record) < LEAST for record in timed)
        yield {
            "input": name, "worst to exact": worst and f"{find_ratio(worst):.2f}",
            "at": worst and f"d {worst['d']}, {worst['mask']}, {worst['seqlen']}",
            f"below {LEAST}": f"{below} of {len(timed)}", "wrong": len(own) - len(timed),
        }  # fmt: skip


def draw(name, d, seqlen, device="cuda"):
    """q, k, v of an input in bf16."""
    import torch

    tensors = retry_inputs.Tensors(max(1, attention.TOKENS // seqlen), seqlen, attention.HIDDEN // d, d, device)
    next(each for each in retry_inputs.INPUTS if each.name == name).change(tensors)
    return tensors.to(torch.bfloat16)


def load_ahead(source, forms, seqlens):
    """A function that gives the kernel of a configuration, None after a line that says why there is none. All are compiled side by side,
    with those of the public function."""
    found = {}

    def load(configuration):
        name = configuration["name"]
        if name not in found:
            found[name] = common.load_kernel(source, configuration)
        return found[name]

    jobs = []
    for d, mask in forms:
        jobs += [functools.partial(load, configuration) for configuration in list_configurations(d, mask == "causal")]
        jobs += [functools.partial(attend, *draw("deviation 1", d, seqlen), mask == "causal") for seqlen in seqlens]
    common.call_ahead(jobs)
    return load


def main():
    options = parse_arguments()
    forms = [(d, mask) for d in options.d for mask in options.masks]
    if options.list:
        common.write_list(options, (entry for d, mask in forms for entry in list_configurations(d, mask == "causal")))
        return
    load = load_ahead(common.kernels.open_source(options.bundles), forms, options.seqlens)
    method = (
        "Attention forward through tessera.torch, bf16, BSHD storage, TFLOP/s (medians of CUDA-event times, L2 flushed, in turns), with "
        "inputs that are made to break speculation, beside the exact kernel."
    )
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    results = common.Results(options, "retries", common.describe_gpu(), method)
    records = []
    for d, mask in forms:
        kernels = Kernels(load, d, mask == "causal")
        if not (kernels.exact and kernels.counting):
            continue
        for seqlen in options.seqlens:
            for name in options.inputs:
                point = {"d": d, "mask": mask, "seqlen": seqlen, "input": name}
                pairs = seqlen * seqlen / (2 if mask == "causal" else 1)
                flops = 4 * pairs * d * attention.HIDDEN // d * max(1, attention.TOKENS // seqlen)
                records.append(measure(kernels, draw(name, d, seqlen), point, flops, stopwatch))
                common.print_row(to_row(records[-1]))
                results.write([to_row(record) for record in records], records, list(list_worst(records)))
    for row in list_worst(records):
        common.print_row(row)
    results.finish()


if __name__ == "__main__":
    main()
