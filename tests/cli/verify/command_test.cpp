// draftproof verify as its users meet it: files in, tokens and findings out; and Python's word on what is right.
#include <boost/multiprecision/cpp_int.hpp>

#include "base/archives/safetensors.hpp"
#include "base/archives/sha256.hpp"
#include "reference/step/batch.hpp"
#include "reference/trace/trace.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

ordered_json verify_json(std::vector<std::string> arguments, int exit_code = 0) {
  arguments.insert(arguments.begin(), "verify");
  arguments.emplace_back("--json");
  const ProgramResult result = run_draftproof(arguments);
  INFO(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(result.err.empty() == (exit_code == 0));
  return ordered_json::parse(result.out);
}

void check_error(std::vector<std::string> arguments, const std::vector<std::string>& words) {
  arguments.insert(arguments.begin(), "verify");
  check_refused(arguments, words);
}

TEST_CASE("verify answers with the tokens that the API gives") {
  const TemporaryFolder folder;
  const std::string path = ragged_trace(make_batch(50, 33, 3)).write(folder.file("t.safetensors"));
  const Trace trace = Trace::open(path);
  const auto emissions = verify_batch(trace.requests(), trace.verify_options(), 1);
  const ordered_json document = verify_json({path});
  CHECK(document.at("input").at("sha256") == sha256_hex(read_whole_file(path)));
  CHECK(document.at("input").at("layout") == "ragged");
  CHECK(document.at("input").at("proposal") == "draft_probs");
  CHECK(document.at("vocab_size") == 33);
  CHECK(document.at("requests") == 50);
  CHECK(document.at("seed").is_null());
  CHECK(document.at("options").at("sampler") == "inverse");
  CHECK(document.at("impossible_drafts").at("count") == 0);
  CHECK(document.at("comparison").is_null());
  REQUIRE(document.at("output_tokens").size() == 50);
  std::int64_t accepted = 0;
  std::int64_t emitted = 0;
  for (std::size_t b = 0; b < 50; ++b) {
    CHECK(document.at("output_tokens")[b] == ordered_json(emissions[b].tokens));
    accepted += emissions[b].num_accepted;
    emitted += static_cast<std::int64_t>(emissions[b].tokens.size());
  }
  CHECK(document.at("accepted") == accepted);
  CHECK(document.at("tokens") == emitted);
  CHECK(document.at("tokens_per_step").get<double>() == static_cast<double>(emitted) / 50.0);
}

TEST_CASE("acceptance is counted over requests with drafts and by position over those with a draft there") {
  // Greedy rows of argmax 1: all 1s stand. Drafts: [1 1], [1 0], [0], [].
  const TemporaryFolder folder;
  TraceBuilder trace;
  std::vector<float> rows;
  for (int i = 0; i < 9; ++i) rows.insert(rows.end(), {0.0f, 1.0f});
  trace.set("target_logits", {9, 2}, rows).set("temperature", std::vector<float>(4, 0.0f));
  trace.set("draft_tokens", std::vector<std::int32_t>{1, 1, 1, 0, 0});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>{2, 4, 5, 5});
  const std::string path = trace.write(folder.file("t.safetensors"));
  const ordered_json document = verify_json({path});
  CHECK(document.at("output_tokens") == ordered_json({{1, 1, 1}, {1, 1}, {1}, {1}}));
  CHECK(document.at("acceptance_by_position").at("conditional") == ordered_json({2.0 / 3.0, 0.5}));
  CHECK(document.at("acceptance_by_position").at("unconditional") == ordered_json({0.5, 0.25}));
  CHECK(document.at("acceptance_rate") == 0.6);
  CHECK(document.at("acceptance_length") == 2.0);
  CHECK(document.at("tokens_per_step") == 1.75);
  CHECK(document.at("tokens_per_step_formula").get<double>() == Approx(2.0).epsilon(1e-14));
  const ProgramResult text = run_draftproof({"verify", path});
  CHECK(text.exit_code == 0);
  for (const char* part : {"3 of 5", "1.7500", "2.0000", "0.6667", "0.2500", "ragged", "one-hot"})
    CHECK_THAT(text.out, Contains(part));
}

