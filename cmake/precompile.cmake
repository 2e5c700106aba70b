# The standard headers that most sources include, compiled once: reading them
# is half of what compiling the library takes. Each source still includes what it
# uses (tests/house/check_precompiled.py), and -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# builds without.
set(GLOO_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstring> <deque>
  <functional> <map> <memory> <mutex> <optional> <sstream> <stdexcept> <string>
  <thread> <unordered_map> <utility> <vector>)

# Reading our own headers, and those of a few tests, is two fifths of the rest. What
# is compiled from nothing, as the sanitizers' builds are, has them compiled once too.
# Other builds do without: there a source that lacks one is noticed, and a change of
# one compiles no more than what needs it.
option(GLOO_PRECOMPILE_OWN "Precompile headers of this project too" OFF)
if(GLOO_PRECOMPILE_OWN)
  list(APPEND GLOO_PRECOMPILED_HEADERS
    ${PROJECT_SOURCE_DIR}/algorithms/collective.h
    ${PROJECT_SOURCE_DIR}/gloo/common/logging.h
    ${PROJECT_SOURCE_DIR}/transport/base/context.h)
  set(GLOO_PRECOMPILED_TEST_HEADERS <gmock/gmock.h> <barrier> <fstream> <random>
    ${PROJECT_SOURCE_DIR}/tests/support/collectives.h
    ${PROJECT_SOURCE_DIR}/tests/transport/contract/contract.h)
endif()

# So that ccache (./dev uses it) can keep them, and what is compiled with them.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess)
elseif(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
