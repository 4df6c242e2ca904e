#include "gpu/regress/random_calls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/api.hpp"
#include "gpu/regress/random_call.hpp"

namespace draftproof::regress {
namespace {

std::int64_t vocabulary(RandomCall& call) {
  return call.one_of<std::int64_t>({1, 2, 7, 31, 33, 100, 4096, 4097, 8192});
}

// A matrix of `rows` rows; the padding behind the last one is not there, any other is NaN.
draftproof_rows matrix(RandomCall& call, std::int64_t rows, std::int64_t vocab_size, bool are_probabilities) {
  const std::int64_t stride = vocab_size + (call.random.chance(0.5) ? 0 : call.random.below(9));
  std::vector<float> values(static_cast<std::size_t>(rows == 0 ? 0 : (rows - 1) * stride + vocab_size), std::nanf(""));
  const bool is_wrong = call.is_wrong();
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const row = values.data() + r * stride;
    float total = 0.0f;
    for (std::int64_t i = 0; i < vocab_size; ++i) {
      if (are_probabilities) {
        row[i] = static_cast<float>(call.random.below(4));
      } else {
        row[i] = call.random.chance(0.05) ? -std::numeric_limits<float>::infinity() : 3.0f * call.random.normal();
      }
      total += row[i];
    }
    if (are_probabilities)
      for (std::int64_t i = 0; i < vocab_size; ++i) row[i] = total > 0.0f ? row[i] / total : i == 0 ? 1.0f : 0.0f;
    if (is_wrong && call.random.chance(0.5)) row[call.random.below(vocab_size)] = call.wrong_number();
  }
  return call.run.rows(values, stride, call.one_of<std::int32_t>({DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16}));
}

const float* temperatures(RandomCall& call, std::int64_t count, const std::vector<float>& values) {
  return call.maybe<float>(count, [&] { return call.is_wrong() ? call.wrong_number() : call.one_of(values); });
}

// Drafters take temperature and filters alone.
draftproof_parameters parameters(RandomCall& call, std::int64_t requests, bool of_drafter) {
  const auto numbers = [&](std::vector<float> values) {
    return call.maybe<float>(requests, [&] { return call.is_wrong() ? call.wrong_number() : call.one_of(values); });
  };
  const auto switches = [&] {
    return call.maybe<std::uint8_t>(
        requests, [&] { return static_cast<std::uint8_t>(call.is_wrong() ? 2 : call.random.below(2)); });
  };
  draftproof_parameters p{};
  p.temperature = temperatures(call, requests, {0.0f, 1.0f, 1.0f, 0.7f, 1.5f});
  p.top_k = call.maybe<std::int32_t>(
      requests, [&] { return call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(call.random.below(6)); });
  p.top_p = numbers({1.0f, 0.9f, 0.5f, 0.1f});
  p.min_p = numbers({0.0f, 0.1f, 0.5f, 1.0f});
  p.filter_order = switches();
  p.ties = switches();
  p.top_p_rule = call.maybe<std::uint8_t>(
      requests, [&] { return static_cast<std::uint8_t>(call.is_wrong() ? 4 : call.random.below(4)); });
  if (of_drafter) return p;
  p.repetition_penalty = numbers({1.0f, 1.2f, 0.8f});
  p.frequency_penalty = numbers({0.0f, 0.5f, -0.5f});
  p.presence_penalty = numbers({0.0f, 0.5f});
  p.guidance_scale = numbers({1.0f, 1.5f, 0.0f});
  p.nan_policy = switches();
  return p;
}

const std::int64_t* offsets(RandomCall& call, std::int64_t lists, std::int64_t count) {
  std::int64_t at = 0;
  return call.input<std::int64_t>(lists + 1, [&] {
    const std::int64_t here = at;
    at += call.random.below(count - at + 1);
    return call.is_wrong() ? call.wrong_index() : here;
  });
}

std::int32_t token(RandomCall& call, std::int64_t vocab_size) {
  return call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(call.random.below(vocab_size));
}

// Lists of tokens in some of the calls, else none.
bool give_lists(RandomCall& call, double probability, std::int64_t lists, std::int64_t vocab_size,
                const std::int32_t*& tokens, std::int64_t& count, const std::int64_t*& list_offsets) {
  if (!call.random.chance(probability)) return false;
  count = call.random.below(9);
  tokens = call.input<std::int32_t>(count, [&] { return token(call, vocab_size); });
  list_offsets = offsets(call, lists, count);
  return true;
}

draftproof_constraints constraints(RandomCall& call, std::int64_t rows, std::int64_t requests, std::int64_t vocab_size,
                                   bool of_verifier) {
  draftproof_constraints c{};
  RandomWords& random = call.random;
  const std::int64_t words = (vocab_size + 31) / 32;
  if (random.chance(0.2)) {
    c.allowed_mask_stride = words + random.below(3);
    c.allowed_mask = call.input<std::uint32_t>(rows == 0 ? 0 : (rows - 1) * c.allowed_mask_stride + words,
                                               [&] { return random.word() | random.word(); });
  }
  give_lists(call, 0.2, requests, vocab_size, c.allowed_ids, c.allowed_ids_count, c.allowed_offsets);
  give_lists(call, 0.7, requests, vocab_size, c.history_tokens, c.history_tokens_count, c.history_offsets);
  c.prompt_len = call.maybe<std::int64_t>(
      requests, [&] { return call.is_wrong() ? call.wrong_index() : random.below(3); }, 0.3);
  c.history_len_max = call.is_wrong() ? random.below(4) : 30;
  if (!of_verifier && random.chance(0.3)) {
    const std::int64_t count = random.below(8);
    c.row_draft_tokens = call.input<std::int32_t>(count, [&] { return token(call, vocab_size); });
    c.row_draft_tokens_count = count;
    std::vector<std::int64_t> begins;
    std::vector<std::int32_t> lengths;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = call.is_wrong() ? call.wrong_index() : random.below(count + 1);
      const std::int64_t left = begin >= 0 && begin <= count ? count - begin : 0;
      begins.push_back(begin);
      lengths.push_back(call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(random.below(left + 1)));
    }
    c.row_draft_begin = call.input(begins);
    c.row_draft_len = call.input(lengths);
  }
  if (random.chance(0.3)) {
    c.bad_word_sequences_count = random.below(5);
    give_lists(call, 1.0, c.bad_word_sequences_count, vocab_size, c.bad_word_tokens, c.bad_word_tokens_count,
               c.bad_word_offsets);
    c.bad_word_sequences = offsets(call, requests, c.bad_word_sequences_count);
  }
  c.min_tokens =
      call.maybe<std::int64_t>(requests, [&] { return call.is_wrong() ? call.wrong_index() : random.below(3); });
  give_lists(call, 0.3, requests, vocab_size, c.stop_ids, c.stop_ids_count, c.stop_offsets);
  if (give_lists(call, 0.3, requests, vocab_size, c.bias_tokens, c.bias_count, c.bias_offsets))
    c.bias_values =
        call.input<float>(c.bias_count, [&] { return call.is_wrong() ? call.wrong_number() : random.normal(); });
  return c;
}

