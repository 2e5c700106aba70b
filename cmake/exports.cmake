# The library exports namespace gloo only. Classes and functions without
# GLOO_API are hidden by the compiler already; this hides the weak symbols of
# the standard library's templates, which ignore -fvisibility=hidden.
target_link_options(gloo PRIVATE
  $<$<STREQUAL:$<TARGET_PROPERTY:gloo,TYPE>,SHARED_LIBRARY>:-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map>)
set_property(TARGET gloo APPEND PROPERTY LINK_DEPENDS
  ${PROJECT_SOURCE_DIR}/cmake/exports.map)
