//===- Progress.cpp - What takes long -------------------------------------===//

#include "tools/tessera/Progress.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cstdlib>

using namespace tessera;

Progress::Progress(std::string what) : what(std::move(what)) {
  const char *given = std::getenv("TESSERA_PROGRESS");
  bool isGiven = given && !llvm::StringRef(given).getAsDouble(delay) && delay >= 0;
  if (isGiven || llvm::errs().is_displayed())
    thread = std::thread([this] { watch(); });
}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Progress::set(std::string next) {
  std::lock_guard<std::mutex> lock(mutex);
  what = std::move(next);
}

void Progress::watch() {
  using namespace std::chrono;
  auto start = steady_clock::now();
  auto getSeconds = [&] { return duration<double>(steady_clock::now() - start).count(); };
  std::unique_lock<std::mutex> lock(mutex);
  for (double next = delay;; next = std::max(2 * next, 1.0)) {
    auto due = start + duration_cast<steady_clock::duration>(duration<double>(next));
    if (changed.wait_until(lock, due, [&] { return ends; }))
      return;
    // One write, so that lines of others stay whole.
    llvm::errs() << llvm::formatv("tessera: {0} ({1:f0} s)\n", what, getSeconds()).str();
  }
}