draftproof_randomness randomness(RandomCall& call, std::int64_t requests) {
  return {call.input<std::uint64_t>(requests, [&] { return call.random.word(); }),
          call.input<std::uint32_t>(requests, [&] { return call.random.word(); })};
}

struct RandomDrafts {
  std::int64_t requests, total, len_max;
  std::vector<std::int64_t> sums;  // as the call gets them, some of them wrong
  const std::int64_t* cu;
};
// Some calls have no request, and some a longest draft that is longer than any.
RandomDrafts drafts(RandomCall& call, std::int64_t longest) {
  RandomDrafts d{call.random.chance(0.05) ? 0 : 1 + call.random.below(4), 0, 0, {0}, nullptr};
  for (std::int64_t b = 0; b < d.requests; ++b) {
    const std::int64_t length = call.random.below(longest + 1);
    d.len_max = std::max(d.len_max, length);
    d.sums.push_back(d.sums.back() + length);
  }
  d.total = d.sums.back();
  if (call.random.chance(0.2)) d.len_max += call.random.below(4);
  for (std::int64_t& sum : d.sums)
    if (call.is_wrong()) sum = call.wrong_index();
  d.cu = call.input(d.sums);
  return d;
}

const std::int32_t* parents(RandomCall& call, const RandomDrafts& d) {
  std::int64_t node = -1;
  std::int64_t at = 0;
  std::int64_t b = 0;
  return call.input<std::int32_t>(d.total, [&] {
    while (b < d.requests && at == d.sums[static_cast<std::size_t>(b)]) {
      node = -1;
      ++b;
    }
    ++at;
    ++node;
    return call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(call.random.below(node + 1)) - 1;
  });
}

