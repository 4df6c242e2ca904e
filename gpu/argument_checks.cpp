#include "gpu/argument_checks.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "base/error.hpp"
#include "gpu/checked_size.hpp"
#include "reference/numerics/fixed_point.hpp"

namespace draftproof::device {
namespace {

constexpr std::int64_t kBlocksMax = 0x7fffffff;
constexpr std::int64_t kHistoryMax = 0x7fffffff;
constexpr std::int64_t kOsThreadsMax = 1024;
constexpr std::int64_t kDevicesMax = 256;  // a message of shard_select has a word for each

std::int64_t tiles_of(std::int64_t vocab_size) {
  return (vocab_size + kTileTokens - 1) / kTileTokens;
}

// The checks of one call, whose name begins every message.
class Checks {
 public:
  explicit Checks(const char* call) : call_(call) {}

  [[noreturn]] void refuse(const std::string& argument, const std::string& value, const std::string& expected) const {
    throw usage_error(call_ + ", " + argument, "it is " + value + "; expected " + expected);
  }

  void at_least(const std::string& argument, std::int64_t value, std::int64_t least) const {
    if (value < least) refuse(argument, std::to_string(value), std::to_string(least) + " or more");
  }
  void at_most(const std::string& argument, std::int64_t value, std::int64_t most, const std::string& why) const {
    if (value > most) refuse(argument, std::to_string(value), "at most " + std::to_string(most) + " " + why);
  }
  void between(const std::string& argument, std::int64_t value, std::int64_t least, std::int64_t most) const {
    if (value < least || value > most)
      refuse(argument, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
  }
  void equal(const std::string& argument, std::int64_t value, std::int64_t other, const std::string& what) const {
    if (value != other) refuse(argument, std::to_string(value), std::to_string(other) + ", " + what);
  }
  // A factor of the size of an array: `least` or more, and so many times `bytes` fit into DRAFTPROOF_BYTES_MAX.
  void factor(const std::string& argument, std::int64_t value, std::int64_t least, CheckedSize bytes) const {
    at_least(argument, value, least);
    at_most(argument, value, bytes.factor_max(), "in an array of at most 2^60 bytes");
  }
  void given(const std::string& argument, const void* pointer) const {
    if (pointer == nullptr) refuse(argument, "NULL", "an array");
  }
  struct Array {
    const char* argument;
    const void* pointer;
  };
  void given(std::initializer_list<Array> arrays) const {
    for (const Array& array : arrays) given(array.argument, array.pointer);
  }
  void absent(const std::string& argument, const void* pointer, const char* why) const {
    if (pointer != nullptr) refuse(argument, "not NULL", std::string("NULL: ") + why);
  }
  void absent(std::initializer_list<Array> arrays, const char* why) const {
    for (const Array& array : arrays) absent(array.argument, array.pointer, why);
  }
  // What edits logits, of the parameters `of`, "" or "draft_".
  void no_edits(const std::string& of, const draftproof_parameters& p, const char* why) const {
    for (const Array& array : std::initializer_list<Array>{{"repetition_penalty", p.repetition_penalty},
                                                           {"frequency_penalty", p.frequency_penalty},
                                                           {"presence_penalty", p.presence_penalty},
                                                           {"guidance_scale", p.guidance_scale},
                                                           {"nan_policy", p.nan_policy}})
      absent(of + "parameters." + array.argument, array.pointer, why);
  }
  // Optional arrays that mean something together only.
  void together(std::initializer_list<Array> arrays) const {
    const auto is_given = [](const Array& array) { return array.pointer != nullptr; };
    const Array* one = std::find_if(arrays.begin(), arrays.end(), is_given);
    if (one == arrays.end()) return;
    for (const Array& array : arrays) {
      if (!is_given(array))
        refuse(array.argument, "NULL", std::string("an array where ") + one->argument + " is given");
    }
  }

  void vocabulary(std::int64_t vocab_size) const { between("vocab_size", vocab_size, 1, kVocabularyLimit); }

  void rows(const std::string& argument, const draftproof_rows& rows, std::int64_t count,
            std::int64_t vocab_size) const {
    given(argument + ".data", rows.data);
    between(argument + ".dtype", rows.dtype, DRAFTPROOF_F32, DRAFTPROOF_BF16);
    const std::int64_t bytes = rows.dtype == DRAFTPROOF_F32 ? 4 : 2;
    factor(argument + ".row_stride", rows.row_stride, vocab_size, CheckedSize(count) * bytes);
    const auto remainder = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(rows.data)) % bytes;
    if (remainder != 0)
      refuse(argument + ".data", "an address with remainder " + std::to_string(remainder),
             "a multiple of the element's " + std::to_string(bytes) + " bytes");
  }
  void optional_rows(const std::string& argument, const draftproof_rows& rows, std::int64_t count,
                     std::int64_t vocab_size) const {
    if (rows.data != nullptr) this->rows(argument, rows, count, vocab_size);
  }

