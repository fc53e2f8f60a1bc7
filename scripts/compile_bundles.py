#!/usr/bin/env python3
"""Compiles the bundles that the wheel has, so that a first call compiles nothing.

    TESSERA_LIBRARY=BUILD_TREE/lib scripts/compile_bundles.py OUTPUT_DIRECTORY [--kept DIRECTORY] [--ptxas PATH] [--only TEXT]

Attention of both types, all widths of tiles, the usual masks, with and without the LSE and with head dimensions between the
widths: for the class of most shapes, and without padding for each class that the database has and those of few tiles. And
their gradients, without padding also those of groups of heads and of short calls. Needs ptxas. With --kept a run leaves what
the next one need not compile again: what has the same source and parameters, by the same compiler and ptxas.
"""

import argparse
import concurrent.futures
import itertools
import json
import multiprocessing
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from tessera import Bundle, CompileError, Program  # noqa: E402
from tessera._attention import _gradient_kernels, _variants  # noqa: E402
from tessera._compiler import _compile  # noqa: E402
from tessera._core import _cache, _imports, _wheel  # noqa: E402

#: The database has none of them: shapes are short or few, and the model chooses for these.
FEW_TILES = {"few-short", "few-medium", "few-long"}
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


def list_calls():
    """Extents of calls that rules tell from others: short ones of many blocks, and those of large groups with few."""
    for batch, heads, kv_heads, length in ((65536, 1, 1, 256), (65536, 1, 1, 512), (65536, 1, 1, 1024), (65536, 1, 1, 2048),
                                           (1, 64, 1, 2048), (1, 64, 4, 4096)):  # fmt: skip
        yield _gradient_kernels.find_sizes(batch, heads, length, 64, kv_heads, length, 64)[-1]


def list_requests():
    """(source, request) of each bundle."""
    flags = (False, True)
    for text, kind, width, padded, lse in itertools.product(MASKS, ("bf16", "f16"), _variants.FORWARD_WIDTHS, flags, flags):
        variant = _variants.Variant(text, kind, width, width, padded, lse)
        classes = {_variants.DEFAULT_CLASS}
        if not padded:
            parameters = _compile.to_texts(variant.parameters)
            classes |= find_classes(parameters) | (FEW_TILES if "CAUSAL" in parameters else set())
        for shape_class in sorted(classes):
            yield variant.source, _compile.make_request(variant.parameters, shape_class=shape_class, alternatives=True)
    for text, kind, width, padded in itertools.product(MASKS[:2], ("bf16", "f16"), _variants.WIDTHS, flags):
        size = width - 8 if padded else width
        found = [_gradient_kernels.describe_gradients(text, kind, size, size)]
        if not padded:
            found += [_gradient_kernels.describe_gradients(text, kind, size, size, group=_gradient_kernels.GROUPS[-1])]
            found += [_gradient_kernels.describe_gradients(text, kind, size, size, extents=extents) for extents in list_calls()]
        for at, (source, arguments, _) in enumerate(found):
            if (source, arguments) not in [(other, of_other) for other, of_other, _ in found[:at]]:
                parameters = {name: value for name, value in arguments.items() if name != "schedule"}
                yield source, _compile.make_request(parameters, schedule=arguments.get("schedule"), alternatives=False)


def find_needed(source, wanted):
    """The names of those parameters that have to be given for a source to have all of these values."""
    def follows(name):
        others = {other: value for other, value in wanted.items() if other != name}
        try:
            return _compile.to_texts(Program(source, **others).parameters).get(name) == wanted[name]
        except CompileError:
            return False  # The default does not go with the others.

    # Defaults are made of parameters before them, so that those that follow each by itself follow together.
    return [name for name in wanted if not follows(name)]


def compile_bundle(source, request, names, ptxas):
    """Compiles a bundle with the ptxas at a path; `names` are the parameters that requests of its source give. Returns (digest of
    the source, entry of the index, text)."""
    text = pathlib.Path(source).read_bytes()
    bundle = _compile.pack(_compile.compile_bundle(text, str(source), {**request, "ptxas": ptxas}, None))
    whole = _imports.read_whole(text, str(source))
    loaded = Bundle(bundle)
    values = _compile.to_texts({name: value for name, value in loaded.parameters.items() if name in names})
    key = _compile.make_own_key(whole, request)
    entry = _wheel.make_entry(key, loaded.kernel().name, request, values, find_needed(source, values))
    return _wheel.make_digest(whole), entry, bundle


