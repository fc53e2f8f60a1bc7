# Finds lit, its tools and GoogleTest, and defines:
#   tessera_unittest(NAME SOURCES... [LINK ...])   a GoogleTest executable NAMETests that the lit run picks up
find_program(TESSERA_LIT NAMES lit llvm-lit HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED NO_DEFAULT_PATH)
find_package(GTest REQUIRED)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

set(TESSERA_UNITTEST_DIR "${CMAKE_BINARY_DIR}/test/unit/bin")

function(tessera_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name}Tests EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}Tests PRIVATE ${ARG_LINK} ${TESSERA_MLIR_LIBS} GTest::gtest GTest::gtest_main)
  set_target_properties(${name}Tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TESSERA_UNITTEST_DIR}")
  set_property(GLOBAL APPEND PROPERTY TESSERA_UNITTESTS ${name}Tests)
endfunction()
