"""Attention forward in Triton, a peer for attention.py: plain online softmax, tiles chosen by measuring a few.

Sequences are multiples of 128, head dimensions powers of two; bench/peers.py leaves others out.
"""

import math

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"BM": bm, "BN": bn}, num_warps=warps, num_stages=stages)
    for bm, bn, warps, stages in (
        (128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (128, 64, 8, 2), (128, 32, 8, 3), (64, 64, 4, 3),
    )
]  # fmt: skip


@triton.jit
def attend(acc, sums, maxima, q, k_pointers, v_pointers, k_step, v_step, rows, scale2, begin, end,
           MASKED: tl.constexpr, BN: tl.constexpr):  # fmt: skip
    """The blocks of keys from `begin` to `end`; exponents are to base 2, scale2 = scale * log2(e)."""
    for column in tl.range(begin, end, BN):
        k = tl.load(k_pointers + column.to(tl.int64) * k_step)
        s = tl.dot(q, k)
        if MASKED:
            columns = column + tl.arange(0, BN)
            s = tl.where(rows[:, None] >= columns[None, :], s, float("-inf"))
        highest = tl.maximum(maxima, tl.max(s, 1) * scale2)
        p = tl.exp2(s * scale2 - highest[:, None])
        shrink = tl.exp2(maxima - highest)
        sums = sums * shrink + tl.sum(p, 1)
        v = tl.load(v_pointers + column.to(tl.int64) * v_step)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        maxima = highest
    return acc, sums, maxima


@triton.autotune(CONFIGURATIONS, key=["S", "D", "DV", "CAUSAL"])
@triton.jit
def forward(q, k, v, o, lse, scale2, H, GROUP, S,
            q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head, o_batch, o_row, o_head,
            D: tl.constexpr, DV: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # fmt: skip
    """One tile of BM rows, longest first where there is a causal mask; BN divides BM and BM divides S."""
    tile = tl.program_id(0)
    if CAUSAL:
        tile = tl.num_programs(0) - 1 - tile
    head, batch = tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows = tile * BM + tl.arange(0, BM)
    depth, width, keys = tl.arange(0, D), tl.arange(0, DV), tl.arange(0, BN)
    q_tile = tl.load(q + batch * q_batch + head * q_head + rows[:, None].to(tl.int64) * q_row + depth[None, :])
    k_pointers = k + batch * k_batch + head // GROUP * k_head + keys[None, :] * k_row + depth[:, None]
    v_pointers = v + batch * v_batch + head // GROUP * v_head + keys[:, None] * v_row + width[None, :]
    maxima = tl.full([BM], float("-inf"), tl.float32)
    sums = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, DV], tl.float32)
    unmasked = tile * BM if CAUSAL else S
    acc, sums, maxima = attend(
        acc, sums, maxima, q_tile, k_pointers, v_pointers, k_row, v_row, rows, scale2, 0, unmasked, False, BN
    )
    if CAUSAL:
        acc, sums, maxima = attend(
            acc,
            sums,
            maxima,
            q_tile,
            k_pointers,
            v_pointers,
            k_row,
            v_row,
            rows,
            scale2,
            unmasked,
            unmasked + BM,
            True,
            BN,
        )
    o_pointers = o + batch * o_batch + head * o_head + rows[:, None].to(tl.int64) * o_row + width[None, :]
    tl.store(o_pointers, (acc / sums[:, None]).to(o.dtype.element_ty))
    log2e: tl.constexpr = 1.4426950408889634
    tl.store(lse + (batch * H + head) * S + rows, (maxima + tl.log2(sums)) / log2e)


def run(q, k, v, o, lse, causal, scale):
    """q, o [B, S, H, D or DV] and k, v [B, S, HK, D or DV], the last dimension dense; lse [B, H, S] dense."""
    batch, seqlen, heads, d = q.shape
    group = heads // k.shape[2]
    strides = [stride for tensor in (q, k, v, o) for stride in tensor.stride()[:3]]
    forward[lambda meta: (seqlen // meta["BM"], heads, batch)](
        q, k, v, o, lse, scale / math.log(2), heads, group, seqlen, *strides, D=d, DV=v.shape[3], CAUSAL=causal
    )
    return o


def contestant(q, k, v, causal, scale):
    """A function that launches the kernel and returns O as [B, H, S, DV]."""
    batch, seqlen, heads, _ = q.shape
    o = q.new_empty((batch, seqlen, heads, v.shape[3]))
    lse = torch.empty((batch, heads, seqlen), device=q.device)
    return lambda: run(q, k, v, o, lse, causal, scale).transpose(1, 2)
