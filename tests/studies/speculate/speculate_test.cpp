// Panel "Speculate" without a window: its tokens and acceptance against `draftproof generate` run with its command
// line, its probabilities against softmaxes computed here, its times against each other.
#include "studies/speculate/speculate.hpp"

#include "engine/model/model_session.hpp"
#include "engine/model/ngram_language_model.hpp"
#include "engine/model/text_model.hpp"
#include "studies/figures/figure.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

using Json = nlohmann::ordered_json;

struct NgramCorpus {
  TemporaryFolder folder;
  std::string model;
  NgramCorpus() {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "You may copy and distribute the draft of target number " + std::to_string(i % 7) +
              " and the verifier may copy it.\n";
    write_whole_file(folder.file("corpus"), text);
    model = "ngram:6:" + folder.file("corpus");
  }
  SpeculateSettings settings() const {
    SpeculateSettings settings;
    settings.model = model;
    settings.prompt = "You may copy ";
    settings.drafter = "ngram:2";
    settings.temperature = 0.8;
    settings.num_speculative_tokens = 4;
    return settings;
  }
};

SpeculateSnapshot checked_snapshot(const SpeculateSettings& settings) {
  Job job;
  std::optional<SpeculateSnapshot> last;
  compute(settings, job, [&](SpeculateSnapshot snapshot) {
    if (last) {
      CHECK(snapshot.plain.tokens() + snapshot.speculation.tokens() >=
            last->plain.tokens() + last->speculation.tokens());
    }
    last = std::move(snapshot);
  });
  REQUIRE(last.has_value());
  CHECK(last->plain.ended);
  CHECK(last->speculation.ended);
  return *last;
}