  // A grid has a block for every tile of every row.
  void row_count(const std::string& argument, std::int64_t rows, std::int64_t vocab_size) const {
    at_least(argument, rows, 0);
    at_most(argument, rows, kBlocksMax / tiles_of(vocab_size), "rows of this vocabulary");
  }

  // The scalars of constraints, of a batch of nothing too: they size the workspace.
  void constraint_sizes(const draftproof_constraints& c) const {
    between("constraints.history_len_max", c.history_len_max, 0, kHistoryMax);
    factor("constraints.allowed_ids_count", c.allowed_ids_count, 0, sizeof(std::int32_t));
    factor("constraints.history_tokens_count", c.history_tokens_count, 0, sizeof(std::int32_t));
    factor("constraints.row_draft_tokens_count", c.row_draft_tokens_count, 0, sizeof(std::int32_t));
    factor("constraints.bad_word_tokens_count", c.bad_word_tokens_count, 0, sizeof(std::int32_t));
    factor("constraints.bad_word_sequences_count", c.bad_word_sequences_count, 0, sizeof(std::int64_t));
    factor("constraints.stop_ids_count", c.stop_ids_count, 0, sizeof(std::int32_t));
    factor("constraints.bias_count", c.bias_count, 0, sizeof(std::int32_t));
  }
  void constraints(const draftproof_constraints& c, std::int64_t rows, std::int64_t vocab_size) const {
    if (c.allowed_mask != nullptr)
      factor("constraints.allowed_mask_stride", c.allowed_mask_stride, (vocab_size + 31) / 32,
             CheckedSize(rows) * sizeof(std::uint32_t));
    together({{"constraints.allowed_ids", c.allowed_ids}, {"constraints.allowed_offsets", c.allowed_offsets}});
    together({{"constraints.history_tokens", c.history_tokens}, {"constraints.history_offsets", c.history_offsets}});
    together({{"constraints.row_draft_tokens", c.row_draft_tokens},
              {"constraints.row_draft_begin", c.row_draft_begin},
              {"constraints.row_draft_len", c.row_draft_len}});
    together({{"constraints.bad_word_tokens", c.bad_word_tokens},
              {"constraints.bad_word_offsets", c.bad_word_offsets},
              {"constraints.bad_word_sequences", c.bad_word_sequences}});
    together({{"constraints.stop_ids", c.stop_ids}, {"constraints.stop_offsets", c.stop_offsets}});
    together({{"constraints.bias_tokens", c.bias_tokens},
              {"constraints.bias_values", c.bias_values},
              {"constraints.bias_offsets", c.bias_offsets}});
  }

  // Rows of logits with what the pipeline does to them.
  template <class Arguments>
  void pipeline(const Arguments& a) const {
    rows("logits", a.logits, a.rows, a.vocab_size);
    optional_rows("unconditional", a.unconditional, a.rows, a.vocab_size);
    constraints(a.constraints, a.rows, a.vocab_size);
  }

