import tessera.torch
import torch
from tessera.torch import merge_states

tessera.torch.use_interpreter()
batch = 2
q, k, v = torch.randn(2, 4, 64).bfloat16(), torch.randn(2, 2, 64).bfloat16(), torch.randn(2, 2, 64).bfloat16()
k_cache, v_cache = torch.randn(2, 4, 128, 2, 64).bfloat16()
slots, positions = torch.tensor([100, 128], dtype=torch.int32), torch.tensor([100, 0], dtype=torch.int32)
cos, sin = torch.rand(2, 512, 32)
lengths, table = torch.tensor([101, 1], dtype=torch.int32), torch.tensor([[0, 3], [1, 2]], dtype=torch.int32)
# next
B, S = 2, 1
q = q.view(B, S, 4, 64)
prefix_k, prefix_v = torch.randn(2, 1, 128, 2, 64).bfloat16()
# next
q, cache = torch.randn(2, 1, 16, 576).bfloat16(), torch.randn(4, 64, 1, 576).bfloat16()
block_table, cache_seqlens, SQ, H = table, lengths, 1, 16
