#include "tests/fuzz/readers.hpp"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/archives/safetensors.hpp"
#include "base/files/input_file.hpp"
#include "cli/speculate/table.hpp"
#include "engine/chat/chat_template.hpp"
#include "engine/grammar/gbnf.hpp"
#include "engine/grammar/json_schema.hpp"
#include "engine/heads/lab/draft_audit.hpp"
#include "engine/metrics/prometheus.hpp"
#include "engine/model/model_files.hpp"
#include "engine/scheduler/step_cost.hpp"
#include "engine/weights/json_fields.hpp"
#include "sim/cost/roofline.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/import/speculate_table.hpp"
#include "sim/machine/machine_profile.hpp"
#include "sim/predict/seen_log.hpp"
#include "sim/predict/speedup_points.hpp"
#include "sim/serving/grid.hpp"
#include "tests/engine/heads/head_folders.hpp"
#include "tests/engine/tokenizer/tiny_tokenizer.hpp"

namespace draftproof::testing {
namespace {

namespace fs = std::filesystem;

std::string source_file(const std::string& name) {
  std::ifstream file(fs::path(DRAFTPROOF_SOURCE_DIR) / name);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("cannot read " + name);
  return text.str();
}

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// The first [[table]]s of a file of presets, each as a user's file of one [table].
std::vector<std::string> single_presets(const std::string& name, const std::string& table) {
  const std::string text = source_file(name);
  const std::string begin = "[[" + table + "]]\n";
  std::vector<std::string> files;
  for (std::size_t at = text.find(begin); at != text.npos && files.size() < 4; at = text.find(begin, at + 1))
    files.push_back("[" + table + "]\n" + text.substr(at + begin.size(), text.find("[[", at + 2) - at - begin.size()));
  return files;
}

RooflineSetup setup_of(const std::string& model, const std::string& gpu, const std::string& engine) {
  RooflineSetup setup;
  setup.model = find_model(model);
  setup.gpu = find_gpu(gpu);
  setup.engine = find_engine(engine);
  return setup;
}

void time_step(const RooflineSetup& setup) {
  const Roofline roofline(setup);
  require(roofline.target_ns({8, 2, 128, 6 * 64, 6}) > 0.0, "a step takes no time");
  require(roofline.kv_bytes(1000) >= 0.0, "a request's cache has less than no bytes");
}

// --- arrays ----------------------------------------------------------------------------------------------------------

// A member of an .npz archive, as NumPy writes it.
std::string npy(const std::string& dtype, const std::string& shape, const std::string& elements) {
  std::string header = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 11) / 64 * 64 + 53, ' ');  // with the 10 bytes before it a multiple of 64
  header += '\n';
  const auto size = static_cast<unsigned>(header.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(size & 0xffU) + static_cast<char>(size >> 8) + header +
         elements;
}

std::vector<std::string> npy_members() {
  return {npy("<f4", "(2, 3)", std::string(24, '\x3f')), npy("<i8", "(2,)", std::string(16, '\0')),
          npy("|u1", "()", "\x07"), npy("<f2", "(0, 5)", "")};
}

// As zlib deflates without a header of its own.
std::string deflated(const std::string& bytes) {
  z_stream stream{};
  require(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib refuses to deflate");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<z_const Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  require(status == Z_STREAM_END, "a member cannot be deflated");
  return packed;
}

std::string little_endian(std::size_t bytes, std::uint64_t number) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xffU);
  return text;
}

// Sizes and checksums are right, whatever the members are.
void write_npz(const std::string& path, const std::vector<std::string>& members, bool compressed) {
  std::string archive;
  std::string directory;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string name = "array" + std::to_string(i) + ".npy";
    const std::string packed = compressed ? deflated(members[i]) : members[i];
    const uLong checksum = crc32_z(0, reinterpret_cast<const Bytef*>(members[i].data()), members[i].size());
    const std::string both = little_endian(2, 20) + little_endian(2, 0) + little_endian(2, compressed ? 8 : 0) +
                             little_endian(4, 0) + little_endian(4, checksum) + little_endian(4, packed.size()) +
                             little_endian(4, members[i].size()) + little_endian(2, name.size()) + little_endian(2, 0);
    directory +=
        "PK\1\2" + little_endian(2, 20) + both + std::string(10, '\0') + little_endian(4, archive.size()) + name;
    archive += "PK\3\4" + both + name + packed;
  }
  const std::string count = little_endian(2, members.size());
  std::ofstream(path, std::ios::binary) << archive << directory << "PK\5\6" << little_endian(4, 0) << count << count
                                        << little_endian(4, directory.size()) << little_endian(4, archive.size())
                                        << little_endian(2, 0);
}

