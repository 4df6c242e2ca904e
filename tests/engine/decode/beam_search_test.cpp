// Beam search against the enumeration of all sequences, against greedy decoding, and by hand.
#include "engine/decode/beam_search.hpp"

#include "engine/decode/engine.hpp"
#include "engine/decode/generate.hpp"
#include "engine/model/model_session.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/engine/scheduler/invariants.hpp"
#include "tests/support/test.hpp"

using Tokens = std::vector<Token>;

namespace {

// A random model: the row of a context is drawn from a generator seeded by the context. With `eighths` the values are
// multiples of 1/8, so that sums are exact and many are equal; otherwise they are the logarithms of a distribution.
NextLogProbs random_model(unsigned seed, bool eighths, bool zeros) {
  return [=](std::span<const Token> context, std::span<float> log_probs) {
    std::seed_seq sequence(context.begin(), context.end());
    std::mt19937 random(seed);
    std::vector<unsigned> mixed(1);
    sequence.generate(mixed.begin(), mixed.end());
    random.seed(seed * 7919U + mixed[0]);
    double total = 0.0;
    std::vector<double> weights(log_probs.size());
    for (double& weight : weights) total += weight = 1.0 + static_cast<double>(random() % 1000003);
    for (std::size_t i = 0; i < log_probs.size(); ++i) {
      log_probs[i] =
          eighths ? -static_cast<float>(random() % 4) / 8.0F : static_cast<float>(std::log(weights[i] / total));
    }
    if (zeros) log_probs[random() % log_probs.size()] = kMinusInfinity;
    if (zeros && log_probs.size() == 1) log_probs[0] = -0.5F;
  };
}

bool is_eos(const BeamSearchParameters& p, Token token) {
  return std::count(p.eos_ids.begin(), p.eos_ids.end(), token) > 0;
}

// Every sequence that ends with an eos id or has max_tokens tokens.
void enumerate(const BeamSearchParameters& p, const NextLogProbs& model, std::size_t vocab_size, const Tokens& prompt,
               Tokens& tokens, double sum, std::vector<BeamHypothesis>& all) {
  if (!tokens.empty() && (is_eos(p, tokens.back()) || static_cast<std::int64_t>(tokens.size()) == p.max_tokens)) {
    const auto length = static_cast<double>(tokens.size());
    all.push_back({tokens, sum, sum / std::pow(length, p.length_penalty),
                   is_eos(p, tokens.back()) ? FinishReason::eos : FinishReason::length});
    return;
  }
  Tokens context = prompt;
  context.insert(context.end(), tokens.begin(), tokens.end());
  std::vector<float> row(vocab_size);
  model(context, row);
  for (std::size_t token = 0; token < vocab_size; ++token) {
    if (std::isinf(row[token])) continue;
    tokens.push_back(static_cast<Token>(token));
    enumerate(p, model, vocab_size, prompt, tokens, sum + static_cast<double>(row[token]), all);
    tokens.pop_back();
  }
}

std::vector<BeamHypothesis> exhaustive(const BeamSearchParameters& p, const NextLogProbs& model, std::size_t vocab_size,
                                       const Tokens& prompt) {
  std::vector<BeamHypothesis> all;
  Tokens tokens;
  enumerate(p, model, vocab_size, prompt, tokens, 0.0, all);
  std::sort(all.begin(), all.end(), [](const BeamHypothesis& a, const BeamHypothesis& b) {
    return a.score != b.score ? a.score > b.score : a.tokens < b.tokens;
  });
  return all;
}

// A model given by the log-probabilities after each context it can meet; every other context is an error of the test.
NextLogProbs table_model(std::vector<std::pair<Tokens, std::vector<float>>> table) {
  return [table = std::move(table)](std::span<const Token> context, std::span<float> log_probs) {
    for (const auto& [known, row] : table) {
      if (!std::equal(context.begin(), context.end(), known.begin(), known.end())) continue;
      std::copy(row.begin(), row.end(), log_probs.begin());
      return;
    }
    FAIL("the model was asked for a context it should not meet");
  };
}

}  // namespace

