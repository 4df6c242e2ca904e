// The shipped model, where it has been fetched, and llama.cpp on the same file.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/case.hpp"
#include "cli/bench/peer.hpp"

namespace draftproof {

// Prefill of 512 tokens, and decoding of 32 tokens of one request at temperature 1, sampling included. Empty where the
// model is not there.
std::vector<BenchCase> shipped_model_cases(const std::vector<int>& threads);

// The modules of which one brings llama.cpp to a Python interpreter.
std::vector<std::string> llama_cpp_modules();

// The same by experiments/bench/llama_peer.py. Errors: those of run_peer(), at "--llama-cpp".
PeerTimings time_llama_cpp(const std::string& python, const std::vector<int>& threads, int repeat);

}  // namespace draftproof
