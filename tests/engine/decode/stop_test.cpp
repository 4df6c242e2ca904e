// Stop conditions against an oracle that knows the whole output and searches it naively at every byte.
#include "engine/decode/stop.hpp"

#include "tests/support/test.hpp"

using Tokens = std::vector<Token>;

namespace {

class TableDetokeniser : public Detokeniser {
 public:
  explicit TableDetokeniser(std::vector<std::string> table) : table_(std::move(table)) {}
  std::string_view bytes_of(Token token) const override { return table_.at(static_cast<std::size_t>(token)); }
  std::size_t vocab_size() const { return table_.size(); }

 private:
  std::vector<std::string> table_;
};

// Every proper beginning of the UTF-8 encoding of every code point, as one set over byte strings of up to three bytes.
class Utf8Beginnings {
 public:
  Utf8Beginnings() : begins_(std::size_t{1} << 26) {
    for (std::uint32_t code = 0x80; code < 0x110000; ++code) {
      if (code >= 0xD800 && code < 0xE000) continue;
      std::string bytes;
      const auto add = [&](std::uint32_t value) { bytes += static_cast<char>(value); };
      if (code >= 0x10000) {
        add(0xF0 | code >> 18);
        add(0x80 | (code >> 12 & 0x3F));
        add(0x80 | (code >> 6 & 0x3F));
      } else if (code >= 0x800) {
        add(0xE0 | code >> 12);
        add(0x80 | (code >> 6 & 0x3F));
      } else {
        add(0xC0 | code >> 6);
      }
      for (std::size_t size = 1; size <= bytes.size(); ++size) begins_[index(bytes.substr(0, size))] = true;
    }
  }
  bool contains(std::string_view bytes) const { return begins_[index(bytes)]; }

  std::size_t incomplete_tail(std::string_view text) const {
    for (std::size_t tail = std::min<std::size_t>(3, text.size()); tail > 0; --tail) {
      if (contains(text.substr(text.size() - tail))) return tail;
    }
    return 0;
  }

