# Manual pages, which the installed program writes: of itself, and of each of the `verbs` that were built.
set(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX})
file(MAKE_DIRECTORY ${prefix}/share/man/man1)
foreach(verb "" ${verbs})
  set(page ${prefix}/share/man/man1/draftproof)
  if(verb)
    string(APPEND page -${verb})
  endif()
  execute_process(COMMAND ${prefix}/bin/draftproof ${verb} --manual-page OUTPUT_FILE ${page}.1 ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)  # a verb that is not built
    file(REMOVE ${page}.1)
  endif()
endforeach()
