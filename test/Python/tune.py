# REQUIRES: ptxas
# RUN: rm -rf %t && mkdir %t
# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= TESSERA_PTXAS=%ptxas %python %s %source %t
"""Measuring from Python, on a driver whose kernels take longer the less shared memory they have."""

import pathlib
import sys

import tessera

source, folder = map(pathlib.Path, sys.argv[1:])
product = source / "test/Tools/tune/Inputs/product.tile"
path, shape = folder / "db.json", {"M": 256, "N": 256, "K": 512}
assert tessera.Database(path).entries == []

lines = []
database = tessera.tune(
    product, [shape], database=path, vary={"BM": (128, 192)}, fields=["work"], schedule="stages=3", budget=2, BN=64, on_line=lines.append
)
assert any("stages = 3" in line for line in lines), lines
(entry,) = database.entries
assert entry.kernel == "product" and entry.shape_class == "few-short" and entry.parameters["BN"] == "64", entry
assert entry.measured["shapes"] == [shape] and "stages = 3" in entry.schedule, entry
assert str(entry).startswith(f"product (few-short, {entry.gpu}): K=512, M=256, N=256: "), str(entry)
assert repr(database) == f"<tessera.Database {path}: 1 entries>", repr(database)
assert database.find("product", BN=64) == [entry] == database.find(shape_class="few-short")
assert database.find("product", BN=128) == database.find("other") == []

# A compilation takes what was measured.
kernel = tessera.compile(product, database=database, shape=shape, image="ptx", BN=64)
assert "stages = 3" in kernel.schedule, kernel.schedule

for arguments, text in (
    (dict(vary="BO"), "BO"),
    (dict(fields="stagges"), "stagges"),
):
    try:
        tessera.tune(product, shape, database=path, on_line=None, **arguments)
        raise SystemExit("what is unknown was tuned")
    except ValueError as error:
        assert text in str(error), error