TEST_CASE("a beam that prunes nothing finds the best sequences of all") {
  std::mt19937 random(42);
  std::size_t by_eos = 0;
  std::size_t by_length = 0;
  for (unsigned trial = 0; trial < 600; ++trial) {
    const std::size_t vocab_size = 1 + random() % 3;
    BeamSearchParameters p;
    p.max_tokens = 1 + static_cast<std::int64_t>(random() % 4);
    p.beam_width = 1;
    for (std::int64_t i = 0; i < p.max_tokens; ++i) p.beam_width *= static_cast<std::int64_t>(vocab_size);
    p.best_of = 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(p.beam_width));
    for (std::size_t i = random() % 3; i > 0; --i) p.eos_ids.push_back(static_cast<Token>(random() % vocab_size));
    // Where the values are multiples of 1/8, scores with these two penalties are exact and the ties are real.
    const bool ties = random() % 2 == 0;
    const double penalties[] = {0.0, 1.0, 0.6, 1.7, -0.8};
    p.length_penalty = penalties[random() % (ties ? 2 : 5)];
    const NextLogProbs model = random_model(trial, ties, random() % 3 == 0);
    const Tokens prompt = {0};
    const auto all = exhaustive(p, model, vocab_size, prompt);
    const auto best = beam_search(prompt, vocab_size, p, model);
    INFO("trial " << trial << " length penalty " << p.length_penalty << " ties " << ties);
    REQUIRE(best.size() == std::min(all.size(), static_cast<std::size_t>(p.best_of)));
    for (std::size_t i = 0; i < best.size(); ++i) {
      REQUIRE(best[i].tokens == all[i].tokens);
      REQUIRE(best[i].sum_logprob == all[i].sum_logprob);
      REQUIRE(std::fabs(best[i].score - all[i].score) <= 1e-13 * std::fabs(all[i].score));
      REQUIRE(best[i].finish_reason == all[i].finish_reason);
    }
    best[0].finish_reason == FinishReason::eos ? ++by_eos : ++by_length;
  }
  CHECK(by_eos > 100);
  CHECK(by_length > 100);
}

TEST_CASE("a beam that prunes agrees with a search that sorts all candidates and never stops early") {
  std::mt19937 random(99);
  std::size_t not_the_best = 0;
  for (unsigned trial = 0; trial < 600; ++trial) {
    const std::size_t vocab_size = 2 + random() % 3;
    BeamSearchParameters p;
    p.max_tokens = 1 + static_cast<std::int64_t>(random() % 5);
    p.beam_width = 1 + static_cast<std::int64_t>(random() % 5);
    p.best_of = 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(p.beam_width));
    for (std::size_t i = random() % 3; i > 0; --i) p.eos_ids.push_back(static_cast<Token>(random() % vocab_size));
    p.length_penalty = static_cast<double>(random() % 2);
    const NextLogProbs model = random_model(1000 + trial, trial % 2 == 0, random() % 3 == 0);
    const auto width = static_cast<std::size_t>(p.beam_width);

    using Scored = std::pair<double, Tokens>;  // negated, so that the order of pairs is the order of the search
    std::vector<Scored> running = {{0.0, {}}};
    std::vector<Scored> finished;
    for (std::int64_t length = 1; length <= p.max_tokens; ++length) {
      std::vector<Scored> candidates;
      for (const auto& [loss, tokens] : running) {
        std::vector<float> row(vocab_size);
        model(tokens, row);
        for (std::size_t token = 0; token < vocab_size; ++token) {
          if (std::isinf(row[token])) continue;
          candidates.emplace_back(loss - static_cast<double>(row[token]), tokens);
          candidates.back().second.push_back(static_cast<Token>(token));
        }
      }
      std::sort(candidates.begin(), candidates.end());
      running.clear();
      for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
        const auto& [loss, tokens] = candidates[rank];
        const double divisor = p.length_penalty == 1.0 ? static_cast<double>(length) : 1.0;
        const bool ends = is_eos(p, tokens.back());
        if (!ends && running.size() < width)
          running.push_back(candidates[rank]);
        else if (!ends)
          continue;
        if (ends ? rank < width : length == p.max_tokens) finished.emplace_back(loss / divisor, tokens);
      }
    }
    std::sort(finished.begin(), finished.end());
    finished.resize(std::min(finished.size(), static_cast<std::size_t>(p.best_of)));

    const auto found = beam_search({}, vocab_size, p, model);
    INFO("trial " << trial);
    REQUIRE(found.size() == finished.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      REQUIRE(found[i].tokens == finished[i].second);
      REQUIRE(found[i].score == -finished[i].first);
    }
    not_the_best += exhaustive(p, model, vocab_size, {})[0].tokens != found[0].tokens ? 1 : 0;
  }
  CHECK(not_the_best > 20);  // the widths do prune
}

