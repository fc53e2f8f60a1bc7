"""Runs `tessera check` on the kernels of kernels/ over parameters, schedules and shapes.

    kernels.py GROUP DIRECTORY [SHARD SHARDS]

GROUP is a function of GROUPS below, DIRECTORY holds the .tile sources. With SHARD of SHARDS only each SHARDS-th
configuration runs. The first line that fails is printed with the command that shows it again.
"""

import itertools
import os
import shlex
import subprocess
import sys

# Seeds of events of each configuration; the next configuration takes the next ones.
SEEDS = 6
REFUSED = 3  # the exit code of tessera when a source, with its schedule, does not compile
# What a refusal names: the limit that the schedule breaks.
REASONS = (
    "bytes of shared memory", "a consumer thread needs", "warpgroups take", "slots that have room", "a thread needs",
    "neighbours each cannot share",
)  # fmt: skip


def trip_counts(stages):
    """Where rings of slots go wrong: fewer blocks than slots, as many, one more, twice round and one more."""
    return sorted({1, 2, stages, stages + 1, 2 * stages + 1})


def schedule_text(**fields):
    return ",".join(f"{name}={str(value).lower()}" for name, value in fields.items())


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


def attention_schedules():
    """Every combination of fields, at small tiles: each trip count from 0 on, several tiles for each block, and rows
    that see nothing (causal, SQ > SK)."""
    for ws, overlap, pingpong, stages, store, persistent, split in itertools.product(
        (True, False), (1, 2), (True, False), (1, 2, 3), ("direct", "tma"), ("none", "static", "dynamic"), (True, False)
    ):
        schedule = schedule_text(
            warp_specialize=ws, overlap=overlap, pingpong=pingpong, stages=stages, store=store, persistent=persistent,
            split=split,
        )  # fmt: skip
        # 300 queries and 10 keys: the tiles of the first 256 rows have no block. A thread block takes several such
        # tiles, in which nothing but their barriers holds its warps together.
        shapes = [attention_shape(2, 1, 203, 113), attention_shape(4, 1, 300, 10)]
        shapes += [attention_shape(1, 1, 1, 32 * trips) for trips in trip_counts(stages)]
        defines = ["-DD=64", "-DBM=128", "-DBN=32", "-DCAUSAL=true"]
        # What takes the next tile is the producer, so there is no dynamic order without one.
        refused = not ws and persistent == "dynamic"
        yield attention(defines, shapes, schedule, ["--sim-blocks", "2"]), refused


def attention_pipelines():
    """Every division of the loop into stages and every place of the joins, with and without a mask: each trip count
    from 0 to past the depth of the pipeline, odd lengths and rows that see nothing."""
    shapes = ((2, 0), (2, 1), (3, 1))
    for (overlap, lead), rescale, pack, causal, ws, persistent in itertools.product(
        shapes, ("before", "after"), ("before", "after"), ("false", "true"), (True, False), ("none", "dynamic")
    ):
        if (overlap, lead) == (2, 1) and "after" in (rescale, pack) or not ws and persistent == "dynamic":
            continue
        schedule = schedule_text(
            warp_specialize=ws, overlap=overlap, lead=lead, rescale=rescale, pack=pack, persistent=persistent
        )
        lengths = [attention_shape(1, 1, 1, 32 * trips) for trips in range(1, 6)]
        lengths += [attention_shape(2, 1, 203, 113), attention_shape(4, 1, 300, 10)]
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DCAUSAL={causal}"]
        yield attention(defines, lengths, schedule, ["--sim-blocks", "2"]), False
    # Turns, and rings of other depths, around the pipelines that run ahead.
    for overlap, pingpong, stages, causal in itertools.product((2, 3), (True, False), (1, 2, 3), ("false", "true")):
        schedule = schedule_text(overlap=overlap, lead=1, pingpong=pingpong, stages=stages)
        defines = ["-DD=64", "-DBM=192", "-DBN=32", f"-DCAUSAL={causal}"]
        # A turn waits for one tile more than it holds at its start.
        refused = pingpong and stages == 1
        yield attention(defines, [attention_shape(1, 1, 203, 113), attention_shape(1, 1, 1, 128)], schedule), refused


def attention_full_mask():
    """Schedules of the kernel without a mask, and fields that need no product: consumers, order, slots for Q."""
    defines = ["-DD=64", "-DBM=192", "-DBN=48"]
    shapes = [attention_shape(3, 1, 203, 113), attention_shape(1, 1, 113, 1), attention_shape(2, 2, 1, 203)]
    for ws, overlap, stages, persistent in itertools.product(
        (True, False), (1, 2), (1, 2, 3), ("none", "static", "dynamic")
    ):
        schedule = schedule_text(warp_specialize=ws, overlap=overlap, stages=stages, persistent=persistent)
        lengths = [attention_shape(1, 1, 1, 48 * trips) for trips in trip_counts(stages)]
        yield attention(defines, shapes + lengths, schedule, ["--sim-blocks", "2"]), not ws and persistent == "dynamic"
    for schedule in ("consumers=1", "consumers=3", "outer_stages=1", "outer_stages=2"):
        rows = "-DBM=64" if schedule == "consumers=1" else "-DBM=192"
        yield attention(["-DD=64", rows, "-DBN=32"], shapes, schedule), False
    for persistent, order in itertools.product(("none", "static", "dynamic"), ("linear", "ascending", "descending")):
        schedule = schedule_text(persistent=persistent, order=order)
        options = ["-DCAUSAL=true", "--sim-blocks", "3"]
        shape = attention_shape(2, 1, 300, 300)
        # The launch orders the blocks of a kernel that is not persistent.
        refused = persistent == "none" and order != "linear"
        yield attention(["-DD=64", "-DBM=128", "-DBN=32"], [shape], schedule, options), refused


