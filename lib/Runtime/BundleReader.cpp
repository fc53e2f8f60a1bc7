//===- BundleReader.cpp - Reading the parts of a bundle -------------------===//

#include "lib/Runtime/BundleReader.h"

#include "lib/Support/Json.h"
#include "tessera/BundleKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

using namespace tessera::runtime;
using llvm::StringLiteral;
using llvm::StringRef;
namespace json = llvm::json;
namespace key = tessera::key;

bool tessera::runtime::fail(json::Path path, StringLiteral message) {
  path.report(message);
  return false;
}

const json::Object *tessera::runtime::readObject(const json::Value &value, json::Path path) {
  const json::Object *object = value.getAsObject();
  if (!object)
    path.report("expected an object");
  return object;
}

const json::Array *tessera::runtime::readArray(const json::Object &object, StringRef key,
                                               json::Path path) {
  const json::Array *array = object.getArray(key);
  if (!array)
    path.field(key).report("expected an array");
  return array;
}

bool tessera::runtime::readString(const json::Object &object, StringRef key, json::Path path,
                                  std::string &out) {
  std::optional<StringRef> text = object.getString(key);
  if (!text || text->empty())
    return fail(path.field(key), "expected a string that is not empty");
  out = text->str();
  return true;
}

bool tessera::runtime::readInteger(const json::Value *value, json::Path path, int64_t low,
                                   int64_t high, StringLiteral expected, int64_t &out) {
  std::optional<int64_t> number = value ? tessera::asInteger(*value) : std::nullopt;
  if (!number || *number < low || *number > high)
    return fail(path, expected);
  out = *number;
  return true;
}

bool tessera::runtime::readFlag(const json::Object &object, StringRef name, json::Path path,
                                bool &flag) {
  const json::Value *value = object.get(name);
  if (!value)
    return true;
  std::optional<bool> read = value->getAsBoolean();
  if (!read)
    return fail(path.field(name), "expected true or false");
  flag = *read;
  return true;
}

