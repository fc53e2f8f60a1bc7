"""What calls of attention launch: recipes, which follow from a text and from the types, shapes and strides of tensors. The
library asks for each once and keeps it (tessera-c/Calls.h); where PyTorch is too old for the library, and on the CPU, Python
follows them.

A text has three lines: what is computed, the names of views, numbers and integers that a variant takes (separated by commas,
and the three parts by bars), and the variant: its name, or its source in one line. The first number is the scale.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from . import _block_lists, _gradient_kernels, _places, _variants
from ._program import Program
from ._variant import keeps_lists

OUTPUT, OUTPUT_AND_LSE = "output", "output and LSE"
#: Who asks for sums of gradients in one order: nobody, a call, or PyTorch of all calls, where a warning may be enough.
ANY_ORDER, ASKED, ALGORITHMS, WARNED = "gradients", "deterministic gradients", "gradients of deterministic algorithms", (
    "gradients of deterministic algorithms or a warning"
)  # fmt: skip
#: The names of what variants with a name take.
NAMED = "slopes|cap|left,right"
# tessera_call_source
TENSOR, RESULT, TEMPORARY, COPY, NUMBER, INTEGER = range(6)
# tessera_call_fill
NOTHING, ZERO, MINUS_INFINITY = range(3)
# Rows that tiles are loaded from begin at multiples of so many bytes.
_ROW_BYTES = 16
_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "i32": 4, "i64": 8, "f8E4M3FN": 1, "f8E5M2": 1}


class Layout(NamedTuple):
    """A tensor of a call, or memory that a call makes. Strides are in elements."""

    shape: tuple
    strides: tuple
    #: The name of the element type in sources.
    element: str
    #: Of a tensor, whether it begins at a multiple of 16 bytes.
    is_aligned: bool = True
    #: What memory holds at first.
    fill: int = NOTHING


class Recipe(NamedTuple):
    """What a call launches."""

    #: Kernels, or forms for the interpreter, each with a place for each of its arguments: (TENSOR or others, which one).
    steps: tuple = ()
    results: tuple = ()
    #: Memory for the time of the call.
    temporaries: tuple = ()
    #: Tensors that are taken in another layout: (which one, Layout).
    copies: tuple = ()
    #: Calls like this one need not ask again.
    is_final: bool = True


def fold(source):
    """A source in one line, as graphs hold it: Inductor writes the arguments of an op into comments of one line."""
    return source.replace("\n", "\\n")


def unfold(source):
    return source.replace("\\n", "\n")


def write(what, names, variant):
    """The text of a call."""
    return f"{what}\n{names}\n{fold(variant)}"


def name_gradients(order, learned=()):
    """What a text says of gradients; `order` is one of the four above."""
    return order + (f" by {','.join(learned)}" if learned else "")


def make(kind, text, tensors):
    """The recipe of a text for tensors, a Layout each or None, with kernels by `kind`: compile, or Program for the interpreter.
    Raises what keeps kernels from taking them."""
    what, names, variant = text.split("\n")
    variant = unfold(variant)
    if what in (OUTPUT, OUTPUT_AND_LSE):
        return _make_outputs(kind, what == OUTPUT_AND_LSE, names, variant, tensors)
    order, _, learned = what.partition(" by ")
    return _make_gradients(kind, order, tuple(learned.split(",")) if learned else (), names, variant, tensors)


def split(names):
    """The names of views, of numbers and of integers."""
    return [part.split(",") if part else [] for part in names.split("|")]


def make_dense(x, *shape, element=None, fill=NOTHING):
    """Memory of a shape [B, H, S, ...] that is dense in the order of the storage of `x`, whose rows may hold all heads."""
    batch, heads, rows, *width = shape
    inner = width[0] if width else 1
    by_row = bool(width) and x.strides[1] < x.strides[2]
    of_head, of_row = (inner, heads * inner) if by_row else (rows * inner, inner)
    strides = (heads * rows * inner, of_head, of_row, *(1 for _ in width))
    return Layout(tuple(shape), strides, element or x.element, fill=fill)


def _make_like(x, fill=NOTHING):
    return make_dense(x, *x.shape, fill=fill)


def _check(q, k, v):
    """Refuses what no kernel takes."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if len(x.shape) != 4:
            raise ValueError(f"argument '{name}' has {len(x.shape)} dimensions; attention takes 4")
    if q.element not in ("f16", "bf16"):
        raise TypeError("argument 'q' is neither float16 nor bfloat16; attention takes these")


