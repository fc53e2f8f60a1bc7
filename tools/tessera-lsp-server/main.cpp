//===- main.cpp - The language server of .tile sources --------------------===//

#include "tessera-c/Commands.h"

int main(int argc, char **argv) { return tessera_language_server_main(argc, argv); }
