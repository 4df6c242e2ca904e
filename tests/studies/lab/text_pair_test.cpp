#include "studies/lab/text_pair.hpp"

#include "engine/model/model_session.hpp"
#include "engine/model/text_model.hpp"
#include "studies/tree/tree_building.hpp"
#include "studies/tree/tree_explorer.hpp"
#include "tests/support/test.hpp"

namespace {

const TextPairSettings kNgrams{"ngram:5", "ngram:3", "This License applies to", 1.0f};

// Probabilities by the standard library, one context at a time.
std::vector<double> plain_softmax(LanguageModel& model, const std::vector<Token>& context) {
  ModelSession session(model);
  std::vector<float> logits(static_cast<std::size_t>(session.vocab_size()));
  session.logits(context, logits);
  std::vector<double> row;
  double total = 0.0;
  for (const float logit : logits) {
    row.push_back(std::exp(static_cast<double>(logit)));
    total += row.back();
  }
  for (double& p : row) p /= total;
  return row;
}

}  // namespace

TEST_CASE("the rows of a text pair are those of its models, each context computed alone") {
  const auto pair = borrow_text_pair(kNgrams);
  const TextModel target = open_text_model("ngram:5", "", {}, "--model");
  const TextModel draft = open_text_model("ngram:3", "", {}, "--model");
  const std::vector<Token> context = target.tokenizer->encode(kNgrams.prompt);
  const DraftTree tree = likeliest_tree(TreeBuilder::eagle2, 10, {4, 3}, {}, *pair);
  REQUIRE(tree.size() == 10);
  const std::vector<PairRow> rows = pair->targets(tree);
  const std::vector<double> probabilities = pair->target_probabilities(tree);
  for (std::int32_t node = kRootNode; node < tree.size(); ++node) {
    std::vector<Token> longer = context;
    for (const Token token : tree.path(node)) longer.push_back(token);
    const std::vector<double> p = plain_softmax(*target.model, longer);
    const PairRow& row = rows[DraftTree::row_after(node)];
    for (std::size_t i = 0; i < p.size(); ++i) CHECK(row[i] == Approx(p[i]).epsilon(1e-4).margin(1e-7));
    const std::vector<double> q = plain_softmax(*draft.model, longer);
    for (std::size_t i = 0; i < q.size(); ++i)
      CHECK(pair->draft(tree.path(node))[i] == Approx(q[i]).epsilon(1e-4).margin(1e-7));
  }
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    CHECK(probabilities[i] == rows[DraftTree::row_after(tree.parents[i])][static_cast<std::size_t>(tree.tokens[i])]);
}

TEST_CASE("a snapshot of a text pair does not depend on what was asked of the pair before") {
  TreeExplorerSettings settings;
  settings.model = kNgrams.model;
  settings.drafter = kNgrams.drafter;
  settings.prompt = kNgrams.prompt;
  const auto snapshot = [&](std::int32_t nodes, const std::string& builder) {
    settings.nodes = nodes;
    settings.builder = builder;
    Job job;
    ordered_json last;
    compute(settings, job, [&](const TreeExplorerSnapshot& s) { last = to_json(s); });
    return last;
  };
  const auto fresh = snapshot(12, "opt_tree");
  CHECK(snapshot(20, "eagle2") != fresh);
  settings.prompt = "another prompt";
  CHECK(snapshot(12, "opt_tree") != fresh);
  settings.prompt = kNgrams.prompt;
  CHECK(snapshot(12, "opt_tree") == fresh);
}

TEST_CASE("a text pair without probabilities, prompt or model is refused") {
  const auto refusal = [](TextPairSettings settings) {
    return error_of(ErrorKind::usage, [&] { borrow_text_pair(settings); });
  };
  CHECK(refusal({"ngram:5", "suffix", "text", 1.0f}).find("whose drafts have no probabilities") != std::string::npos);
  CHECK(refusal({"ngram:5", "ngram:3", "", 1.0f}).find("expected a text to continue") != std::string::npos);
  CHECK(refusal({"ngram:5", "layer_skip:1", "text", 1.0f}).find("has no layers") != std::string::npos);
}
