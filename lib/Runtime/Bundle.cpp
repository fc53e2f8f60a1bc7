//===- Bundle.cpp - Reading and checking a bundle -------------------------===//
//
// Kernels are read in KernelReader.cpp, sequences in SequenceReader.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/BundleReader.h"

#include "lib/Runtime/Error.h"
#include "lib/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"

using namespace tessera::runtime;
using llvm::StringLiteral;
using llvm::StringRef;
namespace json = llvm::json;

static const TypeInfo kScalarTypes[] = {
    {"i32", TESSERA_TYPE_SCALAR_I32, 4, -1, 0, "", nullptr},
    {"i64", TESSERA_TYPE_SCALAR_I64, 8, -1, 0, "", nullptr},
    {"f32", TESSERA_TYPE_SCALAR_F32, 4, -1, 0, "", nullptr},
};

template <typename Predicate>
static const TypeInfo *findScalarType(Predicate predicate) {
  const TypeInfo *found = llvm::find_if(kScalarTypes, predicate);
  return found == std::end(kScalarTypes) ? nullptr : found;
}

const TypeInfo *tessera::runtime::getScalarType(StringRef name) {
  return findScalarType([&](const TypeInfo &type) { return type.name == name; });
}

StringRef tessera::runtime::getTypeName(int32_t value) {
  auto matches = [&](const TypeInfo &type) { return type.type == value; };
  const TypeInfo *type = tessera::findElementType(matches);
  if (!type)
    type = findScalarType(matches);
  return type ? StringRef(type->name) : "unknown type";
}

static bool readImage(const json::Object &object, json::Path path, BundleInfo &bundle) {
  std::string kind, base64;
  if (!readString(object, "kind", path, kind) || !readString(object, "base64", path, base64))
    return false;
  bundle.isPtx = kind == "ptx";
  if (!bundle.isPtx && kind != "cubin")
    return fail(path.field("kind"), "expected \"cubin\" or \"ptx\"");
  if (llvm::Error error = llvm::decodeBase64(base64, bundle.image)) {
    llvm::consumeError(std::move(error));
    return fail(path.field("base64"), "expected base64 text");
  }
  if (bundle.isPtx)
    bundle.image.push_back('\0');
  return true;
}

static bool readSequences(const json::Object &object, json::Path path, BundleInfo &bundle) {
  if (bundle.version < 2)
    return true;
  const json::Array *sequences = readArray(object, "sequences", path);
  for (size_t i = 0; sequences && i < sequences->size(); ++i)
    if (!readSequence((*sequences)[i], path.field("sequences").index(i), bundle,
                      bundle.sequences.emplace_back()))
      return false;
  return sequences;
}

static bool readBundle(const json::Value &value, json::Path path, BundleInfo &bundle) {
  const json::Object *object = readObject(value, path);
  if (!object)
    return false;
  if (object->getString("format") != StringRef("tessera-bundle"))
    return fail(path.field("format"), "expected \"tessera-bundle\": this is no bundle");
  if (!readInteger(object->get("version"), path.field("version"), 1, 2,
                   "this library reads versions 1 and 2", bundle.version))
    return false;
  if (!readString(*object, "target", path, bundle.target))
    return false;
  const json::Object *image = object->getObject("image");
  if (!image)
    return fail(path.field("image"), "expected an object");
  const json::Array *kernels = readArray(*object, "kernels", path);
  if (!readImage(*image, path.field("image"), bundle) || !kernels)
    return false;
  if (kernels->empty())
    return fail(path.field("kernels"), "expected at least one kernel");
  for (size_t i = 0; i < kernels->size(); ++i)
    if (!readKernel((*kernels)[i], path.field("kernels").index(i), bundle.kernels.emplace_back()))
      return false;
  return readSequences(*object, path, bundle);
}

llvm::Expected<BundleInfo> tessera::runtime::readBundle(StringRef text) {
  llvm::Expected<json::Value> value = tessera::parseJson(text);
  if (!value)
    return makeError(TESSERA_RUNTIME_INVALID_BUNDLE, "not a bundle: not JSON text: {0}",
                     llvm::toString(value.takeError()));
  json::Path::Root root("bundle");
  BundleInfo bundle;
  if (!::readBundle(*value, root, bundle))
    return makeError(TESSERA_RUNTIME_INVALID_BUNDLE, "damaged bundle: {0}",
                     llvm::toString(root.getError()));
  return bundle;
}
