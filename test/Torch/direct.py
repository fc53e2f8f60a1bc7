# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""Attention past the dispatcher, where nobody sees ops: real PyTorch, tensors of the CPU, and a fake driver."""

import functools
import gc
import sys
import threading
import unittest
import unittest.mock
import weakref

import torch
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import on_cpu
import problems

from tessera._attention import _recipes, _variants
from tessera.torch import _backward, _direct, _native, _op, attention, flash_attn_with_kvcache

OPTIONS = (
    {}, {"causal": True}, {"scale": 0.25}, {"window": (16, 4), "softcap": 2.0}, {"alibi": torch.tensor([1.0, 0.5])},
    {"return_lse": True}, {"causal": True, "return_lse": True, "alibi": torch.tensor([1.0, 0.5])},
)  # fmt: skip


class SeesFunctions(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), named=None):
        return function(*arguments, **(named or {}))


class SeesOps(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        return function(*arguments, **(named or {}))


class Subclass(torch.Tensor):
    pass


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Direct(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_cuda.library.fake_cuda_set_device(0)
        for patch in on_cpu.call_ops():
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(_native.reset)
        patch = unittest.mock.patch.object(_direct, "call_op", wraps=_direct.call_op)
        self.call_op = patch.start()
        self.addCleanup(patch.stop)

    def count_ops(self, *tensors, call=attention, **options):
        """How many calls of two go to the op. The first makes its kernel known."""
        call(*tensors, **options)
        self.call_op.reset_mock()
        call(*tensors, **options)
        call(*tensors, **options)
        return self.call_op.call_count

    def test_same_results(self):
        """Shapes, strides and types as of the op, and the same launch."""
        q, k, v = problems.make(heads=2, d=128, dv=64)
        turned = [tensor.transpose(1, 2).contiguous().transpose(1, 2) for tensor in (q, k, v)]
        packed = torch.randn(2, 70, 3, 2, 64, dtype=torch.half).unbind(2)
        for tensors in ((q, k, v), turned, [tensor.transpose(1, 2) for tensor in packed]):
            for options in OPTIONS:
                with self.subTest(options, strides=tensors[0].stride()):
                    with SeesOps():
                        expected = attention(*tensors, **options)
                    launch = fake_cuda.last_launch()
                    self.assertEqual(self.count_ops(*tensors, **options), 0)
                    results = attention(*tensors, **options)
                    self.assertEqual(fake_cuda.last_launch(), launch)
                    self.assertEqual(type(results), type(expected))
                    if not options.get("return_lse"):
                        results, expected = [results], [expected]
                    for result, like in zip(results, expected, strict=True):
                        self.assertEqual((result.shape, result.stride()), (like.shape, like.stride()))
                        self.assertEqual((result.dtype, result.requires_grad), (like.dtype, False))

    def test_same_arguments(self):
        """The scalars and addresses that reach the driver."""
        q, k, v = problems.make()
        slopes = torch.ones(2)
        options = {"window": (16, 3), "softcap": 2.5, "alibi": slopes, "scale": 0.125, "return_lse": True}
        variant = "attention_variants MASK=window SOFTCAP=exact ALIBI=true"
        kernel, _, _ = _variants.find_kernel(variant, "bf16", _op.get_sizes(q, k, v))
        self.assertEqual(self.count_ops(q, k, v, **options), 0)
        parameters = on_cpu.Parameters(kernel)
        _, lse = attention(q, k, v, **options)
        values = {"scale": 0.125, "cap": 2.5, "left": 16, "right": 3}
        pointers = {"lse": lse.data_ptr(), "slopes": slopes.data_ptr()}
        self.assertEqual({**parameters.read(), **values, **pointers}, parameters.read())

    def test_ops_are_called_where_they_are_seen(self):
        tensors = problems.make()
        self.assertEqual(self.count_ops(*tensors), 0)
        for mode in (SeesOps(), SeesFunctions(), torch.autograd.profiler.profile()):
            with self.subTest(type(mode)), mode:
                self.assertEqual(self.count_ops(*tensors), 2)
        with self.subTest("vmap"):
            stacked = [torch.stack((tensor, tensor)) for tensor in tensors]
            with unittest.mock.patch("warnings.warn"):
                self.assertEqual(self.count_ops(*stacked, call=torch.vmap(attention)), 2)
        with self.subTest("subclass"):
            self.assertEqual(self.count_ops(tensors[0].as_subclass(Subclass), *tensors[1:]), 2)
            self.assertEqual(self.count_ops(*map(torch.nn.Parameter, tensors), call=torch.no_grad()(attention)), 0)
        with self.subTest("trace"):
            traced = torch.jit.trace(attention, tensors, check_trace=False)
            self.assertIn("tessera_test::attention_inference", str(traced.graph))
        self.assertEqual(self.count_ops(*tensors), 0)

    def test_compiled_code(self):
        """Its graphs have the ops."""
        graphs = []

        def keep(graph, inputs):
            graphs.append(graph)
            return graph.forward

        # Code of mocks is not compiled.
        with unittest.mock.patch.object(_direct, "call_op", self.call_op._mock_wraps):
            compiled = torch.compile(attention, fullgraph=True, backend=keep)
            compiled(*problems.make())
            compiled(*(tensor.requires_grad_() for tensor in problems.make()))
        seen = [node.target for graph in graphs for node in graph.graph.nodes]
        self.assertIn(on_cpu.inference, seen)
        self.assertEqual(len(graphs), 2)

    def test_inference_mode(self):
        with torch.inference_mode():
            self.assertEqual(self.count_ops(*problems.make()), 0)
            self.assertTrue(attention(*problems.make()).is_inference())

    def test_autocast(self):
        q, k, v = (tensor.float() for tensor in problems.make())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(self.count_ops(q, k, v), 0)
            self.assertIs(attention(q, k, v).dtype, torch.bfloat16)

    def test_gradients(self):
        q, k, v = (tensor.requires_grad_() for tensor in problems.make())
        for options in ({}, {"causal": True, "scale": 0.5}, {"return_lse": True}):
            with self.subTest(options):
                self.assertEqual(self.count_ops(q, k, v, **options), 0)
                results = attention(q, k, v, **options)
                out, *lse = results if options.get("return_lse") else (results,)
                self.assertTrue(out.requires_grad and all(each.requires_grad for each in lse))
                saved = out.grad_fn.saved_tensors
                for tensor, expected in zip(saved[:4], (q, k, v, out)):
                    self.assertEqual(tensor.data_ptr(), expected.data_ptr())
                self.assertEqual((saved[4].shape, len(saved)), (out.shape[:3], 5))
        with torch.no_grad():
            self.assertFalse(attention(q, k, v).requires_grad)
        with SeesOps():
            self.assertEqual(self.count_ops(q, k, v), 2)

    def test_what_the_backward_gets(self):
        """The same from the library's forward as from the op's, in the order of the op for gradients."""
        q, k, v = (tensor.requires_grad_() for tensor in problems.make())
        slopes = torch.ones(2)

        def differentiate(**options):
            """What the op for gradients is called with, through the LSE alone where it is a result."""
            results = attention(q, k, v, **options)
            result = results[1] if options.get("return_lse") else results
            with unittest.mock.patch.object(_backward, "backward", return_value=(q, k, v)) as backward:
                torch.autograd.grad(result, (q, k, v), torch.ones_like(result))
            return backward.call_args.args

        for options in ({}, {"alibi": slopes}, {"return_lse": True}, {"causal": True, "alibi": slopes, "return_lse": True}):
            with self.subTest(options):
                self.assertEqual(self.count_ops(q, k, v, **options), 0)
                grad, grad_lse, *inputs = differentiate(**options)
                self.assertEqual(self.call_op.call_count, 0)
                with SeesOps():
                    other_grad, other_grad_lse, *others = differentiate(**options)
                self.assertTrue(torch.equal(grad, other_grad))
                self.assertEqual(grad_lse is None, other_grad_lse is None)
                self.assertEqual(grad_lse is not None, "return_lse" in options)
                for mine, other in zip(inputs, others, strict=True):
                    if isinstance(mine, torch.Tensor):
                        self.assertEqual((mine.shape, mine.dtype), (other.shape, other.dtype))
                        self.assertEqual(mine.data_ptr() == other.data_ptr(), mine.data_ptr() in self.addresses(q, k, v, slopes))
                    else:
                        self.assertEqual(mine, other)

    @staticmethod
    def addresses(*tensors):
        return [tensor.data_ptr() for tensor in tensors]

    def count_backward_ops(self, *tensors, inputs=None, grad=None, create_graph=False, **options):
        """How many backward passes of two go to the op. The first prepares it. And the gradients of the second."""
        results = attention(*tensors, **options)
        out = results[0] if options.get("return_lse") else results
        grad = torch.ones_like(out) if grad is None else grad(out)
        run = functools.partial(torch.autograd.grad, out, inputs or tensors, grad, retain_graph=True, create_graph=create_graph)
        run()
        with unittest.mock.patch.object(_backward, "_run_backward", wraps=_backward._run_backward) as run_op:
            gradients = run(), run()
        return run_op.call_count, gradients[1]

    def test_backward(self):
        """Gradients have the shapes, strides and types of those of the op, and kernels are launched as by it."""
        q, k, v = (tensor.requires_grad_() for tensor in problems.make(heads=2, d=128, dv=64))
        turned = [tensor.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for tensor in (q, k, v)]
        for tensors in ((q, k, v), turned):
            for options in (*OPTIONS, {"deterministic": True}):
                with self.subTest(options, strides=tensors[0].stride()):
                    count, gradients = self.count_backward_ops(*tensors, **options)
                    self.assertEqual(count, 0)
                    launch = fake_cuda.last_launch()
                    with SeesOps():
                        count, expected = self.count_backward_ops(*tensors, **options)
                    self.assertEqual((count, fake_cuda.last_launch()), (2, launch))
                    for got, like in zip(gradients, expected, strict=True):
                        self.assertEqual((got.shape, got.stride(), got.dtype), (like.shape, like.stride(), like.dtype))
                        self.assertFalse(got.requires_grad)

    def test_gradients_of_some(self):
        q, k, v = problems.make()
        self.assertEqual(self.count_backward_ops(q.requires_grad_(), k, v, inputs=[q])[0], 0)
        self.assertEqual(self.count_backward_ops(q.detach(), k, v.requires_grad_(), inputs=[v])[0], 0)

    def test_what_the_backward_is_not_for(self):
        """Gradients of gradients are refused."""
        tensors = [tensor.requires_grad_() for tensor in problems.make()]
        count, gradients = self.count_backward_ops(*tensors, create_graph=True)
        self.assertEqual(count, 2)
        with self.assertRaisesRegex(NotImplementedError, "gradients of attention have no gradients themselves"):
            gradients[0].sum().backward()

    def test_copies(self):
        """Gradients that no kernel takes as they lie, and numbers of other types, are copied first."""
        made, make = [], torch._C._dynamo.guards._empty_strided_cpu

        def keep(*arguments):
            made.append(make(*arguments))
            return made[-1]

        patch = unittest.mock.patch.object(torch._C._dynamo.guards, "_empty_strided_cpu", keep)
        patch.start()
        self.addCleanup(patch.stop)
        tensors, turned = [tensor.requires_grad_() for tensor in problems.make()], torch.randn(2, 2, 64, 70).bfloat16().mT
        for grad in (lambda out: out.detach().new_full((), 3.0).expand(out.shape), lambda out: turned):
            count, gradients = self.count_backward_ops(*tensors, grad=grad)
            self.assertEqual((count, gradients[0].shape), (0, tensors[0].shape))
            expected = grad(gradients[0])
            self.assertTrue(any(x.shape == expected.shape and x.is_contiguous() and torch.equal(x, expected) for x in made))
        problems.use_interpreter(self)
        q, cache = torch.zeros(1, 1, 2, 64).bfloat16(), torch.zeros(1, 128, 1, 64).bfloat16()
        for sinks in (torch.tensor([1.5, -3.0]).half(), torch.tensor([2.5, 0.5]).half()):
            made.clear()
            for _ in range(2):
                flash_attn_with_kvcache(q, cache, cache, sinks=sinks)
            self.assertGreaterEqual(sum(x.dtype == torch.float32 and x.tolist() == sinks.tolist() for x in made), 1)

    def test_backward_by_the_lse(self):
        """With no gradient of the output, and with both."""
        tensors = [tensor.requires_grad_() for tensor in problems.make()]
        out, lse = attention(*tensors, return_lse=True)
        for results in ((lse,), (out, lse), (out, lse)):
            with unittest.mock.patch.object(_backward, "_run_backward", wraps=_backward._run_backward) as run_op:
                grads = list(map(torch.ones_like, results))
                gradients = torch.autograd.grad(results, tensors, grads, retain_graph=True)
            self.assertEqual([gradient.shape for gradient in gradients], [tensor.shape for tensor in tensors])
        self.assertEqual(run_op.call_count, 0)

    def test_order_of_sums(self):
        """What PyTorch asks for when the backward pass runs decides, whatever it asked for before."""
        tensors = [tensor.requires_grad_() for tensor in problems.make()]
        out = attention(*tensors)
        asked = []
        find = _direct.find_order
        with unittest.mock.patch.object(_direct, "find_order", lambda _: asked.append(find(False)) or asked[-1]):
            for mode in (0, 2, 1, 0):
                torch.set_deterministic_debug_mode(mode)
                self.addCleanup(torch.set_deterministic_debug_mode, 0)
                torch.autograd.grad(out, tensors, torch.ones_like(out), retain_graph=True)
        self.assertEqual(asked, [_recipes.ANY_ORDER, _recipes.ALGORITHMS, _recipes.WARNED, _recipes.ANY_ORDER])

    def test_hooks_of_saved_tensors(self):
        """Checkpoints let each tensor be unpacked once."""
        tensors = [tensor.requires_grad_() for tensor in problems.make()]
        for _ in range(2):
            out = torch.utils.checkpoint.checkpoint(attention, *tensors, use_reentrant=False)
            self.assertEqual(torch.autograd.grad(out.sum(), tensors)[0].shape, tensors[0].shape)
        with torch.autograd.graph.save_on_cpu():
            self.assertEqual(self.count_backward_ops(*tensors)[0], 0)

    def test_what_the_forward_is_not_for(self):
        """Errors are those of the op, and a forward that is called with too little says so."""
        q, k, v = (tensor.requires_grad_() for tensor in problems.make())
        attention(q, k, v)
        with self.assertRaisesRegex(ValueError, "argument 'v'"):
            attention(q, k, v[:, :, :80])
        other = unittest.mock.Mock(return_value="other")
        given, variant = ("attention_fwd CAUSAL=false",), "attention_fwd CAUSAL=false"
        text = _recipes.write(_recipes.OUTPUT_AND_LSE, _recipes.NAMED, variant)
        calls = _direct.describe_attention(_direct.NUMBERS, 4, 4, 4, False, text, None)
        forward = _direct.make_forward(calls, given, other)
        for tensors in ((q, k), (q, k, v, None, None)):
            self.assertEqual(forward(None, *tensors), "other")
            other.assert_called_with(None, *tensors)
        with self.assertRaises(AttributeError):
            forward(None, q, k, v)  # None keeps nothing
        self.assertIs(_direct.make_forward(calls, (*given, "x"), other), other)
        with unittest.mock.patch.object(_direct, "make", return_value=None):
            self.assertIs(_direct.make_forward(calls, given, other), other)

    def test_gradients_of_many_scales(self):
        """Functions of autograd are made for so many sets of arguments; with other ones the op is called."""
        q, k, v = (tensor.requires_grad_() for tensor in problems.make())
        kernel, _, _ = _variants.find_kernel("attention_fwd CAUSAL=false", "bf16", _op.get_sizes(q, k, v))
        counts = {}
        with unittest.mock.patch.object(_backward, "_applies", {}):
            for scale in (number / 64 for number in range(1, 70)):
                counts[scale] = self.count_ops(q, k, v, scale=scale)
                parameters = on_cpu.Parameters(kernel)
                self.assertTrue(attention(q, k, v, scale=scale).requires_grad)
                self.assertEqual(parameters.read()["scale"], scale)
            self.assertEqual(len(_backward._applies), 64)
        self.assertEqual({scale for scale, count in counts.items() if count}, {number / 64 for number in range(65, 70)})

    def test_what_is_left_to_the_op(self):
        q, k, v = problems.make()
        for tensors in (problems.make(keys=0), problems.make(rows=0)):
            self.assertEqual(self.count_ops(*tensors), 2)
        self.assertEqual(self.count_ops(q, k, v), 0)
        _native.reset()
        attention(q, k, v)
        self.assertEqual(self.call_op.call_count, 1)
        # Many shapes, of which each is known from its second call on.
        for length in range(1, 200):
            more = problems.make(rows=length)
            self.assertEqual((self.count_ops(*more), attention(*more).shape), (0, more[0].shape))

    def test_errors(self):
        q, k, v = problems.make()
        attention(q, k, v)
        moved = torch.empty(2, 1, 90, 72, dtype=q.dtype)[..., 4:68]
        for arguments, exception, text in (
            *problems.list_errors(q, k, v),
            ((q, moved, v), ValueError, "argument 'k': the address"),
            ((q, None, v), TypeError, "argument 'k' is None"),
        ):
            with self.subTest(text), self.assertRaises(exception) as caught:
                attention(*arguments)
            self.assertIn(text, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "argument 'alibi' is torch.float32 of shape"):
            attention(q, k, v, alibi=torch.ones(3))
        with self.assertRaisesRegex(ValueError, "argument 'scale' is 0"):
            attention(q, k, v, scale=0)
        function = _direct.functions["attention_fwd CAUSAL=false"]
        for arguments in ((), (q, k, v, None, None), (q, k, v, None, ("", "x")), (q, k, v, 1, ("",)), (None, k, v, None, ("",)),
                          (q, k, v, None, None, ("",)), (q, k, v, None, ("", None, 0.0, 1, 1, 1))):
            self.assertIsNone(function(*arguments))

    def test_references_are_given_back(self):
        for tensors in (problems.make(), [tensor.requires_grad_() for tensor in problems.make()]):
            with self.subTest(requires_grad=tensors[0].requires_grad):
                self.check_references(*tensors)

    def check_references(self, q, k, v):
        slopes = torch.ones(2)

        def call():
            results = attention(q, k, v, **options)
            out = results[0] if options.get("return_lse") else results
            if q.requires_grad:
                torch.autograd.grad(out, (q, k, v), out.detach())

        for options in ({}, {"return_lse": True}, {"alibi": slopes}):
            self.assertEqual(self.count_ops(q, k, v, **options), 0)
            results = attention(q, k, v, **options)
            kept = [weakref.ref(result) for result in (results if options.get("return_lse") else [results])]
            call()
            gc.collect()  # What else of the tests goes away while the calls are made.
            counts = [sys.getrefcount(each) for each in (q, k, v, slopes, None, torch.bfloat16)]
            for _ in range(100):
                call()
            for before, each in zip(counts, (q, k, v, slopes, None, torch.bfloat16)):
                self.assertLess(abs(sys.getrefcount(each) - before), 50)
            del results
            self.assertEqual([reference() for reference in kept], [None] * len(kept))
        for tensor in (q, k, v, slopes):
            self.assertEqual(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata), 2)

    def test_threads(self):
        def run(length):
            fake_cuda.library.fake_cuda_set_device(0)
            for _ in range(50):
                tensors = problems.make(rows=length)
                shapes.append((attention(*tensors).shape == tensors[0].shape))

        shapes = []
        for length in range(10, 14):
            attention(*problems.make(rows=length))
        self.call_op.reset_mock()
        threads = [threading.Thread(target=run, args=(length,)) for length in range(10, 14)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((shapes, self.call_op.call_count), ([True] * 200, 0))


if __name__ == "__main__":
    unittest.main()
