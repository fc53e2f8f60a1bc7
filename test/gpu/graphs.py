#!/usr/bin/env python3
"""Launches that CUDA graphs capture, on the GPU.

    tessera compile kernels/attention_fwd.tile -D D=128 -D CAUSAL=true -o causal.bundle
    python3 test/gpu/graphs.py causal.bundle...     bundles of attention_fwd with D = 128

The last line reads "N passed, N failed".
"""

import argparse
import gc
import sys
import traceback

import torch

from kernels import tessera

SCALE = 128**-0.5
REPLAYS = 1000


class Problem:
    """Tensors of one call, with a result to compare with. `length` differs between problems that run side by side."""

    def __init__(self, kernel, seed, length):
        generator = torch.Generator(device="cuda").manual_seed(seed)
        dtype = torch.bfloat16 if kernel.parameters["T"] == "bf16" else torch.float16

        def normal(heads):
            return torch.randn((2, heads, length, 128), generator=generator, device="cuda").to(dtype)

        self.q, self.k, self.v = normal(8), normal(4), normal(4)
        self.q[:, :, ::7] *= 40  # Rows for which the speculation on their maximum fails.
        self.o = torch.zeros_like(self.q)
        self.lse = torch.zeros((2, 8, length), device="cuda")
        self.run(kernel)
        torch.cuda.synchronize()
        self.expected = self.o.clone(), self.lse.clone()
        self.clear()

    def run(self, kernel):
        kernel(self.q, self.k, self.v, self.o, self.lse, SCALE)

    def clear(self):
        self.o.zero_()
        self.lse.zero_()
        torch.cuda.synchronize()

    def check(self, what):
        torch.cuda.synchronize()
        if not torch.equal(self.o, self.expected[0]) or not torch.equal(self.lse, self.expected[1]):
            raise AssertionError(f"{what}: the result differs from that of an eager launch")
        self.clear()


def capture(kernel, *problems):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for problem in problems:
            problem.run(kernel)
    return graph


def check_first_launch(load):
    """The first launch of a kernel is a captured one, in the mode of torch.cuda.graph ("global")."""
    problem = Problem(load(), 1, 1500)
    graph = capture(load(), problem)
    problem.clear()
    for _ in range(3):
        graph.replay()
        problem.check("first launch")


def check_side_by_side(load):
    """Two graphs and launches on a third stream, beside each other; several launches in a graph."""
    kernel = load()
    problems = [Problem(kernel, seed, length) for seed, length in ((1, 3000), (2, 2500), (3, 2000), (4, 1700))]
    graphs = [capture(kernel, *problems[:2]), capture(kernel, problems[2])]
    streams = [torch.cuda.Stream() for _ in range(3)]
    for problem in problems:
        problem.clear()
    for turn in range(REPLAYS):
        for stream, graph in zip(streams, graphs):
            with torch.cuda.stream(stream):
                graph.replay()
        with torch.cuda.stream(streams[2]):
            problems[3].run(kernel)
        for problem in problems:
            problem.check(f"turn {turn}")


def check_outlives(load):
    """A graph runs when the kernel is gone and others have been loaded."""
    problem = Problem(load(), 5, 1900)
    kernel = load()
    graph = capture(kernel, problem)
    del kernel
    gc.collect()
    other = Problem(load(), 6, 1900)
    gc.collect()
    problem.clear()
    for _ in range(10):
        graph.replay()
        problem.check("after the kernel")
    del other


def check_memory(load):
    """Captures and graphs that end leave no memory behind, nor do modules that only graphs owned."""
    problem = Problem(load(), 7, 300)
    for turn in range(300):
        graph = capture(load(), problem)
        graph.replay()
        torch.cuda.synchronize()
        graph.reset()
        if turn == 20:
            torch.cuda.empty_cache()
            before = torch.cuda.mem_get_info()[0]
    gc.collect()
    torch.cuda.empty_cache()
    lost = before - torch.cuda.mem_get_info()[0]
    if lost > 32 << 20:
        raise AssertionError(f"{lost >> 20} MiB are gone after 280 captures")


CHECKS = [check_first_launch, check_side_by_side, check_outlives, check_memory]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+")
    passed = failed = 0
    for name in parser.parse_args().bundles:
        for check in CHECKS:
            try:
                check(lambda name=name: tessera.load(name))
            except Exception:
                failed += 1
                print(f"FAILED   {check.__name__} {name}\n{traceback.format_exc(limit=-3)}", flush=True)
            else:
                passed += 1
                print(f"ok       {check.__name__} {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
