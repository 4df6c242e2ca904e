// Panel "Speculate" by events: lessons, controls that restart the request, the moment that is shown, files.
#include "viz/panels/speculate.hpp"

#include <imgui_internal.h>

#include "reference/step/verifiers.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"
#include "tests/viz/looks.hpp"
#include "viz/panels/acceptance_decay.hpp"

namespace draftproof::testing {
namespace {

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
};

// The panel alone, on an n-gram model of a text made here.
struct SpeculateDriver : NgramCorpus, PanelDriver<SpeculatePanel> {
  explicit SpeculateDriver(float scale = 1.0f, int width_px = 1920, int height_px = 1080)
      : PanelDriver(std::make_unique<SpeculatePanel>(model), scale, width_px, height_px) {
    (*this)->frames(2);
  }
  std::size_t num_steps() const { return shown().speculation.steps.size(); }
};

TEST_CASE("what opens is the first lesson, shown to its end") {
  const SpeculateDriver driver;
  REQUIRE(driver.panel().shown() != nullptr);
  CHECK(driver.shown().settings == speculate_presets(driver.model).front().settings);
  CHECK(driver.num_steps() > 10);
  CHECK(driver.panel().view().speculation_steps == driver.num_steps());
  CHECK(driver.panel().view().plain_steps == driver.shown().plain.steps.size());
  CHECK(driver.panel().state().error.empty());
}

TEST_CASE("with a toy target tokens a step stand in large letters, and no speedup by a clock that says nothing") {
  const SpeculateDriver driver;
  const Looks looks = looks_of_frame([&] { driver->frame(); });
  CHECK_THAT(looks.text, Contains(" tokens a step") && Contains("its times mean nothing"));
  CHECK_THAT(looks.text, !Contains("times as fast") && !Contains("tokens/s"));
}

TEST_CASE("every lesson can be chosen, and its settings are run") {
  const SpeculateDriver driver;
  for (const SpeculatePreset& preset : speculate_presets(driver.model)) {
    INFO(preset.name);
    if (preset.settings == driver.panel().settings()) continue;
    driver->choose("speculate/lesson", preset.name);
    CHECK(driver.shown().settings == preset.settings);
    CHECK(driver.panel().state().error.empty());
    CHECK(driver.shown().speculation.outputs.size() == static_cast<std::size_t>(preset.settings.outputs));
  }
}

TEST_CASE("controls of the request restart it with what they say") {
  const SpeculateDriver driver;
  driver->choose("speculate/drafter", "ngram:2");
  CHECK(driver.shown().settings.drafter == "ngram:2");
  driver->type_into_slider("speculate/K", "3");
  CHECK(driver.shown().speculation.steps.back()->acceptance.reached.size() == 3);
  driver->type_into_slider("speculate/temperature", "0.7");
  CHECK(driver.shown().settings.temperature == Approx(0.7));
  CHECK_FALSE(driver.shown().must_agree);
  driver->choose("speculate/verifier", "coupled");
  CHECK(driver.shown().must_agree);
  CHECK(driver.shown().agree);
  driver->type_into_slider("speculate/outputs", "3");
  CHECK(driver.shown().plain.outputs.size() == 3);
  driver->type_into_slider("speculate/max tokens", "20");
  CHECK(driver.shown().speculation.outputs[0].tokens.size() == 20);
  driver->type_into_slider("speculate/CFG scale", "1.5");
  CHECK(driver.shown().settings.cfg_scale == Approx(1.5));
  driver->type_into("speculate/prompt", "and\\nthe verifier ");
  CHECK(driver.shown().settings.prompt == "and\nthe verifier ");
  CHECK(driver.shown().speculation.num_prompt_tokens == 17);
  driver->choose("speculate/verifier", "rrs");
  driver->choose("speculate/tree", "2x2x1x1");
  CHECK(driver.shown().settings.tree == "2x2x1x1");
  CHECK(driver.panel().state().error.empty());
}

TEST_CASE("settings that are changed seldom are behind more, and tokens follow them") {
  const SpeculateDriver driver;
  CHECK_FALSE(driver->has("speculate/top_k"));
  driver->click("speculate/more");
  driver->type_into_slider("speculate/temperature", "1");
  const std::vector<Token> before = driver.shown().plain.outputs[0].tokens;
  driver->type_into_slider("speculate/seed", "7");
  CHECK(driver.shown().plain.outputs[0].tokens != before);
  driver->type_into_slider("speculate/top_k", "1");
  driver->type_into("speculate/verifier by name", "greedy_multipath:paths=3");
  driver->type_into("speculate/drafter by name", "ngram:4");
  CHECK(driver.shown().settings.verifier == "greedy_multipath:paths=3");
  CHECK(driver.shown().settings.drafter == "ngram:4");
  // The only token kept is the likeliest one.
  CHECK(driver.shown().agree);
}

TEST_CASE("a drafter, verifier or tree that does not fit is refused in the panel, and what is shown stays") {
  const SpeculateDriver driver;
  const SpeculateSettings before = driver.shown().settings;
  driver->choose("speculate/tree", "2x2");
  CHECK_THAT(driver.panel().state().error, Contains("verifier chain takes a chain, and the tree has branches"));
  CHECK(driver.shown().settings == before);
  driver->choose("speculate/tree", "chain of K");
  CHECK(driver.panel().state().error.empty());
  driver->click("speculate/more");
  driver->type_into("speculate/drafter by name", "layer_skip:3");
  CHECK_THAT(driver.panel().state().error, Contains("has no layers"));
  driver->type_into("speculate/drafter by name", "telepathy");
  CHECK_THAT(driver.panel().state().error, Contains("expected none, prompt_lookup, suffix"));
  CHECK(driver.shown().settings == before);
}

TEST_CASE("the moment steps back and forth along the speculative lane") {
  const SpeculateDriver driver;
  const std::size_t all = driver.num_steps();
  driver->click("speculate/Step back");
  CHECK(driver.panel().playback().paused);
  CHECK(driver.panel().view().speculation_steps == all - 1);
  driver->click("speculate/Step back");
  CHECK(driver.panel().view().speculation_steps == all - 2);
  driver->click("speculate/Step");
  CHECK(driver.panel().view().speculation_steps == all - 1);
  const std::int64_t moment = driver.shown().speculation.steps[all - 2]->end_ns;
  CHECK(driver.panel().playback().moment_ns() == moment);
  CHECK(driver.panel().view().plain_steps == view_at(driver.shown(), moment).plain_steps);
  driver->frames(20);
  CHECK(driver.panel().view().speculation_steps == all - 1);
  driver->click("speculate/Run");
  CHECK(driver.panel().view().speculation_steps == all);
}

TEST_CASE("a replay at a slow pace shows the run from its beginning, and a pause stops it") {
  const SpeculateDriver driver;
  driver->choose("speculate/pace", "1/1000 x");
  driver->click("speculate/Replay");
  const std::int64_t begin = driver.panel().playback().moment_ns();
  CHECK(begin < known_until_ns(driver.shown()) / 2);
  driver->frames(30);
  const std::int64_t later = driver.panel().playback().moment_ns();
  CHECK(later > begin);
  CHECK(later == Approx(static_cast<double>(begin) + 30.0 * 1e9 * static_cast<double>(ImGui::GetIO().DeltaTime) / 1000)
                     .epsilon(0.02));
  CHECK(driver.panel().view().speculation_steps == view_at(driver.shown(), later).speculation_steps);
  driver->click("speculate/Pause");
  const std::int64_t paused = driver.panel().playback().moment_ns();
  driver->frames(30);
  CHECK(driver.panel().playback().moment_ns() == paused);
}

TEST_CASE("a click on a span of a lane shows the end of its step") {
  const SpeculateDriver driver;
  const ControlRect lanes = driver->rect("speculate/lanes");
  // The lane that reaches the end of the axis.
  const bool is_plain = driver.shown().plain.time_ns() > driver.shown().speculation.time_ns();
  const SpeculateLane& lane = is_plain ? driver.shown().plain : driver.shown().speculation;
  const float y = lanes.min.y + (is_plain ? 0.25f : 0.58f) * (lanes.max.y - lanes.min.y);
  driver->click_at({lanes.min.x + 0.4f * (lanes.max.x - lanes.min.x), y});
  CHECK(driver.panel().playback().paused);
  const std::int64_t moment = driver.panel().playback().moment_ns();
  CHECK(std::any_of(lane.steps.begin(), lane.steps.end(), [&](const auto& step) { return step->end_ns == moment; }));
  CHECK(moment > 0);
  CHECK(moment < lane.time_ns());
  // A pan is no click.
  driver->drag({lanes.min.x + 0.5f * (lanes.max.x - lanes.min.x), y},
               {lanes.min.x + 0.6f * (lanes.max.x - lanes.min.x), y});
  CHECK(driver.panel().playback().moment_ns() == moment);
}

TEST_CASE("a click on a token shows the step that wrote it") {
  const SpeculateDriver driver;
  const ControlRect text = driver->rect("speculate/with speculation");
  driver->click_at({text.min.x + 0.2f * (text.max.x - text.min.x), text.min.y + 2.4f * ImGui::GetFontSize()});
  CHECK(driver.panel().playback().paused);
  CHECK(driver.panel().view().speculation_steps > 0);
  CHECK(driver.panel().view().speculation_steps < driver.num_steps());
}

bool has_tooltip() {
  for (const ImGuiWindow* const window : ImGui::GetCurrentContext()->Windows)
    if (std::string(window->Name).starts_with("##Tooltip") && window->Active) return true;
  return false;
}

TEST_CASE("what the mouse rests on is explained: controls, spans, nodes of the draft and bars") {
  const SpeculateDriver driver;
  driver->choose("speculate/drafter", "ngram:3");
  const auto rests_at = [&](const char* control, float x, float y) {
    const ControlRect rect = driver->rect(control);
    driver->move_to({rect.min.x + x * (rect.max.x - rect.min.x), rect.min.y + y * (rect.max.y - rect.min.y)});
    driver->frames(80);  // over a second
    return has_tooltip();
  };
  for (const char* control : {"drafter", "verifier", "tree", "K", "temperature", "CFG scale", "outputs", "max tokens",
                              "prompt", "lesson", "pace", "Step", "more"}) {
    INFO(control);
    CHECK(rests_at((std::string("speculate/") + control).c_str(), 0.5f, 0.5f));
  }
  CHECK_FALSE(rests_at("speculate/draft", 0.02f, 0.9f));
  const bool is_plain = driver.shown().plain.time_ns() > driver.shown().speculation.time_ns();
  CHECK(rests_at("speculate/lanes", 0.4f, is_plain ? 0.25f : 0.58f));
  CHECK(rests_at("speculate/acceptance by position", 0.2f, 0.5f));
  driver->click("speculate/Step back");
  while (driver.shown().speculation.steps[driver.panel().view().speculation_steps - 1]->draft.empty())
    driver->click("speculate/Step back");
  // The first node stands below the context's box, in the middle or to the left of it.
  const ControlRect draft = driver->rect("speculate/draft");
  const float x = 0.5f * (draft.min.x + draft.max.x) - 1.5f * ImGui::GetFontSize();
  bool over_node = false;
  for (float y = draft.min.y + 4 * ImGui::GetFontSize(); y < draft.min.y + 9 * ImGui::GetFontSize(); y += 8) {
    driver->move_to({x, y});
    driver->frame();
    over_node = over_node || has_tooltip();
  }
  CHECK(over_node);
}

TEST_CASE("drafts of no, one and many tokens are drawn, in small and large windows") {
  for (const float scale : {1.0f, 2.0f}) {
    const SpeculateDriver driver(scale, 1200, 1000);
    driver->click("speculate/Step back");
    CHECK(driver->has("speculate/acceptance") == (scale == 2.0f));
    if (scale == 2.0f) driver->click("speculate/acceptance");
    for (const auto& [k, drafter] : {std::pair("0", "suffix"), {"1", "ngram:1"}, {"32", "ngram:5"}}) {
      driver.panel().set([&, k = std::stoi(k), drafter = std::string(drafter)] {
        SpeculateSettings settings = driver.panel().settings();
        settings.num_speculative_tokens = k;
        settings.drafter = drafter;
        settings.max_tokens = k == 32 ? 512 : 1;
        return settings;
      }());
      driver->frames(3);
      CHECK(driver.panel().state().error.empty());
      CHECK(driver.shown().settings.num_speculative_tokens == std::stoi(k));
    }
    SpeculateSettings tree = driver.panel().settings();
    tree.verifier = "traversal";
    tree.tree = "8x4x4x2";
    tree.drafter = "ngram:3";
    tree.max_tokens = 24;
    driver.panel().set(tree);
    driver->frames(3);
    CHECK(driver.panel().state().error.empty());
    CHECK(std::any_of(driver.shown().speculation.steps.begin(), driver.shown().speculation.steps.end(),
                      [](const auto& step) { return step->draft.size() > 60; }));
  }
}

TEST_CASE("a demo that is dropped on the window is run again, and a broken one changes nothing") {
  const SpeculateDriver driver;
  const std::string path = driver.folder.file("result.json");
  ordered_json options = {{"corpus", {driver.folder.file("corpus")}},
                          {"order", 6},
                          {"draft", "ngram"},
                          {"draft_order", 2},
                          {"num_speculative_tokens", 4},
                          {"tokens", 30},
                          {"temperature", 0.0},
                          {"top_p", 1.0},
                          {"top_k", 0},
                          {"min_p", 0.0},
                          {"draft_temperature", 0.0},
                          {"draft_top_p", 1.0},
                          {"draft_top_k", 0},
                          {"guidance_scale", 1.0},
                          {"negative_prompt", nullptr},
                          {"prompt", "You may "},
                          {"sampler", "inverse"}};
  ordered_json document = {
      {"command", "draftproof demo"}, {"seed", 0},         {"verifier", "chain"}, {"tree", nullptr}, {"text", "wrong"},
      {"language_model", nullptr},    {"options", options}};
  write_whole_file(path, document.dump());
  driver->dashboard().open(path);
  driver->frames(3);
  CHECK(driver.shown().settings.drafter == "ngram:2");
  CHECK(driver.shown().settings.prompt == "You may ");
  CHECK_THAT(driver.panel().note(), Contains("NOT that of the demo"));
  document["text"] = driver.shown().speculation.outputs[0].text;
  write_whole_file(path, document.dump());
  driver->dashboard().open(path);
  driver->frames(3);
  CHECK(driver.panel().note() == "The text is that of the demo, byte for byte.");
  document["options"].erase("order");
  write_whole_file(path, document.dump());
  const SpeculateSettings before = driver.panel().settings();
  driver->dashboard().open(path);
  driver->frames(3);
  CHECK_THAT(driver->dashboard().message(), Contains("has no \"options.order\""));
  CHECK(driver.panel().settings() == before);
}

ordered_json without_times(ordered_json json) {
  json.erase("model");  // a file of each test's own
  for (auto& step : json.at("steps"))
    for (const char* key : {"begin_ms", "end_ms", "draft_ms", "prefill_ms", "verify_ms", "sample_ms"}) step.erase(key);
  for (const char* key : {"generation_ms", "tokens_per_second", "drafter_share", "target_share", "speedup",
                          "overhead_ratio", "effective_speedup"}) {
    json.erase(key);
    json.at("plain").erase(key);
  }
  return json;
}

TEST_CASE("a demo is shown by every panel that can, whatever another one has against it") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("corpus"), std::string(400, 'a') + "You may copy and distribute the copy. ");
  const auto demo = [&](const std::string& draft_temperature) {
    const ProgramResult result = run_draftproof(
        {"demo", "--model", "none", "--corpus", folder.file("corpus"), "--samples", "1000", "--continuations", "4",
         "--tokens", "20", "--draft-temperature", draft_temperature, "--out", folder.file("out")});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  };
  std::vector<std::unique_ptr<Panel>> panels;
  panels.push_back(std::make_unique<SpeculatePanel>("ngram:6:" + folder.file("corpus")));
  panels.push_back(std::make_unique<AcceptanceDecayPanel>());
  Driver driver(std::move(panels));
  const auto& speculate = driver.panel<SpeculatePanel>("speculate");
  const auto& decay = driver.panel<AcceptanceDecayPanel>("acceptance_decay");
  const std::size_t sources = decay.settings().sources.size();
  demo("1");
  driver.dashboard().open(folder.file("out"));
  driver.frames(3);
  CHECK(driver.dashboard().message().empty());
  CHECK(decay.settings().sources.size() == sources + 1);
  CHECK(speculate.shown()->settings.max_tokens == 20);
  CHECK(speculate.note() == "The text is that of the demo, byte for byte.");
  // A drafter with a temperature of its own is not for the one, and all the same to the other.
  demo("0.5");
  const SpeculateSettings before = speculate.settings();
  driver.dashboard().open(folder.file("out"));
  driver.frames(3);
  CHECK(driver.dashboard().message().empty());
  CHECK(speculate.settings() == before);
}

TEST_CASE("what was done in the panel can be recorded and done again, with the same snapshot") {
  ordered_json once;
  Recording recording;
  {
    const SpeculateDriver driver;
    driver->choose("speculate/drafter", "ngram:2");
    driver->type_into_slider("speculate/temperature", "0.9");
    driver->click("speculate/Step back");
    CHECK(driver.panel().view().speculation_steps == driver.num_steps() - 1);
    once = without_times(driver.panel().snapshot());
    recording = driver->recording();
  }
  const SpeculateDriver again;
  CHECK(without_times(again.panel().snapshot()) != once);
  again->replay(recording);
  CHECK(without_times(again.panel().snapshot()) == once);
  CHECK(again.panel().view().speculation_steps == again.num_steps() - 1);
}

}  // namespace
}  // namespace draftproof::testing
