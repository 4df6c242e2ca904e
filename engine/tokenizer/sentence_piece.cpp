#include "engine/tokenizer/sentence_piece.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"

namespace draftproof {
namespace {

constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";  // U+2581

}  // namespace

std::optional<unsigned char> byte_of_byte_token(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  if (digit(text[3]) < 0 || digit(text[4]) < 0) return std::nullopt;
  return static_cast<unsigned char>(digit(text[3]) * 16 + digit(text[4]));
}

std::string with_spaces(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const bool is_space = text.substr(i).starts_with(kSpaceSymbol);
    result += is_space ? ' ' : text[i];
    i += is_space ? kSpaceSymbol.size() : 1;
  }
  return result;
}

SentencePieceEncoder::SentencePieceEncoder(Parts parts) : parts_(std::move(parts)) {
  for (const auto& [text, id] : parts_.ids) token_bytes_max_ = std::max(token_bytes_max_, text.size());
}

void SentencePieceEncoder::encode(std::string_view text, bool is_first, std::vector<Token>& ids) const {
  std::string written;
  if (parts_.prefix == SpacePrefix::every_text || (parts_.prefix == SpacePrefix::first_text && is_first))
    written += kSpaceSymbol;
  for (const char c : text) c == ' ' ? written += kSpaceSymbol : written += c;

  const std::string_view all = written;
  const auto id_of = [&](std::string_view part) {
    const auto found = part.size() > token_bytes_max_ ? parts_.ids.end() : parts_.ids.find(std::string(part));
    return found == parts_.ids.end() ? kPaddingToken : found->second;
  };
  std::vector<MergeSymbol> symbols;
  for (std::size_t i = 0; i < all.size();) {
    const std::size_t length = std::max<std::size_t>(1, decode_utf8(all.substr(i)).length);
    symbols.push_back(
        {id_of(all.substr(i, length)), static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(length), -1, -1});
    i += length;
  }
  merge_symbols(symbols, [&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge> {
    if (parts_.scores.empty()) return parts_.merges.find(left.id, right.id);
    const Token id = id_of(all.substr(left.begin, left.length + right.length));
    if (id == kPaddingToken) return std::nullopt;
    return Merge{-static_cast<double>(parts_.scores[static_cast<std::size_t>(id)]), id};
  });
  bool after_unknown = false;
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.length == 0) continue;
    const bool was_after_unknown = std::exchange(after_unknown, false);
    if (symbol.id != kPaddingToken) {
      ids.push_back(symbol.id);
      continue;
    }
    const std::string_view bytes = all.substr(symbol.begin, symbol.length);
    const bool has_bytes = std::all_of(bytes.begin(), bytes.end(), [&](char c) {
      return parts_.byte_ids[static_cast<unsigned char>(c)] != kPaddingToken;
    });
    if (has_bytes) {
      for (const char c : bytes) ids.push_back(parts_.byte_ids[static_cast<unsigned char>(c)]);
    } else if (parts_.unknown) {
      if (!(was_after_unknown && parts_.joins_unknown)) ids.push_back(*parts_.unknown);
      after_unknown = true;
    }
  }
}

}  // namespace draftproof
