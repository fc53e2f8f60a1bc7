"""The work of sequences in tiles and in shares that end together, whatever tensors are of: kernels/balance.tile, and what joins parts."""

from __future__ import annotations

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


def choose_merge(choose, shape, parts, is_ragged):
    """(kernel, its parameters, heads of a tile where these are a dimension of their own, or None) that joins the parts of an output of
    shape [B, S, H, DV], of which most sequences have so many: of shares (`is_ragged`), or as many for each; without `parts` what no batch
    changes. `choose(source, extents, **parameters)` gives what rules choose."""
    *_, heads, columns = shape
    extents = ("H", heads), ("DV", columns), *([] if parts is None else [("P", parts)])
    chosen = choose(_library.find_source("merge_shares"), extents, RAGGED=is_ragged)
    if chosen["form"]:
        chosen = choose(chosen["form"], extents)
        return "merge_parts", {name: chosen[name] for name in ("D", "BP")}, None
    parameters = {name: chosen[name] for name in ("D", "ROWS", "BP")}
    return "merge_shares", {**parameters, "EXACT": chosen["D"] == columns, "RAGGED": is_ragged}, chosen["ROWS"]
