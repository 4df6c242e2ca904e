// Holds the CPU library, with each of its sets of row kernels, against the files of tests/vectors.
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/sampling/logits_distribution.hpp"
#include "reference/verify/chance.hpp"
#include "tests/support/row_kernel_sets.hpp"
#include "tests/support/test.hpp"
#include "tests/support/vectors.hpp"

namespace {

const std::string kFolder = DRAFTPROOF_SOURCE_DIR "/tests/vectors/";
constexpr std::size_t kRowTokens = 8;       // of the kinds that hold logits
constexpr std::size_t kResidualTokens = 4;  // of the kind `residual`

std::uint32_t word32(Word word) {
  return static_cast<std::uint32_t>(word);
}
float single(Word word) {
  return bit_cast<float>(word32(word));
}
Word word_of(float value) {
  return bit_cast<std::uint32_t>(value);
}
Word word_of(double value) {
  return bit_cast<Word>(value);
}
Word word_of(std::int32_t value) {
  return static_cast<Word>(std::int64_t{value});
}

std::vector<float> singles(const Word* words, std::size_t count) {
  std::vector<float> values(count);
  std::transform(words, words + count, values.begin(), single);
  return values;
}
RandomBlock block_of(const Word* words) {
  return {{word32(words[0]), word32(words[1]), word32(words[2]), word32(words[3])}};
}

// A function of one record, as the function of all records that the loop calls.
template <std::size_t inputs, std::size_t outputs, class OneRecord>
Evaluate each(OneRecord one) {
  return [one](std::size_t records, const Word* in, Word* out) {
    for (std::size_t i = 0; i < records; ++i) one(in + i * inputs, out + i * outputs);
  };
}

void write_block(const RandomBlock& block, Word* out) {
  std::copy(block.word, block.word + 4, out);
}

void write_row(const Word* in, Word* out) {
  const std::vector<float> logits = singles(in, kRowTokens);
  LogitsDistribution distribution;
  distribution.assign(logits, 0);
  out[0] = word_of(distribution.exponent());
  out[1] = distribution.total();
  for (std::size_t i = 0; i < kRowTokens; ++i) {
    const Token token = static_cast<Token>(i);
    out[2 + i] = distribution.mass_in_tile(token);
    out[2 + kRowTokens + i] = word_of(distribution.probability(token));
    out[2 + 2 * kRowTokens + i] = word_of(distribution.log_probability(token));
  }
}

void write_draw(const Word* in, Word* out) {
  const std::vector<float> logits = singles(in, kRowTokens);
  LogitsDistribution distribution;
  distribution.assign(logits, 0);
  out[0] = word_of(distribution.draw(block_of(in + kRowTokens + 1), static_cast<Token>(in[kRowTokens])));
}

void write_race(const Word* in, Word* out) {
  const std::vector<float> logits = singles(in, kRowTokens);
  const Word* address = in + kRowTokens;
  Distribution distribution;
  distribution.make_logits_distribution().assign(logits, 0);
  PhiloxSource source;
  AddressedChance chance(source, address[0], word32(address[2]), Sampler::race);
  out[0] = word_of(chance.draw(DistributionMasses(distribution), word32(address[1]), static_cast<Purpose>(address[3])));
}

void write_residual(const Word* in, Word* out) {
  const std::vector<float> p = singles(in, kResidualTokens);
  const std::vector<float> q = singles(in + kResidualTokens, kResidualTokens);
  Distribution target;
  Distribution proposal;
  target.make_probabilities({DType::f32, p.data(), kResidualTokens}, 0);
  proposal.make_probabilities({DType::f32, q.data(), kResidualTokens}, 0);
  out[0] = word_of(ResidualMasses(target, proposal).draw(block_of(in + 2 * kResidualTokens)));
}

const Evaluate kNoise = each<1, 2>([](const Word* in, Word* out) {
  out[0] = word_of(exponential_noise(word32(in[0])));
  out[1] = word_of(gumbel_noise(word32(in[0])));
});
const Evaluate kExp = each<1, 2>([](const Word* in, Word* out) {
  const ExpParts parts = exp_parts(single(in[0]));
  out[0] = word_of(parts.f);
  out[1] = word_of(parts.n);
});

const Backend kCpu = {
    {"philox", each<6, 4>([](const Word* in, Word* out) {
       write_block(philox_block(in[5] << 32 | in[4], word32(in[0]), word32(in[1]), word32(in[2]), word32(in[3])), out);
     })},
    {"block", each<5, 4>([](const Word* in, Word* out) {
       const Address address{word32(in[1]), word32(in[2]), word32(in[3]), static_cast<Purpose>(in[4])};
       write_block(PhiloxSource().block(in[0], address), out);
     })},
    {"derive_seed", each<2, 1>([](const Word* in, Word* out) { out[0] = derive_seed(in[0], in[1]); })},
    {"uniform_53", each<1, 1>([](const Word* in, Word* out) { out[0] = word_of(uniform_53(in[0])); })},
    {"below", each<2, 1>([](const Word* in, Word* out) { out[0] = multiply_high(in[0], in[1]); })},
    {"noise", kNoise},
    {"noise_near", kNoise},
    {"exp", kExp},
    {"exp_near", kExp},
    {"row", each<kRowTokens, 2 + 3 * kRowTokens>(write_row)},
    {"draw", each<kRowTokens + 5, 1>(write_draw)},
    {"race", each<kRowTokens + 4, 1>(write_race)},
    {"residual", each<2 * kResidualTokens + 4, 1>(write_residual)},
    {"accept", each<6, 1>([](const Word* in, Word* out) {
       out[0] = accepts(Convention::draftproof, static_cast<double>(single(in[0])), static_cast<double>(single(in[1])),
                        block_of(in + 2));
     })},
};

}  // namespace