def attention_heads(dtypes=("bf16", "f16")):
    """Head dimensions, masks, types, odd lengths, groups of heads and storage orders, with the schedule chosen."""
    head_dims = ((64, 64), (96, 96), (128, 128), (192, 192), (256, 256), (192, 128))
    bshd = [part for name in "qkvo" for part in ("--order", f"{name}=0,2,1,3")]
    for (d, dv), causal, dtype in itertools.product(head_dims, ("false", "true"), dtypes):
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", f"-DT={dtype}"]
        shapes = [
            attention_shape(2, 2, 203, 113),
            attention_shape(2, 1, 113, 203, batch=2),
            attention_shape(3, 1, 1, 1),
            attention_shape(1, 1, 1, 640),
            attention_shape(1, 1, 113, 256),
        ]
        yield attention(defines, shapes), False
        yield attention(defines, [attention_shape(4, 2, 203, 1), attention_shape(2, 2, 1, 203)], options=bshd), False


def attention_padded():
    """Head dimensions between the widths of tiles, all schedules of stores; without the LSE as well."""
    shapes = [(2, 1, 203, 113), (3, 1, 1, 1), (1, 1, 113, 256)]
    head_dims = ((64, 40, 64, 8), (96, 72, 96, 80), (128, 120, 128, 104), (256, 200, 256, 200))
    for (d, dq, dv, do), causal, store in itertools.product(head_dims, ("false", "true"), ("direct", "tma")):
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", "-DPADDED=true", f"-DLSE={causal}"]
        lengths = [f"{attention_shape(*shape)},DQ={dq},DO={do}" for shape in shapes]
        yield attention(defines, lengths, schedule_text(store=store)), False
    settings = {"left": 40, "right": 8}
    for d, dq in ((64, 56), (128, 104)):
        defines = [f"-DD={d}", "-DMASK=window", "-DPADDED=true", "-DLSE=false"]
        lengths = [f"{attention_shape(*shape)},DQ={dq},DO={dq}" for shape in shapes]
        yield variant(defines, settings, lengths), False


def attention_retries():
    """Scores so wide that the speculation fails in some tiles (scale 2 for bf16, 0.5 for f16) or nearly all."""
    shapes = [attention_shape(3, 1, 203, 333), attention_shape(2, 2, 300, 10), attention_shape(1, 1, 1, 1)]
    for (dtype, scale), causal, persistent, store in itertools.product(
        (("bf16", 2), ("bf16", 16), ("f16", 0.5), ("f16", 16)),
        ("false", "true"),
        ("none", "static", "dynamic"),
        ("direct", "tma"),
    ):
        schedule = schedule_text(persistent=persistent, store=store)
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DCAUSAL={causal}", f"-DT={dtype}"]
        yield attention(defines, shapes, schedule, ["--sim-blocks", "2"], scale), False
    for schedule in ("warp_specialize=false", "overlap=1", "pingpong=false", "stages=1", "split=false", "consumers=1"):
        defines = ["-DD=64", "-DBM=128" if schedule != "consumers=1" else "-DBM=64", "-DBN=32", "-DCAUSAL=true"]
        yield attention(defines, shapes, schedule, ["--sim-blocks", "2"], 4), False
    # More tiles for a thread block than its list takes.
    for persistent in ("static", "dynamic"):
        defines = ["-DD=64", "-DBM=64", "-DBN=16"]
        shape = attention_shape(1, 1, 1, 33, batch=1030)
        yield attention(defines, [shape], f"persistent={persistent}", ["--sim-blocks", "1", "--seeds", "1"], 4), False


def attention_tiles():
    """Blocks of every multiple of 16 keys, and of 64, 2 x 64, 3 x 64 and 4 x 64 rows with 1 to 4 warpgroups. What does
    not fit is refused with what it takes."""
    tiles = [(64, 1, bn) for bn in range(16, 257, 16)]
    tiles += [(*rows, bn) for rows in ((128, 1), (128, 2), (192, 3), (256, 2), (256, 4)) for bn in (16, 80, 112, 176)]
    for bm, consumers, bn in tiles:
        shape = attention_shape(1, 1, 70, bn + 9)
        yield attention(["-DD=64", f"-DBM={bm}", f"-DBN={bn}"], [shape], f"consumers={consumers}"), None
    # P V with as many columns as wgmma has, and tiles of K and V of different widths.
    for (d, dv), bn in itertools.product(((256, 256), (192, 128), (64, 256)), (16, 80)):
        defines = [f"-DD={d}", f"-DDV={dv}", "-DBM=128", f"-DBN={bn}", "-DCAUSAL=true"]
        yield attention(defines, [attention_shape(1, 1, 70, bn + 9)]), None


def attention_variants():
    """Windows of every size against the tile, caps and slopes, and both schedules that split and overlap loops."""
    shapes = [
        attention_shape(2, 1, 203, 113),
        attention_shape(2, 2, 113, 203),
        attention_shape(1, 1, 1, 320),
        attention_shape(3, 1, 1, 1),
        attention_shape(1, 1, 300, 10),
    ]
    small = ["-DD=64", "-DBM=128", "-DBN=32"]
    windows = ((0, 0), (5, 0), (0, 100), (40, 17), (64, -1), (-1, 3), (-1, -1), (1000, 1000))
    for (left, right), schedule in itertools.product(
        windows,
        ("", "speculate=false", "persistent=none", "overlap=1,split=false", "warp_specialize=false", "stages=3,pingpong=true"),
    ):
        yield variant([*small, "-DMASK=window"], {"left": left, "right": right}, shapes, schedule), False
    for cap, mask, alibi in itertools.product(("none", "exact", "approx"), ("none", "causal"), ("false", "true")):
        defines = [*small, f"-DSOFTCAP={cap}", f"-DMASK={mask}", f"-DALIBI={alibi}"]
        yield variant(defines, {} if cap == "none" else {"cap": 1.5}, shapes), False
    everything = {"cap": 2, "left": 100, "right": 9}
    for d, dtype in itertools.product((64, 96, 128, 192, 256), ("bf16", "f16")):
        defines = [f"-DD={d}", f"-DT={dtype}", "-DSOFTCAP=exact", "-DMASK=window", "-DALIBI=true"]
        yield variant(defines, everything, shapes[:2]), False


