#!/usr/bin/env python3
"""tessera.jax on the GPU: agreement with f64, also of gradients, compiled, mapped, exported, in command buffers, and the
host's time.

    python3 test/gpu/jax_call.py [--quick] [--only TEXT]

Needs libtessera and ptxas, as each kernel is compiled when a program first needs it. The last line reads "N passed,
N failed".
"""

import argparse
import os
import subprocess
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# XLA would time the products that results are compared with for longer than the checks take.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
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
from latent import Lists, Pages
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


ROWS, KEYS = 501, 703


def see_causal(b, h, q, k):
    return k <= q + KEYS - ROWS


def see_window(b, h, q, k):
    return (k >= q + KEYS - ROWS - 100) & (k <= q + KEYS - ROWS + 3)


def assert_gradients(quick, named, score=None, mask=None):
    """Of attention with `named`, which `score` and `mask` define, at all widths, and in both forms."""
    for d, deterministic in ((64, False), (64, True), (128, False), (128, True), (256, False), (256, True))[: 1 if quick else 6]:
        tensors = problems.make(heads=8, rows=ROWS, keys=KEYS, d=d)

        def run(*tensors):
            return attention(*tensors, return_lse=True, deterministic=deterministic, **named)

        def plain(*tensors):
            return problems.define(*tensors, score, mask)

        what = f"d={d} {list(named)} deterministic={deterministic}"
        doubles = [tensor.astype(jnp.float64) for tensor in tensors]
        pulled = jax.jit(lambda *tensors: problems.pull(run, tensors, True))
        found, again = pulled(*tensors), pulled(*tensors)
        exact, rounded = (jax.jit(lambda *tensors: problems.pull(plain, tensors, True))(*some) for some in (doubles, tensors))
        for arrays in zip(found, exact, rounded):
            problems.assert_within_twice(*arrays, what)
        print(f"         {what}", flush=True)
        if deterministic and not all((one == other).all() for one, other in zip(found, again)):
            raise AssertionError(f"{what}: two runs differ")


def check_gradients_without_a_mask(quick):
    assert_gradients(quick, {})


def check_gradients_of_causal_masks(quick):
    assert_gradients(quick, {"causal": True}, mask=see_causal)


def check_gradients_of_windows(quick):
    assert_gradients(quick, {"window": (100, 3)}, mask=see_window)


def check_gradients_of_soft_caps(quick):
    assert_gradients(quick, {"causal": True, "softcap": 5.0}, lambda s, b, h, q, k: 5 * jnp.tanh(s / 5), see_causal)


def check_gradients_of_functions(quick):
    """With what they capture."""
    slopes, lengths = jnp.asarray([2.0**-i for i in range(1, 9)], jnp.float32), jnp.asarray([500, 311], jnp.int32)
    named = {
        "score_mod": lambda s, b, h, q, k: 5 * tessera.tanh(s / 5) - slopes[h] * abs(q - k),
        "mask_mod": lambda b, h, q, k: k < lengths[b],
    }
    assert_gradients(
        quick, named, lambda s, b, h, q, k: 5 * jnp.tanh(s / 5) - slopes[h] * abs(q - k), lambda b, h, q, k: k < lengths[b]
    )


def check_vmap(quick):
    q, k, v = problems.make(rows=130, keys=200)
    out = jax.jit(jax.vmap(lambda q: attention(q, k, v, causal=True)))(jnp.stack([q, -q]))
    assert_close(out[1], problems.exact(-q, k, v, right=0)[0], "vmap")


def check_latent_attention(quick):
    """The cases of test/Jax/latent.py."""
    for case in (Pages, Lists):
        for name in dir(case):
            if name.startswith("test_"):
                getattr(case(name), name)()


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


CHECKS = [
    check_meaning, check_gradients_without_a_mask, check_gradients_of_causal_masks, check_gradients_of_windows,
    check_gradients_of_soft_caps, check_gradients_of_functions, check_vmap, check_latent_attention, check_many_calls, check_exported_programs,
    check_host_time,
]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--only", default="", metavar="TEXT", help="only checks whose name has TEXT")
    options = parser.parse_args()
    checks.run([check for check in CHECKS if options.only in check.__name__], options.quick)
