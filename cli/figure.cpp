#include "cli/figure.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "reference/error.hpp"
#include "reference/io/atomic_file.hpp"

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

  std::string contents() {
    std::rewind(file_.get());
    std::string text;
    std::array<char, 4096> block{};
    for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), file_.get())) > 0;) {
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
  return begin == std::string::npos ? "it said nothing" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::string run_gnuplot(const std::string& figure, const std::string& script) {
  ScratchFile input;
  ScratchFile output;
  ScratchFile errors;
  input.write(script);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  char program[] = "gnuplot";
  char default_settings[] = "--default-settings";
  char standard_input[] = "-";
  std::array<char*, 4> arguments = {program, default_settings, standard_input, nullptr};
  pid_t child = 0;
  const int spawn_error = posix_spawnp(&child, program, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawn_error != 0) {
    throw input_error(figure, std::string("gnuplot, which draws the figures, does not start (") +
                                  std::strerror(spawn_error) + "); install it (Debian: apt-get install gnuplot-nox)");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string picture = output.contents();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || picture.find("</svg>") == std::string::npos) {
    throw Error(ErrorKind::internal, figure, "gnuplot did not draw it: " + trimmed_line(errors.contents()));
  }
  return picture;
}

}  // namespace

void write_figure(const std::string& svg_path, const std::string& script, FigureSize size) {
  AtomicFile file(svg_path);
  const std::string terminal =
      "set encoding utf8\nset terminal svg noenhanced font 'sans-serif,14' background '#ffffff' size " +
      std::to_string(size.width_px) + "," + std::to_string(size.height_px) + "\n";
  file.stream() << run_gnuplot(svg_path, terminal + script + "\n");
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
