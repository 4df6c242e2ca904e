// exp, log, pow, sin and their kin as the C library names them, in place of the C library's: one definition for every
// platform, so that what the program prints has the same bits wherever it runs. Whatever calls std::exp(double),
// Boost.Math included, is linked to these. Each is computed to about 2^-66 and rounded once: within 0.51 ulp (tested),
// and correctly rounded but for one argument in a thousand. errno and the floating-point flags are not set. Loops over
// rows have functions of their own (exp_parts.hpp).
//   exp:  x = (128 k + i) ln2 / 128 + r;   e^x = 2^k 2^(i/128) (1 + r + r^2/2 + ...)
//   log:  x = 2^k m, c = j/256 close to 1/m;   log x = k ln2 - log c + log1p(c m - 1)
//   pow:  x^y = e^(y log x)
//   sin, cos:  x = n pi/2 + r, beyond 2^20 by as many bits of 2/pi as it takes (M. H. Payne, R. N. Hanek, SIGNUM
//         Newsl. 18, 1983); Taylor series of r
//   asin, acos:  Newton's iteration on sin
// exp, log and pow are first tried with a remainder of one double. The result is taken if the bound of its error shows
// how it rounds (A. Ziv, ACM Trans. Math. Softw. 17, 1991), else computed to the end: the same bits, five times as
// fast.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/numerics/double_double.hpp"
#include "reference/numerics/unsigned_128.hpp"

// Names of our own for what the linker knows by the C library's, and of this library alone where it is part of a shared
// one.
#define DRAFTPROOF_AS(name) __asm__(name) __attribute__((visibility("hidden"), used))
extern "C" {
double draftproof_exp(double x) DRAFTPROOF_AS("exp");
double draftproof_exp2(double x) DRAFTPROOF_AS("exp2");
double draftproof_expm1(double x) DRAFTPROOF_AS("expm1");
double draftproof_log(double x) DRAFTPROOF_AS("log");
double draftproof_log2(double x) DRAFTPROOF_AS("log2");
double draftproof_log10(double x) DRAFTPROOF_AS("log10");
double draftproof_log1p(double x) DRAFTPROOF_AS("log1p");
double draftproof_pow(double x, double y) DRAFTPROOF_AS("pow");
double draftproof_hypot(double x, double y) DRAFTPROOF_AS("hypot");
double draftproof_sin(double x) DRAFTPROOF_AS("sin");
double draftproof_cos(double x) DRAFTPROOF_AS("cos");
void draftproof_sincos(double x, double* sine, double* cosine) DRAFTPROOF_AS("sincos");  // as compilers join the two
double draftproof_asin(double x) DRAFTPROOF_AS("asin");
double draftproof_acos(double x) DRAFTPROOF_AS("acos");
}
#undef DRAFTPROOF_AS

