// What every panel draws by numbers, against its exported document: the JSON, the rows, or the raw inputs.
#include "viz/panels/series.hpp"

#include <regex>
#include <valarray>

#include "engine/scheduler/kv_blocks.hpp"
#include "tests/studies/heads/head_study_files.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"
#include "tests/viz/panels/kernel_times.hpp"
#include "viz/panels/acceptance_decay.hpp"
#include "viz/panels/distribution_lab.hpp"
#include "viz/panels/heads.hpp"
#include "viz/panels/kernels.hpp"
#include "viz/panels/serving_timeline.hpp"
#include "viz/panels/speculate.hpp"
#include "viz/panels/speedup_by_batch.hpp"
#include "viz/panels/tree_explorer.hpp"

namespace draftproof::testing {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::valarray<double>;

// A series that must be drawn, and the numbers of its columns.
struct Row {
  std::string kind, name;
  std::vector<Numbers> columns;
};

// Numbers of a list, or of this key of its objects; null is NaN.
Numbers of(const Json& list, const std::string& key = "") {
  Numbers all(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& one = list[i].at(Json::json_pointer(key));
    all[i] = one.is_null() ? kNan : one.get<double>();
  }
  return all;
}
Numbers known(const Numbers& all, const Numbers& of) {
  return all[of == of];
}
Numbers or_zero(Numbers all) {
  all[Numbers(all) != Numbers(all)] = 0.0;
  return all;
}
Numbers part(const Numbers& all, std::size_t from, std::size_t end) {
  return all[std::slice(from, end - from, 1)];
}
// first, first + 1, ...
Numbers from(double first, std::size_t count) {
  Numbers all(count);
  std::iota(std::begin(all), std::end(all), first);
  return all;
}
Numbers larger(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
  return a;
}
// A column of the rows whose first cell is this.
Numbers column(const Table& table, const std::string& first, const std::string& name) {
  const auto at = static_cast<std::size_t>(std::ranges::find(table.columns, name) - table.columns.begin());
  std::vector<double> all;
  for (const auto& row : table.rows)
    if (std::get<std::string>(row[0]) == first)
      all.push_back(std::visit(
          [](const auto& cell) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(cell)>>) return static_cast<double>(cell);
            return static_cast<double>(kNan);
          },
          row.at(at)));
  return {all.data(), all.size()};
}

// Boxes of a name are one series.
std::vector<DrawnSeries> drawn_by(Driver& driver) {
  std::vector<DrawnSeries> drawn, merged;
  drawn_series = &drawn;
  driver.frame();
  drawn_series = nullptr;
  for (const DrawnSeries& one : drawn) {
    const auto same = std::ranges::find_if(
        merged, [&](const DrawnSeries& other) { return one.kind == other.kind && one.name == other.name; });
    if (same == merged.end() || (one.kind != "box" && one.kind != "share")) {
      merged.push_back(one);
      continue;
    }
    for (std::size_t i = 0; i < one.columns.size(); ++i) same->columns[i].push_back(one.columns[i][0]);
  }
  return merged;
}

template <class Series>
std::string names_of(const std::vector<Series>& all) {
  std::string names;
  for (const Series& one : all) names += one.kind + " " + one.name + "\n";
  return names;
}

void check_drawn(Driver& driver, const std::vector<Row>& expected) {
  const std::vector<DrawnSeries> drawn = drawn_by(driver);
  REQUIRE(names_of(drawn) == names_of(expected));
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    REQUIRE(drawn[i].columns.size() == expected[i].columns.size());
    for (std::size_t c = 0; c < drawn[i].columns.size(); ++c) {
      const Numbers& numbers = expected[i].columns[c];
      INFO(drawn[i].kind << " " << drawn[i].name << ", column " << c + 1);
      CHECK_THAT(
          drawn[i].columns[c],
          Catch::Matchers::Approx(std::vector(std::begin(numbers), std::end(numbers))).margin(1e-9).epsilon(1e-9));
    }
  }
}

