# Links a target for the Python package: the C++ library inside, and of glibc nothing newer than 2.28 (manylinux_2_28), by the old
# versions of the functions that have newer ones (base/portable/old_glibc.c).
function(draftproof_portable target)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()  # elsewhere the package needs what this system has; auditwheel says what that is
  endif()
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../base/portable/old_glibc.c)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  file(STRINGS ${source} lines REGEX "^(// )?(OLD|NEW)[(]")
  set(wrapped)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^(]*[(]([a-z0-9_]+).*$" "\\1" name "${line}")
    list(APPEND wrapped "LINKER:--wrap=${name}")
  endforeach()
  # Functions that were in libraries of their own before glibc 2.34.
  target_link_options(${target} PRIVATE -static-libstdc++ ${wrapped}
    "LINKER:--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state" "LINKER:--as-needed")
endfunction()
