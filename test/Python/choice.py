# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda:%build/test/fake-exchange TESSERA_LIBRARY=%build/lib %python %s
"""Choices among kernels through the package, the real library and a fake driver."""

import copy
import json
import math
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda
import fake_torch

import tessera

TIMES = {128: 1.0, 64: 0.6}


def bundle():
    """The test bundle with tiles of 128 and of 64 rows, and the choice among them."""
    data = json.loads(fake_cuda.bundle())
    first = data["kernels"][0]
    data["version"], data["kernels"], alternatives = 3, [], []
    for rows, time in TIMES.items():
        kernel = copy.deepcopy(first)
        kernel["name"] = kernel["symbol"] = f"scale_BM{rows}"
        kernel["grid"][0]["divisor"] = rows
        kernel["requirements"] = [{"dim": "S", "at_most": 4096}] if rows == 64 else []
        data["kernels"].append(kernel)
        model = {
            "grid": kernel["grid"], "iterations": ["ceildiv", "S", 64], "iteration_us": time, "ends_us": 3 * time,
            "tiles_at_a_time": 132, "order": "linear", "section": 1,
        }  # fmt: skip
        parameters = {**data["parameters"], "BM": rows}
        alternatives.append({"kernel": kernel["name"], "parameters": parameters, "model": model})
    choice = {"name": "scale", "dims": first["dims"], "arguments": first["arguments"], "alternatives": alternatives}
    data["choices"] = [choice]
    return json.dumps(data).encode()


def expect(batch, rows):
    """The time of each, by definition."""
    return {
        f"scale_BM{height}": math.ceil(batch * math.ceil(rows / height) / 132) * (math.ceil(rows / 64) + 3) * time
        for height, time in TIMES.items()
    }


