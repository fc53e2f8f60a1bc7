//===- tessera/RefusalKind.h - Of what kind an error is -------------------===//

#ifndef TESSERA_REFUSALKIND_H
#define TESSERA_REFUSALKIND_H

namespace tessera {

/// What an error says that a program which is right does not fit.
enum class RefusalKind {
  None,         ///< the program is wrong, or a tool is missing
  Registers,    ///< those of a thread; smaller tiles may fit
  SharedMemory, ///< that of a thread block; smaller tiles may fit
  Unsupported,  ///< no schedule can hold, whatever the registers and the shared memory
};

} // namespace tessera

#endif // TESSERA_REFUSALKIND_H