namespace draftproof {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DoubleDouble kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr DoubleDouble kLog2E{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr DoubleDouble kLog10E{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

constexpr DoubleDouble negated(DoubleDouble x) {
  return {-x.high, -x.low};
}
constexpr DoubleDouble scaled(DoubleDouble x, double power_of_two) {
  return {x.high * power_of_two, x.low * power_of_two};
}

// Is every number within `error` of high + low rounded to the same double, `rounded`? |low| is far below |high|.
bool rounds_alike(double high, double low, double error, double& rounded) {
  const DoubleDouble sum = fast_two_sum(high, low);
  rounded = sum.high + (sum.low + error);
  return rounded == sum.high + (sum.low - error);
}

constexpr double power_of_two(int exponent) {  // of a normal number
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// --- exp -------------------------------------------------------------------------------------------------------------

constexpr int kParts = 128;  // of a factor 2

// 2^(i/128).
constexpr std::array<DoubleDouble, kParts> kPowers = [] {
  constexpr int kTerms = 14;
  const DoubleDouble step = scaled(kLn2, 1.0 / kParts);
  DoubleDouble root{1, 0};
  for (int n = kTerms; n > 0; --n) root = DoubleDouble{1, 0} + root * step / DoubleDouble{static_cast<double>(n), 0};
  std::array<DoubleDouble, kParts> powers{};
  powers[0] = {1, 0};
  for (std::size_t i = 1; i < kParts; ++i) powers[i] = powers[i - 1] * root;
  return powers;
}();

// e^r - 1 to 2^-70 of it, for |r| < 2^-7.
DoubleDouble expm1_small(DoubleDouble r) {
  double p = 1.0 / 5040;
  p = p * r.high + 1.0 / 720;
  p = p * r.high + 1.0 / 120;
  p = p * r.high + 1.0 / 24;
  p = p * r.high + 1.0 / 6;
  const DoubleDouble square = r * r;
  return r + (scaled(square, 0.5) + DoubleDouble{p * r.high * square.high, 0});
}

struct Scaled {
  DoubleDouble value;
  int exponent;  // of the factor 2^exponent
};

// x in units of ln2 / 128, to the nearest integer.
double parts_of(double x) {
  constexpr double kRoundMagic = 0x1.8p+52;
  return (x * (kParts * kLog2E.high) + kRoundMagic) - kRoundMagic;
}

// ln2 in parts of which the first two have 33 bits each: their products with integers below 2^18 are exact.
constexpr double kLn2First = 0x1.62e42feep-1, kLn2Second = 0x1.a39ef35600000p-33;
constexpr double kLn2Third = ((kLn2.high - kLn2First) - kLn2Second) + kLn2.low;
constexpr double kFirst = kLn2First / kParts, kSecond = kLn2Second / kParts, kThird = kLn2Third / kParts;

// e^x for |x| < 800.
Scaled exp_of(DoubleDouble x) {
  const double n = parts_of(x.high);
  DoubleDouble r = two_sum(x.high - n * kFirst, -(n * kSecond));
  r = r + two_sum(x.low, -(n * kThird));
  const auto whole = static_cast<int>(n);
  const int part = whole & (kParts - 1);
  const DoubleDouble power = kPowers[static_cast<std::size_t>(part)];
  return {power + power * expm1_small(r), (whole - part) / kParts};
}

// e^x for |x| < 700, if a remainder of one double shows how it rounds; x is known to `error`.
bool exp_quickly(DoubleDouble x, double error, double& result) {
  const double n = parts_of(x.high);
  const DoubleDouble r = two_sum(x.high - n * kFirst, -(n * kSecond));
  double p = 1.0 / 720;
  p = p * r.high + 1.0 / 120;
  p = p * r.high + 1.0 / 24;
  p = p * r.high + 1.0 / 6;
  p = p * r.high + 0.5;
  p = r.high * r.high * p;
  const double low = r.low + (x.low - n * kThird);                  // up to 2^-44
  const double growth = r.high + (p + (low + low * (r.high + p)));  // e^(r.high + low) - 1, below 2^-8, to 2^-61
  const auto whole = static_cast<int>(n);
  const int part = whole & (kParts - 1);
  const DoubleDouble power = kPowers[static_cast<std::size_t>(part)];
  if (!rounds_alike(power.high, power.low + power.high * growth, (0x1p-59 + error) * power.high, result)) return false;
  result *= power_of_two((whole - part) / kParts);
  return true;
}

double exp_rounded(DoubleDouble x) {
  if (std::isnan(x.high)) return x.high;
  if (x.high > 710.0) return kInfinity;
  if (x.high < -746.0) return 0.0;
  const Scaled result = exp_of(x);
  return std::scalbn(result.value.high, result.exponent);  // the low part is below half an ulp
}

// --- log -------------------------------------------------------------------------------------------------------------

constexpr int kFirstCentre = 181, kLastCentre = 363;  // j, in 256 / sqrt(2) .. 256 sqrt(2)

// log(j / 256).
constexpr std::array<DoubleDouble, kLastCentre - kFirstCentre + 1> kLogs = [] {
  // log((j + 1) / j) = 2 (t + t^3/3 + ...), t = 1 / (2 j + 1)
  const auto step = [](int j) {
    constexpr int kTerms = 8;
    const DoubleDouble t = DoubleDouble{1, 0} / DoubleDouble{2.0 * j + 1, 0};
    const DoubleDouble square = t * t;
    DoubleDouble sum{};
    for (int n = kTerms; n >= 0; --n) sum = DoubleDouble{1, 0} / DoubleDouble{2.0 * n + 1, 0} + sum * square;
    return scaled(t * sum, 2);
  };
  std::array<DoubleDouble, kLastCentre - kFirstCentre + 1> logs{};
  for (int j = 256; j < kLastCentre; ++j)
    logs[static_cast<std::size_t>(j + 1 - kFirstCentre)] = logs[static_cast<std::size_t>(j - kFirstCentre)] + step(j);
  for (int j = 255; j >= kFirstCentre; --j)
    logs[static_cast<std::size_t>(j - kFirstCentre)] =
        logs[static_cast<std::size_t>(j + 1 - kFirstCentre)] + negated(step(j));
  return logs;
}();

// log(1 + z) to 2^-72 of it, for |z| < 2^-7.
DoubleDouble log1p_small(DoubleDouble z) {
  constexpr int kFirstTerm = 4, kLastTerm = 13;
  constexpr auto kReciprocals = [] {
    std::array<double, kLastTerm + 1> reciprocals{};
    for (std::size_t n = kFirstTerm; n <= kLastTerm; ++n) reciprocals[n] = 1.0 / static_cast<double>(n);
    return reciprocals;
  }();
  constexpr DoubleDouble kOneThird = DoubleDouble{1, 0} / DoubleDouble{3, 0};
  double p = kReciprocals[kLastTerm];
  for (std::size_t n = kLastTerm - 1; n >= kFirstTerm; --n) p = p * -z.high + kReciprocals[n];
  const DoubleDouble square = z * z;
  const DoubleDouble cube = square * z * kOneThird;
  return z + (scaled(square, -0.5) + (cube + DoubleDouble{-p * square.high * square.high, 0}));
}

// The logarithm of a positive finite x.
DoubleDouble log_of(DoubleDouble x) {
  int exponent = 0;
  double m = std::frexp(x.high, &exponent);  // [1/2, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  const double low = std::scalbn(x.low, -exponent);
  const auto centre = static_cast<int>(std::floor(256.0 / m + 0.5));
  const double c = centre / 256.0;
  const DoubleDouble product = two_product(m, c);
  const DoubleDouble z = two_sum(product.high - 1.0, product.low) + two_product(low, c);
  const DoubleDouble whole = kLn2 * DoubleDouble{static_cast<double>(exponent), 0};
  return whole + (negated(kLogs[static_cast<std::size_t>(centre - kFirstCentre)]) + log1p_small(z));
}

struct Bounded {
  DoubleDouble value;
  double error;  // at most
};

// log x of a normal positive finite x with a remainder of one double.
Bounded log_quickly(double x) {
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1, kHalf = std::uint64_t{1022} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<int>(bits >> 52) - 1022);
  double m = std::bit_cast<double>((bits & kMantissa) | kHalf);  // [1/2, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    exponent -= 1;
  }
  const auto centre = static_cast<int>(256.0 / m + 0.5);
  const double c = centre / 256.0;
  // c has nine bits and the halves of m 33 and 20: their products are exact, and so is what is left of 1.
  const double m_high = std::bit_cast<double>(std::bit_cast<std::uint64_t>(m) & ~((std::uint64_t{1} << 20) - 1));
  const DoubleDouble z = two_sum(c * m_high - 1.0, c * (m - m_high));
  double p = 1.0 / 7;
  p = p * -z.high + 1.0 / 6;
  p = p * -z.high + 1.0 / 5;
  p = p * -z.high + 1.0 / 4;
  p = p * -z.high + 1.0 / 3;
  p = p * -z.high + 1.0 / 2;
  const double bend = z.low - p * (z.high * z.high);  // log1p(z) = z.high + bend
  if (exponent == 0.0 && centre == 256) return {{z.high, bend}, 0x1p-60 * std::abs(z.high)};
  const DoubleDouble log_c = kLogs[static_cast<std::size_t>(centre - kFirstCentre)];
  const DoubleDouble large = two_sum(exponent * kLn2First, -log_c.high);
  const DoubleDouble sum = two_sum(large.high, z.high);
  const double low = sum.low + (large.low + (exponent * kLn2Second + (bend + (exponent * kLn2Third - log_c.low))));
  return {{sum.high, low}, 0x1p-66};
}

// log(x) where it is no finite number, else 1.
double log_special(double x) {
  if (std::isnan(x) || x == kInfinity) return x;
  return x < 0.0 ? kNaN : x == 0.0 ? -kInfinity : 1.0;
}
bool has_log(double x) {
  return x > 0.0 && x < kInfinity;
}
bool is_normal_positive(double x) {
  return x >= std::numeric_limits<double>::min() && x < kInfinity;
}

// --- pow -------------------------------------------------------------------------------------------------------------

bool is_integer(double y) {
  return std::floor(y) == y;
}
bool is_odd(double y) {
  return std::abs(y) < 0x1p53 && is_integer(y) && !is_integer(y / 2);
}

// x^y where x is 0 or infinite, or y is infinite; x is not negative.
double pow_limit(double x, double y) {
  if (x == 1.0) return 1.0;
  return (x < 1.0) == (y < 0.0) ? kInfinity : 0.0;
}

// x^y of a normal positive finite x, if a remainder of one double shows how it rounds.
bool pow_quickly(double x, double y, double& result) {
  const Bounded log = log_quickly(x);
  const DoubleDouble whole = fast_two_sum(log.value.high, log.value.low);
  const DoubleDouble product = two_product(whole.high, y);
  if (!(std::abs(product.high) < 700.0 && std::abs(y) > 0x1p-200 && std::abs(y) < 0x1p+200)) return false;
  const double error = (log.error + 0x1p-104 * std::abs(whole.high)) * std::abs(y);
  return exp_quickly({product.high, product.low + whole.low * y}, error, result);
}

// x > 0.
double pow_positive(double x, double y) {
  double result = 0.0;
  if (is_normal_positive(x) && pow_quickly(x, y, result)) return result;
  if (x == 0.0 || std::isinf(x) || std::isinf(y)) return pow_limit(x, y);
  const DoubleDouble log = log_of({x, 0});
  const double about = log.high * y;
  if (about > 710.0) return kInfinity;
  if (about < -746.0) return 0.0;
  if (std::abs(about) < 0x1p-60) return 1.0;  // and the splitting of a tiny y would lose bits
  return exp_rounded(log * DoubleDouble{y, 0});
}

// --- sin, cos, asin --------------------------------------------------------------------------------------------------

constexpr DoubleDouble kHalfPi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

// 2/pi, as many bits as the largest double has before the point and 192 behind it.
constexpr std::array<std::uint64_t, 19> kTwoOverPi{
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

// x = quarters pi/2 + angle, modulo 2 pi.
struct ReducedAngle {
  DoubleDouble angle;  // up to about pi/4
  unsigned quarters;
};

// |x| up to 2^20.
ReducedAngle reduced_small(double x) {
  constexpr double kRoundMagic = 0x1.8p+52;
  const double n = (x * 0x1.45f306dc9c883p-1 + kRoundMagic) - kRoundMagic;
  // pi/2 in parts of 33, 33, 53 and 53 bits: the products of the first two are exact.
  DoubleDouble angle = two_sum(x, -(n * 0x1.921fb54400000p+0));
  angle = angle + DoubleDouble{-(n * 0x1.0b4611a600000p-34), 0};
  angle = angle + negated(two_product(n, 0x1.3198a2e037073p-69));
  angle = angle + DoubleDouble{-(n * 0x1.129024e088a67p-123), 0};
  return {angle, static_cast<unsigned>(static_cast<int>(n)) & 3u};
}

// 64 bits of 2/pi from a place behind the point on; before it there are zeros.
std::uint64_t two_over_pi_from(int place) {
  const auto word = [](int index) { return index < 0 ? 0 : kTwoOverPi[static_cast<std::size_t>(index)]; };
  const int index = (place + 64) / 64 - 1, shift = (place + 64) % 64;
  return shift == 0 ? word(index) : word(index) << shift | word(index + 1) >> (64 - shift);
}

// |x| from 2^20 on.
ReducedAngle reduced_large(double x) {
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(x), &exponent), 53));
  // x 2/pi modulo 4, 2 bits before the point and 190 behind it: bits of 2/pi that stand for multiples of 4 play no
  // part.
  std::array<std::uint64_t, 3> words{};
  std::uint64_t carry = 0;
  for (std::size_t i = 3; i-- > 0;) {
    const std::uint64_t bits = two_over_pi_from(exponent - 55 + 64 * static_cast<int>(i));
    const Unsigned128 product = static_cast<Unsigned128>(mantissa) * bits + carry;
    words[i] = static_cast<std::uint64_t>(product);
    carry = static_cast<std::uint64_t>(product >> 64);
  }
  unsigned quarters = static_cast<unsigned>(words[0] >> 62);
  words = {words[0] << 2 | words[1] >> 62, words[1] << 2 | words[2] >> 62, words[2] << 2};
  const bool above_half = words[0] >> 63 != 0;  // then it is what is lacking to the next quarter
  if (above_half) {
    ++quarters;
    words = {~words[0], ~words[1], ~words[2]};  // less by 2^-192
  }
  DoubleDouble fraction{};
  for (std::size_t i = 3; i-- > 0;) {
    const double unit = std::ldexp(1.0, -64 * static_cast<int>(i + 1));
    fraction = fraction + DoubleDouble{static_cast<double>(words[i] & 0xffffffffu) * unit, 0};
    fraction = fraction + DoubleDouble{static_cast<double>(words[i] >> 32) * 0x1p32 * unit, 0};
  }
  const DoubleDouble angle = fraction * kHalfPi;
  if (x < 0.0) return {above_half ? angle : negated(angle), (4u - quarters) & 3u};
  return {above_half ? negated(angle) : angle, quarters & 3u};
}