TEST_CASE("lossy rules on the steps of a trace pay in proportion to what they let through") {
  const TemporaryFolder folder;
  const std::string path = ragged_trace(make_batch(50, 33, 3)).write(folder.file("t.safetensors"));
  const ordered_json document = verify_json({path, "--lossy", "--table", folder.file("lossy.csv")});
  std::map<std::string, std::pair<double, double>> rules;
  for (const ordered_json& rule : document.at("lossy"))
    rules[rule.at("verifier").get<std::string>()] = {rule.at("accepted_per_step").get<double>(),
                                                     rule.at("distance").get<double>()};
  CHECK(rules.size() == 15);
  CHECK(rules["chain"].second == 0.0);
  CHECK(rules["chain"].first * document.at("drafts").get<double>() == Approx(document.at("accepted").get<double>()));
  CHECK(rules["ensemble:weight=0.7"].second == Approx(3.0 * rules["ensemble:weight=0.9"].second));
  CHECK(rules["synthetic:rate=0.7"].second == Approx(7.0 * rules["ensemble:weight=0.9"].second));
  CHECK(rules["ensemble:weight=0.5"].first > rules["chain"].first);
  CHECK(read_whole_file(folder.file("lossy.csv")).starts_with("verifier,accepted_per_step,distance"));
  check_error({path, "--table", folder.file("x.csv")}, {"--table: has no use without --lossy"});
}

TEST_CASE("guidance of probabilities is a setting whose distance is stated for every guided row") {
  // Rows of bug B104 at scale 2, and at scale 1, which is off.
  const TemporaryFolder folder;
  TraceBuilder trace;
  const float masked = -kInfinity;
  const float two = std::log(2.0f);
  const std::vector<float> conditional{std::log(3.0f), two, masked, masked};
  const std::vector<float> unconditional{0.0f, two, masked, two};
  std::vector<float> both = conditional, other = unconditional;
  both.insert(both.end(), conditional.begin(), conditional.end());
  other.insert(other.end(), unconditional.begin(), unconditional.end());
  trace.set("target_logits", {2, 4}, both).set("uncond_logits", {2, 4}, other);
  trace.set("guidance_scale", std::vector<float>{2, 1}).set("draft_tokens", std::vector<Token>{});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>{0, 0});
  trace.set("logprob_token_ids", std::vector<Token>{2}).set("cu_logprob_token_ids", std::vector<std::int32_t>{1, 1});
  const std::string path = trace.write(folder.file("t.safetensors"));
  const ordered_json exact = verify_json({path});
  CHECK(exact.at("options").at("guidance_form") == "logits");
  CHECK(exact.at("guidance").is_null());
  const ordered_json found =
      verify_json({path, "--guidance-form", "probabilities", "--out", folder.file("r")}).at("guidance");
  CHECK(found.at("rows") == 1);
  CHECK(found.at("distances")[0] == found.at("distance_max"));
  CHECK(found.at("mean_distance") == found.at("distance_max"));
  CHECK(found.at("distances")[1].is_null());
  CHECK(found.at("distance_max").get<double>() == Approx(9.917355e-11).epsilon(1e-4));
  // The token that both rows forbid has 1e-10 over the sum of c^2 / u, 11 / 5.
  CHECK(SafetensorsFile::open(folder.file("r")).tensor("token_id_logprob").as<float>()[0] ==
        Approx(std::log(1e-10 / 2.2)).epsilon(1e-6));
  trace.metadata("guidance_form", "probabilities").write(path);
  CHECK(verify_json({path}).at("guidance") == found);
  CHECK_THAT(run_draftproof({"verify", path}).out,
             Contains("of probabilities, off the exact one by 9.92e-11 on average over 1 rows, 9.92e-11 at most"));
  check_error({path, "--guidance-form", "p"}, {"--guidance-form", "known: logits, probabilities"});
  trace.drop("uncond_logits").set("guidance_scale", std::vector<float>{1, 1}).write(path);
  check_error({path, "--guidance-form", "logits"}, {"--guidance-form: would have no effect: ", "no uncond_logits"});
}

