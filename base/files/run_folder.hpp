// The files of one run, which appear together: they are written into a temporary folder that takes the place of the
// final one at the end. A run that fails, is killed or finds the disk full leaves the files of the run before it, all
// of them; of two runs at once, the one that ends last leaves all of its files and the other one none.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files/temporary.hpp"

namespace draftproof {

class RunFolder {
 public:
  // `names` are all files that such a run may write. Creates the folders above `path`. Input error naming `path` when
  // it is no folder or cannot be written to.
  RunFolder(std::string path, std::vector<std::string> names);

  // Where to write a file now, and where it will be.
  std::string staged(const std::string& name) const { return (std::filesystem::path(staging_.path()) / name).string(); }
  std::string final_path(const std::string& name) const { return (std::filesystem::path(path_) / name).string(); }

  // A message about a staged file, as one about the file that it was to become.
  std::string with_final_paths(std::string text) const;
  // Writes staged files; the message of an Error speaks of those that they were to become.
  template <class Write>
  void write(const Write& write) const {
    try {
      write();
    } catch (const Error& error) {
      throw Error(error.kind(), "", with_final_paths(error.what()));
    }
  }

  // Puts the run in its place, and removes of a former run the files that this one did not write. Where nothing or only
  // a former run is in that place, it is one rename (an exchange of two names); in a folder that holds other files too,
  // that is a place of its own (a mount) or the current one, the files are renamed one after the other, under a lock
  // and with signals waiting. Input error naming the path,
  // also where the run would replace a file that was read (inputs_read.hpp).
  void commit();

 private:
  bool exchange();
  void rename_each();

  // The folders above the target that were not there: those that hold nothing at the end go away.
  struct NewParents {
    ~NewParents();
    std::vector<std::filesystem::path> folders;  // the deepest first
  };

  std::string path_;
  std::filesystem::path target_;  // path_ with links resolved
  NewParents parents_;
  std::vector<std::string> names_;
  Temporary staging_;
};

}  // namespace draftproof
