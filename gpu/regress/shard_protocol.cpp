#include "gpu/regress/shard_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
std::vector<T> copied(const T* values, std::int64_t count) {
  return {values, values + count};
}

// Combines a message of a device with those before.
template <class T>
void add(std::vector<T>& combined, const T* message) {
  for (std::size_t i = 0; i < combined.size(); ++i) combined[i] += message[i];
}
template <class T>
void raise(std::vector<T>& combined, const T* message) {
  for (std::size_t i = 0; i < combined.size(); ++i) combined[i] = std::max(combined[i], message[i]);
}

// The calls of all devices in turn, over memory of one run.
class Protocol {
 public:
  Protocol(CaseRun& run, const ShardInputs& in) : run_(run), in_(in), rows_(in.rows), tiles_(in.rows * in.tiles()) {
    for (std::int32_t d = 0; d < in.devices(); ++d) shards_.push_back(in.shard(run, d));
  }

  ShardMessages all() {
    prepare();
    m_.tile_sum = summarise();
    if (in_.has_filters()) {
      select(DRAFTPROOF_SHARD_TOP_K);
      if (!in_.top_p.empty()) select(DRAFTPROOF_SHARD_TOP_P);
      m_.tile_sum = summarise();
    }
    for (std::int32_t stage = 0; stage < 3; ++stage) draw(stage);
    return std::move(m_);
  }

 private:
  template <class T>
  std::vector<T> combined(std::int64_t count, T value) {
    m_.bytes += count * static_cast<std::int64_t>(sizeof(T));
    return std::vector<T>(static_cast<std::size_t>(count), value);
  }

  void prepare() {
    m_.tile_exponent = combined(tiles_ + rows_, std::numeric_limits<std::int32_t>::min());
    m_.largest = combined(rows_, std::numeric_limits<std::int64_t>::min());
    for (const draftproof_shard& shard : shards_) {
      draftproof_shard_prepare_arguments a{};
      a.shard = shard;
      a.tile_exponent = run_.output<std::int32_t>("tile_exponent", tiles_ + rows_);
      a.largest = run_.output<std::int64_t>("largest", rows_);
      a.own_exponent = run_.output<std::int32_t>("own_exponent", tiles_);
      a.own_sum = run_.output<std::uint64_t>("own_sum", tiles_);
      call_shard_prepare(a, run_.settings());
      raise(m_.tile_exponent, a.tile_exponent);
      raise(m_.largest, a.largest);
      m_.own_exponent.push_back(copied(a.own_exponent, tiles_));
      m_.own_sum.push_back(copied(a.own_sum, tiles_));
    }
  }

  std::vector<std::uint64_t> summarise() {
    std::vector<std::uint64_t> sums = combined(tiles_, std::uint64_t{0});
    for (std::size_t d = 0; d < shards_.size(); ++d) {
      draftproof_shard_summarise_arguments a{};
      a.shard = shards_[d];
      a.tile_exponent = run_.input(m_.tile_exponent);
      a.own_exponent = run_.input(m_.own_exponent[d]);
      a.own_sum = run_.input(m_.own_sum[d]);
      a.kept = run_.optional(m_.kept);
      a.tile_sum = run_.output<std::uint64_t>("tile_sum", tiles_);
      call_shard_summarise(a, run_.settings());
      add(sums, a.tile_sum);
    }
    return sums;
  }

  void select(std::int32_t filter) {
    ShardRound at{filter, 0, {}, std::vector<draftproof_shard_search>(static_cast<std::size_t>(rows_)), m_.kept};
    at.kept.resize(static_cast<std::size_t>(rows_));
    for (at.round = 0; at.round <= 6; ++at.round) {
      m_.rounds.push_back(at);
      const std::int64_t words = at.round == 6 ? 0 : rows_ * ShardRound::words(filter, at.round, in_.devices());
      std::vector<std::uint64_t> sums = combined(words, std::uint64_t{0});
      ShardRound after = at;
      for (const draftproof_shard& shard : shards_) {
        draftproof_shard_select_arguments a{};
        a.shard = shard;
        a.tile_exponent = run_.input(m_.tile_exponent);
        a.largest = run_.input(m_.largest);
        a.parameters = in_.filters(run_);
        a.filter = filter;
        a.round = at.round;
        if (at.round > 0) a.combined = run_.input(at.combined);
        a.search = run_.in_out("search", at.search);
        a.kept = run_.in_out("kept", at.kept);
        if (at.round < 6) a.message = run_.output<std::uint64_t>("message", words);
        call_shard_select(a, run_.settings());
        if (at.round < 6) add(sums, a.message);
        after.search = copied(a.search, rows_);
        after.kept = copied(a.kept, rows_);
      }
      at.combined = std::move(sums);
      at.search = after.search;
      at.kept = after.kept;
    }
    m_.kept = at.kept;
  }

