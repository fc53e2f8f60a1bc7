#!/usr/bin/env python3
"""A model on two GPUs, by FSDP and by tensor parallelism over heads, beside the same on one.

    torchrun --nproc-per-node 2 test/gpu/two_gpus.py                 on two GPUs
    torchrun --nproc-per-node 2 test/gpu/two_gpus.py --interpret     small, in two processes on the CPU, by the interpreter

Logits, loss and gradients are to be those of one GPU, up to the order of sums. The last line reads "N passed, N failed".
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import checks
from kernels import tessera  # noqa: F401  puts the package on the path
import tessera.torch
from tessera.torch import attention

HEADS, KV_HEADS, D = 8, 4, 64
WIDTH = HEADS * D


class Block(nn.Module):
    """Attention with grouped heads, of as many heads as the weights that it is left with have."""

    def __init__(self):
        super().__init__()
        self.q, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = (nn.Linear(WIDTH, KV_HEADS * D, bias=False) for _ in range(2))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (-1, D)) for layer in (self.q, self.k, self.v))
        return x + self.out(attention(q, k, v, causal=True, layout="BSHD").flatten(2))


def make_model(mesh):
    torch.manual_seed(0)
    return nn.Sequential(Block(), Block()).to(mesh.device_type, torch.bfloat16)


def get_length(mesh):
    return 777 if mesh.device_type == "cuda" else 37


def draw(mesh, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(mesh.device_type, torch.bfloat16)


def assert_close(found, expected, what, limit=0.03):
    found = found.full_tensor() if isinstance(found, DTensor) else found
    error = ((found.float() - expected.float()).norm() / expected.float().norm()).item()
    if not error < limit:
        raise AssertionError(f"{what}: error {error:.3g} of the norm, limit {limit}")


def run(model, x):
    out = model(x)
    out.float().square().mean().backward()
    return out.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


def check_fsdp(mesh):
    """Each rank has a part of the batch and of the weights."""
    batches = [draw(mesh, (2, get_length(mesh), WIDTH), seed) for seed in range(2)]
    reference = make_model(mesh)
    results = [reference(x) for x in batches]
    (sum(out.float().square().mean() for out in results) / 2).backward()
    expected = {name: parameter.grad for name, parameter in reference.named_parameters()}
    model = make_model(mesh)
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    out, gradients = run(model, batches[dist.get_rank()])
    assert_close(out, results[dist.get_rank()], "output", 1e-6)
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name], name)


def check_tensor_parallel(mesh):
    """Each rank has a part of the heads."""
    x = draw(mesh, (2, get_length(mesh), WIDTH), 7)
    out, expected = run(make_model(mesh), x)
    model = make_model(mesh)
    columns = {name: ColwiseParallel() for name in ("q", "k", "v")}
    for block in model:
        parallelize_module(block, mesh, {**columns, "out": RowwiseParallel()})
    found, gradients = run(model, x)
    assert_close(found, out, "output", 0.01)
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name], name)


def check_dtensors(mesh):
    """Sharded by batch or by heads the op has no communication, and the result is that of one GPU."""
    tessera.torch.register_sharding()
    heads = (HEADS, KV_HEADS, KV_HEADS)
    tensors = [draw(mesh, (2, count, get_length(mesh), D), seed) for seed, count in enumerate(heads)]
    expected = attention(*tensors, causal=True)
    for placement in (Replicate(), Shard(0), Shard(1)):
        divided = [distribute_tensor(tensor, mesh, [placement]) for tensor in tensors]
        with CommDebugMode() as communication:
            out = attention(*divided, causal=True)
        if communication.get_total_counts():
            raise AssertionError(f"{placement}: {communication.get_comm_counts()}")
        if not torch.equal(out.full_tensor(), expected):
            raise AssertionError(f"{placement}: the result differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpret", action="store_true", help="on the CPU, by the interpreter")
    options = parser.parse_args()
    dist.init_process_group("gloo" if options.interpret else "nccl")
    if options.interpret:
        tessera.torch.use_interpreter()
    else:
        torch.cuda.set_device(dist.get_rank())
    mesh = init_device_mesh("cpu" if options.interpret else "cuda", (dist.get_world_size(),))
    try:
        checks.run([check_fsdp, check_tensor_parallel, check_dtensors], mesh)
    except SystemExit as end:
        dist.destroy_process_group()
        # Not by sys.exit: a thread of gloo's that still frees a gathered tensor aborts the process where Python has ended.
        sys.stdout.flush()
        os._exit(int(end.code))


if __name__ == "__main__":
    main()
