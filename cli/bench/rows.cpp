#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "base/printable.hpp"
#include "base/words.hpp"
#include "cli/bench/cases.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/shard/sharded_masses.hpp"

namespace draftproof {
namespace {

BenchCase mass_case(const RowKernels& kernels, std::int64_t vocab_size) {
  // The goal is that of the specification, set for one thread with AVX2.
  std::optional<BenchGoal> goal;
  if (std::string(kernels.target) != "scalar") goal = BenchGoal{"ns_per_element", true, 1.0};
  const auto prepare = [kernels, vocab_size] {
    const auto row = std::make_shared<std::vector<float>>(bench_row(vocab_size));
    BenchWork work;
    work.elements = row->size();
    work.bytes = row->size() * sizeof(float);
    work.body = [kernels, row] {
      TileMass mass;
      for (std::size_t begin = 0; begin < row->size(); begin += kTileTokens)
        kernels.tile_mass(row->data() + begin, std::min<std::size_t>(kTileTokens, row->size() - begin), &mass);
    };
    return work;
  };
  return {"row_mass_" + lower_case(kernels.target), 1, goal, false, prepare};
}

// How a row's logits lie: as standard normal numbers, or as the logarithms of a Zipf distribution (rank^-1.5) over
// shuffled tokens, which is closer to what a model says: a few tokens have most of the mass.
enum class RowShape { normal, zipf };

struct RowSetting {
  std::string name;
  RowParameters parameters;
  Sampler sampler = Sampler::inverse;
  DType dtype = DType::f32;
  RowShape shape = RowShape::normal;
  std::optional<BenchGoal> goal = std::nullopt;
};

// Settings of one row; the goals are bounds on the ratio to the mass pass.
std::vector<RowSetting> row_kinds() {
  std::vector<RowSetting> kinds;
  const auto add = [&](const char* name, const std::function<void(RowParameters&)>& set, double ratio_at_most = 0.0) {
    RowSetting& kind = kinds.emplace_back();
    kind.name = name;
    set(kind.parameters);
    if (ratio_at_most > 0.0) kind.goal = BenchGoal{"ratio_to_mass_pass", true, ratio_at_most};
  };
  const auto top_k_top_p = [](RowParameters& row) {
    row.filters.top_k = 50;
    row.filters.top_p = 0.9f;
  };
  add("row_greedy", [](RowParameters& row) { row.temperature = 0.0f; });
  add("row_sample_inverse", [](RowParameters&) {});
  add(
      "row_sample_race", [](RowParameters&) {}, 5.0);
  kinds.back().sampler = Sampler::race;
  add("row_top_k", [](RowParameters& row) { row.filters.top_k = 50; });
  add(
      "row_top_p", [](RowParameters& row) { row.filters.top_p = 0.9f; }, 2.0);
  add("row_min_p", [](RowParameters& row) { row.filters.min_p = 0.05f; });
  add("row_top_k_top_p", top_k_top_p, 3.0);
  add("row_top_k_first_top_p", top_k_top_p, 3.0);
  kinds.back().parameters.filters.order = FilterOrder::top_k_first;
  return kinds;
}

// Every kind at every temperature, from every element type and on both shapes of row. A plain name is temperature 1,
// f32 and normal logits.
std::vector<RowSetting> row_settings() {
  std::vector<RowSetting> settings;
  for (const RowSetting& kind : row_kinds()) {
    for (const RowShape shape : {RowShape::normal, RowShape::zipf}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const float temperature : {1.0f, 0.1f, 0.7f, 2.0f}) {
          const bool is_greedy = kind.parameters.temperature == 0.0f;
          if (is_greedy && temperature != 1.0f) continue;
          RowSetting setting = kind;
          setting.dtype = dtype;
          setting.shape = shape;
          if (!is_greedy) setting.parameters.temperature = temperature;
          if (shape == RowShape::zipf) setting.name += "_zipf";
          if (dtype == DType::bf16) setting.name += "_bf16";
          if (temperature != 1.0f) setting.name += "_t" + number("%g", temperature);
          settings.push_back(setting);
        }
      }
    }
  }
  return settings;
}