def attention_variants_retries():
    """Scores of all sizes: the speculation holds in all, some or no tiles, whatever its exponents refer to."""
    shapes = [attention_shape(2, 1, 203, 113), attention_shape(1, 1, 113, 333), attention_shape(1, 1, 1, 70)]
    small = ["-DD=64", "-DBM=128", "-DBN=32"]
    scores = (
        ([], {}),
        (["-DMASK=causal", "-DALIBI=true"], {}),
        (["-DMASK=window"], {"left": 40, "right": 17}),
        (["-DMASK=window", "-DSOFTCAP=exact"], {"left": 100, "right": 0, "cap": 80}),
        (["-DMASK=causal", "-DSOFTCAP=approx"], {"cap": 60}),
        (["-DALIBI=true"], {}),
    )
    for (defines, settings), reference, (dtype, scale) in itertools.product(
        scores, ("zero", "first", "diagonal"), (("bf16", 0.125), ("bf16", 4), ("f16", 0.125), ("f16", 1))
    ):
        yield variant([*small, *defines, f"-DREFERENCE={reference}", f"-DT={dtype}"], settings, shapes, "", scale), False
    for schedule in ("persistent=none", "persistent=static", "store=tma", "warp_specialize=false", "overlap=1", "split=false"):
        defines = [*small, "-DMASK=window", "-DALIBI=true"]
        yield variant(defines, {"left": 60, "right": 9}, shapes, schedule, 2), False


def gemm_kernels():
    """Layouts, types, bias and activations, with the schedule chosen."""
    for dtype, transposed, bias, activation in itertools.product(
        ("bf16", "f16"), ("true", "false"), ("false", "true"), ("none", "relu", "gelu")
    ):
        defines = [f"-DT={dtype}", f"-DB_TRANSPOSED={transposed}", f"-DBIAS={bias}", f"-DACTIVATION={activation}"]
        # The row strides of 16-bit matrices are multiples of 8 elements.
        yield gemm(defines, [(1, 8, 8), (129, 264, 72), (113, 40, 328)]), False


def gemm_schedules():
    """Schedules of the matrix product at small tiles, at each trip count."""
    for ws, stages, store, persistent, transposed in itertools.product(
        (True, False), (1, 2, 3, 4), ("direct", "tma"), ("none", "static", "dynamic"), ("true", "false")
    ):
        schedule = schedule_text(warp_specialize=ws, stages=stages, store=store, persistent=persistent)
        defines = [f"-DB_TRANSPOSED={transposed}", "-DBIAS=true", "-DBM=128", "-DBN=64", "-DBK=32"]
        shapes = [(1, 8, 32 * trips) for trips in trip_counts(stages)] + [(300, 200, 104)]
        yield gemm(defines, shapes, schedule) + ["--sim-blocks", "2"], not ws and persistent == "dynamic"


def split_k():
    """Parts of a matrix product that are added: by threads, by copies, by a writer."""
    small = ["-DBM=128", "-DBN=64", "-DBK=32"]
    for store, persistent, stages, splits in itertools.product(
        ("direct", "tma", "writer"), ("none", "static", "dynamic"), (1, 2, 3), (1, 3)
    ):
        schedule = schedule_text(store=store, persistent=persistent, stages=stages)
        # 16 bytes of a row of C are added at once in bulk, and its strides are multiples of them.
        sizes = [(300, 200, 104)] + [(1, 4, 32 * trips) for trips in trip_counts(stages)]
        shapes = [part for m, n, k in sizes for part in ("--shape", f"M={m},N={n},K={k}")]
        yield ["gemm_split_k.tile", *small, f"-DSPLITS={splits}", "--schedule", schedule, *shapes, "--sim-blocks", "2"], False
    wide = ["--shape", "M=113,N=264,K=328", "--sim-blocks", "3"]
    for fields in ("consumers=1", "consumers=2,outer_stages=2", "cluster=2", "overlap=1", ""):
        for transposed, dtype in itertools.product(("true", "false"), ("bf16", "f16")):
            defines = [f"-DB_TRANSPOSED={transposed}", f"-DT={dtype}", "-DBM=64" if fields == "consumers=1" else "-DBM=128"]
            yield ["gemm_split_k.tile", *defines, "-DBN=64", "-DSPLITS=3", "--schedule", fields, *wide], False
    # A writer stores plain results too: in blocks that load for each other, and where other results go from registers.
    for persistent, cluster in itertools.product(("none", "static", "dynamic"), (1, 2)):
        schedule = schedule_text(store="writer", persistent=persistent, cluster=cluster, stages=2)
        yield gemm(["-DBM=128", "-DBN=64", "-DBK=32"], [(300, 200, 104), (1, 8, 160)], schedule) + ["--sim-blocks", "4"], False
    for causal, persistent, heads in itertools.product(("false", "true"), ("static", "dynamic"), (1, 4)):
        schedule = schedule_text(store="writer", speculate=False, persistent=persistent)
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DCAUSAL={causal}", f"-DHEADS={heads}"]
        yield attention(defines, [attention_shape(4, 1, 203, 113)], schedule, ["--sim-blocks", "2"]), False
    # Rows of any width are added by threads.
    odd = ["--shape", "M=65,N=113,K=72", "--pad-rows", "8"]
    yield ["gemm_split_k.tile", *small, "--schedule", "store=direct", *odd], False


def rows(source, defines, lengths, schedule="", settings=()):
    """A kernel over rows of any width: they are stored at multiples of 16 bytes, with NaN between them."""
    arguments = [source, *defines, "--pad-rows", "8", "--schedule", schedule]
    for length in lengths:
        arguments += ["--shape", f"M={length}"]
    return arguments + [part for setting in settings for part in ("--set", setting)]