TEST_CASE("drafts that were drawn otherwise than the trace says are a finding with the distance that they cost") {
  // p = (1/2, 1/2), q = (1/4, 3/4). Argmax drafts are always token 1; it stands with probability 2/3, so token 1 comes
  // out 1/6 too often.
  const TemporaryFolder folder;
  TraceBuilder trace;
  trace.set("target_logits", {2, 2}, std::vector<float>{0.0f, 0.0f, 0.0f, 0.0f});
  trace.set("draft_logits", {1, 2}, std::vector<float>{0.0f, 1.0986123f});
  trace.set("draft_tokens", std::vector<std::int32_t>{1});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>{1});
  const std::string path = trace.write(folder.file("t.safetensors"));
  CHECK(verify_json({path}).at("consistency").is_null());
  const ordered_json same = verify_json({path, "--drafted-temperature", "1"}).at("consistency");
  CHECK(same.at("distribution_changes") == false);
  CHECK(same.at("acceptance").get<double>() == Approx(0.75).epsilon(1e-5));
  const ordered_json argmax = verify_json({path, "--drafted-temperature", "0"}, 1).at("consistency");
  CHECK(argmax.at("distribution_changes") == true);
  CHECK(argmax.at("acceptance").get<double>() == Approx(2.0 / 3).epsilon(1e-5));
  CHECK(argmax.at("total_variation").get<double>() == Approx(1.0 / 6).epsilon(1e-5));
  check_error({path, "--drafted-top-p", "1.5"}, {"--drafted-top-p", "(0, 1]"});
}

TEST_CASE("the result does not depend on threads or vector instructions and is compared with itself") {
  const TemporaryFolder folder;
  const std::string path = ragged_trace(make_batch(80, 70, 3)).write(folder.file("t.safetensors"));
  const std::string out = folder.file("r.safetensors");
  const ordered_json first = verify_json({path, "--threads", "1", "--out", out});
  CHECK(verify_json({path, "--threads", "2"}).at("digest") == first.at("digest"));
  CHECK(verify_json({path, "--simd", "scalar"}).at("digest") == first.at("digest"));
  CHECK(verify_json({path, "--sampler", "race"}).at("digest") != first.at("digest"));
  const SafetensorsFile result = SafetensorsFile::open(out);
  CHECK(result.metadata().at("digest") == first.at("digest").get<std::string>());
  CHECK(result.metadata().at("input_sha256") == sha256_hex(read_whole_file(path)));
  CHECK(result.metadata().at("version") == first.at("version").get<std::string>());
  CHECK(result.metadata().at("convention") == "draftproof");
  CHECK(result.metadata().count("seed") == 0);

  const ordered_json same = verify_json({path, "--compare", out}).at("comparison");
  CHECK(same.at("differing_requests") == 0);
  CHECK(same.at("same_input") == true);
  CHECK(same.at("first").is_null());
  const ordered_json other = verify_json({path, "--compare", out, "--sampler", "race"}, 1).at("comparison");
  CHECK(other.at("differing_requests") > 0);
  CHECK(other.at("first").at("tensor") == "output_tokens");
  CHECK(other.at("first").at("ours") != other.at("first").at("theirs"));
  const ProgramResult text = run_draftproof({"verify", path, "--compare", out, "--sampler", "race"});
  CHECK(text.exit_code == 1);
  CHECK_THAT(text.err, Contains("warning") && Contains("output_tokens[") && Contains(out));
}

