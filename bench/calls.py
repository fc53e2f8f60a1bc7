"""Attention as it is called: the installed package's public functions beside those of other packages, on the device and, apart,
on the host.

    forward     attention over the grid of the FlashAttention-3 paper and shapes of models
    gradients   torch.autograd.grad of the same
    functions   functions of scores and masks, forward and their gradients, beside FlexAttention's two backends
    fp8         attention_fp8 over the same shapes with head dimensions that it takes, beside attention
    host        the host's time of a call, forward and backward, of everything above, and of compiled code

bf16, BSHD storage. A pair of CUDA events is around each call, with the L2 flushed before; a call whose host takes longer than
the flush pays for that, as it does in programs. Peers are packages that can be imported (call_peers.py); one that is not there,
or does not take a shape, is left out by a line. "to best" is our rate over that of the best peer. The last table lists the
cliffs: what is below 0.97 of the best peer, functions below 0.9 of what their instructions explain, goals of the host's time
that are missed. --quick is for five minutes of a GPU. Results are written after each point.
"""

import argparse
import contextlib
import dataclasses
import itertools
import time

with contextlib.suppress(ImportError):
    import tessera  # noqa: F401  That of the installed package, where there is one, and not of this checkout.

import call_host
import call_peers
import call_problems
import common

PARTS = ("host", "forward", "gradients", "functions", "fp8")
# Below so much of the best peer's rate a point is a cliff, and a function of what its instructions explain.
LEAST_OF_PEERS, LEAST_EXPLAINED = 0.97, 0.9
SHAPE_COLUMNS = [field.name for field in dataclasses.fields(call_problems.Shape) if field.name != "group"]
METHOD = (
    "Attention through public functions, bf16, BSHD storage: TFLOP/s by medians of CUDA-event times around each call, L2 flushed, "
    "contestants in turns; the host's times in microseconds by medians of quiet batches."
)


