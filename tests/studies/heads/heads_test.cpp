// The measurement of a head, as a study and as draftproof acceptance head:PATH, on tiny files.
#include "studies/heads/heads.hpp"

#include "studies/figures/figure.hpp"
#include "tests/studies/heads/head_study_files.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

const HeadStudyFiles& files() {
  static const HeadStudyFiles made;
  return made;
}

HeadsSnapshot measured(const HeadsSettings& settings) {
  return last_snapshot<HeadsSnapshot>(settings);
}

TEST_CASE("acceptance by slot and kind of work is what the steps of its prompts add up to") {
  for (const std::string& head : {files().eagle3, files().dspark}) {
    INFO(head);
    const HeadsSnapshot snapshot = measured(files().settings(head));
    REQUIRE(snapshot.prompts.size() == 3);
    REQUIRE(snapshot.works.size() == 3);
    CHECK(snapshot.works[0].name == "all");
    CHECK(snapshot.works[1].name == "cats");
    CHECK(snapshot.works[1].prompts == 2);
    CHECK(snapshot.works[2].name == "dogs");
    std::int64_t judged = 0, accepted_in_all = 0;
    for (const HeadsWork& work : snapshot.works) {
      std::int64_t drafts = 0, steps = 0, accepted_tokens = 0, tokens = 0;
      std::vector<std::int64_t> reached(work.slots.size(), 0), accepted(work.slots.size(), 0);
      for (const auto& prompt : snapshot.prompts) {
        if (work.name != "all" && work.name != prompt->work) continue;
        drafts += std::ssize(prompt->steps);
        steps += prompt->acceptance.steps;
        tokens += prompt->acceptance.received_tokens;
        for (const HeadStep& step : prompt->steps)
          for (std::size_t i = 0; i < step.slots.size(); ++i) {
            reached[i] += step.slots[i].reached ? 1 : 0;
            accepted[i] += step.slots[i].accepted ? 1 : 0;
            accepted_tokens += step.slots[i].accepted ? 1 : 0;
          }
      }
      for (std::size_t i = 0; i < work.slots.size(); ++i) {
        CHECK(work.slots[i].reached == reached[i]);
        CHECK(work.slots[i].accepted == accepted[i]);
        if (reached[i] == 0) continue;
        CHECK(work.slots[i].rate == Approx(static_cast<double>(accepted[i]) / static_cast<double>(reached[i])));
        CHECK(work.slots[i].interval.low <= work.slots[i].rate);
        CHECK(work.slots[i].interval.high >= work.slots[i].rate);
        // No narrower than that of independent steps.
        const Interval coins = clopper_pearson(accepted[i], reached[i], kHeadsLevel);
        CHECK(work.slots[i].interval.high - work.slots[i].interval.low >= coins.high - coins.low - 1e-9);
      }
      CHECK(work.metrics.acceptance_length ==
            Approx(1.0 + static_cast<double>(accepted_tokens) / static_cast<double>(drafts)));
      // Counted over all steps: those without a draft are among them.
      CHECK(work.metrics.tokens_per_step == Approx(static_cast<double>(tokens) / static_cast<double>(steps)));
      CHECK(steps > drafts);
      if (work.name != "all") continue;
      for (const std::int64_t count : reached) judged += count;
      accepted_in_all = accepted_tokens;
    }
    CHECK(accepted_in_all > 3);
    CHECK(snapshot.reliability.front().count == judged);
    CHECK(snapshot.reliability.front().accepted == accepted_in_all);
    std::int64_t by_slot = 0;
    for (std::size_t slot = 1; slot < snapshot.reliability.size(); ++slot) by_slot += snapshot.reliability[slot].count;
    CHECK(by_slot == judged);
    CHECK(snapshot.drafts_in_parallel == (head == files().dspark));
    CHECK(snapshot.drift.empty() == snapshot.drafts_in_parallel);
    CHECK(snapshot.has_confidence_head == snapshot.drafts_in_parallel);
  }
}