// The least rectangle around what is drawn, as a plot is fitted to it: left, right, low, high.
std::vector<double> fitted(const std::function<void()>& draw) {
  const UiContext context;
  NullSurface surface(800, 600);
  ImPlotRect limits;
  for (int i = 0; i < 3; ++i) {
    surface.begin_frame();
    ImGui::Begin("window");
    ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, ImVec2(0, 0));
    REQUIRE(ImPlot::BeginPlot("fitted"));
    ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_AutoFit, ImPlotAxisFlags_AutoFit);
    draw();
    limits = ImPlot::GetPlotLimits();
    ImPlot::EndPlot();
    ImPlot::PopStyleVar();
    ImGui::End();
    surface.end_frame();
  }
  return {limits.X.Min, limits.X.Max, limits.Y.Min, limits.Y.Max};
}

TEST_CASE("a series is drawn at the numbers that are noted of it") {
  const std::vector x{1.0, 4.0}, y{3.0, 8.0}, below{0.5, 0.25}, above{1.5, 4.0};
  const ImPlotSpec spec;
  const auto are = [](const std::vector<double>& sides) { return Catch::Matchers::Approx(sides).margin(1e-9); };
  CHECK_THAT(fitted([&] { plot_line("it", x, y, spec); }), are({1, 4, 3, 8}));
  CHECK_THAT(fitted([&] { plot_stairs("it", x, y, spec); }), are({1, 4, 3, 8}));
  CHECK_THAT(fitted([&] { plot_points("it", x, y, spec); }), are({1, 4, 3, 8}));
  CHECK_THAT(fitted([&] { plot_bars("it", x, y, 0.5, spec); }), are({0.75, 4.25, 0, 8}));
  CHECK_THAT(fitted([&] { plot_intervals("it", x, y, below, above, spec); }), are({1, 4, 2.5, 12}));
  CHECK_THAT(fitted([&] { plot_area("it", x, below, above, spec); }), are({1, 4, 0.25, 4}));
  CHECK_THAT(fitted([&] {
               plot_line("it", x, y, spec);
               plot_limit("it", 6.0, spec);
             }),
             are({1, 6, 3, 8}));
}

TEST_CASE("a box is drawn from corner to corner, and of a row's room the share") {
  // Of the last thing drawn, left, right, top, bottom.
  const auto sides = [](const ImDrawList& list) {
    const auto last = std::span(list.VtxBuffer.Data, static_cast<std::size_t>(list.VtxBuffer.Size)).last(4);
    const auto [left, right] = std::ranges::minmax(last, {}, [](const ImDrawVert& corner) { return corner.pos.x; });
    const auto [top, bottom] = std::ranges::minmax(last, {}, [](const ImDrawVert& corner) { return corner.pos.y; });
    return std::vector{left.pos.x, right.pos.x, top.pos.y, bottom.pos.y};
  };
  fitted([&] {
    plot_line("it", std::vector{0.0, 10.0}, std::vector{0.0, 10.0}, {});
    plot_box("it", 2, 6, 1, 9, IM_COL32_WHITE);
    const ImVec2 corner = ImPlot::PlotToPixels(2.0, 9.0), other = ImPlot::PlotToPixels(6.0, 1.0);
    CHECK(sides(*ImPlot::GetPlotDrawList()) == std::vector{corner.x, other.x, corner.y, other.y});
  });
  fitted([&] {
    fill_share("it", {100, 50}, {200, 10}, 0.25, IM_COL32_WHITE);
    CHECK(sides(*ImGui::GetWindowDrawList()) == std::vector{100.0f, 150.0f, 50.0f, 60.0f});
  });
}

TEST_CASE("no panel draws a series that is not noted") {
  const std::regex series("ImPlot::Plot(?!Dummy|ToPixels)[A-Z][A-Za-z]*");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(DRAFTPROOF_SOURCE_DIR "/viz")) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path());
    CHECK(std::regex_search(read_whole_file(entry.path().string()), series) ==
          (entry.path().filename() == "series.hpp"));
  }
}

