//===- PythonObjects.h - Functions and objects of Python --------*- C++ -*-===//
//
// What reads the arguments of a call in Python without running Python code. Nothing of Python is
// needed to build this: its functions are looked up in the process. The caller holds the GIL.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CAPI_PYTHONOBJECTS_H
#define TESSERA_CAPI_PYTHONOBJECTS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <utility>

namespace tessera {

/// Functions and types of CPython's stable ABI. Objects and thread states are addresses, a
/// Py_ssize_t is an intptr_t.
struct Interpreter {
  Interpreter();

  /// That of this process.
  static const Interpreter &get();

  /// Whether an object is of one of these types, and not of a type derived from them.
  bool hasType(void *object, llvm::ArrayRef<void *> types) const;
  /// The address in an int; false, with no error set, when it is none.
  bool readAddress(void *object, void *&address) const;

  bool isComplete = true;
  void *(*objectType)(void *object);
  void (*incrementReferences)(void *object);
  void (*decrementReferences)(void *object);
  void *(*call)(void *callable, void *arguments, void *named);
  int (*isTrue)(void *object);
  int (*setAttribute)(void *object, void *name, void *value);
  void *(*newTuple)(intptr_t size);
  intptr_t (*tupleSize)(void *tuple);
  void *(*tupleItem)(void *tuple, intptr_t index);
  int (*setTupleItem)(void *tuple, intptr_t index, void *taken);
  double (*floatAsDouble)(void *object);
  long long (*intAsLongLong)(void *object);
  void *(*intAsPointer)(void *object);
  void *(*intFromLong)(long value);
  void *(*intFromLongLong)(long long value);
  void *(*errorOccurred)();
  void (*clearError)();
  void *(*saveThread)();
  void (*restoreThread)(void *thread);
  void *floatType, *intType, *none;

private:
  template <typename T>
  void find(T &member, const char *name);
};

/// A reference to an object of Python, or to none.
class Object {
public:
  Object() = default;
  /// Takes a new reference over.
  explicit Object(void *object) : object(object) {}
  Object(const Object &other) : object(other.object) {
    if (object)
      Interpreter::get().incrementReferences(object);
  }
  Object(Object &&other) : object(other.release()) {}
  Object &operator=(Object other) {
    std::swap(object, other.object);
    return *this;
  }
  ~Object() {
    if (object)
      Interpreter::get().decrementReferences(object);
  }

  explicit operator bool() const { return object; }
  void *get() const { return object; }
  void *release() { return std::exchange(object, nullptr); }

private:
  void *object = nullptr;
};

/// A tuple of these objects; none, with an error of Python, where there is no memory for it.
Object makeTuple(llvm::ArrayRef<void *> items);
/// The same of integers.
Object makeTuple(llvm::ArrayRef<int64_t> numbers);

/// DLTensor of dlpack.h, of any version 1.
struct DLTensor {
  void *data;
  int32_t deviceType, device;
  int32_t rank;
  uint8_t typeCode, bits;
  uint16_t lanes;
  const int64_t *shape;
  const int64_t *strides; ///< in elements; null for row-major
  uint64_t byteOffset;

  uint64_t getAddress() const { return reinterpret_cast<uint64_t>(data) + byteOffset; }
  /// The tessera_type of the elements, 0 when there is none of that kind.
  int32_t getElementType() const;
};

/// kDLCUDA of DLDeviceType.
inline constexpr int32_t kDeviceTypeCuda = 2;

} // namespace tessera

#endif // TESSERA_CAPI_PYTHONOBJECTS_H
