# What an outside program needs: library, headers, find_package(Gloo) and
# pkg-config.

include(CMakePackageConfigHelpers)
set(gloo_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Gloo)

install(TARGETS gloo EXPORT GlooTargets
  FILE_SET HEADERS FILE_SET generated_headers FILE_SET mpi_headers)
install(EXPORT GlooTargets NAMESPACE Gloo:: DESTINATION ${gloo_cmake_dir})

configure_package_config_file(cmake/GlooConfig.cmake.in
  ${PROJECT_BINARY_DIR}/GlooConfig.cmake
  INSTALL_DESTINATION ${gloo_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/GlooConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/GlooConfig.cmake
  ${PROJECT_BINARY_DIR}/GlooConfigVersion.cmake
  DESTINATION ${gloo_cmake_dir})

# pkg-config: prefix is found from the place of gloo.pc, so that an installed
# tree can be moved.
file(RELATIVE_PATH gloo_pc_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# Only who links the static library needs the packages that it was built with:
# pkg-config wants to see them, and hands out their flags, whenever they are named.
set(gloo_pc_requires_private)
if(NOT BUILD_SHARED_LIBS)
  set(gloo_pc_requires_private libhwy)
  if(USE_HWLOC)
    string(APPEND gloo_pc_requires_private " hwloc")
  endif()
  if(USE_REDIS)
    string(APPEND gloo_pc_requires_private " hiredis")
  endif()
endif()
configure_file(cmake/gloo.pc.in ${PROJECT_BINARY_DIR}/gloo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gloo.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