TEST_CASE("a head drafts as many tokens as it was trained for or drafts at once, unless K says otherwise") {
  HeadsSettings settings = files().settings(files().eagle3);
  settings.per_work = 1;
  settings.max_tokens = 4;
  CHECK(measured(settings).num_speculative_tokens == 3);
  settings.num_speculative_tokens = 5;
  CHECK(measured(settings).num_speculative_tokens == 5);
  settings = files().settings(files().dspark);
  settings.max_tokens = 4;
  CHECK(measured(settings).num_speculative_tokens == 7);
  settings.num_speculative_tokens = 8;
  CHECK_THAT(error_of(ErrorKind::usage, [&] { measured(settings); }),
             Contains("K: is 8, and the head drafts 7 tokens at once"));
}

TEST_CASE("a measurement is published prompt by prompt and depends on its settings alone") {
  HeadsSettings settings = files().settings("head@8:" + files().eagle3);
  settings.shown_prompt = 3;
  settings.shown_step = 2;
  std::vector<std::size_t> prompts;
  ordered_json last;
  Job job;
  compute(settings, job, [&](const HeadsSnapshot& snapshot) {
    prompts.push_back(snapshot.prompts.size());
    CHECK((snapshot.shown_prompt() == nullptr) == (prompts.back() < 3));
    last = to_json(snapshot);
  });
  CHECK(prompts == std::vector<std::size_t>{1, 2, 3});
  settings.threads = 2;
  CHECK(to_json(measured(settings)) == last);
  const Table table = to_table(measured(settings));
  CHECK(table.rows.size() > 20);
  CHECK_NOTHROW(to_csv(table));
}

TEST_CASE("acceptance head:PATH prints the study as JSON, as text and as a figure") {
  HeadsSettings settings = files().settings(files().eagle3);
  settings.num_speculative_tokens = 4;
  settings.seed = 9;
  settings.shown_prompt = 2;
  const HeadsSnapshot snapshot = measured(settings);
  const std::vector<std::string> command = command_arguments(settings);
  ordered_json expected = to_json(snapshot);
  expected["head"] = "head:" + files().eagle3;
  CHECK(without_envelope(printed_by(command)) == expected);
  const ProgramResult text = run_draftproof({command.begin() + 1, command.end()});
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  for (const char* const part : {"(eagle3)", "K = 4", "cats", "dogs", "Drift of the state",
                                 "expected calibration error", "Prompt 2 (cats)", "counts all target steps"})
    CHECK_THAT(text.out, Contains(part));
  PlottedRows bins, drift;
  for (std::size_t w = 0; w < snapshot.works.size(); ++w) {
    PlottedRows slots;
    for (std::size_t i = 0; i < snapshot.works[w].slots.size(); ++i)
      if (const SlotRate& slot = snapshot.works[w].slots[i]; slot.reached > 0)
        slots.push_back({static_cast<double>(i + 1) + 0.06 * static_cast<double>(w), slot.rate, slot.interval.low,
                         slot.interval.high});
    check_plotted(to_figure(snapshot), "work" + std::to_string(w), slots);
  }
  for (const ReliabilityBin& bin : snapshot.reliability.front().bins)
    if (bin.count > 0) bins.push_back({bin.mean_confidence, bin.rate, bin.interval.low, bin.interval.high});
  check_plotted(to_figure(snapshot), "bins", bins);
  for (const SlotDrift& slot : snapshot.drift)
    drift.push_back({static_cast<double>(slot.slot), slot.target_cosine.mean, slot.target_cosine.p10,
                     slot.target_cosine.p90, slot.own_cosine.mean, slot.own_cosine.p10, slot.own_cosine.p90});
  check_plotted(to_figure(snapshot), "drift", drift);
  if (!gnuplot_is_here()) return;
  CHECK_NOTHROW(write_figure(files().folder.file("heads.svg"), to_figure(snapshot)));
  CHECK_NOTHROW(write_figure(files().folder.file("dspark.svg"), to_figure(measured(files().settings(files().dspark)))));
}

