"""What the tests on the GPU run: configurations of the kernels, and shapes."""

import itertools

ATTENTION = "attention_fwd"
VARIANTS = "attention_variants"
GEMM = "gemm"

DTYPES = ("bf16", "f16")
# (D, DV)
HEAD_DIMS = ((64, 64), (96, 96), (128, 128), (160, 160), (192, 192), (256, 256), (192, 128))
# (heads, heads of K and V): multi-head, multi-query, grouped-query attention
HEADS = ((6, 6), (6, 1), (6, 2))
LAYOUTS = ("BSHD", "BHSD")
# (seqlen of Q, seqlen of K and V): around the edges of tiles, and sq > sk, where causal rows see nothing
SEQLENS = (
    (1, 1), (64, 128), (128, 192), (256, 256), (239, 1), (799, 3), (1, 1023), (113, 203), (113, 128),
    (128, 217), (113, 211), (108, 256), (256, 512), (384, 256), (640, 128), (512, 256), (1024, 1024),
    (1023, 1024), (1024, 1023), (2048, 2048),
)  # fmt: skip
QUICK_SEQLENS = ((1, 1), (113, 203), (640, 128), (1023, 1024), (1024, 1024))
LONG_SEQLENS = ((4096, 4096), (4224, 4224))
# What the values are drawn like, see attention_check.py: those for which a fixed reference of the softmax fails in no,
# some or all rows.
INPUTS = ("late", "last", "first", "wide")
INPUTS_SEQLENS = ((203, 1023), (1023, 1024), (2048, 2048))
MEMCHECK_SEQLENS = ((113, 203), (256, 256), (239, 1))
# Tiles with rows of several heads: (HEADS, rows of a tile), and few queries against many keys.
PACKED_TILES = ((2, 128), (4, 128), (8, 128), (8, 64), (16, 64), (2, 256))
# What launches choose among beside the default: (D, CAUSAL, HEADS, rows of Q, rows of K).
CHOSEN_TILES = (
    (64, False, 1, 192, 64), (64, True, 1, 128, 64), (64, True, 1, 64, 64), (128, False, 1, 192, 80), (128, True, 1, 192, 80),
    (128, False, 1, 128, 64), (128, True, 1, 128, 64), (128, True, 1, 64, 64), (128, True, 2, 128, 64), (256, False, 1, 128, 80),
    (256, True, 2, 128, 64), (256, False, 1, 64, 64),
)  # fmt: skip
PACKED_SEQLENS = ((1, 1), (1, 1023), (3, 113), (17, 799), (64, 2048), (113, 203), (300, 10), (1023, 1024))

# Schedules that must compile to a correct kernel or be refused with a reason, on top of the default one.
SCHEDULES = tuple(
    ",".join((f"producer={producer}", f"overlap={overlap}", f"pingpong={pingpong}", f"stages={stages}"))
    for producer, overlap, pingpong, stages in itertools.product(("operands", "none"), (1, 2), ("true", "false"), (1, 2, 3))
) + (
    "store=direct", "store=tma", "consumers=1", "consumers=2", "consumers=3",
    "cluster=2", "cluster=4", "cluster=2,persistent=static", "cluster=2,persistent=none,store=tma",
    "cluster=2,producer=none",
    "overlap=3", "overlap=3,pingpong=true", "overlap=3,producer=none", "overlap=scaled",
    "cluster=2,store=tma", "work=pinned", "work=pinned,speculate=false", "work=pinned,pingpong=false", "polynomial_exp=8", "polynomial_exp=16,speculate=false", "stages=[2,3]", "stages=[3,1]",
)  # fmt: skip
CAUSAL_CLUSTERS = (
    "cluster=2", "cluster=4", "cluster=2,persistent=static", "cluster=2,persistent=none,store=tma",
    "cluster=2,speculate=false", "cluster=2,pingpong=false",
)  # fmt: skip
GEMM_SCHEDULES = ("cluster=2", "cluster=4,persistent=dynamic")

