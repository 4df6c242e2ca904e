// No trace that contradicts itself gets through, and each error names the tensor and what would be right.
#include "reference/trace/trace.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

TraceBuilder tiny_dense_trace() {
  TraceBuilder trace;
  trace.set("target_probs", {2, 3, 4}, std::vector<float>(24, 0.25f));
  trace.set("draft_tokens", {2, 2}, std::vector<std::int64_t>{3, 1, 2, -1});
  return trace;
}

using Change = std::function<void(TraceBuilder&)>;

template <class... Arguments>
Change set(const std::string& tensor, const Arguments&... shape_and_values) {
  return [=](TraceBuilder& trace) { trace.set(tensor, shape_and_values...); };
}
Change drop(const std::string& tensor) {
  return [=](TraceBuilder& trace) { trace.drop(tensor); };
}
Change metadata(const std::string& key, const std::string& value) {
  return [=](TraceBuilder& trace) { trace.metadata(key, value); };
}
Change all(const std::vector<Change>& changes) {
  return [=](TraceBuilder& trace) {
    for (const Change& change : changes) change(trace);
  };
}

struct Lie {
  std::string name;
  Change tell;
  std::vector<std::string> words;  // of the error, beside the file's name
};

void check_lies(const TraceBuilder& truth, const std::vector<Lie>& lies) {
  const TemporaryFolder folder;
  REQUIRE_NOTHROW(Trace::open(truth.write(folder.file("truth"))));
  for (const Lie& lie : lies) {
    DYNAMIC_SECTION(lie.name) {
      TraceBuilder trace = truth;
      lie.tell(trace);
      const std::string path = trace.write(folder.file("lie"));
      try {
        Trace::open(path);
        FAIL("the trace was opened");
      } catch (const Error& error) {
        CHECK(error.kind() != ErrorKind::internal);
        CHECK_THAT(error.what(), Catch::StartsWith(path));
        for (const std::string& word : lie.words) CHECK_THAT(error.what(), Contains(word));
      }
    }
  }
}

using Shape = std::vector<std::uint64_t>;
using I32 = std::vector<std::int32_t>;
using I64 = std::vector<std::int64_t>;
using F32 = std::vector<float>;

