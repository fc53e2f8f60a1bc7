#!/usr/bin/env python3
"""tessera.jax on the GPU: agreement with f64, also of gradients, compiled, mapped, exported, in command buffers, and the
host's time.

    python3 test/gpu/jax_call.py [--quick]

Needs libtessera and ptxas, as each kernel is compiled when a program first needs it. The last line reads "N passed,
N failed".
"""

import argparse
import os
import subprocess
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
_HERE = os.path.dirname(os.path.abspath(__file__))
_DIRECTORIES = [_HERE, os.path.join(_HERE, "..", "Jax")]
sys.path[:0] = _DIRECTORIES

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import checks
import problems
from kernels import tessera  # noqa: F401  puts the package on the path
from tessera.jax import attention


def assert_close(out, expected, what):
    error = np.abs(np.asarray(out, np.float64) - expected).max()
    limit = 2 * float(jnp.finfo(out.dtype).eps) * (np.abs(expected).max() + 0.25)
    if not error <= limit:
        raise AssertionError(f"{what}: error {error:.3g}, limit {limit:.3g}")


def check_meaning(quick):
    slopes = jnp.asarray([2.0**-i for i in range(1, 9)], jnp.float32)
    for d in (64, 128) if quick else (64, 72, 128, 256):
        for dtype in (jnp.bfloat16,) if quick else (jnp.bfloat16, jnp.float16):
            for named, bounds in (
                ({}, {}),
                ({"causal": True}, {"right": 0}),
                ({"window": (100, 3)}, {"left": 100, "right": 3}),
                ({"softcap": 5.0}, {"softcap": 5.0}),
                ({"causal": True, "alibi": slopes}, {"right": 0, "slopes": slopes}),
            ):
                for layout in ("BSHD", "BHSD"):
                    tensors = problems.make(heads=8, rows=501, keys=703, d=d, dtype=dtype, layout=layout)
                    out, lse = attention(*tensors, layout=layout, return_lse=True, **named)
                    expected, expected_lse = problems.exact(*tensors, layout=layout, **bounds)
                    what = f"d={d} {dtype.__name__} {layout} {list(named)}"
                    assert_close(out, expected, what)
                    if not np.allclose(np.asarray(lse), expected_lse, rtol=2e-4, atol=2e-4):
                        raise AssertionError(f"{what}: LSE")
                    if not (attention(*tensors, layout=layout, **named) == out).all():
                        raise AssertionError(f"{what}: without the LSE the output differs")


def check_gradients(quick):
    """Of masks, soft caps and functions with what they capture, in both forms."""
    slopes, lengths = jnp.asarray([2.0**-i for i in range(1, 9)], jnp.float32), jnp.asarray([500, 311], jnp.int32)

    def causal(b, h, q, k):
        return k <= q + 703 - 501

    for named, score, mask in (
        ({}, None, None),
        ({"causal": True}, None, causal),
        ({"causal": True, "softcap": 5.0}, lambda s, b, h, q, k: 5 * jnp.tanh(s / 5), causal),
        ({"score_mod": lambda s, b, h, q, k: 5 * tessera.tanh(s / 5) - slopes[h] * abs(q - k),
          "mask_mod": lambda b, h, q, k: k < lengths[b]},
         lambda s, b, h, q, k: 5 * jnp.tanh(s / 5) - slopes[h] * abs(q - k), lambda b, h, q, k: k < lengths[b]),
    ):  # fmt: skip
        for d, deterministic in ((64, False), (64, True), (128, False), (256, True))[: 1 if quick else 4]:
            tensors = problems.make(heads=8, rows=501, keys=703, d=d)

            def run(*tensors):
                return attention(*tensors, return_lse=True, deterministic=deterministic, **named)

            def plain(*tensors):
                return problems.define(*tensors, score, mask)

            what = f"d={d} {list(named)} deterministic={deterministic}"
            doubles = [tensor.astype(jnp.float64) for tensor in tensors]
            found, again = (jax.jit(lambda *tensors: problems.pull(run, tensors, True))(*tensors) for _ in range(2))
            for arrays in zip(found, problems.pull(plain, doubles, True), problems.pull(plain, tensors, True)):
                problems.assert_within_twice(*arrays, what)
            if deterministic and not all((one == other).all() for one, other in zip(found, again)):
                raise AssertionError(f"{what}: two runs differ")


def check_vmap(quick):
    q, k, v = problems.make(rows=130, keys=200)
    out = jax.jit(jax.vmap(lambda q: attention(q, k, v, causal=True)))(jnp.stack([q, -q]))
    assert_close(out[1], problems.exact(-q, k, v, right=0)[0], "vmap")


def check_many_calls(quick):
    """Eight calls of a program, which XLA may record in a command buffer, run a hundred times."""
    q, k, v = problems.make(heads=8, rows=600, keys=600, d=128)
    run = jax.jit(lambda q, k, v: [attention(q * (i + 1), k, v, causal=True) for i in range(8)])
    expected = [attention(q * (i + 1), k, v, causal=True) for i in range(8)]
    for _ in range(100):
        results = run(q, k, v)
    for out, like in zip(results, expected):
        if not (out == like).all():
            raise AssertionError("results differ")


def check_exported_programs(quick):
    tensors = problems.make(rows=50, keys=70)
    run = jax.jit(lambda *tensors: attention(*tensors, causal=True))
    allowed = [jax.export.DisabledSafetyCheck.custom_call("tessera_attention")]
    program = jax.export.export(run, disabled_checks=allowed)(*tensors).serialize()
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]; import jax, problems; from kernels import tessera; import tessera.jax;"
        "tessera.jax.register(); run = jax.export.deserialize(bytearray(sys.stdin.buffer.read())).call;"
        "print(run(*problems.make(rows=50, keys=70)).tobytes().hex())"
    )
    other = subprocess.run([sys.executable, "-c", script, *_DIRECTORIES], input=program, capture_output=True)
    if other.stdout.decode().strip() != run(*tensors).tobytes().hex():
        raise AssertionError(f"another process gives another result: {other.stderr.decode()[-500:]}")


def check_host_time(quick):
    """Prints the host's microseconds for a compiled call, beside one that does nothing but copy."""
    tensors = problems.make(batch=1, heads=8, kv_heads=8, rows=128, keys=128)
    for name, run in (
        ("attention", jax.jit(lambda q, k, v: attention(q, k, v))),
        ("dot_product_attention of jax", jax.jit(lambda q, k, v: jax.nn.dot_product_attention(q, k, v))),
        ("q + k", jax.jit(lambda q, k, v: q + k)),
    ):
        jax.block_until_ready(run(*tensors))
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(200):
                out = run(*tensors)
            best = min(best, (time.perf_counter() - start) / 200)
            jax.block_until_ready(out)
        print(f"         {best * 1e6:6.1f} us  {name}", flush=True)


CHECKS = [check_meaning, check_gradients, check_vmap, check_many_calls, check_exported_programs, check_host_time]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    checks.run(CHECKS, parser.parse_args().quick)
