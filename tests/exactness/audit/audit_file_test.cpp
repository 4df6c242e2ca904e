#include "exactness/audit/audit_file.hpp"

#include "exactness/audit/audit.hpp"
#include "exactness/audit/filter_check.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/test.hpp"

namespace {

TraceBuilder draws_file() {
  TraceBuilder file;
  file.set<float>("target_logits", {2, 3}, {0.f, 1.f, 2.f, 3.f, 4.f, 5.f});
  file.set<float>("temperature", {0.5f, 2.0f});
  file.set<std::int32_t>("samples", {2, 0, 1, 2, 2});
  file.set<std::int32_t>("group", {1, 0, 0, 1, 0});
  return file;
}

TraceBuilder steps_file() {
  TraceBuilder file;
  file.set<float>("target_probs", {2, 3, 2}, std::vector<float>(12, 0.5f));
  file.set<float>("draft_probs", {2, 2, 2}, std::vector<float>(8, 0.5f));
  file.set<std::int32_t>("draft_tokens", {2, 2}, {0, 1, 1, -1});
  file.set<std::int32_t>("output_tokens", {2, 3}, {0, 1, 1, 0, -1, -1});
  file.set<std::int32_t>("num_accepted", {2, 0});
  return file;
}

// Top-p of 0.5 over two rows; the second one is left whole.
TraceBuilder filters_file() {
  TraceBuilder file;
  file.set<float>("target_logits", {2, 3}, {0.f, 1.f, 2.f, 2.f, 1.f, 0.f});
  file.set<float>("top_p", {0.5f, 0.5f});
  file.set<float>("filtered_logits", {2, 3}, {-1e30f, -1e30f, 2.f, 2.f, 1.f, 0.f});
  return file;
}

// Two trees, 0 and 1 after the context, 2 after the first of them; and one draft alone.
TraceBuilder trees_file() {
  TraceBuilder file;
  file.set<float>("target_probs", {6, 3}, std::vector<float>(18, 1.0f / 3.0f));
  file.set<float>("draft_probs", {6, 3}, std::vector<float>(18, 1.0f / 3.0f));
  file.set<std::int32_t>("draft_tokens", {0, 1, 2, 1});
  file.set<std::int32_t>("draft_parents", {-1, -1, 0, -1});
  file.set<std::int64_t>("cu_num_draft_tokens", {3, 4});
  file.set<std::int32_t>("output_tokens", {2, 3}, {0, 2, 1, 2, -1, -1});
  file.set<std::int32_t>("path", {2, 2}, {0, 2, -1, -1});
  return file;
}

// A sample looks into the file it was read from, which stays mapped after its folder is gone.
template <class Sample>
Sample read_as(const TraceBuilder& file) {
  const TemporaryFolder folder;
  return std::get<Sample>(read_audit_file(file.write(folder.file("f.safetensors")), {}));
}

std::string error_in(const TraceBuilder& file) {
  const TemporaryFolder folder;
  file.write(folder.file("f.safetensors"));
  return error_of(ErrorKind::input, [&] { read_audit_file(folder.file("f.safetensors"), {}); });
}

void contains(const std::string& text, const std::string& part) {
  CHECK_THAT(text, Contains(part));
}

struct Csv {
  std::string counts = "group,token,count\n0,0,5\n0,1,7\n";
  std::string probs = "group,token,prob\n0,0,0.5\n0,1,0.5\n";
};

DrawSample read(const Csv& csv) {
  const TemporaryFolder folder;
  write_whole_file(folder.file("counts.csv"), csv.counts);
  write_whole_file(folder.file("probs.csv"), csv.probs);
  AuditFileOptions options;
  options.probs_path = folder.file("probs.csv");
  return std::get<DrawSample>(read_audit_file(folder.file("counts.csv"), options));
}

std::string error_in(const Csv& csv) {
  return error_of(ErrorKind::input, [&] { read(csv); });
}

TEST_CASE("single draws are counted by group") {
  const auto sample = read_as<DrawSample>(draws_file());
  REQUIRE(sample.distributions.size() == 2);
  CHECK(sample.vocab_size() == 3);
  CHECK(sample.distributions[1].parameters.temperature == 2.0f);
  CHECK(element_of(sample.distributions[1].target.row(0), 1) == 4.0f);
  REQUIRE(sample.counts_of(0).size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(sample.counts_of(0)[i].token == static_cast<Token>(i));
    CHECK(sample.counts_of(0)[i].count == 1);
  }
  REQUIRE(sample.counts_of(1).size() == 1);
  CHECK(sample.counts_of(1)[0].token == 2);
  CHECK(sample.counts_of(1)[0].count == 2);
}

TEST_CASE("without groups all draws have the one distribution") {
  TraceBuilder file;
  file.set<float>("target_probs", {1, 2}, {0.25f, 0.75f}).set<std::int64_t>("samples", {1, 1, 0});
  const auto sample = read_as<DrawSample>(file);
  CHECK(sample.distributions[0].target_is_probabilities);
  CHECK(sample.counts_of(0)[1].count == 2);
}

TEST_CASE("malformed draws name tensor and entry") {
  contains(error_in(draws_file().drop("group")),
           "tensor 'group': is missing; expected [n], as there are 2 rows of the distribution");
  contains(error_in(draws_file().set<std::int32_t>("group", {1, 0, 0, 2, 0})), "'group': entry 3 is 2");
  contains(error_in(draws_file().set<std::int32_t>("group", {1, 0})), "[n] = [5]");
  // A token that there is not is the sampler's failure, which the audit judges.
  const Audit audit = audit_draws(read_as<DrawSample>(draws_file().set<std::int32_t>("samples", {2, 0, 3, 2, 2})), {});
  CHECK(audit.verdict == AuditVerdict::biased);
  CHECK(rejects(audit, "well_formed"));
  CHECK(test_of(audit, "well_formed").n == 5);
  contains(error_in(draws_file().set<float>("samples", {1.f, 1.f, 1.f, 1.f, 1.f})), "has dtype F32");
  contains(error_in(draws_file().set<std::int32_t>("draft_tokens", {1})), "'draft_tokens': is not a tensor");
  contains(error_in(draws_file().set<float>("tempreature", {1.0f, 1.0f})), "'tempreature': is not a tensor");
}

TEST_CASE("steps hold what was emitted beside the trace, and where they were made") {
  const auto sample = read_as<StepSample>(steps_file());
  REQUIRE(sample.requests.size() == 2);
  CHECK(sample.emitted(0).size() == 3);
  CHECK(sample.emitted(1).size() == 1);
  CHECK(sample.emitted(1)[0] == 0);
  CHECK_FALSE(sample.groups);
  CHECK_FALSE(sample.at);
  const auto placed =
      read_as<StepSample>(steps_file().set<std::int32_t>("group", {7, 7}).set<std::int32_t>("row", {4, 5}));
  CHECK(placed.groups == std::vector<std::int64_t>{7, 7});
  REQUIRE(placed.at.has_value());
  CHECK(placed.at->row == std::vector<std::int64_t>{4, 5});
}

TEST_CASE("what was emitted can lie in a file of its own and histories keep their name") {
  const TemporaryFolder folder;
  TraceBuilder trace = steps_file().drop("num_accepted");
  trace.set<std::int32_t>("output_tokens", {1, 0, 1}).set<std::int32_t>("cu_output_tokens", {2, 3});
  TraceBuilder outputs;
  outputs.set<std::int32_t>("output_tokens", {2, 3}, {0, 0, -1, 0, -1, -1});
  AuditFileOptions options;
  options.outputs_path = outputs.write(folder.file("out.safetensors"));
  const auto sample = std::get<StepSample>(read_audit_file(trace.write(folder.file("f.safetensors")), options));
  CHECK(sample.requests[0].output_tokens.size() == 2);
  CHECK(sample.emitted(0).size() == 2);
  CHECK(sample.emitted(0)[1] == 0);
}

TEST_CASE("malformed steps name tensor and request") {
  contains(error_in(steps_file().drop("output_tokens")), "tensor 'output_tokens': is missing");
  contains(error_in(steps_file().drop("output_tokens")), "here or in a file that --outputs names");
  contains(error_in(steps_file().set<std::int32_t>("group", {1})), "[B]");
  contains(error_in(steps_file().set<std::int32_t>("row", {1})), "[B]");
  contains(error_in(steps_file().set<std::int32_t>("cu_output_tokens", {0, 0})), "--outputs");
}

TEST_CASE("what no verifier may emit is kept as a failure of the verifier, and the other steps are read") {
  const auto fails = [&](std::vector<std::int32_t> tokens, std::size_t left, const std::string& what) {
    const StepSample sample =
        read_as<StepSample>(steps_file().drop("num_accepted").set<std::int32_t>("output_tokens", {2, 3}, tokens));
    CHECK(sample.requests.size() == left);
    CHECK(sample.begins.size() == left + 1);
    REQUIRE(sample.malformed.count == static_cast<std::int64_t>(2 - left));
    contains(sample.malformed.first.front().what, what);
  };
  fails({0, -1, 1, 0, -1, -1}, 1, "request 0 has -1 (padding) at 1 and tokens after it");
  fails({0, 1, 1, -1, -1, -1}, 1, "request 1 has 0 tokens and 1 drafts");
  fails({0, 1, 1, 1, 0, 1}, 1, "request 1 has 3 tokens and 1 drafts");
  fails({0, 0, 1, 0, -1, -1}, 1, "request 0 has token 0 at 1 where the draft is 1");
  fails({0, 1, 70000, -2, -1, -1}, 0, "request 0 has token 70000; expected ids in [0, ");
  const StepSample counted = read_as<StepSample>(steps_file().set<std::int32_t>("num_accepted", {2, 1}));
  REQUIRE(counted.malformed.count == 1);
  CHECK(counted.malformed.first.front().index == 1);
  contains(counted.malformed.first.front().what, "request 1 has num_accepted 1 and 1 output tokens");
}

TEST_CASE("options that a file has no use for are errors") {
  const TemporaryFolder folder;
  const std::string draws = draws_file().write(folder.file("d.safetensors"));
  AuditFileOptions outputs;
  outputs.outputs_path = draws;
  contains(error_of(ErrorKind::usage, [&] { read_audit_file(draws, outputs); }), "--outputs");
  contains(error_of(ErrorKind::usage, [&] { read_audit_file("counts.csv", {}); }), "--probs: is missing");
  AuditFileOptions probs;
  probs.probs_path = "p.csv";
  contains(error_of(ErrorKind::usage, [&] { read_audit_file(draws, probs); }), "--probs: goes with counts as CSV");
}

TEST_CASE("counts as text are read whatever the order of columns and lines") {
  const DrawSample sample = read(
      {"count, token ,group\r\n5,2,9\n\n1,0,4\r\n2,2,9\n0,1,4\n", "group,token,prob\n9,2,0.25\n4,0,1\n9,0,7.5e-1\n"});
  CHECK(sample.group_ids == std::vector<std::int64_t>{4, 9});
  CHECK(sample.vocab_size() == 3);
  REQUIRE(sample.counts_of(0).size() == 1);
  CHECK(sample.counts_of(1)[0].token == 2);
  CHECK(sample.counts_of(1)[0].count == 7);
  CHECK(element_of(sample.distributions[1].target.row(0), 0) == 0.75f);
  CHECK(element_of(sample.distributions[1].target.row(0), 1) == 0.0f);
  const DrawSample plain = read({"token,count\n1,3\n", "token,prob\n0,0.5\n1,0.5\n"});
  CHECK(plain.group_ids == std::vector<std::int64_t>{0});
  // A token without a probability has probability 0, and is no error: the audit shall find it.
  CHECK(read({"token,count\n7,3\n", "token,prob\n0,1\n"}).vocab_size() == 8);
}

TEST_CASE("text with a byte-order mark is read as the same text without it, and UTF-16 is refused by name") {
  const std::string mark = "\xef\xbb\xbf";
  const DrawSample marked = read({mark + "token,count\r\n1,3\r\n", mark + "token,prob\r\n0,0.5\r\n1,0.5\r\n"});
  const DrawSample plain = read({"token,count\n1,3\n", "token,prob\n0,0.5\n1,0.5\n"});
  CHECK(marked.counts[0].count == plain.counts[0].count);
  CHECK(marked.group_ids == plain.group_ids);
  for (const std::string& other : {std::string("\xff\xfet\0o\0", 6), std::string("\xfe\xff\0t\0o", 6)})
    contains(error_in(Csv{.counts = other}), "counts.csv: is UTF-16, as its byte-order mark says; expected UTF-8");
}

TEST_CASE("malformed text names file and line") {
  const std::string head = "group,token,count\n";
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "is empty"},
           {head + "0,0,5\n0,1\n", "counts.csv: line 3: has 2 fields"},
           {head + "0,0,-5\n", "line 2: count is '-5'"},
           {head + "0,0,5.5\n", "line 2: count is '5.5'"},
           {head + "0,x,5\n", "line 2: token is 'x'"},
           {head + "0,99999999,5\n", "line 2: token is '99999999'"},
           {head + "1,0,5\n", "line 2: group 1 has no probabilities"},
           {"group,token,prob\n0,0,5\n", "line 1: does not know the column 'prob'"},
           {"0,0,5\n", "line 1: does not know the column '0'"},
           {"group,token\n0,0\n", "line 1: does not name the columns"},
           {"token,token,count\n0,0,1\n", "has twice the column 'token'"},
           {"token,count\n0,1000000000000\n0,1000000000000\n",
            "counts.csv: line 3: the counts up to here add up to 2000000000000; expected at most 1000000000000"}})
    contains(error_in(Csv{.counts = text}), part);
  for (const auto& [rows, part] : std::vector<std::pair<std::string, std::string>>{
           {"0,0,1.5\n", "probs.csv: line 2: prob is '1.5'"},
           {"0,0,nan\n", "line 2: prob is 'nan'"},
           {"0,0,0.5\n0,1,0.25\n0,0,0.25\n", "line 4: gives token 0 of group 0 again"},
           {"0,0,0.5\n0,1,0.4\n", "group 0 sum to 0.9"}})
    contains(error_in(Csv{.probs = "group,token,prob\n" + rows}), part);
}

