# RUN: rm -rf %t && mkdir %t && env TESSERA_LIBRARY=%build/lib %python %s %source/kernels %t
"""`tessera compile --alternatives`: which kernels there are, and the numbers by which a launch chooses."""

import json
import math
import os
import subprocess
import sys
import unittest

EXACT = """
param BM : int = 128 alternatives [128, 192]
param BN : int = $(BM == 192 ? 96 : 64)

tile.kernel @scores(%q: !tile.view<[SQ, 64], f16>, %k: !tile.view<[SK, 64], f16>, %o: !tile.view<[SQ, 64], f16>,
                    %n: i32) grid(%m = SQ ceildiv $BM) {
  %c0 = arith.constant 0 : index
  %bm = arith.constant $BM : index
  %bn = arith.constant $BN : index
  %row = arith.muli %m, %bm : index
  %sk = LAST
  %zero = arith.constant dense<0.0> : tensor<$BMx64xf32>
  %qt = tile.load %q[%row, %c0] : !tile.view<[SQ, 64], f16> -> tensor<$BMx64xf16>
  %sum = scf.for %col = FIRST to %sk step %bn iter_args(%acc = %zero) -> (tensor<$BMx64xf32>) {
    %kt = tile.load %k[%col, %c0] : !tile.view<[SK, 64], f16> -> tensor<$BNx64xf16>
    %t = tile.transpose %kt : tensor<$BNx64xf16> -> tensor<64x$BNxf16>
    %s = tile.dot %qt, %t : tensor<$BMx64xf16>, tensor<64x$BNxf16> -> tensor<$BMx$BNxf32>
    %p = arith.truncf %s : tensor<$BMx$BNxf32> to tensor<$BMx$BNxf16>
    %new = tile.dot %p, %kt, %acc : tensor<$BMx$BNxf16>, tensor<$BNx64xf16> -> tensor<$BMx64xf32>
    scf.yield %new : tensor<$BMx64xf32>
  }
  %r = arith.truncf %sum : tensor<$BMx64xf32> to tensor<$BMx64xf16>
  tile.store %r, %o[%row, %c0] : tensor<$BMx64xf16>, !tile.view<[SQ, 64], f16>
}
"""


def scores(last='tile.dim "SK"', first="%c0"):
    return EXACT.replace("LAST", last).replace("FIRST", first)


