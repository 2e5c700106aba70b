# What can be chosen, and the flags that follow from it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

option(BUILD_SHARED_LIBS "Build a shared library" ${PROJECT_IS_TOP_LEVEL})
option(BUILD_TEST "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(BUILD_BENCHMARK "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(BUILD_TOOLS "Build the tools" ${PROJECT_IS_TOP_LEVEL})
option(BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(USE_REDIS "Build the Redis store (hiredis)" ON)
option(USE_IBVERBS "Build the ibverbs transport" ON)
option(USE_MPI "Tell callers, by GLOO_USE_MPI, that they have MPI" OFF)
option(USE_HWLOC "Place memory on NUMA nodes, where hwloc is installed" ON)
include(cmake/cuda.cmake)
option(GLOO_INLINE_NAMESPACE "Put all names in an inline namespace" ON)
option(GLOO_LTO "Optimise the shared library as a whole (Release, gcc)" ON)
option(GLOO_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)

# As gloo/config.h shows it. The macros are 0 or 1.
set(GLOO_IMPLEMENTATION "verbs-first")
foreach(feature IN ITEMS CUDA REDIS IBVERBS MPI)
  if(USE_${feature})
    set(GLOO_USE_${feature} 1)
  else()
    set(GLOO_USE_${feature} 0)
  endif()
endforeach()
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/gloo/cuda.h)
  set(GLOO_USE_CUDA 0)  # the classes of that header are not there
endif()
set(GLOO_HAVE_TRANSPORT_IBVERBS 0)
if(USE_IBVERBS AND
    EXISTS ${PROJECT_SOURCE_DIR}/gloo/transport/ibverbs/device.h)
  set(GLOO_HAVE_TRANSPORT_IBVERBS 1)
endif()
if(GLOO_INLINE_NAMESPACE)
  set(GLOO_INLINE_NAMESPACE 1)
else()
  set(GLOO_INLINE_NAMESPACE 0)
endif()

# -ffp-contract=off: a fused multiply-add would give other bits on hosts that
# have it than on those that do not.
set(GLOO_COMPILE_OPTIONS -Wall -Wextra -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
  # What gcc 12 guesses of inlined strings and vectors is often wrong (its bugs
  # 105651 and 105329): to be seen, but no error.
  list(APPEND GLOO_COMPILE_OPTIONS
    -Wno-error=restrict -Wno-error=stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND GLOO_COMPILE_OPTIONS -Wthread-safety)
endif()

# Other build types are for work and should build quickly; clang's objects would
# not do for the archive of the same objects too.
if(NOT BUILD_SHARED_LIBS OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR
    NOT CMAKE_BUILD_TYPE STREQUAL Release)
  set(GLOO_LTO OFF)
elseif(GLOO_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT GLOO_LTO LANGUAGES CXX)
endif()

set(GLOO_SANITIZED OFF)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(GLOO_SANITIZED ON)
endif()

# Adds a folder of this project, if it has a CMakeLists.txt.
function(gloo_add_subdirectory folder)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endfunction()
