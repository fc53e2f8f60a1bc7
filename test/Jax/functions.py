# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Functions of scores and masks in JAX, with what they capture, on the interpreter, compared with f64."""

import functools
import math
import re
import unittest
import warnings

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import problems
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tessera.jax
from tessera import TraceError, Variant, exp2, masks, where
from tessera._functions import _captured, _places
from tessera.jax import attention

SLOPES = jnp.asarray([0.5, 0.25, 0.125, 0.0625], jnp.float32)


def by_module(s, b, h, q, k):
    return s - SLOPES[h] * abs(q - k)


class Cases(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.tensors = problems.make(rows=19, keys=28, dtype=jnp.float16)

    def check(self, score=None, mask=None, run=None, tensors=None, **named):
        """attention beside its definition, of which `score` and `mask` are also the functions where there are no others."""
        if run is None and "variant" not in named:
            named = {"score_mod": score, "mask_mod": mask, **named}
        tensors = tensors or self.tensors
        out, lse = (run or functools.partial(attention, return_lse=True, **named))(*tensors)
        exact, exact_lse = problems.define(*(tensor.astype(jnp.float64) for tensor in tensors), score, mask)
        problems.assert_close(self, out, np.asarray(exact))
        np.testing.assert_allclose(np.asarray(lse), np.asarray(exact_lse), atol=2e-3)
        return out


class Captured(Cases):
    def test_element_types(self):
        for dtype in (jnp.float32, jnp.float16, jnp.bfloat16, jnp.int64, jnp.int32, jnp.int8):
            with self.subTest(dtype):
                of_heads, one = jnp.asarray([3, -2, 1, 0], dtype), jnp.asarray(5, dtype)
                tile = (jnp.arange(19 * 32).reshape(19, 32) % 7).astype(dtype)
                self.check(lambda s, b, h, q, k: s * of_heads[h] + tile[q, k] * one / 4)
        seen, flag = np.arange(28) % 3 != 1, jnp.asarray(True)
        self.check(mask=lambda b, h, q, k: (jnp.asarray(seen)[k] & flag), mask_mod=lambda b, h, q, k: seen[k] & flag)

    def test_numbers_of_64_bits(self):
        """JAX keeps 32 bits of numbers of numpy, unless it is told to."""
        for last, dtype, fits in (
            (2**31 - 1, np.int64, True), (2**31, np.int64, False), (-(2**31) - 1, np.int64, False), (2**32 + 5, np.uint64, False),
            (0.1, np.float64, True), (-np.inf, np.float64, True), (np.nan, np.float64, True), (1e39, np.float64, False),
            (-1e300, np.float64, False),
        ):  # fmt: skip
            of = np.array([*range(27), last], dtype)
            mask = lambda b, h, q, k: of[q] == of[k]
            with self.subTest(last), jax.enable_x64(False):
                if fits:
                    attention(*self.tensors, mask_mod=mask)
                    continue
                text = re.escape(f"an array of {np.dtype(dtype)} has {of[-1]}, and JAX keeps {np.dtype(dtype).name[:-2]}32, which ends")
                with self.assertRaisesRegex(TraceError, text), warnings.catch_warnings(action="ignore"):
                    attention(*self.tensors, mask_mod=mask)

    def test_places(self):
        """Closures, globals, arguments, partial functions, and numbers of Python and of numpy."""
        width, factor, document = 4, np.float32(0.5), np.arange(28) // 6

        def score(s, b, h, q, k):
            return s * factor + SLOPES[h] * (q - k) / width

        self.check(by_module)
        self.check(score, lambda b, h, q, k: jnp.asarray(document)[q] == jnp.asarray(document)[k],
                   mask_mod=lambda b, h, q, k: document[q] == document[k])  # fmt: skip
        self.check(lambda s, b, h, q, k: s * 2 + SLOPES[h], score_mod=lambda s, b, h, q, k, n, a: s * n + a[h],
                   score_args=(2, SLOPES))  # fmt: skip
        partial = functools.partial(lambda n, s, b, h, q, k: s * n, 0.5)
        self.check(lambda s, b, h, q, k: s / 2, lambda b, h, q, k: k < 9 + q, score_mod=partial,
                   mask_mod=lambda b, h, q, k, n: k < n + q, mask_args=(jnp.asarray(9),))  # fmt: skip

    def test_functions_of_jax(self):
        """Those of jax.numpy, by any name, are the same of traced values and of others."""
        from jax.numpy import exp, logical_or

        self.check(
            lambda s, b, h, q, k: jnp.where(q > k, jnp.tanh(s), jnp.clip(s, -1, 1.5)) + jax.numpy.power(s, 2) + exp(-abs(s)),
            lambda b, h, q, k: logical_or(jnp.equal(q % 3, k % 3), k < jnp.minimum(q, jnp.asarray([5, 9]).max())),
        )  # fmt: skip

    def test_arithmetic(self):
        """Of conditions, powers, numbers of Python and NaN, as jax.numpy has it."""
        width, row = 100000, jnp.asarray([math.nan, 0.5] * 14, jnp.float32)
        self.check(
            lambda s, b, h, q, k: s * jnp.power(2, h) + jnp.left_shift(1, q % 30) / 2**28 + width * width / 1e10,
            lambda b, h, q, k: jnp.maximum(q >= k, k < 3) + (q * 0 + k < 5) * (k < width * width // 10**9),
        )
        self.check(mask=lambda b, h, q, k: jnp.minimum(row[k], q * 1.0) == jnp.maximum(row[k], q * 1.0) + 0 * (k < q))
        self.check(mask=lambda b, h, q, k: jnp.minimum(row[k], q * 1.0) == jnp.minimum(row[k], q * 1.0))

    def test_variant(self):
        variant = Variant(score=lambda s, b, h, q, k, cap, slopes: s * cap + slopes[h], mask=masks.causal & masks.prefix,
                          cap=float, slopes=("H",))  # fmt: skip
        given = {"cap": 0.5, "slopes": np.asarray(SLOPES), "prefix": 13}
        for layout in ("BSHD", "BHSD"):
            tensors = problems.make(rows=19, keys=28, dtype=jnp.float16, layout=layout)
            run = functools.partial(attention, variant=variant, arguments=given, layout=layout)
            expected = problems.define(
                *(tensor.astype(jnp.float64) for tensor in tensors), lambda s, b, h, q, k: s / 2 + SLOPES[h],
                lambda b, h, q, k: (k <= q + 9) & (k < 13), layout,
            )  # fmt: skip
            problems.assert_close(self, run(*tensors), np.asarray(expected[0]))

    def test_other_values_need_no_new_kernel(self):
        def run(width, slopes):
            self.check(lambda s, b, h, q, k: s * width + slopes[h])

        run(3, SLOPES)
        before = _captured.answer.cache_info().misses
        for width in (0, -3, 7):
            run(width, SLOPES * width)
        self.assertEqual(_captured.answer.cache_info().misses, before)


class Transformations(Cases):
    def test_jit(self):
        """Traced arrays that functions capture are operands."""

        @jax.jit
        def run(q, k, v, slopes, lengths):
            return attention(
                q, k, v, score_mod=lambda s, b, h, q, k: s + slopes[h], mask_mod=lambda b, h, q, k, n: k < n[b],
                mask_args=(lengths,), return_lse=True,
            )  # fmt: skip

        for slopes, lengths in ((SLOPES, jnp.asarray([5, 28])), (-SLOPES, jnp.asarray([0, 1]))):
            self.check(
                lambda s, b, h, q, k: s + slopes[h], lambda b, h, q, k: k < lengths[b],
                lambda *tensors: run(*tensors, slopes, lengths),
            )  # fmt: skip
        self.assertEqual(run._cache_size(), 1)

    def test_vmap(self):
        """What is indexed by the batch is mapped over with it."""
        lengths, words = jnp.asarray([5, 28]), jnp.arange(2 * 28).reshape(2, 28) % 5

        def run(q, k, v, n, words):
            results = attention(
                q[None], k[None], v[None], mask_mod=lambda b, h, q, k: (k < n[b]) & (words[k, b] != 3),
                score_mod=lambda s, b, h, q, k: s + SLOPES[h], return_lse=True,
            )  # fmt: skip
            return tuple(result[0] for result in results)

        mapped = jax.jit(jax.vmap(lambda q, k, v, n, words: run(q, k, v, n[None], words[:, None])))
        self.check(lambda s, b, h, q, k: s + SLOPES[h], lambda b, h, q, k: (k < lengths[b]) & (words[b, k] != 3),
                   lambda *tensors: mapped(*tensors, lengths, words))  # fmt: skip
        q, k, v = self.tensors
        many = jnp.stack([q, -q])
        out = jax.vmap(lambda q: attention(q, k, v, mask_mod=lambda b, h, q, k: k < lengths[b]))(many)
        for one, of_one in zip(many, out):
            expected = attention(one, k, v, mask_mod=lambda b, h, q, k: k < lengths[b])
            self.assertTrue((of_one == expected).all())
        with self.assertRaisesRegex(NotImplementedError, "argument 'slopes' is mapped over by vmap; what is not indexed by"):
            jax.vmap(lambda slopes: attention(q, k, v, score_mod=lambda s, b, h, q, k: s + slopes[h]))(jnp.ones((3, 4), jnp.float32))
        with self.assertRaisesRegex(NotImplementedError, "functions of scores and masks compute with b, .* by \\[b\\]"):
            jax.vmap(lambda q: attention(q, k, v, mask_mod=lambda b, h, q, k: k >= b))(many)

    def test_sharding(self):
        """Heads and batches stay sharded where functions take what is of them by their index, and else are gathered."""
        mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
        lengths, of_heads = jnp.asarray([5, 28]), (None, None, "x")
        tall = jnp.concatenate([SLOPES, SLOPES])
        for spec, gathers, score, mask in (
            (of_heads, False, by_module, lambda b, h, q, k: k < lengths[b]),
            (("x",), False, by_module, lambda b, h, q, k: k < lengths[b]),
            (of_heads, True, lambda s, b, h, q, k: s + h, None),
            (of_heads, True, lambda s, b, h, q, k: s + tall[h], None),
            (of_heads, True, lambda s, b, h, q, k: s + SLOPES[h] - SLOPES[0], None),
            (of_heads, True, lambda s, b, h, q, k: s + SLOPES[3 - h], None),
            (("x",), True, None, lambda b, h, q, k: k < 9 + b),
        ):
            with self.subTest(spec=spec, gathers=gathers):
                shards = [jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec))) for x in self.tensors]
                run = jax.jit(functools.partial(attention, score_mod=score, mask_mod=mask, return_lse=True))
                self.assertEqual("all-gather" in run.lower(*shards).compile().as_text(), gathers)
                self.check(score, mask, lambda *_: run(*shards))

    def test_exported_programs(self):
        """The text of the functions travels with a program, and no function of Python."""
        problems.check_export(self, lambda *tensors: attention(*tensors, score_mod=by_module))


