// The demo as its users meet it, its distribution test against faults planted here, and the promise of the same bytes
// everywhere.
#include "base/archives/safetensors.hpp"
#include "cli/demo/files.hpp"
#include "cli/demo/run.hpp"
#include "reference/row_kernels/row_kernels.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

// Sentences of a few words, with bytes in between that are no text: an escape sequence and what is not UTF-8.
std::string corpus_text() {
  const std::vector<std::string> words{"the ",   "draft ", "target ", "distribution ", "of ",      "a ",
                                       "token ", "is ",    "that ",   "and ",          "\x1b[31m", "\xff\xfe"};
  std::string text;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const std::uint32_t word = philox_block(1, i, 0, 0, 0).word[0];
    text += i % 97 == 0 ? words[10 + i % 2] : words[word % 10];
    if (i % 11 == 10) text += ". \n";
  }
  return text;
}

struct SmallDemo {
  TemporaryFolder folder;
  DemoOptions options;

  SmallDemo() {
    write_whole_file(folder.file("corpus"), corpus_text());
    options.corpus = {folder.file("corpus")};
    options.out = folder.file("out");
    options.prompt = "the ";
    options.tokens = 80;
    options.samples = 2000;
    options.continuations = 6;
    options.threads = 1;
  }

  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{
        "demo",     "--corpus", options.corpus[0], "--out", options.out,       "--prompt", "the ",
        "--tokens", "80",       "--samples",       "2000",  "--continuations", "6"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

ordered_json parse(const ProgramResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return ordered_json::parse(result.out);
}

TEST_CASE("the demo answers with the keys that scripts rely on and writes the same document") {
  const SmallDemo demo;
  const ProgramResult result = run_draftproof(demo.command({"--json", "--seed", "18446744073709551615"}));
  const ordered_json document = parse(result);
  CHECK(result.err.empty());
  CHECK(document.at("seed").get<std::uint64_t>() == 18446744073709551615u);
  CHECK(document.at("acceptance_by_position").at("conditional").size() == 5);
  CHECK(document.at("acceptance_by_position").at("unconditional").size() == 5);
  CHECK(document.at("acceptance_length").get<double>() > 1.0);
  // Every draft of an n-gram model has full length, so the two are one number.
  CHECK(document.at("tokens_per_step").get<double>() ==
        Approx(document.at("tokens_per_step_formula").get<double>()).epsilon(1e-12));
  CHECK(document.at("steps") == 6 * 40);
  for (const auto& test : {document.at("chi_squared"), document.at("chi_squared").at("exact_distribution")}) {
    CHECK(test.at("n") == 2000);
    CHECK(test.at("df").get<int>() > 3);
    CHECK(test.at("statistic").get<double>() > 0.0);
    CHECK(test.at("p_value").get<double>() > suite_level(2));
  }
  CHECK(document.at("text").get<std::string>().size() >= 80);
  CHECK(read_whole_file(demo.folder.file("out/result.json")) == result.out);
  CHECK(document.at("shown").at("accepted_shown").get<int>() + document.at("shown").at("recovered_shown").get<int>() +
            document.at("shown").at("bonus_shown").get<int>() ==
        80);
  // Nothing temporary is left behind.
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(demo.folder.file("out")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::erase(names, "acceptance.svg");  // where gnuplot is
  CHECK(names == std::vector<std::string>{"acceptance.csv", "result.json", "trace.safetensors"});
  const std::string csv = read_whole_file(demo.folder.file("out/acceptance.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 6);
}

TEST_CASE("verify replays the trace of the demo to the tokens of its text") {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{},
                                             {"--sampler", "race", "--draft-temperature", "0.7", "--draft-top-k", "5"},
                                             {"--draft", "ngram-lookup", "--top-p", "0.9"},
                                             {"--temperature", "0"},
                                             {"--cfg-scale", "1.5", "--negative-prompt", "distribution "},
                                             {"-k", "0"}}) {
    const SmallDemo demo;
    std::vector<std::string> arguments = options;
    arguments.emplace_back("--json");
    const ordered_json document = parse(run_draftproof(demo.command(arguments)));
    const std::string trace = document.at("files").at("trace");
    const std::string replayed = demo.folder.file("result.safetensors");
    INFO(document.at("command").get<std::string>());
    const ordered_json verified = parse(run_draftproof({"verify", trace, "--out", replayed, "--json"}));
    CHECK(verified.at("requests") == document.at("shown").at("steps"));
    const SafetensorsFile file = SafetensorsFile::open(replayed);
    const TensorView tensor = file.tensor("output_tokens");
    std::string text;
    for (const std::int32_t token : tensor.as<std::int32_t>()) {
      if (token >= 0) text += static_cast<char>(static_cast<unsigned char>(token));
    }
    text.resize(80);
    // As JSON writes it: bytes that are not UTF-8 replaced.
    const std::string as_json = ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    CHECK(ordered_json::parse(as_json) == document.at("text"));
  }
}

ordered_json results_only(const DemoOptions& options) {
  const std::unique_ptr<DemoRun> run = run_demo(options);
  ordered_json document = demo_json(options, *run, {}, {}, {});
  for (const char* key : {"machine", "timing"}) document.erase(key);
  document.at("options").erase("threads");
  // Through text, as a file would have it.
  return ordered_json::parse(document.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

TEST_CASE("the same seed gives the same bytes on any number of threads and with any row kernels") {
  for (const auto& [draft, sampler] : {std::pair("ngram", "race"), std::pair("ngram-lookup", "inverse")}) {
    SmallDemo demo;
    demo.options.draft = draft;
    demo.options.sampler = sampler;
    demo.options.samples = 1000;
    demo.options.top_p.value = 0.95;
    const ordered_json one_thread = results_only(demo.options);
    demo.options.threads = 2;
    CHECK(results_only(demo.options) == one_thread);
    const std::string best = row_kernels().target;
    select_row_kernels("scalar");
    CHECK(results_only(demo.options) == one_thread);
    select_row_kernels(best);
    demo.options.seed = 1;
    CHECK(results_only(demo.options) != one_thread);
  }
}

// The two faults are those of shipped engines: a recovered token drawn from p instead of the residual, and drafts that
// are never rejected.
enum class Fault { none, recovered_from_p, accept_all };

DistributionString draw_with(Fault fault, DemoWorker& worker, const DecodingOptions& options,
                             std::span<const Token> prompt) {
  PhiloxSource source;
  DecodingWorkspace& workspace = worker.workspace();
  Sequence sequence = start_sequence(options, prompt);
  speculate(worker.target(), worker.drafter(), options, sequence, 0, source, workspace);
  const VerifyRequest request = request_of(workspace.step, options, 256, prompt, sequence.output());
  StepRows rows(request, options.verify, workspace.verify);
  AddressedChance<> chance(source, options.seed, 0, options.verify.sampler);
  std::vector<Token> tokens;
  std::uint32_t row = 0;
  for (; row + 1 < request.rows(); ++row) {
    const Token drafted = request.draft.tokens[row];
    const float p = rows.target(row).probability(drafted);
    const float q = rows.proposal(row).probability(drafted);
    if (fault != Fault::accept_all && !chance.accept(static_cast<double>(p), static_cast<double>(q), row)) break;
    tokens.push_back(drafted);
  }
  const Distribution& p = rows.target(row);
  if (row + 1 == request.rows()) {
    tokens.push_back(chance.draw(DistributionMasses(p), row, Purpose::target_sample));
  } else if (fault == Fault::recovered_from_p) {
    tokens.push_back(chance.draw(DistributionMasses(p), row, Purpose::residual));
  } else {
    tokens.push_back(chance.draw(ResidualMasses(p, rows.proposal(row)), row, Purpose::residual));
  }
  if (tokens.size() < 2) {
    sequence.append(tokens[0]);
    tokens.push_back(sample_token(worker.target(), options, sequence, nullptr, source, workspace));
  }
  return {tokens[0], tokens[1]};
}

struct BothSamples {
  std::vector<DistributionString> direct, speculative;
};
BothSamples draw_both_ways(DemoWorker& worker, DecodingOptions options, const std::vector<Token>& prompt,
                           std::uint64_t samples, std::uint64_t direct_seed, std::uint64_t speculative_seed) {
  BothSamples out;
  for (std::uint64_t i = 0; i < samples; ++i) {
    options.seed = derive_seed(direct_seed, i);
    out.direct.push_back(draw_directly(worker.target(), options, prompt, worker.workspace()));
    options.seed = derive_seed(speculative_seed, i);
    out.speculative.push_back(
        draw_speculatively(worker.target(), worker.drafter(), options, prompt, worker.workspace()));
  }
  return out;
}

TEST_CASE("direct draws have the penalties of the context that speculation has") {
  SmallDemo demo;
  const DemoModels models(demo.options, load_corpus(demo.options.corpus));
  DemoWorker worker(models, demo.options);
  DecodingOptions options = decoding_options(demo.options);
  const std::vector<Token> prompt = tokens_of("the the the the ");
  const std::vector<double> plain = exact_distribution(worker.target(), options, prompt, worker.workspace());
  options.parameters.samplers.dry_multiplier = 2.0f;
  const std::vector<double> distribution = exact_distribution(worker.target(), options, prompt, worker.workspace());
  CHECK(distribution != plain);
  const auto [direct, speculative] = draw_both_ways(worker, options, prompt, 6000, 3, 4);
  const DistributionCheck check = compare_distributions(speculative, direct, distribution);
  INFO(check.sentence());
  CHECK(passes(check.two_sample, 2));
  CHECK(passes(check.exact, 2));
  CHECK_FALSE(check.impossible);
}

TEST_CASE("the distribution test passes the chain and rejects planted faults at the same number of samples") {
  constexpr std::uint64_t kSamples = 28000;
  SmallDemo demo;
  const DemoModels models(demo.options, load_corpus(demo.options.corpus));
  DemoWorker worker(models, demo.options);
  DecodingOptions options = decoding_options(demo.options);
  const std::vector<Token> prompt = tokens_of("the distribution of ");
  const std::vector<double> distribution = exact_distribution(worker.target(), options, prompt, worker.workspace());
  const auto [direct, speculative] = draw_both_ways(worker, options, prompt, kSamples, 1, 2);
  // The chain written here is the chain of the library where it has no fault.
  for (std::uint64_t i = 0; i < 200; ++i) {
    options.seed = derive_seed(2, i);
    CHECK(draw_with(Fault::none, worker, options, prompt) == speculative[i]);
  }
  const DistributionCheck right = compare_distributions(speculative, direct, distribution);
  INFO(right.sentence());
  CHECK(passes(right.two_sample, 2));
  CHECK(passes(right.exact, 2));
  CHECK_FALSE(right.impossible);
  CHECK(right.samples == kSamples);
  CHECK(right.exact.df > 10);

  for (const Fault fault : {Fault::recovered_from_p, Fault::accept_all}) {
    std::vector<DistributionString> faulty;
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      options.seed = derive_seed(2, i);
      faulty.push_back(draw_with(fault, worker, options, prompt));
    }
    const DistributionCheck wrong = compare_distributions(faulty, direct, distribution);
    INFO(wrong.sentence());
    CHECK_FALSE(passes(wrong.two_sample, 2));
    CHECK_FALSE(passes(wrong.exact, 2));
    CHECK(wrong.is_finding());
  }

  // Samples that are the same, with their frequencies for a distribution, are no finding.
  std::vector<double> frequencies(distribution.size());
  for (const DistributionString& string : direct)
    frequencies[static_cast<std::size_t>(string[0]) * 256 + static_cast<std::size_t>(string[1])] += 1.0 / kSamples;
  CHECK_FALSE(compare_distributions(direct, direct, frequencies).is_finding());

  // A single string of probability zero is a finding by itself, in either sample.
  std::vector<double> narrow = distribution;
  const DistributionString rare = speculative[0];
  narrow[static_cast<std::size_t>(rare[0]) * 256 + static_cast<std::size_t>(rare[1])] = 0.0;
  narrow[static_cast<std::size_t>(rare[0]) * 256] += 1.0 - std::accumulate(narrow.begin(), narrow.end(), 0.0);
  const DistributionCheck impossible = compare_distributions(speculative, direct, narrow);
  CHECK(impossible.is_finding());
  CHECK(*impossible.impossible == rare);
}

TEST_CASE("p values have six digits, those of a gross bias too, which are subnormal numbers") {
  CHECK(six_digits(0.123456789) == 0.123457);
  CHECK(six_digits(0.0) == 0.0);
  CHECK(six_digits(3.123456789e-310) == 3.12346e-310);
}

TEST_CASE("the exact distribution of two tokens is the product of the model's own probabilities") {
  SmallDemo demo;
  const DemoModels models(demo.options, load_corpus(demo.options.corpus));
  DemoWorker worker(models, demo.options);
  std::vector<Token> context = tokens_of("draft ");
  const std::vector<double> distribution =
      exact_distribution(worker.target(), decoding_options(demo.options), context, worker.workspace());
  std::vector<double> first(256);
  std::vector<double> second(256);
  models.target.probabilities(context, first);
  double worst = 0.0;
  for (const Token a : {Token{'t'}, Token{'l'}, Token{'a'}, Token{255}, Token{0}}) {
    context.push_back(a);
    models.target.probabilities(context, second);
    context.pop_back();
    for (std::size_t b = 0; b < 256; ++b) {
      const auto i = static_cast<std::size_t>(a);
      worst = std::max(worst, std::abs(distribution[i * 256 + b] / (first[i] * second[b]) - 1.0));
    }
  }
  CHECK(worst < 1e-5);
}

TEST_CASE("text goes to a terminal without the escape codes of the model") {
  const SmallDemo demo;
  std::vector<std::string> arguments = demo.command();
  arguments[8] = "3000";  // --tokens: long enough to come upon the corpus's escape bytes
  const ProgramResult uncoloured = run_draftproof(arguments, {"NO_COLOR=1"});
  CHECK(uncoloured.exit_code == 0);
  CHECK(uncoloured.out.find('\x1b') == std::string::npos);
  CHECK(uncoloured.out.find('\xff') == std::string::npos);
  CHECK(uncoloured.out.find("\xef\xbf\xbd[31m") != std::string::npos);
  for (const char* word :
       {"accepted ", "recovered ", "bonus ", "acceptance length ", "emits the target's distribution"})
    CHECK(uncoloured.out.find(word) != std::string::npos);
  const ProgramResult coloured = run_draftproof(demo.command(), {"CLICOLOR_FORCE=1", "NO_COLOR="});
  CHECK(coloured.out.find("\x1b[32maccepted\x1b[0m") != std::string::npos);
}

TEST_CASE("the n-gram texts are shown where a prompt is given, and the counts and the verdict always") {
  const SmallDemo demo;
  std::vector<std::string> arguments = demo.command();
  const ProgramResult shown = run_draftproof(arguments);
  const auto prompt = std::find(arguments.begin(), arguments.end(), "--prompt");
  REQUIRE(prompt != arguments.end());
  arguments.erase(prompt, prompt + 2);
  const ProgramResult silent = run_draftproof(arguments);
  REQUIRE(silent.exit_code == 0);
  for (const char* word :
       {"Without speculation\n", "tokens in ", "acceptance length ", "emits the target's distribution"})
    for (const ProgramResult* result : {&shown, &silent}) CHECK(result->out.find(word) != std::string::npos);
  CHECK(shown.out.find("Without speculation\nthe ") != std::string::npos);
  CHECK(silent.out.find("\n\nWithout speculation") == std::string::npos);
}

TEST_CASE("drafts drawn otherwise than the target are one warning with the measured cost") {
  const SmallDemo demo;
  const ProgramResult result = run_draftproof(demo.command({"--draft-temperature", "0.25", "--json"}));
  CHECK(result.err.rfind("draftproof: warning: ", 0) == 0);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  const ordered_json consistency = parse(result).at("consistency");
  CHECK(consistency.at("differences").size() == 1);
  CHECK(consistency.at("differences")[0].at("parameter") == "temperature");
  CHECK(consistency.at("acceptance").get<double>() < consistency.at("acceptance_if_equal").get<double>());
  CHECK_FALSE(consistency.at("distribution_changes").get<bool>());
}

TEST_CASE("without gnuplot the demo says so and writes the rest") {
  const SmallDemo demo;
  const ProgramResult result = run_draftproof(demo.command({"--json"}), {"PATH=" + demo.folder.path()});
  CHECK(result.err.find("gnuplot") != std::string::npos);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  const ordered_json document = parse(result);
  CHECK(document.at("files").at("figure").is_null());
  CHECK(std::filesystem::exists(document.at("files").at("trace").get<std::string>()));
  CHECK(std::filesystem::exists(document.at("files").at("result").get<std::string>()));
}

TEST_CASE("every bad value of the demo is one clear error") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> bad{{"--order", "0"},
                                                  {"--order", "13"},
                                                  {"--draft-order", "0"},
                                                  {"--draft", "eagle"},
                                                  {"-k", "-1"},
                                                  {"-k", "65"},
                                                  {"--tokens", "0"},
                                                  {"--temperature", "-0.1"},
                                                  {"--temperature", "nan"},
                                                  {"--temperature", "inf"},
                                                  {"--temperature", "1e-9"},
                                                  {"--temperature", "warm"},
                                                  {"--top-p", "0"},
                                                  {"--top-p", "1.01"},
                                                  {"--top-p", "5/4"},
                                                  {"--draft-top-p", "1/0"},
                                                  {"--top-k", "-1"},
                                                  {"--min-p", "-0.1"},
                                                  {"--min-p", "nan"},
                                                  {"--draft-top-p", "0"},
                                                  {"--draft-temperature", "-1"},
                                                  {"--draft-top-k", "-2"},
                                                  {"--cfg-scale", "nan"},
                                                  {"--negative-prompt", "x"},
                                                  {"--smoothing-curve", "2"},
                                                  {"--xtc-threshold", "0.2"},
                                                  {"--xtc-probability", "0.5"},
                                                  {"--dry-base", "0"},
                                                  {"--dry-range", "5"},
                                                  {"--mirostat", "2"},
                                                  {"--seed", "-1"},
                                                  {"--seed", "1e3"},
                                                  {"--sampler", "gumbel"},
                                                  {"--samples", "10"},
                                                  {"--continuations", "0"},
                                                  {"--threads", "0"},
                                                  {"--corpus", "/no/such/file"},
                                                  {"--out", ""},
                                                  {"--simd", "MMX"}};
  for (const std::vector<std::string>& option : bad) {
    std::vector<std::string> arguments{"demo", option[0], option[1]};
    if (option[0] != "--out") arguments.insert(arguments.end(), {"--out", folder.path()});
    const ProgramResult result = run_draftproof(arguments);
    INFO(option[0] << ' ' << option[1] << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.rfind("draftproof: error: ", 0) == 0);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    const std::string name = option[0] == "-k"         ? "--num-speculative-tokens"
                             : option[0] == "--corpus" ? option[1]
                                                       : option[0];
    CHECK(result.err.find(name) != std::string::npos);
  }
  for (const char* option : {"--draft-order", "--draft-temperature", "--draft-top-p", "--draft-top-k"})
    CHECK(run_draftproof({"demo", "--draft", "ngram-lookup", option, "1"}).err.find("would have no effect") !=
          std::string::npos);
  CHECK(folder.file_names().empty());
}

TEST_CASE("the default corpus gives a demo of real text") {
  if (!std::filesystem::is_directory(kDefaultCorpusFolder)) {
    WARN("SKIPPED: the licence texts of a Debian system are not here");
    return;
  }
  const TemporaryFolder folder;
  const ordered_json document = parse(
      run_draftproof({"demo", "--json", "--samples", "2000", "--continuations", "8", "--out", folder.file("a/b")}));
  CHECK(document.at("text").get<std::string>().size() >= 400);
  const ordered_json& distribution = document.at("chi_squared");
  const double least = std::min(distribution.at("p_value").get<double>(),
                                distribution.at("exact_distribution").at("p_value").get<double>());
  CHECK(least > suite_level(2));
  CHECK(distribution.at("verdict") == (least < kDistributionAlpha ? "biased" : "consistent"));
  CHECK(document.at("shown").at("steps").get<int>() < 300);
}

}  // namespace
