// The text on which the n-gram model is trained: files that the user names, or by default the licence texts that every
// Debian system carries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace draftproof {

// Debian policy (section 12.5) puts the common licences in this folder; the package base-files, which every system has,
// installs them.
inline constexpr const char* kDefaultCorpusFolder = "/usr/share/common-licenses";

// All texts together. Training target and drafter takes up to 290 times as much memory (random bytes, order 12).
inline constexpr std::uint64_t kCorpusBytesMax = std::uint64_t{1} << 26;

struct Corpus {
  std::vector<std::string> paths;
  std::vector<std::vector<std::uint8_t>> texts;  // texts[i] are the bytes of paths[i]; none is empty
};

// Reads the files in the order given. A file that is missing, unreadable, empty, no regular file, or one too many for
// kCorpusBytesMax is an input error that names it; so is an empty list.
Corpus read_corpus(std::span<const std::string> files);

// Reads the regular files directly in `folder`, sorted by the bytes of their names. Symbolic links are skipped, because
// there a link is a second name (GPL for GPL-3) of a text that would be counted twice, and so are subfolders. A folder
// that is missing or has no file is an input error that names the folder and the option --corpus.
Corpus read_corpus_folder(const std::filesystem::path& folder);

// Loads what --corpus FILE... asks for: its files, or the default folder when there are none.
Corpus load_corpus(std::span<const std::string> files);

}  // namespace draftproof
