import tessera.torch
import torch

tessera.torch.use_interpreter()
q, k, v = (torch.randn(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(3))
