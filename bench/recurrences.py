"""Recurrences as models call them, beside flash-linear-attention (package `fla-core`) and for ssd mamba-ssm, where these can be imported:
forward, and forward and backward together ("both"), in milliseconds.

    tessera  the call as it is: the norms of queries and keys or the softplus of steps with it, long sequences of few heads in segments
             side by side, of so many tokens ("segment")
    plain    the same of queries and keys that are normalized, or of steps that are made
    whole    the same walked over whole, where it has segments
    fla      chunk_gated_delta_rule, chunk_kda, chunk_retention, chunk_gla
    mamba    mamba_chunk_scan_combined

"cores" and "memory" are what ours takes of the card: the products of the chunked form, of 64 tokens (both: three times these), over the
tensor cores' rate, and what is given and returned, moved once in each direction, over the memory's. "MiB" is what a call has at most
beside what it is given, outputs and gradients among it.

    ./dev bench recurrences [--groups models] [--only delta_rule,kda] [--ways tessera,fla,mamba] [--tuned FILE] [--limit SECONDS]

bf16, medians of CUDA-event times, contestants in turns, L2 flushed. What fails is a line, and results are written after each point.
Peers tune themselves among many configurations, which processes compile side by side before anything is timed (triton_ahead.py).
--tuned keeps what they chose, so that another run compiles that alone.
"""

import contextlib
import functools
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import unittest.mock

import common
import recurrence_peers
import triton_ahead

# {model: (recurrence, heads of q and k, heads of v, rows and columns of a state)}
MODELS = {
    "Qwen3-Next": ("delta_rule", 16, 32, 128, 128),
    "Kimi Linear": ("kda", 32, 32, 128, 128),
    "Mamba-2 2.7B": ("ssd", 1, 80, 128, 64),
    "Bamba": ("ssd", 1, 128, 128, 64),
}
# Sequences and tokens of each. Peers tune themselves for the first.
EXTENTS = ((8, 4096), (1, 8192), (1, 65536), (1, 1024))
# (sequences, tokens, what a model has): few heads, as on one of several cards, and other recurrences.
OTHERS = (
    (1, 65536, ("retention", 4, 4, 128, 128)), (1, 65536, ("ssd", 1, 8, 128, 64)), (1, 32768, ("gla", 4, 4, 128, 128)),
    (1, 16384, ("retention", 4, 4, 128, 128)), (1, 16384, ("ssd", 1, 8, 128, 64)), (1, 16384, ("gla", 4, 4, 128, 128)),
    (1, 16384, ("delta_rule", 4, 4, 128, 128)), (8, 4096, ("retention", 16, 16, 128, 128)),
    (8, 4096, ("gla", 16, 16, 128, 128)), (2, 8192, ("kda", 16, 16, 64, 64)),
)  # fmt: skip
GROUPS = {
    "models": [(model, *extents, own) for extents in EXTENTS for model, own in MODELS.items()],
    "others": [("", *shape) for shape in OTHERS],
}
COLUMNS = ("model", "batch", "tokens", "recurrence", "heads", "value heads", "rows", "columns")
WAYS = ("tessera", "plain", "whole", "fla", "mamba")
# Of a multiprocessor's cores, bf16, in a cycle (dense), at the clock of the data sheets' rate.
FLOPS_A_CYCLE, CLOCK = 4096, 1.83e9
# Up to so many outputs are compared with the definition in double precision.
FEW_TOKENS = 1024
# The share of --limit after which configurations of peers that are not compiled are left out.
AHEAD = 0.5


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--groups", default=",".join(GROUPS), help="of shapes (default: all)")
    parser.add_argument("--only", metavar="NAME,...", help="recurrences; otherwise all")
    parser.add_argument("--ways", default=",".join(WAYS), help="contestants (default: all)")
    parser.add_argument("--tuned", metavar="FILE", help="what peers chose before, and try alone; what they choose is written there")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="SECONDS", help="after which no point is begun")
    parser.add_argument("--share", type=common.numbers, metavar="RANK,COUNT", help="compile this share of what peers try, and end")
    parser.add_argument("--compiled", metavar="DIR", help="where --share writes what it has compiled")
    options = parser.parse_args()
    options.ways = options.ways.split(",")
    return options


def list_shapes(options):
    shapes = [shape for group in options.groups.split(",") for shape in GROUPS[group]]
    wanted = options.only.split(",") if options.only else [shape[3][0] for shape in shapes]
    return [shape for shape in shapes if shape[3][0] in wanted]


