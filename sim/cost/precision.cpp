#include "sim/cost/precision.hpp"

#include <initializer_list>
#include <sstream>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool has(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (text.find(word) != std::string::npos) return true;
  return false;
}

constexpr double kFourBitBytes =
    0.55;  // with a scale of 16 bits for 64 or 128 weights, and layers that stay as they are

}  // namespace

Precision precision_of(const std::string& text) {
  std::string lower = lower_case(text);
  // Text after "kv" up to a comma describes the cache.
  std::string cache;
  const std::size_t kv = lower.find("kv");
  if (kv != std::string::npos) {
    const std::size_t begin = lower.rfind(',', kv) == std::string::npos ? kv : lower.rfind(',', kv);
    const std::size_t end = lower.find_first_of(",;", kv);
    cache = lower.substr(begin, end == std::string::npos ? end : end - begin);
    lower.erase(begin, cache.size());
  }
  Precision precision;
  if (has(lower, {"nvfp4", "mxfp4", "fp4", "w4a4"})) {
    precision.weight_bytes = kFourBitBytes;
    precision.compute_bits = 4.0;
  } else if (has(lower, {"int4", "w4a16", "awq", "gptq", "4bit", "4-bit", "q4", "nf4", "w4"})) {
    precision.weight_bytes = kFourBitBytes;
  } else if (has(lower, {"fp8", "w8a8", "e4m3"})) {
    precision.weight_bytes = 1.0;
    precision.compute_bits = 8.0;
  } else if (has(lower, {"int8", "w8a16", "8bit", "8-bit", "q8"})) {
    precision.weight_bytes = 1.06;
  } else if (has(lower, {"fp32", "float32"})) {
    precision.weight_bytes = 4.0;
    precision.head_bytes = 4.0;
    precision.kv_bytes = 4.0;
  }
  if (has(cache, {"8"})) precision.kv_bytes = 1.0;
  if (has(cache, {"fp4", "int4", "4bit"})) precision.kv_bytes = 0.5;
  return precision;
}

Precision stated_precision(const std::string& text, const std::string& where) {
  std::istringstream parts(lower_case(text) + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const bool is_known = has(part, {"fp", "bf16", "float", "int4", "int8", "bit", "w4", "w8", "awq", "gptq", "q4",
                                     "q8", "nf4", "e4m3", "e5m2"});
    if (!is_known)
      throw usage_error(where,
                        "is " + in_quotes(text) + "; expected a precision, as bf16, fp8, awq-int4 or \"bf16, KV fp8\"");
  }
  return precision_of(text);
}

}  // namespace draftproof
