// A row across devices against the whole row: every answer the same bits, every error the same words.
#include "reference/shard/sharded_row.hpp"

#include <bit>

#include "reference/random/injected.hpp"
#include "tests/reference/shard/random_shards.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

struct Answers {
  std::vector<Token> tokens;        // drawn
  std::vector<std::uint64_t> bits;  // of numbers
  std::string error;

  bool operator==(const Answers&) const = default;
};

// The questions put to a row, whole or across devices.
template <class Row, class MassesOf, class Logprobs>
void ask(const Row& row, std::uint64_t seed, std::span<const Token> tokens, const MassesOf& masses,
         const Logprobs& logprobs, Answers& answers) {
  const auto note = [&](double number) { answers.bits.push_back(std::bit_cast<std::uint64_t>(number)); };
  PhiloxSource source;
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    AddressedChance<> chance(source, seed, 3, sampler);
    answers.tokens.push_back(chance.draw(masses, 1, Purpose::target_sample));
  }
  for (const RandomBlock& block : {InjectedSource::kZeros, InjectedSource::kOnes})
    answers.tokens.push_back(masses.draw(block));
  for (const Token token : tokens) {
    note(static_cast<double>(row.probability(token)));
    note(static_cast<double>(row.log_probability(token)));
  }
  note(static_cast<double>(row.kept_count()));
  note(row.kept_mass());
  for (const TokenLogprob& t : logprobs(tokens.front())) {
    answers.tokens.push_back(t.token);
    note(static_cast<double>(t.logprob));
    note(static_cast<double>(t.rank));
  }
}

template <class Body>
void with_error(Answers& answers, const Body& body) {
  try {
    body();
  } catch (const RowError& error) {
    answers.error = std::string(error.what()) + " status " + std::to_string(static_cast<int>(error.status()));
  }
}

struct RowCase {
  RowCase(TestRandom& random, std::int64_t vocab_size)
      : devices(random_split(random, vocab_size)), input(random_input(random, vocab_size)) {
    std::vector<float> row =
        random.chance(0.7) ? awkward_row(random, vocab_size) : normal_row(random, vocab_size, 4.0f);
    const DType dtype = random_dtype(random);
    if (random.chance(0.05)) {
      for (std::int64_t i = random.below(3); i >= 0; --i)
        row[static_cast<std::size_t>(random.below(vocab_size))] =
            std::array{kNan, kInfinity, 3e38f, kMinusInfinity}[static_cast<std::size_t>(random.below(4))];
    }
    if (random.chance(0.02)) std::fill(row.begin(), row.end(), kMinusInfinity);
    if (random.chance(0.2)) {
      input.input.parameters.guidance_scale = 1.0f + static_cast<float>(random.uniform());
      std::vector<float> other = normal_row(random, vocab_size);
      for (std::size_t i = 0; i < row.size(); ++i)
        if (row[i] == kMinusInfinity) other[i] = random.chance(0.5) ? kMinusInfinity : 0.0f;
      if (random.chance(0.03)) other[static_cast<std::size_t>(random.below(vocab_size))] = kMinusInfinity;
      unconditional.emplace(other, dtype, devices);
    }
    logits.emplace(row, dtype, devices);
    seed = random.word();
    tokens = random.tokens(3, vocab_size);
  }

  Answers of_whole() {
    Answers answers;
    RowInput whole = input.input;
    whole.logits = logits->whole();
    if (unconditional) whole.unconditional = unconditional->whole();
    Pipeline pipeline;
    Distribution row;
    with_error(answers, [&] {
      pipeline.run(whole, row);
      ask(
          row, seed, tokens, DistributionMasses(row),
          [&](Token sampled) {
            return row.logits_distribution() == nullptr ? std::vector<TokenLogprob>{}
                                                        : top_logprobs(*row.logits_distribution(), 4, sampled);
          },
          answers);
    });
    return answers;
  }
  Answers of_shards() {
    Answers answers;
    ShardedRow row(devices);
    with_error(answers, [&] {
      row.run(input.input, logits->parts(),
              unconditional ? std::span<const RowView>(unconditional->parts()) : std::span<const RowView>());
      ask(
          row, seed, tokens, ShardedMasses(row),
          [&](Token sampled) { return row.is_logits() ? row.top_logprobs(4, sampled) : std::vector<TokenLogprob>{}; },
          answers);
    });
    return answers;
  }

  Devices devices;
  OwnedInput input;
  std::optional<SplitRow> logits, unconditional;
  std::uint64_t seed = 0;
  std::vector<Token> tokens;
};

TEST_CASE("a row across devices has the bits of the whole row for every split", "[shard]") {
  std::int64_t errors = 0;
  std::int64_t cut = 0;
  for (std::int64_t i = 0; i < num_rows(2000); ++i) {
    TestRandom random(static_cast<std::uint64_t>(i));
    RowCase c(random, random_vocab(random));
    const Answers whole = c.of_whole();
    const Answers shards = c.of_shards();
    errors += whole.error.empty() ? 0 : 1;
    cut += c.devices.cuts_tiles() ? 1 : 0;
    if (shards == whole) continue;
    INFO("row " << i << ", V " << c.devices.vocab_size() << ", " << c.devices.count() << " devices");
    CHECK(shards.error == whole.error);
    CHECK(shards.tokens == whole.tokens);
    CHECK(shards.bits == whole.bits);
    FAIL("different");
  }
  CHECK(errors > num_rows(2000) / 100);
  CHECK(cut > num_rows(2000) / 3);
}

TEST_CASE("guidance of probabilities, which takes whole rows, is refused across devices", "[shard]") {
  const Devices devices({{0, 3}, {3, 5}});
  const std::vector<float> logits(5, 0.0f);
  const SplitRow split(logits, DType::f32, devices);
  ShardedRow row(devices);
  RowInput input;
  input.parameters.guidance_form = GuidanceForm::probabilities;
  CHECK_NOTHROW(row.run(input, split.parts()));  // at scale 1 nothing is guided
  input.parameters.guidance_scale = 2.0f;
  CHECK_THAT(error_of(ErrorKind::usage, [&] { row.run(input, split.parts(), split.parts()); }),
             Contains("shards: guidance_form is probabilities") && Contains("expected logits across devices"));
}

}  // namespace
}  // namespace draftproof::testing
