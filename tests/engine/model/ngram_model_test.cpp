#include "engine/model/ngram_model.hpp"

#include <bit>

#include "engine/model/corpus.hpp"
#include "engine/model/text_model.hpp"
#include "tests/support/test.hpp"

using draftproof::NgramModel;
using draftproof::Token;
using Bytes = std::vector<std::uint8_t>;

namespace {

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::vector<Bytes> documents_of(const std::vector<std::string>& texts) {
  std::vector<Bytes> documents;
  documents.reserve(texts.size());
  for (const std::string& text : texts) documents.push_back(bytes_of(text));
  return documents;
}

std::vector<double> distribution_after(const NgramModel& model, const std::string& context) {
  const Bytes bytes = bytes_of(context);
  const std::vector<Token> tokens(bytes.begin(), bytes.end());
  std::vector<double> distribution(256, std::nan(""));
  model.probabilities(tokens, distribution);
  return distribution;
}

double sum_of(const std::vector<double>& distribution) {
  double sum = 0;
  for (const double p : distribution) sum += p;
  return sum;
}

// The formulas of the header by definition: maps from strings, recursion, nothing shared between contexts. A document
// is read with '^' before it, which no text of these tests contains.
class ModelByDefinition {
 public:
  ModelByDefinition(const std::vector<std::string>& texts, int order) : order_(order) {
    for (const std::string& text : texts) {
      for (std::size_t begin = 0; begin < text.size(); ++begin) {
        for (std::size_t length = 1; length <= static_cast<std::size_t>(order); ++length) {
          if (begin + length > text.size()) continue;
          const std::string gram = text.substr(begin, length);
          ++occurrences_[gram];
          predecessors_[gram].insert(begin == 0 ? '^' : text[begin - 1]);
        }
      }
    }
    for (int length = 0; length < order; ++length) estimate(length);
  }

  double probability(char next, const std::string& context) const {
    const auto longest = static_cast<std::size_t>(order_ - 1);
    return recurse(next, context.size() > longest ? context.substr(context.size() - longest) : context);
  }

  int modified_levels() const { return modified_levels_; }
  int absolute_levels() const { return order_ - modified_levels_; }

 private:
  double count(const std::string& gram) const {
    if (occurrences_.count(gram) == 0) return 0;
    return static_cast<int>(gram.size()) == order_ ? occurrences_.at(gram)
                                                   : static_cast<double>(predecessors_.at(gram).size());
  }

  void estimate(int context_length) {
    std::array<double, 5> t{};
    for (const auto& entry : occurrences_) {
      if (static_cast<int>(entry.first.size()) != context_length + 1) continue;
      for (std::size_t k = 1; k <= 4; ++k) t[k] += count(entry.first) == static_cast<double>(k);
    }
    const double y = t[1] > 0 && t[2] > 0 ? t[1] / (t[1] + 2 * t[2]) : 0.5;
    std::array<double, 4> discount = {0, y, y, y};
    if (t[1] > 0 && t[2] > 0 && t[3] > 0 && t[4] > 0) {
      const double d1 = 1 - 2 * y * t[2] / t[1];
      const double d2 = 2 - 3 * y * t[3] / t[2];
      const double d3 = 3 - 4 * y * t[4] / t[3];
      if (d1 > 0 && d2 > 0 && d3 > 0) {
        discount = {0, d1, d2, d3};
        ++modified_levels_;
      }
    }
    discounts_[context_length] = discount;
  }

  double recurse(char next, const std::string& context) const {
    const auto& discount = discounts_.at(static_cast<int>(context.size()));
    double total = 0;
    double freed = 0;
    for (int c = 0; c < 256; ++c) {
      const double n = count(context + static_cast<char>(c));
      total += n;
      freed += discount[static_cast<std::size_t>(std::min(n, 3.0))];
    }
    const double shorter = context.empty() ? 1.0 / 256 : recurse(next, context.substr(1));
    if (total == 0) return shorter;
    const double n = count(context + next);
    return (n - discount[static_cast<std::size_t>(std::min(n, 3.0))]) / total + freed / total * shorter;
  }

  int order_;
  int modified_levels_ = 0;
  std::map<std::string, double> occurrences_;
  std::map<std::string, std::set<char>> predecessors_;
  std::map<int, std::array<double, 4>> discounts_;
};

std::string random_text(std::mt19937& random, std::size_t length, unsigned alphabet) {
  std::string text;
  // A product of two dice makes some bytes rare, so that counts of one to four all occur.
  while (text.size() < length)
    text += static_cast<char>('a' + (random() % alphabet) * (random() % alphabet) % alphabet);
  return text;
}

}  // namespace

