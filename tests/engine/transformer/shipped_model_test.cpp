// The shipped model itself, where it has been fetched: its logits against double precision, and that nothing but the
// tokens decides their bits.
#include "engine/transformer/transformer_model.hpp"
#include "tests/engine/transformer/decoded_streams.hpp"
#include "tests/support/test.hpp"

namespace {

std::shared_ptr<const TransformerWeights> weights_at(const std::string& path) {
  const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
  return std::make_shared<const TransformerWeights>(pack_weights(weights_of_gguf(file), 2));
}

// Output of tests/vectors/make_smollm2_logits.py: a line of tokens, then for some of them a line of the position and of
// pairs of token and logit, the largest logit first.
struct KnownLogits {
  std::vector<Token> tokens;
  struct Row {
    std::size_t position;
    std::vector<std::pair<Token, double>> logits;
  };
  std::vector<Row> rows;
};

KnownLogits known_logits() {
  std::ifstream in(DRAFTPROOF_SOURCE_DIR "/tests/vectors/smollm2_logits.txt");
  KnownLogits known;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    if (known.tokens.empty()) {
      for (Token token; words >> token;) known.tokens.push_back(token);
      continue;
    }
    KnownLogits::Row row;
    words >> row.position;
    Token token = 0;
    for (double logit = 0.0; words >> token >> logit;) row.logits.emplace_back(token, logit);
    known.rows.push_back(row);
  }
  return known;
}

}  // namespace

TEST_CASE("logits of the shipped model are those of double precision, within the error of each arithmetic",
          "[release]") {
  const std::optional<std::string> path = shipped_model_path();
  if (!path) return;
  const KnownLogits known = known_logits();
  REQUIRE(known.rows.size() >= 8);
  TransformerModel exact(weights_at(*path), Arithmetic::f32, 2);
  const std::unique_ptr<TransformerModel> fast = exact.with_arithmetic(Arithmetic::int8);
  for (TransformerModel* const model : {&exact, fast.get()}) {
    PlainDecoding decoded(*model);
    decoded.after(known.tokens);
    double squares = 0.0;
    double worst = 0.0;
    double count = 0.0;
    for (const KnownLogits::Row& row : known.rows) {
      const std::vector<Token> path_here(known.tokens.begin(),
                                         known.tokens.begin() + static_cast<std::ptrdiff_t>(row.position) + 1);
      const std::vector<float>& logits = decoded.after(path_here).logits;
      for (const auto& [token, logit] : row.logits) {
        const double off = std::fabs(static_cast<double>(logits[static_cast<std::size_t>(token)]) - logit);
        if (!(off <= worst)) worst = off;
        squares += off * off;
        count += 1.0;
      }
      if (model == &exact)
        CHECK(std::max_element(logits.begin(), logits.end()) - logits.begin() == row.logits.front().first);
    }
    const double rms = std::sqrt(squares / count);
    INFO("root mean square error: " << rms << ", worst: " << worst);
    CHECK(rms < (model == &exact ? 0.01 : 0.5));
    CHECK(worst < (model == &exact ? 0.05 : 2.0));
    CHECK(rms > 0.0);
  }
}

TEST_CASE("bits of the shipped model depend on no batch, tree, chunk, thread or instruction set") {
  const std::optional<std::string> path = shipped_model_at_full_speed();
  if (!path) return;
  const auto weights = weights_at(*path);
  for (const Arithmetic arithmetic : {Arithmetic::int8, Arithmetic::f32}) {
    TransformerModel plain_model(weights, arithmetic, 1);
    PlainDecoding plain(plain_model);
    for (const TransformerKernels& kernels : available_transformer_kernels()) {
      if (std::string(kernels.target) == "scalar") continue;
      INFO("kernels: " << kernels.target);
      TransformerModel model(weights, arithmetic, 2, std::nullopt, kernels);
      DecodedStreams streams(model, 2, 12, 7);
      int mismatches = 0;
      for (int round = 0; round < 2; ++round) mismatches += streams.run_batch(19, 8, plain);
      CHECK(mismatches == 0);
      CHECK(streams.rows() > 20);
    }
    // One token in scalar code, which takes a while.
    TransformerModel scalar(weights, arithmetic, 2, std::nullopt, scalar_transformer_kernels());
    PlainDecoding scalar_decoding(scalar);
    CHECK(same_row(scalar_decoding.after({9906}).logits.data(), plain.after({9906}).logits));
  }
}