 private:
  static std::size_t index(std::string_view bytes) {
    std::size_t value = bytes.size();
    for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::vector<bool> begins_;
};

const Utf8Beginnings& utf8_beginnings() {
  static const Utf8Beginnings beginnings;
  return beginnings;
}

struct Outcome {
  std::string released;
  FinishReason reason = FinishReason::none;
  std::size_t kept = 0;
};

// Expected release after the first `count` of `tokens`, straight from the definitions.
Outcome oracle(const StopParameters& p, const TableDetokeniser& detokeniser, std::int64_t prompt_tokens,
               const Tokens& tokens, std::size_t count) {
  std::string text;
  for (std::size_t n = 1; n <= count; ++n) {
    const Token token = tokens[n - 1];
    const std::string bytes(detokeniser.bytes_of(token));
    const auto is_in = [&](const Tokens& ids) { return std::count(ids.begin(), ids.end(), token) > 0; };
    const bool may_stop = static_cast<std::int64_t>(n) > p.min_tokens;
    if (may_stop && (is_in(p.eos_ids) || is_in(p.stop_token_ids))) {
      return {p.include_stop_string ? text + bytes : text,
              is_in(p.eos_ids) ? FinishReason::eos : FinishReason::stop_token, n};
    }
    const std::string whole = text + bytes;
    for (std::size_t end = text.size() + 1; may_stop && end <= whole.size(); ++end) {
      for (std::size_t start = 0; start < end; ++start) {
        const std::string piece = whole.substr(start, end - start);
        if (std::count(p.stop_strings.begin(), p.stop_strings.end(), piece) == 0) continue;
        return {whole.substr(0, p.include_stop_string ? end : start), FinishReason::stop_string, n};
      }
    }
    text = whole;
    const auto output = static_cast<std::int64_t>(n);
    if (p.max_tokens && output >= *p.max_tokens) return {text, FinishReason::length, n};
    if (p.max_model_len && prompt_tokens + output >= *p.max_model_len) return {text, FinishReason::model_length, n};
  }
  std::size_t decided = text.size();
  for (std::size_t start = 0; !p.include_stop_string && start < text.size(); ++start) {
    const std::string tail = text.substr(start);
    if (std::any_of(p.stop_strings.begin(), p.stop_strings.end(),
                    [&](const std::string& s) { return s.size() > tail.size() && s.starts_with(tail); })) {
      decided = start;
      break;
    }
  }
  if (p.hold_incomplete_utf8) decided -= utf8_beginnings().incomplete_tail(text.substr(0, decided));
  return {text.substr(0, decided), FinishReason::none, count};
}

const std::int64_t kTrials = fewer_if_sanitized(6000);

// Runs random requests over `table` and compares every push with the oracle; counts how they ended.
std::vector<std::size_t> compare_with_oracle(const std::vector<std::string>& alphabet, unsigned seed,
                                             std::int64_t trials) {
  std::mt19937 random(seed);
  std::vector<std::size_t> endings(7, 0);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto random_text = [&](std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += alphabet[below(alphabet.size())];
    return text;
  };
  for (std::int64_t trial = 0; trial < trials; ++trial) {
    std::vector<std::string> table(8);
    for (std::string& bytes : table) bytes = random_text(below(4));
    const TableDetokeniser detokeniser(table);
    StopParameters p;
    p.include_stop_string = below(3) == 0;
    p.hold_incomplete_utf8 = below(3) != 0;
    p.min_tokens = static_cast<std::int64_t>(below(3) == 0 ? below(8) : 0);
    for (std::size_t i = below(4); i > 0; --i) p.stop_strings.push_back(random_text(1 + below(6)));
    if (below(4) == 0) p.eos_ids = {7};
    if (below(4) == 0) p.stop_token_ids = {6, 7};
    if (below(2) == 0) p.max_tokens = p.min_tokens + static_cast<std::int64_t>(1 + below(12));
    const std::int64_t prompt_tokens = 5;
    if (below(3) == 0) p.max_model_len = prompt_tokens + static_cast<std::int64_t>(1 + below(14));
    Tokens tokens(16);
    for (Token& token : tokens) token = static_cast<Token>(below(8));

    const Outcome end = oracle(p, detokeniser, prompt_tokens, tokens, tokens.size());
    ++endings[static_cast<std::size_t>(end.reason)];
    for (const bool one_at_a_time : {true, false}) {
      StopConditions stop(p, detokeniser.vocab_size(), prompt_tokens, &detokeniser);
      std::string released;
      std::size_t kept = 0;
      for (std::size_t at = 0; at < tokens.size();) {
        const std::size_t size = one_at_a_time ? 1 : std::min(below(6), tokens.size() - at);
        const StopResult result = stop.push(std::span(tokens).subspan(at, size));
        at += size;
        released += result.released_text;
        kept += result.tokens_kept;
        INFO("seed " << seed << " trial " << trial << " after " << at << " tokens, one at a time " << one_at_a_time);
        const Outcome expected = oracle(p, detokeniser, prompt_tokens, tokens, at);
        REQUIRE(released == expected.released);
        REQUIRE(detail_name(result.finish_reason) == detail_name(expected.reason));
        REQUIRE(kept == expected.kept);
        REQUIRE(result.tokens_kept + result.tokens_discarded == size);
        REQUIRE(stop.output_tokens() == static_cast<std::int64_t>(kept));
      }
      if (!stop.finished()) released += stop.end(FinishReason::abort).released_text;
      std::string text;
      for (std::size_t i = 0; i < kept; ++i) text += detokeniser.bytes_of(tokens[i]);
      if (end.reason == FinishReason::none) REQUIRE(released == text);
    }
  }
  return endings;
}

}  // namespace

TEST_CASE("stop strings over a two letter alphabet release and stop as the naive search says") {
  const auto endings = compare_with_oracle({"a", "b"}, 1, kTrials);
  // The inputs reach every way to end, or the comparison would say little.
  for (const FinishReason reason : {FinishReason::none, FinishReason::eos, FinishReason::stop_token,
                                    FinishReason::stop_string, FinishReason::length, FinishReason::model_length}) {
    INFO(detail_name(reason));
    CHECK(endings[static_cast<std::size_t>(reason)] > static_cast<std::size_t>(kTrials / 60));
  }
}

TEST_CASE("stop strings over pieces of UTF-8 characters release and stop as the naive search says") {
  compare_with_oracle({"a", "\xC3", "\xA9", "\xE2\x82", "\xAC", "\xF0\x9F\x98\x80", "\xF0", "\xFF"}, 2, kTrials);
}

TEST_CASE("the incomplete UTF-8 tail is a proper beginning of some encoded code point") {
  std::size_t mismatches = 0;
  std::size_t incomplete = 0;
  for (unsigned first = 0; first < 256; ++first) {
    // All leads and one of each other kind; every pair of bytes behind them.
    if (first < 0xC0 && first != 0 && first != 'a' && first != 0x80 && first != 0xBF) continue;
    for (unsigned rest = 0; rest < 65536; ++rest) {
      const std::string text = {static_cast<char>(first), static_cast<char>(rest >> 8), static_cast<char>(rest & 255)};
      const std::size_t expected = utf8_beginnings().incomplete_tail(text);
      mismatches += incomplete_utf8_tail(text) != expected ? 1 : 0;
      incomplete += expected > 0 ? 1 : 0;
    }
  }
  CHECK(mismatches == 0);
  CHECK(incomplete > 100000);
  CHECK(incomplete_utf8_tail("") == 0);
  CHECK(incomplete_utf8_tail("\xE2") == 1);
  CHECK(incomplete_utf8_tail("\xE2\x82") == 2);
  CHECK(incomplete_utf8_tail("\x82") == 0);
}

TEST_CASE("text that may begin a stop string is held back until it is decided") {
  const TableDetokeniser detokeniser({"Hello", " wo", "rld", "<", "|end|>", "|x", ""});
  StopParameters p;
  p.stop_strings = {"<|end|>", "world!"};
  StopConditions stop(p, 7, 0, &detokeniser);
  CHECK(stop.push(Tokens{0}).released_text == "Hello");
  CHECK(stop.push(Tokens{1}).released_text == " ");
  CHECK(stop.push(Tokens{2}).released_text.empty());  // "world" may become "world!"
  CHECK(stop.push(Tokens{3}).released_text == "world");
  CHECK(stop.push(Tokens{6}).released_text.empty());
  CHECK(stop.push(Tokens{5}).released_text == "<|x");
  const StopResult end = stop.push(Tokens{0, 3, 4, 0, 1});
  CHECK(end.released_text == "Hello");
  CHECK(end.finish_reason == FinishReason::stop_string);
  CHECK(end.tokens_kept == 3);
  CHECK(end.tokens_discarded == 2);
  CHECK(stop.ending_stop_string() == std::optional<std::size_t>(0));
  const StopResult late = stop.push(Tokens{0, 1});
  CHECK(late.released_text.empty());
  CHECK(late.tokens_kept == 0);
  CHECK(late.tokens_discarded == 2);
}

TEST_CASE("of several stop strings the first to complete wins and at one byte the longest") {
  const TableDetokeniser detokeniser({"xabcd", "xbcabc"});
  const auto run = [&](std::vector<std::string> stop_strings, Token token) {
    StopParameters p;
    p.stop_strings = std::move(stop_strings);
    StopConditions stop(p, 2, 0, &detokeniser);
    const std::string released = stop.push(Tokens{token}).released_text;
    return std::pair(released, stop.ending_stop_string().value());
  };
  CHECK(run({"abcd", "bc"}, 0) == std::pair(std::string("xa"), std::size_t{1}));     // "bc" completes first
  CHECK(run({"c", "bc", "abc"}, 0) == std::pair(std::string("x"), std::size_t{2}));  // all complete at c
  CHECK(run({"abc", "cabc"}, 1) == std::pair(std::string("xb"), std::size_t{1}));
  CHECK(run({"bc", "bc"}, 0) == std::pair(std::string("xa"), std::size_t{0}));
}

TEST_CASE("tokens behind an EOS of the same step are discarded and counted") {
  const TableDetokeniser detokeniser({"a", "b", "</s>"});
  StopParameters p;
  p.eos_ids = {2};
  p.stop_token_ids = {2};
  for (const bool include : {false, true}) {
    p.include_stop_string = include;
    StopConditions stop(p, 3, 0, &detokeniser);
    const StopResult result = stop.push(Tokens{0, 1, 2, 0, 2, 1});
    CHECK(result.released_text == (include ? "ab</s>" : "ab"));
    CHECK(result.finish_reason == FinishReason::eos);  // eos is asked before stop ids
    CHECK(result.tokens_kept == 3);
    CHECK(result.tokens_discarded == 3);
    CHECK(stop.ending_token() == 2);
  }
}

TEST_CASE("limits and abort end a request with the names engines use") {
  const TableDetokeniser detokeniser({"a", "\xC3"});
  StopParameters p;
  p.max_tokens = 3;
  StopConditions length(p, 2, 0, &detokeniser);
  const StopResult cut = length.push(Tokens{0, 0, 1, 0});
  CHECK(cut.released_text == "aa\xC3");  // nothing more can come, so the incomplete character is released as it is
  CHECK(cut.tokens_discarded == 1);
  CHECK(engine_name(cut.finish_reason) == "length");
  CHECK(detail_name(cut.finish_reason) == "length");

  p.max_model_len = 6;
  StopConditions model_length(p, 2, 4, nullptr);
  CHECK(model_length.push(Tokens{0, 0}).finish_reason == FinishReason::model_length);
  CHECK(engine_name(FinishReason::model_length) == "length");
  CHECK(StopConditions(p, 2, 6, nullptr).finish_reason() == FinishReason::model_length);
  p.max_tokens = 0;
  CHECK(StopConditions(p, 2, 4, nullptr).finish_reason() == FinishReason::length);

  StopParameters held;
  held.stop_strings = {"aab"};
  StopConditions aborted(held, 2, 0, &detokeniser);
  CHECK(engine_name(aborted.push(Tokens{0, 0}).finish_reason).empty());
  CHECK(aborted.end(FinishReason::abort).released_text == "aa");
  CHECK(aborted.end(FinishReason::abort).released_text.empty());
  CHECK(engine_name(aborted.finish_reason()) == "abort");
  CHECK(engine_name(FinishReason::eos) == "stop");
  CHECK(engine_name(FinishReason::stop_token) == "stop");
  CHECK(engine_name(FinishReason::stop_string) == "stop");
}

TEST_CASE("wrong stop parameters and tokens are refused by name") {
  const TableDetokeniser detokeniser({"a", "b"});
  const auto refused = [&](auto change, std::int64_t prompt_tokens = 0, const Detokeniser* bytes = nullptr) {
    StopParameters p;
    change(p);
    return error_of(ErrorKind::usage, [&] { StopConditions(p, 2, prompt_tokens, bytes); });
  };
  CHECK_NOTHROW(StopConditions({}, 2, 0, &detokeniser));
  CHECK(refused([](auto& p) { p.stop_token_ids = {0, 2}; }) == "stop_token_ids[1]: token id 2 is outside [0, 2)");
  CHECK(refused([](auto& p) { p.eos_ids = {-1}; }) == "eos_ids[0]: token id -1 is outside [0, 2)");
  CHECK(refused(
            [](auto& p) {
              p.stop_strings = {"x", ""};
            },
            0, &detokeniser)
            .starts_with("stop_strings[1]: an empty string"));
  CHECK(refused([](auto& p) { p.stop_strings = {"x"}; }).starts_with("stop_strings: "));
  CHECK(refused([](auto& p) { p.max_tokens = -1; }).starts_with("max_tokens: -1 is negative"));
  CHECK(refused([](auto& p) { p.min_tokens = -2; }).starts_with("min_tokens: -2 is negative"));
  CHECK(refused([](auto& p) {
          p.min_tokens = 5;
          p.max_tokens = 4;
        }) == "min_tokens: 5 is above max_tokens 4");
  CHECK(refused([](auto& p) { p.max_model_len = 4; }, 5) ==
        "max_model_len: the prompt has 5 tokens, more than max_model_len 4");
  CHECK(refused([](auto&) {}, -1).starts_with("prompt_tokens: -1 is negative"));
  CHECK(error_of(ErrorKind::usage, [] { StopConditions({}, 0, 0, nullptr); }).starts_with("vocab_size: 0"));

  StopConditions stop({}, 2, 0, &detokeniser);
  const Tokens tokens{0, 1, 2};
  CHECK(error_of(ErrorKind::input, [&] { stop.push(tokens); }) == "pushed token 2: token id 2 is outside [0, 2)");
  CHECK(stop.output_tokens() == 0);
}