// Those whose damage lies in the archive: entries, sizes, checksums.
std::vector<std::string> npz_archives(const std::string& folder) {
  const std::string path = (fs::path(folder) / "sound.npz").string();
  std::vector<std::string> archives;
  for (const bool compressed : {false, true}) {
    write_npz(path, npy_members(), compressed);
    archives.emplace_back(InputFile(path).text());
  }
  return archives;
}

void read_arrays(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  for (const std::string& name : file.names()) file.tensor(name).element_count();
}

void read_member(const std::string& path) {
  const std::string archive = path + ".npz";
  write_npz(archive, {std::string(InputFile(path).text())}, true);
  read_arrays(archive);
}

// --- models --------------------------------------------------------------------------------------------------------

std::string tokenizer_with(const char* pre_tokenizer, const char* others) {
  std::string text = TinyTokenizer(48).json();
  const std::string key = "\"pre_tokenizer\":";
  const std::size_t begin = text.find(key) + key.size();
  const std::size_t end = text.find(",\"model\"", begin);
  return text.replace(begin, end - begin, std::string(pre_tokenizer) + others);
}

std::vector<std::string> tokenizers() {
  return {
      TinyTokenizer(48).json(),
      tokenizer_with(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}| ?\\p{L}+)"
                     R"(|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel",)"
                     R"("add_prefix_space":false,"use_regex":false}]})",
                     R"(,"normalizer":{"type":"NFC"},"post_processor":{"type":"Sequence","processors":[{"type":)"
                     R"("TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},{"Sequence":{"id":"A"}}],)"
                     R"("special_tokens":{"s":{"id":"s","ids":[47]}}},{"type":"ByteLevel"}]})"),
      tokenizer_with(R"({"type":"Metaspace","prepend_scheme":"first","split":false})",
                     R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
                     R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})")};
}

void read_tokenizer(const std::string& path) {
  const Tokenizer tokenizer(parse_tokenizer_json(JsonFields::read(path)));
  const std::string long_text = std::string(300, 'a') + std::string(300, '1') + std::string(300, ' ') + "!";
  for (const std::string& text : {std::string("the 42 th\n<|im_end|> e\u0301\u2581\xff\xe6\x97"), long_text})
    for (const bool special : {false, true}) {
      const std::vector<Token> ids = tokenizer.encode(text, {special, special});
      for (const Token id : ids) require(id >= 0 && id < tokenizer.vocab_size(), "an id is outside the vocabulary");
      tokenizer.decode(ids);
    }
}

std::vector<std::string> tokenizer_configs() {
  return {
      R"({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>", "special": true}, "chat_template":
"{% for m in messages %}{{ bos_token + '<|im_start|>' + m['role'] + m.content | trim }}{% endfor %}"})",
      R"({"unk_token": null, "pad_token": "a", "chat_template": [{"name": "tool_use", "template": "x"},
{"name": "default", "template": "{% set n = namespace(a=[1, {'b': 2}]) %}{% for m in messages %}{{ m.content ~ n.a | tojson }}{% endfor %}"}]})",
      R"({"chat_template": "<|im_start|>{{ messages | map(attribute='content') | join(', ') }}\\n", "model_max_length": 1e30})"};
}

void read_tokenizer_config(const std::string& path) {
  static const Tokenizer tokenizer(parse_tokenizer_json(JsonFields::parse("tokenizer.json", TinyTokenizer(48).json())));
  const TokenizerConfig config = parse_tokenizer_config(JsonFields::read(path));
  if (!config.chat_template || !has_jinja()) return;
  const std::vector<ChatMessage> messages{{"user", "the 42 th\n<|im_end|>"}, {"assistant", " "}, {"user", ""}};
  ChatTemplate(path, *config.chat_template, config.context).encode(tokenizer, messages);
}

