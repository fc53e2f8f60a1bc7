#!/usr/bin/env python3
"""Compiles the bundles that the wheel has, so that a first call compiles nothing.

    TESSERA_LIBRARY=BUILD_TREE/lib scripts/compile_bundles.py OUTPUT_DIRECTORY [--only TEXT]

Attention of both types, all widths of tiles, the usual masks, with and without the LSE and with head dimensions between the
widths: for the class of most shapes, and without padding for each class that the database has. And their gradients. Needs
ptxas.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from tessera import _cache, _compile, _variants  # noqa: E402

MASKS = ("attention_fwd CAUSAL=false", "attention_fwd CAUSAL=true", "attention_variants MASK=window")


def find_classes(parameters):
    """The classes of shapes for which the database has an entry of the same mask and width."""
    entries = json.loads((ROOT / "kernels" / "schedules.json").read_text())["entries"]
    return {
        entry["class"]
        for entry in entries
        if entry["kernel"] == "attention_fwd"
        and all(entry["parameters"].get(name) == parameters.get(name) for name in ("T", "D", "DV", "CAUSAL"))
    }


def list_requests():
    """(source, request) of each bundle."""
    flags = (False, True)
    for text, kind, width, padded, lse in itertools.product(MASKS, ("bf16", "f16"), _variants.WIDTHS, flags, flags):
        variant = _variants.Variant(text, kind, width, width, padded, lse)
        classes = {_variants.DEFAULT_CLASS}
        if not padded:
            classes |= find_classes(_compile.to_texts(variant.parameters))
        for shape_class in sorted(classes):
            yield variant.source, _compile.make_request(variant.parameters, shape_class=shape_class, alternatives=True)
    for text, kind, width, padded in itertools.product(MASKS[:2], ("bf16", "f16"), _variants.WIDTHS, flags):
        size = width - 8 if padded else width
        source, parameters, _ = _variants.describe_gradients(text, kind, size, size)
        yield source, _compile.make_request(parameters)


def write_bundle(directory, source, request):
    text = pathlib.Path(source).read_bytes()
    assembler = {"ptxas": _compile.find_own_ptxas()}
    bundle = _compile.compile_bundle(text, os.path.basename(source), {**request, **assembler}, None)
    bundle = json.dumps(json.loads(bundle), separators=(",", ":")).encode()
    _cache.write(directory, _compile.make_own_key(text, str(source), request), bundle)
    return len(bundle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--only", default="", help="those whose source and parameters have this text in them")
    options = parser.parse_args()
    chosen = [entry for entry in list_requests() if options.only in " ".join(map(str, entry))]
    # The compiler leaves Python's lock alone while it works.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = list(pool.map(lambda entry: write_bundle(options.output, *entry), chosen))
    print(f"{options.output}: {len(sizes)} bundles, {sum(sizes) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
