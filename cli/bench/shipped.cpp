
#include <memory>

#include "cli/bench/cases.hpp"
#include "cli/bench/peer.hpp"
#include "engine/decode/generate.hpp"
#include "engine/model/gathered_batch.hpp"
#include "engine/model/shipped_model.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kPrompt = 512;
constexpr std::int64_t kDecoded = 32;

std::vector<Token> prompt_of(std::int64_t length) {
  std::vector<Token> prompt;
  for (std::int64_t i = 0; i < length; ++i) prompt.push_back(static_cast<Token>(100 + i * 37 % 40000));
  return prompt;
}

std::shared_ptr<TextModel> shipped_model(int threads) {
  return std::make_shared<TextModel>(
      open_text_model(kShippedModel, model_path(kShippedModel), {false, threads}, "bench"));
}

BenchCase case_of(const std::string& name, int threads, double ratio_at_least, std::function<BenchWork()> prepare) {
  return {name, threads, BenchGoal{"ratio_to_llama_cpp", false, ratio_at_least}, false, std::move(prepare)};
}

BenchCase prefill_case(int threads) {
  return case_of("shipped_prefill_" + std::to_string(kPrompt), threads, 0.6, [threads] {
    const auto model = shipped_model(threads);
    const std::shared_ptr<KvCache> kv = model->model->make_kv_cache(kPrompt);
    BenchWork work;
    work.elements = kPrompt;
    work.body = [model, kv, output = ForwardOutput()]() mutable {
      GatheredBatch batch;
      batch.add_chain(prompt_of(kPrompt), 0);
      batch.contexts.emplace_back();
      batch.wanted = {batch.size() - 1};
      model->model->forward(batch.view(), *kv, output);
    };
    return work;
  });
}

BenchCase decode_case(int threads) {
  return case_of("shipped_decode_" + std::to_string(kDecoded), threads, 1.3, [threads] {
    const auto model = shipped_model(threads);
    BenchWork work;
    work.elements = kDecoded;
    work.body = [model] {
      DecodingOptions options;
      options.stop.max_tokens = kDecoded;
      PhiloxSource source;
      generate(*model->model, nullptr, options, prompt_of(8), source);
    };
    return work;
  });
}

}  // namespace

std::vector<BenchCase> shipped_model_cases(const std::vector<int>& threads) {
  std::vector<BenchCase> cases;
  if (!has_shipped_model()) return cases;
  for (const int count : threads) {
    cases.push_back(prefill_case(count));
    cases.push_back(decode_case(count));
  }
  return cases;
}

std::vector<std::string> llama_cpp_modules() {
  return {"xllamacpp", "llama_cpp"};
}

PeerTimings time_llama_cpp(const std::string& python, const std::vector<int>& threads, int repeat) {
  std::vector<std::string> arguments{model_path(kShippedModel), "--prompt", std::to_string(kPrompt), "--repeat",
                                     std::to_string(repeat),    "--threads"};
  for (const int count : threads) arguments.push_back(std::to_string(count));
  return run_peer(python, "llama_peer.py", arguments, "--llama-cpp");
}

}  // namespace draftproof
