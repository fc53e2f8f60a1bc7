"""Sources and kernels of attention that take lists of blocks which outlive a call, and what makes these lists."""

import functools
import warnings

from . import _gradient_kernels, _variants
from ._errors import CompileError
from ._program import Program
from ._variant import keep_lists, read_lists, to_gradients

# The sizes of tiles for which there are lists: as parameters, and whose lists they are.
_FORWARD = {"visit": ("queries", "BM", "BN")}
_BACKWARD = {"visit": ("keys", "GN", "GM"), "query": ("queries", "GQM", "GQN")}
#: The arguments that are such lists; what functions capture has other names.
LISTS = tuple(f"{name}_{kind}" for name in _BACKWARD for kind in ("lists", "counts"))


def _keep(source, program, forms, **changed):
    """(source that takes lists, which: names by what the kernel's arguments begin with) of tiles as a program has them."""
    sizes = {**program.parameters, **changed}
    forms = {name: form for name, form in forms.items() if form[1] in sizes}
    tiles = {size: int(sizes[size]) for _, *names in forms.values() for size in names}
    lists = tuple((name, f"{of} {tiles[rows]} {tiles[columns]}") for name, (of, rows, columns) in forms.items())
    return keep_lists(source, **tiles), lists


@functools.lru_cache(maxsize=_variants.MAX_SHAPES)
def keep_forward(source, element_type, sizes, is_compiled):
    """The source of attention with lists that outlive a call, and which lists these are, as `_keep` has it; for sizes as those
    of `_variants.find_kernel`."""
    *_, d, _, _, dv = sizes
    program = _variants.find_variant(source, element_type, d, dv).program
    kept = _keep(source, program, _FORWARD)
    if not is_compiled:
        return kept
    for rows, columns in _variants.SMALLER[max(_variants.find_width("q", d), _variants.find_width("v", dv))]:
        try:
            _variants.find_kernel(kept[0], element_type, sizes)
        except CompileError as error:
            smaller = _keep(source, program, _FORWARD, BM=rows, BN=columns)
            if not _variants.is_too_large(error) or kept == smaller:
                raise
            kept = smaller
            continue
        break
    return kept


@functools.lru_cache(maxsize=None)
def keep_gradients(kind, source, learned, fixed, element_type, d, dv):
    """The same of the gradients; the form is that which `_gradient_kernels.find_gradients_of_source` finds."""
    widths = _variants.describe_widths(d, dv)
    parameters, smaller = {**widths, "T": element_type}, _gradient_kernels.list_smaller(max(widths["D"], widths["DV"]))
    candidates = [*([] if fixed else [(False, {})]), *((True, sizes) for sizes in ({}, *smaller))]
    for is_fixed, changed in candidates:
        program = Program(to_gradients(source, is_fixed), **parameters)
        kept = _keep(source, program, _BACKWARD, **changed)
        try:
            _gradient_kernels.find_gradients_of_source(kind, kept[0], learned, fixed, element_type, d, dv, False)
        except CompileError as error:
            if changed == smaller[-1] or (is_fixed and not _variants.is_too_large(error)):
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
    text = to_gradients(keep_lists(source, GN=rows, GM=columns), True)
    return kind(text, "attention_gradients_block_lists", D=_variants.WIDTHS[0])
