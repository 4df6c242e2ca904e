#include "engine/model/model_session.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace draftproof {

void ModelSession::reserve(Stream& stream, std::size_t slots) {
  if (stream.cache && static_cast<std::size_t>(stream.cache->num_slots()) >= slots) return;
  // A larger cache is an empty one: what it should hold is computed again.
  const std::size_t least = std::max<std::size_t>(2 * slots, 128);
  const auto blocks = static_cast<std::int64_t>(least) / kKvBlockSlots + 1;
  stream.cache = model_.make_kv_cache(blocks * kKvBlockSlots);
  stream.committed.clear();
  stream.nodes.clear();
  stream.parents.clear();
}

// Leaves in the cache what is a beginning of `context`, its last token excepted, whose row is wanted. Where the context
// went on through the last call's tree, the nodes of its path move into its positions: a path's nodes ascend, so none
// is overwritten before it has moved.
void ModelSession::keep_common_prefix(Stream& stream, std::span<const Token> context) {
  const auto of_context = context.first(context.size() - 1);
  const auto first =
      static_cast<std::size_t>(std::ranges::mismatch(stream.committed, of_context).in1 - stream.committed.begin());
  if (first == stream.committed.size()) {
    std::int32_t parent = kContextParent;
    for (std::size_t i = 0; i < stream.nodes.size() && stream.committed.size() < of_context.size(); ++i) {
      if (stream.parents[i] != parent || stream.nodes[i] != of_context[stream.committed.size()]) continue;
      const std::size_t from = first + i;
      if (from != stream.committed.size())
        stream.cache->copy_slot(static_cast<std::int64_t>(from), static_cast<std::int64_t>(stream.committed.size()));
      stream.committed.push_back(stream.nodes[i]);
      parent = static_cast<std::int32_t>(i);
    }
  } else {
    stream.committed.resize(first);
  }
  stream.nodes.clear();
  stream.parents.clear();
}

void ModelSession::tree_logits(std::span<const Token> context, std::span<const Token> nodes,
                               std::span<const std::int32_t> parents, std::span<float> out,
                               std::uint64_t stream_index) {
  context_.clear();
  if (const auto start = model_.start_token(); start && (context.empty() || context.front() != *start))
    context_.push_back(*start);
  context_.insert(context_.end(), context.begin(), context.end());
  if (context_.empty())
    throw input_error("prompt", "it has no token, and the model has no start token; expected at least one token");
  if (static_cast<std::int64_t>(context_.size()) > model_.context_len_max())
    throw input_error("context", "it has " + std::to_string(context_.size()) + " tokens; expected at most " +
                                     std::to_string(model_.context_len_max()));
  Stream& stream = streams_[stream_index];
  reserve(stream, context_.size() + nodes.size());
  keep_common_prefix(stream, context_);

  blocks_.resize(static_cast<std::size_t>(stream.cache->num_slots() / kKvBlockSlots));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  const std::size_t cached = stream.committed.size();
  batch_.clear();
  batch_.add_chain(std::span(context_).subspan(cached), static_cast<std::int64_t>(cached));
  const std::int32_t root = batch_.size() - 1;
  batch_.wanted.push_back(root);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int32_t parent = parents[i] + root + 1;
    batch_.wanted.push_back(batch_.add(nodes[i], batch_.positions[static_cast<std::size_t>(parent)] + 1, parent,
                                       static_cast<std::int64_t>(context_.size() + i)));
  }
  batch_.contexts.push_back({blocks_, static_cast<std::int64_t>(cached)});
  model_.forward(batch_.view(), *stream.cache, output_);
  stream.committed.assign(context_.begin(), context_.end());
  stream.nodes.assign(nodes.begin(), nodes.end());
  stream.parents.assign(parents.begin(), parents.end());
  std::ranges::copy(output_.logits, out.begin());
}

void ModelSession::logits(std::span<const Token> context, std::span<float> out, std::uint64_t stream) {
  tree_logits(context, {}, {}, out, stream);
}

}  // namespace draftproof
