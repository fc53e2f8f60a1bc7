# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Gradients of tessera.jax.attention on the interpreter, against those of its definition in float64."""

import unittest
import unittest.mock

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import problems
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tessera.jax
from tessera import Variant, tanh
from tessera._attention import _gradient_kernels
from tessera.jax import _functions, attention

SLOPES = jnp.asarray([0.5, 0.25, 0.125, 0.0625], jnp.float32)


class Cases(problems.Interpreted):
    def check(self, tensors, score=None, mask=None, lse=True, run=None, layout="BSHD", **named):
        """Gradients of attention with `named` arguments, whose definition is `score` and `mask`."""
        run = run or (lambda *tensors: attention(*tensors, layout=layout, return_lse=True, **named))

        def plain(*tensors):
            return problems.define(*tensors, score, mask, layout)

        found = problems.pull_compiled(run, tensors, lse)
        # Compiled as one, which takes less time than each operation by itself.
        doubles = [tensor.astype(jnp.float64) for tensor in tensors]
        rounded, exact = jax.jit(lambda *both: [problems.pull(plain, tensors, lse) for tensors in both])(tensors, doubles)
        for name, *arrays, tensor in zip("qkv", found, exact, rounded, tensors):
            self.assertEqual((arrays[0].shape, arrays[0].dtype), (tensor.shape, tensor.dtype))
            problems.assert_within_twice(*arrays, f"d{name}")
        return found

    def check_same(self, found, run, tensors):
        """The same bits by another way."""
        for one, other in zip(found, problems.pull_compiled(run, tensors)):
            self.assertTrue((one == other).all())


def band(rows, keys, left=None, right=None):
    """Which keys a row sees, aligned at the last row and key."""

    def mask(b, h, q, k):
        offset = k - (q + keys - rows)
        return (left is None or offset >= -left) & (right is None or offset <= right) & (k >= 0)

    return mask


