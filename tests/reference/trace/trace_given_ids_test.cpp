// Log-probabilities of given ids: read, computed, written and compared, against logarithms of fractions.
#include "reference/step/batch.hpp"
#include "reference/trace/result_comparison.hpp"
#include "reference/trace/trace.hpp"
#include "reference/trace/trace_writer.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

// One draft that is accepted whatever the coin, as p(0) = 16 / 21 >= q(0); no draft; no draft.
// Request 0 at temperature 1/2 and top-k 3: weights 4, 2, 1, 1 become 16, 4, 1, 0 of 21.
TraceBuilder trace_with_ids() {
  std::vector<float> logits;
  for (const double weight : {4, 2, 1, 1, 1, 1, 2, 4, 1, 1, 1, 1, 1, 1, 3, 3})
    logits.push_back(static_cast<float>(std::log(weight)));
  TraceBuilder trace;
  trace.set("target_logits", {4, 4}, logits).set("draft_probs", {1, 4}, std::vector<float>(4, 0.25f));
  trace.set("draft_tokens", std::vector<Token>{0}).set("cu_num_draft_tokens", std::vector<Token>{1, 1, 1});
  trace.set("temperature", std::vector<float>{0.5f, 1, 1}).set("top_k", std::vector<std::int32_t>{3, 0, 0});
  trace.set("logprob_token_ids", std::vector<std::int64_t>{3, 0, 2});
  trace.set("cu_logprob_token_ids", std::vector<std::int32_t>{2, 2, 3});
  return trace;
}

VerifyResult result_of(const Trace& trace) {
  return collect_result(trace.requests(), verify_batch(trace.requests(), trace.verify_options(), 1));
}

void check_close(const std::vector<float>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i);
    CHECK((found[i] == expected[i] || std::abs(found[i] - expected[i]) <= 1e-6));
  }
}

TEST_CASE("given ids have the log-probabilities of their fractions in the row of each emitted token") {
  const TemporaryFolder folder;
  const Trace trace = Trace::open(trace_with_ids().write(folder.file("t")));
  const VerifyResult result = result_of(trace);
  REQUIRE(result.num_accepted == std::vector<std::int32_t>{1, 0, 0});
  check_close(result.token_id_logprob, {-HUGE_VAL, std::log(16.0 / 21),           // id 3 of request 0
                                        std::log(16.0 / 21), std::log(1.0 / 21),  // id 0
                                        std::log(3.0 / 8), 0.0});                 // id 2 of request 2, padding
  check_close(result.raw_token_id_logprob,
              {std::log(1.0 / 8), std::log(0.5), std::log(0.5), std::log(1.0 / 8), std::log(3.0 / 8), 0.0});
  // The same where rows come as probabilities, and after the trace was written again.
  write_trace(folder.file("again"), trace.requests(), trace.verify_options());
  CHECK(digest_of(result_of(Trace::open(folder.file("again")))) == digest_of(result));
  CHECK_FALSE(SafetensorsFile::open(folder.file("again")).contains("cu_prompt_tokens"));
  TraceBuilder final_rows = trace_with_ids().drop("target_logits");
  final_rows.set("target_probs", {4, 4},
                 std::vector<float>{0.5f, 0.25f, 0.125f, 0.125f, 0, 0.25f, 0.25f, 0.5f, 0.25f, 0.25f, 0.25f, 0.25f, 0,
                                    0, 0.5f, 0.5f});
  const VerifyResult of_final = result_of(Trace::open(final_rows.write(folder.file("final"))));
  check_close(of_final.token_id_logprob, {std::log(0.125), std::log(0.5), std::log(0.5), -HUGE_VAL, std::log(0.5), 0});
  CHECK(of_final.raw_token_id_logprob == of_final.token_id_logprob);
}

TEST_CASE("a request without drafts and the next token of a prompt as given id have that token's prompt logprob") {
  const TemporaryFolder folder;
  TraceBuilder trace;  // the prompt 2, 0, 1: rows after 2 and after 2, 0
  std::vector<float> logits;
  for (const double weight : {5, 1, 2, 1, 6, 1}) logits.push_back(static_cast<float>(std::log(weight)));
  trace.set("target_logits", {2, 3}, logits).set("draft_tokens", std::vector<Token>{});
  trace.set("cu_num_draft_tokens", std::vector<Token>{0, 0}).set("temperature", std::vector<float>{0, 0});
  trace.set("logprob_token_ids", std::vector<Token>{0, 1}).set("cu_logprob_token_ids", std::vector<Token>{1, 2});
  const VerifyResult result = result_of(Trace::open(trace.write(folder.file("t"))));
  check_close(result.raw_token_id_logprob, {std::log(5.0 / 8), std::log(6.0 / 8)});
}

