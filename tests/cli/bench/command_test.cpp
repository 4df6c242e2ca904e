// That the benchmark runs and says what it promises; never how fast anything is.
#include "engine/model/shipped_model.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "tests/support/test.hpp"

namespace {

ordered_json results_of(std::vector<std::string> options) {
  options.insert(options.begin(), {"bench", "--quick", "--json"});
  const ProgramResult run = run_draftproof(options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.err.empty());
  const auto document = ordered_json::parse(run.out);
  for (const char* key : {"version", "command", "machine", "pytorch", "llama_cpp"}) {
    INFO(key);
    CHECK(document.contains(key));
  }
  return document.at("results");
}

std::size_t count_of(const ordered_json& results, const std::string& name) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [&](const ordered_json& r) { return r.at("name") == name; }));
}

const ordered_json& first_of(const ordered_json& results, const std::string& name) {
  const auto found =
      std::find_if(results.begin(), results.end(), [&](const ordered_json& r) { return r.at("name") == name; });
  REQUIRE(found != results.end());
  return *found;
}

}  // namespace

TEST_CASE("bench measures everything it names and every number is finite") {
  const ordered_json results = results_of({"--threads", "1,2", "--repeat", "2"});
  for (const char* name : {"read_bandwidth", "chain_verify_probabilities", "chain_verify_logits_f32",
                           "chain_verify_logits_bf16", "chain_verify_logits_f32_one_hot"}) {
    INFO(name);
    CHECK(count_of(results, name) == 2);
  }
  for (const char* name :
       {"row_mass_scalar", "row_greedy", "row_sample_inverse", "row_sample_race", "row_sample_inverse_t0.7",
        "scheduler_b64", "row_top_k", "row_top_p", "row_min_p", "row_top_k_top_p"}) {
    INFO(name);
    CHECK(count_of(results, name) == 1);
  }
  for (const ordered_json& result : results) {
    INFO(result.dump());
    for (const char* key : {"ms", "ms_median"}) CHECK(result.at(key).get<double>() > 0.0);
    CHECK(result.at("ms") <= result.at("ms_median"));
    for (const char* key : {"ns_per_element", "bytes", "gb_per_s", "ratio_to_bandwidth", "ratio_to_mass_pass",
                            "ratio_to_one_row", "one_row_ms", "ratio_to_pytorch", "pytorch_ms", "ratio_to_llama_cpp",
                            "llama_cpp_ms", "acceptance_length", "message_bytes"}) {
      const ordered_json& value = result.at(key);
      CHECK((value.is_null() || (std::isfinite(value.get<double>()) && value.get<double>() > 0.0)));
    }
    CHECK(result.at("ratio_to_pytorch").is_null());  // --quick leaves PyTorch out
    CHECK(result.at("threads").get<int>() >= 1);
    for (const ordered_json& read : results)
      if (read.at("name") == "read_bandwidth" && read.at("threads") == result.at("threads") &&
          !result.at("bytes").is_null())
        CHECK(result.at("ratio_to_bandwidth").get<double>() ==
              Approx(result.at("gb_per_s").get<double>() / read.at("gb_per_s").get<double>()).epsilon(1e-5));
    if (result.at("goal").is_null()) CHECK(result.at("met").is_null());
  }
  // Two tiles, four devices each: exponents of the tiles and faults, sums, four shares and the token.
  CHECK(first_of(results, "row_sample_inverse_shards8").at("message_bytes") == 4 * 3 + 8 * 2 + 8 * 4 + 8);
}

