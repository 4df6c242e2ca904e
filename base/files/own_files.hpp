// Files that come with the program: presets, scenarios, golden digests. They lie in share/draftproof beside it; in a
// build folder these are links into the source tree (draftproof_data in cmake/draftproof_floor.cmake). No program holds
// a path of its build, so that an installed tree can be moved.
#pragma once

#include <filesystem>
#include <string>

namespace draftproof {

// The folder above this program that holds share/draftproof: the prefix of an installed program, the build folder of
// one that is not; that of the program where there is none.
const std::filesystem::path& program_prefix();

// The program that starts every verb: beside the verbs' programs, installed, or this one where it has all verbs.
std::string own_program();

// share/draftproof/`name`, with links resolved.
std::string own_file(const std::string& name);

}  // namespace draftproof
