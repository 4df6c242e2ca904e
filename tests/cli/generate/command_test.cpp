// draftproof generate as its users meet it, with an n-gram model of a text made here, which needs no download.
#include "tests/cli/generate/corpus.hpp"

namespace {

TEST_CASE("generate gives the same text with every drafter, and says how it came about") {
  const Corpus corpus;
  const Arguments request{"--prompt", "the draft ", "--max-tokens", "90"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), request.begin(), request.end());
    return generate_json(corpus, more);
  };
  const ordered_json plain = with({"--drafter", "none"});
  CHECK(plain.at("model") == corpus.model);
  CHECK(plain.at("verifier").is_null());
  CHECK(plain.at("acceptance_length").is_null());
  CHECK(plain.at("tokens_per_step").is_null());
  const ordered_json& alone = plain.at("requests")[0];
  CHECK(alone.at("prompt") == "the draft ");
  CHECK(alone.at("text").get<std::string>().size() == 90);
  CHECK(alone.at("tokens").size() == 90);
  CHECK(alone.at("num_steps") == 90);
  CHECK(alone.at("finish_reason") == "length");
  for (const Arguments& drafter : std::vector<Arguments>{{"--drafter", "prompt_lookup", "--policy", "likely"},
                                                         {"--drafter", "suffix", "--policy", "threshold"},
                                                         {"--drafter", "ngram:3", "-k", "3", "--policy", "fixed:3"},
                                                         {"--drafter", "ngram:3", "--tree", "2x2", "--verifier", "rrs",
                                                          "--draft-temperature", "1", "--policy", "fixed:6"}}) {
    INFO(drafter[1]);
    const ordered_json document = with(drafter);
    const ordered_json& speculative = document.at("requests")[0];
    CHECK(document.at("drafter") == drafter[1]);
    CHECK(speculative.at("text") == alone.at("text"));
    CHECK(speculative.at("num_steps") < 60);
    CHECK(speculative.at("acceptance_length") > 1.5);
    CHECK(document.at("acceptance_length") == speculative.at("acceptance_length"));
    CHECK(speculative.at("tokens_per_step").get<double>() == Approx(90.0 / speculative.at("num_steps").get<double>()));
    CHECK(document.at("tokens_per_step") == speculative.at("tokens_per_step"));
    CHECK(document.at("acceptance_by_position").at("conditional")[0] > 0.4);
    CHECK(document.at("tokens") == 90);
  }
}

TEST_CASE("further samplers are options and fields of prompts, and those with a state are refused") {
  const Corpus corpus;
  const auto tokens_with = [&](Arguments more) {
    more.insert(more.end(), {"--prompt", "the draft ", "--max-tokens", "60", "--seed", "3", "--drafter", "ngram:3"});
    return generate_json(corpus, more).at("requests")[0].at("tokens");
  };
  const ordered_json greedy = tokens_with({"--temperature", "0"});
  const ordered_json plain = tokens_with({"--temperature", "2"});
  CHECK(plain != greedy);
  // Each leaves the likeliest token of every row alone.
  CHECK(tokens_with({"--temperature", "2", "--top-n-sigma", "1e-6"}) == greedy);
  CHECK(tokens_with({"--temperature", "2", "--epsilon-cutoff", "0.999"}) == greedy);
  CHECK(tokens_with({"--temperature", "2", "--smoothing-factor", "10"}) != plain);
  CHECK(tokens_with({"--temperature", "2", "--typical-p", "0.4"}) != plain);
  CHECK(tokens_with({"--temperature", "2", "--xtc-threshold", "0.01", "--xtc-probability", "1"}) != plain);
  const std::string path =
      write_prompts(corpus,
                    "{\"prompt\": \"the draft \", \"max_tokens\": 60, \"temperature\": 2, \"seed\": 3, "
                    "\"top_n_sigma\": 1e-6}\n");
  CHECK(generate_json(corpus, {"--prompts", path}).at("requests")[0].at("tokens") == greedy);

  const auto line_refused = [&](const std::string& sampler, const std::string& words) {
    check_error(corpus, {"--prompts", write_prompts(corpus, "{\"prompt\": \"a\", " + sampler + "}\n")}, words);
  };
  line_refused("\"mirostat\": 2", "line 1: mirostat would need another number or state in every row");
  line_refused("\"xtc_probability\": 0.5", "line 1: xtc_probability would need another number");
  line_refused("\"typical_p\": 1.5", "line 1: typical_p is 1.5");
  const auto refused = [&](const std::string& option, const std::string& value, const std::string& words) {
    check_error(corpus, {"--prompt", "a", option, value}, option + words);
  };
  refused("--xtc-probability", "0.5", " is '0.5'; expected 0 (off) or 1");
  refused("--typical-p", "1.5", " is '1.5'; expected a number in (0, 1]");
  refused("--dry-base", "0", " is '0'; expected a finite number of 1 or more");
  refused("--dry-base", "x", " is 'x'; expected a finite number of 1 or more");
  refused("--dry-range", "1.5", " is '1.5'; expected a whole number");
  for (const char* option : {"--mirostat", "--mirostat-mu", "--xtc-uniform"}) {
    check_error(corpus, {"--prompt", "a", option, "1"}, option);
    CHECK_THAT(run_draftproof({"generate", "--help"}).out, !Contains(option));
  }
}

