// The same work by PyTorch on the same tensors, where PyTorch is installed: experiments/bench/torch_peer.py.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/inputs.hpp"

namespace draftproof {

// A Python interpreter that imports torch: $DRAFTPROOF_PYTHON, python3 or /usr/bin/python3, the first that does.
std::optional<std::string> find_python_with_torch();

struct PytorchTimings {
  std::string version;
  std::map<std::pair<std::string, int>, double> ms;  // fastest repeat by name of the measurement and threads
};

// Hands the tensors over in files of a temporary folder and runs the peer once. Errors (input): the temporary folder
// cannot hold them, the peer's script is not found beside this program's sources, or it fails.
PytorchTimings time_pytorch(const std::string& python, const VerifyInputs& inputs, const std::vector<float>& row,
                            const std::vector<int>& threads, int repeat);

}  // namespace draftproof
