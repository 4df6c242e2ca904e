// Grouped-query attention of the tokens of a batch over their paths.
//   score_p = q . k_p, q scaled before; w_p = exp(score_p - max); out = (sum of w_p v_p, p ascending) (1 / sum of w_p)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/model/language_model.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "engine/transformer/transformer_kv_cache.hpp"

namespace draftproof {

// Where the keys and values of every token's path lie: its stream's committed context, its ancestors in the batch,
// itself; by position, in tiles of 16 positions.
//
// Attention goes through the tiles of a path in order and through the positions of a tile in order, wherever their
// slots are. So a token's bits are those of plain decoding with everything before it committed.

// A tile of a path: a whole block of the cache where the slots of its positions are that block's, in order; else a list
// of slots to be gathered.
struct PathTile {
  std::int32_t block = -1;
  std::int32_t gathered = -1;  // index of AttentionPaths::gathered()

  bool operator==(const PathTile&) const = default;
};

using TileSlots = std::array<std::int64_t, kKvBlockSlots>;

class AttentionPaths {
 public:
  // Builds the paths of all tokens of a batch that validate() has seen. Positions before first_position, in [0, 16),
  // are left out of every path. whole_chains: the path of a token is that of the last one of its chain. tails:
  // the slots between a context and a token that hangs from it, by token.
  void build(const ForwardBatch& batch, std::int64_t first_position = 0, bool whole_chains = false,
             std::span<const std::vector<std::int64_t>> tails = {});

  // Tiles of the path of token i, itself included: of positions first_position() to position(i).
  const std::vector<PathTile>& tiles(std::size_t token) const { return tiles_[token]; }
  std::int64_t first_position() const { return first_position_; }
  std::int64_t position(std::size_t token) const { return positions_[token]; }
  // The slots of a gathered tile; those beyond the path's end are -1.
  const TileSlots& gathered(const PathTile& tile) const { return gathered_[static_cast<std::size_t>(tile.gathered)]; }

 private:
  void append_tile(std::size_t token, const TileSlots& slots, std::int64_t count);

  std::vector<std::vector<PathTile>> tiles_;
  std::vector<std::int64_t> positions_;  // the last of each path
  std::int64_t first_position_ = 0;
  std::vector<TileSlots> last_;  // the slots of each path's last tile
  std::vector<TileSlots> gathered_;
};

// One piece of work: heads of queries that share keys and values, of neighbouring tokens that share most of their path.
struct AttentionTask {
  std::size_t token_begin;
  std::size_t token_end;
  std::int64_t head_begin;  // of queries
  std::int64_t head_end;    // all of one head of keys and values
};

// Tasks that a batch is cut into; large enough that threads share the work evenly.
std::vector<AttentionTask> attention_tasks(const ForwardBatch& batch, std::int64_t heads, std::int64_t kv_heads,
                                           int threads);

// Memory of a thread for its tasks; kept between them.
class AttentionWorker {
 public:
  // queries and out: [n][heads * head_len]; `layer` of the cache.
  void run(const AttentionTask& task, const AttentionPaths& paths, const TransformerKernels& kernels,
           const TransformerKvCache& kv, std::int64_t layer, std::int64_t heads, const float* queries, float* out);

 private:
  std::vector<float> queries_;  // [head_len][query]
  std::vector<float> scores_;   // [tile][query][16]
  std::vector<float> sums_;     // [query][head_len]
  std::vector<float> factors_;  // [query] 1 / sum of weights
  std::vector<std::uint16_t> gathered_;
};

}  // namespace draftproof
