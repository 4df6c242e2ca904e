// Every set of row kernels against the scalar one, bit by bit, and the scalar one against its definition by other
// means.
#include "reference/row_kernels/row_kernels.hpp"

#include <Random123/philox.h>

#include "base/dtype.hpp"
#include "tests/support/row_kernel_sets.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<std::size_t> tile_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t count = 1; count <= 70; ++count) sizes.push_back(count);
  for (const std::size_t count : {255, 4095, 4096}) sizes.push_back(count);
  return sizes;
}

struct RowKind {
  std::string name;
  std::function<float(std::mt19937&)> draw;
};

float uniform(std::mt19937& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

const std::vector<RowKind> kRowKinds = {
    {"normal", [](auto& random) { return std::normal_distribution<float>(0.0f, 4.0f)(random); }},
    {"constant", [](auto&) { return -2.5f; }},
    {"all masked", [](auto&) { return -kInfinity; }},
    {"some masked", [](auto& random) { return random() % 3 == 0 ? -kInfinity : uniform(random, -9.0f, 9.0f); }},
    {"mostly masked", [](auto& random) { return random() % 40 != 0 ? -kInfinity : uniform(random, -9.0f, 9.0f); }},
    {"deep", [](auto& random) { return uniform(random, -500.0f, 500.0f); }},
    {"at the edge of depth", [](auto& random) { return random() % 9 == 0 ? 0.0f : uniform(random, -88.5f, -86.0f); }},
    {"to the fast limit", [](auto& random) { return uniform(random, -65536.0f, 65536.0f); }},
    {"on the fast limit", [](auto& random) { return random() % 2 == 0 ? 65536.0f : -65536.0f; }},
    {"just beyond the fast limit", [](auto& random) { return 65536.0f + static_cast<float>(random() % 3) / 128; }},
    {"beyond the fast limit", [](auto& random) { return uniform(random, -1e6f, 1e6f); }},
    {"huge", [](auto& random) { return uniform(random, -kLogitLimit, kLogitLimit); }},
    {"masked by size", [](auto& random) { return random() % 2 == 0 ? -1e30f : uniform(random, -9.0f, 9.0f); }},
    {"zeros of both signs", [](auto& random) { return random() % 2 == 0 ? 0.0f : -0.0f; }},
    {"ties", [](auto& random) { return static_cast<float>(random() % 4); }},
    {"subnormal",
     [](auto& random) {
       return bit_cast<float>(static_cast<std::uint32_t>(random() % 2 << 31 | random() % 0x800000));
     }},
};

std::vector<float> row_of(const RowKind& kind, std::size_t count, std::mt19937& random) {
  std::vector<float> row(count);
  for (float& x : row) x = kind.draw(random);
  return row;
}

// A span of `count` floats that starts one float off any vector's alignment, with poisoned words on both sides.
class Guarded {
 public:
  Guarded(std::size_t count, std::size_t offset) : offset_(kGuard + offset), count_(count) {
    storage_.assign(offset_ + count + kGuard, bit_cast<float>(kPoison));
  }
  float* data() { return storage_.data() + offset_; }
  bool guards_hold() const {
    const auto poisoned = [](float x) { return bit_cast<std::uint32_t>(x) == kPoison; };
    return std::all_of(storage_.begin(), storage_.begin() + static_cast<std::ptrdiff_t>(offset_), poisoned) &&
           std::all_of(storage_.begin() + static_cast<std::ptrdiff_t>(offset_ + count_), storage_.end(), poisoned);
  }
  bool same_bits(const Guarded& other) const {
    return count_ == other.count_ &&
           std::memcmp(storage_.data() + offset_, other.storage_.data() + other.offset_, count_ * sizeof(float)) == 0;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::uint32_t kPoison = 0x7fadbeefu;
  std::vector<float> storage_;
  std::size_t offset_;
  std::size_t count_;
};

// Inputs come from an allocation of exactly their size, so that the sanitizer build sees a read beyond it.
template <class Element>
struct Unaligned {
  Unaligned(const std::vector<Element>& from, std::size_t offset_in) : storage(offset_in), offset(offset_in) {
    storage.insert(storage.end(), from.begin(), from.end());
    storage.shrink_to_fit();
  }
  const Element* data() const { return storage.data() + offset; }
  std::vector<Element> storage;
  std::size_t offset;
};

// Calls check(kernels, offset) for every set, the scalar one included, aligned and not.
template <class Check>
void for_each_set(Check check) {
  static const std::vector<RowKernels> sets = available_row_kernels();
  for (const RowKernels& kernels : sets) {
    for (const std::size_t offset : {0, 1}) {
      INFO("row kernels " << kernels.target << ", offset " << offset);
      check(kernels, offset);
    }
  }
}

}  // namespace

TEST_CASE("Tile masses and weights have the same bits in every set of row kernels") {
  const RowKernels& scalar = scalar_row_kernels();
  std::mt19937 random(101);
  int wrong = 0;
  for (const RowKind& kind : kRowKinds) {
    for (const std::size_t count : tile_sizes()) {
      const std::vector<float> row = row_of(kind, count, random);
      Guarded expected(count, 0);
      TileMass mass;
      REQUIRE(scalar.tile_mass(row.data(), count, &mass));
      scalar.tile_weights(row.data(), count, mass.n_max, expected.data());
      const std::uint64_t expected_sum = scalar.weight_sum(expected.data(), count);
      wrong += expected_sum != mass.sum;
      const auto kept = std::count_if(row.begin(), row.end(), [](float x) { return x >= -kLogitLimit; });
      wrong += kept != mass.kept;
      for_each_set([&](const RowKernels& kernels, std::size_t offset) {
        INFO(kind.name << ", " << count << " tokens");
        const Unaligned<float> input(row, offset);
        Guarded weights(count, offset);
        TileMass got{1, 2, 3, 4};
        bool right = kernels.tile_mass(input.data(), count, &got);
        kernels.tile_weights(input.data(), count, mass.n_max, weights.data());
        right = right && weights.same_bits(expected) && weights.guards_hold();
        right =
            right && got.sum == mass.sum && got.n_max == mass.n_max && got.n_min == mass.n_min && got.kept == mass.kept;
        // A part of the tile has the weights that it has in the whole.
        const std::size_t first = count / 3;
        Guarded part(count - first, offset);
        kernels.tile_weights(input.data() + first, count - first, mass.n_max, part.data());
        right = right && part.guards_hold() &&
                std::memcmp(part.data(), expected.data() + first, (count - first) * sizeof(float)) == 0;
        right = right && kernels.weight_sum(weights.data(), count) == expected_sum;
        if (!right) {
          CHECK(right);
          ++wrong;
        }
      });
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Tile masses are the exponentials of the logits relative to the largest exponent") {
  std::mt19937 random(103);
  for (const RowKind& kind : kRowKinds) {
    const std::vector<float> row = row_of(kind, 300, random);
    std::vector<float> weights(row.size());
    TileMass mass;
    REQUIRE(scalar_row_kernels().tile_mass(row.data(), row.size(), &mass));
    scalar_row_kernels().tile_weights(row.data(), row.size(), mass.n_max, weights.data());
    INFO(kind.name);
    const float top = *std::max_element(row.begin(), row.end());
    if (top == -kInfinity) {
      CHECK(mass.sum == 0);
      CHECK(mass.n_max == kMaskedExponent);
      CHECK(mass.n_min == kMaskedExponent);
      continue;
    }
    CHECK(std::fabs(mass.n_max - static_cast<double>(top) / std::log(2.0)) <= 0.51);
    long double sum = 0.0L;
    int wrong = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const long double exact = std::exp(static_cast<long double>(row[i]) - mass.n_max * std::log(2.0L));
      sum += exact;
      // 1.3 ulp of f, or what a weight held at the deepest exponent may be.
      const long double error = std::fabs(static_cast<long double>(weights[i]) - exact);
      wrong += !(error <= 2.0L * 0x1p-24L * exact || (weights[i] < 0x1p-124f && error < 0x1p-124L));
    }
    CHECK(wrong == 0);
    CHECK(std::fabs(std::ldexp(static_cast<long double>(mass.sum), -44) - sum) <=
          2.0L * 0x1p-24L * sum + 300 * 0x1p-45L);
  }
}

TEST_CASE("A bad logit at any place of a tile is refused by every set of row kernels") {
  std::mt19937 random(107);
  int wrong = 0;
  for (const std::size_t count : {1, 7, 33, 70, 4096}) {
    for (const float bad : {kNan, -kNan, kInfinity, std::nextafter(kLogitLimit, kInfinity), 1e30f}) {
      const std::size_t step = count > 100 ? 509 : 1;
      for (std::size_t at = 0; at < count; at += step) {
        std::vector<float> row = row_of(kRowKinds[0], count, random);
        row[at] = bad;
        for_each_set([&](const RowKernels& kernels, std::size_t offset) {
          const Unaligned<float> input(row, offset);
          TileMass mass;
          wrong += kernels.tile_mass(input.data(), count, &mass);
          // The greedy choice has no limit but infinity.
          wrong += kernels.maximum(input.data(), count).valid != (bad > 0.0f && bad < kInfinity);
        });
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("The greedy choice of a tile is the first largest logit in every set of row kernels") {
  std::mt19937 random(109);
  int wrong = 0;
  int ties = 0;
  for (const RowKind& kind : kRowKinds) {
    for (const std::size_t count : tile_sizes()) {
      const std::vector<float> row = row_of(kind, count, random);
      const auto first = std::max_element(row.begin(), row.end());  // the first of equals; -0 equals +0
      const std::int32_t index = *first == -kInfinity ? 0 : static_cast<std::int32_t>(first - row.begin());
      ties += std::count(row.begin(), row.end(), *first) > 1;
      for_each_set([&](const RowKernels& kernels, std::size_t offset) {
        const Unaligned<float> input(row, offset);
        const TileExtremum got = kernels.maximum(input.data(), count);
        wrong += !got.valid || got.index != index;
        wrong += bit_cast<std::uint32_t>(got.value) != bit_cast<std::uint32_t>(*first);
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(ties > 100);
}

TEST_CASE("Scaled weights have the same bits in every set of row kernels and nothing else is written") {
  std::mt19937 random(113);
  int wrong = 0;
  int subnormal = 0;
  for (const float power : {1.0f, 0.25f, 0x1p-125f}) {
    for (const std::size_t count : tile_sizes()) {
      std::vector<float> weights(count);
      for (float& weight : weights) weight = uniform(random, 0.7f, 1.42f);
      weights[random() % count] = 0.0f;
      const float reciprocal = uniform(random, 1e-6f, 1.0f);
      Guarded expected(count, 0);
      for (std::size_t i = 0; i < count; ++i)
        expected.data()[i] = std::ldexp(weights[i], std::ilogb(power)) * reciprocal;
      subnormal += std::fpclassify(expected.data()[0]) == FP_SUBNORMAL;
      for_each_set([&](const RowKernels& kernels, std::size_t offset) {
        const Unaligned<float> input(weights, offset);
        Guarded out(count, offset);
        kernels.scale_weights(input.data(), count, power, reciprocal, out.data());
        wrong += !out.same_bits(expected) || !out.guards_hold();
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(subnormal > 20);
}

TEST_CASE("Residual sums are those of the rounded masses in every set of row kernels") {
  std::mt19937 random(127);
  const std::vector<RowKind> kinds = {
      {"uniform", [](auto& r) { return uniform(r, 0.0f, 1.0f); }},
      {"small", [](auto& r) { return std::ldexp(uniform(r, 0.0f, 1.0f), -static_cast<int>(r() % 80)); }},
      {"ends",
       [](auto& r) {
         return std::initializer_list<float>{0.0f, -0.0f, 1.0f, 0x1p-149f}.begin()[r() % 4];
       }},
      {"ties of rounding", [](auto& r) { return std::ldexp(static_cast<float>(r() % 64), -63); }},
      // Below 2^-10 a kernel may round a whole mass at once.
      {"below 2^-10", [](auto& r) { return uniform(r, 0.0f, 0x1.fffffep-11f); }},
      {"up to 2^-10", [](auto& r) { return r() % 64 == 0 ? 0x1p-10f : uniform(r, 0.0f, 0x1.fffffep-11f); }},
  };
  int wrong = 0;
  for (const RowKind& kind : kinds) {
    for (const std::size_t count : tile_sizes()) {
      const std::vector<float> p = row_of(kind, count, random);
      std::vector<float> q = row_of(kind, count, random);
      for (std::size_t i = 0; i < count; i += 5) q[i] = p[i];
      for (const bool has_proposal : {true, false}) {
        std::uint64_t expected = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const float difference = p[i] - (has_proposal ? q[i] : 0.0f);
          // A long double holds all 62 bits; the environment rounds to nearest even.
          if (difference > 0.0f)
            expected +=
                static_cast<std::uint64_t>(std::nearbyint(std::ldexp(static_cast<long double>(difference), 62)));
        }
        const TileResidual reference =
            scalar_row_kernels().residual(p.data(), has_proposal ? q.data() : nullptr, count);
        for_each_set([&](const RowKernels& kernels, std::size_t offset) {
          const Unaligned<float> target(p, offset);
          const Unaligned<float> proposal(q, offset);
          const TileResidual got = kernels.residual(target.data(), has_proposal ? proposal.data() : nullptr, count);
          wrong += !got.valid || got.high != reference.high || got.low != reference.low;
          wrong += (got.high << 32) + got.low != expected;
        });
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("A number that is no probability at any place of a tile is refused by every set of row kernels") {
  int wrong = 0;
  for (const std::size_t count : {1, 9, 16, 33, 70}) {
    for (const float bad : {kNan, kInfinity, -kInfinity, -0x1p-149f, -0.1f, std::nextafter(1.0f, 2.0f), 1.5f}) {
      for (std::size_t at = 0; at < count; ++at) {
        const std::vector<float> good(count, 0.5f);
        std::vector<float> with_bad = good;
        with_bad[at] = bad;
        for_each_set([&](const RowKernels& kernels, std::size_t offset) {
          const Unaligned<float> a(good, offset);
          const Unaligned<float> b(with_bad, offset);
          for (const TileResidual& got :
               {kernels.residual(b.data(), a.data(), count), kernels.residual(a.data(), b.data(), count),
                kernels.residual(b.data(), nullptr, count)})
            wrong += got.valid || got.high != 0 || got.low != 0;
          wrong += !kernels.residual(a.data(), a.data(), count).valid;
        });
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Race winners and scores have the same bits in every set of row kernels") {
  std::mt19937_64 random(131);
  int wrong = 0;
  std::vector<double> all_scores;
  for (const std::size_t count : tile_sizes()) {
    for (const std::uint32_t first_token : {0u, 4096u, 31u * 4096u}) {
      const NoiseAddress noise{{static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random())},
                               static_cast<std::uint32_t>(random()),
                               static_cast<std::uint32_t>(random()),
                               static_cast<std::uint32_t>(1 + random() % 9)};
      std::vector<double> log_weights(count);
      for (double& w : log_weights)
        w = random() % 4 == 0 ? kNoWeight : std::normal_distribution<double>(0.0, 3.0)(random);

      // Winner by the definition: Random123's own words and the platform's 64-bit logarithm.
      long double best_score = -std::numeric_limits<long double>::infinity();
      std::int64_t best_token = -1;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t token = first_token + static_cast<std::uint32_t>(i);
        const auto words =
            r123::Philox4x32()({{token / 4, noise.row, noise.step, noise.purpose}}, {{noise.key[0], noise.key[1]}});
        const long double v = (static_cast<long double>(words[token % 4]) + 0.5L) * 0x1p-32L;
        const long double score = log_weights[i] - std::log(-std::log1p(-v));
        if (score > best_score) {
          best_score = score;
          best_token = token;
        }
      }
      for_each_set([&](const RowKernels& kernels, std::size_t offset) {
        const Unaligned<double> input(log_weights, offset);
        const RaceWinner got = kernels.race(input.data(), count, first_token, noise, RaceWinner::none());
        const RaceWinner reference =
            scalar_row_kernels().race(log_weights.data(), count, first_token, noise, RaceWinner::none());
        wrong += bit_cast<std::uint64_t>(got.score) != bit_cast<std::uint64_t>(reference.score);
        wrong += got.token != reference.token || got.token != best_token;
        wrong += best_token >= 0 && !(std::fabs(static_cast<long double>(got.score) - best_score) < 1e-14L);
      });

      const std::vector<double> none(count, kNoWeight);
      for_each_set([&](const RowKernels& kernels, std::size_t offset) {
        const Unaligned<double> input(none, offset);
        const RaceWinner got = kernels.race(input.data(), count, first_token, noise, RaceWinner::none());
        wrong += got.token != -1 || got.score != kNoWeight;
      });
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Noise has the same bits in every set of row kernels") {
  // A race of one token shows the noise of its word; the winner above would hide a wrong score elsewhere.
  const NoiseAddress noise{{1, 2}, 3, 4, 6};
  const std::vector<RowKernels> sets = available_row_kernels();
  int wrong = 0;
  for (std::size_t token = 0; token < 4096; token += 3) {
    std::vector<double> log_weights(4096, kNoWeight);
    log_weights[token] = 0.0;
    const RaceWinner reference =
        scalar_row_kernels().race(log_weights.data(), log_weights.size(), 8192, noise, RaceWinner::none());
    for (const std::size_t count : {token + 1, std::size_t{4096}}) {
      for (const RowKernels& kernels : sets) {
        const RaceWinner got = kernels.race(log_weights.data(), count, 8192, noise, RaceWinner::none());
        wrong += got.token != static_cast<std::int64_t>(8192 + token) || got.score != reference.score;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("A tie in a race goes to the lowest id in every set of row kernels") {
  const NoiseAddress noise{{5, 6}, 7, 8, 3};
  constexpr std::size_t kCount = 300;
  std::vector<double> log_weights(kCount, kNoWeight);
  std::vector<std::int64_t> tied;
  for (std::size_t i = 20; i < kCount; ++i) {
    // Weights that bring every token to the same score, where the subtraction is exact.
    std::vector<double> alone(kCount, kNoWeight);
    alone[i] = 0.0;
    const double gumbel = scalar_row_kernels().race(alone.data(), kCount, 0, noise, RaceWinner::none()).score;
    log_weights[i] = 5.0 - gumbel;
    if (log_weights[i] + gumbel == 5.0) {
      tied.push_back(static_cast<std::int64_t>(i));
    } else {
      log_weights[i] = kNoWeight;
    }
  }
  REQUIRE(tied.size() > 50);
  for_each_set([&](const RowKernels& kernels, std::size_t offset) {
    for (std::size_t first = 0; first < tied.size(); ++first) {
      std::vector<double> rest = log_weights;
      for (std::size_t i = 0; i < first; ++i) rest[static_cast<std::size_t>(tied[i])] = kNoWeight;
      const Unaligned<double> input(rest, offset);
      const RaceWinner got = kernels.race(input.data(), kCount, 0, noise, RaceWinner::none());
      if (got.token != tied[first] || got.score != 5.0) CHECK(got.token == tied[first]);
    }
  });
}

TEST_CASE("All 65536 values of both half formats are converted exactly by every set of row kernels") {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  Guarded f16(codes.size(), 0);
  Guarded bf16(codes.size(), 0);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    f16.data()[i] = f16_to_f32(codes[i]);  // held against other means in dtype_test.cpp, NaN payloads too
    bf16.data()[i] = bf16_to_f32(codes[i]);
  }
  for_each_set([&](const RowKernels& kernels, std::size_t offset) {
    const Unaligned<std::uint16_t> input(codes, offset);
    Guarded out(codes.size(), offset);
    kernels.convert_f16(input.data(), codes.size(), out.data());
    CHECK(out.same_bits(f16));
    CHECK(out.guards_hold());
    kernels.convert_bf16(input.data(), codes.size(), out.data());
    CHECK(out.same_bits(bf16));
    CHECK(out.guards_hold());
  });
}

TEST_CASE("Half conversions write exactly as many floats as they are asked for") {
  int wrong = 0;
  for (const std::size_t count : tile_sizes()) {
    const std::vector<std::uint16_t> ones(count, 0x3c00);
    const std::vector<std::uint16_t> brain_ones(count, 0x3f80);
    Guarded expected(count, 0);
    std::fill_n(expected.data(), count, 1.0f);
    for_each_set([&](const RowKernels& kernels, std::size_t offset) {
      Guarded out(count, offset);
      kernels.convert_f16(Unaligned<std::uint16_t>(ones, offset).data(), count, out.data());
      wrong += !out.same_bits(expected) || !out.guards_hold();
      kernels.convert_bf16(Unaligned<std::uint16_t>(brain_ones, offset).data(), count, out.data());
      wrong += !out.same_bits(expected) || !out.guards_hold();
    });
  }
  CHECK(wrong == 0);
}

TEST_CASE("A set of row kernels is chosen by name and an unknown name is told what there is") {
  REQUIRE(available_row_kernels().front().target == std::string("scalar"));
  std::vector<std::string> seen;
  for_each_row_kernel_set([&] { seen.push_back(row_kernels().target); });
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == available_row_kernels()[i].target);
  if (seen.size() > 1) CHECK(row_kernels().target != std::string("scalar"));
  try {
    select_row_kernels("abacus");
    FAIL("an unknown set was accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()).find("scalar") != std::string::npos);
  }
}
