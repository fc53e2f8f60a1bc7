"""Attention of torch's own operations, for what no kernel takes: on any device, with gradients, and slow."""

import torch

from .. import _variants


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


def _check(q, k, v, alibi, bias):
    """Refuses what these operations would take for something else, or refuse without a name."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 4:
            raise ValueError(f"argument '{name}' has {tensor.dim()} dimensions; attention takes 4")
        if not tensor.is_floating_point():
            raise TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes numbers of floating point")
    for name, tensor in (("k", k), ("v", v), ("alibi", alibi), ("bias", bias)):
        if tensor is not None and tensor.device != q.device:
            raise ValueError(f"argument '{name}' is on {tensor.device} and 'q' on {q.device}; they must be equal")
    problem = _variants.find_mismatch(q.shape, k.shape, v.shape, alibi)
    if problem is not None:
        raise problem


def attention(q, k, v, *, left, right, softcap, alibi, bias, scale):
    """(output, LSE) of [B, H, S, D] tensors, computed in float32."""
    _check(q, k, v, alibi, bias)
    groups = q.shape[1] // k.shape[1]
    keys, values = (tensor.repeat_interleave(groups, 1) if groups > 1 else tensor for tensor in (k, v))
    scores = torch.einsum("bhqd,bhkd->bhqk", q.float(), keys.float()) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi is not None:
        row = torch.arange(q.shape[2], device=q.device)[:, None] + (k.shape[2] - q.shape[2])
        distance = (row - torch.arange(k.shape[2], device=q.device)).abs()
        scores = scores - alibi.view(1, -1, 1, 1) * distance
    if bias is not None:
        scores = scores + bias
    visible = _find_visible(q.shape[2], k.shape[2], left, right, q.device)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    lse = torch.logsumexp(scores, -1)
    # A row that sees nothing has an LSE of -inf and an output of zeros.
    weights = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0).unsqueeze(-1))
    return torch.einsum("bhqk,bhkd->bhqd", weights, values.float()).to(q.dtype), lse