TEST_CASE("a run seed draws what its derived seeds draw and is refused where the trace has its own") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(40, 33, 3);
  const std::string seeded = ragged_trace(batch).write(folder.file("seeded.safetensors"));
  const std::string path = ragged_trace(batch).drop("seed").write(folder.file("t.safetensors"));
  const std::string out = folder.file("r.safetensors");
  const ordered_json seven = verify_json({path, "--seed", "7", "--out", out});
  CHECK(seven.at("seed") == 7);
  CHECK(SafetensorsFile::open(out).metadata().at("seed") == "7");
  CHECK(verify_json({path}).at("seed") == 0);
  CHECK(verify_json({path}).at("digest") != seven.at("digest"));
  const std::string named = ragged_trace(batch).drop("seed").metadata("seed", "7").write(folder.file("n.safetensors"));
  CHECK(verify_json({named}).at("digest") == seven.at("digest"));
  check_error({seeded, "--seed", "7"}, {"--seed", "would have no effect", seeded});
}

TEST_CASE("what says how drafts were drawn is refused without draft logits, and a convention without coins") {
  const TemporaryFolder folder;
  const std::string path = ragged_trace(make_batch(3, 33, 3)).write(folder.file("t.safetensors"));
  for (const char* option :
       {"--drafted-temperature", "--drafted-top-k", "--drafted-top-p", "--drafted-min-p", "--draft-processed"})
    check_error({path, option, "1"}, {std::string(option) + ": would have no effect: ", path + " has no draft_logits"});
  for (const char* verifier : {"naive", "coupled", "target_only"})
    check_error({path, "--verifier", verifier, "--convention", "sglang"},
                {"--convention: would have no effect: verifier " + std::string(verifier) + " throws no coins"});
  CHECK_FALSE(verify_json({path, "--verifier", "block", "--convention", "sglang"}).empty());
}

TEST_CASE("settings that are not known and files that lie are one line and exit code 2") {
  const TemporaryFolder folder;
  const std::string path = ragged_trace(make_batch(3, 33, 3)).write(folder.file("t.safetensors"));
  check_error({path, "--sampler", "mass"}, {"--sampler", "'mass'", "inverse, race"});
  check_error({path, "--filter-order", "x"}, {"--filter-order", "joint, top_k_first"});
  check_error({path, "--nan-policy", "zero"}, {"--nan-policy", "error, as_minus_inf"});
  check_error({path, "--draft-processed", "2"}, {"--draft-processed", "0, 1"});
  check_error({path, "--seed", "x"}, {"--seed", "[0, 2^64)"});
  check_error({path, "--simd", "MMX"}, {"MMX", "scalar"});
  check_error({path, "--threads", "0"}, {"--threads"});
  check_error({folder.file("absent")}, {"absent"});
  check_error({path, "--out", path}, {"--out", "is the same file as the input trace"});
  check_error({path, "--compare", path}, {"'output_tokens'"});
  check_error({path, "--out", folder.file("no/such/folder")}, {"no/such/folder"});
}

TEST_CASE("a bad logit is named with its file and row") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  std::vector<float> rows(12, 0.0f);
  rows[9] = std::numeric_limits<float>::quiet_NaN();
  trace.set("target_logits", {4, 3}, rows).set("draft_tokens", std::vector<std::int32_t>{1, 1});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>{1, 2});
  const std::string path = trace.write(folder.file("t.safetensors"));
  check_error({path}, {path, "row 3", "column 0", "NaN"});
  CHECK(verify_json({path, "--nan-policy", "as_minus_inf"}).at("options").at("nan_policy") == "as_minus_inf");
}

TEST_CASE("drafts that the proposal distribution cannot produce are a finding") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  trace.set("target_probs", {3, 2}, std::vector<float>(6, 0.5f));
  trace.set("draft_probs", {2, 2}, std::vector<float>{0.5f, 0.5f, 1.0f, 0.0f});
  trace.set("draft_tokens", std::vector<std::int32_t>{1, 1}).set("cu_num_draft_tokens", std::vector<std::int32_t>{2});
  const std::string path = trace.write(folder.file("t.safetensors"));
  const ordered_json document = verify_json({path}, 1);
  CHECK(document.at("impossible_drafts") ==
        ordered_json({{"count", 1}, {"first", {{"request", 0}, {"position", 1}, {"token", 1}}}}));
  const ProgramResult text = run_draftproof({"verify", path});
  CHECK(text.exit_code == 1);
  CHECK_THAT(text.err, Contains("1 draft") && Contains("probability 0") && Contains("request 0 at position 1"));
}

