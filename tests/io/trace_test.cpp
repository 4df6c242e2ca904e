// What a trace file says is what its requests say, in either layout; and no lie gets through.
#include "reference/io/trace.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>

#include "reference/error.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/batch.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/io/trace_builder.hpp"

using namespace draftproof;
using namespace draftproof::testing;
using Catch::Matchers::Contains;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<Emission> verify(const Trace& trace, int threads = 1) {
  return verify_batch(trace.requests(), trace.verify_options(), threads);
}

// Bit for bit, but for NaN, which may not occur.
bool same(const Emission& a, const Emission& b) {
  return a.num_accepted == b.num_accepted && a.tokens == b.tokens && a.logprobs == b.logprobs &&
         a.raw_logprobs == b.raw_logprobs && a.kept_mass == b.kept_mass && a.kept_count == b.kept_count;
}
bool same(const std::vector<Emission>& a, const std::vector<Emission>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return same(x, y); });
}

// The requests that a user of the C++ API would write down for the batch.
struct HandMadeRequests {
  explicit HandMadeRequests(const RandomBatch& batch) {
    for (std::size_t i = 0; i < batch.bias_tokens.size(); ++i)
      bias.push_back({batch.bias_tokens[i], batch.bias_values[i]});
    const auto v = static_cast<std::int64_t>(batch.vocab_size);
    std::size_t draft = 0;
    for (std::size_t b = 0; b < batch.requests(); ++b) {
      const auto k = static_cast<std::size_t>(batch.draft_len[b]);
      const std::size_t row = draft + b;
      const auto part = [&](const auto& all, const auto& sums) {
        const std::size_t begin = b == 0 ? 0 : static_cast<std::size_t>(sums[b - 1]);
        return std::span(all).subspan(begin, static_cast<std::size_t>(sums[b]) - begin);
      };
      VerifyRequest r;
      r.draft = part(batch.drafts, batch.cu_draft);
      r.target = {DType::f32, batch.target.data() + row * batch.vocab_size, batch.draft_len[b] + 1, v, v};
      r.unconditional = {DType::f32, batch.unconditional.data() + row * batch.vocab_size, batch.draft_len[b] + 1, v, v};
      r.proposal_kind = ProposalKind::probabilities;
      r.proposal = {DType::f32, batch.proposal.data() + draft * batch.vocab_size, batch.draft_len[b], v, v};
      r.parameters.temperature = batch.temperature[b];
      r.parameters.filters.top_p = batch.top_p[b];
      r.parameters.filters.min_p = batch.min_p[b];
      r.parameters.filters.top_k = batch.top_k[b];
      r.parameters.repetition_penalty = batch.repetition_penalty[b];
      r.parameters.frequency_penalty = batch.frequency_penalty[b];
      r.parameters.presence_penalty = batch.presence_penalty[b];
      r.parameters.guidance_scale = batch.guidance_scale[b];
      r.constraints.logit_bias = part(bias, batch.cu_bias);
      r.allowed_masks = std::span(batch.bitmask).subspan(row * batch.words(), (k + 1) * batch.words());
      r.prompt_tokens = part(batch.prompt, batch.cu_prompt);
      r.output_tokens = part(batch.output, batch.cu_output);
      r.seed = batch.seeds[b];
      r.step = static_cast<std::uint32_t>(batch.steps[b]);
      requests.push_back(r);
      draft += k;
    }
  }

  std::vector<LogitBias> bias;
  std::vector<VerifyRequest> requests;
};

// The same batch, [B, K + 1, V]: what is padding holds NaN, and ids and masks that must not be looked at.
TraceBuilder dense_trace(const RandomBatch& batch, bool dense_mask = true) {
  const auto k_max = static_cast<std::uint64_t>(*std::max_element(batch.draft_len.begin(), batch.draft_len.end()));
  const std::uint64_t v = batch.vocab_size;
  const auto pad_rows = [&](auto rows, std::uint64_t width, bool with_bonus, auto padding) {
    std::vector<typename decltype(rows)::value_type> padded;
    std::size_t next = 0;
    for (const std::int64_t k : batch.draft_len) {
      const std::uint64_t real = (static_cast<std::uint64_t>(k) + (with_bonus ? 1 : 0)) * width;
      for (std::uint64_t i = 0; i < (k_max + (with_bonus ? 1 : 0)) * width; ++i)
        padded.push_back(i < real ? rows[next++] : padding);
    }
    return padded;
  };
  TraceBuilder trace = per_request_tensors(batch);
  trace.set("target_logits", {batch.requests(), k_max + 1, v}, pad_rows(batch.target, v, true, kNan));
  trace.set("uncond_logits", {batch.requests(), k_max + 1, v}, pad_rows(batch.unconditional, v, true, kNan));
  trace.set("draft_probs", {batch.requests(), k_max, v}, pad_rows(batch.proposal, v, false, kNan));
  trace.set("draft_tokens", {batch.requests(), k_max}, pad_rows(batch.drafts, 1, false, kPaddingToken));
  if (dense_mask) {
    trace.set("bitmask", {batch.requests(), k_max + 1, batch.words()},
              pad_rows(batch.bitmask, batch.words(), true, 0u));
  } else {
    trace.set("bitmask", {batch.rows(), batch.words()}, batch.bitmask);
  }
  return trace;
}

