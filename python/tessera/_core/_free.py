"""Numbers of layouts that may be others in the next call (tessera_call_free): what is launched is the same then, and what the
call makes follows them. A number is free for as long as nobody has asked for its value."""

from __future__ import annotations

import math
import operator

from ._layouts import RESULT, TEMPORARY, TENSOR, VIEW, element_bytes

#: More elements than memory has. What follows a number, by a factor, still has 64 bits.
MOST = 2**40
# Extents of 0 and 1 are like no other ones, and are not free.
_LEAST = 2
_ROW_BYTES = 16


class Number:
    """A free number of a tensor times a factor, and a summand of 0 or more. Whatever is done with it but multiplication, `add`, and
    asking whether an extent is 0 or 1, fixes it."""

    __slots__ = "_scope", "_key", "_factor", "_summand"

    def __init__(self, scope, key, factor=1, summand=0):
        self._scope, self._key, self._factor, self._summand = scope, key, factor, summand

    def __mul__(self, other):
        times = operator.index(other)
        return Number(self._scope, self._key, self._factor * times, self._summand * times)

    __rmul__ = __mul__

    def __eq__(self, other):
        # No free extent is 0 or 1, so that this says nothing of it.
        is_free_extent = self._factor and not self._key[2] and self._scope.bounds[self._key] is not None
        return False if is_free_extent and other in (0, 1) else operator.index(self) == other

    def __ne__(self, other):
        return not self == other

    def __index__(self):
        self._scope.bounds[self._key] = None
        return peek(self)

    def __hash__(self):
        return hash(operator.index(self))

    def __repr__(self):
        return repr(operator.index(self))


def _fix(compute):
    """An operation of integers."""
    return lambda self, *others: compute(operator.index(self), *others)


for _name in ("add", "sub", "floordiv", "truediv", "mod", "lt", "le", "gt", "ge", "neg"):
    setattr(Number, f"__{_name}__", _fix(getattr(operator, _name)))
for _name in ("add", "sub", "floordiv", "truediv", "mod"):
    setattr(Number, f"__r{_name}__", _fix(lambda own, other, compute=getattr(operator, _name): compute(other, own)))
Number.__bool__ = _fix(bool)


def limit(number, least, most):
    """The value of a number, which may be any other one from `least` to `most` instead: what asks must give the same for these."""
    return number._scope.limit(number, least, most) if isinstance(number, Number) else number


def peek(number):
    """The value of a number, whose bounds the caller limits afterwards."""
    return number._scope.values[number._key] * number._factor + number._summand if isinstance(number, Number) else number


def add(number, summand):
    """`summand`, 0 or more, and a number, which stays free."""
    if not isinstance(number, Number):
        return number + summand
    return Number(number._scope, number._key, number._factor, number._summand + operator.index(summand))


def ask(number, answer, unit=1):
    """What `answer` says of how many whole units a number has. Rules say the same of all numbers between two of which they do: a number
    stays free between two powers of 2 then."""
    count = peek(number) // unit
    least, most = (1 << count.bit_length() - 1, (1 << count.bit_length()) - 1) if count else (0, 0)
    found = answer(least)
    if answer(most) != found:
        return answer(operator.index(number) // unit)
    limit(number, least * unit, (most + 1) * unit - 1)
    return found


class Scope:
    """The free numbers of one recipe."""

    def __init__(self):
        #: By (tensor, dim, whether it is a stride): values, and [least, most] or None where it is fixed. Extents that are equal
        #: stay so, and have the key of the first one.
        self.values, self.bounds, self._keys, self._multiples = {}, {}, {}, {}

    def open(self, tensors, dims):
        """Layouts with numbers that are free: for each of `dims`, (tensor, dim), its extent, and the strides of its tensor but the
        last one."""
        for tensor, dim in dims:
            layout = tensors[tensor]
            self._add((tensor, dim, False), layout.shape[dim], _LEAST, 1)
            for place, step in enumerate(layout.strides[:-1]):
                bytes_of = element_bytes(layout.element)
                self._add((tensor, place, True), step, 1, max(1, math.gcd(step * bytes_of, _ROW_BYTES) // bytes_of))
        return [self._open(index, layout) for index, layout in enumerate(tensors)]

    def _add(self, key, value, least, multiple):
        if not least <= value <= MOST or key in self._keys:
            return
        first = key if key[2] else next((k for k, own in self.values.items() if own == value and not k[2]), key)
        self._keys[key], self._multiples[key] = first, multiple
        self.values[first] = value
        self.bounds.setdefault(first, [least, MOST])

    def _open(self, tensor, layout):
        if layout is None:
            return None
        shape, strides = (
            tuple(
                Number(self, self._keys[tensor, dim, is_stride]) if (tensor, dim, is_stride) in self._keys else number
                for dim, number in enumerate(numbers)
            )
            for is_stride, numbers in ((False, layout.shape), (True, layout.strides))
        )
        return layout._replace(shape=shape, strides=strides)

    def limit(self, number, least, most):
        bounds, factor, summand = self.bounds[number._key], number._factor, number._summand
        if bounds is not None:
            bounds[:] = max(bounds[0], -(-(least - summand) // factor)), min(bounds[1], (most - summand) // factor)
        return peek(number)

    def close(self, recipe):
        """The recipe with plain numbers, those that are free, and what follows them."""
        following = []

        def settle(source, index, layout):
            plain = {}
            for name, is_stride in (("shape", False), ("strides", True)):
                numbers = getattr(layout, name)
                plain[name] = tuple(map(peek, numbers))
                following.extend(
                    ((source, index, dim, is_stride), number) for dim, number in enumerate(numbers) if isinstance(number, Number)
                )
            return layout._replace(**plain)

        # Constants are the same in all calls.
        steps = tuple((kernel, tuple((source, operator.index(index)) for source, index in operands)) for kernel, operands in recipe.steps)
        copies = tuple(
            (index, x._replace(shape=tuple(map(operator.index, x.shape)), strides=tuple(map(operator.index, x.strides))))
            for index, x in recipe.copies
        )
        results, temporaries = (
            tuple(settle(source, index, x) for index, x in enumerate(layouts))
            for source, layouts in ((RESULT, recipe.results), (TEMPORARY, recipe.temporaries))
        )
        views = tuple((place, settle(VIEW, index, x), operator.index(offset)) for index, (place, x, offset) in enumerate(recipe.views))
        free = [key for key, first in self._keys.items() if self.bounds[first] is not None]
        same = [-1 if self._keys[key] == key else free.index(self._keys[key]) for key in free]
        rows = [((TENSOR, *key), *self.bounds[self._keys[key]], self._multiples[key], first) for key, first in zip(free, same)]
        followings = [(place, free.index(x._key), x._factor, x._summand) for place, x in following if x._key in free]
        return recipe._replace(
            steps=steps, results=results, copies=copies, temporaries=temporaries, views=views, free=tuple(rows),
            followings=tuple(followings),
        )  # fmt: skip