struct SinCosOfAngle {
  DoubleDouble sine, cosine;
};

// Sine and cosine of an angle up to about pi/4.
SinCosOfAngle sin_cos_of(DoubleDouble angle) {
  constexpr std::size_t kTerms = 14;
  // 1 / (n (n + 1)).
  constexpr auto kFactors = [] {
    std::array<DoubleDouble, 2 * kTerms + 1> factors{};
    for (std::size_t n = 1; n <= 2 * kTerms; ++n)
      factors[n] = DoubleDouble{1, 0} / DoubleDouble{static_cast<double>(n * (n + 1)), 0};
    return factors;
  }();
  const DoubleDouble square = negated(angle * angle);
  DoubleDouble sine{1, 0}, cosine{1, 0};
  for (std::size_t n = kTerms; n > 0; --n) {
    sine = DoubleDouble{1, 0} + square * sine * kFactors[2 * n];
    cosine = DoubleDouble{1, 0} + square * cosine * kFactors[2 * n - 1];
  }
  return {angle * sine, cosine};
}

// sin(x + quarters pi/2), rounded.
double turned_sine(double x, unsigned quarters) {
  if (!std::isfinite(x)) return kNaN;
  const ReducedAngle reduced = std::abs(x) < 0x1p20 ? reduced_small(x) : reduced_large(x);
  const SinCosOfAngle of = sin_cos_of(reduced.angle);
  const unsigned turns = (reduced.quarters + quarters) & 3u;
  const double value = turns % 2 == 0 ? of.sine.high : of.cosine.high;
  return turns < 2 ? value : -value;
}

