#include "engine/heads/lab/acceptance_oracle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.hpp"
#include "reference/logits/guidance.hpp"

namespace draftproof {
namespace {

// Logits this close may have equal masses, and are then ranked by their tokens.
constexpr float kEqualMassDistance = 1e-5f;

std::string number_text(float value) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.9g (0x%08x)", static_cast<double>(value),
                std::bit_cast<std::uint32_t>(value));
  return text.data();
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

std::string_view name_of(DraftPart part) {
  constexpr std::array<std::string_view, 4> kNames{"logits", "state", "draft", "proposal"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string HeadDifference::text() const {
  std::string where = std::string(name_of(family)) + ", request " + std::to_string(request) + ", position " +
                      std::to_string(position) + ", depth " + std::to_string(depth) + ": ";
  if (part == DraftPart::draft)
    return where + "the draft is token " + std::to_string(static_cast<Token>(of_run)) + ", expected " +
           (expected < 0.0f ? "a token of the head" : "token " + std::to_string(static_cast<Token>(expected)));
  return where + std::string(name_of(part)) + "[" + std::to_string(column) + "] is " + number_text(of_run) +
         ", expected " + number_text(expected);
}

AcceptanceOracle::AcceptanceOracle(std::shared_ptr<const HeadWeights> head, const TransformerModel& target,
                                   const TransformerKernels& kernels, std::int64_t memory_max)
    : head_(std::move(head), target, kernels), memory_max_(memory_max) {}

void AcceptanceOracle::remember(const StreamKey& key, std::span<const Token> tokens) {
  std::vector<Token>& stream = streams_[key];
  const std::size_t common = std::min(stream.size(), tokens.size());
  if (!std::ranges::equal(std::span(stream).first(common), tokens.first(common)))
    throw Error(ErrorKind::internal, "acceptance oracle", "the tokens of a request have changed");
  stream.insert(stream.end(), tokens.begin() + static_cast<std::ptrdiff_t>(common), tokens.end());
}

void AcceptanceOracle::add(const HeadRow& row) {
  // Drafts look for the rows that they were made from: those of a step stay until all of them have come.
  if (step_is_over_ && waiting_bytes_ > memory_max_) compare();
  step_is_over_ = false;
  remember({row.request, 0}, row.stream);
  if (!row.companion.empty()) remember({row.request, 1}, row.companion);
  waiting_.push_back({row.request,
                      row.stream.size(),
                      row.path,
                      {row.logits.begin(), row.logits.end()},
                      {row.state.begin(), row.state.end()},
                      row.companion.size(),
                      row.guidance_scale});
  waiting_bytes_ += static_cast<std::int64_t>((row.logits.size() + row.state.size()) * sizeof(float));
}

const AcceptanceOracle::Waiting* AcceptanceOracle::find(const HeadDraft& draft, const std::vector<Token>& path) const {
  for (auto row = waiting_.rbegin(); row != waiting_.rend(); ++row)
    if (row->request == draft.request && row->stream_len == draft.stream.size() && row->path == path) return &*row;
  throw Error(ErrorKind::internal, "acceptance oracle", "a draft was made from a row that was not shown");
}

HeadDifference AcceptanceOracle::place_of(DraftPart part, std::uint64_t request, std::size_t stream_len,
                                          std::size_t path_len) const {
  return {part, head_.description().family, request, static_cast<std::int64_t>(stream_len + path_len),
          static_cast<std::int32_t>(path_len) + 1};
}

void AcceptanceOracle::report(const HeadDifference& difference) {
  ++num_different_;
  if (!first_) first_ = difference;
}

bool AcceptanceOracle::differs(HeadDifference place, std::span<const float> of_run, std::span<const float> expected) {
  if (of_run.size() != expected.size())
    throw Error(ErrorKind::internal, "acceptance oracle", "rows have another length than the head's");
  for (std::size_t i = 0; i < of_run.size(); ++i) {
    if (same_bits(of_run[i], expected[i])) continue;
    place.column = static_cast<std::int64_t>(i);
    place.of_run = of_run[i];
    place.expected = expected[i];
    report(place);
    return true;
  }
  return false;
}

// Against the run's own rows: whether those are the head's is compared apart from it.
void AcceptanceOracle::add(const HeadDraft& of) {
  step_is_over_ = true;
  const DraftTree& tree = of.draft->tree;
  const auto vocab = static_cast<std::size_t>(head_.target_vocab_size());
  for (std::int32_t node = kRootNode; node < tree.size(); ++node) {
    const std::vector<std::int32_t> children = tree.children(node);
    if (children.empty()) continue;
    const std::vector<Token> path = tree.path(node);
    const std::vector<float>& row = find(of, path)->logits;
    drafts_compared_ += std::ssize(children);
    if (of.draft->proposal_kind == ProposalKind::logits) {
      std::vector<float> expected(vocab, -std::numeric_limits<float>::infinity());
      for (std::size_t i = 0; i < row.size(); ++i)
        expected[static_cast<std::size_t>(head_.token_of(static_cast<std::int64_t>(i)))] = row[i];
      const std::span<const float> proposal =
          std::span(of.draft->logits).subspan(DraftTree::row_after(node) * vocab, vocab);
      differs(place_of(DraftPart::proposal, of.request, of.stream.size(), path.size()), proposal, expected);
      for (const std::int32_t child : children) {
        const Token token = tree.tokens[static_cast<std::size_t>(child)];
        if (token >= 0 && token < static_cast<Token>(vocab) && std::isfinite(expected[static_cast<std::size_t>(token)]))
          continue;
        HeadDifference place = place_of(DraftPart::draft, of.request, of.stream.size(), path.size());
        place.column = child;
        place.of_run = static_cast<float>(token);
        place.expected = -1.0f;
        report(place);
      }
      continue;
    }
    // The i-th child is the i-th of the row's most probable tokens.
    std::vector<std::int64_t> columns(row.size());
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int64_t>(i);
    const auto logit = [&](std::int64_t column) { return row[static_cast<std::size_t>(column)]; };
    const auto count = std::min(children.size(), columns.size());
    std::ranges::partial_sort(
        columns, columns.begin() + static_cast<std::ptrdiff_t>(count),
        [&](std::int64_t a, std::int64_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
    for (std::size_t i = 0; i < children.size(); ++i) {
      const Token token = tree.tokens[static_cast<std::size_t>(children[i])];
      const std::int64_t best = i < count ? columns[i] : -1;
      std::int64_t column = 0;
      while (column < std::ssize(row) && head_.token_of(column) != token) ++column;
      const bool equal = best >= 0 && column < std::ssize(row) &&
                         (column == best || (i > 0 && std::abs(logit(column) - logit(best)) <= kEqualMassDistance));
      if (equal) continue;
      HeadDifference place = place_of(DraftPart::draft, of.request, of.stream.size(), path.size());
      place.column = children[i];
      place.of_run = static_cast<float>(token);
      place.expected = static_cast<float>(best < 0 ? -1 : head_.token_of(best));
      report(place);
    }
  }
}

void AcceptanceOracle::compare(const Waiting& row) {
  const auto row_behind = [&](const StreamKey& key, std::size_t length) -> const SlowHead::Row& {
    return head_.row(texts_[key], std::span(streams_.at(key)).first(length), row.path);
  };
  const SlowHead::Row& expected = row_behind({row.request, 0}, row.stream_len);
  std::vector<float> logits = expected.logits;
  if (row.companion_len != 0) {
    combine_guidance(logits, row_behind({row.request, 1}, row.companion_len).logits, row.guidance_scale, {}, logits);
    ++guided_rows_compared_;
  }
  ++rows_compared_;
  differs(place_of(DraftPart::logits, row.request, row.stream_len, row.path.size()), row.logits, logits);
  if (!row.state.empty())
    differs(place_of(DraftPart::state, row.request, row.stream_len, row.path.size()), row.state, expected.state);
}

void AcceptanceOracle::end_run() {
  compare();
  texts_.clear();
}

void AcceptanceOracle::compare() {
  for (const auto& [key, stream] : streams_) head_.read(texts_[key], stream);
  for (const Waiting& row : waiting_) compare(row);
  waiting_.clear();
  waiting_bytes_ = 0;
  streams_.clear();
  std::int64_t bytes = 0;
  for (const auto& [key, text] : texts_) bytes += text.size_bytes();
  // Texts of the oldest requests go first.
  while (bytes > memory_max_ && !texts_.empty()) {
    bytes -= texts_.begin()->second.size_bytes();
    texts_.erase(texts_.begin());
  }
}

}  // namespace draftproof
