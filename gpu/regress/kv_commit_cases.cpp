// Cases of KV slot commits.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/invalid_offsets.hpp"
#include "gpu/regress/random_trees.hpp"

namespace draftproof::regress {
namespace {

// Where an entry of a layer lies; bytes.
struct CacheShape {
  std::int64_t layers;
  std::int64_t layer_stride;
  std::int64_t slot_stride;
  std::int64_t slot_bytes;
  std::int64_t offset = 0;  // of the first entry in its allocation

  std::int64_t bytes(std::int64_t num_slots) const {
    return offset + (layers - 1) * layer_stride + (num_slots - 1) * slot_stride + slot_bytes;
  }
};

struct Inputs {
  RandomTrees trees;
  CacheShape shape;
  std::int64_t num_slots;
  bool is_chain;
  std::vector<std::int32_t> num_accepted;
  std::vector<std::int32_t> path;
  std::vector<std::int64_t> slots;
  std::vector<std::int64_t> kv_len;
};

// Every request accepts a path that ends in one of its nodes, or nothing; slots are dealt out in a random order.
Inputs make_inputs(std::uint64_t seed, RandomTrees trees, const CacheShape& shape) {
  const Noise noise(seed);
  Inputs in{trees, shape, trees.rows() + 3, false, {}, {}, {}, {}};
  for (std::int64_t b = 0; b < trees.requests(); ++b) {
    const std::int32_t* parents = trees.parents.data() + trees.cu_num_draft_tokens[static_cast<std::size_t>(b)];
    const std::int64_t nodes = trees.cu_num_draft_tokens[static_cast<std::size_t>(b) + 1] -
                               trees.cu_num_draft_tokens[static_cast<std::size_t>(b)];
    std::vector<std::int32_t> path;
    for (auto node = static_cast<std::int32_t>(noise.below(static_cast<std::uint64_t>(b), nodes + 1)) - 1; node >= 0;
         node = parents[node])
      path.insert(path.begin(), node);
    in.num_accepted.push_back(static_cast<std::int32_t>(path.size()));
    path.resize(static_cast<std::size_t>(trees.draft_len_max), -1);
    in.path.insert(in.path.end(), path.begin(), path.end());
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(in.num_slots));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<std::size_t>(noise.below(1000 + i, static_cast<std::int64_t>(i) + 1))]);
  in.slots.assign(order.begin(), order.begin() + trees.rows());
  in.kv_len.resize(static_cast<std::size_t>(trees.requests()));
  std::iota(in.kv_len.begin(), in.kv_len.end(), 100);
  return in;
}

void run(CaseRun& run, const Inputs& in) {
  draftproof_kv_commit_arguments a{};
  a.requests = in.trees.requests();
  a.draft_tokens_total = in.trees.draft_tokens();
  a.draft_len_max = in.trees.draft_len_max;
  a.cu_num_draft_tokens = run.input(in.trees.cu_num_draft_tokens);
  a.num_accepted = run.input(in.num_accepted);
  if (!in.is_chain) a.path = run.input(in.path);
  a.slots = run.input(in.slots);
  a.num_slots = in.num_slots;
  std::vector<std::uint8_t> cache(static_cast<std::size_t>(in.shape.bytes(in.num_slots)));
  const Noise noise(77);
  for (std::size_t i = 0; i < cache.size(); ++i) cache[i] = static_cast<std::uint8_t>(noise.word(i));
  a.cache = run.in_out("cache", cache) + in.shape.offset;
  a.layers = in.shape.layers;
  a.layer_stride_bytes = in.shape.layer_stride;
  a.slot_stride_bytes = in.shape.slot_stride;
  a.slot_bytes = in.shape.slot_bytes;
  a.kv_len = run.in_out("kv_len", in.kv_len);
  a.freed_slots = run.output<std::int64_t>("freed_slots", in.trees.rows());
  a.status = run.output<std::int32_t>("status", a.requests);
  device::kv_commit(a, run.settings());
}

RegressCase make(const std::string& what, Inputs in, std::vector<int> block_threads = {128, 256, 512}) {
  const std::string name =
      "kv_commit/" + what + "/bytes" + std::to_string(in.shape.slot_bytes) + "/B" + std::to_string(in.trees.requests());
  return {name, [in = std::move(in)](CaseRun& r) { run(r, in); }, std::move(block_threads)};
}

}  // namespace

