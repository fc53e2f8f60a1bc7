"""Small PTX programs, one per instruction family, swizzle, descriptor mode and conversion, with their inputs.

A case is (PTX text, launch description as in docs/simulator.md with its files in memory, how to compare). golden.py runs them.
"""
import random
import struct

HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
REGISTERS = (
    ".reg .b32 %r<64>; .reg .b64 %d<32>; .reg .f32 %f<64>; .reg .f64 %g<16>; .reg .b16 %h<32>; .reg .pred %p<16>;\n"
)


class Case:
    def __init__(self, name, ptx, launch, files, tolerance=None):
        self.name, self.ptx, self.launch, self.files = name, ptx, launch, files
        self.tolerance = tolerance  # None: bit for bit; ("ulp", n): f32 outputs; ("relative", x): f32, of the largest


def elementwise(name, code, inputs, tolerance=None):
    """Every thread loads %r1, %r2 and stores %r3. `inputs` are pairs of 32-bit words."""
    n = len(inputs)
    ptx = (
        HEADER + ".visible .entry k(.param .u64 in, .param .u64 out) {\n" + REGISTERS
        + "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r10, %ctaid.x; mov.u32 %r11, %tid.x;\n"
        + "mad.lo.u32 %r12, %r10, 256, %r11; mul.wide.u32 %d3, %r12, 8; add.u64 %d1, %d1, %d3;\n"
        + "mul.wide.u32 %d3, %r12, 4; add.u64 %d2, %d2, %d3; ld.global.v2.u32 {%r1, %r2}, [%d1];\n"
        + code + "\nst.global.u32 [%d2], %r3;\nret;\n}\n"
    )
    data = b"".join(struct.pack("<2I", a & 0xFFFFFFFF, b & 0xFFFFFFFF) for a, b in inputs)
    launch = {
        "grid": n // 256, "block": 256,
        "buffers": {"in": {"raw": "in.bin", "type": "u32", "shape": [n, 2]}, "out": {"type": "f32" if tolerance else "u32", "shape": [n]}},
        "params": [{"buffer": "in"}, {"buffer": "out"}],
    }
    return Case(name, ptx, launch, {"in.bin": data}, tolerance)


def interesting_floats(n, rng):
    """Random bit patterns, random magnitudes around one, and the special values."""
    special = [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 0x33000000, 0x477FF000, 0x477FEFFF]
    words = [s | sign for s in special for sign in (0, 1 << 31)]
    while len(words) < n // 2:
        words.append(rng.getrandbits(32))
    while len(words) < n:
        words.append(struct.unpack("<I", struct.pack("<f", rng.gauss(0, 4)))[0])
    return words


def conversions(rng):
    halves = [(v, 0) for v in range(65536)]
    split = "mov.b32 {%h1, %h2}, %r1; "
    for source, code in {
        "f16-f32": "cvt.f32.f16 %r3, %h1;",
        "bf16-f32": "cvt.f32.bf16 %r3, %h1;",
        "f16-s32": "cvt.rni.s32.f16 %r3, %h1;",
        "f16-u16-rz": "cvt.rzi.u16.f16 %h3, %h1; mov.b32 %r3, {%h3, %h3};",
        "e4m3x2-f16x2": "cvt.rn.f16x2.e4m3x2 %r3, %h1;",
        "e5m2x2-f16x2": "cvt.rn.f16x2.e5m2x2 %r3, %h1;",
        "f16x2-e4m3x2": "mov.b32 %r4, {%h1, %h1}; cvt.rn.satfinite.e4m3x2.f16x2 %h3, %r4; mov.b32 %r3, {%h3, %h3};",
        "f16x2-e5m2x2": "mov.b32 %r4, {%h1, %h1}; cvt.rn.satfinite.e5m2x2.f16x2 %h3, %r4; mov.b32 %r3, {%h3, %h3};",
        "s16-f16": "cvt.rn.f16.s16 %h3, %h1; mov.b32 %r3, {%h3, %h3};",
    }.items():
        yield elementwise("cvt-" + source, split + code, halves)
    words = interesting_floats(16384, rng)
    pairs = list(zip(words, words[1:] + words[:1]))
    for name, code in {
        "f16": "cvt.rn.f16.f32 %h3, %r1; mov.b32 %r3, {%h3, %h3};",
        "f16-rz": "cvt.rz.f16.f32 %h3, %r1; mov.b32 %r3, {%h3, %h3};",
        "bf16": "cvt.rn.bf16.f32 %h3, %r1; mov.b32 %r3, {%h3, %h3};",
        "bf16-rz": "cvt.rz.bf16.f32 %h3, %r1; mov.b32 %r3, {%h3, %h3};",
        "f16x2": "cvt.rn.f16x2.f32 %r3, %r1, %r2;",
        "bf16x2": "cvt.rn.bf16x2.f32 %r3, %r1, %r2;",
        "bf16x2-relu": "cvt.rn.relu.bf16x2.f32 %r3, %r1, %r2;",
        "e4m3x2": "cvt.rn.satfinite.e4m3x2.f32 %h3, %r1, %r2; mov.b32 %r3, {%h3, %h3};",
        "e5m2x2": "cvt.rn.satfinite.e5m2x2.f32 %h3, %r1, %r2; mov.b32 %r3, {%h3, %h3};",
        "tf32": "cvt.rna.tf32.f32 %r3, %r1;",
        "s32": "cvt.rni.s32.f32 %r3, %r1;",
        "u32": "cvt.rzi.u32.f32 %r3, %r1;",
        "s64": "cvt.rmi.s64.f32 %d4, %r1; mov.b64 {%r4, %r5}, %d4; xor.b32 %r3, %r4, %r5;",
        "floor": "cvt.rmi.f32.f32 %r3, %r1;",
        "sat": "cvt.sat.f32.f32 %r3, %r1;",
        "from-s32": "cvt.rn.f32.s32 %r3, %r1;",
        "from-u32-rp": "cvt.rp.f32.u32 %r3, %r1;",
        "f64": "cvt.f64.f32 %g1, %r1; cvt.f64.f32 %g2, %r2; mul.f64 %g3, %g1, %g2; cvt.rn.f32.f64 %r3, %g3;",
    }.items():
        yield elementwise("cvt-f32-" + name, code, pairs)