def draw(torch, batch, tokens, own):
    """What a model calls its recurrence with, by name."""
    name, heads, value_heads, rows, columns = own
    torch.manual_seed(0)

    def normal(*extents):
        return torch.randn(batch, tokens, *extents, device="cuda")

    functional = torch.nn.functional
    given = {"q": normal(heads, rows), "k": normal(heads, rows), "v": normal(value_heads, columns)}
    if name == "delta_rule":
        given |= {"g": functional.logsigmoid(normal(value_heads) + 3), "beta": normal(value_heads).sigmoid().bfloat16()}
    elif name == "kda":
        given |= {"g": functional.logsigmoid(normal(heads, rows)) / 16, "beta": normal(value_heads).sigmoid()}
    elif name == "gla":
        given["g"] = functional.logsigmoid(normal(heads, rows)) / 16
    elif name == "ssd":
        rates, bias = -8 * torch.rand(value_heads, device="cuda") - 0.5, torch.full((value_heads,), -3.0, device="cuda")
        given |= {"dt": normal(value_heads).bfloat16(), "A": rates, "D": torch.randn(value_heads, device="cuda"), "bias": bias}
    return {key: x.bfloat16() if key in ("q", "k", "v") else x for key, x in given.items()}


def simplify(torch, name, given):
    """What is given with norms and steps made, or None where nothing changes."""
    functional = torch.nn.functional
    if name in ("delta_rule", "kda"):
        return given | {key: functional.normalize(given[key].float(), dim=-1).bfloat16() for key in ("q", "k")}
    if name == "ssd":
        made = given | {"dt": functional.softplus(given["dt"].float() + given["bias"])}
        del made["bias"]
        return made
    return None