const std::vector<Lie> kRaggedLies{
    {"misspelt tensor", set("temperatures", F32{1, 1}), {"'temperatures'", "known:", "temperature,", "cu_logit_bias"}},
    {"both targets", set("target_probs", Shape{4, 4}, F32(16, 0.25f)), {"both", "one of"}},
    {"no target", drop("target_logits"), {"neither target_logits nor target_probs"}},
    {"both proposals", set("draft_logits", Shape{2, 4}, F32(8, 0)), {"both draft_probs and draft_logits"}},
    {"logits of another dtype",
     set("target_logits", Shape{4, 4}, I32(16)),
     {"'target_logits'", "has dtype I32", "F32 or F16 or BF16 or F64"}},
    {"a flat target",
     set("target_logits", Shape{16}, F32(16, 0)),
     {"'target_logits'", "[16]", "[N, V]", "[B, K + 1, V]"}},
    {"no tokens at all",
     set("target_logits", Shape{4, 0}, F32{}),
     {"'target_logits'", "vocabulary of 0", "1 to 524288"}},
    {"too large a vocabulary",
     set("target_logits", Shape{1, 524289}, F32(524289, 0)),
     {"'target_logits'", "524289", "1 to 524288"}},
    {"no sums", drop("cu_num_draft_tokens"), {"'cu_num_draft_tokens'", "missing"}},
    {"no drafts", drop("draft_tokens"), {"'draft_tokens'", "missing", "[M]"}},
    {"sums that are floats",
     set("cu_num_draft_tokens", F32{2, 2}),
     {"'cu_num_draft_tokens'", "has dtype F32", "I32 or I64"}},
    {"falling sums", set("cu_num_draft_tokens", I32{3, 2}), {"'cu_num_draft_tokens'", "entry 1 is 2", "3 or more"}},
    {"negative sums", set("cu_num_draft_tokens", I64{-1, 2}), {"'cu_num_draft_tokens'", "entry 0 is -1", "0 or more"}},
    {"sums that end early",
     set("cu_num_draft_tokens", I32{1, 1}),
     {"'cu_num_draft_tokens'", "ends at 1", "length of draft_tokens) = 2"}},
    {"sums of 2^63 drafts",
     set("cu_num_draft_tokens", I64{0, INT64_MAX}),
     {"'cu_num_draft_tokens'", "ends at 9223372036854775807"}},
    {"sums with a leading 0",
     set("cu_num_draft_tokens", I32{0, 2, 2}),
     {"'cu_num_draft_tokens'", "B + 1 entries", "[B] = [2]"}},
    {"drafts of no requests",
     all({set("cu_num_draft_tokens", Shape{0}, I32{}), set("draft_tokens", I32{1, 2}),
          set("target_logits", Shape{1, 4}, F32(4, 0))}),
     {"'cu_num_draft_tokens'", "ends at 0"}},
    {"a missing row",
     set("target_logits", Shape{3, 4}, F32(12, 0)),
     {"'target_logits'", "[3, 4]", "[M + B, V]", "[4, 4]"}},
    {"a draft outside the vocabulary", set("draft_tokens", I32{3, 4}), {"'draft_tokens'", "entry 1 is 4", "[0, 4)"}},
    {"a draft of 2^32", set("draft_tokens", I64{4294967296, 1}), {"'draft_tokens'", "entry 0 is 4294967296", "[0, 4)"}},
    {"drafts of two dimensions", set("draft_tokens", Shape{1, 2}, I32{3, 1}), {"'draft_tokens'", "[1, 2]", "[M]"}},
    {"draft rows for every row",
     set("draft_probs", Shape{4, 4}, F32(16, 0.25f)),
     {"'draft_probs'", "[4, 4]", "[M, V] = [2, 4]"}},
    {"draft rows of another vocabulary",
     set("draft_probs", Shape{2, 2}, F32(4, 0.5f)),
     {"'draft_probs'", "[2, 2]", "[2, 4]"}},
    {"a NaN probability",
     set("draft_probs", Shape{2, 4}, F32{1, 0, 0, 0, 0.5f, kNan, 0.5f, 0}),
     {"request 0, draft position 1, row 1 of draft_probs, column 1: the probability is nan", "[0, 1]"}},
    {"a negative probability",
     set("draft_probs", Shape{2, 4}, F32{1, 0, 0, 0, 0.5f, 1, -0.5f, 0}),
     {"row 1 of draft_probs, column 2: the probability is -0.5", "[0, 1]"}},
    {"logits called probabilities",
     set("draft_probs", Shape{2, 4}, F32(8, 0.75f)),
     {"row 0 of draft_probs: ", "sum to 3", "1 within 0.001"}},
    {"unconditional rows without a scale",
     set("uncond_logits", Shape{4, 4}, F32(16, 0)),
     {"'uncond_logits'", "needs guidance_scale"}},
    {"a scale without unconditional rows",
     set("guidance_scale", F32{1, 2}),
     {"request 1", "guidance_scale is 2", "unconditional"}},
    {"unconditional rows of another shape",
     all({set("uncond_logits", Shape{2, 4}, F32(8, 0)), set("guidance_scale", F32{1, 2})}),
     {"'uncond_logits'", "[2, 4]", "[4, 4]"}},
    {"too few temperatures", set("temperature", F32{1}), {"'temperature'", "[1]", "[B] = [2]"}},
    {"temperatures that are bytes",
     set("temperature", std::vector<std::uint8_t>{1, 1}),
     {"'temperature'", "U8", "expected F32"}},
    {"Mirostat beside drafts", set("mirostat", I32{2, 0}), {"request 0", "Mirostat", "a request for each row"}},
    {"a sampler's share above 1", set("typical_p", F32{1, 2}), {"request 1", "typical_p is 2", "(0, 1]"}},
    {"a sequence breaker outside the vocabulary", set("dry_breakers", I32{4}), {"'dry_breakers'", "entry 0 is 4"}},
    {"a negative temperature", set("temperature", F32{1, -1}), {"request 1", "temperature is -1", "0 (greedy)"}},
    {"a NaN temperature", set("temperature", F32{kNan, 1}), {"request 0", "temperature is nan"}},
    {"a negative top_p", set("top_p", F32{1, -0.5f}), {"request 1", "top_p", "(0, 1]"}},
    {"a fraction above 1",
     all({set("top_p_numerator", I32{1, 5}), set("top_p_denominator", I32{2, 4})}),
     {"request 1", "top_p is 1.25", "(0, 1]"}},
    {"a fraction of a negative number",
     all({set("top_p_numerator", I32{1, -1}), set("top_p_denominator", I32{2, 2})}),
     {"'top_p_numerator'", "request 1 is -1", "[0, 2^32)"}},
    {"half of a fraction", set("top_p_numerator", I32{1, 1}), {"top_p_numerator and top_p_denominator", "both"}},
    {"min_p above 1", set("min_p", F32{0, 2}), {"request 1", "min_p", "[0, 1]"}},
    {"top_k of -1", set("top_k", I32{-1, 0}), {"request 0", "top_k is -1", "0 (off)"}},
    {"repetition_penalty of 0", set("repetition_penalty", F32{1, 0}), {"request 1", "repetition_penalty", "above 0"}},
    {"infinite frequency_penalty",
     set("frequency_penalty", F32{kInfinity, 0}),
     {"request 0", "frequency_penalty is inf"}},
    {"seeds of 32 bits", set("seed", I32{1, 2}), {"'seed'", "has dtype I32", "U64 or I64"}},
    {"a single seed", set("seed", I64{1}), {"'seed'", "[1]", "[B] = [2]"}},
    {"a negative step", set("step", I64{0, -3}), {"'step'", "entry 1 is -3", "2^32"}},
    {"a step of 2^32", set("step", I64{4294967296, 0}), {"'step'", "entry 0 is 4294967296"}},
    {"a prompt without sums",
     set("prompt_tokens", I32{1}),
     {"'cu_prompt_tokens'", "is missing", "'prompt_tokens' needs it"}},
    {"sums without an output", set("cu_output_tokens", I32{0, 0}), {"'output_tokens'", "is missing"}},
    {"a prompt token outside the vocabulary",
     all({set("prompt_tokens", I32{1, -1}), set("cu_prompt_tokens", I32{1, 2})}),
     {"'prompt_tokens'", "entry 1 is -1", "[0, 4)"}},
    {"prompt sums that end elsewhere",
     all({set("prompt_tokens", I32{1, 1}), set("cu_prompt_tokens", I32{1, 3})}),
     {"'cu_prompt_tokens'", "ends at 3", "length of prompt_tokens = 2"}},
    {"given ids without sums", set("logprob_token_ids", I32{1}), {"'cu_logprob_token_ids'", "is missing"}},
    {"given ids that are floats",
     all({set("logprob_token_ids", F32{1}), set("cu_logprob_token_ids", I32{0, 1})}),
     {"'logprob_token_ids'", "has dtype F32", "I32 or I64"}},
    {"given ids in a matrix",
     all({set("logprob_token_ids", Shape{1, 2}, I32{1, 2}), set("cu_logprob_token_ids", I32{0, 2})}),
     {"'logprob_token_ids'", "[1, 2]", "one dimension"}},
    {"a given id outside the vocabulary",
     all({set("logprob_token_ids", I64{3, 4}), set("cu_logprob_token_ids", I32{0, 2})}),
     {"'logprob_token_ids'", "entry 1 is 4", "[0, 4)"}},
    {"129 given ids of one request",
     all({set("logprob_token_ids", I32(130, 2)), set("cu_logprob_token_ids", I32{1, 130})}),
     {"request 1: logprob_token_ids has 129 ids; expected at most 128"}},
    {"a mask of drafts only",
     set("bitmask", Shape{2, 1}, I32{-1, -1}),
     {"'bitmask'", "[2, 1]", "[N, ceil(V/32)] = [4, 1]"}},
    {"a mask of bytes",
     set("bitmask", Shape{4, 1}, std::vector<std::uint8_t>(4, 1)),
     {"'bitmask'", "has dtype U8", "I32 or U32"}},
    {"half a bias", set("logit_bias_tokens", I32{1}), {"logit_bias_values", "all three"}},
    {"a bias outside the vocabulary",
     all({set("logit_bias_tokens", I32{4}), set("logit_bias_values", F32{1}), set("cu_logit_bias", I32{0, 1})}),
     {"'logit_bias_tokens'", "entry 0 is 4", "[0, 4)"}},
    {"an infinite bias",
     all({set("logit_bias_tokens", I32{3}), set("cu_logit_bias", I32{0, 1}),
          set("logit_bias_values", F32{-kInfinity})}),
     {"'logit_bias_values'", "entry 0 is -inf", "finite"}},
    {"an unknown sampler",
     metadata("sampler", "inverse_mass"),
     {"metadata 'sampler'", "'inverse_mass'", "inverse, race"}},
    {"an unknown convention",
     metadata("convention", "vllm"),
     {"metadata 'convention'", "'vllm'", "draftproof, vllm_v1, vllm_v2"}},
    {"an unknown verifier", metadata("verifier", "tree"), {"metadata 'verifier'", "expected one of chain, block"}},
    {"draft_processed in words", metadata("draft_processed", "true"), {"metadata 'draft_processed'", "'true'", "0, 1"}},
    {"a negative run seed", metadata("seed", "-1"), {"metadata 'seed'", "[0, 2^64)"}},
    {"a run seed of 2^64", metadata("seed", "18446744073709551616"), {"metadata 'seed'", "[0, 2^64)"}},
};

