// Published tables and recordings, where they are at hand.
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/replay.hpp"
#include "sim/csv.hpp"
#include "sim/import/rates_csv.hpp"
#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

TEST_CASE("published rates give the acceptance length that is published beside them") {
  const auto path = shared_data("per_position.csv");
  if (!path) return;
  const CsvTable table = read_csv(*path);
  int read = 0;
  int refused = 0;
  int compared = 0;
  for (const CsvRow& csv : table.rows) {
    CsvTable one;
    one.columns = table.columns;
    one.rows = {csv};
    try {
      const RateRow row = read_rate_rows(one, *path).front();
      ++read;
      if (row.window.survival.empty() || !row.window.acceptance_length) continue;
      if (std::ssize(row.window.survival) < row.draft_len) continue;
      ++compared;
      INFO("line " << row.line);
      CHECK(acceptance_length_of(row.window.survival) == Approx(*row.window.acceptance_length).margin(0.021));
    } catch (const Error& error) {
      // The one vector of rates by rank.
      CHECK_THAT(error.what(), Contains("rates of siblings by rank"));
      ++refused;
    }
  }
  CHECK(read >= 1280);
  CHECK(refused <= 1);
  CHECK(compared >= 1200);
}

TEST_CASE("a replay of published recordings takes the published steps") {
  // per_position.csv, SpecDecode-Bench replayed: steps from the first token on (delay 1), drafts, accepted, K.
  struct Published {
    const char* file;
    const char* drafter;
    std::int32_t drafts;
    double length;
    std::vector<double> survival;
  };
  const Published rows[] = {
      {"cnn", "eagle", 3, 2.3285, {0.64753, 0.41248, 0.2685}},
      {"cnn", "ngram", 5, 1.3778, {0.12321, 0.08946, 0.0683, 0.05387, 0.04295}},
      {"gsm8k", "eagle", 5, 2.6655, {0.66674, 0.43095, 0.27394}},
      {"instructcoder", "ngram", 3, 2.0277, {0.37231, 0.34057, 0.31478}},
      {"sharegpt", "eagle", 3, 2.2542, {0.62151, 0.38111, 0.25157}},
  };
  for (const Published& row : rows) {
    const auto path = shared_data(std::string("acceptance_replay/combined_") + row.file + ".jsonl");
    if (!path) return;
    const Replay replay(read_recording(*path, row.drafter), 1);
    const std::vector<double> survival = replay.survival_in_run(row.drafts, row.drafts);
    CHECK(acceptance_length_of(survival) == Approx(row.length).margin(6e-5));
    for (std::size_t i = 0; i < row.survival.size(); ++i) CHECK(survival[i] == Approx(row.survival[i]).margin(6e-6));
  }
}
