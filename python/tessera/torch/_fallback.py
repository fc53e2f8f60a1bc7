"""Attention of torch's own operations, for what no kernel takes: on any device, with gradients, and slow."""

import torch

from .._attention import _variants
from . import _bias, _op


def _find_visible(rows, keys, left, right, device):
    """Which keys each row sees; None when all. Bounds of None do not bound."""
    if left is None and right is None:
        return None
    row = torch.arange(rows, device=device)[:, None] + (keys - rows)
    key = torch.arange(keys, device=device)
    visible = torch.ones(rows, keys, dtype=torch.bool, device=device)
    if left is not None:
        visible = visible & (key >= row - left)
    if right is not None:
        visible = visible & (key <= row + right)
    return visible


def _find_problem(q, k, v, alibi, bias, sinks):
    """What these operations would take for something else, or refuse without a name: an exception, or None."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        problem = _op.find_form_problem(name, tensor) or _op.find_other_device(name, tensor, q)
        if problem is None and not tensor.is_floating_point():
            problem = TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes numbers of floating point")
        if problem is not None:
            return problem
    problem = _op.find_other_device("alibi", alibi, q) or _variants.find_mismatch(q.shape, k.shape, v.shape, alibi)
    if problem is None and bias is not None:
        problem = _op.find_other_device("bias", bias, q) or _bias.find_shape_problem("bias", bias, q, k)
    return problem or (None if sinks is None else _op.find_sinks_problem(sinks, q))


def _to(number, dtype):
    """A number, or a tensor of one, for scores of a type."""
    return number.to(dtype).reshape(()) if isinstance(number, torch.Tensor) else number


def attention(q, k, v, *, left, right, softcap, alibi, bias, scale, sinks=None):
    """(output, LSE) of [B, H, S, D] tensors, computed in float32, or in float64 where they are of it."""
    _op.raise_problem(_find_problem(q, k, v, alibi, bias, sinks))
    # Autocast would round the scores.
    with torch.autocast(q.device.type, enabled=False):
        return _attend(q, k, v, left, right, softcap, alibi, bias, scale, sinks, torch.promote_types(q.dtype, torch.float32))


def _attend(q, k, v, left, right, softcap, alibi, bias, scale, sinks, dtype):
    groups = q.shape[1] // k.shape[1]
    keys, values = (tensor.repeat_interleave(groups, 1) if groups > 1 else tensor for tensor in (k, v))
    scores = torch.einsum("bhqd,bhkd->bhqk", q.to(dtype), keys.to(dtype)) * _to(scale, dtype)
    softcap = _to(softcap, dtype)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi is not None:
        row = torch.arange(q.shape[2], device=q.device)[:, None] + (k.shape[2] - q.shape[2])
        distance = (row - torch.arange(k.shape[2], device=q.device)).abs()
        scores = scores - alibi.view(1, -1, 1, 1) * distance
    if bias is not None:
        scores = scores + bias.to(dtype)
    visible = _find_visible(q.shape[2], k.shape[2], left, right, q.device)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    # What is hidden has no gradient: that of logsumexp is no number where all of a row is -inf.
    scores = scores.masked_fill(scores == -torch.inf, -torch.inf)
    lse = torch.logsumexp(scores, -1)
    if sinks is not None:
        lse = torch.logaddexp(lse, sinks.to(dtype)[:, None])
    # A row that sees nothing has an LSE of -inf and an output of zeros.
    weights = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0).unsqueeze(-1))
    return torch.einsum("bhqk,bhkd->bhqd", weights, values.to(dtype)).to(q.dtype), lse.float()
