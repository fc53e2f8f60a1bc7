"""jax.numpy as functions of scores and masks see it: of traced values its functions are those of kernels."""

import functools

import jax.numpy as jnp

from .._functions import _trace

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


#: The types of what `convert` gives.
TYPES = (_Function,)
_make_function = functools.lru_cache(maxsize=None)(_Function)


def convert(value):
    """What takes the place of a function of jax.numpy; other values stay."""
    name = getattr(value, "__name__", None) if callable(value) and not isinstance(value, type) else None
    if isinstance(name, str) and getattr(jnp, name, None) is value:
        return _make_function(name, value)
    return value
