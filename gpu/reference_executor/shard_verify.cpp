// Chain verification across devices, a stage at a time: each makes the device's parts of rows anew and asks
// reference/shard and what a whole row asks.
#include <memory>
#include <optional>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/draft_ranges.hpp"
#include "gpu/reference_executor/shard_part.hpp"
#include "reference/sampling/difference_masses.hpp"
#include "reference/sampling/tile_draw.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof::reference_executor {
namespace {

using Arguments = draftproof_shard_verify_arguments;

Known known_row(const draftproof_shard_rows& r, std::int64_t row) {
  return known(r.shard, row, r.tile_exponent, r.largest[row], r.kept, r.tile_sum);
}
Part part_of(const draftproof_shard_rows& r, std::int64_t row) {
  return joined_part(r.shard, row, known_row(r, row), r.kept);
}
bool holds(const draftproof_shard& s, Token token) {
  return token >= s.begin && token < s.end;
}

// p of a token whose logit over the temperature is x.
float probability_of_logit(const draftproof_shard_rows& r, std::int64_t row, float x, Token token) {
  if (temperature_of(r.shard, row) == 0.0f) return token == token_of_largest(r.largest[row]) ? 1.0f : 0.0f;
  const Known of_row = known_row(r, row);
  const ExpParts parts = exp_parts(x);
  const std::int32_t tile_exponent = of_row.exponents[static_cast<std::size_t>(token / kTileTokens)];
  const float weight = tile_weight(parts, tile_exponent);
  if (weight == 0.0f) return 0.0f;
  if (r.kept != nullptr) {
    const draftproof_shard_kept& kept = r.kept[row];
    if (comes_first({kept.last_value, kept.last_token}, {x, token})) return 0.0f;
    if (row_scale(mass_of_weight(weight), of_row.exponent, tile_exponent) < kept.least_mass) return 0.0f;
  }
  return probability_of(parts, of_row.exponent, reciprocal_total(of_row.total));
}

// A device's part of a proposal row.
class ProposalPart {
 public:
  ProposalPart(const Arguments& a, std::int64_t row) {
    const draftproof_shard& s = a.proposal.shard;
    if (a.proposal_kind == DRAFTPROOF_LOGITS) {
      logits_.emplace(part_of(a.proposal, row));
    } else {
      probabilities_.emplace(TokenRange{static_cast<Token>(s.begin), static_cast<Token>(s.end)});
      probabilities_->make_probabilities(row_view(s.logits, row, s.end - s.begin), row);
    }
  }
  float probability(Token token) { return shard().distribution().probability(token - shard().base()); }
  const RowShard& shard() { return logits_ ? logits_->shard() : *probabilities_; }

 private:
  std::optional<Part> logits_;
  std::optional<RowShard> probabilities_;
};

struct Decision {
  std::int32_t num_accepted;
  std::int32_t status;
};

// One request on one device.
struct Request {
  const Arguments& a;
  std::int64_t b;
  DraftRange range;

  std::int64_t length() const { return range.length(); }
  Token draft(std::int64_t place) const { return a.draft_tokens[range.begin + place]; }
  std::int64_t target_row(std::int64_t place) const { return range.begin + b + place; }
  float drafted_logit(std::int64_t place) const {
    return bit_cast<float>(static_cast<std::uint32_t>(a.draft[range.begin + place] >> 32));
  }
  bool is_greedy(std::int64_t place) const { return temperature_of(a.target.shard, target_row(place)) == 0.0f; }
  // A greedy target sees every proposal as one-hot at the draft, and argmax drafting is one.
  bool is_one_hot(std::int64_t place) const {
    return a.proposal_kind == DRAFTPROOF_ONE_HOT || is_greedy(place) ||
           (a.proposal_kind == DRAFTPROOF_LOGITS && temperature_of(a.proposal.shard, range.begin + place) == 0.0f);
  }
  std::size_t words() const { return tiles_of(a.target.shard) + 1; }
  std::uint64_t* residual() const { return a.residual + b * static_cast<std::int64_t>(words()); }
  std::int64_t* share() const { return a.share + b * a.target.shard.devices; }

  // Stage 0.
  std::uint64_t draft_word(std::int64_t place) const {
    if (!range.valid || !holds(a.target.shard, draft(place))) return 0;
    const Token token = draft(place);
    float q = 1.0f;
    if (!is_one_hot(place)) {
      const std::int64_t row = range.begin + place;
      const bool is_usable =
          a.proposal_kind != DRAFTPROOF_LOGITS || known_row(a.proposal, row).status == DRAFTPROOF_ROW_OK;
      q = is_usable ? ProposalPart(a, row).probability(token) : 0.0f;
    }
    const std::int64_t row = target_row(place);
    const bool is_plain = known_row(a.target, row).status == DRAFTPROOF_ROW_OK && !is_greedy(place);
    const float x = is_plain ? Part(a.target.shard, row).logit(token) : 0.0f;
    return std::uint64_t{bit_cast<std::uint32_t>(x)} << 32 | bit_cast<std::uint32_t>(q);
  }

