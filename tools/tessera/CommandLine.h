//===- CommandLine.h - The tessera command line ---------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMMANDLINE_H
#define TESSERA_TOOLS_TESSERA_COMMANDLINE_H

namespace tessera {

/// Runs the subcommand that the arguments name; the exit code.
int runCommandLine(int argc, char **argv);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMMANDLINE_H
