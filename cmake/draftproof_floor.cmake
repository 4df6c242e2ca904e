# A floor is a folder of the root that is one library (docs/architecture.md). Its sources include what the floor and those that
# it uses hold, as "floor/folder/file.hpp", and find no other header of ours: each floor has a folder of its own on the include
# path, with one link to the sources in it.
#
#   draftproof_floor(engine [AT folder/below] USES reference LINKS ${PCRE2_LIBRARY} [TAKES_POINTERS])
#   draftproof_sources(engine hot ALONE transformer)    # one object file each: the loops that are measured
#   draftproof_sources(engine cold weights tokenizer)   # compiled together, neighbours of a folder
#
# Levels: hot is the build type's optimisation (-O3), warm -O2, cold what compiles fastest (-O1; without optimisation under the
# sanitizers). A level belongs to a folder.

# What takes long to read and is read by most, compiled once for each level.
set(draftproof_standard_headers <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional>
  <span> <sstream> <string> <vector>)
set(draftproof_headers_of_hot ${draftproof_standard_headers})
set(draftproof_headers_of_warm ${draftproof_standard_headers})
set(draftproof_headers_of_cold ${draftproof_standard_headers} <nlohmann/json.hpp>)
set(draftproof_flags_of_hot "")
if(DRAFTPROOF_SANITIZE)
  set(draftproof_flags_of_warm "")
  set(draftproof_flags_of_cold -O0)
else()
  set(draftproof_flags_of_warm -O2)
  set(draftproof_flags_of_cold -O1)
endif()
option(DRAFTPROOF_UNITY "Compile files together" ON)

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "// What the floors' precompiled headers are made from.\n")
foreach(level hot warm cold)
  add_library(draftproof_precompiled_${level} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(draftproof_precompiled_${level} PRIVATE draftproof_ours nlohmann_json::nlohmann_json)
  target_compile_options(draftproof_precompiled_${level} PRIVATE ${draftproof_flags_of_${level}})
  target_precompile_headers(draftproof_precompiled_${level} PRIVATE ${draftproof_headers_of_${level}})
  set_target_properties(draftproof_precompiled_${level} PROPERTIES DRAFTPROOF_TAKES_POINTERS ON)
endforeach()

# Neighbours in a folder are compiled together, up to eight at a time: the names of their anonymous namespaces must differ.
function(draftproof_compile_together folder)  # sources...
  string(MAKE_C_IDENTIFIER ${folder} folder)
  list(LENGTH ARGN count)
  math(EXPR batches "(${count} + 7) / 8")
  set(place 0)
  foreach(source IN LISTS ARGN)
    math(EXPR batch "${place} * ${batches} / ${count}")
    math(EXPR place "${place} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
endfunction()

function(draftproof_floor floor)
  cmake_parse_arguments(arg "TAKES_POINTERS" "AT" "USES;LINKS" ${ARGN})
  if(NOT arg_AT)
    set(arg_AT ${floor})
  endif()
  get_filename_component(above ${CMAKE_BINARY_DIR}/floors/${floor}/${arg_AT} DIRECTORY)
  file(MAKE_DIRECTORY ${above})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/floors/${floor}/${arg_AT} SYMBOLIC)
  # What its sources, and those that use it, are compiled with.
  add_library(draftproof_${floor}_headers INTERFACE)
  target_include_directories(draftproof_${floor}_headers INTERFACE ${CMAKE_BINARY_DIR}/floors/${floor})
  add_library(draftproof_${floor} STATIC)
  set_target_properties(draftproof_${floor} PROPERTIES LINKER_LANGUAGE CXX DRAFTPROOF_TAKES_POINTERS "${arg_TAKES_POINTERS}")
  target_link_libraries(draftproof_${floor}_headers INTERFACE draftproof_ours ${arg_LINKS})
  foreach(used IN LISTS arg_USES)
    target_link_libraries(draftproof_${floor}_headers INTERFACE draftproof_${used}_headers)
    target_link_libraries(draftproof_${floor} PUBLIC draftproof_${used})
  endforeach()
  target_link_libraries(draftproof_${floor} PUBLIC draftproof_${floor}_headers)
endfunction()

# Folders and files, relative to the floor's; "." is the floor's own folder. A file named before is not taken again with its folder.
function(draftproof_sources floor level)
  cmake_parse_arguments(arg "ALONE" "" "" ${ARGN})
  get_property(taken GLOBAL PROPERTY draftproof_sources_of_${floor})
  set(sources)
  foreach(place IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(path ${place} ABSOLUTE)
    if(IS_DIRECTORY ${path})
      file(GLOB found CONFIGURE_DEPENDS ${path}/*.cpp)
      if(taken)
        list(REMOVE_ITEM found ${taken})
      endif()
    else()
      set(found ${path})
    endif()
    list(APPEND taken ${found})
    list(APPEND sources ${found})
    draftproof_compile_together(${floor}_${place} ${found})
  endforeach()
  set_property(GLOBAL PROPERTY draftproof_sources_of_${floor} ${taken})
  set(target draftproof_${floor}_${level})
  if(arg_ALONE)
    string(APPEND target _alone)
  endif()
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PUBLIC draftproof_${floor}_headers)
  get_target_property(takes_pointers draftproof_${floor} DRAFTPROOF_TAKES_POINTERS)
  if(DRAFTPROOF_SANITIZE AND NOT takes_pointers)
    set(level cold)  # their tests run in release alone
  endif()
  target_compile_options(${target} PRIVATE ${draftproof_flags_of_${level}})
  set_target_properties(${target} PROPERTIES DRAFTPROOF_TAKES_POINTERS "${takes_pointers}")
  if(DRAFTPROOF_UNITY AND NOT arg_ALONE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
  if(takes_pointers OR NOT DRAFTPROOF_SANITIZE)  # others differ in the sanitizer's flags
    target_precompile_headers(${target} REUSE_FROM draftproof_precompiled_${level})
  else()
    target_precompile_headers(${target} PRIVATE ${draftproof_headers_of_${level}})
  endif()
  target_sources(draftproof_${floor} PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()
