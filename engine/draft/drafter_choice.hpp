// The drafters by name, as people choose them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

enum class DrafterKind : std::uint8_t {
  none,           // plain decoding
  prompt_lookup,  // what followed an earlier occurrence of the context's last tokens
  suffix,         // suffix decoding, over this request and earlier ones
  grammar,        // what the request's grammar forces, alone
  model,          // model:PATH, another model; of another vocabulary by shared tokens or by strings
  layer_skip,     // layer_skip:10-14,20, the target without these layers (counted from 0)
  requantised,    // requantised:3, the target with its weights rounded to 2 to 8 bits
  ngram,          // ngram:3, an n-gram model of this order; of targets that are n-gram models
  head,           // head:PATH, a head trained for the target; head@8:PATH, its weights rounded to 2 to 8 bits;
                  // head@file:PATH, in the types of its file
};

inline constexpr int kSaThreshold = 4;  // TensorRT-LLM's default

struct DrafterChoice {
  DrafterKind kind = DrafterKind::none;
  std::string path;                    // model, head
  std::vector<std::int64_t> left_out;  // layer_skip, ascending
  int number = 0;                      // requantised: bits; ngram: order; head: bits, 0 where none are named
  bool as_in_file = false;             // head@file
  bool guided = false;                 // head: under guidance drafts are guided too
  bool discards_kv = false;            // a model: its KV behind every step
  bool matches_strings = false;        // a model of another vocabulary: string-level exact match (SLEM)
  // grammar+NAME, suffix+NAME: what the request's grammar forces, or what followed the context's last sa_threshold
  // tokens or more, and else the drafter NAME.
  DrafterKind first = DrafterKind::none;
  int sa_threshold = kSaThreshold;
  std::string text = "none";  // as it was given

  // Has its drafts a proposal distribution, from which trees can be drawn?
  bool has_probabilities() const { return kind >= DrafterKind::model && !matches_strings; }
};

// Errors (usage) at `where`: an unknown name, an argument that is missing or out of range; they say what is expected.
DrafterChoice parse_drafter(std::string_view text, const std::string& where);

// Meaning of "auto" with the model at `path`: head:PATH of a folder `head` or a file `head.gguf` in the model's folder
// or beside its file; else head:PATH of the model's own files where they carry an MTP layer; else model:PATH of a
// folder `draft` or a file `draft.gguf`; else suffix.
std::string automatic_drafter(const std::string& path);

}  // namespace draftproof
