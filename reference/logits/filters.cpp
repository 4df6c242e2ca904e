#include "reference/logits/filters.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "reference/logits/prefix.hpp"
#include "reference/logits/ranked_tokens.hpp"
#include "reference/numerics/exact_product.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr KeptSet kKeepAll{-kInfinity, kLastToken, 0};

bool keeps_all(const KeptSet& set) {
  return set.last_value == -kInfinity && set.least_mass == 0;
}

// The first `least_kept` tokens of the row; none where that is one, which every filter keeps.
std::optional<KeptSet> least_set(const LogitsDistribution& row, const FilterParameters& parameters, Ties ties) {
  if (parameters.least_kept == 1) return std::nullopt;
  if (parameters.least_kept >= row.kept_count()) return kKeepAll;
  const ValueBand guess = guess_by_count(row, parameters.least_kept);
  static thread_local RowBand band;
  row.scan(guess.low, guess.high, band);
  return prefix_of_row(row, ties, Measure::count, static_cast<std::uint64_t>(parameters.least_kept), band).set;
}

// The longer one of two prefixes.
KeptSet longer(const KeptSet& a, const std::optional<KeptSet>& b) {
  if (!b) return a;
  const bool is_a = a.last_value < b->last_value || (a.last_value == b->last_value && a.last_token > b->last_token);
  return is_a ? a : *b;
}

KeptSet min_p_set(const LogitsDistribution& row, const FilterParameters& parameters) {
  if (parameters.min_p == 0.0f) return kKeepAll;
  const std::uint64_t least_mass = ceil_of_fraction(parameters.min_p, row.mass(row.first_token()));
  if (const std::optional<KeptSet> least = least_set(row, parameters, Ties::exact_k)) {
    if (keeps_all(*least)) return kKeepAll;
    if (row.mass(least->last_token) < least_mass) return *least_set(row, parameters, parameters.ties);
  }
  // The first token and not the largest mass: exp is not monotone to its last bit, and the set of one filter must hold
  // the token that every other filter keeps.
  return {-kInfinity, kLastToken, least_mass};
}

// Where the row is to be looked at closely.
ValueBand band_to_scan(const LogitsDistribution& row, const FilterParameters& parameters, bool has_top_k) {
  if (has_top_k) return guess_by_count(row, parameters.top_k);
  if (parameters.top_p != 1.0f) return guess_by_mass(row, parameters.top_p);
  return {kInfinity, kInfinity};
}

// The prefix that top-p keeps of the whole row. What the limit is a fraction of is known to the last bits only once
// tokens are added up one by one; where these bits do not move the end, nothing more is looked at.
KeptSet top_p_set(const LogitsDistribution& row, const FilterParameters& parameters, RowBand& band) {
  const MassBounds bounds = row.mass_bounds();
  const Prefix prefix = prefix_of_row(row, parameters.ties, Measure::mass, top_p_limit(parameters, bounds.least), band);
  if (prefix.measure >= top_p_limit(parameters, bounds.most)) return prefix.set;
  return prefix_of_row(row, parameters.ties, Measure::mass, top_p_limit(parameters, row.sum_of_masses()), band).set;
}

// The tokens of a band that a prefix which ends in it keeps.
void restrict_to(const LogitsDistribution& row, const KeptSet& prefix, const RowBand& band, RowBand& out) {
  row.narrow(band, prefix.last_value, kInfinity, out);
  if (prefix.last_token == kLastToken) return;
  // Tokens of the last value that stand behind the last token go.
  std::size_t kept = 0;
  std::size_t begin = 0;
  for (std::size_t t = 0; t < out.tile_end.size(); ++t) {
    auto left = row.count_up_to(prefix.last_value, prefix.last_token, t);
    for (std::size_t i = begin; i < out.tile_end[t]; ++i) {
      const bool is_last = out.values[i] == prefix.last_value;
      if (is_last && left == 0) {
        out.band_mass -= row.row_mass(out.weights[i], t);
        continue;
      }
      left -= is_last ? 1 : 0;
      out.values[kept] = out.values[i];
      out.weights[kept++] = out.weights[i];
    }
    begin = out.tile_end[t];
    out.tile_end[t] = kept;
  }
  out.count = kept;
}

