#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/bench_cases.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return text;
}

BenchCase mass_case(const RowKernels& kernels, std::int64_t vocab_size) {
  BenchCase out;
  out.name = "row_mass_" + lower(kernels.target);
  // The goal is that of the specification, set for one thread with AVX2.
  if (std::string(kernels.target) != "scalar") out.goal = BenchGoal{"ns_per_element", true, 1.0};
  out.prepare = [kernels, vocab_size] {
    const auto row = std::make_shared<std::vector<float>>(bench_row(vocab_size));
    BenchWork work;
    work.elements = row->size();
    work.bytes = row->size() * sizeof(float);
    work.body = [kernels, row] {
      TileMass mass;
      for (std::size_t begin = 0; begin < row->size(); begin += kTileTokens)
        kernels.tile_mass(row->data() + begin, std::min<std::size_t>(kTileTokens, row->size() - begin), nullptr, &mass);
    };
    return work;
  };
  return out;
}

struct RowSetting {
  const char* name;
  RowParameters parameters;
  Sampler sampler = Sampler::inverse;
};

std::vector<RowSetting> row_settings() {
  std::vector<RowSetting> settings(8);
  settings[0].name = "row_greedy";
  settings[0].parameters.temperature = 0.0f;
  settings[1].name = "row_sample_inverse";
  settings[2].name = "row_sample_race";
  settings[2].sampler = Sampler::race;
  settings[3].name = "row_temperature";
  settings[3].parameters.temperature = 0.7f;
  settings[4].name = "row_top_k";
  settings[4].parameters.filters.top_k = 50;
  settings[5].name = "row_top_p";
  settings[5].parameters.filters.top_p = 0.9f;
  settings[6].name = "row_min_p";
  settings[6].parameters.filters.min_p = 0.05f;
  settings[7].name = "row_top_k_top_p";
  settings[7].parameters.filters.top_k = 50;
  settings[7].parameters.filters.top_p = 0.9f;
  return settings;
}

// Everything that one sampling step keeps between rows.
struct RowSampler {
  std::vector<float> row;
  Pipeline pipeline;
  Distribution distribution;
  PhiloxSource source;
  std::uint32_t step = 0;
  Token token = 0;  // a member, so that the draw is not optimised away
};

BenchCase sampling_case(const RowSetting& setting, std::int64_t vocab_size) {
  BenchCase out;
  out.name = setting.name;
  out.prepare = [setting, vocab_size] {
    const auto state = std::make_shared<RowSampler>();
    state->row = bench_row(vocab_size);
    BenchWork work;
    work.elements = state->row.size();
    work.bytes = state->row.size() * sizeof(float);
    work.body = [setting, state] {
      RowInput input;
      input.logits = {DType::f32, state->row.data(), static_cast<std::int64_t>(state->row.size())};
      input.parameters = setting.parameters;
      state->pipeline.run(input, state->distribution);
      AddressedChance<> chance(state->source, 0, state->step++, setting.sampler);
      state->token = chance.draw(DistributionMasses(state->distribution), 0, Purpose::target_sample);
    };
    return work;
  };
  return out;
}

}  // namespace

std::vector<float> bench_row(std::int64_t vocab_size) {
  constexpr std::uint64_t kSeed = 7;
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  NormalPool(kSeed).fill(0, row.size(), row.data());
  return row;
}

std::vector<BenchCase> row_cases(const BenchSizes& sizes) {
  std::vector<BenchCase> cases;
  for (const RowKernels& kernels : available_row_kernels()) cases.push_back(mass_case(kernels, sizes.row_vocab_size));
  for (const RowSetting& setting : row_settings()) cases.push_back(sampling_case(setting, sizes.row_vocab_size));
  return cases;
}

}  // namespace draftproof
