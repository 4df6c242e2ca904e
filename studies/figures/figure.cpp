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
#include "base/latex.hpp"
#include "base/printable.hpp"

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
  const char* terminal;  // font and size go behind it
  const char* font;      // on the screen
  const char* paper_font;
  int pixels_per_unit;  // of the size
  const char* mark;     // stands at the end of every complete picture
};

constexpr const char* kTexFont = "font '\\footnotesize' charsize 4.3pt,9.5pt";
constexpr std::array<FigureFormat, 4> kFormats{
    {{".svg", "svg noenhanced background '#ffffff'", "font 'sans-serif,14'", "font 'serif,11'", 1, "</svg>"},
     {".png", "pngcairo noenhanced background '#ffffff'", "font 'sans-serif,11'", "font 'serif,8'", 1, "IEND"},
     {".pdf", "pdfcairo noenhanced background '#ffffff'", "font 'sans-serif,11'", "font 'serif,8'", 96, "%%EOF"},
     {".tex", "tikz", kTexFont, kTexFont, 96, "\\end{tikzpicture}"}}};

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

PaperWidth width_of(const FigureFormat& format, const FigureOptions& options) {
  const bool on_screen = options.form.width == PaperWidth::screen;
  return on_screen && std::string_view(format.ending) == ".tex" ? PaperWidth::single_column : options.form.width;
}

std::string terminal_text(const FigureFormat& format, const FigureOptions& options, int panels) {
  constexpr double kPixelsPerInch = 96.0;
  const PaperWidth paper = width_of(format, options);
  double width = options.width_px;
  double height = options.height_px;
  if (paper != PaperWidth::screen) {
    const bool is_single = paper == PaperWidth::single_column;
    width = kPixelsPerInch * inches_of(paper);
    height = (is_single ? 1.25 * panels : 0.7) * width * options.height_px / options.width_px;
  }
  const auto length = [&](double pixels) {
    if (format.pixels_per_unit == 1) return std::to_string(static_cast<int>(pixels));
    return std::to_string(pixels / format.pixels_per_unit) + "in";
  };
  return std::string("set encoding utf8\nset terminal ") + format.terminal + " " +
         (paper == PaperWidth::screen ? format.font : format.paper_font) + " size " + length(width) + "," +
         length(height) + "\n" +
         (paper == PaperWidth::screen ? "" : "set key samplen 1.5 width -1\nset xlabel offset 0,0.7\n");
}

// Panels beside one another, as "layout 1,2", stand below one another in a single column; their number.
int stack_panels(std::string& script) {
  constexpr std::string_view kLayout = "set multiplot layout 1,";
  const std::size_t at = script.find(kLayout);
  if (at == std::string::npos) return 1;
  const int panels = script[at + kLayout.size()] - '0';
  script.replace(at, kLayout.size() + 1, "set multiplot layout " + std::to_string(panels) + ",1");
  return panels;
}

struct TitledScript {
  std::string script, title;  // the first title, without its quotes
};

TitledScript without_titles(const std::string& script) {
  TitledScript out;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t end = std::min(script.find('\n', begin), script.size() - 1) + 1;
    const std::string line = script.substr(begin, end - begin);
    begin = end;
    if (!line.starts_with("set title ")) {
      out.script += line;
      continue;
    }
    const std::size_t quote = line.find('\'');
    if (out.title.empty() && quote != std::string::npos)
      out.title = line.substr(quote + 1, line.rfind('\'') - quote - 1);
  }
  return out;
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

