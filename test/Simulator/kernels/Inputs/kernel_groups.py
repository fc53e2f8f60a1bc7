"""Configurations of products, of kernels on rows, and of elements of 8 bits."""

import itertools
import os

from commands import attention, attention_shape, gemm, producer, schedule_text, split_option, trip_counts


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
        schedule = schedule_text(producer=producer(ws), stages=stages, store=store, persistent=persistent)
        defines = [f"-DB_TRANSPOSED={transposed}", "-DBIAS=true", "-DBM=128", "-DBN=64", "-DBK=32"]
        shapes = [(1, 8, 32 * trips) for trips in trip_counts(stages)] + [(300, 200, 104)]
        yield gemm(defines, shapes, schedule) + ["--sim-blocks", "2"], not ws and persistent == "dynamic"


def gemm_splits():
    """Parts of a matrix product that are added: by threads, by copies, by a writer."""
    small = ["-DBM=128", "-DBN=64", "-DBK=32"]
    for store, persistent, stages, splits in itertools.product(
        ("direct", "tma", "writer"), ("none", "static", "dynamic"), (1, 2, 3), (1, 3)
    ):
        schedule = schedule_text(store=store, persistent=persistent, stages=stages)
        # 16 bytes of a row of C are added at once in bulk, and its strides are multiples of them.
        sizes = [(300, 200, 104)] + [(1, 4, 32 * trips) for trips in trip_counts(stages)]
        shapes = [part for m, n, k in sizes for part in ("--shape", f"M={m},N={n},K={k}")]
        yield ["gemm.tile", *small, f"-DSPLITS={splits}", "--schedule", schedule, *shapes, "--sim-blocks", "2"], False
    wide = ["--shape", "M=113,N=264,K=328", "--sim-blocks", "3"]
    for fields in ("consumers=1", "consumers=2,outer_stages=2", "cluster=2", "overlap=1", ""):
        for transposed, dtype in itertools.product(("true", "false"), ("bf16", "f16")):
            defines = [f"-DB_TRANSPOSED={transposed}", f"-DT={dtype}", "-DBM=64" if fields == "consumers=1" else "-DBM=128"]
            yield ["gemm.tile", *defines, "-DBN=64", "-DSPLITS=3", "--schedule", fields, *wide], False
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
    yield ["gemm.tile", *small, "--schedule", "store=direct", *odd], False


def gemm_split():
    """One part, several and a last one with less, of layouts and schedules of the kernels apart."""
    shapes = ((72, 40, 296), (8, 8, 8), (1, 136, 1024))
    for scales, promote in (("tensor", 0), ("rows", 0), ("blocks", 0), ("none", 3)):
        defines = ["-DT=f8E4M3FN", f"-DSCALES={scales}", f"-DPROMOTE={promote}", "-DBIAS=true", "-DPART=2", "-DBM=64", "-DBN=64"]
        settings = ["--set", "scale=0.5"] if scales == "tensor" else []
        blocks = ",KB=3" if scales == "blocks" else ""
        yield ["gemm.tile", *defines, *settings, "--shape", f"M=72,N=48,K=368{blocks}", "--sim-blocks", "2"], False
    for transposed, part, schedule in itertools.product(
        ("true", "false"), (1, 2, 32), ("", "gemm_parts:persistent=dynamic", "persistent=none;gemm_parts:stages=2")
    ):
        defines = [f"-DB_TRANSPOSED={transposed}", f"-DPART={part}", "-DBM=64", "-DBN=64"]
        arguments = ["gemm.tile", *defines, "--schedule", schedule]
        for m, n, k in shapes:
            arguments += ["--shape", f"M={m},N={n},K={k}"]
        yield [*arguments, "--sim-blocks", "2"], False


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
        yield kernel(*tile, 1, consumers=consumers, store=store, producer=producer(ws)), False
    # The parts in which the blocks of a cluster load the keys end within a head, or are one or more.
    # The pieces of the loop with and without the mask depend on the row, but a producer loads the same tiles in them.
    for keys, cluster in itertools.product((1, 2, 4), (2, 4)):
        yield kernel(1, 4, 16, keys, cluster=cluster, consumers=1) + split_option(cluster == 2), False
    # 64 of the rows of heads of 24 are no box.
    yield kernel(1, 8, 24, 1, consumers=3), True


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
        for split in (True, False):
            defines = [f"-DT={dtype}", "-DOUT=f16", f"-DD={width}", f"-DBN={bn}", "-DBM=8"]
            yield rows("softmax.tile", defines, (1, 13)) + split_option(split), None
    for consumers in (1, 2, 3, 4):
        yield rows("softmax.tile", ["-DD=200", "-DBN=256", "-DBM=48"], (1023,), f"consumers={consumers}"), False
    yield rows("softmax.tile", ["-DD=300"], (1023,), "persistent=static") + ["--sim-blocks", "3"], False
    for part in (1, 3):
        yield rows("softmax.tile", ["-DD=1000", "-DBN=128", "-DBM=8", f"-DPART={part}"], (1, 13)), False


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