// |x| up to 1/2 or hardly more.
DoubleDouble asin_small(DoubleDouble x) {
  const double square = x.high * x.high;
  double y = 6435.0 / 557056;
  y = y * square + 143.0 / 10240;
  y = y * square + 231.0 / 13312;
  y = y * square + 63.0 / 2816;
  y = y * square + 35.0 / 1152;
  y = y * square + 5.0 / 112;
  y = y * square + 3.0 / 40;
  y = y * square + 1.0 / 6;
  DoubleDouble angle{x.high + x.high * square * y, 0};  // to 2^-22
  for (int step = 0; step < 2; ++step) {
    const SinCosOfAngle of = sin_cos_of(angle);
    angle = angle + (x + negated(of.sine)) / of.cosine;
  }
  return angle;
}

// acos x, for x in [1/2, 1]: twice the asin of the root of (1 - x) / 2.
DoubleDouble acos_large(double x) {
  const double half = (1.0 - x) / 2;
  if (half == 0.0) return {};
  const double root = std::sqrt(half);
  const DoubleDouble square = two_product(root, root);
  const double rest = ((half - square.high) - square.low) / (2 * root);
  return scaled(asin_small(fast_two_sum(root, rest)), 2);
}

constexpr double kTiny = 0x1p-27;  // below, sin x and asin x round to x, and cos x to 1

}  // namespace
}  // namespace draftproof

