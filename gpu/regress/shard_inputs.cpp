#include "gpu/regress/shard_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace draftproof::regress {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
    in.filter_order.push_back(static_cast<std::uint8_t>(row / 2 % 2));  // top_k_first of rows with both, too
    in.ties.push_back(static_cast<std::uint8_t>(row % 3 == 2));
  }
}

void tie(ShardInputs& in, float step) {
  for (float& x : in.logits) x = std::floor(x / step) * step;
}

// Up to seven devices, some of them empty; now and then no tile is cut.
template <class Below>
std::vector<std::int64_t> random_cuts(const Below& below, std::int64_t vocab_size) {
  std::vector<std::int64_t> cuts = {0};
  for (std::int64_t more = below(7); more > 0; --more) cuts.push_back(below(vocab_size + 1));
  if (below(4) == 0)
    for (std::int64_t& cut : cuts) cut -= cut % 4096;
  cuts.push_back(vocab_size);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

}  // namespace

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

draftproof_shard ShardInputs::shard(CaseRun& run, std::int32_t device, SparseRows* far) const {
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
  const std::int64_t stride = s.end - s.begin + device % 3;
  s.logits = far == nullptr ? run.rows(part, stride, dtype) : far->filled(part.data(), rows, stride, s.end - s.begin);
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

std::vector<std::pair<std::string, ShardInputs>> kinds_of_shards() {
  std::vector<std::pair<std::string, ShardInputs>> kinds;
  const auto take = [&](const std::string& what, const ShardInputs& in) {
    const std::string name = what + (in.sampler == DRAFTPROOF_RACE ? "/race/" : "/") + dtype_text(in.dtype) + "/V" +
                             std::to_string(in.vocab_size) + "/T" + std::to_string(in.devices());
    kinds.emplace_back(name, in);
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
  return kinds;
}

ShardInputs random_shards(std::uint64_t seed) {
  const Noise noise(seed);
  std::uint64_t next = 0;
  const auto below = [&](std::int64_t n) { return noise.below(next++, n); };
  const std::vector<std::int64_t> vocabularies = {1, 2, 33, 100, 4096, 4097, 8192, 9001};
  ShardInputs in = normal_shards(below(5), vocabularies[static_cast<std::size_t>(below(8))],
                                 static_cast<std::int32_t>(below(3)), {});
  in.cuts = random_cuts(below, in.vocab_size);
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

ShardDrafts cut_drafts(VerifyInputs whole, const std::vector<std::int64_t>& cuts) {
  ShardDrafts out;
  const VerifyShape& shape = whole.shape;
  const auto drafts = static_cast<std::int64_t>(whole.draft_tokens.size());
  const auto fill = [&](ShardInputs& side, const std::vector<float>& rows, std::int64_t stride, std::int64_t count,
                        std::int32_t dtype) {
    side.rows = count;
    side.vocab_size = shape.vocab_size;
    side.dtype = dtype;
    side.cuts = cuts;
    for (std::int64_t r = 0; r < count; ++r)
      side.logits.insert(side.logits.end(), rows.begin() + r * stride, rows.begin() + r * stride + shape.vocab_size);
  };
  // Parameters of requests become those of their rows.
  const auto give = [&](ShardInputs& side, const ParameterLists& of, std::int64_t more) {
    const auto repeat = [&]<class T>(std::vector<T>& to, const std::vector<T>& from) {
      for (std::size_t b = 0; b < from.size(); ++b)
        to.insert(to.end(), static_cast<std::size_t>(shape.draft_lens[b] + more), from[b]);
    };
    repeat(side.temperature, of.temperature);
    repeat(side.top_k, of.top_k);
    repeat(side.top_p, of.top_p);
    repeat(side.min_p, of.min_p);
    repeat(side.filter_order, of.filter_order);
    repeat(side.ties, of.ties);
  };
  fill(out.target, whole.target, whole.target_stride, drafts + whole.requests(), shape.target_dtype);
  give(out.target, whole.parameters, 1);
  fill(out.proposal, whole.proposal, whole.proposal_stride, shape.proposal_kind == DRAFTPROOF_ONE_HOT ? 0 : drafts,
       shape.proposal_dtype);
  if (shape.proposal_kind == DRAFTPROOF_LOGITS) give(out.proposal, whole.draft_parameters, 0);
  out.whole = std::move(whole);
  return out;
}

std::vector<std::pair<std::string, ShardDrafts>> kinds_of_shard_drafts() {
  std::vector<std::pair<std::string, ShardDrafts>> kinds;
  const auto shape_of = [](std::int64_t vocab_size, std::int32_t proposal_kind) {
    VerifyShape shape;
    shape.draft_lens = {0, 1, 3, 5, 2, 4};
    shape.vocab_size = vocab_size;
    shape.target_kind = DRAFTPROOF_LOGITS;
    shape.proposal_kind = proposal_kind;
    if (proposal_kind == DRAFTPROOF_ONE_HOT) shape.spread = 12.0f;
    return shape;
  };
  const auto take = [&](const std::string& what, VerifyInputs whole, const std::vector<std::int64_t>& cuts) {
    constexpr const char* kProposals[] = {"one_hot", "probabilities", "logits"};
    const VerifyShape& shape = whole.shape;
    const std::string name = what + "/" + dtype_text(shape.target_dtype) + "/" + kProposals[shape.proposal_kind] +
                             "/V" + std::to_string(shape.vocab_size) + "/T" + std::to_string(cuts.size() - 1);
    kinds.emplace_back(name, cut_drafts(std::move(whole), cuts));
  };
  for (const std::int32_t kind : {DRAFTPROOF_ONE_HOT, DRAFTPROOF_PROBABILITIES, DRAFTPROOF_LOGITS}) {
    take("one_token", verify_inputs(1, shape_of(1, kind)), {0, 0, 1, 1});
    VerifyShape shape = shape_of(8192, kind);
    shape.target_dtype = shape.proposal_dtype = DRAFTPROOF_BF16;
    take("whole_tiles", verify_inputs(2, shape), {0, 4096, 8192});
    shape = shape_of(5000, kind);
    shape.masked_share = 0.3;
    take("cut_tiles", verify_inputs(3, shape), {0, 17, 4000, 4000, 4103, 4999, 5000});
    // Far apart, so that most are rejected and the residual is the target's.
    shape = shape_of(5000, kind);
    shape.distance = 3.0f;
    shape.dead_token = true;
    take("rejected", verify_inputs(4, shape), {0, 2500, 4999, 5000});
    VerifyInputs filtered = verify_inputs(5, shape_of(5000, kind));
    filtered.parameters.temperature = {1.0f, 0.7f, 0.0f, 1.5f, 1.0f, 2.0f};
    filtered.parameters.top_k = {0, 50, 3, 0, 1, 200};
    filtered.parameters.top_p = {0.9f, 1.0f, 0.5f, 0.8f, 1.0f, 0.99f};
    filtered.parameters.min_p = {0.0f, 0.01f, 0.0f, 0.05f, 0.0f, 0.0f};
    filtered.parameters.filter_order = {0, 1, 0, 1, 0, 1};
    filtered.draft_parameters.temperature = {1.0f, 1.0f, 1.0f, 0.0f, 0.8f, 1.3f};
    filtered.draft_parameters.top_k = {0, 40, 0, 0, 9, 0};
    filtered.draft_parameters.top_p = {1.0f, 0.9f, 1.0f, 0.5f, 1.0f, 0.7f};
    take("filters", std::move(filtered), {0, 1200, 4090, 4100, 5000});
    // A row with one token left, and rows that refuse where the walk comes to them.
    VerifyInputs bad = verify_inputs(6, shape_of(5000, kind));
    for (std::int64_t i = 0; i < 5000; ++i) bad.target_at(1, 0, i) = i == bad.draft_at(1, 0) ? 1.0f : -kInfinity;
    bad.target_at(2, 0, 4999) = std::nanf("");
    bad.target_at(3, 5, 7) = kInfinity;
    bad.draft_at(4, 1) = 5000;
    if (kind != DRAFTPROOF_ONE_HOT)
      for (std::int64_t place = 0; place < 4; ++place) bad.proposal_at(5, place, 4800) = std::nanf("");
    take("bad_rows", std::move(bad), {0, 2500, 5000});
    VerifyInputs offsets = verify_inputs(7, shape_of(300, kind));
    std::vector<std::int64_t>& cu = offsets.cu_num_draft_tokens;
    cu[2] = std::int64_t{1} << 40;
    cu[4] = cu[3] - 1;
    take("invalid_offsets", std::move(offsets), {0, 100, 300});
  }
  return kinds;
}

ShardDrafts random_shard_drafts(std::uint64_t seed) {
  const Noise noise(seed + (std::uint64_t{1} << 32));
  std::uint64_t next = 0;
  const auto below = [&](std::int64_t n) { return noise.below(next++, n); };
  const std::vector<std::int64_t> vocabularies = {1, 2, 33, 100, 4096, 4097, 8192, 9001};
  VerifyShape shape;
  for (std::int64_t requests = below(5); requests > 0; --requests)
    shape.draft_lens.push_back(static_cast<std::int32_t>(below(5)));
  shape.vocab_size = vocabularies[static_cast<std::size_t>(below(8))];
  shape.target_kind = DRAFTPROOF_LOGITS;
  shape.proposal_kind = static_cast<std::int32_t>(below(3));
  shape.target_dtype = static_cast<std::int32_t>(below(3));
  shape.proposal_dtype = static_cast<std::int32_t>(below(3));
  shape.spread = shape.proposal_kind == DRAFTPROOF_ONE_HOT ? 12.0f : 3.0f;
  shape.distance = below(2) == 0 ? 0.15f : 1.5f;
  shape.masked_share = below(2) == 0 ? 0.0 : 0.2;
  VerifyInputs whole = verify_inputs(seed, shape);
  const auto give = [&](ParameterLists& to) {
    for (std::size_t b = 0; b < shape.draft_lens.size(); ++b) {
      to.temperature.push_back(std::vector<float>{0.0f, 1.0f, 1.0f, 0.7f}[static_cast<std::size_t>(below(4))]);
      to.top_k.push_back(static_cast<std::int32_t>(below(2) * below(60)));
      to.top_p.push_back(below(2) == 0 ? 1.0f : 0.8f);
    }
  };
  if (below(2) == 0) give(whole.parameters);
  if (below(2) == 0) give(whole.draft_parameters);
  if (!whole.target.empty() && below(5) == 0)
    whole.target[static_cast<std::size_t>(below(static_cast<std::int64_t>(whole.target.size())))] = kInfinity;
  if (!whole.proposal.empty() && below(5) == 0)
    whole.proposal[static_cast<std::size_t>(below(static_cast<std::int64_t>(whole.proposal.size())))] = std::nanf("");
  if (!whole.draft_tokens.empty() && below(6) == 0) whole.draft_tokens[0] = -1;
  return cut_drafts(std::move(whole), random_cuts(below, shape.vocab_size));
}

}  // namespace draftproof::regress
