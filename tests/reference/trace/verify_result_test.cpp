// The result's tensors against emissions written by hand, and comparison with other results.
#include "reference/trace/result_comparison.hpp"

#include "base/archives/safetensors.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

// Three requests: 2 drafts of which the first stands, none, and 1 draft that stands.
VerifyResult hand_made_result() {
  static const std::vector<Token> kDrafts = {7, 8, 9};
  std::vector<VerifyRequest> requests(3);
  requests[0].draft = DraftTree::chain(std::span(kDrafts).first(2));
  requests[2].draft = DraftTree::chain(std::span(kDrafts).last(1));
  const std::vector<Emission> emissions = {
      {1, {0}, {7, 5}, {-0.5f, -1.5f}, {-0.25f, -2.0f}, {1.0f, 0.75f, 0.5f}, {4, 3, 2}},
      {0, {}, {6}, {-3.0f}, {-4.0f}, {0.125f}, {1}},
      {1, {0}, {9, 0}, {0.0f, -1.0f}, {-1.0f, -1.25f}, {1.0f, 1.0f}, {9, 10}}};
  return collect_result(requests, emissions);
}

TEST_CASE("emissions become padded tensors in the order of the requests") {
  const VerifyResult result = hand_made_result();
  CHECK(result.width == 3);
  CHECK(result.output_tokens == std::vector<Token>{7, 5, -1, 6, -1, -1, 9, 0, -1});
  CHECK(result.num_accepted == std::vector<std::int32_t>{1, 0, 1});
  CHECK(result.accepted == std::vector<std::uint8_t>{1, 0, 1});
  CHECK(result.logprob == std::vector<float>{-0.5f, -1.5f, 0, -3, 0, 0, 0, -1, 0});
  CHECK(result.raw_logprob == std::vector<float>{-0.25f, -2, 0, -4, 0, 0, -1, -1.25f, 0});
  CHECK(result.kept_mass == std::vector<float>{1, 0.75f, 0.5f, 0.125f, 1, 1});
  CHECK(result.kept_count == std::vector<std::int32_t>{4, 3, 2, 1, 9, 10});
  const auto second = result.tokens_of(1);
  CHECK(std::vector<Token>(second.begin(), second.end()) == std::vector<Token>{6});
}