TEST_CASE("a ragged trace verifies to what the same requests give through the API") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(60, 45, 4);
  const HandMadeRequests by_hand(batch);
  const Trace trace = Trace::open(ragged_trace(batch).write(folder.file("t")));
  REQUIRE(trace.requests().size() == 60);
  CHECK(trace.vocab_size() == 45);
  CHECK_FALSE(trace.is_dense());
  CHECK(trace.has_seeds());
  const std::vector<Emission> expected = verify_batch(by_hand.requests, trace.verify_options(), 1);
  CHECK(same(verify(trace), expected));
  CHECK(same(verify(trace, 2), expected));
  // The batch could tell: some drafts are accepted, some are not, some requests have none.
  const auto accepted = std::accumulate(expected.begin(), expected.end(), 0u,
                                        [](unsigned sum, const Emission& e) { return sum + e.num_accepted; });
  CHECK(accepted > 10);
  CHECK(accepted + 10 < batch.draft_count());
  CHECK(std::count(batch.draft_len.begin(), batch.draft_len.end(), 0) > 0);
}

TEST_CASE("each tensor of a trace changes the result when it is left out") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(60, 45, 4);
  const std::vector<Emission> whole = verify(Trace::open(ragged_trace(batch).write(folder.file("t"))));
  const std::vector<std::vector<std::string>> groups = {{"draft_probs"},
                                                        {"uncond_logits", "guidance_scale"},
                                                        {"temperature"},
                                                        {"top_p"},
                                                        {"min_p"},
                                                        {"top_k"},
                                                        {"repetition_penalty"},
                                                        {"frequency_penalty"},
                                                        {"presence_penalty"},
                                                        {"seed"},
                                                        {"step"},
                                                        {"prompt_tokens", "cu_prompt_tokens"},
                                                        {"bitmask"},
                                                        {"output_tokens", "cu_output_tokens"},
                                                        {"logit_bias_tokens", "logit_bias_values", "cu_logit_bias"}};
  for (const auto& group : groups) {
    INFO(group.front());
    TraceBuilder trace = ragged_trace(batch);
    for (const std::string& name : group) trace.drop(name);
    CHECK_FALSE(same(verify(Trace::open(trace.write(folder.file("t")))), whole));
  }
}

TEST_CASE("ragged and dense layouts of the same step give the same emissions") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(40, 33, 3);
  const std::vector<Emission> ragged = verify(Trace::open(ragged_trace(batch).write(folder.file("r"))));
  const Trace dense = Trace::open(dense_trace(batch).write(folder.file("d")));
  CHECK(dense.is_dense());
  CHECK(same(verify(dense), ragged));
  CHECK(same(verify(Trace::open(dense_trace(batch, false).write(folder.file("d2")))), ragged));
}

TEST_CASE("I32 and I64 tensors and both spellings of seeds and masks give the same requests") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(30, 33, 3);
  const std::vector<Emission> expected = verify(Trace::open(ragged_trace(batch).write(folder.file("a"))));
  const auto wide = [](const auto& values) { return std::vector<std::int64_t>(values.begin(), values.end()); };
  TraceBuilder trace = ragged_trace(batch);
  trace.set("draft_tokens", wide(batch.drafts)).set("step", wide(batch.steps)).set("seed", wide(batch.seeds));
  trace.set("prompt_tokens", wide(batch.prompt)).set("cu_prompt_tokens", wide(batch.cu_prompt));
  trace.set("output_tokens", wide(batch.output)).set("cu_output_tokens", wide(batch.cu_output));
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>(batch.cu_draft.begin(), batch.cu_draft.end()));
  trace.set("bitmask", {batch.rows(), batch.words()},
            std::vector<std::int32_t>(batch.bitmask.begin(), batch.bitmask.end()));
  CHECK(same(verify(Trace::open(trace.write(folder.file("b")))), expected));
}

TEST_CASE("half precision rows give what their exact F32 values give") {
  const TemporaryFolder folder;
  RandomBatch batch = make_batch(30, 33, 3);
  std::vector<Float16> half;
  std::vector<BFloat16> brain;
  for (float& x : batch.target) {
    half.push_back({f32_to_f16(x)});
    x = f16_to_f32(half.back().bits);
  }
  for (float& x : batch.proposal) {
    brain.push_back({f32_to_bf16(x)});
    x = bf16_to_f32(brain.back().bits);
  }
  TraceOptions unchecked;
  unchecked.check_rows = false;  // rounded to 8 bits and stored as F32, rows no longer sum to 1 within 0.001
  const Trace exact = Trace::open(ragged_trace(batch).write(folder.file("a")), unchecked);
  TraceBuilder rounded = ragged_trace(batch);
  rounded.set("target_logits", {batch.rows(), batch.vocab_size}, half);
  rounded.set("draft_probs", {batch.draft_count(), batch.vocab_size}, brain);
  CHECK(same(verify(Trace::open(rounded.write(folder.file("b")))), verify(exact)));
}

