"""What calls of attention launch: recipes, which follow from a text and from the types, shapes and strides of tensors. The
library asks for each once and keeps it (tessera-c/Calls.h); where PyTorch is too old for the library, and on the CPU, Python
follows them.

A text has three lines: what is computed, the names of views, numbers and integers that a variant takes (separated by commas,
and the three parts by bars), and the variant: its name, or its source in one line. The first number is the scale.
"""

from __future__ import annotations

import warnings

from .._compiler import _choices
from .._compiler._program import Program
from .._core._layouts import MINUS_INFINITY, NOTHING, ZERO, Layout, Places, Recipe, list_strides, make_dense
from .._functions import _names, _places
from .._functions._names import Names
from .._functions._variant import keeps_lists
from . import _block_lists, _gradient_kernels, _recipes_fp8, _variants

OUTPUT, OUTPUT_AND_LSE, FP8 = "output", "output and LSE", "8 bits"
#: Who asks for sums of gradients in one order: nobody, a call, or PyTorch of all calls, where a warning may be enough.
ANY_ORDER, ASKED, ALGORITHMS, WARNED = "gradients", "deterministic gradients", "gradients of deterministic algorithms", (
    "gradients of deterministic algorithms or a warning"
)  # fmt: skip
#: What is computed by recipes of floors above: `make(kind, names, variant, tensors)` by what a text says.
MAKERS = {}
#: The names of what variants with a name take.
NAMED = Names(("slopes",), ("cap",), ("left", "right"))


def fold(source):
    """A source in one line, as graphs hold it: Inductor writes the arguments of an op into comments of one line."""
    return source.replace("\n", "\\n")


def unfold(source):
    return source.replace("\\n", "\n")


def write(what, names, variant):
    """The text of a call."""
    return f"{what}\n{_names.write(names)}\n{fold(variant)}"


def name_gradients(order, learned=()):
    """What a text says of gradients; `order` is one of the four above."""
    return order + (f" by {','.join(learned)}" if learned else "")


def make(kind, text, tensors):
    """The recipe of a text for tensors, a Layout each or None, with kernels by `kind`: compile, or Program for the interpreter.
    Raises what keeps kernels from taking them."""
    what, names, variant = text.split("\n")
    names = _names.read(names)
    if what in MAKERS:
        return MAKERS[what](kind, names, variant, tensors)
    variant = unfold(variant)
    if what in (OUTPUT, OUTPUT_AND_LSE):
        return _make_outputs(kind, what == OUTPUT_AND_LSE, names, variant, tensors)
    if what == FP8:
        return _recipes_fp8.make(kind, names, variant, tensors)
    order, _, learned = what.partition(" by ")
    return _make_gradients(kind, order, _names.read_list(learned), names, variant, tensors)


def _make_like(x, fill=NOTHING):
    return make_dense(x, *x.shape, fill=fill)


def _check(q, k, v):
    """Refuses what no kernel takes."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if len(x.shape) != 4:
            raise ValueError(f"argument '{name}' has {len(x.shape)} dimensions; attention takes 4")
    if q.element not in ("f16", "bf16"):
        raise TypeError("argument 'q' is neither float16 nor bfloat16; attention takes these")


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
    places = Places(names, tensors, ("q", "k", "v"), _block_lists.LISTS)
    places.add_results("o", "lse")
    kernel, is_final = _find_forward(kind, variant, q, k, v, lse)
    return Recipe((places.bind(kernel),), tuple(results), copies=tuple(places.copies), is_final=is_final)


def _find_forward(kind, variant, q, k, v, lse):
    """(kernel, whether it is that of the shape's class)."""
    if kind is Program:
        return _variants.find_variant(variant, q.element, q.shape[3], v.shape[3], lse).program, True
    sizes = *q.shape, k.shape[1], k.shape[2], v.shape[3]
    kernel, _, is_final = _variants.find_kernel(variant, q.element, sizes, lse, _choices.find_card(kind))
    return kernel, is_final


def _is_taken(x):
    """Whether a gradient lies as kernels take it: with dense rows at multiples of 16 bytes."""
    return x.strides[3] == 1 and all(step > 0 and step % 8 == 0 for step in x.strides[:3]) and x.is_aligned


_OWN_OF_GRADIENTS = ("q", "k", "v", "o", "do", "lse", "dlse")


def _make_gradients(kind, order, learned, names, variant, tensors):
    q, k, v, out, gradient, _, of_lse, *views = tensors
    _check(q, k, v)
    is_empty = not k.shape[2] or 0 in q.shape
    given = dict(zip(names.views, views))
    sums = [Layout(given[name].shape, list_strides(given[name].shape), "f32", fill=ZERO) for name in learned]
    results = (*(_make_like(x, ZERO if is_empty else NOTHING) for x in (q, k, v)), *sums)
    if is_empty:
        return Recipe(results=results)
    check_order(learned, variant, q, order)
    kernels = _list_gradients(kind, variant, learned, order != ANY_ORDER, q, k, v, of_lse is not None)
    places = Places(names, tensors, _OWN_OF_GRADIENTS, _block_lists.LISTS)
    if not _is_taken(gradient):
        places.copy("do", Layout(gradient.shape, out.strides, gradient.element))
    if of_lse is not None and of_lse.strides != list_strides(of_lse.shape):
        places.copy("dlse", Layout(of_lse.shape, list_strides(of_lse.shape), of_lse.element))
    # A view whose elements change no score has no gradient, which stays 0.
    places.add_results("dq", "dk", "dv", *(f"d{name}" for name in learned))
    return Recipe(tuple(places.bind(kernel) for kernel in kernels), results, copies=tuple(places.copies))


def _list_gradients(kind, variant, learned, fixed, q, k, v, lse):
    (batch, heads, rows, d), (_, key_heads, keys, dv) = q.shape, (*k.shape[:3], v.shape[3])
    sizes = _gradient_kernels.find_sizes(batch, heads, rows, d, key_heads, keys, dv)
    if _variants.is_source(variant):
        if fixed and keeps_lists(variant) and not _gradient_kernels.has_fixed_lists(variant):
            raise RuntimeError(
                "torch.use_deterministic_algorithms is on in the backward pass of attention with a block_mask, and was off in "
                "the forward pass, which has chosen the lists: turn it on before"
            )
        chosen = _gradient_kernels.choose_of_source(kind, variant, learned, fixed, q.element, sizes, lse)
        return _gradient_kernels.list_gradients_of_source(kind, variant, learned, fixed, q.element, d, dv, lse, chosen)
    return _gradient_kernels.find_gradients(kind, variant, fixed, q.element, sizes, lse)[:1]


def check_order(learned, source, q, order):
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
