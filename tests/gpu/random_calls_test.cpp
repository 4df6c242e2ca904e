// Calls with random arguments, valid ones and ones with a few wrong numbers in every kind of array: the kernels on the
// CPU executor, whatever their block size and the order of their threads, answer what the reference answers. Arrays end
// where the interface says that they end, so that the address sanitizer sees who reads on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "gpu/api.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof {
namespace {

// The arrays of a call, with what makes their elements.
class RandomCall {
 public:
  explicit RandomCall(std::uint64_t seed) : random(seed) {
    constexpr double kWrong[] = {0.0, 0.0, 0.01, 0.05, 0.2};
    wrong_ = kWrong[random.below(5)];
  }

  TestRandom random;

  bool is_wrong() { return random.chance(wrong_); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(values.size())))];
  }
  std::int64_t wrong_index() {
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    return one_of<std::int64_t>({-1, -2, 1, 2, 3, 7, kFar, -kFar, std::numeric_limits<std::int64_t>::max(),
                                 std::numeric_limits<std::int64_t>::min()});
  }
  std::int32_t wrong_id() { return static_cast<std::int32_t>(wrong_index() >> (random.chance(0.5) ? 32 : 0)); }
  float wrong_number() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return one_of<float>({std::nanf(""), kInfinity, -kInfinity, -1.0f, 2.0f, 3e38f, -3e38f, 1e-45f, -0.0f, 0.0f});
  }

  // [count] of make().
  template <class T, class Make>
  T* array(std::int64_t count, Make make) {
    T* const values = memory<T>(count);
    for (std::int64_t i = 0; i < count; ++i) values[i] = make();
    return values;
  }
  template <class T, class Make>
  const T* maybe(std::int64_t count, Make make, double probability = 0.4) {
    return random.chance(probability) ? array<T>(count, make) : nullptr;
  }
  template <class T>
  T* output(std::int64_t count) {
    T* const values = memory<T>(count);
    outputs_.push_back({reinterpret_cast<std::byte*>(values), static_cast<std::size_t>(count) * sizeof(T), {}});
    return values;
  }
  template <class T>
  T* maybe_output(std::int64_t count) {
    return random.chance(0.6) ? output<T>(count) : nullptr;
  }
  // Its elements now are what every executor begins with.
  template <class T>
  T* in_out(std::int64_t count) {
    return output<T>(count);
  }
  void* workspace(std::int64_t bytes) {
    return array<std::byte>(bytes, [&] { return std::byte{0xa5}; });
  }

  // Runs `call` by the reference and by the CPU executor; what they say and write must be the same.
  template <class Call>
  void compare(const std::string& name, Call call) {
    for (Output& out : outputs_) out.before.assign(out.data, out.data + out.bytes);
    draftproof_settings settings{};
    settings.executor = DRAFTPROOF_REFERENCE;
    const std::string expected = message_of(call, settings);
    std::vector<std::vector<std::byte>> values;
    for (Output& out : outputs_) {
      values.emplace_back(out.data, out.data + out.bytes);
      if (out.bytes > 0) std::memcpy(out.data, out.before.data(), out.bytes);
    }
    settings.executor = DRAFTPROOF_SIMT;
    settings.block_threads = one_of<std::int32_t>({0, 128, 256, 512});
    settings.seed = random.word();
    INFO(name);
    CHECK(message_of(call, settings) == expected);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      INFO("output " << i);
      CHECK(std::vector<std::byte>(outputs_[i].data, outputs_[i].data + outputs_[i].bytes) == values[i]);
    }
  }

 private:
  struct Output {
    std::byte* data;
    std::size_t bytes;
    std::vector<std::byte> before;
  };

  template <class T>
  T* memory(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    memory_.emplace_back(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256})));
    if (bytes > 0) std::memset(memory_.back().get(), 0xa5, bytes);
    return reinterpret_cast<T*>(memory_.back().get());
  }
  template <class Call>
  static std::string message_of(Call call, const draftproof_settings& settings) {
    try {
      call(settings);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete (bytes, std::align_val_t{256}); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
  std::vector<Output> outputs_;
  double wrong_;
};

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
  const auto count = static_cast<std::int64_t>(values.size());
  std::size_t next = 0;
  switch (call.random.below(3)) {
    case 0:
      return {call.array<float>(count, [&] { return values[next++]; }), stride, DRAFTPROOF_F32};
    case 1:
      return {call.array<std::uint16_t>(count, [&] { return f32_to_f16(values[next++]); }), stride, DRAFTPROOF_F16};
    default:
      return {call.array<std::uint16_t>(count, [&] { return f32_to_bf16(values[next++]); }), stride, DRAFTPROOF_BF16};
  }
}