std::vector<Row> rows_of_decay(const Json& json, const std::string& rates, const std::string& gains) {
  std::vector<Row> rows;
  const auto add = [&](const Json& source, const std::string& key, double first, std::size_t known) {
    const std::string name = source["name"];
    const Numbers y = of(source[key]), x = from(first, y.size());
    if (known < y.size()) rows.push_back({"line", name, {part(x, known - 1, y.size()), part(y, known - 1, y.size())}});
    known = std::min(known, y.size());
    rows.push_back({"line", name, {part(x, 0, known), part(y, 0, known)}});
    if (source[key + "_low"][known - 1].is_null()) return;
    rows.push_back(
        {"intervals", name, {x, y, or_zero(y - of(source[key + "_low"])), or_zero(of(source[key + "_high"]) - y)}});
  };
  for (const Json& source : json["sources"]) add(source, rates, 1, source["positions_known"]);
  for (const Json& source : json["sources"]) {
    add(source, gains, 0, 1 + source["positions_known"].get<std::size_t>());
    const std::size_t best = source["best_k"];
    rows.push_back({"points", source["name"], {Numbers{double(best)}, Numbers{source[gains][best].get<double>()}}});
    if (gains == "speedup") CHECK(source[gains][best] == source["best_speedup"]);
  }
  double shift = 0.0;
  for (const Json& source : json["sources"]) {
    rows.push_back({"stairs", source["name"], {of(json["costs"]), of(source["best_k_by_cost"]) + shift}});
    shift += 0.05;
  }
  rows.push_back({"limit", "draft cost", {Numbers{json["draft_cost"].get<double>()}}});
  return rows;
}

TEST_CASE("acceptance by position, its gain and the best K are drawn as exported") {
  const TemporaryFolder folder;
  AcceptanceDecaySettings settings;
  settings.drafts_max = 3;  // one more than the log knows
  settings.sources = {"constant:0.8", folder.file("log")};
  write_whole_file(folder.file("log"),
                   "SpecDecoding metrics: Mean acceptance length: 2.15, Accepted: 1150 tokens, Drafted: 2000 tokens, "
                   "Per-position acceptance rate: 0.700, 0.450\n");
  const PanelDriver<AcceptanceDecayPanel> driver(panel_with<AcceptanceDecayPanel>(settings));
  const Json json = driver.panel().snapshot();
  check_drawn(*driver, rows_of_decay(json, "unconditional", "speedup"));
  driver->click("acceptance_decay/conditional");
  driver->click("acceptance_decay/tokens per step");
  check_drawn(*driver, rows_of_decay(json, "conditional", "tokens_per_step"));
}

TEST_CASE("acceptance by slot, drift and reliability of a head are drawn as exported, and its candidates") {
  const HeadStudyFiles files;
  const PanelDriver<HeadsPanel> driver(panel_with<HeadsPanel>(files.settings(files.eagle3)));
  driver->frames(3);
  const Json json = driver.panel().snapshot();
  const auto rows_of = [&](const std::string& drift) {
    std::vector<Row> rows;
    // Values with their intervals, where there are any.
    const auto add = [&](const std::string& name, Numbers x, const Json& list, const std::string& of_them,
                         const std::string& value, const std::string& low, const std::string& high) {
      const Numbers all = of(list, of_them + value), y = known(all, all);
      x = known(x, all);
      rows.push_back({"line", name, {x, y}});
      rows.push_back({"intervals",
                      name,
                      {x, y, y - known(of(list, of_them + low), all), known(of(list, of_them + high), all) - y}});
    };
    double shift = -0.12;
    for (const Json& work : json["works"]) {
      add(work["work"], from(1, work["slots"].size()) + shift, work["slots"], "", "/rate", "/low", "/high");
      shift += 0.06;
    }
    const Numbers slots = of(json["drift"], "/slot");
    add("to the target's", slots - 0.04, json["drift"], "/target_" + drift, "/mean", "/p10", "/p90");
    add("to its own", slots + 0.04, json["drift"], "/own_" + drift, "/mean", "/p10", "/p90");
    rows.push_back({"line", "calibrated", {{0, 1}, {0, 1}}});
    const Json& bins = json["reliability"][0]["bins"];
    add("accepted", of(bins, "/mean_confidence"), bins, "", "/rate", "/low", "/high");
    std::vector<double> shares;
    for (const Json& slot : json["shown"]["steps"][0]["slots"])
      for (const Json& candidate : slot["candidates"]) shares.push_back(candidate["probability"]);
    rows.push_back({"share", "candidates", {{shares.data(), shares.size()}}});
    return rows;
  };
  check_drawn(*driver, rows_of("cosine"));
  driver->click("heads/relative L2");
  check_drawn(*driver, rows_of("relative_l2"));
}

