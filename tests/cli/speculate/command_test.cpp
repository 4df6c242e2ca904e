// The table of speculation with an n-gram model: what is counted, what is kept and what is refused. Times are nobody's
// business here.
#include <fcntl.h>
#include <sys/file.h>

#include "cli/shared/speedup.hpp"
#include "cli/speculate/measure.hpp"
#include "cli/speculate/rank_counts.hpp"
#include "cli/speculate/report.hpp"
#include "cli/speculate/table.hpp"
#include "engine/model/prompt_set.hpp"
#include "sim/machine/machine_profile.hpp"
#include "tests/support/test.hpp"

namespace {

struct SmallTable {
  TemporaryFolder folder;

  SmallTable() {
    std::string text;
    const std::vector<std::string> words{"the ", "draft ", "target ", "of ", "a ", "token ", "is ", "that "};
    for (std::size_t i = 0; i < 4000; ++i) text += words[i * (i + 3) / 5 % words.size()];
    write_whole_file(folder.file("text"), text);
    write_whole_file(folder.file("prompts.jsonl"),
                     "{\"work\": \"code\", \"prompt\": \"the draft of a \"}\n\n"
                     "{\"work\": \"prose\", \"prompt\": \"that token is \", \"chat\": false}\n"
                     "{\"work\": \"code\", \"prompt\": \"a target of the target of the \"}\n");
  }

  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"speculate",
                                       "--model",
                                       "ngram:4:" + folder.file("text"),
                                       "--prompts",
                                       folder.file("prompts.jsonl"),
                                       "--out",
                                       folder.file("out"),
                                       "--threads",
                                       "1",
                                       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  ordered_json run(const std::vector<std::string>& more) const {
    const ProgramResult result = run_draftproof(command(more));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return ordered_json::parse(result.out);
  }
  void check_refused(const std::vector<std::string>& more, const std::string& message) const {
    const ProgramResult result = run_draftproof(command(more));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find(message) != std::string::npos);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
};

const std::vector<std::string> kSmall{
    "--drafters", "suffix,ngram:2", "-k", "3", "--trees", "none,2x2", "--temperatures", "0,1", "--max-tokens", "30"};

// A row without the fields that depend on the machine's speed.
ordered_json counted(ordered_json row) {
  for (const char* key : {"speedup", "speedup_low", "speedup_high", "plain_speedup", "plain_speedup_low",
                          "plain_speedup_high", "draft_ms", "verify_ms", "sample_ms", "mask_ms", "step_ms", "plain_ms"})
    row.erase(key);
  return row;
}

TEST_CASE("speculate has a row for each draft, temperature and work, whose tokens are those of plain decoding") {
  const SmallTable table;
  const ordered_json document = table.run(kSmall);
  const ordered_json& rows = document.at("rows");
  REQUIRE(rows.size() == 2 * 2 * 2 * 2);
  std::set<std::string> names;
  for (const ordered_json& row : rows) {
    names.insert(row.at("work").get<std::string>() + configuration_name(row));
    const auto count = [&](const char* key) { return row.at(key).get<std::int64_t>(); };
    CHECK(count("prompts") == (row.at("work") == "code" ? 2 : 1));
    // No text ends before its limit, so both ways emit it.
    CHECK(count("plain_tokens") == 30 * count("prompts"));
    CHECK(count("tokens") == count("plain_tokens"));
    CHECK(count("steps") < count("tokens"));
    CHECK(count("accepted") <= count("draft_tokens"));
    // Trees have siblings, at temperature 0 too.
    if (row.at("drafter") == "ngram:2" && !row.at("tree").is_null()) CHECK(count("draft_tokens") > 2 * count("drafts"));
    CHECK(row.at("equal") == (row.at("temperature") == 0.0 ? ordered_json(true) : ordered_json()));
    CHECK(row.at("verifier") == (row.at("tree").is_null() ? "chain" : "target_only"));
    CHECK(row.at("k") == (row.at("tree").is_null() ? 3 : 2));
    // Every position that a step reached with a draft was judged, and the conditional rates are of the same positions.
    double total = 0.0;
    for (const auto& rate : row.at("acceptance_by_rank")) total += rate.get<double>();
    CHECK(total <= 1.0 + 1e-12);
    CHECK(row.at("acceptance_by_rank").size() == (row.at("drafter") == "suffix" ? 1 : kRanks));
    if (row.at("temperature") == 0.0 && row.at("tree").is_null()) {
      // The greedy target takes a draft of the greedy drafter where it is the same token: the candidate of rank 1.
      CHECK(row.at("acceptance_by_rank")[0].get<double>() ==
            Approx(row.at("accepted").get<double>() / row.at("ranked_positions").get<double>()).epsilon(1e-12));
    }
  }
  CHECK(names.size() == rows.size());
  CHECK(document.at("findings").empty());
  CHECK(read_whole_file(table.folder.file("out/result.json")) == document.dump(2) + "\n");
  // A head and a line for each row, with a cell for each column.
  const std::string csv = read_whole_file(table.folder.file("out/speculate.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == static_cast<std::ptrdiff_t>(rows.size()) + 1);
  CHECK(std::count(csv.begin(), csv.end(), ',') % static_cast<std::ptrdiff_t>(rows.size() + 1) == 0);
  CHECK(read_whole_file(table.folder.file("out/speculate.svg")).find("</svg>") != std::string::npos);
}

TEST_CASE("the counts of speculate are the same in every run, with any batch at temperature 0") {
  const SmallTable table;
  const SmallTable again;
  const auto counts = [&](const SmallTable& of, std::vector<std::string> more) {
    more.insert(more.end(), kSmall.begin(), kSmall.end());
    std::vector<ordered_json> rows;
    const ordered_json document = of.run(more);
    for (const ordered_json& row : document.at("rows")) rows.push_back(counted(row));
    return rows;
  };
  const auto first = counts(table, {});
  CHECK(counts(again, {}) == first);
  // Suffix decoding looks at what other requests emitted, so its drafts may differ; the n-gram drafter's may not.
  const auto batched = counts(table, {"--batch", "2"});
  REQUIRE(batched.size() == 2 * first.size());  // the table has both
  for (std::size_t i = 0; i < first.size(); ++i) {
    ordered_json alone = first[i];
    const ordered_json& beside = batched[first.size() + i];
    CHECK(beside.at("batch") == 2);
    CHECK(beside.at("equal") == alone.at("equal"));
    alone["batch"] = 2;
    if (alone.at("drafter") == "ngram:2") CHECK(beside == alone);
  }
}

TEST_CASE("rows that are in the folder are not measured again, and others are added to them") {
  const SmallTable table;
  const std::vector<std::string> one{"--drafters", "ngram:2", "--temperatures", "0", "--max-tokens", "20"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), one.begin(), one.end());
    return table.run(more).at("rows");
  };
  const ordered_json first = with({"-k", "2"});
  REQUIRE(first.size() == 2);
  // Times of another measurement would differ.
  CHECK(with({"-k", "2"}) == first);
  const ordered_json more = with({"-k", "2,4"});
  REQUIRE(more.size() == 4);
  CHECK(more[0] == first[0]);
  CHECK(more[1] == first[1]);
  // A run that was killed between two rows leaves a table with the rows before.
  ordered_json cut = ordered_json::parse(read_whole_file(table.folder.file("out/result.json")));
  cut.at("rows").erase(3);
  write_whole_file(table.folder.file("out/result.json"), cut.dump());
  const ordered_json resumed = with({"-k", "2,4"});
  REQUIRE(resumed.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(resumed[i] == more[i]);
  CHECK(counted(resumed[3]) == counted(more[3]));
}

TEST_CASE("a row is that of all its settings: another of one of them is another row beside it") {
  const SmallTable table;
  std::vector<std::string> options{"--drafters", "suffix", "--temperatures", "0", "--max-tokens", "8", "-k", "3"};
  const std::vector<std::vector<std::string>> others{
      {"--drafters", "prompt_lookup"}, {"--temperatures", "1"}, {"-k", "2"},       {"--verifier", "block"},
      {"--policy", "fixed"},           {"--batch", "2"},        {"--trees", "2x2"}};
  const ordered_json first = table.run(options).at("rows");
  std::vector<ordered_json> rows(first.begin(), first.end());
  const std::size_t works = rows.size();
  REQUIRE(works == 2);
  for (const std::vector<std::string>& other : others) {
    INFO(other[0]);
    std::vector<std::string> changed;
    for (std::size_t i = 0; i < options.size(); i += 2) {
      const bool is_left_out = options[i] == other[0] || (other[0] == "--trees" && options[i] == "-k");
      if (!is_left_out) changed.insert(changed.end(), {options[i], options[i + 1]});
    }
    changed.insert(changed.end(), other.begin(), other.end());
    const ordered_json found = table.run(changed).at("rows");
    // Those that were there are as they were, to their times.
    REQUIRE(found.size() == rows.size() + works);
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(std::ranges::count(found, rows[i]) == 1);
    rows.assign(found.begin(), found.end());
  }
}

TEST_CASE("the report names all that a row is measured with") {
  const SmallTable table;
  std::vector<std::string> arguments =
      table.command({"--drafters", "suffix,prompt_lookup,ngram:2", "-k", "3", "--temperatures", "0,0.5", "--max-tokens",
                     "8", "--batch", "2", "--policy", "fixed"});
  std::erase(arguments, "--json");
  const ProgramResult result = run_draftproof(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  for (const char* const name :
       {"suffix K=3, all drafts, batch 2 ", "suffix K=3, all drafts, T=0.5, batch 2 ",
        "prompt_lookup K=3, all drafts, batch 2 ", "prompt_lookup K=3, all drafts, T=0.5, batch 2 ",
        "ngram:2 K=3, batch 2 ", "ngram:2 K=3, T=0.5, batch 2 "})
    CHECK_THAT(result.out, Contains(name));
}

TEST_CASE("a table is not resumed with another model, drafter or file of costs of the same name") {
  const SmallTable table;
  const auto run = [&](const std::string& drafter) {
    return std::vector<std::string>{"--drafters", drafter, "--temperatures", "0", "--max-tokens", "10", "-k", "2"};
  };
  const ordered_json document = table.run(run("ngram:2"));
  CHECK(document.at("settings").at("model_sha256").get<std::string>().size() == 64);
  CHECK(document.at("rows")[0].at("inputs_sha256").is_null());
  // The file of --cost determines what looked-up drafts are worth.
  const std::string cost = table.folder.file("machine.toml");
  MachineProfile profile;
  profile.passes = {{1, 64, 2.1}, {4, 64, 2.4}, {1, 576, 2.356}};
  write_whole_file(cost, toml_of(profile));
  std::vector<std::string> looked_up = run("suffix");
  looked_up.insert(looked_up.end(), {"--cost", cost});
  CHECK(table.run(looked_up).at("rows").size() == 4);
  const std::string before = read_whole_file(table.folder.file("out/result.json"));
  profile.passes.front().ms = 2.2;
  write_whole_file(cost, toml_of(profile));
  table.check_refused(looked_up, "a file of the drafter or of --cost is another");
  CHECK(table.run(run("ngram:2")).at("rows").size() == 4);  // whose rows have nothing to do with it
  write_whole_file(table.folder.file("text"), read_whole_file(table.folder.file("text")) + "the end");
  table.check_refused(run("ngram:2"), "holds a table with model_sha256 \"");
  CHECK(ordered_json::parse(before).at("rows") ==
        ordered_json::parse(read_whole_file(table.folder.file("out/result.json"))).at("rows"));
  // A table from before there were digests.
  ordered_json old = ordered_json::parse(before);
  old.at("settings").erase("model_sha256");
  for (ordered_json& row : old.at("rows")) row.erase("inputs_sha256");
  write_whole_file(table.folder.file("out/result.json"), old.dump());
  table.check_refused(run("ngram:2"), "holds a table with model_sha256 null, and this run has \"");
}

TEST_CASE("a row whose tokens are not those of plain decoding is a finding, also when it was measured before") {
  const SmallTable table;
  const std::vector<std::string> one{"--drafters", "ngram:2", "--temperatures", "0", "--max-tokens", "20", "-k", "2"};
  ordered_json planted = table.run(one);
  planted.at("rows")[1]["equal"] = false;
  planted.at("rows")[1]["difference"] = "planted";
  write_whole_file(table.folder.file("out/result.json"), planted.dump());
  const ProgramResult result = run_draftproof(table.command(one));
  CHECK(result.exit_code == 1);
  CHECK(ordered_json::parse(result.out).at("findings") == ordered_json::array({"prose, ngram:2 K=2: planted"}));
}

// A model whose rows depend on the batch around them, as those of many kernels do.
class BatchVariantModel final : public LanguageModel {
 public:
  explicit BatchVariantModel(std::unique_ptr<LanguageModel> inner) : inner_(std::move(inner)) {}
  std::int64_t vocab_size() const override { return inner_->vocab_size(); }
  std::int64_t context_len_max() const override { return inner_->context_len_max(); }
  std::optional<Token> start_token() const override { return inner_->start_token(); }
  std::unique_ptr<KvCache> make_kv_cache(std::int64_t num_slots) const override {
    return inner_->make_kv_cache(num_slots);
  }
  void forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) override {
    inner_->forward(batch, kv, out);
    if (batch.wanted.size() > 1) out.logits[static_cast<std::size_t>(vocab_size()) + 'Q'] = 1e3f;
  }

 private:
  std::unique_ptr<LanguageModel> inner_;
};

TEST_CASE("a model whose rows depend on the batch is found by the tokens of speculation") {
  const SmallTable table;
  SpeculateOptions options;
  options.max_tokens = 20;
  const PromptSet prompts = read_prompt_set(table.folder.file("prompts.jsonl"));
  const Configuration greedy{"ngram:2", 3, std::nullopt, "chain", 0.0};
  const auto measured = [&](bool faulty) {
    TextModel model = open_text_model("ngram:4:" + table.folder.file("text"), "", {}, "--model");
    if (faulty) model.model = std::make_unique<BatchVariantModel>(std::move(model.model));
    return Measurement(options, model).measure(prompts.works.front(), greedy);
  };
  CHECK(measured(false).equal == true);
  CHECK(measured(false).difference.empty());
  const SpeculateRow wrong = measured(true);
  CHECK(wrong.equal == false);
  CHECK_THAT(wrong.difference, Contains("prompts.jsonl, line 1: the output differs from plain decoding"));
}

TEST_CASE("combinations that do not fit are left out with their reasons") {
  const SmallTable table;
  const ordered_json document = table.run({"--drafters", "prompt_lookup,ngram:2", "-k", "2", "--trees", "none,2x1",
                                           "--temperatures", "0", "--max-tokens", "10"});
  REQUIRE(document.at("left_out").size() == 1);
  CHECK(document.at("left_out")[0].at("drafter") == "prompt_lookup");
  CHECK(document.at("left_out")[0].at("tree") == "2x1");
  CHECK(document.at("rows").size() == 3 * 2);
}

TEST_CASE(
    "speculate measures looked-up drafts as far as they are worth their rows, or all of them, as rows of their own") {
  const SmallTable table;
  const std::vector<std::string> one{"--drafters", "suffix,ngram:2", "--temperatures", "0", "-k", "4", "--max-tokens",
                                     "30"};
  table.run(one);
  auto all = one;
  all.insert(all.end(), {"--policy", "fixed"});
  const ordered_json rows = table.run(all).at("rows");
  // The n-gram drafter's have probabilities and are the same rows.
  REQUIRE(rows.size() == 6);
  const auto drafted = [&](const char* policy) {
    int tokens = 0;
    for (const ordered_json& row : rows)
      if (row.at("drafter") == "suffix" && row.at("policy") == policy) tokens += row.at("draft_tokens").get<int>();
    return tokens;
  };
  CHECK(drafted("likely") > 0);
  CHECK(drafted("likely") < drafted("fixed"));
  all.insert(all.end(), {"--cost", "x.toml"});
  table.check_refused(all, "--cost: is given with --policy fixed");
}

TEST_CASE("what speculate cannot use is refused in one line, and nothing is written") {
  const SmallTable table;
  table.check_refused({"--drafters", "oracle"}, "--drafters");
  table.check_refused({"--drafters", "none"}, "plain decoding is measured beside each");
  table.check_refused({"--drafters", "suffix,"}, "--drafters is 'suffix,'; expected names");
  table.check_refused({"--drafters", "layer_skip:1"}, "no layers");
  table.check_refused({"--temperatures", "0,-1"}, "--temperatures: number 2 is '-1'");
  table.check_refused({"--trees", "2y2"}, "--trees");
  table.check_refused({"--drafters", "prompt_lookup", "--trees", "2x2"}, "no combination is left");
  table.check_refused({"--drafters", "suffix", "--trees", "2x2", "--tree-verifier", "chain"}, "no combination is left");
  table.check_refused({"--tree-verifier", "naive"}, "--tree-verifier: has no use without --trees");
  table.check_refused({"--trees", "2x2", "-k", "2"},
                      "--num-speculative-tokens: has no use where --trees has no `none`");
  table.check_refused({"--activations", "f32"}, "--activations: has no use with an n-gram model");
  table.check_refused({"--drafters", "ngram:2", "--cost", "x.toml"}, "--cost: has no use");
  table.check_refused({"--drafters", "suffix", "--cost", "x.toml"}, "x.toml: cannot be opened");
  table.check_refused({"--drafters", "suffix", "--oracle"}, "--oracle: compares drafts of heads");
  table.check_refused({"--drafters", "head:x"}, "the target");
  CHECK_FALSE(std::filesystem::exists(table.folder.file("out/result.json")));
  const auto with_prompts = [&](const std::string& text, const std::string& message) {
    write_whole_file(table.folder.file("prompts.jsonl"), text);
    table.check_refused({}, message);
  };
  with_prompts("\n \n", "has no prompt");
  with_prompts("{\"work\": \"code\", \"prompt\": \"a\"}\n{\"work\": \"code\"\n", "line 2: is no JSON object");
  with_prompts("{\"work\": \"code\"}\n", "line 1: has no \"prompt\"");
  with_prompts("{\"work\": \"code\", \"prompt\": \"\"}\n", "line 1: \"prompt\" is \"\"");
  with_prompts("{\"work\": 3, \"prompt\": \"a\"}\n", "line 1: \"work\" is 3");
  with_prompts("{\"work\": \"code\", \"prompt\": \"a\", \"chat\": 1}\n", "line 1: \"chat\" is 1");
  with_prompts("{\"work\": \"code\", \"prompt\": \"a\"}\n{\"work\": \"code\", \"prompt\": \"a\", \"chat\": true}\n",
               "line 2: asks for a chat");
  with_prompts("{\"work\": \"code\", \"prompt\": \"a\", \"top\": 1}\n", "line 1: has the field \"top\"");
}

TEST_CASE("a folder that holds another table, or something else, is left as it is") {
  const SmallTable table;
  const std::vector<std::string> one{"--drafters", "ngram:2", "--temperatures", "0", "-k", "2", "--max-tokens"};
  auto twenty = one;
  twenty.emplace_back("20");
  table.run(twenty);
  const std::string before = read_whole_file(table.folder.file("out/result.json"));
  auto thirty = one;
  thirty.emplace_back("30");
  table.check_refused(thirty, "holds a table with max_tokens 20, and this run has 30");
  CHECK(read_whole_file(table.folder.file("out/result.json")) == before);
  const auto check_left = [&](const std::string& other, const std::string& message) {
    write_whole_file(table.folder.file("out/result.json"), other);
    table.check_refused(twenty, message);
    CHECK(read_whole_file(table.folder.file("out/result.json")) == other);
  };
  check_left("{}", "is no table of draftproof speculate");
  check_left("no JSON", "is no table of draftproof speculate");
  check_left("{\"rows\": [{}], \"settings\": {}}", "row 0 has no valid 'work'; expected a table of");
  for (const char* const field :
       {"drafter", "tree", "k", "speedup", "speedup_low", "equal", "acceptance_by_position", "acceptance_by_rank"}) {
    ordered_json damaged = ordered_json::parse(before);
    damaged["rows"][0][field] = ordered_json::array({ordered_json::object()});
    if (field == std::string("acceptance_by_rank")) damaged["rows"][0][field] = 3;
    check_left(damaged.dump(), std::string("row 0 has no valid '") + field + "'");
  }
}

TEST_CASE("a file that speculate could not write is refused before anything is printed") {
  const SmallTable table;
  std::filesystem::create_directory(table.folder.file("out"));
  for (const std::string name : {"result.json", "speculate.csv", "speculate.svg"}) {
    const std::string path = table.folder.file("out/" + name);
    const auto check_refused = [&](const std::string& message) {
      std::vector<std::string> command = table.command({});
      std::erase(command, "--json");
      const ProgramResult result = run_draftproof(command);
      CHECK(result.exit_code == 2);
      CHECK(result.out.empty());
      CHECK(result.err == "draftproof: error: " + path + ": " + message + "\n");
    };
    std::filesystem::remove(path);
    std::filesystem::create_hard_link(table.folder.file("prompts.jsonl"), path);
    check_refused("is an input of this command; expected the name of another file to write");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    check_refused("exists and is not a regular file, so it cannot be replaced; name a file to write");
    std::filesystem::remove(path);
  }
}

TEST_CASE("an output that ends earlier or later than the plain one is timed as if it were as long") {
  const DecodedTime plain{30.0, 1, 189.0, 63};  // 3 ms a token behind a prompt of 30 ms
  const auto speedup_of = [&](const DecodedTime& speculative) {
    const PairedTime pair = paired_time(plain, speculative);
    CHECK(pair.plain_ms == Approx(219.0 / 64.0));
    return pair.plain_ms / pair.speculative_ms;
  };
  CHECK(speedup_of(plain) == Approx(1.0));
  CHECK(speedup_of({30.0, 1, 57.0, 19}) == Approx(1.0));
  CHECK(speedup_of({30.0, 1, 300.0, 100}) == Approx(1.0));
  CHECK(speedup_of({30.0, 1, 30.0, 20}) == Approx(219.0 / (30.0 + 63.0 * 1.5)));
  CHECK(speedup_of({30.0, 2, 93.0, 62}) == Approx(219.0 / 123.0));
  // One that ended with its first token says nothing of the others.
  CHECK(speedup_of({30.0, 1, 0.0, 0}) == Approx(1.0));
}

TEST_CASE("the speedup is a geometric mean with the interval of Student's t") {
  // Ratios 2 and 8: logarithms ln 4 -+ ln 2, standard error ln 2, and t(0.975, 1) = 12.706205.
  const Speedup two = estimate_speedup(std::vector<PairedTime>{{2.0, 1.0}, {4.0, 0.5}});
  CHECK(two.ratio == Approx(4.0));
  CHECK(*two.low == Approx(4.0 * std::exp2(-12.7062047362)).epsilon(1e-8));
  CHECK(*two.high == Approx(4.0 * std::exp2(12.7062047362)).epsilon(1e-8));
  const Speedup one = estimate_speedup(std::vector<PairedTime>{{3.0, 2.0}});
  CHECK(one.ratio == Approx(1.5));
  CHECK_FALSE(one.low);
  CHECK_FALSE(one.high);
}

TEST_CASE("a speedup at one token a step is called noise, beside that of plain decoding over itself") {
  // Times of nobody's clock: 4 % faster in both pairs, and plain over plain 1/1.25 and 1.25.
  SpeculateRow measured;
  measured.prompts = 2;
  measured.pairs = {{1.04, 1.0}, {2.08, 2.0}};
  measured.plain_pairs = {{0.8, 1.0}, {1.0, 0.8}};
  const auto printed = [&](std::size_t received) {
    measured.acceptance.assign(2, AcceptanceCounts());
    for (AcceptanceCounts& counts : measured.acceptance)
      for (int step = 0; step < 10; ++step)
        counts.add_step(
            {.draft_tokens = 1, .num_accepted = received - 1, .rejected = received == 1, .tokens_received = received});
    const ordered_json row = row_json("code", {"suffix", 1, std::nullopt, "chain", 0.0}, 1, measured);
    CHECK(row.at("plain_speedup").get<double>() == Approx(1.0));
    // Logarithms -+ ln 1.25, standard error ln 1.25, t(0.975, 1) = 12.706205.
    CHECK(row.at("plain_speedup_high").get<double>() == Approx(std::pow(1.25, 12.7062047362)).epsilon(1e-8));
    std::ostringstream text;
    print_row(text, row, false);
    print_tail(text, {{"rows", {row}},
                      {"findings", ordered_json::array()},
                      {"files", {{"result", nullptr}, {"csv", nullptr}, {"figure", nullptr}}}});
    return text.str();
  };
  const std::string zero = "plain over plain is 1.00 [0.06, 17.04]";
  CHECK_THAT(printed(1), Contains("1.04 [1.04, 1.04]  noise: 1.000 tokens a step are plain decoding's; " + zero));
  CHECK_THAT(printed(2), !Contains("noise") && Contains("no speedup: code, T=0 1.00 [0.06, 17.04]"));
}

TEST_CASE("the rank of a token is its place among the drafter's candidates at its position") {
  RankCounts counts;
  SpeculativeStep step;
  // Node 0: token 2; its children: tokens 1 and 3. Row 0 is the context's, row 1 that of node 0.
  step.draft.tree.tokens = {2, 1, 3};
  step.draft.tree.parents = {kRootNode, 0, 0};
  step.draft.proposal_kind = ProposalKind::logits;
  step.draft.logits = {0, 1, 5, 2, 1, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  step.emission.num_accepted = 1;
  step.emission.path = {0};
  step.emission.tokens = {2, 3};  // 3 was likely to the drafter as 0 was, whose id is smaller
  counts.add(step, 4);
  CHECK(counts.positions == 2);
  CHECK(counts.by_rank == std::array<std::int64_t, kRanks>{1, 0, 1});
  // At a leaf nothing was drafted: the bonus token has no rank.
  step.emission = {2, {0, 2}, {2, 3, 0}, {}, {}, {}, {}};
  counts.add(step, 4);
  CHECK(counts.positions == 4);
  CHECK(counts.by_rank == std::array<std::int64_t, kRanks>{2, 0, 2});
  // Without probabilities the draft is the one candidate.
  RankCounts one_hot;
  step.draft.tree = DraftTree::chain(std::vector<Token>{2, 1});
  step.draft.proposal_kind = ProposalKind::one_hot;
  step.emission = {1, {0}, {2, 3}, {}, {}, {}, {}};
  one_hot.add(step, 4);
  CHECK(one_hot.positions == 2);
  CHECK(one_hot.by_rank == std::array<std::int64_t, kRanks>{1});
  CHECK_FALSE(one_hot.has_candidates);
}

TEST_CASE("the project's own prompts are ten of each kind of work, all different") {
  const PromptSet set = read_prompt_set(own_prompts());
  REQUIRE(set.works.size() == 4);
  std::set<std::string> different;
  for (const Work& work : set.works) {
    CHECK((work.name == "code" || work.name == "prose" || work.name == "question" || work.name == "editing"));
    CHECK(work.prompts.size() == 10);
    for (const WorkPrompt& prompt : work.prompts) {
      different.insert(prompt.prompt);
      CHECK(prompt.chat == (work.name == "question" || work.name == "editing"));
    }
  }
  CHECK(different.size() == 40);
}

}  // namespace
TEST_CASE("a table that another process writes is left to it") {
  const SmallTable table;
  std::filesystem::create_directory(table.folder.file("out"));
  const Descriptor held(::open(table.folder.file("out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(held.value(), LOCK_EX) == 0);
  check_refused(table.command({"--drafters", "suffix", "-k", "2", "--temperatures", "0"}),
                {"--out: ", "is being written by another process"});
  CHECK(std::filesystem::is_empty(table.folder.file("out")));
}
