"""Configurations of attention and of its gradients."""

import itertools
import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "gpu"))
import cases
from commands import attention, attention_shape, producer, schedule_text, split_option, trip_counts, variant


def attention_schedules():
    """Every combination of fields, at small tiles: each trip count from 0 on, several tiles for each block, and rows
    that see nothing (causal, SQ > SK)."""
    for ws, overlap, pingpong, stages, store, persistent, split in itertools.product(
        (True, False), (1, 2), (True, False), (1, 2, 3), ("direct", "tma"), ("none", "static", "dynamic"), (True, False)
    ):
        schedule = schedule_text(
            producer=producer(ws), overlap=overlap, pingpong=pingpong, stages=stages, store=store, persistent=persistent,
        )  # fmt: skip
        # 300 queries and 10 keys: the tiles of the first 256 rows have no block. A thread block takes several such
        # tiles, in which nothing but their barriers holds its warps together.
        shapes = [attention_shape(2, 1, 203, 113), attention_shape(4, 1, 300, 10)]
        shapes += [attention_shape(1, 1, 1, 32 * trips) for trips in trip_counts(stages)]
        defines = ["-DD=64", "-DBM=128", "-DBN=32", "-DCAUSAL=true"]
        # What takes the next tile is the producer, so there is no dynamic order without one.
        refused = not ws and persistent == "dynamic"
        yield attention(defines, shapes, schedule, ["--sim-blocks", "2", *split_option(split)]), refused


