// The dashboard around its panels, with a panel made for it.
#include "viz/app/dashboard.hpp"

#include <imgui.h>
#include <implot.h>
#include <cstdio>

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

// Powers of a base.
struct PowersSettings {
  double base = 2;
  std::int64_t count = 5;
  std::string kind = "powers";
  std::string note;
  bool negated = false;
  bool operator==(const PowersSettings&) const = default;
};
struct PowersSnapshot {
  PowersSettings settings;
  std::vector<double> values;
};

void compute(const PowersSettings& settings, Job& job, const std::function<void(PowersSnapshot)>& publish) {
  if (settings.base > 9.5) throw usage_error("--base", "is above 9.5; expected less");
  PowersSnapshot snapshot{settings, {}};
  double value = settings.negated ? -1 : 1;
  for (std::int64_t i = 0; i < settings.count; ++i) {
    job.check();
    snapshot.values.push_back(settings.kind == "powers" ? value : 1 / value);
    value *= settings.base;
  }
  publish(snapshot);
}
ordered_json to_json(const PowersSnapshot& snapshot) {
  return {{"base", snapshot.settings.base}, {"values", snapshot.values}, {"note", snapshot.settings.note}};
}
Table to_table(const PowersSnapshot& snapshot) {
  Table table{{"power"}, {}};
  for (const double value : snapshot.values) table.rows.push_back({value});
  return table;
}
std::string to_figure(const PowersSnapshot&) {
  return "plot x";
}
std::vector<Lesson<PowersSettings>> lessons(const PowersSettings&) {
  return {};
}
std::vector<std::string> command_arguments(const PowersSettings& settings) {
  return {"draftproof", "powers", "--note", settings.note};
}

class PowersPanel final : public SnapshotPanel<PowersSettings, PowersSnapshot> {
 public:
  PanelInfo info() const override { return {"powers", "Powers", "How fast do powers grow?"}; }
  bool open(const OpenedResult& result) override {
    if (result.verb != "powers") return false;
    if (!result.document.contains("base")) throw input_error(result.file, "has no base");
    show({{result.document["base"].get<double>(), 1, "powers", "", false}, {1.0}});
    return true;
  }

 private:
  void draw_body(Controls& controls, PowersSettings& settings, const PowersSnapshot* snapshot) override {
    static const std::vector<std::string> kKinds{"powers", "inverses"};
    controls.slider("base", settings.base, {1, 10}, "b of b^n.");
    controls.slider("count", settings.count, 0, 100, "How many n of b^n.");
    controls.choice("kind", settings.kind, kKinds, "b^n or b^-n.");
    controls.text("note", settings.note, "A note.");
    controls.toggle("negated", settings.negated, "-b^n.");
    if (snapshot == nullptr) return;
    if (ImPlot::BeginPlot("Powers")) {
      ImPlot::PlotBars("values", snapshot->values.data(), static_cast<int>(snapshot->values.size()));
      ImPlot::EndPlot();
    }
  }
};

