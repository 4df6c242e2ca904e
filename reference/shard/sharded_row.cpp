#include "reference/shard/sharded_row.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "reference/numerics/fraction.hpp"
#include "reference/numerics/order_key.hpp"
#include "reference/sampling/difference_masses.hpp"
#include "reference/sampling/tile_draw.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr KeptSet kKeepAll{-kInfinity, kLastToken, 0};
constexpr std::size_t kBuckets = 256;
constexpr int kHistogramRounds = 4;
constexpr std::size_t kListWords = kHistogramRounds * kBuckets / 2;  // words of a histogram of counts
constexpr std::int32_t kColumnBits = 20;
constexpr std::int32_t kColumns = (1 << kColumnBits) - 1;
constexpr std::int32_t kBeforeEdits = 16;  // added to the status of a fault of logits as they came in

std::uint64_t word_of(const RankedLogit& logit) {
  return static_cast<std::uint64_t>(bit_cast<std::uint32_t>(logit.value)) << 32 |
         static_cast<std::uint32_t>(logit.token);
}

RankedLogit logit_of(std::uint64_t word) {
  return {bit_cast<float>(static_cast<std::uint32_t>(word >> 32)), static_cast<Token>(word & 0xffffffffu)};
}

bool keeps_all(const KeptSet& set) {
  return set.last_value == -kInfinity && set.least_mass == 0;
}

}  // namespace

// Faults of the devices here, and the worst of all devices by one number: the highest status, of equals the lowest
// column.
struct ShardedRow::Faults {
  const Devices& devices;
  std::vector<std::optional<RowError>> found;  // [devices]
  std::vector<std::int32_t> codes;             // [devices], 0: none

  explicit Faults(const Devices& of) : devices(of), found(of.count()), codes(of.count(), 0) {}

  template <class Read>
  void note(std::size_t device, std::int32_t severity, const Read& read) {
    if (codes[device] != 0) return;
    try {
      read();
    } catch (const RowError& error) {
      found[device] = error;
      codes[device] = (static_cast<std::int32_t>(error.status()) + severity) << kColumnBits |
                      (kColumns - static_cast<std::int32_t>(error.column() + 1));
    }
  }

  // Throws on every device, with the words of the first that found it. `other`: the second row that was read.
  void throw_worst(std::int32_t worst, const RowName& name, const RowName* other = nullptr) const {
    if (worst <= 0) return;
    const auto has = [&](std::size_t d) { return codes[d] == worst; };
    const std::vector<std::uint64_t> lengths =
        devices.gather([&](std::size_t d) { return has(d) ? std::uint64_t{found[d]->what_is_wrong().size()} + 1 : 0; });
    const auto is_finder = [](std::uint64_t length) { return length > 0; };
    const auto finder =
        static_cast<std::size_t>(std::find_if(lengths.begin(), lengths.end(), is_finder) - lengths.begin());
    std::vector<std::uint64_t> letters = devices.sum(lengths[finder], [&](std::size_t d, auto words) {
      if (d != finder) return;
      const RowError& error = *found[d];
      for (std::size_t i = 0; i + 1 < words.size(); ++i)
        words[i] = static_cast<unsigned char>(error.what_is_wrong()[i]);
      const bool is_other =
          other != nullptr && (error.row().number != name.number || error.row().tensor != name.tensor);
      words.back() = is_other ? 1 : 0;
    });
    const bool is_other = letters.back() != 0;
    letters.pop_back();
    const std::int32_t status = worst >> kColumnBits;
    throw RowError(static_cast<RowStatus>(status > kBeforeEdits ? status - kBeforeEdits : status),
                   is_other ? *other : name, std::int64_t{kColumns} - (worst & kColumns) - 1,
                   std::string(letters.begin(), letters.end()));
  }
};

ShardedRow::ShardedRow(const Devices& devices) : devices_(&devices) {
  for (std::size_t d = 0; d < devices.count(); ++d) shards_.emplace_back(devices.range(d));
}

void ShardedRow::agree(const std::function<void(std::size_t)>& read, const ShardedRow* other) const {
  Faults faults(*devices_);
  const std::int32_t worst = devices_->largest(1, [&](std::size_t d, auto numbers) {
    faults.note(d, 0, [&] { shards_[d].read([&] { read(d); }); });
    numbers[0] = std::max(numbers[0], faults.codes[d]);
  })[0];
  faults.throw_worst(worst, name_, other == nullptr ? nullptr : &other->name_);
}