TEST_CASE("rows that do not sum to one are refused unless the check is left out") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  trace.set("target_probs", {1, 2}, std::vector<float>{0.5f, 0.25f});
  trace.set("draft_tokens", std::vector<std::int32_t>{}).set("cu_num_draft_tokens", std::vector<std::int32_t>{0});
  const std::string path = trace.write(folder.file("t.safetensors"));
  check_error({path}, {"row 0 of target_probs: ", "sum to 0.75"});
  CHECK(verify_json({path, "--no-row-check"}).at("tokens") == 1);
}

TEST_CASE("tensors that decide nothing beside final probabilities are listed") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  trace.set<float>("target_probs", {1, 2}, {0.5f, 0.5f}).set<float>("top_p", {0.5f}).set<float>("typical_p", {1.0f});
  trace.set<std::int32_t>("draft_tokens", {0}, {}).set<std::int32_t>("cu_num_draft_tokens", {0});
  const std::string path = trace.write(folder.file("t"));
  CHECK(verify_json({path}).at("input").at("unused_tensors") == ordered_json{"typical_p", "top_p"});
  CHECK_THAT(run_draftproof({"verify", path}).out, Contains("tensors not used    typical_p, top_p"));
  trace.drop("target_probs").set<float>("target_logits", {1, 2}, {0, 0}).write(path);
  CHECK(verify_json({path}).at("input").at("unused_tensors").empty());
}

TEST_CASE("the empty trace gives an empty result") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  trace.set("target_logits", {0, 9}, std::vector<float>{}).set("draft_tokens", std::vector<std::int32_t>{});
  trace.set("cu_num_draft_tokens", std::vector<std::int64_t>{});
  const std::string path = trace.write(folder.file("t.safetensors"));
  const ordered_json document = verify_json({path, "--out", folder.file("r.safetensors")});
  CHECK(document.at("requests") == 0);
  CHECK(document.at("acceptance_length").is_null());
  CHECK(document.at("output_tokens") == ordered_json::array());
  CHECK(run_draftproof({"verify", path}).exit_code == 0);
}

// A Python that imports these modules, or nothing.
std::optional<std::string> python_with(const std::string& modules) {
  std::vector<std::string> candidates = {"python3", "/usr/bin/python3"};
  if (const char* const chosen = std::getenv("DRAFTPROOF_PYTHON")) candidates.insert(candidates.begin(), chosen);
  for (const std::string& python : candidates) {
    if (run_command({"sh", "-c", "exec \"$0\" -c \"import " + modules + "\"", python}).exit_code == 0) return python;
  }
  return std::nullopt;
}

TEST_CASE("what verify emits where chance has no say is what Python computes") {
  const std::optional<std::string> python = python_with("numpy, safetensors");
  if (!python) {
    WARN("SKIPPED: no Python with numpy and safetensors; name one in DRAFTPROOF_PYTHON");
    return;
  }
  const TemporaryFolder folder;
  const std::string script = std::string(DRAFTPROOF_SOURCE_DIR) + "/tests/reference/trace/make_trace.py";
  const ProgramResult written = run_command({*python, script, "write", folder.path()});
  INFO(written.err);
  REQUIRE(written.exit_code == 0);
  const std::array names = {"greedy_with_every_edit", "certain_coins", "one_hot_drafts", "no_requests"};
  for (const std::string name : names) {
    const ProgramResult verified = run_draftproof(
        {"verify", folder.file(name + ".safetensors"), "--out", folder.file(name + ".result.safetensors")});
    INFO(verified.err);
    CHECK(verified.exit_code == 0);
  }
  const ProgramResult checked = run_command({*python, script, "check", folder.path()});
  INFO(checked.err);
  CHECK(checked.exit_code == 0);
  // The script can tell: with another result in its place it complains.
  write_whole_file(folder.file("one_hot_drafts.result.safetensors"),
                   read_whole_file(folder.file("certain_coins.result.safetensors")));
  CHECK_THAT(run_command({*python, script, "check", folder.path()}).err, Contains("one_hot_drafts: output_tokens"));
}

