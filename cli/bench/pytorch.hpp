// The same work by PyTorch on the same tensors, where PyTorch is installed: experiments/bench/torch_peer.py.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/inputs.hpp"
#include "cli/bench/peer.hpp"

namespace draftproof {

// Hands the tensors over in files of a temporary folder and runs the peer once. Errors (input): the temporary folder
// cannot hold them, the peer's script is not found beside this program's sources, or it fails.
PeerTimings time_pytorch(const std::string& python, const BenchVerifyInputs& inputs, const std::vector<float>& row,
                         const std::vector<int>& threads, int repeat);

}  // namespace draftproof