class Places(unittest.TestCase):
    """What functions take by batch and head."""

    def check(self, views, free, variant):
        self.assertEqual(_places.read(variant.source), (views, frozenset(free)))

    def test_views(self):
        self.check({"a": ("b", "h"), "c": (None, "b")}, "",
                   Variant(lambda s, b, h, q, k, a, c: s + a[b, h] + c[k, b], a=("B", "H"), c=("SK", "B")))  # fmt: skip
        self.check({"a": (None,)}, "h", Variant(lambda s, b, h, q, k, a: s + a[h] + a[h + 1], a=("N",)))
        self.check({"a": (None, None)}, "h", Variant(lambda s, b, h, q, k, a: s + a[h, h], a=("N", "M")))
        # One function looks at the head, the other at the first one.
        self.check({"a": (None,)}, "h", Variant(lambda s, b, h, q, k, a: s + a[h], lambda b, h, q, k, a: a[0] > k, a=("N",)))

    def test_other_uses(self):
        self.check({}, "b", Variant(mask=lambda b, h, q, k: k >= b))
        self.check({}, "h", Variant(lambda s, b, h, q, k: s * exp2(-h)))
        self.check({}, "h", Variant(mask=lambda b, h, q, k: k < tessera.length("H")))
        self.check({}, "h", Variant(mask=lambda b, h, q, k: k < tessera.length("HK")))
        self.check({"a": (None,)}, "h", Variant(lambda s, b, h, q, k, a: s + a[0], a=("H",)))
        self.check({}, "", Variant(mask=masks.causal))


