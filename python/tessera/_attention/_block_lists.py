"""Sources and kernels of attention that take lists of blocks which outlive a call, and what makes these lists."""

import functools
import warnings

from .._compiler import _choices
from .._compiler._program import Program
from .._core._errors import CompileError
from .._functions import _listed
from .._functions._variant import keep_lists, read_lists, to_gradients
from . import _gradient_kernels, _variants

# The sizes of tiles for which there are lists: as parameters, and whose lists they are.
_FORWARD = {"visit": ("queries", "BM", "BN")}
_BACKWARD = {"visit": ("keys", "GN", "GM"), "query": ("queries", "GQM", "GQN")}
#: The arguments that are such lists; what functions capture has other names.
LISTS = tuple(f"{name}_{kind}" for name in _BACKWARD for kind in ("lists", "counts"))


def _fit(size, block, step):
    """The largest size of tiles that divides an aligned block, up to the usual one; that one for other blocks."""
    return size if block % _listed.ALIGNED else next(fewer for fewer in range(size, 0, -step) if block % fewer == 0)


def _keep(source, program, forms, block=None, **changed):
    """(source that takes lists, which: names by what the kernel's arguments begin with) of tiles as a program has them, or that
    divide a block of so many queries and keys."""
    sizes = {**program.parameters, **changed}
    forms = {name: form for name, form in forms.items() if form[1] in sizes}
    tiles = {size: int(sizes[size]) for _, *names in forms.values() for size in names}
    for of, rows, columns in forms.values() if block else ():
        of_rows, of_columns = block if of == "queries" else reversed(block)
        tiles[rows], tiles[columns] = _fit(tiles[rows], of_rows, 64), _fit(tiles[columns], of_columns, 16)
    lists = tuple((name, f"{of} {tiles[rows]} {tiles[columns]}") for name, (of, rows, columns) in forms.items())
    return keep_lists(source, **tiles), lists


@functools.lru_cache(maxsize=_variants.MAX_SHAPES)
def keep_forward(source, element_type, sizes, is_compiled, block=None):
    """The source of attention with lists that outlive a call, and which lists these are, as `_keep` has it; for sizes as those
    of `_variants.find_kernel`, and for a block where the lists are those of a user."""
    *_, d, _, _, dv = sizes
    variant = _variants.find_variant(source, element_type, d, dv)
    smaller = _choices.choose(source, variant.parameters).get("instead", ())
    candidates = list(dict.fromkeys(_keep(source, variant.program, _FORWARD, block, **changed) for changed in ({}, *smaller)))
    for kept in candidates if is_compiled else ():
        try:
            _variants.find_kernel(kept[0], element_type, sizes)
        except CompileError as error:
            if not error.lacks_room or kept == candidates[-1]:
                raise
            continue
        return kept
    return candidates[0]


@functools.lru_cache(maxsize=None)
def keep_gradients(kind, source, learned, fixed, element_type, d, dv, block=None):
    """The same of the gradients; the form is that which `_gradient_kernels.find_gradients_of_source` finds."""
    widths = _variants.describe_widths(d, dv)
    parameters = {**widths, "T": element_type}
    smaller = _choices.choose(to_gradients(source, True), parameters).get("instead", ())
    candidates = [*([] if fixed else [(False, {})]), *((True, sizes) for sizes in ({}, *smaller))]
    for is_fixed, changed in candidates:
        program = Program(to_gradients(source, is_fixed), **parameters)
        kept = _keep(source, program, _BACKWARD, block, **changed)
        try:
            _gradient_kernels.find_gradients_of_source(kind, kept[0], learned, fixed, element_type, d, dv, False)
        except CompileError as error:
            if changed == smaller[-1] or (is_fixed and not error.lacks_room):
                raise
            reason = str(error).splitlines()[0]
            warnings.warn(f"gradients of functions of scores take another form: {reason}", RuntimeWarning)
            continue
        return kept


def count_lists(source, batch, heads):
    """How many lists there are for the mask of a source, of batches and heads."""
    of = read_lists(source)
    return (1 if of == "one" else batch), (heads if of == "head" else 1)


@functools.lru_cache(maxsize=None)
def find_lister(kind, source, lists):
    """What makes lists as `_keep` names them, of the mask of a source."""
    of, rows, columns = lists.split()
    if of == "queries":
        return kind(keep_lists(source, BM=rows, BN=columns), "attention_block_lists", D=_variants.WIDTHS[0])
    return _find_of_keys(kind, source, rows, columns, "attention_gradients_block_lists")


def _find_of_keys(kind, source, rows, columns, kernel):
    text = to_gradients(keep_lists(source, GN=rows, GM=columns), True)
    return kind(text, kernel, D=_variants.WIDTHS[0])


@functools.lru_cache(maxsize=None)
def find_looker(kind, source, block):
    """(what says of tiles of keys and blocks of queries how much they see of each other, as attention_lists.tile has its flags, the
    numbers of queries and keys of these, which divide a block)"""
    sizes = _fit(64, block[0], 16), _fit(128, block[1], 64)
    return _find_of_keys(kind, source, sizes[1], sizes[0], "attention_gradients_flags"), sizes
