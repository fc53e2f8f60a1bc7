# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""The ops on DTensors, with two processes."""

import os
import tempfile
import unittest

import problems
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode

import tessera.torch
from tessera.torch import attention

RANKS = 2


def check_placement(mesh, placement, slopes=None):
    """Sharded by batch or by heads there is no communication, and the result is that of one process."""
    tensors = problems.make(batch=2, heads=4, kv_heads=2)
    expected = attention(*tensors, causal=True, alibi=slopes)
    divided = [distribute_tensor(tensor, mesh, [placement]) for tensor in tensors]
    if slopes is not None:
        slopes = distribute_tensor(slopes, mesh, [Shard(0) if placement == Shard(1) else Replicate()])
    with CommDebugMode() as communication:
        out = attention(*divided, causal=True, alibi=slopes)
    assert isinstance(out, DTensor) and out.placements == (placement,), out
    assert communication.get_total_counts() == 0, communication.get_comm_counts()
    assert torch.equal(out.full_tensor(), expected)


def run_rank(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    tessera.torch.use_interpreter()
    tessera.torch.register_sharding()
    mesh = init_device_mesh("cpu", (RANKS,))
    slopes = torch.tensor([0.5, 0.25, 0.1, 0.05])
    for placement in (Replicate(), Shard(0), Shard(1)):
        check_placement(mesh, placement)
        check_placement(mesh, placement, slopes)
    # One head of keys cannot be divided: the result is right, with communication.
    tensors = problems.make(heads=4, kv_heads=1)
    divided = [distribute_tensor(tensors[0], mesh, [Shard(1)])]
    divided += [distribute_tensor(tensor, mesh, [Replicate()]) for tensor in tensors[1:]]
    out, lse = attention(*divided, return_lse=True)
    expected, expected_lse = attention(*tensors, return_lse=True)
    assert torch.equal(out.full_tensor(), expected) and torch.equal(lse.full_tensor(), expected_lse)
    dist.destroy_process_group()
    # A thread of gloo's that still frees a gathered tensor aborts the process where Python has ended.
    os._exit(0)


class Sharding(unittest.TestCase):
    def test_two_processes(self):
        with tempfile.TemporaryDirectory() as directory:
            torch.multiprocessing.spawn(run_rank, (directory + "/store",), RANKS)


if __name__ == "__main__":
    unittest.main()
