/*===- tessera-c/tessera.h - The C interface --------------------*- C -*-===*\
|*                                                                          *|
|* Compiling (Compiler.h), launching (Runtime.h), and running a source on   *|
|* the CPU (Program.h).                                                     *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_TESSERA_H
#define TESSERA_C_TESSERA_H

#include "tessera-c/Compiler.h"
#include "tessera-c/Program.h"
#include "tessera-c/Runtime.h"

#endif /* TESSERA_C_TESSERA_H */
