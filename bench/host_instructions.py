"""How many instructions calls of attention take from PyTorch, by valgrind: of the host alone, the same in each run.

Attention forward with one query and one key, as bench/host.py times it, but with tensors of the CPU and the driver of the
tests, which does nothing: what CUDA's allocator and driver take is not in it, and PyTorch's kernels for the CPU allocate.
Each call is counted through the dispatcher and past it, those for engines past it.
"""

import argparse
import contextlib
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLS = 400


def make_calls(d):
    import torch

    from tessera.torch import attention

    q, k, v = (torch.zeros((1, 1, 1, d), dtype=torch.bfloat16) for _ in range(3))
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    return {
        "attention": lambda: attention(q, k, v),
        "attention, return_lse": lambda: attention(q, k, v, return_lse=True),
        "attention, with gradients": lambda: attention(*leaves),
    }


def make_engine_calls(d):
    """Calls for serving engines, whose dispatched form is Python's: over pages of a cache, of a latent one, and a step of decoding."""
    import torch

    from tessera.torch import flash_attn_with_kvcache, gated_delta_rule, mla_with_kvcache

    def make(*shape, dtype=torch.bfloat16):
        return torch.zeros(shape, dtype=dtype)

    lengths, table = torch.tensor([5, 7], dtype=torch.int32), make(2, 3, dtype=torch.int32)
    q, caches, latent = make(2, 1, 8, d), (make(9, 64, 2, d), make(9, 64, 2, d)), (make(2, 1, 16, 576), make(9, 64, 1, 576), table, lengths)
    given = {"page_table": table, "num_splits": 1}
    new = {name: make(2, 2, 2, d).transpose(0, 1) for name in "kv"}
    step = *(make(2, 1, 8, 64) for _ in range(3)), *(make(2, 1, 8) for _ in range(2)), 1.0, make(2, 8, 64, 64, dtype=torch.float32)
    return {
        "keys in pages": lambda: flash_attn_with_kvcache(q, *caches, cache_seqlens=lengths, **given),
        "keys in pages, a number": lambda: flash_attn_with_kvcache(q, *caches, cache_seqlens=7, **given),
        "new keys that are copied": lambda: flash_attn_with_kvcache(q, *caches, **new, cache_seqlens=lengths, **given),
        "latent rows in pages": lambda: mla_with_kvcache(*latent),
        "a step of decoding": lambda: gated_delta_rule(*step, True),
    }  # fmt: skip


def control(*command):
    subprocess.run(["callgrind_control", *command, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)


def repeat(call, times):
    for _ in range(times):
        call()


def run_calls(d, counts):
    """Inside valgrind: a dump of its counts after each sort of call, by its name. Otherwise it compiles kernels into the cache."""
    sys.path[:0] = [os.path.join(ROOT, "test", "Torch"), os.path.join(ROOT, "test", "Python")]
    import fake_cuda
    import on_cpu

    import tessera.torch

    fake_cuda.reset()
    fake_cuda.library.fake_cuda_set_device(0)
    fake_cuda.take_low_addresses()
    tessera.torch.use_interpreter()
    for is_counted in (False, True)[: 1 + counts]:
        if is_counted:  # What is loaded before would take minutes.
            control("--instr=on")
        for path, direct in (("dispatched", False), ("direct", True)):
            with contextlib.ExitStack() as stack:
                for patch in on_cpu.call_ops(direct):
                    stack.enter_context(patch)
                for name, call in {"nothing": lambda: None, **make_calls(d), **(make_engine_calls(d) if direct else {})}.items():
                    repeat(call, 10)
                    if is_counted:
                        control("--dump=rest")  # The counts begin afresh.
                        repeat(call, CALLS)
                        control(f"--dump={name}, {path}")
    os._exit(0)


def count(d, directory, keep):
    """Instructions of a call by name."""
    libraries = os.path.join(ROOT, "build", "test", "fake-cuda")
    environment = {
        **os.environ, "LD_LIBRARY_PATH": libraries, "TESSERA_LIBRARY": os.path.join(ROOT, "build", "lib"),
        "TESSERA_CACHE_DIR": os.path.join(directory, "cache"), "PYTHONPATH": os.path.join(ROOT, "python"), "PYTHONHASHSEED": "0",
    }  # fmt: skip
    prefix = os.path.join(directory, "counts")
    command = [
        "valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={prefix}", sys.executable, __file__,
    ]  # fmt: skip
    subprocess.run([sys.executable, __file__, "--inside", str(d), "--compile"], env=environment, check=True)
    process = subprocess.run([*command, "--inside", str(d)], env=environment, capture_output=True, text=True)
    found = {}
    for path in glob.glob(prefix + ".*"):
        text = open(path).read()
        name = re.search(r"^desc: Trigger: dump (.*)$", text, re.MULTILINE)
        total = re.search(r"^summary: (\d+)", text, re.MULTILINE)
        if name and total:
            found[name[1]] = int(total[1])
    if keep:
        print(f"profiles: {prefix}.*", flush=True)
    if not found:
        raise SystemExit(process.stderr)
    nothing = found.pop("nothing, direct")
    del found["nothing, dispatched"], found["rest"]
    return {name: round((total - nothing) / CALLS) for name, total in sorted(found.items())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", type=int, default=64, help="head dimension")
    parser.add_argument("--keep", metavar="DIR", help="for callgrind's profiles, which callgrind_annotate reads")
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_calls(options.inside, not options.compile)
    with tempfile.TemporaryDirectory() as directory:
        found = count(options.d, options.keep or directory, options.keep)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
