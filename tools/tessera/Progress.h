//===- Progress.h - What takes long --------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_PROGRESS_H
#define TESSERA_TOOLS_TESSERA_PROGRESS_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tessera {

/// While it lives, says on a terminal what takes longer than two seconds, and again after 4, 8, ...
/// With TESSERA_PROGRESS=SECONDS it says so after these, wherever standard error goes.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();

  /// What is done now.
  void set(std::string what);

private:
  void watch();

  std::mutex mutex;
  std::condition_variable changed;
  std::string what;
  double delay = 2;
  bool ends = false;
  std::thread thread;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_PROGRESS_H
