# gpu/mutants/: a program for each mutant, target mutant_<id>, and the list of their ids, draftproof_mutants.
#
# The kernels of mutants live in a namespace of their own, mutant_executor, beside the sound ones of the library, so that no
# inline function of a program has two bodies. What a mutant calls without including its faulty source is sound and the same
# in all of them: compiled once, the library draftproof_mutant_rest.
set(draftproof_mutant_rest distribution pipeline sample)

function(draftproof_kernels_of_mutants target)
  target_compile_definitions(${target} PRIVATE DRAFTPROOF_EXECUTOR=mutant_executor)
  target_compile_options(${target} PRIVATE -O1 -fPIC)  # as the precompiled header, also in programs
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # what a mutant does not replace is linked from an archive
  target_link_libraries(${target} PRIVATE draftproof_ours draftproof_device)
endfunction()

list(TRANSFORM draftproof_mutant_rest REPLACE "(.+)" "${PROJECT_BINARY_DIR}/operations/\\1.cpp" OUTPUT_VARIABLE sources)
add_library(draftproof_mutant_rest STATIC ${sources})
draftproof_kernels_of_mutants(draftproof_mutant_rest)
target_precompile_headers(draftproof_mutant_rest PRIVATE ${draftproof_standard_headers})
add_library(draftproof_mutant_main OBJECT ${PROJECT_SOURCE_DIR}/gpu/mutants/main.cpp)
target_link_libraries(draftproof_mutant_main PRIVATE draftproof_ours draftproof_device)

file(GLOB mutant_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gpu/mutants/*.mutant)
foreach(mutant_file IN LISTS mutant_files)
  get_filename_component(id ${mutant_file} NAME_WE)
  list(APPEND draftproof_mutants ${id})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutant_file})
  file(STRINGS ${mutant_file} lines LIMIT_COUNT 6)
  foreach(line IN LISTS lines)
    if(line MATCHES "^(operations|cases|file): (.*)$")
      set(of_mutant_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()
  set(folder ${PROJECT_BINARY_DIR}/mutants/${id})
  set(source ${folder}/${of_mutant_file})
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DMUTANT=${mutant_file} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${folder}
      -P ${PROJECT_SOURCE_DIR}/cmake/make_mutant.cmake
    DEPENDS ${mutant_file} ${PROJECT_SOURCE_DIR}/${of_mutant_file} ${PROJECT_SOURCE_DIR}/cmake/make_mutant.cmake)
  separate_arguments(of_mutant_operations)
  list(TRANSFORM of_mutant_operations REPLACE "(.+)" "${PROJECT_BINARY_DIR}/operations/\\1.cpp" OUTPUT_VARIABLE sources)
  # The call that its cases run.
  string(REGEX REPLACE "/.*$" "" DRAFTPROOF_MUTANT_CALL ${of_mutant_cases})
  set(DRAFTPROOF_MUTANT_CASES ${of_mutant_cases})
  configure_file(${PROJECT_SOURCE_DIR}/gpu/mutants/mutant.cpp.in ${folder}/mutant.cpp @ONLY)
  add_executable(mutant_${id} ${source} ${sources} ${folder}/mutant.cpp $<TARGET_OBJECTS:draftproof_mutant_main>)
  set_target_properties(mutant_${id} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mutants OUTPUT_NAME ${id}.run)
  target_include_directories(mutant_${id} BEFORE PRIVATE ${folder})
  draftproof_kernels_of_mutants(mutant_${id})
  target_precompile_headers(mutant_${id} REUSE_FROM draftproof_mutant_rest)
  target_link_libraries(mutant_${id} PRIVATE draftproof_mutant_rest)
endforeach()