std::vector<std::string> json_schemas() {
  return {
      R"({"name": "n", "schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}, "b": {"enum": [1, "x"],
"type": ["string", "null"]}}, "required": ["a"], "patternProperties": {"^x[0-9]$": {"minimum": 0.5, "multipleOf": 2}},
"$defs": {"s": {"type": "string", "pattern": "^[^a-c](-\\d+)?$", "maxLength": 9}}}})",
      R"({"oneOf": [{"type": "array", "items": [{"const": 1}], "minItems": 1}, {"type": "object", "properties": {"c": {"$ref": "#"}}}],
"not": {"required": ["k"]}, "if": {"properties": {"k": {"const": "p"}}}, "then": {"maxProperties": 2}})",
      R"({"allOf": [{"anyOf": [{"type": "integer"}, {"maxLength": 3}]}, {"exclusiveMinimum": true, "minimum": 3}]})"};
}

// The config.json of a head, beside its tensors in a folder of their own.
FuzzedReader head_config(const std::string& name, const std::string& folder, const HeadFiles& head) {
  fs::create_directory(fs::path(folder) / name);
  head.write((fs::path(folder) / name).string());
  return {name, name + "/config.json", {head.config.dump(1)}, [](const std::string& path) {
            const std::string of = fs::path(path).parent_path().string();
            is_head(of);
            const HeadTensors read = open_head_files(of);
            require(weights_per_pass(read) > 0, "a head multiplies with nothing");
            for (const Token token : read.description.draft_tokens)
              require(token >= 0 && token < read.description.target_vocab_size,
                      "a drafted token is outside the vocabulary");
          }};
}

void read_head_gguf(const std::string& path) {
  is_head(path);
  require(!tensors_of(open_head_files(path)).empty(), "a head has no tensors");
}

// --- speedups and tables of `draftproof speculate` -------------------------------------------------------------------

std::vector<std::string> speedups_csv() {
  return {
      "source_id,hardware,gpu_count,engine,target_model,target_precision,draft_method,draft_model,K,tree_nodes,"
      "tree_depth,tree_topk,temperature,batch,batch_kind,input_len,output_len,alpha,tau,tau_kind,baseline_tok_s,"
      "spec_tok_s,baseline_tpot_ms,speedup,duplicate_of\n"
      "lab,H100,1,vLLM 0.9,Llama-3.1-8B,fp16,EAGLE-3 chain,,5,,,,0,8,batch,1000,200,,2.8,incl. bonus,,,9.1,1.75,\n"
      "lab,NVIDIA H100 SXM 80GB,2,SGLang,Llama-3.1-8B,fp8,EAGLE-2,,,60,6,10,1,1,,512,128,,\"4,0\",,,,,2.5,\n"
      "other,RTX 3090 24GB,1,HF transformers,Vicuna-7B-v1.3,fp16,draft model,68M,4,,,,,1,batch,,,0.7,,,40,71.5,,,\n",
      "target_model,hardware,draft_method,tau,speedup\nLlama-3.1-8B,H100,Medusa,2.1,1.4\n"};
}

std::vector<std::string> speedups_json() {
  return {
      R"({"rows": [{"hardware": "H100", "model": "Llama-3.1-8B", "source": "lab", "method": "EAGLE-3", "draft": "K=5",
"batch": 8, "speedup": 1.75}, {"hardware": "A100", "model": "Llama-2-7B", "source": "lab", "method": "Medusa",
"draft": "K=2", "batch": 1, "speedup": 2}]})"};
}

std::string speculate_row(const std::string& tree) {
  return R"({"work": "code", "drafter": "suffix", "k": 4, "tree": )" + tree +
         R"(, "verifier": "chain", "policy": "likely", "temperature": 0.0, "draft_temperature": null, "batch": 1,
"prompts": 10, "plain_tokens": 640, "tokens": 640, "steps": 410, "drafts": 120, "draft_tokens": 400, "accepted": 230,
"acceptance_length": 2.9, "tokens_per_step": 1.56, "acceptance_by_position": {"conditional": [0.7, 0.8, null],
"unconditional": [0.2, 0.15, null], "unconditional_standard_error": [0.02, 0.02, null]}, "ranked_positions": 0,
"acceptance_by_rank": [], "speedup": 1.41, "speedup_low": 1.2, "speedup_high": null, "draft_ms": 0.1, "verify_ms": 4.1,
"sample_ms": 0.3, "step_ms": 4.6, "plain_ms": 3.6, "requests": [], "equal": true, "difference": null})";
}

