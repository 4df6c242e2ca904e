#include "gpu/regress/shard_protocol.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

template <class T>
std::vector<T> copied(const T* values, std::int64_t count) {
  return {values, values + count};
}

// Combines a message of a device with those before.
template <class T>
void add(std::vector<T>& combined, const T* message) {
  for (std::size_t i = 0; i < combined.size(); ++i) combined[i] += message[i];
}
template <class T>
void raise(std::vector<T>& combined, const T* message) {
  for (std::size_t i = 0; i < combined.size(); ++i) combined[i] = std::max(combined[i], message[i]);
}
template <class T>
std::vector<T> begun(std::int64_t count, T value, std::int64_t& bytes) {
  bytes += count * static_cast<std::int64_t>(sizeof(T));
  return std::vector<T>(static_cast<std::size_t>(count), value);
}

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// Takes what a device has found out; every device must have found the same.
template <class T>
void take(std::vector<T>& of_all, const T* of_device, std::int64_t count, std::int32_t device) {
  std::vector<T> own = copied(of_device, count);
  if (device > 0 && own != of_all)
    throw Error(ErrorKind::internal, "device " + std::to_string(device), "it has another result than device 0");
  of_all = std::move(own);
}

// The calls of all devices in turn, over memory of one run, up to what a draw takes.
class Protocol {
 public:
  Protocol(CaseRun& run, const ShardInputs& in) : run_(run), in_(in), calls_(run, in) {}

  ShardMessages rows() {
    prepare();
    m_.tile_sum = summarise(false);
    if (in_.has_filters()) {
      select(DRAFTPROOF_SHARD_TOP_K);
      if (!in_.top_p.empty()) select(DRAFTPROOF_SHARD_TOP_P);
      m_.tile_sum = summarise(true);
    }
    return std::move(m_);
  }
  ShardMessages tokens() {
    m_ = rows();
    for (std::int32_t stage = 0; stage < 3; ++stage) draw(stage);
    return std::move(m_);
  }

 private:
  template <class Call>
  void on_each(const Call& call) {
    for (std::int32_t d = 0; d < in_.devices(); ++d) call(d);
  }
  std::int64_t tiles() const { return in_.rows * in_.tiles(); }  // of all rows

  void prepare() {
    m_.tile_exponent = begun(tiles() + in_.rows, std::numeric_limits<std::int32_t>::min(), m_.bytes);
    m_.largest = begun(in_.rows, kLeast, m_.bytes);
    on_each([&](std::int32_t d) {
      const draftproof_shard_prepare_arguments a = calls_.prepare(d);
      call_shard_prepare(a, run_.settings());
      raise(m_.tile_exponent, a.tile_exponent);
      raise(m_.largest, a.largest);
      m_.own_exponent.push_back(copied(a.own_exponent, tiles()));
      m_.own_sum.push_back(copied(a.own_sum, tiles()));
    });
  }

  std::vector<std::uint64_t> summarise(bool is_filtered) {
    std::vector<std::uint64_t> sums = begun(tiles(), std::uint64_t{0}, m_.bytes);
    on_each([&](std::int32_t d) {
      const draftproof_shard_summarise_arguments a = calls_.summarise(d, m_, is_filtered);
      call_shard_summarise(a, run_.settings());
      add(sums, a.tile_sum);
    });
    return sums;
  }

  void select(std::int32_t filter) {
    ShardRound at{filter, 0, {}, std::vector<draftproof_shard_search>(static_cast<std::size_t>(in_.rows)), m_.kept};
    at.kept.resize(static_cast<std::size_t>(in_.rows));
    for (at.round = 0; at.round <= 6; ++at.round) {
      m_.rounds.push_back(at);
      ShardRound after = at;
      std::vector<std::uint64_t> sums = begun(calls_.words_of_round(filter, at.round), std::uint64_t{0}, m_.bytes);
      on_each([&](std::int32_t d) {
        const draftproof_shard_select_arguments a = calls_.select(d, m_, at);
        call_shard_select(a, run_.settings());
        if (at.round < 6) add(sums, a.message);
        after.search = copied(a.search, in_.rows);
        after.kept = copied(a.kept, in_.rows);
      });
      at.combined = std::move(sums);
      at.search = after.search;
      at.kept = after.kept;
    }
    m_.kept = at.kept;
  }

  void draw(std::int32_t stage) {
    const bool is_sum = stage == 0 && in_.sampler != DRAFTPROOF_RACE;
    std::vector<std::int64_t> all = begun(calls_.words_of_draw(stage), is_sum ? std::int64_t{0} : kLeast, m_.bytes);
    if (stage == 0)
      m_.winner.assign(static_cast<std::size_t>(in_.devices()),
                       std::vector<std::int64_t>(static_cast<std::size_t>(2 * in_.rows)));
    on_each([&](std::int32_t d) {
      const draftproof_shard_draw_arguments a = calls_.draw(d, m_, stage);
      call_shard_draw(run_, a);
      if (stage == 2) {
        take(m_.tokens, a.tokens, in_.rows, d);
        take(m_.logprobs, a.logprobs, in_.rows, d);
        return take(m_.status, a.status, in_.rows, d);
      }
      is_sum ? add(all, a.message) : raise(all, a.message);
      if (a.winner != nullptr) m_.winner[static_cast<std::size_t>(d)] = copied(a.winner, 2 * in_.rows);
    });
    if (stage < 2) m_.drawn[stage] = std::move(all);
  }

