/* Lists what the file that the command line names declares and compiles it, from C. */
#include <stdio.h>
#include <stdlib.h>
#include <tessera-c/tessera.h>

static void print_diagnostic(const tessera_diagnostic *diagnostic, void *user_data) {
  ++*(int *)user_data;
  fprintf(stderr, "%s:%u:%u: %s\n", diagnostic->file, (unsigned)diagnostic->line,
          (unsigned)diagnostic->column, diagnostic->message);
  for (size_t i = 0; i < diagnostic->note_count; ++i)
    fprintf(stderr, "note: %s\n", diagnostic->notes[i].message);
}

static int list(const char *text, size_t length, tessera_define define, int *count) {
  tessera_source *source;
  tessera_compile_status status = tessera_source_inspect(text, length, "product.tile", &define, 1,
                                                         print_diagnostic, count, &source);
  if (status != TESSERA_COMPILE_SUCCESS)
    return status;
  tessera_parameter parameter = {sizeof parameter};
  for (size_t i = 0; tessera_source_parameter(source, i, &parameter); ++i)
    printf("parameter %s: %s = %s, %zu allowed, %s\n", parameter.name, parameter.kind,
           parameter.default_value, parameter.allowed_count, parameter.documentation);
  tessera_kernel_info kernel = {sizeof kernel};
  for (size_t i = 0; tessera_source_kernel(source, i, &kernel); ++i)
    printf("kernel %s over %s: %zu arguments, first %s, dim %s\n", kernel.name, kernel.grid,
           kernel.argument_count, kernel.argument_names[0], kernel.dims[0]);
  tessera_source_destroy(source);
  return 0;
}

int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  if (!file)
    return 1;
  static char text[65536];
  size_t length = fread(text, 1, sizeof text, file);
  fclose(file);

  int count = 0;
  tessera_define define = {"N", argv[2]};
  printf("version %s\n", tessera_version());
  int listed = list(text, length, define, &count);
  if (listed != 0)
    return listed;

  tessera_compile_options options = {sizeof options};
  options.defines = &define;
  options.define_count = 1;
  options.bundle_ptx = 1;
  tessera_compilation *compilation;
  tessera_compile_status status = tessera_compile(text, length, "product.tile", &options,
                                                  print_diagnostic, &count, &compilation);
  if (status != TESSERA_COMPILE_SUCCESS)
    return status;
  size_t size;
  const char *output = tessera_compilation_output(compilation, &size);
  tessera_bundle *bundle;
  if (tessera_bundle_load(output, size, &bundle) != TESSERA_RUNTIME_SUCCESS) {
    fprintf(stderr, "%s\n", tessera_last_error());
    return 1;
  }
  printf("compiled %s, loaded %zu kernel\n", tessera_compilation_kernel_name(compilation, 0),
         tessera_bundle_kernel_count(bundle));
  tessera_bundle_destroy(bundle);
  tessera_compilation_destroy(compilation);

  options.emit = 99;
  status = tessera_compile(text, length, "product.tile", &options, print_diagnostic, &count,
                           &compilation);
  printf("status %d, handle %d, %d diagnostics\n", (int)status, compilation != NULL, count);
  return 0;
}
