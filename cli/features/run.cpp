#include "cli/features/run.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/archives/safetensors.hpp"
#include "base/archives/sha256.hpp"
#include "base/error.hpp"
#include "base/files/inputs_read.hpp"
#include "cli/features/recorder.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "reference/logits/samplers.hpp"

namespace draftproof {
namespace {

// One text of a shard, before it is decoded.
struct PlannedText {
  std::int32_t prompt_index;
  DecodeJob job;
};

// Layers of EAGLE-3 (2, L/2, L - 3), and the last one, from which the head reads.
std::vector<std::int32_t> layers_of(const FeaturesOptions& options, std::int64_t num_layers) {
  if (options.layers.empty() && num_layers >= 8) {
    const auto last = static_cast<std::int32_t>(num_layers);
    return {2, last / 2, last - 3, last};
  }
  if (options.layers.empty())
    throw usage_error("--layers", "is not given for a model of " + std::to_string(num_layers) +
                                      " layers; expected some of 1 to " + std::to_string(num_layers));
  std::vector<std::int32_t> layers(options.layers.begin(), options.layers.end());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 1 || layers[i] > num_layers)
      throw usage_error("--layers",
                        "has " + std::to_string(layers[i]) + "; expected layers of 1 to " + std::to_string(num_layers));
    if (i > 0 && layers[i] <= layers[i - 1])
      throw usage_error("--layers", "has " + std::to_string(layers[i]) + " behind " + std::to_string(layers[i - 1]) +
                                        "; expected ascending layers");
  }
  return layers;
}

// Text of what the bytes of a shard depend on. Equal settings are equal bytes.
std::string settings_of(const std::string& model_sha256, const FeaturesRun& run,
                        std::span<const PromptRequest> prompts) {
  std::string requests;
  for (const PromptRequest& prompt : prompts) {
    const RequestParameters& p = prompt.parameters;
    nlohmann::ordered_json request = {{"prompt", prompt.prompt},
                                      {"chat", p.chat},
                                      {"max_tokens", p.max_tokens},
                                      {"temperature", p.temperature},
                                      {"top_p", p.top_p},
                                      {"top_k", p.top_k},
                                      {"min_p", p.min_p},
                                      {"cfg_scale", p.cfg_scale},
                                      {"negative_prompt", p.negative_prompt.value_or("")},
                                      {"seed", p.seed},
                                      {"stop", p.stop}};
    for (const SamplerParameterName& sampler : sampler_parameter_names())
      request[std::string(sampler.name)] = p.samplers.*sampler.value;
    requests += request.dump() + "\n";
  }
  const nlohmann::ordered_json settings = {{"version", 1},
                                           {"model_sha256", model_sha256},
                                           {"arithmetic", run.arithmetic},
                                           {"layers", run.layers},
                                           {"requests_sha256", sha256_hex(requests)}};
  return settings.dump();
}

void check_settings(const std::string& path, const SafetensorsFile& file, const std::string& settings) {
  const auto found = file.metadata().find("settings");
  if (found != file.metadata().end() && found->second == settings) return;
  throw input_error(path,
                    "was made from another model, other prompts or other options; expected those, or another --out");
}

// Tensors of one shard.
struct ShardTensors {
  std::vector<std::int32_t> tokens, prompt_len, prompt_index;
  std::vector<std::int64_t> cu_tokens;
  std::vector<std::uint16_t> features;

  void add(const PlannedText& text, std::span<const Token> output, std::span<const std::uint16_t> rows,
           std::size_t row_len) {
    std::vector<Token> all = text.job.prompt;
    all.insert(all.end(), output.begin(), output.end());
    const std::size_t len = std::min(all.size(), rows.size() / row_len);
    tokens.insert(tokens.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(len));
    features.insert(features.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(len * row_len));
    cu_tokens.push_back(std::ssize(tokens));
    prompt_len.push_back(static_cast<std::int32_t>(text.job.prompt.size()));
    prompt_index.push_back(text.prompt_index);
  }

  void write(const std::string& path, const std::vector<std::int32_t>& layers, std::int64_t width,
             const std::string& settings) const {
    const auto overflow = std::ranges::find_if(features, [](std::uint16_t bits) { return (bits & 0x7c00) == 0x7c00; });
    if (overflow != features.end()) {
      const auto value = static_cast<std::size_t>(overflow - features.begin()) / static_cast<std::size_t>(width);
      throw input_error(path, "a feature behind layer " + std::to_string(layers[value % layers.size()]) +
                                  " is not finite in binary16; expected values below 65520: leave out the layer");
    }
    SafetensorsWriter writer;
    const auto add = [&](const std::string& name, DType dtype, std::vector<std::uint64_t> shape, const auto& values) {
      writer.add(name, dtype, std::move(shape), std::as_bytes(std::span(values)));
    };
    add("tokens", DType::i32, {tokens.size()}, tokens);
    add("cu_tokens", DType::i64, {cu_tokens.size()}, cu_tokens);
    add("prompt_len", DType::i32, {prompt_len.size()}, prompt_len);
    add("prompt_index", DType::i32, {prompt_index.size()}, prompt_index);
    add("features", DType::f16, {tokens.size(), layers.size(), static_cast<std::uint64_t>(width)}, features);
    add("layers", DType::i32, {layers.size()}, layers);
    writer.metadata("settings", settings);
    writer.write(path);
  }
};

