// Requests read from a trace file, in either layout, are those that it was made from.
#include "reference/trace/trace.hpp"

#include "reference/random/philox.hpp"
#include "reference/step/batch.hpp"
#include "reference/trace/trace_writer.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<Emission> verify(const Trace& trace, int threads = 1) {
  return verify_batch(trace.requests(), trace.verify_options(), threads);
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
      r.draft = DraftTree::chain(part(batch.drafts, batch.cu_draft));
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
      r.logprob_token_ids = part(batch.logprob_ids, batch.cu_logprob_ids);
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
  CHECK(same_emission(verify(trace), expected));
  CHECK(same_emission(verify(trace, 2), expected));
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
                                                        {"logit_bias_tokens", "logit_bias_values", "cu_logit_bias"},
                                                        {"logprob_token_ids", "cu_logprob_token_ids"}};
  for (const auto& group : groups) {
    INFO(group.front());
    TraceBuilder trace = ragged_trace(batch);
    for (const std::string& name : group) trace.drop(name);
    CHECK_FALSE(same_emission(verify(Trace::open(trace.write(folder.file("t")))), whole));
  }
}

TEST_CASE("a placeholder within drafts ends them: its row is the bonus row, in both layouts") {
  const TemporaryFolder folder;
  RandomBatch batch = make_batch(40, 30, 7);
  HandMadeRequests by_hand(batch);
  std::size_t first = 0;
  std::size_t ended = 0;
  for (std::size_t b = 0; b < batch.requests(); ++b) {
    if (batch.draft_len[b] > 1) {  // the draft behind the placeholder is not looked at
      batch.drafts[first + static_cast<std::size_t>(batch.draft_len[b]) - 2] = kPaddingToken;
      VerifyRequest& request = by_hand.requests[b];
      const std::int64_t left = batch.draft_len[b] - 2;
      request.draft = DraftTree::chain(std::span(request.draft.tokens).first(static_cast<std::size_t>(left)));
      request.target.rows = request.unconditional->rows = left + 1;
      request.proposal.rows = left;
      ++ended;
    }
    first += static_cast<std::size_t>(batch.draft_len[b]);
  }
  REQUIRE(ended > 10);
  const Trace trace = Trace::open(ragged_trace(batch).write(folder.file("t")));
  const std::vector<Emission> expected = verify_batch(by_hand.requests, trace.verify_options(), 1);
  CHECK(same_emission(verify(trace), expected));
  CHECK(same_emission(verify(Trace::open(dense_trace(batch).write(folder.file("d")))), expected));
}

TEST_CASE("ragged and dense layouts of the same step give the same emissions") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(40, 33, 3);
  const std::vector<Emission> ragged = verify(Trace::open(ragged_trace(batch).write(folder.file("r"))));
  const Trace dense = Trace::open(dense_trace(batch).write(folder.file("d")));
  CHECK(dense.is_dense());
  CHECK(same_emission(verify(dense), ragged));
  CHECK(same_emission(verify(Trace::open(dense_trace(batch, false).write(folder.file("d2")))), ragged));
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
  CHECK(same_emission(verify(Trace::open(trace.write(folder.file("b")))), expected));
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
  CHECK(same_emission(verify(Trace::open(rounded.write(folder.file("b")))), verify(exact)));
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
  CHECK(same_emission(verify(odd), verify(trace)));
}

TEST_CASE("a trace outlives the objects it was copied from") {
  const TemporaryFolder folder;
  const RandomBatch batch = make_batch(10, 33, 3);
  const auto open_and_copy = [&] {
    const Trace original = Trace::open(ragged_trace(batch).write(folder.file("t")));
    return Trace(original);
  };
  const Trace copy = open_and_copy();
  CHECK(same_emission(verify(copy), verify(Trace::open(folder.file("t")))));
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

TEST_CASE("top_p as a fraction is compared exactly, and a trace keeps it") {
  const TemporaryFolder folder;
  TraceBuilder file;  // five tokens of 1/5 each: four of them reach 4/5, and not 0.8f
  file.set("target_logits", {64, 1, 5}, std::vector<float>(64 * 5)).set("draft_tokens", {64, 0}, std::vector<Token>{});
  const auto last_tokens = [](const Trace& trace) {
    const std::vector<Emission> emissions = verify(trace);
    return std::count_if(emissions.begin(), emissions.end(), [](const Emission& e) { return e.tokens[0] == 4; });
  };
  file.set("top_p", {}, std::vector<float>{0.8f});
  CHECK(last_tokens(Trace::open(file.write(folder.file("float")))) > 0);
  file.set("top_p_numerator", {}, std::vector<std::int32_t>{4});
  file.set("top_p_denominator", {}, std::vector<std::int64_t>{5});
  const Trace exact = Trace::open(file.write(folder.file("exact")));
  CHECK(last_tokens(exact) == 0);
  write_trace(folder.file("again"), exact.requests(), exact.verify_options());
  CHECK(last_tokens(Trace::open(folder.file("again"))) == 0);
}

TEST_CASE("numbers of 64 bits, scalars for all requests and parameters of further samplers are read") {
  const TemporaryFolder folder;
  const auto file = [] {
    TraceBuilder trace;
    trace.set("target_logits", {2, 1, 4}, std::vector<float>{0, 1, 2, 3, 3, 2, 1, 0});
    trace.set("draft_tokens", {2, 0}, std::vector<std::int32_t>{});
    trace.set("top_p", std::vector<float>{0.75f, 0.75f});
    return trace;
  };
  TraceBuilder wide = file();
  wide.set("target_logits", {2, 1, 4}, std::vector<double>{0, 1, 2, 3, 3, 2, 1, 0});
  wide.set("top_p", {}, std::vector<double>{0.75});
  const Trace narrow_trace = Trace::open(file().write(folder.file("narrow")));
  const Trace wide_trace = Trace::open(wide.write(folder.file("wide")));
  REQUIRE(wide_trace.requests().size() == 2);
  CHECK(wide_trace.requests()[1].parameters.filters.top_p == 0.75f);
  CHECK(same_emission(verify(narrow_trace), verify(wide_trace)));

  TraceBuilder sampled = file();
  sampled.set("top_p", {}, std::vector<float>{0.0f});
  sampled.set("typical_p", std::vector<float>{0.5f, 0.25f}).set("mirostat", {}, std::vector<std::int32_t>{2});
  sampled.set("mirostat_mu", std::vector<double>{3.5, 4.5}).set("dry_breakers", std::vector<std::int64_t>{2, 3});
  const Trace trace = Trace::open(sampled.write(folder.file("sampled")));
  const VerifyRequest& second = trace.requests()[1];
  CHECK(second.parameters.samplers.typical_p == 0.25f);
  CHECK(second.parameters.samplers.mirostat == 2.0f);
  CHECK(second.parameters.samplers.mirostat_mu == 4.5f);
  CHECK(second.constraints.dry_breakers.size() == 2);
  const std::vector<Emission> first_tokens = verify(trace);  // a top_p of 0
  CHECK(first_tokens[0].tokens == std::vector<Token>{3});
  CHECK(first_tokens[1].tokens == std::vector<Token>{0});
}

}  // namespace
