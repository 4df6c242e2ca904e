#include "engine/scheduler/draft_selection.hpp"

#include "tests/support/test.hpp"

namespace {

struct CostOf final : StepCost {
  explicit CostOf(std::function<double(std::int64_t)> ns) : of_rows(std::move(ns)) {}
  double target_ns(const PassLoad& load) const override { return of_rows(load.rows); }
  double draft_ns(const DraftLoad&) const override { return 0.0; }
  double overhead_ns(std::int64_t, const DraftLoad&) const override { return 0.0; }
  std::function<double(std::int64_t)> of_rows;
};

DraftSelection selection_of(std::function<double(std::int64_t)> ns) {
  return DraftSelection(std::make_shared<CostOf>(std::move(ns)));
}

Draft chain_of(std::initializer_list<Token> tokens, std::int32_t match_len) {
  Draft draft;
  draft.tree = DraftTree::chain(std::vector<Token>(tokens));
  for (std::int32_t i = 0; i < draft.tree.size(); ++i) draft.evidence.push_back({match_len + i, 1.0f});
  return draft;
}

Draft random_draft(std::mt19937& random, int nodes) {
  Draft draft;
  for (std::int32_t node = 0; node < nodes; ++node) {
    draft.tree.add(node, static_cast<std::int32_t>(random() % static_cast<std::size_t>(node + 1)) - 1);
    draft.evidence.push_back(
        {static_cast<std::int32_t>(1 + random() % 20), static_cast<float>(1 + random() % 16) / 16.0f});
  }
  return draft;
}

// Expected tokens per time of the best set of nodes with their parents, by trying all sets.
double best_of_all(const DraftSelection& selection, const std::vector<Draft>& drafts, std::int64_t rows,
                   const std::function<double(std::int64_t)>& ns) {
  std::vector<double> likelihood;
  std::vector<int> parent;
  for (const Draft& draft : drafts) {
    const int first = static_cast<int>(parent.size());
    for (std::size_t i = 0; i < draft.evidence.size(); ++i) {
      parent.push_back(draft.tree.parents[i] == kRootNode ? -1 : first + draft.tree.parents[i]);
      likelihood.push_back((parent.back() < 0 ? 1.0 : likelihood[static_cast<std::size_t>(parent.back())]) *
                           selection.likelihood(draft.evidence[i]));
    }
  }
  double best = 0.0;
  for (std::size_t set = 0; set < std::size_t{1} << parent.size(); ++set) {
    double tokens = static_cast<double>(drafts.size());
    std::int64_t all_rows = rows;
    bool is_tree = true;
    for (std::size_t i = 0; i < parent.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      is_tree = is_tree && (parent[i] < 0 || (set >> parent[i] & 1) == 1);
      tokens += likelihood[i];
      ++all_rows;
    }
    if (is_tree) best = std::max(best, tokens / ns(all_rows));
  }
  return best;
}

TEST_CASE("the nodes that are kept are those that trying every set of nodes finds best", "[speculation]") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    // Times by rows rise, with jumps.
    std::vector<double> times{1.0};
    while (times.size() < 24) times.push_back(times.back() + static_cast<double>(random() % 40) / 100.0);
    const auto ns = [&](std::int64_t rows) { return times[static_cast<std::size_t>(rows)]; };
    const DraftSelection selection = selection_of(ns);
    std::vector<Draft> drafts;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i)
      drafts.push_back(random_draft(random, static_cast<int>(random() % 5)));
    const std::int64_t rows = static_cast<std::int64_t>(drafts.size());
    const double best = best_of_all(selection, drafts, rows, ns);
    std::vector<DraftSelection::Offer> offers;
    for (Draft& draft : drafts) offers.push_back({&draft, 1});
    selection.choose(offers, rows);
    double tokens = static_cast<double>(drafts.size());
    std::int64_t kept_rows = rows;
    for (const Draft& draft : drafts) {
      validate(draft.tree, 100, "kept");
      REQUIRE(draft.evidence.size() == draft.tree.tokens.size());
      std::vector<double> of_path;
      for (std::size_t i = 0; i < draft.evidence.size(); ++i) {
        const std::int32_t parent = draft.tree.parents[i];
        of_path.push_back((parent == kRootNode ? 1.0 : of_path[static_cast<std::size_t>(parent)]) *
                          selection.likelihood(draft.evidence[i]));
        tokens += of_path.back();
        ++kept_rows;
      }
    }
    CHECK(tokens / ns(kept_rows) == Approx(best));
  }
}

