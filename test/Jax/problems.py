"""Problems for the tests, and what they compare results with."""

import subprocess
import sys
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import tessera.jax


class Interpreted(unittest.TestCase):
    """Tests whose calls the interpreter computes."""

    def setUp(self):
        self.addCleanup(tessera.jax.use_interpreter, tessera.jax.use_interpreter())


def make(batch=2, heads=4, kv_heads=2, rows=37, keys=53, d=64, dv=None, dtype=jnp.bfloat16, layout="BSHD", seed=0):
    """q, k, v in the order of `layout`."""
    generator = np.random.default_rng(seed)

    def normal(heads, length, width):
        shape = (batch, length, heads, width) if layout == "BSHD" else (batch, heads, length, width)
        return jnp.asarray(generator.standard_normal(shape), dtype)

    return normal(heads, rows, d), normal(kv_heads, keys, d), normal(kv_heads, keys, dv or d)


def exact(q, k, v, left=None, right=None, softcap=0.0, slopes=None, layout="BSHD"):
    """(output in `layout`, LSE) in float64. Windows are aligned at the last row and key."""
    q, k, v = (np.asarray(tensor, np.float64) for tensor in (q, k, v))
    if layout == "BSHD":
        q, k, v = (tensor.swapaxes(1, 2) for tensor in (q, k, v))
    k, v = (np.repeat(tensor, q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[3] ** -0.5
    rows, keys = scores.shape[2:]
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    offset = np.arange(keys) - (np.arange(rows)[:, None] + keys - rows)
    if slopes is not None:
        scores = scores - np.asarray(slopes, np.float64).reshape(-1, 1, 1) * abs(offset)
    visible = np.ones_like(scores, bool) & (left is None or offset >= -left) & (right is None or offset <= right)
    weights = np.where(visible, np.exp(scores), 0.0)
    sums = weights.sum(-1, keepdims=True)
    out = np.divide(weights, sums, out=np.zeros_like(weights), where=sums != 0) @ v
    with np.errstate(divide="ignore"):
        return (out.swapaxes(1, 2) if layout == "BSHD" else out), np.log(sums[..., 0])


def assert_close(test, out, expected):
    """Twice what rounding P and the output to 16 bits costs, and two units in the last place of a value near 0.3."""
    unit = float(jnp.finfo(out.dtype).eps)
    error = abs(np.asarray(out, np.float64) - expected).max()
    test.assertLessEqual(error, 2 * unit * abs(expected).max() + 2 * unit * 0.25)


def define(q, k, v, score=None, mask=None, layout="BSHD"):
    """(output, LSE) by definition, which JAX differentiates: in float64, or with products of 16 bits as kernels have them.
    Functions of scores and masks take arrays of indices."""
    if layout == "BSHD":
        q, k, v = (tensor.swapaxes(1, 2) for tensor in (q, k, v))
    wide = jnp.promote_types(q.dtype, jnp.float32)
    k, v = (jnp.repeat(tensor, q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=wide) * q.shape[3] ** -0.5
    place = jnp.ogrid[: q.shape[0], : q.shape[1], : q.shape[2], : k.shape[2]]
    if score is not None:
        scores = score(scores, *place).astype(wide)
    if mask is not None:
        scores = jnp.where(mask(*place), scores, -jnp.inf)
    highest = jnp.maximum(scores.max(-1, keepdims=True), jnp.finfo(wide).min)
    weights = jnp.exp(scores - highest)
    sums = weights.sum(-1, keepdims=True)
    weights = weights / jnp.where(sums == 0, 1, sums)
    out = jnp.einsum("bhqk,bhkd->bhqd", weights.astype(q.dtype), v, preferred_element_type=wide).astype(q.dtype)
    lse = jnp.where(sums == 0, -jnp.inf, highest + jnp.log(jnp.where(sums == 0, 1, sums)))[..., 0]
    return (out.swapaxes(1, 2) if layout == "BSHD" else out), lse


def pull(function, tensors, lse, seed=1):
    """Gradients of q, k, v, and of what follows them, through `function` for given ones of the output, and of the LSE where
    `lse` says so."""
    generator = np.random.default_rng(seed)

    def scalar(*tensors):
        out, logarithms = function(*tensors)
        wide = jnp.promote_types(out.dtype, jnp.float32)
        loss = (out.astype(wide) * generator.standard_normal(out.shape).astype(np.float16)).sum()
        if lse:
            loss += (jnp.where(jnp.isinf(logarithms), 0, logarithms) * generator.standard_normal(logarithms.shape)).sum()
        return loss.astype(wide)

    return jax.grad(scalar, tuple(range(len(tensors))))(*tensors)


def pull_compiled(function, tensors, lse=True):
    """The same, compiled as one, which takes less time than each operation by itself where shapes are new."""
    return jax.jit(lambda *tensors: pull(function, tensors, lse))(*tensors)


def assert_within_twice(found, exact, rounded, what=""):
    """The error of what was found, beside that of the same computation with products of 16 bits."""
    found, exact, rounded = (np.asarray(array, np.float64) for array in (found, exact, rounded))
    error, limit = np.linalg.norm(found - exact), 2 * np.linalg.norm(rounded - exact)
    if not error <= limit:
        raise AssertionError(f"{what}: error {error:.3g}, limit {limit:.3g}")


def check_export(test, function):
    """A function of attention runs exported in another process, which has imported this module and tessera.jax."""
    tensors, run = make(rows=5, keys=7), jax.jit(function)
    allowed = [jax.export.DisabledSafetyCheck.custom_call("tessera_attention")]
    program = jax.export.export(run, disabled_checks=allowed)(*tensors).serialize()
    script = (
        "import sys, jax, problems, tessera.jax; tessera.jax.use_interpreter(); tessera.jax.register();"
        "run = jax.export.deserialize(bytearray(sys.stdin.buffer.read())).call;"
        "print(run(*problems.make(rows=5, keys=7)).tobytes().hex())"
    )
    other = subprocess.run([sys.executable, "-c", script], input=program, capture_output=True, cwd=sys.path[0])
    test.assertEqual(other.stderr.decode(), "")
    test.assertEqual(other.stdout.decode().strip(), run(*tensors).tobytes().hex())
