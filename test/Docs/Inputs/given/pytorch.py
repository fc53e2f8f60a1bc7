import tessera.torch
import torch
import transformers

tessera.torch.use_interpreter()
q, k, v = (torch.randn(2, 8, 128, 128, dtype=torch.bfloat16) for _ in range(3))
slopes, sinks, width = torch.linspace(0.1, 0.8, 8), torch.randn(8), 100
document, layers = torch.arange(128) // 32, range(2)
chosen = torch.zeros(1, 1, 2, 1, dtype=torch.int32)
tokens = q


def causal(b, h, q, k):
    return q >= k


def model(tokens):
    for _ in range(24):
        torch.nn.functional.scaled_dot_product_attention(q[:, :, :16], k[:, :, :16], v[:, :, :16])


class AutoModelForCausalLM:
    @staticmethod
    def from_pretrained(name, dtype, attn_implementation):
        config = transformers.LlamaConfig(
            vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=1
        )
        return transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, dtype), attn_implementation=attn_implementation
        )


name = "a model"