def softmax():
    """Widths that are one tile, several, and neither; types; numbers of rows; warpgroups that share rows or columns."""
    lengths = (1, 113, 203)
    # Rows that lie one behind the other, at any multiple of an element.
    for dtype, width in itertools.product(("bf16", "f32"), (1, 63, 113, 1002, 1022)):
        arguments = ["softmax.tile", f"-DT={dtype}", f"-DD={width}"]
        yield arguments + [part for length in lengths for part in ("--shape", f"M={length}")], False
    for dtype, width in itertools.product(("bf16", "f16", "f32"), (1, 63, 64, 113, 1000, 1023)):
        yield rows("softmax.tile", [f"-DT={dtype}", f"-DD={width}"], lengths), False
    for width, consumers in itertools.product((2047, 4096, 12001, 16384), (1, 2, 4)):
        yield rows("softmax.tile", [f"-DD={width}"], (1, 3), f"consumers={consumers}"), None
    for dtype, (width, bn) in itertools.product(("bf16", "f32"), ((1024, 512), (1000, 256), (20000, 8192), (9, 64))):
        for split in ("true", "false"):
            defines = [f"-DT={dtype}", "-DOUT=f16", f"-DD={width}", f"-DBN={bn}", "-DBM=8"]
            yield rows("softmax.tile", defines, (1, 13), f"split={split}"), None
    for consumers in (1, 2, 3, 4):
        yield rows("softmax.tile", ["-DD=200", "-DBN=256", "-DBM=48"], (1023,), f"consumers={consumers}"), False
    yield rows("softmax.tile", ["-DD=300"], (1023,), "persistent=static") + ["--sim-blocks", "3"], False


def embedding():
    """Rows by numbers of which some are before the table and some behind it: types, widths of any alignment, several
    tiles in a row, and one."""
    shapes = ("V=50,N=1", "V=1,N=203", "V=77,N=301")
    kernels = [("bf16", "i32", width) for width in (1, 30, 64, 77, 256, 1000, 1001, 2050)]
    kernels += [("f32", "i64", width) for width in (33, 128, 300)] + [("f16", "i64", 512)]
    for dtype, numbers, width in kernels:
        arguments = ["embedding.tile", f"-DT={dtype}", f"-DI={numbers}", f"-DD={width}"]
        yield arguments + [part for shape in shapes for part in ("--shape", shape)], False
    for consumers, persistent in itertools.product((1, 2, 4), ("none", "static")):
        schedule = schedule_text(consumers=consumers, persistent=persistent)
        yield ["embedding.tile", "-DD=200", "--schedule", schedule, "--shape", "V=77,N=301", "--sim-blocks", "2"], False


def layer_norm():
    """The same of LayerNorm and RMSNorm."""
    for dtype, rms, width in itertools.product(("bf16", "f32"), ("true", "false"), (1, 63, 113, 1000, 2047)):
        defines = [f"-DT={dtype}", f"-DRMS={rms}", f"-DD={width}"]
        yield rows("layer_norm.tile", defines, (1, 113, 203), settings=["eps=1e-5"]), False
    for rms, width, consumers in itertools.product(("true", "false"), (4096, 12001, 16384), (1, 2, 4)):
        defines = [f"-DRMS={rms}", f"-DD={width}"]
        yield rows("layer_norm.tile", defines, (1, 3), f"consumers={consumers}", ["eps=1e-5"]), None
    for dtype, rms, (width, bn) in itertools.product(("f16", "f32"), ("true", "false"), ((1000, 512), (20000, 8192))):
        defines = [f"-DT={dtype}", f"-DRMS={rms}", f"-DD={width}", f"-DBN={bn}", "-DBM=2"]
        yield rows("layer_norm.tile", defines, (1, 5), settings=["eps=1e-5"]), False
    for consumers in (1, 2, 4):
        defines = ["-DD=200", "-DBN=256", "-DBM=32"]
        yield rows("layer_norm.tile", defines, (1023,), f"consumers={consumers}", ["eps=0.5"]), False


def clusters():
    """Tiles that the blocks of a cluster load together, on grids that are no multiple of the cluster."""
    for cluster, ws, stages, persistent in itertools.product(
        (2, 4), (True, False), (1, 2, 3), ("none", "static", "dynamic")
    ):
        options = ["--sim-blocks", str(2 * cluster)]
        refused = not ws and persistent == "dynamic"
        fields = {"cluster": cluster, "warp_specialize": ws, "stages": stages, "persistent": persistent}
        shapes = [attention_shape(2, 1, 203, 113), attention_shape(4, 2, 300, 10)]
        shapes += [attention_shape(1, 1, 1, 32 * trips) for trips in trip_counts(stages)]
        defines = ["-DD=64", "-DBM=128", "-DBN=32"]
        store = "tma" if stages == 2 else "direct"
        yield attention(defines, shapes, schedule_text(**fields, store=store), options), refused
        sizes = [(300, 200, 104), (1, 8, 32), (129, 72, 32 * (2 * stages + 1))]
        defines = ["-DBM=128", "-DBN=64", "-DBK=32", "-DBIAS=true", f"-DB_TRANSPOSED={schedule_text(t=ws)[2:]}"]
        yield gemm(defines, sizes, schedule_text(**fields, store="tma")) + options, refused
        # The first grid dimension is one of the views, past whose end there is other memory.
        batched = os.path.join(os.path.dirname(os.path.abspath(__file__)), "batched.tile")
        sizes = ["B=3,M=100,K=72", "B=1,M=1,K=32", "B=6,M=64,K=8"]
        shapes = [argument for size in sizes for argument in ("--shape", size)]
        yield [batched, "--schedule", schedule_text(**fields), *shapes, *options], refused
    # Parts of one to four chunks of columns, with all rows or some of them.
    for d, cluster in itertools.product((64, 96, 128, 192, 256), (2, 4)):
        shapes = [attention_shape(4, 2, 203, 113), attention_shape(1, 1, 300, 200, batch=2)]
        # 112 rows in 3 chunks have no four parts.
        yield attention([f"-DD={d}"], shapes, f"cluster={cluster}"), d == 192 and cluster == 4
    for order in ("ascending", "descending"):
        yield attention(["-DD=64"], [attention_shape(2, 1, 900, 100)], f"cluster=2,order={order}"), False
    # Where K and V are loaded depends on the row.
    yield attention(["-DD=64", "-DCAUSAL=true"], [attention_shape(1, 1, 64, 64)], "cluster=2"), True


