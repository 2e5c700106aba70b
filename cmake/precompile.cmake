# The standard headers that most sources include, compiled once: reading them
# is half of what compiling the library takes. Each source still includes what it
# uses (tests/house/check_precompiled.py), and -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# builds without.
set(GLOO_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstring> <deque>
  <functional> <map> <memory> <mutex> <optional> <sstream> <stdexcept> <string>
  <thread> <unordered_map> <utility> <vector>)

# So that ccache (./dev uses it) can keep them, and what is compiled with them.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess)
elseif(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
