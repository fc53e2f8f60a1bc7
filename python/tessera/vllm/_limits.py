"""What all backends for vLLM take, of GPUs and of heads."""

from .._attention import _variants


def takes_device(capability):
    return capability is not None and (capability.major, capability.minor) == (9, 0)


def takes_head(size):
    return _variants.find_head_problem("head_size", size) is None
