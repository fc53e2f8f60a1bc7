"""Which chunks packed sequences have, whose rows stay where they are, by the kernels that tessera.torch launches for it."""

from __future__ import annotations

import jax.numpy as jnp

from .._attention._recurrences import CHUNK
from . import _kernels

_TYPES = {"int32": "i32", "int64": "i64"}


def make_tables(starts, tokens):
    """The first chunk of each sequence, that behind its last, the first token of each chunk, and that behind the last of its sequence."""
    starts = starts if starts.dtype.name in _TYPES else starts.astype(jnp.int32)
    sequences = starts.shape[0] - 1
    extents = sequences, sequences, *[tokens // CHUNK + sequences] * 2
    tables = (("r", _kernels.new(extent, dtype=jnp.int32)) for extent in extents)
    return tuple(_kernels.launch("linear/tables", {"BEGIN": _TYPES[starts.dtype.name]}, ("v", starts), *tables))


def take_chunks(x, chunks):
    """[1, H, CHUNK * chunks] of [1, T, H] of float32, with zeros behind the last token of each sequence."""
    rows = "r", _kernels.new(1, x.shape[2], CHUNK * chunks[0].shape[0])
    (rows,) = _kernels.launch("linear/gates", {"PACKED": True}, ("v", x), rows, *(("v", row) for row in chunks))
    return rows


def restore_chunks(x, chunks, tokens):
    """[1, tokens, H] of [1, CHUNK * chunks, H], with 0 where a token is of no sequence."""
    if chunks is None:
        return x
    restored, rows = ("a", jnp.zeros((1, tokens, x.shape[2]), jnp.float32)), ("v", jnp.swapaxes(x, 1, 2))
    (restored,) = _kernels.launch("linear/gates", {"PACKED": True, "BACK": True}, restored, rows, *(("v", row) for row in chunks))
    return restored


def keep_tokens(x, chunks):
    """x, [1, T, ...], with zeros where a token is of no sequence."""
    if chunks is None:
        return x
    places = jnp.arange(x.shape[1], dtype=jnp.int32)
    inside = (places >= chunks[0][0]) & (places < chunks[1][-1])
    return jnp.where(inside.reshape(-1, *(1,) * (x.ndim - 2)), x, 0)
