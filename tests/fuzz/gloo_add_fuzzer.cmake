# gloo_add_fuzzer(NAME SOURCE): a parser of foreign bytes (tests/fuzz/target.h).
# Every build runs it in the test `fuzz_replay`; preset asan also builds the
# libFuzzer program NAME_fuzz, which `./dev fuzz` runs for a while.
set(GLOO_FUZZ_SECONDS 10 CACHE STRING "How long a fuzz test runs")

add_executable(fuzz_replay)
target_precompile_headers(fuzz_replay PRIVATE ${GLOO_PRECOMPILED_HEADERS})

# All that ./dev fuzz needs: the rest of the tests has a build of its own.
add_custom_target(fuzzers DEPENDS fuzz_replay)

function(gloo_add_fuzzer name source)
  get_filename_component(source ${source} ABSOLUTE)
  target_sources(fuzz_replay PRIVATE ${source})
  if(NOT GLOO_BUILD_FUZZERS)
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/tests/fuzz)
  add_executable(${name}_fuzz ${source} ${folder}/target.cc ${folder}/entry.cc)
  target_link_libraries(${name}_fuzz PRIVATE gloo_internal)
  target_precompile_headers(${name}_fuzz REUSE_FROM fuzz_replay)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name}_fuzz)
  set(corpus ${CMAKE_CURRENT_BINARY_DIR}/${name}_fuzz.corpus)
  file(MAKE_DIRECTORY ${corpus})
  add_test(NAME fuzz.${name}.corpus
    COMMAND fuzz_replay corpus ${name} ${corpus})
  add_test(NAME fuzz.${name} COMMAND ${name}_fuzz
    -max_total_time=${GLOO_FUZZ_SECONDS} -timeout=5 -verbosity=0
    -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}_fuzz. ${corpus})
  set_tests_properties(fuzz.${name}.corpus PROPERTIES
    LABELS fuzz FIXTURES_SETUP fuzz_${name})
  set_tests_properties(fuzz.${name} PROPERTIES
    LABELS fuzz FIXTURES_REQUIRED fuzz_${name})
endfunction()
