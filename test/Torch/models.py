# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Models of transformers with attn_implementation="tessera": logits and tokens beside those of eager attention."""

import contextlib
import functools
import unittest
import unittest.mock

try:
    import transformers
except ImportError:
    transformers = None
import problems
import torch

SIZES = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 40, "max_position_embeddings": 256, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip


def make_models():
    """The configurations of a few models, by name."""
    return {
        "llama": transformers.LlamaConfig(**SIZES),
        "mistral": transformers.MistralConfig(**SIZES, sliding_window=12),
        "gemma2": transformers.Gemma2Config(
            **SIZES, sliding_window=12, attn_logit_softcapping=5.0, query_pre_attn_scalar=40
        ),
        "qwen3": transformers.Qwen3Config(**SIZES),
        # Sinks in all layers, and windows in every other one.
        "gpt_oss": transformers.GptOssConfig(**SIZES, sliding_window=12, num_local_experts=2, num_experts_per_tok=1),
    }


@unittest.skipUnless(transformers, "transformers is not installed")
class Models(problems.Interpreted):
    def setUp(self):
        import tessera.transformers

        super().setUp()
        tessera.transformers.register()
        transformers.logging.set_verbosity_error()

    def make(self, config, implementation):
        torch.manual_seed(3)
        config._attn_implementation = implementation
        return transformers.AutoModelForCausalLM.from_config(config).to(torch.float16).eval()

    def compare(self, what, rows=slice(None), names=("llama", "mistral", "gemma2", "qwen3", "gpt_oss"), **inputs):
        """Logits of both implementations, of `rows`: a mask of [batch, rows]."""
        for name in names:
            config = make_models()[name]
            with self.subTest(f"{name}, {what}"), torch.no_grad():
                eager, ours = (self.make(config, implementation)(**inputs).logits for implementation in ("eager", "tessera"))
                difference = (eager - ours)[rows].abs().max()
                self.assertLess(difference, 0.02 * eager.abs().max(), what)

    def test_logits(self):
        self.compare("one sequence", input_ids=torch.randint(3, 96, (2, 50)))

    def test_padding(self):
        tokens = torch.randint(3, 96, (3, 40))
        for name, mask in (
            ("left", torch.arange(40) >= torch.tensor([[0], [9], [30]])),
            ("right", torch.arange(40) < torch.tensor([[40], [40], [17]])),
        ):
            self.compare(f"padding {name}", mask, input_ids=tokens, attention_mask=mask.long())

    def test_packed(self):
        positions = torch.cat([torch.arange(length) for length in (17, 1, 30)])[None]
        self.compare("packed", input_ids=torch.randint(3, 96, (1, 48)), position_ids=positions)

    def test_chunked(self):
        """Chunks that begin behind the padding, with a kernel for each run of rows."""
        config = transformers.Llama4TextConfig(
            **SIZES, attention_chunk_size=12, num_local_experts=2, num_experts_per_tok=1, intermediate_size_mlp=96,
            use_qk_norm=False,
        )  # fmt: skip
        mask = torch.arange(40) >= torch.tensor([[0], [9]])
        with torch.no_grad():
            inputs = {"input_ids": torch.randint(3, 96, (2, 40)), "attention_mask": mask.long()}
            eager, ours = (self.make(config, implementation)(**inputs).logits for implementation in ("eager", "tessera"))
        self.assertLess((eager - ours)[mask].abs().max(), 0.02 * eager.abs().max())

    @contextlib.contextmanager
    def holes(self):
        """While it lasts masks of Llama and Gemma 2 have holes in their rows; gives what takes their functions."""
        from transformers import masking_utils
        from transformers.models.gemma2 import modeling_gemma2
        from transformers.models.llama import modeling_llama

        from tessera import transformers as ours

        def sees(b, h, q, k):
            return (q - k < 5) | (k % 7 == h)

        names = "create_causal_mask", "create_sliding_window_causal_mask"
        with contextlib.ExitStack() as stack:
            for module in (modeling_llama, modeling_gemma2, masking_utils):
                for name in filter(functools.partial(hasattr, module), names):
                    original = functools.partial(getattr(masking_utils, name), and_mask_function=sees)
                    stack.enter_context(unittest.mock.patch.object(module, name, original))
            yield stack.enter_context(unittest.mock.patch.object(ours, "_take_function", wraps=ours._take_function))

    def test_functions(self):
        """Masks with holes in a row: kernels of their functions, with windows, soft caps, padding and packed sequences."""
        positions = torch.cat([torch.arange(length) for length in (17, 23)])[None]
        padding = torch.arange(40) >= torch.tensor([[0], [9]])
        cases = (
            ({}, torch.ones(2, 40, dtype=torch.bool)),
            ({"attention_mask": padding.long()}, padding),
            ({"position_ids": positions}, torch.ones(1, 40, dtype=torch.bool)),
        )
        for inputs, rows in cases:
            tokens = torch.randint(3, 96, rows.shape)
            with self.holes() as takes:
                self.compare(f"holes {list(inputs)}", rows, ("llama", "gemma2"), input_ids=tokens, **inputs)
            self.assertEqual(takes.call_count, 3)

    def test_blocks(self):
        """A BlockMask of torch in place of a mask: what it lists, and what its function leaves of that."""
        from torch.nn.attention import flex_attention as flex

        counts, blocks = torch.tensor([[[1, 1, 2]]]), torch.tensor([[[[0, 0], [1, 0], [0, 2]]]])
        sees = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 0, 1]]).repeat_interleave(16, 0).repeat_interleave(16, 1)
        visible = (torch.ones(48, 48).tril() > 0) & (sees > 0)
        tensor = torch.zeros(1, 1, 48, 48).masked_fill(~visible, torch.finfo(torch.float16).min).half()
        given = flex.BlockMask.from_kv_blocks(
            counts, blocks, BLOCK_SIZE=16, mask_mod=lambda b, h, q, k: q >= k, seq_lengths=(48, 48)
        )
        tokens = torch.randint(3, 96, (2, 48))
        for name in ("llama", "gemma2"):
            found = []
            for implementation, mask in (("eager", tensor), ("tessera", given)):
                # Gemma 2 takes a mask for each kind of layer.
                masks = {"full_attention": mask, "sliding_attention": mask} if name == "gemma2" else mask
                with torch.no_grad():
                    found.append(self.make(make_models()[name], implementation)(tokens, attention_mask=masks).logits)
            eager, ours = found
            self.assertLess((eager - ours).abs().max(), 0.02 * eager.abs().max())

    def test_training(self):
        """Gradients of a loss, through windows, soft caps and padding."""
        tokens = torch.randint(3, 96, (2, 40))
        mask = (torch.arange(40) < torch.tensor([[40], [29]])).long()
        for name, config in make_models().items():
            for inputs in ({}, {"attention_mask": mask}):
                with self.subTest(f"{name}, {list(inputs)}"):
                    found = []
                    for implementation in ("eager", "tessera"):
                        model = self.make(config, implementation)
                        model(input_ids=tokens, labels=tokens, **inputs).loss.backward()
                        found.append(torch.cat([x.grad.flatten().float() for x in model.parameters() if x.grad is not None]))
                    eager, ours = found
                    self.assertLess((eager - ours).norm().item(), 0.02 * eager.norm().item())

    def generate(self, names):
        tokens = torch.randint(3, 96, (2, 20), generator=torch.Generator().manual_seed(1))
        mask = (torch.arange(20) >= torch.tensor([[0], [7]])).long()
        for name in names:
            for cache in ("dynamic", "static"):
                with self.subTest(f"{name}, {cache} cache"):
                    settings = {"max_new_tokens": 12, "do_sample": False, "disable_compile": True}
                    found = [
                        self.make(make_models()[name], implementation).generate(
                            tokens, attention_mask=mask, cache_implementation=cache, **settings
                        )
                        for implementation in ("eager", "tessera")
                    ]
                    self.assertTrue(torch.equal(*found))

    def test_generation(self):
        self.generate(make_models())

    def test_continuous_batching(self):
        """Requests of several lengths, prompts in parts among them, that begin and end in other steps."""
        from transformers.generation.configuration_utils import ContinuousBatchingConfig

        from tessera import transformers as ours

        interface = transformers.AttentionInterface._global_mapping
        original = interface["paged|eager"]
        self.addCleanup(interface.__setitem__, "paged|eager", original)
        generator = torch.Generator().manual_seed(5)
        prompts = [torch.randint(3, 96, (length,), generator=generator).tolist() for length in (7, 1, 40, 13)]
        settings = transformers.GenerationConfig(max_new_tokens=6, do_sample=False, eos_token_id=-1, pad_token_id=0)
        batching = {"num_blocks": 64, "max_batch_tokens": 32, "auto_switch_to_flash": False}
        for name in ("llama", "mistral", "gemma2", "gpt_oss"):
            found, model = [], self.make(make_models()[name], "paged|eager")
            for is_own in (False, True):
                if is_own:
                    ours.register_paged()
                with unittest.mock.patch.object(ours, "flash_attn_varlen_func", wraps=ours.flash_attn_varlen_func) as attend:
                    results = model.generate_batch(
                        inputs=prompts, generation_config=settings, continuous_batching_config=ContinuousBatchingConfig(**batching)
                    )
                self.assertEqual(attend.called, is_own)
                found.append([result.generated_tokens for result in results.values()])
            with self.subTest(name):
                self.assertEqual([len(tokens) for tokens in found[0]], [6] * 4)
                self.assertEqual(*found)
            # Outside of continuous batching there are no lengths.
            tokens = torch.tensor([prompts[2]])
            with torch.no_grad():
                eager, own = (self.make(make_models()[name], kind)(tokens).logits for kind in ("eager", "paged|eager"))
                self.assertLess((eager - own).abs().max(), 0.02 * eager.abs().max())
            interface["paged|eager"] = original

    def test_generation_of_functions(self):
        with self.holes() as takes:
            self.generate(["llama"])
        self.assertGreater(takes.call_count, 10)


