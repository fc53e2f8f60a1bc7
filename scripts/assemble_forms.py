#!/usr/bin/env python3
"""Compiles the forms of kernels that calls from PyTorch and JAX take by each of several ptxas, and lists those that fall back.

    TESSERA_LIBRARY=BUILD_TREE/lib scripts/assemble_forms.py PTXAS... [--calls] [--only TEXT] [--part N/M] [--processes N]

A form falls back where the schedule that it would have does not compile, so that the next one is taken, or none does, so that a
call takes another form. Exits with 1 where one does. Forms are those that the wheel has bundles of, and functions of all widths:
those of FUNCTIONS, with and without gradients of what they learn, and of kernels/variants. With --calls they are those of calls over
caches, of packed queries, over latent rows and lists, and of recurrences (call_forms.py), for which PyTorch is needed; then texts and
parts are of calls, and a form may take the next schedule that has a producer.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import multiprocessing
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import compile_bundles  # noqa: E402

import tessera  # noqa: E402
from tessera import CompileError  # noqa: E402
from tessera._attention import _variants  # noqa: E402
from tessera._compiler import _compile  # noqa: E402
from tessera._functions._variant import to_gradients  # noqa: E402

# What the compiler says of what it does not take: of attention of tensors, and of other calls.
OF_CALLS = ("no schedule with a producer",)
FALLBACKS = ("schedule given up", "is left out", *OF_CALLS)


def causal(b, h, q, k):
    return q >= k


#: Arguments of tessera.Variant by name, and which of the views that they ask for are learned.
FUNCTIONS = {
    "slopes": (dict(score=lambda s, b, h, q, k, slopes: s + slopes[h] * (k - q), mask=causal, slopes=("H",)), ["slopes"]),
    "soft cap": (dict(score=lambda s, b, h, q, k, cap: cap * tessera.tanh(s / cap), mask=causal, cap=float), []),
    "bias": (dict(score=lambda s, b, h, q, k, bias: s + bias[h, q, k], bias=("H", "SQ", "SK")), ["bias"]),
    "sink": (dict(mask=causal, sink=lambda b, h, sinks: sinks[h], sinks=("H",)), ["sinks"]),
    "gate": (dict(score=lambda s, b, h, q, k, gate: s + gate[b, h, q] - gate[b, h, k], mask=causal, gate=("B", "H", "SQ")), ["gate"]),
}  # fmt: skip


def list_functions():
    for path, width in itertools.product(sorted((ROOT / "kernels" / "variants").glob("*.tile")), _variants.WIDTHS):
        yield path, _compile.make_request({"D": width, "DV": width}, shape_class=_variants.DEFAULT_CLASS)
    for (functions, views), width in itertools.product(FUNCTIONS.values(), _variants.WIDTHS):
        source = tessera.Variant(**functions).source
        sizes = {"T": "bf16", "D": width, "DV": width}
        yield source, _compile.make_request(sizes, shape_class=_variants.DEFAULT_CLASS, alternatives=True)
        for learned, fixed in itertools.product([(), tuple(views)] if views else [()], (False, True)):
            yield to_gradients(source, fixed, learned), _compile.make_request(sizes, alternatives=False)


def list_forms():
    """(path or text of a source, request), each once: other names have the same kernel."""
    seen = set()
    for source, request in itertools.chain(compile_bundles.list_requests(), list_functions()):
        key = str((source, request))
        if key not in seen:
            seen.add(key)
            yield source, request


def describe(source, request):
    given = " ".join(f"{parameter}={value}" for parameter, value in request["parameters"].items())
    if not _variants.is_source(str(source)):
        return f"{pathlib.Path(source).stem} {given}"
    # The digest tells apart what differs in functions alone.
    head = next(line for line in source.splitlines() if line.startswith("$import"))
    return f"{head} {hashlib.sha256(source.encode()).hexdigest()[:8]} {given}"


def find_fallbacks(source, request, texts, ptxas):
    """What of `texts` a compilation said, or why it failed, and the seconds that it took."""
    start, notes = time.monotonic(), []

    def note(diagnostic):
        if any(text in diagnostic.message for text in texts):
            reasons = [entry.message for entry in diagnostic.notes]
            notes.append(": ".join([diagnostic.message, *reasons[:1]]))

    text, name = _compile._read_source(source)
    try:
        _compile.compile_bundle(text, name, {**request, "ptxas": ptxas}, note)
    except CompileError as error:
        notes.append(str(error).splitlines()[0])
    return notes, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptxas", nargs="+")
    parser.add_argument("--calls", action="store_true", help="forms of other calls than of attention of tensors, see above")
    parser.add_argument("--only", default="", help="forms whose source and parameters have this text in them")
    parser.add_argument("--part", default="0/1", help="every M-th form from number N on")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    if options.calls:
        import call_forms

        forms = call_forms.list_forms(options.only, part, parts)
    else:
        forms = [form for form in list_forms() if options.only in describe(*form)][part::parts]
    jobs = [(form, ptxas) for form in forms for ptxas in options.ptxas]
    fallbacks = 0
    with concurrent.futures.ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        texts = OF_CALLS if options.calls else FALLBACKS
        running = {pool.submit(find_fallbacks, *form, texts, ptxas): (form, ptxas) for form, ptxas in jobs}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            (form, ptxas), (notes, seconds) = running[future], future.result()
            print(f"[{done}/{len(jobs)}] {seconds:.1f} s {describe(*form)}", file=sys.stderr, flush=True)
            fallbacks += bool(notes)
            for note in notes:
                print(f"{describe(*form)} by {ptxas}: {note}", flush=True)
    print(f"{len(forms)} forms by {len(options.ptxas)} assemblers: {fallbacks} fall back")
    return 1 if fallbacks or not forms else 0


if __name__ == "__main__":
    sys.exit(main())