TEST_CASE("A bigram model of three bytes has the probabilities worked out by hand") {
  // "aab". Bigrams aa and ab occur once each: t1 = 2 and t2 = 0, so D = 1/2 for contexts of one byte.
  // Predecessors: of a {start, a}, of b {a}: c_0(a) = 2, c_0(b) = 1, t1 = t2 = 1, t3 = 0, so D = 1/(1+2) = 1/3.
  // lambda_0 = (1/3 + 1/3) / 3 = 2/9, and lambda_1(a) = (1/2 + 1/2) / 2 = 1/2.
  const NgramModel model = NgramModel::train(bytes_of("aab"), 2);
  CHECK(model.order() == 2);
  CHECK(model.discounts(1).once == 0.5);
  CHECK(model.discounts(0).more == Approx(1.0 / 3).epsilon(1e-15));

  const auto start = distribution_after(model, "");
  CHECK(start['a'] == Approx(5.0 / 9 + 1.0 / 1152).epsilon(1e-15));  // (2 - 1/3) / 3 + 2/9 / 256
  CHECK(start['b'] == Approx(2.0 / 9 + 1.0 / 1152).epsilon(1e-15));  // (1 - 1/3) / 3 + 2/9 / 256
  CHECK(start['z'] == Approx(1.0 / 1152).epsilon(1e-15));
  const auto after_a = distribution_after(model, "a");
  CHECK(after_a['a'] == Approx(1.0 / 4 + 5.0 / 18 + 1.0 / 2304).epsilon(1e-15));  // (1 - 1/2) / 2 + 1/2 p_0(a)
  CHECK(after_a['b'] == Approx(1.0 / 4 + 1.0 / 9 + 1.0 / 2304).epsilon(1e-15));
  CHECK(after_a['z'] == Approx(1.0 / 2304).epsilon(1e-15));
  // Nothing ever followed b or z: the model backs off without a weight.
  CHECK(distribution_after(model, "b") == start);
  CHECK(distribution_after(model, "z") == start);
  // Only the last byte is used.
  CHECK(distribution_after(model, "zzba") == after_a);
}

TEST_CASE("A unigram model uses raw counts and the three discounts worked out by hand") {
  // a b c d once, e f twice, g three times, h four times, i seven times: t1..t4 = 4 2 1 1 and 22 bytes.
  // Y = 4 / (4 + 4) = 1/2, D1 = 1 - 2 Y 2/4 = 1/2, D2 = 2 - 3 Y 1/2 = 5/4, D3 = 3 - 4 Y 1/1 = 1.
  // lambda = (4 * 1/2 + 2 * 5/4 + 3 * 1) / 22 = 7.5 / 22.
  const NgramModel model = NgramModel::train(bytes_of("iiiiiiiabcdeeffggghhhh"), 1);
  CHECK(model.discounts(0).once == 0.5);
  CHECK(model.discounts(0).twice == 1.25);
  CHECK(model.discounts(0).more == 1.0);
  const double unseen = 7.5 / 22 / 256;
  const auto distribution = distribution_after(model, "");
  CHECK(distribution['a'] == Approx(0.5 / 22 + unseen).epsilon(1e-15));
  CHECK(distribution['e'] == Approx(0.75 / 22 + unseen).epsilon(1e-15));
  CHECK(distribution['g'] == Approx(2.0 / 22 + unseen).epsilon(1e-15));
  CHECK(distribution['h'] == Approx(3.0 / 22 + unseen).epsilon(1e-15));
  CHECK(distribution['i'] == Approx(6.0 / 22 + unseen).epsilon(1e-15));
  CHECK(distribution[0] == Approx(unseen).epsilon(1e-15));
  CHECK(distribution_after(model, "iab") == distribution);
}