TEST_CASE("rows are views into the file and a file with misaligned data reads the same") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(10, 33, 3);
  const std::string path = ragged_trace(batch).write(folder.file("t"));
  const Trace trace = Trace::open(path);
  const auto lies_inside = [](const Trace& t, const void* pointer) {
    const auto* const byte = static_cast<const std::byte*>(pointer);
    return byte >= t.bytes().data() && byte < t.bytes().data() + t.bytes().size();
  };
  for (const VerifyRequest& request : trace.requests()) {
    CHECK(lies_inside(trace, request.target.data));
    CHECK(lies_inside(trace, request.allowed_masks.data()));
    if (!request.draft.empty()) CHECK(lies_inside(trace, request.proposal.data));
  }

  std::string bytes = read_whole_file(path);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  bytes.insert(sizeof header_size + header_size, 3, ' ');
  header_size += 3;
  std::memcpy(bytes.data(), &header_size, sizeof header_size);
  write_whole_file(folder.file("odd"), bytes);
  const Trace odd = Trace::open(folder.file("odd"));
  CHECK_FALSE(lies_inside(odd, odd.requests()[0].target.data));
  CHECK(same(verify(odd), verify(trace)));
}

TEST_CASE("a trace outlives the objects it was copied from") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(10, 33, 3);
  const auto open_and_copy = [&] {
    const Trace original = Trace::open(ragged_trace(batch).write(folder.file("t")));
    return Trace(original);
  };
  const Trace copy = open_and_copy();
  CHECK(same(verify(copy), verify(Trace::open(folder.file("t")))));
}

TEST_CASE("permuted requests and split batches emit the same request by request") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(20, 33, 3);
  const Trace trace = Trace::open(ragged_trace(batch).write(folder.file("t")));
  const std::vector<Emission> all = verify(trace);
  // A file for each request alone; whole tensors are rebuilt, so this goes through the reader again.
  std::size_t differing = 0;
  for (std::size_t b = batch.requests(); b-- > 0;) {
    const auto row = static_cast<std::size_t>(b == 0 ? 0 : batch.cu_draft[b - 1]) + b;
    const std::size_t draft = row - b;
    const auto k = static_cast<std::size_t>(batch.draft_len[b]);
    const std::size_t v = batch.vocab_size;
    const auto cut = [](const auto& values, std::size_t begin, std::size_t count) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
      return std::decay_t<decltype(values)>(first, first + static_cast<std::ptrdiff_t>(count));
    };
    const auto range = [&](const auto& values, const auto& sums) {
      const std::size_t begin = b == 0 ? 0 : static_cast<std::size_t>(sums[b - 1]);
      return cut(values, begin, static_cast<std::size_t>(sums[b]) - begin);
    };
    RandomBatch one;
    one.vocab_size = v;
    one.draft_len = {batch.draft_len[b]};
    one.cu_draft = {batch.draft_len[b]};
    one.drafts = cut(batch.drafts, draft, k);
    one.target = cut(batch.target, row * v, (k + 1) * v);
    one.unconditional = cut(batch.unconditional, row * v, (k + 1) * v);
    one.proposal = cut(batch.proposal, draft * v, k * v);
    one.bitmask = cut(batch.bitmask, row * batch.words(), (k + 1) * batch.words());
    for (const auto member :
         {&RandomBatch::temperature, &RandomBatch::top_p, &RandomBatch::min_p, &RandomBatch::repetition_penalty,
          &RandomBatch::frequency_penalty, &RandomBatch::presence_penalty, &RandomBatch::guidance_scale})
      one.*member = {(batch.*member)[b]};
    one.top_k = {batch.top_k[b]};
    one.seeds = {batch.seeds[b]};
    one.steps = {batch.steps[b]};
    one.prompt = range(batch.prompt, batch.cu_prompt);
    one.output = range(batch.output, batch.cu_output);
    one.bias_tokens = range(batch.bias_tokens, batch.cu_bias);
    one.bias_values = range(batch.bias_values, batch.cu_bias);
    one.cu_prompt = {static_cast<std::int32_t>(one.prompt.size())};
    one.cu_output = {static_cast<std::int32_t>(one.output.size())};
    one.cu_bias = {static_cast<std::int32_t>(one.bias_tokens.size())};
    const std::vector<Emission> alone = verify(Trace::open(ragged_trace(one).write(folder.file("one"))));
    if (!same(alone.at(0), all[b])) ++differing;
  }
  CHECK(differing == 0);

  std::vector<VerifyRequest> reversed(trace.requests().rbegin(), trace.requests().rend());
  std::vector<Emission> back = verify_batch(reversed, trace.verify_options(), 2);
  std::reverse(back.begin(), back.end());
  CHECK(same(back, all));
}

