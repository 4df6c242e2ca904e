# Writes the commit of SOURCE to the file OUT, as `git describe` names it, with "-dirty" behind it where files that git
# knows were changed; "unknown" where there is no git or no repository. The file stays as it is where nothing changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit unknown)
endif()
set(written "")
if(EXISTS ${OUT})
  file(READ ${OUT} written)
endif()
if(NOT written STREQUAL "${commit}\n")
  file(WRITE ${OUT} "${commit}\n")
endif()
