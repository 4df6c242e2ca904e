// Parity of logits that the test makes itself: rounding of a known size is let pass, and each fault is found with its
// first place.
#include "exactness/parity/parity.hpp"

#include "exactness/parity/rank_tests.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::size_t kVocab = 256;

// Four requests of 64 rows each, logits of standard deviation about 3.
struct Path {
  std::vector<float> logits;
  std::vector<std::int64_t> requests, positions, in_step;

  float& at(std::size_t row, std::size_t column) { return logits[row * kVocab + column]; }
  std::size_t rows() const { return requests.size(); }
};

Path plain_path(std::uint64_t seed) {
  TestRandom random(seed);
  Path path;
  for (std::int64_t request = 0; request < 4; ++request)
    for (std::int64_t position = 0; position < 64; ++position) {
      path.requests.push_back(request);
      path.positions.push_back(position + 10);
      path.in_step.push_back(position % 4);
      for (std::size_t i = 0; i < kVocab; ++i)
        path.logits.push_back(
            static_cast<float>(3.4 * (random.uniform() + random.uniform() - random.uniform() - random.uniform())));
    }
  return path;
}

// The same with errors of about `relative` of the spread, times factor(row).
Path rounded(const Path& plain, double relative, const std::function<double(std::size_t)>& factor = {}) {
  TestRandom random(77);
  Path path = plain;
  for (std::size_t row = 0; row < path.rows(); ++row)
    for (std::size_t i = 0; i < kVocab; ++i)
      path.at(row, i) +=
          static_cast<float>(relative * 3.9 * (factor ? factor(row) : 1.0) *
                             (random.uniform() + random.uniform() - random.uniform() - random.uniform()));
  return path;
}

LogitsFile written(const TemporaryFolder& folder, const std::string& name, const Path& path, bool places = true) {
  SafetensorsWriter writer;
  writer.add("logits", DType::f32, {path.rows(), kVocab}, std::as_bytes(std::span(path.logits)));
  if (places) {
    writer.add("requests", DType::i64, {path.rows()}, std::as_bytes(std::span(path.requests)));
    writer.add("positions", DType::i64, {path.rows()}, std::as_bytes(std::span(path.positions)));
    writer.add("draft_positions", DType::i64, {path.rows()}, std::as_bytes(std::span(path.in_step)));
  }
  writer.write(folder.file(name));
  return read_logits_file(folder.file(name));
}

Parity compared(const Path& a, const Path& b, ParityOptions options = {}) {
  const TemporaryFolder folder;
  if (!options.precision) options.precision = LogitPrecision::bf16;
  return compare_logits(written(folder, "a", a), written(folder, "b", b), options);
}

ParityFault only_fault(const Parity& parity) {
  REQUIRE(parity.findings.size() == 1);
  CHECK(parity.verdict == ParityVerdict::fault);
  return parity.findings[0].fault;
}

}  // namespace

TEST_CASE("equal logits are identical, and a shift of every logit of a row changes no distribution") {
  const Path plain = plain_path(1);
  const Parity same = compared(plain, plain);
  CHECK(same.verdict == ParityVerdict::identical);
  CHECK(same.differing_rows == 0);
  CHECK(same.at.at(0).most == 0.0);
  Path shifted = plain;
  for (float& x : shifted.logits) x += 2.0f;
  const Parity parity = compared(plain, shifted);
  CHECK(parity.verdict == ParityVerdict::rounding);
  CHECK(parity.largest == Approx(2.0).margin(1e-5));
  CHECK(parity.typical_relative < 1e-6);
  CHECK(parity.turned == 0);
  CHECK(parity.at[0].most < 1e-6);
}

TEST_CASE("rounding has no place, over many random paths") {
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Path plain = plain_path(seed);
    const Parity parity = compared(plain, rounded(plain, 0.01));
    alarms += parity.verdict != ParityVerdict::rounding;
    CHECK(parity.units > 1.0);
    CHECK(parity.units < 6.0);
  }
  CHECK(alarms == 0);
}