  void draw(std::int32_t stage) {
    const bool is_race = in_.sampler == DRAFTPROOF_RACE;
    const bool is_sum = stage == 0 && !is_race;
    const std::int64_t words = stage == 2 ? 0 : rows_ * (is_sum ? in_.devices() : 1);
    std::vector<std::int64_t> all =
        combined(words, is_sum ? std::int64_t{0} : std::numeric_limits<std::int64_t>::min());
    if (stage == 0) m_.winner.assign(shards_.size(), std::vector<std::int64_t>(static_cast<std::size_t>(2 * rows_)));
    for (std::size_t d = 0; d < shards_.size(); ++d) {
      draftproof_shard_draw_arguments a{};
      a.shard = shards_[d];
      a.tile_exponent = run_.input(m_.tile_exponent);
      a.largest = run_.input(m_.largest);
      a.tile_sum = run_.input(m_.tile_sum);
      a.kept = run_.optional(m_.kept);
      a.randomness = in_.randomness(run_);
      a.row_in_step = run_.input(in_.row_in_step());
      a.sampler = in_.sampler;
      a.purpose = DRAFTPROOF_TARGET_SAMPLE;
      a.stage = stage;
      if (stage > 0) a.combined = run_.input(m_.drawn[stage - 1]);
      if (stage < 2) a.winner = run_.in_out("winner", m_.winner[d]);
      if (stage < 2) a.message = run_.output<std::int64_t>("message", words);
      if (stage == 2) {
        a.tokens = run_.output<std::int32_t>("tokens", rows_);
        a.logprobs = run_.output<float>("logprobs", rows_);
        a.status = run_.output<std::int32_t>("status", rows_);
      }
      call_shard_draw(run_, a);
      if (is_sum) add(all, a.message);
      if (stage < 2 && !is_sum) raise(all, a.message);
      if (stage < 2) m_.winner[d] = copied(a.winner, 2 * rows_);
      if (stage == 2) take_tokens(d, a);
    }
    if (stage < 2) m_.drawn[stage] = std::move(all);
  }

  void take_tokens(std::size_t device, const draftproof_shard_draw_arguments& a) {
    const auto tokens = copied(a.tokens, rows_);
    const auto logprobs = copied(a.logprobs, rows_);
    const auto status = copied(a.status, rows_);
    if (device > 0 && (tokens != m_.tokens || logprobs != m_.logprobs || status != m_.status))
      throw Error(ErrorKind::internal, "device " + std::to_string(device), "it has another result than device 0");
    m_.tokens = tokens;
    m_.logprobs = logprobs;
    m_.status = status;
  }

  CaseRun& run_;
  const ShardInputs& in_;
  std::int64_t rows_;
  std::int64_t tiles_;  // of all rows
  std::vector<draftproof_shard> shards_;
  ShardMessages m_;
};

ShardInputs normal_shards(std::int64_t rows, std::int64_t vocab_size, std::int32_t dtype,
                          std::vector<std::int64_t> cuts) {
  ShardInputs in;
  in.rows = rows;
  in.vocab_size = vocab_size;
  in.dtype = dtype;
  in.logits = normal_logits(static_cast<std::uint64_t>(vocab_size), rows, vocab_size, vocab_size, 4.0f);
  in.cuts = std::move(cuts);
  return in;
}

// Each row other filters, in both orders and with both ties.
void give_filters(ShardInputs& in) {
  const std::vector<std::int32_t> top_k = {0, 1, 7, 40, 1000, 0, 20};
  const std::vector<float> top_p = {0.9f, 1.0f, 0.5f, 1.0f, 0.99f, 0.0001f};
  const std::vector<float> min_p = {0.0f, 0.02f, 0.0f, 0.3f, 0.001f};
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    in.top_k.push_back(top_k[r % top_k.size()]);
    in.top_p.push_back(top_p[r % top_p.size()]);
    in.min_p.push_back(min_p[r % min_p.size()]);
    in.filter_order.push_back(static_cast<std::uint8_t>(row % 2));
    in.ties.push_back(static_cast<std::uint8_t>(row / 2 % 2));
  }
}

void tie(ShardInputs& in, float step) {
  for (float& x : in.logits) x = std::floor(x / step) * step;
}

}  // namespace

std::int64_t ShardRound::words(std::int32_t filter, std::int32_t round, std::int32_t devices) {
  if (round < 4) return filter == DRAFTPROOF_SHARD_TOP_P ? 256 : 128;
  return round == 4 ? devices : 1;
}

draftproof_shard ShardInputs::shard(CaseRun& run, std::int32_t device) const {
  draftproof_shard s{};
  s.rows = rows;
  s.vocab_size = vocab_size;
  s.begin = cuts[static_cast<std::size_t>(device)];
  s.end = cuts[static_cast<std::size_t>(device) + 1];
  s.device = device;
  s.devices = devices();
  s.temperature = run.optional(temperature);
  if (s.begin == s.end) return s;
  std::vector<float> part;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = logits.begin() + row * vocab_size;
    part.insert(part.end(), first + s.begin, first + s.end);
    for (std::int64_t i = 0; i < device % 3; ++i) part.push_back(std::nanf(""));  // strides of many kinds
  }
  s.logits = run.rows(part, s.end - s.begin + device % 3, dtype);
  return s;
}

draftproof_parameters ShardInputs::filters(CaseRun& run) const {
  draftproof_parameters p = parameters_in(run);
  p.temperature = nullptr;
  return p;
}