class Masks(Cases):
    def test_against_f64(self):
        causal, window, slopes = {"right": 0}, {"left": 9, "right": 2}, SLOPES[:2]
        for deterministic, sizes, named, bounds, score in (
            (False, {"batch": 2, "heads": 4, "kv_heads": 2}, {}, {}, None),
            (True, {"rows": 61, "keys": 20, "dtype": jnp.float16}, {"causal": True}, causal, None),
            (False, {"d": 128, "dv": 64}, {"window": (9, 2)}, window, None),
            (False, {}, {"softcap": 1.5, "causal": True}, causal, lambda s, b, h, q, k: 1.5 * jnp.tanh(s / 1.5)),
            (True, {}, {"alibi": slopes, "window": (9, 2)}, window, lambda s, b, h, q, k: s - slopes[h] * abs(q + 16 - k)),
            (False, {"rows": 9, "keys": 11, "d": 40, "dv": 72}, {}, {}, None),
            (False, {"rows": 9, "keys": 11, "d": 192}, {"causal": True}, causal, None),
        ):  # fmt: skip
            layout = "BHSD" if deterministic else "BSHD"
            with self.subTest(deterministic=deterministic, **sizes, **named):
                sizes = {"batch": 1, "heads": 2, "kv_heads": 1, "rows": 37, "keys": 53, **sizes}
                tensors = problems.make(layout=layout, **sizes)
                mask = band(sizes["rows"], sizes["keys"], **bounds) if bounds else None
                self.check(tensors, score, mask, layout=layout, deterministic=deterministic, **named)

    def test_only_the_output(self):
        tensors = problems.make(rows=9, keys=11)
        found = self.check(tensors, lse=False, run=lambda *tensors: (attention(*tensors), None))
        unused = problems.pull(lambda *tensors: attention(*tensors, return_lse=True), tensors, False)
        self.assertTrue(all((one == other).all() for one, other in zip(found, unused)))

    def test_only_the_lse(self):
        tensors = problems.make(rows=9, keys=11)

        def sum_of(function):
            return lambda q: function(q, *tensors[1:])[1].sum()

        plain = jax.jit(jax.grad(sum_of(problems.define)))
        found = jax.grad(sum_of(lambda *tensors: attention(*tensors, return_lse=True)))(tensors[0])
        rounded, exact = plain(tensors[0]), plain(tensors[0].astype(jnp.float64))
        problems.assert_within_twice(found, exact, rounded)

    def test_transformations(self):
        tensors = problems.make(rows=9, keys=11)
        mask = band(9, 11, right=0)
        found = self.check(tensors, mask=mask, causal=True)
        jitted = jax.jit(lambda *tensors: attention(*tensors, causal=True, return_lse=True))
        remade = jax.checkpoint(jitted)
        for run in (jitted, remade):
            self.check_same(found, run, tensors)

        def mapped(q, k, v):
            """Each of the batch by itself."""
            results = jax.vmap(lambda q, k, v: attention(q[None], k[None], v[None], causal=True, return_lse=True))(q, k, v)
            return tuple(result[:, 0] for result in results)

        self.check_same(found, mapped, tensors)
        q, k, v = tensors
        many = jnp.stack([q, 2 * q])
        of_each = jax.vmap(jax.grad(lambda k, q: attention(q, k, v, causal=True).astype(jnp.float32).sum()), (None, 0))(k, many)
        self.assertEqual(of_each.shape, (2, *k.shape))
        shared = jax.grad(lambda k: jax.vmap(lambda q: attention(q, k, v, causal=True))(many).astype(jnp.float32).sum())(k)
        np.testing.assert_allclose(*(np.asarray(x, np.float32) for x in (of_each.sum(0), shared)), atol=0.05)

    def test_sharding(self):
        """Batch and key heads stay sharded; query heads of one key head are gathered, whose gradients are sums over them."""
        line = Mesh(np.array(jax.devices()), ("x",))
        square = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))

        @jax.jit
        def run(*tensors):
            return problems.pull(lambda *tensors: attention(*tensors, causal=True, return_lse=True), tensors, True)

        of_heads, both = (None, None, "x"), (None, None, ("x", "y"))
        for kv_heads, mesh, spec, of_keys, gathers in (
            (2, square, ("y", None, "x"), ("y", None, "x"), False), (2, square, both, of_heads, True),
            (1, line, of_heads, (), True), (2, line, of_heads, (), True),
        ):  # fmt: skip
            with self.subTest(kv_heads=kv_heads, spec=spec):
                tensors = problems.make(rows=9, keys=11, kv_heads=kv_heads)
                specs = spec, of_keys, of_keys
                shards = [
                    jax.device_put(tensor, NamedSharding(mesh, PartitionSpec(*spec))) for tensor, spec in zip(tensors, specs)
                ]
                text = run.lower(*shards).compile().as_text()
                self.assertEqual("all-gather" in text, gathers)
                for one, other in zip(run(*shards), run(*tensors)):
                    self.assertTrue((one == other).all())

    def test_shard_map(self):
        """Shards are calls of their own; what all devices have in common gets the sum of their gradients."""
        mesh, slopes = Mesh(np.array(jax.devices()[:2]), ("x",)), SLOPES
        q, k, v = problems.make(rows=8, keys=11)
        batch, heads, rows, same = PartitionSpec("x"), PartitionSpec(None, None, "x"), PartitionSpec(None, "x"), PartitionSpec()
        scaled = lambda q, k, v, f: attention(q, k, v, score_mod=lambda s, b, h, i, j: s * f[h])  # noqa: E731
        for what, call, arrays, specs in (
            ("batch", lambda q, k, v: attention(q, k, v, causal=True), (q, k, v), (batch, batch, batch)),
            ("heads", lambda q, k, v, a: attention(q, k, v, alibi=a), (q, k, v, slopes), (heads, heads, heads, PartitionSpec("x"))),
            ("rows", attention, (q, k, v), (rows, same, same)),
            ("slopes of all", lambda q, k, v, a: attention(q, k, v, alibi=a), (q, k, v, slopes), (batch, batch, batch, same)),
            ("scores", scaled, (q, k, v, slopes), (batch, batch, batch, same)),
        ):
            for checks in (True, False):
                split = jax.shard_map(call, mesh=mesh, in_specs=specs, out_specs=specs[0], check_vma=checks)
                everything = tuple(range(len(arrays)))
                found, want = (
                    jax.jit(jax.value_and_grad(lambda *x: run(*x).astype(jnp.float32).sum(), everything))(*arrays)  # noqa: B023
                    for run in (split, call)
                )
                with self.subTest(what, checks=checks):
                    np.testing.assert_allclose(found[0], want[0], rtol=1e-5)
                    for one, other in zip(found[1], want[1]):
                        self.assertEqual(one.dtype, other.dtype)
                        np.testing.assert_allclose(*(np.asarray(x, np.float32) for x in (one, other)), rtol=0.01, atol=0.03)
        within = jax.shard_map(
            lambda *x: jax.grad(lambda *x: attention(*x).astype(jnp.float32).sum(), (0, 1, 2))(*x), mesh=mesh,
            in_specs=batch, out_specs=batch,
        )  # fmt: skip
        for one, other in zip(within(q, k, v), jax.grad(lambda *x: attention(*x).astype(jnp.float32).sum(), (0, 1, 2))(q, k, v)):
            self.assertTrue((one == other).all())
        square = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
        part = jax.shard_map(attention, mesh=square, in_specs=batch, out_specs=batch, axis_names={"x"})
        gradient = lambda run: jax.jit(jax.grad(lambda *x: run(*x).astype(jnp.float32).sum()))  # noqa: E731
        for run, plain in ((jax.jit(part), attention), (gradient(part), gradient(attention))):
            self.assertTrue((run(q, k, v) == plain(q, k, v)).all())
        with self.assertRaisesRegex(NotImplementedError, "'f' is a sum over blocks in any order, .* jax.shard_map does not say"):
            jax.grad(lambda *x: jax.shard_map(
                lambda q, k, v, f: attention(q, k, v, score_mod=lambda s, b, h, i, j: s * f[h], deterministic=True), mesh=mesh,
                in_specs=(batch, batch, batch, same), out_specs=batch,
            )(*x).astype(jnp.float32).sum())(q, k, v, slopes)  # fmt: skip

    def test_which_kernels(self):
        find, found = _gradient_kernels.find_gradients, []

        def note(*arguments):
            found.append(arguments[1:3])
            return find(*arguments)

        q, k, v = problems.make(rows=5, keys=5)
        with unittest.mock.patch.object(_gradient_kernels, "find_gradients", note):
            for deterministic in (False, True):
                jax.grad(lambda q: attention(q, k, v, deterministic=deterministic).astype(jnp.float32).sum())(q).block_until_ready()
        self.assertEqual(found, [("attention_fwd CAUSAL=false", False), ("attention_fwd CAUSAL=false", True)])

    def test_exported_for_any_batch(self):
        tensors = problems.make(rows=5, keys=7)
        batch, = jax.export.symbolic_shape("batch")
        shapes = [jax.ShapeDtypeStruct((batch, *tensor.shape[1:]), tensor.dtype) for tensor in tensors]
        run = jax.jit(jax.grad(lambda *x: attention(*x, alibi=SLOPES).astype(jnp.float32).sum(), (0, 1, 2)))
        names = ("tessera_attention", "tessera_attention_backward")
        allowed = [jax.export.DisabledSafetyCheck.custom_call(name) for name in names]
        program = jax.export.export(run, disabled_checks=allowed)(*shapes)
        for count in (1, 2):
            given = [tensor[:count] for tensor in tensors]
            for one, other in zip(program.call(*given), run(*given)):
                self.assertTrue((one == other).all())

    def test_nothing_to_see(self):
        q, k, v = problems.make(rows=5, keys=0)
        self.assertFalse(jax.grad(lambda q: attention(q, k, v).astype(jnp.float32).sum())(q).any())

    def test_refusals(self):
        q, k, v = problems.make(rows=5, keys=5)

        def loss(q, slopes):
            return attention(q, k, v, alibi=slopes).astype(jnp.float32).sum()

        self.assertTrue(jax.grad(lambda q, slopes: loss(q, jax.lax.stop_gradient(slopes)), (0, 1))(q, SLOPES)[0].any())
        with self.assertRaisesRegex(NotImplementedError, "gradients of attention have no gradients themselves"):
            jax.grad(lambda q: jax.grad(loss)(q, SLOPES).astype(jnp.float32).sum())(q)
        with self.assertRaisesRegex(NotImplementedError, "gradients of attention have no gradients themselves"):
            jax.hessian(loss)(q, SLOPES)
        for run in (lambda f: jax.jvp(f, (q,), (q,)), lambda f: jax.linearize(f, q)[1](q), lambda f: jax.jacfwd(f)(q)):
            with self.assertRaisesRegex(TypeError, "can't apply forward-mode autodiff"):
                run(lambda q: loss(q, SLOPES))


