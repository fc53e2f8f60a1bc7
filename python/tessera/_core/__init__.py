"""What needs no compiler: the libraries and how tensors are handed to them, bundles and kernels that are loaded from them, the cache on
disk, errors. Nothing here knows a source, a framework or attention."""