TEST_CASE("a sampler's option without the sampler is refused, but where a request of a file may have it") {
  const Corpus corpus;
  const auto refused = [&](const std::string& option, const std::string& value, const std::string& main) {
    check_error(corpus, {"--prompt", "a", option, value}, option + ": has no use without a " + main);
  };
  refused("--smoothing-curve", "2", "--smoothing-factor above 0");
  refused("--xtc-threshold", "0.2", "--xtc-probability above 0");
  for (const char* option : {"--dry-base", "--dry-allowed-length", "--dry-range"})
    refused(option, "2", "--dry-multiplier above 0");
  refused("--negative-prompt", "b", "--cfg-scale other than 1");
  const auto tokens = [&](const Arguments& more) {
    const std::string path =
        write_prompts(corpus, "{\"prompt\": \"the draft \", \"max_tokens\": 60, \"dry_multiplier\": 3}\n");
    Arguments arguments{"--prompts", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return generate_json(corpus, arguments).at("requests")[0].at("tokens");
  };
  CHECK(tokens({"--dry-allowed-length", "50"}) != tokens({}));
}

TEST_CASE("several outputs of a prompt are its requests with the next seeds, in one batch") {
  const Corpus corpus;
  const Arguments request{"--prompt", "the draft ", "--max-tokens", "40", "--temperature", "1", "--drafter", "ngram:3"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), request.begin(), request.end());
    return generate_json(corpus, more);
  };
  const ordered_json all = with({"--outputs", "3", "--seed", "5", "--verifier", "coupled"});
  REQUIRE(all.at("requests").size() == 3);
  std::set<ordered_json> texts;
  for (int i = 0; i < 3; ++i) {
    const ordered_json alone = with({"--seed", std::to_string(5 + i), "--verifier", "coupled"});
    CHECK(all.at("requests")[static_cast<std::size_t>(i)].at("tokens") == alone.at("requests")[0].at("tokens"));
    texts.insert(alone.at("requests")[0].at("text"));
  }
  CHECK(texts.size() == 3);
  check_error(corpus, {"--prompts", write_prompts(corpus, "{\"prompt\": \"a\"}\n"), "--outputs", "2"},
              "--outputs: is given with --prompts");
}

// The file of a machine on which a pass over one row takes 1 ms, and one over nine what is said.
std::string write_machine(const Corpus& corpus, const std::string& ms_of_9_rows) {
  const std::string path = corpus.folder.file("machine.toml");
  write_whole_file(path,
                   "[machine]\ncpu = \"c\"\nsimd = \"s\"\nmodel = \"m\"\narithmetic = \"counts\"\nthreads = 1\n"
                   "step_ms = 0.0\npasses = [{ rows = 1, context_len = 8, ms = 1.0 }, "
                   "{ rows = 9, context_len = 8, ms = " +
                       ms_of_9_rows + " }]\n");
  return path;
}