def make_kept_key(source, request, names, assembler):
    """What a bundle is kept under: all that decides what `compile_bundle` gives."""
    whole = _imports.read_whole(pathlib.Path(source).read_bytes(), str(source))
    tools = {"ptxas": assembler, "compiler": _compile._compiler_identity()}
    return _compile._make_key([os.path.basename(source), request, sorted(names), tools], whole)


def find_bundle(source, request, names, ptxas, kept):
    """(what `compile_bundle` gives, the key that it is kept under in the directory `kept`, the seconds that it took to compile, 0
    where it was there). `ptxas` is as of `_compile._find_ptxas`."""
    path, *assembler, _ = ptxas
    key, start = make_kept_key(source, request, names, assembler), time.monotonic()
    text = kept and _cache.read(kept, key)
    if text:
        head, _, bundle = text.partition(b"\n")
        return (*json.loads(head), bundle), key, 0
    try:
        digest, entry, bundle = compile_bundle(source, request, names, path)
    except CompileError as error:
        raise SystemExit(f"{source} {request['parameters']}: {error}") from None
    if kept:
        _cache.write(kept, key, json.dumps([digest, entry]).encode() + b"\n" + bundle)
    return (digest, entry, bundle), key, time.monotonic() - start


def find_bundles(jobs, ptxas, kept, processes):
    """(bundles, keys of what is kept of them, how many were compiled) of `jobs`, (source, request, names), by so many processes,
    with a line for each that is compiled."""
    # A process that was forked would share what the compiler's library has begun.
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(find_bundle, *job, ptxas, kept): job for job in jobs}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            (source, request, _), (_, _, seconds) = running[future], future.result()
            if seconds:
                given = " ".join(f"{name}={value}" for name, value in request["parameters"].items())
                print(f"[{done}/{len(jobs)}] {seconds:.1f} s {pathlib.Path(source).stem} {given}", request["shape_class"] or "", flush=True)
    found, keys, seconds = zip(*(future.result() for future in running))
    return found, keys, sum(map(bool, seconds))


# Bundles that have these alike share an archive: the more of them there are in one the less they take in all, and the longer one
# of them takes to be read.
ALIKE = ("T", "D", "CAUSAL", "LSE")


def write_archives(directory, found):
    """Writes bundles, (digest, entry, text), to archives of those that are alike, and the places there to the entries."""

    def name(item):
        entry = item[1]
        return entry["kernel"], *(entry["parameters"].get(parameter, "") for parameter in ALIKE)

    def order(item):
        # The class of most shapes, which calls without a shape take, is the first to be read.
        entry = item[1]
        return entry["shape_class"] != _variants.DEFAULT_CLASS, str(entry["parameters"]), entry["key"]

    for _, items in itertools.groupby(sorted(found, key=name), name):
        items = sorted(items, key=order)
        places = _wheel.write_archive(directory, [(entry["key"], text) for _, entry, text in items])
        for (_, entry, _), place in zip(items, places):
            entry.update(place)


def write_index(directory, found):
    """Adds (digest, entry, text) of bundles to the index of a directory."""
    index = dict(_wheel.read_index(directory))
    for digest, entry, _ in found:
        others = [other for other in index.get(digest, ()) if other["key"] != entry["key"]]
        index[digest] = [*others, entry]
    pathlib.Path(directory, _wheel.INDEX).write_text(json.dumps(index, separators=(",", ":")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--only", default="", help="those whose source and parameters have this text in them")
    parser.add_argument("--ptxas", help="its path; otherwise that of this interpreter's packages, or as the command line looks")
    parser.add_argument("--kept", help="a directory of what was compiled before")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    ptxas = _compile._find_ptxas(options.ptxas)
    if ptxas is None:
        raise SystemExit("there is no ptxas; --ptxas names one")
    names, chosen = {}, []
    for source, request in list_requests():
        names.setdefault(source, set()).update(request["parameters"])
        if options.only in f"{source} {request}":
            chosen.append((source, request))
    if not chosen:
        raise SystemExit(f"no bundle has '{options.only}' in its source and parameters")
    jobs = [(source, request, names[source]) for source, request in chosen]
    found, keys, compiled = find_bundles(jobs, ptxas, options.kept, options.processes)
    if options.kept and not options.only:
        for path in pathlib.Path(options.kept).glob("*.entry"):
            if path.stem not in keys:
                path.unlink()
    os.makedirs(options.output, exist_ok=True)
    write_archives(options.output, found)
    write_index(options.output, found)
    size = sum(path.stat().st_size for path in pathlib.Path(options.output).iterdir())
    print(f"{options.output}: {len(found)} bundles, {size / 1e6:.1f} MB; {compiled} compiled, with ptxas {ptxas[1]}")


if __name__ == "__main__":
    main()