std::string speculate_table() {
  return R"({"command": "draftproof speculate", "settings": {"model": "smollm2", "max_tokens": 64}, "rows": [)" +
         speculate_row("null") + ", " + speculate_row("\"2x2x1\"") + R"(], "left_out": []})";
}

// As a later run reads it, which goes on with it.
void resume_speculate(const std::string& path) {
  const SpeculateTable table(fs::path(path).parent_path().string(), {{"model", "smollm2"}, {"max_tokens", 64}});
  table.require_same_inputs({.drafter = "suffix", .k = 4, .tree = {}, .verifier = "chain"}, "");
  table.find("code", {.drafter = "suffix", .k = 4, .tree = {}, .verifier = "chain"}, 1);
  for (const Json& row : table.rows()) configuration_name(row);
  table.document(Json::object()).dump();
  table.csv();
}

void import_speculate(const std::string& path) {
  const InputFile file(path);
  const auto document = nlohmann::json::parse(file.text(), nullptr, false);
  if (is_speculate_table(document)) acceptances_of_speculate(document, path);
}

// --- metrics of servers ----------------------------------------------------------------------------------------------

std::vector<std::string> prometheus_texts() {
  EngineMetrics metrics;
  AcceptanceCounts counts(3);
  for (std::size_t step = 0; step < 20; ++step) counts.add_step({3, step % 4, step % 4 < 3, step % 4 + 1});
  metrics.acceptance = counts;
  const std::string ours = prometheus_text(metrics, "a \"model\"\\with\nnames");
  // Two engines, a counter that falls, an exponent and a time; and a gauge of SGLang.
  return {ours,
          ours + ours,
          "# TYPE vllm:spec_decode_num_drafts_total counter\n"
          "vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 1.5e+06\r\n"
          "vllm:spec_decode_num_drafts_total{engine=\"1\",model_name=\"m\"} 2e6 1712345678000\n"
          "vllm:spec_decode_num_draft_tokens_total{engine=\"0\",model_name=\"m\"} 4.5e+06\n"
          "vllm:spec_decode_num_draft_tokens_total{engine=\"1\",model_name=\"m\"} 6e6\n"
          "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\",model_name=\"m\"} 3e6\n"
          "vllm:spec_decode_num_accepted_tokens_total{engine=\"1\",model_name=\"m\"} 3e6\n",
          "# TYPE sglang:spec_accept_length gauge\n"
          "sglang:spec_accept_length{engine_type=\"unified\",model_name=\"glm\",tp_rank=\"0\"} 2.9\n"
          "sglang:spec_accept_rate{model_name=\"glm\"} 0.63\n",
          "| vllm:spec_decode_num_drafts_total | 3806 |\n| `vllm:spec_decode_num_draft_tokens_total` | **22836** |\n"
          "| vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} | 5191 |\n",
          "vllm:spec_decode_num_drafts (counter) = 100\nvllm:spec_decode_num_accepted_tokens (counter) = 110\n"
          "vllm:spec_decode_num_accepted_tokens_per_pos (vector) = [80, 30]\n",
          "trtllm_spec_decode_num_draft_tokens_total{model_name=\"m\"} 480.0\n"
          "trtllm_spec_decode_num_accepted_tokens_total{model_name=\"m\"} 280.0\n"
          "trtllm_spec_decode_acceptance_length{model_name=\"m\"} 2.75\n",
          "llamacpp:tokens_predicted_total 794\nllamacpp:n_decode_total 281\nllamacpp:n_draft_total 834\n"
          "llamacpp:n_draft_accepted_total 516\n",
          "maxserve_spec_decode_acceptance_rate_per_position_sum{position=\"0\"} 8400.0\n"
          "maxserve_spec_decode_acceptance_rate_per_position_count{position=\"0\"} 100\n"
          "maxserve_spec_decode_acceptance_rate_per_position_sum{position=\"1\"} 5000.0\n"
          "maxserve_spec_decode_acceptance_rate_per_position_count{position=\"1\"} 100\n",
          R"({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"__name__":
"vllm:spec_decode_num_drafts_total", "job": "vllm"}, "values": [[1, "10"], [2, "100"], [3, "40"]]}, {"metric": {"__name__":
"vllm:spec_decode_num_accepted_tokens_total"}, "value": [1754000000.1, "110"]}]}})"};
}

