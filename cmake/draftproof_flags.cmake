# The compiler flags of everything that is ours; the whole build and gpu/standalone share them.

# --- The floating-point contract (reference/numerics/README.md): every target that computes links this one. -----------
# Contraction is off, so a*b+c rounds twice unless fma is written; no fast-math; std::fma is inlined where the caller's
# target has it and is the correctly rounded library call elsewhere.
add_library(draftproof_floating_point INTERFACE)
target_compile_options(draftproof_floating_point INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-fast-math>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --ftz=false --prec-div=true --prec-sqrt=true
    -Xcompiler=-ffp-contract=off>)

# --- What is ours is compiled without warnings. ------------------------------------------------------------------------
# -Wrestrict is off: in g++ 12 it fires on `"text" + std::string` as soon as that is inlined (GCC bug 105651).
add_library(draftproof_ours INTERFACE)
target_compile_options(draftproof_ours INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>)
get_filename_component(draftproof_root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
target_include_directories(draftproof_ours INTERFACE ${draftproof_root})
target_link_libraries(draftproof_ours INTERFACE draftproof_floating_point)