// What top_p leaves of ranked tokens by its rule.
void keep_top_p(const FilterParameters& p, Ranked& tokens) {
  if (p.top_p_rule == TopPRule::ascending)
    std::sort(tokens.begin(), tokens.end(), [](const RankedToken& a, const RankedToken& b) {
      return a.value > b.value || (a.value == b.value && a.token > b.token);
    });
  const std::uint64_t total = total_mass(tokens);
  const std::uint64_t limit = top_p_limit(p, total);
  const std::uint64_t floor =
      p.top_p_denominator == 0
          ? floor_of_product(static_cast<double>(p.top_p), total)
          : static_cast<std::uint64_t>(static_cast<Unsigned128>(p.top_p_numerator) * total / p.top_p_denominator);
  std::uint64_t before = 0;
  std::size_t count = 0;
  for (const RankedToken& t : tokens) {
    const bool keeps = p.top_p_rule == TopPRule::up_to     ? before <= floor
                       : p.top_p_rule == TopPRule::through ? before + t.mass <= floor
                                                           : before < limit;
    if (!keeps && count >= static_cast<std::size_t>(p.least_kept)) break;
    before += t.mass;
    ++count;
  }
  while (p.ties == Ties::keep_all && count < tokens.size() && tokens[count].value == tokens[count - 1].value) ++count;
  tokens.resize(count);
}

// The filters with another rule for top_p: a sort of all tokens, and a set that may be no prefix.
void apply_with_rule(FilterParameters p, LogitsDistribution& row) {
  FilterParameters others = p;
  others.top_p = 1.0f;
  Ranked tokens;
  if (p.order == FilterOrder::joint) tokens = ranked_tokens(row);
  apply_filters(others, row);
  const Ranked left = ranked_tokens(row);
  if (p.order != FilterOrder::joint) tokens = left;
  keep_top_p(p, tokens);
  std::vector<std::uint8_t> kept(static_cast<std::size_t>(row.vocab_size()), 0);
  for (const RankedToken& t : tokens) kept[static_cast<std::size_t>(t.token)] = 1;
  // Of ties at the top top-k may keep the first ids, and `ascending` the last.
  const auto is_kept = [&](const RankedToken& t) { return kept[static_cast<std::size_t>(t.token)] != 0; };
  if (std::none_of(left.begin(), left.end(), is_kept)) kept[static_cast<std::size_t>(left.front().token)] = 1;
  row.keep_only(kept);
}

}  // namespace

std::uint64_t top_p_limit(const FilterParameters& parameters, std::uint64_t mass) {
  const std::uint64_t limit = parameters.top_p_denominator == 0
                                  ? ceil_of_fraction(parameters.top_p, mass)
                                  : ceil_of_fraction(parameters.top_p_numerator, parameters.top_p_denominator, mass);
  return std::max<std::uint64_t>(1, limit);
}

void apply_filters(const FilterParameters& given, LogitsDistribution& row) {
  if (!given.any()) return;
  if (given.top_p_rule != TopPRule::before && given.top_p != 1.0f) {
    apply_with_rule(given, row);
    return;
  }
  FilterParameters parameters = given;
  if (parameters.top_k != 0)
    parameters.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(parameters.top_k, parameters.least_kept));
  static thread_local RowBand band;
  static thread_local RowBand kept;
  row.weigh();
  const bool has_top_k = parameters.top_k != 0 && parameters.top_k < row.kept_count();
  const bool has_top_p = parameters.top_p != 1.0f;
  const ValueBand guess = band_to_scan(row, parameters, has_top_k);
  row.scan(guess.low, guess.high, band);

  KeptSet set = kKeepAll;
  if (has_top_k)
    set = prefix_of_row(row, parameters.ties, Measure::count, static_cast<std::uint64_t>(parameters.top_k), band).set;
  const KeptSet first = intersection(set, min_p_set(row, parameters));
  if (has_top_p && (parameters.order == FilterOrder::joint || keeps_all(first))) {
    // Where top-k ends in the band and top-p below it, top-k is the shorter.
    const bool is_longer =
        has_top_k && band.above_mass + band.band_mass < top_p_limit(parameters, row.mass_bounds().least);
    if (!is_longer) {
      const KeptSet prefix = top_p_set(row, parameters, band);
      set = intersection(set, longer(prefix, least_set(row, parameters, parameters.ties)));
    }
  } else if (has_top_p) {
    if (parameters.min_p == 0.0f && band.above_count == 0) {
      restrict_to(row, first, band, kept);
    } else {
      row.keep(first);
      row.kept_band(kept);
    }
    const std::uint64_t limit = top_p_limit(parameters, kept.band_mass);
    const KeptSet prefix = prefix_of_band(row, parameters.ties, Measure::mass, limit, kept).set;
    set = intersection(set, longer(prefix, least_set(row, parameters, parameters.ties)));
  }
  const KeptSet all = intersection(set, first);
  if (keeps_all(all)) return;
  if (all.least_mass == 0 && band.low <= all.last_value && all.last_value <= band.high)
    row.keep(all, band);
  else
    row.keep(all);
}

}  // namespace draftproof
