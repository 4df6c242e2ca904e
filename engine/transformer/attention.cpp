#include "engine/transformer/attention.hpp"

#include <algorithm>

namespace draftproof {
namespace {

TileSlots no_slots() {
  TileSlots slots;
  slots.fill(-1);
  return slots;
}

constexpr std::int64_t kQueriesPerTask = 12;  // that share the loads of keys and values
constexpr std::size_t kTilesAhead = 4;        // asked for: a tile ends where a processor stops looking ahead by itself

// Positions of tile t on a path whose last token is at `position`.
std::int64_t positions_in_tile(std::int64_t position, std::int64_t t) {
  return std::min(kTilePositions, position + 1 - t * kTilePositions);
}

}  // namespace

void AttentionPaths::build(const ForwardBatch& batch, std::int64_t first_position, bool whole_chains,
                           std::span<const std::vector<std::int64_t>> tails) {
  const std::size_t n = batch.tokens.size();
  first_position_ = first_position;
  positions_.assign(batch.positions.begin(), batch.positions.end());
  if (tiles_.size() < n) tiles_.resize(n);
  last_.assign(n, no_slots());
  gathered_.clear();
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<PathTile>& tiles = tiles_[i];
    const std::int64_t position = batch.positions[i];
    const std::int64_t first_of_last = position / kKvBlockSlots * kKvBlockSlots;
    TileSlots& last = last_[i];
    if (batch.parents[i] == kContextParent) {
      const StreamContext& context = batch.contexts[static_cast<std::size_t>(batch.streams[i])];
      tiles.clear();
      const auto slot_of = [&](std::int64_t p) {
        return p < context.length ? context.slot(p) : tails[i][static_cast<std::size_t>(p - context.length)];
      };
      for (std::int64_t t = 0; t < position / kKvBlockSlots; ++t) {
        if ((t + 1) * kKvBlockSlots <= context.length) {
          tiles.push_back({context.blocks[static_cast<std::size_t>(t)], -1});
          continue;
        }
        TileSlots slots;
        for (std::int64_t p = 0; p < kKvBlockSlots; ++p)
          slots[static_cast<std::size_t>(p)] = slot_of(t * kKvBlockSlots + p);
        append_tile(i, slots, kKvBlockSlots);
      }
      for (std::int64_t p = first_of_last; p < position; ++p)
        last[static_cast<std::size_t>(p - first_of_last)] = slot_of(p);
    } else {
      const auto parent = static_cast<std::size_t>(batch.parents[i]);
      tiles = tiles_[parent];
      if (first_of_last != position) {
        last = last_[parent];
        tiles.pop_back();
      }
    }
    last[static_cast<std::size_t>(position - first_of_last)] = batch.slots[i];
    append_tile(i, last, position - first_of_last + 1);
  }
  if (!whole_chains) return;
  for (std::size_t i = n; i-- > 1;) {
    if (batch.parents[i] != static_cast<std::int32_t>(i) - 1) continue;
    tiles_[i - 1] = tiles_[i];
    positions_[i - 1] = positions_[i];
  }
}

void AttentionPaths::append_tile(std::size_t token, const TileSlots& slots, std::int64_t count) {
  bool whole = slots[0] % kKvBlockSlots == 0;
  for (std::int64_t p = 1; p < count; ++p) whole = whole && slots[static_cast<std::size_t>(p)] == slots[0] + p;
  if (whole) {
    tiles_[token].push_back({static_cast<std::int32_t>(slots[0] / kKvBlockSlots), -1});
    return;
  }
  tiles_[token].push_back({-1, static_cast<std::int32_t>(gathered_.size())});
  gathered_.push_back(slots);
}

std::vector<AttentionTask> attention_tasks(const ForwardBatch& batch, std::int64_t heads, std::int64_t kv_heads,
                                           int threads) {
  const std::int64_t per_kv_head = heads / kv_heads;
  const auto n = batch.tokens.size();
  const auto tokens_per_task = static_cast<std::size_t>(std::max<std::int64_t>(1, kQueriesPerTask / per_kv_head));
  std::vector<AttentionTask> tasks;
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin + 1;
    while (end < n && batch.streams[end] == batch.streams[begin]) ++end;
    // All of one head of keys and values first: a thread then reads few of them from memory.
    for (std::int64_t kv_head = 0; kv_head < kv_heads; ++kv_head)
      for (std::size_t token = begin; token < end; token += tokens_per_task)
        tasks.push_back(
            {token, std::min(end, token + tokens_per_task), kv_head * per_kv_head, (kv_head + 1) * per_kv_head});
    begin = end;
  }
  // Few tasks that threads cannot share evenly: a head each.
  if (tasks.size() % static_cast<std::size_t>(threads) == 0 || tasks.size() >= 4 * static_cast<std::size_t>(threads))
    return tasks;
  std::vector<AttentionTask> single;
  for (const AttentionTask& task : tasks)
    for (std::int64_t head = task.head_begin; head < task.head_end; ++head)
      single.push_back({task.token_begin, task.token_end, head, head + 1});
  return single;
}