TEST_CASE("steps over trees are read with their paths") {
  const auto sample = read_as<StepSample>(trees_file());
  REQUIRE(sample.requests.size() == 2);
  CHECK(sample.requests[0].draft.parents == std::vector<std::int32_t>{-1, -1, 0});
  CHECK(sample.requests[0].proposal.rows == 4);
  CHECK(std::ranges::equal(sample.emitted(0), std::vector<Token>{0, 2, 1}));
  CHECK(std::ranges::equal(sample.reported_path(0), std::vector<std::int32_t>{0, 2}));
  CHECK(sample.emitted(1).size() == 1);
  CHECK(sample.reported_path(1).empty());
  CHECK_FALSE(read_as<StepSample>(trees_file().drop("path")).path_nodes.has_value());
}

TEST_CASE("emitted tokens that a tree does not have are failures, paths that it does not have are errors") {
  const auto malformed = [](const TraceBuilder& trees) {
    return read_as<StepSample>(trees).malformed.first.at(0).what;
  };
  TraceBuilder file = trees_file();
  file.set<std::int32_t>("output_tokens", {2, 3}, {0, 1, 1, 2, -1, -1});
  contains(malformed(file),
           "request 0 has token 1 at 1, and no draft node after the tokens before it holds that token");
  // The request behind it keeps what is said of it.
  file.set<std::int32_t>("group", {5, 7}).set<std::int32_t>("row", {3, 4});
  const auto behind = read_as<StepSample>(file);
  CHECK(behind.groups == std::vector<std::int64_t>{7});
  CHECK(behind.at->row == std::vector<std::int64_t>{4});
  file.set<std::int32_t>("output_tokens", {2, 4}, {0, 2, 1, 1, 2, -1, -1, -1});
  contains(malformed(file), "request 0 has 4 tokens and a tree of depth 2; expected 1 to depth + 1 tokens");
  file = trees_file();
  file.set<std::int32_t>("path", {2, 2}, {1, 2, -1, -1});
  contains(error_in(file),
           "'path': request 0, entry 1 is 2; expected a child of node 1, as the request has 2 accepted");
  file.set<std::int32_t>("path", {2, 2}, {2, 0, -1, -1});
  contains(error_in(file), "request 0, entry 0 is 2; expected a child of the root");
  file.set<std::int32_t>("path", {2, 1}, {0, -1});
  contains(error_in(file), "request 0, entry 1 is -1; expected a child of node 0");
  file.set<std::int32_t>("path", {2, 2}, {0, 2, 0, -1});
  contains(error_in(file), "request 1, entry 0 is 0, and the request has 0 accepted tokens; expected -1 after them");
  file.set<std::int32_t>("path", {4}, {0, 2, -1, -1});
  contains(error_in(file), "expected [2, D], the accepted nodes padded with -1");
}

