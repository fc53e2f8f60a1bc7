//===- main.cpp - The tessera command line --------------------------------===//

#include "tessera-c/Commands.h"

int main(int argc, char **argv) { return tessera_main(argc, argv); }