# What attention_variants.tile is run with, for each of the head dimensions and types of VARIANT_TYPES.
SCORES = (
    {"MASK": "window"},
    {"MASK": "none", "ALIBI": True},
    {"MASK": "causal", "ALIBI": True},
    {"MASK": "none", "SOFTCAP": "exact"},
    {"MASK": "causal", "SOFTCAP": "approx"},
    {"MASK": "window", "SOFTCAP": "exact", "ALIBI": True},
)
# Beside these: other numbers that the exponents of the speculation refer to, and none of it.
REFERENCES = (
    {"MASK": "window", "REFERENCE": "diagonal"},
    {"MASK": "window", "REFERENCE": "zero"},
    {"MASK": "causal", "SOFTCAP": "approx", "REFERENCE": "first"},
    {"MASK": "none", "ALIBI": True, "REFERENCE": "first"},
)
VARIANT_TYPES = ((64, "bf16"), (128, "bf16"), (128, "f16"), (192, "bf16"), (256, "bf16"))
# (left, right): windows within a tile, across tiles, of one side and of everything
WINDOWS = ((0, 0), (5, 0), (127, 0), (512, 64), (-1, 3), (64, -1), (3000, 3000))

ACTIVATIONS = ("none", "relu", "gelu")
# (M, N, K)
GEMM_SHAPES = (
    (1, 1, 1), (128, 256, 64), (64, 8, 16), (129, 257, 65), (300, 1, 77), (1, 300, 130), (17, 300, 2000),
    (1000, 999, 1001), (512, 512, 8), (2048, 1536, 1024),
)  # fmt: skip
QUICK_GEMM_SHAPES = ((1, 1, 1), (129, 257, 65), (1000, 999, 1001))
MEMCHECK_GEMM_SHAPES = ((129, 257, 65), (300, 1, 77))


def configuration(kernel, parameters, schedule="", shape=None, shape_class="", alternatives=False, entry=""):
    """A kernel to compile, with what was measured for `shape`, {"SQ": 1024, ...}, or for a class of shapes, and with the
    alternatives that its source declares, or without; `entry` is which of the source's kernels and sequences, where it does not
    say so. `name` is unique and fit for a file name."""
    parameters = {key: str(value).lower() if isinstance(value, bool) else value for key, value in parameters.items()}
    values = "_".join(f"{key}{value}" for key, value in parameters.items())
    suffix = "_" + schedule.translate(str.maketrans(",", "_", "=[]")) if schedule else ""
    suffix += "_for" + "".join(f"_{key}{value}" for key, value in shape.items()) if shape else ""
    suffix += f"_{shape_class}" if shape_class else ""
    suffix += "_alternatives" if alternatives else ""
    suffix += f"_{entry}" if entry else ""
    return {
        "name": f"{kernel.replace('/', '.')}_{values}{suffix}",
        "kernel": kernel,
        "parameters": parameters,
        "schedule": schedule,
        "shape": shape or {},
        "shape_class": shape_class,
        "alternatives": alternatives,
        "entry": entry,
        # A schedule that does not fit is refused; a default one always exists.
        "may_be_refused": bool(schedule),
    }


def attention(dtype, d, dv, causal, schedule="", shape=None):
    parameters = {"T": dtype, "D": d, "DV": dv, "CAUSAL": "true" if causal else "false"}
    return configuration(ATTENTION, parameters, schedule, shape)


def attention_configurations():
    for (d, dv), dtype, causal in itertools.product(HEAD_DIMS, DTYPES, (False, True)):
        yield attention(dtype, d, dv, causal)


def schedule_configurations():
    for causal, schedule in itertools.product((False, True), SCHEDULES):
        yield attention("bf16", 128, 128, causal, schedule)


def cluster_configurations():
    """Causal masks, with which the loops of the blocks of a cluster have different lengths."""
    types = ((64, 64, "bf16"), (128, 128, "bf16"), (128, 128, "f16"), (192, 128, "bf16"), (256, 256, "bf16"))
    for (d, dv, dtype), schedule in itertools.product(types, CAUSAL_CLUSTERS):
        parameters = {"T": dtype, "D": d, "DV": dv, "CAUSAL": True, "BACKWARD": False}
        yield configuration(ATTENTION, parameters, schedule)


def packed_configurations():
    for (d, dv), (heads, rows), causal in itertools.product(((64, 64), (128, 128), (192, 128)), PACKED_TILES, (False, True)):
        if rows > 128 and d > 64:
            continue
        parameters = {"T": "bf16", "D": d, "DV": dv, "CAUSAL": causal, "HEADS": heads, "BM": rows}
        yield configuration(ATTENTION, parameters)
        if (heads, rows) == (8, 128):
            yield configuration(ATTENTION, {**parameters, "T": "f16"})
            yield configuration(ATTENTION, parameters, "store=tma")


def chosen_configurations():
    for d, causal, heads, rows, keys in CHOSEN_TILES:
        parameters = {"T": "bf16", "D": d, "DV": d, "CAUSAL": causal, "HEADS": heads, "BM": rows, "BN": keys}
        yield configuration(ATTENTION, parameters)