namespace {

std::vector<std::unique_ptr<Panel>> panels() {
  std::vector<std::unique_ptr<Panel>> panels;
  panels.push_back(std::make_unique<PowersPanel>());
  return panels;
}

TEST_CASE("controls change the settings, and the snapshot follows") {
  Driver driver(panels());
  const auto& panel = driver.panel<PowersPanel>("powers");
  REQUIRE(panel.shown() != nullptr);
  CHECK(panel.shown()->values == std::vector<double>{1, 2, 4, 8, 16});
  driver.type_into_slider("powers/base", "3");
  CHECK(panel.shown()->values == std::vector<double>{1, 3, 9, 27, 81});
  driver.drag_slider("powers/count", 0);
  CHECK(panel.settings().count == 0);
  CHECK(panel.shown()->values.empty());
  driver.type_into_slider("powers/count", "2");
  driver.choose("powers/kind", "inverses");
  CHECK(panel.shown()->values == std::vector<double>{1, 1 / 3.0});
  driver.click("powers/negated");
  CHECK(panel.shown()->values == std::vector<double>{-1, -1 / 3.0});
  driver.type_into("powers/note", "it's");
  CHECK(panel.shown()->settings.note == "it's");
}

TEST_CASE("what a computation refuses stands in the window, and the snapshot stays") {
  Driver driver(panels());
  const auto& panel = driver.panel<PowersPanel>("powers");
  driver.drag_slider("powers/base", 1);
  CHECK(panel.state().error == "--base: is above 9.5; expected less");
  CHECK(panel.settings().base > 9.5);
  CHECK(panel.shown()->settings.base <= 9.5);
  driver.type_into_slider("powers/base", "2");
  CHECK(panel.state().error.empty());
  CHECK(panel.shown()->values == std::vector<double>{1, 2, 4, 8, 16});
}

// Heights of the areas of a picture, in the order in which they are drawn.
std::vector<double> heights_of(const std::string& svg) {
  std::vector<double> heights;
  for (std::size_t at = svg.find("d=\"M"); at != std::string::npos; at = svg.find('M', at + 1)) {
    const std::string area = svg.substr(svg.find('M', at), svg.find('Z', at) - svg.find('M', at));
    double least = 1e9, most = -1e9;
    for (std::size_t i = 0; i < area.size(); i = area.find('L', i + 1)) {
      double x = 0, y = 0;
      if (std::sscanf(area.c_str() + i + 1, "%lf %lf", &x, &y) != 2) break;
      least = std::min(least, y);
      most = std::max(most, y);
    }
    heights.push_back(most - least);
  }
  return heights;
}

TEST_CASE("the picture of a panel as SVG has its bars to scale, its texts as texts, and nothing of other windows") {
  DashboardOptions options;
  std::string name, svg;
  options.save = [&](const std::string& of, const std::string& contents) { name = of, svg = contents; };
  options.about = "About this program";
  Driver driver(panels(), options);
  driver.click("menu/about");
  driver.click("powers/svg");
  for (int i = 0; i < 2; ++i) {
    driver.dashboard().take_picture(*ImGui::GetDrawData());
    driver.frame();
  }
  driver.dashboard().take_picture(*ImGui::GetDrawData());
  REQUIRE(name == "powers.svg");
  CHECK(ImGui::GetStyle().AntiAliasedLines);
  for (const char* const text :
       {">Powers</text>", ">values</text>", ">negated</text>", ">How fast do powers grow?</text>"})
    CHECK(svg.find(text) != std::string::npos);
  CHECK(svg.find("About this program") == std::string::npos);
  CHECK(svg.find("rotate(-90)") == std::string::npos);  // no axis has a title
  const std::vector<double> heights = heights_of(svg);
  bool to_scale = false;  // a bar is two triangles
  for (std::size_t i = 0; i + 10 <= heights.size() && !to_scale; ++i) {
    to_scale = heights[i] > 5;
    for (std::size_t j = 0; j < 10; ++j) {
      const double times = 1 << (j / 2);
      to_scale &= std::abs(heights[i + j] - times * heights[i]) < 0.2 * times;
    }
  }
  CHECK(to_scale);
}

TEST_CASE("an address gives the view again, and what it asks for stays in the controls' ranges") {
  std::string address;
  {
    Driver driver(panels());
    CHECK(driver.dashboard().address().empty());
    driver.type_into_slider("powers/base", "2.5");
    driver.type_into_slider("powers/count", "2");
    driver.choose("powers/kind", "inverses");
    driver.click("powers/negated");
    driver.type_into("powers/note", "it's 50 %");
    driver.click("menu/Powers");
    address = driver.dashboard().address();
    CHECK(address ==
          "panel=powers&powers/base=2.5&powers/count=2&powers/kind=inverses&powers/negated=1&powers/"
          "note=it%27s%2050%20%25");
  }
  Driver driver(panels());
  const auto& panel = driver.panel<PowersPanel>("powers");
  driver.dashboard().go_to(address + "&powers/nothing=1&powers");
  driver.frames(5);
  CHECK(panel.shown()->values == std::vector<double>{-1, -1 / 2.5});
  CHECK(panel.shown()->settings.note == "it's 50 %");
  CHECK(driver.dashboard().address() == address);
  driver.dashboard().go_to("powers/count=1000&powers/kind=roots&powers/base=two");
  driver.frames(5);
  CHECK(panel.settings().count == 100);
  CHECK(panel.settings().kind == "inverses");
  CHECK(panel.settings().base == 2.5);
}

TEST_CASE("where there are no files, rows and the figure's script go where the page wants them") {
  std::vector<std::pair<std::string, std::string>> saved;
  DashboardOptions options;
  options.save = [&](const std::string& name, const std::string& contents) { saved.emplace_back(name, contents); };
  options.about = "About this page.";
  Driver driver(panels(), options);
  driver.click("powers/csv");
  driver.click("powers/plot");
  REQUIRE(saved.size() == 2);
  CHECK(saved[0] == std::pair<std::string, std::string>("powers.csv", "power\n1\n2\n4\n8\n16\n"));
  CHECK(saved[1] == std::pair<std::string, std::string>("powers.plot", "plot x"));
  driver.click("menu/about");
  CHECK(driver.dashboard().message() == "About this page.");
}

TEST_CASE("the command line is copied, and rows are exported") {
  const TemporaryFolder folder;
  DashboardOptions options;
  options.out_folder = folder.file("exports");
  Driver driver(panels(), options);
  driver.type_into("powers/note", "two words");
  driver.click("powers/Copy command");
  CHECK(std::string(ImGui::GetClipboardText()) == "draftproof powers --note 'two words'");
  driver.click("powers/csv");
  CHECK(read_whole_file(folder.file("exports/powers.csv")) == "power\n1\n2\n4\n8\n16\n");
}

TEST_CASE("a file that no panel shows, or that is broken, gives a message and changes nothing") {
  const TemporaryFolder folder;
  Driver driver(panels());
  const auto& panel = driver.panel<PowersPanel>("powers");
  Dashboard& dashboard = driver.dashboard();
  write_whole_file(folder.file("broken.json"), "{\"command\": ");
  dashboard.open(folder.file("broken.json"));
  driver.frames(3);  // until the message has its size
  CHECK_THAT(dashboard.message(), Contains("broken.json") && Contains("is not a JSON document"));
  driver.click("message/close");
  CHECK(dashboard.message().empty());
  dashboard.open(folder.file("absent.json"));
  CHECK_THAT(dashboard.message(), Contains("absent.json"));
  write_whole_file(folder.file("other.json"), R"({"command": "draftproof roots --n 2"})");
  dashboard.open(folder.file("other.json"));
  CHECK_THAT(dashboard.message(), Contains("no panel shows") && Contains("draftproof roots"));
  write_whole_file(folder.file("incomplete.json"), R"({"command": "draftproof powers"})");
  dashboard.open(folder.file("incomplete.json"));
  CHECK_THAT(dashboard.message(), Contains("has no base"));
  CHECK(panel.settings() == PowersSettings{});
  // A folder is opened by the result in it.
  std::filesystem::create_directory(folder.file("run"));
  write_whole_file(folder.file("run/result.json"), R"({"command": "draftproof powers", "base": 7})");
  dashboard.open(folder.file("run"));
  driver.frame();
  CHECK(dashboard.message().empty());
  CHECK(panel.shown()->settings.base == 7);
}

TEST_CASE("a recording comes back from its file and replays to the same snapshots") {
  const TemporaryFolder folder;
  ordered_json seen;
  {
    Driver driver(panels());
    driver.drag_slider("powers/base", 0.3f);
    driver.type_into_slider("powers/count", "7");
    driver.choose("powers/kind", "inverses");
    driver.type_into("powers/note", "noted");
    seen = driver.panel<PowersPanel>("powers").snapshot();
    write_recording(folder.file("session.jsonl"), driver.recording());
  }
  CHECK(seen["values"].size() == 7);
  Driver driver(panels());
  driver.replay(read_recording(folder.file("session.jsonl")));
  CHECK(driver.panel<PowersPanel>("powers").snapshot() == seen);
}

TEST_CASE("what is not a recording is refused with its line") {
  const TemporaryFolder folder;
  const std::string header =
      R"({"format":"draftproof dashboard recording 1","width_px":640,"height_px":480,"scale":1,"panel":""})";
  const auto read = [&](const std::string& text) {
    write_whole_file(folder.file("r.jsonl"), text);
    return read_recording(folder.file("r.jsonl"));
  };
  const auto error_of = [&](const std::string& text) {
    return draftproof::error_of(ErrorKind::input, [&] { read(text); });
  };
  CHECK_NOTHROW(read(header + "\n" + R"({"delta_s":0.1,"events":[]})" + "\n"));
  CHECK_THAT(error_of(""), Contains("is empty"));
  CHECK_THAT(error_of("{}\n"), Contains("line 1"));
  CHECK_THAT(error_of(header + "\nno json\n"),
             Catch::EndsWith("line 2: is not of a recording that draftproof dash --record wrote"));
  CHECK_THAT(error_of(header + "\n" + R"({"delta_s":0.1,"events":[{"kind":"shout"}]})" + "\n"),
             Contains("line 2") && Contains("shout"));
  const auto with_event = [&](const std::string& event) {
    return header + "\n" + R"({"delta_s":0.1,"events":[)" + event + "]}\n";
  };
  const auto event_error = [&](const std::string& event) { return error_of(with_event(event)); };
  // Dear ImGui's own codes: 512 and up are keys, 656 and up aliases of mouse buttons.
  CHECK_NOTHROW(read(with_event(R"({"kind":"button","code":4,"down":true})")));
  CHECK_NOTHROW(read(with_event(R"({"kind":"key","code":512,"down":true})")));
  CHECK_THAT(event_error(R"({"kind":"button","code":5,"down":true})"),
             Contains("line 2") && Contains("code is 5; expected an integer from 0 to 4"));
  for (const std::string code : {"-1", "7", "511", "100000", "1e30", "9223372036854775807", "\"a\"", "2.5"})
    for (const std::string kind : {"button", "key"}) {
      INFO(kind << " " << code);
      CHECK_THAT(event_error(R"({"kind":")" + kind + R"(","code":)" + code + R"(,"down":true})"),
                 Contains("line 2") && Contains("code is "));
    }
  CHECK_THAT(event_error(R"({"kind":"key","code":)" + std::to_string(ImGuiKey_MouseLeft) + R"(,"down":true})"),
             Contains("expected a key of Dear ImGui"));
  CHECK_THAT(event_error(R"({"kind":"text","code":-3})"), Contains("line 2"));
  CHECK_THAT(event_error(R"({"kind":"mouse","x":1e300,"y":0})"), Contains("x is 1e+300; expected a float"));
  CHECK_THAT(event_error(R"({"kind":"mouse","x":1})"), Contains("line 2"));
  for (const std::string row : {"[1]", "3", "null", "\"text\"", R"({"delta_s":0.1,"events":{}})",
                                R"({"delta_s":"a","events":[]})", R"({"delta_s":-1,"events":[]})"}) {
    INFO(row);
    CHECK_THAT(error_of(header + "\n" + row + "\n"), Contains("line 2"));
  }
  CHECK_THAT(error_of(std::string(header).replace(header.find("640"), 3, "1e9") + "\n"),
             Contains("line 1") && Contains("width_px"));
}

TEST_CASE("a panel that there is not is refused by name") {
  DashboardOptions options;
  options.only_panel = "roots";
  CHECK_THROWS_WITH(Dashboard(panels(), options), Contains("--panel") && Contains("powers"));
}

TEST_CASE("themes and scales change in the menu, and the dashboard draws in all of them") {
  Driver driver(panels());
  driver.click("menu/200 %");
  CHECK(driver.dashboard().ui().scale == 2);
  driver.click("menu/theme");
  CHECK_FALSE(driver.dashboard().ui().dark);
  driver.frames(2);
}

}  // namespace