TEST_CASE("rows, samples, the test and lossy rules of the lab are drawn as exported") {
  DistributionLabSettings settings;
  settings.samples = 5000;
  settings.top_k = 5;
  for (const bool is_lossy : {false, true}) {
    settings.lossy = settings.filters_first = is_lossy;
    const PanelDriver<DistributionLabPanel> driver(panel_with<DistributionLabPanel>(settings));
    driver->frames(2);
    const Json json = driver.panel().snapshot();
    const Numbers p = of(json["p"]), q = of(json["q"]), expected = of(json["expected"]), tokens = from(0, p.size());
    const auto given = [&](const char* row) {
      const Numbers weights = of(json["weights"][row]);
      return Numbers(weights / weights.sum());
    };
    std::vector<Row> rows;
    if (is_lossy) rows = {{"bars", "as given", {tokens, given("target")}}, {"bars", "p", {tokens, p}}};
    const Numbers zero(p.size());
    rows.push_back({"box", "target", {tokens - 0.39, tokens - 0.01, zero, given("target")}});
    rows.push_back({"box", "draft", {tokens + 0.01, tokens + 0.39, zero, given("draft")}});
    rows.push_back({"bars", "rejected", {tokens, larger(p, q)}});
    rows.push_back({"bars", "redistributed", {tokens, p}});
    rows.push_back({"bars", "accepted", {tokens, of(json["min_p_q"])}});
    rows.push_back({"points", "p", {tokens, p}});
    const Json& looks = json["looks"];
    const Numbers samples = of(looks, "/samples"), error = 2.0 * std::sqrt(expected * (1.0 - expected) / 5000.0);
    for (const Json& rule : json["lossy"])
      rows.push_back({"points",
                      rule["verifier"],
                      {Numbers{double(rule["distance"])}, Numbers{double(rule["accepted_per_step"])}}});
    if (!is_lossy) {
      rows.push_back({"bars", "emitted", {tokens, of(json["counts"]) / 5000.0}});
      rows.push_back({"intervals", "expected, 2 SE", {tokens, expected, error, error}});
      rows.push_back({"points", "expected, 2 SE", {tokens, expected}});
      rows.push_back({"line", "p-value", {samples, of(looks, "/p_value")}});
      rows.push_back({"limit", "level", {{1e-4}}});
      rows.push_back({"line", "observed distance", {samples, of(looks, "/observed_tv")}});
      rows.push_back({"line", "detectable distance", {samples, of(looks, "/detectable_tv")}});
    }
    check_drawn(*driver, rows);
  }
}

std::vector<Row> rows_of_speedups(const Panel& panel) {
  const Json json = panel.snapshot();
  const Table table = panel.table();
  std::vector<std::string> curves;
  for (const auto& row : table.rows)
    if (curves.empty() || curves.back() != std::get<std::string>(row[0]))
      curves.push_back(std::get<std::string>(row[0]));
  const auto get = [&](const std::string& curve, const char* name) { return column(table, curve, name); };
  const std::string& best = curves.front();
  std::vector<Row> rows{{"area", "80 % band", {get(best, "batch"), get(best, "low"), get(best, "high")}},
                        {"limit", "no gain", {{1.0}}}};
  for (const std::string& curve : curves) rows.push_back({"line", curve, {get(curve, "batch"), get(curve, "speedup")}});
  if (!json["measured"].is_null()) {
    const Json& points = json["measured"]["points"];
    const Numbers batch = of(points, "/batch"), speedup = of(points, "/speedup");
    rows.push_back({"intervals",
                    "measured or quoted",
                    {batch, speedup, speedup - of(points, "/low"), of(points, "/high") - speedup}});
    rows.push_back({"points", "measured or quoted", {batch, speedup}});
  }
  for (const auto& [name, key] : {std::pair("break-even", "break_even_batch"), std::pair("memory", "batch_of_memory")})
    if (!json[key].is_null() && json[key] < get(best, "batch").max())
      rows.push_back({"limit", name, {{double(json[key])}}});
  const double ridge = json["ridge_intensity"];
  double last = 8.0 * ridge;
  for (const std::string& curve : curves) last = std::max(last, get(curve, "operations_per_byte").max());
  rows.push_back({"line", "roof", {{1.0, ridge, last}, {1.0 / ridge, 1.0, 1.0}}});
  const Numbers plain = of(json["best"], "/plain_pass/intensity");
  const Numbers roof = 1.0 - larger(1.0 - plain / ridge, Numbers(plain.size()));
  rows.push_back({"line",
                  "plain decoding",
                  {plain, roof * of(json["best"], "/plain_pass/floor_ms") / of(json["best"], "/plain_pass/ms")}});
  for (const std::string& curve : curves)
    if (curve.starts_with("K = ") || curve.starts_with("tree"))
      rows.push_back({"line", curve, {get(curve, "operations_per_byte"), get(curve, "share_of_peak")}});
  rows.push_back({"limit", "ridge", {{ridge}}});
  return rows;
}

