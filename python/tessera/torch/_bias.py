"""Tensors that are added to scores, or that say which keys a query sees, as functions that look into them."""

import torch

from . import _op

_NUMBERS = (torch.float32, torch.float16, torch.bfloat16)
# Rows of a tile are loaded 16 bytes at a time.
_ROW_BYTES = 16


def find_shape_problem(name, tensor, q, k):
    """That a tensor is not repeated to the scores, as an exception, or None."""
    shape = (*q.shape[:3], k.shape[2])
    sizes = zip(reversed(tensor.shape), reversed(shape))
    if tensor.dim() > 4 or any(size not in (1, extent) for size, extent in sizes):
        return ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}, which is not repeated to {shape}")
    return None


def find_problem(name, tensor, q, k):
    """Why no kernel takes the tensor, as an exception; None when one does."""
    if tensor.dtype not in (*_NUMBERS, torch.bool):
        return TypeError(f"argument '{name}' has type {tensor.dtype}; it is float32, float16 or bfloat16")
    return (
        find_shape_problem(name, tensor, q, k)
        or _op.find_other_device(name, tensor, q)
        or _find_stride_problem(name, tensor)
    )


def _find_stride_problem(name, tensor):
    if tensor.dim() == 0 or tensor.shape[-1] == 1:
        return None
    if tensor.stride(-1) != 1:
        return ValueError(f"argument '{name}' has stride {tensor.stride(-1)} in its last dimension; it must be 1: make it "
                          "contiguous")  # fmt: skip
    rows = tensor.shape[-2] if tensor.dim() > 1 else 1
    steps = [stride for stride, size in zip(tensor.stride()[:-1], tensor.shape[:-1]) if size != 1]
    if rows != 1 and any(step * tensor.element_size() % _ROW_BYTES for step in steps) and tensor.numel():
        return ValueError(
            f"argument '{name}' has rows of {tensor.shape[-1]} {tensor.dtype}, which do not begin at multiples of {_ROW_BYTES} "
            f"bytes: make it wider and pass {name}[..., :{tensor.shape[-1]}], or pass fallback=\"torch\""
        )
    return None


def _make_lookup(tensor):
    """A function of a tensor and a place, and the tensor, which has a dimension."""
    tensor = tensor if tensor.dim() else tensor[None]
    by_batch, by_head, by_row, by_column = (False,) * (4 - tensor.dim()) + tuple(size != 1 for size in tensor.shape)

    def look_1(values, b, h, q, k):
        return values[k if by_column else 0]

    def look_2(values, b, h, q, k):
        return values[q if by_row else 0, k if by_column else 0]

    def look_3(values, b, h, q, k):
        return values[h if by_head else 0, q if by_row else 0, k if by_column else 0]

    def look_4(values, b, h, q, k):
        return values[b if by_batch else 0, h if by_head else 0, q if by_row else 0, k if by_column else 0]

    return (look_1, look_2, look_3, look_4)[tensor.dim() - 1], tensor


def make_mask(tensor):
    """(mask_mod, mask_args) of a tensor of bool."""
    look, tensor = _make_lookup(tensor)
    return lambda b, h, q, k, values: look(values, b, h, q, k), (tensor,)


def make_score(tensor):
    """(score_mod, score_args) of a tensor that is added to scores."""
    look, tensor = _make_lookup(tensor)
    return lambda s, b, h, q, k, values: s + look(values, b, h, q, k), (tensor,)
