#include "sim/import/likely_formats.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

struct Likely {
  const char* format;
  const char* needs;
  std::initializer_list<std::string_view> words;
};

// The commonest first, which a text without any of the words is taken for.
const std::array kLikely = {
    Likely{"vLLM's log",
           "lines \"SpecDecoding metrics: ...\" of a server that speculates and logs its statistics",
           {"vllm", "EngineCore", "APIServer", "generation throughput", "KV cache usage", "LLM engine"}},
    Likely{"SGLang's log",
           "\"accept len\" in its lines \"Decode batch\"",
           {"sglang", "Decode batch", "Prefill batch", "server_args", "#running-req"}},
    Likely{"llama.cpp's log",
           "lines \"draft acceptance = ...\" of a server with a draft (-md, --spec-type)",
           {"llama_", "ggml", "print_timing", "eval time", "n_ctx"}},
    Likely{"Prometheus text",
           "counters such as vllm:spec_decode_num_drafts_total",
           {"# HELP", "# TYPE", "_total", "_bucket{", "model_name="}},
    Likely{"JSON of a server's answers",
           "acceptance_histogram (vLLM), spec_accept_length (SGLang), or timings with draft_n (llama.cpp)",
           {"\"choices\"", "\"usage\"", "\"meta_info\"", "\"timings\"", "\"completion_tokens\""}},
    Likely{"JSON of a benchmark",
           "spec_decode_acceptance_length (vLLM bench serve) or accept_length (SGLang)",
           {"\"output_throughput\"", "\"completed\"", "ttft", "tpot", "\"duration\""}},
    Likely{"TensorRT-LLM's statistics",
           "specDecodingStats, or decoding_stats in the report of trtllm-bench",
           {"TensorRT", "TRT-LLM", "trtllm", "iterLatencyMS", "inflightBatchingStats"}},
    Likely{"a CSV of rates",
           "a header with p1, p2, ... and rate_kind, or position with conditional or unconditional",
           {"p1,", "position,", "conditional,", "acceptance,", "rate_kind"}},
    Likely{"llama.cpp's /slots",
           "counts of drafts, which it has not: they are in the server's log and /metrics",
           {"\"id_task\"", "\"is_processing\"", "\"speculative\"", "\"next_token\"", "\"n_ctx\""}},
    Likely{"a trace of requests",
           "no speculation: it is the workload.arrivals of a scenario for sim",
           {"timestamp", "ContextTokens", "Request tokens", "\"input_length\"", "arrival_s"}},
    Likely{"an answer of Ollama",
           "drafts, of which Ollama says nothing: measure with llama.cpp's server",
           {"ollama", "\"eval_count\"", "\"prompt_eval_count\"", "\"total_duration\"", "\"done_reason\""}},
};

}  // namespace

std::string likely_formats(std::string_view text) {
  constexpr std::size_t kLooked = std::size_t{1} << 16;
  constexpr std::size_t kNamed = 3;
  text = text.substr(0, kLooked);
  std::vector<std::pair<std::ptrdiff_t, const Likely*>> found;
  for (const Likely& known : kLikely)
    found.emplace_back(std::ranges::count_if(known.words, [&](std::string_view word) { return has_words(text, word); }),
                       &known);
  std::ranges::stable_sort(found, std::greater<>{}, &std::pair<std::ptrdiff_t, const Likely*>::first);
  std::string names = "It looks most like ";
  for (std::size_t i = 0; i < kNamed; ++i)
    names += std::string(i == 0            ? ""
                         : i + 1 == kNamed ? ", or "
                                           : ", ") +
             found[i].second->format + " (which needs " + found[i].second->needs + ")";
  return names;
}

}  // namespace draftproof
