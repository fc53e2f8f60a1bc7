#!/usr/bin/env python3
"""Block masks of tessera.torch on the GPU: agreement with f64 and with calls that make their lists, compiled and captured, of
blocks that are listed and of torch, and what a call takes.

    python3 test/gpu/block_masks.py [--time]

Needs libtessera and ptxas, as each kernel is compiled when it is first called. The last line reads "N passed, N failed".
"""

import argparse
import itertools

import torch
from torch.nn.attention import flex_attention as flex

import checks
from kernels import tessera  # noqa: F401  puts the package on the path
from tessera.torch import BlockMask, attention, create_block_mask

DOCUMENT = 1024


def make(batch, heads, kv_heads, rows, keys, d, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    sizes = (heads, rows), (kv_heads, keys), (kv_heads, keys)
    return [torch.randn((batch, *size, d), generator=generator, device="cuda").bfloat16() for size in sizes]


def make_documents(keys, ordered=True, document=DOCUMENT):
    numbers = torch.arange(keys, device="cuda") // document
    numbers = numbers if ordered else numbers[torch.randperm(keys, device="cuda")]

    def documents(b, h, q, k):
        return (numbers[q] == numbers[k]) & (q >= k)

    return documents


def exact(q, k, v, mask_mod):
    """Output in f64 of [B, H, S, D] tensors."""
    q, k, v = q.double(), k.double(), v.double()
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    rows, keys = torch.arange(q.shape[2], device="cuda")[:, None], torch.arange(k.shape[2], device="cuda")
    scores = (q @ k.mT * q.shape[3] ** -0.5).masked_fill(~mask_mod(0, 0, rows, keys), -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v


def differentiate(tensors, run):
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    out = run(*leaves)
    factors = torch.randn(out.shape, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda").to(out.dtype)
    return out, torch.autograd.grad(out, leaves, factors)


def assert_close(got, want, what):
    error = ((got.double() - want.double()).norm() / want.double().norm()).item()
    if not error <= 2 * torch.finfo(torch.bfloat16).eps:
        raise AssertionError(f"{what}: error {error:.3g}")


def check_results():
    for d, (rows, keys), ordered in itertools.product((64, 128), ((203, 1023), (1500, 1500), (2048, 2048)), (True, False)):
        tensors, mask_mod = make(2, 4, 2, rows, keys, d), make_documents(max(rows, keys), ordered, 300)
        block_mask = create_block_mask(mask_mod, None, None, rows, keys)
        for what in (f"d={d} {rows}x{keys} ordered={ordered}", "the second call"):
            out, gradients = differentiate(tensors, lambda *x: attention(*x, block_mask=block_mask))
            want, wanted = differentiate(tensors, lambda *x: attention(*x, mask_mod=mask_mod))
            assert_close(out, exact(*tensors, mask_mod), what)
            for got, expected in zip((out, *gradients), (want, *wanted)):
                assert_close(got, expected, f"beside a call that makes its lists, {what}")


def check_compiled():
    block_masks = [create_block_mask(make_documents(2048, document=n), None, None, 2048, 2048) for n in (300, 500)]
    compiled = torch.compile(lambda *x: attention(*x[:3], block_mask=x[3]), fullgraph=True, mode="reduce-overhead")
    for block_mask in block_masks:
        block_mask.prepare(128, gradients=True)
    for seed, block_mask in enumerate(block_masks * 3):
        tensors = make(1, 4, 2, 2048, 2048, 128, seed)
        assert_close(compiled(*tensors, block_mask), attention(*tensors, block_mask=block_mask), f"compiled, call {seed}")
    run = torch.compile(lambda *x: attention(*x[:3], block_mask=x[3]), fullgraph=True)
    found, wanted = (
        differentiate(tensors, lambda *x: call(*x, block_masks[0]))[1]
        for call in (run, lambda *x: attention(*x[:3], block_mask=x[3]))
    )
    for got, want in zip(found, wanted):
        assert_close(got, want, "compiled gradients")


def make_lists(which):
    return which.sum(-1).int(), torch.argsort(which.int(), dim=-1, descending=True, stable=True).int()


def look(table, block, mask_mod, lengths):
    """Which queries see which keys: the table has 0 where a block is not listed, 1 where it is and 2 where in full."""
    rows, keys = lengths
    of_pairs = table.repeat_interleave(block[0], 2).repeat_interleave(block[1], 3)[..., :rows, :keys]
    if mask_mod is None:
        return of_pairs > 0
    seen = mask_mod(0, 0, torch.arange(rows, device="cuda")[:, None], torch.arange(keys, device="cuda"))
    return (of_pairs == 2) | (of_pairs == 1) & seen


def define(q, k, v, visible):
    """Output in f64, differentiable, of [B, H, S, D] tensors."""
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = (q @ k.mT * q.shape[3] ** -0.5).masked_fill(~visible, -torch.inf)
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True).nan_to_num(neginf=0))
    return weights @ v


def check_listed():
    """Tables that are drawn, with tiles that see nothing, of blocks that tiles divide and of others."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    functions = None, lambda b, h, q, k: q >= k, make_documents(1500, document=300)
    for d, block, (rows, keys) in itertools.product(
        (64, 96, 128, 192, 256), ((128, 128), (64, 64), (32, 16), (1, 64)), ((1024, 1024), (700, 1500))
    ):
        for mask_mod, kind in itertools.product(functions, (BlockMask, flex.BlockMask)):
            table = torch.randint(0, 3, (1, 4, -(-rows // block[0]), -(-keys // block[1])), generator=generator, device="cuda")
            table[:, :, -1] = 0
            tensors = make(2, 4, 2, rows, keys, d)
            lists = kind.from_kv_blocks(*make_lists(table == 1), *make_lists(table == 2), block, mask_mod, (rows, keys))
            out, gradients = differentiate(tensors, lambda *x: attention(*x, block_mask=lists))  # noqa: B023
            visible = look(table, block, mask_mod, (rows, keys))
            doubles = [tensor.double() for tensor in tensors]
            want, wanted = differentiate(doubles, lambda *x: define(*x, visible))  # noqa: B023
            what = f"d={d} blocks {block} {rows}x{keys} {mask_mod} {kind.__module__}"
            for got, expected in zip((out, *gradients), (want, *wanted)):
                assert_close(got, expected, what)


def check_of_torch():
    """The function alone where lists say no more, found once, and lists in compiled code and captured graphs."""
    causal, tensors = lambda b, h, q, k: q >= k, make(1, 4, 2, 2048, 2048, 128)
    of_function = flex.create_block_mask(causal, None, None, 2048, 2048)
    want = attention(*tensors, mask_mod=causal)
    compiled = torch.compile(lambda *x: attention(*x[:3], block_mask=x[3]), fullgraph=True, mode="reduce-overhead")
    for call in (compiled, lambda *x: attention(*x[:3], block_mask=x[3]), compiled):
        assert_close(call(*tensors, of_function), want, "a causal BlockMask of torch")
    assert BlockMask.from_torch(of_function).block is None
    table = torch.randint(0, 3, (1, 1, 16, 16), device="cuda")
    block_mask = flex.BlockMask.from_kv_blocks(*make_lists(table == 1), *make_lists(table == 2), mask_mod=causal)
    want = define(*(tensor.double() for tensor in tensors), look(table, (128, 128), causal, (2048, 2048)))
    assert_close(compiled(*tensors, block_mask), want, "compiled lists")
    graph = torch.cuda.CUDAGraph()
    attention(*tensors, block_mask=block_mask)
    with torch.cuda.graph(graph):
        out = attention(*tensors, block_mask=block_mask)
    graph.replay()
    assert_close(out, want, "captured lists")


def check_sinks():
    """Sinks of heads, with their gradient."""
    sinks = torch.tensor([0.5, -2.0, 3.0, 0.0], device="cuda")
    for d, window in itertools.product((64, 128, 256), ((None, 0), (127, 0))):
        tensors = make(2, 4, 2, 1500, 1500, d)
        out, gradients = differentiate([*tensors, sinks], lambda *x: attention(*x[:3], window=window, sinks=x[3]))  # noqa: B023

        def run(q, k, v, sinks):
            row, key = torch.arange(1500, device="cuda")[:, None], torch.arange(1500, device="cuda")
            visible = (key <= row) & ((row - key <= window[0]) if window[0] else (key >= 0))  # noqa: B023
            k, v = (tensor.repeat_interleave(2, 1) for tensor in (k, v))
            scores = (q @ k.mT * q.shape[3] ** -0.5).masked_fill(~visible, -torch.inf)
            lse = torch.logaddexp(scores.logsumexp(-1), sinks[:, None])
            return torch.exp(scores - lse[..., None]) @ v

        want, wanted = differentiate([tensor.double() for tensor in (*tensors, sinks)], run)
        for got, expected in zip((out, *gradients), (want, *wanted)):
            assert_close(got, expected, f"sinks, d={d}, window {window}")


def check_captured():
    tensors, block_mask = make(1, 4, 2, 2048, 2048, 128), create_block_mask(make_documents(2048), None, None, 2048, 2048)
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            attention(*tensors, block_mask=block_mask)
        raise AssertionError("lists were made within a captured graph")
    except RuntimeError as error:
        if "none are made while a graph is compiled or captured" not in str(error):
            raise
    block_mask.prepare(128)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attention(*tensors, block_mask=block_mask)
    for seed in range(3):
        for tensor, other in zip(tensors, make(1, 4, 2, 2048, 2048, 128, seed)):
            tensor.copy_(other)
        graph.replay()
        assert_close(out, attention(*tensors, block_mask=block_mask), f"replay {seed}")


def time(run, count=100):
    for _ in range(20):
        run()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(count):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count * 1e3


def time_calls():
    """Microseconds of calls, one after the other, in eager code and as captured graphs."""
    for d, keys in itertools.product((64, 128), (2048, 16384)):
        mask_mod = make_documents(keys)
        tensors = [x.requires_grad_() for x in make(16384 // keys, 2048 // d, 2048 // d, keys, keys, d)]
        block_mask = create_block_mask(mask_mod, None, None, keys, keys).prepare(d, gradients=True)
        for name, named in (("block mask", {"block_mask": block_mask}), ("mask_mod", {"mask_mod": mask_mod})):
            with torch.no_grad():
                forward = time(lambda: attention(*tensors, **named))
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    attention(*tensors, **named)
                captured = time(graph.replay)
            both = time(lambda: torch.autograd.grad(attention(*tensors, **named).sum(), tensors))
            print(f"d {d}, {keys} keys, {name}: forward {forward:.0f} us, captured {captured:.0f} us, with gradients {both:.0f} us",
                  flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", action="store_true", help="time calls, and check nothing")
    parser.add_argument("--only", default="", metavar="TEXT", help="only checks whose name has TEXT")
    options = parser.parse_args()
    if options.time:
        time_calls()
        return
    every = check_results, check_compiled, check_captured, check_listed, check_of_torch, check_sinks
    checks.run([check for check in every if options.only in check.__name__])


if __name__ == "__main__":
    main()