TEST_CASE("the goodput policy drafts where rows cost next to nothing, and hardly where each costs a pass") {
  const Corpus corpus;
  const auto steps_at = [&](const std::string& ms_of_9_rows) {
    const std::string path = write_machine(corpus, ms_of_9_rows);
    const ordered_json document = generate_json(corpus, {"--prompt", "the draft ", "--max-tokens", "90", "--drafter",
                                                         "ngram:3", "--policy", "goodput", "--cost", path});
    return document.at("requests")[0].at("num_steps").get<int>();
  };
  CHECK(steps_at("1.01") < 45);
  CHECK(steps_at("9.0") > 80);
}

TEST_CASE("what is looked up is drafted as far as it is worth its rows, and --policy fixed drafts all of it") {
  const Corpus corpus;
  const auto steps = [&](const std::string& ms_of_9_rows, const Arguments& policy) {
    const std::string path = write_machine(corpus, ms_of_9_rows);
    Arguments arguments{"--prompt", "the draft ", "--max-tokens", "90", "--drafter", "suffix", "--cost", path};
    arguments.insert(arguments.end(), policy.begin(), policy.end());
    return generate_json(corpus, arguments).at("requests")[0].at("num_steps").get<int>();
  };
  CHECK(steps("1.01", {"--policy", "likely"}) < 60);
  CHECK(steps("1e6", {"--policy", "likely"}) == 90);
  // The default goes by times only where tokens do not depend on drafts.
  CHECK(steps("1.01", {"--temperature", "0.5"}) == steps("1.01", {"--temperature", "0.5", "--policy", "likely"}));
  const ordered_json all = generate_json(
      corpus, {"--prompt", "the draft ", "--max-tokens", "90", "--drafter", "suffix", "--policy", "fixed:8"});
  CHECK(all.at("requests")[0].at("num_steps").get<int>() < 60);
}

TEST_CASE("guidance of a model without a start token leads away from what the prompt's last token alone says") {
  if (!shipped_model_path()) return;
  const auto tokens = [](const Arguments& more) {
    Arguments arguments{"generate",     "--model", *shipped_model_path(), "--prompt", "A cat",
                        "--max-tokens", "4",       "--cfg-scale",         "1.5",      "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_draftproof(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return ordered_json::parse(result.out).at("requests")[0].at("tokens");
  };
  CHECK(tokens({}).size() == 4);
  CHECK(tokens({}) == tokens({"--negative-prompt", " cat"}));
}

TEST_CASE("requests of a file run in one batch and get what each gets alone") {
  const Corpus corpus;
  const std::string prompts = R"({"prompt": "the draft "})"
                              "\n\n"
                              R"({"prompt": "the target ", "max_tokens": 20, "temperature": 0.9, "seed": 11})"
                              "\n"
                              R"({"prompt": "of the ", "cfg_scale": 1.5, "negative_prompt": "by ", "max_tokens": 30})"
                              "\n"
                              R"({"prompt": "number ", "stop": "target", "top_k": 40})"
                              "\n";
  const std::string path = write_prompts(corpus, prompts);
  const Arguments options{"--max-tokens", "50", "--drafter", "ngram:3", "--verifier", "coupled"};
  Arguments all{"--prompts", path};
  all.insert(all.end(), options.begin(), options.end());
  const ordered_json together = generate_json(corpus, all);
  REQUIRE(together.at("requests").size() == 4);
  CHECK(together.at("requests")[3].at("finish_reason") == "stop_string");
  CHECK_THAT(together.at("requests")[3].at("text").get<std::string>(), !Contains("target"));
  CHECK(together.at("requests")[1].at("tokens").size() == 20);
  std::size_t begin = 0;
  std::size_t seen = 0;
  while (begin < prompts.size()) {
    const std::size_t end = prompts.find('\n', begin);
    const std::string line = prompts.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    Arguments one{"--prompts", write_prompts(corpus, line + "\n", "one.jsonl"), "--seed", std::to_string(seen)};
    one.insert(one.end(), options.begin(), options.end());
    CHECK(generate_json(corpus, one).at("requests")[0].at("text") == together.at("requests")[seen].at("text"));
    ++seen;
  }
  Arguments crowded = all;
  crowded.insert(crowded.end(), {"--batch", "2", "--token-budget", "5"});
  const ordered_json in_turn = generate_json(corpus, crowded);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(in_turn.at("requests")[i].at("tokens") == together.at("requests")[i].at("tokens"));
}

// Options that reach the engine, its scheduler, the drafter and the policy: what is counted shows each of them.
double metric(const std::string& file, const std::string& name) {
  const std::string text = read_whole_file(file);
  const std::size_t at = text.find("\nvllm:" + name + "{");
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(text.find("} ", at) + 2));
}

