// draftproof machine: the machine's description, as it stands in every result.
#include <iostream>
#include <memory>

#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

void print_machine(const Json& machine) {
  for (const auto& [key, value] : machine.items()) {
    std::cout << key << std::string(key.size() < 22 ? 22 - key.size() : 1, ' ');
    if (value.is_null()) {
      std::cout << "none";
    } else if (value.is_object()) {
      for (const auto& [name, text] : value.items()) std::cout << name << " (" << text.get<std::string>() << ") ";
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

void add_machine(Options& options, ProgramContext& context) {
  const auto json = std::make_shared<bool>(false);
  options.json(*json);
  options.examples({"", "--json"});
  options.on_run([json, &context] {
    Json document = json_document(context.arguments);
    Json kernels = Json::object();
    kernels["simd_available"] = json_list(available_row_kernels(), &RowKernels::target);
    kernels["model_simd"] = transformer_kernels().target;
    for (const TransformerKernels& set : available_transformer_kernels())
      kernels["model_simd_available"][set.target] = int8_instructions(set);
    if (*json) {
      document.update(kernels);
      print_json(document);
    } else {
      Json machine = document["machine"];
      machine.update(kernels);
      print_machine(machine);
    }
  });
}

}  // namespace draftproof
