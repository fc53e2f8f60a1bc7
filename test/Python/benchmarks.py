# RUN: %python %s
"""What the benchmarks do around the GPU: choosing schedules, comparing, tables, results; --extra of build_bundles."""

import argparse
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "test", "gpu")]

import build_bundles
import common
import variants
from common import cases


class Kernel:
    def __init__(self, schedule, error=1e-3):
        self.schedule, self.error, self.launches = schedule, error, 0

    def launch(self):
        self.launches += 1


class Source:
    """Has the kernels of some schedules."""

    def __init__(self, **kernels):
        self.kernels = kernels

    def load(self, configuration):
        schedule = configuration["schedule"]
        if schedule not in self.kernels:
            raise common.kernels.Missing("not here")
        return self.kernels[schedule]


class Stopwatch:
    """The n-th contestant takes n milliseconds."""

    def __init__(self):
        self.seen = []

    def compare(self, contestants):
        self.seen.append(list(contestants))
        return {name: {"ms": n + 1.0, "mhz": 1700, "watts": 500.0} for n, name in enumerate(contestants)}


def measure(kernels, stopwatch, peers=("fa3", "cudnn")):
    return common.measure_kernels(
        {"d": 64},
        6e9,
        kernels,
        lambda kernel: (kernel.launch, lambda: kernel.error),
        lambda: {name: None for name in peers},
        stopwatch,
    )


class Schedules(unittest.TestCase):
    def wanted(self, *arguments):
        return common.wanted_schedules(common.argument_parser("").parse_args(arguments))

    def test_wanted(self):
        self.assertEqual(self.wanted(), [""])
        self.assertEqual(self.wanted("--schedule", "overlap=1"), ["overlap=1"])
        several = "default; overlap=1,pingpong=false;stages=2;overlap=1,pingpong=false"
        self.assertEqual(self.wanted("--schedules", several), ["", "overlap=1,pingpong=false", "stages=2"])

    def test_loaded(self):
        source = Source(**{"": Kernel("a"), "stages=2": Kernel("b")})
        wanted = [cases.attention("bf16", 64, 64, False, schedule) for schedule in ("", "overlap=1", "stages=2")]
        kernels = common.load_kernels(source, wanted)
        self.assertEqual({name: kernel.schedule for name, kernel in kernels.items()}, {"default": "a", "stages=2": "b"})


class Variants(unittest.TestCase):
    def test_pairs(self):
        def pairs(**fields):
            window = {name: fields.pop(name) for name in ("left", "right") if name in fields}
            return variants.visible_pairs(5, {"parameters": fields, **window})

        self.assertEqual(pairs(MASK="none"), 25)
        self.assertEqual(pairs(CAUSAL="false"), 25)
        self.assertEqual(pairs(CAUSAL="true"), 15)
        self.assertEqual(pairs(MASK="causal"), 15)
        # Rows of a band: 2, 3, 3, 3, 2 keys, and one to the left only: 1, 2, 3, 3, 3.
        self.assertEqual(pairs(MASK="window", left=1, right=1), 13)
        self.assertEqual(pairs(MASK="window", left=2, right=0), 12)

    def test_file(self):
        for d in (64, 128):
            found = {variant["variant"]: variant for variant in variants.read_variants(d)}
            self.assertIn("plain", found)
            for variant in found.values():
                self.assertIn(variant.get("base", "plain"), found)
                self.assertEqual(variant["parameters"].get("MASK") == "window", "left" in variant)


class Comparison(unittest.TestCase):
    def test_side_by_side(self):
        stopwatch, kernels = Stopwatch(), {"default": Kernel("long"), "stages=2": Kernel("longer")}
        first, second = measure(kernels, stopwatch)
        self.assertEqual(stopwatch.seen, [[("tessera", "default"), ("tessera", "stages=2"), "fa3", "cudnn"]])
        self.assertEqual((first["variant"], first["schedule"], second["schedule"]), ("default", "long", "longer"))
        self.assertEqual(first["timings"]["tessera"]["tflops"], 6.0)
        self.assertEqual(second["timings"]["tessera"]["tflops"], 3.0)
        self.assertEqual(first["timings"]["fa3"], second["timings"]["fa3"])
        row = common.to_row(second, ("d",), ("fa3", "cudnn"))
        self.assertEqual((row["d"], row["schedule"], row["to best"]), (64, "stages=2", "1.50"))
        self.assertNotIn("longer", row.values())

    def test_wrong_kernels_are_not_timed(self):
        stopwatch = Stopwatch()
        right, wrong = measure({"default": Kernel("", 0.0), "stages=2": Kernel("", float("nan"))}, stopwatch)
        self.assertEqual(stopwatch.seen, [[("tessera", "default"), "fa3", "cudnn"]])
        self.assertIn("timings", right)
        self.assertNotIn("timings", wrong)
        self.assertEqual(common.to_row(wrong, ("d",), ("fa3",))["tessera"], "wrong (nan)")
        self.assertEqual(len(measure({"default": Kernel("", 1.0)}, stopwatch)), 1)
        self.assertEqual(len(stopwatch.seen), 1)

    def test_results(self):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "new")
            options = common.argument_parser("").parse_args(["--out", out, "--date", "2000-01-01", "--commit", "abc"])
            records = measure({"default": Kernel("all of it")}, Stopwatch())
            rows = [common.to_row(record, ("d",), ("fa3",)) for record in records]
            common.write_results(options, "attention", {"gpu": "A 100"}, "How.", rows, records)
            with open(os.path.join(out, "2000-01-01-a-100-abc-attention.json")) as file:
                data = json.load(file)
            with open(os.path.join(out, "2000-01-01-a-100-abc-attention.md")) as file:
                table = file.read()
        self.assertEqual((data["commit"], data["results"][0]["schedule"]), ("abc", "all of it"))
        self.assertIn("| 64 | default | 6 | 3 |", table)


class Extra(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "extra.json")
            with open(path, "w") as file:
                file.write(text)
            return list(build_bundles.read_extra(path))

    def test_ablation(self):
        options = argparse.Namespace(groups="", only="", extra=os.path.join(ROOT, "bench", "ablation.json"))
        found = build_bundles.wanted_configurations(options)
        self.assertEqual(found[0]["name"], cases.attention("bf16", 128, 128, False)["name"])
        self.assertFalse(found[0]["may_be_refused"])
        self.assertTrue(all(entry["may_be_refused"] for entry in found[1:]))
        options.groups = "attention"
        names = [entry["name"] for entry in build_bundles.wanted_configurations(options)]
        self.assertEqual(len(names), len(set(names)))

    def test_values(self):
        (entry,) = self.read('[{"kernel": "gemm", "parameters": {"BIAS": true}}]')
        self.assertEqual((entry["parameters"], entry["schedule"]), ({"BIAS": "true"}, ""))

    def test_refusals(self):
        for text, reason in (
            ("{}", "expected an array"),
            ("[", "Expecting value"),
            ('[{"kernel": "gemm"}]', "entry 0 is no"),
            ('[{"kernel": "none", "parameters": {}}]', "there is no kernels/none.tile"),
        ):
            with self.assertRaisesRegex(SystemExit, reason):
                self.read(text)


if __name__ == "__main__":
    unittest.main()
