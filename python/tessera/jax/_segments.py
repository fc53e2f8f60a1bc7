"""Segments that one long sequence of few heads is cut into, which are walked over side by side: as tessera.torch._segments."""

from __future__ import annotations

import jax.numpy as jnp

from .._attention._recurrences import cut, find_source
from .._compiler import _choices
from . import _call


def find_own(v):
    """The tokens of each segment, None where the sequences of v are walked over whole."""
    if v.shape[0] != 1:
        return None
    multiprocessors = _call.count_multiprocessors()
    numbers = _choices.choose_values(find_source("segments"), (("MULTIPROCESSORS", multiprocessors),), _call.find_card(), ())
    return cut(*v.shape[1:], multiprocessors, numbers)


def join(left, logarithms, own, state, reverse):
    """The states before segments of `own` tokens, in the direction of the walk: from what each leaves by itself, [S, H, K, V], the
    logarithms of the factors of tokens, [1, T, H] or [1, T, HK, K], and the state before the first."""
    _, tokens, *others = logarithms.shape
    padded = jnp.pad(logarithms[0], ((0, -tokens % own), *[(0, 0)] * len(others)))
    sums = padded.reshape(-1, own, *others).sum(1)
    sums = sums[..., None, None] if sums.ndim == 2 else jnp.repeat(sums, left.shape[1] // sums.shape[1], 1)[..., None]
    if reverse:
        left, sums = left[::-1], sums[::-1]
    behind = jnp.cumsum(sums, 0)
    before = behind - sums
    earlier = jnp.tril(jnp.ones((len(sums),) * 2, bool), -1)[:, :, None, None, None]
    between = jnp.exp(jnp.where(earlier, before[:, None] - behind[None], -jnp.inf))
    joined = (between * left).sum(1)
    if state is not None:
        joined += jnp.exp(before) * state
    return joined[::-1] if reverse else joined
