// Peers that run in Python: finding an interpreter and the script, running it, reading its times.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace draftproof {

struct PeerTimings {
  std::string version;
  std::map<std::pair<std::string, int>, double> ms;  // fastest repeat by name of the measurement and threads
};

// A Python interpreter that imports one of the modules: $DRAFTPROOF_PYTHON, python3 or /usr/bin/python3, the first that
// does.
std::optional<std::string> find_python_with(const std::vector<std::string>& modules);

// Runs `script` of experiments/bench and reads the document that it prints. Errors (input) at `option`: the script is
// not found beside this program's sources, or it fails.
PeerTimings run_peer(const std::string& python, const std::string& script, const std::vector<std::string>& arguments,
                     const std::string& option);

}  // namespace draftproof
