"""Compares the simulator with a real machine.

    golden.py record DATA [--only PART]              runs every case on the GPU (libcuda, through ctypes) and stores its outputs in DATA
    golden.py check DATA SIMULATOR WORKDIR           runs every recorded case on the simulator and compares

DATA is one file, JSON lines: the case's name and its compressed outputs.
"""
import argparse
import base64
import ctypes
import json
import os
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402

SIZES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u32": 4, "f32": 4, "u64": 8}
TENSOR_TYPES = {"u8": 0, "u16": 1, "u32": 2, "f16": 6, "f32": 7, "bf16": 9}


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code:
            raise RuntimeError(f"{name} failed with {code}")

    def tensor_map(self, d, address):
        rank = len(d["dims"])
        raw = ctypes.create_string_buffer(128 + 64)
        at = (ctypes.addressof(raw) + 63) & ~63
        size = SIZES[d["type"]]
        strides, s = [], size
        for n in d["dims"][:-1]:
            s *= n
            strides.append(s)
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), TENSOR_TYPES[d["type"]], rank, ctypes.c_void_p(address),
                  (ctypes.c_uint64 * rank)(*d["dims"]), (ctypes.c_uint64 * max(1, rank - 1))(*d.get("strides", strides)),
                  (ctypes.c_uint32 * rank)(*d["box"]), (ctypes.c_uint32 * rank)(*[1] * rank), 0,
                  {0: 0, 32: 1, 64: 2, 128: 3}[d.get("swizzle", 0)], 0, int(d.get("oob") == "nan"))
        return raw, at

    def run(self, case):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(case.ptx.encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        shared = case.launch.get("shared", 0)
        self.call("cuFuncSetAttribute", function, 8, shared)
        pointers, sizes = {}, {}
        for name, b in case.launch["buffers"].items():
            n = SIZES[b["type"]]
            for x in b["shape"]:
                n *= x
            p = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(n))
            self.call("cuMemsetD8_v2", p, 0, ctypes.c_size_t(n))
            if "raw" in b:
                self.call("cuMemcpyHtoD_v2", p, ctypes.c_char_p(case.files[b["raw"]]), ctypes.c_size_t(n))
            pointers[name], sizes[name] = p, n
        keep, arguments = [], []
        for p in case.launch["params"]:
            if "tensor_map" in p:
                raw, at = self.tensor_map(p["tensor_map"], pointers[p["tensor_map"]["buffer"]].value)
                keep.append(raw)
                arguments.append(at)
            else:
                arguments.append(ctypes.addressof(pointers[p["buffer"]]))
        array = (ctypes.c_void_p * len(arguments))(*arguments)
        self.call("cuLaunchKernel", function, case.launch["grid"], 1, 1, case.launch["block"], 1, 1, shared, None, array, None)
        self.call("cuCtxSynchronize")
        out = ctypes.create_string_buffer(sizes["out"])
        self.call("cuMemcpyDtoH_v2", out, pointers["out"], ctypes.c_size_t(sizes["out"]))
        for p in pointers.values():
            self.call("cuMemFree_v2", p)
        self.call("cuModuleUnload", module)
        return out.raw


def record(args):
    gpu = Gpu()
    with open(args.data, "w") as f:
        for case in cases.all_cases():
            if args.only in case.name:
                data = base64.b64encode(zlib.compress(gpu.run(case), 9)).decode()
                f.write(json.dumps({"case": case.name, "out": data}) + "\n")
                print(case.name, len(data), flush=True)


def ordered(word):
    """Floats as integers in the same order."""
    return word if word < 1 << 31 else (1 << 31) - word


def mismatch(case, got, want):
    """The first difference beyond what the case allows, or None; and the largest one."""
    halves = case.launch["buffers"]["out"]["type"] == "f16"
    if case.tolerance is None:
        for k in range(0, len(want), 4):
            if got[k : k + 4] != want[k : k + 4]:
                return f"word {k // 4}: {got[k:k + 4][::-1].hex()}, the machine has {want[k:k + 4][::-1].hex()}"
        return None
    how, bound = case.tolerance
    code, size = ("e", 2) if halves else ("f", 4)
    n = len(want) // size
    a, b = struct.unpack(f"<{n}{code}", got), struct.unpack(f"<{n}{code}", want)
    largest = max((abs(x) for x in b if x == x and abs(x) != float("inf")), default=0)
    words_a, words_b = (struct.unpack(f"<{n}I", x) for x in (got, want)) if not halves else (a, b)
    for k in range(n):
        if a[k] == b[k] or (a[k] != a[k] and b[k] != b[k]):
            continue
        # lg2 near one: the ISA bounds the absolute error.
        good = how == "log" and abs(a[k] - b[k]) <= 2.0**-22
        good = good or abs(ordered(words_a[k]) - ordered(words_b[k])) <= bound if how in ("ulp", "log") else abs(a[k] - b[k]) <= bound * largest
        if not good:
            return f"element {k}: {a[k]!r}, the machine has {b[k]!r}"
    return None


def check(args):
    with open(args.data) as f:
        recorded = {}
        for line in f:
            entry = json.loads(line)
            recorded[entry["case"]] = zlib.decompress(base64.b64decode(entry["out"]))
    os.makedirs(args.work, exist_ok=True)
    failures = count = 0
    for case in cases.all_cases():
        if case.name not in recorded or args.only not in case.name:
            continue
        count += 1
        case.launch["buffers"]["out"]["output"] = "out.bin"
        for name, data in case.files.items():
            with open(os.path.join(args.work, name), "wb") as f:
                f.write(data)
        with open(os.path.join(args.work, "k.ptx"), "w") as f:
            f.write(case.ptx)
        with open(os.path.join(args.work, "launch.json"), "w") as f:
            json.dump(case.launch, f)
        run = subprocess.run([args.simulator, os.path.join(args.work, "k.ptx"), "--launch", os.path.join(args.work, "launch.json")],
                             capture_output=True, text=True)
        problem = run.stderr.strip() if run.returncode else None
        if not problem:
            with open(os.path.join(args.work, "out.bin"), "rb") as f:
                problem = mismatch(case, f.read(), recorded[case.name])
        if problem:
            failures += 1
            print(f"FAIL {case.name}: {problem}")
    print(f"{count} cases, {failures} failures")
    return 1 if failures or not count else 0


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "check"):
        p = commands.add_parser(name)
        p.add_argument("data")
        p.add_argument("--only", default="")
        if name == "check":
            p.add_argument("simulator")
            p.add_argument("work")
    args = parser.parse_args()
    return record(args) if args.command == "record" else check(args)


if __name__ == "__main__":
    sys.exit(main())