class Alternatives(unittest.TestCase):
    def compile(self, source, *arguments, status=0):
        """The bundle, or what the compiler says."""
        if "\n" in source:
            path = os.path.join(DIRECTORY, "source.tile")
            with open(path, "w") as file:
                file.write(source)
        else:
            path = os.path.join(KERNELS, source + ".tile")
        output = os.path.join(DIRECTORY, "out.bundle")
        command = ["tessera", "compile", path, "--ptx", "--alternatives", "-o", output, *arguments]
        process = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(process.returncode, status, process.stderr)
        if status:
            return process.stderr
        with open(output) as file:
            return json.load(file)

    def models(self, bundle):
        """{name: (parameters, model)}"""
        (choice,) = bundle["choices"]
        return {entry["kernel"]: (entry["parameters"], entry["model"]) for entry in choice["alternatives"]}

    def test_kernels(self):
        bundle = self.compile(scores())
        self.assertEqual(bundle["version"], 3)
        self.assertEqual(bundle["parameters"], {"BM": 128, "BN": 64})
        names = ["scores_BM128", "scores_BM192"]
        self.assertEqual([kernel["name"] for kernel in bundle["kernels"]], names)
        self.assertEqual(bundle["choices"][0]["name"], "scores")
        self.assertEqual(bundle["choices"][0]["dims"], ["SQ", "SK"])
        models = self.models(bundle)
        self.assertEqual([parameters for parameters, _ in models.values()], [{"BM": 128, "BN": 64}, {"BM": 192, "BN": 96}])
        for (parameters, model), kernel in zip(models.values(), bundle["kernels"]):
            self.assertEqual(model["iterations"], ["ceildiv", "SK", parameters["BN"]])
            self.assertEqual(model["grid"], [{"extent": "SQ", "divisor": parameters["BM"]}])
            self.assertEqual(model["from"], "estimated")
            self.assertEqual(model["tiles_at_a_time"] % 132, 0)
            self.assertAlmostEqual(model["ends_us"], 3 * model["iteration_us"])
            self.assertIn(parameters["BM"], [entry["box"][1] * 2 for entry in kernel["launch_parameters"][:1]] + [128, 192])
        small, large = (model["iteration_us"] for _, model in models.values())
        # 9/4 of the elements; what the source does not prefer counts a fifth more.
        self.assertAlmostEqual(large / small, 1.2 * 9 / 4, delta=0.3)

    def test_loops(self):
        for last, first, expected in (
            ("arith.addi %row, %bm : index", "%c0", ["add", ["mul", {"grid": 0}, 128], 128]),
            ('tile.dim "SK"', "%row", ["sub", "SK", ["mul", {"grid": 0}, 128]]),
        ):
            bundle = self.compile(scores(last, first))
            _, model = self.models(bundle)["scores_BM128"]
            self.assertEqual(model["iterations"], ["ceildiv", expected, 64])

    def test_what_is_given_has_no_alternatives(self):
        for arguments in (["-DBM=192"], ["-DBM=128"]):
            bundle = self.compile(scores(), *arguments)
            self.assertEqual((bundle["version"], [kernel["name"] for kernel in bundle["kernels"]]), (1, ["scores"]))
        bundle = self.compile("softmax")
        self.assertEqual((bundle["version"], len(bundle["kernels"])), (1, 1))
        bundle = self.compile("attention_fwd", "-DD=192")
        self.assertEqual([kernel["name"] for kernel in bundle["kernels"]], ["attention_fwd"])

    def test_defaults_of_alternatives(self):
        """A parameter of which the default is the only alternative has that of each kernel."""
        source = scores().replace("96 : 64)", "96 : 64) alternatives [$BN]")
        (choice,) = self.compile(source)["choices"]
        self.assertEqual([entry["parameters"]["BN"] for entry in choice["alternatives"]], [64, 96])
        (choice,) = self.compile(source.replace("[$BN]", "[$BN, 32]"))["choices"]
        found = [(entry["parameters"]["BM"], entry["parameters"]["BN"]) for entry in choice["alternatives"]]
        self.assertEqual(found, [(128, 64), (128, 32), (192, 96), (192, 32)])

    def test_alternatives_of_alternatives(self):
        """Those of a parameter are of the values that the parameters before it have."""
        source = scores().replace("96 : 64)", "96 : 64) alternatives [$(BM == 192 ? BN : 32)]")
        bundle = self.compile(source)
        found = {name: parameters["BN"] for name, (parameters, _) in self.models(bundle).items()}
        self.assertEqual(found, {"scores_BM128_BN64": 64, "scores_BM128_BN32": 32, "scores_BM192_BN96": 96})
        self.assertIn("expected a value of kind int, got true",
                      self.compile(source.replace("? BN : 32", "? true : 32"), status=3))  # fmt: skip

    def test_packed_heads(self):
        """At d = 256 heads share a tile with a causal mask, and there are longer steps without one. Tiles of 64 rows are for
        grids of few."""
        for causal, names in (
            ("true", ["HEADS1_BM128", "HEADS1_BM64", "HEADS2_BM128"]),
            ("false", ["BM128_BN64", "BM128_BN80", "BM64_BN64"]),
        ):
            bundle = self.compile("attention_fwd", "-DD=256", f"-DCAUSAL={causal}")
            self.assertEqual([kernel["name"] for kernel in bundle["kernels"]], [f"attention_fwd_{name}" for name in names])

    def test_attention(self):
        of_64 = [f"attention_fwd_BM{rows}" for rows in (256, 192, 128, 64)]
        of_128 = [f"attention_fwd_BM{tile}" for tile in ("128_BN128", "128_BN64", "192_BN64", "64_BN64")]
        packed = [*(name.replace("_BM", "_HEADS1_BM") for name in of_128), "attention_fwd_HEADS2_BM128_BN64"]
        for d, both in ((64, (of_64, of_64)), (128, (of_128, packed))):
            for causal, names in zip(("false", "true"), both):
                models = self.models(self.compile("attention_fwd", f"-DD={d}", f"-DCAUSAL={causal}", "--shape-class=many-short"))
                self.assertEqual(list(models), names)
                self.assertEqual({model["from"] for _, model in models.values()}, {"measured"})
                _, model = models[names[0]]
                self.assertEqual(model["order"], "descending" if causal == "true" else "linear")
                # An iteration of 256 x 64 or of 128 x 128 elements takes about a microsecond.
                self.assertGreater(model["iteration_us"], 0.8)
                self.assertLess(model["iteration_us"], 1.6)
                self.assertLess(model["ends_us"], 6)

    def test_expected_times(self):
        """Of attention, where 256 rows leave much of the GPU idle at the end."""
        # 24 tiles of 256 rows for 17 heads: six heads begin with long tiles when the others are done.
        self.compile("attention_fwd", "-DD=64", "-DCAUSAL=true")
        choice = self.load().choice(B=1, H=17, HK=1, SQ=6144, SK=6144)
        self.assertEqual(choice.name, "attention_fwd_BM192")
        slower = choice.microseconds["attention_fwd_BM256"] / choice.microseconds["attention_fwd_BM192"]
        self.assertGreater(slower, 1.15)

    def test_sequences(self):
        """A kernel whose range is whole, and a sequence of parts and their merge, of which the extents decide."""
        bundle = self.compile("gemm")
        self.assertEqual(bundle["version"], 5)
        names = ["gemm_PART0", "gemm_PART32_parts", "gemm_PART32_merge"]
        self.assertEqual([kernel["name"] for kernel in bundle["kernels"]], names)
        (sequence,) = bundle["sequences"]
        self.assertEqual((sequence["name"], [launch["kernel"] for launch in sequence["launches"]]), ("gemm_PART32", names[1:]))
        whole, divided = bundle["choices"][0]["alternatives"]
        self.assertEqual((whole["kernel"], divided["sequence"]), ("gemm_PART0", "gemm_PART32"))
        self.assertEqual([entry["parameters"]["PART"] for entry in (whole, divided)], [0, 32])
        parts, merge = divided["models"]
        self.assertEqual(parts["iteration_us"], whole["model"]["iteration_us"])
        self.assertEqual(parts["grid"], [*whole["model"]["grid"], {"extent": "PARTS", "divisor": 1}])
        self.assertGreater(parts["ends_us"], whole["model"]["ends_us"])  # which store sums in f32
        self.assertEqual(merge["tiles_at_a_time"], 132)
        choice = self.load()
        self.assertEqual(choice.alternatives, ("gemm_PART0", "gemm_PART32"))
        for extents, name in (
            ((512, 512, 32768), "gemm_PART32"),
            ((512, 512, 1024), "gemm_PART0"),
            ((8192, 8192, 8192), "gemm_PART0"),
        ):
            self.assertEqual(choice.choice(**dict(zip("MNK", extents))).name, name)

    def test_names(self):
        """Entries of different names, whose choice has that of the first."""
        bundle = self.compile(scores().replace("@scores", "@scores$BM"))
        (choice,) = bundle["choices"]
        self.assertEqual(choice["name"], "scores128")
        names = [entry["kernel"] for entry in choice["alternatives"]]
        self.assertEqual([kernel["name"] for kernel in bundle["kernels"]], names)
        self.assertEqual(names, ["scores128_BM128", "scores128_BM192"])

    def test_kernels_without_dots(self):
        """Bytes take time there, of a long row in one block or in several."""
        with open(os.path.join(KERNELS, "softmax.tile")) as file:
            source = file.read().replace("int = 0 in 0..16384 ", "int = 0 in 0..16384 alternatives [0, 4] ")
        source = source.replace('$rules "', f'$rules "{os.path.realpath(KERNELS)}/')
        self.compile(source, "-DD=262144")
        for rows, name in ((8, "softmax_PART4"), (32 * 132, "softmax_PART0")):
            self.assertEqual(self.load().choice(M=rows).name, name)

    def load(self):
        sys.path.insert(0, os.path.join(KERNELS, "..", "python"))
        import tessera

        return tessera.load(os.path.join(DIRECTORY, "out.bundle"))

    def test_refusals(self):
        text = self.compile(scores("arith.index_cast %n : i32 to index"), status=3)
        self.assertIn("error: the length of this loop depends on more than extents and the place of the tile", text)
        two = scores() + scores().split("\n\n", 1)[1].replace("@scores", "@others")
        self.assertIn("alternatives are those of one kernel or sequence, and the source has several; name one with --kernel",
                      self.compile(two, status=3))  # fmt: skip
        self.compile(two, "--kernel", "others")
        text = self.compile(scores(), "--schedule", "consumers=3", status=3)
        self.assertIn("no schedule of this kernel fits", text)
        self.assertIn("note: of kernel 'scores_BM128'", text)

    def test_other_arguments(self):
        """A launch gives all alternatives the same arguments."""
        rule = "; a launch chooses among kernels of the same arguments: use no parameter that has alternatives in them, or"
        source = scores().replace("%o: !tile.view<[SQ, 64], f16>", "%o: !tile.view<[SQ, $(BM == 192 ? 128 : 64)], f16>")
        source = source.replace("f16>, !tile.view<[SQ, 64], f16>", "f16>, !tile.view<[SQ, $(BM == 192 ? 128 : 64)], f16>")
        text = self.compile(source, status=3)
        self.assertIn("source.tile:5:1: error: the alternative with BM = 192 takes %o: '!tile.view<[SQ, 128], f16>', and that "
                      "with BM = 128 %o: '!tile.view<[SQ, 64], f16>'" + rule, text)  # fmt: skip
        self.compile(source, "-DBM=192")
        more = scores().replace("%n: i32) grid", "\n$if BM == 192\n%more: f32,\n$end\n%n: i32) grid")
        self.assertIn("takes %more: 'f32', and that with BM = 128 %n: 'i32'" + rule, self.compile(more, status=3))
        last = scores().replace("%n: i32) grid", "%n: i32\n$if BM == 192\n, %more: f32\n$end\n) grid")
        self.assertIn("takes %more: 'f32', and that with BM = 128 no argument 5" + rule, self.compile(last, status=3))

    def test_too_many(self):
        """Nine kernels of each of twenty parameters would not end."""
        many = "".join(f"param A{i} : int = 1 in 1..9 alternatives [2, 3, 4, 5, 6, 7, 8, 9]\n" for i in range(20))
        source = many + scores()
        text = self.compile(source, status=3)
        self.assertIn("source.tile:3:7: error: with the alternatives of 'A2' there are more than 64 combinations of values, each a "
                      "kernel; name fewer, or give some parameters a value with -D", text)  # fmt: skip
        given = [f"-DA{i}=1" for i in range(20)]
        self.assertEqual(len(self.compile(source, *given)["kernels"]), 2)

    def test_fit(self):
        """Measured times that follow the model give its numbers."""
        plain = self.compile(scores(), "-DBM=128", "--report=json")
        program = plain["kernels"][0]["report"]["tuning"]["program"]
        schedule = plain["kernels"][0]["schedule"].removeprefix("#tile.schedule<").removesuffix(">")
        shapes = [(132 * 128 * 5, 4096), (132 * 128 * 2, 1024), (1000, 640)]
        times = [math.ceil(math.ceil(q / 128) / 132) * (0.5 * k / 64 + 2.25) / 1000 for q, k in shapes]
        entry = {
            "program": program, "kernel": "scores", "gpu": "NVIDIA H200", "class": "many-long",
            "parameters": {"BM": "128", "BN": "64"}, "tuned": [], "schedule": schedule,
            "measured": {"shapes": [{"SQ": q, "SK": k} for q, k in shapes], "ms": times, "model_ms": times, "spread": 0.01,
                         "contestants": 1},
        }  # fmt: skip
        path = os.path.join(DIRECTORY, "database.json")
        database = {"format": "tessera-schedules", "version": 2, "default_gpu": "NVIDIA H200",
                    "gpus": {"NVIDIA H200": {"multiprocessors": 132}}, "entries": [entry]}  # fmt: skip
        for fitted in (True, False):
            with open(path, "w") as file:
                json.dump(database, file)
            for arguments in ([], ["--shape-class", "few-short"]):
                models = self.models(self.compile(scores(), "--database", path, *arguments))
                _, model = models["scores_BM128"]
                self.assertEqual(model["from"], "measured" if fitted else "estimated")
                if fitted and model["tiles_at_a_time"] == 132:
                    self.assertAlmostEqual(model["iteration_us"], 0.5)
                    self.assertAlmostEqual(model["ends_us"], 2.25)
                    _, other = models["scores_BM192"]
                    self.assertAlmostEqual(other["ends_us"] / other["iteration_us"], 4.5)
            # One shape says nothing of the ends.
            for key in ("shapes", "ms", "model_ms"):
                entry["measured"][key] = entry["measured"][key][:1]

    def test_times_of_one_run(self):
        """They are taken as they are; measurements of other runs do not go with them."""
        programs = [
            self.compile(scores(), f"-DBM={rows}", "--report=json")["kernels"][0]["report"]["tuning"]["program"]
            for rows in (128, 192)
        ]
        times = [
            {"program": program, "kernel": "scores", "parameters": {}, "gpu": "NVIDIA H200", "iteration_us": us,
             "ends_us": 4 * us, "shapes": 10, "fit": "own"}
            for program, us in zip(programs, (0.75, 0.875))
        ]  # fmt: skip
        path = os.path.join(DIRECTORY, "database.json")
        for known in (2, 1):
            with open(path, "w") as file:
                json.dump({"format": "tessera-schedules", "version": 2, "default_gpu": "NVIDIA H200",
                           "gpus": {"NVIDIA H200": {"multiprocessors": 132}}, "entries": [], "times": times[:known],
                           "fits": {"own": []}}, file)  # fmt: skip
            models = self.models(self.compile(scores(), "--database", path))
            found = [(model["from"], model["iteration_us"], model["ends_us"]) for _, model in models.values()]
            self.assertEqual(found[:known], [("measured", 0.75, 3.0), ("measured", 0.875, 3.5)][:known])
        self.assertEqual(found[1][0], "estimated")
        self.assertAlmostEqual(found[1][1] * 4, found[1][2])


if __name__ == "__main__":
    KERNELS, DIRECTORY = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
