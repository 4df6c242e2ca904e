// Totals of importers against those of the numbers that the text was written from: many windows, servers, dumps, rows.
#include <cstdio>

#include "sim/import/read_acceptance.hpp"
#include "sim/import/speculate_table.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr int kPositions = 3;

struct Counts {
  std::int64_t drafts = 0, draft_tokens = 0, accepted = 0;
  std::vector<std::int64_t> at = std::vector<std::int64_t>(kPositions);

  Counts& operator+=(const Counts& other) {
    drafts += other.drafts, draft_tokens += other.draft_tokens, accepted += other.accepted;
    for (std::size_t j = 0; j < at.size(); ++j) at[j] += other.at[j];
    return *this;
  }
};

Counts random_counts(std::mt19937& random) {
  Counts counts;
  counts.drafts = 10 + static_cast<std::int64_t>(random() % 190);
  counts.draft_tokens = counts.drafts * kPositions;
  std::int64_t most = counts.drafts;
  for (std::int64_t& count : counts.at) {
    count = most - static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most / 3 + 1));
    counts.accepted += most = count;
  }
  return counts;
}

std::string fixed(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

double rate(std::int64_t count, std::int64_t of) {
  return static_cast<double>(count) / static_cast<double>(of);
}

void check(const AcceptanceData& data, const Counts& total) {
  CHECK(data.drafts == total.drafts);
  CHECK(data.draft_tokens == total.draft_tokens);
  CHECK(data.accepted_tokens == total.accepted);
  CHECK(data.acceptance_length == Approx(1.0 + rate(total.accepted, total.drafts)).epsilon(1e-12));
  REQUIRE(data.survival.size() == kPositions);
  for (std::size_t j = 0; j < kPositions; ++j)
    CHECK(data.survival[j] == Approx(rate(total.at[j], total.drafts)).epsilon(1e-12));
}

}  // namespace

TEST_CASE("totals of a vLLM log are those of its windows") {
  std::mt19937 random(1);
  for (int windows = 1; windows < 12; ++windows) {
    Counts total;
    std::string text;
    for (int i = 0; i < windows; ++i) {
      const Counts window = random_counts(random);
      total += window;
      text += "SpecDecoding metrics: Mean acceptance length: " + fixed(1.0 + rate(window.accepted, window.drafts), 2) +
              ", Accepted: " + std::to_string(window.accepted) +
              " tokens, Drafted: " + std::to_string(window.draft_tokens) + " tokens, Per-position acceptance rate: ";
      for (std::size_t j = 0; j < kPositions; ++j)
        text += (j == 0 ? "" : ", ") + fixed(rate(window.at[j], window.drafts), 3);
      text += ", Avg Draft acceptance rate: " + fixed(100 * rate(window.accepted, window.draft_tokens), 1) + "%\n";
    }
    const AcceptanceData data = parse_acceptance(text, "server.log");
    CHECK(data.windows == windows);
    check(data, total);
  }
}

TEST_CASE("totals of Prometheus text are those of its engines, over restarts and repeated dumps") {
  std::mt19937 random(2);
  for (int engines = 1; engines < 5; ++engines) {
    Counts total;
    std::int64_t generated = 0, first_tokens = 0;
    std::string text;
    for (int engine = 0; engine < engines; ++engine) {
      const std::string labels = "{engine=\"" + std::to_string(engine) + "\",model_name=\"m\"";
      // A dump, a later one of the same server, and one after a restart.
      Counts counts = random_counts(random);
      for (int dump = 0; dump < 3; ++dump) {
        if (dump == 1) counts += random_counts(random);
        if (dump == 2) {
          counts = random_counts(random);
          // Each counter must be seen to begin anew.
          for (std::int64_t* count : {&counts.drafts, &counts.draft_tokens, &counts.accepted}) *count /= 10;
          counts.accepted = 0;
          for (std::int64_t& count : counts.at) counts.accepted += count = std::min(count / 10, counts.drafts);
          counts.draft_tokens = counts.drafts * kPositions;
        }
        if (dump > 0) total += counts;
        const auto sample = [&](const std::string& name, std::int64_t value, const std::string& label = "") {
          text += "vllm:" + name + "_total" + labels + label + "} " + std::to_string(value) + ".0\n";
        };
        sample("spec_decode_num_drafts", counts.drafts);
        sample("spec_decode_num_draft_tokens", counts.draft_tokens);
        sample("spec_decode_num_accepted_tokens", counts.accepted);
        for (std::size_t j = 0; j < kPositions; ++j)
          sample("spec_decode_num_accepted_tokens_per_pos", counts.at[j], ",position=\"" + std::to_string(j) + "\"");
        // Three steps in four have no draft.
        const std::int64_t tokens = 4 * counts.drafts + counts.accepted + 5;
        sample("generation_tokens", tokens);
        text += "vllm:time_to_first_token_seconds_count" + labels + "} 5\n";
        if (dump > 0) generated += tokens;
      }
      first_tokens += 5;
    }
    const AcceptanceData data = parse_acceptance(text, "metrics.txt");
    check(data, total);
    REQUIRE(data.draft_share);
    CHECK(*data.draft_share == Approx(rate(total.drafts, generated - total.accepted - first_tokens)).epsilon(1e-12));
  }
}

TEST_CASE("totals of speculate's table are those of its rows") {
  std::mt19937 random(3);
  nlohmann::json rows = nlohmann::json::array();
  Counts total;
  std::int64_t steps = 0;
  for (int i = 0; i < 9; ++i) {
    const Counts counts = random_counts(random);
    const std::int64_t of = counts.drafts + 7 * i;
    total += counts;
    steps += of;
    nlohmann::json row{{"drafter", "suffix"},
                       {"k", kPositions},
                       {"tree", nullptr},
                       {"temperature", 0.0},
                       {"steps", of},
                       {"drafts", counts.drafts},
                       {"draft_tokens", counts.draft_tokens},
                       {"accepted", counts.accepted}};
    for (const std::int64_t count : counts.at) {
      row["acceptance_by_position"]["unconditional"].push_back(rate(count, of));
      row["acceptance_by_position"]["unconditional_standard_error"].push_back(0.01);
    }
    rows.push_back(row);
  }
  const auto found = acceptances_of_speculate({{"rows", rows}, {"left_out", nlohmann::json::array()}}, "t.json");
  REQUIRE(found.size() == 1);
  check(found[0].data, total);
  CHECK(found[0].data.windows == 9);
  CHECK(*found[0].data.draft_share == Approx(rate(total.drafts, steps)).epsilon(1e-12));
}