TEST_CASE("the drafts that are measured are those of speculate") {
  for (const std::string& head : {files().eagle3, files().dspark}) {
    const HeadsSnapshot snapshot = measured(files().settings(head));
    const auto k = std::to_string(snapshot.num_speculative_tokens);
    const TemporaryFolder out;
    const ordered_json table = json_of(
        {"speculate", "--model", files().model, "--prompts", files().prompts, "--drafters", "head@file:" + head, "-k",
         k, "--policy", "fixed", "--temperatures", "1", "--max-tokens", "60", "--seed", "8", "--out", out.path()});
    REQUIRE(table.at("rows").size() == 2);
    const ordered_json works = to_json(snapshot).at("works");
    for (std::size_t i = 0; i < 2; ++i)
      for (const char* const key : {"work", "prompts", "steps", "drafts", "draft_tokens", "accepted", "tokens",
                                    "acceptance_length", "tokens_per_step"}) {
        INFO(key);
        CHECK(works[i + 1].at(key) == table.at("rows")[i].at(key));
      }
  }
}

TEST_CASE("what cannot be measured of a head is refused in one line") {
  const std::string head = "head:" + files().eagle3;
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"acceptance", head, "--model", files().model, "--prompts", files().prompts};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  check_refused(with({"constant:0.8"}), {"source", "expected a head alone"});
  check_refused(with({"--draft-cost", "0.2"}), {"--draft-cost: has no use with a head"});
  check_refused(with({"--show-prompt", "4"}), {"prompt to show", "expected a whole number in [1, 3]"});
  check_refused(with({"--max-tokens", "3", "--show-step", "40"}), {"step to show: is 40"});
  check_refused(with({"-k", "65"}), {"--num-speculative-tokens"});
  check_refused({"acceptance", "constant:0.8", "--per-work", "2"}, {"--per-work: has no use without a head"});
  check_refused({"acceptance", "head:" + files().folder.file("nothing"), "--model", files().model}, {"nothing"});
  check_refused({"acceptance", head, "--model", "ngram:3"}, {"head", "no layers"});
  check_refused({"acceptance", "head:" + shipped_head_path(), "--model", files().model}, {"eagle3.gguf", "width"});
  check_refused({"acceptance", head, "--model", files().model, "--prompts", files().model}, {"tiny.gguf"});
  HeadsSettings settings = files().settings(files().eagle3);
  settings.temperature = -1.0;
  CHECK_FALSE(error_of(ErrorKind::usage, [&] { measured(settings); }).empty());
}

TEST_CASE("without a head there is a note in place of a measurement") {
  const HeadsSnapshot snapshot = measured(HeadsSettings());
  CHECK_THAT(snapshot.note, Contains("No head is chosen"));
  CHECK(to_json(snapshot).size() == 1);
  CHECK(to_table(snapshot).rows.empty());
  CHECK(to_figure(snapshot).empty());
}

TEST_CASE("the repository's head is measured on the shipped model") {
  if (!shipped_model_at_full_speed()) return;
  HeadsSettings settings;
  settings.head = DRAFTPROOF_SOURCE_DIR "/experiments/heads/smollm2-eagle3/eagle3.gguf";
  settings.per_work = 1;
  settings.max_tokens = 32;
  const HeadsSnapshot snapshot = measured(settings);
  REQUIRE(snapshot.works.size() == 5);
  CHECK(snapshot.works[0].metrics.acceptance_length > 1.3);
  REQUIRE_FALSE(snapshot.drift.empty());
  CHECK(snapshot.drift[0].own_relative_l2.p90 == 0.0);
  CHECK(snapshot.drift.back().own_cosine.mean < 1.0);
}

}  // namespace
}  // namespace draftproof::testing
