"""What functions over caches refuse of their arguments, whatever the tensors are of."""

from __future__ import annotations


def name_type(dtype):
    """The name of an element type, as torch and JAX both have it."""
    return str(dtype).removeprefix("torch.")


def refuse(name, value, reason):
    raise NotImplementedError(f"argument '{name}' is {value}; {reason}")


def check_numbers(name, tensor, shape):
    """Refuses what is no tensor of int32 numbers of a shape; None stands for any extent."""
    if name_type(tensor.dtype) != "int32":
        raise TypeError(f"argument '{name}' has type {tensor.dtype}; it is int32")
    if tensor.ndim != len(shape) or any(own not in (None, size) for own, size in zip(shape, tensor.shape)):
        text = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}; with this 'q' it is [{text}]")