void ShardedRow::run(const RowInput& row, std::span<const RowView> parts, std::span<const RowView> unconditional) {
  const RowParameters& parameters = row.parameters;
  if (parameters.samplers.before_filters() || parameters.samplers.after_filters() || parameters.samplers.adapts() ||
      parameters.samplers.min_tokens_to_keep != 1.0f || parameters.samplers.top_p_rule != 0.0f)
    throw usage_error("shards",
                      "a sampler other than temperature, penalties, DRY, top_k, top_p and min_p is set; "
                      "expected none across devices");
  for (std::size_t d = devices_->begin_here(); d < devices_->end_here(); ++d)
    for (const std::span<const RowView>& views : {parts, unconditional})
      if (!views.empty() && views[d].vocab_size != devices_->range(d).size())
        throw input_error("shard " + std::to_string(d), "its part has " + std::to_string(views[d].vocab_size) +
                                                            " logits; expected " +
                                                            std::to_string(devices_->range(d).size()));
  name_ = row.row;
  one_hot_.reset();
  is_logits_ = parameters.temperature != 0.0f;
  Faults faults(*devices_);
  std::vector<RankedLogit> largest(devices_->count(), {-kInfinity, kPaddingToken});
  for (std::size_t d = devices_->begin_here(); d < devices_->end_here(); ++d) {
    RowInput input = row;
    input.logits = parts[d];
    if (!unconditional.empty()) input.unconditional = unconditional[d];
    faults.note(d, kBeforeEdits, [&] { shards_[d].edit(input); });
    if (!is_logits_)
      faults.note(d, 0, [&] { largest[d] = shards_[d].largest_logit(); });
    else if (faults.codes[d] == 0 && !shards_[d].try_assign()) {
      faults.note(d, kBeforeEdits, [&] { shards_[d].check_as_given(); });
      faults.note(d, 0, [&] { shards_[d].throw_bad_logit(); });
    }
  }
  if (is_logits_) {
    merge_tiles(faults);
    apply_filters(parameters.filters);
    return;
  }
  const std::int32_t worst =
      devices_->largest(1, [&](std::size_t d, auto numbers) { numbers[0] = std::max(numbers[0], faults.codes[d]); })[0];
  faults.throw_worst(worst, name_);
  RankedLogit first{-kInfinity, kPaddingToken};
  for (const std::uint64_t word : devices_->gather([&](std::size_t d) { return word_of(largest[d]); }))
    if (logit_of(word).value > first.value) first = logit_of(word);
  if (first.token == kPaddingToken) throw nothing_left(name_);
  make_one_hot(first.token);
}

// prepare and summarise: N_t, then S_t; both at once where each tile has one owner.
void ShardedRow::merge_tiles(Faults& faults) {
  const std::size_t tiles = devices_->tile_count();
  std::int32_t worst = 0;
  tile_exponents_.assign(tiles, kMaskedExponent);
  if (devices_->cuts_tiles()) {
    const std::vector<std::int32_t> merged = devices_->largest(tiles + 1, [&](std::size_t d, auto numbers) {
      if (faults.codes[d] == 0) shards_[d].raise_exponents(numbers.first(tiles));
      numbers[tiles] = std::max(numbers[tiles], faults.codes[d]);
    });
    std::copy_n(merged.begin(), tiles, tile_exponents_.begin());
    worst = merged[tiles];
    faults.throw_worst(worst, name_);
    tile_sums_ = devices_->sum(tiles, [&](std::size_t d, auto words) {
      shards_[d].join_tiles(tile_exponents_);
      shards_[d].add_tile_sums(words);
    });
  } else {
    const std::vector<std::uint64_t> merged = devices_->sum(2 * tiles, [&](std::size_t d, auto words) {
      if (devices_->range(d).size() == 0) return;
      const std::size_t first = shards_[d].first_tile();
      if (faults.codes[d] != 0) {
        words[tiles + first] = static_cast<std::uint64_t>(faults.codes[d]) << 32;
        return;
      }
      std::vector<std::int32_t> exponents(tiles, kMaskedExponent);
      shards_[d].raise_exponents(exponents);
      shards_[d].add_tile_sums(words.first(tiles));
      for (std::size_t t = 0; t < shards_[d].logits().tile_count(); ++t)
        words[tiles + first + t] = static_cast<std::uint32_t>(exponents[first + t]);
    });
    for (std::size_t t = 0; t < tiles; ++t) {
      tile_exponents_[t] = static_cast<std::int32_t>(static_cast<std::uint32_t>(merged[tiles + t]));
      worst = std::max(worst, static_cast<std::int32_t>(merged[tiles + t] >> 32));
    }
    faults.throw_worst(worst, name_);
    tile_sums_.assign(merged.begin(), merged.begin() + static_cast<std::ptrdiff_t>(tiles));
  }
  exponent_ = *std::max_element(tile_exponents_.begin(), tile_exponents_.end());
  if (exponent_ == kMaskedExponent) throw nothing_left(name_);
  merge_sums();
  unfiltered_total_ = total_;
}

