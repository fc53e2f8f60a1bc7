/* Uses the launcher without a compiler. */
#include <stdio.h>
#include <tessera-c/Runtime.h>

int main(void) {
  tessera_bundle *bundle;
  tessera_runtime_status status = tessera_bundle_load("{}", 2, &bundle);
  printf("status %d: %s\n", (int)status, tessera_last_error());
  return 0;
}