  // Row r is of request r where no array says otherwise. Without a request there is none that a row could be of.
  void requests(std::int64_t requests, const std::int32_t* row_request, std::int64_t rows) const {
    at_least("requests", requests, row_request == nullptr ? rows : std::min<std::int64_t>(rows, 1));
    at_most("requests", requests, kBlocksMax, "requests");
  }
  // Checks the part of one device; a device without tokens has no logits.
  void shard(const draftproof_shard& s, const std::string& argument = "shard") const {
    vocabulary(s.vocab_size);
    row_count(argument + ".rows", s.rows, s.vocab_size);
    between(argument + ".begin", s.begin, 0, s.vocab_size);
    between(argument + ".end", s.end, s.begin, s.vocab_size);
    between(argument + ".devices", s.devices, 1, kDevicesMax);
    between(argument + ".device", s.device, 0, std::int64_t{s.devices} - 1);
    if (s.rows > 0 && s.end > s.begin) rows(argument + ".logits", s.logits, s.rows, s.end - s.begin);
  }
  // Rows of logits as shard_prepare and the calls after it leave them.
  void shard_rows(const std::string& argument, const draftproof_shard_rows& r) const {
    given(argument + ".tile_exponent", r.tile_exponent);
    given(argument + ".largest", r.largest);
    given(argument + ".tile_sum", r.tile_sum);
  }
  // Rounds and stages: each but the first takes what the one before has said, each but the last says something.
  void message(const char* argument, std::int64_t at, std::int64_t last, const void* combined,
               const void* message) const {
    between(argument, at, 0, last);
    if (at == 0) absent("combined", combined, "nothing was said before");
    if (at > 0) given("combined", combined);
    if (at == last) absent("message", message, "nothing more is said");
    if (at < last) given("message", message);
  }
  void randomness(const draftproof_randomness& randomness) const {
    given({{"randomness.seed", randomness.seed}, {"randomness.step", randomness.step}});
  }

  // Also of the arrays [draft_tokens_total + requests] and [requests, draft_len_max + 1].
  void drafts(std::int64_t requests, std::int64_t draft_tokens_total, std::int64_t draft_len_max) const {
    between("requests", requests, 0, kBlocksMax);
    between("draft_len_max", draft_len_max, 0, kBlocksMax - 1);
    factor("draft_tokens_total", draft_tokens_total, 0, sizeof(std::int64_t));
    at_most("draft_tokens_total", draft_tokens_total, requests * draft_len_max, "(requests times draft_len_max)");
    factor("draft_len_max", draft_len_max + 1, 0, CheckedSize(requests) * sizeof(std::int32_t));
  }