TEST_CASE("options --batch, --kv-blocks, --context and --token-budget reach the scheduler and the size of its cache") {
  const Corpus corpus;
  const std::string metrics = corpus.folder.file("metrics.txt");
  constexpr int kOutputs = 6;
  const std::string prompt = "the draft of the target is read by the verifier number 3";
  const auto run = [&](const Arguments& more) {
    Arguments arguments{"--prompt",      prompt, "--outputs", std::to_string(kOutputs),
                        "--max-tokens",  "90",   "--drafter", "ngram:3",
                        "--temperature", "1",    "--metrics", metrics};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return generate_json(corpus, arguments);
  };
  // The start of the text is a token, too.
  const std::size_t prompt_len = run({}).at("requests")[0].at("prompt_tokens").get<std::size_t>() + 1;
  const auto queries = static_cast<double>(kOutputs * prompt_len);
  // The first of them compute the prompt at the same time. Each that comes later finds its three full blocks.
  for (const int batch : {1, 2, 5, 6, 7}) {
    INFO("batch " << batch);
    const ordered_json document = run({"--batch", std::to_string(batch)});
    CHECK(metric(metrics, "prefix_cache_queries_total") == queries);
    CHECK(metric(metrics, "prefix_cache_hits_total") == 48 * std::max(kOutputs - batch, 0));
    CHECK(metric(metrics, "prompt_tokens_total") == queries - 48 * std::max(kOutputs - batch, 0));
    CHECK(document.at("preemptions") == 0);
  }
  // Room for the batch, companions of guidance included.
  CHECK(run({"--batch", "6", "--cfg-scale", "1.5"}).at("preemptions") == 0);
  CHECK(run({"--batch", "6", "--kv-blocks", "20"}).at("preemptions") > 2);
  CHECK(run({"--batch", "1", "--kv-blocks", "20"}).at("preemptions") == 0);
  const ordered_json short_context = run({"--context", "80"});
  for (const ordered_json& request : short_context.at("requests"))
    CHECK(request.at("tokens").size() == 80 - prompt_len);
  // So few tokens a step that one prompt is computed after the other.
  run({"--token-budget", "10"});
  CHECK(metric(metrics, "prefix_cache_hits_total") == 48 * (kOutputs - 1));
  run({"--token-budget", "10000"});
  CHECK(metric(metrics, "prefix_cache_hits_total") == 0);
}

