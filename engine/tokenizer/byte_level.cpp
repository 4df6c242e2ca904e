#include "engine/tokenizer/byte_level.hpp"

#include <utility>

#include "base/utf8.hpp"

namespace draftproof {
namespace {

// code point -> byte, for the 256 characters; -1 elsewhere.
std::array<int, 512> make_byte_table() {
  std::array<int, 512> table{};
  table.fill(-1);
  std::size_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    table[prints ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return table;
}

}  // namespace

std::optional<std::string> bytes_of_byte_level(std::string_view text) {
  static const std::array<int, 512> kBytes = make_byte_table();
  std::string bytes;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = decode_utf8(text.substr(i));
    if (character.length == 0 || character.code_point >= kBytes.size()) return std::nullopt;
    const int byte = kBytes[character.code_point];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    i += character.length;
  }
  return bytes;
}

void MergeTable::add(Token left, Token right, Token merged) {
  const auto key =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  merges_.emplace(key, Merge{static_cast<double>(next_rank_++), merged});
}

std::optional<Merge> MergeTable::find(Token left, Token right) const {
  const auto key =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  const auto found = merges_.find(key);
  if (found == merges_.end()) return std::nullopt;
  return found->second;
}

ByteLevelEncoder::ByteLevelEncoder(Parts parts) : parts_(std::move(parts)) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = parts_.ids.find(std::string(1, static_cast<char>(byte)));
    byte_ids_[byte] = found == parts_.ids.end() ? parts_.unknown.value_or(kPaddingToken) : found->second;
  }
}

void ByteLevelEncoder::encode(std::string_view text, bool, std::vector<Token>& ids) const {
  for (const std::string_view piece : parts_.pre_tokenizer.split(text)) encode_piece(piece, ids);
}

void ByteLevelEncoder::encode_piece(std::string_view piece, std::vector<Token>& ids) const {
  if (parts_.whole_pieces_first) {
    if (const auto found = parts_.ids.find(std::string(piece)); found != parts_.ids.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  std::vector<MergeSymbol> symbols;
  symbols.reserve(piece.size());
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const Token id = byte_ids_[static_cast<unsigned char>(piece[i])];
    if (id != kPaddingToken) symbols.push_back({id, static_cast<std::uint32_t>(i), 1, -1, -1});
  }
  merge_symbols(symbols, [&](const MergeSymbol& left, const MergeSymbol& right) {
    return parts_.merges.find(left.id, right.id);
  });
  for (const MergeSymbol& symbol : symbols)
    if (symbol.length > 0) ids.push_back(symbol.id);
}

}  // namespace draftproof
