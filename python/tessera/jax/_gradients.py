"""Attention with gradients: functions of JAX' custom_vjp around the calls."""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .. import _variants
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
        for name, primal in zip(call.names, primals[3:]):
            if primal.perturbed:
                raise NotImplementedError(
                    f"argument '{name}' has a gradient in jax.grad, and kernels make those of q, k and v alone: put it behind "
                    "jax.lax.stop_gradient"
                )
        tensors = tuple(primal.value for primal in primals)
        results = _make_op(call, FORWARD, call.variant, own, ("o", "lse"))(*tensors)
        return results if lse else results[:1], (tensors, results)

    def backward(residuals, gradients):
        tensors, (out, logarithms) = residuals
        gradient, *of_lse = (None if isinstance(entry, SymbolicZero) else entry for entry in gradients)
        if gradient is None:
            gradient = jnp.zeros_like(out)
        given = [gradient, logarithms, *(entry for entry in of_lse if entry is not None)]
        operands = (*own, "o", "do", "lse", "dlse")[: 4 + len(given)]
        variant = _variants.name_gradients(call.variant, deterministic)
        run = _make_op(call, BACKWARD, variant, operands, ("dq", "dk", "dv"))
        return (*run(*tensors[:3], out, *given, *tensors[3:]), *(None for _ in tensors[3:]))

    differentiated.defvjp(forward, backward, symbolic_zeros=True)
    return differentiated
