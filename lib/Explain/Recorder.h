//===- Recorder.h - What a compilation went through -----------------------===//

#ifndef TESSERA_LIB_EXPLAIN_RECORDER_H
#define TESSERA_LIB_EXPLAIN_RECORDER_H

#include "dialects/Tile/Tile.h"
#include "lib/Compiler/Observer.h"
#include "lib/Explain/Pictures.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include <list>

namespace tessera::explain {

/// Numbers for places of a source: each is a list of lines of its files.
class PlaceTable {
public:
  explicit PlaceTable(llvm::ArrayRef<SourceFile> files);

  /// The number for the lines that a location holds; 0 for none.
  unsigned add(mlir::Location loc);
  /// By number, `[[file, line], ...]`.
  llvm::json::Array toJSON() const;

private:
  using Lines = std::vector<std::pair<unsigned, unsigned>>;
  llvm::StringMap<unsigned> files;
  std::vector<Lines> places;
  std::map<Lines, unsigned> numbers;
};

/// Keeps the forms of a compilation as text, what the search of schedules made of its kernels, and
/// the pictures of its masks. Of several trials it keeps the forms of the last.
class Recorder : public CompilationObserver {
public:
  Recorder(llvm::ArrayRef<SourceFile> files, const PictureRequest &request)
      : places(files), request(request) {}

  void readSource(mlir::ModuleOp module) override;
  void runPass(llvm::StringRef pass, mlir::ModuleOp module, bool hasFailed) override;
  void beginTrial(mlir::ModuleOp form) override;
  void endCompilation() override;

  /// What is wrong with the request; empty where nothing is.
  llvm::StringRef getProblem() const { return problem; }
  /// Moves `parameters`, `places`, `forms`, `trials` and `kernels` into the data of a page.
  void moveTo(llvm::json::Object &data);

private:
  struct Forms {
    llvm::json::Array list;
    std::string text; ///< of the last
  };
  /// A source as it was read with some parameters, and its forms from there on.
  struct Reading {
    mlir::DictionaryAttr parameters;
    mlir::OwningOpRef<mlir::ModuleOp> source;
    Forms forms;
  };

  void record(llvm::StringRef pass, mlir::ModuleOp module, bool hasFailed);
  Reading &findReading(mlir::ModuleOp module);
  llvm::json::Object describeChoice(tile::KernelOp kernel, tile::ScheduleAttr asked) const;

  PlaceTable places;
  const PictureRequest &request;
  std::list<Reading> readings;
  /// The reading that the last trial is of.
  Reading *tried = nullptr;
  Forms trial;
  bool inTrial = false;
  unsigned numTrials = 0;
  llvm::json::Value parameters = nullptr;
  /// By kernel, what each trial chose, and its picture.
  std::map<std::string, llvm::json::Array> choices;
  std::map<std::string, llvm::json::Object> pictures;
  std::string problem;
};

} // namespace tessera::explain

#endif // TESSERA_LIB_EXPLAIN_RECORDER_H
