# What `cmake --install` puts where, and the package that find_package(Tessera) finds there.
include(CMakePackageConfigHelpers)

install(TARGETS libtessera tessera_runtime
  EXPORT TesseraTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libraries)
install(DIRECTORY include/tessera include/tessera-c
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT libraries)
install(DIRECTORY kernels/
  DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera/kernels" COMPONENT libraries FILES_MATCHING PATTERN "*.tile" PATTERN "schedules.json" PATTERN "choices/*.json")
foreach(tool tessera tessera-opt tessera-lsp-server)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
  endif()
endforeach()

set(TESSERA_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Tessera")
install(EXPORT TesseraTargets NAMESPACE Tessera::
  DESTINATION "${TESSERA_PACKAGE_DIR}" COMPONENT libraries)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/TesseraConfig.cmake.in"
  "${CMAKE_BINARY_DIR}/TesseraConfig.cmake"
  INSTALL_DESTINATION "${TESSERA_PACKAGE_DIR}"
  PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/TesseraConfig.cmake" "${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/TesseraKernels.cmake"
  DESTINATION "${TESSERA_PACKAGE_DIR}" COMPONENT libraries)