TEST_CASE("beam width 1 is greedy decoding") {
  std::mt19937 random(7);
  for (unsigned trial = 0; trial < 400; ++trial) {
    const std::size_t vocab_size = 2 + random() % 4;
    BeamSearchParameters p;
    p.max_tokens = 6;
    p.eos_ids = {1};
    // With the exact rule and a penalty, width 1 goes on behind the eos id: it is greedy only without one.
    p.stopping = trial % 3 == 0   ? BeamStopping::exact
                 : trial % 3 == 1 ? BeamStopping::current_length
                                  : BeamStopping::first_finished;
    p.length_penalty = p.stopping == BeamStopping::exact ? 0.0 : 0.5 * static_cast<double>(random() % 4);
    const NextLogProbs model = random_model(trial, trial % 2 == 0, false);
    Tokens greedy;
    double sum = 0.0;
    while (greedy.size() < 6 && (greedy.empty() || greedy.back() != 1)) {
      std::vector<float> row(vocab_size);
      model(greedy, row);
      const auto best = std::max_element(row.begin(), row.end());  // the first of equals: the lowest id
      greedy.push_back(static_cast<Token>(best - row.begin()));
      sum += static_cast<double>(*best);
    }
    const auto found = beam_search({}, vocab_size, p, model);
    REQUIRE(found.size() == 1);
    if (p.stopping == BeamStopping::exact && trial % 2 == 0) {
      REQUIRE(found[0].sum_logprob >= sum);  // equal sums: a tie may be won by a later sequence
    } else {
      REQUIRE(found[0].tokens == greedy);
      REQUIRE(found[0].sum_logprob == sum);
    }
  }
}

TEST_CASE("the stopping rules differ exactly where the length penalty still favours a longer sequence") {
  // Token 0 ends. [0] scores -1.0; [1 1 0] sums to -1.8 and scores -0.6 at length 3. After one step the running beam
  // [1] has -1.2 at length 1: worse than the pool, but not beaten for good.
  const NextLogProbs model = table_model({{{}, {-1.0F, -1.2F}}, {{1}, {-9.0F, -0.5F}}, {{1, 1}, {-0.1F, -7.0F}}});
  BeamSearchParameters p;
  p.max_tokens = 3;
  p.eos_ids = {0, 0};
  const auto best = [&](BeamStopping stopping, double length_penalty) {
    p.stopping = stopping;
    p.length_penalty = length_penalty;
    return beam_search({}, 2, p, model)[0];
  };
  CHECK(best(BeamStopping::first_finished, 1.0).tokens == Tokens{0});
  CHECK(best(BeamStopping::current_length, 1.0).tokens == Tokens{0});
  CHECK(best(BeamStopping::exact, 1.0).tokens == Tokens{1, 1, 0});
  CHECK(best(BeamStopping::exact, 1.0).score == Approx(-0.6).epsilon(1e-6));
  CHECK(best(BeamStopping::exact, 0.0).tokens == Tokens{0});
  CHECK(best(BeamStopping::exact, -1.0).tokens == Tokens{0});
}

TEST_CASE("the exact rule stops asking the model once nothing can enter the pool") {
  int asked = 0;
  const NextLogProbs model = [&](std::span<const Token>, std::span<float> log_probs) {
    ++asked;
    log_probs[0] = -0.25F;
    log_probs[1] = -4.0F;
  };
  BeamSearchParameters p;
  p.max_tokens = 8;
  p.eos_ids = {0};
  p.length_penalty = 0.0;
  CHECK(beam_search({}, 2, p, model)[0].tokens == Tokens{0});
  CHECK(asked == 1);
  // With penalty 1 the running beam of -4 could come down to -4/8 = -0.5 at best, which -0.25 beats as well.
  p.length_penalty = 1.0;
  CHECK(beam_search({}, 2, p, model)[0].tokens == Tokens{0});
  CHECK(asked == 2);
  // With penalty 2 it could reach -4/64, which beats -0.25, so the search goes on.
  p.length_penalty = 2.0;
  beam_search({}, 2, p, model);
  CHECK(asked > 3);
}

TEST_CASE("the exact rule allows for log-probabilities that rounding has lifted above 0") {
  const NextLogProbs model = table_model({{{}, {-0.0001F, -0.00015F}}, {{1}, {0.0002F, -9.0F}}});
  BeamSearchParameters p;
  p.max_tokens = 2;
  p.length_penalty = 0.0;
  p.eos_ids = {0};
  CHECK(beam_search({}, 2, p, model)[0].tokens == Tokens{1, 0});
}

TEST_CASE("a vocabulary of one and fewer sequences than best_of are served") {
  const NextLogProbs certain = [](std::span<const Token>, std::span<float> log_probs) { log_probs[0] = 0.0F; };
  BeamSearchParameters p;
  p.beam_width = std::numeric_limits<std::int64_t>::max();
  p.best_of = 5;
  p.max_tokens = 3;
  const auto found = beam_search({}, 1, p, certain);
  REQUIRE(found.size() == 1);
  CHECK(found[0].tokens == Tokens{0, 0, 0});
  CHECK(found[0].score == 0.0);
}