// Outputs and workspace of a pass over rows that are given, and the pass.
void mass_pass(RandomCall& call, draftproof_mass_pass_arguments& a) {
  const std::int64_t tiles = (a.vocab_size + 4095) / 4096;
  a.tile_sum = call.output<std::uint64_t>("tile_sum", a.rows * tiles);
  a.tile_exponent = call.output<std::int32_t>("tile_exponent", a.rows * tiles);
  a.row_exponent = call.output<std::int32_t>("row_exponent", a.rows);
  a.row_total = call.output<std::uint64_t>("row_total", a.rows);
  a.status = call.output<std::int32_t>("status", a.rows);
  a.workspace_bytes = device::mass_pass_workspace_bytes(a);
  a.workspace = call.run.workspace(a.workspace_bytes);
  call.compare([&](const auto& settings) { device::mass_pass(a, settings); });
}

void mass_pass(RandomCall& call) {
  draftproof_mass_pass_arguments a{};
  a.rows = call.random.below(5);
  a.vocab_size = vocabulary(call);
  a.logits = matrix(call, a.rows, a.vocab_size, false);
  a.temperature = temperatures(call, a.rows, {0.5f, 1.0f, 1.0f, 2.0f});
  mass_pass(call, a);
}

void guidance(RandomCall& call) {
  draftproof_guidance_arguments a{};
  a.rows = call.random.below(5);
  a.vocab_size = vocabulary(call);
  a.conditional = matrix(call, a.rows, a.vocab_size, false);
  a.unconditional = matrix(call, a.rows, a.vocab_size, false);
  a.scale = call.input<float>(a.rows, [&] {
    return call.is_wrong() ? call.wrong_number() : call.one_of<float>({0.0f, 1.0f, 1.5f});
  });
  a.out_stride = a.vocab_size + call.random.below(3);
  a.out = call.output<float>("out", a.rows == 0 ? 0 : (a.rows - 1) * a.out_stride + a.vocab_size);
  a.status = call.output<std::int32_t>("status", a.rows);
  call.compare([&](const auto& settings) { device::guidance(a, settings); });
}

// Arguments that sample and logprobs share.
template <class Arguments>
void fill_rows(RandomCall& call, Arguments& a) {
  a.rows = call.random.below(5);
  a.requests = 1 + call.random.below(4);
  a.vocab_size = vocabulary(call);
  if (call.random.chance(0.6)) {
    a.row_request = call.input<std::int32_t>(a.rows, [&] {
      return call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(call.random.below(a.requests));
    });
  } else {
    a.requests = std::max(a.requests, a.rows);
  }
  a.logits = matrix(call, a.rows, a.vocab_size, false);
  if (call.random.chance(0.5)) a.unconditional = matrix(call, a.rows, a.vocab_size, false);
  a.parameters = parameters(call, a.requests, false);
  a.constraints = constraints(call, a.rows, a.requests, a.vocab_size, false);
}

void sample(RandomCall& call) {
  draftproof_sample_arguments a{};
  fill_rows(call, a);
  a.randomness = randomness(call, a.requests);
  a.row_in_step = call.maybe<std::uint32_t>(a.rows, [&] { return call.random.word(); });
  a.sampler = static_cast<std::int32_t>(call.random.below(2));
  a.purpose = call.random.chance(0.5) ? DRAFTPROOF_DRAFT_SAMPLE : DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = call.output<std::int32_t>("tokens", a.rows);
  a.logprobs = call.maybe_output<float>("logprobs", a.rows);
  a.kept_mass = call.maybe_output<float>("kept_mass", a.rows);
  a.kept_count = call.maybe_output<std::int64_t>("kept_count", a.rows);
  a.probabilities_stride = a.vocab_size + call.random.below(4);
  a.probabilities =
      call.maybe_output<float>("probabilities", a.rows == 0 ? 0 : (a.rows - 1) * a.probabilities_stride + a.vocab_size);
  a.status = call.output<std::int32_t>("status", a.rows);
  a.workspace_bytes = device::sample_workspace_bytes(a);
  a.workspace = call.run.workspace(a.workspace_bytes);
  call.compare([&](const auto& settings) { device::sample(a, settings); });
}

void logprobs(RandomCall& call) {
  draftproof_logprobs_arguments a{};
  fill_rows(call, a);
  a.n = call.random.chance(0.05) ? 1024 : static_cast<std::int32_t>(call.random.below(7));
  a.sampled = call.input<std::int32_t>(a.rows, [&] { return token(call, a.vocab_size); });
  give_lists(call, 0.6, a.requests, a.vocab_size, a.ids, a.ids_count, a.ids_offsets);
  a.ids_max = call.one_of<std::int32_t>({0, 4, 8, 8, 128});
  const std::int64_t places = a.rows * (a.n + 1 + a.ids_max);
  a.tokens = call.output<std::int32_t>("tokens", places);
  a.logprobs = call.output<float>("logprobs", places);
  a.ranks = call.output<std::int64_t>("ranks", places);
  a.status = call.output<std::int32_t>("status", a.rows);
  a.workspace_bytes = device::logprobs_workspace_bytes(a);
  a.workspace = call.run.workspace(a.workspace_bytes);
  call.compare([&](const auto& settings) { device::logprobs(a, settings); });
}