void ShardedRow::merge_sums() {
  total_ = 0;
  for (std::size_t t = 0; t < tile_sums_.size(); ++t) total_ += row_mass_of(t, tile_sums_[t]);
  for (std::size_t d = devices_->begin_here(); d < devices_->end_here(); ++d) shards_[d].join_row(exponent_, total_);
}

void ShardedRow::keep(const KeptSet& set) {
  tile_sums_ = devices_->sum(devices_->tile_count(), [&](std::size_t d, auto words) {
    shards_[d].keep(set);
    shards_[d].add_tile_sums(words);
  });
  merge_sums();
}

void ShardedRow::apply_filters(const FilterParameters& parameters) {
  if (!parameters.any()) return;
  KeptSet set = kKeepAll;
  const auto k = static_cast<std::size_t>(parameters.top_k);
  if (k != 0) {
    const bool fits = k * devices_->count() <= kListWords;
    const auto limit = [&](std::uint64_t) { return std::uint64_t{k}; };
    set =
        (fits ? first_of_lists(k, parameters.ties) : prefix(Measure::count, parameters.ties, limit)).value_or(kKeepAll);
  }
  if (parameters.min_p != 0.0f) {
    const RankedLogit first = merged_first_tokens(1).front();
    const auto tile = static_cast<std::size_t>(first.token / kTileTokens);
    const float weight = tile_weight(exp_parts(first.value), tile_exponents_[tile]);
    set.least_mass = ceil_of_fraction(parameters.min_p, row_mass_of(tile, mass_of_weight(weight)));
  }
  if (parameters.top_p != 1.0f) {
    if (parameters.order == FilterOrder::top_k_first && !keeps_all(set)) keep(set);
    const auto limit = [&](std::uint64_t mass) { return top_p_limit(parameters, mass); };
    set = intersection(set, *prefix(Measure::mass, parameters.ties, limit));
  }
  if (!keeps_all(set)) keep(set);
}

std::vector<RankedLogit> ShardedRow::merged_first_tokens(std::size_t n) const {
  const std::vector<std::uint64_t> words = devices_->sum(n * devices_->count(), [&](std::size_t d, auto all) {
    std::vector<RankedLogit> own = shards_[d].first_tokens(n);
    own.resize(n, {-kInfinity, kPaddingToken});
    for (std::size_t i = 0; i < n; ++i) all[d * n + i] = word_of(own[i]);
  });
  std::vector<RankedLogit> tokens;
  for (const std::uint64_t word : words)
    if (logit_of(word).token != kPaddingToken) tokens.push_back(logit_of(word));
  std::sort(tokens.begin(), tokens.end(), comes_first);
  return tokens;
}

std::optional<KeptSet> ShardedRow::first_of_lists(std::size_t k, Ties ties) const {
  const std::vector<RankedLogit> tokens = merged_first_tokens(k);
  if (tokens.size() < k) return std::nullopt;
  return KeptSet{tokens[k - 1].value, ties == Ties::keep_all ? kLastToken : tokens[k - 1].token, 0};
}

