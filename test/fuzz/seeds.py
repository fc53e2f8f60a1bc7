#!/usr/bin/env python3
"""Writes the inputs that fuzzing starts from: OUT/TARGET/*, one directory a target.

They are the repository's own sources, PTX and launch files, and what the compiler makes of small
kernels; the few that no file of the repository holds are made here.
"""

import argparse
import json
import pathlib
import re
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sections(path):
    """The parts of a test that split-file cuts, or the whole of it."""
    parts = re.split(r"^//--- (.*)\n", path.read_text(), flags=re.M)
    return [(path.name, parts[0])] if len(parts) == 1 else list(zip(parts[1::2], parts[2::2]))


def collect(folders, suffix, most):
    """Texts with a suffix in tests and their parts, at most so many bytes long."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in (suffix, ".test"):
                for name, text in sections(path):
                    if name.endswith(suffix) and len(text) <= most:
                        yield text


def npy(descr, shape, data):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def bundles(tessera):
    """A bundle of a small kernel, with PTX, the same without its image, and one with a choice without its image."""

    def compile(source, *options):
        command = [tessera, "compile", ROOT / source, "--emit", "bundle", "--ptx", *options, "-o", "-"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def strip(text):
        bundle = json.loads(text)
        bundle["image"]["base64"] = "AA=="
        return json.dumps(bundle)

    text = compile("test/Tools/tune/Inputs/product.tile")
    choice = compile("kernels/attention_fwd.tile", "-DD=64", "-DCAUSAL=true", "--alternatives")
    return [text, strip(text), strip(choice)]


LAUNCH = {
    "grid": [4, 1, 1], "block": 64, "cluster": 2, "shared": 1024, "registers": 168,
    "buffers": {"q": {"type": "bf16", "shape": [16, 64], "fill": "iota", "modulus": 7, "scale": 0.5},
                "o": {"type": "f32", "shape": [1, 8], "fill": "nan", "tolerance": 0.01},
                "r": {"type": "e4m3", "shape": [32], "fill": "random", "seed": 3},
                "c": {"type": "s16", "shape": [32], "fill": "constant", "value": -2, "readonly": True}},
    "params": [{"tensor_map": {"buffer": "q", "dims": [64, 16], "strides": [128], "box": [64, 8],
                               "element_strides": [1, 1], "swizzle": 128, "oob": "nan", "offset": 0}},
               {"buffer": "o", "offset": 4}, {"type": "f32", "value": 0.125}, {"hex": "00ff00ff"}],
    "shared_names": [{"name": "K.full", "offset": 0, "stride": 8, "count": 2, "static": True}],
    "roles": [{"name": "producer", "first_warp": 0, "warps": 4}], "barrier_names": [{"id": 1, "name": "turn"}],
}


def seeds(tessera):
    tile = list(collect(["kernels"], ".tile", 1 << 16)) + list(collect(["test"], ".tile", 6000))
    yield "source", tile
    yield "compile", [text for text in tile if "tile.kernel" in text]
    yield "ptx", collect(["test/Simulator"], ".ptx", 1 << 16)
    yield "launch", list(collect(["test/Simulator"], ".json", 4096)) + [json.dumps(LAUNCH)]
    yield "bundle", bundles(tessera)
    yield "npy", [npy("<f4", (2, 3), bytes(24)), npy("<f2", (4,), bytes(8)), npy("<i4", (), bytes(4)),
                  npy("<f8", (0, 5), b""), b"\x93NUMPY\x02\x00\x20\x00\x00\x00{'descr': '<f4', }"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tessera", default=ROOT / "build/bin/tessera")
    arguments = parser.parse_args()
    for target, inputs in seeds(arguments.tessera):
        folder = arguments.out / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(inputs):
            content = content if isinstance(content, bytes) else content.encode()
            (folder / f"{number:03}").write_bytes(content)


if __name__ == "__main__":
    main()
