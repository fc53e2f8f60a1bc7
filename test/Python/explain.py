# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s %source
"""Pages about sources and variants."""

import json
import pathlib
import re
import sys
import unittest

import tessera
from tessera import masks

KERNELS = pathlib.Path(sys.argv.pop()) / "kernels"


def read(page):
    """The data of a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


class ExplainTest(unittest.TestCase):
    def test_file(self):
        diagnostics = []
        data = read(tessera.explain(KERNELS / "gemm.tile", schedule={"stages": 2}, on_diagnostic=diagnostics.append))
        self.assertEqual(pathlib.Path(data["files"][-1]["name"]).name, "gemm.tile")
        (kernel,) = data["kernels"]
        self.assertIn("stages = 2", kernel["schedules"][0]["asked"])
        self.assertEqual(kernel["picture"]["masks"], [])
        self.assertEqual([d.message for d in diagnostics], [d["message"] for d in data["diagnostics"]])

    def test_variant(self):
        variant = tessera.Variant(mask=masks.causal)
        shape = {"B": 1, "H": 2, "HK": 1, "SQ": 512, "SK": 512}
        data = read(variant.explain_html(D=64, BM=128, BN=128, shape=shape))
        self.assertEqual(data["files"][-1]["text"], variant.source)
        (mask,) = data["kernels"][0]["picture"]["masks"]
        self.assertEqual(mask["rows"], ["psss", "fpss", "ffps", "fffp"])
        self.assertEqual(mask["points_per_row"], 2)

    def test_scalars(self):
        variant = tessera.Variant(mask=lambda b, h, q, k, width: abs(q - k) < width, width=int)
        (mask,) = read(variant.explain_html(D=64))["kernels"][0]["picture"]["masks"]
        self.assertEqual(mask["problem"], "it depends on 'width'; give --set width=VALUE")
        shape = {"B": 1, "H": 1, "HK": 1, "SQ": 512, "SK": 512}
        page = variant.explain_html(D=64, BM=128, BN=128, shape=shape, scalars={"width": 1})
        (mask,) = read(page)["kernels"][0]["picture"]["masks"]
        self.assertEqual(mask["rows"], ["psss", "spss", "ssps", "sssp"])

    def test_shown_in_notebooks(self):
        shown = tessera.Variant(mask=masks.causal)._repr_html_()
        self.assertIn("<pre>$import &quot;attention.tile&quot;", shown)
        self.assertRegex(shown, "[0-9.]+ of 100 blocks are visited: [0-9]+ in full, [0-9]+ in part; [1-9][0-9]* are skipped")
        self.assertIn('<rect x="0" y="0"', shown)
        capped = tessera.Variant(score=lambda s, b, h, q, k: tessera.tanh(s))
        self.assertNotIn("<svg", capped._repr_html_())
        window = tessera.Variant(mask=lambda b, h, q, k, width: abs(q - k) < width, width=int)
        self.assertIn("it depends on &#x27;width&#x27;", window._repr_html_())

    def test_errors(self):
        data = read(tessera.explain("tile.kernel @k() grid(%m = 1) {\n  arith.nothing </script>\n}\n"))
        self.assertEqual((data["status"], data["forms"], data["kernels"]), (3, [], []))
        self.assertEqual(data["diagnostics"][0]["line"], 2)

    def test_usage(self):
        for text, arguments in {
            "unknown parameter 'NOPE'": {"NOPE": 1},
            "there is no scalar 'left'": {"scalars": {"left": 1}},
            "lacks the extent of K": {"shape": {"M": 64, "N": 64}},
        }.items():
            with self.assertRaisesRegex(tessera.CompileError, text) as caught:
                tessera.explain(KERNELS / "gemm.tile", **arguments)
            self.assertEqual(caught.exception.status, "usage")


unittest.main()
