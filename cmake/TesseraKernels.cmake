# tessera_add_kernel(TARGET SOURCE.tile [VARIANTS "NAME PARAMETER=VALUE ..." ...] [OPTIONS OPTION ...])
#
# Adds a static library TARGET of kernels that the compiler writes as C (docs/cpp.md). Each variant is a function NAME in a header
# NAME.h, with these values of the source's parameters; without VARIANTS there is one with the source's name and defaults. OPTIONS
# go to `tessera compile`. Who links the library needs neither compiler nor launcher at run time. The program `tessera` is that of
# the installation's component `tools`, one on PATH, or Tessera_EXECUTABLE.

function(tessera_add_kernel target source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "VARIANTS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tessera_add_kernel: '${arg_UNPARSED_ARGUMENTS}' is neither VARIANTS nor OPTIONS")
  endif()
  find_program(Tessera_EXECUTABLE tessera HINTS ${Tessera_PROGRAM_DIRS})
  if(NOT Tessera_EXECUTABLE)
    list(JOIN Tessera_PROGRAM_DIRS ", " directories)
    message(FATAL_ERROR "tessera_add_kernel: there is no program 'tessera' in ${directories} or on PATH. "
      "Install the component 'tools' beside 'libraries', or set Tessera_EXECUTABLE to the program")
  elseif(NOT EXISTS "${Tessera_EXECUTABLE}")
    message(FATAL_ERROR "tessera_add_kernel: Tessera_EXECUTABLE is '${Tessera_EXECUTABLE}', which does not exist")
  endif()
  get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT arg_VARIANTS)
    get_filename_component(arg_VARIANTS "${source}" NAME_WE)
  endif()
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels")
  file(MAKE_DIRECTORY "${directory}")
  set(files)
  foreach(variant IN LISTS arg_VARIANTS)
    separate_arguments(parameters UNIX_COMMAND "${variant}")
    list(POP_FRONT parameters name)
    list(TRANSFORM parameters PREPEND "-D")
    set(output "${directory}/${name}")
    add_custom_command(OUTPUT "${output}.c" "${output}.h"
      COMMAND "${Tessera_EXECUTABLE}" compile "${source}" ${parameters} ${arg_OPTIONS} --emit c -o "${output}.c"
              --deps "${output}.d"
      DEPFILE "${output}.d"
      DEPENDS "${source}" "${Tessera_EXECUTABLE}" COMMENT "Compiling ${name}" VERBATIM)
    list(APPEND files "${output}.c" "${output}.h")
  endforeach()
  find_package(Threads REQUIRED)
  add_library(${target} STATIC ${files})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PUBLIC "${directory}")
  target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS} Threads::Threads)
endfunction()
