#include "reference/model/corpus.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "reference/error.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> read_text(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw input_error(path, "there is no such file");
  if (status.type() == fs::file_type::none) throw input_error(path, "the file cannot be examined: " + error.message());
  if (fs::is_directory(status)) throw input_error(path, "it is a folder, name the text files in it");
  if (!fs::is_regular_file(status)) throw input_error(path, "it is not a regular file, a corpus must be a text file");

  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw input_error(path, "the file cannot be opened: " + std::generic_category().message(errno));
  }
  std::vector<std::uint8_t> text;
  std::vector<char> block(std::size_t{1} << 16);
  do {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.insert(text.end(), block.begin(), block.begin() + file.gcount());
  } while (file);
  if (!file.eof()) throw input_error(path, "reading stopped after " + std::to_string(text.size()) + " bytes");
  if (text.empty()) throw input_error(path, "the file is empty, a corpus must have at least one byte");
  return text;
}

}  // namespace

Corpus read_corpus(std::span<const std::string> files) {
  if (files.empty()) throw input_error("--corpus", "no file is named, a corpus needs at least one");
  Corpus corpus;
  for (const std::string& path : files) {
    corpus.texts.push_back(read_text(path));
    corpus.paths.push_back(path);
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
