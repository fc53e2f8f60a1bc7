"""The op `tessera::attention_backward`, and attention with gradients: a function of autograd around it and the forward
op. Tensors are [B, H, S, D] views."""

import torch
from torch.utils.flop_counter import register_flop_formula

from .._attention import _recipes, _variants
from . import _compute, _direct, _first_order, _native, _op, _vmap

_op._library.define(
    "attention_backward(Tensor grad, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
    "Tensor? alibi, str variant, float scale, float softcap=0., SymInt left=-1, SymInt right=-1, bool deterministic=False) "
    "-> (Tensor, Tensor, Tensor)",
    tags=_op._tags,
)
backward = torch.ops.tessera.attention_backward.default


def is_fixed(deterministic):
    """Whether sums of gradients have one order."""
    return _direct.find_order(deterministic) != _recipes.ANY_ORDER


def _run(
    grad, grad_lse, q, k, v, out, lse, alibi, variant, scale, softcap=0.0, left=-1, right=-1, deterministic=False
):  # fmt: skip
    text = _recipes.write(_direct.find_order(deterministic), _recipes.NAMED, variant)
    return tuple(_compute.compute(text, (q, k, v, out, grad, lse, grad_lse, alibi), (scale, softcap), (left, right)))


def allocate(q, k, v):
    """dQ, dK and dV, dense in the orders of the storage of q, k and v."""
    return tuple(_op.allocate_results(x, x, lse=False)[0] for x in (q, k, v))


def _run_cpu(*arguments, **named):
    _op.check_interpreter("grad")
    return _run(*arguments, **named)


def _make_fake(grad, grad_lse, q, k, v, *_, **__):
    return allocate(q, k, v)


def _count_flops(grad, grad_lse, q, k, v, *_, **__):
    """As torch counts its own: five products, of all scores, masked or not."""
    (batch, heads, rows, width), keys = q, k[2]
    return 2 * batch * heads * rows * keys * (3 * width + 2 * v[3])


if not _op.has_native:
    _op._library.impl("attention_backward", _run, "CUDA")
_op._library.impl("attention_backward", _run_cpu, "CPU")
torch.library.register_fake("tessera::attention_backward", _make_fake, lib=_op._library)
_vmap.register(_op._library, backward, 7)
register_flop_formula(backward.overloadpacket)(_count_flops)


_are_transforms_active, _is_grad_enabled = torch._C._are_functorch_transforms_active, torch.is_grad_enabled


_REFUSAL = (
    "gradients of attention have no gradients themselves: take those of the first order, or those of "
    "torch.nn.functional.scaled_dot_product_attention under torch.nn.attention.SDPBackend.MATH"
)


def mark_gradients(gradients, *inputs):
    """Those of attention as autograd gets them."""
    return _first_order.mark_gradients(_REFUSAL, gradients, *inputs)


def _forward(ctx, q, k, v, alibi, arguments, return_lse):
    """The results of a function of autograd, which the backward gets with its inputs."""
    out, lse = _direct.call_op(q, k, v, alibi, arguments, True)
    ctx.save_for_backward(q, k, v, out, lse, *(() if alibi is None else (alibi,)))
    if not return_lse:
        return out
    ctx.set_materialize_grads(False)
    return out, lse


def _run_backward(saved, arguments, deterministic, grad, grad_lse):
    q, k, v, out, lse, *slopes = saved
    alibi = slopes[0] if slopes else None
    variant, scale, *others = arguments if len(arguments) > 1 else (*arguments, None)
    if grad is None:
        grad = torch.zeros_like(out)
    if scale is None:
        scale = q.shape[3] ** -0.5
    named = {"deterministic": True} if deterministic else {}
    given = grad, grad_lse, q, k, v, out, lse, alibi, variant, scale, *others
    gradients = _native.call(backward, q, k, v, alibi, *given, **named)
    # PyTorch drops a None for an argument that is not there.
    return (*mark_gradients(gradients, grad, q, k, v), None, None)


class _Attention(torch.autograd.Function):
    """Output and LSE, also under transforms of torch.func. `given` has the further arguments of the op, as far as they are given,
    and whether gradients are the same in each run."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q, k, v, alibi, given):
        return _direct.call_op(q, k, v, alibi, given[0], True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, v, alibi, ctx.given = inputs
        ctx.save_for_backward(q, k, v, *output, *(() if alibi is None else (alibi,)))
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad, grad_lse):
        return _run_backward(ctx.saved_tensors, *ctx.given, grad, grad_lse)


def _make_apply(arguments, return_lse, deterministic):
    """Attention with these further arguments where nothing sees ops."""
    variant = arguments[0]
    text = _recipes.write(_recipes.OUTPUT_AND_LSE, _recipes.NAMED, variant)
    calls = _direct.describe_attention(
        _direct.NUMBERS, 4, 4, 4, return_lse, text, lambda order: _recipes.write(order, _recipes.NAMED, variant)
    )  # fmt: skip

    def call_forward(ctx, q, k, v, alibi=None):
        return _forward(ctx, q, k, v, alibi, arguments, return_lse)

    def call_backward(saved, _, grad, grad_lse=None):
        return _run_backward(saved, arguments, deterministic, grad, grad_lse)

    return _direct.make_apply(calls, arguments, deterministic, call_forward, call_backward)


# Those that were made by their arguments: without the LSE and with it, and the same where gradients are the same in each run.
_applies, _applies_with_lse = {}, {}
_deterministic_applies, _deterministic_applies_with_lse = {}, {}


def attention(q, k, v, alibi, arguments, return_lse, deterministic=False):
    """Output, and LSE where it is asked for, with gradients."""
    if not (_direct.is_watched() or _are_transforms_active()):
        applies = _applies_with_lse if return_lse else _applies
        if deterministic:
            applies = _deterministic_applies_with_lse if return_lse else _deterministic_applies
        apply = applies.get(arguments)
        # Where there are too many no other one is made.
        if apply is None and len(applies) < 64:
            apply = applies.setdefault(arguments, _make_apply(arguments, return_lse, deterministic))
        if apply is not None:
            return apply(q, k, v) if alibi is None else apply(q, k, v, alibi)
    results = _Attention.apply(*_op.separate(q, k, v, alibi), (arguments, deterministic))
    return results if return_lse else results[0]


_WIDEST = _variants.WIDTHS[-1]


def _refuse_gradients(q, v):
    name, size = ("q", q.shape[3]) if q.shape[3] > _WIDEST else ("v", v.shape[3])
    raise NotImplementedError(
        f"argument '{name}' has head dimension {size}, and gradients are those of up to {_WIDEST}: detach q, k and v, or call under "
        "torch.no_grad()"
    )


def attend(q, k, v, alibi, arguments, return_lse, deterministic=False):
    """With gradients where they are needed. `arguments` are those of the op from the variant on."""
    _op.check_tangents(("q", "k", "v", "alibi"), q, k, v, alibi)
    # In one line what _op.require_grad asks, as a call costs the time.
    wanted = q.requires_grad or k.requires_grad or v.requires_grad or (_are_transforms_active() and _op.require_grad(q, k, v))
    if wanted and _is_grad_enabled():
        if q.shape[3] > _WIDEST or v.shape[3] > _WIDEST:
            _refuse_gradients(q, v)
        return attention(q, k, v, alibi, arguments, return_lse, deterministic)
    return _direct.attend(q, k, v, alibi, arguments, return_lse)
