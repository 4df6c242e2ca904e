// The settings of a run of `draftproof demo`, from its result.json.
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "studies/speculate/speculate.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

// Fields of an object of the document, by name.
class Fields {
 public:
  Fields(const std::string& file, const Json& object, std::string name)
      : file_(file), object_(object), name_(std::move(name)) {}

  template <class Value>
  Value get(const char* key, const char* expected) const {
    const auto found = object_.find(key);
    if (found != object_.end()) {
      try {
        return found->template get<Value>();
      } catch (const Json::exception&) {
      }
    }
    throw input_error(file_, (found == object_.end() ? "has no \"" : "has a wrong \"") + name_ + key + "\"; expected " +
                                 expected + ", as draftproof demo writes it");
  }
  std::string text(const char* key) const { return get<std::string>(key, "a text"); }
  double number(const char* key) const { return get<double>(key, "a number"); }
  std::int64_t integer(const char* key) const { return get<std::int64_t>(key, "a whole number"); }
  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  Fields object(const char* key) const {
    if (!object_.contains(key) || !object_.at(key).is_object())
      throw input_error(file_,
                        std::string("has no object \"") + key + "\"; expected one, as draftproof demo writes it");
    return {file_, object_.at(key), std::string(key) + "."};
  }

 private:
  const std::string& file_;
  const Json& object_;
  std::string name_;
};

DemoSettings of_language_model(const Fields& run, std::uint64_t seed) {
  DemoSettings demo;
  SpeculateSettings& settings = demo.settings;
  settings.model = run.text("model");
  settings.prompt = run.text("prompt");
  settings.chat = true;
  settings.max_tokens = run.integer("max_tokens");
  settings.drafter = run.text("drafter");
  settings.num_speculative_tokens = static_cast<int>(run.integer("num_speculative_tokens"));
  settings.seed = seed;
  demo.expected_text = run.text("text");
  return demo;
}

// Settings that the demo has and this panel has not must be those that this panel takes.
DemoSettings of_ngrams(const std::string& file, const Fields& document, const Fields& options, std::uint64_t seed) {
  DemoSettings demo;
  SpeculateSettings& settings = demo.settings;
  settings.model = "ngram:" + std::to_string(options.integer("order"));
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    return input_error(file, "was made with " + what + "; expected " + expected + " to run it again here");
  };
  if (options.has("corpus")) {
    const auto corpus = options.get<Json>("corpus", "a folder or a list of files");
    if (corpus.is_array()) {
      if (corpus.size() != 1 || !corpus[0].is_string()) throw refuse("several corpora", "one file or the default");
      settings.model += ":" + corpus[0].get<std::string>();
    }
  }
  settings.prompt = options.text("prompt");
  settings.max_tokens = options.integer("tokens");
  settings.temperature = options.number("temperature");
  settings.top_p = options.number("top_p");
  settings.top_k = options.integer("top_k");
  settings.min_p = options.number("min_p");
  settings.cfg_scale = options.number("guidance_scale");
  if (options.has("negative_prompt")) settings.negative_prompt = options.text("negative_prompt");
  if (options.text("draft") == "ngram") {
    settings.drafter = "ngram:" + std::to_string(options.integer("draft_order"));
    for (const auto& [draft, target] : {std::pair("draft_temperature", "temperature"), {"draft_top_p", "top_p"}})
      if (options.number(draft) != options.number(target))
        throw refuse(std::string(draft) + " other than " + target, "the same");
    if (options.integer("draft_top_k") != options.integer("top_k"))
      throw refuse("draft_top_k other than top_k", "the same");
  } else {
    settings.drafter = "prompt_lookup";
  }
  if (options.text("sampler") != "inverse") throw refuse("sampler " + options.text("sampler"), "inverse");
  settings.verifier = document.text("verifier");
  if (document.has("tree")) settings.tree = document.text("tree");
  settings.num_speculative_tokens = static_cast<int>(options.integer("num_speculative_tokens"));
  settings.seed = seed;
  demo.expected_text = document.text("text");
  return demo;
}

}  // namespace

DemoSettings speculate_settings_of_demo(const OpenedResult& result) {
  const Fields document(result.file, result.document, "");
  const auto seed = document.get<std::uint64_t>("seed", "a whole number");
  if (document.has("language_model")) return of_language_model(document.object("language_model"), seed);
  return of_ngrams(result.file, document, document.object("options"), seed);
}

std::string text_in_json(const SpeculateLane& lane) {
  return Json::parse(Json(lane.outputs.at(0).text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace draftproof
