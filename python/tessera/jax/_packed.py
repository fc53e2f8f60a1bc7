"""Where the rows of packed sequences are: as tessera.torch._packed."""

from __future__ import annotations

import jax.numpy as jnp

from .._attention._recurrences import CHUNK, count_chunks


def make_tables(starts, tokens):
    """Tables of sequences whose arrays stay as they are: of the chunks of sequences, and of the tokens of chunks."""
    starts = starts.astype(jnp.int32)
    sequences = starts.shape[0] - 1
    count = tokens // CHUNK + sequences
    pasts = jnp.minimum(jnp.cumsum(jnp.maximum(count_chunks(jnp.diff(starts)), 1)), count).astype(jnp.int32)
    firsts = jnp.pad(pasts[:-1], (1, 0))
    chunks = jnp.arange(count, dtype=jnp.int32)
    own = jnp.minimum(jnp.searchsorted(pasts, chunks, side="right"), sequences - 1)
    begins = starts[own] + CHUNK * (chunks - firsts[own])
    return jnp.stack((firsts, pasts)), jnp.stack((begins, starts[own + 1]))


class Sequences:
    """Where the rows of packed sequences go, each in chunks of its own."""

    def __init__(self, starts, tokens):
        sequences = starts.shape[0] - 1
        starts = starts.astype(jnp.int32)
        first = starts[:-1] // CHUNK + jnp.arange(sequences, dtype=jnp.int32)
        past = jnp.concatenate((first[1:], first[-1:] + count_chunks(starts[-1:] - starts[-2:-1])))
        # Rows behind the last sequence go to a chunk behind all others.
        self.rows = CHUNK * (tokens // CHUNK + sequences + 1)
        self.table = jnp.stack((first, past))
        places = jnp.arange(tokens, dtype=jnp.int32)
        own = jnp.searchsorted(starts[1:], places, side="right")
        inside, own = own < sequences, jnp.minimum(own, sequences - 1)
        self.places = jnp.where(inside, places - starts[own] + CHUNK * first[own], self.rows - CHUNK)

    def align(self, x):
        return jnp.zeros((1, self.rows, *x.shape[2:]), x.dtype).at[:, self.places].set(x).at[:, -CHUNK:].set(0)


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
