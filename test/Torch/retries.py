# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""The inputs of bench/retries.py by the interpreter, against float64, which tiles of them fall back, and what the benchmark makes of
what it measures."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

import problems
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

import common
import retries
import retry_inputs

import tessera

FORMS = [(d, causal) for d in (64, 128) for causal in (False, True)]
# Rows that no tile divides, and several blocks of keys.
LENGTH, HEADS = 515, 2
# Without a mask: inputs of which no tile falls back, and of which each does.
NONE = "deviation 1", "falling by 200", "falling by 5000", "a step down", "a huge key at the beginning", "a sink"
ALL = "rising by 200", "rising by 5000", "a step up", "low first blocks", "all tiles"


def load(configuration):
    """The form of a kernel for the interpreter."""
    return tessera.Program(os.path.join(common.ROOT, "kernels", configuration["kernel"] + ".tile"), **configuration["parameters"])


class Stopwatch:
    """The exact kernel takes 0.9 milliseconds."""

    def compare(self, contestants):
        return {name: {"ms": 0.9 if name == "exact" else 1.0} for name in contestants}


def draw(name, d):
    tensors = retry_inputs.Tensors(1, LENGTH, HEADS, d)
    next(each for each in retry_inputs.INPUTS if each.name == name).change(tensors)
    return tensors.to(torch.bfloat16)


def find_exact(q, k, v, causal):
    """The output in float64, [B, S, H, D], where NaN is that of a row that sees one."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT * q.shape[3] ** -0.5
    if causal:
        scores = scores.masked_fill(~problems.band(LENGTH, LENGTH, right=0), -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2)


class Inputs(problems.Interpreted):
    def test_results(self):
        """Each input by one of four forms."""
        self.assertEqual((len(retry_inputs.INPUTS), len({each.name for each in retry_inputs.INPUTS})), (30, 30))
        for number, (d, causal) in enumerate(FORMS):
            kernels = retries.Kernels(load, d, causal)
            for each in retry_inputs.INPUTS[number::4]:
                with self.subTest(each.name, d=d, causal=causal):
                    tensors = draw(each.name, d)
                    out, expected = kernels.call(*tensors)[0], find_exact(*tensors, causal)
                    self.assertTrue(torch.equal(out.isnan(), expected.isnan()))
                    self.assertEqual(bool(expected.isnan().any()), "NaN" in each.name)
                    problems.assert_close(self, out.nan_to_num(0), expected.nan_to_num(0))

    def test_fallbacks(self):
        kernels = retries.Kernels(load, 64, False)
        found = {name: kernels.count(*draw(name, 64)) for name in (*NONE, *ALL, "NaN in a query")}
        self.assertEqual({name: share for name, share in found.items() if name in NONE}, dict.fromkeys(NONE, 0.0))
        self.assertEqual({name: share for name, share in found.items() if name in ALL}, dict.fromkeys(ALL, 1.0))
        # One tile of one head.
        self.assertAlmostEqual(found["NaN in a query"], 1 / (HEADS * -(-LENGTH // int(kernels.counting.parameters["BM"]))))


class Benchmark(problems.Interpreted):
    def measure(self, name):
        kernels = retries.Kernels(load, 64, False)
        point = {"d": 64, "mask": "full", "seqlen": LENGTH, "input": name}
        return kernels, point, retries.measure(kernels, draw(name, 64), point, 9e8, Stopwatch())

    def test_records(self):
        kernels, point, record = self.measure("a step up")
        row = retries.to_row(record)
        self.assertEqual((row["to exact"], row["fall back"], row["exact"]), ("0.90", "100%", 1.0))
        worst, = retries.list_worst([record, {**record, "d": 128, "timings": {"tessera": {"tflops": 2}, "exact": {"tflops": 2}}}])
        self.assertEqual((worst["worst to exact"], worst["at"], worst["below 0.95"]), ("0.90", f"d 64, full, {LENGTH}", "1 of 2"))
        # What is wrong is not timed: other numbers, and NaN in another place.
        out = torch.zeros(1, LENGTH, HEADS, 64)
        for changed in (out, out / 0):
            with mock.patch.object(kernels, "call", return_value=(changed, None)):
                record = retries.measure(kernels, draw("a step up", 64), point, 9e8, None)
            self.assertIn("wrong", retries.to_row(record)["TFLOP/s"])
            self.assertEqual([each["wrong"] for each in retries.list_worst([record])], [1])

    def test_options(self):
        with contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaises(SystemExit):
                retries.parse_arguments(["--inputs", "deviation 2"])
        quick, usual = retries.parse_arguments(["--quick", "--d", "128"]), retries.parse_arguments([])
        self.assertEqual((quick.d, quick.seqlens, usual.d), ((128,), (4096,), (64, 128, 256)))
        self.assertEqual(len(usual.inputs), 30)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "list.json")
            with mock.patch.object(sys, "argv", ["retries.py", "--quick", "--list", path]):
                retries.main()
            with open(path) as file:
                self.assertEqual(len(json.load(file)), 8)


if __name__ == "__main__":
    unittest.main()