TEST_CASE("the example of the documentation runs and verifies") {
  const std::string text = read_whole_file(std::string(DRAFTPROOF_SOURCE_DIR) + "/docs/trace.md");
  const std::string fence = "```python\n";
  const std::size_t begin = text.find(fence) + fence.size();
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  CHECK(std::count(example.begin(), example.end(), '\n') == 10);
  const std::optional<std::string> python = python_with("torch, safetensors.torch");
  if (!python) {
    WARN("SKIPPED: no Python with torch and safetensors; name one in DRAFTPROOF_PYTHON");
    return;
  }
  const TemporaryFolder folder;
  write_whole_file(folder.file("example.py"), example);
  const ProgramResult ran = run_command({"sh", "-c", "cd \"$0\" && exec \"$1\" example.py", folder.path(), *python});
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const ordered_json document = verify_json({folder.file("step.safetensors")});
  CHECK(document.at("requests") == 3);
  CHECK(document.at("draft_tokens") == 5);
  CHECK(document.at("vocab_size") == 1000);
  CHECK(document.at("input").at("proposal") == "draft_logits");
}

using Fraction = boost::multiprecision::cpp_rational;

// A step as vLLM's rejection sampler has it, beside what it emits by its own rules, over fractions: for each request
//   drafts in order     accepted iff q > 0 and p / q >= u, u a float64 number of [0, 1)
//   the first rejected  the recovered token, argmax of max(p - q, 0) / noise with a row of exponential noise a request
//   none                the bonus token
struct VllmStep {
  std::vector<float> target, proposal, noise;
  std::vector<double> uniforms;
  std::vector<Token> drafts, recovered, bonus, output;
  std::vector<std::int64_t> cu_draft;
  std::vector<std::int32_t> num_accepted;
  std::uint64_t requests = 0;
  static constexpr std::uint64_t kVocab = 6;
  static constexpr std::uint64_t kWidth = 4;

  explicit VllmStep(std::uint64_t count) : requests(count) {
    std::mt19937 bits(77);
    const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(bits() % n); };
    for (std::uint64_t b = 0; b < count; ++b) {
      const std::size_t draft_len = below(4);
      std::vector<Token> emitted;
      std::size_t accepted = 0;
      bool rejected = false;
      std::vector<float> row_noise;
      for (std::uint64_t t = 0; t < kVocab; ++t) row_noise.push_back(0.125f * static_cast<float>(1 + below(20)));
      for (std::size_t i = 0; i <= draft_len; ++i) {
        const std::vector<float> p = row(below);
        target.insert(target.end(), p.begin(), p.end());
        if (i == draft_len) break;
        const std::vector<float> q = row(below);
        proposal.insert(proposal.end(), q.begin(), q.end());
        std::size_t token = below(kVocab);
        while (q[token] == 0.0f) token = below(kVocab);
        drafts.push_back(static_cast<Token>(token));
        // Sixteenths, so that p / q = u happens.
        uniforms.push_back(below(3) == 0 ? static_cast<double>(below(16)) / 16.0
                                         : static_cast<double>(bits()) * 0x1p-32);
        recovered.push_back(argmax(p, q, row_noise));
        if (rejected) continue;
        rejected = Fraction(p[token]) / Fraction(q[token]) < Fraction(uniforms.back());
        emitted.push_back(rejected ? recovered.back() : drafts.back());
        accepted += rejected ? 0 : 1;
      }
      bonus.push_back(
          static_cast<Token>(std::max_element(target.end() - kVocab, target.end()) - (target.end() - kVocab)));
      if (!rejected) emitted.push_back(bonus.back());
      emitted.resize(kWidth, kPaddingToken);
      output.insert(output.end(), emitted.begin(), emitted.end());
      noise.insert(noise.end(), row_noise.begin(), row_noise.end());
      cu_draft.push_back(static_cast<std::int64_t>(drafts.size()));
      num_accepted.push_back(static_cast<std::int32_t>(accepted));
    }
  }

  TraceBuilder trace() const {
    TraceBuilder builder;
    builder.set("target_probs", {drafts.size() + requests, kVocab}, target)
        .set("draft_probs", {drafts.size(), kVocab}, proposal)
        .set("draft_tokens", drafts)
        .set("cu_num_draft_tokens", cu_draft)
        .set("uniforms", uniforms)
        .set("recovered_tokens", recovered)
        .set("bonus_tokens", bonus)
        .set("output_tokens", {requests, kWidth}, output)
        .set("num_accepted", num_accepted)
        .metadata("convention", "vllm_v1");
    return builder;
  }

 private:
  // Probabilities in sixteenths; some are zero.
  template <class Below>
  static std::vector<float> row(const Below& below) {
    std::vector<float> p(kVocab, 0.0f);
    for (int i = 0; i < 16; ++i) p[below(i % 2 == 0 ? kVocab : kVocab - 1)] += 0.0625f;
    return p;
  }
  static Token argmax(const std::vector<float>& p, const std::vector<float>& q, const std::vector<float>& noise) {
    Token best = 0;
    Fraction best_score = -1;
    for (std::size_t t = 0; t < kVocab; ++t) {
      const Fraction score = Fraction(std::max(p[t] - q[t], 0.0f)) / Fraction(noise[t]);
      if (score > best_score) best = static_cast<Token>(t), best_score = score;
    }
    return best;
  }
};

}  // namespace

