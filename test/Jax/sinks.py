# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Sinks of heads, in JAX on the interpreter, compared with f64."""

import unittest

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import problems

import tessera.jax
from tessera.jax import BlockMask, attention

SINKS = jnp.asarray([0.5, -2.0, 3.0, 0.0], jnp.float32)


def define(q, k, v, sinks, score, mask):
    """(output, LSE) of a definition without sinks, with them."""
    out, lse = problems.define(q, k, v, score, mask)
    whole = jnp.logaddexp(lse, sinks.astype(lse.dtype)[:, None])
    return out * jnp.exp(lse - whole).swapaxes(1, 2)[..., None], whole


class Cases(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.tensors = problems.make(rows=60, keys=70, dtype=jnp.float16)

    def check(self, named, score, mask, sinks=SINKS):
        def run(*tensors):
            return attention(*tensors[:3], sinks=tensors[3], return_lse=True, **named)

        doubles = [tensor.astype(jnp.float64) for tensor in (*self.tensors, sinks)]
        out, lse = run(*self.tensors, sinks)
        want, want_lse = define(*doubles, score, mask)
        problems.assert_close(self, out, np.asarray(want))
        np.testing.assert_allclose(np.asarray(lse), np.asarray(want_lse), atol=2e-3)
        found = problems.pull_compiled(run, (*self.tensors, sinks))
        exact = problems.pull_compiled(lambda *tensors: define(*tensors, score, mask), doubles)
        for one, expected in zip(found, exact):
            error = np.linalg.norm(np.asarray(one, np.float64) - np.asarray(expected))
            self.assertLess(error, 8 * float(jnp.finfo(jnp.float16).eps) * np.linalg.norm(expected))


class Results(Cases):
    def test_against_f64(self):
        """Beside a causal mask, a window with a soft cap and slopes, functions, and blocks; of 16 bits too."""
        slopes, away = jnp.asarray([0.5, 0.25, 0.125, 1.0], jnp.float32), lambda q, k: q + 10 - k
        table = np.array([[[[1, 0], [1, 1]]]])
        blocks = BlockMask.from_kv_blocks(table.sum(-1), np.array([[[[0, 1], [0, 1]]]]), BLOCK_SIZE=(32, 64), seq_lengths=(60, 70))
        self.check({"causal": True}, None, lambda b, h, q, k: away(q, k) >= 0, SINKS.astype(jnp.bfloat16))
        self.check(
            {"window": (30, 0), "softcap": 1.5, "alibi": slopes},
            lambda s, b, h, q, k: 1.5 * jnp.tanh(s / 1.5) - slopes.astype(jnp.float64)[h] * abs(away(q, k)),
            lambda b, h, q, k: (away(q, k) >= 0) & (away(q, k) <= 30),
        )
        lengths = jnp.asarray([20, 70])
        self.check({"mask_mod": lambda b, h, q, k: k < lengths[b]}, None, lambda b, h, q, k: k < lengths[b])
        self.check({"block_mask": blocks}, None, lambda b, h, q, k: jnp.asarray(table)[0, 0, q // 32, k // 64] > 0)

    def test_no_keys(self):
        q, k, v = self.tensors
        out, lse = attention(q, k[:, :0], v[:, :0], sinks=SINKS, return_lse=True)
        self.assertTrue((out == 0).all() and (lse == SINKS[:, None]).all())

    def test_refusals(self):
        variant = tessera.Variant(score=lambda s, b, h, q, k: s)
        for error, text, sinks, named in (
            (ValueError, r"'sinks' is float64 of shape \(4,\); attention takes one number for each of the 4 heads", SINKS.astype(jnp.float64), {}),
            (ValueError, r"'sinks' is float32 of shape \(2,\)", SINKS[:2], {"causal": True}),
            (TypeError, "'sinks' is of type float; it is an array", 3.0, {}),
            (ValueError, "'sinks' is given with functions of scores and masks", SINKS, {"variant": variant, "arguments": {}}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                attention(*self.tensors, sinks=sinks, **named)
        with self.assertRaisesRegex(NotImplementedError, "'sinks' is a sum over blocks in any order, and `deterministic`"):
            jax.grad(lambda sinks: attention(*self.tensors, sinks=sinks, deterministic=True).sum())(SINKS)


if __name__ == "__main__":
    unittest.main()
