// The list of verifiers: names, parameters, and which draft fits which verifier.
#include "reference/step/verifiers.hpp"

#include "tests/support/test.hpp"

using Catch::Equals;

namespace {

std::string complaint(const std::string& text) {
  return error_of(ErrorKind::usage, [&] { parse_verifier(text, "--verifier"); });
}

const DraftTree kTree({1, 2, 3}, {kRootNode, kRootNode, 0});
const DraftTree kChain({1, 2, 3}, {kRootNode, 0, 1});

std::string misfit(const VerifierInfo& info, const DraftTree& draft, bool has_probabilities) {
  return error_of(ErrorKind::usage, [&] { require_fit(info.verifier, draft, has_probabilities, "request 4"); });
}

}  // namespace

TEST_CASE("every verifier has a name of its own by which it is found") {
  std::set<std::string_view> names;
  std::set<Verifier> seen;
  for (const VerifierInfo& info : verifiers()) {
    CAPTURE(std::string(info.name));
    CHECK(names.insert(info.name).second);
    CHECK(seen.insert(info.verifier).second);
    CHECK(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK_FALSE(info.guarantee.empty());
    CHECK_FALSE(info.source.empty());
    CHECK(info.lossless == (info.guarantee.find("lossy") == std::string_view::npos));
    CHECK(&info_of(info.verifier) == &info);
    CHECK(parse_verifier(info.name, "test").verifier == info.verifier);
    CHECK_THAT(verifier_names(), Contains(std::string(info.name)));
  }
  CHECK(seen.count(Verifier::chain) == 1);
  CHECK(seen.count(Verifier::synthetic) == 1);
}

TEST_CASE("a verifier without parameters in its text has the standard ones and a text is read back") {
  for (const VerifierInfo& info : verifiers()) {
    const VerifierChoice choice(info.verifier);
    CAPTURE(std::string(info.name));
    REQUIRE(choice.parameters.size() == info.parameters.size());
    std::string expected(info.name);
    for (const VerifierParameter& p : info.parameters) {
      CHECK(choice.parameter(p.name) == p.standard);
      CHECK((p.least < p.standard || (p.least == p.standard && !p.above_least)));
      CHECK(p.standard <= p.most);
      CHECK_FALSE(p.meaning.empty());
    }
    const VerifierChoice again = parse_verifier(text_of(choice), "test");
    CHECK(again.verifier == choice.verifier);
    CHECK(again.parameters == choice.parameters);
    CHECK_THROWS_WITH(choice.parameter("nonsense"), Contains("nonsense"));
  }
  CHECK_THAT(text_of(Verifier::chain), Equals("chain"));
  CHECK_THAT(text_of(Verifier::typical), Equals("typical:epsilon=0.09,delta=0.3"));
  CHECK_THAT(text_of(Verifier::greedy_multipath), Equals("greedy_multipath:paths=2"));
}

TEST_CASE("parameters are read in any order, at the ends of their ranges and to the last bit") {
  const VerifierChoice typical = parse_verifier("typical:delta=1e6,epsilon=0", "test");
  CHECK(typical.parameter("delta") == 1e6);
  CHECK(typical.parameter("epsilon") == 0.0);
  CHECK(parse_verifier("typical:delta=0.7", "test").parameter("epsilon") == 0.09);
  CHECK(parse_verifier("thresholds:acc=1,single=1e-300", "test").parameter("single") == 1e-300);
  CHECK(parse_verifier("coupled_list:paths=64", "test").parameter("paths") == 64.0);
  CHECK(parse_verifier("top_k_resample:k=524288", "test").parameter("k") == 524288.0);
  const double odd = 0.1 + 0.2;
  VerifierChoice synthetic(Verifier::synthetic);
  synthetic.parameters = {odd};
  CHECK(parse_verifier(text_of(synthetic), "test").parameter("rate") == odd);
}

TEST_CASE("a text that is no verifier is refused and says what is expected") {
  for (const char* const name : {"", "greedy", "Chain", "chain ", " chain", "one-hot", "chains"})
    CHECK_THAT(complaint(name), Contains("--verifier: the verifier is \"" + std::string(name) + "\"") &&
                                    Contains("chain, block, sampler_match") && Contains("synthetic"));
  for (const char* const text : {"chain:", "chain:rate=0.5", "block:,", "synthetic:k=3", "synthetic:",
                                 "synthetic:Rate=0.5", "synthetic:rate=0.5,", "synthetic:rate=0.5,,rate=0.6",
                                 "typical:epsilon=0.1;delta=2,alpha=3", "synthetic: rate=0.5"})
    CHECK_THAT(complaint(text), Contains("--verifier: "));
  CHECK_THAT(complaint("chain:rate=0.5"), Contains("verifier chain has no parameter 'rate'; expected none"));
  CHECK_THAT(complaint("typical:alpha=3"),
             Contains("verifier typical has no parameter 'alpha'; expected one of epsilon, delta"));
}

TEST_CASE("a parameter that is no number of its range is refused with the range") {
  const auto refused = [](const std::string& verifier, const std::string& name, const std::string& value,
                          const std::string& range) {
    CHECK_THAT(complaint(verifier + ":" + name + "=" + value),
               Equals("--verifier: " + name + " is \"" + value + "\"; expected " + range));
  };
  for (const char* const bad : {"", "x", "nan", "inf", "-inf", "1e999", "-0.1", "1.0001", "0.5x", "0.5 ", " 0.5",
                                "+0.5", "0x1", "0,5", "0.5=0.6", "--1"}) {
    const std::string value(bad);
    if (value.find(',') == std::string::npos) refused("synthetic", "rate", value, "a number in [0, 1]");
  }
  CHECK_THAT(complaint("synthetic:rate"), Contains("has 'rate'; expected NAME=VALUE"));
  CHECK_THAT(complaint("synthetic:rate=0,5"), Contains("has no parameter '5'"));
  for (const char* const bad : {"0", "-0", "-1", "1.01"}) refused("thresholds", "acc", bad, "a number in (0, 1]");
  for (const char* const bad : {"0", "65", "1.5", "-1", "1e-9", "1e400"})
    refused("greedy_multipath", "paths", bad, "a whole number in [1, 64]");
  for (const char* const bad : {"0", "0.999", "524289", "16.5"})
    refused("top_k_resample", "k", bad, "a whole number in [1, 524288]");
}

TEST_CASE("a parameter that is given twice is refused") {
  CHECK_THAT(complaint("synthetic:rate=0.5,rate=0.6"), Contains("rate is given twice"));
  CHECK_THAT(complaint("typical:epsilon=0.1,delta=1,epsilon=0.1"), Contains("epsilon is given twice"));
}

TEST_CASE("a tree is refused by the verifiers of chains and the others are named") {
  int refused = 0;
  for (const VerifierInfo& info : verifiers()) {
    CAPTURE(std::string(info.name));
    for (const bool has_probabilities : {false, true}) {
      CHECK_NOTHROW(require_fit(info.verifier, kChain, has_probabilities, ""));
      CHECK_NOTHROW(require_fit(info.verifier, DraftTree(), has_probabilities, ""));
    }
    if (info.draft != DraftForm::chain) {
      CHECK_NOTHROW(require_fit(info.verifier, kTree, true, ""));
      continue;
    }
    ++refused;
    for (const bool has_probabilities : {false, true})
      CHECK_THAT(
          misfit(info, kTree, has_probabilities),
          Equals("request 4: verifier " + std::string(info.name) +
                 " takes a chain, and the draft is a tree; expected naive, target_only, rrs, rrsw, k_seq, importance, "
                 "greedy_draft, traversal, greedy_multipath, coupled_list, typical, thresholds, spectr_gbv"));
  }
  CHECK(refused == 10);
}

TEST_CASE("a tree without probabilities is refused by the verifiers that need them and the others are named") {
  std::vector<std::string> refused;
  for (const VerifierInfo& info : verifiers()) {
    if (info.draft == DraftForm::chain) continue;
    if (info.proposal == DraftSampling::any) {
      CHECK_NOTHROW(require_fit(info.verifier, kTree, false, ""));
      continue;
    }
    refused.emplace_back(info.name);
    CHECK_THAT(misfit(info, kTree, false),
               Equals("request 4: verifier " + refused.back() +
                      " needs the probabilities that siblings were drawn with; expected them, or one of naive, "
                      "target_only, coupled_list, typical, thresholds"));
  }
  CHECK(refused == std::vector<std::string>{"rrs", "rrsw", "k_seq", "importance", "greedy_draft", "traversal",
                                            "greedy_multipath", "spectr_gbv"});
}
