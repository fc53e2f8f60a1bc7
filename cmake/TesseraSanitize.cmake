# Compiles our sources with AddressSanitizer, UndefinedBehaviorSanitizer and asserts, against LLVM's and MLIR's packages,
# which have none of the three. NDEBUG changes no class of theirs while LLVM_ENABLE_ABI_BREAKING_CHECKS is as in the
# packages, 0. There is no RTTI for -fsanitize=vptr. The runtime is a shared library, so that Python can load it first and
# libtessera then. Edges are counted for libFuzzer (test/fuzz); its tracing of comparisons would make the simulator many
# times slower. Defines TESSERA_ASAN_RUNTIME and TESSERA_FUZZER_RUNTIME.
# What the address sanitizer or the processor's page fault reports too is left out: it is a sixth of the build's time.
set(TESSERA_SANITIZERS -fsanitize=address,undefined -fno-sanitize-recover=all
  -fno-sanitize=vptr,null,alignment,object-size,nonnull-attribute,returns-nonnull-attribute)
add_compile_options(-O1 -gline-tables-only -fno-omit-frame-pointer -fsanitize-coverage=inline-8bit-counters,pc-table
  ${TESSERA_SANITIZERS})
add_definitions(-D_GLIBCXX_ASSERTIONS)
# tessera_sanitizer_runtime(VARIABLE FILE): the path of one of clang's runtime libraries
function(tessera_sanitizer_runtime variable file)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" "-print-file-name=${file}"
    OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS "${path}")
    message(FATAL_ERROR "TESSERA_SANITIZE needs clang and its runtime libraries (libclang-rt-22-dev): no ${file}")
  endif()
  set(${variable} "${path}" PARENT_SCOPE)
endfunction()
tessera_sanitizer_runtime(TESSERA_ASAN_RUNTIME "libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so")
tessera_sanitizer_runtime(TESSERA_FUZZER_RUNTIME "libclang_rt.fuzzer-${CMAKE_SYSTEM_PROCESSOR}.a")
cmake_path(GET TESSERA_ASAN_RUNTIME PARENT_PATH TESSERA_ASAN_DIR)
add_link_options(${TESSERA_SANITIZERS} -shared-libasan "LINKER:-rpath,${TESSERA_ASAN_DIR}")
