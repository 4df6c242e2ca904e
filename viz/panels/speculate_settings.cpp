// Choices of the panel "Speculate": the settings of both lanes.
#include <imgui.h>

#include <algorithm>

#include "engine/model/shipped_model.hpp"
#include "engine/model/text_model.hpp"
#include "reference/step/verifiers.hpp"
#include "studies/heads/heads.hpp"
#include "viz/panels/controls.hpp"
#include "viz/panels/speculate.hpp"

namespace draftproof {
namespace {

constexpr const char* kChain = "chain of K";

std::vector<std::string> with_own(std::vector<std::string> items, const std::string& value) {
  if (std::find(items.begin(), items.end(), value) == items.end()) items.push_back(value);
  return items;
}

std::vector<std::string> models(const std::string& value) {
  std::vector<std::string> names{"ngram:6"};
  if (has_shipped_model()) names.insert(names.begin(), kShippedModel);
  return with_own(std::move(names), value);
}

std::vector<std::string> drafters(const SpeculateSettings& settings) {
  if (settings.model.starts_with("ngram:"))
    return with_own({"suffix", "prompt_lookup", "ngram:1", "ngram:2", "ngram:3", "ngram:4", "ngram:5"},
                    settings.drafter);
  std::vector<std::string> names{"suffix",           "prompt_lookup",    "layer_skip:15",
                                 "layer_skip:12-14", "layer_skip:10-19", "layer_skip:5-25",
                                 "requantised:4",    "requantised:3",    "requantised:2"};
  if (settings.model == kShippedModel) names.push_back("head:" + shipped_head_path());
  return with_own(std::move(names), settings.drafter);
}

std::vector<std::string> lossless_verifiers(const std::string& value) {
  std::vector<std::string> names;
  for (const VerifierInfo& info : verifiers())
    if (info.lossless) names.emplace_back(info.name);
  return with_own(std::move(names), value);
}

// Guarantee of the verifier, as the registry has it.
std::string verifier_tooltip(const std::string& verifier) {
  const std::string name = verifier.substr(0, verifier.find(':'));
  std::string text =
      "Which rule accepts a draft x, as min(1, p(x)/q(x)) does; those listed are lossless: the text is distributed as "
      "p; restarts the request.";
  for (const VerifierInfo& info : verifiers())
    if (info.name == name)
      text += "\n" + name + " takes " + (info.draft == DraftForm::chain ? "chains: " : "chains and trees: ") +
              std::string(info.guarantee) + " (" + std::string(info.source) + ").";
  return text;
}

// Line ends as they are typed into a field of one line.
std::string with_escapes(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') escaped += c;
    escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return escaped;
}

std::string without_escapes(const std::string& escaped) {
  std::string text;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    const bool is_escape = escaped[i] == '\\' && i + 1 < escaped.size();
    if (is_escape) ++i;
    text += is_escape && escaped[i] == 'n' ? '\n' : escaped[i];
  }
  return text;
}

}  // namespace

