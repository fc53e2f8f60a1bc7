//===- Commands.cpp - The command line as functions -----------------------===//

#include "tessera-c/Commands.h"
#include "tools/tessera-lsp-server/LanguageServer.h"
#include "tools/tessera/CommandLine.h"

int tessera_main(int argc, char **argv) { return tessera::runCommandLine(argc, argv); }

int tessera_language_server_main(int argc, char **argv) {
  return tessera::runLanguageServer(argc, argv);
}