def arithmetic(rng):
    words = interesting_floats(8192, rng)
    pairs = list(zip(words, words[1:] + words[:1]))
    for op in ("add", "sub", "mul"):
        for modifiers in ("", ".rz", ".rm", ".rp", ".ftz", ".sat", ".rz.ftz.sat"):
            yield elementwise(f"{op}{modifiers}", f"{op}{modifiers}.f32 %r3, %r1, %r2;", pairs)
    for name, code in {
        "fma": "fma.rn.f32 %r3, %r1, %r2, %r1;",
        "fma-rz": "fma.rz.f32 %r3, %r1, %r2, %r1;",
        "div-rn": "div.rn.f32 %r3, %r1, %r2;",
        "sqrt-rn": "sqrt.rn.f32 %r3, %r1;",
        "rcp-rn": "rcp.rn.f32 %r3, %r1;",
        "max": "max.f32 %r3, %r1, %r2;",
        "max-nan": "max.NaN.f32 %r3, %r1, %r2;",
        "min-ftz": "min.ftz.f32 %r3, %r1, %r2;",
        "add-f16x2": "add.f16x2 %r3, %r1, %r2;",
        "fma-f16x2": "fma.rn.f16x2 %r3, %r1, %r2, %r1;",
        "mul-bf16x2": "mul.rn.bf16x2 %r3, %r1, %r2;",
        "fma-bf16x2": "fma.rn.bf16x2 %r3, %r1, %r2, %r1;",
        "max-f16x2": "max.f16x2 %r3, %r1, %r2;",
        "min-nan-bf16x2": "min.NaN.bf16x2 %r3, %r1, %r2;",
    }.items():
        yield elementwise(name, code, pairs)
    for op in ("ex2.approx.ftz", "lg2.approx.ftz", "rcp.approx.ftz", "rsqrt.approx.ftz", "sqrt.approx.ftz"):
        yield elementwise(op, f"{op}.f32 %r3, %r1;", pairs, ("ulp", 4) if op[:3] != "lg2" else ("log", 4))
    small = [(struct.unpack("<I", struct.pack("<f", rng.uniform(-3, 3)))[0], 0) for _ in range(8192)]
    for op in ("sin.approx", "cos.approx", "tanh.approx"):
        yield elementwise(op, f"{op}.f32 %r3, %r1;", small, ("relative", 2.0 ** -10.5))


