# RUN: mkdir -p %t
# RUN: %python %s %source/examples %source/kernels %t
"""Compares the examples of attention over lists, of latent attention of few heads, of an indexer's scores, of stick-breaking and
talking-heads attention, of a linear layer's cross-entropy and of routing to an expert with the definition, on the interpreter and
simulated. What no list names, and no length reaches, is NaN."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

NAN, NONE = float("nan"), -math.inf


def parts(values, size):
    return [values[i : i + size] for i in range(0, len(values), size)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def attend(q, keys, values, scale, sink=NONE):
    """Output and LSE, which is without the sink."""
    scores = [scale * dot(q, key) for key in keys]
    highest = max([*scores, sink])
    if highest == NONE:
        return [0.0] * len(q), NONE
    weights = [math.exp(score - highest) for score in scores]
    total = sum(weights) + math.exp(sink - highest)
    out = [sum(w * value[d] for w, value in zip(weights, values)) / total for d in range(len(q))]
    return out, highest + math.log(sum(weights)) if weights else NONE


class Runner:
    def __init__(self, source, folder):
        self.source, self.folder, self.given = source, folder, []

    def give(self, name, values, shape, kind=None):
        path = f"{self.folder}/{name}.npy"
        if kind:
            save_integers(path, values, kind, shape)
        else:
            save(path, values, shape)
        self.given += ["--input", f"{name}={path}"]

    def compare(self, expected, *options):
        """With the flat lists of each name, on both devices."""
        outputs = [word for name in expected for word in ("--output", f"{name}={self.folder}/{name}.npy")]
        for device, tolerance in (("interp", 4e-3), ("sim", 2e-2)):
            exact = ["--precision", "exact"] if device == "interp" else []
            run(self.source, *self.given, *outputs, *options, "--device", device, *exact)
            for name, values in expected.items():
                compare(f"{self.source}: {name} of {device}", load(f"{self.folder}/{name}.npy"), values, tolerance)


def check_scores(examples, folder):
    tokens, heads, keys, d = 2, 5, 131, 128
    q, k, w = draw(1, tokens, heads, d), draw(2, keys, d), draw(3, tokens, heads)
    runner = Runner(f"{examples}/indexer_scores.tile", folder)
    for name, values, shape in (("q", q, (tokens, heads, d)), ("k", k, (keys, d)), ("w", w, (tokens, heads))):
        runner.give(name, values, shape)
    of_heads = parts(q, d)
    runner.compare(
        {
            "scores": [
                sum(w[t * heads + h] * max(dot(of_heads[t * heads + h], key), 0.0) for h in range(heads))
                for t in range(tokens)
                for key in parts(k, d)
            ]
        }
    )


def make_cache(seed, rows, d, named):
    cache = parts(draw(seed, rows, d), d)
    return [row if i in named else [NAN] * d for i, row in enumerate(cache)]


def check_lists(examples, folder):
    tokens, heads, d, scale = 3, 3, 512, 0.05
    # The second query has rows of the second list alone, and the third one none.
    lists = {
        "in_window": (9, [[4, 7, -1, 7, 9, 0, 3, 2**31 - 1], [-1] * 8, [-5] * 8]),
        "chosen": (70, [[i * 3 % 70 for i in range(68)], [1, 0, -(2**31), 69, *[70] * 64], [-1] * 68]),
    }
    q, sinks = draw(1, tokens, heads, d), [NONE, 0.5, 20.0]
    runner = Runner(f"{examples}/two_lists.tile", folder)
    runner.give("q", q, (tokens, heads, d))
    runner.give("sinks", sinks, (heads,))
    seen = [[] for _ in range(tokens)]
    for (name, (rows, numbers)), cache_name, seed in zip(lists.items(), ("window", "compressed"), (4, 5)):
        cache = make_cache(seed, rows, d, {number for own in numbers for number in own})
        runner.give(cache_name, [x for row in cache for x in row], (rows, d))
        runner.give(name, [number for own in numbers for number in own], [tokens, len(numbers[0])], "i32")
        for own, found in zip(numbers, seen):
            found += [cache[number] for number in own if 0 <= number < rows]
    results = [attend(x, seen[i // heads], seen[i // heads], scale, sinks[i % heads]) for i, x in enumerate(parts(q, d))]
    expected = {"o": [x for out, _ in results for x in out], "lse": [lse for _, lse in results]}
    runner.compare(expected, "--set", f"scale={scale}")


def check_blocks(examples, kernels, folder):
    tokens, key_heads, group, keys, d, scale, seen = 2, 2, 3, 200, 128, 0.1, 140
    # Two sets: of chosen blocks, one of which lies behind the query, and of a window.
    blocks = [
        [[[0, 3, -1], [-1, 7, 7]], [[1, -2, 99], [0, 1, -1]]],
        [[[2, -1, 0], [2, 1, -1]], [[2, -1, -1], [2, -1, -1]]],
    ]
    q = draw(1, tokens, key_heads, group, d)
    k, v = draw(2, key_heads, keys, d), draw(3, key_heads, keys, d)
    runner = Runner(f"{examples}/listed_blocks.tile", folder)
    runner.give("q", q, (tokens, key_heads, group, d))
    runner.give("k", k, (key_heads, keys, d))
    runner.give("v", v, (key_heads, keys, d))
    flat = [number for own in blocks for of_token in own for of_head in of_token for number in of_head]
    runner.give("blocks", flat, [2 * tokens, key_heads, 3], "i32")

    def keys_of(sets, t, hk):
        found = []
        for own in sets:
            numbers = own[t][hk]
            for number in numbers[: next((i for i, number in enumerate(numbers) if number < 0), 3)]:
                found += [key for key in range(64 * number, 64 * number + 64) if key < keys and key <= seen + t]
        return found

    def expect(sets):
        outs, lses = [], []
        for t in range(tokens):
            for i in range(key_heads * group):
                hk = i // group
                own = keys_of(sets, t, hk)
                of_head = [[parts(x, d)[hk * keys + key] for key in own] for x in (k, v)]
                out, lse = attend(parts(q, d)[t * key_heads * group + i], *of_head, scale)
                outs += out
                lses.append(lse)
        return outs, lses

    each = [expect([own]) for own in blocks]
    expected = {"o": each[0][0] + each[1][0], "lse": each[0][1] + each[1][1]}
    runner.compare(expected, "--set", f"scale={scale}", "--set", f"seen={seen}")

    # Both sets joined: parts are [B, ROWS, P, DV], with a token for each B.
    rows = key_heads * group
    of_sets = [parts(own, d) for own, _ in each]
    join = Runner(f"{kernels}/merge_states.tile", folder)
    joined = [x for i in range(tokens * rows) for of_set in of_sets for x in of_set[i]]
    join.give("parts", joined, (tokens, rows, 2, d))
    join.give("lses", each[0][1] + each[1][1], (2, tokens, rows, 1))
    outs, lses = expect(blocks)
    join.compare({"o": outs, "lse": lses}, "-DD=128", "-DBP=4")


def check_sticks(examples, folder):
    heads, tokens, d, scale = 2, 131, 64, 0.05
    rows = [parts(draw(seed, heads, tokens, d), d) for seed in (1, 2, 3)]
    runner = Runner(f"{examples}/stick_breaking.tile", folder)
    for name, own in zip("qkv", rows):
        runner.give(name, [x for row in own for x in row], (1, heads, tokens, d))
    outs, left = [], []
    for h in range(heads):
        q, k, v = (own[h * tokens :][:tokens] for own in rows)
        for i in range(tokens):
            out, rest = [0.0] * d, 1.0
            for j in reversed(range(i)):
                share = rest / (1 + math.exp(-scale * dot(q[i], k[j])))
                out = [x + share * y for x, y in zip(out, v[j])]
                rest -= share
            outs += out
            left.append(math.log(rest))
    runner.compare({"o": outs, "left": left}, "--set", f"scale={scale}")


def check_cross_entropy(examples, folder):
    rows, columns, depth = 70, 300, 96
    x, w = ([number / 4 for number in draw(seed, extent, depth)] for seed, extent in ((1, rows), (2, columns)))
    labels = [(i * 37) % columns for i in range(rows - 2)] + [-1, columns]
    runner = Runner(f"{examples}/linear_cross_entropy.tile", folder)
    runner.give("x", x, (rows, depth))
    runner.give("w", w, (columns, depth))
    runner.give("labels", labels, None, "i32")
    logits = [[dot(a, b) for b in parts(w, depth)] for a in parts(x, depth)]
    lses = [max(row) + math.log(sum(math.exp(z - max(row)) for z in row)) for row in logits]
    losses = [lse - row[label] if 0 <= label < columns else 0.0 for lse, row, label in zip(lses, logits, labels)]
    runner.compare({"lse": lses, "loss": losses})


def check_routing(examples, folder):
    tokens, depth, experts = 70, 96, 64
    x, w = draw(1, tokens, depth), draw(2, depth, experts)
    # The last experts have the scores of the first ones.
    columns = [w[e::experts] for e in range(experts // 2)] * 2
    runner = Runner(f"{examples}/top_expert.tile", folder)
    runner.give("x", x, (tokens, depth))
    runner.give("w", [column[i] for i in range(depth) for column in columns], (depth, experts))
    scores = [[dot(row, column) for column in columns] for row in parts(x, depth)]
    gates = [1 / sum(math.exp(score - max(row)) for score in row) for row in scores]
    runner.compare({"experts": [row.index(max(row)) for row in scores], "gates": gates})


def check_talking_heads(examples, folder):
    heads, tokens, d, scale = 2, 70, 64, 0.05
    q, k, v = ([parts(own, d) for own in parts(draw(seed, heads, tokens, d), tokens * d)] for seed in (1, 2, 3))
    pre, post = [[0.75, -0.5], [0.25, 1.0]], [[1.0, 0.5], [-0.25, 0.5]]
    runner = Runner(f"{examples}/talking_heads.tile", folder)
    for name, own in zip("qkv", (q, k, v)):
        runner.give(name, [x for head in own for row in head for x in row], (1, heads, tokens, d))
    runner.give("pre", [x for row in pre for x in row], (heads, heads))
    runner.give("post", [x for row in post for x in row], (heads, heads))
    out = []
    for i in range(tokens):
        scores = [[scale * dot(q[f][i], key) for key in k[f]] for f in range(heads)]
        weights = []
        for g in range(heads):
            mixed = [math.exp(sum(pre[f][g] * scores[f][j] for f in range(heads))) for j in range(tokens)]
            weights.append([x / sum(mixed) for x in mixed])
        for h in range(heads):
            own = [sum(post[g][h] * weights[g][j] for g in range(heads)) for j in range(tokens)]
            out.append([sum(w * row[x] for w, row in zip(own, v[h])) for x in range(d)])
    runner.compare({"o": [x for h in range(heads) for row in out[h::heads] for x in row]}, "--set", f"scale={scale}")


def main(examples, kernels, folder):
    check_talking_heads(examples, folder)
    check_routing(examples, folder)
    check_sticks(examples, folder)
    check_cross_entropy(examples, folder)
    check_scores(examples, folder)
    check_lists(examples, folder)
    check_blocks(examples, kernels, folder)


main(*sys.argv[1:])
