//===- LanguageServer.cpp - The language server of .tile sources ----------===//
//
// MLIR's server runs in a child process, since it owns stdin and stdout; this
// process filters what goes to it and what comes back.
//
//===----------------------------------------------------------------------===//

#include "tools/tessera-lsp-server/LanguageServer.h"
#include "lib/Source/Source.h"
#include "lib/Support/Json.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "tools/tessera-lsp-server/SourceFilter.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace llvm;

static constexpr StringLiteral kHelp =
    "tessera-lsp-server " TESSERA_VERSION ": the language server of .tile sources\n\n"
    "An editor starts it and speaks the language server protocol on standard input and output.\n"
    "  --log=error|info|verbose   what goes to standard error (default: info)\n"
    "  --help, --version          print this\n\n"
    "docs/editors.md says how editors are set up.\n";

static int runServer(std::vector<char *> arguments) {
  mlir::DialectRegistry registry;
  tessera::registerSourceDialects(registry);
  return succeeded(mlir::MlirLspServerMain(arguments.size(), arguments.data(), registry)) ? 0 : 1;
}

/// Writes a message to a client that tests read, or with the header of the protocol.
static void writeMessage(raw_ostream &os, const json::Value &message, bool pretty) {
  std::string text = formatv(pretty ? "{0:2}" : "{0}", message).str();
  os << "Content-Length: " << text.size() << "\r\n\r\n" << text << (pretty ? "\n" : "");
  os.flush();
}

/// Reads messages until the input ends and gives each to `handle`.
static void pump(std::FILE *in, lsp::JSONStreamStyle style,
                 function_ref<void(json::Value)> handle) {
  lsp::JSONTransportInputOverFile input(in, style);
  while (!input.isEndOfInput() && !input.hasError()) {
    std::string text;
    if (failed(input.readMessage(text)))
      continue;
    Expected<json::Value> message = tessera::parseJson(text);
    if (!message) {
      errs() << "tessera-lsp-server: " << toString(message.takeError()) << "\n";
      continue;
    }
    handle(std::move(*message));
  }
}

int tessera::runLanguageServer(int argc, char **argv) {
  // `-lit-test` changes what the client sends and reads; the server behind the filter does not see
  // it.
  bool isTest = false, asksForHelp = false;
  std::vector<char *> arguments;
  for (char *argument : ArrayRef<char *>(argv, argc)) {
    StringRef text = argument;
    asksForHelp |= text.ltrim('-').starts_with("help") || text.ltrim('-') == "version";
    if (text == "-lit-test" || text == "--lit-test")
      isTest = true;
    else
      arguments.push_back(argument);
  }
  if (asksForHelp) {
    outs() << kHelp;
    return 0;
  }
  int input[2], output[2];
  if (pipe(input) != 0 || pipe(output) != 0) {
    errs() << "tessera-lsp-server: cannot make a pipe\n";
    return 1;
  }
  std::signal(SIGPIPE, SIG_IGN);
  pid_t child = fork();
  if (child < 0) {
    errs() << "tessera-lsp-server: cannot start the server process\n";
    return 1;
  }
  if (child == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    for (int descriptor : {input[0], input[1], output[0], output[1]})
      close(descriptor);
    return runServer(arguments);
  }
  close(input[0]);
  close(output[1]);

  std::mutex mutex; // Both threads and that of the compiler write to the client.
  auto toClient = [&](const json::Value &message) {
    std::lock_guard<std::mutex> lock(mutex);
    writeMessage(outs(), message, isTest);
  };
  tessera::SourceFilter filter(toClient);
  std::thread toServer([&] {
    raw_fd_ostream os(input[1], /*shouldClose=*/true);
    pump(stdin, isTest ? lsp::JSONStreamStyle::Delimited : lsp::JSONStreamStyle::Standard,
         [&](json::Value message) {
           if (std::optional<json::Value> passed = filter.toServer(std::move(message)))
             writeMessage(os, *passed, /*pretty=*/false);
         });
    // The server may be gone already.
    os.clear_error();
  });
  std::FILE *answers = fdopen(output[0], "r");
  pump(answers, lsp::JSONStreamStyle::Standard,
       [&](json::Value message) { toClient(filter.toClient(std::move(message))); });
  std::fclose(answers);
  // The client sends nothing after `exit`, but may leave its end open.
  toServer.detach();
  int status = 1;
  waitpid(child, &status, 0);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
