//===- CommandLine.cpp - The tessera command line -------------------------===//

#include "tools/tessera/CommandLine.h"
#include "lib/Support/Files.h"
#include "lib/Support/NearestNames.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/KernelSource.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include <CLI/CLI.hpp>

using namespace tessera;

CLI::Option *tessera::addSourceOptions(CLI::App &command, std::string &file,
                                       std::vector<std::pair<std::string, std::string>> &defines,
                                       ImportOptions &imports) {
  CLI::Option *source = command.add_option(
      "FILE", file, "The source, or the name of a kernel that ships (tessera kernels)");
  addDefineOption(command, defines);
  addImportOption(command, imports);
  return source->required();
}

void tessera::groupOptions(CLI::App &command, const std::string &title,
                           std::initializer_list<const char *> names) {
  for (const char *name : names)
    command.get_option(name)->group(title);
}

void tessera::addExamples(CLI::App &command, const std::string &examples) {
  command.footer("Examples:\n" + examples + "\n\n" + command.get_footer());
}

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

void tessera::addPassOptions(CLI::App &command, bool &pdl, bool &split) {
  command.add_flag("--pdl", pdl,
                   "Programmatic dependent launch: a launch may begin while the one before it in "
                   "the stream ends");
  command.add_flag("--split,!--no-split", split,
                   "Give iterations that need no mask a loop without one (default)");
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

static std::vector<std::string> listSubcommands(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// Says that there is no subcommand of this name, and which there are.
static int refuseSubcommand(const CLI::App &app, llvm::StringRef name) {
  std::vector<std::string> names = listSubcommands(app);
  llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
  return reportFailure("there is no subcommand '" + name + "'" + suggestNames(name, known) +
                       "; there are " + llvm::join(names, ", "));
}

/// Says what the subcommand takes no argument for, and which option may be meant.
static int refuseExtra(const CLI::App &command) {
  std::vector<std::string> names, extras = command.remaining();
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
  std::string title = "tessera " + command.get_name();
  for (llvm::StringRef extra : extras)
    if (llvm::StringRef name = extra.split('=').first; name.starts_with("-"))
      return reportFailure(title + " has no option '" + name + "'" + suggestNames(name, known) +
                           "; tessera help " + command.get_name() + " lists them");
  return reportFailure(title + " has no use for '" + extras.front() +
                       "'; text with blanks stands in quotes");
}

static void addHelpCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("help", "Print the help of a subcommand, or this one");
  auto name = std::make_shared<std::string>();
  sub->add_option("SUBCOMMAND", *name, "The subcommand");
  sub->callback([&app, name] {
    std::vector<std::string> names = listSubcommands(app);
    if (!name->empty() && !llvm::is_contained(names, *name))
      throw CLI::RuntimeError(refuseSubcommand(app, *name));
    const CLI::App *shown = name->empty() ? &app : app.get_subcommand(*name);
    std::string title = (name->empty() ? "" : "tessera ") + shown->get_name();
    llvm::outs() << app.get_formatter()->make_help(shown, title, CLI::AppFormatMode::Normal);
    throw CLI::RuntimeError(ExitSuccess);
  });
}

static int runSubcommand(int argc, char **argv) {
  // An error that LLVM deems fatal then becomes one with a source location.
  llvm::CrashRecoveryContext::Enable();
  CLI::App app("Tessera compiles kernels written at tile level to Hopper machine code.", "tessera");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, every check holds; 1 a kernel ran and went wrong; 2 an option, a "
      "file or a launch that\nis refused; 3 a source or a schedule does not compile; 4 a tool "
      "is missing or failed.\nThe first kernel: docs/first-kernel.md. Kernels that ship: "
      "tessera kernels.");
  app.set_version_flag("-v,--version",
                       "tessera " TESSERA_VERSION " with LLVM " LLVM_VERSION_STRING);
  app.set_help_all_flag("--help-all", "Print the help of every subcommand");
  addCompileCommand(app);
  addParamsCommand(app);
  addKernelsCommand(app);
  addRunCommand(app);
  addCheckCommand(app);
  addTraceCommand(app);
  addInspectCommand(app);
  addExplainCommand(app);
  addTuneCommand(app);
  addHelpCommand(app);
  try {
    app.parse(getArguments(argc, argv));
  } catch (const CLI::RuntimeError &error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError &error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
      return refuseSubcommand(app, argv[1]);
    for (const CLI::App *command : app.get_subcommands())
      if (command->remaining_size() && error.get_exit_code() != 0)
        return refuseExtra(*command);
    return app.exit(error) == 0 ? ExitSuccess : ExitUsage;
  }
  return ExitSuccess;
}

int tessera::runCommandLine(int argc, char **argv) {
  int code = runSubcommand(argc, argv);
  return flushStandardStreams() && code == ExitSuccess ? ExitUsage : code;
}