  CaseRun& run_;
  const ShardInputs& in_;
  ShardCalls calls_;
  ShardMessages m_;
};

}  // namespace

template <class T>
T* ShardCalls::output(const char* name, std::int64_t count) {
  if (!is_random_) return run_.output<T>(name, count);
  return run_.in_out(name, std::vector<T>(static_cast<std::size_t>(count), static_cast<T>(-91)));
}

const draftproof_shard& ShardCalls::shard(std::int32_t device) {
  if (shards_.empty()) shards_.resize(static_cast<std::size_t>(in_.devices()));
  draftproof_shard& one = shards_[static_cast<std::size_t>(device)];
  if (one.devices == 0) one = in_.shard(run_, device, far_);
  return one;
}

std::int64_t ShardCalls::words_of_round(std::int32_t filter, std::int32_t round) const {
  if (round == 6) return 0;
  if (round < 4) return in_.rows * (filter == DRAFTPROOF_SHARD_TOP_P ? 256 : 128);
  return in_.rows * (round == 4 ? in_.devices() : 1);
}

std::int64_t ShardCalls::words_of_draw(std::int32_t stage) const {
  if (stage == 2) return 0;
  return in_.rows * (stage == 0 && in_.sampler != DRAFTPROOF_RACE ? in_.devices() : 1);
}

draftproof_shard_prepare_arguments ShardCalls::prepare(std::int32_t device) {
  draftproof_shard_prepare_arguments a{};
  a.shard = shard(device);
  a.tile_exponent = output<std::int32_t>("tile_exponent", in_.rows * (in_.tiles() + 1));
  a.largest = output<std::int64_t>("largest", in_.rows);
  a.own_exponent = output<std::int32_t>("own_exponent", in_.rows * in_.tiles());
  a.own_sum = output<std::uint64_t>("own_sum", in_.rows * in_.tiles());
  return a;
}

draftproof_shard_summarise_arguments ShardCalls::summarise(std::int32_t device, const ShardMessages& m,
                                                           bool is_filtered) {
  draftproof_shard_summarise_arguments a{};
  a.shard = shard(device);
  a.tile_exponent = run_.input(m.tile_exponent);
  a.own_exponent = run_.input(m.own_exponent[static_cast<std::size_t>(device)]);
  a.own_sum = run_.input(m.own_sum[static_cast<std::size_t>(device)]);
  if (is_filtered) a.kept = run_.optional(m.kept);
  a.tile_sum = output<std::uint64_t>("tile_sum", in_.rows * in_.tiles());
  return a;
}

draftproof_shard_select_arguments ShardCalls::select(std::int32_t device, const ShardMessages& m,
                                                     const ShardRound& at) {
  draftproof_shard_select_arguments a{};
  a.shard = shard(device);
  a.tile_exponent = run_.input(m.tile_exponent);
  a.largest = run_.input(m.largest);
  a.parameters = in_.filters(run_);
  a.filter = at.filter;
  a.round = at.round;
  if (at.round > 0) a.combined = run_.input(at.combined);
  a.search = run_.in_out("search", at.search);
  a.kept = run_.in_out("kept", at.kept);
  if (at.round < 6) a.message = output<std::uint64_t>("message", words_of_round(at.filter, at.round));
  return a;
}

draftproof_shard_draw_arguments ShardCalls::draw(std::int32_t device, const ShardMessages& m, std::int32_t stage) {
  draftproof_shard_draw_arguments a{};
  a.shard = shard(device);
  a.tile_exponent = run_.input(m.tile_exponent);
  a.largest = run_.input(m.largest);
  a.tile_sum = run_.input(m.tile_sum);
  a.kept = run_.optional(m.kept);
  a.randomness = in_.randomness(run_);
  a.row_in_step = run_.input(in_.row_in_step());
  a.sampler = in_.sampler;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.stage = stage;
  if (stage > 0) a.combined = run_.input(m.drawn[stage - 1]);
  if (stage < 2 && in_.sampler == DRAFTPROOF_RACE)
    a.winner = run_.in_out("winner", m.winner[static_cast<std::size_t>(device)]);
  if (stage < 2) a.message = output<std::int64_t>("message", words_of_draw(stage));
  if (stage == 2) {
    a.tokens = output<std::int32_t>("tokens", in_.rows);
    a.logprobs = output<float>("logprobs", in_.rows);
    a.status = output<std::int32_t>("status", in_.rows);
  }
  return a;
}

