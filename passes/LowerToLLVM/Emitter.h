//===- Emitter.h - Writes the program of one thread -----------------------===//
//
// Walks a hop.kernel and writes llvm operations. A tile in registers becomes the
// list of the thread's elements; control flow becomes blocks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWERTOLLVM_EMITTER_H
#define TESSERA_PASSES_LOWERTOLLVM_EMITTER_H

#include "dialects/Hop/FragmentLayout.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "passes/LowerToLLVM/LaunchParameters.h"
#include "passes/LowerToLLVM/NamedBarriers.h"
#include "llvm/ADT/Twine.h"
#include <map>

namespace tessera {

/// A tile of i32 or i64 whose elements are one value plus a constant each: index tiles and what
/// additions make of them. Comparisons of two need one subtraction and immediates.
struct AffineTile {
  mlir::Value base;
  llvm::SmallVector<int64_t> offsets;
  /// How much more `base` is in each lane of a warp than one number that all lanes have; empty
  /// where this is not known.
  llvm::SmallVector<int64_t> lanes = {};
  /// Whether `base`, of 32 bits, is no place, so that its difference with another may wrap.
  bool isFar = false;

  /// One whose base is the same in all lanes.
  static AffineTile ofAll(mlir::Value base, size_t size, bool isFar = false) {
    return {base, llvm::SmallVector<int64_t>(size, 0),
            llvm::SmallVector<int64_t>(hopper::warpThreads, 0), isFar};
  }
};

/// "$0", or "{$0, $1, $2, $3}": so many operands of inline assembly from number `first` on as one.
std::string vectorOf(int64_t first, int64_t count);

/// Elements of a mask, and which of them are true (EmitMasks.cpp).
struct MaskWord;
struct MaskBits;

/// The elements of a row whose place is less than `difference` + `more`, or, unless that is an end,
/// not less.
struct MaskBound {
  bool isEnd;
  mlir::Value difference;
  int64_t more;
};
/// An end and a beginning, as far as there are any.
using MaskBounds = std::array<std::optional<MaskBound>, 2>;

/// A digit of a layout along the axis of a scan (EmitScan.cpp).
struct ScanDigit;

/// A tile in shared memory: the 32-bit shared address of its first row.
struct SharedPlace {
  mlir::Value address;
  hop::SharedLayout layout;
  mlir::Value column = {}; ///< the first one, where that lies amid a chunk
};

/// What the threads of the role being written know of themselves.
struct ThreadValues {
  mlir::Value inGroup;  ///< thread within the warpgroup, 0..127, or within the warps of the role
  mlir::Value warp;     ///< number of the warp in this, known to be the same in all of its threads
  mlir::Value lane;     ///< 0..31
  mlir::Value firstRow; ///< 16 * warp + lane / 4
  mlir::Value firstColumn; ///< 2 * (lane % 4)
  mlir::Value isLeader;    ///< i32: 1 in the first of these threads
  mlir::Value warpgroup;   ///< i32: index of the warpgroup within the role
  mlir::Value amongTiles; ///< i32: the same within those of all blocks that have its tiles together
  /// i1: of the 32 lanes of an elected role that stay together, the one that does what one thread
  /// does; null in other roles.
  mlir::Value chosen;
  mlir::Value chosenLane; ///< i32: its number
  /// i1: the same lane where lanes find places, as ptxas knows that `elect.sync` chooses a single
  /// one. Only around a hop.one_lane, as ptxas takes the branch from around a copy alone.
  mlir::Value elected;
  mlir::Value clusterBase; ///< shared memory of the cluster's block `inGroup` mod its size, if any
};

/// What a warpgroup needs to record its stages; null values in a kernel without a timeline.
struct TimelineValues {
  mlir::Value memory;     ///< i64: global address of the timeline
  mlir::Value block;      ///< i32: offset of the thread block's first record
  mlir::Value isRecorded; ///< i1: the thread block is one of those recorded
  mlir::Value record;     ///< i64: global address of the warpgroup's record
  mlir::Value writes;     ///< i1: this thread records
  /// Address of an i32 that becomes a register: the number of events, which all threads count, so
  /// that ptxas knows it to be the same in a warp.
  mlir::Value count;
};

class Emitter {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  Emitter(hop::KernelOp kernel, const LaunchParameters &parameters, const NamedBarriers &barriers,
          mlir::LLVM::LLVMFuncOp function, mlir::Value sharedBase);