TEST_CASE("speedups by batch, measured points, limits and the roofline are drawn as exported") {
  const PanelDriver<SpeedupByBatchPanel> driver;
  std::string kinds;
  for (const SpeedupPreset& preset : speedup_presets()) {
    INFO(preset.name);
    driver.panel().set(preset.settings);
    driver->frames(2);
    const std::vector<Row> rows = rows_of_speedups(driver.panel());
    check_drawn(*driver, rows);
    kinds += names_of(rows);
  }
  for (const char* const drawn : {"measured", "break-even", "memory"}) CHECK_THAT(kinds, Contains(drawn));
}

TEST_CASE(
    "steps, requests, blocks and queues of a server are drawn as they were, and the policies by load as exported") {
  ServingTimelineSettings settings;
  settings.requests = 20;
  settings.load = 60;  // some wait
  settings.loads = {8, 32};
  const PanelDriver<ServingTimelinePanel> driver(std::make_unique<ServingTimelinePanel>(settings));
  driver->click("serving_timeline/whole run");
  const Json json = driver.panel().snapshot();
  std::vector<Row> rows;
  for (const std::string figure : {"/ttft_ms/p50", "/tpot_ms/p50", "/goodput"})
    for (std::size_t p = 0; p < json["policies"].size(); ++p)
      rows.push_back({"line",
                      json["policies"][p]["name"],
                      {{8, 32}, of(json["load"], "/policies/" + std::to_string(p) + figure)}});
  std::map<std::string, std::vector<std::vector<double>>> boxes;  // four columns
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, std::int64_t begin_ns, std::int64_t end_ns, double low, double high) {
    if (begin_ns == end_ns) return;
    if (boxes[name].empty()) names.push_back(name);
    boxes[name].push_back({1e-9 * double(begin_ns), 1e-9 * double(end_ns), low, high});
  };
  const PolicyTimeline &upper = *driver.shown().upper(), &lower = *driver.shown().lower();
  for (const auto& [timeline, low] : {std::pair(&upper, 1.08), {&lower, 0.08}}) {
    REQUIRE(timeline->steps.steps().size() < 800);  // each is drawn
    for (const StepBox& step : timeline->steps.steps()) {
      std::int64_t at = step.begin_ns;
      for (std::size_t part = 0; part < kStepParts; at += step.part_ns[part++])
        add(name_of(StepPart(part)), at, at + step.part_ns[part], low, low + 0.84);
    }
  }
  for (std::size_t i = 0; i < lower.requests.size(); ++i) {
    const RequestLane& lane = lower.requests[i];
    add("waits", lane.arrival_ns, lane.begin_ns, double(i) - 0.4, double(i) + 0.4);
    add("prompt", lane.begin_ns, lane.first_token_ns, double(i) - 0.4, double(i) + 0.4);
    add("decodes", lane.first_token_ns, lane.last_token_ns, double(i) - 0.4, double(i) + 0.4);
  }
  for (const std::string& name : names) {
    rows.push_back({"box", name, std::vector(4, Numbers(boxes[name].size()))});
    for (std::size_t i = 0; i < boxes[name].size(); ++i)
      for (std::size_t c = 0; c < 4; ++c) rows.back().columns[c][i] = boxes[name][i][c];
  }
  // Blocks, one kind on the other.
  const auto steps = lower.steps.visible(0, lower.steps.end_ns(), 400);
  Numbers time(2 * steps.size());
  std::vector edges(5, time);
  for (std::size_t i = 0; i < time.size(); ++i) {
    const StepBox& step = steps[i / 2];
    time[i] = 1e-9 * double(i % 2 == 0 ? step.begin_ns : step.end_ns);
    double edge = 0.0;
    const double kinds[] = {step.committed_slot_ns, step.accepted_slot_ns, step.rejected_slot_ns};
    for (std::size_t kind = 0; kind < 3; ++kind)
      edges[kind + 1][i] = edge += step.mean_slots(kinds[kind]) / kKvBlockSlots;
    edges[4][i] = step.mean_slots(step.held_slot_ns) / kKvBlockSlots;
  }
  const char* const areas[] = {"committed", "accepted drafts", "wasted drafts", "block tails"};
  for (std::size_t i = 0; i < 4; ++i) rows.push_back({"area", areas[i], {time, edges[i], edges[i + 1]}});
  // The last step lasts, too.
  const Table table = driver.panel().table();
  for (const PolicyTimeline* const timeline : {&upper, &lower})
    for (const char* const kind : {"running", "waiting"}) {
      const auto lasting = [&](const char* name, std::optional<double> end) {
        const Numbers all = column(table, timeline->policy, name);
        Numbers longer(end.value_or(all[all.size() - 1]), all.size() + 1);
        longer[std::slice(0, all.size(), 1)] = all;
        return longer;
      };
      rows.push_back({"stairs",
                      timeline->policy + ", " + kind,
                      {1e-3 * lasting("begin_ms", 1e-6 * double(timeline->steps.end_ns())), lasting(kind, {})}});
    }
  check_drawn(*driver, rows);
}