def gathers():
    """Rows that the threads of a producer copy: of a product, over layouts, types and schedules, and of attention over pages.
    Numbers and entries are drawn, so that some are outside; lengths too, so that some sequences are empty."""
    for transposed, numbers, fields in itertools.product(
        ("true", "false"), ("i32", "i64"),
        ("", "consumers=1", "stages=1", "stages=2,persistent=none", "store=tma", "outer_stages=2,persistent=static"),
    ):  # fmt: skip
        defines = [f"-DB_TRANSPOSED={transposed}", f"-DI={numbers}", "-DBM=128", "-DBN=64", "-DBK=32"]
        shapes = [part for shape in ("R=50,M=1,N=8,K=8", "R=1,M=203,N=72,K=104") for part in ("--shape", shape)]
        yield ["gemm_gather.tile", *defines, "--schedule", fields, *shapes, "--sim-blocks", "3"], False
    # Columns behind the last one, within 16 bytes of it.
    yield ["gemm_gather.tile", "-DT=f16", "--shape", "R=70,M=65,N=113,K=203", "--pad-rows", "8"], False
    # Pages whose rows come one by one, by the template without a mask and with one.
    sources = ("attention_cache.tile", os.path.join(os.path.dirname(os.path.abspath(__file__)), "paged.tile"))
    paged = ["-DPAGED=true", "-DGATHERED=true", "--set", "scale=0.125", "--sim-blocks", "3", "--shape"]
    for page, heads, source, fields in itertools.product(
        (1, 16, 37), (1, 4), sources, ("", "overlap=1,stages=2", "overlap=2,stages=3,persistent=none")
    ):
        defines = [f"-DHEADS={heads}", "-DD=64", "-DBM=64", "-DBN=64", "--schedule", fields]
        shape = f"SEQUENCES=5,B=5,H=8,HK=2,SQ={1 if heads > 1 else 70},PAGES={203 // page},ROWS={page},LENGTH=9"
        yield [source, *defines, *paged, shape], False
    for width, values, dtype in ((128, 128, "bf16"), (96, 64, "f16"), (256, 256, "bf16")):
        defines = [f"-DD={width}", f"-DDV={values}", f"-DT={dtype}"]
        yield [sources[1], *defines, *paged, "SEQUENCES=3,B=3,H=2,HK=1,SQ=113,PAGES=40,ROWS=16,LENGTH=40"], False
    # Beside them one thread fetches numbers of tiles, in clusters too, and another stores, in a warpgroup of its own.
    shapes = ["--shape", "R=50,M=1,N=8,K=8", "--shape", "R=70,M=403,N=136,K=104", "--sim-blocks", "4", "--seeds", "3"]
    for taken in ("persistent=dynamic", "persistent=none", "persistent=static"):
        for more in ("", "cluster=2", "store=writer", "cluster=2,store=writer"):
            yield ["gemm_gather.tile", "-DBM=128", "-DBN=64", "--schedule", f"{taken},{more}", *shapes], False
    for fields in ("", "overlap=1", "cluster=2", "store=writer"):
        defines = ["-DHEADS=1", "-DD=64", "-DBM=64", "-DBN=64", "--schedule", f"persistent=dynamic,{fields}"]
        shape = "SEQUENCES=5,B=5,H=8,HK=2,SQ=70,PAGES=12,ROWS=16,LENGTH=9"
        # Each block gathers for itself.
        yield [sources[1], *defines, *paged, shape], fields == "cluster=2"
    for fields in ("producer=none", "transpose=3"):
        yield ["gemm_gather.tile", "--schedule", fields, "--shape", "R=50,M=1,N=8,K=8"], True


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
    for rms, part in itertools.product(("true", "false"), (1, 3)):
        defines = ["-DD=1000", "-DBN=128", "-DBM=8", f"-DRMS={rms}", f"-DPART={part}"]
        yield rows("layer_norm.tile", defines, (1, 13), settings=["eps=1e-5"]), False


