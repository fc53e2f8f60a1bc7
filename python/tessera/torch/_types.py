"""Element types that the kernels take: their names in sources by those of torch."""

import torch

from .._core import _library

TYPES = {getattr(torch, name): element for name, element in _library.QUERY_TYPES.items()}