Json generated(std::vector<std::string> arguments) {
  REQUIRE(arguments.at(0) == "draftproof");
  arguments.erase(arguments.begin());
  arguments.emplace_back("--json");
  const ProgramResult result = run_draftproof(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

// The document once written and read: bytes that are not UTF-8 are U+FFFD.
Json document_of(const SpeculateSnapshot& snapshot) {
  return Json::parse(to_json(snapshot).dump(-1, ' ', false, Json::error_handler_t::replace));
}

// All but the times, which are measured.
void check_equal(const Json& shown, const Json& generated) {
  for (const char* key : {"model", "arithmetic", "drafter", "verifier", "tree", "acceptance_length", "tokens_per_step",
                          "acceptance_by_position", "tokens"}) {
    INFO(key);
    CHECK(shown.at(key) == generated.at(key));
  }
  REQUIRE(shown.at("requests").size() == generated.at("requests").size());
  for (std::size_t i = 0; i < shown.at("requests").size(); ++i)
    for (const auto& [key, value] : shown.at("requests")[i].items()) {
      INFO("request " << i << ", " << key);
      CHECK(value == generated.at("requests")[i].at(key));
    }
  // tau / (gamma + 1) counted from the steps that drafted, and the ratio of the two other figures.
  double accepted = 0.0, rows = 0.0;
  for (const Json& step : shown.at("steps")) {
    if (step.at("draft").empty()) continue;
    rows += 1.0 + static_cast<double>(step.at("draft").size());
    accepted += 1.0;
    for (const Json& node : step.at("draft")) accepted += node.at("accepted").get<bool>() ? 1.0 : 0.0;
  }
  if (shown.at("requests").size() == 1) {
    CHECK(shown.at("tokens_per_row").get<double>() == Approx(rows > 0.0 ? accepted / rows : 0.0));
    CHECK(shown.at("effective_speedup").get<double>() * (1.0 + shown.at("overhead_ratio").get<double>()) ==
          Approx(shown.at("tokens_per_step").get<double>()));
  }
  for (const char* key : {"drafter_share", "target_share"}) {
    CHECK(shown.at(key) >= 0.0);
    CHECK(shown.at(key) <= 1.0);
  }
}

std::vector<Token> shown_tokens(const SpeculateLane& lane) {
  std::vector<Token> tokens;
  for (const auto& step : lane.steps)
    for (const ShownToken& token : step->emitted) tokens.push_back(token.token);
  return tokens;
}

// The command of the lane without speculation.
std::vector<std::string> plain_command(const SpeculateSettings& settings) {
  std::vector<std::string> arguments = command_arguments(settings);
  const auto leave_out = [&](const char* option) {
    const auto at = std::ranges::find(arguments, option);
    if (at != arguments.end()) arguments.erase(at, at + 2);
  };
  for (const char* option : {"--drafter", "--tree", "-k", "--policy"}) leave_out(option);
  if (!settings.verifier.starts_with("coupled")) leave_out("--verifier");  // those draw by race without drafts, too
  arguments.insert(arguments.end(), {"--drafter", "none"});
  return arguments;
}

TEST_CASE("every lesson on an n-gram model is what draftproof generate prints for its command line") {
  const NgramCorpus corpus;
  for (const SpeculatePreset& preset : speculate_presets(corpus.model)) {
    INFO(preset.name);
    const SpeculateSnapshot snapshot = checked_snapshot(preset.settings);
    const Json document = document_of(snapshot);
    check_equal(document, generated(command_arguments(preset.settings)));
    const Json plain = generated(plain_command(preset.settings));
    CHECK(document.at("plain").at("requests").size() == static_cast<std::size_t>(preset.settings.outputs));
    for (std::size_t i = 0; i < snapshot.plain.outputs.size(); ++i) {
      CHECK(document.at("plain").at("requests")[i].at("tokens") == plain.at("requests")[i].at("tokens"));
      CHECK(document.at("plain").at("requests")[i].at("text") == plain.at("requests")[i].at("text"));
    }
    if (snapshot.must_agree) CHECK(snapshot.agree);
    CHECK(preset.watch.size() > 40);
    CHECK(preset.watch.back() == '.');
  }
}

TEST_CASE("the first lesson of the toy copies its prompt many tokens a step, and the others keep the licence texts") {
  const std::vector<SpeculatePreset> presets = speculate_presets(kToyModel);
  const SpeculatePreset& copying = presets.front();
  const SpeculateSnapshot snapshot = checked_snapshot(copying.settings);
  const std::string text = text_in_json(snapshot.speculation);
  CHECK(text.size() == static_cast<std::size_t>(copying.settings.max_tokens));
  CHECK_THAT(copying.settings.prompt, Contains("Mix" + text));  // all of it stands in the prompt
  CHECK(document_of(snapshot).at("tokens_per_step").get<double>() > 6.0);
  CHECK(presets[1].settings.model == kToyModel);
  CHECK(speculate_presets(copying.settings.model)[1].settings == presets[1].settings);
}

TEST_CASE("the comparison with draftproof generate finds settings that are not those of the command line") {
  const NgramCorpus corpus;
  const SpeculateSettings settings = corpus.settings();
  SpeculateSettings other = settings;
  other.seed = 1;
  const Json document = to_json(checked_snapshot(settings));
  CHECK(document.at("requests")[0].at("tokens") != generated(command_arguments(other)).at("requests")[0].at("tokens"));
  other = settings;
  other.num_speculative_tokens = 3;
  CHECK(document.at("acceptance_by_position") != generated(command_arguments(other)).at("acceptance_by_position"));
}

TEST_CASE("the lessons on the shipped model are what draftproof generate prints, and hold") {
  if (!shipped_model_at_full_speed()) return;
  const std::vector<SpeculatePreset> presets = speculate_presets("smollm2");
  std::map<std::string, SpeculateSnapshot> snapshots;
  for (const SpeculatePreset& preset : presets) {
    INFO(preset.name);
    SpeculateSettings settings = preset.settings;
    settings.max_tokens = std::min<std::int64_t>(settings.max_tokens, settings.outputs > 1 ? 24 : 42);
    const SpeculateSnapshot snapshot = checked_snapshot(settings);
    check_equal(document_of(snapshot), generated(command_arguments(settings)));
    if (snapshot.must_agree) CHECK(snapshot.agree);
    snapshots.emplace(preset.name, snapshot);
  }
  const auto acceptance_length = [&](const char* name) {
    return document_of(snapshots.at(name)).at("acceptance_length").get<double>();
  };
  CHECK(acceptance_length("Copying text") > 3.0);
  CHECK(acceptance_length("A bad drafter") < 1.1);
  CHECK(acceptance_length("Guidance") > acceptance_length("Copying text"));
  const AcceptanceCounts& large_k = snapshots.at("K too large").speculation.steps.back()->acceptance;
  CHECK(large_k.accepted_tokens * 2 < large_k.draft_tokens);
  CHECK(acceptance_length("A full batch") > 3.0);
  const SpeculateLane& batch = snapshots.at("A full batch").speculation;
  CHECK(std::any_of(batch.steps.begin(), batch.steps.end(),
                    [](const auto& step) { return step->prefill_ns == 0 && step->num_rows > 32; }));
  CHECK(snapshots.at("The same text").must_agree);
}

TEST_CASE("a step's tokens are the accepted path of its draft and one token behind it") {
  const NgramCorpus corpus;
  SpeculateSettings settings = corpus.settings();
  for (const char* verifier : {"chain", "rrs", "traversal", "greedy_multipath"}) {
    INFO(verifier);
    settings.verifier = verifier;
    settings.tree = settings.verifier == "rrs" || settings.verifier == "traversal" ? "2x2x1" : "";
    const SpeculateSnapshot snapshot = checked_snapshot(settings);
    std::int64_t accepted = 0;
    std::int64_t received = 0;
    for (std::size_t i = 0; i < snapshot.speculation.steps.size(); ++i) {
      const SpeculateStep& step = *snapshot.speculation.steps[i];
      std::int32_t parent = kRootNode;
      for (std::size_t j = 0; j < step.path.size(); ++j) {
        const ShownNode& node = step.draft.at(static_cast<std::size_t>(step.path[j]));
        CHECK(node.accepted);
        CHECK(node.parent == parent);
        CHECK(node.depth == static_cast<std::int32_t>(j) + 1);
        if (j < step.emitted.size()) {
          CHECK(step.emitted[j].token == node.token);
          CHECK(step.emitted[j].origin == TokenOrigin::accepted);
        }
        parent = step.path[j];
      }
      const bool is_whole = step.emitted.size() == step.path.size() + 1;
      CHECK((is_whole || i + 1 == snapshot.speculation.steps.size()));
      if (is_whole) {
        const bool has_children = std::any_of(step.draft.begin(), step.draft.end(),
                                              [&](const ShownNode& node) { return node.parent == parent; });
        CHECK(step.emitted.back().origin == (has_children ? TokenOrigin::recovered : TokenOrigin::bonus));
        CHECK(step.last_probability > 0.0f);
      }
      accepted += static_cast<std::int64_t>(step.path.size());
      received += static_cast<std::int64_t>(step.emitted.size());
      CHECK(step.tokens == received);
      CHECK(step.acceptance.accepted_tokens == accepted);
    }
    CHECK(accepted > 10);
    CHECK(shown_tokens(snapshot.speculation) == snapshot.speculation.outputs[0].tokens);
    CHECK(shown_tokens(snapshot.plain) == snapshot.plain.outputs[0].tokens);
    std::string text;
    for (const TextPiece& piece : snapshot.speculation.text) text += piece.text;
    CHECK(text == snapshot.speculation.outputs[0].text);
  }
}

// softmax(logits / temperature) in double, of one token.
double probability(ModelSession& session, const std::vector<Token>& context, Token token, double temperature) {
  std::vector<float> logits(static_cast<std::size_t>(session.vocab_size()));
  session.logits(context, logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) / temperature);
  return std::exp(static_cast<double>(logits[static_cast<std::size_t>(token)]) / temperature) / sum;
}

TEST_CASE("the probabilities of a draft are softmaxes of the two models after the node's path") {
  const NgramCorpus corpus;
  SpeculateSettings settings = corpus.settings();
  settings.verifier = "rrs";
  settings.tree = "2x2x1";
  settings.max_tokens = 40;
  const SpeculateSnapshot snapshot = checked_snapshot(settings);
  const TextModel target = open_text_model(corpus.model, corpus.model, {}, "test");
  const NgramModel counts = NgramModel::train(target.corpus, 2);
  NgramLanguageModel draft(counts);
  ModelSession target_session(*target.model);
  ModelSession draft_session(draft);
  std::vector<Token> context = target.tokenizer->encode(settings.prompt);
  int nodes = 0;
  for (const auto& step : snapshot.speculation.steps) {
    for (const ShownNode& node : step->draft) {
      std::vector<Token> path;
      for (std::int32_t at = node.parent; at != kRootNode; at = step->draft[static_cast<std::size_t>(at)].parent)
        path.insert(path.begin(), step->draft[static_cast<std::size_t>(at)].token);
      std::vector<Token> before = context;
      before.insert(before.end(), path.begin(), path.end());
      INFO("node " << nodes);
      REQUIRE(node.has_draft_probability);
      CHECK(node.target_probability ==
            Approx(probability(target_session, before, node.token, 0.8)).margin(1e-6).epsilon(1e-4));
      CHECK(node.model_probability ==
            Approx(probability(target_session, before, node.token, 1.0)).margin(1e-6).epsilon(1e-4));
      CHECK(node.draft_probability ==
            Approx(probability(draft_session, before, node.token, 0.8)).margin(1e-6).epsilon(1e-4));
      ++nodes;
    }
    std::vector<Token> before = context;
    for (const ShownToken& token : step->emitted) context.push_back(token.token);
    if (step->emitted.size() != step->path.size() + 1) continue;
    before.insert(before.end(), context.begin() + static_cast<std::ptrdiff_t>(before.size()), context.end() - 1);
    CHECK(step->last_probability ==
          Approx(probability(target_session, before, context.back(), 0.8)).margin(1e-6).epsilon(1e-4));
  }
  CHECK(nodes > 40);
}

TEST_CASE("spans follow each other without overlap, and the prompt is in the first") {
  const NgramCorpus corpus;
  const SpeculateSnapshot snapshot = checked_snapshot(corpus.settings());
  for (const SpeculateLane* lane : {&snapshot.plain, &snapshot.speculation}) {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < lane->steps.size(); ++i) {
      const SpeculateStep& step = *lane->steps[i];
      CHECK(step.begin_ns == end);
      for (const std::int64_t part : {step.draft_ns, step.prefill_ns, step.verify_ns, step.sample_ns}) CHECK(part >= 0);
      CHECK(step.draft_ns + step.prefill_ns + step.verify_ns + step.sample_ns <= step.end_ns - step.begin_ns);
      CHECK((step.prefill_ns > 0) == (i == 0));
      CHECK((step.verify_ns > 0) == (i > 0));
      end = step.end_ns;
    }
    CHECK(lane->time_ns() == end);
    CHECK(lane->tokens_per_second() == Approx(1e9 * static_cast<double>(lane->tokens()) / static_cast<double>(end)));
  }
  CHECK(snapshot.speedup() == Approx(snapshot.speculation.tokens_per_second() / snapshot.plain.tokens_per_second()));
}

