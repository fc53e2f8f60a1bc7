#!/usr/bin/env python3
"""A model of Hugging Face's transformers: logits, generation and training with attn_implementation="tessera".

    python3 python_examples/hugging_face.py                on a Hopper GPU
    python3 python_examples/hugging_face.py --interpret    small, on the CPU, by the interpreter

Needs transformers 5.0 or newer. The model is a small Llama with random weights, so that nothing is downloaded.
"""

import argparse
import os
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

import tessera.torch  # noqa: E402
import tessera.transformers  # noqa: E402


def make_model(implementation, device):
    """The same weights for each implementation of attention."""
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    config._attn_implementation = implementation
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).to(device, torch.bfloat16).eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpret", action="store_true", help="on the CPU, by the interpreter")
    options = parser.parse_args()
    device, length = ("cpu", 24) if options.interpret else ("cuda", 500)
    if options.interpret:
        tessera.torch.use_interpreter()

    # From here on models take attention by this name.
    tessera.transformers.register()
    model, eager = make_model("tessera", device), make_model("eager", device)

    # The second sequence is shorter: its first tokens are padding.
    tokens = torch.randint(3, 96, (2, length), device=device)
    mask = torch.ones_like(tokens)
    mask[1, :7] = 0
    with torch.no_grad():
        ours, theirs = (one(input_ids=tokens, attention_mask=mask).logits[mask.bool()] for one in (model, eager))
    difference = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    print(f"logits: differ by at most {difference:.2f} of the largest")
    if not difference < 0.05:
        raise SystemExit("the logits are wrong")

    # Generation keeps keys and values in a cache.
    found = model.generate(input_ids=tokens, attention_mask=mask, max_new_tokens=4, do_sample=False)
    print(f"generated: {found.shape[1] - length} tokens for each sequence")

    # Attention has gradients.
    loss = model(input_ids=tokens, attention_mask=mask, labels=tokens).loss
    loss.backward()
    gradient = model.model.layers[0].self_attn.q_proj.weight.grad
    print(f"trained: gradients are finite: {bool(gradient.isfinite().all() and gradient.any())}")


if __name__ == "__main__":
    main()