bool tessera::runtime::forEachObject(
    const json::Array &array, json::Path path,
    llvm::function_ref<bool(const json::Object &object, json::Path at)> function) {
  for (size_t i = 0; i < array.size(); ++i) {
    const json::Object *object = readObject(array[i], path.index(i));
    if (!object || !function(*object, path.index(i)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What a kernel and a sequence have in common
//===----------------------------------------------------------------------===//

bool SignatureReader::readExtentValue(const json::Value &value, json::Path path, Extent &extent) {
  if (std::optional<StringRef> name = value.getAsString()) {
    auto found = llvm::find(signature.dims, *name);
    if (found == signature.dims.end())
      return fail(path, "names no entry of \"dims\"");
    extent.dim = found - signature.dims.begin();
    return true;
  }
  return readInteger(&value, path, 1, kMaxExtent,
                     "expected a dimension's name or an integer from 1 to 2147483647",
                     extent.constant);
}

bool SignatureReader::readExtent(const json::Object &object, json::Path path, Extent &extent) {
  const json::Value *value = object.get(key::extent);
  if (!value)
    return fail(path.field(key::extent), "expected a dimension's name or an integer");
  return readExtentValue(*value, path.field(key::extent), extent);
}

bool SignatureReader::readGrid(const json::Array &array, json::Path path,
                               std::array<GridDim, 3> &grid) {
  if (array.empty() || array.size() > 3)
    return fail(path, "expected 1 to 3 dimensions");
  grid.fill(GridDim{Extent{1, -1}, 1});
  unsigned next = 0;
  return forEachObject(array, path, [&](const json::Object &object, json::Path at) {
    GridDim &dim = grid[next++];
    return readExtent(object, at, dim.extent) &&
           readInteger(object.get(key::divisor), at.field(key::divisor), 1, kMaxExtent,
                       "expected an integer from 1 to 2147483647", dim.divisor);
  });
}

bool SignatureReader::readScalarBound(const json::Object &object, json::Path path,
                                      ArgumentInfo &argument) {
  const json::Value *above = object.get(key::above);
  if (!above)
    return true;
  argument.above = above->getAsNumber();
  if (!argument.above || argument.type->scalar != TESSERA_TYPE_SCALAR_F32)
    return fail(path.field(key::above), "expected a number, beside an f32 scalar");
  return true;
}

bool SignatureReader::readArgument(const json::Object &object, json::Path path,
                                   ArgumentInfo &argument) {
  std::string kind, type;
  if (!readString(object, key::name, path, argument.name) ||
      !readString(object, key::kind, path, kind))
    return false;
  argument.isView = kind == kinds::view;
  if (!argument.isView) {
    if (kind != kinds::scalar)
      return fail(path.field(key::kind), "expected \"view\" or \"scalar\"");
    if (!readString(object, key::type, path, type))
      return false;
    argument.type = tessera::getScalarType(type);
    if (!argument.type)
      return fail(path.field(key::type), "expected the type of a number");
    return readScalarBound(object, path, argument);
  }

  if (!readString(object, key::element, path, type))
    return false;
  argument.type = tessera::getElementType(type);
  if (!argument.type)
    return fail(path.field(key::element), "expected the type of elements of a view");
  const json::Array *dims = readArray(object, key::dims, path);
  if (!dims)
    return false;
  if (dims->empty())
    return fail(path.field(key::dims), "expected at least one dimension");
  for (size_t i = 0; i < dims->size(); ++i)
    if (!readExtentValue((*dims)[i], path.field(key::dims).index(i), argument.dims.emplace_back()))
      return false;

  std::string access;
  if (!readString(object, key::access, path, access))
    return false;
  auto known = llvm::StringSwitch<std::optional<Access>>(access)
                   .Case(accesses::read, Access::Read)
                   .Case(accesses::write, Access::Write)
                   .Case(accesses::readWrite, Access::ReadWrite)
                   .Default(std::nullopt);
  if (!known)
    return fail(path.field(key::access), "expected \"read\", \"write\" or \"readwrite\"");
  argument.access = *known;

  static constexpr StringLiteral kAlignmentRule =
      "expected a power of 2, from the element's size to 1024";
  int64_t alignment;
  if (!readInteger(object.get(key::alignment), path.field(key::alignment), argument.type->bytes,
                   1024, kAlignmentRule, alignment))
    return false;
  if (!llvm::isPowerOf2_64(alignment))
    return fail(path.field(key::alignment), kAlignmentRule);
  argument.alignment = alignment;
  return true;
}

bool SignatureReader::readArguments(const json::Object &object, json::Path path) {
  const json::Array *array = readArray(object, key::arguments, path);
  return array &&
         forEachObject(*array, path.field(key::arguments),
                       [&](const json::Object &entry, json::Path at) {
                         ArgumentInfo argument;
                         if (!readArgument(entry, at, argument))
                           return false;
                         for (const ArgumentInfo &other : signature.arguments)
                           if (other.name == argument.name)
                             return fail(at.field(key::name), "is the name of an earlier argument");
                         signature.arguments.push_back(std::move(argument));
                         return true;
                       });
}

bool SignatureReader::readDims(const json::Object &object, json::Path path) {
  const json::Array *array = readArray(object, key::dims, path);
  for (size_t i = 0; array && i < array->size(); ++i) {
    std::optional<StringRef> name = (*array)[i].getAsString();
    if (!name)
      return fail(path.field(key::dims).index(i), "expected a name");
    signature.dims.push_back(name->str());
  }
  return array;
}

bool SignatureReader::checkDims(json::Path path) {
  for (size_t i = 0; i < signature.dims.size(); ++i) {
    bool used = llvm::any_of(signature.arguments, [&](const ArgumentInfo &argument) {
      return llvm::any_of(argument.dims, [&](Extent e) { return e.dim == static_cast<int>(i); });
    });
    if (!used)
      return fail(path.field(key::dims).index(i), "is a dimension of no argument");
  }
  return true;
}