TEST_CASE("a moment of the time axis shows the steps that had ended") {
  const NgramCorpus corpus;
  const SpeculateSnapshot snapshot = checked_snapshot(corpus.settings());
  const SpeculateView nothing = view_at(snapshot, 0);
  CHECK(nothing.plain_steps == 0);
  CHECK(nothing.speculation_tokens_per_second == 0.0);
  const SpeculateLane& lane = snapshot.speculation;
  for (std::size_t i = 0; i < lane.steps.size(); ++i) {
    CHECK(view_at(snapshot, lane.steps[i]->end_ns).speculation_steps == i + 1);
    CHECK(view_at(snapshot, lane.steps[i]->end_ns - 1).speculation_steps == i);
  }
  const SpeculateView all = view_at(snapshot, std::max(snapshot.plain.time_ns(), lane.time_ns()));
  CHECK(all.plain_steps == snapshot.plain.steps.size());
  CHECK(all.plain_tokens_per_second == snapshot.plain.tokens_per_second());
  CHECK(known_until_ns(snapshot) == std::max(snapshot.plain.time_ns(), lane.time_ns()));
  SpeculateSnapshot running = snapshot;
  running.plain.ended = false;
  CHECK(known_until_ns(running) == snapshot.plain.time_ns());
  running.speculation.ended = false;
  CHECK(known_until_ns(running) == std::min(snapshot.plain.time_ns(), lane.time_ns()));
}

