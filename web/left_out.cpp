// What stands in a page in place of sources that it leaves out (DRAFTPROOF_WITHOUT in CMakeLists.txt), and says so where it is asked for.
#include <cerrno>

#include "base/archives/npz.hpp"
#include "base/error.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "exactness/bugs/run_bugs.hpp"

namespace draftproof {
namespace {

// Tokenizers need PCRE2 and utf8proc; n-gram models, whose tokens are bytes, do without.
Error no_tokenizer(const std::string& path) {
  return input_error(path,
                     "models with tokenizers are not run in the page; expected ngram:ORDER, or the program on the "
                     "command line");
}

}  // namespace

struct PreTokenizer::Expression {};
const char* const PreTokenizer::kGpt2 = "";
const char* const PreTokenizer::kDigit = "";
std::vector<std::string> PreTokenizer::expressions_of(std::string_view) {
  return {kGpt2};
}
PreTokenizer::PreTokenizer(const std::string& where, const std::vector<std::string>&) {
  throw no_tokenizer(where);
}
std::vector<std::string_view> PreTokenizer::split(std::string_view) const {
  return {};
}
std::shared_ptr<const Tokenizer> tokenizer_of_folder(const std::string& folder) {
  throw no_tokenizer(folder);
}

// Archives need zlib.
bool is_zip(std::span<const std::byte> file) {
  return file.size() > 3 && file[0] == std::byte{'P'} && file[1] == std::byte{'K'};
}
std::vector<std::byte> safetensors_of_npz(const std::string& path, std::span<const std::byte>) {
  throw input_error(path, "archives are not read in the page; expected a safetensors file");
}

// The distribution lab's choice of bugs has none.
std::vector<Bug> all_bugs() {
  return {};
}

}  // namespace draftproof

// No program can be started: gnuplot, for figures.
extern "C" int posix_spawnp(int*, const char*, const void*, const void*, char* const*, char* const*) {
  return ENOSYS;
}