TEST_CASE("bench measures products, steps, prefill and attention of a transformer on every instruction set") {
  const ordered_json results = results_of({"--threads", "2", "--repeat", "1", "--filter", "_rows_"});
  std::size_t sets = 0;
  for (const draftproof::TransformerKernels& kernels : draftproof::available_transformer_kernels()) {
    std::string set = kernels.target;
    if (set == "scalar") continue;
    ++sets;
    std::ranges::transform(set, set.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
    for (const std::string& name :
         {"products_q4_1_" + set + "_rows_32", "products_q6_k_" + set + "_rows_8",
          "step_context_256_" + set + "_rows_8", "attention_" + set + "_context_4096_rows_8"}) {
      INFO(name);
      const ordered_json& result = first_of(results, name);
      CHECK(result.at("bytes").get<std::uint64_t>() > 0);
      CHECK(result.at("ratio_to_one_row").get<double>() > 0.0);
    }
    CHECK(first_of(results, "products_q4_1_" + set + "_rows_1").at("ratio_to_one_row").is_null());
  }
  CHECK(count_of(results, "read_bandwidth") > 0);
  CHECK(results.size() >= sets * 25);
  CHECK(first_of(results_of({"--threads", "1", "--repeat", "1", "--filter", "prefill"}), "read_bandwidth")
            .at("threads") == 1);
}

TEST_CASE("bench counts the bytes that a verifier must read") {
  constexpr std::uint64_t kBatch = 4, kDraftLen = 3, kVocab = 8192;
  const ordered_json results = results_of({"--threads", "1", "--repeat", "1", "--filter", "chain_verify"});
  CHECK(count_of(results, "row_greedy") == 0);

  // One target row each, and a draft row where a draft was rejected.
  const auto probabilities = first_of(results, "chain_verify_probabilities").at("bytes").get<std::uint64_t>();
  CHECK(probabilities % (kVocab * 4) == 0);
  CHECK(probabilities >= kBatch * kVocab * 4);
  CHECK(probabilities <= 2 * kBatch * kVocab * 4);

  // As many target rows as tokens are emitted, and the same draft rows.
  const ordered_json& logits = first_of(results, "chain_verify_logits_f32");
  const auto emitted = static_cast<std::uint64_t>(std::lround(logits.at("acceptance_length").get<double>() * kBatch));
  CHECK(emitted >= kBatch);
  CHECK(emitted <= kBatch * (kDraftLen + 1));
  CHECK(logits.at("bytes").get<std::uint64_t>() == emitted * kVocab * 4 + (probabilities - kBatch * kVocab * 4));
  CHECK(logits.at("goal") == "ratio_to_mass_pass <= 1.15");
  CHECK(logits.at("met").get<bool>() == (logits.at("ratio_to_mass_pass").get<double>() <= 1.15));
}

TEST_CASE("bench prints a table and writes the document to the file that it is given") {
  const TemporaryFolder folder;
  const std::string path = folder.file("bench.json");
  const ProgramResult run =
      run_draftproof({"bench", "--quick", "--threads", "1", "--repeat", "1", "--filter", "row_mass", "--out", path});
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("row_mass_scalar") != std::string::npos);
  CHECK(run.out.find("ns/element") != std::string::npos);
  // Numbers end where the words of their columns end.
  std::istringstream lines(run.out);
  std::string head, line;
  REQUIRE(std::getline(lines, head));
  int rows = 0;
  while (std::getline(lines, line) && !line.empty()) {
    INFO(head << '\n' << line);
    for (const std::string column : {"threads", " ms", "median", "ns/element", "GB/s", "x llama.cpp"}) {
      const std::size_t end = head.find(column) + column.size();
      REQUIRE(line.size() >= end);
      CHECK(line[end - 1] != ' ');
      CHECK((line.size() == end || line[end] == ' '));
    }
    ++rows;
  }
  CHECK(rows >= 2);
  std::ifstream file(path);
  const auto document = ordered_json::parse(file);
  CHECK(count_of(document.at("results"), "row_mass_scalar") == 1);
}

TEST_CASE("bench sets policy auto beside plain decoding of the shipped model, with intervals and where the time went") {
  if (!draftproof::has_shipped_model()) return;
  const ProgramResult run =
      run_draftproof({"bench", "--quick", "--json", "--threads", "1", "--repeat", "3", "--filter", "policy_b1_suffix"});
  REQUIRE(run.exit_code == 0);
  const auto document = ordered_json::parse(run.out);
  const ordered_json& result = first_of(document.at("results"), "policy_b1_suffix");
  const ordered_json& ratios = result.at("ratio_to_plain");
  for (const char* key : {"clock", "cpu"}) {
    INFO(ratios.dump());
    CHECK(ratios.at(key).at("low") <= ratios.at(key).at("ratio"));
    CHECK(ratios.at(key).at("ratio") <= ratios.at(key).at("high"));
    CHECK(ratios.at(key).at("low").get<double>() > 0.0);
  }
  CHECK(ratios.at("instructions").is_null() != ratios.at("why_no_instructions").is_null());
  CHECK(result.at("goal") == "ratio_to_plain_low >= 0.98");
  CHECK(result.at("plain_steps").at("draft_ms") == 0.0);
  CHECK(result.at("policy_steps").at("verify_ms").get<double>() > 0.0);
}

TEST_CASE("bench refuses options that measure nothing") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--filter", "no such thing"},
                                                  {"--threads", "0"},
                                                  {"--repeat", "0"},
                                                  {"--pytorch", "maybe"},
                                                  {"--llama-cpp", "on"}}) {  // --quick leaves out what it is for
    std::vector<std::string> arguments{"bench", "--quick"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    check_refused(arguments, {options[0]});
  }
}