TEST_CASE("settings that do not fit are refused with the sentence of whoever knows") {
  const NgramCorpus corpus;
  const auto refused = [&](ErrorKind kind, auto change) {
    SpeculateSettings settings = corpus.settings();
    change(settings);
    Job job;
    return error_of(kind, [&] { compute(settings, job, [](const SpeculateSnapshot&) {}); });
  };
  using Settings = SpeculateSettings;
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.drafter = "none"; }), Contains("expected one that drafts"));
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.drafter = "layer_skip:3"; }), Contains("has no layers"));
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.verifier = "fast"; }), Contains("expected one of chain"));
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.tree = "2x2"; }), Contains("takes a chain"));
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.tree = "2xtwo"; }), Contains("as in 3x2x1"));
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.num_speculative_tokens = 65; }), Contains("[0, 64]"));
  CHECK_THAT(refused(ErrorKind::usage, [](Settings& s) { s.top_p = 0.0; }), Contains("top_p"));
  CHECK_THAT(refused(ErrorKind::input, [](Settings& s) { s.chat = true; }), Contains("chat template"));
  CHECK_THAT(refused(ErrorKind::input, [](Settings& s) { s.model = "ngram:6:/nowhere"; }), Contains("/nowhere"));
}

TEST_CASE("a run whose result nobody wants ends at its next step") {
  const NgramCorpus corpus;
  Job job;
  job.cancel();
  bool published = false;
  CHECK_THROWS_AS(compute(corpus.settings(), job, [&](const SpeculateSnapshot&) { published = true; }), Cancelled);
  CHECK_FALSE(published);
}

