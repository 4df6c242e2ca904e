// Numbers under the mouse, read from the frame, against the snapshot.
#include <cstdio>
#include <regex>

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"
#include "viz/panels/serving_timeline.hpp"
#include "viz/panels/speculate.hpp"
#include "viz/panels/speedup_by_batch.hpp"
#include "viz/panels/tree_explorer.hpp"

namespace draftproof::testing {
namespace {

// Groups of the pattern in the frame with the mouse at this place of a control, given as shares of its width and
// height; empty: the frame has no such text.
std::vector<std::string> read_at(Driver& driver, const ControlRect& rect, float x, float y,
                                 const std::string& pattern) {
  driver.move_to({rect.min.x + x * (rect.max.x - rect.min.x), rect.min.y + y * (rect.max.y - rect.min.y)});
  driver.frame();
  const std::string text = driver.text();
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(pattern))) return {};
  return {found.begin() + 1, found.end()};
}

TEST_CASE("the bars of accepted positions say their counts") {
  const PanelDriver<SpeculatePanel> driver(std::make_unique<SpeculatePanel>("ngram:6"));
  const AcceptanceCounts& counts =
      driver.shown().speculation.steps[driver.panel().view().speculation_steps - 1]->acceptance;
  std::set<std::size_t> seen;
  for (float x = 0.1f; x < 0.95f; x += 0.05f) {
    const std::vector<std::string> said =
        read_at(*driver, driver->rect("speculate/acceptance by position"), x, 0.5f,
                "position ([0-9]+): reached ([0-9]+) times, accepted ([0-9]+) times, of ([0-9]+) drafts");
    if (said.empty()) continue;
    const std::size_t j = std::stoul(said[0]);
    seen.insert(j);
    CHECK(std::stoll(said[1]) == counts.reached.at(j - 1));
    CHECK(std::stoll(said[2]) == counts.accepted.at(j - 1));
    CHECK(std::stoll(said[3]) == counts.drafts);
  }
  CHECK(seen.size() >= 2);
}

TEST_CASE("a batch of the speedup panel says every curve's numbers there") {
  const PanelDriver<SpeedupByBatchPanel> driver;
  std::set<std::string> seen;
  for (const float x : {0.45f, 0.6f, 0.7f}) {
    const std::vector<std::string> batch =
        read_at(*driver, {{0, 0}, {1920, 1080}}, x, 0.4f, "(?:^|\n)batch ([0-9]+)\n");
    if (batch.empty()) continue;
    seen.insert(batch[0]);
    const std::vector<double>& batches = driver.shown().curves.front().batch;
    const auto at = static_cast<std::size_t>(std::ranges::find(batches, std::stod(batch[0])) - batches.begin());
    std::string text = driver->text();
    std::ranges::replace(text, '\n', ' ');
    for (const SpeedupCurve& curve : driver.shown().curves) {
      if (at >= curve.batch.size()) continue;
      char line[128];
      std::snprintf(line, sizeof line, "%s %.2f (%.2f to %.2f), step ratio %.2f", curve.name.c_str(), curve.speedup[at],
                    curve.low[at], curve.high[at], curve.step_ratio[at]);
      CHECK_THAT(text, Contains(line));
    }
  }
  CHECK(seen.size() >= 2);
}

TEST_CASE("a field of the tree's mask says whether its row attends to its column") {
  const PanelDriver<TreeExplorerPanel> driver;
  const std::vector<bool>& mask = driver.shown().mask;
  const std::size_t rows = driver.shown().nodes.size() + 1;
  std::set<std::string> seen;
  for (float x = 0.2f; x < 0.9f; x += 0.1f)
    for (const float y : {0.3f, 0.5f, 0.7f}) {
      const std::vector<std::string> said = read_at(*driver, driver->rect("tree_explorer/mask"), x, y,
                                                    "row ([0-9]+) (attends to|does not see) column ([0-9]+)");
      if (said.empty()) continue;
      seen.insert(said[1]);
      CHECK((said[1] == "attends to") == mask.at(std::stoul(said[0]) * rows + std::stoul(said[2])));
    }
  CHECK(seen.size() == 2);
}

TEST_CASE("a step of the timeline says what it took, drafted, accepted and emitted") {
  ServingTimelineSettings settings;
  settings.requests = 40;
  settings.loads = {8, 32};
  const PanelDriver<ServingTimelinePanel> driver(std::make_unique<ServingTimelinePanel>(settings));
  int seen = 0;  // some drafts of which were rejected
  for (float x = 0.2f; x < 0.9f; x += 0.1f)
    for (const float y : {0.3f, 0.5f, 0.7f}) {
      const auto read = [&](const std::string& pattern) {
        return read_at(*driver, driver->rect("serving_timeline/steps"), x, y, pattern);
      };
      const std::vector<std::string> said = read("(\\S+), step ([0-9]+): ([0-9.]+) ms");
      const std::vector<std::string> counts = read("drafted ([0-9]+), accepted ([0-9]+), emitted ([0-9]+)");
      if (said.empty() || counts.empty()) continue;
      for (const PolicyTimeline* const timeline : {driver.shown().upper(), driver.shown().lower()}) {
        if (timeline == nullptr || timeline->policy != said[0]) continue;
        for (const StepBox& box : timeline->steps.visible(0, timeline->steps.end_ns(), 1 << 30)) {
          if (box.first_step != std::stoll(said[1])) continue;
          CHECK(std::stod(said[2]) == Approx(static_cast<double>(box.busy_ns()) * 1e-6).margin(6e-4));
          CHECK(std::vector{std::stoll(counts[0]), std::stoll(counts[1]), std::stoll(counts[2])} ==
                std::vector<long long>{box.drafted, box.accepted, box.emitted});
          seen += box.drafted > box.accepted;
        }
        break;
      }
    }
  CHECK(seen >= 2);
}

}  // namespace
}  // namespace draftproof::testing
