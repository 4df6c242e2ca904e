// Numbers under the mouse and in tables, read from the frame, against the snapshot.
#include <regex>

#include "base/printable.hpp"
#include "tests/studies/heads/head_study_files.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"
#include "tests/viz/panels/kernel_times.hpp"
#include "viz/panels/exactness.hpp"
#include "viz/panels/heads.hpp"
#include "viz/panels/kernels.hpp"
#include "viz/panels/serving_timeline.hpp"
#include "viz/panels/speculate.hpp"
#include "viz/panels/speedup_by_batch.hpp"
#include "viz/panels/tree_explorer.hpp"

namespace draftproof::testing {
namespace {

using Groups = std::vector<std::string>;

const std::string kWhole = "([0-9]+)", kNumber = "(-?[0-9.]+)";

// Groups of the pattern with the mouse at places over a rectangle, each once. A space stands for any.
std::set<Groups> said_over(Driver& driver, const ControlRect& rect, const std::string& pattern, int across = 16,
                           int down = 3) {
  const std::regex expression(std::regex_replace(pattern, std::regex(" "), "\\s+"));
  std::set<Groups> all;
  for (int i = 0; i < across * down; ++i) {
    driver.move_to(
        {rect.min.x + (static_cast<float>(i / down) + 0.5f) / static_cast<float>(across) * (rect.max.x - rect.min.x),
         rect.min.y + (static_cast<float>(i % down) + 0.5f) / static_cast<float>(down) * (rect.max.y - rect.min.y)});
    driver.frame();
    const std::string all_text = driver.text();  // a tooltip last
    const std::string text = all_text.substr(all_text.size() - std::min<std::size_t>(all_text.size(), 1500));
    std::smatch found;
    if (std::regex_search(text, found, expression)) all.insert({found.begin() + 1, found.end()});
  }
  return all;
}

template <class Value>
bool says(const std::string& text, Value value, double unit) {
  return std::abs(std::stod(text) - static_cast<double>(value)) <= 0.51 * unit;
}

TEST_CASE("the bars of accepted positions and the nodes of a draft say their numbers") {
  const PanelDriver<SpeculatePanel> driver(std::make_unique<SpeculatePanel>("ngram:6"));
  driver->choose("speculate/drafter", "ngram:3");
  driver->type_into_slider("speculate/temperature", "0.7");
  const auto& steps = driver.shown().speculation.steps;
  while (steps[driver.panel().view().speculation_steps - 1]->draft.empty()) driver->click("speculate/Step back");
  const SpeculateStep& step = *steps[driver.panel().view().speculation_steps - 1];
  const std::set<Groups> bars = said_over(
      *driver, driver->rect("speculate/acceptance by position"),
      "position " + kWhole + ": reached " + kWhole + " times, accepted " + kWhole + " times, of " + kWhole + " drafts",
      16, 1);
  CHECK(bars.size() >= 2);
  for (const Groups& said : bars) {
    const std::size_t j = std::stoul(said[0]) - 1;
    const AcceptanceCounts& counts = step.acceptance;
    CHECK((says(said[1], counts.reached.at(j), 1) && says(said[2], counts.accepted.at(j), 1) &&
           says(said[3], counts.drafts, 1)));
  }
  const std::set<Groups> nodes = said_over(
      *driver, driver->rect("speculate/draft"),
      "position " + kWhole + " q = " + kNumber + ": .* p = " + kNumber + ": [^:]* " + kNumber + ": of the target's own",
      5, 16);
  CHECK_FALSE(nodes.empty());
  for (const Groups& said : nodes)
    CHECK(std::ranges::any_of(step.draft, [&](const ShownNode& node) {
      return says(said[0], node.depth, 1) && says(said[1], node.draft_probability, 1e-4) &&
             says(said[2], node.target_probability, 1e-4) && says(said[3], node.model_probability, 1e-4);
    }));
}

TEST_CASE("a batch of the speedup panel says every curve's numbers there, and its table their limits") {
  const PanelDriver<SpeedupByBatchPanel> driver;
  for (const SpeedupCurve& curve : driver.shown().curves) {
    const bool is_one = curve.kind == SpeedupCurve::Kind::chain || curve.kind == SpeedupCurve::Kind::tree;
    const std::string memory = is_one ? std::to_string(curve.memory_bound_up_to) : "-";
    CHECK_THAT(driver->lines(), Contains(curve.name + " " + number("%.2f", curve.speedup.front()) + " " + memory + " " +
                                         (curve.break_even ? std::to_string(*curve.break_even) : "-") + "\n"));
    const std::set<Groups> all = said_over(*driver, {{0, 400}, {1920, 440}},
                                           "batch " + kWhole + "\n[^]*" + curve.name + " " + kNumber + " \\(" +
                                               kNumber + " to " + kNumber + "\\), step ratio " + kNumber,
                                           8, 1);
    CHECK(all.size() >= 2);
    for (const Groups& said : all) {
      const auto i = static_cast<std::size_t>(std::ranges::find(curve.batch, std::stod(said[0])) - curve.batch.begin());
      CHECK((says(said[1], curve.speedup.at(i), 0.01) && says(said[2], curve.low[i], 0.01) &&
             says(said[3], curve.high[i], 0.01) && says(said[4], curve.step_ratio[i], 0.01)));
    }
  }
}

TEST_CASE("a field of the tree's mask says whether its row attends to its column, and a node its probabilities") {
  const PanelDriver<TreeExplorerPanel> driver;
  const TreeExplorerSnapshot& shown = driver.shown();
  std::set<std::string> seen;
  for (const Groups& said : said_over(*driver, driver->rect("tree_explorer/mask"),
                                      "row " + kWhole + " (attends to|does not see) column " + kWhole)) {
    seen.insert(said[1]);
    CHECK((said[1] == "attends to") ==
          shown.mask.at(std::stoul(said[0]) * (shown.nodes.size() + 1) + std::stoul(said[2])));
  }
  CHECK(seen.size() == 2);
  const std::set<Groups> nodes =
      said_over(*driver, driver->rect("tree_explorer/tree"),
                "node " + kWhole + ", .* level " + kWhole + " q = " + kNumber + " by the draft, p = " + kNumber +
                    " by the target along the path: product of q " + kNumber + ", of p " + kNumber +
                    " (accepted|rejected|not judged)",
                32, 12);
  CHECK(nodes.size() >= 2);
  for (const Groups& said : nodes) {
    const TreeExplorerNode& node = shown.nodes.at(std::stoul(said[0]));
    const NodeState state = shown.walk.back().states.at(std::stoul(said[0]));
    CHECK((says(said[1], node.depth, 1) && says(said[2], node.q, 1e-4) && says(said[3], node.p, 1e-4) &&
           says(said[4], node.value, 1e-4) && says(said[5], node.reach, 1e-4)));
    CHECK(said[6] == (state == NodeState::waiting ? "not judged" : name_of(state)));
  }
}

TEST_CASE("a step and a request of the timeline say what they took, and the table what a policy gave") {
  ServingTimelineSettings settings;
  settings.requests = 40;
  settings.load = 40;  // some wait
  settings.loads = {8, 32};
  const PanelDriver<ServingTimelinePanel> driver(std::make_unique<ServingTimelinePanel>(settings));
  const PolicyTimeline &upper = *driver.shown().upper(), &lower = *driver.shown().lower();
  for (const PolicyReport& report : driver.shown().reports) {
    std::string row = report.name;
    for (const auto& [format, figure] : {std::pair("%.0f", Figure::throughput),
                                         {"%.2f", Figure::goodput},
                                         {"%.0f", Figure::ttft_p50},
                                         {"%.2f", Figure::tpot_p50},
                                         {"%.3f", Figure::kv_use},
                                         {"%.0f", Figure::wasted_draft_tokens}})
      row += " " + number(format, report.figure(figure).mean);
    CHECK_THAT(driver->lines(), Contains(row));
  }
  const std::set<Groups> steps = said_over(
      *driver, driver->rect("serving_timeline/steps"),
      "(\\S+), step " + kWhole + ": " + kNumber + " ms ((?:[a-z]+ [0-9.]+ ms )+)" + kWhole + " requests, " + kWhole +
          " wait; " + kWhole + " prompt tokens drafted " + kWhole + ", accepted " + kWhole + ", emitted " + kWhole);
  int rejected = 0;
  for (const Groups& said : steps) {
    const auto boxes = (said[0] == upper.policy ? upper : lower).steps.steps();
    const StepBox& box = *std::ranges::find(boxes, std::stoll(said[1]), &StepBox::first_step);
    std::istringstream parts(said[3]);
    for (std::size_t i = 0; i < kStepParts; ++i) {
      if (box.part_ns[i] == 0) continue;
      std::string name, took, unit;
      parts >> name >> took >> unit;
      CHECK(name == name_of(static_cast<StepPart>(i)));
      CHECK(says(took, static_cast<double>(box.part_ns[i]) * 1e-6, 1e-3));
    }
    CHECK((says(said[2], static_cast<double>(box.busy_ns()) * 1e-6, 1e-3) && says(said[4], box.running_max, 1) &&
           says(said[5], box.waiting_max, 1) && says(said[6], box.prompt_tokens, 1)));
    CHECK((says(said[7], box.drafted, 1) && says(said[8], box.accepted, 1) && says(said[9], box.emitted, 1)));
    rejected += box.drafted > box.accepted;
  }
  CHECK(rejected >= 2);
  driver->click("serving_timeline/whole run");
  const std::set<Groups> requests =
      said_over(*driver, {{1000, 300}, {1900, 700}},
                "request " + kWhole + ": prompt " + kWhole + ", output " + kWhole + " TTFT " + kNumber + " ms TPOT " +
                    kNumber + " ms " + kWhole + " of " + kWhole + " drafts accepted, " + kWhole + " preemptions",
                2, 24);
  bool waited = false;
  for (const Groups& said : requests) {
    const RequestLane& lane = *std::ranges::find(lower.requests, std::stoull(said[0]), &RequestLane::number);
    CHECK((says(said[1], lane.prompt_len, 1) && says(said[2], lane.output_len, 1)));
    CHECK(says(said[3], static_cast<double>(lane.first_token_ns - lane.arrival_ns) * 1e-6, 0.1));
    CHECK(says(said[4], static_cast<double>(lane.last_token_ns - lane.first_token_ns) * 1e-6 / (lane.output_len - 1),
               0.01));
    CHECK((says(said[5], lane.accepted_tokens, 1) && says(said[6], lane.draft_tokens, 1) &&
           says(said[7], lane.preemptions, 1)));
    waited |= lane.begin_ns > lane.arrival_ns + 100'000;
  }
  CHECK(requests.size() >= 4);
  CHECK(waited);
}

TEST_CASE("a slot of a head's draft says its probability and confidence, and the tables what is accepted and likely") {
  const HeadStudyFiles files;
  HeadsSettings settings = files.settings(files.dspark);
  const PanelDriver<HeadsPanel> driver(panel_with<HeadsPanel>(settings));
  driver->frames(3);
  const HeadsSnapshot& shown = driver.shown();
  for (const HeadsWork& work : shown.works)
    CHECK_THAT(driver->lines(), Contains(work.name + " " + number("%.2f", work.metrics.acceptance_length) + " " +
                                         number("%.2f", work.metrics.tokens_per_step)));
  const std::set<Groups> slots = said_over(
      *driver, driver->rect("heads/draft 1"),
      "slot " + kWhole + ": [^]*, (accepted|rejected|not reached) q = " + kNumber + ", confidence " + kNumber, 16, 1);
  CHECK(slots.size() >= 2);
  for (const Groups& said : slots) {
    const HeadSlot& slot = shown.shown_prompt()->steps.front().slots.at(std::stoul(said[0]) - 1);
    CHECK(said[1] == (slot.accepted ? "accepted" : slot.reached ? "rejected" : "not reached"));
    CHECK((says(said[2], slot.draft.probability, 1e-4) && says(said[3], slot.confidence, 1e-4)));
  }
  const std::vector<HeadSlot>& all = shown.shown_step()->slots;
  for (std::size_t i = 0; i < all.front().candidates.size(); ++i)
    CHECK_THAT(driver->lines(), Contains(number("%.3f", all[0].candidates[i].probability)));
}

TEST_CASE("a bar of the kernels' times says them") {
  const TemporaryFolder folder;
  const PanelDriver<KernelsPanel> kernels(std::make_unique<KernelsPanel>(kernels_with_times(
      folder,
      R"({"name": "sample", "what": "top-k", "floor_ms": 1, "ms_median": 3, "ms_best": 2, "goal_ms": 4, "met": true})")));
  CHECK(said_over(*kernels, {{480, 400}, {1900, 1000}},
                  "sample, (\\S+) floor " + kNumber + " ms, median " + kNumber + " ms, best " + kNumber + " ms (.*)") ==
        std::set<Groups>{{"top-k", "1.0000", "3.0000", "2.0000", "goal met"}});
}

TEST_CASE("a span of a lane says how long its step and the step's parts took, and what was drafted and accepted") {
  const PanelDriver<SpeculatePanel> driver(std::make_unique<SpeculatePanel>("ngram:6"));
  const SpeculateLane& lane = driver.shown().speculation;
  const std::set<Groups> steps =
      said_over(*driver, driver->rect("speculate/lanes"),
                "speculation, step " + kWhole + ": (\\S+) ms, " + kWhole + " rows of the target " +
                    "[^]*verify (\\S+) ms [^]*sample (\\S+) ms " + kWhole + " tokens drafted, " + kWhole + " accepted",
                24, 3);
  CHECK(steps.size() >= 2);
  for (const Groups& said : steps) {
    const SpeculateStep& step = *lane.steps.at(std::stoul(said[0]) - 1);
    const auto took = [](const std::string& text, std::int64_t ns) {
      return std::stod(text) == Approx(1e-6 * static_cast<double>(ns)).epsilon(0.0051);
    };
    CHECK(
        (took(said[1], step.end_ns - step.begin_ns) && took(said[3], step.verify_ns) && took(said[4], step.sample_ns)));
    CHECK(
        (says(said[2], step.num_rows, 1) && says(said[5], step.draft.size(), 1) && says(said[6], step.path.size(), 1)));
  }
}

TEST_CASE("fields of the matrix of proofs stand in their columns") {
  ExactnessSettings settings;
  settings.draft_len = 1;
  settings.instances = 2;
  const PanelDriver<ExactnessPanel> driver(panel_with<ExactnessPanel>(settings), 1, 1920, 2600);
  const std::string lines = driver->lines();
  for (const ExactnessRow& row : driver.shown().matrix.rows) {
    std::string line = row.name;
    for (const ExactnessCell& cell : row.cells)
      if (cell.state != CellState::none) line += " " + cell.text;
    CHECK_THAT(lines, Contains(line));
  }
}

}  // namespace
}  // namespace draftproof::testing
