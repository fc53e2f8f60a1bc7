"""The op `tessera::attention_backward`, and attention with gradients: a function of autograd around it and the forward
op. Tensors are [B, H, S, D] views."""

import functools

import torch
from torch.utils.flop_counter import register_flop_formula

from .. import _compile, _variants
from .._program import Program
from . import _native, _op
from ._types import TYPES

_op._library.define(
    "attention_backward(Tensor grad, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
    "str variant, float scale) -> (Tensor, Tensor, Tensor)",
    tags=_op._tags,
)
backward = torch.ops.tessera.attention_backward.default


def find_problem(alibi, variant):
    """What keeps the kernels of the backward pass from a call that the forward pass takes, or None."""
    if not variant.startswith("attention_fwd") or alibi is not None:
        return "of windows, soft caps and slopes"
    return None


@functools.lru_cache(maxsize=None)
def _find(kind, variant, element_type, d, dv, has_lse_gradient, fixed):
    """The kernels, or the interpreter's form, for tensors of head dimensions d and dv."""
    source, parameters = _variants.describe_gradients(variant, element_type, d, dv, has_lse_gradient, fixed)
    return kind(source, **parameters)


def _is_taken(x):
    """Whether a tensor lies as kernels take it: with dense rows at multiples of 16 bytes."""
    return (
        x.stride(3) == 1 and all(step > 0 and step % 8 == 0 for step in x.stride()[:3]) and x.data_ptr() % 16 == 0
    )


def _run(kind, grad, grad_lse, q, k, v, out, lse, variant, scale):
    results = _allocate(q, k, v)
    if not k.shape[2] or not q.numel():
        for result in results:
            result.zero_()
        return results
    if not _is_taken(grad):
        grad = torch.empty_like(out).copy_(grad)
    gradients = [] if grad_lse is None else [grad_lse.contiguous()]
    fixed = torch.are_deterministic_algorithms_enabled()
    kernel = _find(kind, variant, TYPES[q.dtype], q.shape[3], v.shape[3], grad_lse is not None, fixed)
    arguments = q, k, v, out, grad, lse, *gradients, *results, scale
    if kind is Program:
        kernel(*arguments)
    else:
        size = kernel.workspace_bytes(*arguments)
        kernel(*arguments, workspace=torch.empty(size, dtype=torch.uint8, device=q.device))
    return results


def _allocate(q, k, v):
    """dQ, dK and dV, dense in the orders of the storage of q, k and v."""
    return tuple(_op.allocate_results(x, x, lse=False)[0] for x in (q, k, v))


def _run_cpu(*arguments, **named):
    if not _op._interprets:
        raise ValueError("argument 'grad' is on the CPU; call tessera.torch.use_interpreter() to run tests there")
    return _run(Program, *arguments, **named)


def _make_fake(grad, grad_lse, q, k, v, out, lse, variant, scale):
    return _allocate(q, k, v)


def _count_flops(grad, grad_lse, q, k, v, *_, **__):
    """As torch counts its own: five products, of all scores, masked or not."""
    (batch, heads, rows, width), keys = q, k[2]
    return 2 * batch * heads * rows * keys * (3 * width + 2 * v[3])


_op._library.impl("attention_backward", functools.partial(_run, _compile.compile), "CUDA")
_op._library.impl("attention_backward", _run_cpu, "CPU")
torch.library.register_fake("tessera::attention_backward", _make_fake, lib=_op._library)
register_flop_formula(backward.overloadpacket)(_count_flops)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, variant, scale):
        out, lse = _native.call(_op.forward, q, k, v, None, variant, scale)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.variant, ctx.scale = variant, scale
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, grad, grad_lse):
        q, k, v, out, lse = ctx.saved_tensors
        if grad is None:
            grad = torch.zeros_like(out)
        return (*backward(grad, grad_lse, q, k, v, out, lse, ctx.variant, ctx.scale), None, None)


def attention(q, k, v, variant, scale):
    """Output and LSE, with gradients."""
    return _Attention.apply(q, k, v, variant, scale)
