// The tree's counts against counting by the definition, in texts with many repetitions.
#include "engine/draft/suffix_tree.hpp"

#include "tests/support/test.hpp"

namespace {

using Tokens = std::vector<Token>;

// Counts the tokens that follow a string, by looking at every place.
std::map<Token, std::int64_t> followers(const std::vector<Tokens>& documents, const Tokens& string) {
  std::map<Token, std::int64_t> found;
  for (const Tokens& text : documents)
    for (std::size_t start = 0; start + string.size() < text.size(); ++start)
      if (std::equal(string.begin(), string.end(), text.begin() + static_cast<long>(start)))
        ++found[text[start + string.size()]];
  return found;
}

bool occurs(const std::vector<Tokens>& documents, const Tokens& string) {
  return string.empty() ||
         std::ranges::any_of(documents, [&](const Tokens& text) { return !std::ranges::search(text, string).empty(); });
}

void check_place(const SuffixTree& tree, const std::vector<Tokens>& documents, const Tokens& string, int depth_max) {
  const auto place = tree.find(string);
  REQUIRE(place.has_value() == occurs(documents, string));
  if (!place || static_cast<int>(string.size()) == depth_max) return;
  const auto expected = followers(documents, string);
  std::map<Token, std::int64_t> actual;
  std::int64_t total = 0;
  for (const auto& [token, count] : expected) total += count;
  for (const auto& next : tree.continuations(*place)) {
    actual[next.token] = next.count;
    CHECK(next.total == total);
  }
  CHECK(actual == expected);
  const auto best = tree.most_frequent(*place);
  REQUIRE(best.has_value() == !expected.empty());
  if (!best) return;
  const auto most = std::ranges::max_element(
      expected, [](const auto& a, const auto& b) { return a.second < b.second; });  // the first of equal ones
  CHECK(best->token == most->first);
  CHECK(best->count == most->second);
}

TEST_CASE("a suffix tree counts what followed every string of its documents, as they grow") {
  std::mt19937 random(3);
  for (const int vocab : {1, 2, 3, 12}) {
    for (const int depth_max : {2, 3, 5, 9}) {
      SuffixTree tree(depth_max);
      std::vector<Tokens> documents(1);
      for (int step = 0; step < 70; ++step) {
        if (random() % 17 == 0) {
          tree.end_document();
          documents.emplace_back();
          continue;
        }
        // Half of the time what stood a while ago comes again, so that long strings repeat.
        Tokens& text = documents.back();
        const Token token = text.size() > 6 && random() % 2 == 0
                                ? text[text.size() - 6]
                                : static_cast<Token>(random() % static_cast<unsigned>(vocab));
        tree.append(token);
        text.push_back(token);
        const std::vector<SuffixTree::Place> ends = tree.ends();
        for (std::size_t length = 1; length < std::min(text.size(), static_cast<std::size_t>(depth_max)); ++length) {
          const Tokens end(text.end() - static_cast<long>(length), text.end());
          std::vector<Tokens> before = documents;
          before.back().pop_back();
          REQUIRE((length <= ends.size()) == occurs(before, end));
          if (length <= ends.size()) CHECK(ends[length - 1].node == tree.find(end)->node);
        }
        if (step % 7 != 0) continue;
        for (const Tokens& document : documents)
          for (std::size_t start = 0; start < document.size(); ++start)
            for (std::size_t length = 0;
                 length <= static_cast<std::size_t>(depth_max) && start + length <= document.size(); ++length) {
              Tokens string(document.begin() + static_cast<long>(start),
                            document.begin() + static_cast<long>(start + length));
              check_place(tree, documents, string, depth_max);
              if (string.empty()) continue;
              string.back() = static_cast<Token>(random() % static_cast<unsigned>(vocab));
              check_place(tree, documents, string, depth_max);
            }
      }
    }
  }
}

TEST_CASE("a text of one repeated token costs time and memory in proportion to its length") {
  SuffixTree tree(64);
  for (int i = 0; i < 200000; ++i) tree.append(7);
  CHECK(tree.most_frequent(*tree.find(Tokens(40, 7)))->count == 200000 - 40);
  CHECK(tree.find(Tokens(64, 7)));
  CHECK_FALSE(tree.find(Tokens(65, 7)));
  CHECK_THROWS_WITH(SuffixTree(1), Contains("expected 2 to 1024"));
}

}  // namespace