// Radix search: eight bits of the order key a round, then the tokens that have this key. None where a count keeps all.
std::optional<KeptSet> ShardedRow::prefix(Measure measure, Ties ties,
                                          const std::function<std::uint64_t(std::uint64_t)>& limit_of) const {
  const std::size_t per_word = measure == Measure::count ? 2 : 1;  // counts are below 2^20
  std::uint32_t key = 0;
  std::uint64_t before = 0;
  std::uint64_t limit = 0;
  for (int round = 0; round < kHistogramRounds; ++round) {
    const std::vector<std::uint64_t> words = devices_->sum(kBuckets / per_word, [&](std::size_t d, auto all) {
      std::vector<std::uint64_t> sums(kBuckets, 0);
      shards_[d].add_histogram(measure, round, key, sums);
      for (std::size_t b = 0; b < kBuckets; ++b) all[b / per_word] += sums[b] << 32 * (b % per_word);
    });
    const auto sum_of = [&](std::size_t b) {
      return per_word == 1 ? words[b] : words[b / 2] >> 32 * (b % 2) & 0xffffffffu;
    };
    if (round == 0) {
      std::uint64_t whole = 0;
      for (std::size_t b = 0; b < kBuckets; ++b) whole += sum_of(b);
      limit = limit_of(whole);
      if (measure == Measure::count && whole <= limit) return std::nullopt;
    }
    std::size_t bucket = kBuckets - 1;
    for (; before + sum_of(bucket) < limit; --bucket) before += sum_of(bucket);
    key |= static_cast<std::uint32_t>(bucket) << (24 - 8 * round);
  }
  const float value = value_of_key(key);
  if (ties == Ties::keep_all) return KeptSet{value, kLastToken, 0};
  const std::vector<std::uint64_t> shares =
      devices_->gather([&](std::size_t d) { return shards_[d].measure_of_ties(measure, key); });
  std::size_t owner = 0;
  for (; before + shares[owner] < limit; ++owner) before += shares[owner];
  return KeptSet{
      value, devices_->token_from(owner, [&] { return shards_[owner].token_of_ties(measure, key, limit - before); }),
      0};
}

void ShardedRow::make_probabilities(std::span<const RowView> parts, const RowName& row) {
  name_ = row;
  is_logits_ = false;
  one_hot_.reset();
  for (std::size_t d = devices_->begin_here(); d < devices_->end_here(); ++d)
    shards_[d].make_probabilities(parts[d], row);
}

void ShardedRow::make_one_hot(Token token) {
  is_logits_ = false;
  one_hot_ = token;
  for (std::size_t d = devices_->begin_here(); d < devices_->end_here(); ++d) shards_[d].make_one_hot(token);
}

float ShardedRow::probability(Token token) const {
  if (one_hot_) return token == *one_hot_ ? 1.0f : 0.0f;
  const std::size_t owner = devices_->owner(token);
  const auto own = [&] { return shards_[owner].distribution().probability(token - shards_[owner].base()); };
  if (is_probabilities())
    agree([&](std::size_t d) {
      if (d == owner) own();
    });
  return devices_->float_from(owner, own);
}

float ShardedRow::log_probability(Token token) const {
  if (!is_logits_) {
    const float p = probability(token);
    return p > 0.0f ? static_cast<float>(natural_log(static_cast<double>(p))) : -kInfinity;
  }
  const std::size_t owner = devices_->owner(token);
  return devices_->float_from(owner,
                              [&] { return shards_[owner].logits().log_probability(token - shards_[owner].base()); });
}

std::int64_t ShardedRow::kept_count() const {
  if (one_hot_) return 1;
  return static_cast<std::int64_t>(devices_->sum(1, [&](std::size_t d, auto words) {
    words[0] += static_cast<std::uint64_t>(shards_[d].distribution().kept_count());
  })[0]);
}

std::vector<TokenLogprob> ShardedRow::top_logprobs(std::int64_t n, Token sampled) const {
  if (n < 0) throw usage_error("logprobs", "n is " + std::to_string(n) + "; expected 0 or more");
  if (sampled < 0 || sampled >= devices_->vocab_size())
    throw usage_error("logprobs", "the sampled token is " + std::to_string(sampled) + "; expected an id in [0, " +
                                      std::to_string(devices_->vocab_size()) + ")");
  const LogNormaliser normaliser{exponent_, log_total(total_)};
  std::vector<RankedLogit> first = merged_first_tokens(static_cast<std::size_t>(n));
  first.resize(std::min(first.size(), static_cast<std::size_t>(n)));
  std::vector<TokenLogprob> out;
  bool has_sampled = false;
  for (const RankedLogit& logit : first) {
    out.push_back({logit.token, normaliser.log_probability(logit.value), static_cast<std::int64_t>(out.size()) + 1});
    has_sampled = has_sampled || logit.token == sampled;
  }
  if (has_sampled) return out;
  const std::size_t owner = devices_->owner(sampled);
  const float value =
      devices_->float_from(owner, [&] { return shards_[owner].logits().logit(sampled - shards_[owner].base()); });
  const std::uint64_t before = devices_->sum(1, [&](std::size_t d, auto words) {
    words[0] += static_cast<std::uint64_t>(shards_[d].count_before({value, sampled}));
  })[0];
  out.push_back({sampled, log_probability(sampled), static_cast<std::int64_t>(before) + 1});
  return out;
}

