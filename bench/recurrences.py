"""Recurrences as they are called, beside flash-linear-attention (package `fla-core`) where it can be imported: forward, and forward
and backward together ("both"), in milliseconds.

    tessera  the call as it is: long sequences of few heads in segments side by side, of so many tokens ("segment")
    whole    the same walked over whole, where it has segments
    fla      chunk_retention, chunk_gla, chunk_gated_delta_rule, chunk_kda, and for ssd chunk_simple_gla with the rest in PyTorch

    ./dev bench recurrences [--only delta_rule,kda]

bf16, medians of CUDA-event times, contestants in turns, L2 flushed. What fails is a line, and results are written after each point.
"""

import contextlib
import unittest.mock

import common

# (recurrence, batch, tokens, heads of q and k, heads of v, rows and columns of a state)
SHAPES = (
    ("kda", 1, 4096, 16, 16, 128, 128), ("retention", 1, 65536, 4, 4, 128, 128), ("ssd", 1, 65536, 1, 8, 128, 64),
    ("gla", 1, 32768, 4, 4, 128, 128), ("kda", 4, 4096, 16, 16, 128, 128), ("delta_rule", 1, 4096, 16, 32, 128, 128),
    ("delta_rule", 8, 4096, 16, 32, 128, 128), ("retention", 1, 16384, 4, 4, 128, 128), ("ssd", 1, 16384, 1, 8, 128, 64),
    ("gla", 1, 16384, 4, 4, 128, 128), ("delta_rule", 1, 16384, 4, 4, 128, 128), ("retention", 8, 4096, 16, 16, 128, 128),
    ("gla", 8, 4096, 16, 16, 128, 128), ("ssd", 1, 4096, 1, 80, 128, 64), ("ssd", 8, 2048, 1, 80, 128, 64),
    ("kda", 2, 8192, 16, 16, 64, 64),
)  # fmt: skip
COLUMNS = ("recurrence", "batch", "tokens", "heads", "value heads", "rows", "columns")


def parse_arguments():
    parser = common.argument_parser(__doc__, schedules=False)
    parser.add_argument("--only", metavar="NAME,...", help="recurrences; otherwise all")
    parser.add_argument("--points", type=int, default=len(SHAPES), help="how many")
    return parser.parse_args()


def draw(torch, shape):
    """What a recurrence is called with, by name."""
    name, batch, tokens, heads, value_heads, rows, columns = shape
    torch.manual_seed(0)

    def normal(*extents):
        return torch.randn(batch, tokens, *extents, device="cuda")

    functional = torch.nn.functional
    k = functional.normalize(normal(heads, rows), dim=-1)
    given = {key: x.bfloat16() for key, x in {"q": normal(heads, rows), "k": k, "v": normal(value_heads, columns)}.items()}
    if name == "delta_rule":
        given |= {"g": functional.logsigmoid(normal(value_heads) + 3), "beta": normal(value_heads).sigmoid()}
    elif name == "kda":
        given |= {"g": functional.logsigmoid(normal(heads, rows)) / 16, "beta": normal(value_heads).sigmoid()}
    elif name == "gla":
        given["g"] = functional.logsigmoid(normal(heads, rows)) / 16
    elif name == "ssd":
        rates = -8 * torch.rand(value_heads, device="cuda") - 0.5
        given |= {"dt": functional.softplus(normal(value_heads) - 3), "A": rates, "D": torch.randn(value_heads, device="cuda")}
    return given


def find_own(name):
    """A function of what `draw` gives."""
    from tessera import torch as own

    if name == "ssd":
        return lambda q, k, v, dt, A, D: own.ssd(v, dt, A, k, q, D)
    function = {"retention": own.retention, "gla": own.gla}.get(name, own.gated_delta_rule)
    return lambda **given: function(**given)[0]