def recur(torch, name, given):
    """The outputs of a model's recurrence in double precision, token by token."""
    q, k, v = (given[key].double() for key in ("q", "k", "v"))
    if name == "ssd":
        steps = torch.nn.functional.softplus(given["dt"].double() + given["bias"])
        decays, news, rates, scale, out = (steps * given["A"]).exp()[..., None], v * steps[..., None], None, 1.0, given["D"][:, None] * v
    else:
        q, k = (torch.nn.functional.normalize(x, dim=-1) for x in (q, k))
        decays, news, rates, scale, out = given["g"].double().exp(), v, given["beta"].double(), q.shape[3] ** -0.5, torch.zeros_like(v)
        decays = decays if decays.dim() == 4 else decays[..., None]
    q, k, decays = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (q, k, decays))
    state = v.new_zeros((v.shape[0], v.shape[2], q.shape[3], v.shape[3]))
    for t in range(v.shape[1]):
        state *= decays[:, t, :, :, None]
        new = news[:, t] if rates is None else rates[:, t, :, None] * (news[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state += k[:, t, :, :, None] * new[:, :, None]
        out[:, t] += scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state)
    return out


def find_own(name, plain=False):
    """A function of what `draw` gives."""
    from tessera import torch as own

    if name == "ssd":
        limit = -math.inf if plain else 0.0, math.inf
        return lambda q, k, v, dt, A, D, bias=None: own.ssd(v, dt, A, k, q, D, bias, dt_softplus=not plain, dt_limit=limit)
    function = {"retention": own.retention, "gla": own.gla}.get(name, own.gated_delta_rule)
    norm = {"use_qk_l2norm_in_kernel": True} if name in ("delta_rule", "kda") and not plain else {}
    return lambda **given: function(**given, **norm)[0]


# What is known of calls, of contestants whose calls are others than those like them, as shapes and texts do not say who is called.
_known = {}


def choose_form(way):
    """A context for calls of a contestant, one at a time in a process: those of "whole" have no segments."""
    from tessera.torch import _prepared, _segments

    found = contextlib.ExitStack()
    if way == "whole":
        # Functions, as making a mock takes the host longer than a call.
        plans, learned = _known.setdefault(way, ({}, {}))
        found.enter_context(unittest.mock.patch.object(_prepared, "_plans", plans))
        found.enter_context(unittest.mock.patch.object(_prepared, "_learned", learned))
        found.enter_context(unittest.mock.patch.object(_segments, "cut", lambda *_: None))
    return found


def in_context(way, call):
    def run():
        with choose_form(way):
            return call()

    return run


def make_runs(torch, call, given):
    """Functions for the forward pass and for both, which return tensors."""
    leaves = {name: tensor.detach().clone().requires_grad_() for name, tensor in given.items()}

    def run_forward():
        with torch.no_grad():
            return call(**given)

    torch.manual_seed(1)
    grad = torch.randn_like(given["v"])

    def run_both():
        return torch.autograd.grad(call(**leaves), tuple(leaves.values()), grad)

    return {"forward": run_forward, "both": run_both}


def list_ways(torch, name, given, wanted):
    """({contestant: (a function, what it is given)}, the tokens of a segment) of the contestants that are wanted"""
    from tessera.torch import _segments

    own, segments = find_own(name), _segments.cut(given["v"]) if name in ("retention", "gla", "ssd") else None
    ways, simple = {"tessera": (own, given)}, simplify(torch, name, given)
    if simple is not None:
        ways["plain"] = find_own(name, True), simple
    if segments is not None:
        ways["whole"] = own, given
    return {way: own for way, own in ways.items() if way in wanted}, segments.own if segments else None


def compile_own(torch, shapes, wanted):
    """Compiles what our calls take, all of a shape side by side."""
    for _, batch, tokens, own in shapes:
        for way, (call, given) in list_ways(torch, own[0], draw(torch, batch, tokens, own), wanted)[0].items():
            with choose_form(way):
                common.call_ahead(make_runs(torch, call, given).values())


def compile_share(torch, shapes, rank, count, folder, chosen):
    """Compiles a share of what peers try at shapes as these, of fewer tokens."""
    with triton_ahead.compile_share(rank, count, os.path.join(folder, f"{rank}.txt"), chosen):
        # Kernels are made for a number of sequences, and for any of tokens.
        less = list(dict.fromkeys((batch, min(tokens, 1024), own) for _, batch, tokens, own in shapes))
        # Each process begins elsewhere, so that what is not compiled in time is a few configurations of each kernel.
        for batch, tokens, own in less[rank % len(less) :] + less[: rank % len(less)]:
            with contextlib.suppress(Exception):  # Peers fail in ways of their own, and do so again where they are timed.
                runs = make_runs(torch, recurrence_peers.find(own[0])[1], draw(torch, batch, tokens, own))
                for run in runs.values():
                    run()


@contextlib.contextmanager
def compiling_peers(options, count):
    """Processes that compile what peers try. Yields a function that ends them at a time, and returns the folder of what they did."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.abspath(__file__), "--groups", options.groups, "--compiled", folder]
        for name in ("only", "tuned"):
            command += [f"--{name}", getattr(options, name)] if getattr(options, name) else []
        running = [subprocess.Popen([*command, "--share", f"{rank},{count}"]) for rank in range(count)]

        def finish(at):
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, at - time.monotonic()) if at < math.inf else None)
            for process in running:
                process.kill()
                process.wait()
            return folder

        try:
            yield finish
        finally:
            finish(0.0)


def count_work(own, batch, tokens, given, what):
    """(FLOPs, bytes) of the chunked form of 64 tokens, and of what goes in and out."""
    name, _, value_heads, rows, columns = own
    products = 64 * (rows + columns) + 2 * rows * columns
    if name in ("delta_rule", "kda"):
        # Keys with keys, the inverse with keys and values, and what the state holds of the keys.
        products += 64 * (2 * rows + columns) + rows * columns
    of_given = sum(x.numel() * x.element_size() for x in given.values())
    of_out = given["v"].numel() * given["v"].element_size()
    flops, passes = 2 * products * batch * tokens * value_heads, {"forward": (1, 1, 1), "both": (3, 3, 2)}[what]
    return flops * passes[0], of_given * passes[1] + of_out * passes[2]


def add_limits(record, multiprocessors, memory):
    own = record["timings"].get("tessera")
    if own:
        record["cores"] = record["flops"] / (own["ms"] * 1e-3) / (multiprocessors * FLOPS_A_CYCLE * CLOCK)
        record["memory"] = record["bytes"] / (own["ms"] * 1e-3) / memory
    return record


def prepare(torch, name, given, options):
    """({contestant: its runs}, the tokens of a segment). Peers that cannot be imported are left out."""
    ways, segment = list_ways(torch, name, given, options.ways)
    if not options.no_peers:
        with contextlib.suppress(ImportError):
            peer, call = recurrence_peers.find(name)
            ways |= {peer: (call, given)} if peer in options.ways else {}
    return {way: make_runs(torch, *own) for way, own in ways.items()}, segment


def find_memory(torch, run):
    """MiB that a call has at most."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def count_launches(torch, run):
    """Kernels, copies and clearings of a call that is like one before."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        run()
        torch.cuda.synchronize()
    return sum(event.count for event in found.key_averages() if event.device_time_total > 0)


def print_launches(torch, shapes, options):
    """Behind all that is timed, as a profiler slows the host. Models launch as much for each shape, but where that is cut into segments."""
    for model, batch, tokens, own in {shape[0]: shape for shape in shapes if shape[0] and shape[1] == 1}.values():
        runs, _ = prepare(torch, own[0], draw(torch, batch, tokens, own), options)
        for what in ("forward", "both"):
            counts = ", ".join(f"{way} {count_launches(torch, in_context(way, run[what]))}" for way, run in runs.items())
            print(f"launches of {model}, {batch} x {tokens}, {what}: {counts}", flush=True)


def measure(torch, shape, options, stopwatch):
    """The records of a shape: forward and both."""
    model, batch, tokens, own = shape
    given = draw(torch, batch, tokens, own)
    runs, segment = prepare(torch, own[0], given, options)
    # Of few tokens, as each is a handful of launches.
    exact = recur(torch, own[0], given) if model and tokens <= FEW_TOKENS else None
    for what in ("forward", "both"):
        record = {**dict(zip(COLUMNS, (model, batch, tokens, *own))), "what": what, "segment": segment}
        record["flops"], record["bytes"] = count_work(own, batch, tokens, given, what)
        contestants, expected = {}, None
        for way, both in runs.items():
            run = in_context(way, both[what])
            try:
                results = run()
                expected = results if expected is None else expected
                if way != "plain":  # Its gradients are of other tensors.
                    record[f"{way}, error"] = common.find_error(results, expected)
                if exact is not None and what == "forward":
                    record[f"{way}, from f64"] = common.find_error(results, exact)
                del results
                record[f"{way}, MiB"] = find_memory(torch, run)
                contestants[way] = run
            except Exception as error:  # As above.
                record[f"{way}, failed"] = f"{type(error).__name__}: {str(error)[:160]}"
        yield {**record, "timings": stopwatch.compare(contestants) if contestants else {}}


def to_row(record):
    row = {column: record[column] for column in (*COLUMNS, "what", "segment")}
    for way in WAYS:
        row[way] = record["timings"].get(way, {}).get("ms") or record.get(f"{way}, failed")
    row |= {f"{way}, MiB": record.get(f"{way}, MiB") for way in ("tessera", *STATES, "fla", "mamba")}
    for way in ("whole", *STATES, "fla", "mamba"):
        row[f"{way}, error"] = record.get(f"{way}, error")
    row |= {f"{way}, from f64": record.get(f"{way}, from f64") for way in ("tessera", "fla", "mamba")}
    for limit in ("cores", "memory"):
        row[limit] = f"{record[limit]:.0%}" if limit in record else None
    ratio = find_ratio(record)
    row["faster"] = None if ratio is None else f"{ratio:.2f}"
    return row


def find_ratio(record):
    """The peer's time over ours, or None."""
    times = [record["timings"].get(way, {}).get("ms") for way in ("tessera", "fla", "mamba")]
    peers = [time for time in times[1:] if time]
    return min(peers) / times[0] if times[0] and peers else None


def summarize(records):
    """Lines with the geometric means of ratios, and the least, of all models and of each."""
    for what in ("forward", "both"):
        for models in (tuple(MODELS), *((model,) for model in MODELS)):
            ratios = [x for x in map(find_ratio, (r for r in records if r["what"] == what and r["model"] in models)) if x]
            if ratios:
                mean = f"{statistics.geometric_mean(ratios):.2f} times the peers' speed, least {min(ratios):.2f}"
                print(f"{what}: {mean}, over {len(ratios)} shapes of {' and '.join(models)}", flush=True)


def main():
    began, options = time.monotonic(), parse_arguments()
    import torch

    shapes = list_shapes(options)
    chosen = triton_ahead.read_names(options.tuned)
    if options.share:
        compile_share(torch, shapes, *options.share, options.compiled, chosen)
        return
    with compiling_peers(options, 0 if options.no_peers else os.cpu_count()) as finish:
        compile_own(torch, shapes, options.ways)
        print(f"own kernels are compiled after {time.monotonic() - began:.0f} s", flush=True)
        folder = finish(began + AHEAD * options.limit)
        tuned = None if options.no_peers else triton_ahead.tune(folder)
    print(f"peers' kernels are compiled after {time.monotonic() - began:.0f} s", flush=True)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Recurrences as models call them, bf16: ms by CUDA events, L2 flushed, contestants in turns; errors beside the first."
    results = common.Results(options, "recurrences", common.describe_gpu(), method)
    memory = common.find_number("memoryBytesPerSecond", results.header["gpu"])
    for shape in shapes:
        if time.monotonic() - began > options.limit:
            print("the time is over", flush=True)
            break
        for record in measure(torch, shape, options, stopwatch):
            results.add([add_limits(record, results.header["multiprocessors"], memory)], to_row)
        if tuned and options.tuned:
            common.replace_file(options.tuned, "".join(f"{name}\n" for name in sorted(chosen | tuned.find_chosen())))
    if tuned and tuned.left_out:
        print(f"{len(tuned.left_out)} configurations of peers were not compiled and left out")
    summarize(results.records)
    if time.monotonic() - began < options.limit:
        print_launches(torch, shapes, options)
    results.finish()


if __name__ == "__main__":
    main()
