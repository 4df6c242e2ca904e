#include "studies/figures/figure.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/signal_cleanup.hpp"

namespace draftproof {
namespace {

// The three streams of gnuplot are nameless temporary files rather than pipes: nothing can block, and no shell and no
// path in a script is involved.
class ScratchFile {
 public:
  ScratchFile() : file_(std::tmpfile()) {
    if (!file_)
      throw input_error("the system's temporary folder", std::string("not writable: ") + std::strerror(errno));
  }
  int descriptor() const { return fileno(file_.get()); }

  void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0) {
      throw input_error("the system's temporary folder", std::string("not writable: ") + std::strerror(errno));
    }
    std::rewind(file_.get());
  }

  // The beginning of it: a figure has some 10 KB.
  std::string contents() {
    constexpr std::size_t kContentsMax = std::size_t{1} << 26;
    std::rewind(file_.get());
    std::string text;
    std::array<char, 4096> block{};
    for (std::size_t count = 0;
         text.size() < kContentsMax && (count = std::fread(block.data(), 1, block.size(), file_.get())) > 0;) {
      text.append(block.data(), count);
    }
    return text;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

std::string trimmed_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "it said nothing";
  constexpr std::size_t kWordsMax = 400;
  return text.substr(begin, std::min(kWordsMax, text.find_last_not_of(' ') + 1 - begin));
}

// Environment of gnuplot: where to find it and its libraries. The rest (GNUTERM, GNUPLOT_LIB, fonts, locales) could
// only change the picture, or make it wait for a display.
std::vector<std::string> gnuplot_environment() {
  std::vector<std::string> settings = {"LC_ALL=C", "HOME=/"};
  for (const char* const name : {"PATH", "LD_LIBRARY_PATH", "TMPDIR"}) {
    if (const char* const value = std::getenv(name)) settings.push_back(std::string(name) + "=" + value);
  }
  return settings;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child in a process group of its own, so that what it starts in turn can be ended with it. Without one it keeps
// running when its time is up, or when a signal ends us.
class ChildGroup {
 public:
  // `streams` become its standard input, output and error. Zero, or the error number of a child that did not start.
  int start(std::vector<std::string> arguments, std::vector<std::string> environment, std::array<int, 3> streams) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, streams.at(static_cast<std::size_t>(i)), i);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t ours_alone;  // SIGXFSZ, which we ignore, would be ignored by the child too
    sigemptyset(&ours_alone);
    sigaddset(&ours_alone, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &ours_alone);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    const std::string program = arguments.front();
    const int error = posix_spawnp(&pid_, program.c_str(), &actions, &attributes, pointers_to(arguments).data(),
                                   pointers_to(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) cleanup_.emplace(pid_);
    return error;
  }

  // Its exit as wait() reports it; nothing when it was still running at the end of the time, and is ended now.
  std::optional<int> wait(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    int status = 0;
    for (auto pause = std::chrono::microseconds(500);; pause = std::min(pause * 2, std::chrono::microseconds(20'000))) {
      const pid_t ended = waitpid(pid_, &status, WNOHANG);
      if (ended == pid_) return status;
      if (ended < 0 && errno != EINTR) return std::nullopt;
      if (std::chrono::steady_clock::now() >= end) break;
      std::this_thread::sleep_for(pause);
    }
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return std::nullopt;
  }

 private:
  pid_t pid_ = 0;
  std::optional<SignalCleanup> cleanup_;
};

std::string ending_of(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "failed with exit code " + std::to_string(WEXITSTATUS(status));
  return "drew nothing";
}

struct FigureFormat {
  const char* ending;
  const char* terminal;  // the size goes behind it
  int pixels_per_unit;   // of the size
  const char* mark;      // stands at the end of every complete picture
};

constexpr std::array<FigureFormat, 4> kFormats{
    {{".svg", "svg noenhanced font 'sans-serif,14' background '#ffffff' size ", 1, "</svg>"},
     {".png", "pngcairo noenhanced font 'sans-serif,11' background '#ffffff' size ", 1, "IEND"},
     {".pdf", "pdfcairo noenhanced font 'sans-serif,11' background '#ffffff' size ", 96, "%%EOF"},
     {".tex", "tikz size ", 160, "\\end{tikzpicture}"}}};

constexpr const char* kExpectedName = "expected a name that ends with .svg, .png, .pdf or .tex";

const FigureFormat* find_format(const std::string& path) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const FigureFormat& format) { return path.ends_with(format.ending); });
  return found == kFormats.end() ? nullptr : &*found;
}