draftproof_shard_rows ShardCalls::rows(std::int32_t device, const ShardMessages& m) {
  draftproof_shard_rows a{};
  a.shard = shard(device);
  a.tile_exponent = run_.optional(m.tile_exponent);
  a.largest = run_.optional(m.largest);
  a.tile_sum = run_.optional(m.tile_sum);
  a.kept = run_.optional(m.kept);
  return a;
}

std::int64_t ShardVerifyCalls::words(std::int32_t stage) const {
  const std::int64_t of_stage[] = {static_cast<std::int64_t>(in_.whole.draft_tokens.size()),
                                   in_.whole.requests() * (in_.target.tiles() + 1),
                                   in_.whole.requests() * in_.target.devices(), in_.whole.requests(), 0};
  return of_stage[stage];
}

draftproof_shard_verify_arguments ShardVerifyCalls::verify(std::int32_t device, const ShardVerifyMessages& m,
                                                           std::int32_t stage) {
  const std::vector<std::int32_t>& lens = in_.whole.shape.draft_lens;
  draftproof_shard_verify_arguments a{};
  a.requests = in_.whole.requests();
  a.draft_tokens_total = static_cast<std::int64_t>(in_.whole.draft_tokens.size());
  a.draft_len_max = lens.empty() ? 0 : *std::max_element(lens.begin(), lens.end());
  a.draft_tokens = run_.input(in_.whole.draft_tokens);
  a.cu_num_draft_tokens = run_.input(in_.whole.cu_num_draft_tokens);
  a.target = target_.rows(device, m.target);
  a.proposal_kind = in_.whole.shape.proposal_kind;
  if (a.proposal_kind != DRAFTPROOF_ONE_HOT) a.proposal = proposal_.rows(device, m.proposal);
  a.randomness = {run_.input(in_.whole.seed), run_.input(in_.whole.step)};
  a.stage = stage;
  const auto array = [&]<class T>(const char* name, std::int32_t of_stage, const std::vector<T>& combined) -> T* {
    if (stage < of_stage) return nullptr;
    return stage == of_stage ? target_.output<T>(name, words(stage)) : run_.in_out(name, combined);
  };
  a.draft = array("draft", 0, m.draft);
  a.residual = array("residual", 1, m.residual);
  a.share = array("share", 2, m.share);
  a.drawn = array("drawn", 3, m.drawn);
  if (stage < 4) return a;
  const std::int64_t places = a.requests * (a.draft_len_max + 1);
  a.num_accepted = target_.output<std::int32_t>("num_accepted", a.requests);
  a.tokens = target_.output<std::int32_t>("tokens", places);
  a.logprobs = target_.output<float>("logprobs", places);
  a.status = target_.output<std::int32_t>("status", a.requests);
  return a;
}

ShardMessages across_devices(const ShardInputs& in, const draftproof_settings& settings) {
  const auto memory = device::memory_of(static_cast<draftproof_executor>(settings.executor));
  CaseRun run(*memory, settings);
  return Protocol(run, in).tokens();
}

ShardVerifyMessages verified_across_devices(const ShardDrafts& in, const draftproof_settings& settings) {
  const auto memory = device::memory_of(static_cast<draftproof_executor>(settings.executor));
  CaseRun run(*memory, settings);
  ShardVerifyMessages m;
  m.target = Protocol(run, in.target).rows();
  if (in.whole.shape.proposal_kind == DRAFTPROOF_LOGITS) m.proposal = Protocol(run, in.proposal).rows();
  ShardVerifyCalls calls(run, in);
  for (std::int32_t stage = 0; stage < 5; ++stage) {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(stage < 2 ? calls.words(stage) : 0));
    std::vector<std::int64_t> words(static_cast<std::size_t>(calls.words(stage)), stage == 3 ? kLeast : 0);
    m.bytes += 8 * calls.words(stage);
    for (std::int32_t d = 0; d < in.target.devices(); ++d) {
      const draftproof_shard_verify_arguments a = calls.verify(d, m, stage);
      call_shard_verify(run, a);
      if (stage == 0) add(sums, a.draft);
      if (stage == 1) add(sums, a.residual);
      if (stage == 2) add(words, a.share);
      if (stage == 3) raise(words, a.drawn);
      if (stage < 4) continue;
      const std::int64_t places = a.requests * (a.draft_len_max + 1);
      take(m.num_accepted, a.num_accepted, a.requests, d);
      take(m.tokens, a.tokens, places, d);
      take(m.logprobs, a.logprobs, places, d);
      take(m.status, a.status, a.requests, d);
    }
    if (stage == 0) m.draft = std::move(sums);
    if (stage == 1) m.residual = std::move(sums);
    if (stage == 2) m.share = std::move(words);
    if (stage == 3) m.drawn = std::move(words);
  }
  return m;
}

const std::vector<ShardCase>& shard_cases() {
  static const std::vector<ShardCase> cases = [] {
    std::vector<ShardCase> made;
    for (auto& [what, in] : kinds_of_shards()) {
      ShardMessages messages = across_devices(in, {});
      made.push_back({what, std::move(in), std::move(messages)});
    }
    return made;
  }();
  return cases;
}

}  // namespace draftproof::regress