TEST_CASE("steps of vLLM's rejection sampler are replayed bit for bit with its own numbers") {
  const TemporaryFolder folder;
  const VllmStep step(400);
  const std::string path = step.trace().write(folder.file("vllm.safetensors"));
  const ordered_json same = verify_json({path});
  CHECK(same.at("recorded") == ordered_json{"uniforms", "recovered_tokens", "bonus_tokens"});
  CHECK(same.at("comparison").at("differing_requests") == 0);
  CHECK(same.at("comparison").at("tensors") == ordered_json{"output_tokens", "num_accepted"});
  CHECK(same.at("departure").is_null());
  CHECK(same.at("seed").is_null());
  CHECK(same.at("accepted").get<int>() > 100);
  CHECK(same.at("accepted").get<int>() < same.at("draft_tokens").get<int>() - 100);

  // The recovered tokens themselves from the rows of noise.
  const std::string noisy = step.trace()
                                .drop("recovered_tokens")
                                .set("exponential_noise", {step.requests, VllmStep::kVocab}, step.noise)
                                .write(folder.file("noise.safetensors"));
  CHECK(verify_json({noisy}).at("comparison").at("differing_requests") == 0);
  int replays = 0;

  // The audit finds the same of the same file.
  const ordered_json audited = ordered_json::parse(run_draftproof({"audit", path, "--json"}).out);
  for (const ordered_json& test : audited.at("tests")) {
    if (test.at("name") != "replay") continue;
    CHECK(test.at("n") == 400);
    CHECK(test.at("statistic") == 0.0);
    ++replays;
  }
  CHECK(replays == 1);

  // Ties are there: by the strict rule some of them fall otherwise.
  const ordered_json strict = verify_json({path, "--convention", "sglang"}, 1);
  CHECK(strict.at("comparison").at("differing_requests").get<int>() > 3);
  CHECK(strict.at("departure").at("decision") == "coin");
  CHECK(strict.at("departure").at("distance") == 0.0);
  const ProgramResult text = run_draftproof({"verify", path, "--convention", "sglang"});
  CHECK_THAT(text.out, Contains("replayed with       uniforms, recovered_tokens, bonus_tokens"));
  CHECK_THAT(text.err, Contains("has p = ") && Contains(", u = ") &&
                           Contains("it is rejected, and the engine accepted it; they are 0 apart"));
}