std::vector<RegressCase> kv_commit_cases() {
  const std::vector<std::int64_t> ragged = {7, 0, 1, 12, 33, 4};
  const auto trees = [&](std::uint64_t seed, std::int64_t branching) { return random_trees(seed, ragged, branching); };
  std::vector<RegressCase> cases;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    cases.push_back(make("tree_seed" + std::to_string(seed), make_inputs(seed, trees(seed, 3), {2, 70 * 64, 64, 48})));
  // Units of 16, 4 and 1 bytes; more columns than a block has threads; padding between entries stays as it is.
  cases.push_back(make("words", make_inputs(4, trees(4, 2), {2, 70 * 24, 24, 20})));
  cases.push_back(make("odd_bytes", make_inputs(5, trees(5, 2), {2, 70 * 23, 23, 13})));
  cases.push_back(make("odd_address", make_inputs(6, trees(6, 2), {1, 64 * 64, 64, 32, 1})));
  cases.push_back(make(
      "many_columns", make_inputs(7, random_trees(7, std::vector<std::int64_t>{6, 5}, 2), {1, 16 * 9000, 9000, 8800})));
  cases.push_back(make("layers_inside_slots", make_inputs(8, trees(8, 3), {3, 32, 96, 32})));
  cases.push_back(
      make("deep_path", make_inputs(11, random_trees(9, std::vector<std::int64_t>{40, 40}, 2), {1, 128 * 16, 16, 16})));
  cases.push_back(make("no_requests", make_inputs(1, random_trees(1, {}, 2), {1, 16, 16, 16})));

  Inputs chain = make_inputs(9, trees(9, 1), {1, 64 * 16, 16, 16});
  chain.is_chain = true;
  chain.num_accepted = {3, 0, 1, 12, 20, 0};
  cases.push_back(make("chain", chain));
  chain.num_accepted = {8, 0, -1, 13, 33, 4};  // too many, none of it moves
  cases.push_back(make("chain_bad_count", chain));

  Inputs bad = make_inputs(10, random_trees(10, std::vector<std::int64_t>(9, 8), 2), {2, 96 * 16, 16, 16});
  const auto path_of = [&](std::size_t b) { return bad.path.begin() + static_cast<std::ptrdiff_t>(b) * 8; };
  const auto accept = [&](std::size_t b, const std::vector<std::int32_t>& nodes) {
    std::fill_n(path_of(b), 8, -1);
    std::copy(nodes.begin(), nodes.end(), path_of(b));
    bad.num_accepted[b] = static_cast<std::int32_t>(nodes.size());
  };
  accept(0, {1, 4, 4});  // does not ascend
  accept(1, {0, 8});     // no node
  accept(2, {1, 5, 7});
  bad.num_accepted[2] = 2;  // the path goes on
  accept(3, {2, 6});
  bad.num_accepted[3] = 3;  // the path ends early
  accept(4, {-1, 3});
  accept(5, {1, 2});
  bad.slots[5 * 9 + 8] = bad.slots[5 * 9 + 3];  // twice
  accept(6, {1, 2});
  bad.slots[6 * 9] = bad.num_slots;
  accept(7, {3});
  bad.slots[7 * 9 + 7] = -1;
  accept(8, {1, 3, 5, 7});  // valid: it must not suffer from its neighbours
  cases.push_back(make("bad_requests", bad));

  // Five nodes and more one behind the other: every source but the last is the next one's target.
  for (const std::int64_t bytes : {16, 20, 13}) {
    Inputs dense = make_inputs(14, random_trees(14, std::vector<std::int64_t>(4, 9), 2), {2, 64 * 32, 32, bytes});
    const std::vector<std::vector<std::int32_t>> paths = {
        {1, 2, 3, 4, 5, 6, 7, 8}, {0, 2, 3, 4, 5, 6}, {4, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6, 7, 8}};
    for (std::size_t b = 0; b < paths.size(); ++b) {
      std::fill_n(dense.path.begin() + static_cast<std::ptrdiff_t>(b) * 9, 9, -1);
      std::copy(paths[b].begin(), paths[b].end(), dense.path.begin() + static_cast<std::ptrdiff_t>(b) * 9);
      dense.num_accepted[b] = static_cast<std::int32_t>(paths[b].size());
    }
    cases.push_back(make("dense_paths", dense));
  }

  // Indices that lead as far as their types reach.
  Inputs far = make_inputs(12, random_trees(12, std::vector<std::int64_t>(8, 6), 2), {2, 96 * 16, 16, 16});
  far.slots[1] = std::int64_t{1} << 40;
  far.slots[7 + 2] = std::numeric_limits<std::int64_t>::min();
  far.path[2 * 6] = std::numeric_limits<std::int32_t>::max();
  far.path[3 * 6] = std::numeric_limits<std::int32_t>::min();
  far.num_accepted[4] = std::numeric_limits<std::int32_t>::max();
  far.num_accepted[5] = std::numeric_limits<std::int32_t>::min();
  cases.push_back(make("far_indices", far));
  Inputs lengths = make_inputs(15, random_trees(15, std::vector<std::int64_t>(6, 6), 2), {2, 96 * 16, 16, 16});
  lengths.kv_len = {0,
                    -1,
                    std::numeric_limits<std::int64_t>::max(),
                    std::numeric_limits<std::int64_t>::min(),
                    std::int64_t{1} << 62,
                    (std::int64_t{1} << 62) - 1};
  cases.push_back(make("kv_lengths", lengths));

  const Inputs valid =
      make_inputs(13, random_trees(13, std::vector<std::int64_t>{6, 6, 0, 3, 6, 5, 6, 2, 6}, 2), {2, 64 * 16, 16, 16});
  bool of_chains = false;
  for (const InvalidOffsets& lie : invalid_draft_offsets(valid.trees.cu_num_draft_tokens)) {
    Inputs in = valid;
    in.trees.cu_num_draft_tokens = lie.offsets;
    in.is_chain = of_chains;
    of_chains = !of_chains;
    cases.push_back(make("invalid_offsets_" + lie.what + (in.is_chain ? "_of_chains" : ""), in, {128}));
  }
  cases.push_back(far_kv_commit_case());
  return cases;
}

}  // namespace draftproof::regress