 private:
  std::string call_;
};

// How a verification call reads its arguments.
struct VerifyCall {
  bool is_tree;
  std::int32_t least_proposal_kind = DRAFTPROOF_ONE_HOT;
  bool reads_proposal = true;
  bool takes_sums = true;
};

// The sums that a drafter has kept are of whole rows, which no filter cuts.
void check_proposal_sums(const Checks& checks, const draftproof_verify_arguments& a, const VerifyCall& call) {
  const draftproof_row_sums& sums = a.proposal_sums;
  if (sums.row_exponent == nullptr) {
    checks.absent("proposal_sums.row_total", sums.row_total, "row_exponent is not given");
    checks.absent("proposal_sums.status", sums.status, "row_exponent is not given");
    return;
  }
  if (!call.takes_sums) checks.absent("proposal_sums.row_exponent", sums.row_exponent, "they are of chains alone");
  if (a.proposal_kind != DRAFTPROOF_LOGITS)
    checks.absent("proposal_sums.row_exponent", sums.row_exponent, "the proposal rows are no logits");
  checks.given({{"proposal_sums.row_total", sums.row_total}, {"proposal_sums.status", sums.status}});
  constexpr const char* kWhy = "the sums of proposal_sums are of rows without filters";
  const draftproof_parameters& d = a.draft_parameters;
  checks.absent({{"draft_parameters.top_k", d.top_k},
                 {"draft_parameters.top_p", d.top_p},
                 {"draft_parameters.min_p", d.min_p},
                 {"draft_parameters.filter_order", d.filter_order},
                 {"draft_parameters.ties", d.ties},
                 {"draft_parameters.top_p_rule", d.top_p_rule}},
                kWhy);
}

void check_verify(const Checks& checks, const draftproof_verify_arguments& a, const VerifyCall& call) {
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  checks.vocabulary(a.vocab_size);
  const std::int64_t target_rows = a.draft_tokens_total + a.requests;
  checks.row_count("draft_tokens_total", target_rows, a.vocab_size);
  checks.constraint_sizes(a.constraints);
  if (a.requests == 0) return;
  const bool has_drafts = a.draft_tokens_total > 0;
  checks.given("cu_num_draft_tokens", a.cu_num_draft_tokens);
  if (has_drafts) checks.given("draft_tokens", a.draft_tokens);
  checks.between("target_kind", a.target_kind, DRAFTPROOF_PROBABILITIES, DRAFTPROOF_LOGITS);
  checks.rows("target", a.target, target_rows, a.vocab_size);
  if (a.target_kind == DRAFTPROOF_LOGITS) {
    checks.optional_rows("unconditional", a.unconditional, target_rows, a.vocab_size);
    checks.constraints(a.constraints, target_rows, a.vocab_size);
    checks.absent("constraints.row_draft_tokens", a.constraints.row_draft_tokens,
                  "verifiers know the drafts themselves");
  }
  if (call.is_tree) {
    checks.between("draft_len_max", a.draft_len_max, 0, DRAFTPROOF_TREE_NODES_MAX);
    if (has_drafts) checks.given("parents", a.parents);
  }
  const bool reads_proposal = has_drafts && call.reads_proposal;
  if (reads_proposal) {
    checks.between("proposal_kind", a.proposal_kind, call.least_proposal_kind, DRAFTPROOF_LOGITS);
    if (a.proposal_kind != DRAFTPROOF_ONE_HOT) checks.rows("proposal", a.proposal, target_rows, a.vocab_size);
  }
  if (reads_proposal && a.proposal_kind == DRAFTPROOF_LOGITS)
    checks.no_edits("draft_", a.draft_parameters,
                    "of a drafter's parameters, temperature and filters belong to the verification");
  check_proposal_sums(checks, a, call);
  checks.randomness(a.randomness);
  checks.given({{"num_accepted", a.num_accepted}, {"tokens", a.tokens}, {"status", a.status}});
}

void check_verify_of_chains(const Checks& checks, const draftproof_verify_arguments& a) {
  checks.absent("parents", a.parents, "a tree has another call");
  checks.absent("path", a.path, "a chain's accepted drafts are its first ones");
  check_verify(checks, a, {.is_tree = false});
}

}  // namespace

void check_settings(const draftproof_settings& settings) {
  const Checks checks("settings");
  checks.between("executor", settings.executor, DRAFTPROOF_REFERENCE, DRAFTPROOF_CUDA);
  const std::initializer_list<std::int32_t> sizes = {0, 128, 256, 512};
  if (std::find(sizes.begin(), sizes.end(), settings.block_threads) == sizes.end())
    checks.refuse("block_threads", std::to_string(settings.block_threads), "0, 128, 256 or 512");
  checks.between("os_threads", settings.os_threads, 0, kOsThreadsMax);
}

std::int64_t check_workspace_size(const char* call, std::int64_t needed) {
  if (needed > DRAFTPROOF_BYTES_MAX)
    throw usage_error(std::string(call) + ", workspace",
                      "rows, requests, draft_len_max and history_len_max need more than 2^60 bytes of it; expected "
                      "fewer or shorter ones");
  return needed;
}

void check_workspace(const char* call, const void* workspace, std::int64_t workspace_bytes, std::int64_t needed) {
  const Checks checks(call);
  checks.at_least("workspace_bytes", workspace_bytes, needed);
  if (needed == 0) return;
  checks.given("workspace", workspace);
  const std::uintptr_t remainder = reinterpret_cast<std::uintptr_t>(workspace) % WorkspaceLayout::kAlignment;
  if (remainder != 0)
    checks.refuse("workspace", "an address with remainder " + std::to_string(remainder), "a multiple of 256 bytes");
}

void check_mass_pass(const draftproof_mass_pass_arguments& a) {
  const Checks checks("mass_pass");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  if (a.rows == 0) return;
  checks.rows("logits", a.logits, a.rows, a.vocab_size);
  checks.given({{"tile_sum", a.tile_sum},
                {"tile_exponent", a.tile_exponent},
                {"row_exponent", a.row_exponent},
                {"row_total", a.row_total},
                {"status", a.status}});
}

void check_guidance(const draftproof_guidance_arguments& a) {
  const Checks checks("guidance");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  if (a.rows == 0) return;
  checks.rows("conditional", a.conditional, a.rows, a.vocab_size);
  checks.rows("unconditional", a.unconditional, a.rows, a.vocab_size);
  checks.given({{"scale", a.scale}, {"out", a.out}});
  checks.factor("out_stride", a.out_stride, a.vocab_size, CheckedSize(a.rows) * sizeof(float));
  checks.given("status", a.status);
}

void check_sample(const draftproof_sample_arguments& a) {
  const Checks checks("sample");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  checks.requests(a.requests, a.row_request, a.rows);
  checks.constraint_sizes(a.constraints);
  if (a.rows == 0) return;
  checks.pipeline(a);
  checks.randomness(a.randomness);
  checks.between("sampler", a.sampler, DRAFTPROOF_INVERSE, DRAFTPROOF_RACE);
  if (a.purpose != DRAFTPROOF_DRAFT_SAMPLE && a.purpose != DRAFTPROOF_TARGET_SAMPLE)
    checks.refuse("purpose", std::to_string(a.purpose), "1 (draft sample) or 4 (target sample)");
  checks.given("tokens", a.tokens);
  if (a.probabilities != nullptr)
    checks.factor("probabilities_stride", a.probabilities_stride, a.vocab_size, CheckedSize(a.rows) * sizeof(float));
  checks.given("status", a.status);
}

void check_logprobs(const draftproof_logprobs_arguments& a) {
  const Checks checks("logprobs");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  checks.requests(a.requests, a.row_request, a.rows);
  checks.constraint_sizes(a.constraints);
  checks.between("n", a.n, 0, 1024);
  checks.between("ids_max", a.ids_max, 0, 128);
  checks.factor("ids_count", a.ids_count, 0, sizeof(std::int32_t));
  if (a.rows == 0) return;
  checks.pipeline(a);
  checks.together({{"ids", a.ids}, {"ids_offsets", a.ids_offsets}});
  checks.given({{"sampled", a.sampled},
                {"tokens", a.tokens},
                {"logprobs", a.logprobs},
                {"ranks", a.ranks},
                {"status", a.status}});
}

void check_verify_chain(const draftproof_verify_arguments& a) {
  check_verify_of_chains(Checks("verify_chain"), a);
}

void check_verify_block(const draftproof_verify_arguments& a) {
  const Checks checks("verify_block");
  check_verify_of_chains(checks, a);
  const std::int64_t blocks_of_place = a.requests * tiles_of(a.vocab_size);  // of rows that row_count has passed
  if (a.requests > 0)
    checks.at_most("draft_len_max", a.draft_len_max, kBlocksMax / blocks_of_place - 1,
                   "of so many requests and this vocabulary");
}

void check_verify_tree(const draftproof_verify_arguments& a) {
  const Checks checks("verify_tree");
  checks.between("tree_rule", a.tree_rule, DRAFTPROOF_TARGET_ONLY, DRAFTPROOF_RRSW);
  // One-hot siblings are no draws without replacement from anything.
  check_verify(checks, a,
               {.is_tree = true,
                .least_proposal_kind = DRAFTPROOF_PROBABILITIES,
                .reads_proposal = a.tree_rule == DRAFTPROOF_RRSW,
                .takes_sums = false});
}

// Which drafts and proposals the verifier takes, the registry of verifiers says (reference_executor/verify.cpp).
void check_verify_by_name(const draftproof_verify_by_name_arguments& a) {
  const Checks checks("verify_by_name");
  checks.given("verifier", a.verifier);
  checks.between("sampler", a.sampler, DRAFTPROOF_INVERSE, DRAFTPROOF_RACE);
  check_verify(checks, a.drafts, {.is_tree = a.drafts.parents != nullptr, .takes_sums = false});
}

void check_tree_mask(const draftproof_tree_mask_arguments& a) {
  const Checks checks("tree_mask");
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  if (a.requests == 0) return;
  checks.given("cu_num_draft_tokens", a.cu_num_draft_tokens);
  if (a.draft_tokens_total > 0) checks.given("parents", a.parents);
  checks.given({{"depths", a.depths}, {"mask", a.mask}});
  checks.factor("words_per_row", a.words_per_row, (a.draft_len_max + 32) / 32,
                CheckedSize(a.draft_tokens_total + a.requests) * sizeof(std::uint32_t));
  checks.given("status", a.status);
}

void check_kv_commit(const draftproof_kv_commit_arguments& a) {
  const Checks checks("kv_commit");
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  if (a.requests == 0) return;
  checks.given({{"cu_num_draft_tokens", a.cu_num_draft_tokens}, {"num_accepted", a.num_accepted}, {"slots", a.slots}});
  checks.factor("num_slots", a.num_slots, 1, 1);
  checks.factor("layers", a.layers, 0, 1);
  checks.factor("slot_bytes", a.slot_bytes, 0, 1);
  checks.factor("slot_stride_bytes", a.slot_stride_bytes, a.slot_bytes, a.num_slots);
  checks.factor("layer_stride_bytes", a.layer_stride_bytes, 0, a.layers);
  // No byte belongs to two entries: a layer holds all slots, or a slot all layers.
  const std::int64_t layer_bytes = a.slot_bytes == 0 ? 0 : (a.num_slots - 1) * a.slot_stride_bytes + a.slot_bytes;
  const bool slot_holds_layers =
      a.layer_stride_bytes >= a.slot_bytes &&
      (a.num_slots == 1 || a.slot_stride_bytes >= (a.layers - 1) * a.layer_stride_bytes + a.slot_bytes);
  if (a.layers > 1 && a.layer_stride_bytes < layer_bytes && !slot_holds_layers)
    checks.refuse("layer_stride_bytes", std::to_string(a.layer_stride_bytes),
                  std::to_string(layer_bytes) + " or more, so that the entries of two layers do not overlap");
  const bool moves = a.path != nullptr && a.layers > 0 && a.slot_bytes > 0;
  if (moves) checks.given("cache", a.cache);
  // A block moves at least 128 columns of a byte in one layer.
  const std::int64_t blocks_of_entry = (a.slot_bytes + 127) / 128;
  if (moves)
    checks.at_most("layers", a.layers, kBlocksMax / a.requests / blocks_of_entry,
                   "of so many requests and slots so large");
  checks.given({{"kv_len", a.kv_len}, {"freed_slots", a.freed_slots}, {"status", a.status}});
}

void check_shard_prepare(const draftproof_shard_prepare_arguments& a) {
  const Checks checks("shard_prepare");
  checks.shard(a.shard);
  if (a.shard.rows == 0) return;
  checks.given({{"tile_exponent", a.tile_exponent},
                {"largest", a.largest},
                {"own_exponent", a.own_exponent},
                {"own_sum", a.own_sum}});
}

void check_shard_summarise(const draftproof_shard_summarise_arguments& a) {
  const Checks checks("shard_summarise");
  checks.shard(a.shard);
  if (a.shard.rows == 0) return;
  checks.given({{"tile_exponent", a.tile_exponent},
                {"own_exponent", a.own_exponent},
                {"own_sum", a.own_sum},
                {"tile_sum", a.tile_sum}});
}

void check_shard_select(const draftproof_shard_select_arguments& a) {
  const Checks checks("shard_select");
  checks.shard(a.shard);
  checks.between("filter", a.filter, DRAFTPROOF_SHARD_TOP_K, DRAFTPROOF_SHARD_TOP_P);
  checks.between("round", a.round, 0, 6);
  if (a.shard.rows == 0) return;
  checks.message("round", a.round, 6, a.combined, a.message);
  constexpr const char* kWhy = "logits are edited before, and the temperature is the shard's";
  checks.absent("parameters.temperature", a.parameters.temperature, kWhy);
  checks.absent("parameters.top_p_rule", a.parameters.top_p_rule, "rows across devices have rule 0 alone");
  checks.no_edits("", a.parameters, kWhy);
  checks.given({{"tile_exponent", a.tile_exponent}, {"largest", a.largest}, {"search", a.search}, {"kept", a.kept}});
}

void check_shard_draw(const draftproof_shard_draw_arguments& a) {
  const Checks checks("shard_draw");
  checks.shard(a.shard);
  checks.between("sampler", a.sampler, DRAFTPROOF_INVERSE, DRAFTPROOF_RACE);
  checks.between("stage", a.stage, 0, 2);
  if (a.shard.rows == 0) return;
  checks.message("stage", a.stage, 2, a.combined, a.message);
  checks.given({{"tile_exponent", a.tile_exponent}, {"largest", a.largest}, {"tile_sum", a.tile_sum}});
  checks.randomness(a.randomness);
  if (a.purpose != DRAFTPROOF_DRAFT_SAMPLE && a.purpose != DRAFTPROOF_TARGET_SAMPLE)
    checks.refuse("purpose", std::to_string(a.purpose), "1 (draft sample) or 4 (target sample)");
  if (a.sampler == DRAFTPROOF_RACE && a.stage < 2) checks.given("winner", a.winner);
  if (a.stage == 2) checks.given({{"tokens", a.tokens}, {"logprobs", a.logprobs}, {"status", a.status}});
}

void check_shard_verify(const draftproof_shard_verify_arguments& a) {
  const Checks checks("shard_verify");
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  checks.between("stage", a.stage, 0, 4);
  const draftproof_shard& target = a.target.shard;
  checks.shard(target, "target.shard");
  checks.equal("target.shard.rows", target.rows, a.draft_tokens_total + a.requests, "draft_tokens_total + requests");
  if (a.requests == 0) return;
  checks.given("cu_num_draft_tokens", a.cu_num_draft_tokens);
  checks.shard_rows("target", a.target);
  if (a.draft_tokens_total > 0) {
    checks.given("draft_tokens", a.draft_tokens);
    checks.between("proposal_kind", a.proposal_kind, DRAFTPROOF_ONE_HOT, DRAFTPROOF_LOGITS);
    if (a.proposal_kind != DRAFTPROOF_ONE_HOT) {
      const draftproof_shard& proposal = a.proposal.shard;
      checks.shard(proposal, "proposal.shard");
      checks.equal("proposal.shard.rows", proposal.rows, a.draft_tokens_total, "draft_tokens_total");
      checks.equal("proposal.shard.vocab_size", proposal.vocab_size, target.vocab_size, "that of the target");
      checks.equal("proposal.shard.begin", proposal.begin, target.begin, "that of the target");
      checks.equal("proposal.shard.end", proposal.end, target.end, "that of the target");
    }
    if (a.proposal_kind == DRAFTPROOF_LOGITS) checks.shard_rows("proposal", a.proposal);
    checks.given("draft", a.draft);
  }
  checks.randomness(a.randomness);
  if (a.stage >= 1) checks.given("residual", a.residual);
  if (a.stage == 2 || a.stage == 3) checks.given("share", a.share);
  if (a.stage >= 3) checks.given("drawn", a.drawn);
  if (a.stage == 4) checks.given({{"num_accepted", a.num_accepted}, {"tokens", a.tokens}, {"status", a.status}});
}

}  // namespace draftproof::device
