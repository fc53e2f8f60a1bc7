//===- TestBundle.cpp - A bundle to test with -----------------------------===//

#include "TestBundle.h"

#include "FakeDriver.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

static constexpr const char *kBundle = R"({
  "format": "tessera-bundle", "version": 1, "target": "sm_90a", "parameters": {"D": 128},
  "image": {"kind": "cubin", "base64": "f0VMRg=="},
  "kernels": [{
    "name": "attend", "symbol": "attend_entry", "dims": ["B", "H", "SQ", "HK"],
    "arguments": [
      {"name": "q", "kind": "view", "element": "bf16", "dims": ["B", "H", "SQ", 128],
       "access": "read", "alignment": 16},
      {"name": "k", "kind": "view", "element": "bf16", "dims": ["B", "HK", "SQ", 128],
       "access": "read", "alignment": 16},
      {"name": "o", "kind": "view", "element": "bf16", "dims": ["B", "H", "SQ", 128],
       "access": "write", "alignment": 16},
      {"name": "lse", "kind": "view", "element": "f32", "dims": ["B", "H", "SQ"],
       "access": "write", "alignment": 4},
      {"name": "scale", "kind": "scalar", "type": "f32"}],
    "requirements": [{"divisor": "HK", "dividend": "H"}],
    "launch_parameters": [
      {"kind": "tensor_map", "argument": "q", "element": "bf16", "swizzle": "128B",
       "dims": [{"extent": 64}, {"extent": "SQ", "stride_of_dim": 2},
                {"extent": 2, "stride_bytes": 128}, {"extent": "H", "stride_of_dim": 1},
                {"extent": "B", "stride_of_dim": 0}],
       "box": [64, 64, 2, 1, 1]},
      {"kind": "tensor_map", "argument": "k", "element": "bf16", "swizzle": "64B",
       "dims": [{"extent": 32}, {"extent": "SQ", "stride_of_dim": 2},
                {"extent": 4, "stride_bytes": 64}, {"extent": "HK", "stride_of_dim": 1},
                {"extent": "B", "stride_of_dim": 0}],
       "box": [32, 128, 4, 1, 1]},
      {"kind": "pointer", "argument": "o"},
      {"kind": "pointer", "argument": "lse"},
      {"kind": "dim", "dim": "SQ", "type": "i32"},
      {"kind": "stride", "argument": "o", "dim": 2, "type": "i64"},
      {"kind": "dim", "dim": "HK", "type": "i64"},
      {"kind": "scalar", "argument": "scale", "type": "f32"}],
    "grid": [{"extent": "SQ", "divisor": 128}, {"extent": "H", "divisor": 1},
             {"extent": "B", "divisor": 1}],
    "block": [384, 1, 1], "cluster": [1, 1, 1], "shared_memory": 164000,
    "schedule": "consumers=2", "report": {"spills": 0}
  }]
})";

json::Value tessera::runtime::test::makeBundle() { return llvm::cantFail(json::parse(kBundle)); }

json::Object &tessera::runtime::test::getKernel(json::Value &bundle) {
  return *(*bundle.getAsObject()->getArray("kernels"))[0].getAsObject();
}

std::string tessera::runtime::test::toText(const json::Value &bundle) {
  return llvm::formatv("{0}", bundle).str();
}

TestArguments::TestArguments() {
  // BSHD storage, seen as [B, H, S, D].
  shapes[Q] = shapes[O] = {2, 4, 300, 128};
  strides[Q] = strides[O] = {300 * 4 * 128, 128, 4 * 128, 1};
  shapes[K] = {2, 2, 300, 128};
  strides[K] = {300 * 2 * 128, 128, 2 * 128, 1};
  shapes[LSE] = {2, 4, 300};
  strides[LSE] = {4 * 300, 300, 1};
  arguments.resize(Count);
  for (int i = 0; i < Scale; ++i) {
    arguments[i].type = i == LSE ? TESSERA_TYPE_F32 : TESSERA_TYPE_BF16;
    arguments[i].pointer = fake::kMemory + (uint64_t(i + 1) << 37);
  }
  arguments[Scale].type = TESSERA_TYPE_SCALAR_F32;
  arguments[Scale].scalar.f32 = 0.125f;
  update();
}

void TestArguments::update() {
  for (int i = 0; i < Scale; ++i) {
    arguments[i].shape = shapes[i].data();
    arguments[i].strides = strides[i].data();
    arguments[i].rank = shapes[i].size();
  }
}