TEST_CASE("options --num-speculative-tokens and --tree reach the drafter, the policy and the request") {
  const Corpus corpus;
  const std::string metrics = corpus.folder.file("metrics.txt");
  const auto drafts = [&](const Arguments& more) {
    Arguments arguments{"--prompt", "the draft of ", "--max-tokens", "120", "--metrics", metrics};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ordered_json document = generate_json(corpus, arguments);
    // One observation of either latency for each step that emitted.
    CHECK(document.at("tokens_per_step").get<double>() ==
          Approx(metric(metrics, "generation_tokens_total") / (metric(metrics, "time_to_first_token_seconds_count") +
                                                               metric(metrics, "inter_token_latency_seconds_count"))));
    return metric(metrics, "spec_decode_num_draft_tokens_total") / metric(metrics, "spec_decode_num_drafts_total");
  };
  // More than K by default, which is what a part would draft that K does not reach.
  const char* const all = "likely";  // of a model's drafts
  CHECK(drafts({"--drafter", "ngram:3", "-k", "12", "--policy", all}) > 9);
  CHECK(drafts({"--drafter", "ngram:3", "-k", "12", "--policy", all}) <= 12);
  CHECK(drafts({"--drafter", "ngram:3", "-k", "2", "--policy", all}) == Approx(2).margin(0.1));
  CHECK(drafts({"--drafter", "ngram:3", "-k", "12", "--policy", "fixed:3"}) == Approx(3).margin(0.2));
  CHECK(drafts({"--drafter", "suffix", "-k", "2"}) <= 2);
  const auto positions = [&](const std::string& k) {
    return generate_json(corpus, {"--prompt", "the draft of ", "--max-tokens", "120", "--drafter", "suffix", "-k", k,
                                  "--policy", "likely"})
        .at("acceptance_by_position")
        .at("unconditional")
        .size();
  };
  CHECK(positions("14") > 8);
  CHECK(positions("5") == 5);
  // 2 + 4 nodes, and 3 + 9 + 9.
  CHECK(drafts({"--drafter", "ngram:3", "--verifier", "rrsw", "--temperature", "1", "--tree", "2x2"}) ==
        Approx(6).margin(0.5));
  CHECK(drafts({"--drafter", "ngram:3", "--verifier", "rrsw", "--temperature", "1", "--tree", "3x3x1"}) ==
        Approx(21).margin(3));
}

TEST_CASE("option --seed is that of the first output or line, and the next ones follow it") {
  const Corpus corpus;
  const Arguments options{"--max-tokens", "40", "--temperature", "1", "--drafter", "ngram:3", "--verifier", "coupled"};
  const auto requests = [&](Arguments more) {
    more.insert(more.end(), options.begin(), options.end());
    return generate_json(corpus, more).at("requests");
  };
  const std::string line = "{\"prompt\": \"the draft \"}\n";
  const ordered_json lines = requests({"--prompts", write_prompts(corpus, line + line + line), "--seed", "41"});
  const ordered_json outputs = requests({"--prompt", "the draft ", "--outputs", "3", "--seed", "41"});
  std::set<ordered_json> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    const ordered_json alone = requests({"--prompt", "the draft ", "--seed", std::to_string(41 + i)})[0];
    CHECK(lines[i].at("text") == alone.at("text"));
    CHECK(outputs[i].at("text") == alone.at("text"));
    texts.insert(alone.at("text"));
  }
  CHECK(texts.size() == 3);
}

TEST_CASE("a trace of generate replays to the tokens that were generated, and metrics are written") {
  const Corpus corpus;
  const std::string trace = corpus.folder.file("trace.safetensors");
  const std::string metrics = corpus.folder.file("metrics.txt");
  const ordered_json document =
      generate_json(corpus, {"--prompt", "the draft ", "--max-tokens", "40", "--temperature", "1", "--drafter",
                             "ngram:3", "--trace", trace, "--metrics", metrics});
  CHECK(document.at("files").at("trace") == trace);
  CHECK_THAT(read_whole_file(metrics), Contains("vllm:generation_tokens_total") && Contains(" 40"));
  const ProgramResult verify = run_draftproof({"verify", trace, "--json"});
  REQUIRE(verify.exit_code == 0);
  std::vector<int> tokens;
  const ordered_json replayed = ordered_json::parse(verify.out);
  for (const ordered_json& step : replayed.at("output_tokens"))
    for (const ordered_json& token : step) tokens.push_back(token.get<int>());
  CHECK(tokens == document.at("requests")[0].at("tokens").get<std::vector<int>>());
}

