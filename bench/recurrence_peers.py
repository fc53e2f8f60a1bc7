"""Recurrences by what they are measured beside: functions of what `recurrences.draw` gives, called as models call them."""


def find(name):
    """(the peer's name, a function that returns the outputs). Raises ImportError where it cannot be imported."""
    if name == "ssd":
        return "mamba", find_mamba()
    import fla.ops.common.chunk_o as outputs

    # Of Triton's releases before 3.7 it takes some for wrong on Hopper, and refuses them.
    for flag in (flag for flag in dir(outputs) if "HOPPER" in flag):
        setattr(outputs, flag, False)
    if name == "retention":
        from fla.ops.retention import chunk_retention as function
    elif name == "gla":
        from fla.ops.gla import chunk_gla as function
    elif name == "kda":
        from fla.ops.kda import chunk_kda as function
    else:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule as function
    norm = {"use_qk_l2norm_in_kernel": True} if name in ("delta_rule", "kda") else {}
    return "fla", lambda **given: function(**given, **norm)[0]


def find_mamba():
    """mamba-ssm's Triton kernels, with chunks as long as in the configurations of Mamba-2 and Bamba."""
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    def scan(q, k, v, dt, A, D, bias):
        return mamba_chunk_scan_combined(v, dt, A, k, q, 256, D=D, dt_bias=bias, dt_softplus=True)

    return scan
