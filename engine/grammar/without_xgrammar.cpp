// In place of xgrammar.cpp where the library is not there.
#include "base/error.hpp"
#include "engine/grammar/compile_grammar.hpp"

namespace draftproof {

struct GrammarCompiler::Library {};

bool has_grammars() {
  return false;
}

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, std::int64_t vocab_size,
                                 std::vector<Token> end_tokens)
    : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size), end_tokens_(std::move(end_tokens)) {}
GrammarCompiler::~GrammarCompiler() = default;

std::shared_ptr<const Grammar> GrammarCompiler::compile(const GrammarSource& source) {
  throw usage_error(source.where,
                    "needs XGrammar, which this program was built without; `./draftproof fetch xgrammar` "
                    "brings it, and the next build has it");
}

}  // namespace draftproof
