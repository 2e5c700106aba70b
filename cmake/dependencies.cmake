# Other people's code that the library itself is linked with. All are Debian
# packages: see packages() in ./dev. Tests, benchmarks and examples find their own.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# PkgConfig::hwy: Highway, SIMD with run-time dispatch.
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET GLOBAL libhwy)

# The parser of tuning files: headers only.
find_package(nlohmann_json REQUIRED)

# PkgConfig::hiredis: the client of the Redis store.
if(USE_REDIS)
  pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET GLOBAL hiredis)
endif()

# PkgConfig::hwloc: where memory, cores and devices are. Without it nothing is
# placed.
if(USE_HWLOC)
  pkg_check_modules(hwloc IMPORTED_TARGET GLOBAL hwloc)
  if(NOT hwloc_FOUND)
    set(USE_HWLOC OFF)
  endif()
endif()

# The header of libibverbs; the library itself is loaded when it is first used.
if(USE_IBVERBS)
  find_path(IBVERBS_INCLUDE_DIR infiniband/verbs.h)
  if(NOT IBVERBS_INCLUDE_DIR)
    message(FATAL_ERROR "infiniband/verbs.h not found: install libibverbs-dev, "
      "or build without RDMA (-DUSE_IBVERBS=OFF)")
  endif()
endif()