def attention_pipelines():
    """Every form of the loop that runs several iterations a step, with and without a mask: each trip count from 0 to past the
    depth of the pipeline, odd lengths and rows that see nothing."""
    for overlap, causal, ws, persistent in itertools.product(
        (2, "scaled", 3), ("false", "true"), (True, False), ("none", "dynamic")
    ):
        if not ws and persistent == "dynamic":
            continue
        schedule = schedule_text(producer=producer(ws), overlap=overlap, persistent=persistent)
        lengths = [attention_shape(1, 1, 1, 32 * trips) for trips in range(1, 6)]
        lengths += [attention_shape(2, 1, 203, 113), attention_shape(4, 1, 300, 10)]
        defines = ["-DD=64", "-DBM=128", "-DBN=32", f"-DCAUSAL={causal}"]
        yield attention(defines, lengths, schedule, ["--sim-blocks", "2"]), False
    # Turns, and rings of other depths, around the pipeline that runs ahead.
    for pingpong, stages, causal in itertools.product((True, False), (1, 2, 3), ("false", "true")):
        schedule = schedule_text(overlap=3, pingpong=pingpong, stages=stages)
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
        schedule = schedule_text(producer=producer(ws), overlap=overlap, stages=stages, persistent=persistent)
        lengths = [attention_shape(1, 1, 1, 48 * trips) for trips in trip_counts(stages)]
        yield attention(defines, shapes + lengths, schedule, ["--sim-blocks", "2"]), not ws and persistent == "dynamic"
    for schedule in ("consumers=1", "consumers=3", "outer_stages=1", "outer_stages=2"):
        rows = "-DBM=64" if schedule == "consumers=1" else "-DBM=192"
        yield attention(["-DD=64", rows, "-DBN=32"], shapes, schedule), False
    for persistent, order in itertools.product(("none", "static", "dynamic"), ("linear", "ascending", "descending")):
        schedule = schedule_text(persistent=persistent, order=order)
        # Sections of three heads of three tiles, where there are any, and a head at the end that joins the second one.
        options = ["-DCAUSAL=true", "--sim-blocks", "5"]
        shape = attention_shape(7, 7, 300, 300)
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
    head_dims = ((64, 40, 64, 8), (96, 72, 96, 80), (128, 120, 128, 104), (160, 136, 160, 152), (256, 200, 256, 200))
    for (d, dq, dv, do), causal, store in itertools.product(head_dims, ("false", "true"), ("direct", "tma")):
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", "-DPADDED=true", f"-DLSE={causal}"]
        lengths = [f"{attention_shape(*shape)},DQ={dq},DO={do}" for shape in shapes]
        yield attention(defines, lengths, schedule_text(store=store)), False
    settings = {"left": 40, "right": 8}
    for d, dq in ((64, 56), (96, 88), (128, 104), (160, 136)):
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
    for schedule in ("producer=none", "overlap=1", "pingpong=false", "stages=1", "", "consumers=1"):
        defines = ["-DD=64", "-DBM=128" if schedule != "consumers=1" else "-DBM=64", "-DBN=32", "-DCAUSAL=true"]
        yield attention(defines, shapes, schedule, ["--sim-blocks", "2", *split_option(schedule)], 4), False
    # Launches so long that their first tiles decide how the others run: none of these fails, some, or all.
    for scale, causal, cluster in ((0.125, "false", 1), (2, "true", 1), (16, "false", 1), (16, "true", 1), (0.125, "false", 2), (16, "false", 2)):
        schedule = schedule_text(persistent="dynamic", consumers=1, cluster=cluster)
        defines = ["-DD=64", "-DBM=64", "-DBN=16", f"-DCAUSAL={causal}"]
        blocks = ["--sim-blocks", str(2 * cluster), "--seeds", "2"]
        yield attention(defines, [attention_shape(42 * cluster, 42, 150, 173)], schedule, blocks, scale), False
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
    # What launches choose among beside the default.
    for d, causal, heads, bm, bn in cases.CHOSEN_TILES:
        defines = [f"-DD={d}", f"-DBM={bm}", f"-DBN={bn}", f"-DHEADS={heads}", f"-DCAUSAL={str(causal).lower()}"]
        yield attention(defines, [attention_shape(2 * heads, 1, 203, 113), attention_shape(2, 1, 70, 3 * bn + 9)]), False


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
        ("", "speculate=false", "persistent=none", "overlap=1", "producer=none", "stages=3,pingpong=true"),
    ):
        yield variant([*small, "-DMASK=window"], {"left": left, "right": right}, shapes, schedule), False
    for cap, mask, alibi in itertools.product(("none", "exact", "approx"), ("none", "causal"), ("false", "true")):
        defines = [*small, f"-DSOFTCAP={cap}", f"-DMASK={mask}", f"-DALIBI={alibi}"]
        yield variant(defines, {} if cap == "none" else {"cap": 1.5}, shapes), False
    everything = {"cap": 2, "left": 100, "right": 9}
    for d, dtype in itertools.product((64, 96, 128, 160, 192, 256), ("bf16", "f16")):
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
    for schedule in ("persistent=none", "persistent=static", "store=tma", "producer=none", "overlap=1", ""):
        defines = [*small, "-DMASK=window", "-DALIBI=true"]
        yield variant(defines, {"left": 60, "right": 9}, shapes, schedule, 2) + split_option(schedule), False


def attention_packed():
    """Tiles with rows of several heads, of one key head each, with odd lengths and rows that see nothing."""
    for pack, causal, (store, ws) in itertools.product(
        (2, 4, 8, 16), ("false", "true"), (("direct", True), ("tma", True), ("direct", False))
    ):
        schedule = schedule_text(store=store, producer=producer(ws))
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


