"""Checks kernels that are not attention on the GPU against f64: softmax, norms, products with a divided contraction (in one
kernel and in two), of 8-bit numbers with scales, A B C, A^T A, rows by number and products of such rows, and rounding to 8
bits. Errors are at most twice those of PyTorch in the kernel's types, plus units of the last place (16 bits) or 1e-5 of the
largest result (f32).

    kernels_check.py [--bundles DIR] [--quick] [--only NAME,...]
    kernels_check.py --list FILE           the kernels, for build_bundles.py --groups= --extra FILE

Around each tensor there is NaN: rows before and behind, columns behind each row, and results before. It may neither be read
nor overwritten. Extents are odd, below, at and above those of tiles.
"""

import argparse
import functools
import itertools
import json
import sys

import attention_check
import cases
import kernels
import torch

TYPES = {
    "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
    "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2,
}  # fmt: skip
#: The largest number of a type of 8 bits, and rows of a block with one scale.
LARGEST, BLOCK = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}, 64
NAN = float("nan")
EPS = 1e-5


class Tensor:
    """A view in memory that is NaN around it."""

    def __init__(self, shape, dtype, values=None):
        *outer, rows, columns = shape
        self.buffer = torch.full((*outer, rows + 2, (columns + 23) // 16 * 16), NAN, device="cuda").to(dtype)
        self.view = self.buffer[..., 1 : rows + 1, :columns]
        if values is not None:
            self.view.copy_(values.reshape(shape))

    def count_written_around(self):
        """The elements around the view that are no NaN any more."""
        around = self.buffer.float().isnan()
        around[..., 1:-1, : self.view.shape[-1]] = True
        return int((~around).sum())


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, device="cuda").to(dtype)


def compare(name, result, exact, same):
    """Lines about what is wrong, and the share of the limit that is used. `same` is PyTorch's in the kernel's types."""
    view = result.view
    problems, finite = [], exact.isfinite()
    if not torch.equal(view.isnan(), exact.isnan()):
        problems.append(f"{name}: {view.isnan().float().mean():.1%} is NaN, and {exact.isnan().float().mean():.1%} should be")
    own, theirs = ((x.double() - exact)[finite] for x in (view, same))
    wide = view.dtype == torch.float32
    last = 1e-5 * attention_check.largest(exact[finite]) if wide else attention_check.floor(exact[finite], view.dtype)
    error, limit = attention_check.largest(own), 2 * attention_check.largest(theirs) + last
    if not error <= limit:
        place = int((view.double() - exact).abs().nan_to_num(0).flatten().argmax())
        problems.append(f"{name}: error {error:.3g} beyond {limit:.3g}, largest at {place} of {exact.numel()}")
    written = result.count_written_around()
    if written:
        problems.append(f"{name}: {written} elements around it were overwritten")
    return problems, error / limit if limit else 0.0


def check_softmax(kernel, parameters, rows):
    dtype, out = TYPES[parameters["T"]], TYPES[parameters["OUT"]]
    x = normal(rows, parameters["D"], dtype=dtype) * 3
    if rows > 2:
        x[1], x[2, 0] = -torch.inf, NAN
    y = Tensor(x.shape, out)
    kernel(Tensor(x.shape, dtype, x).view, y.view)
    return compare("y", y, x.double().softmax(-1), x.float().softmax(-1).to(out))


def check_norm(kernel, parameters, rows):
    dtype, rms, width = TYPES[parameters["T"]], parameters["RMS"] == "true", parameters["D"]
    x, weight, bias = normal(rows, width, dtype=dtype) + 4, normal(width, dtype=dtype), normal(width, dtype=dtype)
    y = Tensor(x.shape, dtype)
    kernel(Tensor(x.shape, dtype, x).view, weight, *([] if rms else [bias]), EPS, y.view)

    def norm(x, weight, bias):
        if rms:
            return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight
        return torch.nn.functional.layer_norm(x, (width,), weight, bias, EPS)

    exact, same = (norm(*(t.to(wide) for t in (x, weight, bias))) for wide in (torch.float64, torch.float32))
    return compare("y", y, exact, same.to(dtype))


def make_factors(m, n, k, dtype, transposed):
    """A and B with their tensors; B is stored as the kernel takes it."""
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    stored = b.t() if transposed else b
    return a, b, Tensor(a.shape, dtype, a), Tensor(stored.shape, dtype, stored)


def check_split(kernel, parameters, shape):
    """In two kernels: the sums are rounded once."""
    m, n, k = shape
    dtype = TYPES[parameters["T"]]
    a, b, left, right = make_factors(m, n, k, dtype, parameters["B_TRANSPOSED"] == "true")
    c = Tensor((m, n), dtype)
    kernel(left.view, right.view, c.view)
    return compare("c", c, a.double() @ b.double(), a @ b)


def check_added(kernel, parameters, shape):
    """In one kernel, which adds to what C holds."""
    m, n, k = shape
    a, b, left, right = make_factors(m, n, k, TYPES[parameters["T"]], parameters["B_TRANSPOSED"] == "true")
    before = normal(m, n)
    c = Tensor((m, n), torch.float32, before)
    kernel(left.view, right.view, c.view)
    return compare("c", c, before.double() + a.double() @ b.double(), before + a.float() @ b.float())


def check_scaled(kernel, parameters, shape):
    """Numbers of 8 bits that are multiples of scales. Tensor cores keep about 14 bits of their sums, so K is not long."""
    m, n, k = shape
    dtype, of_b = (TYPES[parameters.get(name, parameters["T"])] for name in ("T", "TB"))
    a, b = normal(m, k).to(dtype), normal(n, k).to(of_b)
    wide, arguments, scales = [a.double(), b.double()], [], parameters["SCALES"]
    if scales == "tensor":
        arguments, wide[0] = [0.375], wide[0] * 0.375
    elif scales != "none":
        blocks = -(-k // 128) if scales == "blocks" else 1
        of_rows, of_columns = (torch.rand(blocks, count, device="cuda") + 0.5 for count in (m, n))
        arguments = [x if scales == "blocks" else x[0] for x in (of_rows, of_columns)]
        length = 128 if scales == "blocks" else k
        wide = [x * y.double().repeat_interleave(length, 0)[:k].t() for x, y in zip(wide, (of_rows, of_columns))]
    c = Tensor((m, n), torch.bfloat16)
    kernel(Tensor(a.shape, dtype, a).view, Tensor(b.shape, of_b, b).view, c.view, *arguments)
    exact = wide[0] @ wide[1].t()
    return compare("c", c, exact, exact.float().bfloat16())


def check_chain(kernel, parameters, shape):
    m, inner, k = shape
    a, b, left, right = make_factors(m, inner, k, torch.bfloat16, False)
    c = normal(inner, 64, dtype=torch.bfloat16)
    e = Tensor((m, 64), torch.bfloat16)
    kernel(left.view, right.view, Tensor(c.shape, c.dtype, c).view, e.view)
    return compare("e", e, a.double() @ b.double() @ c.double(), (a @ b) @ c)


def check_gram(kernel, parameters, shape):
    n, k = shape
    a = normal(k, n, dtype=torch.bfloat16)
    g = Tensor((n, n), torch.float32)
    kernel(Tensor(a.shape, a.dtype, a).view, g.view)
    return compare("g", g, a.double().t() @ a.double(), a.float().t() @ a.float())


def check_embedding(kernel, parameters, shape):
    rows, count = shape
    dtype, width = TYPES[parameters["T"]], parameters["D"]
    table = normal(rows, width, dtype=dtype)
    far = 2**31 if parameters["I"] == "i32" else 2**40
    numbers = torch.randint(-3, rows + 3, (count,), device="cuda", dtype=torch.int64)
    numbers[::17], numbers[5::23] = -far, far - 1
    y = Tensor((count, width), dtype)
    kernel(Tensor(table.shape, dtype, table).view, numbers.to(torch.int32 if parameters["I"] == "i32" else torch.int64), y.view)
    inside = (numbers >= 0) & (numbers < rows)
    exact = torch.where(inside[:, None], table.double()[numbers.clamp(0, rows - 1)], 0.0)
    problems, share = compare("y", y, exact, exact)
    same = torch.equal(y.view.double(), exact)
    return problems + ([] if same else ["y: rows differ from the table's"]), share


def check_gather(kernel, parameters, shape):
    """A product of rows by their numbers, of which some are outside."""
    rows, m, n, k = shape
    dtype = TYPES[parameters["T"]]
    a, b, left, right = make_factors(rows, n, k, dtype, parameters["B_TRANSPOSED"] == "true")
    numbers = torch.randint(-2, rows + 2, (m,), device="cuda", dtype=torch.int64)
    numbers[::17] = 2**31 - 1
    c = Tensor((m, n), dtype)
    kernel(left.view, numbers.to(torch.int32 if parameters["I"] == "i32" else torch.int64), right.view, c.view)
    inside = (numbers >= 0) & (numbers < rows)
    taken = torch.where(inside[:, None], a[numbers.clamp(0, rows - 1)], 0)
    return compare("c", c, taken.double() @ b.double(), taken @ b)


def check_pair(kernel, parameters, shape):
    """silu(A W) * (A V)."""
    m, n, k = shape
    transposed = parameters["W_TRANSPOSED"] == "true"
    dtype = TYPES[parameters["T"]]
    a, w, rows, left = make_factors(m, n, k, dtype, transposed)
    _, v, _, right = make_factors(m, n, k, dtype, transposed)
    c = Tensor((m, n), dtype)
    kernel(rows.view, left.view, right.view, c.view)
    x, y = a.double() @ w.double(), a.double() @ v.double()
    return compare("c", c, torch.nn.functional.silu(x) * y, torch.nn.functional.silu(a @ w) * (a @ v))


def hadamard(width, dtype):
    signs = torch.randint(0, 2, (width, 1), device="cuda") * 2 - 1
    h = torch.ones(1, 1, device="cuda")
    while h.shape[0] < width:
        h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
    return (signs * h).to(dtype)


def find_scales(x, most, rows, powers):
    """S of each row, of blocks of `rows` rows, in f64; where it is rounded up to a power of 2, that of S in f32."""
    largest = x.abs().amax(-1)
    blocks = torch.nn.functional.pad(largest, (0, -largest.shape[-1] % rows)).unflatten(-1, (-1, rows)).amax(-1, keepdim=True)
    scales = (blocks.float() * torch.tensor(1 / most).float()).double() if powers else blocks / most
    scales = scales.clamp(min=2.0**-50).expand(*blocks.shape[:-1], rows).flatten(-2)[..., : largest.shape[-1]]
    return scales.log2().ceil().exp2() if powers else scales


def check_quantize(kernel, parameters, shape):
    """What 8 bits and a scale stand for is as near to X as what PyTorch rounds, and nearly everywhere the same."""
    batch, heads, rows = shape
    width, dtype, out = parameters["D"], TYPES[parameters["T"]], TYPES[parameters["OUT"]]
    blocks, powers, rotates = (parameters.get(name) == "true" for name in ("BLOCKS", "POWERS", "ROTATE"))
    x = normal(batch, heads, rows, width, dtype=dtype)
    x[0, 0, rows // 2] = 0
    rotation = hadamard(width, dtype) if rotates else None
    exact = x.double() @ rotation.double() if rotates else x.double()
    most = LARGEST[parameters["OUT"]]
    scales = find_scales(exact, most, BLOCK if blocks else 1, powers)
    q, s = Tensor(x.shape, out), Tensor((batch, heads, rows), torch.float32)
    kernel(Tensor(x.shape, dtype, x).view, *([rotation] if rotates else []), q.view, s.view)
    theirs = (exact.float() / scales.float()[..., None]).clamp(-most, most).to(out)
    means = Tensor.__new__(Tensor)  # What they stand for, where `q` lies.
    means.buffer = q.buffer
    means.view = q.view.double() * s.view.double()[..., None]
    problems, share = compare("q s", means, exact, theirs.double() * scales[..., None])
    more, _ = compare("s", s, scales, scales.float())
    differ = (q.view.float() != theirs.float()).float().mean().item()
    if differ > 0.01:
        more.append(f"q: {differ:.1%} differ from what PyTorch rounds")
    return problems + more, share


def name_of(value):
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


ROWS = (1, 7, 301)
#: Sums leave in bulk, 16 bytes at a time.
SUMS = ((1, 4, 1), (67, 40, 35), (129, 260, 4500), (300, 8, 77), (500, 1000, 6001))
PRODUCTS = ((1, 1, 1), (67, 40, 35), (129, 257, 4500), (300, 1, 77), (500, 999, 6001))

SCALED = ((1, 1, 1), (67, 40, 35), (129, 257, 640), (300, 1, 77), (500, 999, 1001))


def entries():
    """(kernel, parameters, check, shapes)."""
    for kind, width in itertools.product(("bf16", "f32"), (1, 113, 1000, 4096, 20001)):
        out = "f16" if (kind, width) == ("f32", 1000) else kind
        yield "softmax", {"T": kind, "OUT": out, "D": width}, check_softmax, ROWS
        for rms in ("false", "true"):
            yield "layer_norm", {"T": kind, "RMS": rms, "D": width}, check_norm, ROWS
    parts = {"T": "bf16", "D": 20001, "BN": 1024, "BM": 1, "PART": 3}
    yield "softmax", {**parts, "OUT": "bf16"}, check_softmax, ROWS
    for rms in ("false", "true"):
        yield "layer_norm", {**parts, "RMS": rms}, check_norm, ROWS
    for kind, transposed in itertools.product(("bf16", "f16"), ("true", "false")):
        yield "gemm", {"T": kind, "B_TRANSPOSED": transposed, "PART": 32}, check_split, PRODUCTS
        yield "gemm", {"T": kind, "B_TRANSPOSED": transposed, "SPLITS": 8}, check_added, SUMS
    small = {"SPLITS": 3, "BM": 64, "BN": 32, "BK": 16}
    yield "gemm", {"T": "bf16", "B_TRANSPOSED": "true", **small}, check_added, SUMS
    for kind, scales in itertools.product(LARGEST, ("none", "tensor", "rows", "blocks")):
        yield "gemm", {"T": kind, "SCALES": scales}, check_scaled, SCALED
    for more in ({"SCALES": "tensor", "PROMOTE": 2}, {"SCALES": "rows", "PROMOTE": 1}):
        yield "gemm", {"T": "f8E4M3FN", **more}, check_scaled, SCALED
    for kind, of_b in (("bf16", "f8E4M3FN"), ("f16", "f8E5M2")):
        yield "gemm", {"T": kind, "TB": of_b, "OUT": "bf16", "SCALES": "rows"}, check_scaled, SCALED
    yield "../test/Kernels/chain", {}, check_chain, ((1, 1, 1), (128, 64, 64), (200, 72, 136), (8, 203, 41), (1001, 999, 513))
    yield "../test/Kernels/gram", {}, check_gram, ((1, 1), (128, 64), (200, 104), (8, 33), (999, 1001))
    for kind, number, width in (("bf16", "i32", 256), ("f16", "i64", 113), ("f32", "i32", 1), ("f32", "i64", 1101)):
        yield "embedding", {"T": kind, "I": number, "D": width}, check_embedding, ((1, 1), (50, 77), (1000, 203))
    for kind, number, transposed in (("bf16", "i32", "true"), ("f16", "i64", "false")):
        parameters = {"T": kind, "I": number, "B_TRANSPOSED": transposed}
        yield "gemm_gather", parameters, check_gather, ((1, 1, 1, 1), (50, 67, 40, 35), (300, 1001, 257, 513))
    for kind, transposed, tile in (("bf16", "true", {}), ("f16", "false", {}), ("bf16", "true", {"BM": 64, "BN": 256})):
        yield "gemm_pair", {"T": kind, "W_TRANSPOSED": transposed, **tile}, check_pair, PRODUCTS
    for out, blocks, powers in itertools.product(LARGEST, ("false", "true"), ("false", "true")):
        for width in (16, 128) if blocks == "true" else (16, 128, 1040):
            parameters = {"T": "bf16", "OUT": out, "D": width, "BLOCKS": blocks, "POWERS": powers}
            yield "quantize", parameters, check_quantize, ((1, 1, 1), (2, 3, 65), (1, 2, 300))
        for width, halves in ((64, "false"), (128, "false"), (128, "true"), (256, "true")):
            parameters = {"T": "f16", "OUT": out, "D": width, "BLOCKS": blocks, "POWERS": powers, "ROTATE": "true"}
            parameters["HALVES"] = halves
            if blocks == "true":
                parameters["BM"] = BLOCK
            yield "quantize", parameters, check_quantize, ((1, 1, 1), (2, 3, 65), (1, 2, 300))


def run(source, entry, shape):
    kernel, parameters, check, _ = entry
    torch.manual_seed(sum(map(ord, kernel + name_of(shape))))
    text = f"{kernel} {' '.join(f'{name}={value}' for name, value in parameters.items())} {name_of(shape)}"
    try:
        problems, share = check(source(kernel, tuple(parameters.items())), parameters, shape)
    except (ValueError, RuntimeError, kernels.Missing, kernels.Refused) as error:
        problems, share = [f"{type(error).__name__}: {error}"], 0.0
    print(("FAIL " if problems else "ok   ") + f"{text}: {share:.2f} of the limit", *problems, sep="\n       ", flush=True)
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="the last shape of each kernel alone")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these kernels alone")
    parser.add_argument("--list", metavar="FILE", help="write the kernels of all this for build_bundles.py, and end")
    options = parser.parse_args()
    wanted = [entry for entry in entries() if not options.only or entry[0] in options.only.split(",")]
    if options.list:
        with open(options.list, "w") as file:
            json.dump([cases.configuration(kernel, parameters) for kernel, parameters, *_ in wanted], file, indent=1)
        return 0
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    opened = kernels.open_source(options.bundles)

    @functools.lru_cache(maxsize=None)
    def source(kernel, parameters):
        return opened.load(cases.configuration(kernel, dict(parameters)))

    results = [run(source, entry, shape) for entry in wanted for shape in entry[3][-1 if options.quick else 0 :]]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