draftproof_randomness ShardInputs::randomness(CaseRun& run) const {
  std::vector<std::uint64_t> seeds;
  std::vector<std::uint32_t> steps;
  for (std::int64_t row = 0; row < rows; ++row) {
    seeds.push_back(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(row));
    steps.push_back(static_cast<std::uint32_t>(3 * row + 1));
  }
  return {run.input(seeds), run.input(steps)};
}

std::vector<std::uint32_t> ShardInputs::row_in_step() const {
  std::vector<std::uint32_t> places;
  for (std::int64_t row = 0; row < rows; ++row) places.push_back(static_cast<std::uint32_t>(row % 5));
  return places;
}

ShardMessages across_devices(const ShardInputs& in, const draftproof_settings& settings) {
  const auto memory = device::memory_of(static_cast<draftproof_executor>(settings.executor));
  CaseRun run(*memory, settings);
  return Protocol(run, in).all();
}

std::vector<ShardCase> shard_cases() {
  std::vector<ShardCase> cases;
  const auto take = [&](const std::string& what, const ShardInputs& in) {
    const std::string name = what + (in.sampler == DRAFTPROOF_RACE ? "/race/" : "/") + dtype_text(in.dtype) + "/V" +
                             std::to_string(in.vocab_size) + "/T" + std::to_string(in.devices());
    cases.push_back({name, in, across_devices(in, {})});
  };
  const auto both = [&](const std::string& what, ShardInputs in) {
    take(what, in);
    in.sampler = DRAFTPROOF_RACE;
    take(what, in);
  };
  take("one_token", normal_shards(2, 1, DRAFTPROOF_F32, {0, 0, 1, 1}));
  take("whole_tiles", normal_shards(2, 8192, DRAFTPROOF_BF16, {0, 4096, 8192}));
  both("cut_tiles", normal_shards(3, 9000, DRAFTPROOF_F32, {0, 17, 4000, 4000, 4103, 8999, 9000}));
  ShardInputs one = normal_shards(4, 9000, DRAFTPROOF_BF16, {0, 9000});
  give_filters(one);
  take("one_device", one);
  ShardInputs filters = normal_shards(10, 5000, DRAFTPROOF_F16, {0, 1200, 4090, 4100, 5000});
  give_filters(filters);
  filters.temperature.assign(10, 1.0f);
  filters.temperature[3] = 0.0f;
  filters.temperature[4] = 0.7f;
  filters.temperature[9] = 2.5f;
  both("filters", filters);
  tie(filters, 4.0f);
  take("ties", filters);

  ShardInputs bad = normal_shards(9, 5000, DRAFTPROOF_F32, {0, 2500, 5000});
  const auto at = [&](std::int64_t row, std::int64_t token) -> float& {
    return bad.logits[static_cast<std::size_t>(row * 5000 + token)];
  };
  at(0, 4999) = std::nanf("");
  at(1, 3) = kInfinity;
  at(2, 4500) = 0x1.8p29f;
  std::fill_n(bad.logits.begin() + 3 * 5000, 5000, -kInfinity);
  std::fill_n(bad.logits.begin() + 4 * 5000, 2500, -kInfinity);  // a device without mass
  at(5, 7) = std::nanf("");
  at(5, 4700) = kInfinity;
  give_filters(bad);
  bad.temperature = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, -1.0f, 0.0f, 1.0f};
  bad.top_p[8] = 1.5f;
  take("bad_rows", bad);
  return cases;
}

ShardInputs random_shards(std::uint64_t seed) {
  const Noise noise(seed);
  std::uint64_t next = 0;
  const auto below = [&](std::int64_t n) { return noise.below(next++, n); };
  const std::vector<std::int64_t> vocabularies = {1, 2, 33, 100, 4096, 4097, 8192, 9001};
  ShardInputs in = normal_shards(below(5), vocabularies[static_cast<std::size_t>(below(8))],
                                 static_cast<std::int32_t>(below(3)), {0});
  for (std::int64_t more = below(7); more > 0; --more) in.cuts.push_back(below(in.vocab_size + 1));
  if (below(4) == 0)
    for (std::int64_t& cut : in.cuts) cut -= cut % 4096;
  in.cuts.push_back(in.vocab_size);
  std::sort(in.cuts.begin(), in.cuts.end());
  in.seed = seed;
  in.sampler = static_cast<std::int32_t>(below(2));
  for (float& x : in.logits) x = below(20) == 0 ? -kInfinity : x;
  if (below(2) == 0) tie(in, 2.0f);
  if (below(2) == 0)
    for (std::int64_t row = 0; row < in.rows; ++row)
      in.temperature.push_back(std::vector<float>{0.0f, 1.0f, 0.7f, 1.5f}[static_cast<std::size_t>(below(4))]);
  if (below(3) > 0) give_filters(in);
  if (in.rows > 0 && below(5) == 0)
    in.logits[static_cast<std::size_t>(below(static_cast<std::int64_t>(in.logits.size())))] =
        below(2) == 0 ? kInfinity : std::nanf("");
  return in;
}

}  // namespace draftproof::regress
