"""Compares kernels of kernels/linear with their recurrences, token by token."""

import math

from reference import compare, load, run, save


def recur(length, q, k, v, gates, state, scale, rates=None):
    """The outputs of a head, and its state behind them, which is changed in place: S = exp(g) S + k^T u, with a gate for each token, or
    for each channel of the keys. u is v, or with `rates` what v has more than the state holds for k, times the rate. All but gates may
    go on."""
    rows, columns, each = len(state), len(state[0]), len(gates) // length
    outputs = []
    for t in range(length):
        query, key, value, own = q[t * rows :][:rows], k[t * rows :][:rows], v[t * columns :][:columns], gates[t * each :][:each]
        for gate, row in zip(own * (rows // each), state):
            row[:] = [math.exp(gate) * held for held in row]
        if rates:
            value = [rates[t] * (x - sum(y * row[j] for y, row in zip(key, state))) for j, x in enumerate(value)]
        for x, row in zip(key, state):
            row[:] = [held + x * new for held, new in zip(row, value)]
        outputs += [scale * sum(x * row[j] for x, row in zip(query, state)) for j in range(columns)]
    return outputs


def check(kernel, folder, inputs, start, shape, recur, length, scale=None, parameters=(), simulated=()):
    """`recur` gives the outputs of a head from its number and its state, a list of rows, which it changes in place. `inputs` are values
    and shapes by name; `start` holds the values of the states before the first token, of `shape`, or is None. On the interpreter, and
    on the simulator beside it with the options `simulated`."""
    heads, rows, columns = shape
    inputs = dict(inputs, **({"s0": (start, (1, *shape))} if start else {}))
    options = [f"-DDK={rows}", f"-DDV={columns}", "-DFINAL=true", f"-DINITIAL={str(bool(start)).lower()}", *parameters]
    for name, (values, extents) in inputs.items():
        save(f"{folder}/{name}.npy", values, extents)
        options += ["--input", f"{name}={folder}/{name}.npy"]
    if scale is not None:
        options += ["--set", f"scale={scale}"]
    outputs = [word for name in ("o", "s1") for word in ("--output", f"{name}={folder}/{name}.npy")]
    run(kernel, *options, *outputs, "--precision", "exact")
    out, last = [], []
    for head in range(heads):
        state = [start[(head * rows + i) * columns :][:columns] if start else [0.0] * columns for i in range(rows)]
        out += recur(head, state)
        last += [x for row in state for x in row]
    compare(f"o, {length} tokens", load(f"{folder}/o.npy"), out, 1e-5)
    compare(f"s1, {length} tokens", load(f"{folder}/s1.npy"), last, 1e-5)
    run(kernel, *options, *simulated, "--device", "sim", "--check")