def find_peer(name):
    """The same by flash-linear-attention."""
    import fla.ops.common.chunk_o as outputs

    # Of Triton's releases before 3.7 it takes some for wrong on Hopper, and refuses them.
    for flag in (flag for flag in dir(outputs) if "HOPPER" in flag):
        setattr(outputs, flag, False)
    if name == "ssd":
        from fla.ops.simple_gla import chunk_simple_gla

        def scan(q, k, v, dt, A, D):
            q, k = (x.expand(-1, -1, v.shape[2], -1) for x in (q, k))
            out, _ = chunk_simple_gla(q, k, (v * dt[..., None]).to(v.dtype), dt * A, scale=1.0)
            return (out + D[:, None] * v).to(v.dtype)

        return scan
    if name == "retention":
        from fla.ops.retention import chunk_retention as function
    elif name == "gla":
        from fla.ops.gla import chunk_gla as function
    elif name == "kda":
        from fla.ops.kda import chunk_kda as function
    else:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule as function

    def call(q, k, v, **given):
        q, k = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (q, k))
        return function(q, k, v, **given)[0]

    return call


def choose_segments(way):
    """A context for calls of a contestant, one at a time in a process: those of "whole" have no segments."""
    from tessera.torch import _segments

    # A function, as making a mock takes the host longer than a call.
    return unittest.mock.patch.object(_segments, "cut", lambda *_: None) if way == "whole" else contextlib.nullcontext()


def in_context(way, call):
    def run():
        with choose_segments(way):
            return call()

    return run


def make_calls(torch, call, given):
    """Functions that compile what the forward pass and both need."""
    return [lambda run=run: make_runs(torch, call, given)[run]() for run in ("forward", "both")]


def make_runs(torch, call, given):
    """Functions for the forward pass and for both, which return tensors."""
    leaves = {name: tensor.detach().clone().requires_grad_() for name, tensor in given.items()}

    def run_forward():
        with torch.no_grad():
            return call(**given)

    torch.manual_seed(1)
    grad = torch.randn_like(run_forward())

    def run_both():
        return torch.autograd.grad(call(**leaves), tuple(leaves.values()), grad)

    return {"forward": run_forward, "both": run_both}


def list_ways(name, given):
    """({contestant: a function of what is given}, the tokens of a segment)"""
    from tessera.torch import _segments

    own, segments = find_own(name), _segments.cut(given["v"], None) if name in ("retention", "gla", "ssd") else None
    ways = {"tessera": own}
    if segments is not None:
        ways["whole"] = own
    return ways, segments.own if segments else None


def measure(torch, shape, options, stopwatch):
    """The records of a shape: forward and both."""
    given = draw(torch, shape)
    ways, segment = list_ways(shape[0], given)
    if not options.no_peers:
        with contextlib.suppress(ImportError):
            ways["fla"] = find_peer(shape[0])
    runs = {}
    for way, call in ways.items():
        try:
            with choose_segments(way):
                if way != "fla":
                    common.call_ahead(make_calls(torch, call, given))
                runs[way] = make_runs(torch, call, given)
        except Exception as error:  # Peers fail in ways of their own.
            print(f"{way}: left out at {shape}: {type(error).__name__}: {str(error)[:160]}", flush=True)
    for what in ("forward", "both"):
        record, contestants, expected = {**dict(zip(COLUMNS, shape)), "what": what, "segment": segment}, {}, None
        for way, own in runs.items():
            run = in_context(way, own[what])
            try:
                results = run()
                expected = results if expected is None else expected
                record[f"{way}, error"] = common.find_error(results, expected)
                contestants[way] = run
            except Exception as error:  # As above.
                record[f"{way}, failed"] = f"{type(error).__name__}: {str(error)[:160]}"
        yield {**record, "timings": stopwatch.compare(contestants) if contestants else {}}


def to_row(record):
    row = {column: record[column] for column in (*COLUMNS, "what", "segment")}
    for way in ("tessera", "whole", "fla"):
        row[way] = record["timings"].get(way, {}).get("ms") or record.get(f"{way}, failed")
        row[f"{way}, error"] = record.get(f"{way}, error")
    del row["tessera, error"]
    return row


def main():
    options = parse_arguments()
    import torch

    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = "Recurrences as they are called, bf16: milliseconds by CUDA events, L2 flushed, contestants in turns; errors beside the first."
    results = common.Results(options, "recurrences", common.describe_gpu(), method)
    wanted = options.only.split(",") if options.only else [shape[0] for shape in SHAPES]
    for shape in [shape for shape in SHAPES if shape[0] in wanted][: options.points]:
        for record in measure(torch, shape, options, stopwatch):
            results.add([record], to_row)
    results.finish()


if __name__ == "__main__":
    main()