TEST_CASE("the steps of both lanes become rows, and the lanes a figure") {
  const NgramCorpus corpus;
  const SpeculateSnapshot snapshot = checked_snapshot(corpus.settings());
  const Table table = to_table(snapshot);
  CHECK(table.rows.size() == snapshot.plain.steps.size() + snapshot.speculation.steps.size());
  const Json steps = to_json(snapshot).at("steps");
  CHECK(steps.size() == snapshot.speculation.steps.size());
  std::int64_t emitted = 0;
  for (const auto& row : table.rows) {
    REQUIRE(row.size() == table.columns.size());
    emitted += std::get<std::int64_t>(row[11]);
  }
  CHECK(table.columns[11] == "emitted");
  CHECK(emitted == snapshot.plain.tokens() + snapshot.speculation.tokens());
  CHECK_FALSE(to_csv(table).empty());
  const TemporaryFolder folder;
  write_figure(folder.file("lanes.svg"), to_figure(snapshot));
  CHECK(std::filesystem::file_size(folder.file("lanes.svg")) > 1000);
}

TEST_CASE("a demo is run again from its result, and gives its text") {
  const NgramCorpus corpus;
  const std::string out = corpus.folder.file("demo");
  const auto run_demo = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"demo",
                                       "--model",
                                       "none",
                                       "--corpus",
                                       corpus.folder.file("corpus"),
                                       "--samples",
                                       "1000",
                                       "--continuations",
                                       "2",
                                       "--tokens",
                                       "60",
                                       "--prompt",
                                       "You may copy ",
                                       "--out",
                                       out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_draftproof(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return open_result(out);
  };
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--seed", "3", "--temperature", "0.9"},
        std::vector<std::string>{"--verifier", "rrs", "--tree", "2x2", "--draft-order", "2"},
        std::vector<std::string>{"--draft", "ngram-lookup", "--cfg-scale", "1.2"}}) {
    const DemoSettings demo = speculate_settings_of_demo(run_demo(more));
    CHECK(demo.settings.max_tokens == 60);
    CHECK(text_in_json(checked_snapshot(demo.settings).speculation) == demo.expected_text);
  }
  OpenedResult other = run_demo({"--draft-temperature", "0.5"});
  CHECK_THAT(error_of(ErrorKind::input, [&] { speculate_settings_of_demo(other); }), Contains("draft_temperature"));
  other = run_demo({});
  other.document.erase("options");
  CHECK_THAT(error_of(ErrorKind::input, [&] { speculate_settings_of_demo(other); }),
             Contains(other.file) && Contains("no object \"options\""));
  other.document["options"] = Json::object({{"order", "six"}});
  CHECK_THAT(error_of(ErrorKind::input, [&] { speculate_settings_of_demo(other); }),
             Contains("wrong \"options.order\"; expected a whole number"));
}

TEST_CASE("a demo with the shipped model is run again from its result, and gives its text") {
  if (!shipped_model_path()) return;
  const NgramCorpus corpus;
  const std::string out = corpus.folder.file("demo");
  const ProgramResult result = run_draftproof({"demo", "--model", "smollm2", "--corpus", corpus.folder.file("corpus"),
                                               "--samples", "1000", "--continuations", "2", "--out", out});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const DemoSettings demo = speculate_settings_of_demo(open_result(out));
  CHECK(demo.settings.model == "smollm2");
  CHECK(text_in_json(checked_snapshot(demo.settings).speculation) == demo.expected_text);
}

}  // namespace
}  // namespace draftproof::testing
