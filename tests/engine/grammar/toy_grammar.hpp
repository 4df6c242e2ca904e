// Grammars that need no library: automata over token ids.
#pragma once

#include "engine/grammar/grammar.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

// States 0 (the first) .. S - 1. next[state][token]: the state behind it, or kRefused. The end token, where there is
// one, is allowed in accepting states alone, and nothing behind it.
class ToyGrammar final : public Grammar, public std::enable_shared_from_this<ToyGrammar> {
 public:
  static constexpr int kRefused = -1;
  std::vector<std::vector<int>> next;
  std::vector<bool> accepting;
  Token end_token = kPaddingToken;
  bool forgets_to_roll_back = false;  // a fault

  // Every state has a way on or is accepting, so that no text runs into a dead end.
  static std::shared_ptr<ToyGrammar> random(std::mt19937& random, std::size_t vocab, Token end_token) {
    auto grammar = std::make_shared<ToyGrammar>();
    const auto below = [&](std::size_t n) { return random() % n; };
    const std::size_t states = 2 + below(5);
    grammar->end_token = end_token;
    for (std::size_t state = 0; state < states; ++state) {
      std::vector<int>& row = grammar->next.emplace_back(vocab, kRefused);
      const std::size_t tokens = 1 + below(vocab - 1);
      for (std::size_t i = 0; i < tokens; ++i) row[below(vocab)] = static_cast<int>(below(states));
      if (end_token != kPaddingToken) row[static_cast<std::size_t>(end_token)] = kRefused;
      bool has_way = false;
      for (const int to : row) has_way = has_way || to != kRefused;
      if (!has_way) row[0] = static_cast<int>(below(states));
      grammar->accepting.push_back(below(3) == 0);
    }
    return grammar;
  }

  // The state behind tokens, from the first; kRefused where they are refused. An end token that is allowed ends it in
  // state S.
  int state_after(std::span<const Token> tokens) const {
    int state = 0;
    for (const Token token : tokens) {
      if (state == kRefused || state == ended()) return kRefused;
      state = step(state, token);
    }
    return state;
  }
  int step(int state, Token token) const {
    const auto s = static_cast<std::size_t>(state);
    if (token == end_token) return accepting[s] ? ended() : kRefused;
    return next[s][static_cast<std::size_t>(token)];
  }
  int ended() const { return static_cast<int>(next.size()); }
  bool allows(int state, Token token) const { return state != ended() && step(state, token) != kRefused; }

  std::unique_ptr<GrammarState> start() const override { return std::make_unique<State>(shared_from_this()); }

 private:
  class State final : public GrammarState {
   public:
    explicit State(std::shared_ptr<const ToyGrammar> grammar) : grammar_(std::move(grammar)) {}
    bool accept(Token token) override {
      if (!grammar_->allows(states_.back(), token)) return false;
      states_.push_back(grammar_->step(states_.back(), token));
      return true;
    }
    void roll_back(std::size_t tokens) override {
      if (tokens >= states_.size()) throw Error(ErrorKind::internal, "grammar", "rolled back beyond its start");
      if (!grammar_->forgets_to_roll_back) states_.resize(states_.size() - tokens);
    }
    void allowed(std::span<std::uint32_t> mask) override {
      std::fill(mask.begin(), mask.end(), 0u);
      for (std::size_t token = 0; token < grammar_->next.front().size(); ++token)
        if (grammar_->allows(states_.back(), static_cast<Token>(token))) mask[token / 32] |= 1u << (token % 32);
    }
    bool goes_on() override {
      for (std::size_t token = 0; token < grammar_->next.front().size(); ++token)
        if (grammar_->allows(states_.back(), static_cast<Token>(token))) return true;
      return false;
    }
    bool is_complete() const override {
      return states_.back() == grammar_->ended() || grammar_->accepting[static_cast<std::size_t>(states_.back())];
    }
    std::string forced_text() override { return ""; }

   private:
    std::shared_ptr<const ToyGrammar> grammar_;
    std::vector<int> states_{0};
  };
};

}  // namespace draftproof::testing
