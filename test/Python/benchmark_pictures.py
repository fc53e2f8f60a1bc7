# RUN: %python %s
"""The plots of results of benchmarks, and the table of README.md."""

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import plot
import summary


class Pictures(unittest.TestCase):
    POINT = {"group": "paper", "d": 64, "dv": 64, "mask": "full", "seqlen": 512, "variant": "default", "schedule": ""}
    CALL = {"part": "forward", "group": "paper", "d": 64, "mask": "full", "keys": 512}

    def record(self, **changes):
        timings = {"tessera": {"tflops": 200.0}, "fa3": {"tflops": 100.0}, "fa2": {"tflops": 400.0}}
        return {**self.POINT, "timings": timings, **changes}

    def call(self, **changes):
        timings = {"tessera": {"tflops": 200.0}, "fa3": {"tflops": 100.0}, "flash": {"tflops": 400.0}}
        return {**self.CALL, "timings": timings, **changes}

    def write(self, directory, records):
        path = os.path.join(directory, "2000-01-01-a-100-abc-attention.json")
        with open(path, "w") as file:
            json.dump({"gpu": "A 100", "date": "2000-01-01", "commit": "abc", "results": records}, file)
        return path

    def test_summary(self):
        """The table of README.md has forward calls on the paper's grid only."""
        others = [self.call(group="models"), self.call(part="gradients"), self.call(d=96, timings=None)]
        alone = self.call(keys=1024, timings={"tessera": {"tflops": 1.0}})
        with tempfile.TemporaryDirectory() as directory:
            lines = summary.table(self.write(directory, [*others, self.call(), alone])).splitlines()
        self.assertEqual(lines[0], "| forward, bf16 | 512 | 1024 |")
        self.assertEqual(lines[2:4], ["| d = 64, full | 200 (2.00) |  |", ""])

    def test_thin(self):
        """What is left of a result gives the same table."""
        others = [self.call(group="models"), self.call(d=96, timings=None)]
        with tempfile.TemporaryDirectory() as directory:
            path = self.write(directory, [*others, self.call(batch=3)])
            before = summary.table(path)
            summary.thin(path)
            self.assertEqual(summary.table(path), before)
            with open(path) as file:
                (left,) = json.load(file)["results"]
        self.assertEqual(left, self.call(timings={"tessera": {"tflops": 200.0}, "fa3": {"tflops": 100.0}}))

    def test_readme(self):
        """README.md has the table of the result that it names."""
        with open(summary.README) as file:
            shown = file.read().split(summary.BEGIN)[1].split(summary.END)[0].strip()
        result = shown.rsplit("(", 1)[1].split(")")[0].replace(".md", ".json")
        self.assertEqual(summary.table(os.path.join(ROOT, result)), shown)

    def test_summary_of_nothing(self):
        """README.md stays as it is where there is no result, and where its help is asked for."""
        with tempfile.TemporaryDirectory() as directory:
            readme = os.path.join(directory, "README.md")
            with open(readme, "w") as file:
                file.write(f"before {summary.BEGIN}\nold\n{summary.END} after")
            for argument, error in (("--help", SystemExit), (os.path.join(directory, "none.json"), OSError)):
                with unittest.mock.patch.object(summary, "README", readme), unittest.mock.patch.object(sys, "argv", ["", argument]):
                    with contextlib.redirect_stdout(io.StringIO()), self.assertRaises(error):
                        summary.main()
                with open(readme) as file:
                    self.assertIn("old", file.read())
            with unittest.mock.patch.object(summary, "README", readme):
                with unittest.mock.patch.object(sys, "argv", ["", self.write(directory, [self.call()])]):
                    summary.main()
            with open(readme) as file:
                self.assertRegex(file.read(), r"(?s)\Abefore .*\| 200 \(2.00\) \|.* after\Z")

    def test_panels(self):
        gqa = self.record(group="gqa", d=192, dv=128)
        records = [self.record(), self.record(variant="stages=2", seqlen=1024, timings={}), gqa]
        found = plot.panels({"results": records}, "attention")
        self.assertEqual(list(found), ["d = 64, full", "d = 192/128, full, gqa"])
        panel = found["d = 64, full"]
        self.assertEqual(panel["labels"], ["512", "1024"])
        self.assertEqual(panel["values"]["tessera"], [200.0, None])
        self.assertEqual(panel["values"]["fa3"], [100.0, None])
        self.assertEqual(panel["values"]["tessera, stages=2"], [None, None])

    def test_lines_in_the_order_of_their_numbers(self):
        records = [self.record(d=128, seqlen=2048), self.record(seqlen=16384), self.record(seqlen=512)]
        found = plot.panels({"results": records}, "backward")
        self.assertEqual([(title, panel["labels"]) for title, panel in found.items()],
                         [("d = 64, full", ["512", "16384"]), ("d = 128/64, full", ["2048"])])  # fmt: skip

    def test_bars_of_gradients(self):
        records = [self.record(), self.record(variant="fixed", timings={})]
        (panel,) = plot.panels({"results": records}, "ablation-backward").values()
        self.assertEqual(panel["labels"], ["default", "fa3", "fa2", "fixed"])
        self.assertEqual(panel["values"]["tessera"], [200.0, None, None, None])
        self.assertEqual(panel["values"]["fa3"], [None, 100.0, None, None])

    def test_plot_of_recorded_results(self):
        """Every kind of result that is recorded can be drawn."""
        directory = os.path.join(ROOT, "bench", "results")
        for name in os.listdir(directory):
            if name.endswith(".json"):
                path = os.path.join(directory, name)
                with open(path) as file:
                    result = json.load(file)
                if plot.kind_of(result, path) in plot.KINDS:
                    self.assertTrue(plot.panels(result, plot.kind_of(result, path)), name)

    def test_draw(self):
        with tempfile.TemporaryDirectory() as directory:
            line = plot.draw(self.write(directory, [self.record(), self.record(seqlen=1024)]))
            drawn = any(name.endswith(".svg") for name in os.listdir(directory))
        if importlib.util.find_spec("matplotlib"):
            self.assertRegex(line, r"^wrote .*-attention\.svg$")
        else:
            self.assertIn("matplotlib cannot be imported", line)
        self.assertEqual(drawn, bool(importlib.util.find_spec("matplotlib")))


if __name__ == "__main__":
    unittest.main()
