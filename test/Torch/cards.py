# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Rows of rules for a card count where tensors lie on it, and nowhere else."""

import json
import os
import tempfile
import types
import unittest
import unittest.mock

import torch

from tessera._attention import _recipes
from tessera._compiler import _choices, _compile
from tessera._core import _layouts, _library
from tessera._functions._names import Names
from tessera._compiler._program import Program
from tessera.torch import _kernels

CARD = "Card of tomorrow"
OF_SCORES = '$import "attention.tile"\n$import "variants/causal.tile"\n'
ROWS = [
    {"source": "attention_fwd.tile", "card": CARD, "when": ["D == 64"], "take": {"BM": 128}},
    {"source": "attention_fwd.tile", "card": CARD, "kernel": "attention_fwd", "when": ["D == 64"], "take": {"schedule": "stages = 3"}},
    {"source": "attention_bwd.tile", "card": CARD, "extents": ["SQ > 64"], "take": {"form": "attention_bwd_deterministic.tile"}},
    {"source": "attention_visits.tile", "card": CARD, "when": ["!BYTES"], "take": {"BN": 32}},
    {"source": "attention_fp8.tile", "card": CARD, "take": {"BLOCK": 64, "BN": 64}},
    {"source": "step.tile", "card": CARD, "take": {"DV": 96}},
    {"source": "serving.tile", "card": CARD, "take": {"LEAST_SHARE": 512}},
]


class Kernel:
    """What a compilation is asked for, with the values of all parameters."""

    def __init__(self, source, kernel=None, schedule=None, **given):
        options = {name: given.pop(name) for name in ("shape_class", "alternatives") if name in given}
        self.program = Program(source, kernel, **given)
        self.names, self.parameters = self.program.names, self.program.parameters
        self.source, self.schedule, self.options = os.path.basename(source), schedule, options


class CardsTest(unittest.TestCase):
    def setUp(self):
        self.file = self.enterContext(tempfile.NamedTemporaryFile("w", suffix=".json"))
        self.write(ROWS)
        self.enterContext(unittest.mock.patch.dict(os.environ, {"TESSERA_RULES": self.file.name}))
        self.enterContext(unittest.mock.patch.object(_compile, "compile", Kernel))
        self.enterContext(unittest.mock.patch.object(_compile, "find_in_wheel", lambda *_: None))

    def write(self, rows):
        self.file.seek(0)
        self.file.truncate()
        json.dump({"format": "tessera-rules", "version": 1, "rules": rows}, self.file)
        self.file.flush()

    def be_on(self, card):
        properties = types.SimpleNamespace(name=card, multi_processor_count=100)
        for name, value in (("is_initialized", True), ("current_device", 0), ("get_device_properties", properties)):
            self.enterContext(unittest.mock.patch.object(torch.cuda, name, lambda *_, value=value: value))
        for function in (_kernels._find_name, _choices.choose_values, _kernels.count_multiprocessors, _kernels.find_numbers):
            function.cache_clear()
            self.addCleanup(function.cache_clear)

    def make(self, what, variant, tensors, names=Names()):
        recipe = _recipes.make(_kernels.find_kind(False), _recipes.write(what, names, variant), tensors)
        return [kernel for kernel, _ in recipe.steps]

    def find(self):
        """What is compiled of an output, of gradients and of 8 bits."""
        x = _layouts.Layout((1, 2, 128, 64), (2 * 128 * 64, 128 * 64, 64, 1), "bf16")
        sums = _layouts.Layout((1, 2, 128), (256, 128, 1), "f32")
        forward, *_ = self.make(_recipes.OUTPUT, "attention_fwd CAUSAL=false", (x, x, x))
        functions, *_ = self.make(_recipes.OUTPUT, OF_SCORES, (x, x, x))
        gradients, *_ = self.make(_recipes.ANY_ORDER, "attention_fwd CAUSAL=false", (x, x, x, x, x, sums, None))
        of_bytes = self.make(_recipes.FP8, "attention_fp8 CAUSAL=false", (x, x, x, None))
        device = torch.device("cuda", 0)
        columns = _kernels.choose(device, _library.find_source("linear/step"), DK=64)["DV"]
        return (
            forward.parameters["BM"], forward.schedule, functions.parameters["BN"], gradients.source, of_bytes[-1].parameters["BN"],
            of_bytes[1].parameters["BM"], columns, _kernels.find_numbers(device)["LEAST_SHARE"],
        )  # fmt: skip

    def test_card(self):
        self.be_on(CARD)
        self.assertEqual(self.find(), (128, "attention_fwd:stages = 3", 32, "attention_bwd_deterministic.tile", 64, 64, 96, 512))

    def test_other_card(self):
        self.be_on("NVIDIA H200")
        self.assertEqual(self.find(), (256, None, 64, "attention_bwd.tile", 128, 128, 64, 256))

    def test_changed_file(self):
        """A row for a card counts from when it stands in the file."""
        self.write([])
        self.assertIs(_choices.compiler_for(CARD), Kernel)
        self.write(ROWS)
        self.assertIs(_choices.find_card(_choices.compiler_for(CARD)), CARD)

    def test_no_card(self):
        self.assertIsNone(_kernels.find_card())
        self.assertIs(_kernels.find_kind(False), Kernel)


unittest.main()
