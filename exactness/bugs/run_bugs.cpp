#include "reference/exactness/mutants/run_mutants.hpp"

#include <algorithm>
#include <chrono>

#include "reference/error.hpp"
#include "reference/exactness/mutants/fixed_rows.hpp"
#include "reference/parallel.hpp"

namespace draftproof {
namespace {

bool is_wanted(const std::vector<std::string>& wanted, const Mutant& mutant) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), mutant.id) != wanted.end();
}

HuntResult run_hunt(const Hunt& hunt) {
  const auto start = std::chrono::steady_clock::now();
  HuntResult result{hunt.detector, hunt.run(true), {}, 0.0};
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::optional<UsualTests> usual_tests_of(const Mutant& mutant) {
  if (mutant.large_sampler) return usual_tests_of(mutant.large_sampler());
  if (mutant.rows_sampler) return usual_tests_of(mutant.rows_sampler(FixedRows::usual()));
  return std::nullopt;
}

MutantResult run(Mutant mutant) {
  MutantResult result;
  for (const Hunt& hunt : mutant.hunts) {
    result.hunts.push_back(run_hunt(hunt));
    result.hunts.back().sound = hunt.run(false);
  }
  result.usual = usual_tests_of(mutant);
  result.mutant = std::move(mutant);
  return result;
}

ControlResult run_control(Control control) {
  ControlResult result;
  for (const Hunt& hunt : control.hunts) result.hunts.push_back(run_hunt(hunt));
  result.usual = usual_tests_of(control);
  result.control = std::move(control);
  return result;
}

void refuse_unknown(const std::vector<std::string>& wanted, const std::vector<Mutant>& mutants,
                    const std::vector<Control>& controls) {
  for (const std::string& id : wanted) {
    const auto has_id = [&](const Mutant& mutant) { return mutant.id == id; };
    if (std::any_of(mutants.begin(), mutants.end(), has_id) || std::any_of(controls.begin(), controls.end(), has_id))
      continue;
    std::string ids;
    for (const auto* list : {&mutants, &controls})
      for (const Mutant& mutant : *list) ids += (ids.empty() ? "" : ", ") + mutant.id;
    throw usage_error("--only", "'" + id + "' is not a mutant or control; there are: " + ids);
  }
}

std::string usual_verdict(const std::optional<UsualTests>& usual, bool (UsualTests::*passes)() const) {
  if (!usual) return "-";
  return ((*usual).*passes)() ? "passes" : "caught";
}

}  // namespace

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> all;
  for (const auto& family : {coupling_mutants, range_mutants, algorithm_mutants, filter_mutants, processor_mutants})
    for (Mutant& mutant : family()) all.push_back(std::move(mutant));
  return all;
}

const HuntResult* MutantResult::killer() const {
  const auto found = std::find_if(hunts.begin(), hunts.end(), [](const HuntResult& h) { return h.faulty.caught; });
  return found == hunts.end() ? nullptr : &*found;
}

bool MutantResult::twin_passes() const {
  return std::none_of(hunts.begin(), hunts.end(), [](const HuntResult& h) { return h.sound.caught; });
}

bool ControlResult::passes() const {
  return std::none_of(hunts.begin(), hunts.end(), [](const HuntResult& h) { return h.faulty.caught; });
}

std::int64_t MutantReport::killed() const {
  return std::count_if(mutants.begin(), mutants.end(), [](const MutantResult& m) { return m.killer() != nullptr; });
}

std::int64_t MutantReport::twins_passed() const {
  return std::count_if(mutants.begin(), mutants.end(), [](const MutantResult& m) { return m.twin_passes(); });
}

std::int64_t MutantReport::controls_passed() const {
  return std::count_if(controls.begin(), controls.end(), [](const ControlResult& c) { return c.passes(); });
}

bool MutantReport::as_claimed() const {
  return killed() == std::ssize(mutants) && twins_passed() == std::ssize(mutants) &&
         controls_passed() == std::ssize(controls);
}

std::size_t count_of_mutants() {
  return all_mutants().size() + mutant_controls().size();
}

std::string MutantReport::sentence() const {
  return "killed " + std::to_string(killed()) + " of " + std::to_string(mutants.size()) + "; " +
         std::to_string(twins_passed()) + " of their sound twins pass; controls " + std::to_string(controls_passed()) +
         " of " + std::to_string(controls.size()) + " pass; " + std::to_string(waiting.size()) + " waiting";
}

MutantReport run_mutants(const std::vector<std::string>& wanted, int threads, const std::function<void()>& done) {
  std::vector<Mutant> mutants = all_mutants();
  std::vector<Control> controls = mutant_controls();
  refuse_unknown(wanted, mutants, controls);
  std::erase_if(mutants, [&](const Mutant& mutant) { return !is_wanted(wanted, mutant); });
  std::erase_if(controls, [&](const Control& control) { return !is_wanted(wanted, control); });
  MutantReport report{std::vector<MutantResult>(mutants.size()), std::vector<ControlResult>(controls.size()), {}};
  if (wanted.empty()) report.waiting = waiting_mutants();
  const std::int64_t items = std::ssize(mutants) + std::ssize(controls);
  parallel_for(items, threads, [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    if (i < mutants.size())
      report.mutants[i] = run(std::move(mutants[i]));
    else
      report.controls[i - mutants.size()] = run_control(std::move(controls[i - mutants.size()]));
    if (done) done();
  });
  return report;
}

std::string markdown_table(const MutantReport& report) {
  std::string text =
      "| id | shipped in | fault | caught by | cases | cosine > 0.99 | ten sigma |\n|---|---|---|---|---|---|---|\n";
  for (const MutantResult& result : report.mutants) {
    std::string caught;
    std::string cases;
    for (const HuntResult& hunt : result.hunts) {
      if (!hunt.faulty.caught) continue;
      caught += (caught.empty() ? "" : ", ") + std::string(1, static_cast<char>(hunt.detector));
      cases += (cases.empty() ? "" : ", ") + std::to_string(hunt.faulty.cases) + " " + hunt.faulty.unit;
    }
    text += "| " + result.mutant.id + " | " + result.mutant.source + " | " + result.mutant.fault + " | " +
            (caught.empty() ? "SURVIVED" : caught) + " | " + cases + " | " +
            usual_verdict(result.usual, &UsualTests::cosine_passes) + " | " +
            usual_verdict(result.usual, &UsualTests::chi_squared_passes) + " |\n";
  }
  return text;
}

}  // namespace draftproof
