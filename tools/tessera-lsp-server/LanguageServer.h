//===- LanguageServer.h - The language server of .tile sources ------------===//

#ifndef TESSERA_TOOLS_LSP_LANGUAGESERVER_H
#define TESSERA_TOOLS_LSP_LANGUAGESERVER_H

namespace tessera {

/// Serves until the client is done; the exit code.
int runLanguageServer(int argc, char **argv);

} // namespace tessera

#endif // TESSERA_TOOLS_LSP_LANGUAGESERVER_H
