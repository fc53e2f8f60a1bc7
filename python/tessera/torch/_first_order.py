"""Gradients that have no gradients themselves."""

import torch


class _FirstOrder(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(refusal, count, *tensors):
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.refusal = inputs[0]

    @staticmethod
    def backward(ctx, *_):
        raise NotImplementedError(ctx.refusal)


def mark_gradients(refusal, gradients, *inputs):
    """Gradients as autograd gets them: with create_graph=True they refuse, by this text, to be differentiated by the inputs."""
    if not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return gradients
    return _FirstOrder.apply(refusal, len(gradients), *gradients, *inputs)
