// Which files this process has read, whatever named them (an option, a file that another file names, a folder of
// models): so that no output replaces one of them, and so that results can name the contents that they come from.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// From now on what InputFile opens is remembered, and AtomicFile and RunFolder refuse to replace it. The program calls
// it once, at its start; a library's host may do as it likes.
void protect_inputs();

// From now on the contents of every file that InputFile reads, on any thread, are kept by name: the inputs of a
// command, which `study` asks for. A file that changes meanwhile keeps its first contents: the next look finds another.
void record_inputs();
// Names as they were given to InputFile, and SHA-256 of what was read. Without the files of allow_replacing().
std::map<std::string, std::string> inputs_recorded();

// Called by InputFile: before it reads, and with what it has read. Error (input): ContentsRead's.
void note_input(const struct stat& status);
void note_contents(const std::string& path, const struct stat& status, std::span<const std::byte> bytes);

// Record of what InputFile reads on this thread while the object lives; the innermost of several objects takes note.
// While one lives, reading a path whose contents have changed since it, or `before`, took note of it is an input error.
class ContentsRead {
 public:
  // before: may be null; else it must outlive the object, and no longer take note.
  explicit ContentsRead(const ContentsRead* before = nullptr);
  ~ContentsRead();
  ContentsRead(const ContentsRead&) = delete;
  ContentsRead& operator=(const ContentsRead&) = delete;

  // From now on it takes no more note; what it has stays.
  void end();
  // The digest of all contents in the order in which they were first read, whatever the files are called; without
  // those below `but_below`, if it is not empty. Empty: there are none.
  std::string sha256(const std::string& but_below = "") const;

 private:
  friend void note_contents(const std::string& path, const struct stat& status, std::span<const std::byte> bytes);
  struct File {
    std::string path;
    struct stat status;
    std::string sha256;
  };
  const File* find(std::string_view path) const;

  const ContentsRead* before_;
  ContentsRead* outer_;
  bool ended_ = false;
  std::vector<File> files_;
};

// A file of a command's own that it reads and goes on writing: a table that is resumed, golden digests.
void allow_replacing(const std::string& path);

// Input error naming the path where it is a file that was read.
void require_not_read(const std::string& path);

}  // namespace draftproof
