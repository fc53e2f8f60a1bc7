"""Checks one attention kernel for one shape against float64 on the GPU.

The rule is that of the field's own tests: the largest error may be twice that of PyTorch's computation in
the same precision, plus two units in the last place of a value near 0.3. It must hold against two such
computations: every step in 16 bits, as the field's tests have it, and, which is stricter, f32 throughout but
for P, as a fused kernel works.
"""

import math

import torch

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
NAN = float("nan")
# Elements of NaN behind every row of a head and rows of NaN behind every sequence.
PAD_COLUMNS, PAD_ROWS = 8, 3
# LSE is f32 throughout; what the hardware's exponential and logarithm must be granted, relative to it.
LSE_FLOOR = 1e-5
# How far exponentials by polynomials (tile-polynomial-exp) are off, relative to them, and so the logarithm of their sum.
POLYNOMIAL_ERROR = 1.2e-4
# The soft cap, small enough to bend the scores of the peaked rows.
CAP = 5.0


def padded(batch, heads, length, width, dtype, layout, fill):
    """A [B, H, S, D] view filled with `fill`, and the buffer around it, in which all else is NaN."""
    if layout == "BSHD":
        buffer = torch.full((batch, length + PAD_ROWS, heads, width + PAD_COLUMNS), NAN, dtype=dtype, device="cuda")
        view = buffer[:, :length, :, :width].transpose(1, 2)
    else:
        buffer = torch.full((batch, heads, length + PAD_ROWS, width + PAD_COLUMNS), NAN, dtype=dtype, device="cuda")
        view = buffer[:, :, :length, :width]
    if fill is not None:
        view.copy_(fill)
    return view, buffer