TEST_CASE("a trace without given ids, or with empty lists of them, has the result and the digest that it had") {
  const TemporaryFolder folder;
  TraceBuilder trace = trace_with_ids();
  const std::string with_ids = digest_of(result_of(Trace::open(trace.write(folder.file("with")))));
  trace.set("logprob_token_ids", std::vector<Token>{}).set("cu_logprob_token_ids", std::vector<Token>{0, 0, 0});
  const VerifyResult empty = result_of(Trace::open(trace.write(folder.file("empty"))));
  trace.drop("logprob_token_ids").drop("cu_logprob_token_ids");
  const VerifyResult none = result_of(Trace::open(trace.write(folder.file("none"))));
  CHECK(digest_of(empty) == digest_of(none));
  CHECK(digest_of(none) != with_ids);
  write_result(folder.file("r"), none, {});
  CHECK_FALSE(SafetensorsFile::open(folder.file("r")).contains("token_id_logprob"));
}

TEST_CASE("log-probabilities of given ids are compared, and the first that differs is named with its id") {
  const TemporaryFolder folder;
  const VerifyResult result = result_of(Trace::open(trace_with_ids().write(folder.file("t"))));
  write_result(folder.file("r"), result, {});
  const ResultComparison own = compare_result(result, folder.file("r"));
  CHECK_FALSE(own.first.has_value());
  CHECK(own.tensors.back() == "raw_token_id_logprob");
  const auto sentence_of = [&](const auto& change) {
    VerifyResult theirs = result;
    change(theirs);
    write_result(folder.file("r"), theirs, {});
    const std::string sentence = compare_result(result, folder.file("r")).sentence();
    return sentence.empty() ? sentence : sentence.substr(sentence.find("first"));
  };
  CHECK(sentence_of([](VerifyResult& r) { r.raw_token_id_logprob[5] = 7; }).empty());  // padding
  CHECK(sentence_of([](VerifyResult& r) { r.raw_token_id_logprob[2] += 5e-4f; }).empty());
  CHECK(sentence_of([](VerifyResult& r) { r.raw_token_id_logprob[3] = -2; }) ==
        "first request 0: raw_token_id_logprob[0, 1] of id 0 is -2.07944 here and -2 there");
  CHECK(sentence_of([](VerifyResult& r) { r.token_id_logprob[0] = -9; }) ==
        "first request 0: token_id_logprob[0, 0] of id 3 is -inf here and -9 there");
  CHECK(sentence_of([](VerifyResult& r) { r.token_id_logprob[4] = -3; }) ==
        "first request 2: token_id_logprob[2, 0] of id 2 is -0.980829 here and -3 there");
  const Trace without = Trace::open(
      trace_with_ids().drop("logprob_token_ids").drop("cu_logprob_token_ids").write(folder.file("without")));
  write_result(folder.file("r"), result, {});
  CHECK_THAT(error_of(ErrorKind::input, [&] { compare_result(result_of(without), folder.file("r")); }),
             Contains("'token_id_logprob'") && Contains("has shape [3, 2]; expected [L, W]") && Contains("= [0, 2]"));
}

TEST_CASE("given ids whose result would not fit are refused before it is made") {
  static const std::vector<Token> drafts(300'000, 0);
  static const std::vector<Token> ids(128, 0);
  std::vector<VerifyRequest> requests(3);
  requests[1].draft = DraftTree::chain(drafts);
  for (VerifyRequest& request : requests) request.logprob_token_ids = ids;
  CHECK_THROWS_WITH(require_result_fits(requests),
                    Contains("request 1: has 300000 drafts, which makes token_id_logprob [384, 300001]"));
  requests[1].draft = DraftTree::chain(std::span(drafts).first(1000));
  CHECK_NOTHROW(require_result_fits(requests));
}

}  // namespace
