// Cases of tree masks and depths.
#include <string>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/invalid_offsets.hpp"
#include "gpu/regress/random_trees.hpp"

namespace draftproof::regress {
namespace {

void run(CaseRun& run, const RandomTrees& trees, std::int64_t words_per_row) {
  draftproof_tree_mask_arguments a{};
  a.requests = trees.requests();
  a.draft_tokens_total = trees.draft_tokens();
  a.draft_len_max = trees.draft_len_max;
  a.cu_num_draft_tokens = run.input(trees.cu_num_draft_tokens);
  a.parents = run.input(trees.parents);
  a.depths = run.output<std::int32_t>("depths", trees.rows());
  a.mask = run.output<std::uint32_t>("mask", trees.rows() * words_per_row);
  a.words_per_row = words_per_row;
  a.status = run.output<std::int32_t>("status", a.requests);
  run.call(a, device::tree_mask);
}

RegressCase make(const std::string& what, RandomTrees trees, std::int64_t unused_words,
                 std::vector<int> block_threads = {128, 256, 512}) {
  const std::string name =
      "tree_mask/" + what + "/n" + std::to_string(trees.draft_len_max) + "/B" + std::to_string(trees.requests());
  const std::int64_t words = trees.draft_len_max / 32 + 1 + unused_words;
  return {name, [trees = std::move(trees), words](CaseRun& r) { run(r, trees, words); }, std::move(block_threads)};
}

}  // namespace

std::vector<RegressCase> tree_mask_cases() {
  std::vector<RegressCase> cases;
  // Around the words of a mask row, and one row of more words than a warp has lanes.
  const std::vector<std::int64_t> ragged = {0, 1, 30, 31, 32, 33, 63, 64, 5, 0};
  cases.push_back(make("chains", random_trees(1, ragged, 1), 0));
  cases.push_back(make("trees", random_trees(2, ragged, 3), 0));
  cases.push_back(make("unused_words", random_trees(3, ragged, 4), 2));
  cases.push_back(make("wide_row", random_trees(4, std::vector<std::int64_t>{1100, 7}, 6), 0));
  cases.push_back(make("no_requests", random_trees(5, {}, 2), 0));
  cases.push_back(make("no_nodes", random_trees(6, std::vector<std::int64_t>{0, 0}, 2), 0));

  RandomTrees bad = random_trees(7, std::vector<std::int64_t>{40, 40, 40, 40, 40}, 3);
  bad.parents[17] = 17;  // itself
  bad.parents[40] = 2;   // a later node
  bad.parents[2 * 40 + 39] = -2;
  bad.parents[3 * 40 + 5] = 0x7fffffff;
  cases.push_back(make("bad_parents", bad, 1));

  const RandomTrees valid = random_trees(8, std::vector<std::int64_t>{5, 40, 0, 33, 40, 1, 32}, 3);
  for (InvalidOffsets& lie : invalid_draft_offsets(valid.cu_num_draft_tokens)) {
    RandomTrees trees = valid;
    trees.cu_num_draft_tokens = std::move(lie.offsets);
    cases.push_back(make("invalid_offsets_" + lie.what, std::move(trees), 0, {128}));
  }
  return cases;
}

}  // namespace draftproof::regress
