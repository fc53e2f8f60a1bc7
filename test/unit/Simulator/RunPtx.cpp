//===- RunPtx.cpp - Small programs for tests ------------------------------===//
#include "RunPtx.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace tessera::sim;
using namespace tessera::sim::test;

bool Result::has(DiagKind kind) const {
  for (const Diagnostic &d : report.diagnostics)
    if (d.kind == kind)
      return true;
  return false;
}
std::string Result::text() const {
  std::string s = error;
  llvm::raw_string_ostream os(s);
  report.print(os);
  return s;
}

Result tessera::sim::test::runPtx(llvm::StringRef body, const LaunchSetup &setup) {
  std::string ptx = ".version 8.3\n.target sm_90a\n.address_size 64\n"
                    ".extern .shared .align 1024 .b8 smem[];\n"
                    ".visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {\n"
                    ".reg .b32 %r<64>; .reg .b64 %d<32>; .reg .f32 %f<32>; .reg .f64 %g<16>; .reg "
                    ".b16 %h<32>; .reg .pred %p<16>;\n"
                    "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x;\n";
  ptx += body;
  ptx += "\nret;\n}\n";
  Result result;
  auto module = parseModule(ptx, "test.ptx");
  if (!module) {
    result.error = llvm::toString(module.takeError());
    return result;
  }
  GlobalMemory memory;
  uint64_t out = llvm::cantFail(memory.allocate(setup.outWords * 4, "out"));
  std::vector<uint8_t> bytes(setup.outWords * 4);
  if (!setup.in.empty())
    memcpy(bytes.data(), setup.in.data(), std::min(bytes.size(), setup.in.size() * 4));
  llvm::cantFail(memory.write(out, bytes));
  Launch launch;
  launch.kernel = "k";
  launch.grid = setup.grid;
  launch.cluster = setup.cluster;
  launch.block = {setup.threads, 1, 1};
  launch.dynamicSharedBytes = setup.sharedBytes;
  launch.memory = &memory;
  launch.params.resize(192);
  memcpy(launch.params.data(), &out, 8);
  if (setup.map) {
    TensorMapDesc desc = *setup.map;
    desc.globalAddress = out;
    memcpy(&launch.params[64], llvm::cantFail(encodeTensorMap(desc)).data(), 128);
  }
  Options options;
  options.seed = setup.seed;
  options.moveApproximations = setup.moveApproximations;
  auto report = run(*module, launch, options);
  if (!report) {
    result.error = llvm::toString(report.takeError());
    return result;
  }
  result.report = std::move(*report);
  result.out.resize(setup.outWords);
  llvm::cantFail(memory.read(out, {reinterpret_cast<uint8_t *>(result.out.data()), bytes.size()}));
  return result;
}

std::vector<uint32_t>
tessera::sim::test::evaluate(llvm::StringRef code,
                             const std::vector<std::pair<uint32_t, uint32_t>> &inputs) {
  LaunchSetup setup;
  for (auto [a, b] : inputs) {
    setup.in.push_back(a);
    setup.in.push_back(b);
  }
  setup.in.resize(64);
  std::string body =
      "mul.wide.u32 %d1, %r0, 8; add.u64 %d1, %d0, %d1; ld.global.v2.u32 {%r1, %r2}, [%d1];\n";
  body += code;
  body += "\nst.global.u32 [%d1], %r3;";
  Result r = runPtx(body, setup);
  if (!r.error.empty() || !r.report.ok())
    llvm::report_fatal_error(llvm::StringRef(r.text()));
  std::vector<uint32_t> out;
  for (size_t k = 0; k < inputs.size(); ++k)
    out.push_back(r.out[2 * k]);
  return out;
}
uint32_t tessera::sim::test::evaluate1(llvm::StringRef code, uint32_t a, uint32_t b) {
  return evaluate(code, {{a, b}})[0];
}
