"""Checks one matrix product for one shape against float64 on the GPU, by the rule of attention_check.py."""

import torch

from attention_check import DTYPES, NAN, floor, largest

PAD_COLUMNS = 8


def padded(rows, columns, dtype, fill):
    """A view of `rows` x `columns` with rows of a multiple of 8 elements, NaN behind each, and its buffer."""
    width = (columns + PAD_COLUMNS + 7) // 8 * 8
    buffer = torch.full((rows, width), NAN, dtype=dtype, device="cuda")
    view = buffer[:, :columns]
    if fill is not None:
        view.copy_(fill)
    return view, buffer


class Case:
    def __init__(self, configuration, case, seed):
        parameters = configuration["parameters"]
        self.dtype = DTYPES[parameters["T"]]
        self.transposed = parameters["B_TRANSPOSED"] == "true"
        self.activation = parameters["ACTIVATION"]
        m, n, k = case["m"], case["n"], case["k"]
        generator = torch.Generator(device="cuda").manual_seed(seed)

        def normal(*shape):
            return torch.randn(shape, generator=generator, device="cuda").to(self.dtype)

        self.a, _ = padded(m, k, self.dtype, normal(m, k))
        self.b, _ = padded(
            *((n, k) if self.transposed else (k, n)), self.dtype, normal(*((n, k) if self.transposed else (k, n)))
        )
        self.bias = normal(n) if parameters["BIAS"] == "true" else None
        self.c, self.c_buffer = padded(m, n, self.dtype, None)

    def run(self, kernel):
        arguments = {"a": self.a, "b": self.b, "c": self.c}
        if self.bias is not None:
            arguments["bias"] = self.bias
        kernel(**arguments)

    def poison(self):
        self.c_buffer.fill_(NAN)

    def reference(self, dtype):
        a, b = self.a.to(dtype), self.b.to(dtype)
        c = a @ (b.t() if self.transposed else b)
        if self.bias is not None:
            c = c + self.bias.to(dtype)
        if self.activation == "relu":
            return c.relu()
        if self.activation == "gelu":
            return torch.nn.functional.gelu(c, approximate="tanh")
        return c


# Bulk stores write 16 bytes at a time.
STORED_COLUMNS = 8


def check_refusal(kernel, data, case):
    """Lines about a launch that has to be refused because the rows of C end where bulk stores do not."""
    try:
        data.run(kernel)
    except ValueError as error:
        expected = f"'N' is {case['n']} and must be a multiple of {STORED_COLUMNS}"
        return [] if expected in str(error) else [f"the launch is refused because: {error}"]
    return ["the launch is not refused, and bulk stores write behind the rows of C"]


def check(kernel, configuration, case, seed):
    """(largest share of the limit that was used, lines about what is wrong)."""
    data = Case(configuration, case, seed)
    data.poison()
    if "store=tma" in configuration["schedule"] and case["n"] % STORED_COLUMNS:
        return 0.0, check_refusal(kernel, data, case)
    data.run(kernel)
    torch.cuda.synchronize()
    exact, same = data.reference(torch.float64), data.reference(data.dtype)
    error = (data.c.double() - exact).abs()
    limit = 2 * largest(same.double() - exact) + floor(exact, data.dtype)
    problems = []
    bad = ~(error <= limit)
    if bad.any():
        row, column = bad.nonzero()[0].tolist()
        rows, columns = (bad.any(dim=axis).nonzero().flatten().tolist() for axis in (1, 0))
        problems.append(
            f"{bad.float().mean().item():.1%} of C is beyond the limit {limit:.3g}, "
            f"{torch.isnan(data.c).float().mean().item():.1%} is NaN; rows {rows[:8]}.. ({len(rows)} of "
            f"{bad.shape[0]}), columns {columns[:8]}.. ({len(columns)} of {bad.shape[1]}); first at ({row}, "
            f"{column}): {data.c[row, column].item():.6g}, should be {exact[row, column].item():.6g}"
        )
    overwritten = int((~torch.isnan(data.c_buffer)).sum()) - data.c.numel()
    if overwritten > 0:
        problems.append(f"{overwritten} elements of the padding around C were overwritten")
    return (error.max() / limit).item() if limit else 0.0, problems


def probes(kernel, configuration, case):
    """With A = 1, C is the column sums of B: tells a wrong A from a wrong B."""
    data = Case(configuration, case, 1)
    data.a.fill_(1)
    data.poison()
    data.run(kernel)
    torch.cuda.synchronize()
    error = (data.c.double() - data.reference(torch.float64)).abs().max().item()
    yield f"probe: A = 1, so the rows of C are equal (wrong: B's load or descriptor): error {error:.3g}"


def check_repetition(kernel, configuration, repetitions, seed):
    columns = 1000 if "store=tma" in configuration["schedule"] else 999
    data = Case(configuration, {"m": 1000, "n": columns, "k": 1001}, seed)
    data.run(kernel)
    first = data.c.clone()
    differing = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(repetitions):
        data.poison()
        data.run(kernel)
        differing += ~(data.c.contiguous().view(torch.int16) == first.view(torch.int16)).all()
    count = int(differing)
    return [f"{count} of {repetitions} launches differ from the first: a race"] if count else []