TEST_CASE("filtered rows are read as logits or as kept sets, and checked without sampling") {
  TraceBuilder file = filters_file();
  const auto sample = read_as<FilterSample>(file);
  REQUIRE(sample.rows.size() == 2);
  const FilterCheck check = check_filter(sample, 1);
  CHECK(check.failing == std::vector<std::int64_t>{1});
  CHECK(check.rows[1].wrongly_kept == std::vector<Token>{1, 2});

  file.set<double>("filtered_logits", {2, 3}, {-1e30, -1e30, 2.0, 2.0, -1e30, -1e30});
  CHECK(check_filter(read_as<FilterSample>(file), 1).holds);

  file.drop("filtered_logits");
  file.set<std::uint8_t>("kept", {2, 3}, {0, 0, 1, 1, 0, 0});
  CHECK(check_filter(read_as<FilterSample>(file), 1).holds);
  file.set<std::uint8_t>("kept", {2, 3}, {0, 0, 1, 2, 0, 0});
  contains(error_in(file), "entry 3 is 2; expected 0 (dropped) or 1 (kept)");
  file.set<std::uint8_t>("kept", {3, 2}, {0, 0, 1, 1, 0, 0});
  contains(error_in(file), "[G, V]");
  TraceBuilder both = filters_file();
  both.set<std::uint8_t>("kept", {2, 3}, {0, 0, 1, 1, 0, 0});
  contains(error_in(both), "has both filtered_logits and kept");
}

}  // namespace
