"""Segments that one long sequence of few heads is cut into, which are walked over side by side: as tessera.torch._segments."""

from __future__ import annotations

import jax.numpy as jnp

from .._attention._recurrences import cut, find_source, join_segments
from . import _call, _kernels


def find_own(v):
    """The tokens of each segment, None where the sequences of v are walked over whole."""
    if v.shape[0] != 1:
        return None
    return cut(*v.shape[1:], _call.count_multiprocessors(), _kernels.choose(find_source("segments")))


def join(left, logarithms, own, state, reverse):
    """The states before segments of `own` tokens; `logarithms` are those of the factors of all tokens, [1, T, H] or [1, T, HK, K]."""
    _, tokens, *others = logarithms.shape
    padded = jnp.pad(logarithms[0], ((0, -tokens % own), *[(0, 0)] * len(others)))
    return join_segments(jnp, left, padded.reshape(-1, own, *others), state, reverse)
