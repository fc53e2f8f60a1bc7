# RUN: %python %s
"""What bench/calls.py makes of what it measures: points, goals of the host's time, cliffs, tables."""

import contextlib
import io
import json
import os
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import call_host
import call_problems
import calls
import common
import summary

from tessera._attention import _variants


def make_record(part="forward", **rates):
    shape = next(call_problems.list_shapes(["models"]))
    timings = {name: {"ms": 1.0, "tflops": rate} for name, rate in rates.items()}
    return {"part": part, **vars(shape), "timings": timings}


class Problems(unittest.TestCase):
    def test_shapes(self):
        paper, models = (list(call_problems.list_shapes([name])) for name in ("paper", "models"))
        self.assertEqual(len(paper), 36)
        self.assertGreaterEqual(len(models), 40)
        self.assertEqual(len(set(models)), len(models))
        quick = list(call_problems.list_shapes(["paper", "models"], quick=True))
        self.assertLess(len(quick), 16)
        # Each that is named is there.
        self.assertEqual({shape.name for shape in quick if shape.group == "models"}, set(call_problems.QUICK["models"]))
        self.assertEqual(sum(shape.group == "paper" for shape in quick), len(call_problems.QUICK["paper"]))

    def test_pairs(self):
        """Counts of what masks leave, beside the masks themselves."""
        n = 2048
        shape = call_problems.Shape("", "", "causal", 64, 64, 1, n, n, 1, 1)
        for function in call_problems.FUNCTIONS[:4]:
            _, mask, *_ = function.make(None, shape)
            with self.subTest(function.name):
                seen = sum(bool(mask(0, 0, q, k)) for q in range(n) for k in range(n)) if mask else n * n
                self.assertEqual(function.pairs(n), seen)


class Settle(unittest.TestCase):
    def test_waits(self):
        """Until no call begins anything beside it, whether that works or not."""
        ended = []

        def compile(number):
            time.sleep(0.05)
            ended.append(number)
            raise ValueError("no room")

        def call():
            known = len(ended)
            if known < 2:
                _variants.begin_aside(compile, known)
            return known

        self.assertEqual(common.settle(call), 2)
        self.assertEqual(ended, [0, 1])


class Host(unittest.TestCase):
    def make_records(self, **times):
        """Of (forward, backward) microseconds by names."""
        found = {}
        for name, (forward, backward) in times.items():
            name = name.replace("_", " ")
            found[name, "forward"], found[name, "backward"] = [(forward, 30.0)] * 4, [(backward, 30.0)] * 4
        found["SDPA (cuDNN)", "forward"], found["SDPA (cuDNN)", "backward"] = [(20.0, 30.0)] * 4, [(100.0, 30.0)] * 4
        return call_host.to_records(found)

    def test_goals(self):
        records = self.make_records(attention=(10.0, 36.0), window=(19.0, 40.0), bias=(21.0, 50.0))
        rows = {row["call"]: row for row in call_host.to_rows(records)}
        self.assertEqual(rows["attention"]["backward to goal"], "0.36 of SDPA (cuDNN), at most 0.35")
        self.assertEqual(rows["window"]["forward to goal"], "1.90 of attention, at most 2")
        self.assertIsNone(rows["SDPA (cuDNN)"]["forward to goal"])
        missed = [cliff["point"] for cliff in call_host.list_cliffs(records)]
        self.assertEqual(missed, ["bias, forward", "attention, backward", "bias, backward"])

    def test_goals_are_of_calls(self):
        """Each name of a goal is that of a call, so that none is left out by a misspelling."""
        with open(call_host.__file__) as file:
            text = file.read()
        listed = text[text.index("def list_own") :]
        names = {*call_host.FORWARD_GOALS, *call_host.GRADIENT_GOALS}
        names |= {other for goals in (call_host.FORWARD_GOALS, call_host.GRADIENT_GOALS) for other, _ in goals.values()}
        for name in names - {call_host.PLAIN, call_host.SDPA}:
            self.assertIn(f'"{name.removesuffix(", reduce-overhead")}"', listed)

    def test_processes(self):
        printed = {"eager": 'x, forward: left out: why\n[["attention", "forward", [[9.0, 30.0]]]]\n',
                   "compiled": '[["compiled", "forward", [[90.0, 31.0]]]]\n'}  # fmt: skip

        def run(command, **_):
            return types.SimpleNamespace(returncode=0, stdout=printed[command[command.index("--inside") + 1]])

        options, output = calls.parse_arguments(["--processes", "2"]), io.StringIO()
        with mock.patch("subprocess.run", run), contextlib.redirect_stdout(output):
            *former, records = call_host.measure(options)
        self.assertEqual(output.getvalue(), "x, forward: left out: why\n")
        # After each process, so that one that is stopped leaves what it has.
        self.assertEqual([len(records) for records in former], [1, 1, 2])
        self.assertEqual([record["call"] for record in records], ["attention", "compiled"])
        self.assertEqual(records[0]["timings"]["forward"]["microseconds"], 9.0)


