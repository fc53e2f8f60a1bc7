# RUN: env TESSERA_LIBRARY=%build/lib %python %s
"""The C interface with null where it needs an address: an error, by its status and to the handler."""

import ctypes
import unittest
from ctypes import byref, c_char_p, c_size_t, c_void_p

from tessera._compiler import _compile
from tessera._core import _library

USAGE_ERROR = 2
LENGTH = 10


class NullArguments(unittest.TestCase):
    def assertRefuses(self, function, *arguments, text):
        """The last argument of each function receives a handle, behind a handler and its data."""
        handle, collector = c_void_p(1), _compile._Collector()
        function = getattr(_compile._compiler(), function)
        status = function(*arguments, collector.handler, None, byref(handle))
        self.assertEqual((status, handle.value), (USAGE_ERROR, None))
        (diagnostic,) = collector.diagnostics
        self.assertIn(text, diagnostic.message)

    def test_sources(self):
        for source, length, text in (
            (None, LENGTH, "the source has a length of 10 and null for its address"),
            (b"", 2**64 - 1, "the source has a length of 18446744073709551615"),
        ):
            options = _compile._Options(size=ctypes.sizeof(_compile._Options))
            given = c_char_p(source), c_size_t(length)
            self.assertRefuses("tessera_compile", *given, b"x.tile", byref(options), text=text)
            self.assertRefuses("tessera_source_read_imports", *given, b"x.tile", byref(options), text=text)
            self.assertRefuses("tessera_source_resolve", *given, b"x.tile", byref(options), text=text)
            self.assertRefuses("tessera_source_inspect", *given, b"x.tile", None, c_size_t(0), text=text)
            self.assertRefuses("tessera_program_read", *given, b"x.tile", None, None, c_size_t(0), text=text)
            self.assertRefuses("tessera_explain", *given, b"x.tile", byref(options), None, c_size_t(0), text=text)

    def test_arrays(self):
        text = "an array of the options has elements, and null for its address"
        options = _compile._Options(size=ctypes.sizeof(_compile._Options), define_count=2)
        self.assertRefuses("tessera_compile", b"", c_size_t(0), None, byref(options), text=text)
        self.assertRefuses("tessera_source_inspect", b"", c_size_t(0), None, None, c_size_t(2), text=text)
        self.assertRefuses("tessera_program_read", b"", c_size_t(0), None, None, None, c_size_t(2), text=text)
        self.assertRefuses("tessera_explain", b"", c_size_t(0), None, None, None, c_size_t(2), text=text)

    def test_no_source(self):
        """Null for no bytes is an empty source."""
        collector, handle = _compile._Collector(), c_void_p()
        status = _compile._compiler().tessera_compile(None, c_size_t(0), None, None, collector.handler, None, byref(handle))
        self.assertEqual(status, 3)
        self.assertIn("the source has no kernel", collector.diagnostics[0].message)

    def test_bundles(self):
        library, bundle = _library.runtime(), c_void_p()
        self.assertEqual(library.tessera_bundle_load_file(None, byref(bundle)), 1)
        self.assertIn(b"the path of the bundle is null", library.tessera_last_error())
        self.assertEqual(library.tessera_bundle_load_file(b"/dev/zero", byref(bundle)), 1)
        self.assertIn(b"cannot read the bundle '/dev/zero': File too large", library.tessera_last_error())


if __name__ == "__main__":
    unittest.main()
