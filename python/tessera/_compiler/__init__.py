"""What the compiler does for Python: compiling, what rules choose, the interpreter, pages, tuning, the commands. Nothing here knows
functions of Python that become kernels, or attention."""
