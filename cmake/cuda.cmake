# USE_CUDA: on where the CUDA toolkit is, unless the caller decides. What the
# library knows of the CUDA driver is then compared with the toolkit's cuda.h, and
# nothing is linked: the driver is looked for at run time.

if(USE_CUDA OR NOT DEFINED USE_CUDA)
  find_package(CUDAToolkit 11.7 QUIET)  # the first whose driver knows dma-bufs
endif()
if(NOT CUDAToolkit_FOUND)
  set(CUDAToolkit_FOUND OFF)
endif()
option(USE_CUDA "Check the CUDA support against the toolkit's cuda.h"
  ${CUDAToolkit_FOUND})
if(USE_CUDA AND NOT CUDAToolkit_FOUND)
  message(FATAL_ERROR "USE_CUDA is ON, but there is no CUDA toolkit from 11.7 "
    "on: install it (https://developer.nvidia.com/cuda-downloads), say where it "
    "is (-DCUDAToolkit_ROOT=DIR), or build without it (-DUSE_CUDA=OFF): memory "
    "of CUDA devices is supported either way")
endif()