TEST_CASE("penalties, bias, bad words and logprobs reach the rows") {
  const Corpus corpus;
  const Arguments base{"--prompt", "the ", "--max-tokens", "30", "--drafter", "prompt_lookup"};
  const auto text_with = [&](Arguments more) {
    more.insert(more.end(), base.begin(), base.end());
    return generate_json(corpus, more).at("requests")[0].at("text").get<std::string>();
  };
  const std::string plain = text_with({});
  CHECK_THAT(plain, Contains("draft") || Contains("target") || Contains("verifier"));
  CHECK(text_with({"--repetition-penalty", "1.8"}) != plain);
  for (const char* const end : {"1e-6", "1e6"}) CHECK_FALSE(text_with({"--repetition-penalty", end}).empty());
  CHECK(text_with({"--logit-bias", "120=50"}).find_first_not_of('x') == std::string::npos);
  CHECK_THAT(text_with({"--bad-words", plain.substr(0, 3)}), !Contains(plain.substr(0, 3)));
  const std::string without_both =
      text_with({"--bad-words", plain.substr(0, 3), "--bad-words", plain.substr(4, 3), "--logit-bias", "120=1"});
  CHECK_THAT(without_both, !Contains(plain.substr(0, 3)) && !Contains(plain.substr(4, 3)));
  CHECK(text_with({"--stop", plain.substr(9, 2), "--stop", plain.substr(4, 2)}) == plain.substr(0, 4));
  Arguments logprobs = base;
  logprobs.insert(logprobs.end(), {"--logprobs", "3", "--prompt-logprobs", "0", "--logprob-token-ids", "120,122"});
  const ordered_json request = generate_json(corpus, logprobs).at("requests")[0];
  REQUIRE(request.at("logprobs").size() == request.at("tokens").size());
  for (std::size_t i = 0; i < request.at("tokens").size(); ++i) {
    const ordered_json& first = request.at("logprobs")[i][0];
    CHECK(first.at("rank") == 1);
    CHECK(first.at("token") == request.at("tokens")[i]);  // greedy
    CHECK(first.at("logprob") <= 0.0);
  }
  // The same rows, asked for as those of a prompt: what was drawn and what was given.
  const std::string text = "the " + request.at("text").get<std::string>();
  const ordered_json scored = generate_json(corpus, {"--prompt", text, "--max-tokens", "1", "--logprobs", "0",
                                                     "--prompt-logprobs", "3", "--logprob-token-ids", "120,122"})
                                  .at("requests")[0];
  const std::size_t given = scored.at("prompt_logprobs").size() - request.at("tokens").size();
  for (std::size_t i = 0; i < request.at("tokens").size(); ++i)
    CHECK(scored.at("prompt_logprobs")[given + i] == request.at("logprobs")[i]);
  for (std::size_t i = 1; i < given; ++i) {  // with 0 likeliest: the token itself, and the two
    CHECK(request.at("prompt_logprobs")[i].size() == 3);
    CHECK(request.at("prompt_logprobs")[i][1].at("token") == 120);
  }
}

TEST_CASE("one beam is greedy decoding, and more are ordered by their scores") {
  const Corpus corpus;
  const Arguments request{"--prompt", "the draft ", "--max-tokens", "12", "--drafter", "none"};
  const ordered_json greedy = generate_json(corpus, request).at("requests")[0];
  Arguments one = request;
  one.insert(one.end(), {"--beams", "1"});
  CHECK(generate_json(corpus, one).at("requests")[0].at("text") == greedy.at("text"));
  Arguments four = request;
  four.insert(four.end(), {"--beams", "4"});
  const ordered_json beams = generate_json(corpus, four).at("requests")[0].at("beams");
  REQUIRE(beams.size() == 4);
  for (std::size_t i = 1; i < beams.size(); ++i) CHECK(beams[i - 1].at("score") >= beams[i].at("score"));
  four.insert(four.end(), {"--best-of", "2"});
  const ordered_json best = generate_json(corpus, four).at("requests")[0].at("beams");
  CHECK(best == ordered_json::array({beams[0], beams[1]}));
  four.insert(four.end(), {"--length-penalty", "0"});
  for (const ordered_json& beam : generate_json(corpus, four).at("requests")[0].at("beams"))
    CHECK(beam.at("score") == beam.at("sum_logprob"));
  one.insert(one.end(), {"--best-of", "2"});
  check_error(corpus, one, "--best-of: is 2; expected at most --beams, 1");
}