// The macros of gnuplot's pictures, in terms of tikz: a document needs no file of gnuplot's. Colours, dashes and
// widths of lines stay in force until others are set, marks are a dot (7), a square (5) or, for all others, a circle.
constexpr const char* kTikzMacros = R"(\begingroup
\pgfqkeys{/draftproof}{
  rgb color/.code={\definecolor{draftproof}{rgb}{#1}\color{draftproof}}, color/.code={\color{#1}},
  opacity/.code={\pgfsetfillopacity{#1}},
  gp dt solid/.code={\pgfsetdash{}{0pt}}, gp dt axes/.code={\pgfsetdash{{0.4pt}{1.6pt}}{0pt}},
  gp dt 1/.code={\pgfsetdash{}{0pt}}, gp dt 2/.code={\pgfsetdash{{4pt}{2.5pt}}{0pt}},
  gp dt 3/.code={\pgfsetdash{{0.8pt}{1.8pt}}{0pt}}, gp dt 4/.code={\pgfsetdash{{5pt}{2pt}{0.8pt}{2pt}}{0pt}},
  gp dt 5/.code={\pgfsetdash{{6pt}{2pt}{0.8pt}{2pt}{0.8pt}{2pt}}{0pt}}}
\definecolor{gp lt color border}{gray}{0}\definecolor{gp lt color axes}{gray}{0.7}
\definecolor{gpbgfillcolor}{gray}{1}
\def\gpcolor#1{\pgfqkeys{/draftproof}{#1}}
\def\gpsetdashtype#1{\pgfqkeys{/draftproof}{#1}}
\def\gpsetlinetype#1{}
\def\gpsetlinewidth#1{\pgfsetlinewidth{#1\dimexpr0.4pt\relax}}
\def\gpfill#1#2;{\begin{pgfscope}\pgfqkeys{/draftproof}{#1}\fill #2;\end{pgfscope}}
\newdimen\draftproofpoint\draftproofpoint=1.2pt
\def\gpsetpointsize#1{\draftproofpoint=0.5\dimexpr#1pt\relax}
\expandafter\def\csname draftproof gp mark 7\endcsname#1{\fill #1 circle[radius=\draftproofpoint];}
\expandafter\def\csname draftproof gp mark 5\endcsname#1{%
  \fill #1 +(-\draftproofpoint,-\draftproofpoint) rectangle +(\draftproofpoint,\draftproofpoint);}
\def\gp3point#1#2#3{\ifcsname draftproof #1\endcsname\csname draftproof #1\endcsname{#3}%
  \else\draw #3 circle[radius=\draftproofpoint];\fi}
\tikzset{gnuplot/.style={line join=round}, gp path/.style={},
  gp node left/.style={anchor=mid west, inner sep=0pt}, gp node center/.style={anchor=mid, inner sep=0pt},
  gp node right/.style={anchor=mid east, inner sep=0pt}}
)";

// gnuplot hands texts to TeX as they are: their special characters are escaped here, but for numbers, "$0.5$". Its own
// comments, one of which is the time, and names of places go away.
std::string tikz_of(const std::string& picture, const std::vector<std::string>& comments) {
  std::string out;
  for (const std::string& comment : comments) out += latex_comment(comment);
  out += std::string("% Needs \\usepackage{tikz}.\n") + kTikzMacros;
  for (std::size_t begin = 0; begin < picture.size();) {
    const std::size_t end = std::min(picture.find('\n', begin), picture.size() - 1) + 1;
    const std::string line = picture.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("\\end{tikzpicture}")) {
      out += "\\end{tikzpicture}%\n";  // a space would be wider than the column
      break;
    }
    if (line.starts_with("\\path (0.000,0.000) rectangle")) {  // the size; no label makes it wider than the column
      out += "\\path[use as bounding box]" + line.substr(5);
      continue;
    }
    if (line.starts_with("%%") || line.starts_with("\\gpdefrectangularnode")) continue;
    const std::size_t text = line.find(") {");
    const std::size_t last = line.rfind("};");
    if (!line.starts_with("\\node[gp node") || text == std::string::npos || line[text + 3] == '$') {
      out += line;
    } else {
      out += line.substr(0, text + 3) + latex_text(line.substr(text + 3, last - text - 3)) + line.substr(last);
    }
  }
  return out + "\\endgroup\n";
}

// gnuplot's description of an SVG says that gnuplot made it.
std::string described(const std::string& picture, const std::vector<std::string>& comments) {
  const std::size_t begin = picture.find("<desc>");
  const std::size_t end = picture.find("</desc>");
  if (comments.empty() || begin == std::string::npos || end == std::string::npos) return picture;
  std::string text;
  for (const std::string& comment : comments)
    for (const char c : (text.empty() ? "" : "; ") + printable_line(comment))
      text += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return picture.substr(0, begin + 6) + text + picture.substr(end);
}

}  // namespace

void require_figure_name(const std::string& option, const std::string& path) {
  if (find_format(path) == nullptr) throw usage_error(option, "is '" + path + "'; " + kExpectedName);
}

void write_figure(const std::string& path, const std::string& script, const FigureOptions& options) {
  const FigureFormat& format = format_of(path);
  const PaperWidth width = width_of(format, options);
  TitledScript titled = width == PaperWidth::screen ? TitledScript{script, ""} : without_titles(script);
  const int panels = width == PaperWidth::single_column ? stack_panels(titled.script) : 1;
  const std::string terminal = terminal_text(format, options, panels);
  const std::string picture = run_gnuplot(path, format, terminal + titled.script + "\n", options.time_limit);
  std::vector<std::string> comments;
  for (const std::string& comment : {options.form.program, options.form.command, titled.title})
    if (!comment.empty()) comments.push_back(comment);
  AtomicFile file(path);
  file.stream() << (path.ends_with(".tex")   ? tikz_of(picture, comments)
                    : path.ends_with(".svg") ? described(picture, comments)
                                             : picture);
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
