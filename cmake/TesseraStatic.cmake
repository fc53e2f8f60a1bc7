# Links LLVM and MLIR from their archives, so that what is built needs the C library and nothing of LLVM.
# Defines TESSERA_MLIR_LIBS.

# The sources of the archives are not ours to compile with sections, but ours are many inline functions of theirs.
add_compile_options(-ffunction-sections -fdata-sections)
# libgcc stays shared: exceptions could not leave a library that has a copy of it.
add_link_options("LINKER:--gc-sections,--as-needed" -static-libstdc++)

# Debian exports MLIR's archives as depending on the shared LLVM and MLIR; a binary would then hold two LLVMs.
set(tessera_llvm_core LLVMRemarks LLVMFrontendOpenMP LLVMTransformUtils LLVMCore LLVMSupportLSP LLVMSupport)
function(tessera_drop_shared_libraries archive)
  get_target_property(links ${archive} INTERFACE_LINK_LIBRARIES)
  if(links MATCHES "(^|[;:])(LLVM|MLIR)([;>]|$)")
    list(REMOVE_ITEM links LLVM MLIR "$<LINK_ONLY:LLVM>")
    list(APPEND links ${tessera_llvm_core})
    set_target_properties(${archive} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
  endif()
endfunction()

# MLIR_ALL_LIBS also names shared libraries, which run generated code on the host.
get_property(tessera_mlir_libs GLOBAL PROPERTY MLIR_ALL_LIBS)
set(tessera_mlir_archives)
foreach(library IN LISTS tessera_mlir_libs)
  get_target_property(kind ${library} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY" AND NOT library MATCHES "^MLIR(CAPI|ExecutionEngine)")
    list(APPEND tessera_mlir_archives ${library})
  endif()
endforeach()
get_property(tessera_imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(library IN LISTS tessera_imported)
  if(NOT library MATCHES "^(LLVM|MLIR)$")
    tessera_drop_shared_libraries(${library})
  endif()
endforeach()

# LLVMSupport is exported with shared zlib, zstd and Z3; of the last nothing that we use has need.
find_library(TESSERA_ZLIB_ARCHIVE NAMES libz.a REQUIRED)
find_library(TESSERA_ZSTD_ARCHIVE NAMES libzstd.a REQUIRED)
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
  "rt;dl;m;${TESSERA_ZLIB_ARCHIVE};${TESSERA_ZSTD_ARCHIVE};LLVMDemangle")

llvm_map_components_to_libnames(tessera_llvm_archives
  AsmParser BitReader BitWriter Core IPO IRReader InstCombine NVPTX Passes Support Target TransformUtils)
# One target, so that the archives appear on a link line once; the linker takes from them what it needs.
add_library(TesseraArchives INTERFACE)
target_link_libraries(TesseraArchives INTERFACE ${tessera_mlir_archives} ${tessera_llvm_archives})
set(TESSERA_MLIR_LIBS TesseraArchives)
