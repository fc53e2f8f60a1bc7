"""Walks of recurrences: by one recipe, or, where heads are fewer than multiprocessors, in segments of a sequence side by side.

Each segment is walked over twice: for the state that it leaves by itself, and, when these are joined by what states fade by, with the
state before it. A walk from the end begins with the last segment.
"""

from __future__ import annotations

import torch

from .._attention import _recurrences
from .._attention._recurrences import CHUNK, GIVEN
from . import _kept, _kernels, _prepared, _walk_recipes

# Recurrences whose states are decayed sums, so that those of segments can be joined.
JOINED = {"retention", "gla", "ssd"}


def walk(
    name, q, k, v, others, scale, state, starts, wants_state, keeps=False, norm=False, made=GIVEN, constants={}, known=(None, ())
):  # fmt: skip
    """The results of _walk_recipes.py: outputs, states behind sequences where they are wanted, and with `keeps` what gradients take.
    `others` are its tensors by names, `made` the Steps, `constants` tensors that follow from options and shapes, and `known` what further
    calls are known by and given."""
    if 0 in v.shape or 0 in q.shape:
        return _walk_over_nothing(q, v, others, state, starts, wants_state, keeps)
    given, form = {**others, "s0": state, "begins": starts}, {"wants_state": wants_state, "keeps": keeps, "norm": norm, "made": made}
    segments = cut(v) if name in JOINED and starts is None else None
    if segments is None:
        return launch(name, q, k, v, given, scale, constants=constants, known=known, **form)
    others = {**others, **constants}
    before = segments.find_states(name, q, k, v, {each: x for each, x in others.items() if each != "z"}, scale, state, made=made)
    out, *last = launch(name, q, k, v, {**others, "s0": before, "table": segments.table}, scale, **form)
    return out, *(x[-1:] for x in last)


def launch(
    name, q, k, v, given, scale, wants_state=False, keeps=False, norm=False, joins=False, made=GIVEN, constants={}, known=(None, ()), **form
):  # fmt: skip
    """The results of _walk_recipes.py of tensors that are `given` by its names, of which some may be None. `form` are further parameters
    of the kernel."""
    given = {name: x for name, x in given.items() if x is not None}
    text = _walk_recipes.write((*given, *constants), name, v.device, wants_state, keeps, norm, joins, made.made, tuple(form.items()))
    return _prepared.compute(*known, text, (q, k, v, *given.values()), *list_numbers(scale, made), tuple(constants.values()))


def list_numbers(scale, made):
    """The numbers of a call with a scale and Steps, and their kinds."""
    return (scale, *made.limits), "s" + "f" * len(made.limits)


def _walk_over_nothing(q, v, others, state, starts, wants_state, keeps):
    results = [torch.empty_like(v, memory_format=torch.contiguous_format)]
    if wants_state:
        sequences = v.shape[0] if starts is None else starts.shape[0] - 1
        last = v.new_zeros((sequences, v.shape[2], q.shape[3], v.shape[3]), dtype=torch.float32)
        results.append(last if state is None else last.copy_(state))
    shapes = () if not keeps else (v.shape,) if "z" in others else list_kept(q, v, others["g"], starts)
    return *results, *map(v.new_empty, shapes)


def list_kept(q, v, g, starts):
    """The shapes of what gradients of delta rules take of the forward pass: what is new of the values, the inverses of chunks, and with
    gates of channels the scores of queries and keys."""
    batch, tokens, heads, columns = v.shape
    rows = tokens if starts is None else _walk_recipes.count_rows(tokens, starts.shape[0] - 1)
    shapes = (batch, rows, heads, columns), (batch, heads, rows, CHUNK)
    return (*shapes, (batch, q.shape[2], rows, CHUNK)) if g.dim() == 4 else shapes


def cut(v):
    """The segments of one sequence, None where it is walked over whole."""
    if v.shape[0] != 1:
        return None
    numbers = _kernels.choose(v.device, _recurrences.find_source("segments"))
    own = _recurrences.cut(*v.shape[1:], _kernels.count_multiprocessors(v.device), numbers)
    return None if own is None else Segments(v.shape[1], own, v.device)


@_kept.kept
def _make_table(tokens, own, device):
    """`_recurrences.list_segments` on a device."""
    first = torch.arange(0, tokens, own, dtype=torch.int32, device=device)
    past = (first + own).clamp(max=tokens)
    return torch.stack((first // CHUNK, (past + (CHUNK - 1)) // CHUNK))


class Segments:
    """Segments of so many tokens each, and their table, as packed sequences have it."""

    def __init__(self, tokens, own, device):
        self.own = own
        self.table = _make_table(tokens, own, device)

    def find_states(self, name, q, k, v, others, scale, state, made=GIVEN, **form):
        """The states before segments, from `state` before the first, in the direction of the walk. `others` are what walks take of tokens
        and of heads, by the names of _walk_recipes.py, and `form` further parameters of the walk."""
        (before,) = launch(name, q, k, v, {**others, "first": state, "table": self.table}, scale, joins=True, made=made, **form)
        return before
