// draftproof verifiers: the registry of reference/step/verifiers.hpp.
#include <iomanip>
#include <iostream>
#include <memory>

#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "reference/step/verifiers.hpp"

namespace draftproof {
namespace {

std::string text_of_name(std::string_view text) {
  return std::string(text);
}

Json json_of(const VerifierInfo& info) {
  Json json;
  json["name"] = text_of_name(info.name);
  json["draft"] = text_of_name(name_of(info.draft));
  json["proposal"] = text_of_name(name_of(info.proposal));
  json["lossless"] = info.lossless;
  json["guarantee"] = text_of_name(info.guarantee);
  json["source"] = text_of_name(info.source);
  json["coins"] = text_of_name(name_of(info.coins));
  json["noise"] = text_of_name(name_of(info.noise));
  json["decisions"] = text_of_name(name_of(info.decisions));
  json["recovered"] = text_of_name(name_of(info.recovered));
  json["joint"] = info.joint;
  json["keeps_support"] = info.keeps_support;
  json["replayable"] = info.is_replayable();
  json["parameters"] = json_list(info.parameters, [](const VerifierParameter& parameter) -> Json {
    return {{"name", text_of_name(parameter.name)},
            {"default", parameter.standard},
            {"meaning", text_of_name(parameter.meaning)}};
  });
  return json;
}

void print_table(std::ostream& out) {
  out << std::left << std::setw(18) << "name" << std::setw(10) << "draft" << std::setw(21) << "proposal"
      << std::setw(10) << "lossless"
      << "source\n";
  for (const VerifierInfo& info : verifiers()) {
    out << std::setw(18) << info.name << std::setw(10) << name_of(info.draft) << std::setw(21) << name_of(info.proposal)
        << std::setw(10) << (info.lossless ? "yes" : "no") << info.source << '\n';
    for (const VerifierParameter& parameter : info.parameters)
      out << "  " << text_of_name(info.name) + ":" + text_of_name(parameter.name) + "=" << parameter.standard << "  "
          << parameter.meaning << '\n';
  }
}

}  // namespace

void add_verifiers(Options& options, ProgramContext& context) {
  struct Arguments {
    Artefacts artefacts;
    bool json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  add_table(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"", "--json", "--table verifiers.tex --paper-width double"});
  options.on_run([arguments, &context] {
    require_artefacts(arguments->artefacts);
    Json document = json_document(context.arguments);
    document["verifiers"] = Json::array();
    for (const VerifierInfo& info : verifiers()) document["verifiers"].push_back(json_of(info));
    write_table_of(arguments->artefacts, "Verifiers", context, [&] {
      return table_of(document["verifiers"], {"name", "draft", "proposal", "lossless", "source"});
    });
    if (!arguments->json) return print_table(std::cout);
    print_json(document);
  });
}

}  // namespace draftproof