// --- the simulator ---------------------------------------------------------------------------------------------------

std::vector<std::string> scenarios() {
  return {source_file("experiments/scenarios/chat.toml"), source_file("experiments/speedup_by_batch/scenario.toml"),
          R"(acceptance = "constant:0.75"
[linear]
target_ms = 5.886
row_us = 21.0
kv_token_ns = 39.3
draft_pass_ms = 0.7
[workload]
requests = 30
arrivals = { kind = "recorded", file = "arrivals.csv" }
prompt = { kind = "recorded", most = 4096 }
output = { kind = "exponential", mean = 15 }
companion_prompt = 8
[scheduler]
kv_blocks = 2000
token_budget = 2048
preemption = "swap"
swap_blocks = 10
[[policy]]
name = "schedule"
speculation = "schedule:1=5,8=3,32=0"
[[policy]]
name = "tree"
speculation = "tree:nodes=16,budget=256"
tree_depth = 4
)"};
}

void read_scenario_file(const std::string& path) {
  read_scenario(read_toml(path));
}

// Grids over the last of the scenarios, which is read fastest.
std::vector<std::string> grids() {
  return {
      "scenario = \"light.toml\"\n[grid]\n\"linear.row_us\" = [10, 21.5]\n"
      "\"policy.0.speculation\" = [\"fixed:3\", \"threshold:max=5\"]\n",
      "scenario = \"light.toml\"\n[grid]\n\"scheduler.kv_blocks\" = [1000, 2000]\n"
      "\"scheduler.preemption\" = [\"swap\", \"recompute\"]\n\"workload.output\" = [100]\n"};
}

void read_grid(const std::string& path) {
  const Grid grid(path);
  require(!grid.columns().empty(), "a grid has no columns");
  grid.scenario(grid.size() - 1);
}

std::string machine_profile() {
  MachineProfile profile;
  profile.cpu = "a processor";
  profile.simd = "AVX2";
  profile.model = "m";
  profile.arithmetic = "int8";
  profile.passes = {{1, 64, 2.1}, {4, 64, 2.4}, {16, 64, 3.6}, {1, 576, 2.356}};
  return toml_of(profile);
}

void read_machine(const std::string& path) {
  const MachineProfile profile = read_machine_profile(path);
  require(profile.pass_ms(1, 64) > 0.0 && profile.pass_ms(40, 8000) > 0.0, "a pass takes no time");
}

// A recorded run, as the audit of its drafts goes through it.
void read_drafts(const std::string& path) {
  for (const DraftedRequest& request : read_recorded_run(path, 100)) {
    accounting_fault(request);
    require(!recorded_line(request).empty(), "a request has no line");
  }
}

void read_step_cost(const std::string& path) {
  const DefaultStepCost cost(path);
  require(cost.target_ns(planned_pass(1, 1)) > 0.0, "a pass takes no time");
}

}  // namespace

std::vector<std::string> server_answers() {
  return {
      R"({"metrics": {"speculative_decoding": {"acceptance_histogram": [39, 1, 0, 3], "num_accepted_draft_tokens": 10}}})",
      R"([{"perf_metrics": {"first_iter": 5, "last_iter": 25, "speculative_decoding": {"acceptance_rate": 0.5,
"total_accepted_draft_tokens": 30, "total_draft_tokens": 60}}}, {"avg_decoded_tokens_per_iter": 2.25}])",
      "{\"meta_info\": {\"spec_accept_length\": 3.2, \"spec_verify_ct\": 100, \"spec_correct_drafts_histogram\": [4, "
      "2]}}\n"
      "{\"meta_info\": {\"spec_accept_length\": 3.2, \"spec_verify_ct\": 100}}\n",
      R"({"pooled_spec_decode_acceptance_histogram": {"0": 2, "1": 3, "2": 2, "3": 3, "4": 1}})",
      R"({"timings": {"predicted_n": 16, "draft_n": 12, "draft_n_accepted": 9}})",
      R"({"model_id": "m", "request_rate": Infinity, "spec_decode_acceptance_length": 2.8, "spec_decode_num_drafts": 5,
