# RUN: %python %s
"""What the benchmarks do around the GPU: choosing points and schedules, comparing, results;
--extra and --inspect of build_bundles."""

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "test", "gpu")]

import attention
import backward
import build_bundles
import choice
import common
import first_call
import functions
import padded
import peers
import plot
import recurrences
import triton_ahead
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


class Padded(unittest.TestCase):
    def test_configurations(self):
        for d, width in ((8, 64), (64, 64), (72, 96), (120, 128), (136, 160), (168, 192), (200, 256)):
            self.assertEqual(padded.find_width(d), width)
        plain, narrow = padded.configurations(72, 2048, "causal")
        self.assertEqual(plain["shape"], {"B": 8, "H": 21, "HK": 21, "SQ": 2048, "SK": 2048})
        self.assertEqual(narrow["shape"], {**plain["shape"], "DQ": 72, "DO": 72})
        self.assertEqual(narrow["parameters"], {**plain["parameters"], "PADDED": "true"})
        self.assertTrue(plain["alternatives"] and narrow["alternatives"])

    def test_summary(self):
        records = [{"d": 40, "to_width": 0.5}, {"d": 40, "to_width": 2.0}, {"d": 72, "to_width": 1.0}, {"d": 80, "wrong": True}]
        self.assertEqual(
            list(padded.summarize(records)),
            ["d = 40 to width 64: 1.000 in the mean, 0.500 at least", "d = 72 to width 96: 1.000 in the mean, 1.000 at least"],
        )


class FirstCall(unittest.TestCase):
    def test_what_fails(self):
        """A process that cannot call says why, and is no measurement."""
        with unittest.mock.patch.object(first_call, "PROGRAM", "raise RuntimeError('no GPU')"):
            self.assertEqual(first_call.run_process(argparse.Namespace(package=None), ({}, False, 64)), "RuntimeError: no GPU")


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

    def test_windows_have_bases_of_their_length(self):
        class Loaded:
            parameters = {"D": 128, "BM": 128, "BN": 128}

        plain = {"variant": "plain", "parameters": {"CAUSAL": "false"}}
        window = {"variant": "window", "parameters": {"MASK": "window"}, "left": 256, "right": 0, "base": "plain"}
        kernels = dict.fromkeys(("plain", "window"), Loaded)
        listed = variants.with_short_bases([plain, window], kernels, 1024)
        # 21 blocks of 8 tiles, in whole blocks.
        self.assertEqual([v["variant"] for v in listed], ["plain", "window", "plain, 384 keys"])
        self.assertEqual((listed[1]["base"], listed[1]["family"]), ("plain, 384 keys", "plain"))
        self.assertEqual((listed[2]["keys"], listed[2]["of"]), (384, "plain"))
        self.assertEqual(variants.visible_pairs(1024, listed[2]), 1024 * 384)
        self.assertEqual(variants.scores_of(1024, listed[2])[2], 384)
        # Without the window's kernel, or with a base that is not there, nothing is added.
        self.assertEqual(variants.with_short_bases([plain, window], {"plain": Loaded}, 1024), [plain, window])

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

    def test_means(self):
        point = {"group": "paper", "d": 64, "dv": 64, "mask": "full", "variant": "default"}
        rates = ((200, 100, 50), (100, 100, 200))
        records = [
            {**point, "timings": {n: {"tflops": t} for n, t in zip(("tessera", "fa3", "cudnn"), r)}} for r in rates
        ]
        records.append({**point, "wrong": True})
        (row,) = attention.mean_rows(records)
        self.assertEqual((row["points"], row["mean to fa3, cudnn"], row["worst"]), (2, "1.000", "0.50"))