class Refusals(Cases):
    def refuse(self, text, score=None, mask=None, error=TraceError, **named):
        with self.subTest(text), self.assertRaises(error) as caught:
            attention(*self.tensors, score_mod=score, mask_mod=mask, **named)
        self.assertRegex(str(caught.exception), f"functions.py:[0-9]+: .*{text}" if error is TraceError else text)

    def test_captured(self):
        wide, plain, config = jnp.ones(4, jnp.float64), jnp.ones(4), unittest.TestCase()
        self.refuse("'wide' is a captured tensor of float64; kernels take", lambda s, b, h, q, k: s + wide[h])
        self.refuse("'x' is a captured tensor of uint32", lambda s, b, h, q, k, x: s + x[h], score_args=(np.ones(4, "u4"),))
        plain = SLOPES
        self.refuse("the view 'plain' is used without an index", lambda s, b, h, q, k: s + plain)
        self.refuse("the view 'plain' is used without an index", lambda s, b, h, q, k: s + jnp.sum(plain))
        self.refuse("'plain' has 1 dimensions .* got 2 indices", lambda s, b, h, q, k: s + plain[h, q])
        self.refuse("'config' is a TestCase, whose parts may change", lambda s, b, h, q, k: s + config.x)

    def test_functions(self):
        made = "a function or an array of JAX meets a traced value; .* those of jax.numpy"
        self.refuse(made, lambda s, b, h, q, k: jax.nn.gelu(s))
        self.refuse(made, lambda s, b, h, q, k: jnp.ones(3) + s)
        self.refuse("jax.numpy.sinh of a traced value is unknown; there are", lambda s, b, h, q, k: jnp.sinh(s))
        self.refuse("jax.numpy.max of a traced value is unknown", lambda s, b, h, q, k: jnp.max(s, 0))
        self.refuse("jax.numpy.tanh of a traced value with these arguments", lambda s, b, h, q, k: jnp.tanh(s, 2))
        self.refuse("a condition on a traced value", lambda s, b, h, q, k: s if q > k else -s)
        self.refuse("3 \\*\\* an integer is exact for 2, 4, 8", lambda s, b, h, q, k: s + jnp.power(3, h))
        self.refuse("sub of two conditions", lambda s, b, h, q, k: s + jnp.subtract(q > k, k > 3))
        self.refuse("isinstance of a traced value and .*Array", lambda s, b, h, q, k: s if isinstance(s, jax.Array) else -s)
        self.refuse("the mask gives an i32", mask=lambda b, h, q, k: k - q)

    def test_arguments(self):
        q, k, v = self.tensors

        def score(s, b, h, q, k, *more):
            return s

        variant = Variant(lambda s, b, h, q, k, cap, n, a: s * cap + n + a[h], cap=float, n=int, a=("H",))
        given = {"cap": 1.0, "n": 2, "a": SLOPES}
        for text, error, named in (
            ("'score_args' is a ArrayImpl; it is a tuple", TypeError, {"score_mod": score, "score_args": SLOPES}),
            ("'mask_args' is given without 'mask_mod'", ValueError, {"mask_args": (1,)}),
            ("'score_mod' is a int; it is a function", TypeError, {"score_mod": 3}),
            ("'arguments' is given without a variant", ValueError, {"arguments": {}}),
            ("'score_mod' and 'mask_mod' are given with a variant", ValueError, {"variant": variant, "score_mod": score}),
            ("'causal' is given with functions", ValueError, {"score_mod": score, "causal": True}),
            ("'alibi' is given with functions", ValueError, {"score_mod": score, "alibi": SLOPES}),
            ("'scale' is 0; kernels take a number above 1e-30", ValueError, {"score_mod": score, "scale": 0}),
            ("the variant takes cap, n, a in `arguments`; 'a' is missing", TypeError,
             {"variant": variant, "arguments": {"cap": 1.0, "n": 2}}),
            ("'a' of the variant is a view of dimensions \\('H',\\), got a list", TypeError,
             {"variant": variant, "arguments": {**given, "a": [1.0]}}),
            ("'a' of the variant is int64 of shape \\(3,\\); it is a float32 view", TypeError,
             {"variant": variant, "arguments": {**given, "a": jnp.arange(3)}}),
            ("'cap' of the variant is an array of JAX, .* declare cap=\\(1,\\)", TypeError,
             {"variant": variant, "arguments": {**given, "cap": jnp.asarray(1.0)}}),
            ("'n' is 1099511627776, which does not fit in i32", ValueError,
             {"variant": variant, "arguments": {**given, "n": 2**40}}),
            ("'n' is a float; the kernel takes an integer", TypeError, {"variant": variant, "arguments": {**given, "n": 0.5}}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                attention(q, k, v, **named)
        with self.assertRaisesRegex(ValueError, "argument 'q' has head dimension 36"):
            attention(q[..., :36], k[..., :36], v, score_mod=by_module)
        with self.assertRaisesRegex(TypeError, "argument 'scale' is traced by JAX, and numbers are constants of a program"):
            jax.jit(lambda scale: attention(q, k, v, scale=scale))(0.5)
        with self.assertRaisesRegex(TypeError, "argument 'window' is traced by JAX"):
            jax.jit(lambda left: attention(q, k, v, window=(left, 0)))(5)
        with self.assertRaisesRegex(TypeError, "argument 'window' is traced by JAX"):
            jax.jit(lambda window: attention(q, k, v, window=window))(jnp.asarray([5, 0]))
        for name in ("causal", "return_lse", "deterministic"):
            with self.assertRaisesRegex(TypeError, f"argument '{name}' is traced by JAX, .*: make it a static argument of jax.jit$"):
                jax.jit(lambda value, name=name: attention(q, k, v, **{name: value}))(True)
        with self.assertRaisesRegex(ValueError, "argument 'scale' is 0.0; kernels take a number above 1e-30"):
            attention(q, k, v, scale=0.0)

    def test_no_interpreter(self):
        """The text of a source is no part of the message."""
        tessera.jax.use_interpreter(False)
        text = "there is no kernel for these functions of scores and masks: kernels run on CUDA devices"
        with self.assertRaisesRegex(Exception, text):
            jax.block_until_ready(attention(*self.tensors, score_mod=by_module))


if __name__ == "__main__":
    unittest.main()