"spec_decode_draft_tokens": 15, "spec_decode_accepted_tokens": 9, "spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2]})",
      R"({"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4,
"internal_states": [{"avg_spec_accept_length": 2.41}]})",
      "{\"accept_length\": 4.07, \"num_requests\": 80}\n{\"acc_length\": 3.5, \"batch_size\": 8}\n",
      R"([{"iterLatencyMS": 20.1, "inflightBatchingStats": {"numContextRequests": 0, "numGenRequests": 8},
"specDecodingStats": {"numDraftTokens": 24, "numAcceptedTokens": 12, "numRequestsWithDraftTokens": 8}}])",
      R"({"request_info": {"num_requests": 9}, "decoding_stats": {"acceptance_length_percentiles": {"average": 2.5}}})",
      R"({"usage": {"completion_tokens": 300}, "stats": {"total_draft_tokens_count": 492, "accepted_draft_tokens_count": 176}})",
      "data: {\"id\": \"a\", \"timings\": {\"predicted_n\": 16, \"draft_n\": 15, \"draft_n_accepted\": 10}}\n\n"
      "data: {\"id\": \"a\", \"stop\": true, \"timings\": {\"predicted_n\": 31, \"draft_n\": 30, \"draft_n_accepted\": "
      "20}}\n\ndata: [DONE]\n\n",
      "# coding\nqwen:\n  thinking_on:\n    1: 1.9\n    2: 2.6\n    4: 3.6\n",
      "model,K,p1,p2,rate_kind\na,2,0.7,0.4,unconditional\n",
      "| task | rounds | accepted | rate | a.len mean/std | pos accept |\n|---|---|---|---|---|---|\n"
      "| code | 220 | 538/660 | 81.52% | 3.45/0.01 | 90.5% 80.5% 73.6% |\n",
      "| **K** | Pos 0 (%) | Pos 1 (%) | tau |\n|---|:-:|---|---|\n| 2 | `73.0` | 52.0 | 2.25 |\n| Total | - | - | n/a "
      "|\n"};
}

std::vector<std::string> llama_cpp_logs() {
  return {
      "srv load: spawning server instance with name=m on port 41000\n"
      "[41000] 0.01 I slot print_timing: id 1 | task 0 |        eval time = 2296.72 ms / 256 tokens (8.97 ms per "
      "token)\n"
      "[41000] 0.02 I slot print_timing: id 1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 "
      "generated), "
      "mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n",
      "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n"
      "statistics draft-mtp: #calls(b,g,a) = 1 89 89, #gen drafts = 89, #acc drafts = 87, #gen tokens = 178, #acc "
      "tokens = "
      "170, #mean acc len = 2.91, #acc rate/pos = (0.978, 0.933), dur(b,g,a) = 0.009, 7596.425, 0.512 ms\n",
      "n_draft   = 2\nn_predict = 259\nn_drafted = 178\nn_accept  = 170\naccept    = 95.506%\n",
      "slot update_slots: id  3 | task 0 | accepted  2/ 3 draft tokens, new n_past = 21\n",
      "statistics draft-mtp: #calls(b,g,a) = 11 796 796, #gen drafts = 796, #acc drafts = 694, #gen tokens = 1585, "
      "#acc tokens = 1252 statistics ngram-mod: #calls(b,g,a) = 11 800 4, #gen drafts = 4, #acc drafts = 4, #gen "
      "tokens = 256, #acc tokens = 47\n",
      "  code_python        pred= 192 draft= 180 acc= 146 rate=0.811 tok/s=31.3\n",
      "MTP[1] finish=stop tokens=335 cycles=127 tok/cycle=2.64 accept=207/257 (80.5%) depth[d1=111/124,d2=77/107,"
      "d3=19/26] d0=3 emits[init=2,draft=207,bonus=76,verify=50]\n"
      "vlm_mtp stats: request=a rounds=605 accepted=418/1210 (34.5%) tokens_per_round=1.69 block_size=3\n",
      "Number of requests:             512\nNumber of concurrent requests:  7.9512\n[DT] AVERAGE: 324.00\n"
      "[ADT] AVERAGE: 92.90\n[AL] AVERAGE: 1.86\n"};
}