def clusters_causal():
    """Loops that run longer in some blocks of a cluster: K and V are loaded for the longest, and what a block does not
    read passes by. Tiles past the end, rows that see nothing, speculation that fails in some tiles."""
    small = ["-DD=64", "-DBM=64", "-DBN=32", "-DCAUSAL=true", "-DBACKWARD=false"]
    shapes = [attention_shape(2, 1, 203, 113), attention_shape(1, 1, 113, 300), attention_shape(2, 1, 300, 10)]
    shapes += [attention_shape(1, 1, 1, 1), attention_shape(2, 1, 300, 300)]
    for cluster, speculate, persistent, store in itertools.product(
        (2, 4), (True, False), ("none", "static", "dynamic"), ("direct", "tma")
    ):
        fields = {"cluster": cluster, "speculate": speculate, "persistent": persistent, "store": store}
        # Exponents that fit, and some that do not.
        for scale in (0.125, 4):
            options = ["--sim-blocks", str(2 * cluster)]
            yield attention(small, shapes, schedule_text(**fields, consumers=1), options, scale), False
    # Two warpgroups with and without turns, in every division of the loop into stages; rings that are shorter than the
    # producer is ahead.
    wide = ["-DD=64", "-DBM=128", "-DBN=32", "-DCAUSAL=true", "-DBACKWARD=false"]
    for cluster, (overlap, lead), pingpong, stages, split in itertools.product(
        (2, 4), ((1, 0), (2, 0), (2, 1), (3, 1)), (True, False), (1, 2, 3), (True, False)
    ):
        schedule = schedule_text(
            cluster=cluster, overlap=overlap, lead=lead, pingpong=pingpong, stages=stages, split=split
        )
        options = ["--sim-blocks", str(2 * cluster), "--seeds", "3"]
        yield attention(wide, shapes, schedule, options), stages < overlap
    schedules = ("stages=[2,3]", "stages=[3,2]", "outer_stages=1", "operands=shared", "pin_waits=true")
    for schedule in (*schedules, "pdl=true", "order=ascending", "order=linear"):
        yield attention(wide, shapes, f"cluster=2,{schedule}", ["--sim-blocks", "4"]), False
    yield attention(wide, shapes, "cluster=2,warp_specialize=false"), True
    # The tiles of every head dimension, and rows of several heads.
    for (d, dv), cluster in itertools.product(((64, 64), (128, 128), (192, 128), (256, 256)), (2, 4)):
        defines = [f"-DD={d}", f"-DDV={dv}", "-DCAUSAL=true", "-DBACKWARD=false"]
        lengths = [attention_shape(2, 1, 300, 333), attention_shape(1, 1, 257, 203)]
        yield attention(defines, lengths, f"cluster={cluster}"), False
    # With the diagonal's block as the reference, K is each block's own and V is shared.
    for reference in ("first", "diagonal"):
        defines = ["-DD=64", "-DBM=128", "-DBN=32", "-DMASK=causal", "-DALIBI=true", "-DBACKWARD=false"]
        yield variant([*defines, f"-DREFERENCE={reference}"], {}, shapes, "cluster=2"), False
    packed = ["-DD=64", "-DBM=128", "-DBN=32", "-DHEADS=8", "-DCAUSAL=true", "-DBACKWARD=false"]
    yield attention(packed, [attention_shape(8, 1, 77, 113)], "cluster=2"), False


def attention_packed():
    """Tiles with rows of several heads, of one key head each, with odd lengths and rows that see nothing."""
    for pack, causal, (store, ws) in itertools.product(
        (2, 4, 8, 16), ("false", "true"), (("direct", True), ("tma", True), ("direct", False))
    ):
        schedule = schedule_text(store=store, warp_specialize=ws)
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DHEADS={pack}", f"-DCAUSAL={causal}"]
        shapes = [attention_shape(2 * pack, 2, sq, sk) for sq, sk in ((1, 113), (3, 1), (17, 64), (113, 33))]
        shapes += [attention_shape(2 * pack, 1, 40, 70, batch=2)]
        yield attention(defines, shapes, schedule, ["--sim-blocks", "2", "--seeds", "2"]), False
    # Heads that end within a consumer's share and heads of several shares; failing speculation; other types and tiles.
    bshd = [part for name in "qkvo" for part in ("--order", f"{name}=0,2,1,3")]
    for defines, scale in (
        (["-DD=64", "-DBM=256", "-DHEADS=2"], 0.125),
        (["-DD=64", "-DBM=192", "-DBN=32", "-DHEADS=2", "-DCAUSAL=true"], 0.125),
        (["-DD=64", "-DBM=64", "-DBN=32", "-DHEADS=16"], 8),
        (["-DD=64", "-DBM=128", "-DBN=32", "-DHEADS=8", "-DCAUSAL=true", "-DT=f16"], 8),
        (["-DD=128", "-DHEADS=8"], 0.125),
        (["-DD=96", "-DHEADS=4"], 0.125),
        (["-DD=192", "-DDV=128", "-DHEADS=8", "-DCAUSAL=true"], 0.125),
        (["-DD=256", "-DHEADS=8", "-DCAUSAL=true"], 0.125),
    ):
        shapes = [attention_shape(16, 1, 17, 113), attention_shape(16, 1, 1, 333)]
        yield attention(defines, shapes, options=bshd, scale=scale), False


