// Bytes of weights and of the KV cache, and which units multiply.
#pragma once

#include <string>

#include "sim/cost/gpu.hpp"

namespace draftproof {

struct Precision {
  double weight_bytes = 2.0;   // of one parameter; of 4 bits with their scales 0.55
  double head_bytes = 2.0;     // of the matrix over the vocabulary, which quantisers leave as it is
  double kv_bytes = 2.0;       // of one cached number
  double compute_bits = 16.0;  // of the multiplication: weights of 4 bits that are unpacked multiply in 16

  double flops(const Gpu& gpu) const {
    return compute_bits <= 4.0 ? gpu.fp4_flops : compute_bits <= 8.0 ? gpu.fp8_flops : gpu.bf16_flops;
  }
};

// From a text as "bf16", "FP8", "weights w4a16, KV fp8", "AWQ-INT4" or the name of a quantised model; 16 bits where the
// text says nothing.
Precision precision_of(const std::string& text);

// The same of a text that must say something. Usage error naming `where` for a part between commas without a known
// word.
Precision stated_precision(const std::string& text, const std::string& where);

}  // namespace draftproof