TEST_CASE("wrong beam search parameters and rows are refused by name") {
  const NextLogProbs flat = [](std::span<const Token>, std::span<float> log_probs) {
    std::fill(log_probs.begin(), log_probs.end(), -1.0F);
  };
  const auto message_of = [](const BeamSearchParameters& p, const NextLogProbs& model, ErrorKind kind,
                             std::size_t vocab_size = 3, const Tokens& prompt = {}) {
    return error_of(kind, [&] { beam_search(prompt, vocab_size, p, model); });
  };
  const auto refused = [&](auto change) {
    BeamSearchParameters p;
    change(p);
    return message_of(p, flat, ErrorKind::usage);
  };
  CHECK_NOTHROW(beam_search({}, 3, {}, flat));
  CHECK(refused([](auto& p) { p.beam_width = 0; }) == "beam_width: 0 is not at least 1");
  CHECK(refused([](auto& p) { p.best_of = 2; }) == "best_of: 2 is not between 1 and beam_width 1");
  CHECK(refused([](auto& p) { p.best_of = 0; }).starts_with("best_of: 0"));
  CHECK(refused([](auto& p) { p.max_tokens = 0; }).starts_with("max_tokens: 0"));
  CHECK(refused([](auto& p) { p.eos_ids = {2, 3}; }) == "eos_ids[1]: token id 3 is outside [0, 3)");
  for (const double penalty : {std::nan(""), 1e9, -HUGE_VAL})
    CHECK(refused([=](auto& p) { p.length_penalty = penalty; }).starts_with("length_penalty: "));
  CHECK(message_of({}, flat, ErrorKind::usage, 0).starts_with("vocab_size: 0"));
  CHECK(message_of({}, flat, ErrorKind::usage, 3, {0, -1}) == "prompt[1]: token id -1 is outside [0, 3)");

  // A bad value at step 1 in the row of the second best beam, which is [2].
  const auto bad_row = [](float value, bool written) -> NextLogProbs {
    return [=](std::span<const Token> context, std::span<float> log_probs) {
      const float row[] = {-3.0F, -1.0F, -2.0F};
      std::copy(row, row + (written || context.empty() ? 3 : 2), log_probs.begin());
      if (written && !context.empty() && context[0] == 2) log_probs[1] = value;
    };
  };
  BeamSearchParameters p;
  p.beam_width = 2;
  p.best_of = 1;
  for (const float value : {NAN, INFINITY, 0.5F})
    CHECK(message_of(p, bad_row(value, true), ErrorKind::input).starts_with("beam search step 1, beam 1, token 1: "));
  CHECK(message_of(p, bad_row(0.0F, false), ErrorKind::input)
            .starts_with("beam search step 1, beam 0, token 2: log-probability NaN"));
  CHECK_NOTHROW(beam_search({}, 3, p, bad_row(1e-6F, true)));
  const NextLogProbs nothing = [](std::span<const Token>, std::span<float> log_probs) {
    std::fill(log_probs.begin(), log_probs.end(), kMinusInfinity);
  };
  CHECK(message_of(p, nothing, ErrorKind::input).starts_with("beam search step 0, beam 0: every log-probability"));
}

TEST_CASE("beams in an engine are those of the loop, and other requests get the tokens that they get alone") {
  constexpr std::size_t kVocab = 90;
  ToyModel target(kVocab, 1, 2);
  std::int64_t shared = 0;
  std::size_t copies = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Tokens prompt;
    for (unsigned i = 0; i < 10 + random() % 40; ++i) prompt.push_back(static_cast<Token>(random() % kVocab));
    BeamSearchParameters parameters;
    parameters.beam_width = 1 + static_cast<std::int64_t>(seed % 5);
    parameters.best_of = 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(parameters.beam_width));
    parameters.length_penalty = seed % 2 == 0 ? 1.0 : 0.5;
    parameters.max_tokens = 20;
    parameters.eos_ids = {7};
    ModelSession session(target);
    std::vector<float> logits(kVocab);
    LogitsDistribution row;
    const auto expected =
        beam_search(prompt, kVocab, parameters, [&](std::span<const Token> context, std::span<float> log_probs) {
          session.logits(context, logits);
          row.assign(logits, RowName{});
          for (std::size_t i = 0; i < kVocab; ++i) log_probs[i] = row.log_probability(static_cast<Token>(i));
        });
    PhiloxSource source;
    SourceSampler<PhiloxSource> sampler(source);
    EngineOptions options;
    options.scheduler.num_blocks = seed % 3 == 2 ? 9 : 40;  // of 9 some are taken back
    options.scheduler.prefill_chunk_max = 13;
    Engine engine(target, nullptr, sampler, options);
    engine.on_step([&](const StepPlan& plan, const StepOutcome&) {
      copies += plan.copies.size();
      CHECK(violated_invariant(engine.scheduler()) == std::nullopt);
    });
    DecodingOptions other;
    other.stop.max_tokens = 60;
    other.seed = seed;
    const std::uint64_t beside = engine.submit(prompt, other, false);
    const auto found = beam_search(engine, prompt, kVocab, parameters);
    engine.run();
    CHECK(engine.take(beside)->tokens == generate(target, nullptr, other, prompt, source).tokens);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].tokens == expected[i].tokens);
      CHECK(found[i].score == expected[i].score);
      CHECK(found[i].finish_reason == expected[i].finish_reason);
    }
    CHECK(engine.scheduler().blocks().num_held() == 0);
    shared += engine.scheduler().metrics().prefix_hits;
  }
  CHECK(shared > 1000);
  CHECK(copies > 50);
}

