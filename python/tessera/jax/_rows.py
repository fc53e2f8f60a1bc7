"""How the rows of sequences lie that walks go over: whole, packed, or one sequence in segments. As tessera.torch._packed and _segments."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from .._attention._recurrences import CHUNK, count_chunks, list_segments


class Whole:
    """Sequences of a batch."""

    parameters, tables, of_chunks = {}, (), ()

    def __init__(self, batch, tokens):
        self.sequences, self.rows, self.chunks = batch, tokens, count_chunks(tokens)

    def lay_out(self, x):
        return x

    def cut(self, x):
        """The rows of chunks, [B, chunks, CHUNK, ...]."""
        batch, _, *others = x.shape
        padded = jnp.pad(x, ((0, 0), (0, self.chunks * CHUNK - x.shape[1]), *[(0, 0)] * len(others)))
        return padded.reshape(batch, self.chunks, CHUNK, *others)

    def restore(self, x, tokens):
        """The rows [B, T, ...] of `tokens`, of [B, chunks, CHUNK, ...]."""
        batch, _, _, *others = x.shape
        return x.reshape(batch, -1, *others)[:, :tokens]

    def restore_rows(self, x, tokens):
        return x


class Packed:
    """Sequences one behind the other, of the tables of `make_tables`."""

    parameters = {"PACKED": True}

    def __init__(self, table, chunks):
        self.sequences, self.chunks = table.shape[1], chunks.shape[1]
        self.rows = CHUNK * self.chunks
        self.starts, self.ends = chunks
        self.of_chunks = tuple(chunks)
        self.tables = *table, *chunks

    def lay_out(self, x):
        """The rows [1, T, ...] in those of chunks, [1, rows, ...], with 0 behind the end of each sequence."""
        places = self.starts[:, None] + jnp.arange(CHUNK)
        inside = (places < self.ends[:, None]).reshape(places.shape + (1,) * (x.ndim - 2))
        rows = jnp.where(inside, x[:, jnp.minimum(places, x.shape[1] - 1)], 0)
        return rows.reshape(1, self.rows, *x.shape[2:])

    def cut(self, x):
        return x.reshape(1, self.chunks, CHUNK, *x.shape[2:])

    def restore(self, x, tokens):
        places = jnp.arange(tokens)
        own = jnp.maximum(jnp.searchsorted(self.starts, places, side="right") - 1, 0)
        inside = (places < self.ends[own]).reshape((tokens,) + (1,) * (x.ndim - 3))
        return jnp.where(inside, x[:, own, jnp.clip(places - self.starts[own], 0, CHUNK - 1)], 0)

    def restore_rows(self, x, tokens):
        return self.restore(self.cut(x), tokens)


class Segments:
    """Segments of `own` tokens each of one sequence."""

    parameters = {"CUT": True}

    def __init__(self, tokens, own):
        self.own = own
        table = np.array(list_segments(tokens, own), np.int32)
        self.sequences, self.tables = table.shape[1], tuple(map(jnp.asarray, table))


def make_tables(starts, tokens):
    """Of sequences that start at `starts`, of `tokens` in all, the tables of tessera.torch._packed.make_tables."""
    starts = starts.astype(jnp.int32)
    sequences = starts.shape[0] - 1
    count = tokens // CHUNK + sequences
    pasts = jnp.minimum(jnp.cumsum((jnp.diff(starts) + CHUNK - 1) // CHUNK, dtype=jnp.int32), count)
    firsts = jnp.pad(pasts[:-1], (1, 0))
    chunks = jnp.arange(count, dtype=jnp.int32)
    own = jnp.minimum(jnp.searchsorted(pasts, chunks, side="right"), sequences - 1)
    return jnp.stack((firsts, pasts)), jnp.stack((starts[own] + CHUNK * (chunks - firsts[own]), starts[own + 1]))