std::vector<std::string> server_logs() {
  return {
      "(EngineCore pid=42) INFO Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B', "
      "speculative_config=SpeculativeConfig(method='eagle3', model='a/b', num_spec_tokens=3), dtype=torch.bfloat16, "
      "tensor_parallel_size=2, quantization=fp8, kv_cache_dtype=auto\n"
      "Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: 4050.0 tokens/s, Running: 32 reqs\n"
      "SpecDecoding metrics: Mean acceptance length: 2.31, Accepted: 22960 tokens, Drafted: 52580 tokens, "
      "Per-position acceptance rate: 0.655, 0.410, 0.245\n",
      "[2026-11-20] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', quantization=None, tp_size=4, "
      "speculative_algorithm='EAGLE3', speculative_draft_model_path='c', speculative_num_steps=3, "
      "speculative_eagle_topk=1, speculative_num_draft_tokens=4)\n"
      "[TP0] Decode batch. #running-req: 8, #token: 5371, accept len: 2.50, gen throughput (token/s): 612.3\n",
      "server_args={'model_path': 'm', 'extra': {'tp_size': 99}, 'tp_size': 8, 'dp_size': 4, 'enable_dp_attention': "
      "True, 'quantization': 'modelopt_fp4', 'kv_cache_dtype': 'fp8_e4m3', 'speculative_algorithm': 'DFLASH', "
      "'speculative_num_steps': 1, 'speculative_num_draft_tokens': 16}\n"
      "[DP0 TP0] Load weight end. type=M, quant=fp8, mem usage=9.0 GB.\n"
      "[DP0 TP0] Decode batch, #running-req: 8, accept len: 2.50, gen throughput (token/s): 612.3, #queue-req: 0\n"
      "[DP1 TP2] Decode batch, #running-req: 4, accept len: 2.10, gen throughput (token/s): 312.3, #queue-req: 0\n",
      "> INFO 10:00:10 Engine 001: Avg prompt throughput: 0.0 tokens/s, Avg generation\n"
      "> throughput: 400.0 tokens/s, Running: 4 reqs\n"
      "| 10:00:10 | `SpecDecoding metrics: Mean acceptance length: 2.18, Current speculative depth: 1, Accepted\n"
      "throughput: 118.00 tokens/s, Drafted throughput: 220.00 tokens/s, Accepted: 1180 tokens, Drafted: 2200 tokens,\n"
      "Per-position acceptance rate: 0.700, 0.300, 0.180, Avg Draft acceptance rate: 53.6%` |\n"};
}