  Decision judge() const {
    if (!range.valid) return {0, DRAFTPROOF_ROW_BAD_ID};
    for (std::int64_t i = 0; i < length(); ++i)
      if (!is_index(draft(i), a.target.shard.vocab_size)) return {0, DRAFTPROOF_ROW_BAD_ID};
    PhiloxSource source;
    AddressedChance<> chance(source, a.randomness.seed[b], a.randomness.step[b]);
    std::int32_t place = 0;
    for (; place < length(); ++place) {
      std::int32_t status = known_row(a.target, target_row(place)).status;
      if (status != DRAFTPROOF_ROW_OK) return {place, status};
      const float p = probability_of_logit(a.target, target_row(place), drafted_logit(place), draft(place));
      float q = 1.0f;
      if (!is_one_hot(place)) {
        if (a.proposal_kind == DRAFTPROOF_LOGITS) status = known_row(a.proposal, range.begin + place).status;
        if (status != DRAFTPROOF_ROW_OK) return {place, status};
        q = bit_cast<float>(static_cast<std::uint32_t>(a.draft[range.begin + place] & 0xffffffffu));
        if (!(q >= 0.0f && q <= 1.0f)) return {place, DRAFTPROOF_ROW_BAD_PROBABILITY};
      }
      if (!chance.accept(p, q, static_cast<std::uint32_t>(place))) return {place, DRAFTPROOF_ROW_OK};
    }
    return {place, known_row(a.target, target_row(place)).status};
  }
};

// The device's masses of the row that the last token is drawn from: residual masses, or W_i of the target without a
// token (kPaddingToken: with all).
class LastMasses {
 public:
  LastMasses(const Request& r, std::int64_t place, bool is_residual, Token excluded)
      : target_(part_of(r.a.target, r.target_row(place))),
        excluded_(holds(r.a.target.shard, excluded) ? excluded - target_.shard().base() : kPaddingToken) {
    if (!is_residual) return;
    proposal_.emplace(r.a, r.range.begin + place);
    residual_ = std::make_unique<DifferenceMasses>(target_.shard().distribution(), &proposal_->shard().distribution());
    residual_->add_up();
  }

  Part& target() { return target_; }
  const std::vector<std::uint64_t>& residual_sums() const { return residual_->tile_sums(); }
  std::uint64_t excluded_mass() { return excluded_ == kPaddingToken ? 0 : logits().mass_in_tile(excluded_); }
  // Of a tile of the whole row.
  std::uint64_t sum(std::size_t tile) {
    if (!target_.holds(tile)) return 0;
    const std::size_t own = target_.place(tile);
    if (residual_) return residual_->tile_sums()[own];
    const bool is_cut = excluded_ != kPaddingToken && static_cast<std::size_t>(excluded_ / kTileTokens) == own;
    return logits().tiles()[own].sum - (is_cut ? excluded_mass() : 0);
  }
  Token token_at(std::size_t tile, std::uint64_t before) {
    const std::size_t own = target_.place(tile);
    const Token token = residual_ ? residual_->token_at(own, before) : logits().token_at(own, before, excluded_);
    return token + target_.shard().base();
  }

 private:
  const LogitsDistribution& logits() { return target_.shard().logits(); }

  Part target_;
  Token excluded_;
  std::optional<ProposalPart> proposal_;
  std::unique_ptr<DifferenceMasses> residual_;
};

// Stage 1.
void say_residual(const Request& r, const Decision& decision) {
  std::fill_n(r.residual(), r.words(), 0);
  const std::int32_t place = decision.num_accepted;
  const draftproof_shard& s = r.a.target.shard;
  if (decision.status != DRAFTPROOF_ROW_OK || place == r.length() || r.is_greedy(place) || s.begin == s.end) return;
  if (r.is_one_hot(place)) {
    const Token token = r.draft(place);
    if (holds(s, token)) r.residual()[token / kTileTokens] = LastMasses(r, place, false, token).excluded_mass();
    return;
  }
  try {
    LastMasses masses(r, place, true, kPaddingToken);
    std::ranges::copy(masses.residual_sums(), r.residual() + masses.target().shard().first_tile());
  } catch (const RowError&) {
    r.residual()[r.words() - 1] = 1;
  }
}

// What the last token of a request is drawn from, and where the draw falls.
struct LastToken {
  Decision decision;
  bool is_residual = false;
  Token excluded = kPaddingToken;
  bool draws = false;  // false: of a greedy row, and where nothing but `excluded` has mass
  TilePlace place{};

