#include "gpu/argument_checks.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "gpu/workspace_layout.hpp"
#include "reference/error.hpp"
#include "reference/numerics/fixed_point.hpp"

namespace draftproof::device {
namespace {

constexpr std::int64_t kBlocksMax = 0x7fffffff;

// The checks of one call, whose name begins every message.
class Checks {
 public:
  explicit Checks(const char* call) : call_(call) {}

  [[noreturn]] void refuse(const std::string& argument, const std::string& value, const std::string& right) const {
    throw usage_error(call_ + ", " + argument, "it is " + value + "; " + right);
  }

  void at_least(const char* argument, std::int64_t value, std::int64_t least) const {
    if (value < least) refuse(argument, std::to_string(value), std::to_string(least) + " or more is right");
  }
  void between(const char* argument, std::int64_t value, std::int64_t least, std::int64_t most) const {
    if (value < least || value > most)
      refuse(argument, std::to_string(value), std::to_string(least) + " to " + std::to_string(most) + " are right");
  }
  void given(const char* argument, const void* pointer) const {
    if (pointer == nullptr) refuse(argument, "NULL", "an array is right");
  }
  void absent(const char* argument, const void* pointer, const char* why) const {
    if (pointer != nullptr) refuse(argument, "not NULL", std::string("NULL is right: ") + why);
  }
  // Optional arrays that mean something together only.
  struct Optional {
    const char* argument;
    const void* pointer;
  };
  void together(std::initializer_list<Optional> arrays) const {
    const auto is_given = [](const Optional& array) { return array.pointer != nullptr; };
    const Optional* one = std::find_if(arrays.begin(), arrays.end(), is_given);
    if (one == arrays.end()) return;
    for (const Optional& array : arrays) {
      if (!is_given(array))
        refuse(array.argument, "NULL", std::string("an array is right where ") + one->argument + " is given");
    }
  }

  void vocabulary(std::int64_t vocab_size) const { between("vocab_size", vocab_size, 1, kVocabularyLimit); }

  void rows(const std::string& argument, const draftproof_rows& rows, std::int64_t vocab_size) const {
    given((argument + ".data").c_str(), rows.data);
    between((argument + ".dtype").c_str(), rows.dtype, DRAFTPROOF_F32, DRAFTPROOF_BF16);
    at_least((argument + ".row_stride").c_str(), rows.row_stride, vocab_size);
    const std::uintptr_t bytes = rows.dtype == DRAFTPROOF_F32 ? 4 : 2;
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(rows.data);
    if (address % bytes != 0)
      refuse(argument + ".data", "an address with remainder " + std::to_string(address % bytes),
             "a multiple of the element's " + std::to_string(bytes) + " bytes is right");
  }
  void optional_rows(const std::string& argument, const draftproof_rows& rows, std::int64_t vocab_size) const {
    if (rows.data != nullptr) this->rows(argument, rows, vocab_size);
  }

  // A grid has a block for every tile of every row.
  void row_count(const char* argument, std::int64_t rows, std::int64_t vocab_size) const {
    at_least(argument, rows, 0);
    const std::int64_t tiles = (vocab_size + kTileTokens - 1) / kTileTokens;
    if (rows > kBlocksMax / tiles)
      refuse(argument, std::to_string(rows), std::to_string(kBlocksMax / tiles) + " rows of this vocabulary are right");
  }

