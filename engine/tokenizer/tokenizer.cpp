#include "engine/tokenizer/tokenizer.hpp"

#include <algorithm>

namespace draftproof {

Tokenizer::Tokenizer(Parts parts) : parts_(std::move(parts)), added_by_first_byte_(256) {
  for (std::size_t i = 0; i < parts_.vocabulary.size(); ++i) {
    const VocabularyEntry& entry = parts_.vocabulary[i];
    if (!entry.is_added || entry.text.empty()) continue;
    if (!added_.emplace(entry.text, static_cast<Token>(i)).second) continue;
    added_by_first_byte_[static_cast<unsigned char>(entry.text.front())].push_back(static_cast<Token>(i));
  }
  for (std::vector<Token>& tokens : added_by_first_byte_)
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](Token a, Token b) { return entry(a).text.size() > entry(b).text.size(); });
}

std::optional<Token> Tokenizer::start_token() const {
  if (parts_.prefix.empty()) return std::nullopt;
  return parts_.prefix.front();
}

std::optional<Token> Tokenizer::added_token(std::string_view text) const {
  const auto found = added_.find(text);
  if (found == added_.end()) return std::nullopt;
  return found->second;
}

std::optional<Tokenizer::Found> Tokenizer::next_added(std::string_view text, std::size_t from,
                                                      bool parse_special) const {
  for (std::size_t begin = from; begin < text.size(); ++begin)
    for (const Token token : added_by_first_byte_[static_cast<unsigned char>(text[begin])])
      if ((parse_special || !entry(token).is_special) && text.substr(begin).starts_with(entry(token).text))
        return Found{begin, token};
  return std::nullopt;
}

std::vector<Token> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<Token> ids;
  if (options.add_special) ids = parts_.prefix;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::optional<Found> found = next_added(text, begin, options.parse_special);
    const std::size_t end = found ? found->begin : text.size();
    if (end > begin) {
      std::string piece(text.substr(begin, end - begin));
      for (std::size_t at = 0; !options.left_out.empty() && (at = piece.find(options.left_out, at)) != piece.npos;)
        piece.erase(at, options.left_out.size());
      parts_.encoder->encode(piece, begin == 0, ids);
    }
    begin = end;
    if (!found) break;
    ids.push_back(found->token);
    begin += entry(found->token).text.size();
  }
  if (options.add_special) ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += bytes_of(token);
  if (parts_.strips_first_space && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace draftproof