def fp8():
    """Elements of 8 bits: rounded with scales of rows and blocks, rotated or not; products with all scales; attention."""
    for defines, schedule in itertools.product(
        (["-DD=16"], ["-DD=80"], ["-DOUT=f8E5M2", "-DT=f16"], ["-DBLOCKS=true"], ["-DD=4096"], ["-DD=64", "-DROTATE=true"],
         ["-DROTATE=true"], ["-DROTATE=true", "-DBLOCKS=true"], ["-DD=256", "-DROTATE=true"],
         ["-DROTATE=true", "-DHALVES=true"], ["-DD=256", "-DROTATE=true", "-DHALVES=true", "-DBLOCKS=true"]),
        ("", "consumers=1", "consumers=1,producer=none")
    ):  # fmt: skip
        shapes = [part for rows in (1, 203) for part in ("--shape", f"B=2,H=1,SX={rows}")]
        yield ["quantize.tile", *defines, "--schedule", schedule, *shapes, "--sim-blocks", "2", "--seeds", "3"], None
    for defines in (
        [], ["-DT=f8E5M2", "-DOUT=f16"], ["-DBIAS=true", "-DACTIVATION=gelu"], ["-DBN=48", "-DBK=32"], ["-DBM=256", "-DBN=64"],
        ["-DSCALES=tensor", "--set", "scale=0.5"], ["-DSCALES=tensor", "--set", "scale=0.5", "-DPROMOTE=2"], ["-DPROMOTE=1"],
        ["-DSCALES=rows", "-DBIAS=true"], ["-DSCALES=rows", "-DBIAS=true", "-DPROMOTE=3", "-DBK=64"], ["-DSCALES=rows", "-DBM=64", "-DBN=64"],
        ["-DSCALES=rows"],
    ):  # fmt: skip
        yield [*gemm(["-DT=f8E4M3FN", *defines], [(300, 200, 112), (1, 8, 16), (129, 72, 400)]), "--sim-blocks", "3"], False
    # B of 8 bits beside A of 16, converted on its way.
    for wide, narrow, defines in (
        ("bf16", "f8E4M3FN", []), ("f16", "f8E5M2", ["-DBM=64", "-DBN=256"]), ("bf16", "f8E4M3FN", ["-DB_TRANSPOSED=false"]),
        ("f16", "f8E4M3FN", ["-DBN=96", "-DBK=32"]), ("bf16", "f8E4M3FN", ["-DSCALES=rows", "-DBIAS=true"]),
    ):  # fmt: skip
        shapes = [(300, 208, 112), (1, 16, 16), (129, 80, 400)]
        yield [*gemm([f"-DT={wide}", f"-DTB={narrow}", *defines], shapes), "--sim-blocks", "3"], False
    for bm, bn in ((128, 128), (64, 96), (64, 32)):
        shapes = [part for k in (112, 128, 400) for part in ("--shape", f"M=200,N=72,K={k},KB={-(-k // 128)}")]
        defines = ["-DT=f8E4M3FN", "-DSCALES=blocks", f"-DBM={bm}", f"-DBN={bn}"]
        yield ["gemm.tile", *defines, *shapes, "--sim-blocks", "3"], False


