// A row whose vocabulary lies on several devices: the row of pipeline.hpp and distribution.hpp, bit for bit, for every
// split. Every device makes the same calls and gets the same answers; none is special.
//
// Bytes of a row of V tokens in t = V / 4096 tiles on T devices (devices.hpp says what is counted), rounds in brackets:
//   prepare    4 t + 4   largest exponents of the tiles, faults                      [1; none where no tile is cut]
//   summarise  8 t       sums S_t of the tiles (16 t with exponents and faults, where no tile is cut)           [1]
//   draw       8 + 8 c   the token; before it the parts of a tile that c > 1 devices hold                    [1, 2]
//   race       8 T + 8   the best scores, the token; neither needs prepare and summarise                        [2]
//   greedy     8 T + 4   each device's first token and faults                                                   [2]
//   min_p      8 T       each device's first token                                                              [1]
//   top_k      8 k T     each device's first k, where that is no more than the histogram's                      [1]
//              4,096     else a histogram of counts by eight bits of the order keys, four times                 [4]
//   top_p      8,192     the same with masses                                                                   [4]
//              8 T + 8   of either histogram: where among equal values it ends                                  [2]
//   filters    8 t       sums of what is kept, once or (top_k_first with top_p) twice                           [1]
//   p(x)       8         a probability (4 and a round more of a row of probabilities) or a log-probability       [1]
//   residual   8 t + 16  and a draw; against a one-hot proposal 8                                               [1]
// V = 128,256, t = 32: 412 bytes to draw where two devices share the tile, 14 KiB on 64 devices with top_k and top_p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "reference/logits/logprobs.hpp"
#include "reference/shard/prefix_search.hpp"

namespace draftproof {

class ShardedRow {
 public:
  // The devices must outlive the row.
  explicit ShardedRow(const Devices& devices);
  ShardedRow(ShardedRow&&) = default;  // shards refer to their own memory

  // The distribution of a row of logits. parts [devices]: those of the devices here are read; each is used as long as
  // the row. `row` is as for the whole vocabulary but for its logits. RowError as Pipeline::run. Error (usage): a
  // sampler beyond temperature, penalties, top_k, top_p and min_p.
  void run(const RowInput& row, std::span<const RowView> parts, std::span<const RowView> unconditional = {});
  void make_probabilities(std::span<const RowView> parts, const RowName& row);
  void make_one_hot(Token token);

  const Devices& devices() const { return *devices_; }
  const RowShard& shard(std::size_t device) const { return shards_[device]; }
  std::optional<Token> one_hot() const { return one_hot_; }
  bool is_logits() const { return is_logits_; }
  bool is_probabilities() const { return !is_logits_ && !one_hot_; }
  const RowName& name() const { return name_; }

  // As of Distribution.
  float probability(Token token) const;
  float log_probability(Token token) const;
  std::int64_t kept_count() const;
  double kept_mass() const {
    return is_logits_ ? static_cast<double>(total_) / static_cast<double>(unfiltered_total_) : 1.0;
  }
  // For logits: as top_logprobs of logprobs.hpp. 8 n T + 8 n + 24 bytes in four rounds.
  std::vector<TokenLogprob> top_logprobs(std::int64_t n, Token sampled) const;

  // For logits: the sums S_t of the kept tokens, and the shift of each tile to the scale of the row.
  const std::vector<std::uint64_t>& tile_sums() const { return tile_sums_; }
  std::uint64_t row_mass_of(std::size_t tile, std::uint64_t sum) const {
    return row_scale(sum, exponent_, tile_exponents_[tile]);
  }

  // Runs read(device) on the devices here, which reads this row or `other`; a RowError of one is thrown on all, the one
  // of the highest status and lowest column. One round of 4 bytes.
  void agree(const std::function<void(std::size_t)>& read, const ShardedRow* other = nullptr) const;

 private:
  struct Faults;
  void merge_tiles(Faults& faults);
  void merge_sums();
  void apply_filters(const FilterParameters& parameters);
  std::optional<KeptSet> first_of_lists(std::size_t k, Ties ties) const;
  std::optional<KeptSet> prefix(Measure measure, Ties ties,
                                const std::function<std::uint64_t(std::uint64_t)>& limit_of);
  std::vector<RankedLogit> merged_first_tokens(std::size_t n) const;
  void keep(const KeptSet& set);

  const Devices* devices_;
  std::vector<RowShard> shards_;      // those of other processes hold nothing
  std::vector<PartSearch> searches_;  // [devices], in shards_
  RowName name_;
  bool is_logits_ = false;
  std::optional<Token> one_hot_;
  std::vector<std::int32_t> tile_exponents_;  // N_t
  std::vector<std::uint64_t> tile_sums_;      // S_t
  std::int32_t exponent_ = kMaskedExponent;   // N
  std::uint64_t total_ = 0;                   // S
  std::uint64_t unfiltered_total_ = 0;
};

}  // namespace draftproof