def attention_bwd():
    """Head dimensions, masks, types, odd lengths, groups of heads, queries that see nothing and gradients of LSE."""
    shapes = [
        attention_shape(2, 2, 203, 113), attention_shape(3, 1, 113, 203, batch=2), attention_shape(1, 1, 1, 1),
        attention_shape(2, 1, 63, 256),
    ]  # fmt: skip
    bshd = [part for name in ("q", "k", "v", "o", "do", "dq", "dk", "dv") for part in ("--order", f"{name}=0,2,1,3")]
    sources, dims = ("attention_bwd", "attention_bwd_deterministic"), ((64, 64), (96, 96), (128, 128), (128, 64), (192, 128), (256, 256))
    for source, (d, dv), causal in itertools.product(sources, dims, ("false", "true")):
        dtype = "f16" if d == 96 or causal == "true" else "bf16"
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", f"-DT={dtype}", f"-DDLSE={causal}"]
        arguments = [f"{source}.tile", *defines, "--set", "scale=0.1"]
        # Chunks of queries, shorter than the sequences.
        if source == "attention_bwd" and (d == 128 or dv == 128):
            arguments += [f"-DCHUNK={2 if causal == 'true' else 1}"]
        for shape in shapes:
            arguments += ["--shape", shape]
        yield [*arguments, *(bshd if d == 64 else []), "--sim-blocks", "2", "--seeds", "2"], False
        # Narrow heads too can have their dots divided.
        if source == "attention_bwd" and d == 64:
            divided = ["-DGN=64", "-DGM=64", "--schedule", "attention_bwd_gradients:placement=divided"]
            yield [*arguments, *divided, "--sim-blocks", "2", "--seeds", "2"], False
    # Grid points for parts of the query heads of a group.
    for d, causal, fixed in itertools.product((64, 128), ("false", "true"), ("false", "true")):
        arguments = ["attention_bwd.tile", f"-DD={d}", f"-DCAUSAL={causal}", "-DDLSE=true", "-DPARTS=2", "--set", "scale=0.1"]
        arguments += [f"-DFIXED={fixed}", *(["-DGROUP=8"] if causal == "true" else [])]
        own = [attention_shape(4, 2, 203, 113), attention_shape(8, 2, 150, 200)] if fixed == "true" else shapes
        for shape in (*own, attention_shape(6 if fixed == "false" else 4, 1, 150, 200)):
            arguments += ["--shape", shape]
        yield [*arguments, "--sim-blocks", "2", "--seeds", "2"], False


def attention_bwd_clusters():
    """Pairs of blocks of keys that load Q and dO together: with a causal mask they begin at one block of queries. Odd numbers of
    blocks, groups of heads in chunks of queries and without, queries that see nothing. Other masks and clusters share nothing,
    or not all."""
    shapes = [
        attention_shape(2, 2, 203, 300), attention_shape(3, 1, 113, 203, batch=2), attention_shape(1, 1, 1, 1),
        attention_shape(2, 1, 300, 113), attention_shape(1, 1, 63, 256),
    ]  # fmt: skip
    orders = {"none": "linear", "static": "ascending", "dynamic": "descending"}
    chunks = {"none": 0, "static": 2, "dynamic": 1}
    for d, causal, persistent in itertools.product((64, 128, 256), ("false", "true"), orders):
        arguments = ["attention_bwd.tile", f"-DD={d}", f"-DCAUSAL={causal}", "-DDLSE=true", "--set", "scale=0.1"]
        # With 256 columns some gradients are too large for f16.
        arguments += [f"-DT={'f16' if persistent == 'none' and d < 256 else 'bf16'}", f"-DTOGETHER={2 if causal == 'true' else 1}"]
        arguments += [f"-DCHUNK={chunks[persistent]}"]
        for shape in shapes:
            arguments += ["--shape", shape]
        schedule = f"attention_bwd_gradients:cluster=2,persistent={persistent},order={orders[persistent]}"
        yield [*arguments, "--schedule", schedule, "--sim-blocks", "4", "--seeds", "2"], False
    for cluster, together in ((2, 1), (4, 2)):
        arguments = ["attention_bwd.tile", "-DCAUSAL=true", f"-DTOGETHER={together}", "--set", "scale=0.1"]
        yield [*arguments, "--schedule", f"attention_bwd_gradients:cluster={cluster}", "--shape", shapes[0]], True