def integers(rng):
    pairs = [(rng.getrandbits(32), rng.getrandbits(32) >> rng.randrange(32)) for _ in range(4096)]
    for name, code in {
        "mul-hi-s32": "mul.hi.s32 %r3, %r1, %r2;", "mad-hi-u32": "mad.hi.u32 %r3, %r1, %r2, %r1;",
        "div-s32": "or.b32 %r4, %r2, 1; div.s32 %r3, %r1, %r4;", "rem-s32": "or.b32 %r4, %r2, 1; rem.s32 %r3, %r1, %r4;",
        "div-zero": "div.u32 %r3, %r1, 0;", "rem-zero": "rem.u32 %r3, %r1, 0;",
        "bfe-u32": "and.b32 %r4, %r2, 255; shr.u32 %r5, %r2, 8; bfe.u32 %r3, %r1, %r4, %r5;",
        "bfe-s32": "and.b32 %r4, %r2, 63; shr.u32 %r5, %r1, 26; bfe.s32 %r3, %r1, %r4, %r5;",
        "bfi": "and.b32 %r4, %r2, 63; shr.u32 %r5, %r1, 26; bfi.b32 %r3, %r1, %r2, %r4, %r5;",
        "prmt": "prmt.b32 %r3, %r1, 0x12345678, %r2;", "prmt-f4e": "prmt.b32.f4e %r3, %r1, %r2, %r2;",
        "prmt-b4e": "prmt.b32.b4e %r3, %r1, %r2, %r2;", "prmt-rc8": "prmt.b32.rc8 %r3, %r1, %r2, %r2;",
        "prmt-ecl": "prmt.b32.ecl %r3, %r1, %r2, %r2;", "prmt-ecr": "prmt.b32.ecr %r3, %r1, %r2, %r2;",
        "prmt-rc16": "prmt.b32.rc16 %r3, %r1, %r2, %r2;",
        "shf-l-wrap": "shf.l.wrap.b32 %r3, %r1, %r2, %r2;", "shf-r-clamp": "shf.r.clamp.b32 %r3, %r1, %r2, %r2;",
        "shl": "shl.b32 %r3, %r1, %r2;", "shr-s32": "shr.s32 %r3, %r1, %r2;", "lop3": "lop3.b32 %r3, %r1, %r2, 0x0ff0, 0xca;",
        "bfind": "bfind.s32 %r3, %r1;", "bfind-shift": "bfind.shiftamt.u32 %r3, %r2;", "brev": "brev.b32 %r3, %r1;",
        "sad": "sad.s32 %r3, %r1, %r2, %r1;", "dp4a": "dp4a.s32.u32 %r3, %r1, %r2, %r1;", "dp2a": "dp2a.hi.u32.s32 %r3, %r1, %r2, %r1;",
        "mul24": "mul24.lo.s32 %r3, %r1, %r2;", "add-sat": "add.sat.s32 %r3, %r1, %r2;",
        "carry": "add.cc.u32 %r4, %r1, %r2; addc.cc.u32 %r5, %r1, %r2; addc.u32 %r3, %r4, %r5;",
        "borrow": "sub.cc.u32 %r4, %r1, %r2; subc.u32 %r3, %r4, %r1;",
        "shfl-up": "and.b32 %r4, %r2, 31; shfl.sync.up.b32 %r5|%p1, %r1, 3, 0, -1; selp.u32 %r6, 1, 0, %p1; xor.b32 %r3, %r5, %r6;",
        "shfl-down": "shfl.sync.down.b32 %r5|%p1, %r1, 5, 0x181f, -1; selp.u32 %r6, 1, 0, %p1; xor.b32 %r3, %r5, %r6;",
        "shfl-bfly": "shfl.sync.bfly.b32 %r5|%p1, %r1, 9, 0x1807, -1; selp.u32 %r6, 1, 0, %p1; xor.b32 %r3, %r5, %r6;",
        "shfl-idx": "shfl.sync.idx.b32 %r5|%p1, %r1, %r2, 0x1803, -1; selp.u32 %r6, 1, 0, %p1; xor.b32 %r3, %r5, %r6;",
        "match": "and.b32 %r4, %r1, 3; match.any.sync.b32 %r3, %r4, -1;",
        "redux": "redux.sync.max.s32 %r3, %r1, -1;",
        "vote": "setp.lt.u32 %p1, %r1, %r2; vote.sync.ballot.b32 %r3, %p1, -1;",
    }.items():
        yield elementwise("int-" + name, code, pairs)


