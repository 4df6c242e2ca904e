# Contents of `cmake --install`, by components; the tree can be moved as a whole (docs/install.md).
#   program   bin/draftproof, lib/draftproof/verbs
#   data      share/draftproof (draftproof_data), share/man/man1, which the program writes: it is installed before
#   in_one    of ./draftproof wheel, and by its name alone: bin/draftproof with all verbs but those of windows
#   library   draftproof.h, the shared library with its ABI's version, and how pkg-config and CMake find them
install(TARGETS draftproof_program RUNTIME DESTINATION bin COMPONENT program)
get_property(programs GLOBAL PROPERTY draftproof_programs)
get_property(verbs GLOBAL PROPERTY draftproof_verbs)
foreach(program IN LISTS programs)
  install(PROGRAMS $<TARGET_FILE:draftproof_verbs_${program}> DESTINATION lib/draftproof/verbs COMPONENT program OPTIONAL)
endforeach()
install(TARGETS draftproof_in_one RUNTIME DESTINATION bin COMPONENT in_one EXCLUDE_FROM_ALL)
install(CODE "set(verbs ${verbs})" COMPONENT data)
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_manual_pages.cmake COMPONENT data)

install(FILES gpu/draftproof.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/draftproof COMPONENT library)
install(TARGETS draftproof_shared EXPORT draftproof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/draftproof)
install(EXPORT draftproof NAMESPACE draftproof:: FILE draftproof-config.cmake DESTINATION ${package} COMPONENT library)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/draftproof-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/draftproof-config-version.cmake DESTINATION ${package} COMPONENT library)
# Paths start from where the file itself lies, so that the tree can be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/draftproof.pc @ONLY CONTENT "prefix=\${pcfiledir}/@up@
includedir=\${prefix}@CMAKE_INSTALL_INCLUDEDIR@
libdir=\${prefix}@CMAKE_INSTALL_LIBDIR@

Name: draftproof
Description: Kernels from logits to emitted tokens, and the CPU reference that they equal bit for bit
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} -ldraftproof
")
install(FILES ${CMAKE_BINARY_DIR}/draftproof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
