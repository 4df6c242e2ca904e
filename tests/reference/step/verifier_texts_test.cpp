// Texts that every verifier must emit: the argmax path at temperature 0, and under coupling the text of plain decoding
// by races, which the test decodes itself.
#include <Random123/philox.h>

#include "reference/step/verify_step.hpp"
#include "tests/reference/step/own_rows.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

using namespace draftproof::own_rows;

namespace {

// A toy language model over processed logits, and drafters that know it more or less.
enum class ToyDrafter : std::uint8_t { target_itself, similar_model, other_model, argmax, random_tokens };
constexpr std::array<ToyDrafter, 5> kToyDrafters{ToyDrafter::target_itself, ToyDrafter::similar_model,
                                                 ToyDrafter::other_model, ToyDrafter::argmax,
                                                 ToyDrafter::random_tokens};

std::vector<RowParameters> race_decoding_parameters() {
  std::vector<RowParameters> all(6);
  all[1].temperature = 0.0f;
  all[2].temperature = 0.6f;
  all[3].temperature = 1.5f;
  all[3].filters.top_k = 5;
  all[4].filters.top_p = 0.8f;
  all[5].filters.min_p = 0.1f;
  all[5].temperature = 0.8f;
  return all;
}

class ToyDecoder {
 public:
  ToyDecoder(std::int64_t vocab_size, std::uint64_t seed, const RowParameters& parameters)
      : vocab_size_(vocab_size), seed_(seed), parameters_(parameters) {}

  // The distribution after `text` of model 0 (the target) or of a drafter's model, into `distribution`; `pipeline`
  // holds its buffers.
  void process(std::span<const Token> text, std::uint64_t model, Pipeline& pipeline, Distribution& distribution,
               std::vector<float>& row) const {
    std::uint64_t context = seed_;
    for (const Token t : text.last(text.size() < 2 ? text.size() : 2))
      context = context * 64 + 1 + static_cast<std::uint64_t>(t);
    TestRandom random(context);
    row = normal_row(random, vocab_size_);
    if (model > 0) {
      TestRandom other(context + 1'000'003 * model);
      for (float& l : row) l += other.normal() * (model == 1 ? 0.4f : 3.0f);
    }
    pipeline.run({{DType::f32, row.data(), vocab_size_}, {}, parameters_, {}, nullptr, 0}, distribution);
  }

  template <class Chance>
  std::vector<Token> draft(ToyDrafter drafter, const std::vector<Token>& context, std::uint32_t draft_len,
                           std::uint32_t list, Chance& chance) const {
    std::vector<Token> text = context;
    Pipeline pipeline;
    Distribution distribution;
    std::vector<float> row;
    TestRandom random(seed_ * 1000 + context.size() + list);
    for (std::uint32_t i = 0; i < draft_len; ++i) {
      if (drafter == ToyDrafter::random_tokens) {
        text.push_back(random.token(vocab_size_));
        continue;
      }
      const std::uint64_t model = drafter == ToyDrafter::target_itself ? 0 : drafter == ToyDrafter::other_model ? 2 : 1;
      process(text, model, pipeline, distribution, row);
      Token argmax = 0;
      for (Token t = 1; t < vocab_size_; ++t)
        if (distribution.probability(t) > distribution.probability(argmax)) argmax = t;
      const auto position = static_cast<std::uint32_t>(text.size());
      text.push_back(drafter == ToyDrafter::argmax
                         ? argmax
                         : chance.coupled_race(DistributionMasses(distribution), position, list));
    }
    return {text.begin() + static_cast<std::ptrdiff_t>(context.size()), text.end()};
  }

