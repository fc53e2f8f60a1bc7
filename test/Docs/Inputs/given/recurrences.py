import tessera.torch
import torch

tessera.torch.use_interpreter()
q, k, v = (torch.nn.functional.normalize(torch.randn(1, 128, 2, 64), dim=-1).bfloat16() for _ in range(3))
g, beta, g_of_channels = -torch.rand(1, 128, 2), torch.rand(1, 128, 2), -torch.rand(1, 128, 2, 64)
x, B, C, dt, A, D = v, k, q, torch.rand(1, 128, 2), -torch.rand(2), torch.rand(2)
