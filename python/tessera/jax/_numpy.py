"""jax.numpy as functions of scores and masks see it: of traced values its functions are those of kernels."""

import jax
import jax.numpy as jnp

from .. import _trace

# Functions with other names than torch has for them; its `min` and `max` take two values, as `minimum` does.
_NAMES = {
    "equal": "eq", "power": "pow", "left_shift": "lshift", "right_shift": "rshift", "min": "jax.numpy.min",
    "max": "jax.numpy.max",
}  # fmt: skip


class _Function:
    def __init__(self, name, function):
        self._name, self._function = name, function

    def __call__(self, *arguments, **named):
        if not any(isinstance(value, _trace.TRACED) for value in (*arguments, *named.values())):
            return self._function(*arguments, **named)
        return _trace.call(f"jax.numpy.{self._name}", _NAMES.get(self._name, self._name), arguments, named)


class _Numpy:
    def __getattr__(self, name):
        value = getattr(jnp, name)
        if callable(value) and not isinstance(value, type):
            value = _Function(name, value)
        setattr(self, name, value)
        return value


class _Jax:
    numpy = _Numpy()

    def __getattr__(self, name):
        return getattr(jax, name)


_JAX = _Jax()
#: The types of what `convert` gives.
TYPES = (_Function, _Numpy, _Jax)


def convert(value):
    """What takes the place of jax, of jax.numpy and of its functions; other values stay."""
    if value is jax:
        return _JAX
    if value is jnp:
        return _JAX.numpy
    name = getattr(value, "__name__", None) if callable(value) and not isinstance(value, type) else None
    if isinstance(name, str) and getattr(jnp, name, None) is value:
        return getattr(_JAX.numpy, name)
    return value
