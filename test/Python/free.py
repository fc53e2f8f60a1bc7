# RUN: env TESSERA_LIBRARY=%build/lib %python %s
"""Free numbers of layouts: what a recipe gives for others within their bounds is what it would have been described as."""

import random
import unittest

from tessera._core import _free
from tessera._core._layouts import CONSTANT, TENSOR, Layout, Recipe, list_strides


def describe(x, asked):
    """A recipe of a tensor [A, B, 8], and what it has asked for."""
    a, b, _ = x.shape
    kernel = ()
    if "a" in asked:
        kernel += (a // 4,)
    if "b" in asked:
        kernel += (_free.limit(b, 17, 32) > 16 if _free.peek(b) > 16 else _free.limit(b, 0, 16) > 16,)
    if "step" in asked:
        kernel += (x.strides[0] % 16 == 0,)
    result = Layout((b, 3 * a, 8), (2 * x.strides[0], a, 1), "f32")
    rooms = Layout((_free.add(2 * _free.add(a, 3), 5),), (1,), "f32")
    return Recipe(results=(result,), temporaries=(Layout((a,), (1,), "f32"), rooms), views=(((TENSOR, 0), x.permute(1, 0, 2), 0),)), kernel


def take(recipe, x):
    """The recipe for another tensor, None where it is none of the family."""
    values = []
    for (_, _, dim, is_stride), least, most, multiple, same in recipe.free:
        value = (x.strides if is_stride else x.shape)[dim]
        if not least <= value <= most or value % multiple or (same >= 0 and values[same] != value):
            return None
        values.append(value)
    parts = {1: [*recipe.results], 2: [*recipe.temporaries], 7: [view[1] for view in recipe.views]}
    for (source, index, dim, is_stride), free, factor, summand in recipe.followings:
        name = "strides" if is_stride else "shape"
        numbers = list(getattr(parts[source][index], name))
        numbers[dim] = factor * values[free] + summand
        parts[source][index] = parts[source][index]._replace(**{name: tuple(numbers)})
    return parts


class Free(unittest.TestCase):
    def draw(self, drawn):
        shape = drawn.randrange(2, 40), drawn.randrange(2, 33), 8
        return Layout(shape, list_strides(shape), "bf16")

    def test_families(self):
        drawn, taken = random.Random(1), 0
        for _ in range(2000):
            asked = [name for name in ("a", "b", "step") if drawn.random() < 0.4]
            scope, first, other = _free.Scope(), self.draw(drawn), self.draw(drawn)
            made, kernel = describe(scope.open([first], [(0, 0), (0, 1)])[0], asked)
            family = scope.close(made)
            self.assertEqual(family.results[0].shape, (first.shape[1], 3 * first.shape[0], 8))
            fixed = {(TENSOR, 0, dim, step) for dim in range(2) for step in (False, True)} - {free[0] for free in family.free}
            if any((other.strides if step else other.shape)[dim] != (first.strides if step else first.shape)[dim] for _, _, dim, step in fixed):
                continue
            found = take(family, other)
            if found is None:
                continue
            taken += 1
            want, same = describe(other, asked)
            self.assertEqual(same, kernel)
            self.assertEqual(found, {1: [*want.results], 2: [*want.temporaries], 7: [want.views[0][1]]})
        self.assertGreater(taken, 100)

    def test_what_fixes(self):
        """All but multiplication, constants and offsets too. 0, 1 and what memory does not have are never free."""
        for use in (
            lambda n: n + 1, lambda n: 1 + n, lambda n: n - 1, lambda n: 9 - n, lambda n: n // 2, lambda n: 9 // n, lambda n: n % 2, lambda n: n / 2,
            lambda n: n == 5, lambda n: n < 5, lambda n: bool(n), lambda n: -n, lambda n: {n: 1}, lambda n: range(n), int, str, lambda n: n * n,
        ):  # fmt: skip
            scope = _free.Scope()
            x = Layout((5, 8), (8, 1), "bf16")
            opened = scope.open([x], [(0, 0)])[0]
            self.assertEqual(repr(use(opened.shape[0])), repr(use(5)))
            self.assertNotIn((TENSOR, 0, 0, False), [free[0] for free in scope.close(Recipe()).free])
        for part in ("steps", "views"):
            scope = _free.Scope()
            opened = scope.open([Layout((5, 8), (8, 1), "bf16")], [(0, 0)])[0]
            twice = 2 * opened.shape[0]
            parts = {"steps": ((None, ((CONSTANT, twice),)),), "views": (((TENSOR, 0), Layout((8,), (1,), "bf16"), twice),)}
            closed = scope.close(Recipe(**{part: parts[part]}))
            self.assertNotIn((TENSOR, 0, 0, False), [free[0] for free in closed.free])
            self.assertEqual([closed.views[0][2]] if closed.views else [closed.steps[0][1][0][1]], [10])
        for extent in (0, 1, _free.MOST + 1):
            opened = _free.Scope().open([Layout((extent, 8), (8, 1), "bf16")], [(0, 0)])[0]
            self.assertEqual(opened.shape, (extent, 8))


if __name__ == "__main__":
    unittest.main()
