// Vectors of trials: one trial a lane, in lockstep over the positions, by tables. Randomness is addressed, so that
// drawing words that a rejected trial has no use for changes nothing.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exactness/soak/chain_trials_simd.cpp"
#include <hwy/foreach_target.h>
// Highway's own header order: foreach_target before highway.
#include <hwy/highway.h>

#include "exactness/soak/chain_trials.hpp"
#include "reference/random/address.hpp"

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

ChainTrialKernel trials_of_target() {
  return {"one by one", run_chain_trials_one_by_one};
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using WideTag = hn::ScalableTag<std::uint64_t>;
using WordTag = hn::RepartitionToNarrow<WideTag>;
using Wide = hn::Vec<WideTag>;

struct Words {
  Wide high, low;  // the two halves of a block
};

// Philox4x32-10 (Salmon et al., SC'11) with one block a 64-bit lane. Only the lower half of a lane is a word: the upper
// half of what a round leaves is never read, since the multiplication takes lower halves.
class Philox {
 public:
  explicit Philox(std::uint64_t seed) {
    std::uint32_t low = static_cast<std::uint32_t>(seed);
    std::uint32_t high = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < kRounds; ++round) {
      keys_[round][0] = low;
      keys_[round][1] = high;
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
  }

  // counter = (0, row, step, purpose)
  HWY_INLINE Words block(Wide row, Wide step, Wide purpose) const {
    const WideTag d;
    const Wide m0 = hn::Set(d, 0xD2511F53u);
    const Wide m1 = hn::Set(d, 0xCD9E8D57u);
    Wide c0 = hn::Zero(d);
    Wide c1 = row;
    Wide c2 = step;
    Wide c3 = purpose;
    for (int round = 0; round < kRounds; ++round) {
      const Wide product0 = multiply(m0, c0);
      const Wide product1 = multiply(m1, c2);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), hn::Set(d, keys_[round][0]));
      c1 = product1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), hn::Set(d, keys_[round][1]));
      c3 = product0;
    }
    const Wide word = hn::Set(d, 0xFFFFFFFFu);
    return {hn::Or(hn::ShiftLeft<32>(c0), hn::And(c1, word)), hn::Or(hn::ShiftLeft<32>(c2), hn::And(c3, word))};
  }

 private:
  static constexpr int kRounds = 10;

  static HWY_INLINE Wide multiply(Wide a, Wide b) {
    const WordTag d;
    return hn::MulEven(hn::BitCast(d, a), hn::BitCast(d, b));
  }

  std::uint64_t keys_[kRounds][2];
};

HWY_INLINE Wide gather(const std::uint64_t* table, Wide index) {
  const WideTag d;
  const hn::RebindToSigned<WideTag> di;
  return hn::GatherIndex(d, table, hn::BitCast(di, index));
}

// table [8], index < 8
HWY_INLINE Wide lookup(const std::uint64_t* table, Wide index) {
#if HWY_MAX_BYTES == 64
  const WideTag d;
  return hn::TableLookupLanes(hn::LoadU(d, table), hn::IndicesFromVec(d, index));
#else
  return gather(table, index);
#endif
}

void run(const ChainTables& tables, std::uint64_t seed, std::uint32_t first_trial, std::uint64_t count,
         std::span<std::uint64_t> counts) {
  const WideTag d;
  const std::size_t lanes = hn::Lanes(d);
  const Philox philox(seed);
  const std::size_t draft_len = tables.draft_len();
  const std::size_t border_count = tables.border_count();
  const Wide one = hn::Set(d, 1);
  const Wide vocab = hn::Set(d, border_count + 1);
  const hn::RepartitionToNarrow<WideTag> dw;
  const auto times_vocab = [&](Wide x) { return hn::MulEven(hn::BitCast(dw, x), hn::BitCast(dw, vocab)); };
  const auto purpose = [&](Purpose p) { return hn::Set(d, static_cast<std::uint64_t>(p)); };
  // The number of borders below r.
  const auto borders_below = [&](Wide r, const auto& border) {
    Wide below = hn::Zero(d);
    for (std::size_t b = 0; b < border_count; ++b)
      below = hn::Sub(below, hn::VecFromMask(d, hn::Gt(r, border(b))));  // a true lane is -1
    return below;
  };

  HWY_ALIGN std::uint64_t cells[hn::MaxLanes(d)];
  std::uint64_t done = 0;
  for (; done + lanes <= count; done += lanes) {
    const Wide trial = hn::Iota(d, first_trial + done);
    auto alive = hn::Eq(one, one);
    Wide previous = hn::Zero(d);
    Wide path = hn::Zero(d);        // digits of the tokens accepted
    Wide row = hn::Zero(d);         // 8 times their number
    Wide first_cell = hn::Zero(d);  // of strings with one token more
    std::size_t strings = 1;
    for (std::size_t i = 0; i < draft_len; ++i) {
      const Wide position = hn::Set(d, i);
      const Wide r = philox.block(position, trial, purpose(Purpose::draft_sample)).low;
      const Wide drafted =
          hn::Add(lookup(tables.draft_first(i), previous),
                  borders_below(r, [&](std::size_t b) { return lookup(tables.draft_border(i, b), previous); }));
      const Wide coin = hn::ShiftRight<11>(philox.block(position, trial, purpose(Purpose::accept)).high);
      const Wide index = hn::Add(hn::ShiftLeft<3>(previous), drafted);
      alive = hn::And(alive, hn::Gt(gather(tables.coins(i), index), coin));
      strings *= border_count + 1;
      previous = hn::IfThenElse(alive, drafted, previous);
      path = hn::IfThenElse(alive, hn::Add(times_vocab(path), drafted), path);
      row = hn::Add(row, hn::IfThenElseZero(alive, hn::Set(d, ChainTables::kWidth)));
      first_cell = hn::Add(first_cell, hn::IfThenElseZero(alive, hn::Set(d, strings)));
    }
    // The last draw's address depends on where the trial ended.
    const auto rejected = hn::Lt(row, hn::Set(d, draft_len * ChainTables::kWidth));
    const Wide last_purpose = hn::IfThenElse(rejected, purpose(Purpose::residual), purpose(Purpose::target_sample));
    const Wide r = philox.block(hn::ShiftRight<3>(row), trial, last_purpose).low;
    const Wide index = hn::Add(row, previous);
    const Wide last = hn::Add(gather(tables.last_first(), index),
                              borders_below(r, [&](std::size_t b) { return gather(tables.last_border(b), index); }));
    hn::Store(hn::Add(first_cell, hn::Add(times_vocab(path), last)), d, cells);
    for (std::size_t lane = 0; lane < lanes; ++lane) ++counts[cells[lane]];
  }
  run_chain_trials_one_by_one(tables, seed, first_trial + static_cast<std::uint32_t>(done), count - done, counts);
}

ChainTrialKernel trials_of_target() {
  return {hwy::TargetName(HWY_TARGET), run};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_targets.hpp"

namespace draftproof {

std::vector<ChainTrialKernel> available_chain_trials() {
  return kernels_of_every_target(std::vector{ChainTrialKernel{"one by one", run_chain_trials_one_by_one}},
                                 DRAFTPROOF_TARGETS_OF(trials_of_target));
}

ChainTrials chain_trials() {
  return DRAFTPROOF_TARGETS_OF(trials_of_target).front()().run;
}

}  // namespace draftproof
#endif
