# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Masks and functions of scores of usual models: traced, and evaluated by the interpreter on all pairs of indices."""

import functools
import re
import subprocess
import tempfile
import unittest
import unittest.mock

import problems
import torch
from torch.nn.attention.flex_attention import and_masks, or_masks

import tessera
from tessera import Program, TraceError
from tessera._attention import _variants
from tessera._compiler import _compile
from tessera.torch import _captured, attention

B, H, S = 2, 2, 24  # Tokens are a picture of 4 x 6, or 4 frames of 6.
WIDTH, FRAME = 6, 6
_generator = torch.Generator().manual_seed(5)


def _draw(*shape):
    return torch.randn(shape, generator=_generator)


window, tile = 5, 2
lengths = torch.tensor([9, 21])
doc = torch.tensor([0] * 7 + [1] * 4 + [2] * 13)
starts = torch.tensor([0, 7, 11])
sequence = torch.stack([doc, doc.flip(0)]).to(torch.int32)
is_global = torch.arange(S) % 9 == 4
ancestors = torch.rand(S, S, generator=_generator) < 0.4
first_image, last_image = torch.arange(S) // 8, torch.arange(S) // 5
x_of = torch.arange(S, dtype=torch.int32) % WIDTH
slopes = torch.tensor([0.5, 0.25])
distances = torch.randint(0, 9, (S, S), generator=_generator)
table, table_of_heads, bias = _draw(2 * S), _draw(9, H), _draw(S, S).to(torch.bfloat16)
gains = _draw(H).to(torch.float16)
rotated = _draw(S, 4)
offset = torch.tensor(3)


def causal(b, h, q, k):
    return q >= k


def sliding(b, h, q, k):
    return (q - k <= window) & (q >= k)


def prefix_lm(b, h, q, k):
    return (k < lengths[b]) | (q >= k)


