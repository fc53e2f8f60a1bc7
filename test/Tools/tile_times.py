# RUN: env TESSERA_LIBRARY=%build/lib %python %s %source
"""The times of tiles in the database that ships: that launches choose well by them, and how they are fitted."""

import json
import os
import random
import sys
import unittest

ROOT = sys.argv.pop()
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "python")]

import choice
import fit_choice


class Made:
    """A shape whose alternatives take what a fit can say, at a clock of its own, and beside them `launch`."""

    key = 64, "causal"

    def __init__(self, random, times, launch):
        waves = {name: random.randint(1, 40) for name in times}
        iterations = {name: random.randint(4, 300) for name in times}
        clock = random.uniform(0.9, 1.1)
        self.units = {
            name: [waves[name] * (iterations[name] + ratio) for ratio in fit_choice.RATIOS] for name in times
        }  # fmt: skip
        self.measured = {
            name: clock * (launch + waves[name] * (iterations[name] * us + ends)) for name, (us, ends) in times.items()
        }

    to_fastest = fit_choice.Shape.to_fastest


class Times(unittest.TestCase):
    def test_records(self):
        """Of the shapes that the times are from, launches take one within 3% of the fastest at 95 of 100 at least."""
        with open(os.path.join(ROOT, "kernels", "schedules.json")) as file:
            records = sorted({record for records in json.load(file)["fits"].values() for record in records})
        self.assertTrue(records)
        classes, near = choice.Classes(), []
        for record in records:
            with open(os.path.join(ROOT, record)) as file:
                entries = [entry for entry in json.load(file)["results"] if len(entry["alternatives"]) > 1]
            near += [fit_choice.Shape(entry, classes).to_fastest() <= choice.NEAR for entry in entries]
        self.assertGreaterEqual(sum(near) / len(near), 0.95)

    def test_fit(self):
        times = {"a": (0.8, 2.0), "b": (0.6, 1.2)}
        seed = random.Random(7)
        shapes = [Made(seed, times, 7.0) for _ in range(40)]
        fit = fit_choice.Fit(shapes)
        for name, (us, ends) in times.items():
            iteration, ratio = fit.times[name]
            # Clocks say nothing of one alternative beside another.
            self.assertAlmostEqual(iteration / fit.times["a"][0], us / times["a"][0], delta=0.02)
            self.assertAlmostEqual(iteration, us, delta=0.05)
            self.assertAlmostEqual(iteration * fit_choice.RATIOS[ratio], ends, delta=0.3)
        self.assertAlmostEqual(fit.launch, 7, delta=1)
        self.assertLess(max(shape.to_fastest(fit) for shape in shapes), 1.01)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
