# The public headers: what is installed, and what is compiled on its own as
# C++17 by the target all_verify_interface_header_sets.
#
# Everything under gloo/ is a promise, so it is found by looking; only
# gloo/internal and gloo/reductions are not, and what a public class or template
# needs of them is listed by hand.

file(GLOB_RECURSE GLOO_PUBLIC_HEADERS CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/gloo/*.h)
list(FILTER GLOO_PUBLIC_HEADERS EXCLUDE REGEX
  "/gloo/(internal|reductions)/")

# What is not built has no header.
if(NOT USE_REDIS)
  list(FILTER GLOO_PUBLIC_HEADERS EXCLUDE REGEX "/redis_store\\.h$")
endif()
if(NOT USE_IBVERBS)
  list(FILTER GLOO_PUBLIC_HEADERS EXCLUDE REGEX "/transport/ibverbs/")
endif()
if(NOT USE_CUDA)
  list(FILTER GLOO_PUBLIC_HEADERS EXCLUDE REGEX "/gloo/cuda")
endif()

set(GLOO_INSTALLED_INTERNAL_HEADERS
  gloo/internal/kernels.h
  gloo/internal/options.h
  gloo/internal/persistent.h)
foreach(header IN LISTS GLOO_INSTALLED_INTERNAL_HEADERS)
  list(APPEND GLOO_PUBLIC_HEADERS ${PROJECT_SOURCE_DIR}/${header})
endforeach()

# Needs an MPI, which nothing else here does: compiled by its test only.
list(FILTER GLOO_PUBLIC_HEADERS EXCLUDE REGEX "/gloo/mpi/")

# Two sets, because the build folder may lie inside the source folder.
target_sources(gloo PUBLIC
  FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}
    FILES ${GLOO_PUBLIC_HEADERS}
  FILE_SET generated_headers TYPE HEADERS
    BASE_DIRS ${PROJECT_BINARY_DIR}/include
    FILES ${PROJECT_BINARY_DIR}/include/gloo/config.h
  FILE_SET mpi_headers TYPE HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}
    FILES ${PROJECT_SOURCE_DIR}/gloo/mpi/context.h)
set_target_properties(gloo PROPERTIES
  INTERFACE_HEADER_SETS_TO_VERIFY "HEADERS;generated_headers")
