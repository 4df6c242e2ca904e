#include "cli/bench/peer.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/files/temporary.hpp"
#include "base/printable.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/python.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

std::string peer_script(const std::string& script, const std::string& option) {
  std::string path = own_file("experiments/bench/" + script);
  if (!fs::exists(path)) throw input_error(option, path + " is missing");
  return path;
}

// Raw elements in the machine's byte order: the reader runs on the same machine, a moment later.
template <class T>
void write_elements(const fs::path& path, const std::vector<T>& elements) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(elements.data()), static_cast<std::streamsize>(elements.size() * sizeof(T)));
  file.close();
  if (!file) throw input_error(path.string(), "could not be written; is the disk full?");
}

}  // namespace

PeerTimings run_peer(const std::string& python, const std::string& script, const std::vector<std::string>& arguments,
                     const std::string& option) {
  std::vector<std::string> command{python, peer_script(script, option)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::string text;
  if (run_program(command, [&](std::string_view block) { text += block; }) != 0)
    throw input_error(option, "the command failed: " + shell_command(command));
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) throw Error(ErrorKind::internal, script, "what it printed is not JSON");
  PeerTimings timings;
  timings.version = document.at("version").get<std::string>();
  for (const Json& result : document.at("results"))
    timings.ms[{result.at("name").get<std::string>(), result.at("threads").get<int>()}] = result.at("ms").get<double>();
  return timings;
}

PeerTimings time_pytorch(const std::string& python, const BenchVerifyInputs& inputs, const std::vector<float>& row,
                         const std::vector<int>& threads, int repeat) {
  const Temporary folder(Temporary::Kind::folder, fs::temp_directory_path(), "--pytorch");
  write_elements(fs::path(folder.path()) / "target_logits.f32", inputs.target_logits);
  write_elements(fs::path(folder.path()) / "target_probs.f32", inputs.target_probs);
  write_elements(fs::path(folder.path()) / "draft_probs.f32", inputs.draft_probs);
  write_elements(fs::path(folder.path()) / "drafts.i32", inputs.drafts);
  write_elements(fs::path(folder.path()) / "row.f32", row);
  std::vector<std::string> arguments{folder.path()};
  const auto add = [&](const char* option, std::int64_t value) {
    arguments.emplace_back(option);
    arguments.push_back(std::to_string(value));
  };
  add("--batch", inputs.batch);
  add("--draft-len", inputs.draft_len);
  add("--vocab-size", inputs.vocab_size);
  add("--row-vocab-size", static_cast<std::int64_t>(row.size()));
  add("--repeat", repeat);
  arguments.emplace_back("--threads");
  for (const int count : threads) arguments.push_back(std::to_string(count));
  return run_peer(python, "torch_peer.py", arguments, "--pytorch");
}

}  // namespace draftproof
