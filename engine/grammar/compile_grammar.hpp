// Grammars compiled for a vocabulary by XGrammar (Dong et al. 2024, arXiv 2411.15100). That library is not part of the
// program: ./draftproof fetch xgrammar takes it from the Python index, and a build with it has grammars. Without it all
// else works.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/grammar/grammar.hpp"
#include "engine/grammar/grammar_source.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

// Was this program built with the library?
bool has_grammars();

// Compiles grammars for one vocabulary; sources that were compiled before cost nothing, nor does an object that
// compiles none.
class GrammarCompiler {
 public:
  // end_tokens: those that end a request; where there are none it ends with its sentence, and otherwise may.
  // vocab_size: the model's, which may be more than the tokenizer's.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, std::int64_t vocab_size, std::vector<Token> end_tokens);
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;
  ~GrammarCompiler();

  // Errors at source.where: (usage) a program without the library; (input) a text that is no grammar of its form, what
  // the library does not support (it is refused, where the library would leave it out), one that takes more than
  // kGrammarSeconds or kGrammarBytes
  // to compile and to follow for kRehearsedTokens, one that no token of the vocabulary can begin.
  std::shared_ptr<const Grammar> compile(const GrammarSource& source);

  static constexpr int kGrammarSeconds = 20;  // of processor time
  static constexpr std::size_t kRehearsedTokens = 64;
  static constexpr std::size_t kGrammarBytes = std::size_t{2} << 30;

 private:
  struct Library;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t vocab_size_;
  std::vector<Token> end_tokens_;
  std::unique_ptr<Library> library_;
  std::vector<std::pair<GrammarSource, std::shared_ptr<const Grammar>>> compiled_;
};

}  // namespace draftproof
