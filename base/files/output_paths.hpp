// May a command write to the paths that it is given? Every command that reads and writes files asks here before it
// starts.
#pragma once

#include <string>
#include <vector>

namespace draftproof {

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
