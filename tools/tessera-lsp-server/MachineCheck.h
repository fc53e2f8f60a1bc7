//===- MachineCheck.h - What the machine does not take of a text ----------===//
//
// Compiles texts in a thread of its own, as far as roles and pipes: what is refused by then depends
// on the source alone, and takes about a tenth of a second.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_LSP_MACHINECHECK_H
#define TESSERA_TOOLS_LSP_MACHINECHECK_H

#include "llvm/Support/JSON.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tessera {

/// One version of a document.
struct CheckedText {
  std::string uri;
  int64_t version;
  std::string path, text;
};

class MachineCheck {
public:
  /// Receives what was found, as diagnostics of LSP, in the thread of the check.
  using Report = std::function<void(const CheckedText &, llvm::json::Array)>;

  explicit MachineCheck(Report report) : report(std::move(report)), thread([this] { work(); }) {}
  ~MachineCheck() {
    finish();
    thread.join();
  }

  /// Checks a text when those before are done; of a document the last version alone.
  void start(CheckedText text);
  /// Waits until all is checked. Nothing is afterwards.
  void finish();

private:
  void work();

  Report report;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<CheckedText> waiting;
  bool isBusy = false, ends = false;
  std::thread thread;
};

} // namespace tessera

#endif // TESSERA_TOOLS_LSP_MACHINECHECK_H
