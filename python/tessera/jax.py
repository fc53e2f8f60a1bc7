"""Attention for JAX: a custom call of XLA (tessera-c/Xla.h), under jit, vmap and sharded over batch and heads.

    import tessera.jax

    out = tessera.jax.attention(q, k, v, causal=True)
"""

import ctypes
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning

from . import _choice, _library, _program, _variants
from ._errors import LibraryError

if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 7):
    raise ImportError(f"tessera.jax needs jax 0.7 or newer; this is {jax.__version__}")

__all__ = ["attention", "register", "use_interpreter", "warm_up"]

_LAYOUTS = ("BSHD", "BHSD")
_TYPES = {"float16": "f16", "bfloat16": "bf16"}
_TARGET = "tessera_attention"
# Dimensions of q, k, v and the output in sharding rules. There are n key heads; h: heads of queries.
_RULES = {
    "BHSD": "b h s d, b n t d, b n t e{slopes} -> b h s e{lse}",
    "BSHD": "b s h d, b t n d, b t n e{slopes} -> b s h e{lse}",
}
_interprets = False


def use_interpreter(enabled=True):
    """Lets attention of arrays on the CPU run by the interpreter, which is exact and slow: for tests without a GPU.
    Returns what it was before."""
    global _interprets
    before, _interprets = _interprets, enabled
    return before


def _find_kernel(variant, element_type, sizes, lse):
    kernel, extras, is_final = _variants.find_kernel(variant, element_type, sizes, lse)
    return kernel, None, extras, is_final


def _find_program(variant, element_type, sizes, lse):
    if not _interprets:
        raise ValueError(
            "attention runs on CUDA devices of compute capability 9.0; call tessera.jax.use_interpreter() to run tests "
            "on the CPU"
        )
    found = _variants.find_variant(variant, element_type, sizes[3], sizes[6], lse)
    return None, found.program, found.extras, False


_resolve, _resolve_cpu = _choice.make_resolver(_find_kernel), _choice.make_resolver(_find_program)


@functools.lru_cache(maxsize=None)
def register():
    """Makes the custom call known to XLA, which `attention` does by itself; for a process that only runs programs of
    another one. Returns the library."""
    resolver = _choice.Resolver
    signatures = {
        "tessera_xla_register": (None, resolver, resolver, ctypes.c_void_p), "tessera_xla_reset": (None,),
    }  # fmt: skip
    library = _library.declare(_library.runtime(), signatures)
    try:
        interpreter = ctypes.cast(_program._interpreter().tessera_program_run, ctypes.c_void_p)
    except LibraryError:
        interpreter = None  # Only the library that launches is there.
    library.tessera_xla_register(_resolve, _resolve_cpu, interpreter)
    for platform, name in (("CUDA", "tessera_xla_attention"), ("cpu", "tessera_xla_attention_cpu")):
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(getattr(library, name)), platform=platform)
    return library


def _call(*tensors, layout, lse, **attributes):
    """The custom call itself, of q, k, v, and slopes where there are some."""
    q, v = tensors[0], tensors[2]
    heads, rows = (q.shape[1], q.shape[2]) if layout == "BHSD" else (q.shape[2], q.shape[1])
    results = (
        jax.ShapeDtypeStruct((*q.shape[:3], v.shape[3]), q.dtype),
        jax.ShapeDtypeStruct((q.shape[0], heads, rows), jnp.float32),
    )
    return jax.ffi.ffi_call(_TARGET, results if lse else results[:1])(*tensors, layout=layout, **attributes)