class Choices(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_torch.install(None)
        self.bundle = tessera.Bundle(bundle())
        self.kernel = self.bundle.kernel()

    def call(self, batch, rows, **options):
        """The blocks that are launched in x."""
        tensors = (fake_torch.Tensor((batch, rows, 64), offset=offset) for offset in (0, 1 << 30))
        self.kernel(*tensors, 0.5, 7, **options)
        return fake_cuda.last_launch()[0][0]

    def test_follows_the_model(self):
        self.assertEqual(self.kernel.name, "scale")
        self.assertEqual(self.kernel.alternatives, ("scale_BM128", "scale_BM64"))
        taken = set()
        for batch in (1, 3, 7, 16, 33):
            for rows in (64, 100, 500, 1024, 2100, 4096):
                times = expect(batch, rows)
                choice = self.kernel.choice(B=batch, S=rows)
                for name, time in times.items():
                    self.assertAlmostEqual(choice.microseconds[name], time)
                self.assertEqual(choice.name, min(times, key=times.get))
                self.assertEqual(self.kernel.alternatives[choice.index], choice.name)
                height = int(choice.name.removeprefix("scale_BM"))
                self.assertEqual(self.call(batch, rows), math.ceil(rows / height))
                self.assertEqual(self.kernel.grid(B=batch, S=rows), (math.ceil(rows / height), batch, 1))
                taken.add(choice.name)
        self.assertEqual(len(taken), 2)

    def test_leaves_out_what_does_not_take_the_extents(self):
        choice = self.kernel.choice(B=1, S=5000)
        self.assertEqual((choice.name, choice.microseconds["scale_BM64"]), ("scale_BM128", math.inf))

    def test_forced(self):
        for which, height in (("scale_BM128", 128), ("scale_BM64", 64), (0, 128), (1, 64)):
            self.assertEqual(self.call(3, 500, alternative=which), math.ceil(500 / height))
        self.assertEqual(self.kernel.alternative(1).parameters, {"D": 64, "CAUSAL": True, "BM": 64})
        self.assertEqual(self.kernel.parameters, {"D": 64, "CAUSAL": True})
        self.assertIs(self.kernel.alternative("scale_BM64"), self.bundle.kernel("scale_BM64"))
        for which in ("scale", 2, -1):
            with self.assertRaisesRegex(ValueError, "its alternatives are scale_BM128, scale_BM64"):
                self.call(3, 500, alternative=which)
        with self.assertRaisesRegex(ValueError, "scale_BM64 has no alternative 0; it is one kernel without"):
            self.kernel.alternative(1).alternative(0)

    def test_refuses(self):
        with self.assertRaisesRegex(TypeError, "takes the extents B, S; 'S' is missing or unknown"):
            self.kernel.choice(B=1)
        with self.assertRaisesRegex(TypeError, "takes the extents B, S; 'T' is missing or unknown"):
            self.kernel.choice(B=1, S=1, T=1)
        with self.assertRaisesRegex(ValueError, "the extent 'S' is -1"):
            self.kernel.choice(B=1, S=-1)
        with self.assertRaisesRegex(ValueError, "'scale_BM64' is no choice among kernels"):
            self.kernel.alternative(1).choice(B=1, S=1)
        with self.assertRaisesRegex(ValueError, "kernel 'scale_BM64': argument 'y'"):
            self.kernel(fake_torch.Tensor((1, 64, 64)), fake_torch.Tensor((1, 60, 64), offset=1 << 30), 0.5, 7)

    def test_workspaces(self):
        x, y = (fake_torch.Tensor((2, 300, 64), offset=offset) for offset in (0, 1 << 30))
        self.assertEqual(self.kernel.workspace_bytes(x, y, 0.5, 7), 0)


def divided_bundle():
    """The same with the smaller tiles in a sequence, behind the larger ones."""
    data = json.loads(bundle())
    (choice,) = data["choices"]
    names = [entry["name"] for entry in choice["arguments"]]
    between = {"name": "between", "element": choice["arguments"][0]["element"], "dims": choice["arguments"][0]["dims"]}
    steps = [[names[0], "between", *names[2:]], ["between", *names[1:]]]
    launches = [{"kernel": kernel["name"], "arguments": given} for kernel, given in zip(data["kernels"], steps)]
    data["sequences"] = [
        {"name": "scale_twice", "dims": choice["dims"], "arguments": choice["arguments"], "derived_dims": [], "workspaces": [between],
         "launches": launches}
    ]  # fmt: skip
    models = [entry["model"] for entry in choice["alternatives"]]
    choice["alternatives"][1] = {"sequence": "scale_twice", "launch_us": 2, "models": models, "parameters": {"BM": 0}}
    data["version"] = 5
    return json.dumps(data).encode()


class Sequences(Choices):
    """A choice between a kernel and a sequence."""

    def setUp(self):
        super().setUp()
        self.bundle = tessera.Bundle(divided_bundle())
        self.kernel = self.bundle.kernel()

    def test_follows_the_model(self):
        self.assertEqual((self.kernel.name, self.kernel.alternatives), ("scale", ("scale_BM128", "scale_twice")))
        times = expect(3, 500)
        choice = self.kernel.choice(B=3, S=500)
        self.assertEqual(choice.name, "scale_BM128")
        self.assertAlmostEqual(choice.microseconds["scale_twice"], sum(times.values()) + 2)

    def test_leaves_out_what_does_not_take_the_extents(self):
        self.assertEqual(self.kernel.choice(B=1, S=5000).microseconds["scale_twice"], math.inf)

    def test_forced(self):
        self.assertEqual([self.call(3, 500, alternative=which) for which in (0, 1, "scale_twice")], [4, 8, 8])
        self.assertIs(self.kernel.alternative(1), self.bundle.kernel("scale_twice"))
        self.assertEqual(self.kernel.alternative(1).parameters, {"BM": 0})
        self.assertEqual(self.kernel.grid(B=3, S=500), (4, 3, 1))
        with self.assertRaisesRegex(ValueError, "scale_twice launches several kernels, each with a grid of its own"):
            self.kernel.alternative(1).grid(B=3, S=500)

    def test_refuses(self):
        with self.assertRaisesRegex(ValueError, "'scale_twice' is no choice among kernels"):
            self.kernel.alternative(1).choice(B=1, S=1)

    def test_workspaces(self):
        x, y = (fake_torch.Tensor((2, 300, 64), offset=offset) for offset in (0, 1 << 30))
        self.assertEqual(self.kernel.workspace_bytes(x, y, 0.5, 7), 0)
        self.assertEqual(self.kernel.alternative(1).workspace_bytes(x, y, 0.5, 7), 2 * 300 * 64 * 2)


if __name__ == "__main__":
    unittest.main()