// Decodes the texts, each plainly and beside the others, and fills the tensors of their shard in the order of the
// texts.
ShardTensors decode_shard(TransformerModel& model, const std::vector<PlannedText>& texts, std::int64_t batch,
                          FeaturesRun& run, Progress& progress) {
  FeatureRecorder recorder(run.layers, run.width);
  std::vector<DecodeJob> jobs;
  for (const PlannedText& text : texts) jobs.push_back(text.job);
  DecodeRoom room;
  room.batch = batch;
  room.share_prefixes = false;  // a token that another request computed has no features here
  SpeculationChoice one_draft;
  one_draft.rule = SpeculationRule::fixed;
  one_draft.num_drafts = 1;  // room for it: what is offered is nothing
  DecodeRun decoding(model, &recorder, engine_options(jobs, room, model, SpeculationPolicy(one_draft)));
  for (const DecodeJob& job : jobs) decoding.submit(job);
  decoding.engine().on_tokens([&](const ActiveRequest&, std::size_t tokens, const std::string&) {
    run.generated_tokens += static_cast<std::int64_t>(tokens);
    progress.advance(tokens);
  });
  const DecodedJobs decoded = decoding.run();
  ShardTensors tensors;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::uint16_t> rows = recorder.take(i);
    const std::vector<Token>& prompt = texts[i].job.prompt;
    // The target's start token is in no text.
    if (const auto start = model.start_token(); start && (prompt.empty() || prompt.front() != *start))
      rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(recorder.row_len()));
    tensors.add(texts[i], decoded.generations[i].tokens, rows, recorder.row_len());
  }
  return tensors;
}

std::string shard_name(std::int64_t index) {
  std::string digits = std::to_string(index);
  return "shard-" + std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits + ".safetensors";
}

WrittenShard described(const std::string& path, const SafetensorsFile& file) {
  WrittenShard shard;
  shard.path = path;
  shard.texts = std::ssize(file.tensor("prompt_len").as<std::int32_t>());
  shard.tokens = std::ssize(file.tensor("tokens").as<std::int32_t>());
  for (const std::int32_t length : file.tensor("prompt_len").as<std::int32_t>()) shard.prompt_tokens += length;
  return shard;
}

}  // namespace

FeaturesRun write_features(const FeaturesOptions& options) {
  const Stopwatch watch;
  const GenerateOptions& generate = options.generate;
  const std::vector<PromptRequest> prompts = read_prompts(generate);
  ContentsRead model_files;
  const TextModel text_model = open_text_model(generate.model, model_path(generate.model),
                                               {generate.activations == "f32", generate.threads}, "--model");
  model_files.end();
  if (text_model.transformer == nullptr)
    throw input_error("--model", "is " + generate.model + ", which has no layers; expected a transformer");
  TransformerModel& model = *text_model.transformer;
  FeaturesRun run;
  run.model = text_model.name;
  run.arithmetic = text_model.arithmetic;
  run.layers = layers_of(options, model.num_layers());
  run.width = model.weights().shape.width;
  const RequestMaker maker(generate, text_model);
  std::error_code failure;
  std::filesystem::create_directories(options.out, failure);
  if (failure) throw input_error(options.out, "cannot be made: " + failure.message());

  const auto num_prompts = static_cast<std::int64_t>(prompts.size());
  const std::string model_sha256 = model_files.sha256();
  std::int64_t tokens = 0;
  Progress progress("generating", static_cast<std::uint64_t>(options.tokens), "tokens");
  for (std::int64_t first = 0; first < num_prompts; first += options.prompts_per_shard) {
    const auto part =
        std::span(prompts).subspan(static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(std::min(options.prompts_per_shard, num_prompts - first)));
    const std::string settings = settings_of(model_sha256, run, part);
    const std::string path =
        (std::filesystem::path(options.out) / shard_name(first / options.prompts_per_shard)).string();
    const bool found = std::filesystem::exists(path);
    if (!found) {
      std::vector<PlannedText> texts;
      for (const PromptRequest& prompt : part)
        texts.push_back({static_cast<std::int32_t>(first + std::ssize(texts)),
                         {maker.tokens_of(prompt), maker.decoding_options(prompt), prompt.where}});
      decode_shard(model, texts, generate.batch, run, progress).write(path, run.layers, run.width, settings);
    }
    const SafetensorsFile file = SafetensorsFile::open(path);
    if (found) check_settings(path, file, settings);
    WrittenShard& shard = run.shards.emplace_back(described(path, file));
    shard.found = found;
    tokens += shard.tokens;
    if (options.tokens > 0 && tokens >= options.tokens) break;
  }
  run.wall_ms = watch.elapsed_ms();
  return run;
}

}  // namespace draftproof
