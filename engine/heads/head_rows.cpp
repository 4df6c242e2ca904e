// The rows that a head's drafts come from, by family.
#include <chrono>
#include <set>
#include <tuple>

#include "engine/heads/head_growth.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kLateRowsMax = 1024;  // of a pass that only stores
constexpr std::int64_t kFreshRowsMax = 17;   // of a request that drafted in the step before
constexpr std::int64_t kMasked = -1;         // position of features that stand for no token's

}  // namespace

void HeadDrafter::Batch::clear() {
  GatheredBatch::clear();
  tails.clear(), origins.clear(), features.clear(), states.clear();
}

// f(growth, node, side) for every node whose row comes next.
void HeadDrafter::each_frontier(std::span<Growth> growths, auto f) {
  for (Growth& growth : growths)
    for (const std::int32_t node : growth.frontier)
      for (std::size_t s = 0; s < growth.sides.size(); ++s) f(growth, growth.at(node), s);
}

// Adds the tokens of a stream at positions [begin, end), a chain behind its context, with the features that their
// entries are made of: those of the tokens before them, of blocks their own. Behind them `masks` places that are
// masked, with entries from a slot on.
void HeadDrafter::add_tokens(const Side& side, std::int64_t begin, std::int64_t end, HeadEntries& cache,
                             std::int32_t masks, std::int64_t mask_slot) {
  const std::int64_t before = cache.first_entry();
  if (before == 1 && begin == 1) cache.kv().clear_slot(side.kv.slot(0));
  for (std::int64_t p = begin; p < end; ++p) {
    batch_.add(side.tokens[static_cast<std::size_t>(p)], p, p == begin ? kContextParent : batch_.size() - 1,
               side.kv.slot(p));
    batch_.add_features(cache.features(side.kv, p - before));
    batch_.origins.emplace_back(&side, p - before);
  }
  for (std::int32_t i = 0; i < masks; ++i) {
    batch_.add(head_->description().mask_token, end + i, batch_.size() - 1, mask_slot + i);
    batch_.add_features(head_->weights().mask_hidden);
    batch_.origins.emplace_back(&side, kMasked);
  }
  batch_.contexts.push_back({side.kv.blocks, begin});
}

void HeadDrafter::store_batch(HeadEntries& cache) {
  head_->make_states(batch_.features, batch_.states);
  if (on_state) {
    const auto width = static_cast<std::size_t>(head_->state_width());
    std::size_t row = 0;
    for (const auto& [side, position] : batch_.origins)
      if (const std::size_t at = row++; position != kMasked)
        on_state(side->request, side->stream_index, position, std::span(batch_.states).subspan(at * width, width));
  }
  if (head_->description().family == HeadFamily::dflash)
    head_->store_context(batch_.view(), batch_.states, cache.kv());
  else
    head_->run_pairs(batch_.view(), batch_.states, cache.kv(), output_);
}

// Full blocks whose entries no draft has needed so far are computed once where several requests share them, and in
// parts where they are many; whatever else is lacking the first pass of the draft takes along.
void HeadDrafter::catch_up(std::span<Growth> growths, HeadEntries& cache) {
  for (;;) {
    batch_.clear();
    std::set<std::int32_t> claimed;
    std::vector<std::tuple<const Side*, std::int64_t, std::int64_t>> added;
    bool waits = false;
    for (Growth& growth : growths)
      for (const Side& side : growth.sides) {
        const std::int64_t begin = cache.lacking_from(side);
        const std::int64_t full = side.newest() / kKvBlockSlots;
        std::int64_t block = begin / kKvBlockSlots;
        for (; block < full && std::ssize(batch_.tokens) + (block + 1) * kKvBlockSlots - begin <= kLateRowsMax; ++block)
          if (cache.stores(side, block) ||  // the features that its entries were made of are gone
              !claimed.insert(side.kv.blocks[static_cast<std::size_t>(block)]).second)
            break;
        waits = waits || block < full;
        if (block * kKvBlockSlots <= begin) continue;
        add_tokens(side, begin, block * kKvBlockSlots, cache);
        added.emplace_back(&side, begin, block * kKvBlockSlots);
      }
    if (!waits) return;
    store_batch(cache);
    for (const auto& [side, begin, end] : added) cache.mark_stored(*side, begin, end);
  }
}

