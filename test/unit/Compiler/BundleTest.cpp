//===- BundleTest.cpp - From attributes to bundles ------------------------===//

#include "lib/Compiler/Bundle.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Runtime/Bundle.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace tessera;
namespace json = llvm::json;

namespace {
class BundleTest : public testing::Test {
protected:
  BundleTest() : context(createRegistry(), mlir::MLIRContext::Threading::DISABLED) {}

  static mlir::DialectRegistry createRegistry() {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    return registry;
  }

  /// The JSON of an attribute's text; null after an error, which `message` then holds.
  json::Value convert(llvm::StringRef attribute) {
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
    mlir::FailureOr<json::Value> value =
        toJSON(mlir::parseAttribute(attribute, &context), mlir::UnknownLoc::get(&context));
    return mlir::failed(value) ? json::Value(nullptr) : *value;
  }

  mlir::MLIRContext context;
  std::string message;
};
} // namespace

TEST_F(BundleTest, ConvertsAttributes) {
  EXPECT_EQ(convert("\"text\""), json::Value("text"));
  EXPECT_EQ(convert("42"), json::Value(42));
  EXPECT_EQ(convert("-7 : i32"), json::Value(-7));
  EXPECT_EQ(convert("3 : index"), json::Value(3));
  EXPECT_EQ(convert("true"), json::Value(true));
  EXPECT_EQ(convert("false"), json::Value(false));
  EXPECT_EQ(convert("0.5 : f32"), json::Value(0.5));
  EXPECT_EQ(convert("bf16"), json::Value("bf16"));
  EXPECT_EQ(convert("unit"), json::Value(true));
  EXPECT_EQ(convert("array<i64: 1, 2>"), json::Value(json::Array{1, 2}));
  EXPECT_EQ(convert("array<i32: 384, 1, 1>"), json::Value(json::Array{384, 1, 1}));
  EXPECT_EQ(convert("[1, \"B\", {x = 2}]"),
            json::Value(json::Array{1, "B", json::Object{{"x", 2}}}));
  EXPECT_EQ(convert("{}"), json::Value(json::Object{}));
}

TEST_F(BundleTest, RefusesOtherAttributes) {
  EXPECT_EQ(convert("{x = [affine_map<(d0) -> (d0)>]}"), json::Value(nullptr));
  EXPECT_NE(message.find("has no JSON form"), std::string::npos) << message;
  EXPECT_EQ(convert("18446744073709551616 : i128"), json::Value(nullptr));
  EXPECT_NE(message.find("does not fit in 64 bits"), std::string::npos) << message;
}

static const char *const lowered = R"(
llvm.func @helper() {
  llvm.return
}
llvm.func @scale_0() attributes {nvvm.kernel, tessera.kernel = {
    name = "scale", symbol = "scale_0", dims = ["M"], requirements = [],
    arguments = [{name = "x", kind = "view", element = "f16", dims = ["M", 64], access = "read", alignment = 16},
                 {name = "a", kind = "scalar", type = "f32"}],
    launch_parameters = [{kind = "pointer", argument = "x"}, {kind = "dim", dim = "M", type = "i32"},
                         {kind = "scalar", argument = "a", type = "f32"}],
    grid = [{extent = "M", divisor = 64}], block = array<i64: 128, 1, 1>, cluster = array<i64: 1, 1, 1>,
    shared_memory = 1024, report = {stages = 2}}} {
  llvm.return
}
)";
static const char *const ptx = ".visible .entry scale_0()\n{\n\tex2.approx.f32 %r1, %r2;\n}\n";

TEST_F(BundleTest, DescribesKernels) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(lowered, &context);
  ASSERT_TRUE(static_cast<bool>(module));
  PtxasLog log = parsePtxasLog("ptxas info    : Compiling entry function 'scale_0' for 'sm_90a'\n"
                               "ptxas info    : Used 40 registers, used 1 barriers\n");
  mlir::FailureOr<json::Array> kernels = describeKernels(*module, PTXText(ptx), &log);
  ASSERT_TRUE(mlir::succeeded(kernels));
  ASSERT_EQ(kernels->size(), 1u);
  const json::Object &report = *(*kernels)[0].getAsObject()->getObject("report");
  EXPECT_EQ(report.getInteger("stages"), 2);
  EXPECT_EQ(report.getObject("instructions")->getInteger("ex2"), 1);
  EXPECT_EQ(report.getObject("resources")->getInteger("registers"), 40);
  EXPECT_EQ(report.getObject("resources")->getInteger("barriers"), 1);
}

