# Whether CUDA is built, and for which cards.
#
#   PLIMSOLL_CUDA AUTO   built where the toolkit, cuDNN and a compiler for .cu files are found (default)
#                 ON     built, or an error that says what is missing
#                 OFF    not looked for
#   PLIMSOLL_CUDA_ARCHITECTURES   sm_80 to sm_120 with PTX for later cards; for development `90-real` compiles fast
#
# After this file PLIMSOLL_CUDA is ON or OFF as a plain variable. Everything CUDA goes into libplimsoll_cuda.so, which
# the program opens on demand (kernels/backend/backend.h); nothing else links a CUDA library.
set(PLIMSOLL_CUDA AUTO CACHE STRING "Build the CUDA device and kernels: AUTO, ON or OFF")
set_property(CACHE PLIMSOLL_CUDA PROPERTY STRINGS AUTO ON OFF)
set(PLIMSOLL_CUDA_ARCHITECTURES "80-real;86-real;89-real;90-real;100-real;120" CACHE STRING
    "The cards that kernels are compiled for, as CMAKE_CUDA_ARCHITECTURES takes them")

function(plimsoll_find_cuda result)
  set(${result} "" PARENT_SCOPE)
  find_package(CUDAToolkit 12.4 QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(${result} "no CUDA toolkit of 12.4 or later (nvcc is not on PATH; set CUDAToolkit_ROOT)" PARENT_SCOPE)
    return()
  endif()
  find_path(CUDNN_INCLUDE cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cudnn)
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_ROOT}
               PATH_SUFFIXES lib lib64)
  mark_as_advanced(CUDNN_INCLUDE CUDNN_LIBRARY)
  if(NOT CUDNN_INCLUDE OR NOT CUDNN_LIBRARY)
    set(${result} "no cuDNN 9 beside the toolkit (cudnn_version.h, libcudnn.so)" PARENT_SCOPE)
    return()
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "nvcc")
  endif()
  if(NOT CMAKE_CUDA_COMPILER OR NOT EXISTS ${CMAKE_CUDA_COMPILER})
    set(${result} "no nvcc in the toolkit" PARENT_SCOPE)
  endif()
endfunction()

if(PLIMSOLL_SANITIZE OR PLIMSOLL_FUZZ OR PLIMSOLL_CUDA STREQUAL "OFF")
  # The libraries of CUDA are built without sanitizers: the fake device stands in for the GPU there.
  set(PLIMSOLL_CUDA OFF)
else()
  plimsoll_find_cuda(missing)
  if(NOT missing)
    set(PLIMSOLL_CUDA ON)
  elseif(PLIMSOLL_CUDA STREQUAL "AUTO")
    message(STATUS "Built without CUDA: ${missing}")
    set(PLIMSOLL_CUDA OFF)
  else()
    message(FATAL_ERROR "PLIMSOLL_CUDA=ON: ${missing}")
  endif()
endif()

if(PLIMSOLL_CUDA)
  find_package(CUDAToolkit 12.4 REQUIRED)
  set(CMAKE_CUDA_ARCHITECTURES ${PLIMSOLL_CUDA_ARCHITECTURES})
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
  endif()
  enable_language(CUDA)
  # nvcc 13.0 crashes on ordinary C++20: .cu files hold kernels and launchers only, in C++17.
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  add_library(plimsoll_cudnn UNKNOWN IMPORTED)
  set_target_properties(plimsoll_cudnn PROPERTIES IMPORTED_LOCATION ${CUDNN_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE})
endif()
