"""The work of sequences in tiles and in shares that end together, whatever tensors are of: kernels/balance.tile, and what joins parts."""

from __future__ import annotations

import os

from .._core import _library


def shape_of(count):
    """Of the numbers of `count` shares: the first sequence of each, the one behind its last, and its steps. As many as a multiple of 4, so
    that each row begins at 16 bytes."""
    return 3, -(-count // 4) * 4


def count_packed(heads, rows, most):
    """How many of `heads` that share keys are rows of one tile of `most` rows: a power of 2 that divides them, where all of their queries,
    `rows` of each, fit in it."""
    packed = 1
    while heads % (2 * packed) == 0 and 2 * packed * rows <= most:
        packed *= 2
    return packed


def count_slots(batch, width):
    """Numbers of the parts of sequences: sequence b has number b + w of share w, where it has steps in several of `width` shares."""
    return batch + width


def choose_merge(choose, shape, width):
    """(kernel, its parameters, heads of a tile where these are a dimension of their own, or None) that joins the parts of an output of
    shape [B, S, H, DV]. `choose(source, extents, **parameters)` gives what rules choose."""
    batch, _, heads, columns = shape
    extents = ("B", batch), ("W", width), ("H", heads), ("DV", columns), ("P", -(-width // batch))
    chosen = choose(_library.find_source("merge_states"), extents, RAGGED=True)
    if form := chosen["form"]:
        own = choose(form, extents)
        return os.path.basename(form).removesuffix(".tile"), {"D": own["D"]}, own["ROWS"]
    return "merge_states", {"D": chosen["D"], "BP": chosen["BP"], "RAGGED": True}, None
