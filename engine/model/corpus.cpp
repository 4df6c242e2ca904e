#include "engine/model/corpus.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files/input_file.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> read_text(const std::string& path, std::uint64_t limit_bytes) {
  const InputFile file(path, limit_bytes);
  if (file.bytes().empty()) throw input_error(path, "is empty; expected a text of at least one byte");
  const auto* const first = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
  return {first, first + file.bytes().size()};
}

}  // namespace

Corpus read_corpus(std::span<const std::string> files) {
  if (files.empty()) throw input_error("--corpus", "no file is named; expected at least one");
  Corpus corpus;
  std::uint64_t bytes = 0;
  for (const std::string& path : files) {
    if (bytes + require_regular_file(path, kCorpusBytesMax) > kCorpusBytesMax)
      throw input_error(
          path, "makes the corpus larger than " + bytes_text(kCorpusBytesMax) + "; expected fewer or smaller files");
    corpus.texts.push_back(read_text(path, kCorpusBytesMax - bytes));
    corpus.paths.push_back(path);
    bytes += corpus.texts.back().size();
  }
  return corpus;
}

Corpus read_corpus_folder(const fs::path& folder) {
  const std::string remedy = "; name text files with --corpus FILE...";
  std::vector<std::string> files;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw input_error(folder.string(), "the corpus folder cannot be listed: " + error.code().message() + remedy);
  }
  if (files.empty()) throw input_error(folder.string(), "the corpus folder has no regular file" + remedy);
  std::sort(files.begin(), files.end());
  return read_corpus(files);
}

Corpus load_corpus(std::span<const std::string> files) {
  return files.empty() ? read_corpus_folder(kDefaultCorpusFolder) : read_corpus(files);
}

}  // namespace draftproof