enum class Form { chain, block, tree };

void verify(RandomCall& call, Form form) {
  draftproof_verify_arguments a{};
  const RandomDrafts d = drafts(call, call.random.chance(0.9) ? 5 : 20);
  const std::int64_t rows = d.total + d.requests;
  a.requests = d.requests;
  a.draft_tokens_total = d.total;
  a.draft_len_max = d.len_max;
  a.cu_num_draft_tokens = d.cu;
  a.vocab_size = vocabulary(call);
  a.draft_tokens = call.input<std::int32_t>(d.total, [&] { return token(call, a.vocab_size); });
  if (form == Form::tree) {
    a.parents = parents(call, d);
    a.tree_rule = static_cast<std::int32_t>(call.random.below(2));
  }
  a.target_kind = static_cast<std::int32_t>(1 + call.random.below(2));
  a.proposal_kind = static_cast<std::int32_t>(form == Form::tree ? 1 + call.random.below(2) : call.random.below(3));
  a.target = matrix(call, rows, a.vocab_size, a.target_kind == DRAFTPROOF_PROBABILITIES);
  if (call.random.chance(0.2)) a.unconditional = matrix(call, rows, a.vocab_size, false);
  a.proposal =
      matrix(call, form == Form::tree ? rows : d.total, a.vocab_size, a.proposal_kind == DRAFTPROOF_PROBABILITIES);
  a.parameters = parameters(call, d.requests, false);
  a.draft_parameters = parameters(call, d.requests, true);
  a.constraints = constraints(call, rows, d.requests, a.vocab_size, true);
  a.randomness = randomness(call, d.requests);
  a.num_accepted = call.output<std::int32_t>("num_accepted", d.requests);
  a.tokens = call.output<std::int32_t>("tokens", d.requests * (d.len_max + 1));
  a.logprobs = call.maybe_output<float>("logprobs", d.requests * (d.len_max + 1));
  if (form == Form::tree) a.path = call.maybe_output<std::int32_t>("path", d.requests * d.len_max);
  a.status = call.output<std::int32_t>("status", d.requests);
  // What a drafter without parameters has kept of its rows.
  if (form != Form::tree && a.proposal_kind == DRAFTPROOF_LOGITS && call.random.chance(0.4)) {
    draftproof_mass_pass_arguments kept{};
    kept.rows = d.total;
    kept.vocab_size = a.vocab_size;
    kept.logits = a.proposal;
    mass_pass(call, kept);
    a.draft_parameters = {};
    a.proposal_sums = {kept.row_exponent, kept.row_total, kept.status};
  }
  const auto run = [&](auto workspace_bytes, auto verifier) {
    a.workspace_bytes = workspace_bytes(a);
    a.workspace = call.run.workspace(a.workspace_bytes);
    call.compare([&](const auto& settings) { verifier(a, settings); });
  };
  if (form == Form::chain) run(device::verify_chain_workspace_bytes, device::verify_chain);
  if (form == Form::block) run(device::verify_block_workspace_bytes, device::verify_block);
  if (form == Form::tree) run(device::verify_tree_workspace_bytes, device::verify_tree);
}

void tree_mask(RandomCall& call) {
  draftproof_tree_mask_arguments a{};
  const RandomDrafts d = drafts(call, call.random.chance(0.9) ? 5 : 70);
  a.requests = d.requests;
  a.draft_tokens_total = d.total;
  a.draft_len_max = d.len_max;
  a.cu_num_draft_tokens = d.cu;
  a.parents = parents(call, d);
  a.words_per_row = (d.len_max + 32) / 32 + call.random.below(2);
  a.depths = call.output<std::int32_t>("depths", d.total + d.requests);
  a.mask = call.output<std::uint32_t>("mask", (d.total + d.requests) * a.words_per_row);
  a.status = call.output<std::int32_t>("status", d.requests);
  call.compare([&](const auto& settings) { device::tree_mask(a, settings); });
}