  /// Writes the whole kernel into the function's entry block. With `pdl` it waits for the launch
  /// before it by itself.
  mlir::LogicalResult emitKernel(bool pdl);

private:
  // Structure: EmitKernel.cpp.
  void emitBarrierInit(mlir::Value thread);
  void emitZeroes(hop::BufferOp buffer, mlir::Value thread);
  mlir::LogicalResult emitTeam(const hop::RoleTeam &team, int64_t entryRegisters,
                               mlir::Value warpgroup, mlir::Value thread, mlir::Block *exit);
  mlir::LogicalResult emitShared(const hop::RoleTeam &team, mlir::Value threadIndex,
                                 mlir::Block *next, mlir::Block *exit);
  mlir::Value electLane();
  void electChosen();
  mlir::LogicalResult emitElected(mlir::Block *exit);
  mlir::LogicalResult emitRole(mlir::Block *exit);
  void setThreadValues(mlir::Value thread, mlir::Value warpgroup, int64_t firstWarp = 0);
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitByChosen(mlir::Operation *op);
  mlir::LogicalResult emitForThread(mlir::Operation *op);

  // Control flow: EmitControl.cpp.
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitIf(mlir::scf::IfOp conditional);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp loop);
  llvm::SmallVector<mlir::Type> flatten(mlir::TypeRange types);
  Values flatValues(mlir::ValueRange values);
  void setFlatValues(mlir::ValueRange values, mlir::ValueRange flat);
  void bind(mlir::Value value, Values elements) { fragments[value] = std::move(elements); }
  mlir::Block *splitBlock();
  mlir::Block *enterIf(mlir::Value condition);
  mlir::FailureOr<Values> emitRange(tile::ReduceRangeOp op);
  mlir::LogicalResult emitReduceRange(tile::ReduceRangeOp op);
  mlir::LogicalResult emitInLanes(hop::InLanesOp op);
  mlir::LogicalResult emitOneLane(hop::OneLaneOp op);
  mlir::Value ofLane(llvm::StringRef mode, mlir::Value value, int64_t lane);

  // Elementwise operations on scalars and tiles: EmitElementwise.cpp.
  mlir::LogicalResult emitElementwise(mlir::Operation *op);
  bool isMadeByReduction(mlir::Operation *op);
  mlir::LogicalResult emitConstant(mlir::Operation *op);
  mlir::LogicalResult emitPack(mlir::Operation *op);
  mlir::LogicalResult emitUnpack(mlir::Operation *op);
  mlir::Value roundPair(mlir::Type element, mlir::Value low, mlir::Value high);
  mlir::Value joinHalves(mlir::Value low, mlir::Value high);
  mlir::Value emitScalar(mlir::Operation *op, mlir::ValueRange operands);
  mlir::Value emitElementDivision(mlir::Operation *op, mlir::Value a, mlir::Value b);
  mlir::Value emitShift(mlir::Operation *op, mlir::Value number, mlir::Value places);
  mlir::Value emitScalarInteger(mlir::Operation *op, mlir::ValueRange operands);
  mlir::Value emitScalarFloat(mlir::Operation *op, mlir::ValueRange operands);
  mlir::Value emitCast(mlir::Operation *op, mlir::Value operand);
  mlir::Value emitDifference(mlir::Value a, mlir::Value b, mlir::LLVM::FastmathFlagsAttr contract);
  mlir::Value clampTo32Bits(mlir::Value wide);

  // Index tiles: EmitAffine.cpp.
  bool emitAffine(mlir::Operation *op);
  void convertAffine(mlir::arith::SIToFPOp op);
  bool emitAffineFloats(mlir::Operation *op);
  bool combineAffine(mlir::Operation *op);
  bool scaleAffine(mlir::arith::MulIOp op);
  bool compareAffine(mlir::arith::CmpIOp op);
  bool compareWithRows(mlir::arith::CmpIOp op);
  mlir::Value differenceOf(mlir::arith::CmpIOp op, const AffineTile &a, const AffineTile &b);

