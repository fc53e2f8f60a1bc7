"""What functions for JAX refuse of their arguments."""

from __future__ import annotations

import jax
import numpy as np


def check_arrays(given):
    """Refuses what is no array."""
    for name, value in given.items():
        if not isinstance(value, (jax.Array, np.ndarray)):
            what = "None" if value is None else f"of type {type(value).__name__}"
            raise TypeError(f"argument '{name}' is {what}; it is an array: jax.numpy.asarray makes one of numbers")


def check_number(name, number, otherwise=""):
    """Refuses what no program has as a constant."""
    if isinstance(number, jax.core.Tracer):
        raise TypeError(
            f"argument '{name}' is traced by JAX, and numbers are constants of a program: make it a static argument of jax.jit{otherwise}"
        )
