# Whether cmake/cuda.cmake finds the toolkit, obeys the caller, and says what is
# missing: cmake -P this file. It starts itself again for each case, with what
# find_package() then finds and what the caller has said.
if(DEFINED TOOLKIT)
  macro(find_package)
    set(CUDAToolkit_FOUND ${TOOLKIT})
    message("looked for ${ARGN}")
  endmacro()
  include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/cuda.cmake)
  message("USE_CUDA is ${USE_CUDA}")
  return()
endif()

function(expect toolkit asked status says)
  execute_process(COMMAND ${CMAKE_COMMAND} -DTOOLKIT=${toolkit} ${asked}
      -P ${CMAKE_CURRENT_LIST_FILE}
    RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(NOT result EQUAL ${status} OR NOT text MATCHES "${says}")
    message(SEND_ERROR "toolkit ${toolkit}, '${asked}': status ${result}, not "
      "${status}; or not '${says}': ${text}")
  endif()
endfunction()

expect(1 "" 0 "^looked for CUDAToolkit;11.7;QUIET USE_CUDA is ON $")
expect(0 "" 0 "USE_CUDA is OFF $")
expect(1 -DUSE_CUDA=ON 0 "^looked for .* USE_CUDA is ON $")
expect(1 -DUSE_CUDA=OFF 0 "^USE_CUDA is OFF $")
expect(0 -DUSE_CUDA=ON 1
  "no CUDA toolkit .*install it .*-DCUDAToolkit_ROOT=DIR.*-DUSE_CUDA=OFF")