class Functions(Cases):
    def test_against_f64(self):
        lengths, slopes = jnp.asarray([20, 11]), SLOPES[:2]
        for deterministic, kv_heads, dtype in ((False, 1, jnp.bfloat16), (True, 1, jnp.bfloat16), (False, 2, jnp.float16)):
            with self.subTest(deterministic=deterministic, kv_heads=kv_heads):
                self.check(
                    problems.make(heads=2, kv_heads=kv_heads, rows=19, keys=23, dtype=dtype),
                    lambda s, b, h, q, k: 1.5 * jnp.tanh(s / 1.5) - slopes[h] * abs(q - k),
                    lambda b, h, q, k: (k < lengths[b]) & (q >= k - 7), deterministic=deterministic,
                    score_mod=lambda s, b, h, q, k: 1.5 * tanh(s / 1.5) - slopes[h] * abs(q - k),
                    mask_mod=lambda b, h, q, k: (k < lengths[b]) & (q >= k - 7),
                )  # fmt: skip

    def test_variant(self):
        variant = Variant(score=lambda s, b, h, q, k, cap, slopes: cap * tanh(s / cap) + slopes[h], cap=float, slopes=("H",))
        given = {"cap": 2.0, "slopes": SLOPES}
        self.check(
            problems.make(rows=9, keys=11), lambda s, b, h, q, k: 2 * jnp.tanh(s / 2) + SLOPES[h], variant=variant,
            arguments=given,
        )  # fmt: skip

    def test_transformations(self):
        """Captured values of jax.jit and vmap are operands."""
        tensors = problems.make(heads=2, kv_heads=1, rows=9, keys=11)
        lengths, slopes = jnp.asarray([7, 4]), SLOPES[:2]

        def score(s, b, h, q, k):
            return s - slopes[h] * abs(q - k)

        def mask(b, h, q, k):
            return k < lengths[b]

        @jax.jit
        def run(q, k, v, slopes, lengths):
            return attention(
                q, k, v, score_mod=lambda s, b, h, q, k: s - slopes[h] * abs(q - k), mask_mod=lambda b, h, q, k: k < lengths[b],
                return_lse=True,
            )  # fmt: skip

        found = self.check(tensors, score, mask, run=lambda *tensors: run(*tensors, slopes, lengths))

        def mapped(*tensors):
            results = jax.vmap(lambda q, k, v, n: run(q[None], k[None], v[None], slopes, n[None]))(*tensors, lengths)
            return tuple(result[:, 0] for result in results)

        self.check_same(found, mapped, tensors)

    def test_order_of_arguments(self):
        """Kernels of gradients take what functions ask for in the order of the forward kernel."""
        table, lengths = jnp.ones((4, 23), jnp.float32), jnp.asarray([3, 5])
        factor, width = 0.5, 7
        source, views, numbers, integers, labels, learnable = _functions.trace(
            lambda s, b, h, q, k: s * factor + table[h, k] * width - SLOPES[h], (),
            lambda b, h, q, k: (k < lengths[b]) & (q > k - width), (),
        )  # fmt: skip
        self.assertEqual([len(part) for part in (views, numbers, integers)], [3, 1, 2])
        order = _functions._list_extras(source)
        self.assertEqual(set(order), {*views, *numbers, *integers})
        for fixed in (False, True):
            for lse in (False, True):
                self.assertEqual(_functions.list_gradient_extras(source, (), fixed, lse), order)
        self.assertEqual(len(learnable), 2)
        of_learned = [_functions.list_gradient_extras(source, tuple(learnable), fixed, False) for fixed in (False, True)]
        self.assertEqual(of_learned[0], of_learned[1])
        # What is added to all scores of a query cancels: it has a gradient of 0, which no kernel makes.
        cancelling = [name for name in learnable if name.startswith("SLOPES")]
        self.assertEqual(set(of_learned[0]), {*order, *(f"d{name}" for name in learnable if name not in cancelling)})


if __name__ == "__main__":
    unittest.main()