// The rows after the contexts.
void HeadDrafter::compute_roots(std::span<Growth> growths, HeadEntries& cache) {
  const HeadFamily family = head_->description().family;
  if (family == HeadFamily::medusa) return medusa_roots(growths, cache);
  read_contexts(growths, cache);
  if (family == HeadFamily::dflash) run_blocks(growths, cache);
  if (drafts_in_parallel(family)) return parallel_roots(growths);
  pair_roots(growths);
}

// One matrix of its own for each depth, and no entries.
void HeadDrafter::medusa_roots(std::span<Growth> growths, HeadEntries& cache) {
  const auto rows = static_cast<std::size_t>(head_->num_rows());
  batch_.clear();
  std::int32_t length_max = 0;
  for (const Growth& growth : growths) {
    for (const Side& side : growth.sides) batch_.add_features(cache.features(side.kv, side.newest() - 1));
    length_max = std::max(length_max, growth.length_max);
  }
  head_->make_states(batch_.features, batch_.states);
  for (std::int32_t level = 0; level < length_max; ++level) {
    head_->run_medusa(static_cast<std::size_t>(level), batch_.states, output_.logits);
    std::size_t row = 0;
    for (Growth& growth : growths) {
      std::vector<float>& marginal = growth.sides[0].marginals.emplace_back();
      for (std::size_t s = 0; s < growth.sides.size(); ++s)
        growth.take_row(s, std::span(output_.logits).subspan(row++ * rows, rows), marginal);
    }
  }
}

// Makes the entries that the drafts need. The pass that makes the newest gives the rows after it too, of heads that
// have entries of pairs.
void HeadDrafter::read_contexts(std::span<Growth> growths, HeadEntries& cache) {
  const auto before = std::chrono::steady_clock::now();
  catch_up(growths, cache);
  const auto caught_up = std::chrono::steady_clock::now();
  batch_.clear();
  std::int64_t late_rows = 0, mask_slot = cache.scratch();
  for (const Growth& growth : growths)
    for (const Side& side : growth.sides) {
      const std::int64_t end = side.newest() + cache.first_entry();  // the newest token's pair gives the first row
      const std::int64_t from = std::min(cache.lacking_from(side), side.newest());
      late_rows += std::max<std::int64_t>(end - from - kFreshRowsMax, 0);
      const std::int32_t masks = head_->description().family == HeadFamily::peagle ? growth.length_max - 1 : 0;
      if (from < end) add_tokens(side, from, end, cache, masks, mask_slot);
      mask_slot += masks;
      cache.mark_stored(side, from, end);
      for (std::int32_t i = masks; cache.first_entry() == 1 && i >= 0; --i)
        batch_.wanted.push_back(batch_.size() - 1 - i);
    }
  const std::int64_t num_rows = std::ssize(batch_.tokens);
  if (num_rows > 0) store_batch(cache);
  const auto stored = std::chrono::steady_clock::now();
  const auto ns_of = [](auto time) { return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(); };
  cache.add_late_ns(ns_of(caught_up - before));
  if (num_rows > 0) cache.add_late_ns(ns_of(stored - caught_up) * late_rows / num_rows);
}

// DFlash: the places of a block attend to one another and to the entries of the context.
void HeadDrafter::run_blocks(std::span<Growth> growths, HeadEntries& cache) {
  const HeadDescription& description = head_->description();
  batch_.clear();
  std::int64_t scratch = cache.scratch();
  for (const Growth& growth : growths)
    for (const Side& side : growth.sides) {
      for (std::int32_t i = 0; i < description.block_len; ++i) {
        if (i >= (description.from_anchor ? 0 : 1) && i < growth.length_max + (description.from_anchor ? 0 : 1))
          batch_.wanted.push_back(batch_.size());
        batch_.add(i == 0 ? side.tokens.back() : description.mask_token, side.newest() + i,
                   i == 0 ? kContextParent : batch_.size() - 1, scratch++);
      }
      batch_.contexts.push_back({side.kv.blocks, side.newest()});
    }
  head_->run_blocks(batch_.view(), cache.kv(), output_);
}