void kv_commit(RandomCall& call) {
  draftproof_kv_commit_arguments a{};
  const RandomDrafts d = drafts(call, 5);
  const std::int64_t rows = d.total + d.requests;
  a.requests = d.requests;
  a.draft_tokens_total = d.total;
  a.draft_len_max = d.len_max;
  a.cu_num_draft_tokens = d.cu;
  a.num_slots = rows + call.random.below(4);
  std::int64_t slot = rows;
  a.slots = call.input<std::int64_t>(rows, [&] {
    --slot;
    const std::int64_t wrong = call.is_wrong() ? call.wrong_index() : slot;
    return wrong >= 0 && wrong < a.num_slots ? slot : wrong;  // two requests' slots would be the caller's mistake
  });
  std::vector<std::int32_t> paths;
  a.num_accepted = call.input<std::int32_t>(d.requests, [&] {
    std::vector<std::int32_t> path;
    for (std::int64_t node = 0; node < d.len_max; ++node)
      if (call.random.chance(0.4)) path.push_back(static_cast<std::int32_t>(node));
    const auto accepted = static_cast<std::int32_t>(path.size());
    path.resize(static_cast<std::size_t>(d.len_max), -1);
    paths.insert(paths.end(), path.begin(), path.end());
    return call.is_wrong() ? call.wrong_id() : accepted;
  });
  std::size_t next = 0;
  a.path = call.maybe<std::int32_t>(
      d.requests * d.len_max,
      [&] {
        const std::int32_t node = paths[next++];
        return call.is_wrong() ? call.wrong_id() : node;
      },
      0.8);
  a.layers = call.random.below(4);
  a.slot_bytes = call.one_of<std::int64_t>({0, 1, 4, 16, 24, 100, 2048});
  const std::int64_t entry = a.slot_bytes + (call.random.chance(0.5) ? 0 : call.random.below(20));
  const bool is_slot_outside = call.random.chance(0.5);
  a.slot_stride_bytes = is_slot_outside ? entry * std::max<std::int64_t>(a.layers, 1) : entry;
  a.layer_stride_bytes = is_slot_outside ? entry : entry * a.num_slots;
  const std::int64_t bytes =
      a.layers == 0 || a.num_slots == 0
          ? 0
          : (a.layers - 1) * a.layer_stride_bytes + (a.num_slots - 1) * a.slot_stride_bytes + a.slot_bytes;
  const std::int64_t shift = call.random.chance(0.3) ? call.random.below(16) : 0;  // an odd address
  std::vector<std::uint8_t> cache(static_cast<std::size_t>(shift + bytes));
  for (std::uint8_t& byte : cache) byte = static_cast<std::uint8_t>(call.random.word());
  a.cache = call.run.in_out("cache", cache) + shift;
  std::vector<std::int64_t> kv_len;
  for (std::int64_t b = 0; b < d.requests; ++b) kv_len.push_back(call.is_wrong() ? call.wrong_index() : 100 + b);
  a.kv_len = call.run.in_out("kv_len", kv_len);
  a.freed_slots = call.output<std::int64_t>("freed_slots", rows);
  a.status = call.output<std::int32_t>("status", d.requests);
  call.compare([&](const auto& settings) { device::kv_commit(a, settings); });
}

constexpr struct {
  const char* name;
  void (*make)(RandomCall&);
} kCalls[] = {
    {"mass_pass", mass_pass},
    {"guidance", guidance},
    {"sample", sample},
    {"logprobs", logprobs},
    {"verify_chain", [](RandomCall& call) { verify(call, Form::chain); }},
    {"verify_block", [](RandomCall& call) { verify(call, Form::block); }},
    {"verify_tree", [](RandomCall& call) { verify(call, Form::tree); }},
    {"tree_mask", tree_mask},
    {"kv_commit", kv_commit},
    {"shard_prepare", random_shard_prepare},
    {"shard_summarise", random_shard_summarise},
    {"shard_select", random_shard_select},
    {"shard_draw", random_shard_draw},
    {"shard_verify", random_shard_verify},
};

}  // namespace

std::vector<RegressCase> random_calls(std::int64_t count, std::uint64_t seed) {
  constexpr int kBlockThreads[] = {0, 128, 256, 512};
  std::vector<RegressCase> cases;
  for (std::int64_t i = 0; i < count; ++i, ++seed) {
    const auto& call = kCalls[seed % std::size(kCalls)];
    cases.push_back({std::string(call.name) + "/random_" + std::to_string(seed),
                     [seed, make = call.make](CaseRun& run) {
                       RandomCall random(run, seed);
                       make(random);
                     },
                     {kBlockThreads[seed / std::size(kCalls) % std::size(kBlockThreads)]},
                     false,
                     seed});
  }
  return cases;
}

}  // namespace draftproof::regress
