#!/usr/bin/env python3
"""Attention in JAX: compiled, mapped over, differentiated, with functions of scores and masks, and sharded over heads.

    python3 python_examples/jax_attention.py                on a Hopper GPU
    python3 python_examples/jax_attention.py --interpret    small, on two devices of the CPU, by the interpreter

Needs JAX 0.7 or newer.
"""

import argparse
import os
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpret", action="store_true", help="on the CPU, by the interpreter")
    options = parser.parse_args()
    if options.interpret:
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import tessera.jax
    from tessera.jax import attention

    tessera.jax.use_interpreter(options.interpret)
    keys = jax.random.split(jax.random.key(0), 3)
    shape = (1, 100 if options.interpret else 4096, 4, 64)
    q, k, v = (jax.random.normal(key, shape, jnp.bfloat16) for key in keys)

    def report(what, result, expected):
        error = jnp.abs(result.astype(jnp.float32) - expected.astype(jnp.float32)).max()
        print(f"{what}: differs by at most {error:.3f}")
        if not error < 0.05:
            raise SystemExit(f"{what} is wrong")

    # The function takes float16 and bfloat16, [B, S, H, D] as JAX' own.
    run = jax.jit(lambda q, k, v: attention(q, k, v, causal=True))
    expected = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    report("compiled", run(q, k, v), expected)
    # The mapped dimension joins the batch.
    report("mapped", jax.vmap(run, in_axes=(0, None, None))(jnp.stack([q, -q]), k, v)[0], expected)
    # Gradients of q, k and v, here of q for ones.
    ours, theirs = (
        jax.grad(lambda q: attend(q, k, v).astype(jnp.float32).sum())(q)
        for attend in (run, lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True))
    )
    report("differentiated", ours, theirs)
    # What functions capture may change without a new kernel.
    slopes = 2.0 ** -jnp.arange(1, 5, dtype=jnp.float32)
    result = attention(
        q, k, v, score_mod=lambda score, b, h, i, j: score - slopes[h] * (i - j), mask_mod=lambda b, h, i, j: j <= i
    )
    report("with functions", result, attention(q, k, v, alibi=slopes, causal=True))
    # Heads stay where they are.
    mesh = Mesh(np.array(jax.devices()), ("heads",))
    sharding = NamedSharding(mesh, PartitionSpec(None, None, "heads"))
    shards = [jax.device_put(tensor, sharding) for tensor in (q, k, v)]
    report(f"sharded over {len(jax.devices())} devices", run(*shards), expected)
    print("gathers:", "all-gather" in run.lower(*shards).compile().as_text())


main()
