# RUN: env TESSERA_LIBRARY=%build/lib %python %s
"""The rule by which a shape has its class says what the compiler says of each shape."""

import json
import random
import unittest

from tessera._attention import _variants
from tessera._compiler import _compile
from tessera._core import _classes, _library
from tessera._compiler._program import Program

#: Source, parameters, dimensions of its launches, whether shapes have classes.
KERNELS = (
    ("attention_fwd", {"D": 64, "CAUSAL": True}, ("B", "H", "SQ", "HK", "SK"), True),
    ("attention_fwd", {"D": 128}, ("B", "H", "SQ", "HK", "SK"), True),
    ("attention_fwd", {"D": 256, "CAUSAL": True, "PADDED": True}, ("B", "H", "SQ", "HK", "SK", "DQ", "DO"), True),
    ("attention_fp8", {"D": 128, "CAUSAL": True}, ("B", "H", "SQ", "HK", "SK"), True),
    ("attention_variants", {"MASK": "causal", "SOFTCAP": "exact"}, ("B", "H", "SQ", "HK", "SK"), True),
    ("attention_variants", {"MASK": "window"}, ("B", "H", "SQ", "HK", "SK"), False),
    ("gemm", {}, ("M", "N", "K"), True),
    ("softmax", {}, ("M",), True),
)  # fmt: skip


def draw(rng, dims):
    return {name: int(2 ** rng.uniform(0, 17 if name[0] in "SMNK" else 5)) for name in dims}


class Classes(unittest.TestCase):
    def test_rules(self):
        rng = random.Random(1)
        seen = set()
        for name, parameters, dims, has_classes in KERNELS:
            program = Program(_library.find_source(name), **parameters)
            rule = json.loads(program.shape_rule)
            self.assertEqual(rule is not None, has_classes, name)
            for _ in range(200):
                shape = draw(rng, dims)
                found = _classes.find(rule, shape)
                self.assertEqual(found, program.shape_class(**shape), (name, parameters, shape))
                seen.add(found)
        self.assertEqual(seen, {None, *_variants._CLASSES})

    def test_rules_of_sequences(self):
        """Of the kernels of a sequence the one with the most work decides: each shape is asked for."""
        self.assertEqual(Program(_library.find_source("attention_bwd")).shape_rule, "")


if __name__ == "__main__":
    unittest.main()