def attention_bwd_exchange():
    """Pairs of blocks of keys that exchange dS and add half of the columns of dQ for both: odd numbers of blocks, groups of heads,
    queries that see nothing, all ways out. Of 64 and 192 columns a block loads its own half apart."""
    shapes = [
        attention_shape(2, 2, 203, 300), attention_shape(3, 1, 113, 203, batch=2), attention_shape(1, 1, 1, 1),
        attention_shape(2, 1, 300, 113), attention_shape(1, 1, 63, 256),
    ]  # fmt: skip
    ways = (("none", "linear", "tma", 1), ("static", "ascending", "direct", 2), ("dynamic", "descending", "tma", 2), ("dynamic", "linear", "writer", 1))
    for d, causal, (persistent, order, store, chunk) in itertools.product((64, 128, 192, 256), ("false", "true"), ways):
        arguments = ["attention_bwd.tile", f"-DD={d}", f"-DCAUSAL={causal}", "-DDLSE=true", "--set", "scale=0.1"]
        # With 192 columns some gradients are too large for f16.
        arguments += [f"-DT={'f16' if order == 'linear' and d < 192 else 'bf16'}", f"-DTOGETHER={2 if causal == 'true' else 1}"]
        arguments += [f"-DCHUNK={chunk if persistent == 'dynamic' else 0}"]
        for shape in shapes:
            arguments += ["--shape", shape]
        fields = f"cluster=exchange,persistent={persistent},order={order},store={store}"
        yield [*arguments, "--schedule", f"attention_bwd_gradients:{fields}", "--sim-blocks", "4", "--seeds", "2"], False
    grouped = [part for shape in shapes for part in ("--shape", shape)]
    yield ["attention_bwd.tile", "-DCAUSAL=true", "-DGROUP=8", "-DCHUNK=1", "--set", "scale=0.1", *grouped, "--sim-blocks", "4", "--seeds", "2"], False

