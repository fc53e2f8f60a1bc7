# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s 2
# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s 4
"""Gradients of ssd with states of blocks of so many chunks, which a rule chooses (ssd_gradients.tile), against those of its definition in
f64, and no more than twice as far from these as those of walks: on the interpreter, with heads that share queries and keys in one part
and in several, segments, packed sequences and states."""

import json
import os
import sys
import tempfile
import unittest.mock

EVERY = int(sys.argv[1])
ROWS = [{"source": "ssd_gradients.tile", "when": ["DK <= 128"], "extents": ["V == 64"], "take": {"EVERY": EVERY}}]
FILE = tempfile.NamedTemporaryFile("w", suffix=".json")
json.dump({"format": "tessera-rules", "version": 1, "rules": ROWS}, FILE)
FILE.flush()
os.environ["TESSERA_RULES"] = FILE.name

import torch  # noqa: E402
from recurrent_definitions import BATCH, V, differentiate, draw, measure_peak, recur  # noqa: E402

from tessera._attention._recurrences import GIVEN, count_head_parts  # noqa: E402
from tessera.torch import _gradient_recipes, _segments, ssd, use_interpreter  # noqa: E402

NAN = float("nan")


def define(q, k, v, dt, A, D=None, bias=None, state=None, limit=None):
    """Steps have a softplus where they have a bias."""
    steps = dt if bias is None else torch.nn.functional.softplus(dt + bias)
    steps = steps if limit is None else steps.clamp(*limit)
    out, last = recur(q, k, v, (steps * A).exp(), steps, state=state)
    return out if D is None else out + D[..., None] * v, last


def define_packed(starts, q, k, v, state=None, limit=None, **others):
    """The same of packed sequences. What is of heads, of dimension 1, is of all tokens."""
    found = []
    for i, (first, past) in enumerate(zip(starts[:-1], starts[1:])):
        own = None if state is None else state[i : i + 1]
        if past > first:
            cut = lambda x: x[:, first:past] if x.dim() > 1 else x
            named = {name: cut(x) for name, x in others.items()}
            found.append(define(cut(q), cut(k), cut(v), **named, state=own, limit=limit))
        else:
            found.append((v[:, first:past], v.new_zeros(1, v.shape[2], q.shape[3], v.shape[3]) if own is None else own))
    return torch.cat([out for out, _ in found], 1), torch.cat([last for _, last in found])


def call(q, k, v, dt, A, D=None, bias=None, state=None, limit=None, starts=None, tokens=None):
    """Outputs of the first `tokens`, and states behind."""
    others = {} if limit is None else {"dt_limit": limit}
    before = None if state is None else state.transpose(2, 3)
    y, last = ssd(v, dt, A, k, q, D, bias, before, bias is not None, True, starts, **others)
    return y[:, :tokens], last.transpose(2, 3)


def find_error(found, expected, size):
    return (found.double() - expected).norm() / size.clamp(min=1e-3)


def check(tokens, heads, own, has_states, lengths=None, limit=None, rates=1.0, widths=(64, V), parts=None, dtype=torch.float16):
    """The gradients of a call: of `parts` of heads where a count is given. Behind packed sequences are rows of NaN."""
    given = {name: x.to(dtype) for name, x in draw(tokens + (3 if lengths else 0), heads, own, widths).items()}
    given.update(dt=torch.rand(*given["v"].shape[:3]), A=-rates * torch.rand(own) - 0.1)
    if has_states:
        sequences = len(lengths) if lengths else BATCH
        given.update(D=torch.randn(own), state=torch.randn(sequences, own, *widths))
        given.update({} if lengths else {"bias": torch.randn(own)})
    exact = {name: x.double() for name, x in given.items()}
    starts = torch.tensor([0, *lengths]).cumsum(0).int() if lengths else None
    for x in [given[name] for name in ("q", "k", "v", "dt")] if lengths else []:
        x[:, tokens:] = NAN
    of_packed = lambda **named: define_packed(starts.tolist(), **named, limit=limit)
    of_dense = lambda **named: define(**named, limit=limit)
    definition = of_packed if lengths else of_dense
    out, last = definition(**exact)
    weights = [torch.randn_like(out), torch.randn_like(last)]
    compute = lambda: differentiate(lambda **named: call(**named, limit=limit, starts=starts, tokens=tokens), given, weights)
    counted = []
    with unittest.mock.patch.object(_gradient_recipes, "count_head_parts", lambda *a: counted.append(a) or (parts or a[2])):
        found = compute()
    assert len(counted) == 1, "the rule is not taken, or a call before was like this one"
    with unittest.mock.patch.object(_gradient_recipes, "_count_kept", lambda *_: 1):
        of_walks = compute()
    wanted, limit_of_all = differentiate(definition, exact, weights), 2 * torch.finfo(dtype).eps
    for name, expected in wanted.items():
        size = expected.norm()
        if expected.dim() == 1:
            # A sum over all tokens, of either sign, of which nothing may be left.
            each = {**exact, name: exact[name].expand(exact["dt"].shape)}
            size = max(differentiate(definition, each, weights)[name].abs().sum(dim=(0, 1)).norm(), wanted["dt"].norm())
        error, of_other = find_error(found[name], expected, size), find_error(of_walks[name], expected, size)
        limit_of_name = min(limit_of_all, 2 * of_other + 1e-4)
        assert error < limit_of_name, f"{tokens} tokens of {own} heads, packed {lengths}, {name}: {error}, and {of_other} of walks"


def check_memory():
    """What gradients hold beside their results, of a chunk of a head: two states of a block in 16 bits, and four numbers of a token."""
    tokens, own, rows = 1024, 4, 128
    q, k, v = draw(tokens, 1, own, (rows, V)).values()
    steps, rates, grad = torch.rand(BATCH, tokens, own), -torch.rand(own), torch.ones_like(v)
    with unittest.mock.patch.object(_gradient_recipes, "count_head_parts", lambda points, shared, *_: shared):
        given = grad, None, q, k, v, steps, rates, *[None] * 6, *GIVEN, grad.new_empty(0)
        found = measure_peak(lambda: torch.ops.tessera.ssd_backward(*given))
    expected = 2 * rows * V * 2 / EVERY + 64 * 4 * 3
    assert expected < found / (tokens // 64 * own) < 1.02 * expected, (found / (tokens // 64 * own), expected)


for form, count in (((512, 1, 80, 132), 1), ((128, 1, 80, 132), 2), ((16, 1, 80, 132), 10), ((1, 2, 6, 132), 6), ((1000, 8, 64, 132), 8)):
    assert count_head_parts(*form) == count, form
use_interpreter()
torch.manual_seed(1)
check(1, 1, 1, False)
check(63, 1, 3, True, parts=1)
check(64, 2, 16, True)
check(65, 1, 8, False, parts=2)
check(130, 2, 16, True, parts=4, limit=(0.3, 1.2))
check(65, 1, 1, True, rates=40.0)
check(300, 1, 2, True, dtype=torch.bfloat16)
check(300, 1, 2, True, widths=(128, V), parts=1)
check(1000, 1, 3, True, parts=3)
check(428, 1, 1, True, (1, 63, 0, 64, 300, 0))
check(256, 2, 6, False, (0, 63, 65, 128), parts=2)
# Segments that end amid blocks.
with unittest.mock.patch.object(_segments, "cut", lambda v: _segments.Segments(v.shape[1], 192, v.device)):
    check(500, 1, 2, True)
check_memory()
