#include "engine/model/ngram_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {
namespace {

// A document's bytes are stored as byte + 1, after order - 1 borders, so that every byte has order - 1 symbols before
// it.
using Symbol = std::uint16_t;
constexpr Symbol kBorder = 0;
constexpr std::size_t kSymbols = 257;

// How often each byte follows one context that is being counted, with the seen bytes as a bit set, so that reading the
// counts in the order of the bytes and clearing them costs the number of seen bytes and not 256.
class SuccessorCounts {
 public:
  void add(std::uint8_t byte) {
    ++count_[byte];
    seen_[byte / 64U] |= std::uint64_t{1} << (byte % 64U);
  }

  // Calls visit(byte, count) for every seen byte, ascending, and forgets them.
  template <typename Visit>
  void drain(Visit&& visit) {
    for (unsigned word = 0; word < seen_.size(); ++word) {
      for (; seen_[word] != 0; seen_[word] &= seen_[word] - 1) {
        const auto byte = static_cast<std::uint8_t>(64U * word + static_cast<unsigned>(std::countr_zero(seen_[word])));
        visit(byte, std::exchange(count_[byte], 0U));
      }
    }
  }

 private:
  std::array<std::uint32_t, 256> count_{};
  std::array<std::uint64_t, 4> seen_{};
};

// The positions of all bytes, sorted by the symbols before them: the newest first, then the one before it, and so on
// for context_length symbols. A stable counting sort per symbol, the oldest symbol first.
std::vector<std::uint32_t> positions_sorted_by_context(const std::vector<Symbol>& symbols, std::size_t context_length) {
  std::vector<std::uint32_t> positions;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] != kBorder) positions.push_back(static_cast<std::uint32_t>(i));
  }
  std::vector<std::uint32_t> sorted(positions.size());
  for (std::size_t distance = context_length; distance > 0; --distance) {
    std::array<std::uint32_t, kSymbols + 1> first{};
    for (const std::uint32_t position : positions) ++first[symbols[position - distance] + 1U];
    for (std::size_t symbol = 1; symbol <= kSymbols; ++symbol) first[symbol] += first[symbol - 1];
    for (const std::uint32_t position : positions) sorted[first[symbols[position - distance]]++] = position;
    positions.swap(sorted);
  }
  return positions;
}

double discount_of(const Discounts& discounts, std::uint32_t count) {
  return count == 1 ? discounts.once : count == 2 ? discounts.twice : discounts.more;
}

void check_row_size(const char* where, std::size_t size) {
  if (size != static_cast<std::size_t>(NgramModel::kVocabularySize)) {
    throw usage_error(where, "the output row has " + std::to_string(size) + " entries, it must have 256, one per byte");
  }
}

}  // namespace

Discounts estimate_discounts(std::span<const std::uint64_t, 4> counts_of_counts) {
  const auto t1 = static_cast<double>(counts_of_counts[0]);
  const auto t2 = static_cast<double>(counts_of_counts[1]);
  const auto t3 = static_cast<double>(counts_of_counts[2]);
  const auto t4 = static_cast<double>(counts_of_counts[3]);
  if (t1 == 0 || t2 == 0) return {0.5, 0.5, 0.5};
  const double y = t1 / (t1 + 2 * t2);
  if (t3 > 0 && t4 > 0) {
    const Discounts modified{1 - 2 * y * t2 / t1, 2 - 3 * y * t3 / t2, 3 - 4 * y * t4 / t3};
    if (modified.once > 0 && modified.twice > 0 && modified.more > 0) return modified;
  }
  return {y, y, y};
}

// Walks the sorted positions with one open context per length. A context is closed when the next position does not
// share it: its successors are written, and each of them is one more predecessor for its h' w, which makes the counts
// of all shorter contexts continuation counts without looking anything up.
class NgramModel::Builder {
 public:
  explicit Builder(int order)
      : levels_(static_cast<std::size_t>(order)), open_(levels_.size()), context_length_max_(levels_.size() - 1) {}

  std::vector<Level> build(const std::vector<Symbol>& symbols) {
    const std::vector<std::uint32_t> positions = positions_sorted_by_context(symbols, context_length_max_);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const Symbol* next = &symbols[positions[i]];
      if (i > 0) {
        const Symbol* last = &symbols[positions[i - 1]];
        std::size_t shared = 0;
        while (shared < context_length_max_ && *(last - shared - 1) == *(next - shared - 1)) ++shared;
        for (std::size_t length = context_length_max_; length > shared; --length) close(length, *(last - length));
      }
      open_[context_length_max_].add(static_cast<std::uint8_t>(*next - 1));
    }
    const Symbol* last = &symbols[positions.back()];
    for (std::size_t length = context_length_max_; length > 0; --length) close(length, *(last - length));
    store_and_clear(0, 0);
    for (Level& level : levels_) level.discounts = discounts_of(level);
    return std::move(levels_);
  }

 private:
  // A context that reaches over the start of its document is no context of the model, but it is a predecessor.
  void close(std::size_t length, Symbol oldest) {
    if (oldest == kBorder) {
      open_[length].drain([&](std::uint8_t byte, std::uint32_t) { open_[length - 1].add(byte); });
    } else {
      store_and_clear(length, static_cast<std::uint8_t>(oldest - 1));
    }
  }

  void store_and_clear(std::size_t length, std::uint8_t oldest_byte) {
    Level& level = levels_[length];
    open_[length].drain([&](std::uint8_t byte, std::uint32_t count) {
      level.successor.push_back(byte);
      level.count.push_back(count);
      if (length > 0) open_[length - 1].add(byte);
    });
    level.oldest_byte.push_back(oldest_byte);
    level.first_successor.push_back(static_cast<std::uint32_t>(level.successor.size()));
    const std::size_t children_end = length < context_length_max_ ? levels_[length + 1].oldest_byte.size() : 0;
    level.first_child.push_back(static_cast<std::uint32_t>(children_end));
  }

  static Discounts discounts_of(const Level& level) {
    std::array<std::uint64_t, 4> counts_of_counts{};
    for (const std::uint32_t count : level.count) {
      if (count <= counts_of_counts.size()) ++counts_of_counts[count - 1];
    }
    return estimate_discounts(counts_of_counts);
  }

  std::vector<Level> levels_;
  std::vector<SuccessorCounts> open_;
  std::size_t context_length_max_;
};

