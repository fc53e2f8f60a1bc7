import tessera
