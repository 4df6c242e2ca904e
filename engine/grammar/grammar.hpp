// The tokens that a grammar allows next. The engine and its drafters know grammars by this interface alone; where
// they come from stands in compile_grammar.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/token.hpp"

namespace draftproof {

// A grammar's state behind the tokens of one output.
class GrammarState {
 public:
  virtual ~GrammarState() = default;
  // Goes on behind `token`. False: the grammar does not allow it here; the state is as before. Behind the end token
  // nothing is allowed.
  virtual bool accept(Token token) = 0;
  // Takes the last tokens back, the end token too. Error (internal): more than were accepted.
  virtual void roll_back(std::size_t tokens) = 0;
  // The tokens that may follow, as RowConstraints::allowed_mask has them: [ceil(V/32)] words. The end tokens are among
  // them where is_complete().
  virtual void allowed(std::span<std::uint32_t> mask) = 0;
  // Something may follow: not behind the end token, nor behind a sentence that no longer one begins with, where there
  // is no end token.
  virtual bool goes_on() = 0;
  // The output so far is a whole sentence of the grammar: it may end here, and need not.
  virtual bool is_complete() const = 0;
  // The bytes that every sentence goes on with; empty where there is a choice, or none are known.
  virtual std::string forced_text() = 0;
};

// Shared by requests and threads; states are each request's own.
class Grammar {
 public:
  virtual ~Grammar() = default;
  virtual std::unique_ptr<GrammarState> start() const = 0;
};

// How a request follows its grammar.
struct GrammarChoice {
  std::shared_ptr<const Grammar> grammar;  // null: none
  bool masks_drafts = true;                // drafters propose what it allows; else what they would without it
};

}  // namespace draftproof