  // Quotients, logarithms and angles: EmitFunctions.cpp.
  mlir::Value emitDivision(mlir::arith::DivFOp op, mlir::Value a, mlir::Value b);
  mlir::Value emitLogarithm(mlir::Operation *op, mlir::Value x);
  mlir::Value chooseNearZero(mlir::Value x, mlir::Value variable,
                             llvm::ArrayRef<double> coefficients, double limit, mlir::Value far);
  mlir::Value reduceAngle(mlir::Value x);

  // Masks of several comparisons: EmitMasks.cpp.
  std::optional<unsigned> countComparisons(mlir::Value mask);
  std::optional<AffineTile> indicesOf(mlir::Value tile, const MaskWord &word);
  mlir::Value clampedSum(mlir::Value base, int64_t offset, int64_t end);
  std::optional<MaskBound> boundOf(mlir::arith::CmpIOp compare, const MaskWord &word);
  std::optional<MaskBounds> joinBounds(llvm::ArrayRef<mlir::arith::CmpIOp> comparisons,
                                       const MaskWord &word);
  bool emitBounded(mlir::arith::SelectOp select, llvm::ArrayRef<MaskWord> words);
  std::optional<MaskBits> packComparison(mlir::arith::CmpIOp compare, const MaskWord &word);
  mlir::Value countBefore(mlir::Value place, const MaskWord &word);
  mlir::Value toBits(const MaskBits &mask, const MaskWord &word);
  std::optional<MaskBits> packMask(mlir::Value mask, const MaskWord &word);
  bool emitMasked(mlir::arith::SelectOp select);

  // Exponentials, also on the FMA pipes: EmitExponentials.cpp.
  static std::optional<double> exponentialScale(mlir::Operation *op);
  mlir::Value emitExponential(mlir::Operation *op, mlir::Value exponent);
  mlir::Value chooseTanh(mlir::Value exponent, mlir::Value far);
  bool emitExponentialOfProduct(mlir::Operation *op);
  void emitExponentials(mlir::Operation *op, int64_t sixteenths);
  mlir::Value polynomialExp2(mlir::Value position);
  mlir::Value precisePolynomialExp2(mlir::Value exponent);

  // Tile operations: EmitTile.cpp.
  struct ThreadDigits {
    llvm::ArrayRef<hop::LayoutDigit> lanes, warps, warpgroups;
  };
  mlir::Value sumDigits(mlir::Value number, llvm::ArrayRef<hop::LayoutDigit> digits, int64_t axis);
  mlir::Value sumDigits(const ThreadDigits &digits, int64_t axis);
  /// i32: the place of this thread's first element along `axis`.
  mlir::Value firstPlace(hop::LayoutAttr layout, int64_t axis);
  static llvm::SmallVector<int64_t> placesOfLanes(hop::LayoutAttr layout, int64_t axis);
  /// i32: 0 in one of the threads that hold the same elements of a tile of rank 1.
  mlir::Value sharerOf(hop::LayoutAttr layout);
  mlir::arith::AddFOp additionOf(tile::ReduceOp op);
  mlir::LogicalResult emitReduce(tile::ReduceOp op);
  void emitReference(tile::ReferenceOp op);
  void emitAny(tile::AnyOp op);
  mlir::LogicalResult emitBroadcast(tile::BroadcastOp op);
  mlir::LogicalResult emitSplat(tile::SplatOp op);
  mlir::LogicalResult emitIota(tile::IotaOp op);
  mlir::LogicalResult emitConvertLayout(hop::ConvertLayoutOp op);
  mlir::LogicalResult emitCombine(hop::CombineOp op);
  Values combineSlots(tile::ReduceKind kind, const hop::FragmentLayout &fragment, mlir::Value slots,
                      int64_t parts, int64_t size);
  Values combineBlocks(hop::CombineOp op, llvm::ArrayRef<mlir::Value> own);
  mlir::Value numberOf(llvm::ArrayRef<hop::LayoutDigit> warps,
                       llvm::ArrayRef<hop::LayoutDigit> warpgroups);
  mlir::Value combineElements(tile::ReduceKind kind, mlir::Value tile);
  void emitCombineAll(hop::CombineAllOp op);
  // Scans: EmitScan.cpp.
  struct Scan;
  struct TotalSlots;
  void emitScan(tile::ScanOp op);
  void emitScan(hop::ScanOp op);
  template <typename ScanOp>
  void emitScan(ScanOp op, mlir::Value exchange, bool isAlone);
  void scanRegisters(Scan &scan, int64_t extent, int64_t weight);
  void scanLanes(Scan &scan, int64_t extent, int64_t weight);
  TotalSlots findSlots(const Scan &scan, llvm::ArrayRef<ScanDigit> digits);
  void writeTotals(const Scan &scan, const TotalSlots &slots);
  void joinTotals(Scan &scan, const TotalSlots &slots);
  void scanWarps(Scan &scan, llvm::ArrayRef<ScanDigit> digits);
  void putBefore(Scan &scan, int64_t first, mlir::Value before);
  mlir::Value startOf(tile::ReduceKind kind, mlir::Type type);
  mlir::Value neutral(tile::ReduceKind kind, mlir::Type type);
  mlir::Value combineScanned(tile::ReduceKind kind, mlir::Value a, mlir::Value b);
  void storeShared(mlir::Value address, int64_t byte, mlir::ValueRange values, mlir::Value writes,
                   llvm::StringRef space = "shared");
  Values loadShared(mlir::Value address, int64_t byte, int64_t count);
  mlir::Value combineLanes(mlir::Value value, tile::ReduceKind kind, hop::LayoutAttr layout);
  mlir::Value combine(tile::ReduceKind kind, mlir::Value a, mlir::Value b);

