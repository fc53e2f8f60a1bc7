# RUN: %python %s
"""What benchmarks say that instructions, blocks and special functions explain of a kernel's time."""

import os
import sys
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "test", "gpu")]

import explain
import score_gradients
import variants
import window_gradients


class WindowGradients(unittest.TestCase):
    def test_blocks(self):
        def count(seqlen, left, keys, queries):
            sees = [[0 <= q - k <= left for q in range(seqlen)] for k in range(seqlen)]
            visited = [
                any(sees[k][q] for k in range(first, first + keys) for q in range(block, block + queries))
                for first in range(0, seqlen, keys)
                for block in range(0, seqlen, queries)
            ]
            return sum(visited) / (seqlen // keys)

        for left in (0, 1, 15, 16, 17, 63, 200):
            for keys, queries in ((32, 16), (16, 16), (16, 32)):
                expected = count(96, left, keys, queries)
                self.assertEqual(window_gradients.visited_blocks(96, left, keys, queries), expected)

    def test_ratios(self):
        times = {"3 blocks": 4.0, "4 blocks": 6.0, "whole": 8.0}
        times |= {window_gradients.MAIN: 5.0, window_gradients.STATISTICS: 2.0, window_gradients.CONVERT: 1.0}
        ratios = window_gradients.compare(3.5, times)
        self.assertEqual(ratios, {"main": 1.0, "whole": 1.0, "others": 0.375})
        self.assertEqual(window_gradients.compare(3.0, times)["main"], 0.8)


class ScoreGradients(unittest.TestCase):
    LOOPS = [{"instructions": count, "MUFU": 8} for count in (100, 150, 50, 50)]
    MORE = [{"instructions": count, "MUFU": 24} for count in (180, 260, 50, 50)]

    def test_counts(self):
        """Of both consumers, or of the one that makes the scores; without masks."""
        schedules = "#tile.schedule<consumers = 2, placement = apart>", "#tile.schedule<consumers = 2, placement = divided>"
        # Of 24 special functions a warpgroup takes 192 cycles, of 180 instructions 180.
        self.assertEqual(score_gradients.count_added(self.MORE, self.LOOPS, schedules[0]), (184 + 128, 72))
        self.assertEqual(score_gradients.count_added(self.MORE, self.LOOPS, schedules[1]), (92 + 128, 48))
        self.assertIsNone(score_gradients.count_added(self.MORE[:2], self.LOOPS, schedules[0]))
        self.assertIsNone(score_gradients.count_added(None, None, schedules[0]))

    def test_explanation(self):
        records = [{"scores": "plain", "timing": {"ms": 1.0, "mhz": 1000.0}}, {"scores": "soft cap", "timing": {"ms": 1.25, "mhz": 1000.0}},
                   {"scores": "ALiBi", "error": 1.0}]  # fmt: skip
        # 10 multiprocessors take 1000 cycles for each of 10000 passes.
        score_gradients.add_explanations(records, {"plain": (0, 8), "soft cap": (250, 24)}, 10000, 10)
        self.assertEqual((records[1]["to_plain"], records[1]["explained"]), (0.8, 0.8))
        self.assertEqual(records[0]["explained"], 1.0)
        self.assertNotIn("explained", records[2])
        # Special functions alone may take longer.
        self.assertEqual(score_gradients.explain_time(1000, (10, 200)), 1600)
        self.assertEqual(score_gradients.to_row({"d": 64, "seqlen": 128, **{"scores": "ALiBi", "error": 1.0}})["main, ms"], "wrong (1)")


class Explanation(unittest.TestCase):
    PARAMETERS = {"D": 128, "BM": 128, "BN": 128}

    def test_costs(self):
        loops = [
            {"instructions": 640, "HGMMA": 16, "MUFU": 64},
            {"instructions": 320, "HGMMA": 16, "MUFU": 128},
            {"instructions": 960, "HGMMA": 32, "MUFU": 128},
        ]
        found = explain.costs(loops, self.PARAMETERS)
        self.assertEqual(found, {"unmasked": (5.0, 2.0), "masked": (10.0, 1.0)})
        # All loops of the online softmax have a maximum; of a kernel that speculates, those that are run again.
        exact = [{**loop, "instructions": 2 * loop["instructions"], "SHFL": 8} for loop in loops]
        self.assertEqual(explain.costs(exact, self.PARAMETERS), {"unmasked": (10.0, 2.0), "masked": (20.0, 1.0)})
        self.assertEqual(explain.costs(loops + exact, self.PARAMETERS), found)

    def test_blocks(self):
        self.assertEqual(explain.visited_blocks(512, (512, 512), 128, 128), (16, 0))
        self.assertEqual(explain.visited_blocks(512, (512, 0), 128, 128), (10, 4))
        self.assertEqual(explain.visited_blocks(512, (512, 0), 128, 64), (20, 8))
        # Each tile has the diagonal and, but for the first, the end of the window beside what is between them.
        self.assertEqual(explain.visited_blocks(1024, (256, 0), 128, 128), (21, 14))
        for window in ((3, 5), (100, 0), (512, 512)):
            visited, _ = explain.visited_blocks(512, window, 1, 1)
            scores = {"parameters": {"MASK": "window"}, "left": window[0], "right": window[1]}
            self.assertEqual(visited, variants.visible_pairs(512, scores))

    def test_reference(self):
        self.assertEqual(explain.reference_elements(1000, {"BM": 128, "BN": 64, "REFERENCE": "diagonal"}), 1024 * 32)
        self.assertEqual(explain.reference_elements(1000, {"BM": 128, "BN": 64, "REFERENCE": "first"}), 0)

    def test_cycles(self):
        def kernel(unmasked, masked, elements):
            return {"unmasked": unmasked, "masked": masked}, elements

        plain = kernel((7.0, 1.0), (9.0, 1.0), (1600, 0))
        self.assertEqual(explain.explained_cycles(plain, plain, 800), 800)
        # Two instructions an element, of 128 a cycle.
        self.assertEqual(explain.explained_cycles(kernel((9.0, 1.0), (9.0, 1.0), (1600, 0)), plain, 800), 825)
        # Nothing is faster than its special functions, 16 a cycle.
        self.assertEqual(explain.explained_cycles(kernel((9.0, 9.0), (9.0, 9.0), (1600, 0)), plain, 800), 900)
        # Half of the elements, a quarter of those with a mask that the plain kernel does not have.
        window = kernel((7.0, 1.0), (11.0, 1.0), (600, 200))
        self.assertEqual(explain.explained_cycles(window, plain, 800), 400 + 200 * 4 / 128)
        # A causal base has its own mask: nothing is added.
        causal = kernel((7.0, 1.0), (11.0, 1.0), (800, 100))
        self.assertEqual(explain.explained_cycles(causal, causal, 450), 450)

    def test_records(self):
        class Loaded:
            parameters = self.PARAMETERS

        loops = [{"instructions": 448, "HGMMA": 16, "MUFU": 64}]
        more = [{"instructions": 576, "HGMMA": 16, "MUFU": 64}]
        listed = [
            {"variant": "plain", "parameters": {"CAUSAL": "false"}},
            {"variant": "ALiBi", "parameters": {"MASK": "none", "ALIBI": "true"}, "base": "plain"},
        ]
        records = [
            {"d": 128, "variant": name, "base": base, "family": base, "seqlen": 1024, "batch": 1, "heads": 132, "flops": 1.0,
             "tessera": {"ms": ms, "mhz": 1000, "tflops": 1 / ms}}
            for name, base, ms in (("plain", None, 0.5), ("plain, speculating", None, 0.4), ("ALiBi", "plain", 0.8))
        ]  # fmt: skip
        kernels = dict.fromkeys(("plain", "ALiBi"), Loaded)
        variants.add_explanations(records, listed, kernels, {"plain": loops, "ALiBi": more}, 132)
        self.assertEqual(records[2]["added"], [2.0, 0.0])
        # 1024^2 elements in 500000 cycles and two more instructions for each.
        self.assertAlmostEqual(records[2]["explained"], 500000 / (500000 + 1024**2 * 2 / 128))
        # A base on fewer keys took its time for those alone.
        short = {**listed[0], "keys": 256}
        variants.add_explanations(records, [short, listed[1]], kernels, {"plain": loops, "ALiBi": more}, 132)
        self.assertAlmostEqual(records[2]["explained"], 500000 / (500000 * 4 + 1024**2 * 2 / 128))
        variants.add_explanations(records, listed, kernels, {"plain": loops, "ALiBi": more}, 132)
        row = variants.to_row(records[2], records)
        shown = [row[name] for name in ("to plain", "to speculating", "added", "explained", "to explained")]
        self.assertEqual(shown, ["0.62", "0.50", "2.0 (0.0)", "0.97", "0.65"])
        self.assertNotIn("explained", records[0])


if __name__ == "__main__":
    unittest.main()