std::vector<FuzzedReader> fuzzed_readers(const std::string& folder) {
  std::ofstream(fs::path(folder) / "light.toml") << scenarios().back();
  std::ofstream(fs::path(folder) / "scenario.toml") << source_file("experiments/speedup_by_batch/scenario.toml");
  const std::vector<std::string> arrivals{"arrival_s,prompt_len,output_len\n0.0,100,20\n0.5,50,10\n0.5,7,1\n",
                                          "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n"
                                          "2023-11-16 18:15:50.95,396,109\n"};
  std::ofstream(fs::path(folder) / "arrivals.csv") << arrivals.front();
  const RooflineSetup setup = setup_of("Llama-3.1-8B", "H100", "vLLM");
  const auto points = [setup](const std::string& path) { read_speedup_points(path, setup); };
  // Reads a preset into its place of a setup, and times a step by it.
  const auto times_with = [&setup](void (*read)(RooflineSetup&, const std::string&)) {
    return [setup, read](const std::string& path) {
      RooflineSetup with = setup;
      read(with, path);
      time_step(with);
    };
  };
  return {
      {"npz", "arrays.npz", npz_archives(folder), read_arrays},
      {"npy", "array.npy", npy_members(), read_member},
      {"prometheus", "metrics.txt", prometheus_texts(), [](const std::string& path) { read_acceptance(path); }},
      {"server_log", "server.log", server_logs(),
       [](const std::string& path) {
         see_log(path);
         read_acceptance(path);
       }},
      {"llama_cpp_log", "llama.log", llama_cpp_logs(), [](const std::string& path) { read_acceptance(path); }},
      {"answers", "answers.json", server_answers(), [](const std::string& path) { read_acceptance(path); }},
      {"tokenizer_json", "tokenizer.json", tokenizers(), read_tokenizer},
      {"tokenizer_config", "tokenizer_config.json", tokenizer_configs(), read_tokenizer_config},
      {"json_schema", "schema.json", json_schemas(),
       [](const std::string& path) { supported_schema(std::string(InputFile(path).text()), path); }},
      {"gbnf",
       "grammar.gbnf",
       {"root ::= (\"a\\x41\" | [^b-d\\n]{2,3} item?)* # c\nitem ::= | . \"\\U0001F642\"\n"},
       [](const std::string& path) { ebnf_of_gbnf(std::string(InputFile(path).text()), path); }},
      {"speedup_csv", "speedups.csv", speedups_csv(), points},
      {"speedup_json", "speedups.json", speedups_json(), points},
      {"speedup_experiment", "experiment.toml", {source_file("experiments/speedup_by_batch/experiment.toml")}, points},
      {"speculate_resumed", "result.json", {speculate_table()}, resume_speculate},
      {"speculate_imported", "table.json", {speculate_table()}, import_speculate},
      {"preset_gpu", "gpu.toml", single_presets("sim/presets/gpus/gpus.toml", "gpu"),
       times_with([](RooflineSetup& with, const std::string& path) { with.gpu = find_gpu(path); })},
      {"preset_model", "model.toml", single_presets("sim/presets/models/others.toml", "model"),
       times_with([](RooflineSetup& with, const std::string& path) { with.model = find_model(path); })},
      {"preset_config_json",
       "config.json",
       {R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false})"},
       times_with([](RooflineSetup& with, const std::string& path) { with.model = find_model(path); })},
      {"preset_engine", "engine.toml", single_presets("sim/presets/engines/engines.toml", "engine"),
       times_with([](RooflineSetup& with, const std::string& path) { with.engine = find_engine(path); })},
      {"preset_drafter", "drafter.toml", single_presets("sim/presets/models/llama.toml", "model"),
       times_with([](RooflineSetup& with, const std::string& path) { with.drafter = find_drafter(path, with.model); })},
      {"scenario", "scenario_read.toml", scenarios(), read_scenario_file},
      {"grid", "grid.toml", grids(), read_grid},
      {"arrivals", "arrivals_read.csv", arrivals, [](const std::string& path) { read_arrivals_file(path); }},
      {"arrivals_jsonl",
       "arrivals.jsonl",
       {"{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500}\n{\"timestamp\": 27, \"input_length\": 7,"
        " \"output_length\": 1}\n"},
       [](const std::string& path) { read_arrivals_file(path); }},
      {"machine_profile", "machine.toml", {machine_profile()}, read_machine},
      {"step_cost",
       "step_cost.json",
       {R"({"source": "here", "context_len": 96, "passes": [{"rows": 1, "ms": 3.15}, {"rows": 8, "ms": 5.45}]})"},
       read_step_cost},
      head_config("head_eagle3", folder, speculators_eagle3()),
      head_config("head_dspark", folder, speculators_dspark()),
      head_config("head_dflash", folder, dflash_of_z_lab()),
      head_config("head_medusa", folder, medusa_of_vllm()),
      {"recorded_run",
       "run.jsonl",
       {R"({"prompt_tokens": [1, 2], "output_tokens": [3, 4, 5, 6], "temperature": 0.5, "cached_tokens": 1, )"
        R"("prefill_chunks": [1], "steps": [{"position": 3, "drafts": [4, 5, 7], "parents": [-1, 0, -1], )"
        R"("accepted": 2, "draft_probs": [0.5, 0.25, 1]}, {"position": 6, "drafts": [], "accepted": 0}]})"
        "\n"},
       read_drafts},
      {"head_gguf", "head.gguf", {eagle3_gguf().bytes(), dspark_gguf().bytes()}, read_head_gguf},
  };
}

}  // namespace draftproof::testing
