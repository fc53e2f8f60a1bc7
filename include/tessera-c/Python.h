/*===- tessera-c/Python.h - Launch with Python's arguments ------*- C -*-===*\
|*                                                                          *|
|* Launching with the arguments of a call in Python, read without running   *|
|* Python code: scalars through CPython's stable ABI, tensors through       *|
|* DLPack's C exchange API (DLPackExchangeAPI of dlpack.h, since DLPack     *|
|* 1.3). The Python package is what calls this. The library is not linked   *|
|* against Python: it looks the functions of Python up in the process that  *|
|* it is part of, where ctypes.pythonapi finds them too.                    *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_PYTHON_H
#define TESSERA_C_PYTHON_H

#include "tessera-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A framework of tensors. Objects and types of Python are addresses here. No member is null. */
typedef struct tessera_python_framework {
  /** dltensor_from_py_object_no_sync of the DLPackExchangeAPI; `tensor` is a DLTensor. */
  int (*read_tensor)(void *object, void *tensor);
  /** current_work_stream of the DLPackExchangeAPI. */
  int (*current_stream)(int32_t device_type, int32_t device, void **stream);
  /** Tensors are objects of one of these types, not of types derived from them. */
  void *tensor_types[2];
} tessera_python_framework;

/** What tessera_python_launch answers beside a tessera_runtime_status. */
#define TESSERA_PYTHON_NOT_TAKEN (-1)

/** Launches a kernel, see tessera_kernel_launch. This is a function for a PyMethodDef with
 * METH_FASTCALL; `self` is an int, the address of a tessera_python_framework. Its `count`
 * arguments, two or three, are
 *  - an int, the address of a tessera_kernel;
 *  - a tuple with one item per argument of the source, in its order;
 *  - an int, the address of a CUstream. Without it, the framework's current stream on the tensors'
 *    device is taken.
 * The device of the launch is that of the tensors.
 *
 *  The caller holds the GIL, which is released for the time of the launch itself: that waits when
 * the stream's queue is full.
 *
 *  Returns null, with no error set, when the process has no functions of Python. Otherwise returns
 * an int and sets no error of Python. It is TESSERA_PYTHON_NOT_TAKEN, with nothing launched, when
 * `count` or an address is no such number, the framework does not tell its stream, or an argument
 * is anything but
 *  - for a view, an object of exactly one of `tensor_types`, of the argument's rank, in the memory
 *    of a CUDA device, the same for all views, with elements that are a tessera_type;
 *  - for a scalar, exactly a float or an int; an int in range where the kernel takes an integer.
 * A kernel without views is not taken either. Otherwise it is a tessera_runtime_status. */
TESSERA_EXPORT void *tessera_python_launch(void *self, void *const *arguments, intptr_t count);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_PYTHON_H */
