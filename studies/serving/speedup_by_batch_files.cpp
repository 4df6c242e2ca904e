// Opening predictions and experiments in the panel "Speedup versus batch".
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/toml.hpp"
#include "studies/serving/speedup_by_batch.hpp"

namespace draftproof {
namespace {

std::vector<std::string> words_of(const std::string& list) {
  const std::vector<std::string_view> words = split(list, ',');
  return {words.begin(), words.end()};
}

// The options of one command, each taken once.
class GivenOptions {
 public:
  GivenOptions(const std::vector<std::string>& arguments, const std::string& path) : path_(path) {
    for (std::size_t i = 2; i < arguments.size(); ++i) {
      std::string name = arguments[i];
      std::string value;
      if (const std::size_t equals = name.find('='); equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.resize(equals);
      } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
        value = arguments[++i];
      }
      given_[name] = value;
    }
  }

  void take(const char* name, std::string& value) const {
    if (const std::string* text = find(name)) value = *text;
  }
  void take(const char* name, bool& value) const { value |= find(name) != nullptr; }
  void take(const char* name, std::vector<std::string>& value) const {
    if (const std::string* text = find(name)) value = words_of(*text);
  }
  void take(const char* name, int& value) const {
    if (const std::string* text = find(name)) value = integer(name, *text);
  }
  void take(const char* name, std::optional<int>& value) const {
    if (const std::string* text = find(name)) value = integer(name, *text);
  }
  void take(const char* name, std::vector<int>& value) const {
    const std::string* text = find(name);
    if (text == nullptr) return;
    const auto numbers =
        read_integers(*text, path_ + ": " + name + " of its command", "number", kIntegers, ErrorKind::input);
    value.assign(numbers.begin(), numbers.end());
  }
  void take(const char* name, double& value) const {
    const std::string* text = find(name);
    if (text == nullptr) return;
    const auto number = read_number(*text);
    if (!number) refuse(name, *text);
    value = *number;
  }

 private:
  static constexpr IntegerRange kIntegers{0, 1 << 24};

  const std::string* find(const char* name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? nullptr : &found->second;
  }
  int integer(const char* name, const std::string& text) const {
    const auto number = read_integer(text, kIntegers.least, kIntegers.most);
    if (!number) refuse(name, text);
    return static_cast<int>(*number);
  }
  [[noreturn]] void refuse(const char* name, const std::string& text) const {
    throw input_error(path_, std::string("its command has ") + name + " " + in_quotes(text) + "; expected a number");
  }

  std::string path_;
  std::map<std::string, std::string> given_;
};

}  // namespace

SpeedupByBatchSettings settings_of_prediction(const nlohmann::ordered_json& document, const std::string& path) {
  const auto command = document.find("command");
  if (command == document.end() || !command->is_string())
    throw input_error(path, "has no command; expected a document of `draftproof predict`");
  const std::vector<std::string> arguments = shell_arguments(command->get_ref<const std::string&>());
  if (arguments.size() < 2 || arguments[1] != "predict")
    throw input_error(path, "is no document of `draftproof predict`; its command is " +
                                in_quotes(command->get_ref<const std::string&>()));
  const GivenOptions given(arguments, path);
  SpeedupByBatchSettings settings;
  settings.request = {};
  PredictionRequest& request = settings.request;
  given.take("--model", request.model);
  given.take("--gpu", request.gpu);
  given.take("--engine", request.engine);
  given.take("--tp", request.tp);
  given.take("--dp", request.dp);
  given.take("--pp", request.pp);
  given.take("--expert-parallel", request.expert_parallel);
  given.take("--drafter", request.drafter);
  given.take("--precision", request.precision);
  given.take("--draft-precision", request.draft_precision);
  given.take("--draft-tp", request.draft_tp);
  given.take("--draft-gpu", request.draft_gpu);
  given.take("--metrics", request.metrics);
  given.take("--metrics-name", request.metrics_name);
  given.take("--metrics-drafts", request.metrics_drafts);
  given.take("--metrics-rates", request.metrics_rates);
  given.take("--acceptance", request.acceptance);
  given.take("--context", request.context);
  given.take("--drafts-max", request.drafts_max);
  given.take("--tree-nodes", request.trees);
  bool no_trees = false;
  given.take("--no-trees", no_trees);
  if (no_trees) request.trees.clear();
  given.take("--guidance", request.guidance);
  given.take("--calibrate-with", request.calibrate_with);
  given.take("--acceptance-factor", request.acceptance_factor);
  given.take("--draft-cost-factor", request.draft_cost_factor);
  given.take("--compare-drafters", request.compared_drafters);
  given.take("--compare-guidance", request.compare_guidance);
  given.take("--measured", request.measured);
  std::vector<int> batches;
  given.take("--batch", batches);
  if (!batches.empty()) settings.batch_max = std::max(2, std::ranges::max(batches));
  return settings;
}

SpeedupByBatchSettings settings_of_experiment(const std::string& path) {
  const TomlValue experiment = read_toml(path);
  const TomlValue scenario =
      read_toml((std::filesystem::path(path).parent_path() / experiment.at("scenario").text()).string());
  const TomlValue& server = scenario.at("server");
  SpeedupByBatchSettings settings;
  settings.request = {};
  PredictionRequest& request = settings.request;
  request.model = server.at("model").text();
  request.gpu = server.at("gpu").text();
  request.engine = server.text_or("engine", request.engine);
  if (server.find("tp") != nullptr) request.tp = static_cast<int>(server.at("tp").integer(1, 1024));
  request.drafter = scenario.at("drafter").text();
  request.acceptance = scenario.text_or("acceptance", "");
  request.measured = path;
  return settings;
}

}  // namespace draftproof