  // Tiles that go from block to block: EmitCluster.cpp.
  void emitFromBlock(hop::FromBlockOp op);
  void sendToBlock(mlir::ValueRange values, int64_t together, llvm::ArrayRef<int64_t> bytes,
                   mlir::Value place, mlir::Value barrier, int64_t distance);
  void receiveFromBlock(mlir::Value barrier, int64_t bytes);

  // Elements of 8 bits: EmitBytes.cpp.
  mlir::Value permuteBytes(mlir::Value a, mlir::Value b, mlir::Value selector);
  mlir::LogicalResult emitRearrange(hop::RearrangeOp op);
  void emitExchange(tile::TransposeOp op);
  Values renameRegisters(mlir::Value source, mlir::RankedTensorType type, bool exchangesAxes);
  void emitColumns(hop::ColumnsOp op);
  Values exchangePairs(mlir::ValueRange words);
  void joinPairs(llvm::MutableArrayRef<mlir::Value> words);
  mlir::Value swizzledAddress(const SharedPlace &tile, mlir::Value row, mlir::Value column);
  mlir::Value swizzlePattern(const hop::SharedLayout &layout, mlir::Value row);
  struct Transposition;
  void emitTranspose(hop::TransposeOp op);
  void setLanes(Transposition &tile);
  void emitBatch(const Transposition &tile, mlir::Value number);