// A row for each depth at once, whatever is drafted before it but for a Markov bias.
void HeadDrafter::parallel_roots(std::span<Growth> growths) {
  const auto width = static_cast<std::size_t>(head_->state_width());
  const auto rows = static_cast<std::size_t>(head_->num_rows());
  std::size_t row = 0;
  const bool has_markov = head_->weights().markov_in != nullptr;
  for (Growth& growth : growths)
    for (std::size_t s = 0; s < growth.sides.size(); ++s) {
      for (std::int32_t level = 0; level < growth.length_max; ++level, ++row) {
        const auto from = std::span(output_.logits).subspan(row * rows, rows);
        // With a Markov bias rows are guided once they have it.
        Side& side = growth.sides[has_markov ? s : 0];
        if (s == 0 || has_markov) side.marginals.emplace_back();
        growth.take_row(has_markov ? 0 : s, from, side.marginals[static_cast<std::size_t>(level)]);
        if (s != 0) continue;
        const auto state =
            std::span(output_.states).subspan(static_cast<std::size_t>(batch_.wanted[row]) * width, width);
        growth.block_states.emplace_back(state.begin(), state.end());
      }
      if (!has_markov) continue;
      std::vector<float> first = growth.sides[s].marginals.front();
      head_->add_markov({{growth.sides[s].tokens.back()}}, first, growth.block_states.front());
      growth.take_row(s, first, growth.root.row);
    }
}

// EAGLE and MTP: a pair of state and token gives a row, and the state of the next pair.
void HeadDrafter::pair_roots(std::span<Growth> growths) {
  const auto width = static_cast<std::size_t>(head_->state_width());
  const auto rows = static_cast<std::size_t>(head_->num_rows());
  std::size_t row = 0;
  for (Growth& growth : growths)
    for (std::size_t s = 0; s < growth.sides.size(); ++s, ++row) {
      growth.take_row(s, std::span(output_.logits).subspan(row * rows, rows), growth.root.row);
      const auto state = std::span(output_.states).subspan(static_cast<std::size_t>(batch_.wanted[row]) * width, width);
      growth.root.states[s].assign(state.begin(), state.end());
    }
}

// The rows after the nodes of the frontiers, of all requests in one pass.
void HeadDrafter::compute_frontiers(std::span<Growth> growths, HeadEntries& cache) {
  const bool in_parallel = drafts_in_parallel(head_->description().family);
  if (in_parallel && !head_->weights().markov_in) return;
  batch_.clear();
  if (in_parallel)
    run_markov(growths);
  else
    run_next_pairs(growths, cache);
  const auto width = static_cast<std::size_t>(head_->state_width());
  const auto rows = static_cast<std::size_t>(head_->num_rows());
  std::size_t row = 0;
  each_frontier(growths, [&](Growth& growth, Growth::Node& of, std::size_t s) {
    growth.take_row(s, std::span(output_.logits).subspan(row * rows, rows), of.row);
    const std::size_t begin = row++ * width;
    if (in_parallel) return;
    const auto state = std::span(output_.states).subspan(begin, width);
    of.states[s].assign(state.begin(), state.end());
  });
}

// The rows of their depths with the bias of the token before.
void HeadDrafter::run_markov(std::span<Growth> growths) {
  output_.logits.clear();
  each_frontier(growths, [&](Growth& growth, const Growth::Node& of, std::size_t s) {
    const auto depth = static_cast<std::size_t>(of.depth);
    const std::vector<float>& base = growth.sides[s].marginals[depth];
    batch_.tokens.push_back(of.token);
    output_.logits.insert(output_.logits.end(), base.begin(), base.end());
    batch_.states.insert(batch_.states.end(), growth.block_states[depth].begin(), growth.block_states[depth].end());
  });
  head_->add_markov(batch_.tokens, output_.logits, batch_.states);
}

void HeadDrafter::run_next_pairs(std::span<Growth> growths, HeadEntries& cache) {
  each_frontier(growths, [&](Growth& growth, const Growth::Node& of, std::size_t s) {
    const Side& side = growth.sides[s];
    batch_.wanted.push_back(batch_.add(of.token, side.newest() + of.depth, kContextParent, of.slots[s]));
    batch_.contexts.push_back({side.kv.blocks, side.newest() + 1});
    std::vector<std::int64_t>& tail = batch_.tails.emplace_back();
    for (const std::int32_t above : growth.ancestors(of.parent)) tail.push_back(growth.at(above).slots[s]);
    const std::vector<float>& state = growth.at(of.parent).states[s];
    batch_.states.insert(batch_.states.end(), state.begin(), state.end());
  });
  head_->run_pairs(batch_.view(), batch_.states, cache.kv(), output_);
}

}  // namespace draftproof