  LastToken(const Request& r, const Decision& of) : decision(of) {
    if (decision.status != DRAFTPROOF_ROW_OK) return;
    const std::int32_t at = decision.num_accepted;
    const bool is_bonus = at == r.length();
    const std::span<const std::uint64_t> said(r.residual(), r.words());
    if (!is_bonus && said.back() != 0) {
      decision = {0, DRAFTPROOF_ROW_BAD_PROBABILITY};
      return;
    }
    if (r.is_greedy(at)) return;
    const bool is_one_hot = !is_bonus && r.is_one_hot(at);
    const Known of_row = known_row(r.a.target, r.target_row(at));
    const std::size_t tiles = r.words() - 1;
    std::vector<std::uint64_t> sums(said.begin(), said.end() - 1);
    std::uint64_t total = 0;
    if (!is_bonus && !is_one_hot)
      for (const std::uint64_t sum : sums) total += sum;
    is_residual = total != 0;
    if (!is_residual) {
      if (is_one_hot) excluded = r.draft(at);
      const std::uint64_t* const own = r.a.target.tile_sum + r.target_row(at) * static_cast<std::int64_t>(tiles);
      for (std::size_t t = 0; t < tiles; ++t) sums[t] = own[t] - (is_one_hot ? said[t] : 0);
    }
    const auto in_row = [&](std::size_t t) {
      return is_residual ? sums[t] : row_scale(sums[t], of_row.exponent, of_row.exponents[t]);
    };
    total = 0;
    for (std::size_t t = 0; t < tiles; ++t) total += in_row(t);
    draws = total != 0;
    if (!draws) return;
    const Purpose purpose = is_bonus ? Purpose::target_sample : Purpose::residual;
    const RandomBlock block = philox_block(r.a.randomness.seed[r.b], 0, static_cast<std::uint32_t>(at),
                                           r.a.randomness.step[r.b], static_cast<std::uint32_t>(purpose));
    place = place_of_draw(block, total, in_row, [&](std::size_t t) { return sums[t]; });
  }
};

// Stage 2.
void say_share(const Request& r, const LastToken& last) {
  const draftproof_shard& s = r.a.target.shard;
  std::fill_n(r.share(), s.devices, 0);
  if (!last.draws || s.begin == s.end) return;
  LastMasses masses(r, last.decision.num_accepted, last.is_residual, last.excluded);
  r.share()[s.device] = static_cast<std::int64_t>(masses.sum(last.place.tile));
}

// Stage 3.
std::int64_t found(const Request& r, const LastToken& last) {
  if (!last.draws) return kNobody;
  const std::optional<std::uint64_t> before = left_of_share(r.a.target.shard, r.share(), last.place.before);
  if (!before) return kNobody;
  const std::int32_t place = last.decision.num_accepted;
  LastMasses masses(r, place, last.is_residual, last.excluded);
  const Token token = masses.token_at(last.place.tile, *before);
  return drawn_message(token, known_row(r.a.target, r.target_row(place)).log_probability(masses.target().logit(token)));
}

// Stage 4.
void emit(const Request& r, const LastToken& last) {
  const std::int64_t places = r.a.draft_len_max + 1;
  const auto put = [&](std::int64_t place, Token token, float logprob) {
    r.a.tokens[r.b * places + place] = token;
    if (r.a.logprobs != nullptr) r.a.logprobs[r.b * places + place] = logprob;
  };
  for (std::int64_t place = 0; place < places; ++place) put(place, DRAFTPROOF_NO_TOKEN, -kInfinity);
  const auto [num_accepted, status] = last.decision;
  r.a.status[r.b] = status;
  r.a.num_accepted[r.b] = status == DRAFTPROOF_ROW_OK ? num_accepted : 0;
  if (status != DRAFTPROOF_ROW_OK) return;
  for (std::int32_t place = 0; place <= num_accepted; ++place) {
    const std::int64_t row = r.target_row(place);
    if (r.is_greedy(place))
      put(place, token_of_largest(r.a.target.largest[row]), 0.0f);
    else if (place == num_accepted && last.draws)
      put(place, token_of_message(r.a.drawn[r.b]), logprob_of_message(r.a.drawn[r.b]));
    else
      put(place, place < num_accepted ? r.draft(place) : last.excluded,
          known_row(r.a.target, row).log_probability(r.drafted_logit(place)));
  }
}

}  // namespace

void shard_verify(const draftproof_shard_verify_arguments& a, const draftproof_settings&) {
  const std::vector<DraftRange> ranges = draft_ranges(a);
  for (std::int64_t b = 0; b < a.requests; ++b) {
    const Request request{a, b, ranges[static_cast<std::size_t>(b)]};
    if (a.stage == 0) {
      for (std::int64_t i = 0; i < request.length(); ++i) a.draft[request.range.begin + i] = request.draft_word(i);
      continue;
    }
    const Decision decision = request.judge();
    if (a.stage == 1) {
      say_residual(request, decision);
      continue;
    }
    const LastToken last(request, decision);
    if (a.stage == 2) say_share(request, last);
    if (a.stage == 3) a.drawn[b] = found(request, last);
    if (a.stage == 4) emit(request, last);
  }
}

}  // namespace draftproof::reference_executor