TEST_CASE("options of what is sampled or drafted are refused where nothing is") {
  const Corpus corpus;
  const auto refused = [&](const Arguments& without, const std::string& option, const std::string& value) {
    Arguments arguments{"--prompt", "the ", option, value};
    arguments.insert(arguments.end(), without.begin(), without.end());
    check_error(corpus, arguments, option + ": has no use with " + without[0]);
  };
  for (const auto& [option, value] : {std::pair("--temperature", "0"),
                                      {"--top-p", "0.9"},
                                      {"--top-k", "4"},
                                      {"--min-p", "0.1"},
                                      {"--typical-p", "0.9"},
                                      {"--repetition-penalty", "1.1"},
                                      {"--logit-bias", "1=1"},
                                      {"--bad-words", "a"},
                                      {"--stop", "a"},
                                      {"--min-tokens", "1"},
                                      {"--logprobs", "1"},
                                      {"--cfg-scale", "2"},
                                      {"--sampler", "race"},
                                      {"--seed", "1"},
                                      {"--verifier", "chain"},
                                      {"--num-speculative-tokens", "2"},
                                      {"--policy", "off"},
                                      {"--metrics", "m.txt"}})
    refused({"--beams", "2"}, option, value);
  for (const auto& [option, value] : {std::pair("--num-speculative-tokens", "2"),
                                      {"--policy", "off"},
                                      {"--verifier", "chain"},
                                      {"--tree", "2x2"},
                                      {"--cost", "m.toml"},
                                      {"--draft-temperature", "1"}})
    refused({"--drafter", "none"}, option, value);
  for (const char* drafter : {"prompt_lookup", "suffix", "auto"})
    check_error(corpus, {"--prompt", "a", "--drafter", drafter, "--draft-temperature", "1"},
                "--draft-temperature: has no use with a drafter that has no probabilities");
  check_error(corpus, {"--prompt", "a", "--drafter", "suffix", "--cfg-scale", "2", "--guided-drafts"},
              "--guided-drafts: has no use with a drafter that is no head");
  check_error(corpus, {"--prompt", "a", "--drafter", "ngram:3", "--heterogeneous-vocab", "slem"},
              "--heterogeneous-vocab: has no use with a drafter that is not model:PATH");
  check_error(corpus, {"--prompt", "a", "--drafter", "ngram:3", "--sa-threshold", "3"},
              "--sa-threshold: has no use with a drafter that is not suffix+NAME");
  check_error(
      corpus,
      {"--prompt", "a", "--drafter", "model:ngram:3", "--heterogeneous-vocab", "slem", "--draft-temperature", "1"},
      "--draft-temperature: has no use with a drafter that has no probabilities");
  check_error(corpus, {"--prompt", "a", "--drafter", "model:ngram:3", "--heterogeneous-vocab", "slem"},
              "which has the target's vocabulary; expected a model of another for --heterogeneous-vocab slem");
}