using draftproof::DoubleDouble;

double draftproof_exp(double x) {
  double result = 0.0;
  if (std::abs(x) < 700.0 && draftproof::exp_quickly({x, 0}, 0.0, result)) return result;
  return draftproof::exp_rounded({x, 0});
}

double draftproof_exp2(double x) {
  if (std::isnan(x)) return x;
  if (x > 1025.0) return draftproof::kInfinity;
  if (x < -1076.0) return 0.0;
  const double whole = std::floor(x);
  const draftproof::Scaled result = draftproof::exp_of(draftproof::kLn2 * DoubleDouble{x - whole, 0});
  return std::scalbn(result.value.high, result.exponent + static_cast<int>(whole));
}

double draftproof_expm1(double x) {
  if (std::isnan(x) || std::abs(x) < 0x1p-55) return x;
  if (x > 710.0) return draftproof::kInfinity;
  if (x < -40.0) return -1.0;
  if (std::abs(x) < 0x1p-7) return draftproof::expm1_small({x, 0}).high;
  const draftproof::Scaled result = draftproof::exp_of({x, 0});
  if (result.exponent > 1000) return std::scalbn(result.value.high, result.exponent);
  return (draftproof::scaled(result.value, std::scalbn(1.0, result.exponent)) + DoubleDouble{-1, 0}).high;
}

