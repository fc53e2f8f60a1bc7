"""Functions of Python as functions of kernels: traced, written as sources, described so that changes are seen. Nothing here knows which
kernel attends."""