def attention_sums_of_pairs():
    """The same in a fixed order, of up to five pairs of blocks, one of them without its second block, by one pair of thread
    blocks, by two that take turns, and by one for each."""
    shapes = [
        attention_shape(2, 1, 130, 520), attention_shape(1, 1, 400, 203, batch=2), attention_shape(2, 2, 1, 300),
        attention_shape(3, 1, 113, 64),
    ]  # fmt: skip
    for (d, dv), causal, blocks in itertools.product(((128, 128), (192, 128), (192, 192), (256, 256)), ("false", "true"), ("2", "4", "16")):
        together = 2 if causal == "true" else 1
        defines = [f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={causal}", "-DT=bf16", "-DFIXED=true", f"-DTOGETHER={together}"]
        # By chunks of queries, all heads of one before the next.
        defines += ["-DGROUP=8"] if d == dv and blocks != "4" else []
        arguments = ["attention_bwd.tile", *defines, "--set", "scale=0.1"]
        for shape in shapes:
            arguments += ["--shape", shape]
        store = "tma" if blocks == "4" and d == 256 else "writer"
        fields = f"attention_bwd_gradients:cluster=exchange,store={store}"
        fields += ",producer_registers=32" if d == 128 else ""
        yield [*arguments, "--schedule", fields, "--sim-blocks", blocks, "--seeds", "2"], False


def attention_sums():
    """Sums of dQ in a fixed order, of up to five blocks of keys, by one thread block, by two that take turns, and by one for
    each. Of queries that few keys see, of several query heads of a key head, and of queries that see nothing. With a causal
    mask also by chunks of queries, and by sections that walk up and down in turn, or of which the last one walks up. One thread
    block would wait for itself where a grid point waited for one with a greater number. Of the last shape eight thread blocks take
    four heads in a section, which the fifth one joins."""
    shapes = [
        attention_shape(2, 1, 130, 520), attention_shape(1, 1, 400, 203, batch=2), attention_shape(2, 2, 1, 300),
        attention_shape(1, 1, 70, 203, batch=5),
    ]  # fmt: skip
    for d, causal, blocks in itertools.product((64, 96, 128), ("false", "true"), ("1", "2", "8")):
        defines = [f"-DD={d}", f"-DCAUSAL={causal}", f"-DT={'f16' if d == 96 else 'bf16'}", "-DFIXED=true"]
        arguments = ["attention_bwd.tile", *defines, "--set", "scale=0.1"]
        for shape in shapes:
            arguments += ["--shape", shape]
        # Two sections, each of two heads, by up to two thread blocks with section = 4, and by up to eight with section = 1.
        arguments += ["--shape", attention_shape(4, 4, 300, 300)] if causal == "true" else []
        yield [*arguments, "--sim-blocks", blocks, "--seeds", "2"], False
        if causal == "true":
            # By default the last section turns at d = 64, and every second one from d = 96 on.
            for order in ("descending", "turns" if d == 64 else "last_turns"):
                other = ["--schedule", f"attention_bwd_gradients:order={order},section=1"]
                yield [*arguments, *other, "--sim-blocks", blocks, "--seeds", "2"], False
            # All heads for one block of queries; as long as a block of keys, and longer, so that a block leaves within one.
            for chunk in (1, 2, 4):
                yield [*arguments, "-DGROUP=8", f"-DCHUNK={chunk}", "--sim-blocks", blocks, "--seeds", "2"], False


def attention_gradients():
    """Masks, scores, head dimensions, odd lengths, groups of heads, queries that see nothing and gradients of LSE, of the
    templates; and windows of all kinds."""
    shapes = [
        attention_shape(2, 2, 203, 113), attention_shape(3, 1, 113, 203, batch=2), attention_shape(1, 1, 1, 1),
        attention_shape(2, 1, 63, 256),
    ]  # fmt: skip
    all_dims = ((64, 64), (96, 96), (96, 256), (128, 128), (128, 64), (192, 128), (192, 192), (256, 256))
    forms = [("attention_variants_bwd", dims) for dims in all_dims]
    forms += [("attention_variants_bwd_fixed", dims) for dims in ((64, 64), (128, 64), (192, 128), (256, 256))]
    scores = (
        ([], {}),
        (["-DMASK=causal"], {}),
        (["-DMASK=window"], {"left": 40, "right": 17}),
        (["-DMASK=window"], {"left": -1, "right": 3}),
        (["-DMASK=window", "-DGN=64"], {"left": 5, "right": -1}),
        (["-DMASK=window", "-DALIBI=true"], {"left": 1000, "right": 0}),
        (["-DSOFTCAP=exact"], {"cap": 1.5}),
        (["-DSOFTCAP=exact", "-DMASK=causal", "-DALIBI=true"], {"cap": 1.5}),
        (["-DMASK=causal", "-DALIBI=true", "-DGROUP=8"], {}),
        (["-DSOFTCAP=exact", "-DMASK=causal", "-DGROUP=8"], {"cap": 1.5}),
    )
    for (source, (d, dv)), (defines, settings) in itertools.product(forms, scores):
        # Slopes of random inputs raise scores beyond the range of f16, as no LSE of a forward pass would allow.
        if "-DGROUP=8" in defines and (source.endswith("fixed") or d not in (96, 128)):
            continue
        is_f16 = (d == 96 or "-DMASK=window" in defines) and "-DALIBI=true" not in defines
        dtype = "f16" if is_f16 else "bf16"
        arguments = [f"{source}.tile", f"-DD={d}", f"-DDV={dv}", f"-DT={dtype}", *defines, "--set", "scale=0.1"]
        arguments += [f"-DDLSE={'true' if settings else 'false'}"]
        for name, value in settings.items():
            arguments += ["--set", f"{name}={value}"]
        for shape in shapes:
            arguments += ["--shape", shape]
        yield [*arguments, "--sim-blocks", "2", "--seeds", "2"], False


GROUPS = (
    attention_schedules, attention_pipelines, attention_full_mask, attention_heads, attention_padded,
    attention_retries, attention_tiles, attention_variants, attention_variants_retries, attention_packed,
    attention_bwd, attention_bwd_clusters, attention_bwd_exchange, attention_gradients, attention_sums, attention_sums_of_pairs,
)  # fmt: skip