def _make_rule(layout, heads, key_heads, has_slopes, lse):
    """(sharding rule, sizes of its factors): heads of queries are g for each of the n key heads."""
    name = "n" if heads == key_heads else "g" if key_heads == 1 else "(n g)"
    rule = _RULES[layout].format(slopes=", h" if has_slopes else "", lse=", b h s" if lse else "").replace("h", name)
    return rule, {"g": heads // key_heads} if name == "(n g)" else {}


def _keep_batch_and_heads(info, layout):
    """The sharding of a tensor with its other dimensions whole."""
    rank = len(info.shape)
    kept = {1: (0,), 3: (0, 1)}.get(rank, (0, layout.index("H")))
    spec = (*info.sharding.spec, *[None] * rank)[:rank]
    spec = [axes if dim in kept else None for dim, axes in enumerate(spec)]
    return jax.sharding.NamedSharding(info.sharding.mesh, jax.sharding.PartitionSpec(*spec))


@functools.lru_cache(maxsize=256)
def _make(heads, key_heads, has_slopes, **static):
    """Attention of q, k, v and slopes: one call of XLA on each device, mapped over by folding into the batch."""
    layout = static["layout"]
    call = functools.partial(_call, **static)
    rule, sizes = _make_rule(layout, heads, key_heads, has_slopes, static["lse"])

    @custom_partitioning
    def partitioned(*tensors):
        return call(*tensors)

    def partition(mesh, arguments, results):
        of_results, of_arguments = (
            tuple(_keep_batch_and_heads(info, layout) for info in infos) for infos in (results, arguments)
        )
        return mesh, call, of_results, of_arguments

    # In the order of their first use.
    partitioned.def_partition(
        partition=partition, sharding_rule=rule, need_replication_factors=("s", "d", "t", "e"), **sizes
    )

    @custom_vmap
    def mapped(*tensors):
        return partitioned(*tensors)

    @mapped.def_vmap
    def fold(size, is_mapped, *tensors):
        if has_slopes and is_mapped[3]:
            raise NotImplementedError("argument 'alibi' is mapped over by vmap; its slopes are the same for all")
        folded = [
            (tensor if mapped_over else jnp.broadcast_to(tensor, (size, *tensor.shape))).reshape(
                -1, *tensor.shape[-3:]
            )
            for tensor, mapped_over in zip(tensors[:3], is_mapped)
        ]
        results = mapped(*folded, *tensors[3:])
        return tuple(result.reshape(size, -1, *result.shape[1:]) for result in results), (True,) * len(results)

    @jax.custom_vjp
    def differentiated(*tensors):
        return mapped(*tensors)

    def forward(*tensors):
        raise NotImplementedError(
            "attention has no backward kernel in JAX: use it outside of jax.grad, or behind jax.lax.stop_gradient"
        )

    differentiated.defvjp(forward, lambda residuals, gradients: None)
    return differentiated


def _check(q, k, v, alibi, layout):
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.ndim != 4:
            raise ValueError(f"argument '{name}' has {tensor.ndim} dimensions; attention takes 4")
        if tensor.dtype.name not in _TYPES:
            raise TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes float16 and bfloat16")
        if tensor.dtype != q.dtype:
            raise TypeError(f"argument '{name}' has type {tensor.dtype} and 'q' {q.dtype}; they must be equal")
        problem = _variants.find_head_problem(name, tensor.shape[3])
        if problem is not None:
            raise problem
    problem = _variants.find_mismatch(q.shape, k.shape, v.shape, alibi, layout)
    if problem is not None:
        raise problem
    of_head = layout.index("H")
    return q.shape[of_head], k.shape[of_head]


def attention(
    q, k, v, *, causal=False, window=None, softcap=0.0, alibi=None, scale=None, layout="BSHD", return_lse=False
):
    """softmax(scale * q k^T) v, and with `return_lse` also the logarithm of the softmax' sums, [B, H, SQ] in float32.

    q, k, v:  arrays in the order of `layout`, "BSHD" as in jax.nn.dot_product_attention or "BHSD", float16 or bfloat16.
              q may have a multiple of the heads of k and v, and v a head dimension of its own.
    causal:   a row sees the keys up to its own. The last row is aligned with the last key.
    window:   (left, right), how many keys before and after its own a row sees; a negative number or None for all.
    softcap:  scores become softcap * tanh(score / softcap); 0 for none.
    alibi:    a float32 slope for each head of q; scores fall by it with each key of distance.
    scale:    1 / sqrt(head dimension) when not given.

    Numbers are constants of the program. Under vmap the mapped dimension joins the batch; arrays that are sharded
    over batch or heads stay so, and others are gathered. A row that sees no key gives zeros and an LSE of -inf.

    Raises TypeError, ValueError and NotImplementedError. Where no kernel can be had the program ends with an error that
    says why.
    """
    if layout not in _LAYOUTS:
        raise ValueError(f"argument 'layout' is {layout!r}; it is 'BSHD' or 'BHSD'")
    heads, key_heads = _check(q, k, v, alibi, layout)
    left, right = _variants.read_window(causal, window)
    mask = _variants.name_mask(left, right)
    if 0 in (q.size, k.size):
        out = jnp.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        rows = q.shape[2] if layout == "BHSD" else q.shape[1]
        lse = jnp.full((q.shape[0], heads, rows), -jnp.inf, jnp.float32)
        return (out, lse) if return_lse else out
    register()
    function = _make(
        heads, key_heads, alibi is not None, layout=layout, lse=return_lse,
        variant=_variants.name_variant(mask, softcap, alibi is not None),
        scale=np.float32(q.shape[3] ** -0.5 if scale is None else scale), softcap=np.float32(softcap),
        left=np.int32(_variants.UNLIMITED if left is None else left),
        right=np.int32(_variants.UNLIMITED if right is None else right),
    )  # fmt: skip
    results = function(q, k, v, *(() if alibi is None else (alibi,)))
    return tuple(results) if return_lse else results[0]


def warm_up(
    dtype, head_dim, *, value_dim=None, causal=False, window=None, softcap=0.0, alibi=False, return_lse=False
):
    """Compiles the kernels of a variant for all classes of shapes, so that no call waits for the compiler. `window`
    and `softcap` matter by being given, not by their values."""
    name = jnp.dtype(dtype).name
    if name not in _TYPES:
        raise TypeError(f"argument 'dtype' is {name}; attention takes float16 and bfloat16")
    text = _variants.name_variant(_variants.name_mask(*_variants.read_window(causal, window)), softcap, alibi)
    _variants.find_variant(text, _TYPES[name], head_dim, value_dim or head_dim, return_lse).compile_all()
