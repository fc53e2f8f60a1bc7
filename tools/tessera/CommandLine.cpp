//===- CommandLine.cpp - The tessera command line -------------------------===//

#include "tools/tessera/CommandLine.h"
#include "lib/Support/Files.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/KernelSource.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include <CLI/CLI.hpp>

using namespace tessera;

void tessera::addDefineOption(CLI::App &command,
                              std::vector<std::pair<std::string, std::string>> &defines) {
  auto append = [&defines](const std::vector<std::string> &items) {
    for (const std::string &item : items) {
      size_t equal = item.find('=');
      if (equal == 0 || equal == std::string::npos)
        throw CLI::ValidationError("-D", "expected NAME=VALUE, got '" + item + "'");
      defines.emplace_back(item.substr(0, equal), item.substr(equal + 1));
    }
  };
  command
      .add_option_function<std::vector<std::string>>("-D,--define", append,
                                                     "Give a parameter of the source a value")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void tessera::addImportOption(CLI::App &command, ImportOptions &imports) {
  command
      .add_option("-I,--import-path", imports.paths,
                  "Look for the files of `$import` in this directory too")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      .add_option("--rules", imports.rules.files,
                  "Rules that choose free parameters and schedules before those of the source")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

/// The arguments in the order in which CLI11 takes them, last first. CLI11 would read `-Xptxas`,
/// which has the form that compiler users know, as `-X ptxas`.
static std::vector<std::string> getArguments(int argc, char **argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (argument == "-Xptxas" || argument.rfind("-Xptxas=", 0) == 0)
      argument.insert(0, "-");
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

/// Says that there is no subcommand of this name, and which there are.
static int refuseSubcommand(const CLI::App &app, llvm::StringRef name) {
  std::vector<const CLI::App *> all = app.get_subcommands([](const CLI::App *) { return true; });
  return reportFailure(
      "there is no subcommand '" + name + "'; there are " +
      llvm::join(llvm::map_range(all, [](auto *one) { return one->get_name(); }), ", "));
}

static int runSubcommand(int argc, char **argv) {
  // An error that LLVM deems fatal then becomes one with a source location.
  llvm::CrashRecoveryContext::Enable();
  CLI::App app("Tessera compiles kernels written at tile level to Hopper machine code.", "tessera");
  app.require_subcommand(1);
  app.set_version_flag("--version", "tessera " TESSERA_VERSION " with LLVM " LLVM_VERSION_STRING);
  app.set_help_all_flag("--help-all", "Print the help of every subcommand");
  addCompileCommand(app);
  addParamsCommand(app);
  addRunCommand(app);
  addCheckCommand(app);
  addTraceCommand(app);
  addInspectCommand(app);
  addExplainCommand(app);
  addTuneCommand(app);
  try {
    app.parse(getArguments(argc, argv));
  } catch (const CLI::RuntimeError &error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError &error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
      return refuseSubcommand(app, argv[1]);
    return app.exit(error) == 0 ? ExitSuccess : ExitUsage;
  }
  return ExitSuccess;
}

int tessera::runCommandLine(int argc, char **argv) {
  int code = runSubcommand(argc, argv);
  return flushStandardStreams() && code == ExitSuccess ? ExitUsage : code;
}
