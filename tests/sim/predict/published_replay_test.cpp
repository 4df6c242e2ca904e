#include "sim/predict/published_replay.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a replayed speedup is what one adds up by hand") {
  // One request: prompt of 2, outputs 1..5; recorded: nothing, then 2, 0, 1, 0 accepted.
  const AcceptanceRecording recording = parse_recording(
      "{\"prompt_token_ids\": [7, 8], \"generated_token_ids\": [1, 2, 3, 4, 5], \"acc_eagle\": {\"acc_len\": [1, 3, 1, "
      "2, "
      "1]}}\n",
      "test");
  const auto rows = replay_speedups(recording, {2});
  const auto row = [&](const char* policy) { return *std::ranges::find(rows, policy, &ReplayedSpeedup::policy); };
  const auto pass = [](double rows_of_batch, double cached) {
    return 5.886 + 0.021 * rows_of_batch + 39.3e-6 * cached + 1.2;
  };
  const auto draft = [](double rows_of_one, double cached) { return 2.135 + 0.84e-3 * rows_of_one + 2.4e-6 * cached; };
  // Two copies: the prompt, then four plain steps with 3 to 6 tokens cached each.
  const double plain = pass(4, 0) + pass(2, 6) + pass(2, 8) + pass(2, 10) + pass(2, 12);
  // As recorded, with three drafts: behind one token 2 are accepted and one comes on top; behind four, none is.
  const double aligned = pass(4, 0) + pass(8, 6) + draft(4, 6) + pass(8, 12) + draft(4, 12);
  CHECK(row("FIXED_3").aligned == Approx(plain / aligned));
  // As the authors place them: behind one token none, behind two 2.
  const double published = pass(4, 0) + pass(8, 6) + draft(4, 6) + pass(8, 8) + draft(4, 8);
  CHECK(row("FIXED_3").speedup == Approx(plain / published));
  CHECK(row("FIXED_3").acceptance_length == Approx(4.0 / 2));
  // The oracle verifies what is accepted alone, and drafts all the same.
  const double oracle = pass(4, 0) + pass(2, 6) + draft(1, 6) + pass(6, 8) + draft(3, 8);
  CHECK(row("ORACLE").speedup == Approx(plain / oracle));
}

TEST_CASE("published replays give the published speedups, with EAGLE on GSM8K") {
  const auto path = shared_data("acceptance_replay/combined_gsm8k.jsonl");
  if (!path) return;
  // SpecDecode-Bench's simulator, batch 1, 8 and 32 (to two digits).
  struct Published {
    const char* policy;
    std::vector<double> speedups;
  };
  const Published published[] = {{"FIXED_3", {1.81, 1.73, 1.52}}, {"ORACLE", {2.13, 2.06, 1.87}}};
  const auto rows = replay_speedups(read_recording(*path, "eagle"), {1, 8, 32});
  int compared = 0;
  for (const Published& p : published)
    for (const ReplayedSpeedup& row : rows) {
      if (row.policy != p.policy) continue;
      const double expected = p.speedups[row.batch == 1 ? 0 : row.batch == 8 ? 1 : 2];
      INFO(row.policy << " at batch " << row.batch);
      CHECK(row.speedup == Approx(expected).margin(0.006));  // to the digits that are published
      CHECK(row.aligned == Approx(expected).epsilon(0.03));
      ++compared;
    }
  CHECK(compared == 6);
  // An oracle is no worse than any fixed number.
  for (const ReplayedSpeedup& row : rows)
    for (const ReplayedSpeedup& other : rows)
      if (row.policy == "ORACLE" && other.batch == row.batch) CHECK(row.speedup >= other.speedup);
}

TEST_CASE("the project's prompt lookup proposes what the recorded n-gram drafter did") {
  const auto path = shared_data("acceptance_replay/combined_gsm8k.jsonl");
  if (!path) return;
  const LookupComparison found = compare_lookup(read_recording(*path, "ngram"), *path);
  CHECK(found.places > 40'000);
  CHECK(static_cast<double>(found.equal) >= 0.99 * static_cast<double>(found.places));
  CHECK(found.own_mean == Approx(found.recorded_mean).epsilon(0.02));
  for (const LookupComparison::Run& run : found.runs) CHECK(run.own == Approx(run.recorded).epsilon(0.01));
  CHECK(found.draft_share > 0.05);
  CHECK(found.draft_share < 0.6);
}

TEST_CASE("a lookup is compared place by place, and needs token ids") {
  // The text 1 2 3 4 1 2 3 | 4 1 2 3 9: behind 1 2 3 comes 4, and the draft goes on 1 2 3.
  const AcceptanceRecording recording = parse_recording(
      "{\"prompt_token_ids\": [1, 2, 3, 4, 1, 2, 3], \"generated_token_ids\": [4, 1, 2, 3, 9], \"acc_ngram\": "
      "{\"acc_len\": "
      "[5, 1, 3, 2, 1]}}\n",
      "test");
  const LookupComparison found = compare_lookup(recording, "test");
  CHECK(found.places == 5);
  // Ours: 4 accepted at the first place (4 1 2 3, then 4 where 9 comes), then 3, 2, 1 and none behind 9.
  CHECK(found.own_mean == Approx((4 + 3 + 2 + 1 + 0) / 5.0));
  CHECK(found.recorded_mean == Approx((4 + 0 + 2 + 1 + 0) / 5.0));
  CHECK(found.equal == 4);
  CHECK(error_of(ErrorKind::input, [] {
          compare_lookup(parse_recording("{\"acc_ngram\": {\"acc_len\": [1]}}\n", "r"), "r");
        }) == "r: has no token ids; expected prompt_token_ids and generated_token_ids");
}
