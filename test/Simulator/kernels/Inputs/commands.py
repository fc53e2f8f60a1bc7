"""Arguments of `tessera check` for kernels of kernels/."""


def trip_counts(stages):
    """Where rings of slots go wrong: fewer blocks than slots, as many, one more, twice round and one more."""
    return sorted({1, 2, stages, stages + 1, 2 * stages + 1})


def schedule_text(**fields):
    return ",".join(f"{name}={str(value).lower()}" for name, value in fields.items())


def producer(there):
    return "operands" if there else "none"


def split_option(split):
    return [] if split else ["--no-split"]


def attention_shape(heads, kv_heads, sq, sk, batch=1):
    return f"B={batch},H={heads},HK={kv_heads},SQ={sq},SK={sk}"


def attention(defines, shapes, schedule="", options=(), scale=0.125):
    arguments = ["attention_fwd.tile", *defines, "--set", f"scale={scale}", "--schedule", schedule, *options]
    for shape in shapes:
        arguments += ["--shape", shape]
    return arguments


def variant(defines, settings, shapes, schedule="", scale=0.125):
    """attention_variants.tile with the values of the arguments that the defines add."""
    arguments = ["attention_variants.tile", *defines, "--set", f"scale={scale}", "--schedule", schedule]
    for name, value in settings.items():
        arguments += ["--set", f"{name}={value}"]
    for shape in shapes:
        arguments += ["--shape", shape]
    return arguments + ["--sim-blocks", "2"]


def gemm(defines, shapes, schedule=""):
    arguments = ["gemm.tile", *defines, "--schedule", schedule]
    for m, n, k in shapes:
        arguments += ["--shape", f"M={m},N={n},K={k}"]
    return arguments