  // Global memory from registers: EmitGlobal.cpp.
  mlir::LogicalResult emitLoad(tile::LoadOp op);
  mlir::LogicalResult emitStore(tile::StoreOp op);
  mlir::LogicalResult emitScatter(tile::ScatterOp op);
  template <typename StoreOp>
  mlir::LogicalResult emitTileStore(StoreOp op, bool adds);
  mlir::LogicalResult emitScalarStore(tile::StoreOp op);
  mlir::LogicalResult emitGather(tile::GatherOp op);
  std::optional<llvm::SmallVector<int64_t>> offsetsOf(mlir::ValueRange indices, int64_t i);
  void emitGatherElements(tile::GatherElementsOp op);
  struct ElementPlaces;
  ElementPlaces placesOf(mlir::Value view, mlir::ValueRange indices);
  llvm::SmallVector<Values> indicesOfElements(mlir::ValueRange indices);
  mlir::Value checkPlace(const ElementPlaces &places, mlir::Value inside, mlir::Value index,
                         size_t dim);
  std::pair<mlir::Value, mlir::Value> placeOf(const ElementPlaces &places,
                                              llvm::function_ref<mlir::Value(size_t)> indexOf);
  // Additions of elements to anywhere in memory: EmitScatter.cpp.
  /// Addresses of an i64 and of an f32 that become registers: for which place a thread has a sum,
  /// or all threads of a warp have a part of one.
  struct OpenSum {
    mlir::Value address, sum;
    bool ofWarp;
  };
  void emitScatterAdd(tile::ScatterAddOp op);
  void addToOnePlace(tile::ScatterAddOp op, const ElementPlaces &places);
  void addToMemory(mlir::Value address, mlir::Value value, mlir::Value inside);
  mlir::Value isFirstSharer(mlir::RankedTensorType type);
  bool mayRepeat(tile::ScatterAddOp op);
  OpenSum openSum(bool ofWarp);
  mlir::Value isOpen(mlir::Value address);
  mlir::Value toGlobal(mlir::Value address);
  mlir::Value sumOfWarp(mlir::Value value);
  void addToOpen(const OpenSum &open, mlir::Value address, mlir::Value value, mlir::Value inside);
  void closeSum(const OpenSum &open);
  void closeSums();
  static mlir::Value findPlace(tile::ScatterAddOp op);
  mlir::Value isFirstLane();
  // Elements that the lanes of a warp hand on: EmitWindows.cpp.
  struct Windows {
    mlir::Value index;
    AffineTile tile;
    std::map<int64_t, int64_t> of;     ///< the first offset of its window, by offset
    llvm::SmallVector<int64_t> starts; ///< of each window
    mlir::Value behind;                ///< how far a lane's base is behind the first lane's
    mlir::Value ahead;                 ///< how far its own element of a window is ahead of its base
    llvm::DenseMap<int64_t, mlir::Value> lanes; ///< `behind` and a number, where known already
  };
  std::optional<Windows> findWindows(mlir::Value index);
  std::optional<Windows> findWindowsOfLoad(tile::GatherElementsOp op);
  mlir::Value indexOfPlaces(mlir::ValueRange indices);
  bool isOnlyPlace(tile::GatherElementsOp op);
  Values computeByWindows(const Windows &windows, mlir::Value result);
  bool placeLanes(Windows &windows);
  bool placeLanesBefore(mlir::scf::ForOp loop, Windows &windows);
  Values handOn(const Windows &windows, llvm::ArrayRef<mlir::Value> values,
                llvm::function_ref<mlir::Value(mlir::Value)> convert);
  bool emitWindows(tile::GatherElementsOp op);
  bool emitOfIndex(mlir::Operation *op);
  mlir::Value laneSum(llvm::ArrayRef<int64_t> lanes);
  // Additions by what a warp has for one place: EmitWindowSums.cpp.
  std::optional<Windows> findWindowsOfSum(tile::ScatterAddOp op);
  Values sumByWindows(const Windows &windows, llvm::ArrayRef<mlir::Value> values);
  void addByLanes(mlir::Value address, mlir::Value sum, mlir::Value inside);
  void addToOpenOfWarp(const ElementPlaces &places, llvm::ArrayRef<mlir::Value> numbers,
                       llvm::ArrayRef<mlir::Value> values, llvm::function_ref<void()> addWindows);
  bool scatterByWindows(tile::ScatterAddOp op, const ElementPlaces &places);
  template <typename LoadOp>
  mlir::LogicalResult emitTileLoad(LoadOp op);
  mlir::LogicalResult emitScalarLoad(tile::LoadOp op);
  mlir::Value loadElement(tile::GatherElementsOp op, const ElementPlaces &places,
                          llvm::function_ref<mlir::Value(size_t)> indexOf);
  mlir::Value loadGuarded(llvm::StringRef suffix, llvm::StringRef constraint, mlir::Type type,
                          mlir::Value address, mlir::Value inside);
  mlir::Value fromRegister(mlir::Value bits, mlir::Type type);
  mlir::Value toRegister(mlir::Value element, mlir::Type type);
  Values bitcastElements(mlir::Value value, mlir::Type type, int64_t count);
  mlir::Value extentOf(tile::ViewType view, int64_t dim);
  mlir::Value outerInside(tile::ViewType view, mlir::ValueRange outer);
  mlir::Value isBelow(mlir::Value index, mlir::Value extent);
  mlir::Value strideOf(mlir::Value view, int64_t dim);
  mlir::Value outerAddress(mlir::Value view, mlir::ValueRange outer);
  mlir::Value placeAddress(mlir::Value view, llvm::ArrayRef<mlir::Value> outer);
  struct Access;
  struct NamedRow;
  struct Place;
  template <typename AccessOp>
  Access makeAccess(AccessOp op, mlir::RankedTensorType type);
  Place placeOf(const Access &access, int64_t rowOffset, int64_t columnOffset);
  mlir::Value addressOf(const Access &access, const Place &place);
  mlir::Value inBounds(const Access &access, const Place &place);
  void storePackedRows(const Access &access, mlir::Value stored);
  void transposeQuad(llvm::MutableArrayRef<mlir::Value> units);
  void storeExchanged(const Access &access, const Place &place, mlir::Value rowInside,
                      llvm::ArrayRef<mlir::Value> unit);
  void storeUnit(const Access &access, mlir::Value address, int64_t offset,
                 llvm::ArrayRef<mlir::Value> unit, mlir::Value whole);
  void storePartialUnit(const Access &access, mlir::Value address, int64_t offset,
                        llvm::ArrayRef<mlir::Value> unit, mlir::Value partial, mlir::Value left);
  void setNamed(Access &access, mlir::RankedTensorType type, mlir::Value view,
                mlir::ValueRange indices, mlir::ValueRange numbers);
  static void setColumns(Access &access, mlir::Value view, mlir::Value column);
  template <typename AccessOp>
  bool movesUnits(Access &access, AccessOp op, int64_t unit);
  Values loadElements(const Access &access, mlir::RankedTensorType type);
  Values loadUnits(const Access &access, mlir::RankedTensorType type);
  void storeUnits(const Access &access, mlir::Value stored);
  struct Unit;
  void forEachUnit(const Access &access, mlir::RankedTensorType type,
                   llvm::function_ref<void(const Unit &)> visit);
  Values splitWords(mlir::ValueRange words, mlir::Type element);
  Values joinWords(mlir::ValueRange elements);
  void storeElements(const Access &access, mlir::Value stored);

