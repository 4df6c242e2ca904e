// Runs of a study: each is a command in a process of its own, whose document and figures lie in the study's folder with
// a key that says what they come from.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/files/descriptor.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/ranks.hpp"
#include "cli/study/study_file.hpp"

namespace draftproof {

// Everything that a run's document was made from. The run counts as finished while none of it changes.
struct RunKey {
  std::string program;                                      // with its commit
  std::string command;                                      // as the study writes it
  std::map<std::string, std::string> inputs;                // all that the command read, by its name, as SHA-256
  std::map<std::string, std::vector<std::string>> folders;  // names in those that the command names, where it read
  std::string document;                                     // SHA-256; empty: the run began and did not end
  int exit_code = 0;
  std::string measured;  // "2026-11-29 06:07 UTC"
};

struct FinishedRun {
  Json document;
  RunKey key;
  bool was_there = false;
};

// The folder of a study. One process writes into it, or several that do parts (--part): each run by one.
class StudyFolder {
 public:
  // Makes the folder. Relative names in commands are those of the folder of the study's file.
  StudyFolder(const std::string& path, const std::string& study_file);

  // Error (input): another process writes into the folder. shared: only those that do parts may do so, too.
  void lock(bool shared);
  // Held until the descriptor goes. Error (input): another process does this run now.
  Descriptor lock_run(const StudyRun& run) const;

  // Is a run's document there, made by this program from what the command reads now?
  bool has(const StudyRun& run) const;
  // Error (input): its document is not one.
  FinishedRun read(const StudyRun& run) const;
  // Looks at the command's options alone. Error (input): it is refused, and why.
  void check(const StudyRun& run) const;
  // Runs the command, its figures included. Returns why a figure could not be drawn; empty: none is missing.
  std::string finish(const StudyRun& run) const;

  std::filesystem::path document(const StudyRun& run) const { return path_ / "runs" / (run.name + ".json"); }
  std::filesystem::path figure(const std::string& name) const { return path_ / "figures" / name; }
  std::filesystem::path table(const std::string& name) const { return path_ / "tables" / name; }
  std::filesystem::path at(const std::string& name) const { return path_ / name; }

 private:
  struct Command;
  std::filesystem::path key(const StudyRun& run) const { return path_ / "runs" / (run.name + ".key"); }
  // The folder of the run's --out, unless an absolute one is given.
  std::filesystem::path own(const StudyRun& run) const { return path_ / "files" / run.name; }
  RunKey read_key(const StudyRun& run) const;
  void write_key(const StudyRun& run, const RunKey& key) const;
  std::vector<std::string> arguments(const StudyRun& run) const;
  int start(const Command& command) const;
  void require_success(const StudyRun& run, int exit_code, const std::string& error_path) const;
  std::string draw(const StudyRun& run) const;
  std::string digest(const std::string& name) const;

  std::filesystem::path path_, base_;
  Descriptor lock_;
  bool shared_ = false;
  struct Digests;
  std::shared_ptr<Digests> digests_;
};

// Asks for runs and finishes them, so many side by side; each is looked at once it is there. The first error ends it;
// what is finished stays.
void finish_runs(const Study& study, Points& points, const StudyFolder& folder, int jobs,
                 std::set<std::string>& warnings, const std::function<void(const StudyRun&)>& look,
                 const std::function<void()>& on_error);

// Text of one of the study's own files, which a later run may replace.
std::string text_of_file(const std::filesystem::path& path);

}  // namespace draftproof
