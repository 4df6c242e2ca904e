# The kernels. An operation is one text, gpu/operations/<name>.hpp, which is compiled by the C++ compiler for the CPU
# executor and by nvcc for GPUs.
# Which there are: gpu/operation_table.hpp, and what several of them launch.
get_filename_component(draftproof_operation_table ${CMAKE_CURRENT_LIST_DIR}/../gpu/operation_table.hpp ABSOLUTE)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${draftproof_operation_table})
file(READ ${draftproof_operation_table} table)
string(REGEX MATCHALL "(PLAIN|WITH_WORKSPACE)[(][a-z_]+, draftproof_" entries "${table}")
set(draftproof_operations distribution pipeline)
foreach(entry IN LISTS entries)
  string(REGEX REPLACE "^.*[(]([a-z_]+),.*$" "\\1" operation "${entry}")
  list(APPEND draftproof_operations ${operation})
endforeach()

# With 100, machine code and PTX for what comes after.
set(DRAFTPROOF_CUDA_ARCHITECTURES "80-real;90-real;100" CACHE STRING "GPUs that the kernels are compiled for")

# Sets `out` to a source file per operation, with the ending of its compiler: cpp or cu.
function(draftproof_generate_operations ending out)
  set(sources)
  foreach(operation IN LISTS draftproof_operations)
    set(source ${CMAKE_BINARY_DIR}/operations/${operation}.${ending})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"gpu/operations/${operation}.hpp\"\n")
    list(APPEND sources ${source})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# The library draftproof_cuda, which the floor gpu calls and which calls it. A macro, since the dialect is known to the folder
# that calls it.
macro(draftproof_add_cuda_library)
  # CMake 3.25 does not know nvcc's flag for C++20 yet.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  draftproof_generate_operations(cu draftproof_cuda_sources)
  add_library(draftproof_cuda STATIC ${draftproof_cuda_sources} cuda/device_memory.cu cuda/gpu_clock.cu cuda/head_race.cu)
  set_target_properties(draftproof_cuda PROPERTIES CUDA_ARCHITECTURES "${DRAFTPROOF_CUDA_ARCHITECTURES}")
  target_compile_definitions(draftproof_gpu_headers INTERFACE DRAFTPROOF_HAS_CUDA)
  target_link_libraries(draftproof_cuda PRIVATE draftproof_gpu)
  target_link_libraries(draftproof_gpu PUBLIC draftproof_cuda)
  # Blocks have up to 512 threads, and a multiprocessor 65,536 registers. A register spill is an error, and so is any other
  # warning of ptxas.
  target_compile_options(draftproof_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--maxrregcount=128 -Xptxas=--warn-on-spills,--warning-as-error>)
endmacro()
