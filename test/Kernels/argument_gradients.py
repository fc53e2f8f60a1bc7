# RUN: mkdir -p %t
# RUN: %python %s attention_gradients.tile %t
# RUN: %python %s attention_gradients_fixed.tile %t
"""Compares the gradients of what scores ask for, for each way in which it is looked at, with the formulas on the interpreter;
and the formulas with central differences."""

import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from gradients import SCALE, Case, Variant, dot, rows  # noqa: E402
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

STEP = 1e-4
SCORE = "func.func @score(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32) -> f32 {\n"
# Indices, by the letters of the place.
CASTS = "".join(f"  %{letter}i = arith.index_cast %{letter} : i32 to index\n" for letter in "bhqk")


class Views:
    """The views of a score by name, (values, shape), whose elements `look` gives and notes; one may be moved."""

    def __init__(self, views):
        self.views, self.seen, self.moved = views, {}, {}

    def look(self, name, *indices):
        values, shape = self.views[name]
        place = 0
        for index, extent in zip(indices, shape):
            if not 0 <= index < extent:
                return 0.0
            place = place * extent + index
        self.seen[name, place] = True
        return values[place] + self.moved.get((name, place), 0)


class Score:
    """A score with the lines of its function, its views by name, and the same of numbers: bend(views, s, h, q, k, sq, sk)."""

    def __init__(self, lines, bend, shapes, numbers=(), others=(), element="f32"):
        self.lines, self.bend, self.shapes = lines, bend, shapes
        self.numbers, self.others, self.element = dict(numbers), dict(others), element

    def source(self, template):
        names = ", ".join(f'"{name}"' for name in (*self.shapes, *self.numbers))
        return (
            f'$import "{template}"\n{SCORE}{CASTS}{self.lines}}}\n'
            "func.func private @argument_gradients(f32, i32, i32, i32, i32, f32)\n"
            f"    attributes {{tile.gradient_of = @score, tile.with_respect_to = [{names}]}}\n"
        )


def ask(name, dims, element="f32"):
    return f'  %{name} = tile.argument "{name}" : !tile.view<[{dims}], {element}>\n'


def look(result, name, indices, dims, element="f32"):
    return f"  %{result} = tile.load %{name}[{indices}] : !tile.view<[{dims}], {element}> -> {element}\n"


def add(name, dims, indices):
    """A score plus an element of a view."""
    return ask(name, dims) + look("e", name, indices, dims) + "  %y = arith.addf %s, %e : f32\n  func.return %y : f32\n"


SLOPE = (
    ask("slopes", "H") + look("slope", "slopes", "%hi", "H")
    + "  %away = arith.subi %q, %k : i32\n  %away_f32 = arith.sitofp %away : i32 to f32\n"
    "  %distance = math.absf %away_f32 : f32\n  %bias = arith.mulf %distance, %slope : f32\n"
    "  %y = arith.subf %s, %bias : f32\n  func.return %y : f32\n"
)  # fmt: skip
CAP = (
    '  %cap = tile.argument "cap" : f32\n  %x = arith.divf %s, %cap : f32\n  %t = math.tanh %x : f32\n'
    + ask("gate", "B, SK") + look("g", "gate", "%bi, %ki", "B, SK")
    + "  %c = arith.mulf %t, %cap : f32\n  %y = arith.mulf %c, %g : f32\n  func.return %y : f32\n"
)  # fmt: skip
TABLE = (
    ask("table", "H, 17")
    + "  %low = arith.constant -8 : i32\n  %high = arith.constant 8 : i32\n  %away = arith.subi %q, %k : i32\n"
    "  %least = arith.maxsi %away, %low : i32\n  %clamped = arith.minsi %least, %high : i32\n"
    "  %place = arith.addi %clamped, %high : i32\n  %at = arith.index_cast %place : i32 to index\n"
    + look("e", "table", "%hi, %at", "H, 17") + "  %y = arith.addf %s, %e : f32\n  func.return %y : f32\n"
)  # fmt: skip
# Rows by a table of numbers, in the type of the inputs, and one view at two places.
NAMED = (
    ask("kinds", "SQ", "i32") + look("kind", "kinds", "%qi", "SQ", "i32")
    + "  %at = arith.index_cast %kind : i32 to index\n" + ask("gains", "5, H", "bf16")
    + look("g16", "gains", "%at, %hi", "5, H", "bf16") + "  %g = arith.extf %g16 : bf16 to f32\n"
    "  %c1 = arith.constant 1 : index\n" + look("first16", "gains", "%c1, %hi", "5, H", "bf16")
    + "  %first = arith.extf %first16 : bf16 to f32\n  %sum = arith.addf %g, %first : f32\n"
    "  %y = arith.mulf %s, %sum : f32\n  func.return %y : f32\n"
)  # fmt: skip
# What a function that is called asks for.
CALLED = (
    "  %c = func.call @of_row(%h, %q) : (i32, i32) -> f32\n  %y = arith.mulf %c, %s : f32\n  func.return %y : f32\n}\n"
    "func.func @of_row(%h: i32, %q: i32) -> f32 {\n  %hi = arith.index_cast %h : i32 to index\n"
    "  %qi = arith.index_cast %q : i32 to index\n"
    + ask("rows", "H, SQ") + look("e", "rows", "%hi, %qi", "H, SQ") + "  %y = math.exp %e : f32\n  func.return %y : f32\n"
)  # fmt: skip


