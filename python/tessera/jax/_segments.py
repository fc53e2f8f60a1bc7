"""Segments that one long sequence of few heads is cut into, which are walked over side by side: as tessera.torch._segments."""

from __future__ import annotations

from .._attention._recurrences import cut, find_source
from . import _call, _kernels


def find_own(v):
    """The tokens of each segment, None where the sequences of v are walked over whole."""
    if v.shape[0] != 1:
        return None
    return cut(*v.shape[1:], _call.count_multiprocessors(), _kernels.choose(find_source("segments")))


def join(left, source, gates, table, state, reverse, **form):
    """The states before segments, from what each leaves by itself. `source`, `gates`, arguments of a kernel, and `form`, its parameters,
    say where logarithms of factors come from (segment_sums.tile)."""
    count, heads, rows, _ = left.shape
    channels = gates[0][1].shape[2:] if source == "channels" else None
    sums = _kernels.new(count, heads) if channels is None else _kernels.new(count, *channels)
    of = {"OF": source, **form, **({} if channels is None else {"DK": rows})}
    (sums,) = _kernels.launch("linear/segment_sums", of, *gates, *(("v", row) for row in table), ("r", sums))
    form = {"CHANNELS": channels is not None, "INITIAL": state is not None, "REVERSE": reverse}
    given = [("v", x) for x in (left, sums, state) if x is not None]
    (before,) = _kernels.launch("linear/join_segments", form, *given, ("r", _kernels.like(left)))
    return before
