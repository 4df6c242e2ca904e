#include "reference/shard/sharded_row.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kColumnBits = 20;
constexpr std::int32_t kColumns = (1 << kColumnBits) - 1;
constexpr std::int32_t kBeforeEdits = 16;  // added to the status of a fault of logits as they came in

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
  for (const RowShard& shard : shards_) searches_.emplace_back(shard);
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
  if (parameters.guidance_form != GuidanceForm::logits && parameters.guidance_scale != 1.0f)
    throw usage_error("shards",
                      "guidance_form is probabilities, which takes whole rows; expected logits across devices");
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
    else if (faults.codes[d] == 0 && !shards_[d].try_assign(parameters.filters.any())) {
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

}  // namespace draftproof
