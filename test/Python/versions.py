# RUN: %python %s
"""Frameworks that are too old are refused when the module that needs them is imported."""

import importlib
import sys
import types
import unittest
import unittest.mock


class Old(unittest.TestCase):
    def refuse(self, name, version, module, text, **more):
        old = types.ModuleType(name)
        vars(old).update(__version__=version, **more)
        with unittest.mock.patch.dict(sys.modules, {name: old}):
            sys.modules.pop(module, None)
            with self.assertRaises(ImportError) as caught:
                importlib.import_module(module)
        self.assertEqual(str(caught.exception), text)

    def test_versions(self):
        self.refuse("torch", "2.5.1+cu124", "tessera.torch", "tessera.torch needs torch 2.6 or newer; this is 2.5.1+cu124")
        self.refuse("torch", "1.13.1", "tessera.transformers", "tessera.torch needs torch 2.6 or newer; this is 1.13.1")
        text = "tessera.jax needs jax 0.7.2 or newer; this is 0.7.1"
        self.refuse("jax", "0.7.1", "tessera.jax", text, __version_info__=(0, 7, 1))


if __name__ == "__main__":
    unittest.main()
