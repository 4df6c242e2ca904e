# The language, how it is built where nothing else is said, and what everything that is ours is compiled with. The whole build,
# the bare-GPU build and the Python module share it.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # of the static libraries, for the shared one and the module
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(CCACHE ccache)
if(CCACHE)  # without these two it keeps nothing that uses a precompiled header, nine units of ten
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
option(DRAFTPROOF_SANITIZE "Address and undefined-behaviour sanitizers" OFF)

# --- The floating-point contract (reference/numerics/README.md): every target that computes links this one. -----------
# Contraction is off, so a*b+c rounds twice unless fma is written; no fast-math; std::fma is inlined where the caller's
# target has it and is the correctly rounded library call elsewhere.
add_library(draftproof_floating_point INTERFACE)
target_compile_options(draftproof_floating_point INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-fast-math>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --ftz=false --prec-div=true --prec-sqrt=true
    -Xcompiler=-ffp-contract=off>)

# The compiler collects its garbage less often: 8 % less time for 130 MB more a process.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=200>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=500000>)

# --- What is ours is compiled without warnings. ------------------------------------------------------------------------
# -Wrestrict is off: in g++ 12 it fires on `"text" + std::string` as soon as that is inlined (GCC bug 105651).
add_library(draftproof_ours INTERFACE)
target_compile_options(draftproof_ours INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>)
target_link_libraries(draftproof_ours INTERFACE draftproof_floating_point)
if(DRAFTPROOF_STRANGER)
  target_compile_options(draftproof_ours INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error>)
endif()
if(DRAFTPROOF_SANITIZE)
  # Instrumented code brings false warnings of its own in g++ 12 (std::regex, std::function); the release build enforces them.
  # Tests themselves are not looked at, which halves their time to compile; what they allocate is. Sources that take no pointers of
  # callers and read no files in place leave out the checks of every pointer, whose faults the address sanitizer sees when it is
  # followed: a third of the time to compile. Programs stand at a fixed place, because to move one takes longer than most tests.
  target_compile_options(draftproof_ours INTERFACE -Wno-error -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:DRAFTPROOF_TEST>>>:-fsanitize=address,undefined>
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:DRAFTPROOF_TAKES_POINTERS>>>:-fno-sanitize=null,alignment,object-size,vptr,pointer-overflow>)
  target_link_options(draftproof_ours INTERFACE -fsanitize=address,undefined
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
