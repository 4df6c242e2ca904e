#include "engine/draft/prompt_lookup.hpp"

#include <chrono>

#include "tests/support/test.hpp"

using draftproof::LookupTie;
using draftproof::PromptLookup;
using draftproof::Token;
using Tokens = std::vector<Token>;

namespace {

// The definition, with nothing clever: every suffix length from the longest, every place where it could occur.
Tokens propose_by_definition(const Tokens& context, int min_n, int max_n, LookupTie tie, int k) {
  const int length = static_cast<int>(context.size());
  for (int n = max_n; n >= min_n; --n) {
    std::vector<int> starts;
    for (int start = 0; start + n < length; ++start) {
      if (std::equal(context.end() - n, context.end(), context.begin() + start)) starts.push_back(start);
    }
    if (starts.empty()) continue;
    const int after = n + (tie == LookupTie::earliest ? starts.front() : starts.back());
    return {context.begin() + after, context.begin() + std::min(length, after + k)};
  }
  return {};
}

}  // namespace

TEST_CASE("Prompt lookup continues the earlier occurrence of the longest suffix") {
  // [2,3] occurred before, and 4,2,3 is all that follows it.
  CHECK(PromptLookup(2, 3).propose(Tokens{1, 2, 3, 4, 2, 3}, 4) == Tokens{4, 2, 3});
  CHECK(PromptLookup(2, 3).propose(Tokens{1, 2, 3, 4, 2, 3}, 2) == Tokens{4, 2});
  // [3] occurs first after 9, but the longer [2,3] wins although it is later.
  CHECK(PromptLookup(1, 3).propose(Tokens{9, 3, 8, 2, 3, 7, 2, 3}, 1) == Tokens{7});
  // max_n caps the length: of the two occurrences of [3], the earlier one wins even where [2,3] would be longer.
  CHECK(PromptLookup(1, 1).propose(Tokens{9, 3, 8, 2, 3, 7, 2, 3}, 1) == Tokens{8});
}

TEST_CASE("Prompt lookup equals its definition on random strings over small alphabets") {
  std::mt19937 random(20240607);
  int proposals = 0;
  int silences = 0;
  int rules_differ = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto alphabet = static_cast<unsigned>(1 + random() % 4);
    Tokens context(random() % 40);
    for (Token& token : context) token = static_cast<Token>(random() % alphabet);
    const int min_n = static_cast<int>(1 + random() % 4);
    const int max_n = min_n + static_cast<int>(random() % 6);
    const int k = static_cast<int>(random() % 7);
    CAPTURE(trial, context, min_n, max_n, k);
    const Tokens earliest = PromptLookup(min_n, max_n, LookupTie::earliest).propose(context, k);
    const Tokens most_recent = PromptLookup(min_n, max_n, LookupTie::most_recent).propose(context, k);
    REQUIRE(earliest == propose_by_definition(context, min_n, max_n, LookupTie::earliest, k));
    REQUIRE(most_recent == propose_by_definition(context, min_n, max_n, LookupTie::most_recent, k));
    ++(earliest.empty() ? silences : proposals);
    rules_differ += earliest != most_recent;
  }
  CHECK(proposals > 5000);
  CHECK(silences > 2000);
  CHECK(rules_differ > 2000);
}

TEST_CASE("Prompt lookup takes linear time on its worst case") {
  // A million ones, a two, and 20000 ones: a search that starts again after every mismatch compares 20000 tokens at
  // each of a million places, which takes many seconds; linear time is some milliseconds.
  Tokens context(1'000'000, 1);
  context.push_back(2);
  context.insert(context.end(), 20'000, 1);
  const auto start = std::chrono::steady_clock::now();
  CHECK(PromptLookup(1, 20'001, LookupTie::earliest).propose(context, 3) == Tokens{1, 1, 1});
  CHECK(PromptLookup(1, 20'001, LookupTie::most_recent).propose(context, 3) == Tokens{2, 1, 1});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
}

TEST_CASE("Prompt lookup refuses lengths and budgets that make no sense") {
  CHECK_THROWS_WITH(PromptLookup(0, 3), Contains("0 to 3") && Contains("1 <= min_n <= max_n"));
  CHECK_THROWS_AS(PromptLookup(3, 2), draftproof::Error);
  CHECK_THROWS_WITH(PromptLookup(1, 2).propose(Tokens{1, 1}, -1), Contains("k is -1"));
}

namespace {

struct NoDraws final : draftproof::DraftChance {
  Token draw(const draftproof::Distribution&, std::uint32_t) override { return 0; }
  Token draw(const draftproof::DenseMasses<double>&, std::uint32_t) override { return 0; }
  Token coupled_race(const draftproof::Distribution&, std::uint32_t, std::uint32_t) override { return 0; }
};

}  // namespace

TEST_CASE("64 requests looked up on three threads have the drafts of one") {
  std::mt19937 random(5);
  std::vector<Tokens> contexts(64);
  for (Tokens& context : contexts)
    for (int i = 0; i < 16'000; ++i) context.push_back(static_cast<Token>(random() % 40));
  NoDraws chance;
  const auto drafts_on = [&](int threads) {
    std::vector<draftproof::Draft> drafts(contexts.size());
    std::vector<draftproof::DraftJob> jobs(contexts.size());
    for (std::size_t i = 0; i < jobs.size(); ++i)
      jobs[i] = {{.tokens = contexts[i]}, {draftproof::chain_shape(8)}, &chance, &drafts[i]};
    draftproof::LookupDrafter(PromptLookup(2, 4), threads).propose_all(jobs, nullptr);
    std::vector<Tokens> tokens;
    for (const draftproof::Draft& draft : drafts) tokens.push_back(draft.tree.tokens);
    return tokens;
  };
  const std::vector<Tokens> on_one = drafts_on(1);
  CHECK(drafts_on(3) == on_one);
  for (std::size_t i = 0; i < contexts.size(); ++i)
    REQUIRE(on_one[i] == propose_by_definition(contexts[i], 2, 4, LookupTie::earliest, 8));
}