TEST_CASE("a result that would be mostly padding is refused with the request that makes it wide") {
  static const std::vector<Token> drafts(40'000, 0);
  std::vector<VerifyRequest> requests(40'000);
  requests[7].draft = DraftTree::chain(drafts);
  CHECK_THROWS_WITH(
      require_result_fits(requests),
      "request 7: has 40000 drafts, which makes output_tokens [40000, 40001] for all requests; expected at "
      "most 67108864 entries, so give long requests a trace of their own");
  CHECK_THROWS_WITH(collect_result(requests, {}), Contains("request 7: has 40000 drafts"));
  requests.resize(1000);
  CHECK_NOTHROW(require_result_fits(requests));
  CHECK_NOTHROW(require_result_fits({}));
}

TEST_CASE("a result file holds the tensors with the documented names and shapes") {
  const TemporaryFolder folder;
  const VerifyResult result = hand_made_result();
  write_result(folder.file("r"), result, {{"version", "1"}, {"sampler", "race"}});
  const SafetensorsFile file = SafetensorsFile::open(folder.file("r"));
  using Sizes = std::vector<std::uint64_t>;
  const std::map<std::string, std::pair<DType, Sizes>> expected = {
      {"output_tokens", {DType::i32, {3, 3}}}, {"num_accepted", {DType::i32, {3}}},   {"accepted", {DType::u8, {3}}},
      {"logprob", {DType::f32, {3, 3}}},       {"raw_logprob", {DType::f32, {3, 3}}}, {"kept_mass", {DType::f32, {6}}},
      {"kept_count", {DType::i32, {6}}}};
  CHECK(file.names().size() == expected.size());
  for (const auto& [name, type] : expected) {
    INFO(name);
    CHECK(file.tensor(name).dtype == type.first);
    CHECK(file.tensor(name).shape == type.second);
  }
  CHECK(file.metadata() == std::map<std::string, std::string>{{"version", "1"}, {"sampler", "race"}});
  const TensorView tokens = file.tensor("output_tokens");
  CHECK(std::equal(result.output_tokens.begin(), result.output_tokens.end(), tokens.as<Token>().begin()));
}

TEST_CASE("the digest is the SHA-256 of the tensors one after the other") {
  const TemporaryFolder folder;
  VerifyResult result = hand_made_result();
  std::string bytes;
  const auto append = [&](const auto& values) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  append(result.output_tokens);
  append(result.num_accepted);
  append(result.accepted);
  append(result.logprob);
  append(result.raw_logprob);
  append(result.kept_mass);
  append(result.kept_count);
  write_whole_file(folder.file("bytes"), bytes);
  const ProgramResult sum = run_command({"sha256sum", folder.file("bytes")});
  CHECK(sum.out.substr(0, 64) == digest_of(result));
  const std::string before = digest_of(result);
  result.kept_count.back() += 1;
  CHECK(digest_of(result) != before);
}

TEST_CASE("an empty result has no tokens and can be written and compared") {
  const TemporaryFolder folder;
  const VerifyResult result = collect_result({}, {});
  CHECK(result.width == 1);
  write_result(folder.file("r"), result, {});
  CHECK(SafetensorsFile::open(folder.file("r")).tensor("output_tokens").shape == std::vector<std::uint64_t>{0, 1});
  CHECK_FALSE(compare_result(result, folder.file("r")).first.has_value());
}

TEST_CASE("a result is the same as its own file and as wider files of other engines") {
  const TemporaryFolder folder;
  const VerifyResult result = hand_made_result();
  write_result(folder.file("r"), result, {{"input_sha256", "abc"}});
  const ResultComparison own = compare_result(result, folder.file("r"));
  CHECK_FALSE(own.first.has_value());
  CHECK(own.differing_requests == 0);
  CHECK(own.tensors == std::vector<std::string>{"output_tokens", "num_accepted", "accepted", "logprob", "raw_logprob",
                                                "kept_mass", "kept_count"});
  CHECK(own.input_sha256 == std::optional<std::string>("abc"));

  TraceBuilder engine;
  engine.set("output_tokens", {3, 4}, std::vector<std::int64_t>{7, 5, -1, -1, 6, -1, -1, -1, 9, 0, -1, -1});
  const ResultComparison wider = compare_result(result, engine.write(folder.file("e")));
  CHECK_FALSE(wider.first.has_value());
  CHECK(wider.tensors == std::vector<std::string>{"output_tokens"});
  CHECK_FALSE(wider.input_sha256.has_value());
  engine.set("output_tokens", {3, 2}, std::vector<std::int32_t>{7, 5, 6, -1, 9, 0});
  CHECK_FALSE(compare_result(result, engine.write(folder.file("e"))).first.has_value());
}

TEST_CASE("a comparison names the first difference and counts the requests that differ") {
  const TemporaryFolder folder;
  const VerifyResult result = hand_made_result();
  TraceBuilder engine;
  engine.set("output_tokens", {3, 4}, std::vector<std::int32_t>{7, 5, -1, -1, 6, 2, -1, -1, 9, 1, -1, 3});
  const ResultComparison tokens = compare_result(result, engine.write(folder.file("e")));
  REQUIRE(tokens.first.has_value());
  CHECK(tokens.differing_requests == 2);
  CHECK(tokens.first->tensor == "output_tokens");
  CHECK(tokens.first->request == 1);
  CHECK(tokens.first->index == std::optional<std::int64_t>(1));
  CHECK(tokens.first->ours == -1);
  CHECK(tokens.first->theirs == 2);

  engine.set("output_tokens", {3, 3}, std::vector<std::int32_t>{7, 5, -1, 6, -1, -1, 9, 0, -1});
  engine.set("num_accepted", std::vector<std::int64_t>{1, 0, 2});
  const ResultComparison counts = compare_result(result, engine.write(folder.file("e")));
  REQUIRE(counts.first.has_value());
  CHECK(counts.differing_requests == 1);
  CHECK(counts.first->tensor == "num_accepted");
  CHECK(counts.first->request == 2);
  CHECK_FALSE(counts.first->index.has_value());
  CHECK(counts.first->ours == 1);
  CHECK(counts.first->theirs == 2);
}

TEST_CASE("every tensor of another result is compared, and the first number that differs is named") {
  const TemporaryFolder folder;
  const VerifyResult result = hand_made_result();
  const auto first_of = [&](const auto& change) {
    TraceBuilder engine;
    engine.set("output_tokens", {3, 2}, std::vector<std::int32_t>{7, 5, 6, -1, 9, 0});
    change(engine);
    const ResultComparison found = compare_result(result, engine.write(folder.file("e")));
    return found.first ? found.sentence().substr(found.sentence().find(", first")) : std::string();
  };
  using F = std::vector<float>;
  using I = std::vector<std::int32_t>;
  const auto logprob = [](const char* name, F values) {
    return [=](TraceBuilder& engine) { engine.set(name, {3, 2}, values); };
  };
  CHECK(first_of(logprob("logprob", {-0.5004f, -1.5f, -3, 77, 0.0005f, -1})).empty());  // 77 is padding
  CHECK(first_of(logprob("logprob", {-0.5f, -1.5f, -3, 0, 0, -1.25f})) ==
        ", first request 2: logprob[2, 1] is -1 here and -1.25 there");
  CHECK(first_of(logprob("logprob", {-0.5f, std::nanf(""), -3, 0, 0, -1})) ==
        ", first request 0: logprob[0, 1] is -1.5 here and nan there");
  CHECK(first_of(logprob("raw_logprob", {-0.25f, -2, -4.5f, 0, -1, -1.25f})) ==
        ", first request 1: raw_logprob[1, 0] is -4 here and -4.5 there");
  CHECK(first_of([](TraceBuilder& engine) {
          engine.set("kept_count", I{4, 3, 2, 1, 9, 11});
        }) == ", first request 2: kept_count[2, 1] is 10 here and 11 there");
  CHECK(first_of([](TraceBuilder& engine) {
          engine.set("kept_mass", F{1, 0.75f, 0.25f, 0.125f, 1, 1});
        }) == ", first request 0: kept_mass[0, 2] is 0.5 here and 0.25 there");
  CHECK(first_of([](TraceBuilder& engine) {
          engine.set("path", {3, 2}, I{0, -1, -1, -1, -1, -1});
        }) == ", first request 2: path[2, 0] is 0 here and -1 there");
  CHECK(first_of([](TraceBuilder& engine) {
          engine.set("accepted", std::vector<std::uint8_t>{1, 0, 0});
        }) == ", first request 2: accepted[2, 0] is 1 here and 0 there");
}

TEST_CASE("the findings of a trace are sentences about drafts, parameters and the other result, in this order") {
  const TemporaryFolder folder;
  CHECK(findings_of({}, {}, std::nullopt, "aa").empty());

  TraceBuilder engine;
  engine.set("output_tokens", {3, 2}, std::vector<std::int32_t>{7, 5, 6, -1, 9, 0}).metadata("input_sha256", "bb");
  ResultComparison comparison = compare_result(hand_made_result(), engine.write(folder.file("e")));
  CHECK(comparison.has_input("bb") == true);
  CHECK(comparison.has_input("aa") == false);
  CHECK(findings_of({}, {}, comparison, "aa").empty());  // another input, and the same tokens

  engine.set("output_tokens", {3, 2}, std::vector<std::int32_t>{7, 5, 6, 1, 9, 0});
  comparison = compare_result(hand_made_result(), engine.write(folder.file("e")));
  ImpossibleDrafts impossible;
  impossible.count = 2;
  impossible.first = ImpossibleDraft{1, 0, 17};
  ConsistencyReport consistency;
  consistency.sentence = "the drafter used another temperature";
  CHECK(findings_of({}, consistency, std::nullopt, "aa").empty());
  consistency.distribution_changes = true;
  const std::vector<std::string> findings = findings_of(impossible, consistency, comparison, "aa");
  REQUIRE(findings.size() == 3);
  CHECK_THAT(findings[0],
             Contains("2 draft token(s) have probability 0") && Contains("first request 1 at position 0 (token 17)"));
  CHECK(findings[1] == consistency.sentence);
  CHECK(findings[2] == "1 request(s) differ from " + folder.file("e") +
                           ", first request 1: output_tokens[1, 1] is -1 here and 1 there; it was made from another "
                           "input");
  CHECK_THAT(findings_of({}, {}, comparison, "bb").at(0), !Contains("another input"));
  CHECK_FALSE(ResultComparison().has_input("aa").has_value());
}

TEST_CASE("a file that cannot be compared is an error naming the tensor") {
  const TemporaryFolder folder;
  const VerifyResult result = hand_made_result();
  const auto message = [&](const TraceBuilder& file) {
    return error_of(ErrorKind::input, [&] { compare_result(result, file.write(folder.file("e"))); });
  };
  TraceBuilder engine;
  CHECK_THAT(message(engine), Contains("'output_tokens'") && Contains("missing"));
  engine.set("output_tokens", {2, 3}, std::vector<std::int32_t>(6, 1));
  CHECK_THAT(message(engine), Contains("'output_tokens'") && Contains("[2, 3]") && Contains("[3, K + 1]"));
  engine.set("output_tokens", {3, 3}, std::vector<float>(9, 1));
  CHECK_THAT(message(engine), Contains("has dtype F32") && Contains("I32 or I64"));
  engine.set("output_tokens", {3, 1}, std::vector<std::int32_t>(3, 1))
      .set("num_accepted", std::vector<std::int32_t>{1});
  CHECK_THAT(message(engine), Contains("'num_accepted'") && Contains("[B] = [3]"));
  engine.set("num_accepted", std::vector<std::int32_t>{0, 0, 0}).set("logprobs", std::vector<float>{0, 0, 0});
  CHECK_THAT(message(engine), Contains("'logprobs'") && Contains("known: ") && Contains(" logprob,"));
}

}  // namespace