  // Gathered rows on their way to shared memory: EmitGather.cpp.
  mlir::LogicalResult emitCopies(hop::GatherOp op);
  mlir::Value bytesInside(const Access &access, const Unit &unit);
  void takeRows(Access &access, mlir::Value number, int64_t rows, int64_t parts);

  // Matrix products: EmitMma.cpp.
  int64_t mostColumns();
  mlir::LogicalResult emitIssue(hop::MmaIssueOp op);
  mlir::LogicalResult emitWait(hop::MmaWaitOp op);
  void emitBlockEnd(mlir::ValueRange tiles);
  struct Operand;
  int64_t columnsAtOnce(int64_t n, const Operand &b);
  Operand sharedOperand(mlir::Value value, bool kMajor);
  struct Product;
  static void printSteps(llvm::raw_ostream &os, const Product &product, int64_t firstA,
                         int64_t firstB);
  Values emitProduct(const Product &product, bool commit);

  // Barriers, copies and turns: EmitSync.cpp.
  mlir::LogicalResult emitSync(mlir::Operation *op);
  void emitSlot(hop::SlotOp op);
  void emitSlice(hop::SliceOp op);
  void emitStaging(hop::StagingOp op);
  void emitL2Prefetch(hop::L2PrefetchOp op);
  void emitBulkLoad(hop::BulkLoadOp op);
  void emitBulkStore(hop::BulkStoreOp op);
  void emitCopies(hop::BulkStoreOp op, const TensorMap &map, const SharedPlace &source);
  void onCopyingThread(mlir::Value condition, llvm::function_ref<void()> emit);
  void emitTurn(mlir::Operation *op);
  void emitSlotAccess(mlir::Operation *op);
  void emitFlag(hop::FlagOp op);
  mlir::Value valueAddress(mlir::Value buffer, mlir::Value index);
  void emitSlotMulticast(hop::SlotMulticastOp op);
  void emitExchange(hop::ExchangeOp op);
  void emitArrive(hop::BarrierArriveOp op);
  void moveToPart(const TensorMap &map, Values &coordinates, mlir::Value &address);
  void emitTileCounter(mlir::Operation *op);
  void emitVerdict(hop::ProbesVerdictOp op);
  void emitTicket(hop::TicketWaitOp op);
  void emitTicket(hop::TicketPassOp op);
  void emitTicket(hop::TicketPeekOp op);
  mlir::Value ticketAddress(mlir::Value number);
  /// i32: this block's index in its cluster.
  mlir::Value clusterRank() { return rank ? rank : i32(0); }
  mlir::Value barrierAddress(mlir::Value barriers, mlir::Value index);
  Values copyCoordinates(const TensorMap &map, mlir::ValueRange indices, int64_t chunk);
  void emitWarpgroupSync();
  void emitRoleSync();
  void emitClusterSync();

