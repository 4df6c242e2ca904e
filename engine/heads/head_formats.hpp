// The formats of drafting heads' config.json: which keys each reads, and what it means without them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/heads/head_config.hpp"

namespace draftproof {

// Lists of words, each word with a space on both sides.
using HeadKeys = std::array<std::string_view, 4>;

bool is_key_of(const HeadKeys& keys, std::string_view key);

// The keys of a format's config that are read, and their meaning where a key is absent.
struct HeadFormat {
  std::string_view name, type;  // type: a format's kinds of heads, by speculators' names
  HeadFamily family;
  const HeadNames& names;
  HeadKeys keys;                    // of the config, besides those of layers
  HeadKeys inside = {};             // of its dflash_config, where the format has one
  const char* layer_ids = nullptr;  // of the features; null: the family's rule, of pairs the last norm
  std::int64_t ids_below = 0;       // how much lower than ours these ids are
  bool needs_layer_ids = false;
  bool has_first_norm = true;
  bool norm_output = false;
  bool from_anchor = false;
};

// Null: there is no such format.
const HeadFormat* find_format(std::string_view name, std::string_view type);

// Keys of every format: those that describe_config() reads, and those of training, of generation and of the library
// that wrote the file.
bool is_key_of_every_format(std::string_view key);

}  // namespace draftproof