TEST_CASE("rounding behind a prompt that both paths computed alike has no place, a fault there has") {
  const Path plain = plain_path(5);
  for (const auto& [relative, verdict] : {std::pair(0.01, ParityVerdict::rounding), {1.0, ParityVerdict::fault}}) {
    const Path behind = rounded(plain, relative, [](std::size_t row) { return row % 64 < 24 ? 0.0 : 1.0; });
    const Parity parity = compared(plain, behind);
    CHECK(parity.differing_rows == 4 * 40);
    CHECK(parity.verdict == verdict);
  }
  // Most rows are equal, and of one request the last are all wrong by as much.
  const Path few = rounded(plain, 1.0, [](std::size_t row) { return row / 64 == 2 && row % 64 > 50 ? 1.0 : 0.0; });
  const Parity parity = compared(plain, few);
  CHECK(parity.verdict == ParityVerdict::fault);
  CHECK(parity.findings.front().first.request == 2);
  CHECK(parity.findings.front().first.position == 61);
}

TEST_CASE("the total variation and the argmax are those worked out by hand") {
  Path a, b;
  for (std::int64_t row = 0; row < 2; ++row) {
    a.requests.push_back(0);
    a.positions.push_back(row);
    a.in_step.push_back(0);
  }
  b = a;
  a.logits.assign(2 * kVocab, -INFINITY);  // a mask that both have
  b.logits = a.logits;
  a.at(0, 3) = std::log(0.75f), a.at(0, 5) = std::log(0.25f);
  b.at(0, 3) = std::log(0.5f), b.at(0, 5) = std::log(0.5f);
  a.at(1, 3) = b.at(1, 3) = 0.0f;
  a.at(1, 5) = -1.0f, b.at(1, 5) = 1.0f;
  const Parity parity = compared(a, b, {{1.0, 0.5, 0.0}, LogitPrecision::bf16, 1});
  CHECK(parity.rows[0].total_variation[0] == Approx(0.25).epsilon(1e-6));
  CHECK(parity.rows[0].total_variation[1] == Approx(0.4).epsilon(1e-6));  // 9/10 and 1/2
  CHECK_FALSE(parity.rows[0].argmax_turned);                              // a tie goes to the lowest id
  CHECK(parity.rows[1].argmax_turned);
  CHECK(parity.rows[1].total_variation[2] == 1.0);
  CHECK(parity.first_turned->position == 1);
  CHECK(parity.largest == Approx(2.0));
  CHECK(parity.largest_column == 5);
}

TEST_CASE("each fault is found with its first place and named as what it is") {
  const Path plain = plain_path(9);
  const auto with = [&](const std::function<double(std::size_t)>& factor) {
    return compared(plain, rounded(plain, 0.01, factor));
  };
  const Parity request = with([&](std::size_t row) { return plain.requests[row] == 2 ? 4.0 : 1.0; });
  CHECK(only_fault(request) == ParityFault::request);
  CHECK(request.findings[0].first == RowPlace{2, 10, 0});
  CHECK_THAT(request.sentence(), Contains("looks like a fault: request 2 stands out"));

  const Parity step = with([&](std::size_t row) { return plain.in_step[row] == 3 ? 4.0 : 1.0; });
  CHECK(step.findings[0].fault == ParityFault::draft_position);
  CHECK(step.findings[0].first == RowPlace{0, 13, 3});

  const Parity block = with([&](std::size_t row) { return plain.positions[row] % 16 == 15 ? 5.0 : 1.0; });
  CHECK(only_fault(block) == ParityFault::block_end);
  CHECK(block.findings[0].first == RowPlace{0, 15, 1});
  CHECK_THAT(block.sentence(), Contains("the last position of every block of 16"));

  const Parity growth =
      with([&](std::size_t row) { return std::exp(0.03 * static_cast<double>(plain.positions[row])); });
  CHECK(only_fault(growth) == ParityFault::growth);

  const Parity row = with([&](std::size_t r) { return r == 100 ? 20.0 : 1.0; });
  CHECK(only_fault(row) == ParityFault::row);
  CHECK(row.findings[0].first == RowPlace{1, 46, 0});

  Path columns = rounded(plain, 0.01);
  for (std::size_t r = 0; r < columns.rows(); ++r)
    for (std::size_t i = 64; i < 68; ++i) columns.at(r, i) += 3.0f;
  CHECK(only_fault(compared(plain, columns)) == ParityFault::columns);

  CHECK(only_fault(compared(plain, rounded(plain, 0.5))) == ParityFault::size);
  CHECK(only_fault(compared(plain, rounded(plain, 0.01), {{1.0}, LogitPrecision::f32, 1})) == ParityFault::size);

  Path broken = rounded(plain, 0.01);
  broken.at(70, 9) = NAN;
  const Parity nan = compared(plain, broken);
  CHECK(only_fault(nan) == ParityFault::not_finite);
  CHECK(nan.findings[0].first == RowPlace{1, 16, 2});
  broken.at(70, 9) = -INFINITY;  // a mask of one path
  CHECK(only_fault(compared(plain, broken)) == ParityFault::not_finite);
}

