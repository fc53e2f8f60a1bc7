//===- FakeExchange.cpp - The DLPack exchange API of fake_torch.py --------===//
//
// Functions for a DLPackExchangeAPI over Python objects whose attribute `dltensor_address` is the
// address of a DLTensor. The interpreter that loads this library has the functions of Python.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstring>

#define VISIBLE __attribute__((visibility("default")))
#define EXPORT extern "C" VISIBLE

extern "C" {
void *PyObject_GetAttrString(void *object, const char *name);
void *PyLong_AsVoidPtr(void *object);
void Py_DecRef(void *object);
void PyErr_SetString(void *type, const char *text);
int PyGILState_Check();
extern void *PyExc_RuntimeError;
}

extern "C" {
/// The current streams of the devices; null: asking for it is an error.
VISIBLE void *fake_exchange_streams[2] = {nullptr, nullptr};
/// Tensors that were read so far.
VISIBLE int fake_exchange_reads = 0;
/// Whether the GIL was held when fake_exchange_note_gil was called last; -1 before.
VISIBLE int fake_exchange_gil = -1;
}

EXPORT void fake_exchange_note_gil() { fake_exchange_gil = PyGILState_Check(); }

EXPORT int fake_exchange_read_tensor(void *object, void *tensor) {
  void *address = PyObject_GetAttrString(object, "dltensor_address");
  if (!address)
    return -1;
  memcpy(tensor, PyLong_AsVoidPtr(address), 48);
  Py_DecRef(address);
  ++fake_exchange_reads;
  return 0;
}

EXPORT int fake_exchange_current_stream(int32_t deviceType, int32_t device, void **stream) {
  if (deviceType != 2 || device < 0 || device > 1 || !fake_exchange_streams[device]) {
    PyErr_SetString(PyExc_RuntimeError, "no such stream");
    return -1;
  }
  *stream = fake_exchange_streams[device];
  return 0;
}