void SpeculatePanel::draw_settings(Controls& controls, SpeculateSettings& settings) {
  static const std::vector<std::string> kTrees{kChain, "2x2", "2x2x1x1", "3x2x1", "3x2x1x1", "4x2x2x1", "8x1x1"};
  controls.choice("drafter", settings.drafter, drafters(settings),
                  "Who proposes tokens, from q: a look-up in the text, the target with fewer layers or bits, an n-gram "
                  "model, a head; restarts the request.");
  next_control(16);
  controls.choice("verifier", settings.verifier, lossless_verifiers(settings.verifier),
                  verifier_tooltip(settings.verifier).c_str());
  next_control(14);
  std::string tree = settings.tree.empty() ? kChain : settings.tree;
  if (controls.choice("tree", tree, with_own(kTrees, tree),
                      "Shape of a draft: a chain, or the number of children of each node by depth, as 3x2x1; restarts "
                      "the request."))
    settings.tree = tree == kChain ? "" : tree;
  next_control(12);
  std::int64_t k = settings.num_speculative_tokens;
  if (controls.slider("K", k, 0, 32, "K, tokens of a chain drafted in a step at most; restarts the request."))
    settings.num_speculative_tokens = static_cast<int>(k);
  next_control(16);
  controls.slider("temperature", settings.temperature, {0, 2},
                  "T in p = softmax(logits / T); 0 is greedy decoding; restarts the request.");
  next_control(16);
  controls.slider("CFG scale", settings.cfg_scale, {0.5, 3},
                  "s of guidance: logits = s conditional + (1 - s) unconditional; 1 is off; restarts the request.");
  next_control(15);
  controls.slider("outputs", settings.outputs, 1, 32,
                  "B, outputs of the prompt decoded in one batch, each with a seed of its own; restarts the request.");
  next_control(18);
  controls.slider("max tokens", settings.max_tokens, 8, 512, "Tokens of each output at most; restarts the request.");
  std::string prompt = with_escapes(settings.prompt);
  if (controls.text("prompt", prompt,
                    "Text that both lanes continue or answer, with \\n for a line end; Enter restarts the "
                    "request."))
    settings.prompt = without_escapes(prompt);
  next_control(5);
  controls.toggle("chat", settings.chat,
                  "Puts the prompt into the model's chat template, for models that have one; restarts the request.");
  if (is_low_) {
    next_control(7);
    controls.toggle("plain text", shows_plain_text_, "The text of plain decoding instead of that of speculation.");
    next_control(7);
    controls.toggle("acceptance", shows_acceptance_, "Acceptance by position instead of the draft of the step.");
  }
  next_control(7);
  controls.toggle("more", shows_more_, "Shows the settings that are changed more seldom.");
  if (shows_more_) draw_more_settings(controls, settings);
}

void SpeculatePanel::draw_more_settings(Controls& controls, SpeculateSettings& settings) {
  if (controls.choice("model", settings.model, models(settings.model),
                      "The target, which p comes from; restarts the request with the first lesson."))
    settings = speculate_presets(settings.model).front().settings;
  next_control(15);
  controls.slider("top_p", settings.top_p, {0.05, 1}, "Least set of tokens with mass top_p is kept; 1 is off.");
  next_control(15);
  controls.slider("top_k", settings.top_k, 0, 100, "The k likeliest tokens are kept; 0 is off.");
  next_control(15);
  controls.slider("min_p", settings.min_p, {0, 0.5}, "Tokens with p below min_p max p are dropped; 0 is off.");
  if (constexpr std::int64_t kMost = std::min(16, kModelThreadsMax); kMost > 1) {
    next_control(15);
    std::int64_t threads = settings.threads;
    if (controls.slider("threads", threads, 1, kMost, "Threads of a forward pass; they change times and no token."))
      settings.threads = static_cast<int>(threads);
  }
  next_control(15);
  auto seed = static_cast<std::int64_t>(settings.seed);
  if (controls.slider("seed", seed, 0, 99, "Seed of the first output; the same seed gives the same tokens anywhere."))
    settings.seed = static_cast<std::uint64_t>(seed);
  next_control(12);
  controls.toggle("ignore end", settings.ignore_eos, "Goes on behind the token that ends a turn.");
  controls.text("drafter by name", settings.drafter,
                "As --drafter takes it: also model:PATH, layer_skip:LIST, ngram:ORDER.");
  controls.text("verifier by name", settings.verifier,
                "As --verifier takes it, with parameters, as greedy_multipath:paths=3.");
  controls.text("tree by name", settings.tree, "As --tree takes it, as 4x2x1; empty is a chain of K.");
  controls.text("grammar", settings.grammar,
                "Grammar of the output: regex:TEXT, choice:A,B, json_schema:FILE or gbnf:FILE; empty: nothing.");
  controls.text("negative prompt", settings.negative_prompt, "Text that guidance leads away from, where s is not 1.");
  controls.text("model by name", settings.model, "As --model takes it: a GGUF file, a folder, ngram:ORDER:FILE.");
}

}  // namespace draftproof
