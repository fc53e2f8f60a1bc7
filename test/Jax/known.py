# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %jax-python %s
"""What functions of scores are known by in JAX: whatever changes of what they read, the next call computes with it."""

import os
import random
import sys
import unittest

import jax.numpy as jnp
import numpy as np
import problems

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Python"))

import changing

from tessera.jax import attention

JAX = changing.Framework(jnp, ("sin", "cos", "tanh", "floor"))


class Functions(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.tensors = problems.make(batch=1, heads=1, kv_heads=1, rows=6, keys=9, dtype=jnp.float16)

    def follow(self, seed, kinds=None, changes=3):
        """A function that is drawn, and what it is after each of some changes."""
        function = changing.Changing(random.Random(seed), JAX, kinds)
        changed = "nothing"
        for _ in range(changes):
            with self.subTest(seed=seed, kinds=function.kinds, changed=changed):
                score = function.module.score
                _, lse = attention(*self.tensors, score_mod=score, return_lse=True)
                _, want = problems.define(*(x.astype(jnp.float32) for x in self.tensors), lambda *values: jnp.asarray(score(*values)))
                self.assertLess(abs(np.asarray(lse) - np.asarray(want)).max(), 1e-3)
            changed = function.change()

    def test_each_kind(self):
        for seed, kind in enumerate(JAX.list_kinds()):
            self.follow(seed, [kind], 5)

    def test_functions(self):
        for seed in range(100):
            self.follow(seed)

    def test_signs(self):
        """Numbers that are equal may differ in their signs."""
        found = []
        for zero in (0.0, -0.0, 0.0):
            score = lambda s, b, h, q, k: jnp.where(1 / (zero * (k + 1)) > 0, s + 1, s)
            found.append(np.asarray(attention(*self.tensors, score_mod=score, return_lse=True)[1]))
        np.testing.assert_allclose(found[0], found[1] + 1, atol=1e-4)
        np.testing.assert_array_equal(found[0], found[2])


if __name__ == "__main__":
    unittest.main()
