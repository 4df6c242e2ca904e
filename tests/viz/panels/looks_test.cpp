// Every panel and lesson is looked at, at three sizes, light and dark; planted faults are seen.
#include "tests/viz/looks.hpp"

#include <implot.h>

#include "tests/studies/heads/head_study_files.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"
#include "viz/panels/all_panels.hpp"
#include "viz/panels/heads.hpp"
#include "viz/panels/plot_style.hpp"
#include "viz/panels/speculate.hpp"

namespace draftproof::testing {
namespace {

struct Size {
  int width_px, height_px;
  float scale;
};
// A phone, a small screen, a large one.
constexpr std::array kSizes{Size{390, 844, 1.0f}, Size{1280, 800, 1.0f}, Size{2560, 1440, 1.5f}};
constexpr int kSettlingFrames = 6;

// The panel as a reader's, where no language model and no head has been fetched.
std::unique_ptr<Panel> as_on_any_machine(std::unique_ptr<Panel> panel, const HeadStudyFiles& files) {
  const std::string name = panel->info().name;
  if (name == "speculate") return std::make_unique<SpeculatePanel>("ngram:6");
  if (name == "heads") return panel_with<HeadsPanel>(files.settings(files.eagle3));
  return panel;
}

// Checks the looks of a panel alone in the window, or of the whole dashboard.
void check_looks(Dashboard& dashboard, const std::string& what, bool has_plots, float least_width_em = 0) {
  for (const Size& size : kSizes) {
    NullSurface surface(size.width_px, size.height_px);
    for (const bool dark : {true, false}) {
      set_theme({size.scale, dark});
      const auto frame = [&] {
        surface.begin_frame();
        dashboard.draw();
        surface.end_frame();
      };
      for (int i = 0; i < kSettlingFrames; ++i) {
        frame();
        dashboard.settle();
      }
      const Looks looks = looks_of_frame(frame, &dashboard.controls());
      INFO(what << ", " << size.width_px << " x " << size.height_px << (dark ? ", dark" : ", light"));
      std::string faults;
      for (const std::string& fault : looks.faults) faults += "\n  " + fault;
      CHECK(faults == "");
      CHECK(looks.texts > 5);
      const bool is_narrow = static_cast<float>(size.width_px) < least_width_em * ImGui::GetFontSize();
      CHECK((looks.text.find("needs a wider screen") != std::string::npos) == is_narrow);
      // On a phone the first plot may stand below what is seen.
      if (is_narrow || size.width_px > size.height_px) CHECK((looks.plots > 0) == (has_plots && !is_narrow));
    }
  }
}

TEST_CASE("no panel and no lesson has an axis beyond its data, a flat plot, curves alike, or a text cut or covered") {
  const HeadStudyFiles files;
  for (auto& made : all_panels()) {
    const UiContext context;
    std::unique_ptr<Panel> panel = as_on_any_machine(std::move(made), files);
    DashboardOptions options;
    options.only_panel = panel->info().name;
    Panel& shown = *panel;
    std::vector<std::unique_ptr<Panel>> one;
    one.push_back(std::move(panel));
    Dashboard dashboard(std::move(one), options);
    const bool has_plots = options.only_panel != "exactness";
    const float least_width_em = shown.info().least_width_em;
    check_looks(dashboard, options.only_panel, has_plots, least_width_em);
    for (const std::string& lesson : shown.lesson_names()) {
      REQUIRE(shown.begin_lesson(lesson));
      check_looks(dashboard, options.only_panel + ", lesson " + lesson, has_plots, least_width_em);
    }
  }
}

TEST_CASE("the whole dashboard looks as its panels do") {
  const HeadStudyFiles files;
  const UiContext context;
  std::vector<std::unique_ptr<Panel>> panels;
  for (auto& panel : all_panels()) panels.push_back(as_on_any_machine(std::move(panel), files));
  Dashboard dashboard(std::move(panels), {});
  check_looks(dashboard, "dashboard", true);
}

// A plot in a window of its own.
Looks looks_of_plot(const std::function<void()>& plot, ImVec2 size = {500, 300}) {
  const UiContext context;
  NullSurface surface(800, 600);
  const auto frame = [&] {
    surface.begin_frame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({800, 600});
    ImGui::Begin("window");
    if (ImPlot::BeginPlot("planted", size)) {
      plot();
      ImPlot::EndPlot();
    }
    ImGui::End();
    surface.end_frame();
  };
  for (int i = 0; i < kSettlingFrames; ++i) frame();
  return looks_of_frame(frame);
}

std::string first_fault(const Looks& looks) {
  return looks.faults.empty() ? "none" : looks.faults.front();
}

const std::vector<double> kLoads{2, 8, 32, 128};
const std::vector<double> kTtft_ms{31, 35, 120, 9000};  // of several decades, as under overload

void plot_ttft() {
  plot_line("one", kLoads, kTtft_ms, line_with_markers(palette::kBlue));
}

TEST_CASE("a logarithmic axis that is padded by a difference is seen, and one over what is shown passes") {
  const Looks planted = looks_of_plot([] {  // as the timeline of 28 November had it
    ImPlot::GetStyle().FitPadding = {0.03f, 0.08f};
    ImPlot::SetupAxes("load", "ms", ImPlotAxisFlags_AutoFit, ImPlotAxisFlags_AutoFit);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    plot_ttft();
  });
  CHECK_THAT(first_fault(planted), Contains("axis from") && Contains("its data from"));
  const Looks mended = looks_of_plot([] {
    LogExtent loads, values;
    loads.add(kLoads);
    values.add(kTtft_ms);
    ImPlot::SetupAxes("load", "ms");
    setup_log_axis(ImAxis_X1, loads, ImPlotCond_Always, LogTicks::powers_of_two);
    setup_log_axis(ImAxis_Y1, values);
    plot_ttft();
  });
  CHECK(first_fault(mended) == "none");
  CHECK(mended.plots == 1);
}

TEST_CASE("a logarithmic axis is over the positive finite values, and has a decade where there are none") {
  const auto limits = [](const std::vector<double>& values) {
    ImPlotRect found;
    looks_of_plot([&] {
      LogExtent extent;
      extent.add(values);
      setup_log_axis(ImAxis_Y1, extent);
      found = ImPlot::GetPlotLimits();
    });
    return std::pair(found.Y.Min, found.Y.Max);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [values, least, most] :
       {std::tuple(std::vector{0.0, 20.0, 300.0}, 20.0, 300.0), std::tuple(std::vector{nan, 5.0, infinity}, 5.0, 5.0),
        std::tuple(std::vector{0.0, 0.0}, 1.0, 10.0), std::tuple(std::vector<double>{}, 1.0, 10.0)}) {
    const auto [low, high] = limits(values);
    CHECK(low < least);
    CHECK(low > 0.7 * least);
    CHECK(high > most);
    CHECK(high < 1.4 * most);
  }
}

TEST_CASE("each kind of fault is seen where it is planted") {
  const std::vector<double> x{0, 1, 2, 3}, y{1, 2, 3, 4};
  const auto line = [&](const char* name, const PaletteColour& colour) {
    ImPlot::PlotLine(name, x.data(), y.data(), 4, line_of(colour));
  };
  const auto within = [](double low, double high) { ImPlot::SetupAxesLimits(-0.2, 3.2, low, high, ImPlotCond_Always); };
  const auto blue = [&] { line("one", palette::kBlue); };
  CHECK(first_fault(looks_of_plot([&] {
          within(0, 4.4);
          ImPlot::SetupLegend(ImPlotLocation_SouthEast);
          blue();
        })) == "none");
  CHECK_THAT(first_fault(looks_of_plot([&] {
               within(0, 60);
               blue();
             })),
             Contains("vertical axis from 0 to 60"));
  CHECK_THAT(first_fault(looks_of_plot([&] {
               within(9, 10);
               blue();
             })),
             Contains("shows nothing of its data"));
  CHECK_THAT(first_fault(looks_of_plot(
                 [&] {
                   within(0, 4.4);
                   blue();
                 },
                 {500, 80})),
             Contains("pixels to show"));
  CHECK_THAT(first_fault(looks_of_plot([&] {
               within(0, 4.4);
               ImPlot::SetupLegend(ImPlotLocation_NorthEast);
               blue();
             })),
             Contains("legend over data"));
  CHECK_THAT(first_fault(looks_of_plot([&] {
               within(0, 4.4);
               ImPlot::SetupLegend(ImPlotLocation_SouthEast);
               blue();
               line("two", {"#0072C0", 0, 0x72, 0xC0});
             })),
             Contains("'one' and 'two' alike"));
  CHECK_THAT(first_fault(looks_of_plot([&] {
               ImPlot::SetupAxes("x", "an axis title that is longer than the plot beside which it stands is high");
               within(0, 4.4);
               ImPlot::SetupLegend(ImPlotLocation_SouthEast);
               blue();
             })),
             Contains("is cut"));
  CHECK_THAT(first_fault(looks_of_plot([&] {
               within(0, 4.4);
               const double ticks[] = {1.0, 1.1};
               ImPlot::SetupAxisTicks(ImAxis_Y1, ticks, 2);
               ImPlot::SetupLegend(ImPlotLocation_SouthEast);
               blue();
             })),
             Contains("over '"));
}

}  // namespace
}  // namespace draftproof::testing