  void constraints(const draftproof_constraints& c, std::int64_t vocab_size) const {
    if (c.allowed_mask != nullptr)
      at_least("constraints.allowed_mask_stride", c.allowed_mask_stride, (vocab_size + 31) / 32);
    together({{"constraints.allowed_ids", c.allowed_ids}, {"constraints.allowed_offsets", c.allowed_offsets}});
    together({{"constraints.history_tokens", c.history_tokens}, {"constraints.history_offsets", c.history_offsets}});
    at_least("constraints.history_len_max", c.history_len_max, 0);
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
  void pipeline(const draftproof_rows& logits, const draftproof_rows& unconditional,
                const draftproof_constraints& constraints, std::int64_t vocab_size) const {
    rows("logits", logits, vocab_size);
    optional_rows("unconditional", unconditional, vocab_size);
    this->constraints(constraints, vocab_size);
  }

  // Row r is of request r where no array says otherwise.
  void requests(std::int64_t requests, const std::int32_t* row_request, std::int64_t rows) const {
    at_least("requests", requests, row_request == nullptr ? rows : 0);
  }
  void randomness(const draftproof_randomness& randomness) const {
    given("randomness.seed", randomness.seed);
    given("randomness.step", randomness.step);
  }

  void drafts(std::int64_t requests, std::int64_t draft_tokens_total, std::int64_t draft_len_max) const {
    at_least("requests", requests, 0);
    at_least("draft_tokens_total", draft_tokens_total, 0);
    between("draft_len_max", draft_len_max, 0, 0x7ffffffe);
    if (draft_tokens_total > requests * draft_len_max)
      refuse("draft_tokens_total", std::to_string(draft_tokens_total),
             "requests times draft_len_max, " + std::to_string(requests * draft_len_max) + ", or less is right");
  }

 private:
  std::string call_;
};

void check_verify(const Checks& checks, const draftproof_verify_arguments& a, bool is_tree) {
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  checks.vocabulary(a.vocab_size);
  checks.row_count("draft_tokens_total", a.draft_tokens_total + a.requests, a.vocab_size);
  if (a.requests == 0) return;
  const bool has_drafts = a.draft_tokens_total > 0;
  checks.given("cu_num_draft_tokens", a.cu_num_draft_tokens);
  if (has_drafts) checks.given("draft_tokens", a.draft_tokens);
  checks.between("target_kind", a.target_kind, DRAFTPROOF_PROBABILITIES, DRAFTPROOF_LOGITS);
  checks.rows("target", a.target, a.vocab_size);
  if (a.target_kind == DRAFTPROOF_LOGITS) {
    checks.optional_rows("unconditional", a.unconditional, a.vocab_size);
    checks.constraints(a.constraints, a.vocab_size);
    checks.absent("constraints.row_draft_tokens", a.constraints.row_draft_tokens,
                  "verifiers know the drafts themselves");
  }
  if (is_tree) {
    checks.between("draft_len_max", a.draft_len_max, 0, DRAFTPROOF_TREE_NODES_MAX);
    checks.between("tree_rule", a.tree_rule, DRAFTPROOF_TARGET_ONLY, DRAFTPROOF_RRSW);
    if (has_drafts) checks.given("parents", a.parents);
  } else {
    checks.absent("parents", a.parents, "a tree has another call");
    checks.absent("path", a.path, "a chain's accepted drafts are its first ones");
  }
  const bool reads_proposal = has_drafts && (!is_tree || a.tree_rule == DRAFTPROOF_RRSW);
  if (reads_proposal) {
    // One-hot siblings are no draws without replacement from anything.
    checks.between("proposal_kind", a.proposal_kind, is_tree ? DRAFTPROOF_PROBABILITIES : DRAFTPROOF_ONE_HOT,
                   DRAFTPROOF_LOGITS);
    if (a.proposal_kind != DRAFTPROOF_ONE_HOT) checks.rows("proposal", a.proposal, a.vocab_size);
  }
  if (reads_proposal && a.proposal_kind == DRAFTPROOF_LOGITS) {
    constexpr const char* kWhy = "of a drafter's parameters, temperature and filters belong to the verification";
    const draftproof_parameters& d = a.draft_parameters;
    checks.absent("draft_parameters.repetition_penalty", d.repetition_penalty, kWhy);
    checks.absent("draft_parameters.frequency_penalty", d.frequency_penalty, kWhy);
    checks.absent("draft_parameters.presence_penalty", d.presence_penalty, kWhy);
    checks.absent("draft_parameters.guidance_scale", d.guidance_scale, kWhy);
    checks.absent("draft_parameters.nan_policy", d.nan_policy, kWhy);
  }
  checks.randomness(a.randomness);
  checks.given("num_accepted", a.num_accepted);
  checks.given("tokens", a.tokens);
  checks.given("status", a.status);
}

}  // namespace

void check_settings(const draftproof_settings& settings) {
  const Checks checks("settings");
  checks.between("executor", settings.executor, DRAFTPROOF_REFERENCE, DRAFTPROOF_CUDA);
  const std::initializer_list<std::int32_t> sizes = {0, 128, 256, 512};
  if (std::find(sizes.begin(), sizes.end(), settings.block_threads) == sizes.end())
    checks.refuse("block_threads", std::to_string(settings.block_threads), "0, 128, 256 and 512 are right");
  checks.at_least("os_threads", settings.os_threads, 0);
}

void check_workspace(const char* call, const void* workspace, std::int64_t workspace_bytes, std::int64_t needed) {
  const Checks checks(call);
  checks.at_least("workspace_bytes", workspace_bytes, needed);
  if (needed == 0) return;
  checks.given("workspace", workspace);
  const std::uintptr_t remainder = reinterpret_cast<std::uintptr_t>(workspace) % WorkspaceLayout::kAlignment;
  if (remainder != 0)
    checks.refuse("workspace", "an address with remainder " + std::to_string(remainder),
                  "a multiple of 256 bytes is right");
}

void check_mass_pass(const draftproof_mass_pass_arguments& a) {
  const Checks checks("mass_pass");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  if (a.rows == 0) return;
  checks.rows("logits", a.logits, a.vocab_size);
  checks.given("tile_sum", a.tile_sum);
  checks.given("tile_exponent", a.tile_exponent);
  checks.given("row_exponent", a.row_exponent);
  checks.given("row_total", a.row_total);
  checks.given("status", a.status);
}

void check_guidance(const draftproof_guidance_arguments& a) {
  const Checks checks("guidance");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  if (a.rows == 0) return;
  checks.rows("conditional", a.conditional, a.vocab_size);
  checks.rows("unconditional", a.unconditional, a.vocab_size);
  checks.given("scale", a.scale);
  checks.given("out", a.out);
  checks.at_least("out_stride", a.out_stride, a.vocab_size);
  checks.given("status", a.status);
}

void check_sample(const draftproof_sample_arguments& a) {
  const Checks checks("sample");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  checks.requests(a.requests, a.row_request, a.rows);
  if (a.rows == 0) return;
  checks.pipeline(a.logits, a.unconditional, a.constraints, a.vocab_size);
  checks.randomness(a.randomness);
  checks.between("sampler", a.sampler, DRAFTPROOF_INVERSE, DRAFTPROOF_RACE);
  if (a.purpose != DRAFTPROOF_DRAFT_SAMPLE && a.purpose != DRAFTPROOF_TARGET_SAMPLE)
    checks.refuse("purpose", std::to_string(a.purpose), "1 (draft sample) and 4 (target sample) are right");
  checks.given("tokens", a.tokens);
  if (a.probabilities != nullptr) checks.at_least("probabilities_stride", a.probabilities_stride, a.vocab_size);
  checks.given("status", a.status);
}

void check_logprobs(const draftproof_logprobs_arguments& a) {
  const Checks checks("logprobs");
  checks.vocabulary(a.vocab_size);
  checks.row_count("rows", a.rows, a.vocab_size);
  checks.requests(a.requests, a.row_request, a.rows);
  checks.between("n", a.n, 0, 1024);
  if (a.rows == 0) return;
  checks.pipeline(a.logits, a.unconditional, a.constraints, a.vocab_size);
  checks.given("sampled", a.sampled);
  checks.given("tokens", a.tokens);
  checks.given("logprobs", a.logprobs);
  checks.given("ranks", a.ranks);
  checks.given("status", a.status);
}

void check_verify_chain(const draftproof_verify_arguments& a) {
  check_verify(Checks("verify_chain"), a, false);
}

void check_verify_block(const draftproof_verify_arguments& a) {
  check_verify(Checks("verify_block"), a, false);
}

void check_verify_tree(const draftproof_verify_arguments& a) {
  check_verify(Checks("verify_tree"), a, true);
}

void check_tree_mask(const draftproof_tree_mask_arguments& a) {
  const Checks checks("tree_mask");
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  if (a.requests == 0) return;
  checks.between("requests", a.requests, 0, kBlocksMax);
  checks.given("cu_num_draft_tokens", a.cu_num_draft_tokens);
  if (a.draft_tokens_total > 0) checks.given("parents", a.parents);
  checks.given("depths", a.depths);
  checks.given("mask", a.mask);
  checks.at_least("words_per_row", a.words_per_row, (a.draft_len_max + 32) / 32);
  checks.given("status", a.status);
}

void check_kv_commit(const draftproof_kv_commit_arguments& a) {
  const Checks checks("kv_commit");
  checks.drafts(a.requests, a.draft_tokens_total, a.draft_len_max);
  if (a.requests == 0) return;
  checks.between("requests", a.requests, 0, kBlocksMax);
  checks.given("cu_num_draft_tokens", a.cu_num_draft_tokens);
  checks.given("num_accepted", a.num_accepted);
  checks.given("slots", a.slots);
  checks.at_least("num_slots", a.num_slots, 1);
  checks.at_least("layers", a.layers, 0);
  checks.at_least("slot_bytes", a.slot_bytes, 0);
  checks.at_least("slot_stride_bytes", a.slot_stride_bytes, a.slot_bytes);
  if (a.layers > 1) checks.at_least("layer_stride_bytes", a.layer_stride_bytes, a.slot_bytes);
  const bool moves = a.path != nullptr && a.layers > 0 && a.slot_bytes > 0;
  if (moves) checks.given("cache", a.cache);
  // A block moves at least 128 columns of a byte in one layer.
  const std::int64_t blocks_of_entry = (a.slot_bytes + 127) / 128;
  if (moves && a.layers > kBlocksMax / a.requests / blocks_of_entry)
    checks.refuse("layers", std::to_string(a.layers),
                  std::to_string(kBlocksMax / a.requests / blocks_of_entry) + " layers of so many requests are right");
  checks.given("kv_len", a.kv_len);
  checks.given("freed_slots", a.freed_slots);
  checks.given("status", a.status);
}

}  // namespace draftproof::device
