"""What functions for serving engines refuse of their arguments."""

from __future__ import annotations

from .._attention import _checks, _variants
from .._attention._checks import refuse  # noqa: F401
from . import _op
from ._append import has_rows


def read_scale(scale, name="softmax_scale"):
    """A scale as recipes take it: None is that of the queries' rows. `name` is that of the argument."""
    if scale is None:
        return None
    _op.raise_problem(_op.find_scale_problem(scale, name))
    return float(scale)


def read_softcap(softcap):
    """A bound of scores as recipes take it: one below 0 means none, as in flash_attn."""
    _op.raise_problem(_op.find_number_problem("softcap", softcap, 'call `attention` with fallback="torch"'))
    return 0.0 if isinstance(softcap, (int, float)) and softcap < 0 else _variants.read_softcap(softcap)


def check_output(out, q, v):
    _op.check_types({"out": out})
    shape = *q.shape[:-1], v.shape[-1]
    if tuple(out.shape) != shape or out.dtype != q.dtype or out.device != q.device or not has_rows(out):
        raise ValueError(
            f"argument 'out' has shape {tuple(out.shape)}, type {out.dtype} and strides {tuple(out.stride())}, on {out.device}; it is "
            f"{shape} of {q.dtype} on {q.device}, with dense rows at multiples of 16 bytes"
        )


def check_numbers(name, tensor, shape, q):
    """Refuses what is no tensor of int32 numbers of a shape, on the device of q; None stands for any extent."""
    _op.check_types({name: tensor})
    _checks.check_numbers(name, tensor, shape)
    _op.raise_problem(_op.find_other_device(name, tensor, q))
    if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        raise ValueError(
            f"argument '{name}' has stride {tensor.stride(-1)} in its last dimension; it must be 1: pass {name}.contiguous()"
        )
