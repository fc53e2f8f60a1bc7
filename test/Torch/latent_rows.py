"""Rows of latent attention in 8 bits, for the tests."""

import torch


def pack(rows):
    """Rows of bytes, and what they stand for. Of rows of NaN all bytes are NaN, the scales too."""
    values, rotary = rows.float().split([512, 64], -1)
    units = values.unflatten(-1, (4, 128)).abs().amax(-1) / 448
    numbers = (values.unflatten(-1, (4, 128)) / units[..., None]).flatten(-2).to(torch.float8_e4m3fn)
    rotary = rotary.bfloat16()
    packed = torch.cat([part.contiguous().view(torch.uint8) for part in (numbers, units, rotary)], -1)
    meant = (numbers.float().unflatten(-1, (4, 128)) * units[..., None]).flatten(-2)
    return packed, torch.cat([meant, rotary.float()], -1).bfloat16()
