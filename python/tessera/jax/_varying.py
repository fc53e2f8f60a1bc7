"""What differs from device to device within jax.shard_map, which JAX keeps in the types of arrays."""

import jax


def is_in_shard_map():
    """Whether code is that of each device."""
    return bool(getattr(jax.sharding.get_abstract_mesh(), "manual_axes", ()))


def list_axes(*arrays):
    """The axes of the mesh over which one of the arrays differs."""
    axes = set()
    for array in arrays:
        kind = jax.typeof(array)
        # JAX before 0.10 names them otherwise.
        axes |= kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else getattr(kind, "vma", frozenset())
    return axes


def vary(array, axes):
    """The array as one that differs over the axes. The gradient of an array that is the same on all devices is then a sum over
    them."""
    missing = tuple(sorted(axes - list_axes(array)))
    if not missing:
        return array
    return jax.lax.pcast(array, missing, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(array, missing)