const float* temperatures(RandomCall& call, std::int64_t count, const std::vector<float>& values) {
  return call.maybe<float>(count, [&] { return call.is_wrong() ? call.wrong_number() : call.one_of(values); });
}

// Of drafters temperature and filters alone.
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
  return call.array<std::int64_t>(lists + 1, [&] {
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
  tokens = call.array<std::int32_t>(count, [&] { return token(call, vocab_size); });
  list_offsets = offsets(call, lists, count);
  return true;
}

draftproof_constraints constraints(RandomCall& call, std::int64_t rows, std::int64_t requests, std::int64_t vocab_size,
                                   bool of_verifier) {
  draftproof_constraints c{};
  TestRandom& random = call.random;
  const std::int64_t words = (vocab_size + 31) / 32;
  if (random.chance(0.2)) {
    c.allowed_mask_stride = words + random.below(3);
    c.allowed_mask = call.array<std::uint32_t>(rows == 0 ? 0 : (rows - 1) * c.allowed_mask_stride + words,
                                               [&] { return random.word() | random.word(); });
  }
  give_lists(call, 0.2, requests, vocab_size, c.allowed_ids, c.allowed_ids_count, c.allowed_offsets);
  give_lists(call, 0.7, requests, vocab_size, c.history_tokens, c.history_tokens_count, c.history_offsets);
  c.prompt_len = call.maybe<std::int64_t>(
      requests, [&] { return call.is_wrong() ? call.wrong_index() : random.below(3); }, 0.3);
  c.history_len_max = call.is_wrong() ? random.below(4) : 30;
  if (!of_verifier && random.chance(0.3)) {
    const std::int64_t count = random.below(8);
    c.row_draft_tokens = call.array<std::int32_t>(count, [&] { return token(call, vocab_size); });
    c.row_draft_tokens_count = count;
    c.row_draft_begin =
        call.array<std::int64_t>(rows, [&] { return call.is_wrong() ? call.wrong_index() : random.below(count + 1); });
    const std::int64_t* begin = c.row_draft_begin;
    c.row_draft_len = call.array<std::int32_t>(rows, [&] {
      const std::int64_t left = *begin >= 0 && *begin <= count ? count - *begin : 0;
      ++begin;
      return call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(random.below(left + 1));
    });
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
        call.array<float>(c.bias_count, [&] { return call.is_wrong() ? call.wrong_number() : random.normal(); });
  return c;
}

draftproof_randomness randomness(RandomCall& call, std::int64_t requests) {
  return {call.array<std::uint64_t>(requests, [&] { return call.random.word(); }),
          call.array<std::uint32_t>(requests, [&] { return call.random.word(); })};
}

struct RandomDrafts {
  std::int64_t requests, total, len_max;
  const std::int64_t* cu;
};
RandomDrafts drafts(RandomCall& call, std::int64_t longest) {
  RandomDrafts d{1 + call.random.below(4), 0, 0, nullptr};
  std::vector<std::int64_t> sums = {0};
  for (std::int64_t b = 0; b < d.requests; ++b) {
    const std::int64_t length = call.random.below(longest + 1);
    d.len_max = std::max(d.len_max, length);
    sums.push_back(sums.back() + length);
  }
  d.total = sums.back();
  std::size_t next = 0;
  d.cu = call.array<std::int64_t>(d.requests + 1, [&] {
    const std::int64_t sum = sums[next++];
    return call.is_wrong() ? call.wrong_index() : sum;
  });
  return d;
}

const std::int32_t* parents(RandomCall& call, const RandomDrafts& d) {
  std::int64_t node = -1;
  std::int64_t at = 0;
  std::int64_t b = 0;
  return call.array<std::int32_t>(d.total, [&] {
    while (b < d.requests && at == d.cu[b]) {
      node = -1;
      ++b;
    }
    ++at;
    ++node;
    return call.is_wrong() ? call.wrong_id() : static_cast<std::int32_t>(call.random.below(node + 1)) - 1;
  });
}

// --- The calls. -----------------------------------------------------------------------------------------------------

void mass_pass(RandomCall& call) {
  draftproof_mass_pass_arguments a{};
  a.rows = call.random.below(5);
  a.vocab_size = vocabulary(call);
  a.logits = matrix(call, a.rows, a.vocab_size, false);
  a.temperature = temperatures(call, a.rows, {0.5f, 1.0f, 1.0f, 2.0f});
  const std::int64_t tiles = (a.vocab_size + 4095) / 4096;
  a.tile_sum = call.output<std::uint64_t>(a.rows * tiles);
  a.tile_exponent = call.output<std::int32_t>(a.rows * tiles);
  a.row_exponent = call.output<std::int32_t>(a.rows);
  a.row_total = call.output<std::uint64_t>(a.rows);
  a.status = call.output<std::int32_t>(a.rows);
  a.workspace_bytes = device::mass_pass_workspace_bytes(a);
  a.workspace = call.workspace(a.workspace_bytes);
  call.compare("mass_pass", [&](const auto& settings) { device::mass_pass(a, settings); });
}

void guidance(RandomCall& call) {
  draftproof_guidance_arguments a{};
  a.rows = call.random.below(5);
  a.vocab_size = vocabulary(call);
  a.conditional = matrix(call, a.rows, a.vocab_size, false);
  a.unconditional = matrix(call, a.rows, a.vocab_size, false);
  a.scale = call.array<float>(a.rows, [&] {
    return call.is_wrong() ? call.wrong_number() : call.one_of<float>({0.0f, 1.0f, 1.5f});
  });
  a.out_stride = a.vocab_size + call.random.below(3);
  a.out = call.output<float>(a.rows == 0 ? 0 : (a.rows - 1) * a.out_stride + a.vocab_size);
  a.status = call.output<std::int32_t>(a.rows);
  call.compare("guidance", [&](const auto& settings) { device::guidance(a, settings); });
}

// What sample and logprobs share.
template <class Arguments>
void fill_rows(RandomCall& call, Arguments& a) {
  a.rows = call.random.below(5);
  a.requests = 1 + call.random.below(4);
  a.vocab_size = vocabulary(call);
  if (call.random.chance(0.6)) {
    a.row_request = call.array<std::int32_t>(a.rows, [&] {
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
  a.tokens = call.output<std::int32_t>(a.rows);
  a.logprobs = call.maybe_output<float>(a.rows);
  a.kept_mass = call.maybe_output<float>(a.rows);
  a.kept_count = call.maybe_output<std::int64_t>(a.rows);
  a.probabilities_stride = a.vocab_size + call.random.below(4);
  a.probabilities = call.maybe_output<float>(a.rows == 0 ? 0 : (a.rows - 1) * a.probabilities_stride + a.vocab_size);
  a.status = call.output<std::int32_t>(a.rows);
  a.workspace_bytes = device::sample_workspace_bytes(a);
  a.workspace = call.workspace(a.workspace_bytes);
  call.compare("sample", [&](const auto& settings) { device::sample(a, settings); });
}

void logprobs(RandomCall& call) {
  draftproof_logprobs_arguments a{};
  fill_rows(call, a);
  a.n = static_cast<std::int32_t>(call.random.below(7));
  a.sampled = call.array<std::int32_t>(a.rows, [&] { return token(call, a.vocab_size); });
  a.tokens = call.output<std::int32_t>(a.rows * (a.n + 1));
  a.logprobs = call.output<float>(a.rows * (a.n + 1));
  a.ranks = call.output<std::int64_t>(a.rows * (a.n + 1));
  a.status = call.output<std::int32_t>(a.rows);
  a.workspace_bytes = device::logprobs_workspace_bytes(a);
  a.workspace = call.workspace(a.workspace_bytes);
  call.compare("logprobs", [&](const auto& settings) { device::logprobs(a, settings); });
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
  a.draft_tokens = call.array<std::int32_t>(d.total, [&] { return token(call, a.vocab_size); });
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
  a.num_accepted = call.output<std::int32_t>(d.requests);
  a.tokens = call.output<std::int32_t>(d.requests * (d.len_max + 1));
  a.logprobs = call.maybe_output<float>(d.requests * (d.len_max + 1));
  if (form == Form::tree) a.path = call.maybe_output<std::int32_t>(d.requests * d.len_max);
  a.status = call.output<std::int32_t>(d.requests);
  const auto run = [&](const char* name, auto workspace_bytes, auto verifier) {
    a.workspace_bytes = workspace_bytes(a);
    a.workspace = call.workspace(a.workspace_bytes);
    call.compare(name, [&](const auto& settings) { verifier(a, settings); });
  };
  if (form == Form::chain) run("verify_chain", device::verify_chain_workspace_bytes, device::verify_chain);
  if (form == Form::block) run("verify_block", device::verify_block_workspace_bytes, device::verify_block);
  if (form == Form::tree) run("verify_tree", device::verify_tree_workspace_bytes, device::verify_tree);
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
  a.depths = call.output<std::int32_t>(d.total + d.requests);
  a.mask = call.output<std::uint32_t>((d.total + d.requests) * a.words_per_row);
  a.status = call.output<std::int32_t>(d.requests);
  call.compare("tree_mask", [&](const auto& settings) { device::tree_mask(a, settings); });
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
  a.slots = call.array<std::int64_t>(rows, [&] {
    --slot;
    return call.is_wrong() ? call.wrong_index() : slot;
  });
  std::vector<std::int32_t> paths;
  a.num_accepted = call.array<std::int32_t>(d.requests, [&] {
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
      a.layers == 0 ? 0
                    : (a.layers - 1) * a.layer_stride_bytes + (a.num_slots - 1) * a.slot_stride_bytes + a.slot_bytes;
  auto* const cache = call.in_out<std::uint8_t>(bytes);
  for (std::int64_t i = 0; i < bytes; ++i) cache[i] = static_cast<std::uint8_t>(call.random.word());
  a.cache = cache;
  a.kv_len = call.in_out<std::int64_t>(d.requests);
  for (std::int64_t b = 0; b < d.requests; ++b) a.kv_len[b] = call.is_wrong() ? call.wrong_index() : 100 + b;
  a.freed_slots = call.output<std::int64_t>(rows);
  a.status = call.output<std::int32_t>(d.requests);
  call.compare("kv_commit", [&](const auto& settings) { device::kv_commit(a, settings); });
}

constexpr std::int64_t kCalls = 200;

template <class Make>
void compare_calls(std::uint64_t first_seed, Make make) {
  for (std::int64_t i = 0; i < testing::fewer_if_sanitized(kCalls); ++i) {
    RandomCall call(first_seed + static_cast<std::uint64_t>(i));
    INFO("seed " << first_seed + static_cast<std::uint64_t>(i));
    make(call);
  }
}

}  // namespace

TEST_CASE("random rows have the same answer from kernels and reference", "[device_api]") {
  compare_calls(0, mass_pass);
  compare_calls(10000, guidance);
  compare_calls(20000, sample);
  compare_calls(30000, logprobs);
}

TEST_CASE("random drafts have the same answer from kernels and reference", "[device_api]") {
  compare_calls(40000, [](RandomCall& call) { verify(call, Form::chain); });
  compare_calls(50000, [](RandomCall& call) { verify(call, Form::block); });
  compare_calls(60000, [](RandomCall& call) { verify(call, Form::tree); });
}

TEST_CASE("random trees and KV slots have the same answer from kernels and reference", "[device_api]") {
  compare_calls(70000, tree_mask);
  compare_calls(80000, kv_commit);
}

}  // namespace draftproof
