#include "exactness/bugs/run_bugs.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/near_names.hpp"
#include "base/parallel.hpp"
#include "base/split.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

bool is_wanted(const std::vector<std::string>& wanted, const Bug& bug) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), bug.id) != wanted.end();
}

HuntResult run_hunt(const Hunt& hunt) {
  const auto start = std::chrono::steady_clock::now();
  HuntResult result{hunt.detector, hunt.run(true), {}, 0.0};
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

BugResult run(Bug bug) {
  BugResult result;
  for (const Hunt& hunt : bug.hunts) {
    result.hunts.push_back(run_hunt(hunt));
    result.hunts.back().sound = hunt.run(false);
  }
  result.bug = std::move(bug);
  return result;
}

ControlResult run_control(Control control) {
  ControlResult result;
  for (const Hunt& hunt : control.hunts) result.hunts.push_back(run_hunt(hunt));
  result.control = std::move(control);
  return result;
}

void refuse_unknown(const std::vector<std::string>& wanted, const std::vector<Bug>& bugs,
                    const std::vector<Control>& controls) {
  for (const std::string& id : wanted) {
    const auto has_id = [&](const Bug& bug) { return bug.id == id; };
    if (std::any_of(bugs.begin(), bugs.end(), has_id) || std::any_of(controls.begin(), controls.end(), has_id))
      continue;
    std::vector<std::string> known;
    for (const auto* list : {&bugs, &controls})
      for (const Bug& bug : *list) known.push_back(bug.id);
    throw usage_error(
        "--only", "'" + id + "' is not a bug or control; there are: " + joined(known, ", ") + did_you_mean(id, known));
  }
}

}  // namespace

const HuntResult* BugResult::killer() const {
  const auto found = std::find_if(hunts.begin(), hunts.end(), [](const HuntResult& h) { return h.faulty.caught; });
  return found == hunts.end() ? nullptr : &*found;
}

bool BugResult::twin_passes() const {
  return std::none_of(hunts.begin(), hunts.end(), [](const HuntResult& h) { return h.sound.caught; });
}

bool ControlResult::passes() const {
  return std::none_of(hunts.begin(), hunts.end(), [](const HuntResult& h) { return h.faulty.caught; });
}

std::int64_t BugReport::killed() const {
  return std::count_if(bugs.begin(), bugs.end(), [](const BugResult& m) { return m.killer() != nullptr; });
}

std::int64_t BugReport::twins_passed() const {
  return std::count_if(bugs.begin(), bugs.end(), [](const BugResult& m) { return m.twin_passes(); });
}

std::int64_t BugReport::controls_passed() const {
  return std::count_if(controls.begin(), controls.end(), [](const ControlResult& c) { return c.passes(); });
}

bool BugReport::as_claimed() const {
  return killed() == std::ssize(bugs) && twins_passed() == std::ssize(bugs) &&
         controls_passed() == std::ssize(controls);
}

std::size_t count_of_bugs() {
  return all_bugs().size() + bug_controls().size();
}

std::string BugReport::sentence() const {
  const std::int64_t alarms = std::ssize(bugs) - twins_passed() + std::ssize(controls) - controls_passed();
  return "bugs caught: " + std::to_string(killed()) + " of " + std::to_string(bugs.size()) +
         "; false alarms: " + std::to_string(alarms) + " on " + counted_noun(std::ssize(bugs), "corrected version") +
         " and " + counted_noun(std::ssize(controls), "control") +
         (waiting.empty() ? "" : "; cannot be run yet: " + std::to_string(waiting.size()));
}

BugReport run_bugs(const std::vector<std::string>& wanted, int threads, const std::function<void()>& done) {
  std::vector<Bug> bugs = all_bugs();
  std::vector<Control> controls = bug_controls();
  refuse_unknown(wanted, bugs, controls);
  std::erase_if(bugs, [&](const Bug& bug) { return !is_wanted(wanted, bug); });
  std::erase_if(controls, [&](const Control& control) { return !is_wanted(wanted, control); });
  BugReport report{std::vector<BugResult>(bugs.size()), std::vector<ControlResult>(controls.size()), {}};
  if (wanted.empty()) report.waiting = waiting_bugs();
  const std::int64_t items = std::ssize(bugs) + std::ssize(controls);
  parallel_for(items, threads, [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    if (i < bugs.size())
      report.bugs[i] = run(std::move(bugs[i]));
    else
      report.controls[i - bugs.size()] = run_control(std::move(controls[i - bugs.size()]));
    if (done) done();
  });
  return report;
}

}  // namespace draftproof