double draftproof_log(double x) {
  if (draftproof::is_normal_positive(x)) {
    const draftproof::Bounded log = draftproof::log_quickly(x);
    double result = 0.0;
    if (draftproof::rounds_alike(log.value.high, log.value.low, log.error, result)) return result;
  }
  return draftproof::has_log(x) ? draftproof::log_of({x, 0}).high : draftproof::log_special(x);
}

double draftproof_log2(double x) {
  if (!draftproof::has_log(x)) return draftproof::log_special(x);
  int exponent = 0;
  if (std::frexp(x, &exponent) == 0.5) return exponent - 1;  // exactly
  return (draftproof::log_of({x, 0}) * draftproof::kLog2E).high;
}

double draftproof_log10(double x) {
  return draftproof::has_log(x) ? (draftproof::log_of({x, 0}) * draftproof::kLog10E).high : draftproof::log_special(x);
}

double draftproof_log1p(double x) {
  if (std::abs(x) < 0x1p-7) return std::abs(x) < 0x1p-55 ? x : draftproof::log1p_small({x, 0}).high;
  if (!draftproof::has_log(1.0 + x)) return std::isnan(x) ? x : draftproof::log_special(1.0 + x);
  return draftproof::log_of(draftproof::two_sum(1.0, x)).high;
}

double draftproof_pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (std::isnan(x) || std::isnan(y)) return draftproof::kNaN;
  if (!std::signbit(x)) return draftproof::pow_positive(x, y);
  if (std::isfinite(y) && x != 0.0 && !std::isinf(x) && !draftproof::is_integer(y)) return draftproof::kNaN;
  const double magnitude = draftproof::pow_positive(-x, y);
  return draftproof::is_odd(y) ? -magnitude : magnitude;
}

double draftproof_hypot(double x, double y) {
  if (std::isinf(x) || std::isinf(y)) return draftproof::kInfinity;
  double larger = std::abs(x), smaller = std::abs(y);
  if (larger < smaller) {
    const double swapped = larger;
    larger = smaller;
    smaller = swapped;
  }
  if (!(smaller > 0.0)) return larger + smaller;  // 0, or not a number
  int exponent = 0;
  std::frexp(larger, &exponent);
  larger = std::scalbn(larger, -exponent);
  smaller = std::scalbn(smaller, -exponent);
  const DoubleDouble sum = draftproof::two_product(larger, larger) + draftproof::two_product(smaller, smaller);
  const double root = std::sqrt(sum.high);
  const DoubleDouble square = draftproof::two_product(root, root);
  const DoubleDouble rest = sum + DoubleDouble{-square.high, -square.low};
  return std::scalbn(root + rest.high / (2 * root), exponent);
}

double draftproof_sin(double x) {
  return std::abs(x) < draftproof::kTiny ? x : draftproof::turned_sine(x, 0);
}

double draftproof_cos(double x) {
  return std::abs(x) < draftproof::kTiny ? 1.0 : draftproof::turned_sine(x, 1);
}

void draftproof_sincos(double x, double* sine, double* cosine) {
  *sine = draftproof_sin(x);
  *cosine = draftproof_cos(x);
}

double draftproof_asin(double x) {
  const double magnitude = std::abs(x);
  if (!(magnitude <= 1.0)) return draftproof::kNaN;
  if (magnitude < draftproof::kTiny) return x;
  const DoubleDouble result = magnitude <= 0.5
                                  ? draftproof::asin_small({magnitude, 0})
                                  : draftproof::kHalfPi + draftproof::negated(draftproof::acos_large(magnitude));
  return x < 0.0 ? -result.high : result.high;
}

double draftproof_acos(double x) {
  if (!(std::abs(x) <= 1.0)) return draftproof::kNaN;
  if (x > 0.5) return draftproof::acos_large(x).high;
  if (x < -0.5)
    return (draftproof::scaled(draftproof::kHalfPi, 2) + draftproof::negated(draftproof::acos_large(-x))).high;
  return (draftproof::kHalfPi + draftproof::negated(draftproof::asin_small({x, 0}))).high;
}