// Two requests, two drafts and none, of four tokens.
TraceBuilder tiny_trace() {
  TraceBuilder trace;
  trace.set("target_logits", {4, 4}, std::vector<float>(16, 0.5f));
  trace.set("draft_probs", {2, 4}, std::vector<float>(8, 0.25f));
  trace.set("draft_tokens", std::vector<std::int32_t>{3, 1});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>{2, 2});
  return trace;
}

TraceBuilder tiny_dense_trace() {
  TraceBuilder trace;
  trace.set("target_probs", {2, 3, 4}, std::vector<float>(24, 0.25f));
  trace.set("draft_tokens", {2, 2}, std::vector<std::int64_t>{3, 1, 2, -1});
  return trace;
}

TEST_CASE("what a trace leaves out has the documented defaults") {
  const TemporaryFolder folder;
  const Trace trace = Trace::open(tiny_trace().drop("draft_probs").write(folder.file("t")));
  const VerifyRequest& request = trace.requests()[1];
  CHECK(request.proposal_kind == ProposalKind::one_hot);
  CHECK(request.parameters.temperature == 1.0f);
  CHECK_FALSE(request.parameters.filters.any());
  CHECK(request.parameters.repetition_penalty == 1.0f);
  CHECK(request.parameters.frequency_penalty == 0.0f);
  CHECK(request.parameters.presence_penalty == 0.0f);
  CHECK(request.parameters.guidance_scale == 1.0f);
  CHECK(request.step == 0);
  CHECK(request.prompt_tokens.empty());
  CHECK(request.allowed_masks.empty());
  CHECK_FALSE(trace.has_seeds());
  CHECK(request.seed == derive_seed(0, 1));
  CHECK(request.first_row == 3);
  CHECK(trace.verify_options().sampler == Sampler::inverse);
  CHECK(trace.verify_options().convention == Convention::draftproof);
  CHECK(trace.verify_options().all_rows);
}

TEST_CASE("settings come from the metadata and overrides win") {
  const TemporaryFolder folder;
  TraceBuilder builder = tiny_trace();
  builder.drop("draft_probs").set("draft_logits", {2, 4}, std::vector<float>(8, 0.0f));
  builder.set("temperature", std::vector<float>{0.5f, 2.0f}).set("top_k", std::vector<std::int32_t>{2, 0});
  builder.set("repetition_penalty", std::vector<float>{1.5f, 1.0f});
  for (const auto& [key, value] : std::map<std::string, std::string>{{"verifier", "chain"},
                                                                     {"sampler", "race"},
                                                                     {"filter_order", "top_k_first"},
                                                                     {"ties", "keep_all"},
                                                                     {"convention", "sglang"},
                                                                     {"draft_processed", "0"},
                                                                     {"nan_policy", "as_minus_inf"},
                                                                     {"seed", "18446744073709551615"},
                                                                     {"format", "pt"}})
    builder.metadata(key, value);
  const std::string path = builder.write(folder.file("t"));
  const Trace trace = Trace::open(path);
  const VerifyRequest& request = trace.requests()[0];
  CHECK(trace.verify_options().sampler == Sampler::race);
  CHECK(trace.verify_options().convention == Convention::sglang);
  CHECK(request.parameters.filters.order == FilterOrder::top_k_first);
  CHECK(request.parameters.filters.ties == Ties::keep_all);
  CHECK(request.parameters.nan_policy == NanPolicy::as_minus_inf);
  CHECK(request.seed == derive_seed(18446744073709551615u, 0));
  CHECK(trace.unused_metadata() == std::vector<std::string>{"format"});
  CHECK(request.proposal_kind == ProposalKind::logits);
  CHECK(request.draft_parameters.temperature == 0.5f);
  CHECK(request.draft_parameters.filters.top_k == 2);
  CHECK(request.draft_parameters.filters.ties == Ties::keep_all);
  CHECK(request.draft_parameters.repetition_penalty == 1.0f);

  TraceOptions options;
  options.overrides = {{"draft_processed", "1", "--draft-processed"}, {"seed", "7", "--seed"}};
  const Trace other = Trace::open(path, options);
  CHECK(other.requests()[0].draft_parameters.temperature == 1.0f);
  CHECK_FALSE(other.requests()[0].draft_parameters.filters.any());
  CHECK(other.requests()[1].seed == derive_seed(7, 1));
  CHECK(other.settings().sampler == Sampler::race);
  CHECK(texts_of(other.settings()).at("convention") == "sglang");
}

