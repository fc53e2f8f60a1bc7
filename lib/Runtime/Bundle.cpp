//===- Bundle.cpp - Reading and checking a bundle -------------------------===//
//
// Kernels are read in KernelReader.cpp, sequences in SequenceReader.cpp, choices in
// ChoiceReader.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/BundleReader.h"

#include "lib/Runtime/Error.h"
#include "lib/Support/Json.h"
#include "tessera/BundleKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"

using namespace tessera::runtime;
using llvm::StringLiteral;
using llvm::StringRef;
namespace json = llvm::json;
namespace key = tessera::key;

static bool readImage(const json::Value &value, json::Path path, BundleInfo &bundle) {
  const json::Object *object = readObject(value, path);
  std::string kind, base64;
  if (!object)
    return false;
  if (!readString(*object, key::kind, path, kind) ||
      !readString(*object, key::base64, path, base64))
    return false;
  bool isPtx = kind == "ptx", isFirst = bundle.images.empty();
  if (!isPtx && kind != "cubin")
    return fail(path.field(key::kind), "expected \"cubin\" or \"ptx\"");
  if (!isFirst && isPtx != bundle.isPtx)
    return fail(path.field(key::kind), "expected the kind of the first image");
  bundle.isPtx = isPtx;
  std::vector<char> &image = bundle.images.emplace_back();
  if (llvm::Error error = llvm::decodeBase64(base64, image)) {
    llvm::consumeError(std::move(error));
    return fail(path.field(key::base64), "expected base64 text");
  }
  if (bundle.isPtx)
    image.push_back('\0');
  return true;
}

/// Reads the images behind the first, of which none was before version 4.
static bool readFurtherImages(const json::Object &object, json::Path path, BundleInfo &bundle) {
  if (bundle.version < 4 || (bundle.version > 4 && !object.get(key::furtherImages)))
    return true;
  const json::Array *images = readArray(object, key::furtherImages, path);
  for (size_t i = 0; images && i < images->size(); ++i)
    if (!readImage((*images)[i], path.field(key::furtherImages).index(i), bundle))
      return false;
  return images;
}

/// Reads in which image a kernel is: in the first where nothing says so.
static bool readPlace(const json::Value &kernel, json::Path path, const BundleInfo &bundle,
                      KernelInfo &info) {
  const json::Value *number = kernel.getAsObject()->get(key::image);
  int64_t image = 0;
  if (bundle.images.size() > 1 && number &&
      !readInteger(number, path.field(key::image), 0, bundle.images.size() - 1,
                   "expected the number of an image", image))
    return false;
  info.image = image;
  return true;
}

/// Reads an array of what consists of the bundle's kernels; none before its version of the format.
template <typename Info, typename Read>
static bool readOthers(const json::Object &object, StringRef key, int64_t since, json::Path path,
                       BundleInfo &bundle, std::vector<Info> &infos, Read &&read) {
  if (bundle.version < since || (bundle.version > since && !object.get(key)))
    return true;
  const json::Array *others = readArray(object, key, path);
  for (size_t i = 0; others && i < others->size(); ++i)
    if (!read((*others)[i], path.field(key).index(i), bundle, infos.emplace_back()))
      return false;
  return others;
}

static bool readBundle(const json::Value &value, json::Path path, BundleInfo &bundle) {
  const json::Object *object = readObject(value, path);
  if (!object)
    return false;
  if (object->getString(key::format) != StringRef("tessera-bundle"))
    return fail(path.field(key::format), "expected \"tessera-bundle\": this is no bundle");
  if (!readInteger(object->get(key::version), path.field(key::version), 1, 6,
                   "this library reads versions 1 to 6", bundle.version))
    return false;
  if (!readString(*object, key::target, path, bundle.target))
    return false;
  const json::Value *image = object->get(key::image);
  if (!image)
    return fail(path.field(key::image), "expected an object");
  const json::Array *kernels = readArray(*object, key::kernels, path);
  if (!readImage(*image, path.field(key::image), bundle) ||
      !readFurtherImages(*object, path, bundle) || !kernels)
    return false;
  if (kernels->empty())
    return fail(path.field(key::kernels), "expected at least one kernel");
  for (size_t i = 0; i < kernels->size(); ++i) {
    json::Path all = path.field(key::kernels);
    KernelInfo &kernel = bundle.kernels.emplace_back();
    if (!readKernel((*kernels)[i], all.index(i), kernel) ||
        !readPlace((*kernels)[i], all.index(i), bundle, kernel))
      return false;
  }
  return readOthers(*object, key::sequences, 2, path, bundle, bundle.sequences, readSequence) &&
         readOthers(*object, key::choices, 3, path, bundle, bundle.choices, readChoice);
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
