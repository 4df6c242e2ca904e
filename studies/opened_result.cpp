#include "studies/opened_result.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDocumentBytesMax = std::uint64_t{1} << 30;

nlohmann::ordered_json document_of(const std::string& file) {
  const InputFile input(file, kDocumentBytesMax);
  nlohmann::ordered_json document = parse_json<nlohmann::ordered_json>(input.text(), file);
  if (!document.is_object())
    throw input_error(file, "is not a JSON document of the program; expected an object with the key \"command\"");
  return document;
}

// The subcommand in "draftproof predict --model ...".
std::string verb_of(const nlohmann::ordered_json& document) {
  const auto command = document.find("command");
  if (command == document.end() || !command->is_string()) return {};
  const std::string& text = command->get_ref<const std::string&>();
  const std::string program = "draftproof ";
  if (!text.starts_with(program)) return {};
  return text.substr(program.size(), text.find(' ', program.size()) - program.size());
}

OpenedResult open_folder(const std::string& path) {
  std::set<std::string> documents;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".json") documents.insert(entry.path().string());
  for (const std::string& file : documents) {
    nlohmann::ordered_json document = document_of(file);
    const std::string verb = verb_of(document);
    if (!verb.empty()) return {path, file, verb, std::move(document)};
  }
  throw input_error(path, "holds no result of the program; expected a .json file that it wrote");
}

}  // namespace

std::string OpenedResult::extension() const {
  return lower_case(fs::path(file).extension().string());
}

OpenedResult open_result(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) return open_folder(path);
  OpenedResult result{path, path, "", nullptr};
  if (result.extension() != ".json") {
    require_regular_file(path);
    return result;
  }
  result.document = document_of(path);
  result.verb = verb_of(result.document);
  return result;
}

}  // namespace draftproof