def shape_scores(inputs, q, k):
    """Q and K with scores of some kind. With "last" the scores reach 600."""
    if inputs == "late":  # The large scores of half the heads come in the last fifth of the keys.
        k[:, ::2, k.shape[2] * 4 // 5 :: 5] *= 40
    elif inputs == "last":
        k[:, :, -1] *= 100
    elif inputs == "first":  # An attention sink.
        k[:, :, 0] *= 20
    elif inputs == "wide":
        q = q * 8
    return q, k


class Case:
    """Tensors of one case. `transform` may replace (q, k, v) before they are laid out."""

    def __init__(self, configuration, case, seed, transform=None):
        parameters = configuration["parameters"]
        self.d, self.dv = int(parameters["D"]), int(parameters.get("DV", parameters["D"]))
        self.mask = parameters.get("MASK", "causal" if parameters.get("CAUSAL") == "true" else "none")
        self.softcap = parameters.get("SOFTCAP", "none")
        self.dtype = DTYPES[parameters["T"]]
        self.case, self.scale = case, 1 / math.sqrt(self.d)
        batch, heads, layout = case["batch"], case["heads"], case["layout"]
        generator = torch.Generator(device="cuda").manual_seed(seed)

        def normal(heads, length, width):
            values = torch.randn((batch, heads, length, width), generator=generator, device="cuda")
            return values.to(self.dtype)

        q = normal(heads, case["sq"], self.d)
        k = normal(case["kv_heads"], case["sk"], self.d)
        v = normal(case["kv_heads"], case["sk"], self.dv)
        q[:, :, ::7] *= 4  # Peaked rows, whose maximum moves late, exercise the rescaling.
        k[:, :, ::11] *= 3
        if inputs := case.get("inputs"):
            q, k = shape_scores(inputs, q, k)
        if transform:
            q, k, v = transform(q, k, v)
        self.q, _ = padded(batch, heads, case["sq"], self.d, self.dtype, layout, q)
        self.k, _ = padded(batch, case["kv_heads"], case["sk"], self.d, self.dtype, layout, k)
        self.v, _ = padded(batch, case["kv_heads"], case["sk"], self.dv, self.dtype, layout, v)
        self.o, self.o_buffer = padded(batch, heads, case["sq"], self.dv, self.dtype, layout, None)
        self.lse_buffer = torch.full((batch, heads, case["sq"] + PAD_ROWS), NAN, device="cuda")
        self.lse = self.lse_buffer[:, :, : case["sq"]]
        self.slopes = None
        if parameters.get("ALIBI") == "true":
            self.slopes = torch.exp2(-8 * torch.arange(1, heads + 1, device="cuda") / heads)

    def extra_arguments(self):
        """Those that the parameters of attention_variants.tile add."""
        extra = {"left": self.case["left"], "right": self.case["right"]} if self.mask == "window" else {}
        if self.softcap != "none":
            extra["cap"] = CAP
        if self.slopes is not None:
            extra["slopes"] = self.slopes
        return extra

    def run(self, kernel):
        kernel(q=self.q, k=self.k, v=self.v, o=self.o, lse=self.lse, scale=self.scale, **self.extra_arguments())

    def poison(self):
        self.o_buffer.fill_(NAN)
        self.lse_buffer.fill_(NAN)

    def distances(self):
        """[sq, sk]: each column less the row's own."""
        sq, sk = self.case["sq"], self.case["sk"]
        rows, columns = torch.arange(sq, device="cuda")[:, None], torch.arange(sk, device="cuda")
        return columns - (rows + sk - sq)

    def visible(self):
        """[sq, sk]: which columns each row sees; None when it is all."""
        if self.mask == "none":
            return None
        distances = self.distances()
        if self.mask == "causal":
            return distances <= 0
        left, right = self.case["left"], self.case["right"]
        return ((left < 0) | (distances >= -left)) & ((right < 0) | (distances <= right))

    def modified(self, scores, approximate):
        """The scores with the cap and the slopes; tanh is rounded to 11 bits if `approximate`."""
        if self.softcap != "none":
            scores = (scores / CAP).tanh()
            if approximate and self.softcap == "approx":
                scores = scores.to(torch.float16).to(torch.float32)
            scores = CAP * scores
        if self.slopes is not None:
            slopes = self.slopes.to(scores.dtype)[:, None, None]
            scores = scores - slopes * self.distances().abs().to(scores.dtype)
        return scores

    def reference(self, dtype, round_p=None):
        """(O, LSE) computed by PyTorch in `dtype`, step by step, with P rounded to `round_p` as a fused kernel does."""
        q, k, v = (tensor.to(dtype) for tensor in (self.q, self.k, self.v))
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ (k * self.scale).transpose(-1, -2)
        scores = self.modified(scores, approximate=round_p is not None)
        visible = self.visible()
        if visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        lse = scores.to(torch.float64 if dtype == torch.float64 else torch.float32).logsumexp(-1)
        p = scores.softmax(-1)
        o = (p if round_p is None else p.to(round_p).to(dtype)) @ v
        if visible is not None:
            o = o.masked_fill(~visible.any(-1)[:, None], 0.0)
        return o, lse

    def blind_rows(self):
        """[sq]: which rows see no key."""
        visible = self.visible()
        return torch.zeros(self.case["sq"], dtype=torch.bool, device="cuda") if visible is None else ~visible.any(-1)


def floor(reference, dtype):
    """Two units in the last place of a value near 0.3, as the field's tests have it."""
    rounded = reference.to(dtype)
    return 2 * (rounded + 0.3 - 0.3 - rounded).abs().max().item()


def largest(tensor):
    return tensor.abs().max().item() if tensor.numel() else 0.0


def describe_errors(case, error, limit, out, reference):
    """Where and how O is wrong, in words that tell broken parts of a kernel apart."""
    bad = ~(error <= limit)
    lines = [f"{bad.float().mean().item():.1%} of O is beyond the limit {limit:.3g}"]
    not_written = torch.isnan(out).float().mean().item()
    if not_written:
        lines.append(f"{not_written:.1%} of O is NaN (never written, or computed from padding)")
    names = ("batches", "heads", "rows", "columns")
    for axis, name in enumerate(names):
        others = [i for i in range(4) if i != axis]
        hit = bad.sum(dim=others).nonzero().flatten().tolist()
        total = bad.shape[axis]
        shown = "all" if len(hit) == total else ", ".join(map(str, hit[:12])) + (" ..." if len(hit) > 12 else "")
        lines.append(f"{name} ({len(hit)} of {total}): {shown}")
    b, h, r, c = bad.nonzero()[0].tolist()
    lines.append(
        f"first at batch {b}, head {h}, row {r} (row {r % 64} of 64), column {c}: "
        f"{out[b, h, r, c].item():.6g}, should be {reference[b, h, r, c].item():.6g}"
    )
    finite = torch.isfinite(out)
    if finite.any():
        x, y = out[finite].double(), reference[finite]
        lines.append(f"best factor between result and reference {(x @ y / (y @ y)).item():.4g}, "
                     f"relative error {((x - y).norm() / y.norm()).item():.3g}")  # fmt: skip
    return lines


def check(kernel, configuration, case, seed):
    """(largest share of a limit that was used, lines about what is wrong)."""
    data = Case(configuration, case, seed)
    data.poison()
    data.run(kernel)
    torch.cuda.synchronize()
    exact_o, exact_lse = data.reference(torch.float64)
    stepwise_o, _ = data.reference(data.dtype)
    fused_o, fused_lse = data.reference(torch.float32, round_p=data.dtype)
    blind = data.blind_rows()
    problems = []

    error = (data.o.double() - exact_o).abs()
    peers = (stepwise_o.double(), fused_o.to(data.dtype).double())
    limit = 2 * min(largest(peer - exact_o) for peer in peers) + floor(exact_o, data.dtype)
    # The largest error hides a small one everywhere; the norm does not, and is allowed twice the fused one too.
    norm_limit = (
        2 * (fused_o.to(data.dtype).double() - exact_o).norm() + torch.finfo(data.dtype).eps / 16 * exact_o.norm()
    )
    share = max((error.max() / limit).item(), (error.norm() / norm_limit).item()) if limit else 0.0
    if not bool((error <= limit).all()):
        problems += describe_errors(data, error, limit, data.o, exact_o)
    elif not error.norm() <= norm_limit:
        problems.append(f"the norm of the error of O is {error.norm().item():.3g}, limit {norm_limit.item():.3g}: wrong "
                        "by little in many places")  # fmt: skip

    seen = ~blind
    lse_error = largest(data.lse[..., seen].double() - exact_lse[..., seen])
    lse_limit = 2 * largest(fused_lse[..., seen].double() - exact_lse[..., seen])
    lse_limit += LSE_FLOOR * max(1.0, largest(exact_lse[..., seen]))
    if "polynomial_exp = 0," not in kernel.schedule:
        lse_limit += POLYNOMIAL_ERROR
    if not lse_error <= lse_limit:
        problems.append(f"LSE is off by {lse_error:.3g}, limit {lse_limit:.3g}" + (
            "; O is right, so look at the epilogue of LSE" if not problems else "; so look before P V"))  # fmt: skip
    elif problems:
        problems.append("LSE is right: Q K^T and the softmax are, so look at P V and the epilogue of O")
    if not (data.lse[..., blind] == float("-inf")).all() or not (data.o[..., blind, :] == 0).all():
        problems.append(f"the {int(blind.sum())} rows that see no key must have O = 0 and LSE = -inf exactly")
    problems += check_padding(data)
    return max(share, lse_error / lse_limit), problems


def check_padding(data):
    """Nothing may be written beside O and LSE."""
    problems = []
    sq, heads = data.case["sq"], data.case["heads"]
    for name, buffer, written in (
        ("O", data.o_buffer, data.case["batch"] * heads * sq * data.dv),
        ("LSE", data.lse_buffer, data.case["batch"] * heads * sq),
    ):
        values = int((~torch.isnan(buffer)).sum())
        if values > written:
            problems.append(f"{values - written} elements of the padding around {name} were overwritten")
    return problems


def probes(kernel, configuration, case):
    """Inputs with known answers, tried after a failure; yields lines."""

    def constant_scores(q, k, v):
        return torch.zeros_like(q), k, v

    def ones(q, k, v):
        return q, k, torch.ones_like(v)

    def column_numbers(q, k, v):
        return torch.zeros_like(q), k, torch.arange(v.shape[-1], device="cuda").to(v.dtype).expand_as(v)

    def row_numbers(q, k, v):
        rows = torch.arange(v.shape[-2], device="cuda") % 64
        return q, k, rows.to(v.dtype)[:, None].expand_as(v)

    for name, transform in (
        ("Q = 0, so O is a plain mean of V (wrong: V's load, P V or the epilogue)", constant_scores),
        ("V = 1, so O is 1 (wrong: P and the row sums disagree)", ones),
        ("Q = 0, V = its column number (wrong: columns are permuted or rows of V mixed)", column_numbers),
        ("V = its row number mod 64 (wrong with the others right: Q K^T)", row_numbers),
    ):
        data = Case(configuration, case, 1, transform)
        data.poison()
        data.run(kernel)
        torch.cuda.synchronize()
        exact, _ = data.reference(torch.float64)
        error = (data.o.double() - exact).abs()
        rows = error.amax(dim=(0, 1, 3))
        yield f"probe: {name}: error {error.max().item():.3g}, first rows {[round(x, 3) for x in rows[:4].tolist()]}, " \
              f"O[0, 0, 0, :8] = {[round(x, 4) for x in data.o[0, 0, 0, :8].float().tolist()]}"  # fmt: skip


def repeated_shape(configuration, **more):
    """Two key heads, each with as many heads of queries as a tile has, and four at least."""
    heads = max(8, 2 * int(configuration["parameters"].get("HEADS", 1)))
    return {"batch": 2, "sq": 1111, "sk": 1111, "heads": heads, "kv_heads": 2, "layout": "BSHD", **more}


def check_repetition(kernel, configuration, repetitions, seed):
    """Many launches must give the same bits. Returns lines about what is wrong."""
    shape = repeated_shape(configuration, left=300, right=9)
    data = Case(configuration, shape, seed)
    data.run(kernel)
    o, lse = data.o.clone(), data.lse.clone()
    other = torch.randn(1 << 22, device="cuda")
    differing = torch.zeros((), dtype=torch.int64, device="cuda")
    for i in range(repetitions):
        data.poison()
        if i % 3:
            other.mul_(1.0001)  # Other work in between moves the launches against each other.
        data.run(kernel)
        same = (data.o.contiguous().view(torch.int16) == o.contiguous().view(torch.int16)).all()
        same &= (data.lse.contiguous().view(torch.int32) == lse.view(torch.int32)).all()
        differing += ~same
    count = int(differing)
    return [f"{count} of {repetitions} launches differ from the first: a race"] if count else []


def check_dependent(kernel, configuration, launches, seed):
    """Launches of which each reads what the one before wrote, without a wait on the host between them, must give the
    same bits as with one. Returns lines about what is wrong; nothing where O cannot take the place of Q."""
    shape = repeated_shape(configuration)
    data = Case(configuration, shape, seed)
    if data.d != data.dv:
        return []
    first = data.q.clone()
    results = []
    for wait in (True, False):
        data.q.copy_(first)
        data.poison()
        torch.cuda.synchronize()
        for _ in range(launches):
            data.run(kernel)
            data.q, data.o = data.o, data.q
            if wait:
                torch.cuda.synchronize()
        results.append(data.q.clone())
        if launches % 2:
            data.q, data.o = data.o, data.q
    same = (results[0].contiguous().view(torch.int16) == results[1].contiguous().view(torch.int16)).all()
    return [] if same else [f"{launches} launches that depend on each other differ when they overlap"]
