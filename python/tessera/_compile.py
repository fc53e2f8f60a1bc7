Diagnostic=None
compile=None