class _Places:
    """Where the arguments of kernels come from, by their names, and the tensors that are copied first."""

    def __init__(self, names, tensors, own):
        """`own` are the names of the first tensors, views follow."""
        views, numbers, integers = split(names)
        self.tensors, self.copies = tensors, []
        self.places = {name: (TENSOR, index) for index, name in enumerate((*own, *views))}
        self.places |= {name: (NUMBER, index) for index, name in enumerate(("scale", *numbers))}
        self.places |= {name: (INTEGER, index) for index, name in enumerate(integers)}
        for index, name in enumerate(views, len(own)):
            # Lists of blocks are read number by number.
            if index < len(tensors) and tensors[index] is not None and name not in _block_lists.LISTS:
                self._align(name, tensors[index])

    def _align(self, name, view):
        """Takes a copy of a view whose rows do not begin where kernels load them that take tiles of it."""
        unit = _ROW_BYTES // _BYTES[view.element]
        if len(view.shape) < 2 or (view.is_aligned and all(step % unit == 0 for step in view.strides[:-1])):
            return
        strides = [-(-view.shape[-1] // unit) * unit, 1]
        for extent in reversed(view.shape[1:-1]):
            strides.insert(0, strides[0] * extent)
        self.copy(name, Layout(view.shape, tuple(strides), view.element))

    def copy(self, name, layout):
        """Takes a tensor in another layout."""
        _, index = self.places[name]
        self.places[name] = COPY, len(self.copies)
        self.copies.append((index, layout))

    def add_results(self, *names):
        self.places |= {name: (RESULT, index) for index, name in enumerate(names)}

    def bind(self, kernel):
        places = tuple(self.places[name] for name in kernel.names)
        if any(source == TENSOR and self.tensors[index] is None for source, index in places):
            raise ValueError("argument 'alibi' is None; this variant needs slopes")
        return kernel, places


def _make_outputs(kind, lse, names, variant, tensors):
    q, k, v = tensors[:3]
    _check(q, k, v)
    is_empty, value = k.shape[2] == 0, v.shape[3]
    results = [make_dense(q, *q.shape[:3], value, fill=ZERO if is_empty else NOTHING)]
    if lse:
        fill = MINUS_INFINITY if is_empty else NOTHING
        results.append(make_dense(q, *q.shape[:3], element="f32", fill=fill))
    if is_empty or 0 in (*q.shape[:3], value):
        return Recipe(results=tuple(results))
    places = _Places(names, tensors, ("q", "k", "v"))
    places.add_results("o", "lse")
    kernel, is_final = _find_forward(kind, variant, q, k, v, lse)
    return Recipe((places.bind(kernel),), tuple(results), copies=tuple(places.copies), is_final=is_final)


def _find_forward(kind, variant, q, k, v, lse):
    """(kernel, whether it is that of the shape's class)."""
    if kind is Program:
        return _variants.find_variant(variant, q.element, q.shape[3], v.shape[3], lse).program, True
    kernel, _, is_final = _variants.find_kernel(variant, q.element, (*q.shape, k.shape[1], k.shape[2], v.shape[3]), lse)
    return kernel, is_final


def _is_taken(x):
    """Whether a gradient lies as kernels take it: with dense rows at multiples of 16 bytes."""
    return x.strides[3] == 1 and all(step > 0 and step % 8 == 0 for step in x.strides[:3]) and x.is_aligned


_OWN_OF_GRADIENTS = ("q", "k", "v", "o", "do", "lse", "dlse")


def _make_gradients(kind, order, learned, names, variant, tensors):
    q, k, v, out, gradient, _, of_lse, *views = tensors
    _check(q, k, v)
    is_empty = not k.shape[2] or 0 in q.shape
    given = dict(zip(split(names)[0], views))
    sums = [Layout(given[name].shape, _list_strides(given[name].shape), "f32", fill=ZERO) for name in learned]
    results = (*(_make_like(x, ZERO if is_empty else NOTHING) for x in (q, k, v)), *sums)
    if is_empty:
        return Recipe(results=results)
    _check_order(learned, variant, q, order)
    kernel = _find_gradients(kind, variant, learned, order != ANY_ORDER, q, k, v, of_lse is not None)
    places = _Places(names, tensors, _OWN_OF_GRADIENTS)
    if not _is_taken(gradient):
        places.copy("do", Layout(gradient.shape, out.strides, gradient.element))
    if of_lse is not None and of_lse.strides != _list_strides(of_lse.shape):
        places.copy("dlse", Layout(of_lse.shape, _list_strides(of_lse.shape), of_lse.element))
    # A view whose elements change no score has no gradient, which stays 0.
    places.add_results("dq", "dk", "dv", *(f"d{name}" for name in learned))
    return Recipe((places.bind(kernel),), results, copies=tuple(places.copies))


def _list_strides(shape):
    """Those of rows one after another."""
    strides = [1] * len(shape)
    for dim in range(len(shape) - 1, 0, -1):
        strides[dim - 1] = strides[dim] * shape[dim]
    return tuple(strides)


def _find_gradients(kind, variant, learned, fixed, q, k, v, lse):
    d, dv = q.shape[3], v.shape[3]
    if _variants.is_source(variant):
        if fixed and keeps_lists(variant) and not _gradient_kernels.has_fixed_lists(variant):
            raise RuntimeError(
                "torch.use_deterministic_algorithms is on in the backward pass of attention with a block_mask, and was off in "
                "the forward pass, which has chosen the lists: turn it on before"
            )
        return _gradient_kernels.find_gradients_of_source(kind, variant, learned, fixed, q.element, d, dv, lse)
    (batch, heads, rows, _), (_, key_heads, keys, _) = q.shape, k.shape
    group = _gradient_kernels.find_group(heads, key_heads)
    sizes = d, dv, group, _gradient_kernels.find_span(batch, heads, rows, keys)
    return _gradient_kernels.find_gradients(kind, variant, fixed, q.element, sizes, lse)[0]


def _check_order(learned, source, q, order):
    """Refuses sums in any order where gradients are to be the same in each run, or warns of them."""
    if not learned or order == ANY_ORDER:
        return
    letters = "".join(letter for letter, extent in zip("bh", q.shape) if extent > 1)
    loose = [name for name in learned if name not in _places.list_exact(source, letters)]
    if not loose:
        return
    asked = "attention was called with deterministic=True" if order == ASKED else "torch.use_deterministic_algorithms is on"
    message = (
        f"the gradient of '{loose[0]}' is a sum over blocks in any order, and {asked}: detach the tensor, or turn it off for "
        "this backward pass; tensors with an element for each batch, head and query have gradients in one order"
    )
    if order != WARNED:
        raise RuntimeError(message)
    warnings.warn(message, UserWarning)
