//===- ShapeClassTest.cpp -------------------------------------------------===//

#include "lib/Database/ShapeClass.h"
#include "lib/Database/Json.h"
#include "lib/Source/Source.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace tessera;
using namespace tessera::tuning;
using Dims = llvm::StringMap<int64_t>;

namespace {
/// The kernels of a source.
class ShapeClassTest : public ::testing::Test {
protected:
  ShapeClassTest() {
    mlir::DialectRegistry registry;
    registerSourceDialects(registry);
    context.appendDialectRegistry(registry);
  }

  tile::KernelOp read(llvm::StringRef text, std::vector<source::Define> defines = {}) {
    ReadResult result = readSource(text, "test.tile", defines, context);
    EXPECT_EQ(result.status, CompileStatus::Success);
    module = std::move(result.module);
    return *module->getOps<tile::KernelOp>().begin();
  }
  tile::KernelOp readKernel(const std::string &name, std::vector<source::Define> defines = {}) {
    return read(cantFail(readFile(TESSERA_SOURCE_DIR "/kernels/" + name + ".tile")),
                std::move(defines));
  }
  ShapeMeasure measure(tile::KernelOp kernel, const Dims &dims) {
    EXPECT_FALSE(static_cast<bool>(checkShape(kernel, dims)));
    return cantFail(measureShape(kernel, dims));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};
} // namespace

TEST_F(ShapeClassTest, CountsTilesAndIterations) {
  ShapeMeasure found = measure(readKernel("gemm", {{"BM", "128"}, {"BN", "256"}, {"BK", "64"}}),
                               {{"M", 1000}, {"N", 512}, {"K", 1030}});
  EXPECT_EQ(found.tiles, 16u);
  EXPECT_EQ(found.iterations, 17);
}

/// The last rows see most blocks, as with a causal mask.
TEST_F(ShapeClassTest, TakesTheLongestTile) {
  tile::KernelOp kernel = read(R"(
tile.kernel @sums(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %end = tile.dim "M"
  %row = arith.muli %m, %c128 : index
  %past = arith.addi %row, %c128 : index
  %seen = arith.minsi %past, %end : index
  %blocks = arith.ceildivsi %seen, %c64 : index
  %q = tile.load %x[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<128x64xbf16>
  %sum = scf.for %j = %c0 to %blocks step %c1 iter_args(%old = %zero) -> (tensor<128x64xf32>) {
    %col = arith.muli %j, %c64 : index
    %k = tile.load %x[%col, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
    %new = tile.dot %q, %k, %old : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %new : tensor<128x64xf32>
  }
  tile.store %sum, %y[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
})");
  ShapeMeasure found = measure(kernel, {{"M", 1024}});
  EXPECT_EQ(found.tiles, 8u);
  EXPECT_EQ(found.iterations, 16);
}

TEST_F(ShapeClassTest, NoLoopIsShort) {
  tile::KernelOp kernel = read(R"(
tile.kernel @copy(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  tile.store %t, %y[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
})");
  EXPECT_EQ(getShapeClass(measure(kernel, {{"M", 64}}), 132), "few-short");
}

TEST_F(ShapeClassTest, ASequenceIsAsItsLongestKernel) {
  readKernel("gemm", {{"PART", "32"}, {"BN", "128"}});
  tile::EntryOpInterface sequence = *module->getOps<tile::SequenceOp>().begin();
  llvm::StringMap<int64_t> dims = {{"M", 1024}, {"N", 512}, {"K", 8192}};
  ASSERT_FALSE(static_cast<bool>(checkShape(sequence, dims)));
  ShapeMeasure found = cantFail(measureShape(sequence, dims));
  EXPECT_EQ(found.tiles, 8u * 4 * 4);
  EXPECT_EQ(found.iterations, 32);
  EXPECT_EQ(toString(checkShape(sequence, {{"M", 1}, {"N", 1}, {"K", 1}, {"PARTS", 1}})),
            "sequence 'gemm' has no dimension 'PARTS'; it has M, K, N");
}

TEST_F(ShapeClassTest, NamesWhatIsMissing) {
  tile::KernelOp kernel = readKernel("gemm");
  EXPECT_EQ(toString(checkShape(kernel, {{"M", 1}, {"N", 1}})), "the shape lacks the extent of K");
  EXPECT_EQ(toString(checkShape(kernel, {{"M", 1}, {"N", 1}, {"K", 1}, {"L", 1}})),
            "kernel 'gemm' has no dimension 'L'; it has M, K, N");
}

TEST_F(ShapeClassTest, LengthMustFollowFromExtents) {
  tile::KernelOp kernel = read(R"(
tile.kernel @product(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[N, 64], f16>, %n: index)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  scf.for %i = %c0 to %n step %c64 {
    %bt = tile.load %b[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %at, %bt : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  }
})");
  llvm::Expected<ShapeMeasure> found = measureShape(kernel, {{"M", 64}, {"N", 64}});
  ASSERT_FALSE(static_cast<bool>(found));
  EXPECT_NE(toString(found.takeError()).find("depends on more than extents"), std::string::npos);
}

TEST(ShapeClassNamesTest, Boundaries) {
  EXPECT_EQ(getShapeClass({132, 23}, 132), "few-short");
  EXPECT_EQ(getShapeClass({133, 24}, 132), "many-medium");
  EXPECT_EQ(getShapeClass({133, 95}, 132), "many-medium");
  EXPECT_EQ(getShapeClass({133, 96}, 132), "many-long");
  EXPECT_EQ(getShapeClass({133, 96}, 144), "few-long");
  llvm::SmallVector<std::string> classes = getShapeClasses();
  EXPECT_EQ(classes.size(), 6u);
  EXPECT_TRUE(llvm::is_contained(classes, defaultShapeClass.str()));
}
