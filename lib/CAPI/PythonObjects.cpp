//===- PythonObjects.cpp - Functions and objects of Python ----------------===//

#include "PythonObjects.h"

#include "lib/Support/ElementTypes.h"

#include "llvm/ADT/STLExtras.h"

#include <dlfcn.h>

using namespace tessera;

template <typename T>
void Interpreter::find(T &member, const char *name) {
  member = reinterpret_cast<T>(dlsym(RTLD_DEFAULT, name));
  isComplete &= member != nullptr;
}

Interpreter::Interpreter() {
  find(objectType, "PyObject_Type");
  find(incrementReferences, "Py_IncRef");
  find(decrementReferences, "Py_DecRef");
  find(call, "PyObject_Call");
  find(isTrue, "PyObject_IsTrue");
  find(setAttribute, "PyObject_SetAttr");
  find(newTuple, "PyTuple_New");
  find(tupleSize, "PyTuple_Size");
  find(tupleItem, "PyTuple_GetItem");
  find(setTupleItem, "PyTuple_SetItem");
  find(floatAsDouble, "PyFloat_AsDouble");
  find(intAsLongLong, "PyLong_AsLongLong");
  find(intAsPointer, "PyLong_AsVoidPtr");
  find(intFromLong, "PyLong_FromLong");
  find(intFromLongLong, "PyLong_FromLongLong");
  find(errorOccurred, "PyErr_Occurred");
  find(clearError, "PyErr_Clear");
  find(saveThread, "PyEval_SaveThread");
  find(restoreThread, "PyEval_RestoreThread");
  find(floatType, "PyFloat_Type");
  find(intType, "PyLong_Type");
  find(none, "_Py_NoneStruct");
}

const Interpreter &Interpreter::get() {
  static const Interpreter interpreter;
  return interpreter;
}

bool Interpreter::hasType(void *object, llvm::ArrayRef<void *> types) const {
  void *type = objectType(object);
  decrementReferences(type); // The object keeps its type.
  return llvm::is_contained(types, type);
}

bool Interpreter::readAddress(void *object, void *&address) const {
  address = intAsPointer(object);
  if (address || !errorOccurred())
    return true;
  clearError();
  return false;
}

Object tessera::makeTuple(llvm::ArrayRef<void *> items) {
  const Interpreter &python = Interpreter::get();
  Object tuple(python.newTuple(items.size()));
  for (size_t i = 0; tuple && i < items.size(); ++i) {
    python.incrementReferences(items[i]);
    python.setTupleItem(tuple.get(), i, items[i]);
  }
  return tuple;
}

Object tessera::makeTuple(llvm::ArrayRef<int64_t> numbers) {
  const Interpreter &python = Interpreter::get();
  Object tuple(python.newTuple(numbers.size()));
  for (size_t i = 0; tuple && i < numbers.size(); ++i) {
    void *number = python.intFromLongLong(numbers[i]);
    if (!number)
      return Object();
    python.setTupleItem(tuple.get(), i, number);
  }
  return tuple;
}

int32_t DLTensor::getElementType() const {
  if (lanes != 1)
    return 0;
  const ElementType *type = findType([&](const ElementType &candidate) {
    return candidate.dlpackCode == typeCode && candidate.bytes * 8 == bits;
  });
  return type ? type->type : 0;
}
