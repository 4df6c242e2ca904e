// What the regression's cases cover: every value of every argument, every two of them together.
#include "gpu/regress/coverage.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "gpu/device_memory.hpp"
#include "gpu/regress/cases.hpp"
#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/run_program.hpp"

namespace draftproof::regress {
namespace {

using Catch::Contains;

TEST_CASE("in a covering array every two values of every two arguments meet, and no two that must not") {
  const std::vector<ArgumentValues> arguments = {{"a", {"0", "1", "2"}},
                                                 {"b", {"0", "1"}},
                                                 {"c", {"0", "1", "2", "3"}},
                                                 {"d", {"0", "1", "2"}},
                                                 {"e", {"0", "1"}}};
  const CanMeet can_meet = [](std::size_t i, std::size_t v, std::size_t j, std::size_t w) {
    const bool is_ac = i == 0 && j == 2 && v == 2 && w > 1;
    const bool is_ca = i == 2 && j == 0 && w == 2 && v > 1;
    return !is_ac && !is_ca;
  };
  const auto rows = covering_array(arguments, can_meet);
  CHECK(rows == covering_array(arguments, can_meet));
  CHECK(rows.size() >= 10);  // pairs of a and c that may meet
  CHECK(rows.size() <= 16);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for (std::size_t j = i + 1; j < arguments.size(); ++j) {
      for (std::size_t v = 0; v < arguments[i].values.size(); ++v) {
        for (std::size_t w = 0; w < arguments[j].values.size(); ++w) {
          const bool meet =
              std::any_of(rows.begin(), rows.end(), [&](const auto& r) { return r[i] == v && r[j] == w; });
          CHECK(meet == can_meet(i, v, j, w));
        }
      }
    }
  }
}

TEST_CASE("a pair that could meet in no assignment is an error that names it") {
  const std::vector<ArgumentValues> arguments = {{"a", {"0", "1"}}, {"b", {"0", "1"}}, {"c", {"0", "1"}}};
  // a = 1 rules out every value of c.
  const CanMeet can_meet = [](std::size_t i, std::size_t v, std::size_t j, std::size_t w) {
    return !(i == 0 && j == 2 && v == 1) && !(i == 2 && j == 0 && w == 1);
  };
  CHECK_THAT(error_of(ErrorKind::internal, [&] { covering_array(arguments, can_meet); }), Contains("a and b"));
}

void check_coverage(const std::vector<RegressCase>& covering) {
  const std::vector<CallCoverage> coverage = coverage_of(covering);
  CHECK(coverage.size() == call_names().size());
  for (const CallCoverage& call : coverage) {
    INFO(call.call);
    CHECK(call.beyond_default == call.arguments);
    CHECK(call.pairs_met == call.pairs);
    CHECK(call.pairs > 0);
    for (const std::string& missing : call.missing) {
      INFO(missing);
      CHECK(missing.empty());
    }
  }
}

void check_few_are_refused(const std::vector<RegressCase>& covering) {
  std::int64_t rows = 0;
  std::int64_t refused = 0;
  for (const RegressCase& one : covering) {
    INFO(one.name);
    const auto memory = device::memory_of(DRAFTPROOF_REFERENCE);
    draftproof_settings settings{};
    settings.executor = DRAFTPROOF_REFERENCE;
    CaseRun run(*memory, settings);
    one.run(run);
    const std::vector<Output> outputs = run.outputs();
    const auto status =
        std::find_if(outputs.begin(), outputs.end(), [](const Output& output) { return output.name == "status"; });
    REQUIRE(status != outputs.end());
    std::vector<std::int32_t> codes(status->bytes.size() / sizeof(std::int32_t));
    std::memcpy(codes.data(), status->bytes.data(), status->bytes.size());
    const auto bad = std::count_if(codes.begin(), codes.end(), [](std::int32_t code) { return code != 0; });
    CHECK(bad < static_cast<std::int64_t>(codes.size()));
    rows += static_cast<std::int64_t>(codes.size());
    refused += bad;
  }
  CHECK(refused * 5 < rows);
}

void check_far_cases(const std::vector<RegressCase>& cases) {
  for (const std::string& call : call_names()) {
    INFO(call);
    const bool has_one = std::any_of(cases.begin(), cases.end(), [&](const RegressCase& c) {
      return c.name.rfind(call, 0) == 0 && c.name.find("beyond_2_32_elements") != std::string::npos;
    });
    CHECK(has_one == (call != "tree_mask"));
  }
}

// One test for three claims, because listing the cases makes the inputs of many.
TEST_CASE("every two values of every two arguments meet in a case that is not refused, and there are far cases") {
  std::vector<RegressCase> cases = cases_named("/");
  check_far_cases(cases);
  std::erase_if(cases, [](const RegressCase& c) { return c.name.find("/covering_") == std::string::npos; });
  check_coverage(cases);
  check_few_are_refused(cases);
}

TEST_CASE("coverage says what is missing") {
  std::vector<RegressCase> cases = cases_named("mass_pass/covering_");
  std::erase_if(cases, [](const RegressCase& one) { return arguments_of(one)[0].value("temperature") == "given"; });
  const CallCoverage coverage = coverage_of(cases).front();
  CHECK(coverage.beyond_default == coverage.arguments - 1);
  CHECK(coverage.pairs_met < coverage.pairs);
  CHECK(std::count(coverage.missing.begin(), coverage.missing.end(), "temperature is never anything but absent") == 1);
}

// The names of the fields of a struct of draftproof.h.
std::vector<std::string> fields_of(const std::string& header, const std::string& name) {
  const std::size_t end = header.find("} " + name + ";");
  REQUIRE(end != std::string::npos);
  const std::size_t begin = header.rfind("typedef struct {", end);
  const std::string body =
      std::regex_replace(header.substr(begin, end - begin), std::regex("/\\*[^*]*\\*+([^/*][^*]*\\*+)*/"), "");
  std::vector<std::string> fields;
  const std::regex field("(\\w+);");
  for (std::sregex_iterator it(body.begin(), body.end(), field), last; it != last; ++it) fields.push_back((*it)[1]);
  REQUIRE_FALSE(fields.empty());
  return fields;
}

TEST_CASE("the coverage knows every field of every argument struct of draftproof.h") {
  const std::string header = testing::read_whole_file(DRAFTPROOF_SOURCE_DIR "/gpu/draftproof.h");
  // Arrays without which there is no call, and what comes with another argument: its length, its offsets.
  const std::set<std::string> settled = {"data",
                                         "workspace",
                                         "workspace_bytes",
                                         "status",
                                         "tokens",
                                         "ranks",
                                         "sampled",
                                         "seed",
                                         "step",
                                         "scale",
                                         "out",
                                         "tile_sum",
                                         "tile_exponent",
                                         "row_exponent",
                                         "row_total",
                                         "draft_tokens",
                                         "draft_tokens_total",
                                         "cu_num_draft_tokens",
                                         "parents",
                                         "num_accepted",
                                         "depths",
                                         "mask",
                                         "slots",
                                         "kv_len",
                                         "freed_slots",
                                         "allowed_mask",
                                         "allowed_ids_count",
                                         "allowed_offsets",
                                         "history_tokens_count",
                                         "history_offsets",
                                         "history_len_max",
                                         "row_draft_tokens_count",
                                         "row_draft_begin",
                                         "row_draft_len",
                                         "bad_word_tokens_count",
                                         "bad_word_offsets",
                                         "bad_word_sequences_count",
                                         "bad_word_sequences",
                                         "stop_ids_count",
                                         "stop_offsets",
                                         "bias_values",
                                         "bias_count",
                                         "bias_offsets",
                                         "probabilities"};
  const std::map<std::string, std::string> structs = {{"parameters", "draftproof_parameters"},
                                                      {"draft_parameters", "draftproof_parameters"},
                                                      {"constraints", "draftproof_constraints"},
                                                      {"randomness", "draftproof_randomness"}};
  CHECK(fields_of(header, "draftproof_rows") == std::vector<std::string>{"data", "row_stride", "dtype"});
  // What a call has of a shared struct, and another has not.
  const auto is_absent = [](const std::string& call, const std::string& field) {
    const bool is_verifier = call.rfind("verify", 0) == 0;
    if (is_verifier && field == "constraints.row_draft_tokens") return true;  // refused: verifiers know the drafts
    if (field.rfind("draft_parameters.", 0) == 0)                             // refused: temperature and filters only
      return field.find("penalty") != std::string::npos || field.find("guidance") != std::string::npos ||
             field.find("nan") != std::string::npos;
    return call != "verify_tree" && is_verifier && (field == "path" || field == "tree_rule");
  };
  for (const std::string& call : call_names()) {
    std::set<std::string> known;
    for (const ArgumentValues& argument : arguments_of(call)) known.insert(argument.name);
    std::vector<std::string> wanted;
    const std::string of = call.rfind("verify", 0) == 0 ? "verify" : call;
    for (const std::string& field : fields_of(header, "draftproof_" + of + "_arguments")) {
      if (const auto nested = structs.find(field); nested != structs.end()) {
        for (const std::string& inner : fields_of(header, nested->second))
          if (!settled.contains(inner)) wanted.push_back(field + "." + inner);
      } else if (std::set<std::string>{"logits", "unconditional", "conditional", "target", "proposal"}.contains(
                     field)) {
        wanted.insert(wanted.end(), {field + ".row_stride", field + ".dtype"});
      } else if (!settled.contains(field) || known.contains(field)) {
        wanted.push_back(field);
      }
    }
    // The log-probabilities of that call are what it is for.
    if (call == "logprobs") std::erase(wanted, "logprobs");
    for (const std::string& field : wanted) {
      INFO(call << ", " << field);
      CHECK(known.contains(field) != is_absent(call, field));
    }
  }
}

TEST_CASE("regress --coverage prints what is covered and fails where something is not") {
  const auto run = [](const std::string& filter) {
    return testing::run_draftproof({"regress", "--coverage", "--filter", filter});
  };
  const testing::ProgramResult all = run("guidance/covering_");
  INFO(all.out << all.err);
  CHECK(all.exit_code == 0);
  CHECK_THAT(all.out, Contains("guidance") && !Contains("missing"));
  const testing::ProgramResult one = run("guidance/covering_00");
  CHECK(one.exit_code == 1);
  CHECK_THAT(one.out, Contains("missing: rows is never anything but several"));
}

}  // namespace
}  // namespace draftproof::regress
