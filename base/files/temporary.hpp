// A file or folder under a temporary name, which goes away with its owner whatever ends the process: a destructor, a
// signal (signal_cleanup.hpp), or, after a kill, the next run that writes into the same folder.
//
// Names are `.draftproof-PID-N.tmp`. The owner holds a lock (flock) on what it made; the system gives the lock back
// when the process ends. So what can be locked has no owner any more and is removed; process numbers alone would not
// say so, since they are used again and containers have their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/files/descriptor.hpp"
#include "base/files/signal_cleanup.hpp"

namespace draftproof {

class Temporary {
 public:
  enum class Kind : std::uint8_t { file, folder };

  // Makes an empty one in `folder`, which must exist (empty: the current one), after removing those there that have no
  // owner. Input error at `where` when the folder cannot be written to.
  Temporary(Kind kind, const std::filesystem::path& folder, const std::string& where);
  ~Temporary() { remove(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }

  // It has its final name now, and stays.
  void release();
  // Removes what is under the temporary name now, unless it was released. The destructor does it too.
  void remove();

 private:
  std::string path_;
  Descriptor lock_;
  std::unique_ptr<SignalCleanup> cleanup_;
  bool released_ = false;
};

// Removes from `folder` the temporary files and folders of runs that were killed. Those of running processes, of other
// users and of other names stay. Returns how many were removed.
int remove_ownerless_temporaries(const std::filesystem::path& folder);

}  // namespace draftproof