const FigureFormat& format_of(const std::string& path) {
  const FigureFormat* const format = find_format(path);
  if (format == nullptr) throw input_error(path, std::string("is not the name of a figure; ") + kExpectedName);
  return *format;
}

std::string size_text(const FigureFormat& format, const FigureOptions& options) {
  const auto length = [&](int pixels) {
    if (format.pixels_per_unit == 1) return std::to_string(pixels);
    return std::to_string(static_cast<double>(pixels) / format.pixels_per_unit) + "in";
  };
  return length(options.width_px) + "," + length(options.height_px);
}

std::string run_gnuplot(const std::string& figure, const FigureFormat& format, const std::string& script,
                        std::chrono::milliseconds time_limit) {
  ScratchFile input;
  ScratchFile output;
  ScratchFile errors;
  input.write(script);
  ChildGroup gnuplot;
  const int spawn_error = gnuplot.start({"gnuplot", "--default-settings", "-"}, gnuplot_environment(),
                                        {input.descriptor(), output.descriptor(), errors.descriptor()});
  if (spawn_error != 0)
    throw input_error(figure, std::string("gnuplot, which draws the figures, does not start (") +
                                  std::strerror(spawn_error) + "); install it (Debian: apt-get install gnuplot-nox)");
  const std::optional<int> status = gnuplot.wait(time_limit);
  if (!status)
    throw input_error(figure,
                      "gnuplot was still running after " + std::to_string(time_limit.count()) + " ms and was ended");
  std::string picture = output.contents();
  if (*status != 0 || picture.find(format.mark) == std::string::npos)
    throw input_error(figure, "gnuplot " + ending_of(*status) + ": " + trimmed_line(errors.contents()));
  return picture;
}

// gnuplot hands texts to TeX as they are: their special characters are escaped here, but for numbers, "$0.5$".
std::string with_tex_escapes(const std::string& picture) {
  std::string out = "% Needs \\usepackage{gnuplot-lua-tikz}, a file of gnuplot's.\n";
  for (std::size_t begin = 0; begin < picture.size();) {
    const std::size_t end = std::min(picture.find('\n', begin), picture.size() - 1) + 1;
    const std::string line = picture.substr(begin, end - begin);
    begin = end;
    const std::size_t text = line.find(") {");
    if (!line.starts_with("\\node[gp node") || text == std::string::npos || line[text + 3] == '$') {
      out += line;
      continue;
    }
    out += line.substr(0, text + 3);
    const std::size_t last = line.rfind("};");
    for (std::size_t i = text + 3; i < last; ++i)
      out += std::string("&%$#_{}").find(line[i]) == std::string::npos ? std::string(1, line[i])
                                                                       : std::string("\\") + line[i];
    out += line.substr(last);
  }
  return out;
}

}  // namespace

void require_figure_name(const std::string& option, const std::string& path) {
  if (find_format(path) == nullptr) throw usage_error(option, "is '" + path + "'; " + kExpectedName);
}

void write_figure(const std::string& path, const std::string& script, FigureOptions options) {
  const FigureFormat& format = format_of(path);
  const std::string terminal =
      std::string("set encoding utf8\nset terminal ") + format.terminal + size_text(format, options) + "\n";
  const std::string picture = run_gnuplot(path, format, terminal + script + "\n", options.time_limit);
  AtomicFile file(path);
  file.stream() << (path.ends_with(".tex") ? with_tex_escapes(picture) : picture);
  file.commit();
}

std::string gnuplot_quoted(const std::string& text) {
  // Between single quotes gnuplot expands nothing; the quote itself is written twice.
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "''";
    } else {
      quoted += c == '\n' || c == '\r' ? ' ' : c;
    }
  }
  return quoted + "'";
}

}  // namespace draftproof