Token draw_across(const Devices& devices, const RandomBlock& block, std::uint64_t total,
                  std::span<const std::uint64_t> sums, const std::function<std::uint64_t(std::size_t)>& in_row,
                  const std::function<std::uint64_t(std::size_t, std::size_t)>& part,
                  const std::function<Token(std::size_t, std::size_t, std::uint64_t)>& token) {
  auto [tile, before] = place_of_draw(block, total, in_row, [&](std::size_t t) { return sums[t]; });
  std::size_t owner = devices.first_of_tile(tile);
  const std::size_t last = devices.last_of_tile(tile);
  if (owner != last) {
    const std::size_t first = owner;
    const std::vector<std::uint64_t> shares = devices.sum(last - first + 1, [&](std::size_t d, auto words) {
      if (d >= first && d <= last && devices.range(d).size() > 0) words[d - first] = part(d, tile);
    });
    for (; before >= shares[owner - first]; ++owner) before -= shares[owner - first];
  }
  return devices.token_from(owner, [&] { return token(owner, tile, before); });
}

RaceWinner winner_across(const Devices& devices, const std::function<RaceWinner(std::size_t)>& winner) {
  std::vector<RaceWinner> winners(devices.count(), RaceWinner::none());
  const std::vector<std::uint64_t> scores = devices.gather([&](std::size_t d) {
    winners[d] = winner(d);
    return bit_cast<std::uint64_t>(winners[d].score);
  });
  std::size_t best = 0;
  for (std::size_t d = 1; d < scores.size(); ++d)
    if (bit_cast<double>(scores[d]) > bit_cast<double>(scores[best])) best = d;
  const Token token = devices.token_from(best, [&] { return static_cast<Token>(winners[best].token); });
  return {bit_cast<double>(scores[best]), token};
}

namespace {

// max(p - q, 0) on each device, added up; what speaks of tiles counts those of the whole row.
class DifferenceAcross {
 public:
  DifferenceAcross(const ShardedRow& p, const ShardedRow* q) : devices_(p.devices()), p_(p), parts_(devices_.count()) {
    for (std::size_t d = devices_.begin_here(); d < devices_.end_here(); ++d)
      parts_[d] = std::make_unique<DifferenceMasses>(p.shard(d).distribution(),
                                                     q == nullptr ? nullptr : &q->shard(d).distribution());
    const auto add_up = [&](std::size_t d) { parts_[d]->add_up(); };
    if (p.is_probabilities() || (q != nullptr && q->is_probabilities()))
      p.agree(add_up, q);
    else
      for (std::size_t d = devices_.begin_here(); d < devices_.end_here(); ++d) add_up(d);
    const std::size_t tiles = devices_.tile_count();
    sums_ = devices_.sum(tiles + 2, [&](std::size_t d, auto words) {
      const std::vector<std::uint64_t>& own = parts_[d]->tile_sums();
      for (std::size_t t = 0; t < own.size(); ++t) words[p.shard(d).first_tile() + t] += own[t];
      words[tiles] += parts_[d]->total() >> 32;
      words[tiles + 1] += parts_[d]->total() & 0xffffffffu;
    });
    const std::uint64_t high = sums_[tiles] + (sums_[tiles + 1] >> 32);
    const std::uint64_t low = sums_[tiles + 1] & 0xffffffffu;
    constexpr std::uint64_t kThree = std::uint64_t{3} << 30;
    if (high > kThree || (high == kThree && low != 0)) throw bad_sum(p.name());
    total_ = (high << 32) + low;
    sums_.resize(tiles);
    if (total_ == 0 && q == nullptr) throw all_zero(p.name());
  }

