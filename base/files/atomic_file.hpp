// A file that appears under its name complete or not at all: it is written under a temporary name in the same folder
// and renamed by commit(). There is no fsync: it protects against our own failures, not against a power cut.
#pragma once

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "base/files/temporary.hpp"

namespace draftproof {

class AtomicFile {
 public:
  // Creates the temporary file. Input error when the folder cannot be written to, or when `path` exists and is not a
  // regular file (renaming over /dev/null would replace the device) or is one that was read (inputs_read.hpp). A
  // symbolic link is followed, not replaced.
  explicit AtomicFile(const std::string& path);

  // Write here, binary. Failures need not be looked for at each write: commit() reports them.
  std::ostream& stream() { return stream_; }

  // Closes and renames. Input error naming the path when a write failed (a full disk) or the rename did; nothing is
  // left behind then. A second call does nothing. Without it, what `path` held before stays.
  void commit();

 private:
  std::string path_;
  Temporary temporary_;
  std::ofstream stream_;
  bool committed_ = false;
};

// May a command write to the paths that it is given? Every command that reads and writes files asks here before it
// starts.

struct NamedFile {
  std::string option;  // "--compare", or "the trace": what a message calls it
  std::string path;    // empty: not given
};

// Usage error when an output is one of the inputs, or another output: under the same name, another spelling of it, a
// symbolic or a hard link.
void require_no_overwriting(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs);

// Asked by commands that work for long before they write: input error where a file could not be written as AtomicFile
// writes it. What is there stays as it is.
void require_writable(const std::vector<NamedFile>& outputs);

}  // namespace draftproof
