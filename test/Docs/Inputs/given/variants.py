import numpy as np
import tessera
import tessera.torch
import torch

tessera.torch.use_interpreter()
q, k, v = (torch.randn(1, 2, 128, 64, dtype=torch.bfloat16) for _ in range(3))
o, lse, scale = torch.empty_like(q), torch.empty(1, 2, 128), 0.125
slopes = torch.tensor([0.5, 0.25])
document = torch.arange(128) // 32
variant = tessera.Variant(score=lambda s, b, h, q, k, slopes: s - slopes[h] * (q - k), slopes=("H",))
# As torch has them by default on a GPU.
from torch.nn.attention import flex_attention as flex

of_torch = flex.create_block_mask
flex.create_block_mask = lambda *arguments: of_torch(*arguments, device="cpu")