  std::uint64_t total() const { return total_; }
  Token draw(const RandomBlock& block) {
    const auto place_in = [&](std::size_t d, std::size_t tile) { return tile - p_.shard(d).first_tile(); };
    return draw_across(
        devices_, block, total_, sums_, [&](std::size_t t) { return sums_[t]; },
        [&](std::size_t d, std::size_t t) { return parts_[d]->tile_sums()[place_in(d, t)]; },
        [&](std::size_t d, std::size_t t, std::uint64_t before) {
          return parts_[d]->token_at(place_in(d, t), before) + p_.shard(d).base();
        });
  }
  void for_each_log_weight(std::size_t device, const LogWeightSink& sink) { parts_[device]->for_each_log_weight(sink); }

 private:
  const Devices& devices_;
  const ShardedRow& p_;
  std::vector<std::unique_ptr<DifferenceMasses>> parts_;
  std::vector<std::uint64_t> sums_;
  std::uint64_t total_ = 0;
};

}  // namespace

std::vector<std::uint64_t> ShardedMasses::sums_without(Token excluded) const {
  std::vector<std::uint64_t> sums = p_.tile_sums();
  if (excluded < 0) return sums;
  const std::size_t owner = p_.devices().owner(excluded);
  const RowShard& shard = p_.shard(owner);
  sums[static_cast<std::size_t>(excluded / kTileTokens)] -=
      p_.devices().from(owner, [&] { return shard.logits().mass_in_tile(excluded - shard.base()); });
  return sums;
}

std::uint64_t ShardedMasses::total_of_row(std::span<const std::uint64_t> sums) const {
  std::uint64_t total = 0;
  for (std::size_t t = 0; t < sums.size(); ++t) total += p_.row_mass_of(t, sums[t]);
  return total;
}

Token ShardedMasses::draw_logits(const RandomBlock& block, Token excluded) const {
  const std::vector<std::uint64_t> sums = sums_without(excluded);
  const std::uint64_t total = total_of_row(sums);
  if (total == 0) return excluded;
  // Index among the device's own tokens: -1 where it does not hold the excluded one.
  const auto excluded_of = [&](std::size_t d) {
    return excluded >= 0 && p_.devices().owner(excluded) == d ? excluded - p_.shard(d).base() : kPaddingToken;
  };
  return draw_across(
      p_.devices(), block, total, sums, [&](std::size_t t) { return p_.row_mass_of(t, sums[t]); },
      [&](std::size_t d, std::size_t t) {
        const LogitsDistribution& part = p_.shard(d).logits();
        const std::size_t tile = t - p_.shard(d).first_tile();
        const Token without = excluded_of(d);
        const bool is_in_tile = without >= 0 && static_cast<std::size_t>(without / kTileTokens) == tile;
        return part.tiles()[tile].sum - (is_in_tile ? part.mass_in_tile(without) : 0);
      },
      [&](std::size_t d, std::size_t t, std::uint64_t before) {
        const RowShard& shard = p_.shard(d);
        return shard.logits().token_at(t - shard.first_tile(), before, excluded_of(d)) + shard.base();
      });
}

Token ShardedMasses::draw(const RandomBlock& block) const {
  if (p_.one_hot()) return *p_.one_hot();
  const bool is_one_hot = q_ != nullptr && q_->one_hot().has_value();
  if (p_.is_logits() && (q_ == nullptr || is_one_hot))
    return draw_logits(block, is_one_hot ? *q_->one_hot() : kPaddingToken);
  DifferenceAcross masses(p_, q_);
  return masses.total() == 0 ? ShardedMasses(p_).draw(block) : masses.draw(block);
}

ShardedMasses::PartsOf ShardedMasses::parts_for_race() const {
  const auto logits_without = [&p = p_](Token excluded) {
    return [&p, excluded](std::size_t d, const LogWeightSink& sink) {
      const bool is_own = excluded >= 0 && p.devices().owner(excluded) == d;
      send_log_weights(p.shard(d).logits(), is_own ? excluded - p.shard(d).base() : kPaddingToken, sink);
    };
  };
  if (p_.is_logits() && q_ == nullptr) return logits_without(kPaddingToken);
  if (p_.is_logits() && q_->one_hot()) {
    const bool alone = total_of_row(sums_without(*q_->one_hot())) == 0;
    return logits_without(alone ? kPaddingToken : *q_->one_hot());
  }
  const auto masses = std::make_shared<DifferenceAcross>(p_, q_);
  if (masses->total() == 0) return ShardedMasses(p_).parts_for_race();
  return [masses](std::size_t d, const LogWeightSink& sink) { masses->for_each_log_weight(d, sink); };
}

}  // namespace draftproof