TEST_CASE("a trace without requests is a valid empty batch") {
  const TemporaryFolder folder;
  TraceBuilder ragged;
  ragged.set("target_logits", {0, 9}, std::vector<float>{}).set("draft_tokens", std::vector<std::int32_t>{});
  ragged.set("cu_num_draft_tokens", std::vector<std::int64_t>{}).set("temperature", std::vector<float>{});
  CHECK(Trace::open(ragged.write(folder.file("r"))).requests().empty());
  TraceBuilder dense;
  dense.set("target_probs", {0, 3, 9}, std::vector<float>{}).set("draft_tokens", {0, 2}, std::vector<std::int32_t>{});
  CHECK(verify(Trace::open(dense.write(folder.file("d"))), 2).empty());
}

TEST_CASE("probability rows that are not are allowed through on request only") {
  const TemporaryFolder folder;
  TraceBuilder trace = tiny_trace();
  trace.set("draft_probs", {2, 4}, std::vector<float>{0.25f, 0.25f, 0.25f, 0.2515f, 0.2f, 0.2f, 0.2f, 0.2f});
  const std::string path = trace.write(folder.file("t"));
  CHECK_THROWS_WITH(Trace::open(path), Contains("sum to 1.0015") && Contains("request 0, its row 0"));
  TraceOptions options;
  options.check_rows = false;
  CHECK(Trace::open(path, options).requests().size() == 2);
}

