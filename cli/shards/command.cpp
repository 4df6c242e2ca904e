// draftproof shards: rows whose vocabulary lies on several devices, drawn and compared with whole rows. A device is a
// process of mpirun, or a part of this process's memory.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/ranks.hpp"
#include "cli/shared/sampling_options.hpp"
#include "reference/random/philox.hpp"
#include "reference/shard/sharded_masses.hpp"
#include "sim/cost/logits_exchange.hpp"

namespace draftproof {
namespace {

struct ShardsArguments {
  std::int64_t rows = 100;
  std::int64_t vocab = 128256;
  std::int64_t devices = 4;
  double temperature = 1.0;
  TopP top_p;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  std::string sampler = "inverse";
  std::uint64_t seed = 1;
  std::string gpu = "H200";
  std::string engine = "vLLM";
  std::int64_t requests = 64;
  std::int64_t drafts = 5;
  bool json = false;
};

struct ShardsResult {
  std::int64_t bytes_largest = 0;  // of a row: vectors that devices sum or maximise (devices.hpp)
  std::int64_t rounds_largest = 0;
  std::int64_t different = 0;  // rows of which a device has another token than the whole row gives
};

// Logits [begin, end) of a row: sums of eight uniforms, whose words are addressed, so that a device makes its own.
std::vector<float> logits_of(std::uint64_t seed, std::int64_t row, const TokenRange& range) {
  std::vector<float> logits;
  logits.reserve(static_cast<std::size_t>(range.size()));
  for (Token token = range.begin; token < range.end; ++token) {
    const RandomBlock block = philox_block(seed, static_cast<std::uint32_t>(token), static_cast<std::uint32_t>(row), 0,
                                           static_cast<std::uint32_t>(Purpose::simulator));
    float sum = 0.0f;
    for (const std::uint32_t word : block.word)
      sum += static_cast<float>(word >> 16) * 0x1p-16f + static_cast<float>(word & 0xffffu) * 0x1p-16f;
    logits.push_back(4.0f * (sum - 4.0f));
  }
  return logits;
}

RowInput input_of(const ShardsArguments& arguments, std::int64_t row) {
  RowInput input;
  input.parameters = row_parameters(arguments.temperature, arguments.top_p, arguments.top_k, arguments.min_p);
  input.row = row;
  return input;
}

RowView view_of(const std::vector<float>& logits) {
  return {DType::f32, logits.data(), static_cast<std::int64_t>(logits.size())};
}

// The token of a row, drawn from the masses that it has, whole or across devices.
template <class Masses>
Token drawn(const ShardsArguments& arguments, std::int64_t row, const Masses& masses) {
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, arguments.seed, static_cast<std::uint32_t>(row),
                                       arguments.sampler == "race" ? Sampler::race : Sampler::inverse);
  return chance.draw(masses, 0, Purpose::target_sample);
}

Token token_of_whole_row(const ShardsArguments& arguments, std::int64_t row, Pipeline& pipeline) {
  const std::vector<float> logits = logits_of(arguments.seed, row, {0, static_cast<Token>(arguments.vocab)});
  RowInput input = input_of(arguments, row);
  input.logits = view_of(logits);
  Distribution distribution;
  pipeline.run(input, distribution);
  return drawn(arguments, row, DistributionMasses(distribution));
}

// Is a number the same in all processes?
bool is_agreed(Collectives* between, std::int32_t number) {
  if (between == nullptr) return true;
  std::int32_t ends[] = {number, -number};
  between->largest(ends);
  return ends[0] == -ends[1];
}

ShardsResult draw_rows(const ShardsArguments& arguments, Devices devices, Collectives* between) {
  ShardsResult result;
  ShardedRow sharded(devices);
  Pipeline pipeline;
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    std::vector<std::vector<float>> parts(devices.count());
    std::vector<RowView> views(devices.count());
    for (std::size_t d = devices.begin_here(); d < devices.end_here(); ++d) {
      parts[d] = logits_of(arguments.seed, row, devices.range(d));
      views[d] = view_of(parts[d]);
    }
    devices.clear_traffic();
    sharded.run(input_of(arguments, row), views);
    const Token token = drawn(arguments, row, ShardedMasses(sharded));
    result.bytes_largest = std::max(result.bytes_largest, devices.traffic().bytes);
    result.rounds_largest = std::max(result.rounds_largest, devices.traffic().rounds);
    // Every process makes the whole row too: none is special.
    const bool is_equal = token == token_of_whole_row(arguments, row, pipeline);
    if (!is_agreed(between, is_equal ? token : -1) || !is_equal) ++result.different;
  }
  return result;
}