def clamp(x, low, high):
    return max(low, min(x, high))


def capped(views, s, h, q, k, sq, sk):
    cap = views.look("cap", 0)
    return cap * math.tanh(s / cap) * views.look("gate", 0, k)


def named(views, s, h, q, k, sq, sk):
    return s * (views.look("gains", KINDS[q], h) + views.look("gains", 1, h))


KINDS = [(3 * i + i // 7) % 5 for i in range(64)]
SCORES = {
    "slopes": Score(SLOPE, lambda v, s, h, q, k, *_: s - v.look("slopes", h) * abs(q - k), {"slopes": ("H",)}),
    "cap": Score(CAP, capped, {"gate": ("B", "SK")}, {"cap": 0.75}),
    "queries": Score(CALLED, lambda v, s, h, q, k, *_: s * math.exp(v.look("rows", h, q)), {"rows": ("H", "SQ")}),
    "pairs": Score(add("bias", "H, SQ, SK", "%hi, %qi, %ki"), lambda v, s, h, q, k, *_: s + v.look("bias", h, q, k),
                   {"bias": ("H", "SQ", "SK")}),
    "turned": Score(add("turned", "SK, SQ", "%ki, %qi"), lambda v, s, h, q, k, *_: s + v.look("turned", k, q),
                    {"turned": ("SK", "SQ")}),
    "table": Score(TABLE, lambda v, s, h, q, k, *_: s + v.look("table", h, clamp(q - k, -8, 8) + 8), {"table": ("H", 17)}),
    "named": Score(NAMED, named, {"gains": (5, "H")}, others={"kinds": KINDS}, element="bf16"),
}  # fmt: skip


def make_case(score, heads, kv_heads, sq, sk, d):
    """A case, and its views."""
    extents = {"B": 1, "H": heads, "SQ": sq, "SK": sk}
    given = {}
    for i, (name, dims) in enumerate(score.shapes.items()):
        shape = tuple(extents.get(dim, dim) for dim in dims)
        given[name] = [x / 8 + 0.5 for x in draw(7 + i, *shape)], shape
    given.update({name: ([value], (1,)) for name, value in score.numbers.items()})
    views = Views(given)
    variant = Variant(
        lambda *place: score.bend(views, *place),
        lambda s, *place: (score.bend(views, s + STEP, *place) - score.bend(views, s - STEP, *place)) / (2 * STEP),
        lambda q, k, sq, sk: k <= q + 20,
    )
    return Case(heads, kv_heads, sq, sk, d, d, variant), views


def to_bf16(x):
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]


def find_gradients(case, views, score, rounded=False):
    """The gradients of the views by the formula dS * score', as flat lists; of O as kernels get it if it is `rounded`, to whose
    error sums over many scores are sensitive."""
    found = {name: [0.0] * len(values) for name, (values, _) in views.views.items()}
    v, do = rows(case.v, case.dv), rows(case.do, case.dv)
    outputs = zip(case.forward(case.q, case.k, case.v), case.products(case.q, case.k))
    for i, ((o, _, weights), (h, r, products)) in enumerate(outputs):
        delta = dot([to_bf16(x) for x in o] if rounded else o, do[i]) - case.dlse[i]
        for c, p in weights.items():
            ds = p * (dot(do[i], v[case.first_key(h) + c]) - delta)
            place = products[c], h, r, c, case.sq, case.sk
            views.seen = {}
            score.bend(views, *place)
            for name, index in list(views.seen):
                ends = []
                for sign in (1, -1):
                    views.moved = {(name, index): sign * STEP}
                    ends.append(score.bend(views, *place))
                views.moved = {}
                found[name][index] += ds * (ends[0] - ends[1]) / (2 * STEP)
    return found


def check_formula(score):
    """Some elements, against central differences of the loss."""
    case, views = make_case(score, 2, 1, 5, 7, 4)
    for name, values in find_gradients(case, views, score).items():
        for index in range(0, len(values), 3):
            losses = []
            for sign in (1, -1):
                views.moved = {(name, index): sign * STEP}
                losses.append(case.loss(case.q, case.k, case.v))
            views.moved = {}
            compare(f"d{name} by differences", [values[index]], [(losses[0] - losses[1]) / (2 * STEP)], 1e-6)


def check(name, template, folder, heads, kv_heads, sq, sk, *more):
    score = SCORES[name]
    case, views = make_case(score, heads, kv_heads, sq, sk, 64)
    outputs = list(case.forward(case.q, case.k, case.v))
    tensors = {
        "q": (case.q, (1, heads, sq, 64)), "k": (case.k, (1, kv_heads, sk, 64)), "v": (case.v, (1, kv_heads, sk, 64)),
        "o": ([x for o, _, _ in outputs for x in o], (1, heads, sq, 64)), "do": (case.do, (1, heads, sq, 64)),
        "lse": ([lse for _, lse, _ in outputs], (1, heads, sq)), "dlse": (case.dlse, (1, heads, sq)),
        **{view: views.views[view] for view in score.shapes},
    }  # fmt: skip
    path = f"{folder}/{name}.tile"
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            score.source(template)
            + "func.func @mask(%b: i32, %h: i32, %q: i32, %k: i32) -> i1 {\n  %c = arith.constant 20 : i32\n"
            "  %last = arith.addi %q, %c : i32\n  %seen = arith.cmpi sle, %k, %last : i32\n  func.return %seen : i1\n}\n"
        )
    arguments = [path, "--kernel", "attention_gradients", "-DD=64", "-DDLSE=true", "--set", f"scale={SCALE}"]
    arguments += ["--precision", "exact", *more]
    for tensor, (values, shape) in tensors.items():
        save(f"{folder}/{tensor}.npy", values, shape)
        arguments += ["--input", f"{tensor}={folder}/{tensor}.npy"]
    for other, values in score.others.items():
        save_integers(f"{folder}/{other}.npy", values[:sq], "i32")
        arguments += ["--input", f"{other}={folder}/{other}.npy"]
    for number, value in score.numbers.items():
        arguments += ["--set", f"{number}={value}"]
    expected = {**case.backward(True), **{f"d{view}": values for view, values in find_gradients(case, views, score, rounded=True).items()}}
    for view, (values, shape) in views.views.items():
        save(f"{folder}/d{view}.npy", [0.0] * len(values), shape)
        arguments += ["--input", f"d{view}={folder}/d{view}.npy"]
    for tensor in expected:
        arguments += ["--output", f"{tensor}={folder}/{tensor}.npy"]
    run(*arguments)
    for tensor, values in expected.items():
        # Inputs are rounded to bf16: only O is not exact there.
        compare(f"{name} {template} {more}: {tensor}", load(f"{folder}/{tensor}.npy"), values, 2e-2)


def main(template, folder):
    for score in SCORES.values():
        check_formula(score)
    for name in SCORES:
        check(name, template, folder, 3, 1, 33, 50)
        # The derivative of a cap leaves no registers beside dK and dV.
        if (name, template) != ("cap", "attention_gradients.tile"):
            check(name, template, folder, 2, 2, 50, 33, "--level", "scheduled")


main(*sys.argv[1:])
