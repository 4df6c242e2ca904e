#include "engine/draft/suffix_drafter.hpp"

#include "engine/draft/front_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "tests/support/test.hpp"

namespace {

using Tokens = std::vector<Token>;

class NoChance final : public DraftChance {
 public:
  Token draw(const Distribution&, std::uint32_t) override { throw std::logic_error("suffix decoding draws nothing"); }
  Token draw(const DenseMasses<double>&, std::uint32_t) override { throw std::logic_error("nor from a row"); }
  Token coupled_race(const Distribution&, std::uint32_t, std::uint32_t) override {
    throw std::logic_error("nor races");
  }
};

DraftTree propose(SuffixDrafter& drafter, const Tokens& tokens, const DraftPlan& plan, std::uint64_t request = 0,
                  std::size_t prompt_len = 0) {
  NoChance chance;
  Draft draft;
  drafter.propose({tokens, prompt_len, request}, plan, chance, draft);
  CHECK(draft.proposal_kind == ProposalKind::one_hot);
  return draft.tree;
}

DraftPlan chain(int length) {
  return {chain_shape(length)};
}

TEST_CASE("suffix decoding drafts what most often followed the context's last tokens") {
  SuffixDrafter drafter;
  // 1 2 was followed by 3 twice and by 4 once.
  const Tokens context{1, 2, 3, 9, 1, 2, 4, 8, 1, 2, 3, 7, 1, 2};
  CHECK(propose(drafter, context, chain(1)).tokens == Tokens{3});
  // Then by 9 or 7, each half of the times; of equal ones the smallest. 2 of the match times the factor are 4 at most.
  CHECK(propose(drafter, context, chain(8)).tokens == Tokens{3, 7, 1, 2});
  CHECK(propose(drafter, Tokens{1, 2, 3}, chain(4)).tokens.empty());
}

TEST_CASE("a draft of suffix decoding ends where its probability falls below the limit") {
  SuffixParameters parameters;
  parameters.least_probability = 0.6;
  SuffixDrafter drafter(parameters);
  const Tokens context{1, 2, 3, 9, 1, 2, 4, 8, 1, 2, 3, 7, 1, 2};
  CHECK(propose(drafter, context, chain(8)).tokens == Tokens{3});
}

TEST_CASE("a longer match allows a longer draft") {
  SuffixDrafter drafter;
  Tokens context;
  for (Token t = 0; t < 40; ++t) context.push_back(t);
  for (Token t = 0; t < 3; ++t) context.push_back(t);
  CHECK(propose(drafter, context, chain(16)).tokens == Tokens{3, 4, 5, 6, 7, 8});
  for (Token t = 3; t < 12; ++t) context.push_back(t);
  CHECK(propose(drafter, context, chain(16)).tokens.size() == 16);
}

TEST_CASE("earlier requests are remembered, their prompts are not, and the option turns it off") {
  for (const bool across : {true, false}) {
    SuffixParameters parameters;
    parameters.across_requests = across;
    SuffixDrafter drafter(parameters);
    const Tokens first{5, 6, 7, 1, 2, 3, 4};
    propose(drafter, first, chain(4), 1, 3);
    drafter.finish({first, 3, 1});
    CHECK(propose(drafter, {9, 1, 2}, chain(4), 2, 3).tokens == (across ? Tokens{3, 4} : Tokens{}));
    CHECK(propose(drafter, {9, 5, 6}, chain(4), 3, 3).tokens.empty());
  }
}

TEST_CASE("a context that did not grow out of the last one is drafted for as if it were new") {
  SuffixDrafter drafter;
  const Tokens before{1, 2, 3, 1, 2};
  CHECK(propose(drafter, before, chain(4)).tokens == Tokens{3, 1, 2});
  CHECK(propose(drafter, {4, 2, 5, 4, 2}, chain(4)).tokens == Tokens{5, 4, 2});
  CHECK(propose(drafter, before, chain(4)).tokens == Tokens{3, 1, 2});
}

TEST_CASE("as a tree, suffix decoding drafts the most probable nodes, parents first") {
  SuffixDrafter drafter;
  const Tokens context{1, 2, 3, 9, 1, 2, 4, 8, 1, 2, 3, 7, 1, 2};
  DraftPlan plan{branching_shape({2, 2})};
  plan.sampling = DraftSampling::any;
  const DraftTree tree = propose(drafter, context, plan);
  // 3 (2/3), 4 (1/3), then 3 7, 3 9 and 4 8 (1/3 each).
  CHECK(tree.tokens == Tokens{3, 4, 7, 9, 8});
  CHECK(tree.parents == std::vector<std::int32_t>{-1, -1, 0, 0, 1});
}

TEST_CASE("a looked-up draft says of each node how long the match before it is and how often the token followed") {
  SuffixDrafter drafter;
  NoChance chance;
  Draft draft;
  const Tokens context{1, 2, 3, 9, 1, 2, 4, 8, 1, 2, 3, 7, 1, 2};
  drafter.propose({context, 0, 0}, chain(2), chance, draft);
  REQUIRE(draft.evidence.size() == 2);
  CHECK(draft.evidence[0].match_len == 2);
  CHECK(draft.evidence[0].frequency == Approx(2.0 / 3.0));
  CHECK(draft.evidence[1].match_len == 3);
  CHECK(draft.evidence[1].frequency == 0.5f);
  DraftPlan plan{branching_shape({2, 2})};
  plan.sampling = DraftSampling::any;
  drafter.propose({context, 0, 0}, plan, chance, draft);
  REQUIRE(draft.tree.tokens == Tokens{3, 4, 7, 9, 8});
  REQUIRE(draft.evidence.size() == 5);
  CHECK(draft.evidence[1].frequency == Approx(1.0 / 3.0));
  CHECK(draft.evidence[4].match_len == 3);
  CHECK(draft.evidence[4].frequency == 1.0f);
  const PromptLookup::Found found = PromptLookup(1, 8).find(context, 2);
  CHECK(found.match_len == 2);
  CHECK(found.tokens == Tokens{3, 9});
}

TEST_CASE("suffix decoding forgets the oldest outputs when it holds too many tokens") {
  SuffixParameters parameters;
  parameters.remembered_tokens = 20;
  SuffixDrafter drafter(parameters);
  for (Token request = 0; request < 10; ++request) {
    const Token t = 10 * request;
    drafter.finish({Tokens{t, t + 1, t + 2, t + 3, t + 4}, 0, static_cast<std::uint64_t>(request)});
  }
  CHECK(propose(drafter, {90, 91}, chain(2), 99).tokens == Tokens{92, 93});
  CHECK(propose(drafter, {0, 1}, chain(2), 98).tokens.empty());
}

TEST_CASE("a parameter of suffix decoding outside its range is refused") {
  SuffixParameters parameters;
  parameters.least_probability = 0.0;
  CHECK_THROWS_WITH(SuffixDrafter(parameters), Contains("expected a value in (0, 1]"));
  parameters = {};
  parameters.match_min = 64;
  CHECK_THROWS_WITH(SuffixDrafter(parameters), Contains("less than the depth"));
}

// Drafts token 77 with confidence 1/2; fails for contexts that begin with 99.
class FixedDrafter final : public Drafter {
 public:
  void propose(const DraftContext& context, const DraftPlan&, DraftChance&, Draft& out) override {
    if (context.tokens.front() == 99) throw input_error("context", "begins with 99");
    out.tree = DraftTree::chain(Tokens{77});
    out.confidences = {0.5f};
  }
  bool has_confidences() const override { return true; }
};

TEST_CASE("suffix decoding in front of a drafter drafts behind four tokens that occurred before, the other elsewhere") {
  // 1 2 3 4 was followed by 5 and then 6; by 5 alone of two occurrences later on. Of three tokens too few match.
  const std::vector<Tokens> contexts{{1, 2, 3, 4, 5, 6, 1, 2, 3, 4},
                                     {9, 2, 3, 4, 5, 6, 1, 2, 3, 4},
                                     {99, 1},
                                     {1, 2, 3, 4, 5, 1, 2, 3, 4, 7, 1, 2, 3, 4}};
  SuffixFrontDrafter drafter(std::make_shared<FixedDrafter>());
  CHECK(drafter.has_confidences());
  CHECK_FALSE(drafter.looks_up());
  NoChance chance;
  std::vector<Draft> drafts(contexts.size());
  std::vector<DraftJob> jobs;
  for (std::size_t i = 0; i < contexts.size(); ++i)
    jobs.push_back({{contexts[i], 0, i}, chain(2), &chance, &drafts[i]});
  drafter.propose_all(jobs, nullptr);
  CHECK(drafts[0].tree.tokens == Tokens{5, 6});
  CHECK(drafts[0].confidences == std::vector<float>{1.0f, 1.0f});
  CHECK(drafts[0].evidence.empty());
  CHECK(drafts[1].tree.tokens == Tokens{77});
  CHECK(drafts[1].confidences == std::vector<float>{0.5f});
  CHECK(drafts[3].tree.tokens == Tokens{5, 1});
  CHECK(drafts[3].confidences == std::vector<float>{0.5f, 1.0f});
  for (std::size_t i = 0; i < jobs.size(); ++i) CHECK((jobs[i].failure != nullptr) == (i == 2));
  for (const int threshold : {3, 4}) {  // tokens before the last one, of which three match
    SuffixFrontDrafter front(std::make_shared<FixedDrafter>(), threshold);
    Draft draft;
    front.propose({Tokens{1, 2, 3, 7, 9, 1, 2, 3}, 0, 0}, chain(1), chance, draft);
    CHECK(draft.tree.tokens == Tokens{threshold == 3 ? 7 : 77});
  }
}

}  // namespace