void run(ShardsArguments arguments, ProgramContext& context) {
  const Gpu gpu = find_gpu(arguments.gpu);
  const EngineProfile engine = find_engine(arguments.engine);
  Ranks ranks;
  const std::unique_ptr<Collectives> between = ranks.collectives();
  if (between != nullptr) arguments.devices = ranks.size();
  const std::vector<TokenRange> split = even_split(arguments.vocab, static_cast<std::size_t>(arguments.devices));
  const ShardsResult result =
      between != nullptr
          ? draw_rows(arguments, Devices(split, *between, static_cast<std::size_t>(ranks.rank())), between.get())
          : draw_rows(arguments, Devices(split), nullptr);
  if (result.different > 0) context.exit_code = ExitCode::finding;
  if (ranks.rank() != 0) return;
  const std::int64_t gathered = 2 * arguments.vocab;
  const std::int64_t step_rows = arguments.requests * (arguments.drafts + 1);
  const LogitsExchange step =
      logits_exchange(gpu, engine, static_cast<double>(arguments.devices), static_cast<double>(step_rows),
                      static_cast<double>(arguments.vocab), static_cast<double>(result.bytes_largest),
                      static_cast<double>(result.rounds_largest));
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document.update({{"rows", arguments.rows},
                     {"vocab", arguments.vocab},
                     {"devices", arguments.devices},
                     {"processes", ranks.size()},
                     {"seed", arguments.seed},
                     {"bytes_per_row", result.bytes_largest},
                     {"rounds_per_row", result.rounds_largest},
                     {"bytes_of_a_gather", gathered},
                     {"different", result.different},
                     {"gpu", gpu.name},
                     {"engine", engine.name},
                     {"step_rows", step_rows},
                     {"gather_ms_per_step", finite("gather_ms_per_step", step.gather_ns * 1e-6)},
                     {"messages_ms_per_step", finite("messages_ms_per_step", step.messages_ns * 1e-6)}});
    return print_json(document);
  }
  std::cout << arguments.rows << " rows of " << arguments.vocab << " tokens over " << arguments.devices << " devices, "
            << (between != nullptr ? "a process each" : "in one process") << "\n"
            << "messages of a row: at most " << result.bytes_largest << " bytes in " << result.rounds_largest
            << " rounds; a gather of bfloat16 takes " << gathered << " bytes\n"
            << "predicted for a step of " << step_rows << " rows on " << gpu.name << ", collectives of " << engine.name
            << ": gather " << std::fixed << std::setprecision(3) << step.gather_ns * 1e-6 << " ms, messages "
            << step.messages_ns * 1e-6 << " ms\n"
            << "different from whole rows: " << result.different << "\n";
}

}  // namespace

void add_shards(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<ShardsArguments>();
  options.integer("--rows", arguments->rows, {1, 1'000'000}, "Random rows");
  options.integer("--vocab", arguments->vocab, {1, kVocabularyLimit}, "Tokens of a row");
  options.integer("--devices", arguments->devices, {1, 1024}, "Parts of a row; under mpirun a process has one each");
  add_sampling_options(options, arguments->temperature, arguments->top_p, arguments->top_k, arguments->min_p);
  options.choice("--sampler", arguments->sampler, {"inverse", "race"}, "How a token is drawn");
  options.seed(arguments->seed, "Of the rows and of the draws");
  options.text("--gpu", arguments->gpu, "Of the predicted exchange: a preset's name or a TOML preset", "GPU");
  options.text("--engine", arguments->engine, "Of its latency: a preset's name or a TOML preset", "ENGINE");
  options.integer("--requests", arguments->requests, {1, 1'000'000}, "Requests of a step");
  options.integer("-k,--num-speculative-tokens", arguments->drafts, {0, 1024}, "Draft tokens K of each");
  options.json(arguments->json);
  options.used_only({"--devices"}, "under mpirun, whose processes are the devices",
                    [] { return !Ranks::is_started(); });
  options.examples({"--devices 16 --top-k 50 --top-p 0.9", "--sampler race --json"});
  options.footer(
      "With processes: mpirun -n 4 ./draftproof shards; ./draftproof build --with-mpi installs what it needs.");
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