TEST_CASE("Discounts fall back to one absolute discount where the counts of counts are degenerate") {
  using Counts = std::array<std::uint64_t, 4>;
  const auto single = [](const Counts& counts) {
    const draftproof::Discounts d = draftproof::estimate_discounts(counts);
    CHECK(d.once == d.twice);
    CHECK(d.once == d.more);
    return d.once;
  };
  CHECK(single(Counts{0, 0, 0, 0}) == 0.5);
  CHECK(single(Counts{5, 0, 3, 1}) == 0.5);
  CHECK(single(Counts{0, 5, 3, 1}) == 0.5);
  CHECK(single(Counts{2, 1, 0, 1}) == 0.5);   // 2 / (2 + 2)
  CHECK(single(Counts{6, 1, 1, 0}) == 0.75);  // 6 / (6 + 2)
  CHECK(single(Counts{2, 1, 3, 1}) == 0.5);   // D2 would be 2 - 3/2 * 3 < 0
  CHECK(single(Counts{2, 1, 1, 9}) == 0.5);   // D3 would be 3 - 2 * 9 < 0
  const draftproof::Discounts d = draftproof::estimate_discounts(Counts{4, 2, 1, 1});
  CHECK(d.twice == 1.25);
}

TEST_CASE("The n-gram model equals its definition on random corpora") {
  std::mt19937 random(19990101);
  int modified_levels = 0;
  int absolute_levels = 0;
  double worst = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int order = 1 + trial % 5;
    const auto alphabet = static_cast<unsigned>(1 + random() % 20);
    std::vector<std::string> texts;
    for (std::size_t count = 1 + random() % 4; texts.size() < count;) {
      texts.push_back(random_text(random, random() % 300, alphabet));
    }
    texts.push_back("a");  // so that no corpus is empty; alone it is shorter than most orders
    CAPTURE(trial, order, texts);
    const ModelByDefinition definition(texts, order);
    modified_levels += definition.modified_levels();
    absolute_levels += definition.absolute_levels();
    const NgramModel model = NgramModel::train(documents_of(texts), order);
    for (int query = 0; query < 12; ++query) {
      // Half of the contexts are cut from a text, the other half are random and mostly unseen.
      const std::string& text = texts[random() % texts.size()];
      const std::string context = query % 2 == 0 ? text.substr(0, random() % (text.size() + 1))
                                                 : random_text(random, random() % 8, alphabet + 1);
      const auto distribution = distribution_after(model, context);
      REQUIRE(std::abs(sum_of(distribution) - 1) <= 1e-12);
      for (const int next : {int{'a'}, int{'b'}, int{'c'}, int{'h'}, 0}) {
        const double expected = definition.probability(static_cast<char>(next), context);
        const double actual = distribution[static_cast<std::size_t>(next)];
        CAPTURE(context, next, expected, actual);
        REQUIRE(actual > 0);
        worst = std::max(worst, std::abs(actual - expected) / expected);
        REQUIRE(std::abs(actual - expected) <= 1e-13 * expected);
      }
    }
  }
  CHECK(worst < 1e-13);
  CHECK(modified_levels > 20);
  CHECK(absolute_levels > 20);
}

TEST_CASE("Every byte value is counted as itself") {
  std::mt19937 random(7);
  Bytes text(3000);
  for (auto& byte : text) byte = static_cast<std::uint8_t>(std::min(random() % 256, random() % 256));
  text.insert(text.end(), {0, 255, 0, 255, 0, 255, 0, 255});
  const NgramModel model = NgramModel::train(text, 3);
  for (const int last : {0, 1, 128, 254, 255}) {
    const std::vector<Token> context = {0, last};
    std::vector<double> distribution(256);
    model.probabilities(context, distribution);
    CHECK(std::abs(sum_of(distribution) - 1) <= 1e-12);
    CHECK(*std::min_element(distribution.begin(), distribution.end()) > 0);
    if (last == 255) CHECK(std::max_element(distribution.begin(), distribution.end()) == distribution.begin());
  }
}

TEST_CASE("Logits are the natural logarithms of the probabilities") {
  const NgramModel model = NgramModel::train(bytes_of("the cat sat on the mat, and the rat sat on the cat."), 4);
  const std::vector<Token> context = {'t', 'h', 'e', ' '};
  std::array<double, 256> distribution{};
  std::array<float, 256> row{};
  model.probabilities(context, distribution);
  model.logits(context, row);
  for (std::size_t token = 0; token < 256; ++token) {
    REQUIRE(static_cast<double>(row[token]) == Approx(std::log(distribution[token])).epsilon(1.2e-7));
  }
  CHECK(row['c'] > row['z']);
}