def tensor_loads():
    """Loads of every rank and swizzle, partly out of bounds; shared memory is written out as it is."""
    for rank in range(1, 6):
        for swizzle in (0, 32, 64, 128):
            for fill in ("zero", "nan"):
                if fill == "nan" and (rank, swizzle) != (2, 0):
                    continue
                inner = 64 if swizzle == 0 else swizzle // 2
                dims = [80, 7, 5, 3, 2][:rank]
                box = [inner, 4, 3, 2, 2][:rank]
                start = [64 - inner // 2, 4, -1, 2, 1][:rank]
                size = 2
                for b in box:
                    size *= b
                count = 1
                for d in dims:
                    count *= d
                data = b"".join(struct.pack("<H", (0x3C00 + 7 * k) & 0x7BFF) for k in range(count))
                coordinates = ", ".join(f"%r{20 + k}" for k in range(rank))
                moves = "".join(f"mov.b32 %r{20 + k}, {c}; " for k, c in enumerate(start))
                ptx = (
                    HEADER + ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {\n" + REGISTERS
                    + "mov.u32 %r1, smem; mov.u32 %r2, %tid.x; mov.b64 %d1, map; cvta.param.u64 %d1, %d1; add.u32 %r3, %r1, 32768;\n"
                    + moves + "setp.ne.u32 %p1, %r2, 0; @%p1 bra W;\n"
                    + "mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n"
                    + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size};\n"
                    + f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {{{coordinates}}}], [%r3];\n"
                    + "W: bar.sync 0;\nL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra L;\n"
                    + "ld.param.u64 %d2, [out]; mul.wide.u32 %d3, %r2, 4; add.u64 %d2, %d2, %d3; shl.b32 %r4, %r2, 2; add.u32 %r4, %r4, %r1;\n"
                    + f"C: setp.ge.u32 %p3, %r4, %r5; ".replace("%r5", "%r6")
                ).replace("C: setp.ge.u32 %p3, %r4, %r6; ", f"add.u32 %r6, %r1, {size};\nC: setp.ge.u32 %p3, %r4, %r6; @%p3 bra E;\n")
                ptx += "ld.shared.u32 %r5, [%r4]; st.global.u32 [%d2], %r5; add.u32 %r4, %r4, 512; add.u64 %d2, %d2, 512; bra C;\nE: ret;\n}\n"
                tensor = {"buffer": "in", "type": "f16", "dims": dims, "box": box, "swizzle": swizzle, "oob": fill}
                launch = {
                    "grid": 1, "block": 128, "shared": 32768 + 16,
                    "buffers": {"in": {"raw": "in.bin", "type": "f16", "shape": [count]}, "out": {"type": "u32", "shape": [size // 4]}},
                    "params": [{"tensor_map": tensor}, {"buffer": "out"}],
                }
                yield Case(f"tma-{rank}d-swizzle{swizzle}-{fill}", ptx, launch, {"in.bin": data})


def wgmma(rng):
    """One wgmma per operand type, swizzle, major and place of A. Operands are loaded by TMA; the accumulators are written out."""
    types = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1}
    for kind, size in types.items():
        for swizzle in (0, 32, 64, 128):
            for majors in range(4 if size == 2 else 1):
                for in_registers in (False, True):
                    for accumulator in ("f32", "f16"):
                        if (accumulator == "f16" and kind in ("bf16", "tf32")) or (in_registers and majors & 1):
                            continue
                        yield wgmma_case(rng, kind, size, swizzle, bool(majors & 1), bool(majors & 2), in_registers, accumulator)


def wgmma_case(rng, kind, size, swizzle, a_mn, b_mn, in_registers, accumulator):
    k, n, unit = 32 // size, 64, swizzle or 16
    width = max(k, swizzle // size)  # of a K-major operand: at least a row of the swizzle

    def operand(mn_major, rows, base, name, register):
        inner, outer = (rows, k) if mn_major else (width, rows)
        box = unit * outer
        loads, at = "", 0
        for x in range(0, inner, unit // size):
            loads += (f"add.u32 %r9, %r1, {base + at}; mov.u32 %r8, {x};\ncp.async.bulk.tensor.2d.shared::cluster.global.tile."
                      f"mbarrier::complete_tx::bytes [%r9], [%d{register}, {{%r8, %r7}}], [%r2];\n")
            at += box
        if not mn_major:
            leading, stride = (16 if swizzle else box), 8 * unit
        elif swizzle:
            leading, stride = box, 8 * unit
        else:
            leading, stride = 128, box
        high = {0: 0, 32: 3, 64: 2, 128: 1}[swizzle] << 62 | (stride >> 4) << 32 | (leading >> 4) << 16
        descriptor = (f"add.u32 %r10, %r1, {base}; and.b32 %r10, %r10, 262143; shr.u32 %r10, %r10, 4; cvt.u64.u32 %d{register + 2}, %r10; "
                      f"or.b64 %d{register + 2}, %d{register + 2}, {high:#x};\n")
        words = []
        for _ in range(inner * outer):
            v = rng.gauss(0, 1)
            bits = struct.unpack("<I", struct.pack("<f", v))[0]
            if kind == "f16":
                words.append(struct.pack("<e", v))
            elif kind == "bf16":
                words.append(struct.pack("<H", bits >> 16))
            elif kind == "tf32":
                words.append(struct.pack("<I", bits))
            else:  # finite 8-bit patterns of moderate size
                words.append(bytes([rng.getrandbits(1) << 7 | rng.randrange(0x20 if kind == "e4m3" else 0x30, 0x48)]))
        tensor = {"buffer": name, "type": {1: "u8", 2: "u16", 4: "f32"}[size], "dims": [inner, outer], "box": [unit // size, outer], "swizzle": swizzle}
        return loads, at, descriptor, b"".join(words), tensor, inner * outer

    la, ba, da, wa, ta, na = operand(a_mn, 64, 0, "a", 1)
    lb, bb, db, wb, tb, nb = operand(b_mn, n, 32768, "b", 2)
    db = db.replace("%d4", "%d4")
    count = 32 if accumulator == "f32" else 16
    regs = ", ".join(f"%c{r}" for r in range(count))
    decl = f".reg .{'f32' if accumulator == 'f32' else 'b32'} %c<{count}>; .reg .b32 %a<4>;\n"
    first, load_a = "%d3", ""
    if in_registers:
        first = "{%a0, %a1, %a2, %a3}"
        load_a = ("shr.u32 %r11, %r0, 5; and.b32 %r12, %r0, 31; shr.u32 %r13, %r12, 2; mad.lo.u32 %r13, %r11, 16, %r13; and.b32 %r14, %r12, 3;\n"
                  "ld.param.u64 %d7, [pa];\n")
        for r in range(4):
            load_a += (f"add.u32 %r15, %r13, {8 * (r & 1)}; mul.lo.u32 %r15, %r15, {width * size}; mad.lo.u32 %r15, %r14, 4, %r15; "
                       f"add.u32 %r15, %r15, {16 * (r // 2)}; cvt.u64.u32 %d8, %r15; add.u64 %d8, %d8, %d7; ld.global.u32 %a{r}, [%d8];\n")
    tail = "" if size != 2 else f", {int(b_mn)}" if in_registers else f", {int(a_mn)}, {int(b_mn)}"
    ptx = (
        HEADER + ".visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 out, .param .u64 pa) {\n"
        + REGISTERS + decl + "mov.u32 %r1, smem; mov.u32 %r0, %tid.x; add.u32 %r2, %r1, 65536; mov.b64 %d1, ma; cvta.param.u64 %d1, %d1;\n"
        + "mov.b64 %d2, mb; cvta.param.u64 %d2, %d2; mov.u32 %r7, 0; setp.ne.u32 %p1, %r0, 0; @%p1 bra W;\n"
        + "mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n"
        + f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {ba + bb};\n" + la + lb
        + "W: bar.sync 0;\nL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra L;\n" + load_a + da + db
        + "setp.ne.u32 %p3, %r0, %r0;\nwgmma.fence.sync.aligned;\n"
        + f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{accumulator}.{kind}.{kind} {{{regs}}}, {first}, %d4, %p3, 1, 1{tail};\n"
        + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
        + "ld.param.u64 %d5, [out]; mul.wide.u32 %d6, %r0, 128; add.u64 %d5, %d5, %d6;\n"
        + "".join(f"st.global.b32 [%d5+{4 * r}], %c{r};\n" for r in range(count)) + "ret;\n}\n"
    )
    element = {1: "u8", 2: "u16", 4: "f32"}[size]
    launch = {
        "grid": 1, "block": 128, "shared": 65536 + 16,
        "buffers": {"a": {"raw": "a.bin", "type": element, "shape": [na]}, "b": {"raw": "b.bin", "type": element, "shape": [nb]},
                    "out": {"type": "f32" if accumulator == "f32" else "f16", "shape": [128 * 32 * (1 if accumulator == "f32" else 2)]}},
        "params": [{"tensor_map": ta}, {"tensor_map": tb}, {"buffer": "out"}, {"buffer": "a"}],
    }
    name = f"wgmma-{kind}-{accumulator}-swizzle{swizzle}-a{'mn' if a_mn else 'k'}{'r' if in_registers else 's'}-b{'mn' if b_mn else 'k'}"
    bound = 2.0 ** -10 if accumulator == "f16" else 2.0 ** -12 if size == 1 else 2.0 ** -20
    return Case(name, ptx, launch, {"a.bin": wa, "b.bin": wb}, ("relative", bound))


def all_cases():
    rng = random.Random(11)
    for generator in (conversions(rng), arithmetic(rng), integers(rng), tensor_loads(), wgmma(rng)):
        yield from generator
