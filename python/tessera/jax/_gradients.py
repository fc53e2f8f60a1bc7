"""Attention with gradients: functions of JAX' custom_vjp around the calls."""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .. import _places, _variants
from . import _functions
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


def _list_learned(call, tensors, deterministic):
    """Of each view () where its gradient is wanted and there is one, else None: JAX keeps what holds no array as it is."""
    query, *views = tensors[0], *tensors[3:]
    names = call.list_views() if call.order else [None] * len(views)
    letters = "".join(letter for letter in "bh" if query.value.shape[call.layout.lower().index(letter)] > 1)
    learned = []
    for name, label, view in zip(names, call.names, views):
        is_learned = view.perturbed and (name is None or name in call.learnable)
        if is_learned and name is None:
            raise NotImplementedError(
                f"argument '{label}' has a gradient in jax.grad, and its kernels make those of q, k and v alone: write a "
                "score_mod that takes it, or put it behind jax.lax.stop_gradient"
            )
        if is_learned and deterministic and name not in _places.list_exact(call.variant, letters):
            raise NotImplementedError(
                f"the gradient of '{label}' is a sum over blocks in any order, and `deterministic` is on: put it behind "
                "jax.lax.stop_gradient; arrays with an element for each batch, head and query have gradients in one order"
            )
        learned.append(() if is_learned else None)
    return tuple(learned)


@functools.lru_cache(maxsize=256)
def make(call, lse, deterministic):
    """Attention of q, k, v and views, which gives (output,) or (output, LSE)."""
    own = ("q", "k", "v")
    # The template of functions has no form without the LSE.
    names = ("o", "lse") if lse or _variants.is_source(call.variant) else ("o",)

    @jax.custom_vjp
    def differentiated(*tensors):
        results = make_op(call, FORWARD, call.variant, own, names)(*tensors)
        return results if lse else results[:1]

    def forward(*primals):
        learned = _list_learned(call, primals, deterministic)
        tensors = tuple(primal.value for primal in primals)
        results = _make_op(call, FORWARD, call.variant, own, ("o", "lse"))(*tensors)
        return results if lse else results[:1], (tensors, results, learned)

    def backward(residuals, gradients):
        tensors, (out, logarithms), is_learned = residuals
        gradient, *of_lse = (None if isinstance(entry, SymbolicZero) else entry for entry in gradients)
        if gradient is None:
            gradient = jnp.zeros_like(out)
        given = [gradient, logarithms, *(entry for entry in of_lse if entry is not None)]
        operands = (*own, "o", "do", "lse", "dlse")[: 4 + len(given)]
        own_call, views, learned = call, tensors[3:], ()
        if call.order:
            wanted = tuple(name for name, entry in zip(call.list_views(), is_learned) if entry is not None)
            names = _functions.list_gradient_extras(call.variant, wanted, deterministic, "dlse" in operands)
            own_call, places = call.reorder(names)
            views, learned = [views[place] for place in places], tuple(name[1:] for name in names if name not in call.order)
        variant = _variants.name_gradients(call.variant, deterministic, learned)
        run = _make_op(own_call, BACKWARD, variant, operands, ("dq", "dk", "dv"), learned)
        of_own = run(*tensors[:3], out, *given, *views)
        sums = dict(zip(learned, of_own[3:]))
        # A view whose elements change no score has no gradient.
        of_views = [
            sums[name].astype(view.dtype) if name in sums else None
            for name, view in zip(call.list_views() or [None] * len(tensors), tensors[3:])
        ]
        return *of_own[:3], *of_views

    differentiated.defvjp(forward, backward, symbolic_zeros=True)
    return differentiated
