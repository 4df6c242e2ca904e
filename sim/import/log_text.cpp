#include "sim/import/log_text.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/files/inputs_read.hpp"
#include "base/text_encoding.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kBytesMost = std::uint64_t{1} << 30;  // of a text that is no log

// Words of the lines that readers of logs take (vllm_log.hpp, sglang_log.hpp, server_setup.hpp, llama.cpp's text).
constexpr std::string_view kWords[] = {"throughput",    "SpecDecoding", "Speculative", "ccept",
                                       "draft",         "num_spec",     "speculative", "server_args",
                                       "Prefill batch", "LLM engine",   "args:",       "Load weight",
                                       "statistics",    "eval time",    "Position ",   "position "};

bool is_taken(std::string_view line) {
  return std::ranges::any_of(kWords, [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

bool is_log(std::string_view text) {
  for (const std::string_view words : {"Avg generation throughput", "SpecDecoding metrics", "gen throughput",
                                       "accept len", "draft acceptance", "Speculative metrics"})
    if (text.find(words) != std::string_view::npos) return true;
  return false;
}

std::int64_t lines_in(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

class Sieve {
 public:
  explicit Sieve(std::uint64_t kept_most) : half_(kept_most / 2) {}

  void add(std::string_view part) {
    while (!part.empty()) {
      const std::size_t end = part.find('\n');
      line_ += part.substr(0, end);
      if (end == std::string_view::npos) return;
      part.remove_prefix(end + 1);
      end_line("\n");
    }
  }

  LogText finish() {
    end_line("");
    return {begin_ + std::string(static_cast<std::size_t>(between_), '\n') + end_, left_out_};
  }

 private:
  void end_line(const char* feed) {
    std::string& to = begin_.size() < half_ && between_ == 0 ? begin_ : end_;
    // A terminal may have wrapped a record: the lines behind one that is taken belong to it.
    constexpr int kWrapped = 2;
    if (is_taken(line_)) wrapped_ = kWrapped + 1;
    if (wrapped_ > 0) {
      to += line_;
      --wrapped_;
    }
    to += feed;
    line_.clear();
    if (end_.size() < 2 * half_) return;
    const std::size_t cut = end_.find('\n', half_) + 1;
    const std::string_view left = std::string_view(end_).substr(0, cut);
    between_ += lines_in(left);
    for (std::size_t at = 0; at < left.size(); at = left.find('\n', at) + 1) left_out_ += left[at] == '\n' ? 0 : 1;
    end_.erase(0, cut);
  }

  std::uint64_t half_;
  std::string begin_, end_, line_;
  int wrapped_ = 0;
  std::int64_t between_ = 0;   // line feeds
  std::int64_t left_out_ = 0;  // lines with words
};

}  // namespace

LogText read_log_text(const std::string& path, std::uint64_t whole_most, std::uint64_t kept_most) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "standard input" : path;
  std::uint64_t likely_most = kBytesMost;
  if (!standard_input) {
    constexpr std::uint64_t kRatioMost = 400;  // of gzip, as gunzip() takes it
    const std::uint64_t bytes = require_regular_file(path);
    likely_most = std::min(kBytesMost, std::max(whole_most, kRatioMost * bytes));
    struct stat status {};
    if (bytes <= whole_most)
      const InputFile registered(path);  // among the inputs of this process, with its contents (inputs_read.hpp)
    else if (stat(path.c_str(), &status) == 0)
      note_input(status);
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
      standard_input ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw input_error(name, "cannot be opened");
  std::string whole;
  std::unique_ptr<Sieve> sieve;
  const auto part = std::make_unique<std::array<char, 1 << 18>>();
  while (true) {
    const int bytes = gzread(file.get(), part->data(), static_cast<unsigned>(part->size()));
    int status = Z_OK;
    gzerror(file.get(), &status);
    if (bytes < 0 || (bytes == 0 && status == Z_BUF_ERROR))
      throw input_error(name, "is gzip that is damaged or ends early; expected a whole file (gzip -t)");
    if (bytes == 0) break;
    const std::string_view read(part->data(), static_cast<std::size_t>(bytes));
    if (sieve) {
      sieve->add(read);
      continue;
    }
    whole += read;
    if (whole.size() <= whole_most) continue;
    if (whole.size() > likely_most)
      throw input_error(name,
                        "has more than " + bytes_text(likely_most) + "; expected a shorter text, or a server's log");
    if (!is_log(std::string_view(whole).substr(0, whole_most))) {
      whole_most = likely_most;
      continue;
    }
    sieve = std::make_unique<Sieve>(kept_most);
    sieve->add(whole);
    whole = {};
  }
  LogText log = sieve ? sieve->finish() : LogText{std::move(whole), 0};
  if (auto decoded = as_utf8(log.text)) log.text = *std::move(decoded);
  return log;
}

}  // namespace draftproof
