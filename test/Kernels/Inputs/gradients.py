"""The gradients of attention by their formulas, and kernels against them, on the interpreter."""

import math

from reference import compare, draw, load, run, save

SCALE = 0.125


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def rows(values, width):
    return [values[start : start + width] for start in range(0, len(values), width)]


class Variant:
    """What a score becomes, its derivative, and which keys a query sees: functions of (score, h, q, k) and of (q, k),
    for attention of SQ queries and SK keys."""

    def __init__(self, score=None, slope=None, mask=None):
        self.score = score or (lambda s, h, q, k, sq, sk: s)
        self.slope = slope or (lambda s, h, q, k, sq, sk: 1.0)
        self.mask = mask or (lambda q, k, sq, sk: True)


FULL, CAUSAL = Variant(), Variant(mask=lambda q, k, sq, sk: k <= q + sk - sq)


class Case:
    """Attention of one batch: queries of `heads`, keys and values of `kv_heads`."""

    def __init__(self, heads, kv_heads, sq, sk, d, dv, variant):
        self.heads, self.kv_heads, self.sq, self.sk, self.d, self.dv = heads, kv_heads, sq, sk, d, dv
        self.variant = variant
        self.q, self.k, self.v = draw(0, heads, sq, d), draw(1, kv_heads, sk, d), draw(2, kv_heads, sk, dv)
        self.do, self.dlse = draw(3, heads, sq, dv), draw(4, heads, sq)

    def products(self, q, k):
        """For each query its head, its number, and the scaled products with the keys that it sees, by key."""
        q, k = rows(q, self.d), rows(k, self.d)
        for h in range(self.heads):
            first = self.first_key(h)
            for r in range(self.sq):
                seen = [c for c in range(self.sk) if self.variant.mask(r, c, self.sq, self.sk)]
                yield h, r, {c: SCALE * dot(q[h * self.sq + r], k[first + c]) for c in seen}

    def first_key(self, h):
        return h // (self.heads // self.kv_heads) * self.sk

    def forward(self, q, k, v):
        """The rows of O, LSE and the weights of each query, by key."""
        v = rows(v, self.dv)
        for h, r, products in self.products(q, k):
            place = self.sq, self.sk
            scores = {c: self.variant.score(s, h, r, c, *place) for c, s in products.items()}
            top = max(scores.values(), default=0)
            total = sum(math.exp(s - top) for s in scores.values())
            weights = {c: math.exp(s - top) / total for c, s in scores.items()}
            o = [sum(w * v[self.first_key(h) + c][j] for c, w in weights.items()) for j in range(self.dv)]
            yield o, top + math.log(total) if scores else -math.inf, weights

    def loss(self, q, k, v):
        """What has the gradients dO and dLSE."""
        outputs = zip(self.forward(q, k, v), rows(self.do, self.dv), self.dlse)
        return sum(dot(o, do) + (lse * dlse if weights else 0) for (o, lse, weights), do, dlse in outputs)

    def backward(self, has_dlse):
        """dQ, dK and dV as flat lists."""
        dq, dk, dv = [0.0] * len(self.q), [0.0] * len(self.k), [0.0] * len(self.v)
        q, k, v, do = rows(self.q, self.d), rows(self.k, self.d), rows(self.v, self.dv), rows(self.do, self.dv)
        outputs = zip(self.forward(self.q, self.k, self.v), self.products(self.q, self.k))
        for i, ((o, _, weights), (h, r, products)) in enumerate(outputs):
            delta = dot(o, do[i]) - (self.dlse[i] if has_dlse else 0)
            for c, p in weights.items():
                key = self.first_key(h) + c
                slope = self.variant.slope(products[c], h, r, c, self.sq, self.sk)
                ds = SCALE * p * (dot(do[i], v[key]) - delta) * slope
                for j in range(self.d):
                    dq[i * self.d + j] += ds * k[key][j]
                    dk[key * self.d + j] += ds * q[i][j]
                for j in range(self.dv):
                    dv[key * self.dv + j] += p * do[i][j]
        return {"dq": dq, "dk": dk, "dv": dv}


def check_formulas(variant):
    """Some elements of each gradient, against central differences."""
    case, step = Case(2, 1, 5, 7, 4, 4, variant), 1e-4
    gradients = case.backward(True)
    for name, values in (("q", case.q), ("k", case.k), ("v", case.v)):
        for index in range(0, len(values), 3):
            losses = []
            for sign in (1, -1):
                moved = list(values)
                moved[index] += sign * step
                losses.append(case.loss(**{"q": case.q, "k": case.k, "v": case.v, name: moved}))
            difference = (losses[0] - losses[1]) / (2 * step)
            compare(f"d{name} by differences", [gradients[f"d{name}"][index]], [difference], 1e-6)


def check(kernel, folder, heads, kv_heads, sq, sk, d, dv, variant, has_dlse, *more):
    """Compares dQ, dK and dV of a kernel with the formulas; `more` are arguments of tessera run."""
    case = Case(heads, kv_heads, sq, sk, d, dv, variant)
    outputs = list(case.forward(case.q, case.k, case.v))
    tensors = {
        "q": (case.q, (1, heads, sq, d)), "k": (case.k, (1, kv_heads, sk, d)), "v": (case.v, (1, kv_heads, sk, dv)),
        "o": ([x for o, _, _ in outputs for x in o], (1, heads, sq, dv)), "do": (case.do, (1, heads, sq, dv)),
        "lse": ([lse for _, lse, _ in outputs], (1, heads, sq)),
    }  # fmt: skip
    if has_dlse:
        tensors["dlse"] = case.dlse, (1, heads, sq)
    arguments = [kernel, f"-DD={d}", f"-DDV={dv}", f"-DDLSE={str(has_dlse).lower()}"]
    arguments += [*more, "--set", f"scale={SCALE}", "--precision", "exact"]
    for name, (values, shape) in tensors.items():
        save(f"{folder}/{name}.npy", values, shape)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    for name in ("dq", "dk", "dv"):
        arguments += ["--output", f"{name}={folder}/{name}.npy"]
    run(*arguments)
    what = f"H={heads} HK={kv_heads} SQ={sq} SK={sk} D={d} DV={dv} DLSE={has_dlse} {' '.join(more)}"
    for name, expected in case.backward(has_dlse).items():
        # Inputs are rounded to bf16: only O is not exact there.
        compare(f"{what}: {name}", load(f"{folder}/{name}.npy"), expected, 2e-2)
