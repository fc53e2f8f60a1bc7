# Finds LLVM and MLIR 22.1 and defines the helpers the other directories use:
#   tessera_library(NAME [PRECOMPILED] SOURCES... [DEPENDS ...] [LINK ...])
#                                                                 a static library over MLIR; PRECOMPILED: of its headers
#   tessera_tool(NAME SOURCES... [LINK ...])                      an executable in bin/
#   tessera_launcher(NAME SOURCES...)                             the same, a call of libtessera and nothing else
find_package(MLIR 22.1 CONFIG QUIET HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT MLIR_FOUND)
  set(others)
  if(MLIR_CONSIDERED_VERSIONS)
    set(others " (found ${MLIR_CONSIDERED_VERSIONS})")
  endif()
  message(FATAL_ERROR "Tessera builds with LLVM and MLIR 22.1, which are not here${others}: install them, on Debian 12 by "
    "`./dev setup`, or set MLIR_DIR to the directory of their MLIRConfig.cmake")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
# Debian's package has LLVM and MLIR as shared libraries; naming any archive beside them would load two copies.
set(LLVM_LINK_LLVM_DYLIB ON)
set(MLIR_LINK_MLIR_DYLIB ON)
if(TESSERA_STATIC)
  set(LLVM_LINK_LLVM_DYLIB OFF)
  set(MLIR_LINK_MLIR_DYLIB OFF)
endif()
include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(TESSERA_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${TESSERA_LLVM_DEFINITIONS})
if(TESSERA_SANITIZE)
  include(TesseraSanitize)
else()
  # As LLVM's packages are built.
  add_definitions(-DNDEBUG)
endif()
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-comment -fno-semantic-interposition)
# As LLVM does: g++ sees uninitialised values behind every parser call that can fail.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
# As LLVM is built. A file that includes CLI11 sets its own COMPILE_OPTIONS -fexceptions.
add_compile_options(-fno-exceptions)
find_program(TESSERA_LLD NAMES ld.lld HINTS "${LLVM_TOOLS_BINARY_DIR}")
if(TESSERA_LLD)
  # -B is how g++ finds a linker off PATH; clang has it beside itself.
  cmake_path(GET TESSERA_LLD PARENT_PATH TESSERA_LLD_DIR)
  add_link_options("-fuse-ld=lld" "$<$<CXX_COMPILER_ID:GNU>:-B${TESSERA_LLD_DIR}>")
endif()
find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE)
  # Without these ccache passes over every file with a precompiled header.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "${TESSERA_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
endif()

if(TESSERA_STATIC)
  include(TesseraStatic)
else()
  set(TESSERA_MLIR_LIBS MLIR LLVM)
endif()

# One precompiled header serves all libraries that are compiled alike. ccache knows it by its contents.
option(TESSERA_PRECOMPILE "Precompile the headers of MLIR that most files include: a build takes half the time" ON)
if(TESSERA_PRECOMPILE)
  add_library(TesseraPrecompiledOptions INTERFACE)
  target_compile_options(TesseraPrecompiledOptions INTERFACE
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/Precompiled.cpp" CONTENT "")
  add_library(TesseraPrecompiled OBJECT "${CMAKE_BINARY_DIR}/Precompiled.cpp")
  target_link_libraries(TesseraPrecompiled PRIVATE TesseraPrecompiledOptions)
  target_precompile_headers(TesseraPrecompiled PRIVATE "${PROJECT_SOURCE_DIR}/cmake/Precompiled.h")
endif()

option(TESSERA_UNITY "Compile several files of a library as one: a whole build takes half the time, one after a change more" OFF)

# tessera_unity(TARGET)
# What each file instantiates of templates is then optimized and instrumented once for eight of them. Therefore a name that
# is static or in an anonymous namespace is the only one in its library. Files with COMPILE_OPTIONS of their own stay alone,
# and with SKIP_UNITY_BUILD_INCLUSION those whose names are of LLVM where others' are of MLIR.
function(tessera_unity target)
  if(TESSERA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # A call would mean another file's function of the same name, in place of the static one.
    target_compile_options(${target} PRIVATE -Werror=unused-function)
  endif()
endfunction()

function(tessera_library name)
  cmake_parse_arguments(ARG "PRECOMPILED" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_PRECOMPILED)
    tessera_unity(${name})
    if(TESSERA_PRECOMPILE)
      target_precompile_headers(${name} REUSE_FROM TesseraPrecompiled)
      target_link_libraries(${name} PRIVATE TesseraPrecompiledOptions)
    endif()
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK} ${TESSERA_MLIR_LIBS})
endfunction()

function(tessera_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} ${TESSERA_MLIR_LIBS})
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;/usr/lib/llvm-22/lib")
  set_property(GLOBAL APPEND PROPERTY TESSERA_TEST_DEPENDS ${name})
endfunction()

function(tessera_launcher name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE libtessera)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  set_property(GLOBAL APPEND PROPERTY TESSERA_TEST_DEPENDS ${name})
endfunction()