  // Tiles of registers in shared memory: EmitStage.cpp.
  void emitStage(hop::StageOp op);
  mlir::LogicalResult emitFetch(hop::FetchOp op);
  using PlaceVisitor =
      llvm::function_ref<void(mlir::Value address, int64_t flips, int64_t offset, int64_t element)>;
  void forEachMatrices(mlir::RankedTensorType type, const SharedPlace &place, PlaceVisitor visit);
  void forEachPair(mlir::RankedTensorType type, const SharedPlace &place, PlaceVisitor visit);
  void forEachRun(mlir::RankedTensorType type, const SharedPlace &place, PlaceVisitor visit);
  void stageRows(hop::StageOp op, const SharedPlace &target);
  void stageVector(hop::StageOp op, const SharedPlace &target);
  void stageColumns(hop::StageOp op, const SharedPlace &target);
  Values writtenElements(hop::StageOp op);
  void stageWords(hop::StageOp op, const SharedPlace &target);
  void stageWordColumns(hop::StageOp op, const SharedPlace &target);
  void stageRuns(hop::StageOp op, const SharedPlace &target);
  void fetchVector(hop::FetchOp op, const SharedPlace &source);
  void fetchRowVector(hop::FetchOp op, const SharedPlace &source);
  void fetchRows(hop::FetchOp op, const SharedPlace &source);
  void fetchWords(hop::FetchOp op, const SharedPlace &source);
  void fetchRuns(hop::FetchOp op, const SharedPlace &source);
  void fetchBytes(hop::FetchOp op, const SharedPlace &source);
  void fetchBytePairs(hop::FetchOp op, const SharedPlace &source);
  void storeMatrices(mlir::Value address, int64_t flips, int64_t offset,
                     llvm::ArrayRef<mlir::Value> matrices, bool transposed);
  mlir::Value warpRow();

  // Records of stages: EmitTimeline.cpp.
  void emitTimelineStart();
  void emitTimelineRoleStart();
  void emitTimelineRoleEnd();
  void emitMark(hop::MarkOp op);

  // Helpers: EmitHelpers.cpp.
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(double value);
  mlir::Value undef(mlir::Type type);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value mul(mlir::Value a, int64_t b);
  /// Remainder and quotient of an unsigned number.
  std::pair<mlir::Value, mlir::Value> divideBy(mlir::Value a, int64_t b);
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type type, mlir::ValueRange operands);
  mlir::Value shuffle(llvm::StringRef mode, mlir::Value value, mlir::Value lane);
  mlir::Value toI32(mlir::Value flag);
  /// Inline assembly that other instructions do not move across. Returns its results.
  Values assembly(const llvm::Twine &text, llvm::StringRef constraints, mlir::ValueRange operands,
                  mlir::TypeRange results);
  mlir::Type lowered(mlir::Type type);
  Values elements(mlir::Value value);
  mlir::Value scalar(mlir::Value value);

  hop::KernelOp kernel;
  const LaunchParameters &parameters;
  mlir::LLVM::LLVMFuncOp function;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::Value sharedBase;
  mlir::Value rank; ///< in a cluster of more than one block
  ThreadValues thread;
  TimelineValues timeline;
  const NamedBarriers &barriers;
  hop::RoleOp role;        ///< that is being written
  int64_t firstRecord = 0; ///< its first one in a timeline
  int64_t blockEnds = 0;   ///< that have been written

  llvm::DenseMap<mlir::Value, Values> fragments; ///< scalars too, as one element
  llvm::DenseMap<mlir::Value, AffineTile> affineTiles;
  llvm::DenseMap<mlir::Value, SharedPlace> sharedTiles;
  llvm::DenseMap<mlir::Value, Values> held;         ///< of tiles, by windows of their index
  llvm::DenseMap<mlir::Operation *, Values> ranges; ///< what a lane has of tile.reduce_range
  llvm::SmallVector<OpenSum> openSums;              ///< of the role
};

} // namespace tessera

#endif // TESSERA_PASSES_LOWERTOLLVM_EMITTER_H
