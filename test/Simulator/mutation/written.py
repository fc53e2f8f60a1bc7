"""Damages what keeps tiles whole that consumers write to shared memory: the simulator must name each damage, and nothing
in the kernel as it is compiled.

    written.py KERNEL.tile CASE WORKDIR
"""

import os
import struct
import sys

from damages import (
    SENT, arrive_before_copies, each_for_itself, early_to_one_block, give_back_early, give_back_unread,
    give_back_untransposed, half_of_role, not_expected, read_late, release_early, replaced,
    to_one_block, wait_less, without, without_last, without_last_wait, without_role_barrier, without_wait, without_wait_behind,
)  # fmt: skip
from launches import KEYS, attention_buffers, chunks, compile_kernel, row, runs_of, simulate, tensor, write_launch

ONE = b"\x80\x3f"  # in bf16

FENCE = (without(r"fence\.proxy\.async\.shared::cta;"), {"missing-proxy-fence"})
STALE = {"race", "missing-proxy-fence", "stale-data"}
BARRIER = (without(r"bar(rier)?\.sync\s+%r\d+, 128;"), STALE)
TAKEN = {"slot-overwritten", "race", "over-arrival", "parity-aliasing"}
ATTENTION = [tensor("q", 128), tensor("k", 64), tensor("v", 64)]
BYTES = {
    "defines": ["-DT=f32", "-DIN=f8E4M3FN"],
    "blocks": -(-KEYS // 128),
    "buffers": attention_buffers("f32", "e4m3"),
    "params": [
        tensor("q", 128, element=1), tensor("k", 64, element=1), tensor("v", 64, element=1),
        {"buffer": "o"}, {"value": KEYS}, {"value": 64},
    ],
}  # fmt: skip
TRANSPOSED = {
    "taken": (without_wait("ldmatrix"), TAKEN),
    "filled": (without_wait("ldmatrix", 2), {*STALE, "uninitialised-shared", "over-arrival"}),
    "given back": (give_back_untransposed, {*STALE, "slot-overwritten"}),
}
DIVIDED = {
    "schedule": "placement=divided,persistent=none,stages=2",
    "blocks": 1,
    "buffers": {
        "a": {"type": "bf16", "shape": [64, 64], "fill": "random", "seed": 1},
        **{name: {"type": "bf16", "shape": [KEYS, 64], "fill": "random", "seed": seed} for seed, name in enumerate("bc", 2)},
        **{name: {"type": "bf16", "shape": [64, 64], "fill": "nan"} for name in "uwx"},
    },
    "params": [
        chunks("a", 64, 64, columns=64), chunks("b", KEYS, 64, columns=64), chunks("c", KEYS, 64, columns=64),
        *({"buffer": name} for name in "uwx"), {"value": 64}, {"value": KEYS}, *([{"value": 64}] * 3),
    ],
}  # fmt: skip


TICKETS = {
    "defines": ["-DFORM=1", "-DFIXED=true"],
    "options": ["--ordered-sums", "--max-instructions", "4000000"],
    "blocks": 2,
    "buffers": {
        "a": {"type": "bf16", "shape": [512, 128], "fill": "random", "seed": 1},
        "b": {"type": "bf16", "shape": [KEYS, 128], "fill": "random", "seed": 2},
        "r": {"type": "f32", "shape": [KEYS], "fill": "iota", "modulus": 7},
        "columns": {"type": "f32", "shape": [KEYS, 128], "fill": "iota", "modulus": 7},
        "counter": {"type": "s32", "shape": [2], "resets": True},
        "tickets": {"type": "s32", "shape": [KEYS // 64], "resets": True},
        "o": {"type": "bf16", "shape": [512, 128], "fill": "nan"},
    },
    "params": [
        chunks("a", 512, 128), chunks("b", KEYS, 64), row("r", KEYS, 64), chunks("columns", KEYS, 64, 4),
        {"buffer": "counter"}, {"buffer": "tickets"}, {"buffer": "o"}, {"value": 512}, {"value": KEYS}, {"value": 128},
    ],
    "damages": {
        "wait": (replaced("@!mine bra again;", ""), {"race"}),
        "early wait": (replaced("setp.eq.u32 mine, ticket", "setp.le.u32 mine, ticket"), {"race"}),
        "pass": (replaced(r"st\.release\.gpu\.global\.b32[^;]*;", ""), {"livelock", "deadlock"}),
        "relaxed pass": (replaced(r"st\.release\.gpu", "st.relaxed.gpu"), {"race"}),
        # A fence and then a relaxed write release as well, if the copies have ended before the fence (PTX ISA 8.8).
        "relaxed pass behind a fence": (replaced(r"st\.release\.gpu", "fence.acq_rel.gpu;\nst.relaxed.gpu"), set()),
        "early fence": (replaced(r"cp\.async\.bulk\.wait_group 0;\s+st\.release\.gpu",
                                 "fence.acq_rel.gpu;\ncp.async.bulk.wait_group 0;\nst.relaxed.gpu"), {"race"}),
        "relaxed wait": (replaced(r"ld\.acquire\.gpu", "ld.relaxed.gpu"), {"race"}),
        "narrow pass": (replaced(r"st\.release\.gpu", "st.release.cta"), {"race"}),
        "fence": (replaced(r"fence\.proxy\.async\.global;", ""), {"missing-proxy-fence"}),
        "read, not written": (replaced(r"bulk\.wait_group 0;", "bulk.wait_group.read 0;"), {"race"}),
        # The last one of a tile passes its ticket on as any other, and the last block leaves the number of the next tile.
        "reset": (replaced(r"selp\.b32(\s+%r\d+), (%r\d+), 0, %p\d+;", r"mov.b32\1, \2;"), {"not-reset"}),
        "reset of numbers": (replaced(r"@last st\.global\.u32[^;]*;", ""), {"not-reset"}),
    },
}  # fmt: skip
# Gathered rows of 8 bits, which are multiplied by numbers of rows, beside rows of 16.
GATHERED_BYTES = {
    "files": {"list.bin": struct.pack("<64i", *((37 * i) % 103 - 2 for i in range(64)))},
    "buffers": {
        "a": {"type": "bf16", "shape": [256, 512], "fill": "random", "seed": 1},
        "b": {"type": "e4m3", "shape": [100, 512], "fill": "random", "seed": 2},
        "list": {"raw": "list.bin", "type": "s32", "shape": [64]},
        "units": {"type": "f32", "shape": [100, 4], "fill": "random", "seed": 3},
        "c": {"type": "f32", "shape": [256, 64], "fill": "nan"},
    },
    "params": [
        tensor("a", 64, 64, (512, 256)), *({"buffer": name} for name in ("b", "list", "units", "c")),
        {"value": 256}, {"value": 64}, {"value": 100}, {"value": 512}, {"value": 4}, {"value": 64},
    ],
}  # fmt: skip
# What the thread takes that passes tickets on for another one. The writer waits for the end of its copies.
PASSER = {
    **{name: TICKETS["damages"][name] for name in (
        "wait", "early wait", "pass", "relaxed pass", "relaxed pass behind a fence", "relaxed wait", "narrow pass", "fence",
        "read, not written", "reset", "reset of numbers",
    )},
    "relaxed peek": (replaced(r"ld\.acquire(\.gpu\.global\.b32 %r)", r"ld.relaxed\1"), {"race"}),
    "copies in flight": (replaced(r"bulk\.wait_group 0;", "bulk.wait_group 1;"), {"race"}),
    "not handed over": (without_wait_behind("st.release.gpu"), {"race", "over-arrival", "deadlock"}),
}  # fmt: skip
CASES = {
    # A loaded operand of 8 bits that each warpgroup transposes, or a role of its own.
    "bytes": {
        **BYTES,
        "schedule": "overlap=2,persistent=none,consumers=2,stages=2,pingpong=true,transpose=0",
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
        },
    },
    "transposer": {
        **BYTES,
        "schedule": "overlap=2,persistent=none,consumers=2,stages=2,pingpong=true,transpose=4",
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            **TRANSPOSED,
        },
    },
    # Three warps of the producer's warpgroup.
    "transposing-warps": {
        **BYTES,
        "schedule": "overlap=2,persistent=none,consumers=2,stages=2,pingpong=true,transpose=3",
        "damages": {
            "fence": FENCE,
            "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 96;"), STALE),
            **TRANSPOSED,
        },
    },
    # Loaded operands that a role of its own converts to the type of Q.
    "converter": {
        "defines": ["-DT=f32", "-DKV=f8E4M3FN"],
        "schedule": "overlap=2,persistent=none,consumers=2,stages=2,pingpong=true",
        "blocks": -(-KEYS // 128),
        "buffers": attention_buffers("f32", "bf16", "e4m3", "e4m3"),
        "params": [
            tensor("q", 128), tensor("k", 64, element=1), tensor("v", 64, element=1), {"buffer": "o"}, {"value": KEYS}, {"value": 64},
        ],
        "damages": {
            "fence": (without(r"fence\.proxy\.async\.shared::cta;", "st.shared.v4"), {"missing-proxy-fence"}),
            "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 128;", "st.shared.v4"), STALE),
            # The first tile, of two loads, finds an empty slot.
            "taken": (without_wait("ld.shared.v4", 1, 2), {"slot-overwritten", "race", "over-arrival", "parity-aliasing"}),
            "filled": (without_wait("ld.shared.v4", 2), {*STALE, "uninitialised-shared", "over-arrival"}),
            "given back": (give_back_early, {*STALE, "slot-overwritten"}),
        },
    },
    # A result in shared memory of its own, in a block with several tiles.
    "staged": {
        "defines": ["-DT=bf16"],
        "schedule": "store=tma,persistent=static,consumers=2,stages=2,outer_stages=1",
        "blocks": 1,
        "buffers": attention_buffers("bf16"),
        "params": [*ATTENTION, tensor("o", 64, extents=(64, KEYS)), {"value": KEYS}],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "read": (replaced(r"cp\.async\.bulk\.wait_group\.read 0;", ""), {"slot-overwritten", "race"}),
        },
    },
    # A computed tile that is transposed on its way to shared memory, for a product of its rows.
    "transposed": {
        "defines": [],
        "schedule": "consumers=2,overlap=1,persistent=none,stages=2,store=direct",
        "blocks": 2,
        "buffers": {
            **{name: {"type": "bf16", "shape": [KEYS, 64], "fill": "random", "seed": seed} for seed, name in enumerate("xz", 1)},
            "y": {"type": "bf16", "shape": [64, 64], "fill": "random", "seed": 3},
            "w": {"type": "f32", "shape": [64, 64], "fill": "iota", "modulus": 7},
            "s": {"type": "f32", "shape": [64], "fill": "iota", "modulus": 7},
        },
        "params": [
            tensor("x", 128), tensor("y", 64, 64, (64, 64, 1)), tensor("z", 128), {"buffer": "w"}, {"buffer": "s"},
            {"value": KEYS}, {"value": 64},
        ],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "wait": (wait_less, {"slot-overwritten", "register-in-flight"}),
        },
    },
    # A tile that the consumers hand to a reducer, which adds two parts of its product to memory in turns, and a row of values
    # that each thread reads from its slot: 128 rows against 320 in steps of 64.
    "reducer": {
        "defines": ["-DFORM=1"],
        "schedule": "placement=apart,persistent=none,consumers=2,stages=2",
        "blocks": 1,
        "buffers": {
            "a": {"type": "bf16", "shape": [128, 128], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [KEYS, 128], "fill": "random", "seed": 2},
            "r": {"type": "f32", "shape": [KEYS], "fill": "iota", "modulus": 7},
            "columns": {"type": "f32", "shape": [KEYS, 128], "fill": "iota", "modulus": 7},
            "o": {"type": "bf16", "shape": [128, 128], "fill": "nan"},
        },
        "params": [
            chunks("a", 128, 128), chunks("b", KEYS, 64), row("r", KEYS, 64), chunks("columns", KEYS, 64, 4), {"buffer": "o"}, {"value": 128}, {"value": KEYS}, {"value": 128},
        ],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "sum fence": (without(r"fence\.proxy\.async\.shared::cta;", "st.shared.v2"), {"missing-proxy-fence"}),
            "read": (read_late, {"slot-overwritten", "race"}),
            "last": (release_early, {"pending-at-exit"}),
            "taken": (without_wait("stmatrix"), TAKEN),
            "row": (without_wait("ld.shared.v2"), {*STALE, "uninitialised-shared", "over-arrival"}),
        },
    },
    # A computed operand that two blocks send each other, of which each adds half of the columns of two products.
    "exchange": {
        "defines": ["-DFORM=1"],
        "schedule": "placement=apart,cluster=exchange,persistent=none,consumers=2,stages=2",
        "blocks": 2,
        "buffers": {
            "a": {"type": "bf16", "shape": [256, 128], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [KEYS, 128], "fill": "random", "seed": 2},
            "r": {"type": "f32", "shape": [KEYS], "fill": "iota", "modulus": 7},
            "columns": {"type": "f32", "shape": [KEYS, 128], "fill": "iota", "modulus": 7},
            "o": {"type": "bf16", "shape": [256, 128], "fill": "nan"},
        },
        "params": [
            chunks("a", 256, 128), tensor("a", 128, 64, (128, 256)), chunks("b", KEYS, 64, parts=2), row("r", KEYS, 64),
            tensor("columns", 64, 32, (128, KEYS), 4), {"buffer": "o"}, {"value": 256}, {"value": KEYS}, {"value": 128},
        ],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "not sent": (replaced(SENT, ""), {"deadlock", "livelock"}),
            "not expected": (not_expected, {*STALE, "transaction-underflow", "uninitialised-shared"}),
            "taken": (without_wait("stmatrix"), {*TAKEN, "transaction-underflow"}),
            "to one block": (to_one_block, {"deadlock", "livelock"}),
            "early": (early_to_one_block, {"slot-overwritten", "race"}),
            "end": (without_last_wait, {"peer-exited", "pending-at-exit", "race"}),
        },
    },
    # Tiles that one consumer hands to another one of a different program, which multiplies them from their slots, or takes
    # them into registers.
    "multiplied": {
        **DIVIDED,
        "defines": ["-DFORM=0"],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "wait": (wait_less, {"slot-overwritten", "register-in-flight"}),
        },
    },
    "crossing": {
        **DIVIDED,
        "defines": ["-DFORM=1"],
        "damages": {
            "barrier": BARRIER,
            "filled": (without_wait("ldmatrix"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "read": (give_back_unread(), {"race", "slot-overwritten"}),
        },
    },
    # Vectors of rows that one consumer hands to another one, which reads that of the next step before it multiplies.
    "vectors": {
        "schedule": "placement=divided,pingpong=true,persistent=none,stages=2",
        "defines": [],
        "blocks": 1,
        "buffers": {
            "a": {"type": "bf16", "shape": [64, 64], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [KEYS, 64], "fill": "random", "seed": 2},
            "v": {"type": "bf16", "shape": [KEYS, 128], "fill": "random", "seed": 3},
            "o": {"type": "bf16", "shape": [64, 128], "fill": "nan"},
        },
        "params": [
            chunks("a", 64, 64, columns=64), chunks("b", KEYS, 64, columns=64), chunks("v", KEYS, 64, parts=2),
            {"buffer": "o"}, {"value": 64}, {"value": KEYS}, {"type": "s64", "value": 128},
        ],
        "damages": {
            "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 128;", "st.shared.b32"), {*STALE, "uninitialised-shared"}),
            "first": (without_wait("ld.shared.b32"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "next": (without_wait("ld.shared.b32", skipped=2), {*STALE, "uninitialised-shared", "over-arrival"}),
            "read": (give_back_unread("ld.shared.b32", slice(2, 4)), {"race", "slot-overwritten"}),
        },
    },  # fmt: skip
    # The same sums in a fixed order: of four grid points, by two blocks.
    "tickets": {**TICKETS, "schedule": "placement=apart,store=tma,consumers=2,stages=2"},
    # Of a writer, who asks for the next ticket ahead, and for whom another thread passes tickets on.
    "tickets-writer": {
        **TICKETS,
        "damages": PASSER,
        "schedule": "placement=apart,store=writer,consumers=2,stages=2",
    },
    # Three pieces of a sum in a slot each, of which one is given back behind the copy of the next one.
    "tickets-pieces": {
        **TICKETS,
        "defines": [*TICKETS["defines"], "-DD=96"],
        "schedule": "placement=apart,store=writer,consumers=2,stages=2",
        "buffers": {
            **TICKETS["buffers"],
            "a": {"type": "bf16", "shape": [512, 96], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [KEYS, 96], "fill": "random", "seed": 2},
            "columns": {"type": "f32", "shape": [KEYS, 96], "fill": "iota", "modulus": 7},
            "o": {"type": "bf16", "shape": [512, 96], "fill": "nan"},
        },
        "params": [
            *({"tensor_map": {"buffer": name, "dims": [32, rows, 3], "strides": [192, 64], "box": [32, box, 3], "swizzle": 64}}
              for name, rows, box in (("a", 512, 128), ("b", KEYS, 64))),
            row("r", KEYS, 64),
            {"tensor_map": {"buffer": "columns", "dims": [32, KEYS, 3], "strides": [384, 128], "box": [32, 64, 1], "swizzle": 128}},
            {"buffer": "counter"}, {"buffer": "tickets"}, {"buffer": "o"}, {"value": 512}, {"value": KEYS}, {"value": 96},
        ],
        "damages": {
            "held slots": (replaced(r"bulk\.wait_group\.read 1;", "bulk.wait_group.read 3;"), {"slot-overwritten"}),
            "last slot": (replaced(r"bulk\.wait_group\.read 0;", "bulk.wait_group.read 1;"), {"slot-overwritten"}),
        },
    },
    # Of two pairs of blocks, which make the sums together: each block has a writer for its half of the columns.
    "tickets-pairs": {
        **TICKETS,
        "blocks": 4,
        "damages": PASSER,
        "schedule": "placement=apart,cluster=exchange,store=writer,consumers=2,stages=2",
        "buffers": {**TICKETS["buffers"], "tickets": {"type": "s32", "shape": [2 * KEYS // 64], "resets": True}},
        "params": [
            chunks("a", 512, 128), tensor("a", 128, 64, (128, 512)), chunks("b", KEYS, 64, parts=2), row("r", KEYS, 64),
            tensor("columns", 64, 32, (128, KEYS), 4), *TICKETS["params"][4:],
        ],
    },
    # Results that a writer adds to memory, in a block with several tiles: 256x128, by two parts of K = 128.
    "writer": {
        "defines": ["-DBM=128", "-DBN=64", "-DBK=64", "-DSPLITS=2"],
        "schedule": "store=writer,persistent=static,consumers=2,stages=2",
        "blocks": 1,
        "buffers": {
            "a": {"type": "bf16", "shape": [256, 128], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [128, 128], "fill": "random", "seed": 2},
            "c": {"type": "f32", "shape": [256, 128], "fill": "iota", "modulus": 7},
        },
        "params": [
            tensor("a", 128, 64, (128, 256)), tensor("b", 64, 64, (128, 128)), tensor("c", 128, 32, (128, 256), 4),
            {"value": 128}, {"value": 256}, {"value": 128},
        ],
        "damages": {
            "fence": (without(r"fence\.proxy\.async\.shared::cta;", "st.shared.v2"), {"missing-proxy-fence"}),
            "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 128;", "st.shared.v2"), STALE),
            "read": (release_early, {"slot-overwritten", "race"}),
            "taken": (without_wait("st.shared.v2"), TAKEN),
            "filled": (without_wait("cp.reduce"), {*STALE, "over-arrival", "uninitialised-shared"}),
        },
    },
    # A matrix that arithmetic reads, which each thread reads from its slot: 128 rows against 320 in steps of 64.
    "fetched": {
        "defines": [],
        "schedule": "producer=all,persistent=none,consumers=2,stages=[3, 2]",
        "blocks": 1,
        "buffers": {
            "q": {"type": "bf16", "shape": [128, 64], "fill": "random", "seed": 1},
            "k": {"type": "bf16", "shape": [KEYS, 64], "fill": "random", "seed": 2},
            "b": {"type": "f32", "shape": [128, KEYS], "fill": "iota", "modulus": 7},
            "y": {"type": "f32", "shape": [128], "fill": "nan"},
        },
        "params": [
            tensor("q", 128, 64, (64, 128, 1)), tensor("k", 64), tensor("b", 128, 32, (KEYS, 128), 4), {"buffer": "y"},
            {"value": 128}, {"value": KEYS},
        ],
        "damages": {
            "filled": (without_wait("ld.shared.v2"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "taken": (without_last_wait, TAKEN),
        },
    },
    # Rows that the threads of the producer copy: 128 of 100 by their numbers, in 5 steps of 64 columns.
    "gathered": {
        "defines": ["-DBM=128", "-DBN=64", "-DBK=64"],
        "schedule": "persistent=none,consumers=2,stages=2,store=direct",
        "blocks": 1,
        "files": {"list.bin": struct.pack("<128i", *((37 * i) % 103 - 2 for i in range(128)))},
        "buffers": {
            "a": {"type": "bf16", "shape": [100, KEYS], "fill": "random", "seed": 1},
            "list": {"raw": "list.bin", "type": "s32", "shape": [128]},
            "b": {"type": "bf16", "shape": [64, KEYS], "fill": "random", "seed": 2},
            "c": {"type": "bf16", "shape": [128, 64], "fill": "nan"},
        },
        "params": [
            tensor("b", 64, 64, (KEYS, 64)), {"buffer": "a"}, {"buffer": "list"}, {"buffer": "c"},
            {"value": KEYS}, {"value": 128}, {"value": 64}, {"value": 100}, {"value": KEYS}, {"value": 64},
        ],
        "damages": {
            "fence": (without(r"fence\.proxy\.async\.shared::cta;", "bra again;"), {"missing-proxy-fence"}),
            "filled": (without_wait("fence.proxy.async"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "taken": (without_wait("cp.async.cg"), TAKEN),
            "arrived": (arrive_before_copies, {*STALE, "uninitialised-shared"}),
        },
    },
    # Gathered rows that consumers of different programs read: each of them passes a fence of its own.
    "gathered-divided": {
        "defines": ["-DN=128"],
        "schedule": "placement=divided,persistent=none,stages=2",
        "blocks": 1,
        "files": {"list.bin": struct.pack("<64i", *((37 * i) % 103 - 2 for i in range(64)))},
        "buffers": {
            "a": {"type": "bf16", "shape": [100, 256], "fill": "random", "seed": 1},
            "list": {"raw": "list.bin", "type": "s32", "shape": [64]},
            "b": {"type": "bf16", "shape": [256, 128], "fill": "random", "seed": 2},
            "c": {"type": "f32", "shape": [64, 128], "fill": "nan"},
        },
        "params": [
            chunks("b", 256, 64, parts=2), {"buffer": "a"}, {"buffer": "list"}, {"buffer": "c"},
            {"value": 100}, {"value": 64}, {"value": 256}, {"value": 128},
        ],
        "damages": {
            "first fence": (replaced(r"(?s)fence\.proxy\.async\.shared::cta;(.*fence\.proxy)", r"\1"), {"missing-proxy-fence"}),
            "second fence": (replaced(r"(?s)(fence\.proxy.*)fence\.proxy\.async\.shared::cta;", r"\1"), {"missing-proxy-fence"}),
            "filled": (without_wait("fence.proxy.async", skipped=1), {*STALE, "uninitialised-shared", "over-arrival"}),
            "taken": (without_wait("cp.async.cg"), TAKEN),
            "arrived": (arrive_before_copies, {*STALE, "uninitialised-shared"}),
        },
    },
    # Gathered rows of 8 bits that a role of its own multiplies by numbers of rows, for 4 tiles in 4 steps of 128 columns.
    "gathered-converted": {
        "defines": ["-DUNITS=row", "-DBK=128"],
        "schedule": "persistent=static,stages=4",
        "blocks": 1,
        **GATHERED_BYTES,
        "damages": {
            "fence": (without(r"fence\.proxy\.async\.shared::cta;", "st.shared.v4"), {"missing-proxy-fence"}),
            "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 128;", "st.shared.v4"), STALE),
            "taken": (without_wait("ld.shared.v4"), TAKEN),
            "filled": (without_wait("ld.shared.v4", 2), {*STALE, "uninitialised-shared", "over-arrival"}),
            "given back": (give_back_early, {*STALE, "slot-overwritten"}),
            "arrived": (arrive_before_copies, {*STALE, "uninitialised-shared"}),
        },
    },
    # The same in two blocks, each of which gathers half of the rows and converts half of the columns: 4 tiles in 2 steps of 256.
    "converted-shared": {
        "defines": ["-DUNITS=row"],
        "schedule": "persistent=static,stages=1,cluster=2",
        "blocks": 2,
        **GATHERED_BYTES,
        "damages": {
            "fence": (without(r"fence\.proxy\.async\.shared::cta;", "st.shared.v4"), {"missing-proxy-fence"}),
            "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 128;", "st.shared.v4"), STALE),
            "not sent": (without(SENT, "st.shared.v4"), {"deadlock", "livelock"}),
            "filled": (without_wait("ld.shared.v4", 2), {*STALE, "uninitialised-shared", "over-arrival"}),
            "to one block": (to_one_block, {"deadlock", "livelock"}),
        },
    },
    # Rows that come in runs: 230 keys in pages of 16, of which the last has 6 and the table 15.
    "runs": {
        **runs_of(128, 16),
        "schedule": "persistent=none,consumers=2,stages=2",
        "blocks": 1,
        "damages": {
            "filled": (without_wait("wgmma.mma_async"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "taken": (without_last_wait, TAKEN),
            "copy": (without_last("cp.async.bulk.tensor"), {"deadlock", "livelock"}),
            "behind the table": (replaced(r"(?<!sync\.)min(\.relu)?\.s32\s+(%r\d+), (%r\d+), (%r\d+);", r"mov.b32 \2, \3;"), {"out-of-bounds"}),
            # What one lane does is done by all that find runs.
            "by all lanes": (replaced(r"selp\.b32 (%r\d+), 1, 0, p;", r"mov.b32 \1, 1;"), {"over-arrival", "transaction-underflow", "deadlock"}),
        },
    },
    # The same for two blocks, each of which copies half of the runs to both.
    "runs-shared": {
        **runs_of(256, 16),
        "schedule": "persistent=none,consumers=2,stages=2,cluster=2",
        "blocks": 2,
        "seeds": 12,
        "damages": {
            "filled": (without_wait("wgmma.mma_async"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "taken": (without_wait("mbarrier.arrive.expect_tx", skipped=1), {*TAKEN, "transaction-underflow"}),
            "copy": (without_last("cp.async.bulk.tensor"), {"deadlock", "livelock"}),
            "own block": (replaced(r"\.multicast::cluster( [^;]*), %rs\d+;", r"\1;"), {"deadlock", "livelock"}),
            "to one block": (to_one_block, {"deadlock", "livelock"}),
            "end": (without_last_wait, {"peer-exited", "pending-at-exit", "race"}),
        },
    },
    # Rows that threads gather, half of them in each of two blocks, which send these to each other.
    "gathered-shared": {
        **runs_of(256, 1),
        "schedule": "persistent=none,consumers=2,stages=2,cluster=2",
        "blocks": 2,
        "damages": {
            "fence": (replaced(r"fence\.proxy\.async\.shared::cta;", ""), {"missing-proxy-fence"}),
            "arrived": (arrive_before_copies, {*STALE, "uninitialised-shared"}),
            "come": (without_wait("fence.proxy.async"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "not sent": (replaced(SENT, ""), {"deadlock", "livelock"}),
            "not expected": (not_expected, {*STALE, "transaction-underflow", "uninitialised-shared"}),
            "filled": (without_wait("wgmma.mma_async"), {*STALE, "uninitialised-shared", "over-arrival"}),
            "taken": (without_wait("cp.async.cg"), {*TAKEN, "transaction-underflow"}),
            "to one block": (to_one_block, {"deadlock", "livelock"}),
            "end": (without_last_wait, {"peer-exited", "pending-at-exit", "race"}),
        },
    },
    # The state of a part of a range that a block sends to the one behind it.
    "sent": {
        "defines": ["-DCLUSTER=2"],
        "schedule": "stages=2",
        "blocks": 2,
        "buffers": {
            "a": {"type": "bf16", "shape": [64, KEYS], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [KEYS, 64], "fill": "random", "seed": 2},
            "c": {"type": "f32", "shape": [64, 64], "fill": "nan"},
        },
        "params": [
            tensor("a", 64, 64, (KEYS, 64)), tensor("b", 64, 64, (64, KEYS)), {"buffer": "c"},
            {"value": KEYS}, {"value": 64}, {"value": 64}, {"type": "s64", "value": 64},
        ],
        "damages": {
            "not begun": (replaced(r"barrier\.cluster\.wait\.acquire\.aligned;", ""), {"uninitialised-barrier"}),
            "not sent": (replaced(r"st\.async[^;]*\+2048\][^;]*;", ""), {"deadlock", "livelock"}),
            "not expected": (replaced(r"@p mbarrier\.arrive\.expect_tx(\.release\.cta\.shared::cta\.b64 _, \[%r\d+\]), %r\d+;", r"@p mbarrier.arrive\1;"),
                             {*STALE, "transaction-underflow", "uninitialised-shared"}),
            "not waited for": (replaced(r"(acquire\.cluster\.shared::cta\.b64 done, \[%r\d+\], 0;\n)@!done bra again;", r"\1"), {*STALE, "uninitialised-shared"}),
            "to itself": (replaced(r"or\.b32(\s+%r\d+, %r3), 1;", r"or.b32\1, 0;"), {"deadlock", "livelock", "transaction-underflow"}),
        },
    },
    # Elements of one view that different warpgroups store, load and store again.
    "ordered": {
        "defines": ["-DBM=128"],
        "schedule": "consumers=2,persistent=none",
        "blocks": 1,
        "buffers": {
            "a": {"type": "bf16", "shape": [128, 64], "fill": "random", "seed": 1},
            "b": {"type": "bf16", "shape": [64, 64], "fill": "random", "seed": 2},
            **{name: {"type": "f32", "shape": [128, 64], "fill": "nan"} for name in "co"},
            "s": {"type": "f32", "shape": [128], "fill": "nan"},
        },
        "params": [
            tensor("a", 128, 64, (64, 128, 1)), tensor("b", 64, 64, (64, 64, 1)), {"buffer": "c"}, {"buffer": "s"},
            {"buffer": "o"}, {"value": 128}, {"value": 64}, {"value": 64},
        ],
        "damages": {
            "stored again": (without_role_barrier(0), {"race"}),
            "stored": (without_role_barrier(1), {"race", "stale-data"}),
            "loaded": (without_role_barrier(2), {"race"}),
        },
    },
    # Whether any element of a tile is large: of three blocks of Y only those of the second are, with the last row of X.
    "any": {
        "defines": ["-DDOT=true"],
        "schedule": "consumers=2,persistent=none",
        "blocks": 1,
        "files": {
            "x.bin": bytes(127 * 128) + ONE * 64,
            "y.bin": bytes(64 * 128) + ONE * 64 * 64 + bytes(64 * 128),
            "counts.bin": struct.pack("<4i", 1, 2, 1, 1),
        },
        "buffers": {
            "x": {"raw": "x.bin", "type": "bf16", "shape": [128, 64]},
            "y": {"raw": "y.bin", "type": "bf16", "shape": [192, 64]},
            "counts": {"type": "s32", "shape": [1, 4], "fill": "zero", "expect": "counts.bin"},
            "sums": {"type": "f32", "shape": [2], "fill": "zero"},
        },
        "params": [
            tensor("x", 128, 64, (64, 128, 1)), tensor("y", 64, 64, (64, 192, 1)), {"buffer": "counts"}, {"buffer": "sums"},
            {"value": 192}, {"value": 4},
        ],
        "damages": {
            "alone": (each_for_itself, {"wrong-result"}),
            "half": (half_of_role, {"named-barrier-count", "wrong-result"}),
        },
    },
}  # fmt: skip


def main(source, name, directory):
    case = CASES[name]
    os.makedirs(directory, exist_ok=True)
    text, shared = compile_kernel(source, case, directory)
    write_launch(case, directory, shared)
    options = [*case.get("options", []), "--seeds", str(case.get("seeds", 8))]
    code, _, output = simulate(os.path.join(directory, "kernel.ptx"), directory, options)
    failures = code != 0
    print(output if failures else "ok   undamaged")
    for name, (damage, expected) in case["damages"].items():
        ptx = os.path.join(directory, name + ".ptx")
        with open(ptx, "w") as f:
            f.write(damage(text))
        code, kinds, output = simulate(ptx, directory, options)
        ok = code == 1 and kinds & expected if expected else code == 0
        failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {', '.join(sorted(kinds)) or 'nothing'}")
        if not ok:
            print(output)
    return failures


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
