// draftproof machine: the machine's description, as it stands in every result.
#include <iostream>
#include <memory>

#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

void print_machine(const Json& machine) {
  for (const auto& [key, value] : machine.items()) {
    std::cout << key << std::string(key.size() < 16 ? 16 - key.size() : 1, ' ');
    if (value.is_null()) {
      std::cout << "none";
    } else if (value.is_array()) {
      for (const auto& element : value) std::cout << element.get<std::string>() << ' ';
    } else if (value.is_string()) {
      std::cout << value.get<std::string>();
    } else {
      std::cout << value;
    }
    std::cout << '\n';
  }
}

}  // namespace

void add_command(Options& options, ProgramContext& context) {
  const auto json = std::make_shared<bool>(false);
  options.json(*json);
  options.on_run([json, &context] {
    Json document = json_document(context.arguments);
    Json targets = Json::array();
    for (const RowKernels& kernels : available_row_kernels()) targets.push_back(kernels.target);
    if (*json) {
      document["simd_available"] = targets;
      print_json(document);
    } else {
      Json machine = document["machine"];
      machine["simd_available"] = targets;
      print_machine(machine);
    }
  });
}

}  // namespace draftproof
