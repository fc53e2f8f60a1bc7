// Without a GPU --device cuda says what is missing, before it compiles, with the exit code of a missing tool.
// UNSUPPORTED: gpu
// RUN: %python -c "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode != 4)" tessera run %s --device cuda 2>&1 | FileCheck %s
// CHECK: error: --device cuda: {{.*[a-z].*}}

tile.kernel @nothing(%x: !tile.view<[4], f32>) grid(%i = 1) {
}
