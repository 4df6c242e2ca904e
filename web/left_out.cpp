// Replaces, in a page, sources that it leaves out (DRAFTPROOF_WITHOUT in CMakeLists.txt), and says so
// where it is asked for.
#include <cerrno>

#include "base/archives/npz.hpp"
#include "base/archives/text_file.hpp"
#include "base/error.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "sim/import/log_text.hpp"

namespace draftproof {

// Refuses Hugging Face folders, which need utf8proc: a page opens files.
std::shared_ptr<const Tokenizer> tokenizer_of_folder(const std::string& folder) {
  throw input_error(folder, "folders are not opened in the page; expected SmolLM2 or ngram:ORDER");
}

// Archives need zlib.
bool is_zip(std::span<const std::byte> file) {
  return file.size() > 3 && file[0] == std::byte{'P'} && file[1] == std::byte{'K'};
}
std::vector<std::byte> safetensors_of_npz(const std::string& path, std::span<const std::byte>) {
  throw input_error(path, "archives are not read in the page; expected a safetensors file");
}
// So does reading a log piece by piece.
LogText read_log_text(const std::string& path, std::uint64_t whole_most, std::uint64_t) {
  return {read_text(path, whole_most), 0};
}

}  // namespace draftproof

// No program can be started: gnuplot, for figures.
extern "C" int posix_spawnp(int*, const char*, const void*, const void*, char* const*, char* const*) {
  return ENOSYS;
}