NgramModel NgramModel::train(std::span<const std::uint8_t> text, int order) {
  return train_documents(std::span(&text, 1), order);
}

NgramModel NgramModel::train(std::span<const std::vector<std::uint8_t>> documents, int order) {
  const std::vector<std::span<const std::uint8_t>> views(documents.begin(), documents.end());
  return train_documents(views, order);
}

NgramModel NgramModel::train_documents(std::span<const std::span<const std::uint8_t>> documents, int order) {
  if (order < 1 || order > kOrderMax) {
    throw usage_error("n-gram order",
                      "it is " + std::to_string(order) + ", it must be from 1 to " + std::to_string(kOrderMax));
  }
  const std::size_t borders = static_cast<std::size_t>(order) - 1;
  std::size_t bytes = 0;
  std::size_t symbol_count = 0;
  for (const auto document : documents) {
    if (document.empty()) continue;
    bytes += document.size();
    symbol_count += borders + document.size();
  }
  if (bytes == 0) throw input_error("training corpus", "it has no bytes, an n-gram model needs at least one");
  if (bytes > kCorpusBytesMax || symbol_count > UINT32_MAX) {
    throw input_error("training corpus", "it has " + std::to_string(bytes) + " bytes, at most " +
                                             std::to_string(kCorpusBytesMax) + " can be counted");
  }
  std::vector<Symbol> symbols;
  symbols.reserve(symbol_count);
  for (const auto document : documents) {
    if (document.empty()) continue;
    symbols.insert(symbols.end(), borders, kBorder);
    for (const std::uint8_t byte : document) symbols.push_back(static_cast<Symbol>(byte + 1));
  }
  NgramModel model;
  model.levels_ = Builder(order).build(symbols);
  return model;
}

// One step of the recursion, in place: `distribution` is p_{m-1}(. | h') and becomes p_m(. | h).
void NgramModel::interpolate(const Level& level, std::size_t context_index, std::span<double> distribution) {
  const std::size_t begin = level.first_successor[context_index];
  const std::size_t end = level.first_successor[context_index + 1];
  std::uint64_t total = 0;
  std::array<std::uint32_t, 3> seen{};  // successors with a count of one, of two, of three or more
  for (std::size_t i = begin; i < end; ++i) {
    total += level.count[i];
    ++seen[std::min(level.count[i], 3U) - 1];
  }
  const auto total_count = static_cast<double>(total);
  const Discounts& discounts = level.discounts;
  const double lambda = (discounts.once * seen[0] + discounts.twice * seen[1] + discounts.more * seen[2]) / total_count;
  for (double& probability : distribution) probability *= lambda;
  for (std::size_t i = begin; i < end; ++i) {
    distribution[level.successor[i]] += (level.count[i] - discount_of(discounts, level.count[i])) / total_count;
  }
}

void NgramModel::probabilities(std::span<const Token> context, std::span<double> out) const {
  check_row_size("n-gram probabilities", out.size());
  const std::size_t used = std::min(context.size(), levels_.size() - 1);
  for (std::size_t i = context.size() - used; i < context.size(); ++i) {
    if (context[i] < 0 || context[i] >= kVocabularySize) {
      throw input_error("n-gram context, token " + std::to_string(i),
                        "it is " + std::to_string(context[i]) + ", a byte is from 0 to 255");
    }
  }
  std::fill(out.begin(), out.end(), 1.0 / kVocabularySize);
  std::size_t node = 0;
  interpolate(levels_[0], node, out);
  for (std::size_t length = 1; length <= used; ++length) {
    const Level& level = levels_[length];
    const auto byte = static_cast<std::uint8_t>(context[context.size() - length]);
    const auto begin = level.oldest_byte.begin() + levels_[length - 1].first_child[node];
    const auto end = level.oldest_byte.begin() + levels_[length - 1].first_child[node + 1];
    const auto child = std::lower_bound(begin, end, byte);
    // A context that was never followed by a byte has no longer context that was.
    if (child == end || *child != byte) return;
    node = static_cast<std::size_t>(child - level.oldest_byte.begin());
    interpolate(level, node, out);
  }
}

void NgramModel::logits(std::span<const Token> context, std::span<float> out) const {
  check_row_size("n-gram logits", out.size());
  std::array<double, kVocabularySize> distribution{};
  probabilities(context, distribution);
  for (std::size_t token = 0; token < distribution.size(); ++token)
    out[token] = static_cast<float>(natural_log(distribution[token]));
}

const Discounts& NgramModel::discounts(int context_length) const {
  if (context_length < 0 || context_length >= order()) {
    throw usage_error("n-gram context length", "it is " + std::to_string(context_length) + ", it must be from 0 to " +
                                                   std::to_string(order() - 1) + ", the order minus one");
  }
  return levels_[static_cast<std::size_t>(context_length)].discounts;
}

}  // namespace draftproof
