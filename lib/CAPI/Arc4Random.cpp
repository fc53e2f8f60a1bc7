//===- Arc4Random.cpp - A function that old C libraries lack --------------===//
//
// LLVM's archives call arc4random, which glibc has since 2.36, and nothing else that is newer than
// 2.34. With this one a library that holds them runs on distributions with 2.34.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <sys/random.h>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t number = 0;
  // So few bytes always come, once the kernel has any.
  while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
  }
  return number;
}