const std::vector<Lie> kDenseLies{
    {"another negative id",
     set("draft_tokens", Shape{2, 2}, I32{3, 1, 2, -2}),
     {"'draft_tokens'", "entry 3 is -2", "-1 (padding)"}},
    {"sums beside dense rows", set("cu_num_draft_tokens", I32{2, 3}), {"'cu_num_draft_tokens'", "dense"}},
    {"as many drafts as rows",
     set("draft_tokens", Shape{2, 3}, I32(6, 1)),
     {"'draft_tokens'", "[2, 3]", "[B, K] = [2, 2]"}},
    {"ragged drafts", set("draft_tokens", I32{3, 1, 2}), {"'draft_tokens'", "[3]", "[B, K] = [2, 2]"}},
    {"no row for the bonus token", set("target_probs", Shape{2, 0, 4}, F32{}), {"'target_probs'", "at least 1"}},
    {"ragged draft rows",
     set("draft_probs", Shape{3, 4}, F32(12, 0.25f)),
     {"'draft_probs'", "[3, 4]", "[B, K, V] = [2, 2, 4]"}},
    {"a mask with too few words", set("bitmask", Shape{2, 3, 0}, I32{}), {"'bitmask'", "[2, 3, 1]"}},
    {"a mask of all rows as if packed",
     set("bitmask", Shape{6, 1}, I32(6, -1)),
     {"'bitmask'", "[N, ceil(V/32)] = [5, 1]"}},
    {"unconditional probabilities",
     set("uncond_logits", Shape{2, 3, 4}, F32(24, 0)),
     {"'uncond_logits'", "goes with target_logits"}},
    {"a target row that sums to 0.5",
     [](TraceBuilder& t) {
       F32 rows(24, 0.25f);
       for (std::size_t i = 16; i < 20; ++i) rows[i] = 0.125f;
       t.set("target_probs", {2, 3, 4}, rows);
     },
     {"request 1, bonus position, row 4 of target_probs: ", "sum to 0.5"}},
    {"half precision probabilities that sum to 0.97",
     set("target_probs", Shape{2, 3, 4}, std::vector<Float16>(24, {f32_to_f16(0.2425f)})),
     {"row 0 of target_probs: ", "sum to 0.97", "within 0.02"}},
    {"parameters of another dtype beside probabilities",
     set("top_k", F32{1, 1}),
     {"'top_k'", "has dtype F32", "I32 or I64"}},
    {"a negative temperature beside probabilities", set("temperature", F32{1, -1}), {"request 1", "temperature"}},
};