@unittest.skipUnless(transformers, "transformers is not installed")
class Masks(unittest.TestCase):
    def read(self, visible):
        from tessera import transformers as ours

        return ours._read_mask(*visible.shape, lambda begin, end: visible[:, begin:end])

    def draw(self, mask, shape):
        """What the parts of a mask show."""
        visible = torch.zeros(shape, dtype=torch.bool)
        for part in mask.parts:
            rows, keys = (end - begin for begin, end in (part.rows, part.keys))
            visible[slice(*part.batch), slice(*part.rows), slice(*part.keys)] = problems.band(rows, keys, *part.window)
        return visible

    def test_random_masks(self):
        """Any mask without holes is read as it is, whatever the parts."""
        generator = torch.Generator().manual_seed(0)
        for _ in range(200):
            rows, keys = torch.randint(1, 20, (2,), generator=generator).tolist()
            bounds = torch.randint(0, keys, (2, rows, 2), generator=generator)
            column = torch.arange(keys)
            visible = (column >= bounds[:, :, :1]) & (column <= bounds[:, :, 1:])
            self.assertTrue(torch.equal(self.draw(self.read(visible), visible.shape), visible))

    def test_parts(self):
        for rows, keys in ((30, 30), (20, 33), (33, 20), (1, 9), (9, 1)):
            for bounds in ({"right": 0}, {"left": 4, "right": 0}, {"left": 3, "right": 5}, {}):
                visible = problems.band(rows, keys, **bounds).expand(3, -1, -1)
                mask = self.read(visible)
                self.assertTrue(torch.equal(self.draw(mask, visible.shape), visible))
                self.assertLessEqual(len(mask.parts), 1)

    def test_too_old(self):
        from tessera import transformers as ours

        with unittest.mock.patch("transformers.__version__", "4.57.1"):
            with self.assertRaisesRegex(ImportError, "needs transformers 5.0 or newer; this is 4.57.1"):
                ours.register()

    def test_refusals(self):
        from tessera import transformers as ours

        holes = torch.ones(1, 4, 4, dtype=torch.bool)
        holes[0, 2, 1] = False
        with self.assertRaisesRegex(NotImplementedError, "rows that see keys with others between them"):
            self.read(holes)
        weights = torch.tensor([2.0, 0.0, 3.0, 1.0], dtype=torch.float64)
        with self.assertRaisesRegex(NotImplementedError, "no kernel can be compiled from its function.*models.py:.* torch.float64"):
            ours._make_mask(1, 4, 4, mask_function=lambda b, h, q, k: weights[k] > 0)
        q = torch.zeros(1, 2, 4, 64, dtype=torch.bfloat16)
        for text, mask, options in (
            ("has shape", torch.ones(1, 2, 4, 4), {}),
            ("adds numbers to scores", torch.full((1, 1, 4, 4), -0.5), {}),
            ("argument 'dropout' is given", None, {"dropout": 0.1}),
            ("argument 'output_attentions' is given", None, {"output_attentions": True}),
            ("argument 'sinks' is given", None, {"sinks": q}),
            ("argument 'learnable_sink' is given", None, {"learnable_sink": q}),
            ("argument 'block_indices' is given", None, {"block_indices": q}),
        ):
            with self.subTest(text), self.assertRaisesRegex(NotImplementedError, text):
                ours._attend(None, q, q, q, mask, **options)
            if options:
                with self.subTest(f"packed, {text}"), self.assertRaisesRegex(NotImplementedError, text):
                    ours._attend_packed(None, q, q, q, mask, cu_seq_lens_q=torch.zeros(2), **options)
        for exception, text, mask in (
            (ValueError, "has shape .3, 1, 4, 4., which does not repeat", torch.ones(3, 1, 4, 4).bool()),
            (ValueError, "has shape .1, 1, 4, 3., which does not repeat", torch.ones(1, 1, 4, 3).bool()),
            (TypeError, "has type torch.int64; it is of torch.bool", torch.ones(1, 1, 4, 4, dtype=torch.int64)),
        ):
            with self.subTest(text), self.assertRaisesRegex(exception, text):
                ours._attend(None, q, q, q, mask)
        with self.assertRaisesRegex(ValueError, "argument 'sinks' is torch.bfloat16 of shape .1, 2, 4, 1.; attention takes one"):
            ours._attend(None, q, q, q, None, s_aux=q[..., :1])

    def test_no_tensors(self):
        """Models that choose keys take elements of their mask, or change it."""
        from tessera import transformers as ours

        causal = ours._make_mask(1, 4, 4, mask_function=transformers.masking_utils.causal_mask_function)
        with_holes = ours._make_mask(1, 4, 4, mask_function=lambda b, h, q, k: k % 2 == 0)
        self.assertIsInstance(with_holes, ours.FunctionMask)
        for mask in (causal, with_holes):
            for change in (lambda mask: mask[:, :, :, :2], lambda mask: mask[0], lambda mask: list(mask)):
                with self.assertRaisesRegex(NotImplementedError, 'elements of a mask of attn_implementation="tessera", which is no tensor'):
                    change(mask)
            with self.assertRaisesRegex(AttributeError, "asks for 'shape' of a mask of"):
                mask.shape
            self.assertFalse(hasattr(mask, "dtype"))
            for change in (lambda mask: mask + torch.zeros(4, 4), lambda mask: 2 * mask, lambda mask: mask & torch.ones(4, 4).bool()):
                with self.assertRaises(TypeError):
                    change(mask)

    def test_masks_that_repeat(self):
        from tessera import transformers as ours

        problems.use_interpreter(self)
        generator = torch.Generator().manual_seed(3)
        q, k, v = (torch.randn(2, 2, 4, 64, generator=generator).bfloat16() for _ in range(3))
        seen = torch.tensor([True, True, False, False]), torch.tensor([False, True, True, True])
        for mask in (seen[0].view(1, 1, 1, 4), torch.stack(seen).view(2, 1, 1, 4), torch.tensor([[True], [False], [True], [True]]).view(1, 1, 4, 1)):
            for given in (mask, torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)):
                whole = mask.expand(2, 1, 4, 4)
                self.assertTrue(torch.equal(ours._attend(None, q, k, v, given)[0], ours._attend(None, q, k, v, whole)[0]))


if __name__ == "__main__":
    unittest.main()
