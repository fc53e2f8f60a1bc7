#!/usr/bin/env python3
"""tessera.torch on the GPU: agreement with f64, compiled, captured and exported, and the host's time for a call.

    python3 test/gpu/torch_op.py [--quick]

Needs libtessera and ptxas, as each kernel is compiled when it is first called. The last line reads "N passed, N failed".
"""

import argparse
import time

import torch

import checks
from kernels import tessera  # noqa: F401  puts the package on the path
import tessera.torch
from tessera.torch import _fallback, attention, flash_attn_func, scaled_dot_product_attention


def make(batch, heads, kv_heads, rows, keys, d, dtype=torch.bfloat16, layout="BHSD", seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def normal(heads, length):
        shape = (batch, heads, length, d) if layout == "BHSD" else (batch, length, heads, d)
        return torch.randn(shape, generator=generator, device="cuda").to(dtype)

    return normal(heads, rows), normal(kv_heads, keys), normal(kv_heads, keys)


def reference(q, k, v, **options):
    bounds = {"left": None, "right": None, "softcap": 0.0, "alibi": None, "bias": None, "scale": q.shape[3] ** -0.5}
    return _fallback.attention(*(tensor.float() for tensor in (q, k, v)), **{**bounds, **options})


def assert_close(out, expected, what):
    error = (out.float() - expected).abs().max().item()
    limit = 2 * torch.finfo(out.dtype).eps * (expected.abs().max().item() + 0.25)
    if not error <= limit:
        raise AssertionError(f"{what}: error {error:.3g}, limit {limit:.3g}")


def check_meaning(quick):
    slopes = torch.tensor([2.0**-i for i in range(1, 9)], device="cuda")
    sizes = [(2, 8, 2, 500, 700), (1, 8, 8, 1, 3000)] if quick else [
        (2, 8, 2, 500, 700), (1, 8, 8, 1, 3000), (1, 8, 1, 3001, 129), (3, 8, 4, 1023, 1023),
    ]  # fmt: skip
    for d in (64, 128) if quick else (64, 96, 128, 192, 256):
        for dtype in (torch.bfloat16, torch.float16):
            for size in sizes:
                q, k, v = make(*size, d, dtype)
                for options, bounds in (
                    ({}, {}),
                    ({"causal": True}, {"right": 0}),
                    ({"window": (100, 3)}, {"left": 100, "right": 3}),
                    ({"softcap": 5.0}, {"softcap": 5.0}),
                    ({"causal": True, "alibi": slopes}, {"right": 0, "alibi": slopes}),
                ):
                    out, lse = attention(q, k, v, return_lse=True, **options)
                    expected, expected_lse = reference(q, k, v, **bounds)
                    what = f"d={d} {dtype} {size} {list(options)}"
                    assert_close(out, expected, what)
                    if not torch.allclose(lse, expected_lse, rtol=2e-4, atol=2e-4):
                        raise AssertionError(f"{what}: LSE")


def check_head_dimensions(quick):
    """Between the widths of tiles, in slices of wider tensors too."""
    for d in (40, 72, 80, 120, 200):
        for dtype in (torch.bfloat16, torch.float16):
            q, k, v = make(2, 8, 2, 500, 700, d + 8, dtype)
            slices = [tensor[..., :d] for tensor in (q, k, v)]
            for options, bounds in (({}, {}), ({"causal": True}, {"right": 0}), ({"window": (100, 3)}, {"right": 3, "left": 100})):
                out, lse = attention(*slices, return_lse=True, **options)
                expected, expected_lse = reference(*slices, **bounds)
                assert_close(out, expected, f"d={d} {dtype} {options}")
                if not torch.allclose(lse, expected_lse, rtol=2e-4, atol=2e-4):
                    raise AssertionError(f"d={d} {dtype} {options}: LSE")
                if not torch.equal(attention(*slices, **options), out):
                    raise AssertionError(f"d={d} {dtype} {options}: without the LSE the output differs")


def check_opcheck(quick):
    q, k, v = make(1, 4, 2, 128, 200, 64)
    for op in (torch.ops.tessera.attention_forward.default, torch.ops.tessera.attention_inference.default):
        torch.library.opcheck(op, (q, k, v, None), {"variant": "attention_fwd CAUSAL=true", "scale": 0.125})
    out, lse = torch.ops.tessera.attention_forward(q, k, v, None, "attention_fwd CAUSAL=true", 0.125)
    given = torch.randn_like(out), torch.randn_like(lse), q, k, v, out, lse, None, "attention_fwd CAUSAL=true", 0.125
    # The bits of sums in any order differ from run to run.
    torch.library.opcheck(torch.ops.tessera.attention_backward.default, given, {"deterministic": True})


def check_originals(quick):
    q, k, v = make(2, 8, 8, 300, 400, 128)
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    assert_close(scaled_dot_product_attention(q, k, v, is_causal=True), expected, "scaled_dot_product_attention")
    out = flash_attn_func(*(tensor.transpose(1, 2) for tensor in (q, k, v)), causal=True)
    assert_close(out.transpose(1, 2), reference(q, k, v, right=0)[0], "flash_attn_func")


def find_gradients(call, *tensors):
    with torch.enable_grad():
        leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
        return torch.autograd.grad(call(*leaves).float().square().sum(), leaves)


def check_deterministic(quick):
    """Gradients that a call wants to be the same in each run are."""
    for d, options in ((64, {}), (128, {"causal": True}), (192, {"causal": True}), (64, {"softcap": 3.0}), (128, {"window_size": (200, 0)})):
        tensors = [tensor.transpose(1, 2) for tensor in make(2, 8, 2, 2200, 2200, d)]
        call = lambda *x: flash_attn_func(*x, deterministic=True, **options)  # noqa: E731, B023
        first = find_gradients(call, *tensors)
        for _ in range(3 if quick else 20):
            if not all(map(torch.equal, find_gradients(call, *tensors), first)):
                raise AssertionError(f"d = {d}, {options}: gradients differ")


def check_transforms(quick):
    """torch.func.grad and torch.vmap are autograd, call by call."""
    q, k, v = make(2, 4, 2, 300, 300, 64)
    many = torch.stack([q, -q, 2 * q])
    for options in ({"causal": True}, {"score_mod": lambda s, b, h, q, k: s * 0.5}):
        call = lambda q, k, v: attention(q, k, v, deterministic=True, **options)  # noqa: E731, B023
        with torch.enable_grad():
            of_one = torch.func.grad(lambda *x: call(*x).float().square().sum(), (0, 1, 2))  # noqa: B023
            mapped = torch.vmap(of_one, (0, None, None))(many, k, v)
        for index in range(3):
            for got, want in zip(mapped, find_gradients(call, many[index], k, v)):
                assert_close(got[index], want.float(), f"sample {index}")


def check_compile(quick):
    """Lengths compile twice at most; CUDA graphs of torch.compile give the same bits."""
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("inductor")
    compiled = torch.compile(lambda q, k, v: attention(q * 2, k, v, causal=True) + 1, fullgraph=True, backend=counter)
    for length in range(100, 2000, 100):
        tensors = make(1, 8, 8, length, length, 128)
        expected = attention(tensors[0] * 2, *tensors[1:], causal=True) + 1
        if not torch.equal(compiled(*tensors), expected):
            raise AssertionError(f"length {length}: compiled code differs")
    if counter.frame_count > 2:
        raise AssertionError(f"{counter.frame_count} compilations")
    torch._dynamo.reset()
    tensors = make(1, 8, 8, 1000, 1000, 128)
    expected = attention(*tensors, causal=True) + 1
    compiled = torch.compile(lambda q, k, v: attention(q, k, v, causal=True) + 1, mode="reduce-overhead", fullgraph=True)
    for _ in range(5):
        if not torch.equal(compiled(*tensors), expected):
            raise AssertionError("reduce-overhead differs")


def check_capture(quick):
    tensors = make(1, 8, 8, 900, 900, 64, seed=3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # No call before.
        out = attention(*tensors, window=(200, 0))
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    if not torch.equal(out, attention(*tensors, window=(200, 0))):
        raise AssertionError("the captured call differs")


def check_host_time(quick):
    """Prints the host's microseconds for a call, beside torch's own."""
    q, k, v = make(1, 8, 8, 128, 128, 64)
    calls = {
        "attention": lambda: attention(q, k, v),
        "attention, return_lse": lambda: attention(q, k, v, return_lse=True),
        "scaled_dot_product_attention of torch": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        "two allocations": lambda: (torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)),
    }
    for name, call in calls.items():
        best = float("inf")
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                call()
            best = min(best, (time.perf_counter() - start) / 200)
        print(f"         {best * 1e6:6.1f} us  {name}", flush=True)


CHECKS = [
    check_meaning, check_head_dimensions, check_opcheck, check_originals, check_deterministic, check_transforms, check_compile,
    check_capture, check_host_time,
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    options = parser.parse_args()
    with torch.no_grad():
        checks.run(CHECKS, options.quick)


if __name__ == "__main__":
    main()
