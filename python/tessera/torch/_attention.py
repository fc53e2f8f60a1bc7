"""The function `attention`: from its arguments to an op."""

import torch

from .. import _variants
from . import _backward, _fallback, _functions, _native, _op
from ._types import TYPES

_LAYOUTS = ("BHSD", "BSHD")
_FLOAT32 = torch.float32


def _cast_for_autocast(tensors):
    """Under autocast, float32 becomes its type, as with torch's own attention."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(tensor.to(dtype) if tensor.dtype == torch.float32 else tensor for tensor in tensors)


def _needs_gradient(*tensors):
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _refuse_gradient(problem, **tensors):
    name = next(name for name, tensor in tensors.items() if tensor is not None and tensor.requires_grad)
    raise NotImplementedError(
        f"argument '{name}' requires a gradient, and there is no backward kernel {problem}: call it under "
        'torch.no_grad(), detach the argument, or pass fallback="torch"'
    )


def attention(
    q,
    k,
    v,
    *,
    causal=False,
    window=None,
    softcap=0.0,
    alibi=None,
    bias=None,
    variant=None,
    arguments=None,
    scale=None,
    layout="BHSD",
    return_lse=False,
    fallback=None,
):
    """softmax(scale * q k^T) v, and with `return_lse` also the logarithm of the softmax' sums, [B, H, SQ] in float32.

    q, k, v:  tensors in the order of `layout`, "BHSD" or "BSHD", float16 or bfloat16, in any strides but the innermost.
              q may have a multiple of the heads of k and v, and v a head dimension of its own.
    causal:   a row sees the keys up to its own. The last row is aligned with the last key.
    window:   (left, right), how many keys before and after its own a row sees; a negative number or None for all.
    softcap:  scores become softcap * tanh(score / softcap); 0 for none.
    alibi:    a float32 slope for each head of q; scores fall by it with each key of distance.
    bias:     added to the scores; only with fallback="torch".
    variant:  a tessera.Variant, functions of scores and masks in place of the masks above, softcap, alibi and bias; its
              `arguments` by name: numbers, and float32 tensors.
    scale:    1 / sqrt(head dimension) when not given; not 0.
    fallback: "torch" lets operations of torch compute what no kernel can; None refuses it.

    A row that sees no key gives zeros and an LSE of -inf. Raises TypeError, ValueError, NotImplementedError, and what
    `tessera.compile` raises where a kernel has to be compiled.
    """
    if layout not in _LAYOUTS:
        raise ValueError(f"argument 'layout' is {layout!r}; it is 'BHSD' or 'BSHD'")
    if fallback not in (None, "torch"):
        raise ValueError(f"argument 'fallback' is {fallback!r}; it is None or 'torch'")
    if q.dtype is _FLOAT32 or k.dtype is _FLOAT32 or v.dtype is _FLOAT32:
        q, k, v = _cast_for_autocast((q, k, v))
    if layout == "BSHD":
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    if variant is not None or arguments is not None:
        others = {"causal": causal, "window": window, "softcap": softcap, "alibi": alibi, "bias": bias, "fallback": fallback}
        out, lse = _call_variant(q, k, v, variant, arguments, scale, others)
    else:
        left, right = _variants.read_window(causal, window)
        name = _variants.name_variant(_variants.name_mask(left, right), softcap, alibi is not None)
        if fallback and (scale == 0 or _needs_fallback(q, k, v, alibi, bias)):
            out, lse = _fallback.attention(
                q, k, v, left=left, right=right, softcap=softcap, alibi=alibi, bias=bias,
                scale=q.shape[-1] ** -0.5 if scale is None else scale,
            )  # fmt: skip
        else:
            out, lse = _call_op(q, k, v, alibi, bias, name, left, right, softcap, scale, return_lse)
    if layout == "BSHD":
        out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


def _call_variant(q, k, v, variant, arguments, scale, others):
    if variant is None:
        raise ValueError("argument 'arguments' is given without a variant, whose functions would take them")
    for name, value in others.items():
        if value is not None and value is not False and not (name == "softcap" and value == 0):
            raise ValueError(f"argument '{name}' is given with a variant; let the functions of the variant say it")
    if scale == 0:
        raise ValueError("argument 'scale' is 0, and kernels multiply infinity with it")
    return _functions.attention(q, k, v, variant, arguments or {}, q.shape[-1] ** -0.5 if scale is None else float(scale))


def _needs_fallback(q, k, v, alibi, bias):
    if bias is not None or not _op.runs_on(q.device) or _op.find_problem(q, k, v, alibi) is not None:
        return True
    return _needs_gradient(q, k, v, alibi) and _backward.find_problem(alibi) is not None


def _read_bounds(left, right):
    """The bounds of a window as kernels take them."""
    unlimited = _variants.UNLIMITED
    return unlimited if left is None else left, unlimited if right is None else right


def _call_op(q, k, v, alibi, bias, variant, left, right, softcap, scale, return_lse):
    if bias is not None:
        raise NotImplementedError("argument 'bias' is given, and no kernel adds one; pass fallback=\"torch\"")
    if scale == 0:
        raise ValueError(
            "argument 'scale' is 0, and kernels divide by it and multiply infinity with it; pass fallback=\"torch\""
        )
    if _needs_gradient(q, k, v, alibi):
        problem = _backward.find_problem(alibi)
        if problem is not None:
            _refuse_gradient(problem, alibi=alibi)
        scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
        return _backward.attention(q, k, v, alibi, variant, scale, float(softcap), *_read_bounds(left, right))
    # The op itself refuses tensors that no kernel takes; what is passed beyond their defaults costs time.
    op = _op.forward if return_lse else _op.inference
    if scale is None and not softcap and "window" not in variant:
        results = _native.call(op, q, k, v, alibi, variant)
    else:
        left, right = _read_bounds(left, right)
        scale = None if scale is None else float(scale)
        results = _native.call(op, q, k, v, alibi, variant, scale, float(softcap), left, right)
    return results if return_lse else (results, None)


def warm_up(
    dtype, head_dim, *, value_dim=None, causal=False, window=None, softcap=0.0, alibi=False, return_lse=False
):
    """Compiles the kernels of a variant for all classes of shapes, so that no call waits for the compiler. `window`
    and `softcap` matter by being given, not by their values."""
    if dtype not in TYPES:
        raise TypeError(f"argument 'dtype' is {dtype}; attention takes float16 and bfloat16")
    mask = _variants.name_mask(*_variants.read_window(causal, window))
    text = _variants.name_variant(mask, softcap, alibi)
    _variants.find_variant(text, TYPES[dtype], head_dim, value_dim or head_dim, return_lse).compile_all()
