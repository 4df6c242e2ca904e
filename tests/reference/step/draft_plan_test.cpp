#include "reference/step/draft_plan.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a draft tree with branches is planned for verifiers that take one, and others name those") {
  const TreeShape tree = parse_tree("2x2", "--tree");
  int refused = 0;
  for (const VerifierInfo& info : verifiers()) {
    INFO(info.name);
    const VerifierChoice choice(info.verifier);
    CHECK(plan_for(choice, parse_tree("1x1", "--tree"), 4, "--tree").shape.size() == 2);
    const bool paths = info.takes_paths();
    if (info.draft != DraftForm::chain && !paths) {
      CHECK(plan_for(choice, tree, 4, "--tree").shape.size() == 6);
      continue;
    }
    ++refused;
    CHECK(error_of(ErrorKind::usage, [&] { plan_for(choice, tree, 4, "--tree"); }) ==
          "--tree: verifier " + std::string(info.name) + " takes " + (paths ? "independent paths" : "a chain") +
              ", and the tree has branches; expected no tree, or verifier naive, target_only, rrs, rrsw, k_seq, "
              "importance, "
              "greedy_draft, traversal, typical, thresholds");
  }
  CHECK(refused == 13);
}
