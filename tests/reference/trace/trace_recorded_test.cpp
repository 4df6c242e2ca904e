// Recorded random numbers in both layouts of a trace: each request gets its own.
#include "reference/step/batch.hpp"
#include "reference/trace/trace.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::uint64_t kTokens = 5;
constexpr std::uint64_t kWide = 3;  // drafts of the longest request

// The same steps and numbers twice: [N, ...] and [B, K + 1, ...] with padding.
struct BothLayouts {
  std::vector<std::uint64_t> draft_len{2, 0, 3, 1, 3, 0, 2, 3};
  TraceBuilder ragged, dense;
  TestRandom random{91};

  BothLayouts() {
    std::vector<Token> drafts, padded;
    std::vector<std::int64_t> sums;
    for (const std::uint64_t length : draft_len) {
      for (std::uint64_t i = 0; i < kWide; ++i) {
        padded.push_back(i < length ? random.token(kTokens) : kPaddingToken);
        if (i < length) drafts.push_back(padded.back());
      }
      sums.push_back(static_cast<std::int64_t>(drafts.size()));
    }
    ragged.set("cu_num_draft_tokens", sums).set("draft_tokens", drafts);
    dense.set("draft_tokens", {draft_len.size(), kWide}, padded);
    const auto probability = [&](std::uint64_t) { return 0.2f; };
    rows("draft_probs", 0, kTokens, probability);
    rows("target_probs", 1, kTokens, [&](std::uint64_t t) { return t == 4 ? 0.0f : t == 0 ? 0.4f : 0.2f; });
  }

  // A number for each draft (more = 0) or row (more = 1), `width` of them each.
  template <class ValueOf>
  void rows(const std::string& name, std::uint64_t more, std::uint64_t width, const ValueOf& value_of) {
    using Value = decltype(value_of(std::uint64_t{}));
    std::vector<Value> packed, padded;
    for (const std::uint64_t length : draft_len)
      for (std::uint64_t i = 0; i < (kWide + more) * width; ++i) {
        padded.push_back(i < (length + more) * width ? value_of(i % width) : Value{});
        if (i < (length + more) * width) packed.push_back(padded.back());
      }
    std::vector<std::uint64_t> packed_shape{packed.size() / width}, padded_shape{draft_len.size(), kWide + more};
    if (width > 1) packed_shape.push_back(width), padded_shape.push_back(width);
    ragged.set(name, packed_shape, packed);
    dense.set(name, padded_shape, padded);
  }
  void each(const std::string& name, const std::vector<Token>& tokens) {
    ragged.set(name, tokens);
    dense.set(name, tokens);
  }

  std::vector<std::vector<Token>> emitted_by(const TraceBuilder& trace, const std::string& verifier) const {
    const TemporaryFolder folder;
    TraceOptions options;
    options.overrides.push_back({"verifier", verifier, "test"});
    const Trace opened = Trace::open(trace.write(folder.file("t.safetensors")), options);
    std::vector<std::vector<Token>> tokens;
    for (const Emission& emission : verify_batch(opened.requests(), opened.verify_options(), 1))
      tokens.push_back(emission.tokens);
    return tokens;
  }
  void check_same(const std::string& verifier) const {
    const auto packed = emitted_by(ragged, verifier);
    CHECK(packed == emitted_by(dense, verifier));
    // Not all of one length: the numbers have a say.
    CHECK(std::any_of(packed.begin(), packed.end(), [&](const auto& t) { return t.size() != packed[0].size(); }));
  }
};

}  // namespace

TEST_CASE("recorded numbers of ragged and dense traces belong to the same drafts, rows and requests") {
  SECTION("words for coins, numbers for the draws of each row") {
    BothLayouts both;
    both.rows("uniforms", 0, 1, [&](std::uint64_t) { return both.random.word(); });
    both.rows("draw_uniforms", 1, 1, [&](std::uint64_t) { return both.random.uniform(); });
    both.check_same("chain");
    both.check_same("block");
    both.check_same("rrs");
  }
  SECTION("coins of rows, and a row of noise for each row") {
    BothLayouts both;
    both.rows("uniforms", 1, 1, [&](std::uint64_t) { return static_cast<float>(both.random.uniform()); });
    both.rows("gumbel_noise", 1, kTokens, [&](std::uint64_t) { return both.random.normal(); });
    both.check_same("target_only");
  }
  SECTION("tokens of each draft and request") {
    BothLayouts both;
    both.rows("uniforms", 0, 1, [&](std::uint64_t) { return both.random.uniform(); });
    both.rows("recovered_tokens", 0, 1, [](std::uint64_t) { return Token{0}; });
    both.each("bonus_tokens", {0, 1, 2, 3, 0, 1, 2, 3});
    both.check_same("chain");
    const auto tokens = both.emitted_by(both.ragged, "chain");
    CHECK(tokens[1] == std::vector<Token>{1});  // without drafts: the request's own bonus token
    CHECK(tokens[5] == std::vector<Token>{1});
  }
  SECTION("one row of noise a request serves all of its rows") {
    BothLayouts both;
    both.rows("uniforms", 0, 1, [&](std::uint64_t) { return both.random.uniform(); });
    std::vector<float> noise(8 * kTokens, 1.0f);
    for (std::size_t b = 0; b < 8; ++b) noise[b * kTokens + b % 4] = 0.015625f;  // token b % 4 wins where it has mass
    both.ragged.set("exponential_noise", {8, kTokens}, noise);
    both.dense.set("exponential_noise", {8, kTokens}, noise);
    both.check_same("chain");
    const auto tokens = both.emitted_by(both.ragged, "chain");
    CHECK(tokens[1] == std::vector<Token>{1});
    CHECK(tokens[5] == std::vector<Token>{1});
  }
}
