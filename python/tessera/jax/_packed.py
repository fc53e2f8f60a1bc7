"""Which chunks packed sequences have, whose rows stay where they are: as tessera.torch._packed."""

from __future__ import annotations

import jax.numpy as jnp

from .._attention._recurrences import CHUNK, count_chunks


def make_tables(starts, tokens):
    """Tables of the chunks of sequences, and of the tokens of chunks."""
    starts = starts.astype(jnp.int32)
    sequences = starts.shape[0] - 1
    count = tokens // CHUNK + sequences
    pasts = jnp.minimum(jnp.cumsum(jnp.maximum(count_chunks(jnp.diff(starts)), 1)), count).astype(jnp.int32)
    firsts = jnp.pad(pasts[:-1], (1, 0))
    chunks = jnp.arange(count, dtype=jnp.int32)
    own = jnp.minimum(jnp.searchsorted(pasts, chunks, side="right"), sequences - 1)
    begins = starts[own] + CHUNK * (chunks - firsts[own])
    return jnp.stack((firsts, pasts)), jnp.stack((begins, starts[own + 1]))


def restore_chunks(x, chunks, tokens):
    """[1, tokens, H] of [1, CHUNK * chunks, H], with 0 where a token is of no sequence."""
    if chunks is None:
        return x
    begins, ends = chunks
    places = jnp.arange(tokens, dtype=jnp.int32)
    own = jnp.maximum(jnp.searchsorted(begins, places, side="right") - 1, 0)
    inside = (places >= begins[own]) & (places < ends[own])
    return jnp.where(inside[:, None], x[:, CHUNK * own + jnp.clip(places - begins[own], 0, CHUNK - 1)], 0)


def keep_tokens(x, chunks):
    """x, [1, T, ...], with zeros where a token is of no sequence."""
    if chunks is None:
        return x
    places = jnp.arange(x.shape[1], dtype=jnp.int32)
    inside = (places >= chunks[0, 0]) & (places < chunks[1, -1])
    return jnp.where(inside.reshape(-1, *(1,) * (x.ndim - 2)), x, 0)