 private:
  std::int64_t vocab_size_;
  std::uint64_t seed_;
  RowParameters parameters_;
};

// Gumbel-max over the tokens of positive probability, in long double: of token i the largest noise of `num_lists`
// vectors, from word i % 4 of the Philox block (i / 4, position, list, purpose 6).
Token race(Row& row, std::uint64_t seed, std::uint32_t position, std::uint32_t num_lists) {
  Token winner = kPaddingToken;
  long double best = 0.0L;
  for (Token token = 0; token < row.distribution.vocab_size(); ++token) {
    if (!(row.distribution.probability(token) > 0.0f)) continue;
    if (row.distribution.one_hot() != nullptr) return token;
    long double least = 0.0L;  // exponential noise
    for (std::uint32_t list = 0; list < num_lists; ++list) {
      const auto index = static_cast<std::uint32_t>(token) / 4;
      const auto words = r123::Philox4x32()(
          {{index, position, list, 6}}, {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
      const long double u = (static_cast<long double>(words[static_cast<std::size_t>(token % 4)]) + 0.5L) * 0x1p-32L;
      const long double noise = -std::log1p(-u);
      if (list == 0 || noise < least) least = noise;
    }
    const auto logit = static_cast<long double>(row.pipeline.processed_logits()[static_cast<std::size_t>(token)]);
    const long double score = logit - std::log(least);
    if (winner != kPaddingToken && score <= best) continue;
    winner = token;
    best = score;
  }
  return winner;
}

// The draft of a toy model: a chain, or two paths with equal prefixes merged.
DraftTree toy_draft(const ToyDecoder& model, ToyDrafter drafter, const std::vector<Token>& text, bool is_tree,
                    std::uint64_t seed) {
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, seed, 0);
  const std::vector<Token> first = model.draft(drafter, text, 3, 0, chance);
  DraftTree tree = DraftTree::chain(first);
  if (!is_tree) return tree;
  std::int32_t node = kRootNode;
  for (const Token token : model.draft(drafter, text, 3, 1, chance)) {
    std::int32_t match = kRootNode;
    for (const std::int32_t child : tree.children(node))
      if (tree.tokens[static_cast<std::size_t>(child)] == token) match = child;
    node = match == kRootNode ? tree.add(token, node) : match;
  }
  return tree;
}

}  // namespace

TEST_CASE("at temperature 0 every lossless verifier emits the argmax path") {
  TestRandom random(7300);
  StepWorkspace workspace;
  for (const VerifierInfo& info : verifiers()) {
    if (!info.lossless) continue;
    int accepted = 0;
    int branched = 0;
    for (int i = 0; i < 200; ++i) {
      const bool chain = info.draft == DraftForm::chain;
      const std::int64_t vocab_size = 3 + random.below(10);
      OwnedRequest o = chain ? random_request(random, vocab_size, 4) : random_tree_request(random, vocab_size, 7);
      VerifyRequest& request = o.request;
      request.parameters.temperature = 0.0f;
      if (request.proposal_kind == ProposalKind::one_hot && info.proposal != DraftSampling::any)
        request.draft = DraftTree::chain(o.draft);
      CAPTURE(std::string(info.name), i);
      VerifyOptions options;
      options.verifier = info.verifier;
      options.sampler = i % 2 == 0 ? Sampler::inverse : Sampler::race;
      REQUIRE_NOTHROW(validate(request, options.verifier, i));
      PhiloxSource source;
      const Emission found = verify_step(request, options, source, workspace);

      Row row;
      std::vector<Token> text;
      std::vector<std::int32_t> path;
      for (std::int32_t node = kRootNode;;) {
        process(request, DraftTree::row_after(node), text, row);
        const std::span<const float> logits = row.pipeline.processed_logits();
        text.push_back(static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        const std::vector<std::int32_t> children = request.draft.children(node);
        const auto next = std::find_if(children.begin(), children.end(), [&](std::int32_t child) {
          return request.draft.tokens[static_cast<std::size_t>(child)] == text.back();
        });
        if (next == children.end()) break;
        path.push_back(node = *next);
      }
      REQUIRE(found.tokens == text);
      REQUIRE(found.path == path);
      for (const float logprob : found.logprobs) REQUIRE(logprob == 0.0f);
      accepted += static_cast<int>(path.size());
      branched += request.draft.is_chain() ? 0 : 1;
    }
    CHECK(accepted > 20);
    CHECK((branched > 20) == (info.draft != DraftForm::chain));
  }
}

TEST_CASE("coupled verifiers emit the text of plain decoding by races token for token, whoever drafts") {
  constexpr std::int64_t kVocabSize = 12;
  constexpr std::size_t kLength = 24;
  StepWorkspace workspace;
  std::uint64_t seed = 7400;
  int accepted_of_target = 0;
  int accepted_of_random = 0;
  for (const RowParameters& parameters : race_decoding_parameters())
    for (const std::uint32_t num_lists : {1u, 2u}) {
      const ToyDecoder model(kVocabSize, ++seed, parameters);
      std::vector<float> logits;
      Row row;
      std::vector<Token> plain;
      while (plain.size() < kLength) {
        model.process(plain, 0, row.pipeline, row.distribution, logits);
        plain.push_back(race(row, seed, static_cast<std::uint32_t>(plain.size()), num_lists));
      }
      for (const ToyDrafter drafter : kToyDrafters) {
        std::vector<Token> text;
        for (std::uint32_t step = 0; text.size() < kLength; ++step) {
          VerifyRequest request;
          request.draft = toy_draft(model, drafter, text, num_lists > 1, seed);
          std::vector<float> rows;
          for (std::int32_t node = kRootNode; node < request.draft.size(); ++node) {
            std::vector<Token> prefix = text;
            for (const Token token : request.draft.path(node)) prefix.push_back(token);
            model.process(prefix, 0, row.pipeline, row.distribution, logits);
            rows.insert(rows.end(), logits.begin(), logits.end());
          }
          request.target = matrix_of(rows, request.rows(), kVocabSize);
          request.parameters = parameters;
          request.seed = seed;
          request.step = step;
          if (step % 2 == 0)
            request.output_tokens = text;
          else
            request.position = static_cast<std::uint32_t>(text.size());
          VerifyOptions options;
          options.verifier =
              num_lists == 1 ? VerifierChoice(Verifier::coupled) : parse_verifier("coupled_list:paths=2", "test");
          validate(request, options.verifier, 0);
          PhiloxSource source;
          const Emission emission = verify_step(request, options, source, workspace);
          text.insert(text.end(), emission.tokens.begin(), emission.tokens.end());
          if (drafter == ToyDrafter::target_itself) accepted_of_target += static_cast<int>(emission.num_accepted);
          if (drafter == ToyDrafter::random_tokens) accepted_of_random += static_cast<int>(emission.num_accepted);
        }
        text.resize(kLength);
        CAPTURE(num_lists, seed, static_cast<int>(drafter));
        REQUIRE(text == plain);
      }
    }
  CHECK(accepted_of_target > 150);
  CHECK(accepted_of_random < accepted_of_target / 2);
}