TEST_CASE("The bits of the n-gram probabilities are the same on every machine") {
  // The expected bits were computed by a separate Python program that follows the definition with dictionaries. The two
  // documents are 400 letters each from a linear congruential generator, the product of two dice modulo eight.
  std::vector<std::string> texts(2);
  std::uint32_t state = 12345;
  for (std::string& text : texts) {
    while (text.size() < 400) {
      state = (state * 1103515245U + 12345U) % 2147483648U;
      text += static_cast<char>('a' + (state / 65536U % 8U) * (state / 1048576U % 8U) % 8U);
    }
  }
  const NgramModel model = NgramModel::train(documents_of(texts), 5);
  // Both kinds of discounts occur: three of them, and one.
  REQUIRE(model.discounts(3).once != model.discounts(3).more);
  REQUIRE(model.discounts(0).once == model.discounts(0).more);
  struct Case {
    const char* context;
    char next;
    double expected;
  };
  const std::array<Case, 9> cases = {{
      {"", 'a', 0x1.d99999999999ap-4},
      {"", 'z', 0x1.f81f81f81f820p-13},
      {"b", 'a', 0x1.52b9e537ed187p-3},
      {"aa", 'e', 0x1.782c5f4b6596ep-3},
      {"egg", 'a', 0x1.f0db85cecdc9cp-3},
      {"aacb", 'b', 0x1.44f2b5e26ef1ap-2},
      {"ehca", 'z', 0x1.be9a39cf31627p-16},
      {"acehca", 'b', 0x1.1852a7f105937p-4},
      {"zzbb", 'c', 0x1.7c278557ab1e9p-3},
  }};
  for (const Case& c : cases) {
    CAPTURE(c.context, c.next, c.expected);
    const double actual = distribution_after(model, c.context)[static_cast<std::size_t>(c.next)];
    CHECK(std::bit_cast<std::uint64_t>(actual) == std::bit_cast<std::uint64_t>(c.expected));
  }
  std::swap(texts[0], texts[1]);
  const NgramModel again = NgramModel::train(documents_of(texts), 5);
  CHECK(distribution_after(model, "aaab") == distribution_after(again, "aaab"));
}

TEST_CASE("The n-gram model refuses what it cannot be trained on or asked") {
  const Bytes text = bytes_of("text");
  CHECK_THROWS_WITH(NgramModel::train(text, 0), Contains("order") && Contains("is 0") && Contains("from 1 to 12"));
  CHECK_THROWS_WITH(NgramModel::train(text, 13), Contains("is 13"));
  CHECK_NOTHROW(NgramModel::train(text, 12));
  CHECK_THROWS_WITH(NgramModel::train(Bytes{}, 2), Contains("training corpus") && Contains("no bytes"));
  CHECK_THROWS_WITH(NgramModel::train(documents_of({"", ""}), 2), Contains("no bytes"));
  const NgramModel model = NgramModel::train(text, 3);
  std::array<double, 256> distribution{};
  CHECK_THROWS_WITH(model.probabilities(std::vector<Token>{1, 256}, distribution),
                    Contains("token 1") && Contains("256"));
  CHECK_THROWS_WITH(model.probabilities(std::vector<Token>{-1, 0}, distribution),
                    Contains("token 0") && Contains("-1"));
  CHECK_NOTHROW(model.probabilities(std::vector<Token>{-1, 0, 0}, distribution));  // only the last two tokens are used
  std::array<double, 255> narrow{};
  CHECK_THROWS_WITH(model.probabilities({}, narrow), Contains("255 entries"));
  std::array<float, 257> wide{};
  CHECK_THROWS_WITH(model.logits({}, wide), Contains("257 entries"));
  CHECK_THROWS_WITH(model.discounts(3), Contains("from 0 to 2"));
  CHECK_THROWS_AS(model.discounts(-1), draftproof::Error);
}

TEST_CASE("the tokens of an n-gram model's texts are the 256 bytes and no more") {
  const draftproof::TextModel model = draftproof::open_text_model("ngram:2", "ngram:2", {}, "--model");
  REQUIRE(model.model->vocab_size() == 256);
  CHECK(model.tokenizer->vocab_size() == 256);
  for (int byte = 0; byte < 256; ++byte) {
    INFO("byte " << byte);
    const std::string text(1, static_cast<char>(byte));
    const std::vector<Token> tokens = model.tokenizer->encode(text, {false, false});
    CHECK(tokens == std::vector<Token>{byte});
    CHECK(model.tokenizer->decode(tokens) == text);
  }
}