TEST_CASE("Philox gives the published known answers") {
  const VectorReport report = check_vectors(read_vectors(kFolder + "philox.txt"), kCpu);
  INFO(report.first_wrong);
  CHECK(report.wrong == 0);
  CHECK(report.skipped == 0);
  CHECK(report.checked == 3);
}

TEST_CASE("The whole schedule of randomness and masses gives the answers of an independent program") {
  const std::vector<VectorTable> tables = read_vectors(kFolder + "schedule.txt");
  for_each_row_kernel_set([&] {
    const VectorReport report = check_vectors(tables, kCpu);
    INFO(report.first_wrong);
    CHECK(report.wrong == 0);
    CHECK(report.skipped == 0);
    CHECK(report.checked > 500);
  });
}

TEST_CASE("One changed digit in any column of the vectors is noticed") {
  const std::vector<VectorTable> original = read_vectors(kFolder + "schedule.txt");
  for (std::size_t t = 0; t < original.size(); ++t) {
    std::vector<VectorTable> table{original[t]};
    for (std::size_t i = 0; i < table[0].output_names.size(); ++i) {
      INFO(table[0].kind << " " << table[0].output_names[i]);
      const std::size_t at = (table[0].records() - 1) * table[0].output_names.size() + i;
      table[0].outputs[at] += table[0].tolerance_ulp[i] == 0 ? 1 : 5;  // twice the tolerance and one
      const VectorReport report = check_vectors(table, kCpu);
      CHECK(report.wrong == 1);
      CHECK(report.first_wrong.find(":" + std::to_string(table[0].lines.back()) + ", ") != std::string::npos);
      table[0].outputs[at] = original[t].outputs[at];
    }
  }
}

TEST_CASE("A backend that writes nothing fails every vector and one without a kind has it counted as skipped") {
  const std::vector<VectorTable> tables = read_vectors(kFolder + "schedule.txt");
  std::size_t records = 0;
  Backend silent;
  Backend partial;
  for (const VectorTable& table : tables) {
    records += table.records();
    silent[table.kind] = [](std::size_t, const Word*, Word*) {};
    if (table.kind != "race") partial[table.kind] = kCpu.at(table.kind);
  }
  const VectorReport nothing = check_vectors(tables, silent);
  CHECK(nothing.wrong == records);
  CHECK(nothing.checked == records);
  const VectorReport without_races = check_vectors(tables, partial);
  CHECK(without_races.wrong == 0);
  CHECK(without_races.skipped > 0);
  CHECK(without_races.checked + without_races.skipped == records);
}
