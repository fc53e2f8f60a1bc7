"""A step of decoding of each recurrence, one token of 64 x 32 states, beside a copy of as many bytes as the states before and behind have:
microseconds by CUDA graphs, in turns.

    ./dev bench recurrence_steps
"""

import math
import statistics

import common

SEQUENCES, HEADS, ROWS = 64, 32, 128
# Columns of the states of each call.
COLUMNS = {"retention": 128, "gla": 128, "gated_delta_rule": 128, "gated_delta_rule, gates of channels": 128, "ssd": 64}
TURNS, ROUNDS = 4, 12


def make_step(torch, name, columns):
    """A function of one token of a call, and its state."""
    from tessera import torch as own

    torch.manual_seed(0)

    def normal(*extents):
        return torch.randn(SEQUENCES, 1, *extents, device="cuda")

    q, k = (torch.nn.functional.normalize(normal(HEADS, ROWS), dim=-1).bfloat16() for _ in "qk")
    v, gates, rates = normal(HEADS, columns).bfloat16(), -normal(HEADS).abs(), normal(HEADS).sigmoid()
    named = {"initial_state": normal(HEADS, ROWS, columns)[:, 0], "output_final_state": True}
    of_channels = -normal(HEADS, ROWS).abs()
    # As the call before it has returned the state.
    of_ssd = {"initial_states": named["initial_state"].mT, "return_final_states": True, "dt_limit": (-math.inf, math.inf)}
    given = v, gates.abs(), -torch.rand(HEADS, device="cuda"), k[:, :, :1], q[:, :, :1], torch.randn(HEADS, device="cuda")
    calls = {
        "retention": lambda: own.retention(q, k, v, **named),
        "gla": lambda: own.gla(q, k, v, of_channels, **named),
        "gated_delta_rule": lambda: own.gated_delta_rule(q, k, v, gates, rates, **named),
        "gated_delta_rule, gates of channels": lambda: own.gated_delta_rule(q, k, v, of_channels, rates, **named),
        "ssd": lambda: own.ssd(*given, **of_ssd),
    }
    return calls[name], named["initial_state"]


def measure(torch, name, columns):
    step, state = make_step(torch, name, columns)
    copy = torch.empty_like(state)
    ways = {"step": step, "copy": lambda: copy.copy_(state)}
    with torch.no_grad():
        for way in ways.values():
            way()
        times = {way: [] for way in ways}
        for turn in range(TURNS):
            for way in list(ways)[:: 1 if turn % 2 else -1]:
                times[way].append(common.time_graph([ways[way]] * 4, ROUNDS))
    taken = {way: statistics.median(found) for way, found in times.items()}
    moved = 2 * state.numel() * state.element_size()
    return {"call": name, "rows": ROWS, "columns": columns, "MB": moved / 1e6, **taken, "TB/s": moved / taken["step"] / 1e6,
            "of a copy": f"{taken['copy'] / taken['step']:.3f}"}  # fmt: skip


def main():
    options = common.argument_parser(__doc__, schedules=False).parse_args()
    import torch

    method = f"One token of {SEQUENCES} x {HEADS} states: us in a CUDA graph of four calls, step and copy in turns."
    results = common.Results(options, "recurrence-steps", common.describe_gpu(), method)
    for name, columns in COLUMNS.items():
        results.add([measure(torch, name, columns)], lambda record: record)
    results.finish()


if __name__ == "__main__":
    main()
