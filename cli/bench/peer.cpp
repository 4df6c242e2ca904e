#include "cli/bench/peer.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/json_document.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// Peers lie in the source tree, of which the build folder is a part: look above the program, then here.
fs::path find_script(const std::string& script, const std::string& option) {
  const fs::path peer = fs::path("experiments/bench") / script;
  std::error_code ignored;
  for (const fs::path& start : {fs::read_symlink("/proc/self/exe", ignored), fs::current_path() / "here"}) {
    for (fs::path folder = start.parent_path(); folder != folder.root_path(); folder = folder.parent_path())
      if (fs::exists(folder / peer)) return folder / peer;
  }
  throw input_error(option, peer.string() + " is not found; run the program from its source tree");
}

std::string output_of(const std::string& command, const std::string& option) {
  struct Close {
    void operator()(std::FILE* pipe) const { pclose(pipe); }
  };
  std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  if (!pipe) throw input_error(option, "no process could be started");
  std::string text;
  std::array<char, 4096> block;
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), pipe.get())) > 0;)
    text.append(block.data(), count);
  if (const int status = pclose(pipe.release()); status != 0)
    throw input_error(option, "the command failed: " + command);
  return text;
}

}  // namespace

std::optional<std::string> find_python_with(const std::vector<std::string>& modules) {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("DRAFTPROOF_PYTHON")) candidates.emplace_back(chosen);
  candidates.insert(candidates.end(), {"python3", "/usr/bin/python3"});
  for (const std::string& python : candidates)
    for (const std::string& module : modules) {
      const std::string command = shell_command({python, "-c", "import " + module}) + " >/dev/null 2>&1";
      if (std::system(command.c_str()) == 0) return python;
    }
  return std::nullopt;
}

PeerTimings run_peer(const std::string& python, const std::string& script, const std::vector<std::string>& arguments,
                     const std::string& option) {
  std::vector<std::string> command{python, find_script(script, option).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Json document = Json::parse(output_of(shell_command(command), option), nullptr, false);
  if (document.is_discarded()) throw Error(ErrorKind::internal, script, "what it printed is not JSON");
  PeerTimings timings;
  timings.version = document.at("version").get<std::string>();
  for (const Json& result : document.at("results"))
    timings.ms[{result.at("name").get<std::string>(), result.at("threads").get<int>()}] = result.at("ms").get<double>();
  return timings;
}

}  // namespace draftproof
