# RUN: %python %s tessera tessera.masks
"""What users of modules call says what it takes and gives: each parameter and result has an annotation, which resolves."""

import functools
import importlib
import inspect
import sys
import typing
import unittest

MODULES = sys.argv[1:]
del sys.argv[1:]


def is_own(thing):
    return thing.__module__.partition(".")[0] == "tessera"


def list_methods(kind):
    """(name, function) of the methods and properties of a class, without those of one underscore."""
    for base in filter(is_own, kind.__mro__):
        for name, member in vars(base).items():
            if name.startswith("_") and not name.endswith("__"):
                continue
            if isinstance(member, (classmethod, staticmethod)):
                member = member.__func__
            elif isinstance(member, property):
                member = member.fget
            elif isinstance(member, functools.cached_property):
                member = member.func
            # Named tuples have some that Python writes.
            if inspect.isfunction(member) and is_own(member):
                yield f"{base.__name__}.{name}", member


def find_classes(hint):
    """The classes of the package that a type names."""
    if isinstance(hint, type) and is_own(hint):
        yield hint
    for part in hint if isinstance(hint, list) else typing.get_args(hint):
        yield from find_classes(part)


# Before, Python does not join types by |.
@unittest.skipIf(sys.version_info < (3, 10), "annotations resolve with Python 3.10 or newer")
class Annotations(unittest.TestCase):
    def check(self, name, function, is_method):
        """The classes that the annotations of a function name."""
        function = inspect.unwrap(function)
        expected = {*[*inspect.signature(function).parameters][is_method:], "return"}
        with self.subTest(name):
            self.assertEqual(expected - function.__annotations__.keys(), set(), f"{name} has no annotations of these")
            return [kind for hint in typing.get_type_hints(function).values() for kind in find_classes(hint)]
        return []

    def test_modules(self):
        self.assertTrue(MODULES)
        if "tessera.torch" in MODULES:  # Annotations name its classes, and the package does not load it.
            importlib.import_module("torch.nn.attention.flex_attention")
        found, seen = [], set()
        for module in map(importlib.import_module, MODULES):
            for name in module.__all__:
                member = getattr(module, name)
                if isinstance(member, type):
                    found.append(member)
                elif is_own(type(member)):
                    found.append(type(member))
                elif not inspect.ismodule(member):
                    found += self.check(f"{module.__name__}.{name}", member, False)
        while found:
            kind = found.pop()
            if kind in seen:
                continue
            seen.add(kind)
            with self.subTest(kind.__name__):
                self.assertLessEqual(set(getattr(kind, "_fields", ())), typing.get_type_hints(kind).keys())
            for name, method in list_methods(kind):
                found += self.check(name, method, True)


if __name__ == "__main__":
    unittest.main()
