"""Configurations for fields of schedules, of any kernel that shows them."""

import itertools
import os

from commands import attention, attention_shape, gemm, producer, schedule_text, split_option, trip_counts, variant


def clusters():
    """Tiles that the blocks of a cluster load together, on grids that are no multiple of the cluster."""
    for cluster, ws, stages, persistent in itertools.product(
        (2, 4), (True, False), (1, 2, 3), ("none", "static", "dynamic")
    ):
        options = ["--sim-blocks", str(2 * cluster)]
        refused = not ws and persistent == "dynamic"
        fields = {"cluster": cluster, "producer": producer(ws), "stages": stages, "persistent": persistent}
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
    # Walked down from the last block, K and V lie where the row says; the exact region, which walks up from the first, runs alone.
    for fields, refused in (("", False), (",speculate=true", True)):
        yield attention(["-DD=64", "-DCAUSAL=true"], [attention_shape(2, 1, 300, 300)], f"cluster=2{fields}"), refused


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
    for cluster, overlap, pingpong, stages, split in itertools.product(
        (2, 4), (1, 2, 3), (True, False), (1, 2, 3), (True, False)
    ):
        schedule = schedule_text(cluster=cluster, overlap=overlap, pingpong=pingpong, stages=stages)
        options = ["--sim-blocks", str(2 * cluster), "--seeds", "3", *split_option(split)]
        yield attention(wide, shapes, schedule, options), stages < overlap
    schedules = ("stages=[2,3]", "stages=[3,2]", "outer_stages=1", "work=pinned")
    for schedule in (*schedules, "order=ascending", "order=linear"):
        yield attention(wide, shapes, f"cluster=2,{schedule}", ["--sim-blocks", "4"]), False
    yield attention(wide, shapes, "cluster=2", ["--sim-blocks", "4", "--pdl"]), False
    yield attention(wide, shapes, "cluster=2,producer=none"), True
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


def pinned_waits():
    """Waits in blocks of their own, between which the work under a product stays."""
    shapes = [attention_shape(2, 1, 113, 203)]
    for overlap, ws, pingpong, causal in itertools.product((2, 3), (True, False), (True, False), ("true", "false")):
        if pingpong and not ws:
            continue
        schedule = schedule_text(work="pinned", overlap=overlap, producer=producer(ws), pingpong=pingpong)
        defines = ["-DD=64", "-DBM=128", "-DBN=64", f"-DCAUSAL={causal}"]
        yield attention(defines, shapes, schedule), None
    for speculate in (True, False):
        yield attention(["-DD=256", "-DCAUSAL=true"], shapes, f"work=pinned,speculate={str(speculate).lower()}"), False


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
    for schedule in ("overlap=1", "overlap=3", "overlap=scaled", "producer=none", "work=pinned"):
        defines = ["-DD=64", "-DBM=128", "-DBN=32", "-DCAUSAL=true"]
        yield attention(defines, shapes, schedule + ",polynomial_exp=8", ["--sim-blocks", "2"]), None


GROUPS = (
    clusters, clusters_causal, pinned_waits, polynomial_exp,
)  # fmt: skip