class Points(unittest.TestCase):
    def test_a_compiler_before_is_timed_and_compared(self):
        options = attention.parse_arguments(["--groups", "paper", "--d", "64", "--masks", "full", "--before", "DIR"])
        kernel, records = Kernel(""), []
        self.assertEqual(attention.load_before(Source(**{"": kernel}), options.points[0], options), {"before": kernel})
        self.assertEqual(attention.load_before(None, options.points[0], options), {})
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(attention.load_before(Source(), options.points[0], options), {})
        self.assertIn("not here", out.getvalue())
        for point, rates in zip(options.points, ((99.0, 100.0), (396.0, 100.0))):
            for variant, tflops in zip(("default", "before"), rates):
                timings = {"tessera": {"tflops": tflops}}
                records.append({**dataclasses.asdict(point), "variant": variant, "timings": timings})
        (row,) = attention.change_rows(records)
        self.assertEqual((row["points"], row["mean to before"], row["worst"]), (2, "1.980", "0.990"))
        self.assertEqual(attention.tables(records), [[row]])

    def test_groups(self):
        paper = list(attention.points(["paper"]))
        self.assertEqual(len(paper), 36)
        self.assertEqual({p.batch * p.seqlen for p in paper}, {16384})
        self.assertEqual({p.heads * p.d for p in paper}, {2048})
        self.assertTrue(all(p.heads == p.kv_heads and p.d == p.dv for p in paper))
        self.assertEqual({(p.d, p.dv) for p in attention.points(["dims"])}, {(96, 96), (160, 160), (192, 192), (192, 128)})
        self.assertEqual({(p.heads, p.kv_heads) for p in attention.points(["gqa"])}, {(16, 2)})
        self.assertEqual([(p.batch, p.seqlen) for p in attention.points(["long"])], [(1, 32768)] * 2)
        decode = list(attention.points(["decode"]))
        self.assertEqual({(p.batch * p.seqlen, p.queries, p.heads, p.kv_heads) for p in decode}, {(131072, 1, 32, 4)})
        self.assertEqual({p.mask for p in decode}, {"full"})

    def options(self, *arguments):
        return attention.parse_arguments(arguments)

    def test_options(self):
        self.assertEqual({p.group for p in self.options().points}, set(attention.GROUPS))
        self.assertEqual(self.options().peers, peers.DEFAULT)
        some = self.options("--groups", "gqa,paper", "--d", "128", "--seqlens", "512,4096", "--masks", "causal")
        found = [(p.group, p.d, p.mask, p.seqlen) for p in some.points]
        self.assertEqual(
            found, [(group, 128, "causal", seqlen) for group in ("gqa", "paper") for seqlen in (512, 4096)]
        )
        self.assertEqual(self.options("--peers", "triton, fa3").peers, ("fa3", "triton"))
        self.assertEqual(peers.wanted(self.options("--no-peers")), ())

    def test_refusals(self):
        for arguments, reason in (
            (("--groups", "more"), "more is none of paper"),
            (("--peers", "fa9"), "no peer is called fa9"),
            (("--d", "80"), "no group has such a point"),
        ):
            output = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(output):
                self.options(*arguments)
            self.assertIn(reason, output.getvalue())

    def test_list(self):
        """The list for build_bundles.py has the kernels of every point, each for its shape."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "list.json")
            options = self.options("--list", path, "--exact", "--groups", "gqa,long", "--schedules", "default;stages=2")
            attention.write_list(options)
            found = [entry["name"] for entry in build_bundles.read_extra(path)]
        self.assertEqual(len(set(found)), 3 * len(options.points))
        shape = {"B": 32, "H": 16, "HK": 2, "SQ": 512, "SK": 512}
        self.assertIn(cases.attention("bf16", 128, 128, True, "stages=2", shape)["name"], found)
        self.assertIn(cases.variant("bf16", 128, {"DV": 128, "MASK": "causal"}, "speculate=false", shape)["name"], found)
        for point in options.points:
            names = [configuration["name"] for configuration in attention.configurations(point, options)]
            self.assertTrue(set(names) <= set(found))

    def test_packed(self):
        """Few queries are also tried with the heads that share keys in one tile."""
        options = self.options("--groups", "decode,gqa", "--seqlens", "2048", "--masks", "full")
        decode, gqa = sorted(options.points, key=lambda point: point.group)
        default, packed = attention.configurations(decode, options)
        self.assertEqual((packed["variant"], packed["parameters"]["HEADS"]), ("packed", 8))
        self.assertEqual((default["shape"], default["shape"]["SQ"]), (packed["shape"], 1))
        self.assertEqual(len(list(attention.configurations(gqa, options))), 1)


class Choices(unittest.TestCase):
    def options(self, *arguments):
        return choice.parse_arguments(["--shapes", "40", *arguments])

    def test_points(self):
        points = choice.draw_points(self.options("--gigabytes", "1"))
        self.assertEqual(len(set(points)), 40)
        self.assertEqual(points, choice.draw_points(self.options("--gigabytes", "1")))
        self.assertNotEqual(points, choice.draw_points(self.options("--gigabytes", "1", "--seed", "1")))
        for point in points:
            self.assertTrue(4 <= point.heads <= 64 and 1 <= point.batch <= 64 and 64 <= point.seqlen <= 32768)
            self.assertIn(point.heads // point.kv_heads, choice.GROUPS)
            self.assertEqual(point.heads % point.kv_heads, 0)
            self.assertLessEqual(2 * 2 * point.batch * point.seqlen * point.d * (point.heads + point.kv_heads), 1e9)
            self.assertLessEqual(point.flops(), 1e13)

    def test_classes_of_a_list(self):
        """The list says which of its kernels each shape has, so that the GPU machine needs no compiler."""
        points = choice.draw_points(self.options())
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "list.json")
            with open(path, "w") as file:
                wanted = {**choice.configuration(points[0].d, points[0].mask, "few-short"), "for": [points[0].shape()]}
                json.dump([wanted], file)
            (entry,) = build_bundles.read_extra(path)
        self.assertEqual((entry["shape_class"], entry["alternatives"]), ("few-short", True))
        self.assertTrue(entry["name"].endswith("_few-short_alternatives"))
        classes = choice.ListedClasses(argparse.Namespace(entries={entry["name"]: entry}))
        self.assertEqual(classes.find(points[0]), "few-short")
        with self.assertRaisesRegex(SystemExit, "give the options that --list had"):
            classes.find(points[1])

    def test_former_run(self):
        """Goes on with a record of the same commit, GPU and shapes, and with no other."""
        points, header = choice.draw_points(self.options()), {"date": "today", "commit": "abc", "gpu": "H"}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "record.json")
            results = [{**dataclasses.asdict(point), "ms": 1.0} for point in points[:2]]
            with open(path, "w") as file:
                json.dump({**header, "date": "yesterday", "results": results}, file)
            self.assertEqual(choice.read_former(path, header, points), dict(zip(points, results)))
            with self.assertRaisesRegex(SystemExit, "has commit abc, and this run def"):
                choice.read_former(path, {**header, "commit": "def"}, points)
            with self.assertRaisesRegex(SystemExit, "no shape of this run; give the options that it had"):
                choice.read_former(path, header, points[1:])

    def test_summary(self):
        point = choice.Point(64, "causal", 1, 14, 2, 6144)
        made = argparse.Namespace(name="attention_fwd_BM192", index=1,
                                  microseconds={"attention_fwd_BM256": 185.0, "attention_fwd_BM192": 140.0})  # fmt: skip

        def record(name, ms, **rivals):
            timings = {"tessera": {"ms": ms}, **{rival: {"ms": time} for rival, time in rivals.items()}}
            return {"variant": name, "timings": timings}

        near = choice.summarize(point, made, [record("attention_fwd_BM256", 0.147), record("attention_fwd_BM192", 0.15, fa3=0.18, fa2=0.1)])
        self.assertEqual((near["fastest"], near["peers"]), ("attention_fwd_BM256", {"fa3": 0.18, "fa2": 0.1}))
        self.assertAlmostEqual(near["to fastest"], 0.15 / 0.147)
        self.assertAlmostEqual(near["to judges"], 1.2)
        self.assertAlmostEqual(near["to expected"], 0.15 / 0.14)
        self.assertEqual(choice.to_row(near)["chosen"], "BM192")
        far = choice.summarize(point, made, [record("attention_fwd_BM256", 0.1), record("attention_fwd_BM192", 0.15)])
        self.assertIsNone(far["to judges"])
        rows = list(choice.summary_rows([near, far]))
        self.assertEqual([row["within 3%"] for row in rows], ["50.0%", "50.0%"])
        self.assertEqual(rows[-1]["mean to fa3, cudnn"], "1.200")
        wrong = {"variant": "attention_fwd_BM192", "wrong": True}
        self.assertIsNone(choice.summarize(point, made, [record("attention_fwd_BM256", 0.1), wrong]))


class Peers(unittest.TestCase):
    def attempt(self, make, error=0.0):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            run = peers.attempt("fa3", "d 64", make, lambda out: error)
        return run, output.getvalue()

    def test_attempts(self):
        def runs(problem):
            return lambda: None

        def fails(problem):
            raise peers.Unavailable("no such file\nand more")

        run, output = self.attempt(runs)
        self.assertTrue(run)
        self.assertEqual(output, "")
        self.assertEqual(self.attempt(fails), (None, "fa3: left out at d 64: Unavailable: no such file\n"))
        for wrong in (0.5, float("nan")):
            run, output = self.attempt(runs, wrong)
            self.assertIsNone(run)
            self.assertIn("computes something else", output)

    def test_flex_has_a_limit(self):
        options = argparse.Namespace(no_peers=False, compile_seconds=0)
        self.assertIsNone(variants.Flex(options).contestant(None, None, None))


class Results(unittest.TestCase):
    def test_written(self):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "new")
            options = common.argument_parser("").parse_args(["--out", out, "--date", "2000-01-01", "--commit", "abc"])
            records = measure({"default": Kernel("all of it")}, Stopwatch())
            results = common.Results(options, "attention", {"gpu": "A 100"}, "How.")
            results.add(records[:1], lambda record: {"point": record["d"]})
            with open(results.path + ".md") as file:
                self.assertIn("| point |\n|---|\n| 64 |\n", file.read())
            results.add(records[1:], lambda record: {"point": record["d"]})
            rows = [common.to_row(record, ("d",), ("fa3",)) for record in records]
            results.write(rows, results.records, [{"mean": 1.5}])
            self.assertEqual(sorted(os.listdir(out)), [f"2000-01-01-a-100-abc-attention.{s}" for s in ("json", "md")])
            with open(results.path + ".json") as file:
                data = json.load(file)
            with open(results.path + ".md") as file:
                table = file.read()
        self.assertEqual((data["commit"], data["results"][0]["schedule"]), ("abc", "all of it"))
        self.assertIn("How.\n\n| d | schedule |", table)
        self.assertIn("| 64 | default | 6 | 3 |", table)
        self.assertIn("|\n\n| mean |\n|---|\n| 1.5 |\n", table)


class Gradients(unittest.TestCase):
    def test_ablation_of_gradients(self):
        options = argparse.Namespace(groups="paper", seqlens=(2048,), tokens=backward.TOKENS, ablation=True)
        for point in backward.points(options):
            found = backward.configurations(point, options)
            self.assertEqual(found[0]["variant"], "default")
            self.assertEqual(found[0]["parameters"]["D"], point.d)
            for key in ("variant", "name"):
                self.assertEqual(len({configuration[key] for configuration in found}), len(found))


    def test_groups_have_lengths_of_their_own(self):
        def find(groups, seqlens=None):
            options = argparse.Namespace(groups=groups, seqlens=seqlens, tokens=backward.TOKENS)
            return {(point.d, point.dv, point.seqlen, point.batch) for point in backward.points(options)}

        self.assertEqual(find("long"), {(128, 128, 32768, 1)})
        self.assertEqual(find("narrow,wide", (2048,)), {(192, 128, 2048, 8), (256, 256, 2048, 8)})


class Extra(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "extra.json")
            with open(path, "w") as file:
                file.write(text)
            return list(build_bundles.read_extra(path))

    def test_ablation(self):
        options = argparse.Namespace(groups="", only="", extra=[os.path.join(ROOT, "bench", "ablation.json")])
        found = build_bundles.wanted_configurations(options)
        self.assertEqual(found[0]["name"], cases.attention("bf16", 128, 128, False)["name"])
        self.assertFalse(found[0]["may_be_refused"])
        self.assertTrue(all(entry["may_be_refused"] for entry in found[1:]))
        options.groups = "attention"
        names = [entry["name"] for entry in build_bundles.wanted_configurations(options)]
        self.assertEqual(len(names), len(set(names)))

    def test_loops(self):
        text = (
            "attention: 2 instructions, 1 of them products\n\n"
            "loop at 0x10 to 0x60, lines 8 to 12: 469 instructions, 6 more out of line\n  HGMMA 16  MUFU 66  other 5\n"
            "  note: 4 of 66 MUFU run\n\nloop at 0x70 to 0x90: 5 instructions\n  HGMMA 2\n  000070  other x6\n"
        )
        first = {"instructions": 469, "HGMMA": 16, "MUFU": 66, "other": 5}
        self.assertEqual(build_bundles.read_loops(text), [first, {"instructions": 5, "HGMMA": 2}])

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


class Orders(unittest.TestCase):
    def test_each_follows_each_equally_often(self):
        for count in range(1, 9):
            orders = common.balanced_orders(count)
            self.assertTrue(all(sorted(order) == list(range(count)) for order in orders))
            follows = [pair for order in orders for pair in zip(order, order[1:])]
            self.assertEqual(len(set(follows)), count * (count - 1))
            self.assertEqual({follows.count(pair) for pair in follows}, {len(orders) // count} if count > 1 else set())


class FunctionsTest(unittest.TestCase):
    def test_pairs(self):
        pairs = {case.name: case.pairs(2048) for case in functions.CASES}
        self.assertEqual(pairs["none"], 2048 * 2048)
        self.assertEqual(pairs["causal"], 2048 * 2049 // 2)
        self.assertEqual(pairs["window"], 1024 * 1025 // 2 + 1024 * 1024)
        self.assertEqual(pairs["documents"], 2 * 1024 * 1025 // 2)

    def test_configurations(self):
        found = functions.configurations(128, 4096)
        more = {"documents, kept", "documents, lists", "documents, short", "packed, short"}
        self.assertEqual(set(found), {case.name for case in functions.CASES} | more)
        self.assertEqual(found["documents, kept"]["parameters"], {"T": "bf16", "D": 128, "KEPT": "true"})
        self.assertEqual(found["documents"]["shape"], {"B": 4, "H": 16, "HK": 16, "SQ": 4096, "SK": 4096})
        self.assertEqual(found["relative"]["shape"]["DISTANCES"], 8191)
        self.assertEqual(found["documents, short"]["shape"]["B"], 16)
        for configuration in found.values():
            self.assertNotIn("/", configuration["name"])


class Ahead(unittest.TestCase):
    """What Triton's tuner would try, with functions of Triton that write down what is asked of them."""

    def setUp(self):
        class Function:
            asked = []

            def run(self, *arguments, grid, warmup, **named):
                self.asked.append((warmup, *named.values()))

        class Tuner:
            arg_names, base_fn, fn = ("x",), self.setUp, Function()

            def prune_configs(self, named):
                return [Configuration(number) for number in range(40)]

            def run(self, *arguments, **named):
                raise AssertionError("a tuner runs")

        class Configuration(int):
            def all_kwargs(self):
                return {"n": int(self)}

        self.function, self.tuner = Function, Tuner
        runtime = types.SimpleNamespace(jit=types.SimpleNamespace(JITFunction=Function), autotuner=types.SimpleNamespace(Autotuner=Tuner))
        triton = types.SimpleNamespace(runtime=runtime, testing=types.SimpleNamespace(do_bench=lambda run, **named: named))
        modules = {"triton": triton, "triton.runtime": runtime, "triton.testing": triton.testing}
        patch = unittest.mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)

    def test_shares(self):
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(3):
                with triton_ahead.compile_share(rank, 3, os.path.join(folder, f"{rank}.txt")):
                    self.tuner().run("x", grid=(1,), warmup=False)
            self.assertEqual(sorted(self.function.asked), [(True, number) for number in range(40)])
            os.remove(os.path.join(folder, "1.txt"))
            tuned, tuner = triton_ahead.tune(folder), self.tuner()
            kept = tuner.prune_configs({})
            self.assertTrue(0 < len(kept) < 40)
            self.assertEqual(len(kept) + len(tuned.left_out), 40)
            tuner.cache = {"key": kept[0], "other": kept[0]}
            self.assertEqual(tuned.find_chosen(), {f"setUp {kept[0]}"})
            self.assertEqual(self.tuner().do_bench(None)["rep"], triton_ahead.TIMED)

    def test_nothing_compiled(self):
        with tempfile.TemporaryDirectory() as folder:
            tuned = triton_ahead.tune(folder)
        self.assertEqual((len(self.tuner().prune_configs({})), tuned.left_out), (40, set()))

    def test_what_was_chosen(self):
        with tempfile.TemporaryDirectory() as folder:
            chosen, done = os.path.join(folder, "chosen"), os.path.join(folder, "done")
            self.assertEqual(triton_ahead.read_names(chosen), set())
            with open(chosen, "w") as file:
                file.write("setUp 7\nanother 8\n")
            with triton_ahead.compile_share(0, 1, done, triton_ahead.read_names(chosen)):
                self.tuner().run("x", grid=(1,), warmup=False)
            self.assertEqual((self.function.asked, triton_ahead.read_names(done)), ([(True, 7)], {"setUp 7"}))
            with triton_ahead.compile_share(0, 1, done, {"another 8"}):
                self.tuner().run("x", grid=(1,), warmup=False)
            self.assertEqual(len(self.function.asked), 41)


class Recurrences(unittest.TestCase):
    def test_shapes(self):
        shapes = recurrences.GROUPS["models"]
        self.assertEqual((len(shapes), {shape[0] for shape in shapes}), (16, set(recurrences.MODELS)))

    def test_ratios(self):
        fast, slow = ({"what": "both", "model": "Bamba", "timings": {"tessera": {"ms": 2.0}, "fla": {"ms": ms}}} for ms in (8.0, 2.0))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            recurrences.summarize([fast, slow, {"what": "both", "model": "Bamba", "timings": {}}])
        line = "both: 2.00 times the peers' speed, least 1.00, over 2 shapes of "
        self.assertEqual(out.getvalue(), f"{line}{' and '.join(recurrences.MODELS)}\n{line}Bamba\n")

    def test_order(self):
        self.assertEqual([shape[0] for shape in recurrences.GROUPS["models"][:4]], list(recurrences.MODELS))


if __name__ == "__main__":
    unittest.main()