TEST_CASE("acceptance by position of a run is drawn as exported") {
  const PanelDriver<SpeculatePanel> driver(std::make_unique<SpeculatePanel>("ngram:6"));
  driver->choose("speculate/drafter", "ngram:3");
  driver->type_into_slider("speculate/temperature", "0.7");
  driver->frames(2);
  const Json json = driver.panel().snapshot(), rates = json["acceptance_by_position"];
  const auto drafts = std::ranges::count_if(json["steps"], [](const Json& step) { return !step["draft"].empty(); });
  const Numbers given = of(rates["conditional"]), at = from(1, given.size());
  // Exported is the share of all steps, drawn that of steps with a draft.
  const Numbers of_all = of(rates["unconditional"]) * double(json["requests"][0]["num_steps"]) / double(drafts);
  CHECK(of_all.max() < 1.0);
  check_drawn(*driver, {{"bars", "if reached", {at - 0.19, given}}, {"bars", "of all drafts", {at + 0.19, of_all}}});
}

TEST_CASE("a tree's mask and the gain of its budgets are drawn as exported") {
  TreeExplorerSettings settings;
  settings.builder = "static";
  settings.verifier = "rrsw";
  const PanelDriver<TreeExplorerPanel> driver(panel_with<TreeExplorerPanel>(settings));
  const Json json = driver.panel().snapshot();
  std::vector<double> columns, lines;
  for (std::size_t r = 0; r < json["mask"].size(); ++r) {
    const std::string row = json["mask"][r];
    for (std::size_t c = 0; c < row.size(); ++c)
      if (row[c] == '1') columns.push_back(double(c)), lines.push_back(double(r));
  }
  const Numbers x(columns.data(), columns.size()), y(lines.data(), lines.size());
  std::vector<Row> rows{{"box", "attends", {x, x + 0.94, y, y + 0.94}}};
  for (const Json& curve : json["curves"]) {
    const bool is_estimated = !curve["verifier"].is_null();
    const std::string name = curve["builder"].get<std::string>() +
                             (is_estimated ? ", " + curve["verifier"].get<std::string>() : std::string());
    const Numbers nodes = of(curve["points"], "/nodes"), tokens = 1.0 + of(curve["points"], "/accepted");
    rows.push_back({"line", name, {nodes, tokens}});
    const Numbers error = or_zero(1.96 * of(curve["points"], "/standard_error"));
    if (is_estimated) rows.push_back({"intervals", name, {nodes, tokens, error, error}});
  }
  check_drawn(*driver, rows);
}

TEST_CASE("times of kernels are drawn over their floors") {
  const TemporaryFolder folder;
  const PanelDriver<KernelsPanel> driver(std::make_unique<KernelsPanel>(kernels_with_times(
      folder,
      R"({"name": "sample", "what": "", "floor_ms": 1, "ms_median": 3, "ms_best": 2, "goal_ms": null, "met": null},
      {"name": "argmax", "what": "", "floor_ms": 2, "ms_median": 5, "ms_best": 4, "goal_ms": null, "met": null})")));
  check_drawn(
      *driver,
      {{"bars", "median", {{3.0, 2.5}, {0, 1}}}, {"points", "best", {{2, 2}, {0, 1}}}, {"limit", "floor", {{1.0}}}});
}

}  // namespace
}  // namespace draftproof::testing
