# RUN: %python %s
"""What bench/host.py makes of the times of batches."""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import host
import plot


class Host(unittest.TestCase):
    def through_c(self, script):
        """What a program prints is what it measured."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "program")
            with open(program, "w") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(program, 0o755)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                options = argparse.Namespace(program=program, batches=5, launches=9, processes=2)
                found = host.through_c(options, "a", "64")
        return found, output.getvalue()

    def test_program(self):
        # Each process takes its share of the batches, rounded up.
        measured = [(1.5, 30.0), (2.0, 31.5), (4.0, 30.0)] * 2
        program = '[ "$*" = "a 64 3 9" ] && echo 1.5 30 && echo 2 31.5 && echo 4 30'
        self.assertEqual(self.through_c(program), (measured, ""))
        self.assertEqual(self.through_c("echo no device >&2; exit 1"), (None, "C: no device\n"))
        missing = argparse.Namespace(program=os.path.join(ROOT, "missing"), batches=3, launches=9, processes=1)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertIsNone(host.through_c(missing, "a", "64"))
        self.assertIn("No such file", output.getvalue())

    def test_record(self):
        batches = [(float(n), 30.0) for n in range(1, 100)]
        record = host.to_record("C", "attention_fwd, d = 64", batches, 30.0)
        self.assertEqual((record["microseconds"], record["min"], record["90%"], record["quiet"]), (50.0, 1.0, 89.2, "100%"))
        self.assertEqual(record["kernel"], "attention_fwd, d = 64")
        found = plot.panels({"results": [record]}, "host")
        self.assertEqual(found["Host time of a launch"]["values"], {"C": [50.0]})

    def test_quiet(self):
        """Batches count whose loop was nearly as fast as the fastest one of its language; all where none was."""
        driver, python = [(2.0, 20.0), (2.2, 24.0), (4.0, 40.0)], [(7.0, 100.0), (7.4, 110.0), (15.0, 190.0)]
        slow = [(30.0, 200.0), (28.0, 180.0)]
        found = [(host.DRIVER, "empty", driver), ("Python", "k", python), ("tessera.torch", "k", slow)]
        alone, call, noisy = host.to_records(found)
        self.assertEqual((alone["microseconds"], alone["quiet"], alone["of all"]), (2.1, "67%", 2.2))
        self.assertEqual((call["microseconds"], call["quiet"], call["above the driver"]), (7.2, "67%", 5.1))
        self.assertEqual((noisy["microseconds"], noisy["quiet"]), (29.0, "0%"))

    def test_flash_attention(self):
        """The first package that has the function is measured, and named."""

        def function(*tensors):
            return tensors

        def find(**packages):
            absent = dict.fromkeys(("flash_attn", *host.FLASH_ATTENTION))
            found = {name.replace("__", "."): types.SimpleNamespace(**has) for name, has in packages.items()}
            with mock.patch.dict(sys.modules, {**absent, **found}):
                return host.find_flash_attention()

        here = {"flash_attn_func": function}
        self.assertEqual(find(), {})
        self.assertEqual(find(flash_attn={}), {})
        self.assertEqual(find(flash_attn=here), {"FlashAttention (flash_attn)": function})
        self.assertEqual(find(flash_attn={}, flash_attn__cute=here), {"FlashAttention (flash_attn.cute)": function})
        every = {"flash_attn_interface": here, "flash_attn": here, "flash_attn__cute": here}
        self.assertEqual(find(**every), {"FlashAttention (flash_attn_interface)": function})

    def test_refusal(self):
        """A peer that refuses the tensors is left out by a line, which the first process alone tells."""

        def refuse(*tensors):
            raise AssertionError("no head dimension of 512\nbut 256")

        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(host.keep_working({"A": refuse, "B": max}, 1, 2), {"B": max})
        self.assertEqual(output.getvalue(), "A is left out: AssertionError: no head dimension of 512\n")
        process = argparse.Namespace(returncode=0, stdout='A is left out: why\n{"B": [[2.0, 30.0]]}\n')
        options, output = argparse.Namespace(batches=2, launches=9, processes=2), io.StringIO()
        with mock.patch("subprocess.run", return_value=process), contextlib.redirect_stdout(output):
            self.assertEqual(host.through_torch_processes(64, options), {"B": [[2.0, 30.0]] * 2})
        self.assertEqual(output.getvalue(), "A is left out: why\n")


if __name__ == "__main__":
    unittest.main()
