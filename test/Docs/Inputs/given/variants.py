import numpy as np
import tessera
import tessera.torch
import torch

tessera.torch.use_interpreter()
q, k, v = (torch.randn(1, 2, 128, 64, dtype=torch.bfloat16) for _ in range(3))
o, lse, scale = torch.empty_like(q), torch.empty(1, 2, 128), 0.125
slopes = torch.tensor([0.5, 0.25])
