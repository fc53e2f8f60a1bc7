"""Attention with gradients: functions of JAX' custom_vjp around the calls."""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._attention import _gradient_kernels, _variants
from .._functions import _places
from . import _functions, _varying
from ._call import BACKWARD, FORWARD, make_op


@functools.lru_cache(maxsize=256)
def _make_op(*key):
    """An op within rules of differentiation, which has none itself."""
    op = make_op(*key)

    @jax.custom_vjp
    def run(*tensors):
        return op(*tensors)

    def refuse(*tensors):
        raise NotImplementedError(
            "gradients of attention have no gradients themselves: take those of the first order, or put these behind "
            "jax.lax.stop_gradient"
        )

    run.defvjp(refuse, lambda residuals, gradients: None)
    return run


def _list_learned(call, query, wanted, deterministic, is_known):
    """Of each view () where its gradient is wanted and there is one, else None: JAX keeps what holds no array as it is."""
    # An extent of a program that jax.export makes for any batch is not 1.
    letters = "".join(letter for letter in "bh" if query.shape[call.layout.lower().index(letter)] != 1)
    learned = []
    # Slopes that have no gradient are the only view of kernels that name none.
    for name, label, is_wanted in zip(call.list_views() or [None], call.names, wanted):
        is_learned = is_wanted and name in call.learnable
        if is_learned and deterministic and name not in _places.list_exact(call.variant, letters):
            hint = "put it behind jax.lax.stop_gradient" if is_known else "turn it off, as jax.shard_map does not say what is wanted"
            raise NotImplementedError(
                f"the gradient of '{label}' is a sum over blocks in any order, and `deterministic` is on: {hint}; arrays with an "
                "element for each batch, head and query have gradients in one order"
            )
        learned.append(() if is_learned else None)
    return tuple(learned)


def _take_slopes(call, named, tensors):
    """The call whose kernels make gradients of slopes."""
    extents = {letter: tensors[0].shape[call.layout.lower().index(letter)] for letter in "bh"}
    return call._replace(**_functions.describe_slopes(tensors[3], *named, extents))


def make(call, lse, deterministic, keeper=None, named=None):
    """Attention of q, k, v and views, which gives (output,) or (output, LSE). `keeper` is (a BlockMask, the source that has not
    its lists, element type), where kernels take these, and its table follows the views where JAX traces it; `named` is (left,
    right, softcap) where the view has slopes."""
    is_known = not _varying.is_in_shard_map()
    if keeper is None:
        return _make_cached(call, lse, deterministic, None, named, is_known)
    # What keeps lists keeps them alive, so that the BlockMask itself has its functions.
    return keeper[0].remember(_make, call, lse, deterministic, keeper, named, is_known)


def _make(call, lse, deterministic, keeper, named, is_known):
    """`is_known`: JAX says for which arrays gradients are wanted; otherwise all are."""
    own = ("q", "k", "v")
    # The template of functions has no form without the LSE.
    names = ("o", "lse") if lse or _variants.is_source(call.variant) else ("o",)

    # Both passes of a program have the same call.
    calls = {}
    tables = 0 if keeper is None or keeper[0].table is None else 1

    def cut(tensors):
        """(those of a call, the table or None)"""
        count = len(tensors) - tables
        return tensors[:count], next(iter(tensors[count:]), None)

    def take_slopes(tensors):
        shapes = tensors[0].shape, tensors[3].shape, tensors[3].dtype
        if shapes not in calls:
            calls[shapes] = _take_slopes(call, named, tensors)
        return calls[shapes]

    @jax.custom_vjp
    def differentiated(*tensors):
        tensors, _ = cut(tensors)
        results = make_op(call, FORWARD, call.variant, own, names)(*tensors)
        return results if lse else results[:1]

    def forward(*primals):
        tensors = tuple(primal.value for primal in primals) if is_known else primals
        wanted = [primal.perturbed for primal in primals[3:]] if is_known else [True] * len(primals[3:])
        own_call = take_slopes(tensors) if named is not None and wanted[0] else call
        learned = _list_learned(own_call, tensors[0], wanted, deterministic, is_known)
        results = _make_op(own_call, FORWARD, own_call.variant, own, ("o", "lse"))(*cut(tensors)[0])
        return results if lse else results[:1], (tensors, results, learned)

    def backward(residuals, gradients):
        tensors, (out, logarithms), is_learned = residuals
        tensors, table = cut(tensors)
        gradient, *of_lse = (None if isinstance(entry, SymbolicZero) else entry for entry in gradients)
        if gradient is None:
            gradient = jnp.zeros_like(out)
        of_results = [gradient, logarithms, *(entry for entry in of_lse if entry is not None)]
        operands = (*own, "o", "do", "lse", "dlse")[: 4 + len(of_results)]
        takes_slopes = named is not None and is_learned[0] is not None
        own_call = take_slopes(tensors) if takes_slopes else call
        names = own_call.list_views()
        views, learned, source = list(tensors[3:]), (), own_call.variant
        if own_call.order:
            wanted = tuple(name for name, entry in zip(names, is_learned) if entry is not None)
            own_call, source, views, learned = _order_views(own_call, keeper, wanted, deterministic, operands, tensors, table)
        variant = _gradient_kernels.name_gradients(source, deterministic, learned)
        run = _make_op(own_call, BACKWARD, variant, operands, ("dq", "dk", "dv"), learned)
        of_own = run(*tensors[:3], out, *of_results, *views)
        sums = dict(zip(learned, of_own[3:]))
        # A view whose elements change no score has no gradient.
        of_views = [
            sums[name].astype(view.dtype) if name in sums else None
            for name, view in zip(names or [None] * len(tensors), tensors[3:])
        ]
        return *of_own[:3], *of_views, *[None] * tables

    differentiated.defvjp(forward, backward, symbolic_zeros=is_known)
    return differentiated


_make_cached = functools.lru_cache(maxsize=256)(_make)


def _order_views(call, keeper, wanted, deterministic, operands, tensors, table):
    """(call, source, views in the order of the kernel, names of those with a gradient) of gradients of functions."""
    names, views, source = call.list_views(), tensors[3:], call.variant
    if keeper is not None:
        call, source, lists = _keep_gradients(call, keeper, wanted, deterministic, tensors, table)
        # The lists of attention have the names of others here.
        given = {**dict(zip(names, views)), **lists}
        views = [given[name] for name in call.list_views()]
    extras = _functions.list_gradient_extras(source, wanted, deterministic, "dlse" in operands)
    learned = tuple(name[1:] for name in extras if name not in call.order and name != "scale")
    call, places = call.reorder(extras)
    return call, source, [views[place] for place in places], learned


def _keep_gradients(call, keeper, wanted, deterministic, tensors, table):
    """(call, source, lists by name) of gradients that take the lists of a BlockMask."""
    block_mask, source, element_type = keeper
    (batch, *rows, d), dv = tensors[0].shape, tensors[2].shape[3]
    sizes = batch, rows[call.layout.index("H") - 1], d, dv
    source, lists = block_mask.keep_gradients(source, wanted, deterministic, element_type, sizes, table)
    return call.add_lists([name for name in lists if name not in call.order], block_mask.places()), source, lists