def parse_arguments(arguments=None):
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--only", default=PARTS, type=_read_parts, metavar="PART,...", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a few shapes, functions and batches")
    parser.add_argument("--groups", default=",".join(call_problems.GROUPS), help="of shapes (default: %(default)s)")
    parser.add_argument("--lengths", type=common.numbers, help="of functions; otherwise 2048, 8192 and 16384")
    parser.add_argument("--functions", help="names of functions, separated by commas; otherwise all")
    parser.add_argument("--peers", default=",".join((*call_peers.NAMES, *call_peers.FLEX)), help="(default: %(default)s)")
    parser.add_argument("--milliseconds", type=float, help="of timed work for each contestant")
    parser.add_argument("--rounds", type=int, default=6, help="in which the contestants take turns")
    parser.add_argument("--d", type=int, default=64, help="head dimension of the calls of which the host is timed")
    parser.add_argument("--batches", type=int, help="of each call of which the host is timed, in a process")
    parser.add_argument("--launches", type=int, default=50, help="of a batch")
    parser.add_argument("--processes", type=int, help="of each kind, which the host's times are of")
    parser.add_argument("--inside", choices=("eager", "compiled"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for name, quick, usual in (("milliseconds", 40, 150), ("batches", 20, 60), ("processes", 1, 3)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)
    return options


def _read_parts(text):
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(PARTS)}")
    return tuple(name for name in PARTS if name in names)


class Problem:
    """The tensors of a shape, as leaves of autograd, and the gradient of the output."""

    def __init__(self, shape):
        import torch

        self.shape, self.torch = shape, torch
        torch.manual_seed(0)

        def draw(length, heads, d):
            return torch.randn((shape.batch, length, heads, d), device="cuda", dtype=torch.bfloat16)

        self.q, self.k = draw(shape.queries, shape.heads, shape.d), draw(shape.keys, shape.kv_heads, shape.d)
        self.v, self.grad = draw(shape.keys, shape.kv_heads, shape.dv), draw(shape.queries, shape.heads, shape.dv)

    def prepare(self, call, gradients, learned=()):
        """A function that makes the output, or the gradients of one output by q, k, v and `learned`, again and again."""
        tensors = self.q, self.k, self.v
        if not gradients:

            def run():
                with self.torch.no_grad():
                    return call(*tensors)

            return run
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        out = call(*leaves)
        return lambda: self.torch.autograd.grad(out, (*leaves, *learned), self.grad, retain_graph=True)


def attempt(name, problem, make, expected=None):
    """A function that `make` gives and that runs, or None after a line that says why it does not serve."""
    try:
        run = make()
        results = common.settle(run)
        if expected is not None:
            error = common.find_error(results, expected)
            if not error < common.MAX_ERROR:
                raise call_peers.Unavailable(f"computes something else (error {error:.2g})")
        return run
    except Exception as error:  # Peers fail in ways of their own; each is optional.
        lines = str(error).strip().splitlines() or [""]
        print(f"{name}: left out at {problem.shape}: {type(error).__name__}: {lines[0][:160]}", flush=True)
        return None


def compare(part, problem, own, peers, flops, stopwatch, **point):
    """The record of a point: our rate, those of the peers that compute the same, and their times."""
    record = {"part": part, **dataclasses.asdict(problem.shape), **point}
    run = attempt("tessera", problem, own)
    if run is None:
        return {**record, "failed": True}
    expected = run()
    rivals = {name: attempt(name, problem, make, expected) for name, make in peers.items()}
    timings = stopwatch.compare({"tessera": run, **{name: call for name, call in rivals.items() if call}})
    for timing in timings.values():
        timing["tflops"] = flops / timing["ms"] / 1e9
    return {**record, "timings": timings, "host us": time_host(run, timings["tessera"]["ms"])}


def time_host(run, ms):
    """Microseconds of the host for a call that takes so many milliseconds, where the queue is far from full."""
    import torch

    count = max(3, min(20, round(10 / ms)))
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken / count * 1e6


def measure_plain(part, options, stopwatch):
    """Forward or gradients of all shapes."""
    gradients = part == "gradients"
    for shape in call_problems.list_shapes(options.groups.split(","), options.quick):
        problem = Problem(shape)
        peers = {
            name: lambda make=make: problem.prepare(make(shape, gradients), gradients)
            for name, make in call_peers.MAKERS.items()
            if name in options.peers.split(",")
        }
        own = lambda: problem.prepare(call_peers.make_own(shape), gradients)  # noqa: E731
        yield compare(part, problem, own, peers, shape.count_flops(gradients), stopwatch)


def measure_fp8(options, stopwatch):
    """Beside attention itself, whose result it has but for what 8 bits lose."""
    for shape in call_problems.list_shapes(options.groups.split(","), options.quick):
        if not {shape.d, shape.dv} <= {64, 96, 128, 192, 256}:
            continue
        problem = Problem(shape)
        runs = {
            "tessera": problem.prepare(call_peers.make_fp8(shape), False),
            "bf16": problem.prepare(call_peers.make_own(shape), False),
        }
        for run in runs.values():
            common.settle(run)
        timings = stopwatch.compare(runs)
        for timing in timings.values():
            timing["tflops"] = shape.count_flops(False) / timing["ms"] / 1e9
        yield {"part": "fp8", **dataclasses.asdict(shape), "timings": timings}


def list_function_points(options):
    lengths = options.lengths or ((8192,) if options.quick else (2048, 8192, 16384))
    wanted = options.functions.split(",") if options.functions else None
    for d, length in itertools.product((64, 128), lengths):
        heads, batch = call_problems.HIDDEN // d, max(1, call_problems.TOKENS // length)
        for function in call_problems.FUNCTIONS:
            if wanted is None or function.name in wanted:
                mask = "full" if function.name == "none" else "causal"
                yield call_problems.Shape("functions", function.name, mask, d, d, batch, length, length, heads, heads), function


def make_block_mask(torch, shape, mask_mod):
    from tessera.torch import create_block_mask

    return create_block_mask(mask_mod, None, None, shape.queries, shape.keys, device="cuda")


def measure_functions(options, stopwatch):
    """Of each point our functions, the same function by FlexAttention, and beside both the plain kernel with a causal mask."""
    import torch

    for shape, function in list_function_points(options):
        problem = Problem(shape)
        score_mod, mask_mod, *learned = function.make(torch, shape)
        block_mask = make_block_mask(torch, shape, mask_mod) if function.has_list else None
        for gradients in (False, True):
            prepare = lambda call: problem.prepare(call, gradients, learned)  # noqa: E731, B023
            peers = {
                backend: lambda backend=backend: prepare(call_peers.make_flex(shape, (score_mod, mask_mod), backend))
                for backend in call_peers.FLEX
                if backend in options.peers.split(",")
            }
            own = lambda: prepare(call_peers.make_own(shape, (score_mod, mask_mod), block_mask))  # noqa: E731
            flops = shape.count_flops(gradients, function.pairs(shape.keys))
            part = "functions, gradients" if gradients else "functions"
            record = compare(part, problem, own, peers, flops, stopwatch, case=function.name)
            if function.least is not None and "timings" in record:
                record["least"] = function.least[gradients]
                plain = problem.prepare(call_peers.make_own(shape), gradients)
                common.settle(plain)
                timing = stopwatch.compare({"plain": plain})["plain"]
                record["to plain"] = timing["ms"] / record["timings"]["tessera"]["ms"]
            yield record


def rate(record, name="tessera"):
    return record.get("timings", {}).get(name, {}).get("tflops")


def find_best(record):
    """The rate of the best peer, None without one."""
    rates = [timing["tflops"] for name, timing in record.get("timings", {}).items() if name not in ("tessera", "bf16")]
    return max(rates, default=None)


def to_row(record):
    best, own = find_best(record), rate(record)
    row = {"part": record["part"], **{column: record[column] for column in SHAPE_COLUMNS}}
    row["ours"] = "failed" if record.get("failed") else own
    for name in (*call_peers.NAMES, *call_peers.FLEX, "bf16"):
        row[name] = rate(record, name)
    row["to best"] = f"{own / best:.2f}" if own and best else None
    row["to plain"] = f"{record['to plain']:.2f}" if "to plain" in record else None
    return row


def find_cliffs(record):
    """What a record says that users should not meet."""
    best, own = find_best(record), rate(record)
    point = {"part": record["part"], "point": str(call_problems.Shape(**{"group": "", **{c: record[c] for c in SHAPE_COLUMNS}}))}
    if record.get("failed"):
        yield {**point, "ours": "failed", "goal": "runs", "cause": "an error"}
    cause = find_cause(record)
    if best and own < LEAST_OF_PEERS * best:
        yield {**point, "ours": f"{own / best:.2f} of the best peer", "goal": f"at least {LEAST_OF_PEERS}", "cause": cause}
    least = record.get("least")
    if least is not None and record["to plain"] < LEAST_EXPLAINED * least:
        goal = f"at least {LEAST_EXPLAINED} of {least}"
        yield {**point, "ours": f"{record['to plain']:.2f} of the plain kernel", "goal": goal, "cause": cause}


def find_cause(record):
    """Whether the host or the device takes the time of a call of ours, in words; None where the host was not timed."""
    if "host us" not in record:
        return None
    # The host works while the L2 is flushed, so that it may take longer than the call does.
    taken, host = 1000 * record["timings"]["tessera"]["ms"], record["host us"]
    return f"the host, {host:.0f} us for a call of {taken:.0f}" if host > taken else f"the device, {taken:.0f} us, the host {host:.0f}"


class Report:
    """The results so far: one table of the device's times, one of the host's, and the cliffs."""

    def __init__(self, options):
        self.results = common.Results(options, "calls", {**common.describe_gpu(), **common.describe_cpu()}, METHOD)
        self.device, self.host = [], []

    def add(self, record):
        common.print_row(to_row(record))
        self.device.append(record)
        self.write()

    def add_host(self, records):
        self.host = records
        self.write()

    def list_cliffs(self):
        return [*call_host.list_cliffs(self.host), *(cliff for record in self.device for cliff in find_cliffs(record))]

    def write(self):
        tables = [call_host.to_rows(self.host), [to_row(record) for record in self.device], self.list_cliffs()]
        rows, *others = [table for table in tables if table] or [[]]
        self.results.write(rows, [*self.host, *self.device], *others)


def main():
    options = parse_arguments()
    if options.inside:
        call_host.run_process(options)
        return
    report = Report(options)
    if "host" in options.only:
        for records in call_host.measure(options):
            report.add_host(records)
        for row in call_host.to_rows(report.host):
            common.print_row(row)
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    parts = {
        "forward": lambda: measure_plain("forward", options, stopwatch),
        "gradients": lambda: measure_plain("gradients", options, stopwatch),
        "functions": lambda: measure_functions(options, stopwatch),
        "fp8": lambda: measure_fp8(options, stopwatch),
    }
    for name, measure in parts.items():
        for record in measure() if name in options.only else ():
            report.add(record)
    for cliff in report.list_cliffs():
        common.print_row({"cliff": cliff.pop("part"), **cliff})
    report.results.finish()


if __name__ == "__main__":
    main()