def boxes():
    """Loads and stores of boxes of several dimensions, by copies and by threads, in shares of any number of dimensions."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boxes.tile")

    def kernel(batches, heads, rows, keys, **fields):
        names = {"BATCHES": batches, "HEADS": heads, "ROWS": rows, "KEYS": keys}
        arguments = [source, *(f"-D{name}={value}" for name, value in names.items())]
        for groups, m, n in ((2, 113, 130), (1, 1, 70)):
            shape = f"B={groups * batches},B2=1,H={keys * heads},H2={keys},M={m},N={n}"
            arguments += ["--shape", shape]
        return [*arguments, "--schedule", schedule_text(**fields), "--sim-blocks", "4", "--seeds", "2"]

    tiles = ((1, 8, 16, 2), (1, 2, 64, 2), (1, 2, 128, 4), (1, 8, 24, 1), (2, 4, 16, 2), (2, 2, 64, 4), (2, 16, 2, 1))
    for (*tile, consumers), store, ws in itertools.product(tiles, ("direct", "tma"), (True, False)):
        yield kernel(*tile, 1, consumers=consumers, store=store, warp_specialize=ws), False
    # The parts in which the blocks of a cluster load the keys end within a head, or are one or more.
    # The pieces of the loop with and without the mask depend on the row, but a producer loads the same tiles in them.
    for keys, cluster in itertools.product((1, 2, 4), (2, 4)):
        yield kernel(1, 4, 16, keys, cluster=cluster, consumers=1, split=cluster == 2), False
    # 64 of the rows of heads of 24 are no box.
    yield kernel(1, 8, 24, 1, consumers=3), True


def pinned_waits():
    """Waits in blocks of their own, between which the work under a product stays."""
    shapes = [attention_shape(2, 1, 113, 203)]
    for overlap, ws, pingpong, causal in itertools.product((2, 3), (True, False), (True, False), ("true", "false")):
        if pingpong and not ws:
            continue
        schedule = schedule_text(pin_waits=True, overlap=overlap, warp_specialize=ws, pingpong=pingpong)
        defines = ["-DD=64", "-DBM=128", "-DBN=64", f"-DCAUSAL={causal}"]
        yield attention(defines, shapes, schedule), None
    for speculate in (True, False):
        yield attention(["-DD=256", "-DCAUSAL=true"], shapes, f"pin_waits=true,speculate={str(speculate).lower()}"), False


def polynomial_exp():
    """Exponentials by polynomials, some and all: soft caps, masks, rows that see nothing or one key, and scores that are
    too large for the speculation, whose tiles run again."""
    shapes = [attention_shape(2, 1, 203, 113), attention_shape(3, 1, 1, 1), attention_shape(1, 1, 300, 10)]
    for d, cap, share, speculate in itertools.product((64, 128), ("exact", "approx"), (0, 8, 16), (True, False)):
        schedule = schedule_text(polynomial_exp=share, speculate=speculate)
        yield variant([f"-DD={d}", f"-DSOFTCAP={cap}"], {"cap": 1.5}, shapes, schedule), False
    for dtype, share, mask in itertools.product(("bf16", "f16"), (3, 8, 16), ("causal", "window")):
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DT={dtype}", f"-DMASK={mask}", "-DALIBI=true"]
        settings = {"left": 40, "right": 17} if mask == "window" else {}
        yield variant(defines, settings, shapes, schedule_text(polynomial_exp=share)), False
    for scale, speculate in itertools.product((0.125, 40), (True, False)):
        schedule = schedule_text(polynomial_exp=16, speculate=speculate)
        yield attention(["-DD=64", "-DBM=128", "-DBN=64"], shapes, schedule, ["--sim-blocks", "2"], scale), False
    for schedule in ("overlap=1", "overlap=3", "overlap=2,pack=before", "operands=shared", "warp_specialize=false", "pin_waits=true"):
        defines = ["-DD=64", "-DBM=128", "-DBN=32", "-DCAUSAL=true"]
        yield attention(defines, shapes, schedule + ",polynomial_exp=8", ["--sim-blocks", "2"]), None


def shared_operands():
    """P in shared memory: tiles of each swizzle, 64 and 2 x 64 rows for a warpgroup, every division of the loop, turns,
    one or two forms of the program, and results that leave through shared memory too."""
    lengths = [attention_shape(2, 1, 203, 113), attention_shape(1, 1, 1, 32), attention_shape(4, 1, 300, 10)]
    for (overlap, lead), causal, pingpong, speculate in itertools.product(
        ((1, 0), (2, 0), (2, 1), (3, 1)), ("false", "true"), (True, False), (True, False)
    ):
        schedule = schedule_text(
            operands="shared", overlap=overlap, lead=lead, pingpong=pingpong, speculate=speculate, stages=2
        )
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DCAUSAL={causal}"]
        yield attention(defines, lengths, schedule, ["--sim-blocks", "2"], 2), False
    for (bm, consumers), bn, store in itertools.product(
        ((64, 1), (128, 1), (128, 2), (256, 2), (256, 4)), (16, 32, 48, 64, 80, 112), ("direct", "tma")
    ):
        schedule = schedule_text(operands="shared", consumers=consumers, store=store)
        yield attention(["-DD=64", f"-DBM={bm}", f"-DBN={bn}"], [attention_shape(1, 1, 70, bn + 9)], schedule), None
    for (d, dv), causal, dtype in itertools.product(
        ((64, 64), (128, 128), (192, 128), (256, 256)), ("false", "true"), ("bf16", "f16")
    ):
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", f"-DT={dtype}"]
        yield attention(defines, [attention_shape(2, 1, 113, 203)], "operands=shared"), None
    for ws, stages, persistent in itertools.product((True, False), (1, 3), ("none", "static", "dynamic")):
        schedule = schedule_text(operands="shared", warp_specialize=ws, stages=stages, persistent=persistent)
        defines = ["-DD=64", "-DBM=128", "-DBN=32", "-DCAUSAL=true"]
        refused = not ws and persistent == "dynamic"
        yield attention(defines, lengths, schedule, ["--sim-blocks", "2"]), refused
    for rescale, pack in itertools.product(("before", "after"), ("before", "after")):
        schedule = schedule_text(operands="shared", overlap=2, rescale=rescale, pack=pack)
        yield attention(["-DD=64", "-DBM=192", "-DBN=48"], lengths, schedule), False
    # Rows of several heads.
    defines = ["-DD=64", "-DHEADS=4", "-DBM=128", "-DBN=32"]
    yield attention(defines, [attention_shape(8, 2, 77, 113)], "operands=shared,store=tma"), False
    # Tiles of which P does not fit in registers under the next scores.
    for d, bn in ((64, 176), (128, 112)):
        shapes = [attention_shape(1, 1, 203, 401)]
        yield attention([f"-DD={d}", "-DBM=192", f"-DBN={bn}"], shapes, "operands=shared,overlap=2"), False


def lent_slots():
    """Results in slots that the producer lends: one slot or several, of tiles of each swizzle, read last or not; every
    way of taking tiles; tiles that run twice; clusters; and products, which have one loop."""
    lengths = [attention_shape(2, 1, 203, 113), attention_shape(1, 1, 1, 64), attention_shape(4, 1, 300, 10)]

    def lent(defines, shapes=lengths, scale=0.125, **fields):
        return attention(defines, shapes, schedule_text(staging="shared", **fields), ["--sim-blocks", "4"], scale)

    for persistent, causal, stages, overlap, speculate in itertools.product(
        ("none", "static", "dynamic"), ("false", "true"), (1, 2, 3), (1, 2), (True, False)
    ):
        defines = ["-DD=64", "-DBM=128", "-DBN=128", f"-DCAUSAL={causal}"]
        yield lent(defines, persistent=persistent, stages=stages, overlap=overlap, speculate=speculate), False
    # Scores so wide that nearly all tiles run a second time.
    for persistent, bn in itertools.product(("none", "static", "dynamic"), (64, 128)):
        yield lent(["-DD=64", "-DBM=128", f"-DBN={bn}", "-DCAUSAL=true"], scale=16, persistent=persistent, stages=2), False
    for d, dv in ((64, 64), (96, 96), (128, 128), (192, 128), (192, 192), (256, 256)):
        for causal, pingpong in itertools.product(("false", "true"), (True, False)):
            shapes = [attention_shape(2, 1, 203, 333)]
            yield lent([f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}"], shapes, pingpong=pingpong), None
    for consumers, bn in itertools.product((1, 2, 3, 4), (16, 48, 80, 112)):
        yield lent(["-DD=64", f"-DBM={64 * consumers}", f"-DBN={bn}"], consumers=consumers, outer_stages=2), None
    for cluster, persistent, d in itertools.product((2, 4), ("none", "static", "dynamic"), (64, 256)):
        yield lent([f"-DD={d}", "-DBM=128"], cluster=cluster, persistent=persistent), None
    for heads in (2, 8):
        yield lent(["-DD=128", f"-DHEADS={heads}"], [attention_shape(8, 1, 77, 113)]), False
    for persistent, bm, bn, bk, transposed in itertools.product(
        ("none", "static", "dynamic"), (64, 192), (64, 160), (64, 128), ("true", "false")
    ):
        defines = [f"-DBM={bm}", f"-DBN={bn}", f"-DBK={bk}", f"-DB_TRANSPOSED={transposed}"]
        yield gemm(defines, [(300, 200, 104), (1, 8, 8)], f"staging=shared,persistent={persistent}"), None


def fp8():
    """Elements of 8 bits: rounded with scales of rows and blocks, rotated or not; products with all scales; attention."""
    for defines, schedule in itertools.product(
        (["-DD=16"], ["-DD=80"], ["-DOUT=f8E5M2", "-DT=f16"], ["-DBLOCKS=true"], ["-DD=4096"], ["-DD=64", "-DROTATE=true"],
         ["-DROTATE=true"], ["-DROTATE=true", "-DBLOCKS=true"], ["-DD=256", "-DROTATE=true"]), ("", "consumers=1")
    ):  # fmt: skip
        shapes = [part for rows in (1, 203) for part in ("--shape", f"B=2,H=1,SX={rows}")]
        yield ["quantize.tile", *defines, "--schedule", schedule, *shapes, "--sim-blocks", "2", "--seeds", "3"], None
    for defines in (
        [], ["-DT=f8E5M2", "-DOUT=f16"], ["-DBIAS=true", "-DACTIVATION=gelu"], ["-DBN=48", "-DBK=32"], ["-DBM=256", "-DBN=64"],
        ["-DSCALES=tensor", "--set", "scale=0.5"], ["-DSCALES=rows", "-DBIAS=true"], ["-DSCALES=rows", "-DBM=64", "-DBN=64"],
    ):  # fmt: skip
        yield [*gemm(["-DT=f8E4M3FN", *defines], [(300, 200, 112), (1, 8, 16), (129, 72, 400)]), "--sim-blocks", "3"], False
    for bm, bn in ((128, 128), (64, 96), (64, 32)):
        shapes = [part for k in (112, 128, 400) for part in ("--shape", f"M=200,N=72,K={k},KB={-(-k // 128)}")]
        defines = ["-DT=f8E4M3FN", "-DSCALES=blocks", f"-DBM={bm}", f"-DBN={bn}"]
        yield ["gemm.tile", *defines, *shapes, "--sim-blocks", "3"], False

    def attention8(defines, lengths, schedule=""):
        options = ["--set", "scale=0.125", "--set", "v_scale=0.5", "--schedule", schedule, "--sim-blocks", "2", "--seeds", "3"]
        shapes = [part for sq, sk in lengths for part in ("--shape", attention_shape(2, 1, sq, sk))]
        return ["attention_fp8.tile", *defines, *options, *shapes]

    lengths = ((203, 112), (1, 400), (300, 16))
    for d, causal, transposed in itertools.product((64, 96, 128, 192, 256), ("false", "true"), ("false", "true")):
        yield attention8([f"-DD={d}", f"-DCAUSAL={causal}", f"-DV_TRANSPOSED={transposed}"], lengths), False
    for overlap, pingpong, stages, ws in itertools.product((1, 2), (True, False), (1, 3), (True, False)):
        schedule = schedule_text(overlap=overlap, pingpong=pingpong, stages=stages, warp_specialize=ws)
        for transposed in ("false", "true"):
            defines = ["-DD=64", "-DBN=32", "-DCAUSAL=true", f"-DV_TRANSPOSED={transposed}"]
            yield attention8(defines, lengths, schedule), None
    for defines, schedule in (
        (["-DD=64", "-DBM=192", "-DBN=96"], ""), (["-DD=64", "-DBM=256", "-DBN=64"], "consumers=4"), (["-DT=f8E5M2"], ""),
        (["-DOUT=f16"], "store=tma"), (["-DD=64", "-DBM=64", "-DBN=160"], ""), (["-DD=64", "-DBM=128"], "polynomial_exp=8"),
        (["-DD=64", "-DBM=128"], "overlap=3"), (["-DD=64", "-DBM=128"], "cluster=2"), (["-DD=64", "-DBM=128"], "persistent=static,store=tma"),
    ):  # fmt: skip
        yield attention8(defines, lengths, schedule), False


def gemm_split():
    """One part, several and a last one with less, of layouts and schedules of the kernels apart."""
    shapes = ((72, 40, 296), (8, 8, 8), (1, 136, 1024))
    for transposed, depth, schedule in itertools.product(
        ("true", "false"), (64, 128, 2048), ("", "multiply:persistent=dynamic", "persistent=none;multiply:stages=2")
    ):
        defines = [f"-DB_TRANSPOSED={transposed}", f"-DDEPTH={depth}", "-DBM=64", "-DBN=64"]
        arguments = ["gemm_split.tile", *defines, "--schedule", schedule]
        for m, n, k in shapes:
            arguments += ["--shape", f"M={m},N={n},K={k}"]
        yield [*arguments, "--sim-blocks", "2"], False


def attention_bwd():
    """Head dimensions, masks, types, odd lengths, groups of heads, queries that see nothing and gradients of LSE."""
    shapes = [
        attention_shape(2, 2, 203, 113), attention_shape(3, 1, 113, 203, batch=2), attention_shape(1, 1, 1, 1),
        attention_shape(2, 1, 63, 256),
    ]  # fmt: skip
    bshd = [part for name in ("q", "k", "v", "o", "do", "dq", "dk", "dv") for part in ("--order", f"{name}=0,2,1,3")]
    for (d, dv), causal, dtype in itertools.product(((64, 64), (96, 96), (128, 128), (128, 64)), ("false", "true"), ("bf16", "f16")):
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", f"-DT={dtype}", f"-DDLSE={causal}"]
        arguments = ["attention_bwd.tile", *defines, "--set", "scale=0.1"]
        for shape in shapes:
            arguments += ["--shape", shape]
        yield [*arguments, *(bshd if d == 64 else []), "--sim-blocks", "2", "--seeds", "2"], False


GROUPS = {
    "fp8": fp8,
    "attention-bwd": attention_bwd,
    "gemm-split": gemm_split,
    "attention-packed": attention_packed,
    "boxes": boxes,
    "attention-schedules": attention_schedules,
    "attention-pipelines": attention_pipelines,
    "attention-full-mask": attention_full_mask,
    "attention-heads": attention_heads,
    "attention-padded": attention_padded,
    "attention-retries": attention_retries,
    "attention-tiles": attention_tiles,
    "attention-variants": attention_variants,
    "attention-variants-retries": attention_variants_retries,
    "clusters": clusters,
    "clusters-causal": clusters_causal,
    "pinned-waits": pinned_waits,
    "polynomial-exp": polynomial_exp,
    "shared-operands": shared_operands,
    "lent-slots": lent_slots,
    "gemm-kernels": gemm_kernels,
    "gemm-schedules": gemm_schedules,
    "embedding": embedding,
    "layer-norm": layer_norm,
    "softmax": softmax,
    "split-k": split_k,
}


def check(arguments, refused, directory, index):
    """What is wrong with one configuration, or None."""
    command = ["tessera", "check", os.path.join(directory, arguments[0]), *arguments[1:]]
    if "--seeds" not in arguments:
        command += ["--seeds", str(SEEDS)]
    command += ["--threads", "1", "--sim-seed", str(SEEDS * index)]
    process = subprocess.run(command, capture_output=True, text=True)
    explained = any(reason in process.stderr for reason in REASONS)
    if process.returncode == REFUSED and (refused or (refused is None and explained)):
        return None
    if process.returncode == 0 and not refused:
        return None
    expected = "success, or a refusal in numbers" if refused is None else "a refusal" if refused else "success"
    return f"FAIL: {shlex.join(command)}\nexits with {process.returncode}, expected {expected}\n{process.stdout}{process.stderr}"


def main(group, directory, shard="0", shards="1"):
    configurations = list(GROUPS[group]())
    chosen = list(enumerate(configurations))[int(shard) :: int(shards)]
    failures = [text for index, entry in chosen if (text := check(*entry, directory, index))]
    refused = sum(refused or False for _, (_, refused) in chosen)
    print(*failures, sep="\n")
    print(f"{len(chosen)} configurations, {refused} refused, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
