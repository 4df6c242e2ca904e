// The covering arrays of tree masks and KV slots.
#include <algorithm>
#include <numeric>

#include "gpu/api.hpp"
#include "gpu/regress/covering_cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/random_trees.hpp"

namespace draftproof::regress {
namespace {

RandomTrees trees_of(const Assignment& given, std::uint64_t seed) {
  const std::vector<std::int64_t> nodes =
      given.is("requests", "one") ? std::vector<std::int64_t>{31} : std::vector<std::int64_t>{9, 0, 40, 1, 12};
  return random_trees(seed, nodes, 2);
}

std::int64_t draft_len_max(const Assignment& given, const RandomTrees& trees) {
  return trees.draft_len_max + (given.is("draft_len_max", "longer") ? 3 : 0);
}

void tree_mask(CaseRun& run, const Assignment& given, std::uint64_t number) {
  const RandomTrees trees = trees_of(given, 8000 + number);
  draftproof_tree_mask_arguments a{};
  a.requests = trees.requests();
  a.draft_tokens_total = trees.draft_tokens();
  a.draft_len_max = draft_len_max(given, trees);
  a.cu_num_draft_tokens = run.input(trees.cu_num_draft_tokens);
  a.parents = run.input(trees.parents);
  a.words_per_row = (a.draft_len_max + 32) / 32 + (given.is("words_per_row", "wider") ? 2 : 0);
  a.depths = run.output<std::int32_t>("depths", trees.rows());
  a.mask = run.output<std::uint32_t>("mask", trees.rows() * a.words_per_row);
  a.status = run.output<std::int32_t>("status", a.requests);
  if (run.describes(a)) return;
  device::tree_mask(a, run.settings());
}

// Accepted: the path to the deepest node; of a chain, half of the drafts.
void kv_commit(CaseRun& run, const Assignment& given, std::uint64_t number) {
  const RandomTrees trees = trees_of(given, 8500 + number);
  draftproof_kv_commit_arguments a{};
  a.requests = trees.requests();
  a.draft_tokens_total = trees.draft_tokens();
  a.draft_len_max = draft_len_max(given, trees);
  a.cu_num_draft_tokens = run.input(trees.cu_num_draft_tokens);
  std::vector<std::int32_t> num_accepted;
  std::vector<std::int32_t> paths;
  for (std::size_t b = 0; b < static_cast<std::size_t>(a.requests); ++b) {
    const std::int32_t* parents = trees.parents.data() + trees.cu_num_draft_tokens[b];
    const auto nodes = static_cast<std::int32_t>(trees.cu_num_draft_tokens[b + 1] - trees.cu_num_draft_tokens[b]);
    std::vector<std::int32_t> path;
    for (std::int32_t node = nodes - 1; node >= 0; node = parents[node]) path.insert(path.begin(), node);
    num_accepted.push_back(given.has("path") ? static_cast<std::int32_t>(path.size()) : nodes / 2);
    path.resize(static_cast<std::size_t>(a.draft_len_max), -1);
    paths.insert(paths.end(), path.begin(), path.end());
  }
  a.num_accepted = run.input(num_accepted);
  if (given.has("path")) a.path = run.input(paths);
  a.num_slots = trees.rows() + (given.is("num_slots", "more") ? 4 : 0);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(a.num_slots));
  std::iota(slots.begin(), slots.end(), 0);
  std::reverse(slots.begin(), slots.end());
  slots.resize(static_cast<std::size_t>(trees.rows()));
  a.slots = run.input(slots);

  a.layers = given.is("layers", "one") ? 1 : 3;
  a.slot_bytes = given.is("slot_bytes", "16s") ? 32 : given.is("slot_bytes", "4s") ? 20 : 13;
  const bool inside = given.is("layer_stride_bytes", "inside a slot");
  const std::int64_t entry = given.is("slot_stride_bytes", "exact") ? a.slot_bytes : a.slot_bytes + 16;
  a.slot_stride_bytes = inside ? entry * a.layers : entry;
  a.layer_stride_bytes = inside ? entry : a.num_slots * entry + (given.is("layer_stride_bytes", "padded") ? 32 : 0);
  const std::int64_t offset = given.is("cache", "aligned") ? 0 : 1;
  const std::int64_t bytes =
      offset + (a.layers - 1) * a.layer_stride_bytes + (a.num_slots - 1) * a.slot_stride_bytes + a.slot_bytes;
  std::vector<std::uint8_t> cache(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < cache.size(); ++i) cache[i] = static_cast<std::uint8_t>(Noise(number).word(i));
  a.cache = run.in_out("cache", cache) + offset;
  std::vector<std::int64_t> kv_len(static_cast<std::size_t>(a.requests));
  std::iota(kv_len.begin(), kv_len.end(), 100);
  a.kv_len = run.in_out("kv_len", kv_len);
  a.freed_slots = run.output<std::int64_t>("freed_slots", trees.rows());
  a.status = run.output<std::int32_t>("status", a.requests);
  if (run.describes(a)) return;
  device::kv_commit(a, run.settings());
}

}  // namespace

std::vector<RegressCase> covering_tree_cases(const std::string& call) {
  return covering_cases(call, call == "tree_mask" ? tree_mask : kv_commit);
}

}  // namespace draftproof::regress
