#!/usr/bin/env python3
"""Functions of scores and masks in PyTorch on the GPU, around the kernel: compilations, a first result, lists of blocks.

    python3 test/gpu/mods.py                    no compilation for other lengths and captured numbers; compiled graphs with gradients
    python3 test/gpu/mods.py --first N          prints the milliseconds to the first result of function N of a process
    python3 test/gpu/mods.py --lists            prints the time and the memory of lists of 64k queries and keys

Needs libtessera and ptxas. The last line of the first form reads "N passed, N failed".
"""

import argparse
import functools
import time

import torch

import checks
from kernels import tessera  # noqa: F401  puts the package on the path
from tessera._compiler import _compile
from tessera.torch import attention, create_block_mask

D = 64


def make(length, batch=1, heads=8, d=D, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return [torch.randn((batch, heads, length, d), generator=generator, device="cuda").bfloat16() for _ in range(3)]


def exact(q, k, v, score_mod=None, mask_mod=None):
    """The output in f64 of functions that take matrices of indices."""
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.mT * q.shape[3] ** -0.5
    heads, rows, keys = (torch.arange(n, device="cuda") for n in (q.shape[1], q.shape[2], k.shape[2]))
    places = 0, heads[:, None, None], rows[:, None], keys
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*places), -torch.inf)
    return scores.softmax(-1) @ v


def assert_close(got, want, what):
    error = ((got.double() - want.double()).norm() / want.double().norm()).item()
    if not error <= 2 * torch.finfo(torch.bfloat16).eps:
        raise AssertionError(f"{what}: error {error:.3g}")


class Compilations:
    """Counts compilations while it is entered."""

    def __enter__(self):
        self.count, self._compile = 0, _compile.compile
        _compile.compile = self._count
        return self

    def _count(self, *arguments, **named):
        self.count += 1
        return self._compile(*arguments, **named)

    def __exit__(self, *_):
        _compile.compile = self._compile


def make_functions(length):
    """Functions by name, which capture numbers and tensors."""
    slopes = torch.exp2(-torch.arange(1, 9, device="cuda").float())
    documents = torch.arange(length, device="cuda") // 300
    cap, reach = 20.0 + length % 7, 100 + length % 5

    def capped(score, b, h, q, k):
        return cap * torch.tanh(score / cap)

    def sloped(score, b, h, q, k):
        return score - slopes[h] * (q - k).abs()

    def near(b, h, q, k):
        return (q >= k) & (q - k < reach)

    def same(b, h, q, k):
        return (documents[q] == documents[k]) & (q >= k)

    return {"capped": {"score_mod": capped}, "sloped": {"score_mod": sloped, "mask_mod": near}, "same": {"mask_mod": same}}


def check_no_compilation():
    """100 lengths, and among them 7 and 5 values of captured numbers: of a length's class the first call alone compiles."""
    with torch.no_grad():
        for name in make_functions(1):
            for length in (1100, 1900):
                attention(*make(length), **make_functions(length)[name])
            with Compilations() as compilations:
                for length in range(1101, 1901, 8):
                    out = attention(*make(length), **make_functions(length)[name])
                    if length % 10 == 1:
                        assert_close(out, exact(*make(length), **make_functions(length)[name]), f"{name}, {length} keys")
            if compilations.count:
                raise AssertionError(f"{name}: {compilations.count} compilations for other lengths and numbers")


def cap_by(score, b, h, q, k, cap):
    return cap * torch.tanh(score / cap)


def is_same(b, h, q, k, documents):
    return (documents[q] == documents[k]) & (q >= k)


def check_no_recompilation():
    """The same in a compiled graph, where captured numbers are tensors."""
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("inductor")

    @torch.compile(fullgraph=True, backend=counter)
    def run(q, k, v, cap, documents):
        return attention(q, k, v, score_mod=cap_by, score_args=(cap,), mask_mod=is_same, mask_args=(documents,))

    with torch.no_grad():
        for length in (1100, 1900):
            run(*make(length), torch.tensor(20.0, device="cuda"), torch.arange(length, device="cuda") // 300)
        before = counter.frame_count
        with Compilations() as compilations:
            for length in range(1101, 1901, 8):
                cap, documents = torch.tensor(20.0 + length % 10, device="cuda"), torch.arange(length, device="cuda") // 300
                out = run(*make(length), cap, documents)
                if length % 20 == 1:
                    score_mod = functools.partial(cap_by, cap=cap)
                    mask_mod = functools.partial(is_same, documents=documents)
                    assert_close(out, exact(*make(length), score_mod, mask_mod), f"{length} keys")
    if compilations.count or counter.frame_count > before or before > 2:
        raise AssertionError(f"{compilations.count} kernels and {counter.frame_count} graphs, {before} of them for two lengths")


def check_compiled_gradients():
    """Gradients in a compiled graph beside those of eager code and f64."""
    for name, given in make_functions(1024).items():
        def run(*x, given=given):
            return attention(*x, **given)

        tensors = [x.requires_grad_() for x in make(1024)]
        factors = torch.randn_like(tensors[0])
        wide = [x.detach().double().requires_grad_() for x in tensors]
        want = torch.autograd.grad(exact(*wide, **given), wide, factors.double())
        for what, call in (("eager", run), ("compiled", torch.compile(run, fullgraph=True))):
            for got, wanted in zip(torch.autograd.grad(call(*tensors), tensors, factors), want):
                assert_close(got, wanted, f"{name}, {what}")


def time_first(number):
    """From the call of a function that this process has not seen to its result; the context is there, and its first kernel."""
    q, k, v = make(2048)
    torch.cuda.synchronize()
    name, given = list(make_functions(2048).items())[number]
    with torch.no_grad():
        for call in ("first", "second"):
            start = time.perf_counter()
            attention(q, k, v, **given)
            torch.cuda.synchronize()
            print(f"{name}: {1e3 * (time.perf_counter() - start):.1f} ms to the {call} result", flush=True)


def time_lists(length=65536):
    documents = torch.arange(length, device="cuda") // 1024
    block_mask = create_block_mask(lambda b, h, q, k: (documents[q] == documents[k]) & (q >= k), None, None, length, length)
    for d in (64, 128):
        block_mask.prepare(d)
    for name, lists in block_mask.lists.items():
        torch.cuda.synchronize()
        free = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        block_mask._make(name)
        peak = torch.cuda.max_memory_allocated() - free
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            block_mask._make(name)
        end.record()
        torch.cuda.synchronize()
        size = sum(tensor.numel() * tensor.element_size() for tensor in lists)
        print(f"{length} keys, {name}: {begin.elapsed_time(end) / 10:.2f} ms, {size / 1e6:.2f} MB, {peak / 1e6:.2f} MB while "
              "they are made", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="only checks whose name has TEXT")
    parser.add_argument("--first", type=int, metavar="N", help="time the first result of a function")
    parser.add_argument("--lists", action="store_true", help="time lists of blocks, and measure them")
    options = parser.parse_args()
    if options.first is not None:
        time_first(options.first)
    elif options.lists:
        time_lists()
    else:
        wanted = (check_no_compilation, check_no_recompilation, check_compiled_gradients)
        checks.run([check for check in wanted if options.only in check.__name__])


if __name__ == "__main__":
    main()
