# RUN: %python %s
"""Frameworks that are too old are refused when the module that needs them is imported."""

import importlib
import sys
import types
import unittest
import unittest.mock


class Old(unittest.TestCase):
    def refuse(self, name, version, module, text):
        old = types.ModuleType(name)
        old.__version__ = version
        with unittest.mock.patch.dict(sys.modules, {name: old}):
            sys.modules.pop(module, None)
            with self.assertRaises(ImportError) as caught:
                importlib.import_module(module)
        self.assertEqual(str(caught.exception), text)

    def test_versions(self):
        self.refuse("torch", "2.5.1+cu124", "tessera.torch", "tessera.torch needs torch 2.6 or newer; this is 2.5.1+cu124")
        self.refuse("torch", "1.13.1", "tessera.transformers", "tessera.torch needs torch 2.6 or newer; this is 1.13.1")
        self.refuse("jax", "0.6.2", "tessera.jax", "tessera.jax needs jax 0.7 or newer; this is 0.6.2")


if __name__ == "__main__":
    unittest.main()