TEST_CASE("a trace of more requests than memory could describe is refused by their number") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  const std::size_t count = (std::size_t{1} << 22) + 1;
  trace.set("target_logits", {count, 1}, std::vector<float>(count, 0.0f));
  trace.set("draft_tokens", std::vector<std::int32_t>{});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>(count, 0));
  CHECK_THROWS_WITH(Trace::open(trace.write(folder.file("t"))),
                    Contains("'cu_num_draft_tokens': makes 4194305 requests; expected at most 4194304 in a file"));
}

TEST_CASE("a ragged trace that lies gets an error naming the tensor and what would be right") {
  check_lies(tiny_trace(), kRaggedLies);
}

TEST_CASE("a dense trace that lies gets an error naming the tensor and what would be right") {
  check_lies(tiny_dense_trace(), kDenseLies);
}

TEST_CASE("probability rows that are not are allowed through on request only") {
  const TemporaryFolder folder;
  TraceBuilder trace = tiny_trace();
  trace.set("draft_probs", {2, 4}, std::vector<float>{0.25f, 0.25f, 0.25f, 0.2515f, 0.2f, 0.2f, 0.2f, 0.2f});
  const std::string path = trace.write(folder.file("t"));
  CHECK_THROWS_WITH(Trace::open(path),
                    Contains("request 0, draft position 0, row 0 of draft_probs: ") && Contains("sum to 1.0015"));
  TraceOptions options;
  options.check_rows = false;
  CHECK(Trace::open(path, options).requests().size() == 2);
}

TEST_CASE("an override that is unknown is an error of the flag") {
  const TemporaryFolder folder;
  TraceOptions options;
  options.overrides = {{"ties", "none", "--ties"}};
  CHECK_THROWS_WITH(Trace::open(tiny_trace().write(folder.file("t")), options),
                    "--ties: is 'none'; known: exact_k, keep_all");
}

}  // namespace