std::vector<float> zipf_row(std::int64_t vocab_size) {
  const std::vector<float> order = bench_row(vocab_size);
  std::vector<std::size_t> tokens(order.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  std::sort(tokens.begin(), tokens.end(), [&](std::size_t a, std::size_t b) { return order[a] < order[b]; });
  std::vector<float> row(order.size());
  for (std::size_t rank = 0; rank < tokens.size(); ++rank)
    row[tokens[rank]] = static_cast<float>(-1.5 * natural_log(static_cast<double>(rank + 1)));
  return row;
}

// The rows by shape and element type, each made when it is first asked for.
class BenchRows {
 public:
  explicit BenchRows(std::int64_t vocab_size) : vocab_size_(vocab_size) {}

  RowView view(RowShape shape, DType dtype) {
    Row& row = rows_[shape];
    if (row.f32.empty()) {
      row.f32 = shape == RowShape::zipf ? zipf_row(vocab_size_) : bench_row(vocab_size_);
      row.bf16.resize(row.f32.size());
      std::transform(row.f32.begin(), row.f32.end(), row.bf16.begin(), f32_to_bf16);
    }
    const void* data = row.f32.data();
    if (dtype == DType::bf16) data = row.bf16.data();
    return {dtype, data, vocab_size_};
  }

 private:
  struct Row {
    std::vector<float> f32;
    std::vector<std::uint16_t> bf16;
  };
  std::int64_t vocab_size_;
  std::map<RowShape, Row> rows_;
};

// Everything that one sampling step keeps between rows.
struct RowSampler {
  Pipeline pipeline;
  Distribution distribution;
  PhiloxSource source;
  std::uint32_t step = 0;
  Token token = 0;  // a member, so that the draw is not optimised away
};

BenchCase sampling_case(const RowSetting& setting, const std::shared_ptr<BenchRows>& rows) {
  const auto prepare = [setting, rows] {
    const auto state = std::make_shared<RowSampler>();
    const RowView view = rows->view(setting.shape, setting.dtype);
    BenchWork work;
    work.elements = static_cast<std::uint64_t>(view.vocab_size);
    work.bytes = *work.elements * dtype_size_bytes(setting.dtype);
    work.body = [setting, state, rows, view] {
      RowInput input;
      input.logits = view;
      input.parameters = setting.parameters;
      state->pipeline.run(input, state->distribution);
      AddressedChance<> chance(state->source, 0, state->step++, setting.sampler);
      state->token = chance.draw(DistributionMasses(state->distribution), 0, Purpose::target_sample);
    };
    work.mass_pass = [rows, view] { mass_pass(view); };
    return work;
  };
  return {setting.name, 1, setting.goal, false, prepare};
}

// The same row over devices in one process; ratio to the whole row's case: what parts cost without a network.
BenchCase shards_case(const RowSetting& setting, std::size_t devices, const std::shared_ptr<BenchRows>& rows) {
  struct State {
    Devices devices;
    ShardedRow row{devices};
    PhiloxSource source;
    std::uint32_t step = 0;
    Token token = 0;
  };
  const auto prepare = [setting, devices, rows] {
    const RowView view = rows->view(setting.shape, setting.dtype);
    const auto state = std::make_shared<State>(Devices(even_split(view.vocab_size, devices)));
    std::vector<RowView> parts;
    for (std::size_t d = 0; d < devices; ++d) {
      const TokenRange& range = state->devices.range(d);
      const auto* const begin = static_cast<const float*>(view.data) + range.begin;
      parts.push_back({view.dtype, begin, range.size()});
    }
    BenchWork work;
    work.elements = static_cast<std::uint64_t>(view.vocab_size);
    work.body = [setting, state, rows, parts] {
      RowInput input;
      input.parameters = setting.parameters;
      state->row.run(input, parts);
      AddressedChance<> chance(state->source, 0, state->step++, setting.sampler);
      state->token = chance.draw(ShardedMasses(state->row), 0, Purpose::target_sample);
    };
    work.body();
    work.message_bytes = static_cast<std::uint64_t>(state->devices.traffic().bytes);
    work.mass_pass = [rows, view] { mass_pass(view); };
    return work;
  };
  return {setting.name + "_shards" + std::to_string(devices), 1, std::nullopt, false, prepare};
}

}  // namespace

std::vector<float> bench_row(std::int64_t vocab_size) {
  constexpr std::uint64_t kSeed = 7;
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  NormalPool(kSeed).fill(0, row.size(), row.data());
  return row;
}

void mass_pass(const RowView& row) {
  float scratch[kTileTokens];
  TileMass mass;
  for (std::int64_t begin = 0; begin < row.vocab_size; begin += kTileTokens) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kTileTokens, row.vocab_size - begin));
    row_kernels().tile_mass(elements_of(row, begin, count, scratch), count, &mass);
  }
}

std::vector<BenchCase> row_cases(const BenchSizes& sizes) {
  std::vector<BenchCase> cases;
  for (const RowKernels& kernels : available_row_kernels()) cases.push_back(mass_case(kernels, sizes.row_vocab_size));
  const auto rows = std::make_shared<BenchRows>(sizes.row_vocab_size);
  for (const RowSetting& setting : row_settings()) cases.push_back(sampling_case(setting, rows));
  for (const RowSetting& kind : row_kinds())
    for (const std::size_t devices : {1, 8, 64}) cases.push_back(shards_case(kind, devices, rows));
  return cases;
}

}  // namespace draftproof
