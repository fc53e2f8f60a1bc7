"""How ops of recurrences are called, with gradients: past PyTorch's dispatcher where nobody sees ops."""

from __future__ import annotations

import torch

from . import _direct, _first_order, _op

#: What ops compute, by their names, and of those with gradients what keeps tensors for them and what gives them (_walks.py).
functions, gradients = {}, {}
_PLAIN = torch.Tensor, torch.nn.Parameter
_are_transforms_active = torch._C._are_functorch_transforms_active


def wants_gradients(*tensors):
    """Whether gradients are wanted of any of these, which may be None."""
    return torch.is_grad_enabled() and _op.require_grad(*(x for x in tensors if x is not None))


class _Learned(torch.autograd.Function):
    """A function with its gradient, as the op of its name has it."""

    @staticmethod
    def forward(ctx, name, *arguments):
        output = functions[name](*arguments)
        keep, ctx.back = gradients[name]
        keep(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx, *grads):
        return None, *ctx.back(ctx, *grads)


# The apply of torch's Function prepares in Python what functorch's transforms need, and calls this one.
_apply_learned = super(torch.autograd.Function, _Learned).apply


class _Transformed(torch.autograd.Function):
    """The same where torch.func transforms calls, whose setup costs the host more."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name, *arguments):
        return call(name, *arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        name, *arguments = inputs
        keep, ctx.back = gradients[name]
        keep(ctx, arguments, output)

    backward = _Learned.backward


def call(name, *arguments):
    """What an op gives: past PyTorch's dispatcher and its autograd of ops in Python, which cost the host time, where nobody sees ops."""
    learns, wants = torch.is_grad_enabled(), False
    for x in arguments:
        if isinstance(x, torch.Tensor):
            if type(x) not in _PLAIN:
                break
            wants = wants or learns and x.requires_grad
    else:
        if not _direct.is_seen():
            if not wants:
                return functions[name](*arguments)
            if name in gradients:
                return _apply_learned(name, *arguments)
    if _are_transforms_active() and name in gradients and wants_gradients(*(x for x in arguments if isinstance(x, torch.Tensor))):
        return _Transformed.apply(name, *arguments)
    return getattr(torch.ops.tessera, name)(*arguments)


def differentiate(name, grad, grad_last, given):
    """The gradients of op `name` as autograd gets them, of its arguments and what it keeps."""
    if grad is None:
        grad = torch.zeros_like(given[2], memory_format=torch.contiguous_format)
    return mark_gradients(call(f"{name}_backward", grad, grad_last, *given), grad, grad_last, *given)


def differentiate_units(dq, dk, q, k):
    """The same of `unit_rows`."""
    return mark_gradients(call("unit_rows_backward", dq.contiguous(), dk.contiguous(), q, k), dq, dk, q, k)


def mark_gradients(gradients, *inputs):
    """Those of recurrences as autograd gets them."""
    return _first_order.mark_gradients(
        "gradients of recurrences have no gradients themselves: take those of the first order",
        gradients, *[x for x in inputs if isinstance(x, torch.Tensor)],
    )  # fmt: skip
