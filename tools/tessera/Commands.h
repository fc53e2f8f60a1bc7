//===- Commands.h - The subcommands of tessera ----------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMMANDS_H
#define TESSERA_TOOLS_TESSERA_COMMANDS_H

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tessera {

/// Exit codes of tessera: those of CompileStatus, and that of a run that went wrong.
enum ExitCode { ExitSuccess = 0, ExitFailed = 1, ExitUsage = 2, ExitSource = 3, ExitToolchain = 4 };

/// Adds a subcommand to `app`. Its callback ends by throwing CLI::RuntimeError(exit code).
void addCompileCommand(CLI::App &app);
void addParamsCommand(CLI::App &app);
void addRunCommand(CLI::App &app);
void addCheckCommand(CLI::App &app);
void addTraceCommand(CLI::App &app);
void addInspectCommand(CLI::App &app);

/// Adds `-D NAME=VALUE`, which may be repeated; each is checked for its form and appended to
/// `defines`.
void addDefineOption(CLI::App &command, std::vector<std::pair<std::string, std::string>> &defines);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMMANDS_H