def spatial(b, h, q, k):
    return abs(q // FRAME - k // FRAME) <= 1


def sinks_or_window(b, h, q, k):
    return or_masks(lambda b, h, q, k: k < 3, sliding)(b, h, q, k) & causal(b, h, q, k)


def chunked(b, h, q, k):
    return (k - lengths[b]) // 4 == (q - lengths[b]) // 4


def padding(b, h, q, k):
    return torch.logical_and(k < lengths[b], q < lengths[b])


def packed(b, h, q, k):
    return (k >= starts[doc[q]]) & (k <= q)


def shared_prefix(b, h, q, k):
    return (k < 4) | ((q - 4) // 5 == (k - 4) // 5)


def documents(b, h, q, k):
    return doc[q] == doc[k]


def documents_of_batches(b, h, q, k):
    return (sequence[b][q] == sequence[b, k]) & (q >= k)


def dilated(b, h, q, k):
    return ((q - k).abs() <= 3 * window) & ((q - k) % 3 == 0)


def batchified(b, h, q, k):
    return (q // 8 == k // 8) & (q % 8 >= k % 8)


def sliding_tiles(b, h, q, k):
    tile_q, tile_k = ((i // WIDTH // tile, i % WIDTH // tile) for i in (q, k))
    return ((tile_q[0] - tile_k[0]).abs() <= 1) & (abs(tile_q[1] - tile_k[1]) <= 1)


def sliding_tiles_3d(b, h, q, k):
    near = q.new_ones((), dtype=torch.bool)
    for step, extent, reach in ((12, 2, 1), (6, 2, 0), (1, 6, 2)):
        near = near & ((q // step % extent - k // step % extent).abs() <= reach)
    return near


def tree(b, h, q, k):
    return ancestors[q, k]


def block_causal_drafts(b, h, q, k):
    clean, block = k < S // 2, (q - S // 2) // 3
    return torch.where(q < S // 2, clean & (q >= k), clean & (k // 3 < block) | (~clean & ((k - S // 2) // 3 == block)))


def neighbourhood(b, h, q, k):
    (row, column), (row_k, column_k) = ((i // WIDTH, i % WIDTH) for i in (q, k))
    middle_row, middle_column = row.clamp(1, S // WIDTH - 2), torch.clamp(column, min=1, max=WIDTH - 2)
    return torch.maximum((middle_row - row_k).abs(), (middle_column - column_k).abs()) <= 1


def global_tokens(b, h, q, k):
    return is_global[q] | is_global[k] | (abs(q - k) < window)


def cross_attention(b, h, q, k):
    return first_image[q] >= last_image[k]


def last_picture(b, h, q, k):
    return torch.eq(first_image[q], last_image[k]) & ~torch.bitwise_and(q, 1).bool()


def block_diffusion(b, h, q, k):
    noisy_q, noisy_k = q < 12, k < 12
    block_q, block_k = q % 12 // 4, k % 12 // 4
    same = (block_q == block_k) & (noisy_q == noisy_k)
    return same | (noisy_q & ~noisy_k & (block_q > block_k)) | (~noisy_q & ~noisy_k & (block_q >= block_k))


def temporal(b, h, q, k):
    return torch.remainder(q - k + 1, FRAME) <= 2


def tiled_neighbourhood(b, h, q, k):
    def place(i):
        return i // 12 * 2 + i % 4 // 2, i % 12 // 4 * 2 + i % 2

    (row, column), (row_k, column_k) = place(q), place(k)
    return torch.max((row - row_k).abs(), (column - column_k).abs()) <= 1


def morton(b, h, q, k):
    def gather_bits(i):
        return (i & 1) | ((i >> 1) & 2) | ((i >> 2) & 4)

    return (abs(gather_bits(q) - gather_bits(k)) <= 1) & ((gather_bits(q >> 1) ^ gather_bits(k >> 1)) < 2)


def moved_causal(b, h, q, k):
    return q + offset >= k


def alibi(score, b, h, q, k):
    return score - slopes[h] * (q - k).abs()


def soft_cap(score, b, h, q, k):
    return 2.5 * torch.tanh(score / 2.5)


def relative_table(score, b, h, q, k):
    return score + table[q - k + S]


def full_bias(score, b, h, q, k):
    return score + bias[q, k]


def table_by_distance(score, b, h, q, k):
    return score + table_of_heads[distances[q, k], h]


def gain_by_column(score, b, h, q, k):
    return score * torch.exp2(-(h + 1.0)) + gains[h].float() * x_of[k]


def infinite_where_not_causal(score, b, h, q, k):
    return torch.where(q >= k, score, -float("inf"))


def logarithmic(score, b, h, q, k):
    return torch.log(torch.sigmoid(score) ** 2 + 1e-3).to(score.dtype)


def stick_breaking(score, b, h, q, k):
    return score - torch.nn.functional.softplus(score) + score.new_zeros(())


def rotary(score, b, h, q, k):
    return score + (rotated[q] * rotated[k]).sum()


def branching(score, b, h, q, k):
    return score if q >= k else score * 0.5


MASKS = (
    causal, sliding, prefix_lm, spatial, sinks_or_window, chunked, padding, packed, shared_prefix, documents,
    documents_of_batches, dilated, batchified, sliding_tiles, sliding_tiles_3d, tree, block_causal_drafts, neighbourhood,
    global_tokens, cross_attention, last_picture, block_diffusion, temporal, tiled_neighbourhood, morton, moved_causal,
    and_masks(causal, documents),
)  # fmt: skip
SCORES = (
    alibi, soft_cap, relative_table, full_bias, table_by_distance, gain_by_column, infinite_where_not_causal, logarithmic,
    stick_breaking,
)  # fmt: skip

EVALUATE = """
!Scores = !tile.view<[B, H, SQ, SK], f32>
tile.kernel @evaluate(%scores: !Scores, %out: !Scores) grid(%k = SK ceildiv 1, %q = SQ ceildiv 1, %h = H ceildiv 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batches = tile.dim "B"
  %hi = arith.index_cast %h : index to i32
  %qi = arith.index_cast %q : index to i32
  %ki = arith.index_cast %k : index to i32
  scf.for %b = %c0 to %batches step %c1 {
    %bi = arith.index_cast %b : index to i32
    %s = tile.load %scores[%b, %h, %q, %k] : !Scores -> f32
    CALL
    %tile = tile.splat %y : f32 -> tensor<1xf32>
    tile.store %tile, %out[%b, %h, %q, %k] : tensor<1xf32>, !Scores
  }
}
"""
CALL_SCORE = "%y = func.call @score(%s, %bi, %hi, %qi, %ki) : (f32, i32, i32, i32, i32) -> f32"
CALL_MASKS = """%by_place = func.call @mask(%bi, %hi, %qi, %ki) : (i32, i32, i32, i32) -> i1
    %by_data = func.call @mask_by_data(%bi, %hi, %qi, %ki) : (i32, i32, i32, i32) -> i1
    %seen = arith.andi %by_place, %by_data : i1
    %y = arith.uitofp %seen : i1 to f32"""
ABSENT = """
func.func @{}(%b: i32, %h: i32, %q: i32, %k: i32) -> i1 {{
  %all = arith.constant true
  func.return %all : i1
}}
"""


def _trace(score_mod, mask_mod):
    """What is written for a function, whether or not a kernel can be compiled from it."""
    tessera._functions._captured.answer.cache_clear()
    with unittest.mock.patch.object(tessera.Variant, "check"):
        return _captured.find(torch.device("cpu"), score_mod, (), mask_mod, ())


def _evaluate(kind, function, scores):
    """The function of each score and its place by the interpreter."""
    written, found = _trace(*((function, None) if kind == "score" else (None, function)))
    # The functions alone: not the template, and what is set of its parameters.
    body = written.source[written.source.index("func.func") :]
    if kind == "mask":
        body += "".join(ABSENT.format(name) for name in ("mask", "mask_by_data") if f"@{name}(" not in body)
    given = _captured.name_given(*_captured.list_given(written, found), written.names)
    out = torch.empty_like(scores)
    Program(body + EVALUATE.replace("CALL", CALL_SCORE if kind == "score" else CALL_MASKS))(scores=scores, out=out, **given)
    return out


class Catalogue(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.scores = torch.randn(B, H, S, S, generator=torch.Generator().manual_seed(1)) * 3

    def test_count(self):
        self.assertGreaterEqual(len(MASKS) + len(SCORES), 33)

    def test_masks(self):
        for mask in MASKS:
            with self.subTest(mask.__name__):
                want = problems.look(mask, self.scores.shape)
                self.assertTrue(want.any() and not want.all())
                self.assertTrue(torch.equal(_evaluate("mask", mask, self.scores).bool(), want))

    def test_scores(self):
        for score in SCORES:
            with self.subTest(score.__name__):
                doubles = self.scores.double()
                exact, rounded = (problems.look(score, scores.shape, scores) for scores in (doubles, self.scores))
                got = _evaluate("score", score, self.scores)
                finite = exact.isfinite()
                self.assertTrue(torch.equal(got[~finite].double(), exact[~finite]))
                error, unit = ((x.double() - exact)[finite].abs().max().item() for x in (got, rounded))
                self.assertLessEqual(error, 2 * unit + torch.finfo(torch.float32).eps * exact[finite].abs().max().item())

    def test_attention(self):
        """The same as kernels."""
        q, k, v = problems.make(batch=B, heads=H, kv_heads=H, rows=S, keys=S, dtype=torch.float16)
        for function in (*MASKS, *SCORES):
            named = {"mask_mod" if function in MASKS else "score_mod": function}
            with self.subTest(function.__name__):
                problems.assert_close(self, attention(q, k, v, **named), problems.exact_mods(q, k, v, **named)[0])

    def test_simulator(self):
        """The kernels that are compiled, on other numbers, beside the interpreter."""
        for function in (*MASKS, *SCORES):
            with self.subTest(function.__name__), tempfile.NamedTemporaryFile("w", suffix=".tile") as file:
                written, _ = _trace(*((None, function) if function in MASKS else (function, None)))
                file.write(written.source)
                file.flush()
                extents = dict.fromkeys((*re.findall(r"N\d+_\d+", written.source), "SQ", "SK"), 48)
                shape = ",".join(f"{name}={extent}" for name, extent in {"B": 1, "H": 2, "HK": 1, **extents}.items())
                scalars = {"scale": 0.125, **dict.fromkeys(re.findall(r'argument "(\w+)" : i32', written.source), 5)}
                given = [text for name, value in scalars.items() for text in ("--set", f"{name}={value}")]
                tiles = ["-D", "D=64", "-D", "BM=128", "-D", "BN=96"]  # What a table of tables leaves registers for.
                command = ["tessera", "run", file.name, *tiles, "--shape", shape, *given, "--device", "sim"]
                run = subprocess.run([*command, "--check", "--seeds", "1"], capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stdout.count(": ok")), (0, 2), run.stderr)

    def test_by_elements(self):
        """What takes too many registers at once is worked through element by element, with the usual tiles."""
        written, _ = _trace(table_by_distance, None)
        compile_ptx = functools.partial(_compile.compile, image="ptx", cache=False)
        with unittest.mock.patch.object(_compile, "compile", compile_ptx):
            kernel = _variants.Variant(written.source, "f16", 64, 64, False, True).compile("many-long")
        self.assertIn("work = elements", kernel.description["schedule"])
        self.assertEqual((kernel.parameters["BM"], kernel.parameters["BN"]), (192, 80))

    def test_refusals(self):
        q, k, v = problems.make(batch=B, heads=H, rows=S, keys=S)
        reasons = {rotary: "'rotated' has 2 dimensions and is used with 1", branching: "a condition on a traced value"}
        for function, reason in reasons.items():
            with self.subTest(function.__name__), self.assertRaisesRegex(TraceError, f"catalogue.py:[0-9]+: .*{reason}"):
                attention(q, k, v, score_mod=function)


if __name__ == "__main__":
    unittest.main()
