// Peers that run in Python: finding the script, running it, reading its times.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/inputs.hpp"

namespace draftproof {

struct PeerTimings {
  std::string version;
  std::map<std::pair<std::string, int>, double> ms;  // fastest repeat by name of the measurement and threads
};

// Runs `script` of experiments/bench and reads the document that it prints. Errors (input) at `option`: the script is
// not found beside this program's sources, or it fails.
PeerTimings run_peer(const std::string& python, const std::string& script, const std::vector<std::string>& arguments,
                     const std::string& option);

// The same work by PyTorch on the same tensors, where PyTorch is installed: experiments/bench/torch_peer.py.

// Hands the tensors over in files of a temporary folder and runs the peer once. Errors (input): the temporary folder
// cannot hold them, the peer's script is not found beside this program's sources, or it fails.
PeerTimings time_pytorch(const std::string& python, const BenchVerifyInputs& inputs, const std::vector<float>& row,
                         const std::vector<int>& threads, int repeat);

// The modules of which one brings llama.cpp to a Python interpreter.
std::vector<std::string> llama_cpp_modules();

// The shipped model's cases by experiments/bench/llama_peer.py. Errors: those of run_peer(), at "--llama-cpp".
PeerTimings time_llama_cpp(const std::string& python, const std::vector<int>& threads, int repeat);

}  // namespace draftproof
