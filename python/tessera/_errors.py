"""The exceptions of the package.

Arguments that do not fit a kernel raise Python's own TypeError (kind or element type) or ValueError
(shape, strides, device, address).
"""


class Error(RuntimeError):
    """Base of the exceptions below."""


class LibraryError(Error):
    """A library of Tessera is missing or cannot be loaded."""


class BundleError(Error):
    """A bundle is damaged or cannot be read."""


class DeviceError(Error):
    """There is no usable driver or device, or the kernel was compiled for another one."""


class DriverError(Error):
    """A call of the CUDA driver failed."""


class CompileError(Error):
    """A compilation failed.

    `status` is "usage" (unknown parameter, schedule field or option), "source" or "toolchain" (ptxas is
    missing or refused its input); `diagnostics` lists what was reported.
    """

    def __init__(self, message, status, diagnostics):
        super().__init__(message)
        self.status = status
        self.diagnostics = diagnostics