TEST_CASE("what generate cannot do is refused in one line that names the option or the line of the file") {
  const Corpus corpus;
  const Arguments prompt{"--prompt", "the "};
  const auto refused = [&](Arguments more, const std::string& words) {
    more.insert(more.end(), prompt.begin(), prompt.end());
    check_error(corpus, more, words);
  };
  check_error(corpus, {}, "expected --prompt TEXT or --prompts FILE");
  refused({"--prompts", "x"}, "expected one of them");
  refused({"--drafter", "oracle"}, "--drafter: is 'oracle'; expected none, prompt_lookup, suffix");
  refused({"--drafter", "layer_skip:5-3"}, "layer 1 is '5-3'; expected a whole number in [0, 4096]");
  refused({"--drafter", "layer_skip:1"}, "has no layers");
  refused({"--drafter", "model:ngram:99"}, "expected ngram:ORDER");
  refused({"--verifier", "magic"}, "magic");
  refused({"--policy", "always"}, "--policy");
  refused({"--activations", "f32"}, "--activations: has no use with an n-gram model");
  refused({"--policy", "goodput"}, "--policy: is goodput, which needs to know what a step costs; expected --cost FILE");
  refused({"--cost", corpus.folder.file("absent.toml")}, "absent.toml");
  refused({"--policy", "fixed:2", "--cost", corpus.folder.file("absent.toml")},
          "--cost: is given for --policy fixed:2; expected one that asks for it: auto, likely or goodput");
  refused({"--policy", "goodput", "--cost", corpus.folder.file("absent.toml")}, "absent.toml");
  refused({"--chat"}, "has no chat template");
  refused({"--logit-bias", "300=1"}, "expected ID=VALUE with an id in [0, 256)");
  refused({"--logprobs", "1", "--logprob-token-ids", "0,256"},
          "logprob_token_ids, token 1: id 256 is outside the vocabulary [0, 256)");
  std::string ids = "0";
  for (int id = 1; id <= 128; ++id) ids += "," + std::to_string(id);
  refused({"--logprobs", "1", "--logprob-token-ids", ids}, "logprob_token_ids: has 129 ids; expected at most 128");
  refused({"--repetition-penalty", "9e-7"}, "--repetition-penalty is '9e-7'; expected a number in [1e-06, 1e+06]");
  refused({"--repetition-penalty", "1.1e6"}, "expected a number in [1e-06, 1e+06]");
  refused({"--logit-bias", "3=1e300"}, "--logit-bias: is '3=1e300'; expected ID=VALUE");
  refused({"--min-tokens", "9", "--max-tokens", "8"}, "--min-tokens: is 9; expected at most --max-tokens, 8");
  refused({"--context", "4", "--max-tokens", "5"}, "context");
  refused({"--context", "1048577"}, "--context: is 1048577; expected at most 1048576");
  refused({"--kv-blocks", "1", "--max-tokens", "50"}, "--prompt");
  refused({"--trace", corpus.folder.file("t"), "--drafter", "none"}, "plain decoding has no verification steps");
  const auto bad_line = [&](const std::string& text, const std::string& words) {
    check_error(corpus, {"--prompts", write_prompts(corpus, text)}, words);
  };
  bad_line("", "has no prompt");
  bad_line("{\"prompt\": \"a\"}\n{\"prompt\":\n", "line 2: is no JSON object");
  bad_line("{\"prompt\": 3}\n", "line 1: \"prompt\" is 3; expected a text");
  bad_line("{\"prompt\": \"a\", \"max_token\": 3}\n", "line 1: has the field \"max_token\"");
  bad_line("{\"max_tokens\": 3}\n", "line 1: has no \"prompt\"");
  bad_line("{\"prompt\": \"a\", \"temperature\": -1}\n", "temperature");
}

TEST_CASE("a request that cannot be served has an error of its own and the others go on") {
  const Corpus corpus;
  const std::string path =
      write_prompts(corpus, "{\"prompt\": \"the draft \"}\n{\"prompt\": \"" + std::string(400, 'a') + "\"}\n");
  const ordered_json document = generate_json(corpus, {"--prompts", path, "--context", "200", "--max-tokens", "20"}, 2);
  CHECK(document.at("requests")[0].at("error").is_null());
  CHECK(document.at("requests")[0].at("tokens").size() == 20);
  CHECK_THAT(document.at("requests")[1].at("error").get<std::string>(), Contains("line 2"));
  CHECK(document.at("requests")[1].at("finish_reason") == "error");
}

TEST_CASE("the shipped model answers, the same with speculation as without") {
  if (!shipped_model_path()) return;
  const auto answer = [](Arguments more) {
    Arguments arguments{
        "generate", "--model", *shipped_model_path(), "--prompt", "The capital of France is", "--max-tokens",
        "12",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_draftproof(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return ordered_json::parse(result.out).at("requests")[0].at("text").get<std::string>();
  };
  const std::string plain = answer({"--drafter", "none"});
  CHECK_THAT(plain, Contains("Paris"));
  CHECK(answer({"--drafter", "suffix"}) == plain);
  CHECK(answer({"--drafter", "model:ngram:3"}) == plain);  // a model of bytes
  CHECK(answer({"--drafter", "model:ngram:3", "--heterogeneous-vocab", "slem"}) == plain);
  CHECK(answer({"--drafter", "suffix+requantised:4", "-k", "3"}) == plain);
  CHECK(answer({"--drafter", "layer_skip:12-16", "-k", "3"}) == plain);
  CHECK(answer({"--drafter", "requantised:4", "--tree", "2x1", "--verifier", "traversal"}) == plain);
}

}  // namespace
