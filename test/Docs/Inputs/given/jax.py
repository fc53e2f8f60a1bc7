import jax.numpy as jnp
import numpy as np
import tessera.jax

tessera.jax.use_interpreter()
slopes = jnp.linspace(0.1, 0.8, 8)
document = np.stack([np.arange(128) // 32] * 2)
chosen = np.zeros((1, 1, 2, 1), np.int32)


def causal(b, h, q, k):
    return q >= k