TEST_CASE("a request that does not follow its recorded numbers is named with its position and decision") {
  const TemporaryFolder folder;
  VllmStep step(60);
  // One request whose first draft was accepted says that it was rejected.
  std::size_t b = 0;
  std::size_t draft = 0;
  while (step.num_accepted[b] == 0 || step.output[4 * b] == step.recovered[draft])
    draft = static_cast<std::size_t>(step.cu_draft[b++]);
  step.output[4 * b] = step.recovered[draft];
  std::fill_n(step.output.begin() + static_cast<std::ptrdiff_t>(4 * b) + 1, 3, kPaddingToken);
  step.num_accepted[b] = 0;
  const ordered_json found = verify_json({step.trace().write(folder.file("t.safetensors"))}, 1);
  const ordered_json& departure = found.at("departure");
  const auto at = [](const std::vector<float>& rows, std::size_t row, Token token) {
    return static_cast<double>(rows[row * VllmStep::kVocab + static_cast<std::size_t>(token)]);
  };
  CHECK(departure.at("request") == b);
  CHECK(departure.at("position") == 0);
  CHECK(departure.at("p") == at(step.target, draft + b, step.drafts[draft]));
  CHECK(departure.at("q") == at(step.proposal, draft, step.drafts[draft]));
  CHECK(departure.at("u") == step.uniforms[draft]);
  CHECK(departure.at("ours") == true);
  CHECK(departure.at("theirs") == false);
  CHECK_THAT(found.at("findings").back().get<std::string>(), Contains("request " + std::to_string(b) + ", draft "));
}

TEST_CASE("recorded numbers that are none, or fit nothing, are one line and exit code 2") {
  const TemporaryFolder folder;
  const VllmStep step(20);
  int files = 0;
  const auto refused = [&](TraceBuilder trace, const std::vector<std::string>& words,
                           const std::vector<std::string>& flags = {}) {
    const std::string path = trace.write(folder.file("bad" + std::to_string(files++) + ".safetensors"));
    std::vector<std::string> arguments{path};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    check_error(arguments, words);
  };
  std::vector<double> uniforms = step.uniforms;
  uniforms[3] = std::numeric_limits<double>::quiet_NaN();
  refused(step.trace().set("uniforms", uniforms), {"uniforms[", "] is nan", "expected a number in [0, 1]", "request "});
  uniforms[3] = 1.5;
  refused(step.trace().set("uniforms", uniforms), {"uniforms[", "] is 1.5", "expected a number in [0, 1]"});
  uniforms.pop_back();
  refused(step.trace().set("uniforms", uniforms), {"'uniforms'", "has shape", "expected [M] or [N]"});
  refused(step.trace().drop("uniforms"), {"has no uniforms; expected them, since verifier chain throws coins"});
  refused(step.trace().drop("bonus_tokens"), {"has no recorded numbers for the last token of a step; expected "});
  refused(step.trace(), {"has recovered_tokens or bonus_tokens, and verifier rrs does not take them"},
          {"--verifier", "rrs"});
  refused(step.trace(), {"takes no recorded randomness; expected one of chain, block"},
          {"--verifier", "greedy_multipath"});
  refused(step.trace(), {"--seed", "would have no effect"}, {"--seed", "1"});
  refused(step.trace().set("gumbel_noise", {2, 2}, std::vector<float>(4)),
          {"'gumbel_noise'", "expected [N, V] or [B, V]"});
  refused(step.trace().set("bonus_tokens", std::vector<Token>(20, 6)), {"'bonus_tokens'", "expected ids in [0, 6)"});
  refused(step.trace().set("uniforms", std::vector<std::int32_t>(step.uniforms.size())),
          {"'uniforms'", "has dtype I32"});
  // Some rejection emits a token that its residual cannot produce.
  std::vector<Token> recovered = step.drafts;
  refused(
      step.trace().set("recovered_tokens", recovered),
      {"the recorded recovered token ", " has no mass in what it was drawn from; expected a token of the residual"});
}
