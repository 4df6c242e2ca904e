// Which files this process has read, so that no output replaces one of them, whatever named it: an option, a file that
// another file names, a folder of models.
#pragma once

#include <sys/stat.h>

#include <string>

namespace draftproof {

// From now on what InputFile opens is remembered, and AtomicFile and RunFolder refuse to replace it. The program calls
// it once, at its start; a library's host may do as it likes.
void protect_inputs();

// Of InputFile.
void note_input(const struct stat& status);

// A file of a command's own that it reads and goes on writing: a table that is resumed, golden digests.
void allow_replacing(const std::string& path);

// Input error naming the path where it is a file that was read.
void require_not_read(const std::string& path);

}  // namespace draftproof