struct Lie {
  std::string name;
  std::function<void(TraceBuilder&)> tell;
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

using I32 = std::vector<std::int32_t>;
using I64 = std::vector<std::int64_t>;
using F32 = std::vector<float>;

TEST_CASE("a ragged trace that lies gets an error naming the tensor and what would be right") {
  check_lies(
      tiny_trace(),
      {
          {"misspelt tensor",
           [](TraceBuilder& t) {
             t.set("temperatures", F32{1, 1});
           },
           {"'temperatures'", "known:", "temperature,", "cu_logit_bias"}},
          {"both targets",
           [](TraceBuilder& t) {
             t.set("target_probs", {4, 4}, F32(16, 0.25f));
           },
           {"both", "one of"}},
          {"no target", [](TraceBuilder& t) { t.drop("target_logits"); }, {"neither target_logits nor target_probs"}},
          {"both proposals",
           [](TraceBuilder& t) {
             t.set("draft_logits", {2, 4}, F32(8, 0));
           },
           {"both draft_probs and draft_logits"}},
          {"logits of another dtype",
           [](TraceBuilder& t) {
             t.set("target_logits", {4, 4}, std::vector<double>(16));
           },
           {"'target_logits'", "has dtype F64", "F32 or F16 or BF16"}},
          {"a flat target",
           [](TraceBuilder& t) { t.set("target_logits", {16}, F32(16, 0)); },
           {"'target_logits'", "[16]", "[N, V]", "[B, K + 1, V]"}},
          {"no tokens at all",
           [](TraceBuilder& t) {
             t.set("target_logits", {4, 0}, F32{});
           },
           {"'target_logits'", "vocabulary of 0", "1 to 524288"}},
          {"too large a vocabulary",
           [](TraceBuilder& t) {
             t.set("target_logits", {1, 524289}, F32(524289, 0));
           },
           {"'target_logits'", "524289", "1 to 524288"}},
          {"no sums", [](TraceBuilder& t) { t.drop("cu_num_draft_tokens"); }, {"'cu_num_draft_tokens'", "missing"}},
          {"no drafts", [](TraceBuilder& t) { t.drop("draft_tokens"); }, {"'draft_tokens'", "missing", "[M]"}},
          {"sums that are floats",
           [](TraceBuilder& t) {
             t.set("cu_num_draft_tokens", F32{2, 2});
           },
           {"'cu_num_draft_tokens'", "has dtype F32", "I32 or I64"}},
          {"falling sums",
           [](TraceBuilder& t) {
             t.set("cu_num_draft_tokens", I32{3, 2});
           },
           {"'cu_num_draft_tokens'", "entry 1 is 2", "3 or more"}},
          {"negative sums",
           [](TraceBuilder& t) {
             t.set("cu_num_draft_tokens", I64{-1, 2});
           },
           {"'cu_num_draft_tokens'", "entry 0 is -1", "0 or more"}},
          {"sums that end early",
           [](TraceBuilder& t) {
             t.set("cu_num_draft_tokens", I32{1, 1});
           },
           {"'cu_num_draft_tokens'", "ends at 1", "length of draft_tokens", "= 2"}},
          {"sums of 2^63 drafts",
           [](TraceBuilder& t) {
             t.set("cu_num_draft_tokens", I64{0, INT64_MAX});
           },
           {"'cu_num_draft_tokens'", "ends at 9223372036854775807"}},
          {"sums with a leading 0",
           [](TraceBuilder& t) {
             t.set("cu_num_draft_tokens", I32{0, 2, 2});
           },
           {"'cu_num_draft_tokens'", "B + 1 entries", "[B] = [2]"}},
          {"a missing row",
           [](TraceBuilder& t) {
             t.set("target_logits", {3, 4}, F32(12, 0));
           },
           {"'target_logits'", "[3, 4]", "N = M + B", "[4, 4]"}},
          {"a draft outside the vocabulary",
           [](TraceBuilder& t) {
             t.set("draft_tokens", I32{3, 4});
           },
           {"'draft_tokens'", "entry 1 is 4", "[0, 4)"}},
          {"a draft of 2^32",
           [](TraceBuilder& t) {
             t.set("draft_tokens", I64{4294967296, 1});
           },
           {"'draft_tokens'", "entry 0 is 4294967296", "[0, 4)"}},
          {"padding in the ragged layout",
           [](TraceBuilder& t) {
             t.set("draft_tokens", I32{3, -1});
           },
           {"'draft_tokens'", "entry 1 is -1", "[0, 4)"}},
          {"drafts of two dimensions",
           [](TraceBuilder& t) {
             t.set("draft_tokens", {1, 2}, I32{3, 1});
           },
           {"'draft_tokens'", "[1, 2]", "[M]"}},
          {"draft rows for every row",
           [](TraceBuilder& t) {
             t.set("draft_probs", {4, 4}, F32(16, 0.25f));
           },
           {"'draft_probs'", "[4, 4]", "[M, V] = [2, 4]"}},
          {"draft rows of another vocabulary",
           [](TraceBuilder& t) {
             t.set("draft_probs", {2, 2}, F32(4, 0.5f));
           },
           {"'draft_probs'", "[2, 2]", "[2, 4]"}},
          {"a NaN probability",
           [](TraceBuilder& t) {
             t.set("draft_probs", {2, 4}, F32{1, 0, 0, 0, 0.5f, kNan, 0.5f, 0});
           },
           {"'draft_probs'", "request 0, its row 1", "token 1 is nan", "[0, 1]"}},
          {"a negative probability",
           [](TraceBuilder& t) {
             t.set("draft_probs", {2, 4}, F32{1, 0, 0, 0, 0.5f, 1, -0.5f, 0});
           },
           {"'draft_probs'", "token 2 is -0.5", "[0, 1]"}},
          {"logits called probabilities",
           [](TraceBuilder& t) {
             t.set("draft_probs", {2, 4}, F32(8, 0.75f));
           },
           {"'draft_probs'", "sum to 3", "1 within 0.001"}},
          {"unconditional rows without a scale",
           [](TraceBuilder& t) {
             t.set("uncond_logits", {4, 4}, F32(16, 0));
           },
           {"'uncond_logits'", "needs guidance_scale"}},
          {"a scale without unconditional rows",
           [](TraceBuilder& t) {
             t.set("guidance_scale", F32{1, 2});
           },
           {"request 1", "guidance_scale is 2", "unconditional"}},
          {"unconditional rows of another shape",
           [](TraceBuilder& t) {
             t.set("uncond_logits", {2, 4}, F32(8, 0)).set("guidance_scale", F32{1, 2});
           },
           {"'uncond_logits'", "[2, 4]", "[4, 4]"}},
          {"too few temperatures",
           [](TraceBuilder& t) { t.set("temperature", F32{1}); },
           {"'temperature'", "[1]", "[B] = [2]"}},
          {"temperatures that are doubles",
           [](TraceBuilder& t) {
             t.set("temperature", std::vector<double>{1, 1});
           },
           {"'temperature'", "F64", "F32 is right"}},
          {"a negative temperature",
           [](TraceBuilder& t) {
             t.set("temperature", F32{1, -1});
           },
           {"request 1", "temperature is -1", "0 (greedy)"}},
          {"a NaN temperature",
           [](TraceBuilder& t) {
             t.set("temperature", F32{kNan, 1});
           },
           {"request 0", "temperature is nan"}},
          {"top_p of 0",
           [](TraceBuilder& t) {
             t.set("top_p", F32{1, 0});
           },
           {"request 1", "top_p", "(0, 1]"}},
          {"min_p above 1",
           [](TraceBuilder& t) {
             t.set("min_p", F32{0, 2});
           },
           {"request 1", "min_p", "[0, 1]"}},
          {"top_k of -1",
           [](TraceBuilder& t) {
             t.set("top_k", I32{-1, 0});
           },
           {"request 0", "top_k is -1", "0 (off)"}},
          {"repetition_penalty of 0",
           [](TraceBuilder& t) {
             t.set("repetition_penalty", F32{1, 0});
           },
           {"request 1", "repetition_penalty", "above 0"}},
          {"infinite frequency_penalty",
           [](TraceBuilder& t) {
             t.set("frequency_penalty", F32{std::numeric_limits<float>::infinity(), 0});
           },
           {"request 0", "frequency_penalty is inf"}},
          {"seeds of 32 bits",
           [](TraceBuilder& t) {
             t.set("seed", I32{1, 2});
           },
           {"'seed'", "has dtype I32", "U64 or I64"}},
          {"a single seed", [](TraceBuilder& t) { t.set("seed", I64{1}); }, {"'seed'", "[1]", "[B] = [2]"}},
          {"a negative step",
           [](TraceBuilder& t) {
             t.set("step", I64{0, -3});
           },
           {"'step'", "entry 1 is -3", "2^32"}},
          {"a step of 2^32",
           [](TraceBuilder& t) {
             t.set("step", I64{4294967296, 0});
           },
           {"'step'", "entry 0 is 4294967296"}},
          {"a prompt without sums",
           [](TraceBuilder& t) { t.set("prompt_tokens", I32{1}); },
           {"'cu_prompt_tokens'", "is missing", "'prompt_tokens' needs it"}},
          {"sums without an output",
           [](TraceBuilder& t) {
             t.set("cu_output_tokens", I32{0, 0});
           },
           {"'output_tokens'", "is missing"}},
          {"a prompt token outside the vocabulary",
           [](TraceBuilder& t) {
             t.set("prompt_tokens", I32{1, -1}).set("cu_prompt_tokens", I32{1, 2});
           },
           {"'prompt_tokens'", "entry 1 is -1", "[0, 4)"}},
          {"prompt sums that end elsewhere",
           [](TraceBuilder& t) {
             t.set("prompt_tokens", I32{1, 1}).set("cu_prompt_tokens", I32{1, 3});
           },
           {"'cu_prompt_tokens'", "ends at 3", "length of prompt_tokens = 2"}},
          {"a mask of drafts only",
           [](TraceBuilder& t) {
             t.set("bitmask", {2, 1}, I32{-1, -1});
           },
           {"'bitmask'", "[2, 1]", "[N, ceil(V/32)] = [4, 1]"}},
          {"a mask of bytes",
           [](TraceBuilder& t) {
             t.set("bitmask", {4, 1}, std::vector<std::uint8_t>(4, 1));
           },
           {"'bitmask'", "has dtype U8", "I32 or U32"}},
          {"half a bias",
           [](TraceBuilder& t) { t.set("logit_bias_tokens", I32{1}); },
           {"logit_bias_values", "all three"}},
          {"a bias outside the vocabulary",
           [](TraceBuilder& t) {
             t.set("logit_bias_tokens", I32{4}).set("logit_bias_values", F32{1}).set("cu_logit_bias", I32{0, 1});
           },
           {"'logit_bias_tokens'", "entry 0 is 4", "[0, 4)"}},
          {"an infinite bias",
           [](TraceBuilder& t) {
             t.set("logit_bias_tokens", I32{3}).set("cu_logit_bias", I32{0, 1});
             t.set("logit_bias_values", F32{-std::numeric_limits<float>::infinity()});
           },
           {"'logit_bias_values'", "entry 0 is -inf", "finite"}},
          {"an unknown sampler",
           [](TraceBuilder& t) { t.metadata("sampler", "inverse_mass"); },
           {"metadata 'sampler'", "'inverse_mass'", "inverse, race"}},
          {"an unknown convention",
           [](TraceBuilder& t) { t.metadata("convention", "vllm"); },
           {"metadata 'convention'", "'vllm'", "draftproof, vllm_v1, vllm_v2"}},
          {"an unknown verifier",
           [](TraceBuilder& t) { t.metadata("verifier", "tree"); },
           {"metadata 'verifier'", "known: chain"}},
          {"draft_processed in words",
           [](TraceBuilder& t) { t.metadata("draft_processed", "true"); },
           {"metadata 'draft_processed'", "'true'", "0, 1"}},
          {"a negative run seed", [](TraceBuilder& t) { t.metadata("seed", "-1"); }, {"metadata 'seed'", "[0, 2^64)"}},
          {"a run seed of 2^64",
           [](TraceBuilder& t) { t.metadata("seed", "18446744073709551616"); },
           {"metadata 'seed'", "[0, 2^64)"}},
      });
}

TEST_CASE("a dense trace that lies gets an error naming the tensor and what would be right") {
  check_lies(tiny_dense_trace(),
             {
                 {"padding in the middle",
                  [](TraceBuilder& t) {
                    t.set("draft_tokens", {2, 2}, I32{3, 1, -1, 2});
                  },
                  {"'draft_tokens'", "request 1", "-1 (padding) at 0", "token 2 after it, at 1", "only at the end"}},
                 {"another negative id",
                  [](TraceBuilder& t) {
                    t.set("draft_tokens", {2, 2}, I32{3, 1, 2, -2});
                  },
                  {"'draft_tokens'", "entry 3 is -2", "-1 (padding)"}},
                 {"sums beside dense rows",
                  [](TraceBuilder& t) {
                    t.set("cu_num_draft_tokens", I32{2, 3});
                  },
                  {"'cu_num_draft_tokens'", "dense"}},
                 {"as many drafts as rows",
                  [](TraceBuilder& t) {
                    t.set("draft_tokens", {2, 3}, I32(6, 1));
                  },
                  {"'draft_tokens'", "[2, 3]", "[B, K] = [2, 2]"}},
                 {"ragged drafts",
                  [](TraceBuilder& t) {
                    t.set("draft_tokens", I32{3, 1, 2});
                  },
                  {"'draft_tokens'", "[3]", "[B, K] = [2, 2]"}},
                 {"no row for the bonus token",
                  [](TraceBuilder& t) {
                    t.set("target_probs", {2, 0, 4}, F32{});
                  },
                  {"'target_probs'", "at least 1"}},
                 {"ragged draft rows",
                  [](TraceBuilder& t) {
                    t.set("draft_probs", {3, 4}, F32(12, 0.25f));
                  },
                  {"'draft_probs'", "[3, 4]", "[B, K, V] = [2, 2, 4]"}},
                 {"a mask with too few words",
                  [](TraceBuilder& t) {
                    t.set("bitmask", {2, 3, 0}, I32{});
                  },
                  {"'bitmask'", "[2, 3, 1]"}},
                 {"a mask of all rows as if packed",
                  [](TraceBuilder& t) {
                    t.set("bitmask", {6, 1}, I32(6, -1));
                  },
                  {"'bitmask'", "[N, ceil(V/32)] = [5, 1]"}},
                 {"unconditional probabilities",
                  [](TraceBuilder& t) {
                    t.set("uncond_logits", {2, 3, 4}, F32(24, 0));
                  },
                  {"'uncond_logits'", "goes with target_logits"}},
                 {"a target row that sums to 0.5",
                  [](TraceBuilder& t) {
                    F32 rows(24, 0.25f);
                    for (std::size_t i = 16; i < 20; ++i) rows[i] = 0.125f;
                    t.set("target_probs", {2, 3, 4}, rows);
                  },
                  {"'target_probs'", "request 1, its row 1", "sum to 0.5"}},
                 {"half precision probabilities that sum to 0.97",
                  [](TraceBuilder& t) {
                    t.set("target_probs", {2, 3, 4}, std::vector<Float16>(24, {f32_to_f16(0.2425f)}));
                  },
                  {"'target_probs'", "sum to 0.97", "within 0.02"}},
                 {"parameters of another dtype beside probabilities",
                  [](TraceBuilder& t) {
                    t.set("top_k", I64{1, 1});
                  },
                  {"'top_k'", "has dtype I64", "I32"}},
                 {"a negative temperature beside probabilities",
                  [](TraceBuilder& t) {
                    t.set("temperature", F32{1, -1});
                  },
                  {"request 1", "temperature"}},
             });
}

TEST_CASE("an override that is unknown is an error of the flag") {
  const TemporaryFolder folder;
  TraceOptions options;
  options.overrides = {{"ties", "none", "--ties"}};
  CHECK_THROWS_WITH(Trace::open(tiny_trace().write(folder.file("t")), options),
                    "--ties: is 'none'; known: exact_k, keep_all");
}

// Opens, and verifies when it opens. Anything but success and our own error escapes and fails the test.
bool opens(const std::string& path) {
  try {
    verify(Trace::open(path));
    return true;
  } catch (const Error& error) {
    CHECK(error.kind() != ErrorKind::internal);
    return false;
  }
}

// Writes a new file each time: writing over one makes some file systems wait for the disk.
void replace_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  write_whole_file(path, bytes);
}