def variant(dtype, d, scores, schedule="", shape=None):
    return configuration(VARIANTS, {"T": dtype, "D": d, **scores}, schedule, shape)


def variant_configurations():
    for (d, dtype), scores in itertools.product(VARIANT_TYPES, SCORES):
        yield variant(dtype, d, scores)
    for scores in REFERENCES:
        yield variant("bf16", 128, scores)
        yield variant("f16", 64, scores)
    for scores in SCORES:
        yield variant("bf16", 128, scores, "speculate=false")
    for d, dtype, cap, share, speculate in itertools.product(
        (64, 128), DTYPES, ("exact", "approx"), (8, 16), ("true", "false")
    ):
        scores = {"MASK": "causal" if speculate == "true" else "none", "SOFTCAP": cap}
        yield variant(dtype, d, scores, f"polynomial_exp={share},speculate={speculate}")


def gemm_configurations():
    for dtype, transposed, bias, activation in itertools.product(
        DTYPES, ("true", "false"), ("false", "true"), ACTIVATIONS
    ):
        yield configuration(GEMM, {"T": dtype, "B_TRANSPOSED": transposed, "BIAS": bias, "ACTIVATION": activation})
    for schedule, transposed in itertools.product(GEMM_SCHEDULES, ("true", "false")):
        yield configuration(GEMM, {"T": "bf16", "B_TRANSPOSED": transposed, "BIAS": "false", "ACTIVATION": "none"}, schedule)


GROUPS = {
    "attention": attention_configurations,
    "schedules": schedule_configurations,
    "clusters": cluster_configurations,
    "packed": packed_configurations,
    "chosen": chosen_configurations,
    "variants": variant_configurations,
    "gemm": gemm_configurations,
}


def configurations(groups=GROUPS):
    """The configurations of the named groups, each with its "group"."""
    for group in groups:
        for entry in GROUPS[group]():
            yield dict(entry, group=group)


def attention_cases(mode, group):
    """Cases of one attention kernel. `mode` is "full", "quick" or "memcheck"."""
    heads_of_inputs = (6, 2)
    if group == "packed":
        heads_of_inputs = (32, 2)
        seqlens = MEMCHECK_SEQLENS[:2] if mode == "memcheck" else PACKED_SEQLENS
        products = itertools.product(seqlens, ((16, 1), (32, 2)), ("BSHD",))
    elif group == "chosen":
        heads_of_inputs = (8, 2)
        seqlens = MEMCHECK_SEQLENS if mode == "memcheck" else QUICK_SEQLENS if mode == "quick" else SEQLENS
        products = itertools.product(seqlens, ((8, 2),), ("BSHD",))
    elif mode == "memcheck":
        products = itertools.product(MEMCHECK_SEQLENS, ((6, 2),), ("BSHD",))
    elif mode == "quick" or group in ("schedules", "clusters"):
        products = itertools.product(QUICK_SEQLENS, ((6, 2),), ("BSHD",))
    else:
        products = itertools.chain(
            itertools.product(SEQLENS, HEADS, LAYOUTS), itertools.product(LONG_SEQLENS, ((6, 2),), ("BSHD",))
        )
    for (sq, sk), (heads, kv_heads), layout in products:
        batch = 1 if mode == "memcheck" else 2 if max(sq, sk) > 1024 else 5
        yield {"batch": batch, "sq": sq, "sk": sk, "heads": heads, "kv_heads": kv_heads, "layout": layout}
    for inputs, (sq, sk) in itertools.product(INPUTS, MEMCHECK_SEQLENS[:1] if mode == "memcheck" else INPUTS_SEQLENS):
        heads, kv_heads = heads_of_inputs
        yield {"batch": 2, "sq": sq, "sk": sk, "heads": heads, "kv_heads": kv_heads, "layout": "BSHD", "inputs": inputs}


def variant_cases(mode, parameters):
    """Cases of one kernel of attention_variants.tile, each shape with every window if it has one."""
    windows = WINDOWS[1:4] if mode == "memcheck" else WINDOWS
    for case in attention_cases(mode, "schedules"):
        for left, right in windows if parameters["MASK"] == "window" else ((-1, -1),):
            yield {**case, "left": left, "right": right}


def gemm_cases(mode):
    shapes = {"full": GEMM_SHAPES, "quick": QUICK_GEMM_SHAPES, "memcheck": MEMCHECK_GEMM_SHAPES}[mode]
    for m, n, k in shapes:
        yield {"m": m, "n": n, "k": k}