TEST_CASE("beams compute one token a step, and copy the last block for all but one who go on from it") {
  constexpr std::size_t kVocab = 90;
  ToyModel target(kVocab, 1, 2);
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, nullptr, sampler, {});
  const Tokens prompt(21, 5);
  BeamSearchParameters parameters;
  parameters.beam_width = 4;
  parameters.max_tokens = 24;
  std::size_t steps = 0, copies = 0;
  engine.on_step([&](const StepPlan& plan, const StepOutcome&) {
    if (steps++ == 0) return;
    REQUIRE(plan.requests.size() == 4);
    CHECK(plan.num_tokens == 4);
    std::map<Tokens, std::size_t> going_on;
    std::set<std::int32_t> blocks;
    for (const PlannedRequest& planned : plan.requests) {
      const StreamContext& context = planned.streams[0].context;
      CHECK(context.blocks.size() == static_cast<std::size_t>(blocks_for(context.length + 1)));
      blocks.insert(context.blocks.begin(), context.blocks.end());
      const auto tokens = engine.backend().request(planned.request).stream(0);
      if (context.length % kKvBlockSlots != 0) ++going_on[{tokens.begin(), tokens.begin() + context.length}];
    }
    std::size_t expected = 0;
    for (const auto& [tokens, children] : going_on) expected += children - 1;
    CHECK(plan.copies.size() == expected);
    CHECK(engine.scheduler().blocks().num_held() == static_cast<std::int32_t>(blocks.size()));
    CHECK(blocks.size() <= 1 + 4 * 2);  // one full block of the prompt is everybody's
    copies += expected;
  });
  beam_search(engine, prompt, kVocab, parameters);
  CHECK(steps == 24);
  CHECK(copies > 10);
}

TEST_CASE("searches beside one another find what each finds alone, and the one that is refused harms none") {
  constexpr std::size_t kVocab = 90;
  ToyModel target(kVocab, 1, 2);
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  std::vector<Tokens> prompts;
  for (Token i = 0; i < 6; ++i) prompts.push_back({i, 3, static_cast<Token>(i * 7 % 11)});
  std::vector<BeamRequest> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    BeamSearchParameters parameters;
    parameters.beam_width = 1 + static_cast<std::int64_t>(i % 3);
    parameters.max_tokens = 8 + static_cast<std::int64_t>(i);
    parameters.eos_ids = {7};
    requests.push_back({prompts[i], parameters});
  }
  requests[2].parameters.best_of = 9;
  Engine engine(target, nullptr, sampler, {});
  std::size_t most = 0;
  engine.on_step([&](const StepPlan& plan, const StepOutcome&) { most = std::max(most, plan.requests.size()); });
  const std::vector<BeamOutcome> outcomes = beam_search(engine, requests, kVocab, 4);
  CHECK(most > 3);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO(i);
    if (i == 2) {
      CHECK(error_of(ErrorKind::usage, [&] { std::rethrow_exception(outcomes[i].failure); }).starts_with("best_of: 9"));
      continue;
    }
    REQUIRE(!outcomes[i].failure);
    Engine alone(target, nullptr, sampler, {});
    const auto expected = beam_search(alone, requests[i].prompt, kVocab, requests[i].parameters);
    REQUIRE(outcomes[i].hypotheses.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CHECK(outcomes[i].hypotheses[k].tokens == expected[k].tokens);
      CHECK(outcomes[i].hypotheses[k].score == expected[k].score);
    }
  }
}
