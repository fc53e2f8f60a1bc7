# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Models of transformers whose layers carry a state: logits and tokens beside those of transformers' own functions, with a cache."""

import sys
import unittest
import unittest.mock

try:
    import transformers
except ImportError:
    transformers = None
import problems
import torch

SIZES = {"vocab_size": 96, "hidden_size": 64, "num_hidden_layers": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def make_models():
    # All experts see every token: of two whose scores are close, a rounding would choose.
    return {
        "qwen3_next": transformers.Qwen3NextConfig(
            **SIZES, intermediate_size=96, num_attention_heads=2, num_key_value_heads=1, head_dim=32, linear_num_key_heads=1,
            linear_num_value_heads=2, linear_key_head_dim=64, linear_value_head_dim=64, num_experts=2, num_experts_per_tok=2,
            moe_intermediate_size=32, shared_expert_intermediate_size=32, layer_types=["linear_attention", "full_attention"],
        ),
        "mamba2": transformers.Mamba2Config(**SIZES, num_heads=2, head_dim=64, state_size=64, n_groups=1, chunk_size=64),
        "mamba2 of limited steps": transformers.Mamba2Config(
            **SIZES, num_heads=2, head_dim=64, state_size=64, n_groups=1, chunk_size=64, time_step_limit=(0.02, 0.5)
        ),
    }  # fmt: skip


@unittest.skipUnless(transformers, "transformers is not installed")
class Models(unittest.TestCase):
    def setUp(self):
        problems.use_interpreter(self)
        transformers.logging.set_verbosity_error()

    def replace(self, model):
        """Registers, and puts back the functions of the modules after the test."""
        from tessera import transformers as ours

        for module in {type(part).__module__ for part in model.modules()}:
            patch = unittest.mock.patch.dict(vars(sys.modules[module]))
            patch.start()
            self.addCleanup(patch.stop)
        ours.register_recurrences(model)
        calls = {name: unittest.mock.Mock(wraps=function) for name, function in ours._RECURRENCES.items()}
        for module in {type(part).__module__ for part in model.modules()}:
            vars(sys.modules[module]).update({name: call for name, call in calls.items() if name in vars(sys.modules[module])})
        return calls

    def test_models(self):
        tokens = torch.randint(3, 96, (2, 67))
        for name, config in make_models().items():
            torch.manual_seed(3)
            model = transformers.AutoModelForCausalLM.from_config(config).to(torch.float16).eval()
            compute = lambda: (model(tokens).logits, model.generate(tokens, max_new_tokens=3, do_sample=False))
            with self.subTest(name), torch.no_grad():
                logits, generated = compute()
                calls = self.replace(model)
                ours, ours_generated = compute()
                self.assertLess((ours - logits).abs().max(), 0.02 * logits.abs().max())
                self.assertTrue(torch.equal(ours_generated, generated))
                self.assertEqual(sum(call.called for call in calls.values()), 2)
                self.doCleanups()
                problems.use_interpreter(self)

    def test_refusals(self):
        from tessera import transformers as ours

        with self.assertRaisesRegex(ValueError, "argument 'model' is a Linear, none of whose layers call torch_chunk_gated_delta_rule"):
            ours.register_recurrences(torch.nn.Linear(2, 2))

    def test_sequences(self):
        """Numbers of sequences that a model hands on, and z of a scan and of a step."""
        from tessera import transformers as ours

        x, z = torch.randn(2, 1, 5, 2, 64, dtype=torch.float16)
        B, C = torch.randn(2, 1, 5, 1, 64, dtype=torch.float16)
        dt, A, numbers, own = torch.rand(1, 5, 2), -torch.rand(2), torch.tensor([[0, 0, 0, 1, 1]]), slice(3, 5)
        y, last = ours._scan(x, dt, A, B, C, z=z, seq_idx=numbers.int(), return_final_states=True)
        alone, state = ours._scan(x[:, own], dt[:, own], A, B[:, own], C[:, own], z=z[:, own], return_final_states=True)
        torch.testing.assert_close(y[:, own], alone)
        torch.testing.assert_close(last, state)
        _, state = ours._scan(x[:, 3:4], dt[:, 3:4], A, B[:, 3:4], C[:, 3:4], return_final_states=True)
        wide = lambda of_heads, *extents: of_heads[..., None].expand(*of_heads.shape, 64)
        y = ours._step(state, x[:, 4], wide(dt[:, 4]), wide(wide(A)), B[:, 4], C[:, 4], z=z[:, 4])
        torch.testing.assert_close(y, alone[:, 1], rtol=2e-2, atol=2e-2)
        torch.testing.assert_close(state, last, rtol=2e-2, atol=2e-2)


if __name__ == "__main__":
    unittest.main()