TEST_CASE("rows are matched by their places, and the precision is the coarsest that holds a file") {
  const Path plain = plain_path(3);
  Path fewer = rounded(plain, 0.001);
  std::swap_ranges(fewer.logits.begin(), fewer.logits.begin() + kVocab, fewer.logits.begin() + kVocab);
  std::swap(fewer.positions[0], fewer.positions[1]);
  fewer.positions[5] = 1000;
  for (float& x : fewer.logits) x = bf16_to_f32(f32_to_bf16(x));
  const TemporaryFolder folder;
  const Parity parity = compare_logits(written(folder, "a", plain), written(folder, "b", fewer), {});
  CHECK(parity.rows.size() == plain.rows() - 1);
  CHECK(parity.only_a == 1);
  CHECK(parity.only_b == 1);
  CHECK(parity.precision == LogitPrecision::bf16);
  CHECK(parity.precision_is_inferred);
  CHECK(parity.verdict == ParityVerdict::rounding);
}

TEST_CASE("files that are no logits of one engine are refused with what would be right") {
  const TemporaryFolder folder;
  const Path plain = plain_path(3);
  const LogitsFile a = written(folder, "a", plain);
  Path twice = plain;
  twice.positions[1] = twice.positions[0];
  CHECK_THAT(error_of(ErrorKind::input, [&] { written(folder, "twice", twice); }),
             Contains("has two rows of request 0, position 10"));
  twice.positions[1] = -4;
  CHECK_THAT(error_of(ErrorKind::input, [&] { written(folder, "negative", twice); }), Contains("row 1 is -4"));
  Path other = plain;
  for (std::int64_t& request : other.requests) request += 10;
  const LogitsFile elsewhere = written(folder, "elsewhere", other);
  CHECK_THAT(error_of(ErrorKind::input, [&] { compare_logits(a, elsewhere, {}); }), Contains("has no row of"));
  other.requests.resize(8), other.positions.resize(8), other.in_step.resize(8);
  other.logits.resize(8 * kVocab);
  const LogitsFile b = written(folder, "few", other, false);
  CHECK_THAT(error_of(ErrorKind::input, [&] { compare_logits(written(folder, "all", plain, false), b, {}); }),
             Contains("without a tensor positions"));
}

TEST_CASE("rank tests have the p values of their closed forms") {
  CHECK(ranks_of(std::vector<double>{3, 1, 3, 2}) == std::vector<double>{3.5, 1, 3.5, 2});
  CHECK(median_of({4, 1, 3}) == 3.0);
  CHECK(median_of({4, 1, 3, 2}) == 2.5);
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  // U of the upper half is 16, mean 8, variance 4 4 9 / 12 = 12.
  const std::vector<bool> upper{false, false, false, false, true, true, true, true};
  CHECK(group_is_greater(values, upper) == Approx(0.5 * std::erfc(8.0 / std::sqrt(12.0) / std::sqrt(2.0))));
  CHECK(grows_along(values, values) == Approx(0.5 * std::erfc(std::sqrt(7.0) / std::sqrt(2.0))));
  CHECK(grows_along(values, std::vector<double>(8, 1.0)) == 1.0);
  CHECK(group_is_greater(std::vector<double>(8, 1.0), upper) == 1.0);
}