TEST_F(BundleTest, WritesWhatTheLauncherReads) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(lowered, &context);
  ASSERT_TRUE(static_cast<bool>(module));
  mlir::FailureOr<json::Array> kernels = describeKernels(*module, PTXText(ptx), nullptr);
  ASSERT_TRUE(mlir::succeeded(kernels));
  EXPECT_EQ((*kernels)[0].getAsObject()->getObject("report")->get("resources"), nullptr);
  std::string image("\0\xff image", 8);
  BundledKernel kernel{std::move(*(*kernels)[0].getAsObject()),
                       std::make_shared<const std::string>(image)};
  std::string text = writeBundle(json::Object{{"D", 128}}, ImageKind::Cubin, kernel, {}, {});
  llvm::Expected<runtime::BundleInfo> bundle = runtime::readBundle(text);
  ASSERT_TRUE(static_cast<bool>(bundle)) << llvm::toString(bundle.takeError());
  EXPECT_EQ(bundle->target, "sm_90a");
  EXPECT_FALSE(bundle->isPtx);
  ASSERT_EQ(bundle->images.size(), 1u);
  EXPECT_EQ(std::string(bundle->images[0].begin(), bundle->images[0].end()), image);
  EXPECT_EQ(bundle->version, 1);
  ASSERT_EQ(bundle->kernels.size(), 1u);
  EXPECT_EQ(bundle->kernels[0].name, "scale");
  EXPECT_EQ(bundle->kernels[0].symbol, "scale_0");
  EXPECT_EQ(bundle->kernels[0].parameters.size(), 3u);
  EXPECT_EQ(json::parse(text)->getAsObject()->getObject("parameters")->getInteger("D"), 128);
}

TEST_F(BundleTest, WritesAnImageOnce) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(lowered, &context);
  ASSERT_TRUE(static_cast<bool>(module));
  mlir::FailureOr<json::Array> described = describeKernels(*module, PTXText(ptx), nullptr);
  ASSERT_TRUE(mlir::succeeded(described));
  Image first = std::make_shared<const std::string>("first"),
        second = std::make_shared<const std::string>("second");
  std::vector<BundledKernel> kernels;
  for (auto [name, image] :
       {std::pair("a", first), std::pair("b", second), std::pair("c", first)}) {
    kernels.push_back({json::Object(*(*described)[0].getAsObject()), image});
    kernels.back().description["name"] = name;
  }
  llvm::Expected<runtime::BundleInfo> bundle =
      runtime::readBundle(writeBundle({}, ImageKind::Cubin, kernels, {}, {}));
  ASSERT_TRUE(static_cast<bool>(bundle)) << llvm::toString(bundle.takeError());
  EXPECT_EQ(bundle->version, 4);
  ASSERT_EQ(bundle->images.size(), 2u);
  EXPECT_EQ(std::string(bundle->images[1].begin(), bundle->images[1].end()), "second");
  EXPECT_EQ(bundle->kernels[0].image, 0u);
  EXPECT_EQ(bundle->kernels[1].image, 1u);
  EXPECT_EQ(bundle->kernels[2].image, 0u);
}

TEST_F(BundleTest, RefusesADescriptionThatIsNoDictionary) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "llvm.func @k() attributes {tessera.kernel = 1} {\n llvm.return\n}", &context);
  ASSERT_TRUE(static_cast<bool>(module));
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  EXPECT_TRUE(mlir::failed(describeKernels(*module, PTXText(""), nullptr)));
  EXPECT_NE(message.find("must be a dictionary"), std::string::npos) << message;
}

TEST_F(BundleTest, TheDocumentedExampleIsABundle) {
  auto file = llvm::MemoryBuffer::getFile(TESSERA_SOURCE_DIR "/docs/bundle.md");
  ASSERT_TRUE(static_cast<bool>(file));
  llvm::StringRef example = (*file)->getBuffer().split("```json\n").second.split("```").first;
  llvm::Expected<runtime::BundleInfo> bundle = runtime::readBundle(example);
  ASSERT_TRUE(static_cast<bool>(bundle)) << llvm::toString(bundle.takeError());
  EXPECT_EQ(bundle->kernels.size(), 1u);
}
