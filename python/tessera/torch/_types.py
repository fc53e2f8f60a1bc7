"""Element types that the kernels take: their names in sources by those of torch."""

import torch

TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
