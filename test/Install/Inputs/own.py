"""Attention of a wheel that has its bundle, and of parameters for which it has none."""

import tessera

kernel = tessera.kernel("attention_fwd", D=64, CAUSAL=True, LSE=False)
with open("/proc/self/maps") as maps:
    compiler = "with" if "libtessera.so" in maps.read() else "without"
print(f"{kernel.name} of {', '.join(map(repr, kernel.alternatives))}, {compiler} the compiler")
try:
    tessera.kernel("attention_fwd", D=64, CAUSAL=True, LSE=False, BM=128)
except tessera.CompileError as error:
    print(error)