class Cliffs(unittest.TestCase):
    def find(self, record):
        return [(cliff["ours"], cliff["goal"]) for cliff in calls.find_cliffs(record)]

    def test_peers(self):
        self.assertEqual(self.find(make_record(tessera=97.5, fa3=90.0, cudnn=100.0)), [])
        self.assertEqual(self.find(make_record(tessera=96.0, fa3=90.0, cudnn=100.0)), [("0.96 of the best peer", "at least 0.97")])
        self.assertEqual(self.find(make_record(tessera=96.0)), [])
        self.assertEqual(self.find({**make_record(), "failed": True}), [("failed", "runs")])
        # What is no peer, but our own kernel of 16 bits.
        self.assertEqual(self.find(make_record("fp8", tessera=60.0, bf16=100.0)), [])

    def test_functions(self):
        record = {**make_record("functions", tessera=100.0, flash=50.0), "least": 0.9}
        self.assertEqual(self.find({**record, "to plain": 0.82}), [])
        self.assertEqual(self.find({**record, "to plain": 0.8}), [("0.80 of the plain kernel", "at least 0.9 of 0.9")])

    def test_causes(self):
        record = make_record(tessera=90.0, cudnn=100.0)
        causes = [next(calls.find_cliffs({**record, "host us": us}))["cause"] for us in (1200.0, 30.0)]
        self.assertEqual(causes, ["the host, 1200 us for a call of 1000", "the device, 1000 us, the host 30"])
        self.assertIsNone(next(calls.find_cliffs(record))["cause"])

    def test_report(self):
        """All tables are written after each point."""
        with tempfile.TemporaryDirectory() as directory:
            options = calls.parse_arguments(["--out", directory])
            with mock.patch("common.describe_gpu", return_value={"gpu": "A GPU"}), contextlib.redirect_stdout(io.StringIO()):
                report = calls.Report(options)
                report.add(make_record(tessera=90.0, cudnn=100.0))
                report.add_host(call_host.to_records({("attention", "forward"): [(9.0, 30.0)]}))
                report.add(make_record(tessera=110.0, cudnn=100.0))
            with open(report.results.path + ".json") as file:
                self.assertEqual([record["part"] for record in json.load(file)["results"]], ["host", "forward", "forward"])
            with open(report.results.path + ".md") as file:
                text = file.read()
            self.assertIn("| attention | 9 |", text)
            self.assertIn("0.90 of the best peer", text)


class Summary(unittest.TestCase):
    def test_table(self):
        """Forward calls of the paper's grid, beside the fastest peer."""
        shape = next(call_problems.list_shapes(["paper"]))
        timings = {name: {"ms": 1.0, "tflops": rate} for name, rate in {"tessera": 330.0, "fa4": 300.0, "cudnn": 200.0}.items()}
        record = {"part": "forward", **vars(shape), "timings": timings}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"gpu": "A GPU", "results": [record, {**record, "part": "gradients"}, make_record(tessera=1.0, cudnn=2.0)]}, file)
            file.flush()
            lines = summary.table(file.name).splitlines()
        self.assertEqual(lines[:3], ["| forward, bf16 | 512 |", "|---|---|", "| d = 64, full | 330 (1.10) |"])
        self.assertIn("FlashAttention-4 and cuDNN", lines[-1])


if __name__ == "__main__":
    unittest.main()