TEST_CASE("all is kept where rows cost nothing, nothing where each costs a pass, and the order of nodes stays") {
  for (const bool is_free : {true, false}) {
    const DraftSelection selection =
        selection_of([&](std::int64_t rows) { return is_free ? 1.0 : static_cast<double>(rows); });
    Draft draft = chain_of({5, 6, 7}, 9);
    const std::vector<DraftSelection::Offer> offers{{&draft, 1}};
    selection.choose(offers, 1);
    CHECK(draft.tree.tokens == (is_free ? std::vector<Token>{5, 6, 7} : std::vector<Token>{}));
    CHECK(draft.tree.is_chain());
  }
}

TEST_CASE("a table of step costs that is missing or damaged is one error that says what it should be") {
  const TemporaryFolder folder;
  const std::string path = folder.file("cost.json");
  const auto error = [&](const char* text) {
    if (text != nullptr) std::ofstream(path) << text;
    return error_of(ErrorKind::input, [&] { DefaultStepCost{path}; });
  };
  CHECK(error(nullptr).find(path) != std::string::npos);
  CHECK(error("{\"passes\": [").find(path + ": is not JSON in UTF-8") == 0);
  CHECK(error("{}") == path + ": has 0 passes; expected two or more");
  CHECK(error(R"({"passes": [{"rows": 2, "ms": 3}]})") ==
        path + ": 'passes' 0: has 2 rows; expected row counts that rise from 1");
  CHECK(error(R"({"passes": [{"rows": 1, "ms": 3}, {"rows": 1, "ms": 3}]})") ==
        path + ": 'passes' 1: has 1 rows; expected row counts that rise from 1");
  CHECK(error(R"({"passes": [{"rows": 1, "ms": -3}]})") == path + ": 'passes' 0: takes -3 ms; expected a time above 0");
  CHECK(DefaultStepCost().target_ns(planned_pass(3, 1)) == 1e6 * (3.40 + (3.95 - 3.40) * 1.0 / 2.0));
}

TEST_CASE("a longer match is trusted further, and a batch leaves less room for guesses") {
  const auto cost = std::make_shared<DefaultStepCost>();
  const DraftSelection selection(cost);
  const auto kept = [&](std::int32_t match_len, std::int64_t others) {
    Draft draft = chain_of({1, 2, 3, 4, 5, 6, 7, 8}, match_len);
    std::vector<Draft> empty(static_cast<std::size_t>(others));
    std::vector<DraftSelection::Offer> offers{{&draft, 1}};
    for (Draft& other : empty) offers.push_back({&other, 1});
    selection.choose(offers, 1 + others);
    return draft.tree.size();
  };
  CHECK(kept(1, 0) > 0);
  CHECK(kept(12, 0) > kept(1, 0));
  CHECK(kept(1, 3) == 0);
  CHECK(kept(12, 3) > 0);
}

TEST_CASE("drafts that were not looked up are left whole, and their rows count") {
  std::int64_t asked = 0;
  const DraftSelection selection = selection_of([&](std::int64_t rows) {
    asked = std::max(asked, rows);
    return 1.0;
  });
  Draft drawn;
  drawn.tree = DraftTree::chain(std::vector<Token>{1, 2, 3});
  Draft found = chain_of({4, 5}, 3);
  const std::vector<DraftSelection::Offer> offers{{&drawn, 1}, {&found, 2}};
  selection.choose(offers, 3);
  CHECK(drawn.tree.size() == 3);
  CHECK(asked == 3 + 3 + 2 * 2);
}

TEST_CASE("likelihoods follow what came of drafts, of nodes that were not kept too, down to the first that did not") {
  DraftSelection selection = selection_of([](std::int64_t) { return 1.0; });
  const auto of = [&](std::int32_t match_len) { return selection.likelihood({match_len, 1.0f}); };
  const double second = of(2);
  const double third = of(3);
  CHECK(of(1) == Approx(0.2));
  // The first node came, the second did not, the third was not reached.
  const Draft draft = chain_of({5, 6, 7}, 1);
  selection.observe({draft.tree, draft.evidence}, std::vector<Token>{5, 9});
  CHECK(of(1) == Approx((6 * 0.2 + 1) / 7));
  CHECK(of(2) == Approx(6 * second / 7));
  CHECK(of(3) == third);
  CHECK(selection.likelihood({1, 0.5f}) == Approx(0.5 * of(1)));
  // At most one sibling is accepted, so the sum of their promises is counted.
  Draft siblings;
  siblings.tree = DraftTree({5, 6}, {kRootNode, kRootNode});
  siblings.evidence = {{30, 0.75f}, {30, 0.25f}};
  const double before = of(30);
  selection.observe({siblings.tree, siblings.evidence}, std::vector<Token>{6});
  CHECK(of(30) == Approx((6 * before + 1) / 7));
  for (int i = 0; i < 1000; ++i) selection.observe({siblings.tree, siblings.evidence}, std::vector<Token>{4});
  CHECK(of(30) < 0.01);
}

}  // namespace
