/*===- tessera-c/Commands.h - The command line as functions -----*- C -*-===*\
|*                                                                          *|
|* What the executables are made of. A process calls one of them once.      *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_COMMANDS_H
#define TESSERA_C_COMMANDS_H

#ifndef TESSERA_EXPORT
#define TESSERA_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** `tessera` with these arguments, the first of which is a name; returns its exit code. */
TESSERA_EXPORT int tessera_main(int argc, char **argv);

/** `tessera-lsp-server` with these arguments. */
TESSERA_EXPORT int tessera_language_server_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_COMMANDS_H */
