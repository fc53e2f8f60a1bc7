"""Masks of torch.nn.attention.flex_attention. Their functions count; the compiler finds the blocks itself."""

import torch.nn.attention.flex_attention as flex


def find_problem(block_mask):
    """Why kernels cannot be compiled from a mask, as an exception; None when they can."""
    if block_mask is None:
        return None
    if block_mask.mask_mod is flex.noop_mask:
        return NotImplementedError(
            "argument 'block_mask' has lists of blocks and no function, from which kernels are compiled: give the function of "
            "the mask to create_block_mask, or None where all keys are seen"
        )
    if block_mask.mask_mod is getattr(flex, "_sliced_mask_mod_error", None):
        return NotImplementedError(
            "argument 'block_mask' is a part of another one and has lost its function: give it one that counts from this part"
        )
    return None
