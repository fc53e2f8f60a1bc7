//===- Commands.h - The subcommands of tessera ----------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMMANDS_H
#define TESSERA_TOOLS_TESSERA_COMMANDS_H

#include "tessera/Compiler.h"
#include "tools/tessera/RunKernel.h"
#include "llvm/ADT/Twine.h"

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace tessera {

/// Exit codes of tessera: those of CompileStatus, and that of a run that went wrong.
enum ExitCode { ExitSuccess = 0, ExitFailed = 1, ExitUsage = 2, ExitSource = 3, ExitToolchain = 4 };

/// Prints `message` to stderr and returns `code`.
int reportFailure(const llvm::Twine &message, ExitCode code = ExitUsage);

/// Adds a subcommand to `app`. Its callback ends by throwing CLI::RuntimeError(exit code).
void addCompileCommand(CLI::App &app);
void addParamsCommand(CLI::App &app);
void addKernelsCommand(CLI::App &app);
void addRunCommand(CLI::App &app);
void addCheckCommand(CLI::App &app);
void addTraceCommand(CLI::App &app);
void addInspectCommand(CLI::App &app);
void addExplainCommand(CLI::App &app);
void addTuneCommand(CLI::App &app);

/// Adds FILE, a source or the name of one that ships, and the two kinds of options below.
CLI::Option *addSourceOptions(CLI::App &command, std::string &file,
                              std::vector<std::pair<std::string, std::string>> &defines,
                              ImportOptions &imports);

/// Lists options of `command` under a title of their own in its help.
void groupOptions(CLI::App &command, const std::string &title,
                  std::initializer_list<const char *> names);

/// Ends the help of `command` with examples, before what all subcommands end with.
void addExamples(CLI::App &command, const std::string &examples);

/// Adds `-D NAME=VALUE`, which may be repeated; each is checked for its form and appended to
/// `defines`.
void addDefineOption(CLI::App &command, std::vector<std::pair<std::string, std::string>> &defines);

/// Adds `--pdl` and `--no-split`.
void addPassOptions(CLI::App &command, bool &pdl, bool &split);

/// Adds `-I DIR`, which may be repeated.
void addImportOption(CLI::App &command, ImportOptions &imports);

/// Adds an option NAME=VALUE that may be repeated.
void addAssignments(CLI::App &command, const std::string &option, Assignments &assignments,
                    const std::string &form, const std::string &help);

/// Adds --shape, which also takes several assignments between commas.
void addShape(CLI::App &command, Assignments &shape, const std::string &help);

/// Adds --shape, one shape of assignments between commas for each time it is given.
void addShapes(CLI::App &command, std::vector<Assignments> &shapes, const std::string &help);

/// Adds what says which measured schedules a compilation may use: --database, --no-database,
/// --shape-class and --gpu.
void addTuningOptions(CLI::App &command, CompileOptions::Tuning &tuning);

/// Reads the extents of a shape; throws CLI::ValidationError when one is no integer.
std::vector<std::pair<std::string, int64_t>> readExtents(const Assignments &shape);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMMANDS_H
