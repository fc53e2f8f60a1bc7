"""Pages that show what the compiler made of a source (tessera_explain of tessera-c/Compiler.h)."""

from __future__ import annotations

import ctypes
import functools
import html
import json
import os
import re
from collections.abc import Callable, Mapping
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p

from .._core import _library, _typing
from .._core._errors import Diagnostic
from . import _compile, _frontend


@functools.lru_cache(maxsize=None)
def _explainer():
    define, options = POINTER(_frontend._Define), POINTER(_frontend._Options)
    signatures = {
        "tessera_explain": (
            c_int, c_char_p, c_size_t, c_char_p, options, define, c_size_t, _frontend._Handler, c_void_p,
            POINTER(c_void_p),
        ),
        "tessera_page_text": (c_void_p, c_void_p, POINTER(c_size_t)),
        "tessera_page_data": (c_void_p, c_void_p, POINTER(c_size_t)),
        "tessera_page_destroy": (None, c_void_p),
    }  # fmt: skip
    return _library.declare(_frontend._compiler(), signatures)


def explain(
    path_or_source: str | os.PathLike[str],
    kernel: str | None = None,
    schedule: str | dict[str, _typing.Any] | None = None,
    *,
    scalars: Mapping[str, float] | None = None,
    on_diagnostic: Callable[[Diagnostic], object] | None = None,
    ptxas: str | os.PathLike[str] | None = None,
    database: str | os.PathLike[str] | _typing.Literal[False] | None = None,
    gpu: str | None = None,
    shape: Mapping[str, int] | None = None,
    shape_class: str | None = None,
    **parameters: object,
) -> str:
    """The text of an HTML page that shows a source, its IR after each pass, its masks, schedule and machine code.

        pathlib.Path("page.html").write_text(tessera.explain("kernels/attention_fwd.tile", D=64, CAUSAL=True))

    scalars:       values of scalar arguments that masks depend on, {"left": 256}.
    on_diagnostic: called with each Diagnostic, remarks included.
    shape:         extents of all dimensions, for the pictures of masks too; some that suit the kernel otherwise.

    Other arguments are those of `compile`. A source that does not compile has a page too, with its errors. Raises
    CompileError for options that are wrong, OSError, LibraryError.
    """
    return run(
        "tessera_page_text", path_or_source, scalars, on_diagnostic, kernel=kernel, schedule=schedule, ptxas=ptxas,
        database=database, gpu=gpu, shape=shape, shape_class=shape_class, parameters=parameters,
    )  # fmt: skip


def run(form, path_or_source, scalars=None, on_diagnostic=None, **request):
    """Explains a source; `form` is the function of a page that gives its text or its data."""
    source, file_name = _frontend._read_source(path_or_source)
    request = _compile.make_request(**request)
    if assembler := _compile._find_ptxas(request["ptxas"]):
        request["ptxas"] = assembler[0]
    options = _compile.make_options(request, remarks=True)
    values = _frontend._make_defines({name: _frontend._to_text(value) for name, value in sorted((scalars or {}).items())})
    library, collector, page = _explainer(), _frontend._Collector(), c_void_p()
    status = library.tessera_explain(
        source, len(source), file_name.encode(), ctypes.byref(options), values, len(values), collector.handler, None,
        ctypes.byref(page),
    )  # fmt: skip
    for diagnostic in collector.diagnostics if on_diagnostic else ():
        on_diagnostic(diagnostic)
    if not page:
        collector.check(status, file_name)
    try:
        size = c_size_t()
        text = getattr(library, form)(page, ctypes.byref(size))
        return ctypes.string_at(text, size.value).decode()
    finally:
        library.tessera_page_destroy(page)


# As the page has them (lib/Explain/Page.css).
_COLOURS = {"f": "#2f7fd1", "p": "#e8963a", "m": "#c0392b", "s": "#e5e8ee"}


def _draw(mask):
    """The rows of a picture for the first of its grid dimensions, as SVG."""
    return draw_rows(mask["rows"][: mask["grid"][0]["extent"]] if mask["grid"] else mask["rows"])


def draw_rows(rows):
    """Rows of blocks as SVG: a letter for each block, "f" of one that is visited in full, "p" in part, "s" skipped."""
    cell = max(2, min(16, 480 // max(len(rows), len(rows[0]))))
    width, height = cell * len(rows[0]), cell * len(rows)
    boxes = []
    for y, row in enumerate(rows):
        for run_of in re.finditer(r"(.)\1*", row):
            x, count = run_of.start(), len(run_of.group())
            boxes.append(
                f'<rect x="{x * cell}" y="{y * cell}" width="{count * cell}" height="{cell}" '
                f'fill="{_COLOURS[run_of.group(1)]}"/>'
            )
    return f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}">{"".join(boxes)}</svg>'


def draw_masks(source):
    """HTML with the pictures of a source's masks, at its own defaults."""
    data = json.loads(run("tessera_page_data", source, parameters={}))
    parts = []
    for kernel in data["kernels"]:
        for mask in kernel["picture"].get("masks", []):
            if "problem" in mask:
                parts.append(f"<p>{html.escape(mask['problem'])}</p>")
                continue
            counts = mask["counts"]
            parts.append(describe_counts(counts["full"], counts["partial"], counts["skipped"], mask["visited_percent"]) + _draw(mask))
    return "".join(parts)


def describe_counts(full, partial, skipped, percent):
    return f"<p>{percent:.1f} of 100 blocks are visited: {full} in full, {partial} in part; {skipped} are skipped</p>"