def attention_fp8():
    """Attention of 8-bit numbers: dimensions, those of V apart, both forms of V, who transposes, sums in f32, tiles."""

    def attention8(defines, lengths, schedule=""):
        options = ["--set", "scale=0.125", "--set", "v_scale=0.5", "--schedule", schedule, "--sim-blocks", "2", "--seeds", "2"]
        shapes = [part for sq, sk in lengths for part in ("--shape", attention_shape(2, 1, sq, sk))]
        return ["attention_fp8.tile", *defines, *options, *shapes]

    lengths = ((203, 112), (1, 400), (300, 16))
    for d, causal, transposed in itertools.product((64, 96, 128, 192, 256), ("false", "true"), ("false", "true")):
        yield attention8([f"-DD={d}", f"-DCAUSAL={causal}", f"-DV_TRANSPOSED={transposed}"], lengths), False
    for (d, dv), transposed in itertools.product(((192, 128), (64, 256), (128, 64)), ("false", "true")):
        yield attention8([f"-DD={d}", f"-DDV={dv}", "-DCAUSAL=true", f"-DV_TRANSPOSED={transposed}"], lengths), False
    for promote, transposed, schedule in itertools.product((1, 3), ("false", "true"), ("", "speculate=false", "overlap=1")):
        defines = ["-DD=64", "-DBN=32", f"-DPROMOTE={promote}", "-DCAUSAL=true", f"-DV_TRANSPOSED={transposed}"]
        yield attention8(defines, lengths, schedule), False
    yield attention8(["-DD=192", "-DDV=128", "-DPROMOTE=2"], lengths), False
    # Q of 16 bits.
    odd = ((1, 112), (113, 16), (203, 304))
    for d, causal, transposed in itertools.product((64, 96, 128, 192, 256), ("false", "true"), ("false", "true")):
        wide = "f16" if causal == transposed else "bf16"
        yield attention8([f"-DTQ={wide}", f"-DD={d}", f"-DCAUSAL={causal}", f"-DV_TRANSPOSED={transposed}"], odd), False
    yield attention8(["-DTQ=bf16", "-DD=128", "-DV_TRANSPOSED=false"], ((113, 1), (1, 1023), (203, 113))), False
    for schedule in ("overlap=1", "overlap=3", "stages=1", "cluster=2", "persistent=static,store=tma"):
        yield attention8(["-DTQ=bf16", "-DD=64", "-DBN=32", "-DV_TRANSPOSED=false"], odd[::2], schedule), None
    for overlap, pingpong, stages, ws in itertools.product((1, 2), (True, False), (1, 3), (True, False)):
        schedule = schedule_text(overlap=overlap, pingpong=pingpong, stages=stages, producer=producer(ws))
        warps = [("false", str(n)) for n in range(1, 5)]
        for transposed, by in (("false", "0"), *warps, ("true", "0")):
            if ws or by == "0":
                defines = ["-DD=64", "-DBN=32", "-DCAUSAL=true", f"-DV_TRANSPOSED={transposed}"]
                yield attention8(defines, lengths[:1], f"{schedule},transpose={by}"), None
    for defines, schedule in (
        (["-DD=64", "-DBM=192", "-DBN=96"], ""), (["-DD=64", "-DBM=256", "-DBN=64"], "consumers=4"), (["-DT=f8E5M2"], ""),
        (["-DOUT=f16"], "store=tma"), (["-DD=64", "-DBM=64", "-DBN=160"], ""), (["-DD=64", "-DBM=128"], "polynomial_exp=8"),
        (["-DD=64", "-DBM=128"], "overlap=3"), (["-DD=64", "-DBM=128"], "cluster=2"), (["-DD=64", "-DBM=128"], "persistent=static,store=tma"),
    ):  # fmt: skip
        yield attention8(defines, lengths[::2], schedule), False


GROUPS = (
    gemm_kernels, gemm_schedules, gemm_splits, gemm_split, boxes, softmax, embedding, gathers, layer_norm, fp8, attention_fp8,
)  # fmt: skip