void AttentionWorker::run(const AttentionTask& task, const AttentionPaths& paths, const TransformerKernels& kernels,
                          const TransformerKvCache& kv, std::int64_t layer, std::int64_t heads, const float* queries,
                          float* out) {
  const std::int64_t head_len = kv.shape().head_len;
  const std::int64_t kv_head = task.head_begin / (heads / kv.shape().kv_heads);
  const auto heads_here = static_cast<std::size_t>(task.head_end - task.head_begin);
  const std::size_t num_queries = (task.token_end - task.token_begin) * heads_here;
  std::size_t tiles_max = 0;
  for (std::size_t i = task.token_begin; i < task.token_end; ++i)
    tiles_max = std::max(tiles_max, paths.tiles(i).size());
  const auto head = static_cast<std::size_t>(head_len);
  queries_.resize(num_queries * head);
  scores_.resize(tiles_max * num_queries * kTilePositions);
  sums_.assign(num_queries * head, 0.0f);
  factors_.resize(num_queries);
  // Row of query j in the batch's rows of queries and of sums.
  const auto row_of = [&](std::size_t j) {
    const std::int64_t token = static_cast<std::int64_t>(task.token_begin + j / heads_here);
    return (token * heads + task.head_begin + static_cast<std::int64_t>(j % heads_here)) * head_len;
  };
  for (std::size_t j = 0; j < num_queries; ++j)
    for (std::size_t i = 0; i < head; ++i)
      queries_[i * num_queries + j] = queries[row_of(j) + static_cast<std::int64_t>(i)];

  // Calls body(first query, queries, keys or values) for every tile, runs of tokens with the same tile at a time.
  const auto tile_elements = static_cast<std::size_t>(head_len * kTilePositions);
  gathered_.resize(tile_elements);
  const std::vector<PathTile>& last_path = paths.tiles(task.token_end - 1);
  const auto ask_for = [&](bool keys, std::size_t t) {
    if (!keys && t >= tiles_max) return;
    const bool of_keys = keys && t < tiles_max;  // values follow keys
    const std::size_t ahead = of_keys == keys ? t : t - tiles_max;
    if (ahead >= last_path.size() || last_path[ahead].block < 0) return;
    const std::uint16_t* const from =
        of_keys ? kv.keys(layer, last_path[ahead].block, kv_head) : kv.values(layer, last_path[ahead].block, kv_head);
    for (std::size_t i = 0; i < tile_elements; i += 64 / sizeof *from) __builtin_prefetch(from + i);
  };
  const auto for_each_run = [&](bool of_keys, const auto& body) {
    for (std::size_t t = 0; t < tiles_max; ++t) {
      ask_for(of_keys, t + kTilesAhead);
      for (std::size_t i = task.token_begin; i < task.token_end;) {
        if (t >= paths.tiles(i).size()) {
          ++i;
          continue;
        }
        const PathTile& tile = paths.tiles(i)[t];
        const std::int64_t count = positions_in_tile(paths.position(i), static_cast<std::int64_t>(t));
        std::size_t end = i + 1;
        while (tile.block >= 0 && end < task.token_end && t < paths.tiles(end).size() && paths.tiles(end)[t] == tile &&
               positions_in_tile(paths.position(end), static_cast<std::int64_t>(t)) == count)
          ++end;
        const std::uint16_t* from = nullptr;
        if (tile.block >= 0) {
          from = of_keys ? kv.keys(layer, tile.block, kv_head) : kv.values(layer, tile.block, kv_head);
        } else {
          const TileSlots& slots = paths.gathered(tile);
          for (std::int64_t p = 0; p < count; ++p) {
            const std::int64_t slot = slots[static_cast<std::size_t>(p)];
            const std::int64_t in = slot % kKvBlockSlots;
            if (of_keys) {
              const std::uint16_t* const keys = kv.keys(layer, slot / kKvBlockSlots, kv_head);
              for (std::int64_t d = 0; d < head_len; ++d)
                gathered_[static_cast<std::size_t>(d * kTilePositions + p)] = keys[d * kKvBlockSlots + in];
            } else {
              std::copy_n(kv.values(layer, slot / kKvBlockSlots, kv_head) + in * head_len, head_len,
                          gathered_.data() + p * head_len);
            }
          }
          from = gathered_.data();
        }
        body(t, (i - task.token_begin) * heads_here, (end - i) * heads_here, static_cast<std::size_t>(count), from);
        i = end;
      }
    }
  };
  const auto scores_of = [&](std::size_t t, std::size_t query) {
    return scores_.data() + (t * num_queries + query) * kTilePositions;
  };
  for_each_run(true, [&](std::size_t t, std::size_t first, std::size_t count, std::size_t, const std::uint16_t* keys) {
    kernels.tile_scores(queries_.data() + first, num_queries, static_cast<int>(count), keys, head_len,
                        scores_of(t, first));
  });
  for (std::size_t j = 0; j < num_queries; ++j)
    factors_[j] = kernels.softmax(scores_of(0, j), static_cast<std::size_t>(paths.first_position()),
                                  static_cast<std::size_t>(paths.position(task.token_begin + j / heads_here)) + 1,
                                  num_queries * kTilePositions);
  for_each_run(false, [&](std::size_t t, std::size_t first, std::size_t count, std::size_t positions,
                          const std::uint16_t* values) {
    kernels.tile_values(scores_of(t, first), static_cast<int>(count), positions, values, head_len,
                        sums_.data() + first * head);
  });
  for (std::size_t j = 0; j < num_queries; ++j)
    kernels.scale(sums_.data() + j * head, head, factors_[j], out + row_of(j));
}

}  // namespace draftproof