std::string flipped(std::string bytes, std::size_t index, unsigned flip) {
  bytes[index] = static_cast<char>(static_cast<unsigned char>(bytes[index]) ^ flip);
  return bytes;
}

std::size_t header_end_of(const std::string& bytes) {
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  return sizeof header_size + header_size;
}

TEST_CASE("a trace with any byte of its header changed or cut anywhere never crashes") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t");
  const std::string whole = read_whole_file(ragged_trace(make_batch(2, 33, 2, 5)).write(path));
  const std::size_t header_end = header_end_of(whole);
  REQUIRE(opens(path));
  REQUIRE(header_end < whole.size());
  std::size_t refused = 0;
  for (std::size_t i = 0; i < header_end; ++i) {
    replace_file(path, flipped(whole, i, 1u << (i * 5 % 8)));
    if (!opens(path)) ++refused;
  }
  CHECK(refused > header_end * 9 / 10);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 50) {
    replace_file(path, whole.substr(0, size));
    CHECK_FALSE(opens(path));
  }
}

TEST_CASE("a trace with any byte of its data changed never crashes") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t");
  const std::string whole = read_whole_file(ragged_trace(make_batch(2, 5, 2, 5)).write(path));
  int refused = 0;
  for (std::size_t i = header_end_of(whole); i < whole.size(); ++i) {
    replace_file(path, flipped(whole, i, 0xc1u));
    if (!opens(path)) ++refused;
  }
  CHECK(refused > 20);
}

}  // namespace
